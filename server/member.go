package server

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/identity"
	"github.com/tallystick/tallystick/server/home"
	"github.com/tallystick/tallystick/server/peer"
	"github.com/tallystick/tallystick/server/pki"
)

// Member is what every process of a network has: a home with key and certificate,
// and who the others are.
type Member struct {
	User     identity.UserID
	Genesis  *block.Genesis
	Network  *home.Network
	Pair     *pki.KeyPair
	Verifier *pki.Verifier
}

// OpenMember reads key, certificate, genesis and network.toml of a home. lookup is
// what the network knows of users; nil takes what the genesis says. The
// certificate must be one that others accept.
func OpenMember(dir string, user identity.UserID, passphrase func() ([]byte, error), lookup func(identity.UserID) (pki.Registered, bool), log *slog.Logger) (*Member, error) {
	raw, err := os.ReadFile(filepath.Join(dir, home.GenesisFile))
	if err != nil {
		return nil, fmt.Errorf("%s has no genesis: tallystick genesis join puts it there (%w)", dir, err)
	}
	m := &Member{User: user}
	if m.Genesis, err = block.DecodeGenesis(raw); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, home.GenesisFile), err)
	}
	if m.Network, err = home.ReadNetwork(filepath.Join(dir, home.NetworkFile)); err != nil {
		return nil, err
	}
	if id := m.Genesis.NetworkID().String(); id != m.Network.ID {
		return nil, fmt.Errorf("%s: the genesis is that of network %s, and %s names %s", dir, id, home.NetworkFile, m.Network.ID)
	}
	warn := func(err error) { log.Warn("a changed file is not used", "error", err) }
	if m.Pair, err = pki.OpenKeyPair(filepath.Join(dir, home.CertFile), filepath.Join(dir, home.KeyFile), passphrase, warn); err != nil {
		return nil, err
	}
	revoked, err := pki.OpenRevokedKeys(filepath.Join(dir, home.RevokedFile), warn)
	if err != nil {
		return nil, err
	}
	authorities, err := m.Network.Authorities()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, home.NetworkFile), err)
	}
	if lookup == nil {
		lookup = genesisLookup(m.Genesis)
	}
	m.Verifier = &pki.Verifier{Authorities: authorities, Lookup: lookup, Revoked: revoked.Has,
		Refused: func(err error) { log.Warn("a connection was refused", "error", err) }}
	return m, nil
}

// genesisLookup knows the users of a genesis.
func genesisLookup(g *block.Genesis) func(identity.UserID) (pki.Registered, bool) {
	users := map[identity.UserID]pki.Registered{}
	for _, o := range g.Orgs {
		for _, u := range o.Users {
			users[identity.UserID{Org: o.Name, Name: u.Name}] = pki.Registered{Role: u.Role, Key: u.Key, Active: true}
		}
	}
	return func(u identity.UserID) (pki.Registered, bool) {
		r, ok := users[u]
		return r, ok
	}
}

// check makes sure that others will accept this member: better said now than by
// each of them.
func (m *Member) check(role identity.Role) error {
	cert, err := m.Pair.Current()
	if err != nil {
		return err
	}
	quiet := *m.Verifier
	quiet.Refused = nil
	who, err := quiet.Check(leaf(cert), role)
	if err == nil && who.User != m.User {
		err = fmt.Errorf("it is that of %s", who.User)
	}
	if err != nil {
		return fmt.Errorf("the certificate of %s: %w", m.User, err)
	}
	return nil
}

// AllNodes are the nodes of the network, as other members reach them.
func (m *Member) AllNodes() []peer.Remote {
	var list []peer.Remote
	for _, o := range m.Network.Orgs {
		for _, n := range o.Nodes {
			list = append(list, peer.Remote{User: identity.UserID{Org: o.Name, Name: n.Name}, Role: identity.Node, Address: n.Mesh})
		}
	}
	return list
}

// Nodes are the nodes of the network but this member.
func (m *Member) Nodes() []peer.Remote {
	return slices.DeleteFunc(m.AllNodes(), func(r peer.Remote) bool { return r.User == m.User })
}

// Orderers are the orderers of the network, as nodes reach them.
func (m *Member) Orderers() []peer.Remote {
	var list []peer.Remote
	for _, o := range m.Network.Orgs {
		for _, n := range o.Orderers {
			list = append(list, peer.Remote{User: identity.UserID{Org: o.Name, Name: n.Name}, Role: identity.Orderer, Address: n.Service})
		}
	}
	return list
}

// preferredOrderer is the index of the orderer that this member asks first: one of
// its own organization if there is one, else one by its place among the nodes.
func (m *Member) preferredOrderer() int {
	orderers := m.Orderers()
	for i, o := range orderers {
		if o.User.Org == m.User.Org {
			return i
		}
	}
	at := 0
	for _, o := range m.Network.Orgs {
		for _, n := range o.Nodes {
			if (identity.UserID{Org: o.Name, Name: n.Name}) == m.User {
				return at % max(len(orderers), 1)
			}
			at++
		}
	}
	return 0
}

// passphraseFrom reads a passphrase file when it is needed; nil without one.
func passphraseFrom(file string) func() ([]byte, error) {
	if file == "" {
		return nil
	}
	return func() ([]byte, error) { return home.ReadPassphrase(file) }
}
