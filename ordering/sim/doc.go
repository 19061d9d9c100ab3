// Package sim runs a whole cluster of orderers in one goroutine under one seed and
// tries to break it: messages are delayed, lost, repeated and reordered, links
// clog, the network parts, clocks run at different speeds, orderers crash and
// lose what they had not synced, and up to f of them are byzantine. They sign only
// as themselves, whatever else they do.
//
// After every step the simulation checks that the honest orderers agree, block by
// block and without gaps, that every certificate holds, that no honest orderer
// ever gives two votes for one sequence of a view, also not after a crash,
// that blocks contain what clients submitted and name what is a repeat, and that
// their times make sense. When the faults end - but not the byzantine
// orderers - everything that clients wait for has to be ordered within a bounded
// time.
//
// A seed decides everything: the same seed gives the same trace, hash for hash.
// [Run] runs one; the tests of this package run hundreds, and as many as
// TALLYSTICK_SIM_SEEDS says (`make soak`). A seed that failed once stays in testdata/seeds.
//
// The cluster is one of any [Spec]: a protocol with what a simulation has to
// know about it.
package sim
