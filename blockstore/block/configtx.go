package block

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tallystick/tallystick/identity"
)

// An approval is how an admin signs a configuration: a signed transaction that
// calls blockchain.approve_configtx(bigint, bytea) with the id of the
// configuration as second argument. What an admin sends as a vote is thereby the
// signature that orderers verify, who read nothing else of it: neither whether it
// was ordered nor its validity in time. The first argument is the number of the
// proposal in the relation deploytx.
const approveName = "approve_configtx"

// ApproveConfig makes the approval of a configuration outside of a chain.
func ApproveConfig(c *Config, user identity.UserID, signer *identity.Signer) (*Tx, error) {
	id := c.ID()
	tx := &Tx{Network: c.Network, User: user, Call: Call{
		Schema: configSchema, Name: approveName, ArgTypes: []string{"bigint", "bytea"},
		Args: []Arg{{Null: true}, {Value: id[:]}},
	}}
	return tx, tx.Sign(signer)
}

// approves reports whether a transaction, if it is the admin's, approves the
// configuration with this id.
func (tx *Tx) approves(network, id Hash) bool {
	c := &tx.Call
	return tx.Config == nil && tx.Network == network && c.Schema == configSchema && c.Name == approveName &&
		len(c.Args) == 2 && c.ArgTypes[1] == "bytea" && !c.Args[1].Null && string(c.Args[1].Value) == string(id[:])
}

// ConfigTx is a transaction of a kind of its own: a configuration with the
// approvals that the one before it demands. It travels as a [Tx], of which it is
// the field Config.
type ConfigTx struct {
	Config    *Config
	Approvals []*Tx // see [ApproveConfig]; sorted by user, one each
}

// What a configuration transaction shows where others show the contract that
// they call. There is no such function.
const (
	configSchema = "blockchain"
	configName   = "configtx"
)

const (
	configTxVersion = 2
	// maxApprovals is what fits anyway.
	maxApprovals = uint64(MaxTxBytes / minTxBytes)
	// maxApprovalBytes is the longest approval: names and arguments are short.
	maxApprovalBytes = 1 << 10
)

// NewConfigTx makes the transaction of a configuration. Approvals are put in
// order; the first of several of one admin counts.
func NewConfigTx(c *Config, approvals []*Tx) (*Tx, error) {
	list := slices.Clone(approvals)
	slices.SortStableFunc(list, func(a, b *Tx) int { return a.User.Compare(b.User) })
	list = slices.CompactFunc(list, func(a, b *Tx) bool { return a.User == b.User })
	tx := &ConfigTx{Config: c, Approvals: list}
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
	if n := uint64(len(tx.Approvals)); n == 0 || n > maxApprovals {
		return fmt.Errorf("block: configuration transaction has %d approvals, not 1 to %d", n, maxApprovals)
	}
	id := tx.Config.ID()
	for i, a := range tx.Approvals {
		if !a.approves(tx.Config.Network, id) || len(a.Encode()) > maxApprovalBytes {
			return fmt.Errorf("block: configuration transaction: approval %d is not of this configuration", i+1)
		}
		if i > 0 && tx.Approvals[i-1].User.Compare(a.User) >= 0 {
			return errors.New("block: approvals of a configuration transaction are not sorted or not distinct")
		}
	}
	return nil
}

// encode returns the canonical bytes: version 2, configuration, approvals.
func (tx *ConfigTx) encode() []byte {
	b := appendString([]byte{configTxVersion}, tx.Config.Encode())
	b = binary.AppendUvarint(b, uint64(len(tx.Approvals)))
	for _, a := range tx.Approvals {
		b = appendString(b, a.Encode())
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
	for range r.uvarint(maxApprovals, "approval count") {
		raw := r.bytes(maxApprovalBytes, "approval")
		if r.err == nil && (len(raw) == 0 || raw[0] != txVersion) {
			r.fail("approval is no call")
		}
		if r.err != nil {
			break
		}
		a, err := DecodeTx(raw)
		if err != nil {
			return nil, err
		}
		tx.Approvals = append(tx.Approvals, a)
	}
	if err := r.end(); err != nil {
		return nil, err
	}
	if err := tx.validate(); err != nil {
		return nil, malformed("%v", err)
	}
	return &Tx{
		Network: config.Network, User: tx.Approvals[0].User, Call: Call{Schema: configSchema, Name: configName},
		ValidUntil: MaxHeight, Signature: tx.Approvals[0].Signature,
		Config: tx, raw: b, id: TxID(config.ID()), content: sha256.Sum256(b),
	}, nil
}

// Verify reports why the transaction does not bring the configuration after c,
// and else returns that. It is a pure function: whoever has the blocks comes to
// the same answer, with no state. Every approval must be signed by an admin of c,
// and the organizations that [Config.Demands] lists must have approved.
func (c *Config) Verify(tx *ConfigTx) (*Config, error) {
	next := tx.Config
	if err := c.follows(next); err != nil {
		return nil, err
	}
	signed := map[string]bool{}
	for _, a := range tx.Approvals {
		if err := c.VerifyApproval(next, a); err != nil {
			return nil, err
		}
		signed[a.User.Org] = true
	}
	missing := slices.DeleteFunc(c.Demands(next), func(org string) bool { return signed[org] })
	if len(missing) > 0 {
		return nil, fmt.Errorf("approval of an admin is missing from: %s", strings.Join(missing, ", "))
	}
	if len(signed) < c.least(next) {
		return nil, fmt.Errorf("%d of %d organizations have approved, to remove one takes %d", len(signed), len(c.Orgs), c.least(next))
	}
	return next, nil
}

// VerifyApproval reports why a transaction is no approval of the configuration
// after c.
func (c *Config) VerifyApproval(next *Config, a *Tx) error {
	key, ok := c.Admin(a.User)
	if !ok {
		return fmt.Errorf("%s is not an admin of configuration %d", a.User, c.Number)
	}
	digest := a.SigningDigest()
	if !a.approves(next.Network, next.ID()) || !identity.Verify(key, digest[:], a.Signature) {
		return fmt.Errorf("signature of %s does not verify", a.User)
	}
	return nil
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

// Demands lists the organizations, by name, that have to approve a configuration
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

// least is the number of organizations that must have approved whatever
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
