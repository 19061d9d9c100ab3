package system

import (
	"bytes"
	"slices"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/identity"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/exec"
)

// Reconfigure writes down a configuration that a block brought, from the one
// before it: its row in configs, the users that come and go with it, and what
// became of the proposals. It is total: an error is a fault of the node.
func (s *System) Reconfigure(env *exec.Env, last *block.Config, now *block.Scheduled) error {
	c := &call{System: s, env: env}
	next := now.Config
	row := []datum.Datum{
		datum.Int(int64(next.Number)), datum.Bytes(now.ID[:]), datum.Int(int64(now.Block)), datum.Int(int64(now.From)),
		datum.Int(int64(len(next.Orgs))), datum.Int(int64(len(next.Orderers.Keys))), datum.Int(int64(next.Orderers.Quorum)),
		datum.Int(int64(next.Ordering.BlockTxs)), datum.Int(int64(next.Ordering.BlockBytes)),
		datum.Int(int64(next.Ordering.BlockTimeoutMicros)), datum.Bytes(next.Encode()),
	}
	if err := configs.insert(env, row); err != nil {
		return err
	}
	if err := c.reconfigureUsers(last, next); err != nil {
		return err
	}
	return c.closeProposals(now.ID)
}

// reconfigureUsers gives the admins of new organizations an account, takes those
// of all users of removed ones away, and follows changes of admins.
func (c *call) reconfigureUsers(last, next *block.Config) error {
	for i := range last.Orgs {
		old := &last.Orgs[i]
		org := next.Org(old.Name)
		if org == nil {
			if err := c.revokeAll(old.Name); err != nil {
				return err
			}
			continue
		}
		for _, a := range old.Admins {
			if !slices.ContainsFunc(org.Admins, func(b block.Admin) bool { return a.Name == b.Name }) {
				if err := c.revokeAdmin(identity.UserID{Org: old.Name, Name: a.Name}); err != nil {
					return err
				}
			}
		}
	}
	for i := range next.Orgs {
		org := &next.Orgs[i]
		old := last.Org(org.Name)
		for _, a := range org.Admins {
			if old != nil && slices.Contains(old.Admins, a) {
				continue
			}
			if err := c.installAdmin(identity.UserID{Org: org.Name, Name: a.Name}, a.Key); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *call) revokeAll(org string) error {
	var rows [][]datum.Datum
	err := certs.each(c.env, false, func(row []datum.Datum) bool {
		if row[certRevoked].IsNull() {
			rows = append(rows, row)
		}
		return true
	}, datum.Str(org))
	if err != nil {
		return err
	}
	for _, row := range rows {
		row[certRevoked] = c.height()
		if err := certs.update(c.env, row); err != nil {
			return err
		}
	}
	return nil
}

func (c *call) revokeAdmin(u identity.UserID) error {
	row, err := c.cert(u)
	if err != nil || row == nil || !activeAdmin(row) {
		return err
	}
	row[certRevoked] = c.height()
	return certs.update(c.env, row)
}

// installAdmin makes a user an admin with this key, whatever they were before:
// the configuration has the last word.
func (c *call) installAdmin(u identity.UserID, key identity.PublicKey) error {
	old, err := c.cert(u)
	if err != nil {
		return err
	}
	if old != nil && activeAdmin(old) && bytes.Equal(old[certKey].Bytes(), key[:]) {
		return nil
	}
	row := certs.row()
	row[certOrg], row[certName] = datum.Str(u.Org), datum.Str(u.Name)
	row[certRole], row[certKey], row[certSince] = datum.Str(identity.Admin.String()), datum.Bytes(bytes.Clone(key[:])), c.height()
	if old != nil {
		return certs.update(c.env, row)
	}
	return certs.insert(c.env, row)
}

// closeProposals marks the proposal of the configuration as deployed, and other
// open ones, which followed the configuration before it, as superseded.
func (c *call) closeProposals(id block.Hash) error {
	var rows [][]datum.Datum
	err := deploys.each(c.env, false, func(row []datum.Datum) bool {
		status := row[deployStatus].Str()
		if row[deployKind].Str() == configurationKind && (status == proposed || status == approved) {
			rows = append(rows, row)
		}
		return true
	})
	if err != nil {
		return err
	}
	for _, row := range rows {
		row[deployStatus], row[deployClosed] = datum.Str(superseded), c.height()
		if bytes.Equal(row[deployConfigID].Bytes(), id[:]) {
			row[deployStatus] = datum.Str(deployed)
		}
		if err := deploys.update(c.env, row); err != nil {
			return err
		}
	}
	return nil
}
