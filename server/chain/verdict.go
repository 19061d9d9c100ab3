package chain

import (
	"strings"
	"unicode/utf8"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/mvcc"
	"github.com/tallystick/tallystick/sql/pgerr"
	"github.com/tallystick/tallystick/ssi"
)

// PostgreSQL's two messages for a serialization failure.
const (
	msgReadWrite  = "could not serialize access due to read/write dependencies among transactions"
	msgConcurrent = "could not serialize access due to concurrent update"
	hintRetry     = "The transaction might succeed if retried."
)

// errStale is the error of a transaction that read a snapshot which did not
// last until its block.
func errStale(x *execution, c *mvcc.Conflict) *pgerr.Error {
	height, position := block.SplitXID(c.XID)
	message, what := msgReadWrite, "read"
	if c.Wrote {
		message, what = msgConcurrent, "writes"
	}
	return pgerr.New(pgerr.SerializationFailure, "%s", message).
		WithDetail("Stale snapshot: what it %s at block %d was changed by the transaction at position %d of block %d.", what, x.snapshot, position, height).
		WithHint(hintRetry)
}

// errConflict is the error of a transaction that lost against another one of
// its block.
func errConflict(rule ssi.Rule, cause ssi.Cause, with *execution) *pgerr.Error {
	message := msgReadWrite
	if cause == ssi.WriteWrite {
		message = msgConcurrent
	}
	return pgerr.New(pgerr.SerializationFailure, "%s", message).
		WithDetail("Rule %s, reason %s: transaction %s at position %d of the same block came first.", rule, cause, with.id, with.position).
		WithHint(hintRetry)
}

// errBudget is the error of a transaction for whose writes the block has no
// room.
func errBudget(limit uint64) *pgerr.Error {
	return pgerr.New(pgerr.ProgramLimitExceeded, "block writes more than %d bytes", limit).
		WithDetail("The transactions before it in its block take the room.").
		WithHint(hintRetry)
}

// decide gives every transaction of a round its status: what is not rejected or
// stale yet fails by its own error, loses a conflict, finds no room, or commits.
func (c *Chain) decide(r *run) {
	r.candidates = r.candidates[:0]
	for i := range r.list {
		x := &r.list[i]
		if x.open && x.status == 0 && x.err != nil {
			x.end(Failed, x.err)
		}
		r.candidates = append(r.candidates, ssi.Candidate{Footprint: x.footprint, Excluded: x.status != 0 || !x.open})
	}
	verdicts := c.decider.Decide(c.rule, r.candidates)
	for i := range r.list {
		x, v := &r.list[i], &verdicts[i]
		if x.status != 0 || !x.open {
			continue
		}
		if v.Commit {
			c.admit(r, x, x.work)
		} else {
			x.abort(causeOf(v.Cause), errConflict(c.rule, v.Cause, &r.list[v.With]))
		}
	}
	clear(r.candidates)
}

// admit commits a transaction if the block's write budget, which counts results
// too, has room for it. Dropping a winner takes edges out of the conflict graph
// and adds none, so the rest stays serializable.
func (c *Chain) admit(r *run, x *execution, txn *mvcc.Txn) bool {
	size := uint64(txn.WriteBytes()) + uint64(len(x.result))
	if r.bytes+size > c.params.Load().MaxBlockWriteBytes {
		x.abort(CauseBudget, errBudget(c.params.Load().MaxBlockWriteBytes))
		return false
	}
	r.bytes += size
	x.end(Committed, nil)
	return true
}

// clipText cuts a text to maxTextBytes, between characters.
func clipText(s string) string {
	cut := maxTextBytes
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return strings.Clone(s[:cut]) + "..."
}
