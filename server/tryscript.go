package server

import (
	"time"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/identity"
	"github.com/tallystick/tallystick/mvcc"
	"github.com/tallystick/tallystick/sql/builtin"
	"github.com/tallystick/tallystick/sql/exec"
)

// tryScript executes a DDL script on the last state as a deployment in the next
// block would, and forgets what it did.
func (s *state) tryScript(owner identity.UserID, ddl string) (err error) {
	height := s.chain.Height()
	xid := block.XID(height+1, 1)
	txn := s.store.Begin(mvcc.AsOf(height), xid)
	defer func() {
		if closeErr := txn.Close(); err == nil {
			err = closeErr
		}
	}()
	catalog, err := s.engine.Catalog(txn)
	if err != nil {
		return err
	}
	params := s.chain.Params()
	env := s.engine.ContractEnv(txn, xid, catalog, &builtin.TxInfo{User: owner.Name, Org: owner.Org, Time: timestampTZ(time.Now())})
	env.Ctx.Height, env.Ctx.BlockTime = height, s.blockTime(height)
	env.Ctx.Budget = &builtin.Budget{Left: int64(params.MaxSteps)}
	env.Limits = exec.Limits{
		ReadBytes: int64(params.MaxReadBytes), WriteBytes: int64(params.MaxWriteBytes), Nesting: int(params.MaxNesting),
	}
	_, err = s.system.Apply(env, owner.String(), ddl, nil)
	return err
}
