package chain

import (
	"bytes"
	"fmt"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/identity"
	"github.com/tallystick/tallystick/mvcc"
	"github.com/tallystick/tallystick/mvcc/rwset"
	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
)

// User is a row of pgcerts.
type User struct {
	ID      identity.UserID
	Role    identity.Role
	Key     identity.PublicKey
	Since   block.Height // block that set the key
	Revoked block.Height // block that revoked the user; 0 = none has
}

// Active reports whether the user may sign transactions.
func (u *User) Active() bool { return u.Revoked == 0 }

var (
	certsTable   = newRowTable(catalog.Certs)
	certsColumns = struct{ org, name, role, key, since, revoked int }{
		columnOf(catalog.Certs, "org"), columnOf(catalog.Certs, "username"), columnOf(catalog.Certs, "role"),
		columnOf(catalog.Certs, "public_key"), columnOf(catalog.Certs, "since_block"), columnOf(catalog.Certs, "revoked_block"),
	}
)

// row is the stored form of a user.
func (u *User) row() []datum.Datum {
	r := certsTable.newRow()
	c := &certsColumns
	r[c.org], r[c.name] = datum.Str(u.ID.Org), datum.Str(u.ID.Name)
	r[c.role], r[c.key] = datum.Str(u.Role.String()), datum.Bytes(bytes.Clone(u.Key[:]))
	r[c.since] = datum.Int(int64(u.Since))
	if u.Revoked != 0 {
		r[c.revoked] = datum.Int(int64(u.Revoked))
	}
	return r
}

// decodeUser reads a row of pgcerts.
func decodeUser(value []byte) (*User, error) {
	r := certsTable.newRow()
	if err := certsTable.decoder.Decode(value, r); err != nil {
		return nil, err
	}
	c := &certsColumns
	u := &User{ID: identity.UserID{Org: string(r[c.org].Bytes()), Name: string(r[c.name].Bytes())}}
	role, err := identity.ParseRole(r[c.role].Str())
	if err != nil {
		return nil, fmt.Errorf("chain: corruption: user %s: %w", u.ID, err)
	}
	u.Role = role
	if key := r[c.key].Bytes(); len(key) != len(u.Key) {
		return nil, fmt.Errorf("chain: corruption: key of user %s has %d bytes", u.ID, len(key))
	}
	copy(u.Key[:], r[c.key].Bytes())
	u.Since = block.Height(r[c.since].Int())
	if !r[c.revoked].IsNull() {
		u.Revoked = block.Height(r[c.revoked].Int())
	}
	return u, nil
}

// genesisUsers are the users that the network starts with, by id.
func genesisUsers(g *block.Genesis) []*User {
	var users []*User
	for i := range g.Orgs {
		for j := range g.Orgs[i].Users {
			u := &g.Orgs[i].Users[j]
			users = append(users, &User{ID: identity.UserID{Org: g.Orgs[i].Name, Name: u.Name}, Role: u.Role, Key: u.Key})
		}
	}
	return users
}

// registry has the users as of the last block, by id. Chain.mu guards it.
type registry map[identity.UserID]*User

// update takes over a write of a transaction, if it concerns pgcerts.
func (r registry) update(key, value []byte, tombstone bool) error {
	if !bytes.HasPrefix(key, certsTable.layout.IndexPrefix(0)) {
		return nil
	}
	if tombstone {
		return fmt.Errorf("chain: a row of pgcerts was deleted")
	}
	u, err := decodeUser(value)
	if err == nil {
		r[u.ID] = u
	}
	return err
}

// User returns a user as of the last block, revoked ones too.
func (c *Chain) User(id identity.UserID) (User, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	u, ok := c.users[id]
	if !ok {
		return User{}, false
	}
	return *u, true
}

// Users lists the users as of a block, by organization and name, revoked ones
// too.
func (c *Chain) Users(height block.Height) ([]User, error) {
	txn := c.store.Begin(mvcc.AsOf(height), 0)
	defer txn.Close()
	prefix := certsTable.layout.IndexPrefix(0)
	it := txn.Scan(rwset.Span{Start: prefix, End: rwset.PrefixEnd(prefix)}, false, mvcc.ReadUnrecorded)
	defer it.Close()
	var list []User
	for it.Next() {
		u, err := decodeUser(it.Value())
		if err != nil {
			return nil, err
		}
		list = append(list, *u)
	}
	return list, it.Err()
}
