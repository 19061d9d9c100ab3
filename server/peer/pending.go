package peer

import (
	"context"
	"sync"
	"time"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/identity"
)

// content tells transactions apart: a copy with a false signature has the same id.
type content struct {
	id        block.TxID
	signature identity.Signature
}

func contentOf(tx *block.Tx) content { return content{tx.ID(), tx.Signature} }

// entry is a transaction that this node has handed over, or is about to.
type entry struct {
	tx     *block.Tx
	ctx    context.Context // of who submits; done means that nobody waits
	result chan error      // capacity 1

	// The rest is guarded by pending.mu.
	accepted bool
	tries    int       // submissions so far
	due      time.Time // of the next one
}

// pending are the transactions between Submit and their block.
type pending struct {
	mu      sync.Mutex
	max     int
	entries map[content]*entry
	room    chan struct{} // closed and replaced when entries go
}

func newPending(max int) *pending {
	return &pending{max: max, entries: map[content]*entry{}, room: make(chan struct{})}
}

func (p *pending) len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.entries)
}

// add registers a transaction. It returns nil and no channel if it is there
// already, and a channel that is closed when to try again if there is no room.
func (p *pending) add(ctx context.Context, tx *block.Tx) (*entry, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := contentOf(tx)
	if p.entries[key] != nil {
		return nil, nil
	}
	if len(p.entries) >= p.max {
		return nil, p.room
	}
	e := &entry{tx: tx, ctx: ctx, result: make(chan error, 1)}
	p.entries[key] = e
	return e, nil
}

// accept notes that an orderer has the transaction, and when to doubt that.
func (p *pending) accept(e *entry, due time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e.accepted, e.due = true, due
	e.tries++
}

// remove forgets a transaction that was refused or given up.
func (p *pending) remove(e *entry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if key := contentOf(e.tx); p.entries[key] == e {
		delete(p.entries, key)
		p.freed()
	}
}

// freed wakes up who waits for room. The caller holds mu.
func (p *pending) freed() {
	close(p.room)
	p.room = make(chan struct{})
}

// ordered forgets what a block contains.
func (p *pending) ordered(b *block.Block) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := len(p.entries)
	if before == 0 {
		return
	}
	for _, tx := range b.Txs {
		delete(p.entries, contentOf(tx))
	}
	if len(p.entries) < before {
		p.freed()
	}
}

// overdue returns transactions that an orderer has accepted long ago, at most max,
// each with its number of tries, and forgets those that have expired.
func (p *pending) overdue(now time.Time, height block.Height, next func(tries int) time.Duration, max int) map[int][]*block.Tx {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out map[int][]*block.Tx
	n, expired := 0, false
	for key, e := range p.entries { // any order: each goes its own way
		switch {
		case e.tx.ValidUntil <= height:
			delete(p.entries, key)
			expired = true
		case e.accepted && now.After(e.due) && n < max:
			if out == nil {
				out = map[int][]*block.Tx{}
			}
			out[e.tries] = append(out[e.tries], e.tx)
			e.tries++
			e.due = now.Add(next(e.tries))
			n++
		}
	}
	if expired {
		p.freed()
	}
	return out
}
