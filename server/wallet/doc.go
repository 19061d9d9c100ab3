// Package wallet is a signing endpoint: it holds the private keys of users and
// signs the calls that their connections make, so that psql and every other
// PostgreSQL client can use contracts without knowing of signatures.
//
// It turns a sql.Call into a signed block.Tx, hands it to the flow, waits for
// the receipt and gives rows, notices and errors back to the session. DDL typed
// by an admin becomes a proposal, an approval and a deployment, if the admin's
// organization is the only one.
//
// In execute-order-in-parallel a call inside BEGIN is executed at once and handed
// to the flow at COMMIT: see [Session.Hold].
//
// # Trust
//
// Whoever reaches the endpoint as a user signs as that user: the endpoint does
// not ask for proof, and what it signed cannot be told from what the user
// wanted. It is for development networks on a loopback address, and for users
// who run one of their own. It says so at the first signature of every
// connection.
//
// # In a process of its own
//
// [Proxy] is a signing endpoint on its user's machine. It passes everything on to a
// node, whose sessions carry out statements as for any client; but where a session
// comes to a call, the node asks the proxy for a signature (remote.go) and the key
// stays where it is. So results, errors, transaction blocks and every form of the
// protocol are the node's own. The proxy signs a call only if its client has
// written it: it follows the client's messages (intent.go), evaluates the arguments
// itself and compares (check.go); every statement is good for one signature. A node
// that lies can withhold a call or give a false answer to it, but not make another
// call of it.
//
// # Order of calls
//
// [New], [Wallet.Add] for every key, then [Wallet.Session] for every
// connection, whose methods go into sql.SessionOptions. A [Session] belongs to
// one connection; a [Wallet] is shared.
//
// # What it is not
//
// It decides nothing: whether a call commits is the chain's verdict, and a
// signature by a key that the chain does not know only makes the transaction
// rejected. It never signs a call twice: a client that got no answer cannot
// know whether its transaction will commit, and neither can the wallet.
package wallet
