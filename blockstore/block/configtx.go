package block

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tallystick/tallystick/identity"
)

// ConfigSignature is an admin's signature of the id of a configuration.
type ConfigSignature struct {
	User      identity.UserID
	Signature identity.Signature
}

// SignConfig signs a configuration for an admin.
func SignConfig(c *Config, user identity.UserID, signer *identity.Signer) ConfigSignature {
	id := c.ID()
	return ConfigSignature{User: user, Signature: signer.Sign(id[:])}
}

// ConfigTx is a transaction of a kind of its own: a configuration with the
// signatures that the one before it demands. It travels as a [Tx], of which it is
// the field Config.
type ConfigTx struct {
	Config     *Config
	Signatures []ConfigSignature // sorted by user, one each
}

// What a configuration transaction shows where others show the contract that
// they call. There is no such function.
const (
	configSchema = "blockchain"
	configName   = "configtx"
)

const (
	configTxVersion = 2
	// maxConfigSignatures lets every admin sign.
	maxConfigSignatures = 1 << 12
)

// NewConfigTx makes the transaction of a configuration. Signatures are put in
// order; the first of several of one admin counts.
func NewConfigTx(c *Config, signatures []ConfigSignature) (*Tx, error) {
	list := slices.Clone(signatures)
	slices.SortStableFunc(list, func(a, b ConfigSignature) int { return a.User.Compare(b.User) })
	list = slices.CompactFunc(list, func(a, b ConfigSignature) bool { return a.User == b.User })
	tx := &ConfigTx{Config: c, Signatures: list}
	if err := tx.validate(); err != nil {
		return nil, err
	}
	return decodeConfigTx(tx.encode())
}

func (tx *ConfigTx) validate() error {
	if tx.Config.Number == 0 {
		return errors.New("block: configuration 0 is that of the genesis, it has no transaction")
	}
	if err := tx.Config.Validate(); err != nil {
		return err
	}
	if n := len(tx.Signatures); n == 0 || n > maxConfigSignatures {
		return fmt.Errorf("block: configuration transaction has %d signatures, not 1 to %d", n, maxConfigSignatures)
	}
	for i := range tx.Signatures {
		if err := tx.Signatures[i].User.Validate(); err != nil {
			return fmt.Errorf("block: configuration transaction: %w", err)
		}
		if i > 0 && tx.Signatures[i-1].User.Compare(tx.Signatures[i].User) >= 0 {
			return errors.New("block: signatures of a configuration transaction are not sorted or not distinct")
		}
	}
	return nil
}

// encode returns the canonical bytes: version 2, configuration, signatures.
func (tx *ConfigTx) encode() []byte {
	b := appendString([]byte{configTxVersion}, tx.Config.Encode())
	b = binary.AppendUvarint(b, uint64(len(tx.Signatures)))
	for i := range tx.Signatures {
		s := &tx.Signatures[i]
		b = appendString(appendString(b, s.User.Org), s.User.Name)
		b = append(b, s.Signature[:]...)
	}
	return b
}

// decodeConfigTx reads canonical bytes and refuses every other form. The
// transaction keeps b.
func decodeConfigTx(b []byte) (*Tx, error) {
	if len(b) > MaxTxBytes {
		return nil, malformed("transaction of %d bytes exceeds the limit of %d", len(b), MaxTxBytes)
	}
	b = b[:len(b):len(b)]
	r := reader{buf: b}
	r.version(configTxVersion, "transaction")
	raw := r.bytes(MaxConfigBytes, "configuration")
	if r.err != nil {
		return nil, r.err
	}
	config, err := DecodeConfig(raw)
	if err != nil {
		return nil, err
	}
	tx := &ConfigTx{Config: config}
	for range r.uvarint(maxConfigSignatures, "signature count") {
		if r.err != nil {
			break
		}
		var s ConfigSignature
		s.User.Org = string(r.bytes(identity.MaxNameBytes, "organization"))
		s.User.Name = string(r.bytes(identity.MaxNameBytes, "user"))
		copy(s.Signature[:], r.take(len(s.Signature), "signature"))
		tx.Signatures = append(tx.Signatures, s)
	}
	if err := r.end(); err != nil {
		return nil, err
	}
	if err := tx.validate(); err != nil {
		return nil, malformed("%v", err)
	}
	return &Tx{
		Network: config.Network, User: tx.Signatures[0].User, Call: Call{Schema: configSchema, Name: configName},
		ValidUntil: MaxHeight, Signature: tx.Signatures[0].Signature,
		Config: tx, raw: b, id: TxID(config.ID()),
	}, nil
}

// Verify reports why the transaction does not bring the configuration after c,
// and else returns that. It is a pure function: whoever has the blocks comes to
// the same answer, with no state. Every signature must be that of an admin of c,
// and the organizations that [Config.Demands] lists must have signed.
func (c *Config) Verify(tx *ConfigTx) (*Config, error) {
	next := tx.Config
	if err := c.follows(next); err != nil {
		return nil, err
	}
	id := next.ID()
	signed := map[string]bool{}
	for i := range tx.Signatures {
		s := &tx.Signatures[i]
		key, ok := c.Admin(s.User)
		if !ok {
			return nil, fmt.Errorf("%s is not an admin of configuration %d", s.User, c.Number)
		}
		if !identity.Verify(key, id[:], s.Signature) {
			return nil, fmt.Errorf("signature of %s does not verify", s.User)
		}
		signed[s.User.Org] = true
	}
	missing := slices.DeleteFunc(c.Demands(next), func(org string) bool { return signed[org] })
	if len(missing) > 0 {
		return nil, fmt.Errorf("signature of an admin is missing from: %s", strings.Join(missing, ", "))
	}
	if len(signed) < c.least(next) {
		return nil, fmt.Errorf("%d of %d organizations have signed, to remove one takes %d", len(signed), len(c.Orgs), c.least(next))
	}
	return next, nil
}

// follows checks what does not depend on signatures.
func (c *Config) follows(next *Config) error {
	if next.Network != c.Network {
		return fmt.Errorf("configuration is for network %s, not %s", next.Network, c.Network)
	}
	if next.Number != c.Number+1 || next.Previous != c.ID() {
		return fmt.Errorf("configuration %d follows %s, the last one is configuration %d, %s", next.Number, next.Previous, c.Number, c.ID())
	}
	if next.Ordering.Protocol != c.Ordering.Protocol {
		return fmt.Errorf("protocol of the ordering service cannot change from %s to %s", c.Ordering.Protocol, next.Ordering.Protocol)
	}
	if next.Ordering.Window != c.Ordering.Window {
		return fmt.Errorf("ordering window cannot change from %d to %d", c.Ordering.Window, next.Ordering.Window)
	}
	return nil
}

// Demands lists the organizations, by name, that have to sign a configuration
// after c: all of them, except that whoever is removed has no veto, and that an
// organization changes its own admins alone.
func (c *Config) Demands(next *Config) []string {
	var all, changed []string
	common := *next
	common.Orgs = nil
	now := *c
	now.Orgs = nil
	now.Number, now.Previous = next.Number, next.Previous
	shared := string(common.Encode()) != string(now.Encode()) || len(next.Orgs) != len(c.Orgs)
	for i := range c.Orgs {
		name := c.Orgs[i].Name
		org := next.Org(name)
		if org == nil {
			shared = true
			continue
		}
		all = append(all, name)
		if !slices.Equal(org.Admins, c.Orgs[i].Admins) {
			changed = append(changed, name)
		}
	}
	if shared || len(changed) == 0 {
		return all
	}
	return changed
}

// least is the number of organizations that must have signed whatever
// [Config.Demands] says: more than half where one is removed, so that of two
// neither removes the other.
func (c *Config) least(next *Config) int {
	for i := range c.Orgs {
		if next.Org(c.Orgs[i].Name) == nil {
			return len(c.Orgs)/2 + 1
		}
	}
	return 0
}
