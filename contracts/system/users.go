package system

import (
	"github.com/tallystick/tallystick/identity"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// activeAdmin reports whether a row of pgcerts is that of an admin who may act.
func activeAdmin(row []datum.Datum) bool {
	return row[certRevoked].IsNull() && row[certRole].Str() == identity.Admin.String()
}

func (c *call) cert(u identity.UserID) ([]datum.Datum, error) {
	return certs.get(c.env, datum.Str(u.Org), datum.Str(u.Name))
}

func (c *call) isAdmin(u identity.UserID) (bool, error) {
	row, err := c.cert(u)
	return err == nil && row != nil && activeAdmin(row), err
}

// subject is the user that the first two arguments name: one of the caller's
// organization.
func (c *call) subject() (identity.UserID, error) {
	u := identity.UserID{Org: c.args[0].Str(), Name: c.args[1].Str()}
	if err := u.Validate(); err != nil {
		return u, pgerr.New(pgerr.InvalidName, "invalid name of a user: %q", u.String()).
			WithDetail("A name has 1 to %d bytes of a-z, 0-9, _ and -, the first one a letter.", identity.MaxNameBytes)
	}
	if u.Org != c.caller.Org {
		return u, pgerr.New(pgerr.InsufficientPrivilege, "permission denied to manage users of organization %q", u.Org).
			WithDetail("%s manages the users of %q only.", c.caller, c.caller.Org)
	}
	return u, nil
}

// key is a public key argument: an encoding of a curve point, or no signature
// would ever verify.
func (c *call) key(i int) (datum.Datum, error) {
	b := c.args[i].Bytes()
	if len(b) != len(identity.PublicKey{}) {
		return datum.Null, pgerr.New(pgerr.InvalidParameterValue, "a public key has %d bytes, not %d", len(identity.PublicKey{}), len(b))
	}
	if !identity.PublicKey(b).Usable() {
		return datum.Null, pgerr.New(pgerr.InvalidParameterValue, "public key %x is not usable", b).
			WithDetail("It is no point of the curve Ed25519, or one of small order.")
	}
	return c.args[i], nil
}

// role is a role that an admin may give. Orderers come with the configuration of
// the network.
func (c *call) role(i int) (datum.Datum, error) {
	r, err := identity.ParseRole(c.args[i].Str())
	if err != nil || r == identity.Orderer {
		return datum.Null, pgerr.New(pgerr.InvalidParameterValue, "invalid role %q", c.args[i].Str()).
			WithHint("The roles are admin, client and node.")
	}
	return datum.Str(r.String()), nil
}

func (c *call) createUser() (datum.Datum, error) {
	u, err := c.subject()
	if err != nil {
		return datum.Null, err
	}
	role, err := c.role(2)
	if err != nil {
		return datum.Null, err
	}
	key, err := c.key(3)
	if err != nil {
		return datum.Null, err
	}
	old, err := c.cert(u)
	if err != nil {
		return datum.Null, err
	}
	if old != nil {
		e := pgerr.New(pgerr.DuplicateObject, "role %q already exists", u.String())
		if revoked := old[certRevoked]; !revoked.IsNull() {
			e = e.WithDetail("It was revoked in block %d; the names of revoked users are not used again.", revoked.Int())
		}
		return datum.Null, e
	}
	row := certs.row()
	row[certOrg], row[certName] = datum.Str(u.Org), datum.Str(u.Name)
	row[certRole], row[certKey], row[certSince] = role, key, c.height()
	return datum.Null, certs.insert(c.env, row)
}

// active reads the row of a user who is not revoked.
func (c *call) active(u identity.UserID) ([]datum.Datum, error) {
	row, err := c.cert(u)
	if err != nil {
		return nil, err
	}
	if row == nil {
		return nil, pgerr.New(pgerr.UndefinedObject, "role %q does not exist", u.String())
	}
	if revoked := row[certRevoked]; !revoked.IsNull() {
		return nil, pgerr.New(pgerr.UndefinedObject, "role %q does not exist", u.String()).
			WithDetail("It was revoked in block %d.", revoked.Int())
	}
	return row, nil
}

// updateUser gives a user another key.
func (c *call) updateUser() (datum.Datum, error) {
	u, err := c.subject()
	if err != nil {
		return datum.Null, err
	}
	key, err := c.key(2)
	if err != nil {
		return datum.Null, err
	}
	row, err := c.active(u)
	if err != nil {
		return datum.Null, err
	}
	row[certKey], row[certSince] = key, c.height()
	return datum.Null, certs.update(c.env, row)
}

// deleteUser revokes a user. The row stays: the ledger names the user for ever.
func (c *call) deleteUser() (datum.Datum, error) {
	u, err := c.subject()
	if err != nil {
		return datum.Null, err
	}
	row, err := c.active(u)
	if err != nil {
		return datum.Null, err
	}
	if activeAdmin(row) {
		if err := c.refuseLastAdmin(u); err != nil {
			return datum.Null, err
		}
	}
	row[certRevoked] = c.height()
	return datum.Null, certs.update(c.env, row)
}

// refuseLastAdmin refuses to revoke the only admin of an organization: nobody
// could act for it any more.
func (c *call) refuseLastAdmin(u identity.UserID) error {
	others := 0
	err := certs.each(c.env, false, func(row []datum.Datum) bool {
		if activeAdmin(row) && row[certName].Str() != u.Name {
			others++
		}
		return others == 0
	}, datum.Str(u.Org))
	if err != nil || others > 0 {
		return err
	}
	return pgerr.New(pgerr.DependentObjectsStillExist, "role %q cannot be dropped because it is the last admin of its organization", u.String())
}
