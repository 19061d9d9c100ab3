package exec

import (
	"github.com/tallystick/tallystick/mvcc"
	"github.com/tallystick/tallystick/sql/builtin"
	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// frame is the working memory of one execution: what all expressions and
// iterators of a program share. A call of a function runs in a frame of its
// own, so the scratch places that the compiler gave to an expression belong to
// one evaluation at a time.
type frame struct {
	env    *Env
	budget *builtin.Budget
	params []datum.Datum
	slots  []datum.Datum
	args   []datum.Datum // scratch for arguments of calls, places given at compile time
	subs   []subState    // by Subquery.ID
	ctes   []*cteState   // by CTE.ID; nil outside their With
	mode   mvcc.ReadMode
	ticks  uint32
	held   int64 // logical bytes kept by sorts, hashes and the like
	arena  datum.Arena

	with     *withIter     // the WITH with data-modifying members, if there is one
	modifies []*modifyIter // those that ran, in order; see finish
	affected int64         // rows of the statement proper
	fkChecks []fkCheck     // foreign keys to verify when the statement ends
	key      []byte        // scratch
}

// start binds the frame to an execution.
func (f *frame) start(env *Env, params []datum.Datum) {
	f.env, f.budget, f.params = env, env.Ctx.Budget, params
	f.mode = mvcc.ReadRecorded
	if env.ReadOnly && env.Private == nil && env.Ctx.Tx == nil {
		// A local query that cannot write cannot conflict with anything; a local
		// transaction decides by [mvcc.Txn.Forget].
		f.mode = mvcc.ReadUnrecorded
	}
}

// reset drops what an execution left behind, so that a pooled frame holds on
// to nothing but its arena's last chunk.
func (f *frame) reset() {
	f.release(f.held)
	clear(f.slots)
	clear(f.args)
	clear(f.ctes)
	for i := range f.subs {
		f.subs[i].reset()
	}
	clear(f.modifies)
	f.modifies = f.modifies[:0]
	clear(f.fkChecks)
	f.fkChecks = f.fkChecks[:0]
	f.env, f.budget, f.params, f.with = nil, nil, nil, nil
	f.affected, f.ticks = 0, 0
}

// spend takes steps from the transaction's budget.
func (f *frame) spend(n int64) error {
	b := f.budget
	if b == nil {
		return nil
	}
	if b.Left -= n; b.Left >= 0 {
		return nil
	}
	return b.Spend(0)
}

// interruptEvery is how many rows pass between two looks at Env.Interrupted.
const interruptEvery = 256

// row accounts for one row that a node makes.
func (f *frame) row() error {
	if f.ticks++; f.ticks%interruptEvery == 0 && f.env.Interrupted != nil {
		if err := f.env.Interrupted(); err != nil {
			return err
		}
	}
	return f.spend(1)
}

// checkReads enforces the bound on what a transaction reads. What counts is
// logical bytes, the same on every node.
func (f *frame) checkReads() error {
	if limit := f.env.Limits.ReadBytes; limit > 0 && f.env.Txn.ReadBytes() > limit {
		return pgerr.New(pgerr.ProgramLimitExceeded, "transaction reads more than %d bytes", limit)
	}
	return nil
}

// checkWrites enforces the bound on what a transaction writes.
func (f *frame) checkWrites(t *catalog.Table) error {
	if limit := f.env.Limits.WriteBytes; limit > 0 && f.env.Store(t).WriteBytes() > limit {
		return pgerr.New(pgerr.ProgramLimitExceeded, "transaction writes more than %d bytes", limit)
	}
	return nil
}

// hold accounts for logical bytes that a node keeps beyond one row. The bound is
// hard. What goes to disk beyond work_mem (see full) is released.
func (f *frame) hold(n int64) error {
	f.held += n
	f.env.held += n
	if limit := f.env.Limits.Memory; limit > 0 && f.env.held > limit {
		if f.env.Ctx.Tx != nil {
			return pgerr.New(pgerr.ProgramLimitExceeded, "transaction keeps more than %d bytes of intermediate rows", limit)
		}
		return pgerr.New(pgerr.OutOfMemory, "out of memory").
			WithDetail("Query keeps more than %d bytes of intermediate rows.", limit)
	}
	return nil
}

// release gives back what hold took.
func (f *frame) release(n int64) {
	if n != 0 {
		f.held -= n
		f.env.held -= n
	}
}

// datumSize is what a datum counts in hold: its own size and its bytes.
func datumSize(d datum.Datum) int64 {
	if d.Inline() || d.IsNull() {
		return 16
	}
	return 16 + int64(len(d.Bytes()))
}
