package chain

import (
	"errors"
	"fmt"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/identity"
	"github.com/tallystick/tallystick/mvcc"
	"github.com/tallystick/tallystick/mvcc/rwset"
	"github.com/tallystick/tallystick/sql/pgerr"
	"github.com/tallystick/tallystick/ssi"
)

// run is a block being processed. Its memory is kept from one block to the
// next.
type run struct {
	block *block.Block
	list  []execution // by position
	batch *mvcc.BlockBatch
	seq   uint32 // last commit sequence given
	bytes uint64 // that committed transactions write

	items      []identity.Item // signatures to verify
	itemOf     []int           // and whose they are
	candidates []ssi.Candidate
	overwrites ssi.Overwrites
	writes     writeSet
	leaves     []block.Hash
	digest     txDigest
	touched    []userWrite     // rows that the chain follows
	schedule   *block.Schedule // after the block
	refused    []error         // of its configuration transactions; nil if there is none
	winners    []*execution
	points     []checkpointRow // recorded by the block
	diverged   *Divergence     // what one of them reveals
}

// userWrite is a version of a row of pgcerts, deploytx or network_parameters that
// the block makes.
type userWrite struct {
	key, value []byte
	tombstone  bool
}

// execution is one transaction on its way through the stages.
type execution struct {
	tx       *block.Tx
	id       block.TxID
	position uint32
	xid      uint64
	system   bool
	repeated bool // its id was consumed before

	open       bool         // it takes part in the round that is executed or decided
	round      uint8        // of its last execution: 0 the first one
	speculated bool         // it was executed before the block came
	snapshot   block.Height // what it reads

	seq    uint32 // commit sequence; 0 = none yet
	within bool   // it read, and may replace, what the same block wrote
	status Status // 0 = not decided
	cause  Cause  // of an abort
	err    *pgerr.Error

	txn       *mvcc.Txn // workspace, kept from block to block
	work      *mvcc.Txn // what the last execution wrote; nil before the first
	footprint *rwset.Footprint
	digest    block.Hash // of its writes
	result    []byte
	notices   []Notice
}

// end decides the status.
func (x *execution) end(s Status, err *pgerr.Error) {
	x.status, x.err = s, err
	if s != Committed {
		x.result = nil
	}
}

// abort ends a transaction that may be tried again.
func (x *execution) abort(cause Cause, err *pgerr.Error) {
	x.cause = cause
	x.end(Aborted, err)
}

func (r *run) height() block.Height { return r.block.Number }

// begin prepares the memory for a block.
func (c *Chain) begin(b *block.Block) *run {
	r := &c.run
	r.block, r.seq, r.bytes = b, 0, 0
	r.writes.entries = r.writes.entries[:0]
	r.touched, r.points, r.diverged = r.touched[:0], r.points[:0], nil
	r.list = r.list[:cap(r.list)] // with the workspaces of larger blocks
	r.list = append(r.list, make([]execution, max(0, len(b.Txs)-len(r.list)))...)[:len(b.Txs)]
	for i, tx := range b.Txs {
		x := &r.list[i]
		*x = execution{txn: x.txn, tx: tx, id: tx.ID(), position: uint32(i + 1)}
		x.xid = block.XID(b.Number, x.position)
		x.system = tx.Config != nil || isSystem(tx)
		x.open = !x.system
		if x.snapshot = c.snapshot(tx, b.Number); x.system {
			x.snapshot = b.Number - 1
		}
	}
	return r
}

// release lets go of what executions hold that are not kept for the next block.
func (r *run) release() {
	for i := range r.list {
		x := &r.list[i]
		x.work, x.footprint, x.result, x.notices = nil, nil, nil, nil
	}
}

// Process applies the block after the last one and returns the receipts of its
// transactions, in block order. An error means that the block was not applied,
// and that none will be any more: the node must stop, or, if it is a *Divergence,
// serve for forensics only.
func (c *Chain) Process(b *block.Block) ([]Receipt, error) {
	c.processMu.Lock()
	defer c.processMu.Unlock()
	if c.failed != nil {
		return nil, fmt.Errorf("chain: failed earlier: %w", c.failed)
	}
	if d := c.Diverged(); d != nil {
		return nil, d
	}
	receipts, err := c.process(b)
	if err != nil {
		c.failed = fmt.Errorf("chain: block %d: %w", b.Number, err)
		return nil, c.failed
	}
	return receipts, nil
}

func (c *Chain) process(b *block.Block) (receipts []Receipt, err error) {
	m := c.metrics
	watch := startWatch()
	if err := c.checkBlock(b); err != nil {
		return nil, err
	}
	schedule, refused, err := c.checkConfig(b)
	if err != nil {
		return nil, err
	}
	if err := c.errEngine(); err != nil {
		return nil, err
	}
	watch.lap(&m.CheckMicros)
	r := c.begin(b)
	r.schedule, r.refused = schedule, refused
	if err := c.verify(r); err != nil {
		return nil, err
	}
	watch.lap(&m.VerifyMicros)
	if err := c.execute(r); err != nil {
		return nil, err
	}
	watch.lap(&m.ExecuteMicros)
	c.decide(r)
	watch.lap(&m.DecideMicros)
	r.batch = c.store.NewBlockBatch(b.Number)
	defer func() {
		if err != nil {
			err = errors.Join(err, r.batch.Close())
		}
	}()
	if err := c.apply(r); err != nil {
		return nil, err
	}
	watch.lap(&m.ApplyMicros)
	if err := c.reexecute(r, &m); err != nil {
		return nil, err
	}
	watch.lap(&m.ReexecuteMicros)
	if err := c.systemPhase(r); err != nil {
		return nil, err
	}
	watch.lap(&m.SystemMicros)
	receipts = r.receipts()
	next, err := c.commit(r, receipts)
	if err != nil {
		return nil, err
	}
	watch.lap(&m.CommitMicros)
	m.count(r)
	if err := c.advance(r, next, m); err != nil {
		return nil, err
	}
	if c.governance.changed {
		c.governance.changed = false
		c.ahead.forget()
	}
	c.ahead.advance(c, r.height(), r.list)
	r.release()
	return receipts, nil
}

// checkBlock reports why b is not the next block of the chain. The block store
// has checked most of it; a node that executes what was not agreed on is worth
// a second look.
func (c *Chain) checkBlock(b *block.Block) error {
	if err := b.Follows(c.tip.height, c.tip.hash, c.tip.timestamp); err != nil {
		return err
	}
	if len(b.Txs) > block.MaxTxsPerBlock {
		return fmt.Errorf("chain: block has %d transactions", len(b.Txs))
	}
	if digest := block.TxDigest(b.Txs); digest != b.Header().TxDigest {
		return fmt.Errorf("chain: transactions have digest %s, the block was sealed with %s", digest, b.Header().TxDigest)
	}
	return nil
}

// receipts says what became of the transactions.
func (r *run) receipts() []Receipt {
	list := make([]Receipt, len(r.list))
	for i := range r.list {
		x := &r.list[i]
		list[i] = Receipt{
			ID: x.id, Height: r.height(), Position: x.position, XID: x.xid,
			Status: x.status, Err: x.err, Result: x.result, Notices: x.notices,
		}
		list[i].Final = consumes(x.status, codeOf(x.err)) && !x.repeated
	}
	return list
}

// advance makes the block the tip, for readers and for the next one.
func (c *Chain) advance(r *run, next tip, m Metrics) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	g := c.governance
	g.schedule = r.schedule
	if g.pending != nil && g.schedule.Check(g.pending.Config) != nil {
		g.pending = nil // it was ordered, or another one was
	}
	for i := range r.touched {
		w := &r.touched[i]
		if err := c.users.update(w.key, w.value, w.tombstone); err != nil {
			return err
		}
		if err := g.governed(w); err != nil {
			return err
		}
	}
	c.governance = g
	for i := range r.list {
		x := &r.list[i]
		if !x.repeated && x.tx.Config == nil && consumes(x.status, codeOf(x.err)) {
			c.ids.add(x.id, x.tx.ValidUntil, r.height(), c.params.Load().ValidityWindow)
		}
	}
	c.ids.passed(r.height())
	c.checked.forget(r.list)
	c.tip, c.metrics = next, m
	c.passBusy(r.height(), r.busy())
	if r.diverged != nil {
		c.diverged = r.diverged
		c.log.Error("chain: this node's state differs from that of the network", "error", c.diverged)
	}
	return c.govern(next.height + 1)
}

// busy tells whether the block has something else than checkpoints.
func (r *run) busy() bool {
	for i := range r.list {
		if !isCheckpoint(r.list[i].tx) {
			return true
		}
	}
	return false
}

func codeOf(e *pgerr.Error) pgerr.Code {
	if e == nil {
		return ""
	}
	return e.Code
}

// count adds the outcomes of a block.
func (m *Metrics) count(r *run) {
	m.Blocks++
	m.Transactions += uint64(len(r.list))
	for i := range r.list {
		switch x := &r.list[i]; x.status {
		case Committed:
			m.Committed++
		case Failed:
			m.Failed++
		case Rejected:
			m.Rejected++
		case Aborted:
			m.Aborted++
			m.Aborts[x.cause]++
		}
		switch x := &r.list[i]; {
		case x.speculated:
			m.Speculated++
		case x.work != nil && !x.system:
			m.Missing++
		}
	}
}
