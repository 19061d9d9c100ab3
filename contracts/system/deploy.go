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
	proposed   = "proposed"
	approved   = "approved" // a configuration whose transaction is on its way
	deployed   = "deployed"
	rejected   = "rejected"
	withdrawn  = "withdrawn"
	superseded = "superseded" // a configuration after which another one came first
)

// The kinds of proposals.
const (
	contractKind      = "contract"
	parametersKind    = "parameters"
	configurationKind = "configuration"
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
	row, err := c.newProposal(contractKind, payload)
	if err != nil {
		return datum.Null, err
	}
	found, err := c.rehearse(c.caller.String(), payload)
	c.report(found)
	if err == nil {
		err = c.record(row[deployID], found)
	}
	if err != nil {
		return datum.Null, err
	}
	return row[deployID], deploys.insert(c.env, row)
}

// newProposal makes the row of a proposal with the next number.
func (c *call) newProposal(kind, payload string) ([]datum.Datum, error) {
	id := int64(1)
	err := deploys.each(c.env, true, func(row []datum.Datum) bool {
		id = row[deployID].Int() + 1
		return false
	})
	row := deploys.row()
	row[deployID], row[deployKind], row[deployPayload] = datum.Int(id), datum.Str(kind), datum.Str(payload)
	row[deployOrg], row[deployName] = datum.Str(c.caller.Org), datum.Str(c.caller.Name)
	row[deployStatus], row[deployCreated] = datum.Str(proposed), c.height()
	return row, err
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
			WithHint("Propose the same again.")
	case withdrawn:
		return nil, pgerr.New(pgerr.InvalidParameterValue, "deploytx %d was withdrawn", id).
			WithDetail("It was withdrawn in block %d: %s", block, row[deployReason].Str())
	case superseded:
		return nil, pgerr.New(pgerr.InvalidParameterValue, "deploytx %d is superseded", id).
			WithDetail("Another configuration was accepted in block %d.", block).
			WithHint("Propose the change again with create_configtx.")
	case approved:
		return nil, pgerr.New(pgerr.DuplicateObject, "deploytx %d is approved already", id).
			WithDetail("Its configuration transaction is on its way.")
	}
	return row, nil
}

// vote records a vote or comment of the caller.
func (c *call) vote(kind string, text datum.Datum) error {
	row := votes.row()
	row[voteDeploy], row[voteTx] = c.args[0], datum.Int(int64(c.env.XID))
	row[voteOrg], row[voteName] = datum.Str(c.caller.Org), datum.Str(c.caller.Name)
	row[voteVote], row[voteComment], row[voteBlock] = datum.Str(kind), text, c.height()
	if signed := c.env.Ctx.Tx.Signed; signed != nil {
		row[voteSigned] = datum.Bytes(signed)
	}
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
	row, err := c.open()
	if err != nil {
		return datum.Null, err
	}
	if row[deployKind].Str() == configurationKind {
		id := row[deployConfigID].Bytes()
		return datum.Null, pgerr.New(pgerr.InvalidParameterValue, "deploytx %d is a configuration", c.args[0].Int()).
			WithHint("Approve it with approve_configtx(%d, '\\x%x'): orderers verify this very signature.", c.args[0].Int(), id)
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
	if err := c.refuseVeto(row); err != nil {
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

// withdrawDeploy closes a proposal of the caller's organization: one that was a
// mistake, or whose script can no longer be executed.
func (c *call) withdrawDeploy() (datum.Datum, error) {
	if _, err := c.text(1, "the reason"); err != nil {
		return datum.Null, err
	}
	row, err := c.open()
	if err != nil {
		return datum.Null, err
	}
	if org := row[deployOrg].Str(); org != c.caller.Org {
		return datum.Null, pgerr.New(pgerr.InsufficientPrivilege, "permission denied to withdraw deploytx %d", c.args[0].Int()).
			WithDetail("It was proposed by organization %q.", org).
			WithHint("Whoever disagrees rejects it with reject_deploytx.")
	}
	row[deployStatus], row[deployClosed], row[deployReason] = datum.Str(withdrawn), c.height(), c.args[1]
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

// submitDeploy does what a proposal says once it is approved.
func (c *call) submitDeploy() (datum.Datum, error) {
	row, err := c.open()
	if err != nil {
		return datum.Null, err
	}
	if row[deployKind].Str() == configurationKind {
		return datum.Null, c.submitConfig(row)
	}
	missing, err := c.missingOrgs()
	if err != nil {
		return datum.Null, err
	}
	if len(missing) > 0 {
		return datum.Null, pgerr.New(pgerr.InsufficientPrivilege, "deploytx %d is not approved by every organization", c.args[0].Int()).
			WithDetail("Approval of an admin is missing from: %s.", strings.Join(missing, ", "))
	}
	if row[deployKind].Str() == parametersKind {
		err = c.submitParameters(row)
	} else {
		err = c.submitScript(row)
	}
	if err != nil {
		return datum.Null, err
	}
	row[deployStatus], row[deployClosed] = datum.Str(deployed), c.height()
	return datum.Null, deploys.update(c.env, row)
}

// submitScript executes the script of a proposal. What it creates belongs to
// whoever proposed it.
func (c *call) submitScript(row []datum.Datum) error {
	owner := identity.UserID{Org: row[deployOrg].Str(), Name: row[deployName].Str()}
	before := functionsOf(c.env.Catalog)
	found, err := c.Apply(c.env, owner.String(), row[deployPayload].Str(), c.notice())
	if err != nil {
		c.report(found)
		return err
	}
	if err := c.recordVersions(before); err != nil {
		return err
	}
	return c.record(c.args[0], found)
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
