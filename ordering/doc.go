// Package ordering is how transactions come into blocks: the contract of an
// ordering service, which its implementations and users share.
//
// An ordering service takes transactions, agrees on their order with whoever
// else orders, cuts them into blocks, seals the blocks with a certificate and
// delivers them, the same ones to everybody, from any height on and without
// gaps. It reads no SQL, knows no state and does not say whether a transaction
// is valid: what it refuses it refuses as advice.
//
// The order of calls at a node: [Service.Deliver] from the height after its own
// tip, in a goroutine for as long as the node lives; [Service.Submit] from any
// number of connections meanwhile; [Service.Done] after each block.
//
// A transaction is identified by its bytes, signature included, and not by its
// id alone: the id does not cover the signature, so a copy with a false
// signature has the same id and must not displace the genuine one.
//
// Byzantine protocols are pure state machines ([Machine], [Protocol]); package
// replica is the driver that makes a Service of one, sim the simulator that
// tries to break one. A machine is fed with what a [Verifier] has checked.
//
// Implementations: solo (one orderer, embedded in a node) and raft (several that
// may crash but do not lie). The package orderingtest is the suite that every
// implementation has to pass; cutter decides where a block ends.
package ordering
