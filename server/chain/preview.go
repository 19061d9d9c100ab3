package chain

import (
	"context"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/mvcc"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// Preview executes a transaction of the execute-order-in-parallel flow on its
// snapshot and returns what it gives there: result, notices and its own error.
// Status, place and number of the receipt are not set: no block has decided. The
// execution is kept for the block, as with Speculate. The caller has authenticated
// the transaction.
//
// The error is 25000 for a snapshot that is not there and 57014 if ctx is done
// before; any other is a fault of the node.
func (c *Chain) Preview(ctx context.Context, tx *block.Tx) (*Receipt, error) {
	if tx.Snapshot > c.Height() {
		return nil, pgerr.New(pgerr.InvalidTransactionState, "block %d does not exist yet", tx.Snapshot)
	}
	if p := c.speculation(tx); p != nil {
		select {
		case <-p.done:
		case <-ctx.Done():
			return nil, pgerr.New(pgerr.QueryCanceled, "canceling statement due to user request")
		}
		// One that was dropped to make room has no outcome.
		if p.x.work != nil && p.fault == nil {
			return p.x.preview(), nil
		}
	}
	v, err := c.view(tx.Snapshot)
	if err != nil {
		return nil, err
	}
	x := execution{tx: tx, id: tx.ID(), snapshot: tx.Snapshot}
	var digest txDigest
	if err := c.attempt(&x, c.store.Begin(mvcc.AsOf(v.height), 0), v, &digest); err != nil {
		return nil, err
	}
	return x.preview(), nil
}

func (x *execution) preview() *Receipt {
	return &Receipt{ID: x.id, Err: x.err, Result: x.result, Notices: x.notices}
}
