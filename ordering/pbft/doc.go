// Package pbft is Practical Byzantine Fault Tolerance (Castro and Liskov) as a pure
// state machine that orders batches of transactions: n orderers, of which f =
// (n-1)/3 may do whatever they like, agree on one chain of blocks.
//
// README.md tells the protocol, its invariants and why they hold. In short: the
// primary of a view proposes a batch for each sequence ([PrePrepare]); members
// vote in two phases ([Vote]); a quorum of commit votes of one view decides, and is
// the block's certificate. As many sequences as fit into the window are
// under way at once and are decided in any order; [Machine] emits blocks in
// order. When the primary does not order what clients wait for, a quorum of
// signed resignations ([ViewChange]) begins the next view.
//
// The machine implements ordering.Machine, whose comments are the order of calls.
// It has no clock, no chance, no goroutine and no I/O: time is ticks, and what
// has to survive a crash comes out as records before the messages that
// depend on them.
//
// What this package is not: it verifies no signatures (ordering.Verifier does, and
// nothing else can make input for a machine), stores nothing, and does not know
// what a transaction means.
package pbft
