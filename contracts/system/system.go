package system

import (
	"fmt"
	"strings"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/contracts/determinism"
	"github.com/tallystick/tallystick/identity"
	"github.com/tallystick/tallystick/sql"
	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/exec"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// System runs the system contracts. It keeps no state and is safe for
// concurrent use.
type System struct {
	engine  *sql.Engine
	inspect determinism.Inspect
	genesis *block.Genesis
}

// New makes the system contracts of an engine, which executes what they deploy;
// inspect shows them what a function does.
func New(engine *sql.Engine, inspect determinism.Inspect) *System {
	return &System{engine: engine, inspect: inspect}
}

// Begin tells what the network started with. It comes before the first call that
// concerns parameters or configurations.
func (s *System) Begin(g *block.Genesis) { s.genesis = g }

// call is one call under way.
type call struct {
	*System
	env    *exec.Env
	caller identity.UserID
	args   []datum.Datum
}

// handlers are the contracts by name.
var handlers = map[string]func(*call) (datum.Datum, error){
	"create_deploytx":  (*call).createDeploy,
	"approve_deploytx": (*call).approveDeploy,
	"reject_deploytx":  (*call).rejectDeploy,
	"comment_deploytx": (*call).commentDeploy,
	"submit_deploytx":  (*call).submitDeploy,

	"withdraw_deploytx":  (*call).withdrawDeploy,
	"create_parametertx": (*call).createParameters,
	"create_configtx":    (*call).createConfig,
	"approve_configtx":   (*call).approveConfig,

	"create_user": (*call).createUser,
	"update_user": (*call).updateUser,
	"delete_user": (*call).deleteUser,

	SubmitCheckpoint: (*call).submitCheckpoint,
}

// callSteps is what every call costs beside the rows that it touches.
const callSteps = 10

// Call runs a system contract for the user that env.Ctx.Tx names: 42501 unless
// that is an admin (a node for submit_checkpoint). Arguments are those that f declares; a null makes the
// result null without running anything, for all of them are strict. On an error
// the transaction as a whole must not commit.
func (s *System) Call(env *exec.Env, f *catalog.Func, args []datum.Datum) (datum.Datum, error) {
	handler := handlers[f.Name]
	if handler == nil || env.Ctx.Tx == nil {
		return datum.Null, fmt.Errorf("system: %s is no system contract, or this is no transaction", f.Name)
	}
	for _, a := range args {
		if a.IsNull() {
			return datum.Null, nil
		}
	}
	if err := env.Ctx.Budget.Spend(callSteps); err != nil {
		return datum.Null, err
	}
	c := &call{System: s, env: env, args: args}
	c.caller = identity.UserID{Org: env.Ctx.Tx.Org, Name: env.Ctx.Tx.User}
	if f.Name != SubmitCheckpoint { // which asks for a node
		if err := c.requireAdmin(f.Name); err != nil {
			return datum.Null, err
		}
	}
	d, err := handler(c)
	if err == nil {
		err = c.checkWrites()
	}
	return d, err
}

// requireAdmin refuses callers who are no admins: 42501.
func (c *call) requireAdmin(name string) error {
	admin, err := c.isAdmin(c.caller)
	if err != nil {
		return err
	}
	if !admin {
		return pgerr.New(pgerr.InsufficientPrivilege, "permission denied for function %s", name).
			WithDetail("%s is not an admin of its organization.", c.caller)
	}
	return nil
}

// checkWrites bounds what the call writes, as DML does.
func (c *call) checkWrites() error {
	if limit := c.env.Limits.WriteBytes; limit > 0 && c.env.Txn.WriteBytes() > limit {
		return pgerr.New(pgerr.ProgramLimitExceeded, "transaction writes more than %d bytes", limit)
	}
	return nil
}

// height is the number of the block that the transaction stands in.
func (c *call) height() datum.Datum {
	h, _ := block.SplitXID(c.env.XID)
	return datum.Int(int64(h))
}

// text is a text argument that must say something.
func (c *call) text(i int, what string) (string, error) {
	s := c.args[i].Str()
	if strings.TrimSpace(s) == "" {
		return "", pgerr.New(pgerr.InvalidParameterValue, "%s must not be empty", what)
	}
	return s, nil
}
