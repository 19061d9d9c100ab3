// Package flow carries transactions from clients through the ordering service to
// the chain, and receipts back.
//
// [Flow.Submit] authenticates a transaction, hands it to the ordering service
// and waits for its receipt; [Flow.Run] takes blocks from the service, one at a
// time, processes them and wakes up those who wait. What Submit refuses is
// advice, so that a client need not wait for a block to hear it: the chain
// decides for itself, and a transaction that got into a block by another way is
// judged there.
//
// A client that goes away stops waiting. Its transaction has been submitted and
// takes its course.
//
// A fault of the chain ends the flow: [Flow.Err] tells why, whoever waits gets
// 57P03, and the node must stop.
//
// This is the order-then-execute flow; execute-order-in-parallel differs in what
// happens between Submit and the block and is not built.
package flow
