package chain

import (
	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// Status is the outcome of a transaction in a block.
type Status = block.Status

// The statuses, in the order in which they are decided.
const (
	Rejected  = block.Rejected  // it should not have been in the block
	Aborted   = block.Aborted   // what it read or wrote changed: may be tried again
	Failed    = block.Failed    // its own error
	Committed = block.Committed // its writes are part of the state
)

// Receipt says what became of one transaction of a block.
type Receipt struct {
	ID       block.TxID
	Height   block.Height
	Position uint32 // in the block, from 1
	XID      uint64
	Status   Status
	Err      *pgerr.Error // why it did not commit; nil if it did
	Result   []byte       // canonical rows (contracts.DecodeRows) of a committed one
	// Notices are what the execution had to say. They are not stored.
	Notices []Notice

	// Final tells that this is the one receipt of the id, the one that
	// LookupReceipt returns. It is false for what consumes no id (a transaction
	// that its user did not sign) and for repetitions of a consumed one.
	Final bool
}

// Notice is one RAISE NOTICE, WARNING or the like.
type Notice struct {
	Severity string
	Error    *pgerr.Error
}

// Outcome is what of the receipt is part of the state hash: id, status, SQLSTATE
// and result. Texts of errors are not.
func (r *Receipt) Outcome() block.Outcome {
	o := block.Outcome{ID: r.ID, Status: r.Status, Result: r.Result}
	if r.Err != nil {
		o.SQLState = string(r.Err.Code)
	}
	return o
}

func (r *Receipt) leaf() block.Hash {
	o := r.Outcome()
	return o.Leaf()
}

// consumes reports whether a transaction with this outcome used up its id:
// whoever's signature verified does, whatever the status.
func consumes(s Status, code pgerr.Code) bool {
	return s != Rejected || code != unauthenticated
}
