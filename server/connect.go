package server

import (
	"context"

	"github.com/tallystick/tallystick/identity"
	"github.com/tallystick/tallystick/server/pgwire"
	"github.com/tallystick/tallystick/sql"
)

// frontConfig lets the users of the wallet in, each with a session that signs
// as that user.
func (n *Node) frontConfig() pgwire.Config {
	return pgwire.Config{Authenticate: n.authenticate, NewSession: n.newSession, Logger: n.log}
}

// authenticate asks for no proof: whoever reaches a development network's
// loopback address may be any of its users.
func (n *Node) authenticate(_ context.Context, p pgwire.StartupParams) error {
	if p.Database != sql.Database {
		return pgwire.UnknownDatabase(p.Database)
	}
	u, ok := n.state.chain.User(identity.UserID{Org: DevOrg, Name: p.User})
	if !ok || !u.Active() || !mayConnect(u.Role) {
		return pgwire.UnknownRole(p.User)
	}
	if !n.wallet.Has(p.User) {
		return pgwire.UnknownRole(p.User).WithDetail("The chain knows this user, but the signing endpoint does not have the key.").
			WithHint("Put it into the directory keys of the data directory, as %s.pem, and start the node again.", p.User)
	}
	return nil
}

func (n *Node) newSession(p pgwire.StartupParams) (*sql.Session, error) {
	signer := n.wallet.Session(p.User, p.Notice)
	options := sql.SessionOptions{
		User: p.User, Org: DevOrg, Database: p.Database, Network: n.genesis.NetworkID().String(), ApplicationName: p.ApplicationName, ClientAddr: p.ClientAddr, PID: p.PID,
		Notice: p.Notice, Parameter: p.Parameter, Wake: p.Wake,
		Submit: signer.Submit, Script: signer.Script, Envelope: n.submitEnvelope,
	}
	if n.holds() {
		options.Hold = signer.Hold
	}
	return n.state.engine.NewSession(options), nil
}
