package chain

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/mvcc"
)

// apply puts the writes of the winners of a round into the batch, in block order.
func (c *Chain) apply(r *run) error {
	for i := range r.list {
		if x := &r.list[i]; x.open && x.status == Committed {
			if err := r.applyOne(x, x.work); err != nil {
				return err
			}
		}
	}
	return nil
}

// applyOne gives a transaction the next commit sequence.
func (r *run) applyOne(x *execution, txn *mvcc.Txn) error {
	r.seq++
	x.seq, x.work, x.within = r.seq, txn, txn.Snapshot().Height == r.height()
	txn.SetXID(x.xid)
	r.writes.add(r.seq, x.xid, x.digest)
	return r.batch.Apply(txn, r.seq)
}

// systemPhase runs the calls of system contracts, one after the other, each on
// what those before it left.
func (c *Chain) systemPhase(r *run) error {
	t, err := c.BlockTime(r.height() - 1)
	if err != nil {
		return err
	}
	for i := range r.list {
		x := &r.list[i]
		if x.status != 0 || !x.system {
			continue
		}
		if err := c.systemCall(r, x, t); err != nil {
			return fmt.Errorf("transaction %s at position %d: %w", x.id, x.position, err)
		}
	}
	return nil
}

// systemCall runs one of them. Time is that of the block before: block_height()
// and block_timestamp() say the same everywhere in a block.
func (c *Chain) systemCall(r *run, x *execution, time int64) error {
	if x.tx.Config != nil {
		return c.configure(r, x)
	}
	txn := r.batch.Begin(mvcc.Snapshot{Height: r.height(), Seq: r.seq}, x.xid)
	defer txn.Close()
	cat, err := c.engine.Catalog(txn)
	if err != nil {
		return err
	}
	v := &view{height: r.height() - 1, time: time, catalog: cat}
	result, err := c.call(x, txn, v, c.systemContract(x))
	if err != nil {
		return err
	}
	// Reading the batch must be over before it is written.
	if err := txn.Close(); err != nil {
		return err
	}
	if x.err != nil {
		x.end(Failed, x.err)
		return nil
	}
	if x.result = result; !c.admit(r, x, txn) {
		return nil
	}
	if x.digest, err = r.digest.of(txn); err != nil {
		return err
	}
	if err := r.noteWrites(txn); err != nil {
		return err
	}
	return r.applyOne(x, txn)
}

// noteWrites keeps what a system contract wrote to tables that the chain follows.
func (r *run) noteWrites(txn *mvcc.Txn) error {
	points := checkpointsTable.layout.IndexPrefix(0)
	return txn.EachWrite(func(key, value []byte, tombstone bool) error {
		switch {
		case isGovernance(key):
			r.touched = append(r.touched, userWrite{bytes.Clone(key), bytes.Clone(value), tombstone})
		case bytes.HasPrefix(key, points) && !tombstone:
			return r.noteCheckpoint(value)
		}
		return nil
	})
}

// commit writes the ledger rows and makes the block durable with the next sync
// of the state. The chain's own rows have the sequence after the last
// transaction's and the number of position 0.
func (c *Chain) commit(r *run, receipts []Receipt) (tip, error) {
	b := r.block
	tables := c.tallyBlock(r)
	w := rowWriter{batch: r.batch, seq: r.seq + 1, xid: block.XID(b.Number, 0)}
	r.leaves = r.leaves[:0]
	committed := 0
	for i := range receipts {
		if err := w.ledger(r.list[i].tx, &receipts[i], r.list[i].snapshot); err != nil {
			_, tallyErr := tables()
			return tip{}, errors.Join(err, tallyErr)
		}
		r.leaves = append(r.leaves, receipts[i].leaf())
		if receipts[i].Status == Committed {
			committed++
		}
	}
	changed, err := tables()
	if err != nil {
		return tip{}, err
	}
	step := block.StateStep{Writes: r.writes.sum(), Outcomes: block.MerkleRoot(r.leaves)}
	if step.Tables, err = c.tables.merge(changed, r.batch); err != nil {
		return tip{}, err
	}
	next := tip{height: b.Number, hash: b.Hash(), timestamp: b.Timestamp}
	next.state = step.Next(c.tip.state, b.Number)
	if err := w.block(b, committed, next.state); err != nil {
		return tip{}, err
	}
	if err := r.batch.SetMeta(metaStep(b.Number), r.writes.record(&step)); err != nil {
		return tip{}, err
	}
	if err := c.judge(r); err != nil {
		return tip{}, err
	}
	if err := r.batch.SetMeta(metaTip, next.encode(c.network, c.farthest(r))); err != nil {
		return tip{}, err
	}
	// Not synced: what a crash loses is replayed from the block store.
	return next, c.store.Commit(r.batch, false)
}

// farthest is idIndex.farthest as it will be after the block.
func (c *Chain) farthest(r *run) block.Height {
	far := c.ids.farthest
	for i := range r.list {
		x := &r.list[i]
		if !x.repeated && x.tx.Config == nil && x.tx.ValidUntil > r.height()+c.params.Load().ValidityWindow && consumes(x.status, codeOf(x.err)) {
			far = max(far, x.tx.ValidUntil)
		}
	}
	return far
}
