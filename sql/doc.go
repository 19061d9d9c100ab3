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
//
// Schema private ([Private]) is different: its statements are ordinary local
// transactions on a store of their own, serializable by validation at COMMIT.
// A session sees one catalog, merged of both stores; exec.Env has a workspace on
// each, and the schema of a table decides which one a read or write goes to.
// What numbers objects, rows and sequences there is outside of transactions.
package sql
