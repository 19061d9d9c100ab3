// Package replica drives the pure machines of byzantine ordering: it owns the
// clock, the disk, the network and the goroutines that they must not have, and
// makes an [ordering.Service] of one (ResilientDB, section 4).
//
// # Stages
//
//	Submit ----> intake --------.
//	                            v
//	peers --> reader --> verify --> machine --> output --> peers
//	         (a link)   (workers)  (one)       |  (records synced, then sent)
//	                                           `--> execute --> block store, Deliver
//
//	intake   transactions of this orderer's clients wait in a bounded queue; while
//	         it is full Submit waits, and then answers ordering.Busy
//	reader   one goroutine a connection cuts the stream into messages
//	verify   a pool of workers decodes messages and checks everything that they
//	         rest on, signatures in batches; what a member sent first reaches the
//	         machine first
//	machine  one goroutine: the protocol. It waits for nothing but its inputs
//	output   one goroutine carries out what the machine wants done, in order: records
//	         of all Readies that have gathered are synced together, then messages
//	         go to the queue of each destination and decided blocks to the next
//	         stage. Meanwhile the machine goes on
//	execute  decided blocks become durable, several with one sync, and only then
//	         subscribers see them and the machine counts them in checkpoints
//	sender   one goroutine and one bounded queue a destination
//
// A message may be lost where a queue is full or a connection breaks: the
// protocols ask again. Nothing that a peer sends makes a queue grow without
// bound or stops the process.
//
// # Connections
//
// Every orderer dials every other one and sends over the connection that it
// dialed, so that each pair has two. Who may connect and who is at the other
// end is for [Options.Dial] and [Options.Identify] to say, by mutual TLS;
// frames are a length of 4 bytes and the canonical bytes of a message.
//
// # What is durable
//
// Records of the machine are in a Pebble store of their own, decided blocks in the
// orderer's block store. An orderer that has lost its records must not come back
// under its key: it might vote twice.
//
// # Membership
//
// The configuration schedule follows from the blocks. When one brings a
// configuration, the machine hears of it; from the first block of the
// configuration on, messages are verified against the new members and the links
// are theirs. An orderer that is no longer a member stops ordering and keeps
// serving blocks.
//
// # Order of calls
//
// [Start]; the methods of [ordering.Service]; [Replica.Close].
//
// # What it is not
//
// It decides nothing: which protocol runs is [Options.Protocol].
package replica
