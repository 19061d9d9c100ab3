package chain

import (
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/contracts"
	"github.com/tallystick/tallystick/mvcc"
	"github.com/tallystick/tallystick/sql/builtin"
	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/exec"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// maxMemory bounds the logical bytes that a transaction keeps in sorts, hashes
// and the like. It belongs to the engine version.
const maxMemory = 64 << 20

func isSystem(tx *block.Tx) bool { return contracts.IsSystem(&tx.Call) }

// view is what all transactions with one snapshot share.
type view struct {
	height  block.Height
	time    int64 // of that block, timestamptz
	catalog *catalog.Catalog
}

// views makes the views of the snapshots that the block's transactions read.
func (c *Chain) views(r *run) (map[block.Height]*view, error) {
	views := map[block.Height]*view{}
	for i := range r.list {
		x := &r.list[i]
		if x.status != 0 || x.system || views[x.snapshot] != nil {
			continue
		}
		v, err := c.view(x.snapshot)
		if err != nil {
			return nil, err
		}
		views[x.snapshot] = v
	}
	return views, nil
}

func (c *Chain) view(height block.Height) (*view, error) {
	txn := c.store.Begin(mvcc.AsOf(height), 0)
	defer txn.Close()
	cat, err := c.engine.Catalog(txn)
	if err != nil {
		return nil, err
	}
	t, err := c.BlockTime(height)
	return &view{height: height, time: t, catalog: cat}, err
}

// execute runs everything that was not rejected and does not belong to the
// system phase. Workers take the transactions in block order, but none sees
// anything of another.
func (c *Chain) execute(r *run) error {
	views, err := c.views(r)
	if err != nil {
		return err
	}
	return c.each(r, func(w *worker, x *execution) error { return w.one(x, views[x.snapshot]) })
}

// each has the workers do something with every transaction that takes part in a
// round.
func (c *Chain) each(r *run, f func(*worker, *execution) error) error {
	var next atomic.Int64
	var mu sync.Mutex
	var fault error
	work := func() {
		w := worker{chain: c, height: r.height()}
		err := w.run(r.list, &next, f)
		if closeErr := w.close(); err == nil {
			err = closeErr
		}
		if err != nil {
			mu.Lock()
			defer mu.Unlock()
			if fault == nil {
				fault = err
			}
			next.Store(int64(len(r.list))) // the others stop too
		}
	}
	var wg sync.WaitGroup
	for range min(c.workers, len(r.list)) - 1 {
		wg.Go(work)
	}
	work()
	wg.Wait()
	return fault
}

// worker executes transactions of one block, one at a time.
type worker struct {
	chain   *Chain
	height  block.Height
	digest  txDigest
	checker *mvcc.Checker // nil until a stale snapshot needs it
}

func (w *worker) run(list []execution, next *atomic.Int64, f func(*worker, *execution) error) error {
	for {
		i := int(next.Add(1) - 1)
		if i >= len(list) {
			return nil
		}
		x := &list[i]
		if x.status != 0 || !x.open {
			continue
		}
		if err := f(w, x); err != nil {
			return fmt.Errorf("transaction %s at position %d: %w", x.id, x.position, err)
		}
	}
}

func (w *worker) close() error {
	if w.checker == nil {
		return nil
	}
	return w.checker.Close()
}

// one executes a transaction. A status is set only if it must abort because
// what it read is stale; its own error waits for that verdict.
func (w *worker) one(x *execution, v *view) error {
	c := w.chain
	if p := c.ahead.take(x.id); p != nil {
		x.adopt(&p.x)
	} else {
		if x.txn == nil {
			x.txn = c.store.Begin(mvcc.AsOf(v.height), c.number(x))
		} else if err := x.txn.Reset(mvcc.AsOf(v.height), c.number(x)); err != nil {
			return err
		}
		if err := c.attempt(x, x.txn, v, &w.digest); err != nil {
			return err
		}
	}
	if v.height < w.height-1 {
		_, err := w.stale(x)
		return err
	}
	return nil
}

// number is the transaction number that an execution knows: in the
// execute-order-in-parallel flow none, as it may come before the block.
func (c *Chain) number(x *execution) uint64 {
	if c.speculative() && !x.system {
		return 0
	}
	return x.xid
}

// attempt executes a transaction in a workspace and closes that; its outcome is
// in x. An error is a fault of the node.
func (c *Chain) attempt(x *execution, txn *mvcc.Txn, v *view, digest *txDigest) error {
	x.work, x.err, x.result, x.notices = txn, nil, nil, nil
	result, err := c.call(x, txn, v, func(env *exec.Env) (*contracts.Result, error) {
		return contracts.Execute(env, &x.tx.Call)
	})
	x.footprint = txn.Footprint()
	if closeErr := txn.Close(); err == nil {
		err = closeErr
	}
	if err == nil && x.err == nil {
		x.result = result
		x.digest, err = digest.of(txn)
	}
	return err
}

// adopt takes over the outcome of a speculative execution.
func (x *execution) adopt(p *execution) {
	x.work, x.err, x.result, x.notices = p.work, p.err, p.result, p.notices
	x.footprint, x.digest, x.speculated = p.footprint, p.digest, true
}

// stale aborts a transaction if a block after its snapshot changed what it read
// or writes.
func (w *worker) stale(x *execution) (bool, error) {
	if w.checker == nil {
		w.checker = w.chain.store.NewChecker()
	}
	conflict, changed, err := w.checker.Changed(x.footprint, x.snapshot, w.height-1)
	if err == nil && changed {
		x.abort(CauseStale, errStale(x, &conflict))
	}
	return changed, err
}

// call runs a call in an environment of its own. An error of the call goes into
// x.err; what is returned is a fault of the node.
func (c *Chain) call(x *execution, txn *mvcc.Txn, v *view, f func(*exec.Env) (*contracts.Result, error)) (result []byte, fault error) {
	defer func() {
		if p := recover(); p != nil {
			fault = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	info := &builtin.TxInfo{ID: x.id, User: x.tx.User.Name, Org: x.tx.User.Org, Time: timestampTZ(x.tx.Time)}
	env := c.engine.ContractEnv(txn, c.number(x), v.catalog, info)
	env.Ctx.Height, env.Ctx.BlockTime = v.height, v.time
	env.Ctx.Budget = &builtin.Budget{Left: int64(c.params.Load().MaxSteps)}
	env.Ctx.Notice = x.notice
	env.Limits = exec.Limits{
		ReadBytes: int64(c.params.Load().MaxReadBytes), WriteBytes: int64(c.params.Load().MaxWriteBytes),
		Nesting: int(c.params.Load().MaxNesting), Memory: maxMemory,
	}
	res, err := f(env)
	if err == nil {
		if res.Columns == nil {
			return nil, nil
		}
		return res.Encoded, nil
	}
	e, ok := pgerr.From(err)
	if !ok || !e.IsVerdict() {
		return nil, err
	}
	x.err = clipError(e)
	return nil, nil
}

// Bounds of what an execution has to say. Texts are not hashed, but kept.
const (
	maxNotices   = 100
	maxTextBytes = 8 << 10
)

// notice keeps a notice of a transaction.
func (x *execution) notice(severity string, e *pgerr.Error) {
	if len(x.notices) < maxNotices {
		x.notices = append(x.notices, Notice{Severity: severity, Error: clipError(e)})
	}
}

// clipError copies an error with its texts bounded: a contract may raise a
// message of any length.
func clipError(e *pgerr.Error) *pgerr.Error {
	c := *e
	for _, s := range [...]*string{
		&c.Message, &c.Detail, &c.Hint, &c.Context, &c.InternalQuery,
		&c.Schema, &c.Table, &c.Column, &c.DataType, &c.Constraint,
	} {
		if len(*s) > maxTextBytes {
			*s = clipText(*s)
		}
	}
	return &c
}
