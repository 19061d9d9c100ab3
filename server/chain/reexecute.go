package chain

import (
	"fmt"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/mvcc"
)

// reexecute gives those who lost the first round further ones, if the network
// has chosen so: losers are executed again on the state that the winners so far
// have left, in parallel, and the rule decides among them as it did before; in
// the last round one after the other, each on what those before it left, so that
// nobody loses it.
//
// A round is a block of its own in all that concerns serializability: its
// transactions have read one state, that after the winners of the rounds before,
// and come after them. What stands is the last execution, with its footprint, its
// result and its error.
//
// Losers of a round are its aborted, be they stale or in conflict, and those that
// failed on something that a winner of the round, standing before them in the
// block, has changed. What found no room in the block is none: it would find less.
func (c *Chain) reexecute(r *run, m *Metrics) error {
	for round := uint64(1); c.params.Load().Conflicts == block.ConflictsReexecute; round++ {
		n := c.losers(r)
		if n == 0 {
			return nil
		}
		m.Reexecuted += uint64(n)
		v, err := c.view(r.height() - 1)
		if err != nil {
			return err
		}
		if round == c.params.Load().ReexecuteRounds {
			return c.serialRound(r, v, round)
		}
		if err := c.each(r, func(w *worker, x *execution) error { return w.again(r, x, v, round) }); err != nil {
			return err
		}
		c.decide(r)
		if err := c.apply(r); err != nil {
			return err
		}
	}
	return nil
}

// losers opens the next round for those who lost the last one, and returns how
// many they are.
func (c *Chain) losers(r *run) int {
	failed := false
	r.overwrites.Reset()
	for i := range r.list {
		switch x := &r.list[i]; {
		case !x.open:
		case x.status == Committed:
			r.overwrites.Add(i, x.footprint)
		case x.status == Failed:
			failed = true
		}
	}
	n := 0
	for i := range r.list {
		x := &r.list[i]
		if !x.open {
			continue
		}
		x.open = x.tx.Flags&block.NoReexecute == 0 &&
			(x.status == Aborted && x.cause != CauseBudget ||
				failed && x.status == Failed && r.overwrites.Before(i, x.footprint))
		if x.open {
			x.status, n = 0, n+1
		}
	}
	return n
}

// again executes a transaction on what the block has so far. It reads the state
// of the block before and what winners wrote, the catalog and the time of the
// block before: transactions of users do not change those.
func (w *worker) again(r *run, x *execution, v *view, round uint64) error {
	x.snapshot, x.round = v.height, uint8(round)
	txn := r.batch.Begin(mvcc.Snapshot{Height: r.height(), Seq: r.seq}, w.chain.number(x))
	return w.chain.attempt(x, txn, v, &w.digest)
}

// serialRound is the last round.
func (c *Chain) serialRound(r *run, v *view, round uint64) error {
	w := worker{chain: c, height: r.height()}
	for i := range r.list {
		x := &r.list[i]
		if !x.open {
			continue
		}
		if err := w.again(r, x, v, round); err != nil {
			return fmt.Errorf("transaction %s at position %d: %w", x.id, x.position, err)
		}
		if x.err != nil {
			x.end(Failed, x.err)
			continue
		}
		if !c.admit(r, x, x.work) {
			continue
		}
		if err := r.applyOne(x, x.work); err != nil {
			return err
		}
	}
	return nil
}
