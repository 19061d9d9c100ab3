// Package ssi decides which transactions of a block commit: serializable
// snapshot isolation inside one block, as a pure function.
//
// Every transaction of a block has read the state of the previous block. Two
// that ran side by side are related only by rw-dependencies: N -> T says that N
// read something (a row, or a predicate) that T writes, so N has to stand
// before T in any equivalent serial order. [Decide] walks through the block in
// block order, lets the first writer of a key win, and breaks every cycle of
// such dependencies by one of three rules ([Rule], a parameter of the network).
// README.md tells the algorithm with its pictures and its proof.
//
// Invariants:
//
//   - The verdicts depend on the rule, the order of the block and the
//     footprints, and on nothing else: not on what is in flight, on time or on
//     the order in which footprints list their entries.
//   - The committed transactions equal some serial order of themselves.
//   - The first candidate of a block always commits unless it is excluded.
//
// The caller excludes what cannot take part before it calls: rejected
// transactions, those whose reads changed between their snapshot and the
// previous block (mvcc answers that question), and those that failed. Where
// losers are executed again, each round is decided like a block of its own, and
// [Overwrites] tells which failures are losers too. This package knows neither SQL nor storage, reads no clock, starts no goroutine
// and never fails.
package ssi
