package raft

import (
	"crypto/sha256"
	"sync"

	"github.com/tallystick/tallystick/blockstore/block"
)

// content identifies a transaction by all of its bytes. The id would not do: it
// leaves out the signature, so a copy with a false one would keep the genuine
// transaction out.
type content [sha256.Size]byte

// item is a transaction with its identity.
type item struct {
	tx      *block.Tx
	content content
}

func itemOf(tx *block.Tx) item { return item{tx, sha256.Sum256(tx.Encode())} }

// pool is what was submitted to this orderer and stands in no block yet, in the
// order of arrival.
type pool struct {
	limit int

	mu      sync.Mutex
	waiting map[content]struct{}
	order   []item        // those that were removed stay until they come to the front
	base    uint64        // position of order[0] in the order of all that ever came
	removed chan struct{} // closed and replaced when something was removed

	added chan struct{} // capacity 1: something was added
}

func newPool(limit int) *pool {
	return &pool{
		limit:   limit,
		waiting: make(map[content]struct{}),
		removed: make(chan struct{}),
		added:   make(chan struct{}, 1),
	}
}

// add appends a transaction unless it waits already. If there is no room it
// returns a channel that is closed when there may be.
func (p *pool) add(it item) (full <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, ok := p.waiting[it.content]; ok {
		return nil
	}
	if len(p.waiting) >= p.limit {
		return p.removed
	}
	p.waiting[it.content] = struct{}{}
	p.order = append(p.order, it)
	notify(p.added)
	return nil
}

// remove takes out what stands in a block.
func (p *pool) remove(items []item) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := len(p.waiting)
	if before == 0 {
		return
	}
	for i := range items {
		delete(p.waiting, items[i].content)
	}
	if len(p.waiting) == before {
		return
	}
	p.trim()
	close(p.removed)
	p.removed = make(chan struct{})
}

// trim drops the front of the order as far as nothing waits there.
func (p *pool) trim() {
	n := 0
	for n < len(p.order) {
		if _, ok := p.waiting[p.order[n].content]; ok {
			break
		}
		n++
	}
	clear(p.order[:n])
	p.order = p.order[n:]
	p.base += uint64(n)
}

// take appends to dst what waits from position cursor on, up to a number and
// about so many bytes, and returns the position after it.
func (p *pool) take(dst []item, cursor uint64, limit, bytes int) ([]item, uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	cursor = max(cursor, p.base)
	for cursor-p.base < uint64(len(p.order)) && len(dst) < limit && bytes > 0 {
		it := p.order[cursor-p.base]
		cursor++
		if _, ok := p.waiting[it.content]; ok {
			dst = append(dst, it)
			bytes -= block.TxSizeInBlock(it.tx)
		}
	}
	return dst, cursor
}

func (p *pool) len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.waiting)
}

// shrunk returns how many wait, and a channel that is closed when fewer do.
func (p *pool) shrunk() (int, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.waiting), p.removed
}

// notify wakes whoever waits on a channel of capacity 1; a wake-up that is on
// its way already will see what has changed.
func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
