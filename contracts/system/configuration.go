package system

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/identity"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// errNoGenesis is a fault: [System.Begin] was not called.
var errNoGenesis = errors.New("system: the genesis is not known")

// configChange is what create_configtx takes. Keys are in hexadecimal.
type configChange struct {
	AddOrganizations    map[string]map[string]string `json:"add_organizations"` // their admins with their keys
	RemoveOrganizations []string                     `json:"remove_organizations"`
	Admins              map[string]map[string]string `json:"admins"` // of an organization, all of them
	AddOrderers         []string                     `json:"add_orderers"`
	RemoveOrderers      []string                     `json:"remove_orderers"`
	BlockTxs            *uint64                      `json:"block_txs"`
	BlockBytes          *uint64                      `json:"block_bytes"`
	BlockTimeout        *uint64                      `json:"block_timeout"` // microseconds
}

// createConfig proposes the configuration after the last one.
func (c *call) createConfig() (datum.Datum, error) {
	payload := string(datum.JSONB.Append(nil, c.args[0], &datum.ContractFormat))
	last, err := c.latestConfig()
	if err != nil {
		return datum.Null, err
	}
	next, err := changeConfig(last, payload)
	if err != nil {
		return datum.Null, err
	}
	row, err := c.newProposal(configurationKind, payload)
	if err != nil {
		return datum.Null, err
	}
	id := next.ID()
	row[deployConfigID], row[deployConfig] = datum.Bytes(id[:]), datum.Bytes(next.Encode())
	return row[deployID], deploys.insert(c.env, row)
}

// latestConfig is the one that the next has to follow.
func (c *call) latestConfig() (*block.Config, error) {
	if c.genesis == nil {
		return nil, errNoGenesis
	}
	var encoded []byte
	err := configs.each(c.env, true, func(row []datum.Datum) bool {
		encoded = row[configEncoded].Bytes()
		return false
	})
	if err != nil || encoded == nil {
		return c.genesis.Config(), err
	}
	return block.DecodeConfig(encoded)
}

// changeConfig makes the configuration after last.
func changeConfig(last *block.Config, payload string) (*block.Config, error) {
	d := json.NewDecoder(strings.NewReader(payload))
	d.DisallowUnknownFields()
	var ch configChange
	if err := d.Decode(&ch); err != nil {
		return nil, invalidChange("invalid change of the configuration: %s", strings.TrimPrefix(err.Error(), "json: ")).
			WithHint("Keys: add_organizations, remove_organizations, admins, add_orderers, remove_orderers, block_txs, block_bytes, block_timeout.")
	}
	next := last.Next()
	if err := ch.organizations(next); err != nil {
		return nil, err
	}
	if err := ch.orderers(next); err != nil {
		return nil, err
	}
	for _, n := range []struct{ from, to *uint64 }{
		{ch.BlockTxs, &next.Ordering.BlockTxs}, {ch.BlockBytes, &next.Ordering.BlockBytes}, {ch.BlockTimeout, &next.Ordering.BlockTimeoutMicros},
	} {
		if n.from != nil {
			*n.to = *n.from
		}
	}
	next.Sort()
	if err := next.Validate(); err != nil {
		return nil, invalidChange("%s", trimPackage(err))
	}
	same := last.Next()
	if bytes.Equal(same.Encode(), next.Encode()) {
		return nil, invalidChange("the change leaves the configuration as it is")
	}
	return next, nil
}

func (ch *configChange) organizations(next *block.Config) error {
	for _, name := range ch.RemoveOrganizations {
		if next.Org(name) == nil {
			return pgerr.New(pgerr.UndefinedObject, "organization %q does not exist", name)
		}
		next.Orgs = slices.DeleteFunc(next.Orgs, func(o block.ConfigOrg) bool { return o.Name == name })
	}
	for _, name := range slices.Sorted(maps.Keys(ch.Admins)) {
		org := next.Org(name)
		if org == nil {
			return pgerr.New(pgerr.UndefinedObject, "organization %q does not exist", name)
		}
		list, err := adminsOf(ch.Admins[name])
		if err != nil {
			return err
		}
		org.Admins = list
	}
	var added []block.ConfigOrg
	for _, name := range slices.Sorted(maps.Keys(ch.AddOrganizations)) {
		if next.Org(name) != nil {
			return pgerr.New(pgerr.DuplicateObject, "organization %q already exists", name)
		}
		list, err := adminsOf(ch.AddOrganizations[name])
		if err != nil {
			return err
		}
		added = append(added, block.ConfigOrg{Name: name, Admins: list})
	}
	next.Orgs = append(next.Orgs, added...)
	return nil
}

func adminsOf(keys map[string]string) ([]block.Admin, error) {
	var list []block.Admin
	for _, name := range slices.Sorted(maps.Keys(keys)) {
		key, err := configKey(keys[name])
		if err != nil {
			return nil, err
		}
		list = append(list, block.Admin{Name: name, Key: key})
	}
	return list, nil
}

func configKey(text string) (identity.PublicKey, error) {
	key, err := identity.ParsePublicKey(strings.TrimPrefix(text, `\x`))
	if err != nil {
		return key, invalidChange("public key %q is not 64 hexadecimal digits", text)
	}
	return key, nil
}

// orderers changes the set and its quorum, which follows from the protocol.
func (ch *configChange) orderers(next *block.Config) error {
	for _, text := range ch.RemoveOrderers {
		key, err := configKey(text)
		if err != nil {
			return err
		}
		i := next.Orderers.Index(key)
		if i < 0 {
			return pgerr.New(pgerr.UndefinedObject, "orderer %s does not exist", key)
		}
		next.Orderers.Keys = slices.Delete(next.Orderers.Keys, i, i+1)
	}
	for _, text := range ch.AddOrderers {
		key, err := configKey(text)
		if err != nil {
			return err
		}
		if next.Orderers.Index(key) >= 0 {
			return pgerr.New(pgerr.DuplicateObject, "orderer %s already exists", key)
		}
		next.Orderers.Keys = append(next.Orderers.Keys, key)
	}
	next.Orderers.Quorum = block.Quorum(next.Ordering.Protocol, len(next.Orderers.Keys))
	return nil
}

// proposedConfig is the configuration of a proposal and the one before it.
func (c *call) proposedConfig(row []datum.Datum) (last, next *block.Config, err error) {
	if last, err = c.latestConfig(); err != nil {
		return nil, nil, err
	}
	next, err = block.DecodeConfig(row[deployConfig].Bytes())
	return last, next, err
}

// approveConfig is a vote for a configuration. The second argument is in the
// signature, so that orderers can read from it what was approved.
func (c *call) approveConfig() (datum.Datum, error) {
	row, err := c.open()
	if err != nil {
		return datum.Null, err
	}
	if row[deployKind].Str() != configurationKind {
		return datum.Null, pgerr.New(pgerr.InvalidParameterValue, "deploytx %d is no configuration", c.args[0].Int()).
			WithHint("Approve it with approve_deploytx(%d).", c.args[0].Int())
	}
	if id := row[deployConfigID].Bytes(); !bytes.Equal(id, c.args[1].Bytes()) {
		return datum.Null, pgerr.New(pgerr.InvalidParameterValue, "deploytx %d has configuration id %x, not %x", c.args[0].Int(), id, c.args[1].Bytes())
	}
	last, next, err := c.proposedConfig(row)
	if err != nil {
		return datum.Null, err
	}
	tx, err := block.DecodeTx(c.env.Ctx.Tx.Signed)
	if err != nil {
		return datum.Null, err
	}
	if err := last.VerifyApproval(next, tx); err != nil {
		return datum.Null, pgerr.New(pgerr.InsufficientPrivilege, "%s cannot approve a configuration", c.caller).
			WithDetail("%s", trimPackage(err)).
			WithHint(`The admins of an organization in the configuration change with create_configtx('{"admins": {...}}'), which needs an approval of that organization only.`)
	}
	if err := c.refuseSecondVote(); err != nil {
		return datum.Null, err
	}
	return datum.Null, c.vote(approve, datum.Null)
}

// refuseVeto refuses the rejection of a configuration by an organization whose
// approval it does not need.
func (c *call) refuseVeto(row []datum.Datum) error {
	if row[deployKind].Str() != configurationKind {
		return nil
	}
	last, next, err := c.proposedConfig(row)
	if err != nil {
		return err
	}
	if !slices.Contains(last.Demands(next), c.caller.Org) {
		return pgerr.New(pgerr.InsufficientPrivilege, "permission denied to reject deploytx %d", row[deployID].Int()).
			WithDetail("The configuration does not need the approval of organization %q.", c.caller.Org)
	}
	return nil
}

// submitConfig makes the configuration transaction of a proposal. Nodes hand it to
// the orderers; what it says holds once it comes back in a block.
func (c *call) submitConfig(row []datum.Datum) error {
	last, next, err := c.proposedConfig(row)
	if err != nil {
		return err
	}
	var approvals []*block.Tx
	var fault error
	err = votes.each(c.env, false, func(row []datum.Datum) bool {
		if row[voteVote].Str() != approve || row[voteSigned].IsNull() {
			return true
		}
		tx, err := block.DecodeTx(row[voteSigned].Bytes())
		if err != nil {
			fault = err
		} else if last.VerifyApproval(next, tx) == nil {
			approvals = append(approvals, tx)
		}
		return fault == nil
	}, c.args[0])
	if err = errors.Join(err, fault); err != nil {
		return err
	}
	missing := last.Demands(next)
	refused := errors.New("approval of an admin is missing from: " + strings.Join(missing, ", "))
	var tx *block.Tx
	if len(approvals) > 0 {
		if tx, err = block.NewConfigTx(next, approvals); err != nil {
			return err
		}
		_, refused = last.Verify(tx.Config)
	}
	if refused != nil {
		return pgerr.New(pgerr.InsufficientPrivilege, "deploytx %d is not approved by every organization that it takes", c.args[0].Int()).
			WithDetail("%s", capital(trimPackage(refused))+".")
	}
	row[deployStatus], row[deployConfig] = datum.Str(approved), datum.Bytes(tx.Encode())
	return deploys.update(c.env, row)
}

// capital writes the first letter of a sentence large.
func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// PendingConfig reads the configuration transaction of a row of deploytx that
// waits to be ordered; nil for any other row.
func PendingConfig(row []datum.Datum) (*block.Tx, error) {
	if row[deployKind].Str() != configurationKind || row[deployStatus].Str() != approved {
		return nil, nil
	}
	return block.DecodeTx(bytes.Clone(row[deployConfig].Bytes()))
}
