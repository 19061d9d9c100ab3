package block

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tallystick/tallystick/identity"
)

// Limits of a genesis.
const (
	MaxOrgs        = 1 << 10
	MaxUsersPerOrg = 1 << 14
)

// User is a registered user of an organization.
type User struct {
	Name string
	Role identity.Role
	Key  identity.PublicKey
}

// Org is an organization with the users it starts with: its admins (one at
// least), nodes, orderers, clients.
type Org struct {
	Name  string
	Users []User // sorted by name
}

// Genesis defines a network. Its canonical bytes are the body of block 0, and
// their hash is the network id.
type Genesis struct {
	Network   string // name of the network, for people
	Timestamp int64  // of block 0, Unix microseconds
	Orgs      []Org  // sorted by name
	Orderers  identity.OrdererSet
	Params    Params

	raw []byte // as received; nil while the genesis is being built
	id  Hash
}

const genesisVersion = 1

// Sort puts organizations, users and orderer keys into canonical order.
func (g *Genesis) Sort() {
	slices.SortFunc(g.Orgs, func(a, b Org) int { return cmp.Compare(a.Name, b.Name) })
	for i := range g.Orgs {
		slices.SortFunc(g.Orgs[i].Users, func(a, b User) int { return cmp.Compare(a.Name, b.Name) })
	}
	slices.SortFunc(g.Orderers.Keys, func(a, b identity.PublicKey) int { return bytes.Compare(a[:], b[:]) })
}

// NetworkID returns the tagged hash of the canonical bytes.
func (g *Genesis) NetworkID() Hash {
	if g.raw != nil {
		return g.id
	}
	return identity.Digest(identity.DomainGenesis, g.Encode())
}

// Block validates the genesis and returns block 0.
func (g *Genesis) Block() (*Block, error) {
	if err := g.Validate(); err != nil {
		return nil, err
	}
	b := &Block{ConfigID: g.NetworkID(), Timestamp: g.Timestamp, Genesis: g}
	if err := b.Validate(); err != nil {
		return nil, err
	}
	b.Seal()
	return b, nil
}

// Validate reports why g does not define a network.
func (g *Genesis) Validate() error {
	if err := identity.ValidateName(g.Network); err != nil {
		return fmt.Errorf("block: genesis: network: %w", err)
	}
	if g.Timestamp < 0 || g.Timestamp > MaxTime {
		return fmt.Errorf("block: genesis: timestamp %d is outside of 1970 to 9999", g.Timestamp)
	}
	if n := len(g.Orgs); n == 0 || n > MaxOrgs {
		return fmt.Errorf("block: genesis: %d organizations, not 1 to %d", n, MaxOrgs)
	}
	for i := range g.Orgs {
		if i > 0 && strings.Compare(g.Orgs[i-1].Name, g.Orgs[i].Name) >= 0 {
			return errors.New("block: genesis: organizations are not sorted or not distinct")
		}
		if err := g.Orgs[i].validate(); err != nil {
			return fmt.Errorf("block: genesis: organization %q: %w", g.Orgs[i].Name, err)
		}
	}
	if err := g.Orderers.Validate(); err != nil {
		return fmt.Errorf("block: genesis: %w", err)
	}
	if err := g.Params.Validate(); err != nil {
		return fmt.Errorf("block: genesis: %w", err)
	}
	if n := len(g.Encode()); n > MaxGenesisBytes {
		return fmt.Errorf("block: genesis of %d bytes exceeds the limit of %d", n, MaxGenesisBytes)
	}
	return nil
}

func (o *Org) validate() error {
	if err := identity.ValidateName(o.Name); err != nil {
		return err
	}
	if len(o.Users) > MaxUsersPerOrg {
		return fmt.Errorf("%d users exceed the limit of %d", len(o.Users), MaxUsersPerOrg)
	}
	admins := 0
	for i := range o.Users {
		u := &o.Users[i]
		if err := identity.ValidateName(u.Name); err != nil {
			return fmt.Errorf("user %q: %w", u.Name, err)
		}
		if !u.Role.Valid() {
			return fmt.Errorf("user %q has no role", u.Name)
		}
		if i > 0 && o.Users[i-1].Name >= u.Name {
			return errors.New("users are not sorted or not distinct")
		}
		if u.Role == identity.Admin {
			admins++
		}
	}
	if admins == 0 {
		return errors.New("has no admin")
	}
	return nil
}

// Encode returns the canonical bytes. They are shared: do not modify. For a
// genesis that does not [Genesis.Validate] they are bytes that [DecodeGenesis]
// refuses.
func (g *Genesis) Encode() []byte {
	if g.raw != nil {
		return g.raw
	}
	b := []byte{genesisVersion}
	b = appendString(b, g.Network)
	b = appendInt64(b, g.Timestamp)
	b = binary.AppendUvarint(b, uint64(len(g.Orgs)))
	for i := range g.Orgs {
		o := &g.Orgs[i]
		b = appendString(b, o.Name)
		b = binary.AppendUvarint(b, uint64(len(o.Users)))
		for j := range o.Users {
			u := &o.Users[j]
			b = appendString(b, u.Name)
			b = append(b, byte(u.Role))
			b = append(b, u.Key[:]...)
		}
	}
	b = binary.AppendUvarint(b, uint64(len(g.Orderers.Keys)))
	for i := range g.Orderers.Keys {
		b = append(b, g.Orderers.Keys[i][:]...)
	}
	b = binary.AppendUvarint(b, uint64(g.Orderers.Quorum))
	return g.Params.appendTo(b)
}

// DecodeGenesis reads canonical bytes, refuses every other form and validates.
// The genesis keeps b; the caller must not change b any more.
func DecodeGenesis(b []byte) (*Genesis, error) {
	if len(b) > MaxGenesisBytes {
		return nil, malformed("genesis of %d bytes exceeds the limit of %d", len(b), MaxGenesisBytes)
	}
	r := reader{buf: b}
	g := &Genesis{}
	r.version(genesisVersion, "genesis")
	g.Network = string(r.bytes(identity.MaxNameBytes, "network name"))
	g.Timestamp = r.time("genesis timestamp")
	for range r.uvarint(MaxOrgs, "organization count") {
		if r.err != nil {
			break
		}
		g.Orgs = append(g.Orgs, decodeOrg(&r))
	}
	for range r.uvarint(identity.MaxOrderers, "orderer count") {
		var k identity.PublicKey
		copy(k[:], r.take(len(k), "orderer key"))
		g.Orderers.Keys = append(g.Orderers.Keys, k)
	}
	g.Orderers.Quorum = int(r.uvarint(identity.MaxOrderers, "quorum"))
	g.Params.decode(&r)
	if err := r.end(); err != nil {
		return nil, err
	}
	if err := g.Validate(); err != nil {
		return nil, malformed("%v", err)
	}
	g.raw = b[:len(b):len(b)]
	g.id = identity.Digest(identity.DomainGenesis, g.raw)
	return g, nil
}

func decodeOrg(r *reader) Org {
	o := Org{Name: string(r.bytes(identity.MaxNameBytes, "organization name"))}
	for range r.uvarint(MaxUsersPerOrg, "user count") {
		if r.err != nil {
			break
		}
		u := User{Name: string(r.bytes(identity.MaxNameBytes, "user name"))}
		u.Role = identity.Role(r.byte("role"))
		copy(u.Key[:], r.take(len(u.Key), "public key"))
		o.Users = append(o.Users, u)
	}
	return o
}
