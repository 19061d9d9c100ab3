// Package client calls contracts of a Tallystick network and reads its data.
//
// A [Client] holds the key of one user. [Client.Call] signs the call of a function
// or procedure, hands it to a node, waits until it has committed, and tries again
// what lost a conflict; [Client.Submit] does not wait. A node cannot change what
// was signed, and a transaction that was handed in twice, here and there, has one
// effect: when a node fails the same bytes go to the next one.
//
// Reading needs no signature: [Client.Query] is a query of pgx on the preferred
// node, [Client.Provenance] reads all versions of rows, and [Client.Subscribe]
// follows the ledger from any height on and misses nothing.
//
// # Trust
//
// [Config.Network] pins the network: a transaction that was signed for it is worth
// nothing elsewhere. Without it the first node that is reached is believed. What a
// node answers to a query is that node's word; [Config.Wait] has several nodes
// confirm that a transaction committed.
//
// # Order of calls
//
// [Connect]; anything, by any number of goroutines; [Client.Close].
package client
