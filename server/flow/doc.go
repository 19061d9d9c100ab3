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
// # The two flows
//
// In order-then-execute a transaction is executed by the block that contains it,
// on the state before that block. In execute-order-in-parallel it names the
// height that it reads, and Submit has it executed at once, in the background,
// while it is being ordered (executeorder.go). Everything else is the same: what
// a block makes of its transactions depends on the chain alone, whether this node
// knew of them before or not.
package flow
