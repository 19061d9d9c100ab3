// Package peer is the mesh: how nodes reach orderers and each other.
//
// Everything is gRPC over mutual TLS 1.3 (package server/pki says whose
// certificates count). A [Server] answers; a [Service] is the ordering service of a
// network as a node far from it sees it, an implementation of ordering.Service; a
// [Forwarder] passes transactions of execute-order-in-parallel on to other nodes.
//
// # Messages
//
// Every message of service tallystick.Mesh is
//
//	message Frame { repeated bytes data = 1; }
//
// and what stands in data are the canonical bytes of transactions and blocks as
// they were signed: nothing is encoded a second time (wire.go).
//
//	Submit(transactions) -> refusals        at orderers, by nodes
//	Forward(transactions) -> nothing        at nodes, by nodes
//	Deliver(from height) -> stream blocks   at both, by both
//	Status(nothing) -> status               at both, by everybody registered
//
// # Whom a node trusts
//
// Nobody who sends. A block counts if it follows the one before and the orderers'
// certificate is good, whoever brought it, an orderer or another node; the first
// one that does is taken. What does not is dropped, told in the log, and its sender
// is asked last for a while ([Service.Deliver]). A sender that has no news while
// others have is left for one of them. A transaction that was accepted and does
// not come back in a block in time is submitted again, to another orderer each
// time, for as long as it is valid: an orderer that withholds it, or that has
// failed with it, costs time only ([Service.Submit]).
//
// # Bounds
//
// Connections, streams of a connection, sizes of messages, transactions under way
// and transactions to forward are all bounded. An orderer that is full delays
// Submit, which fills the node's queue, and then ordering.Busy reaches clients.
// Forwarding only saves time: what finds no room is dropped.
//
// # Order of calls
//
// [NewServer], [Server.Serve], [Server.Close]; [NewService], then as the
// interface says, and [Service.Close].
package peer
