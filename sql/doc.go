// Package sql is the engine that sessions talk to: it prepares statements,
// runs queries on a snapshot, tells which statements are blockchain
// transactions, and executes DDL scripts in the system phase.
//
// An [Engine] is shared by all connections of a node. A [Session] is one
// connection: its settings, prepared statements and transaction block. A
// statement goes through Prepare, Bind and Portal.Next whatever protocol it
// came in by.
//
// A statement that is a call of a contract is not executed here: it is handed
// to Options.Submit, which signs it (a signing endpoint) or refuses it, and
// waits for the receipt. Inside a transaction block it goes to Options.Hold, if
// there is one: it is executed at once and submitted by COMMIT.
package sql
