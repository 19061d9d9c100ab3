package block

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/tallystick/tallystick/identity"
)

// Limits of a configuration.
const (
	// MaxAdminsPerOrg is the largest number of admins of an organization whom a
	// configuration names.
	MaxAdminsPerOrg = 64
	// MaxConfigBytes is the longest encoding of a configuration.
	MaxConfigBytes = MaxTxBytes / 2
)

// Admin is an administrator who may sign configurations for an organization.
type Admin struct {
	Name string
	Key  identity.PublicKey
}

// ConfigOrg is an organization of a configuration with its admins, one at least.
type ConfigOrg struct {
	Name   string
	Admins []Admin // sorted by name
}

// Ordering are the parameters of the ordering service.
type Ordering struct {
	Protocol           string // Orderer...; the same for ever
	Window             uint64 // Params.OrderingWindow; the same for ever
	BlockTxs           uint64 // Params.BlockTxs
	BlockBytes         uint64 // Params.BlockBytes
	BlockTimeoutMicros uint64 // Params.BlockTimeoutMicros
}

// Config is what orderers and nodes have to agree on without reading SQL: whose
// admins decide on the network, who orders, and how. Configuration 0 follows
// from the genesis; every other one comes with a [ConfigTx].
type Config struct {
	Network  Hash // id of the network
	Number   uint64
	Previous Hash // id of configuration Number-1; zero in configuration 0
	Orgs     []ConfigOrg
	Orderers identity.OrdererSet
	Ordering Ordering
}

const configVersion = 1

// Config returns configuration 0 of the network.
func (g *Genesis) Config() *Config {
	p := &g.Params
	c := &Config{
		Network:  g.NetworkID(),
		Orderers: identity.OrdererSet{Keys: slices.Clone(g.Orderers.Keys), Quorum: g.Orderers.Quorum},
		Ordering: Ordering{
			Protocol: p.Orderer, Window: p.OrderingWindow,
			BlockTxs: p.BlockTxs, BlockBytes: p.BlockBytes, BlockTimeoutMicros: p.BlockTimeoutMicros,
		},
	}
	for i := range g.Orgs {
		org := ConfigOrg{Name: g.Orgs[i].Name}
		for _, u := range g.Orgs[i].Users {
			if u.Role == identity.Admin {
				org.Admins = append(org.Admins, Admin{Name: u.Name, Key: u.Key})
			}
		}
		c.Orgs = append(c.Orgs, org)
	}
	return c
}

// ID is what the header of a block calls the configuration: the network id for
// configuration 0, else the tagged hash of the canonical bytes, which is also
// what approvals name.
func (c *Config) ID() Hash {
	if c.Number == 0 {
		return c.Network
	}
	return identity.Digest(identity.DomainConfig, c.Encode())
}

// Next returns a copy to be changed into the configuration after c.
func (c *Config) Next() *Config {
	n := c.Clone()
	n.Number, n.Previous = c.Number+1, c.ID()
	return n
}

// Clone returns a copy that shares nothing with c.
func (c *Config) Clone() *Config {
	n := *c
	n.Orderers.Keys = slices.Clone(c.Orderers.Keys)
	n.Orgs = slices.Clone(c.Orgs)
	for i := range n.Orgs {
		n.Orgs[i].Admins = slices.Clone(n.Orgs[i].Admins)
	}
	return &n
}

// Sort puts organizations, admins and orderer keys into canonical order.
func (c *Config) Sort() {
	slices.SortFunc(c.Orgs, func(a, b ConfigOrg) int { return cmp.Compare(a.Name, b.Name) })
	for i := range c.Orgs {
		slices.SortFunc(c.Orgs[i].Admins, func(a, b Admin) int { return cmp.Compare(a.Name, b.Name) })
	}
	slices.SortFunc(c.Orderers.Keys, func(a, b identity.PublicKey) int { return bytes.Compare(a[:], b[:]) })
}

// Org returns an organization; nil if it is none of the network's.
func (c *Config) Org(name string) *ConfigOrg {
	i, ok := slices.BinarySearchFunc(c.Orgs, name, func(o ConfigOrg, name string) int { return cmp.Compare(o.Name, name) })
	if !ok {
		return nil
	}
	return &c.Orgs[i]
}

// Admin returns the key of an admin.
func (c *Config) Admin(id identity.UserID) (identity.PublicKey, bool) {
	if org := c.Org(id.Org); org != nil {
		for _, a := range org.Admins {
			if a.Name == id.Name {
				return a.Key, true
			}
		}
	}
	return identity.PublicKey{}, false
}

// Validate reports why c is no configuration.
func (c *Config) Validate() error {
	if c.Number > MaxHeight || (c.Number == 0) != c.Previous.IsZero() {
		return fmt.Errorf("block: configuration %d with previous configuration %s", c.Number, c.Previous)
	}
	if n := len(c.Orgs); n == 0 || n > MaxOrgs {
		return fmt.Errorf("block: configuration: %d organizations, not 1 to %d", n, MaxOrgs)
	}
	for i := range c.Orgs {
		if i > 0 && c.Orgs[i-1].Name >= c.Orgs[i].Name {
			return errors.New("block: configuration: organizations are not sorted or not distinct")
		}
		if err := c.Orgs[i].validate(); err != nil {
			return fmt.Errorf("block: configuration: organization %q: %w", c.Orgs[i].Name, err)
		}
	}
	if err := c.Orderers.Validate(); err != nil {
		return fmt.Errorf("block: configuration: %w", err)
	}
	if err := c.validateKeys(); err != nil {
		return err
	}
	if err := c.Ordering.validate(); err != nil {
		return err
	}
	if err := c.validateQuorum(); err != nil {
		return err
	}
	if n := len(c.Encode()); n > MaxConfigBytes {
		return fmt.Errorf("block: configuration of %d bytes exceeds the limit of %d", n, MaxConfigBytes)
	}
	return nil
}

// validateKeys refuses keys with which nobody, or everybody, could sign. What a
// genesis has was agreed on otherwise.
func (c *Config) validateKeys() error {
	if c.Number == 0 {
		return nil
	}
	for i := range c.Orgs {
		for _, a := range c.Orgs[i].Admins {
			if !a.Key.Usable() {
				return fmt.Errorf("block: configuration: key %s of admin %s/%s is not usable", a.Key, c.Orgs[i].Name, a.Name)
			}
		}
	}
	for _, k := range c.Orderers.Keys {
		if !k.Usable() {
			return fmt.Errorf("block: configuration: orderer key %s is not usable", k)
		}
	}
	return nil
}

func (o *ConfigOrg) validate() error {
	if err := identity.ValidateName(o.Name); err != nil {
		return err
	}
	if n := len(o.Admins); n == 0 || n > MaxAdminsPerOrg {
		return fmt.Errorf("%d admins, not 1 to %d", n, MaxAdminsPerOrg)
	}
	for i := range o.Admins {
		if err := identity.ValidateName(o.Admins[i].Name); err != nil {
			return fmt.Errorf("admin %q: %w", o.Admins[i].Name, err)
		}
		if i > 0 && o.Admins[i-1].Name >= o.Admins[i].Name {
			return errors.New("admins are not sorted or not distinct")
		}
	}
	return nil
}

// validate checks the parameters as those of a genesis are.
func (o *Ordering) validate() error {
	p := DefaultParams()
	p.Orderer, p.OrderingWindow = o.Protocol, o.Window
	p.BlockTxs, p.BlockBytes, p.BlockTimeoutMicros = o.BlockTxs, o.BlockBytes, o.BlockTimeoutMicros
	return p.Validate()
}

// validateQuorum checks that the quorum is one that the protocol is safe with:
// one vote where orderers do not lie, else so many that any two quorums share an
// honest member.
func (c *Config) validateQuorum() error {
	if n := len(c.Orderers.Keys); !trusting(c.Ordering.Protocol) && (n == 2 || n == 3) {
		return fmt.Errorf("block: configuration: %d orderers of %s tolerate no fault: there are 4 or more, or 1", n, c.Ordering.Protocol)
	}
	want := Quorum(c.Ordering.Protocol, len(c.Orderers.Keys))
	if c.Orderers.Quorum != want {
		return fmt.Errorf("block: configuration: quorum %d of %d orderers, %s needs %d", c.Orderers.Quorum, len(c.Orderers.Keys), c.Ordering.Protocol, want)
	}
	return nil
}

// Quorum is the number of votes that make the certificate of a block with n
// orderers: 1 where they may crash but do not lie, else the least q with
// 2q - n > f for f = (n-1)/3 liars, which is 2f+1 for n = 3f+1.
func Quorum(protocol string, n int) int {
	if trusting(protocol) {
		return 1
	}
	f := (n - 1) / 3
	return (n+f)/2 + 1
}

// trusting reports whether orderers of a protocol may crash but not lie.
func trusting(protocol string) bool { return protocol == OrdererSolo || protocol == OrdererRaft }

// Encode returns the canonical bytes.
func (c *Config) Encode() []byte {
	b := []byte{configVersion}
	b = append(b, c.Network[:]...)
	b = binary.AppendUvarint(b, c.Number)
	b = append(b, c.Previous[:]...)
	b = binary.AppendUvarint(b, uint64(len(c.Orgs)))
	for i := range c.Orgs {
		b = appendString(b, c.Orgs[i].Name)
		b = binary.AppendUvarint(b, uint64(len(c.Orgs[i].Admins)))
		for _, a := range c.Orgs[i].Admins {
			b = append(appendString(b, a.Name), a.Key[:]...)
		}
	}
	b = binary.AppendUvarint(b, uint64(len(c.Orderers.Keys)))
	for i := range c.Orderers.Keys {
		b = append(b, c.Orderers.Keys[i][:]...)
	}
	b = binary.AppendUvarint(b, uint64(c.Orderers.Quorum))
	b = appendString(b, c.Ordering.Protocol)
	for _, n := range c.Ordering.numbers() {
		b = binary.AppendUvarint(b, *n)
	}
	return b
}

// numbers are the numeric parameters in the order of the encoding.
func (o *Ordering) numbers() [4]*uint64 {
	return [4]*uint64{&o.Window, &o.BlockTxs, &o.BlockBytes, &o.BlockTimeoutMicros}
}

// DecodeConfig reads canonical bytes, refuses every other form and validates.
// The result does not share memory with b.
func DecodeConfig(b []byte) (*Config, error) {
	if len(b) > MaxConfigBytes {
		return nil, malformed("configuration of %d bytes exceeds the limit of %d", len(b), MaxConfigBytes)
	}
	r := reader{buf: b}
	c := &Config{}
	r.version(configVersion, "configuration")
	copy(c.Network[:], r.take(len(c.Network), "network id"))
	c.Number = r.uvarint(MaxHeight, "number of the configuration")
	copy(c.Previous[:], r.take(len(c.Previous), "previous configuration"))
	for range r.uvarint(MaxOrgs, "organization count") {
		if r.err != nil {
			break
		}
		c.Orgs = append(c.Orgs, decodeConfigOrg(&r))
	}
	for range r.uvarint(identity.MaxOrderers, "orderer count") {
		var k identity.PublicKey
		copy(k[:], r.take(len(k), "orderer key"))
		c.Orderers.Keys = append(c.Orderers.Keys, k)
	}
	c.Orderers.Quorum = int(r.uvarint(identity.MaxOrderers, "quorum"))
	c.Ordering.Protocol = string(r.bytes(maxKeywordBytes, "protocol"))
	for _, n := range c.Ordering.numbers() {
		*n = r.uvarint(1<<63-1, "ordering parameter")
	}
	if err := r.end(); err != nil {
		return nil, err
	}
	if err := c.Validate(); err != nil {
		return nil, malformed("%v", err)
	}
	return c, nil
}

func decodeConfigOrg(r *reader) ConfigOrg {
	o := ConfigOrg{Name: string(r.bytes(identity.MaxNameBytes, "organization name"))}
	for range r.uvarint(MaxAdminsPerOrg, "admin count") {
		a := Admin{Name: string(r.bytes(identity.MaxNameBytes, "admin name"))}
		copy(a.Key[:], r.take(len(a.Key), "public key"))
		o.Admins = append(o.Admins, a)
	}
	return o
}
