package system

import (
	"slices"
	"strings"

	"github.com/tallystick/tallystick/identity"
	"github.com/tallystick/tallystick/sql"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// The states of a proposal.
const (
	proposed = "proposed"
	deployed = "deployed"
	rejected = "rejected"
)

// The kinds of rows in deploytx_votes.
const (
	approve = "approve"
	reject  = "reject"
	comment = "comment"
)

// createDeploy records a script and returns the number of the proposal. What
// would not be deterministic is refused before anyone votes on it.
func (c *call) createDeploy() (datum.Datum, error) {
	payload, err := c.text(0, "the script of a deployment")
	if err != nil {
		return datum.Null, err
	}
	if err := sql.CheckScript(payload); err != nil {
		return datum.Null, err
	}
	id := int64(1)
	err = deploys.each(c.env, true, func(row []datum.Datum) bool {
		id = row[deployID].Int() + 1
		return false
	})
	if err != nil {
		return datum.Null, err
	}
	found, err := c.rehearse(c.caller.String(), payload)
	c.report(found)
	if err == nil {
		err = c.record(datum.Int(id), found)
	}
	if err != nil {
		return datum.Null, err
	}
	row := deploys.row()
	row[deployID], row[deployPayload] = datum.Int(id), datum.Str(payload)
	row[deployOrg], row[deployName] = datum.Str(c.caller.Org), datum.Str(c.caller.Name)
	row[deployStatus], row[deployCreated] = datum.Str(proposed), c.height()
	return datum.Int(id), deploys.insert(c.env, row)
}

// proposal reads the proposal that the first argument names.
func (c *call) proposal() ([]datum.Datum, error) {
	row, err := deploys.get(c.env, c.args[0])
	if err == nil && row == nil {
		err = pgerr.New(pgerr.UndefinedObject, "deploytx %d does not exist", c.args[0].Int())
	}
	return row, err
}

// open reads it and refuses one that is closed.
func (c *call) open() ([]datum.Datum, error) {
	row, err := c.proposal()
	if err != nil {
		return nil, err
	}
	id, block := row[deployID].Int(), row[deployClosed].Int()
	switch row[deployStatus].Str() {
	case deployed:
		return nil, pgerr.New(pgerr.DuplicateObject, "deploytx %d is deployed already", id).
			WithDetail("It was deployed in block %d.", block)
	case rejected:
		return nil, pgerr.New(pgerr.InvalidParameterValue, "deploytx %d was rejected", id).
			WithDetail("It was rejected in block %d: %s", block, row[deployReason].Str()).
			WithHint("Propose the script again with create_deploytx.")
	}
	return row, nil
}

// vote records a vote or comment of the caller.
func (c *call) vote(kind string, text datum.Datum) error {
	row := votes.row()
	row[voteDeploy], row[voteTx] = c.args[0], datum.Int(int64(c.env.XID))
	row[voteOrg], row[voteName] = datum.Str(c.caller.Org), datum.Str(c.caller.Name)
	row[voteVote], row[voteComment], row[voteBlock] = datum.Str(kind), text, c.height()
	return votes.insert(c.env, row)
}

// refuseSecondVote refuses a vote of an admin who has voted.
func (c *call) refuseSecondVote() error {
	var refusal error
	err := votes.each(c.env, false, func(row []datum.Datum) bool {
		if row[voteVote].Str() != comment && voter(row) == c.caller {
			refusal = pgerr.New(pgerr.DuplicateObject, "%s has voted on deploytx %d already", c.caller, c.args[0].Int()).
				WithDetail("The vote was %q, in block %d.", row[voteVote].Str(), row[voteBlock].Int())
		}
		return refusal == nil
	}, c.args[0])
	if err != nil {
		return err
	}
	return refusal
}

func voter(row []datum.Datum) identity.UserID {
	return identity.UserID{Org: row[voteOrg].Str(), Name: row[voteName].Str()}
}

func (c *call) approveDeploy() (datum.Datum, error) {
	if _, err := c.open(); err != nil {
		return datum.Null, err
	}
	if err := c.refuseSecondVote(); err != nil {
		return datum.Null, err
	}
	return datum.Null, c.vote(approve, datum.Null)
}

// rejectDeploy closes the proposal for good.
func (c *call) rejectDeploy() (datum.Datum, error) {
	if _, err := c.text(1, "the reason"); err != nil {
		return datum.Null, err
	}
	row, err := c.open()
	if err != nil {
		return datum.Null, err
	}
	if err := c.refuseSecondVote(); err != nil {
		return datum.Null, err
	}
	if err := c.vote(reject, c.args[1]); err != nil {
		return datum.Null, err
	}
	row[deployStatus], row[deployClosed], row[deployReason] = datum.Str(rejected), c.height(), c.args[1]
	return datum.Null, deploys.update(c.env, row)
}

// commentDeploy is possible on closed proposals too.
func (c *call) commentDeploy() (datum.Datum, error) {
	if _, err := c.text(1, "the comment"); err != nil {
		return datum.Null, err
	}
	if _, err := c.proposal(); err != nil {
		return datum.Null, err
	}
	return datum.Null, c.vote(comment, c.args[1])
}

// submitDeploy executes a script that every organization has approved. What it
// creates belongs to whoever proposed it.
func (c *call) submitDeploy() (datum.Datum, error) {
	row, err := c.open()
	if err != nil {
		return datum.Null, err
	}
	missing, err := c.missingOrgs()
	if err != nil {
		return datum.Null, err
	}
	if len(missing) > 0 {
		return datum.Null, pgerr.New(pgerr.InsufficientPrivilege, "deploytx %d is not approved by every organization", c.args[0].Int()).
			WithDetail("Approval of an admin is missing from: %s.", strings.Join(missing, ", "))
	}
	owner := identity.UserID{Org: row[deployOrg].Str(), Name: row[deployName].Str()}
	found, err := c.Apply(c.env, owner.String(), row[deployPayload].Str(), c.notice())
	if err != nil {
		c.report(found)
		return datum.Null, err
	}
	if err := c.record(c.args[0], found); err != nil {
		return datum.Null, err
	}
	row[deployStatus], row[deployClosed] = datum.Str(deployed), c.height()
	return datum.Null, deploys.update(c.env, row)
}

// notice passes on what PostgreSQL would say about a script.
func (c *call) notice() func(*pgerr.Error) {
	if c.env.Ctx.Notice == nil {
		return nil
	}
	return func(e *pgerr.Error) { c.env.Ctx.Notice("NOTICE", e) }
}

// missingOrgs lists the organizations, by name, none of whose admins has
// approved the proposal.
func (c *call) missingOrgs() ([]string, error) {
	admins := map[identity.UserID]bool{}
	var orgs []string // sorted: pgcerts is read in the order of its key
	err := certs.each(c.env, false, func(row []datum.Datum) bool {
		if id := (identity.UserID{Org: row[certOrg].Str(), Name: row[certName].Str()}); activeAdmin(row) {
			admins[id] = true
			if n := len(orgs); n == 0 || orgs[n-1] != id.Org {
				orgs = append(orgs, id.Org)
			}
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	approved := map[string]bool{}
	err = votes.each(c.env, false, func(row []datum.Datum) bool {
		if id := voter(row); row[voteVote].Str() == approve && admins[id] {
			approved[id.Org] = true
		}
		return true
	}, c.args[0])
	return slices.DeleteFunc(orgs, func(org string) bool { return approved[org] }), err
}
