// Package raft is the ordering service of several orderers that may crash but do
// not lie: agreement by the Raft protocol (hashicorp/raft), blocks by
// the rules of the network.
//
// # What is agreed on
//
// An entry of the Raft log is what a block is made of: the transactions that the
// leader cut together, the time that it proposes and the configuration. Entries
// are pipelined; every one costs a sync of the log, not every transaction. Each
// orderer applies the committed entries in their order with the same pure
// rule (machine.go):
//
//   - a transaction that one of the last Remember blocks contains, or that stands
//     twice in the entry, is left out, and an entry of which nothing is left
//     makes no block;
//   - number and previous hash follow from the block before, and the timestamp is
//     max(proposed, timestamp before + 1 us).
//
// So all orderers make the same blocks, whoever was leader and whatever was
// handed in twice on the way. Where a block ends is decided by the leader alone
// with package cutter, and the first entry in the log wins.
//
// Every orderer certifies a block with its own signature (view 0): certificates
// differ between orderers, hashes do not. The trust is that of a crash-fault
// protocol: one orderer that lies can sign a second chain.
//
// # The way of a transaction
//
//	Submit --pool--> router --+--> sequencer --entries--> Raft --> machine --> persister --> Deliver
//	                          `--> leader's orderer (forward.go)
//
// An orderer keeps what was submitted to it in its pool until it stands in a
// block, and hands the whole pool to every new leader again: a leader that fails
// takes nothing with it. Duplicates that arise from this are dropped by the
// leader, and in any case by the machine. Pool, pipeline and all queues are bounded; a
// leader that is full stops reading from the orderers that forward to it, their
// pools fill, and Submit answers [ordering.Busy].
//
// Blocks in flight are those proposed and not yet done. Done may be called at any
// orderer: the leader is told and counts what any of them has done, so that one
// slow node stalls nobody.
//
// # What is durable
//
// The Raft log of a majority decides; the block store of an orderer is its copy
// of the outcome. A block is delivered when the store has it. A snapshot of the
// machine is number, hash and time of the last block and is taken only after the
// store has that block; the transactions to remember are read from the store.
// At a restart the machine resumes from the last snapshot, makes the blocks after
// it again from the log, and compares those that the store has already. A
// snapshot that came from the leader may be ahead of the store: then the
// missing blocks are fetched from other orderers, and the last one must have the
// snapshot's hash.
//
// The log is a store of this package's own in Pebble (logstore.go), and the
// library's term and vote are with it. The library's authors offer raft-wal, but
// version 0.4.0 seals a file without its index when entries are cut off that a
// new leader does not have, and cannot read that file after the next start
// ("sealed segment has no index block"): an orderer that crashed after it had led
// could not come back. Pebble, which other packages of this module have anyway,
// cuts both ends of the log with a range deletion in the same write-ahead log as
// the entries, so a crash leaves what was there before or after it.
//
// # Connections
//
// All connections come over one listener and begin with a byte that says what
// they are for: Raft's own protocol, transactions forwarded to the leader, or
// reading blocks. Listener and Dial are given, so that mutual TLS is a matter of
// who makes them; this package takes whoever gets through for an orderer.
//
// # Order of calls
//
// [Start]; the methods of [ordering.Service]; [Orderer.AddOrderer],
// [Orderer.RemoveOrderer] and [Orderer.TransferLeadership] at the leader;
// [Orderer.Close].
//
// # What it is not
//
// Adding an orderer here changes who agrees, not whose signature nodes accept:
// that is the network's configuration, Options.Orderers. Byzantine orderers are
// what other implementations are for.
package raft
