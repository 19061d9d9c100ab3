package chain

import (
	"container/list"
	"sync"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/mvcc"
	"github.com/tallystick/tallystick/mvcc/rwset"
)

// Speculate executes a transaction of the execute-order-in-parallel flow ahead
// of its block, on the snapshot that it names, in the background: at once, or
// as soon as that block is there. Process uses the outcome instead of executing
// the transaction again. The caller has authenticated it.
//
// Speculation changes what a block costs, never what it decides. An execution
// is a function of the signed transaction, of the parameters and of the state
// after the snapshot's block, all of which are fixed once that block was
// processed: versions are never rewritten, the catalog and the block's time are
// read at the same height, the budget is the transaction's own, and the number
// that it will have in its block (which nobody knows yet) is visible to no
// execution of this flow. What happened since does not enter into it; that is
// looked at in the block, by footprint. So it does not matter when, where or how
// often it ran, and the id, which covers all that was signed, names the outcome.
//
// It reports whether the transaction was taken: not if it cannot be in any block
// to come, if its id was consumed, if its snapshot lies too far ahead of this node, if it calls a system
// contract (which runs on no snapshot), or in the other flow. That is no verdict,
// and neither is being dropped later to make room.
func (c *Chain) Speculate(tx *block.Tx) bool {
	return c.speculation(tx) != nil
}

// speculation finds or starts the speculative execution of a transaction.
func (c *Chain) speculation(tx *block.Tx) *speculation {
	if !c.speculative() || tx.Config != nil || isSystem(tx) || tx.Network != c.network {
		return nil
	}
	height := c.Height()
	if tx.Snapshot > height+maxAhead || lastBlock(tx, c.params.Load().SnapshotWindow) <= height {
		return nil
	}
	return c.ahead.add(c, tx)
}

// maxAhead bounds how many blocks a transaction waits for its snapshot: a client
// may have asked a node that was a few blocks faster.
const maxAhead = 64

// lastBlock is the last block that may contain a transaction without rejecting
// it.
func lastBlock(tx *block.Tx, window uint64) block.Height {
	return min(tx.ValidUntil, tx.Snapshot+window+1)
}

// speculator holds the transactions that were executed ahead of their block, or
// will be. It keeps at most so many, and so many bytes of what they read and
// wrote; the oldest make room for new ones.
type speculator struct {
	maxTxs   int
	maxBytes int64
	workers  int

	mu      sync.Mutex
	byID    map[block.TxID]*speculation
	order   list.List // *speculation, oldest first
	bytes   int64
	queue   []*speculation // to run, in order of arrival
	waiting byHeight       // by snapshots that are not there yet
	expires byHeight       // by lastBlock
	running int            // workers
	closed  bool
	wg      sync.WaitGroup // workers
}

// byHeight are sets of transactions. Their order is any: it decides what runs
// first.
type byHeight map[block.Height]map[*speculation]struct{}

func (m byHeight) add(h block.Height, p *speculation) {
	if m[h] == nil {
		m[h] = map[*speculation]struct{}{}
	}
	m[h][p] = struct{}{}
}

func (m byHeight) remove(h block.Height, p *speculation) {
	delete(m[h], p)
	if len(m[h]) == 0 {
		delete(m, h)
	}
}

// speculation is one of them.
type speculation struct {
	x     execution // its outcome, once done is closed
	fault error     // of the node, if it had one: there is no outcome
	done  chan struct{}
	last  block.Height // that may contain it

	// Guarded by speculator.mu:
	state   speculationState
	bytes   int64
	element *list.Element // nil once it is out of the cache
}

type speculationState uint8

const (
	speculationWaits   speculationState = iota // for its snapshot or a worker
	speculationRuns                            // done will be closed
	speculationDone                            // done is closed
	speculationDropped                         // before it ran: it never will
)

// add finds or enqueues a transaction; nil if it was in a block already or the
// chain was closed.
func (s *speculator) add(c *Chain, tx *block.Tx) *speculation {
	id := tx.ID()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	if p := s.byID[id]; p != nil {
		return p
	}
	// Process consumes ids before it calls advance, so that nothing slips in after
	// its block.
	if c.Consumed(id) {
		return nil
	}
	p := &speculation{
		x:    execution{tx: tx, id: id, snapshot: tx.Snapshot},
		done: make(chan struct{}), last: lastBlock(tx, c.params.Load().SnapshotWindow), bytes: speculationOverhead + int64(len(tx.Encode())),
	}
	if s.byID == nil {
		s.byID, s.waiting, s.expires = map[block.TxID]*speculation{}, byHeight{}, byHeight{}
	}
	s.byID[id] = p
	p.element = s.order.PushBack(p)
	s.bytes += p.bytes
	s.expires.add(p.last, p)
	// Height is published before advance looks at waiting, so that one of the
	// two sees the other.
	if tx.Snapshot > c.Height() {
		s.waiting.add(tx.Snapshot, p)
	} else {
		s.enqueue(c, p)
	}
	s.shrink()
	return p
}

// enqueue gives a transaction to the workers and starts one if need be.
func (s *speculator) enqueue(c *Chain, p *speculation) {
	s.queue = append(s.queue, p)
	if s.running < s.workers {
		s.running++
		s.wg.Go(func() { s.work(c) })
	}
}

// work runs what is in the queue.
func (s *speculator) work(c *Chain) {
	var digest txDigest
	var v *view
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.queue) > 0 && !s.closed {
		p := s.queue[0]
		s.queue[0] = nil
		s.queue = s.queue[1:]
		if p.state != speculationWaits {
			continue
		}
		p.state = speculationRuns
		s.mu.Unlock()
		if v == nil || v.height != p.x.snapshot {
			v, p.fault = c.view(p.x.snapshot)
		}
		if p.fault == nil {
			p.fault = c.attempt(&p.x, c.store.Begin(mvcc.AsOf(v.height), 0), v, &digest)
		}
		if p.fault != nil {
			// The block will meet it too, and end the node.
			c.log.Warn("chain: a speculative execution failed", "transaction", p.x.id, "error", p.fault)
		}
		s.mu.Lock()
		p.state = speculationDone
		close(p.done)
		if p.element != nil {
			grown := p.x.size()
			p.bytes += grown
			s.bytes += grown
			s.shrink()
		}
	}
	s.running--
}

// shrink drops the oldest until the bounds are kept.
func (s *speculator) shrink() {
	for s.order.Len() > 0 && (s.order.Len() > s.maxTxs || s.bytes > s.maxBytes) {
		s.drop(s.order.Front().Value.(*speculation))
	}
}

// drop takes a transaction out of the cache. One that waits will not run; one
// that runs goes on for whoever waits for it.
func (s *speculator) drop(p *speculation) {
	if p.element == nil {
		return
	}
	s.order.Remove(p.element)
	p.element = nil
	s.bytes -= p.bytes
	delete(s.byID, p.x.id)
	s.expires.remove(p.last, p)
	s.waiting.remove(p.x.snapshot, p)
	if p.state == speculationWaits {
		p.state = speculationDropped
		close(p.done)
		for len(s.queue) > 0 && s.queue[0].state == speculationDropped {
			s.queue[0] = nil
			s.queue = s.queue[1:]
		}
	}
}

// take hands over the outcome of a transaction that its block contains. It waits
// for one that is running, which takes no longer than executing it again. It is
// nil if there is none.
func (s *speculator) take(id block.TxID) *speculation {
	s.mu.Lock()
	p := s.byID[id]
	if p != nil {
		s.drop(p)
	}
	s.mu.Unlock()
	if p == nil {
		return nil
	}
	<-p.done
	if p.state == speculationDropped || p.fault != nil {
		return nil
	}
	return p
}

// advance makes the block of this height known: snapshots of it can be read, and
// what no later block may contain is dropped.
func (s *speculator) advance(c *Chain, height block.Height, list []execution) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byID == nil {
		return
	}
	for i := range list {
		if p := s.byID[list[i].id]; p != nil {
			s.drop(p)
		}
	}
	for p := range s.expires[height] {
		s.drop(p)
	}
	ready := s.waiting[height]
	delete(s.waiting, height)
	for p := range ready {
		if p.state == speculationWaits && !s.closed {
			s.enqueue(c, p)
		}
	}
}

// forget drops everything that was executed or will be, for it was asked for under
// parameters that hold no more.
func (s *speculator) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.order.Len() > 0 {
		s.drop(s.order.Front().Value.(*speculation))
	}
}

// close ends speculation and waits for what is running.
func (s *speculator) close() {
	s.mu.Lock()
	s.closed = true
	for s.order.Len() > 0 {
		s.drop(s.order.Front().Value.(*speculation))
	}
	s.queue = nil
	s.mu.Unlock()
	s.wg.Wait()
}

// speculationOverhead estimates what a transaction costs beyond its bytes.
const speculationOverhead = 2 << 10

// size is an estimate of the memory that the outcome of an execution holds.
func (x *execution) size() int64 {
	n := int64(len(x.result))
	if x.work != nil {
		n += x.work.WriteBytes()
	}
	if x.footprint != nil {
		const perRead, perWrite = 64, 32
		x.footprint.EachRead(func(r rwset.Read) bool {
			n += perRead + int64(len(r.Start)+len(r.End))
			return true
		})
		n += perWrite * int64(len(x.footprint.Writes))
	}
	for i := range x.notices {
		n += int64(len(x.notices[i].Error.Message) + len(x.notices[i].Error.Detail))
	}
	return n
}

// Close ends what the chain does in the background. It must come before the
// store is closed. No block is processed and no transaction executed afterwards.
func (c *Chain) Close() {
	c.ahead.close()
}
