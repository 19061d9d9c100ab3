package pbft

import (
	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/identity"
	"github.com/tallystick/tallystick/ordering"
	"github.com/tallystick/tallystick/ordering/cutter"
)

// pool is what the machine knows about transactions: which ones wait, which ones
// are proposed in this view and where, and which ones are ordered. The last
// part is replicated state, a function of the chain: it keeps the hash of every
// transaction until the block after which the transaction could not be ordered
// again anyway.
type pool struct {
	opts   *ordering.MachineOptions
	known  map[block.Hash]known
	expiry map[uint64][]block.Hash // ordered ones, by their last valid height

	// queue[i] has the index base+i. Entries that are done are nil transactions.
	queue   []waiter
	base    uint64
	relayed [2]uint64 // entries before these indexes were shown to everybody: own, others'
	live    int
	origins []origin
	cut     *cutter.Cutter // at the primary
	forget  bool           // a planted bug
}

// known says where a transaction stands.
type known struct {
	sequence uint64 // where it is proposed in this view or ordered; 0 for nowhere
	place    uint64 // 1 + its index in the queue; 0 if it does not wait here
	ordered  bool
}

// waiter is a transaction that is not ordered yet.
type waiter struct {
	tx     *block.Tx
	id     block.Hash
	since  uint64 // tick
	origin int
}

// origin counts what waits on behalf of a member.
type origin struct{ txs, bytes int }

func (p *pool) init(opts *ordering.MachineOptions) {
	*p = pool{opts: opts, known: make(map[block.Hash]known), expiry: make(map[uint64][]block.Hash)}
	p.origins = make([]origin, opts.Members.N())
}

func (p *pool) waiting() int { return p.live }

func (p *pool) room(member int) int {
	if p.origins[member].bytes >= p.opts.MaxWaitingBytes {
		return 0
	}
	return max(p.opts.MaxWaiting-p.origins[member].txs, 0)
}

// add lets a transaction wait on behalf of a member. The chain has the given
// height here and a certain one elsewhere, as far as that is known.
func (p *pool) add(tx *block.Tx, member int, height, tick, elsewhere uint64) (added, room bool) {
	id := tx.ContentHash()
	k := p.known[id]
	if k.ordered || k.place != 0 {
		return false, true
	}
	// What the next block cannot contain, or no block of the window may.
	if tx.ValidUntil <= height || tx.ValidUntil > elsewhere+p.opts.Window+p.opts.MaxLife {
		return false, true
	}
	if p.room(member) == 0 {
		return false, false
	}
	p.queue = append(p.queue, waiter{tx, id, tick, member})
	k.place = p.base + uint64(len(p.queue))
	p.known[id] = k
	p.origins[member].txs++
	p.origins[member].bytes += block.TxSizeInBlock(tx)
	p.live++
	if p.cut != nil && k.sequence == 0 {
		p.cut.Add(tx, int64(tick))
	}
	return true, true
}

// remove ends the waiting of the entry at a place.
func (p *pool) remove(place uint64) {
	w := &p.queue[place-1-p.base]
	p.origins[w.origin].txs--
	p.origins[w.origin].bytes -= block.TxSizeInBlock(w.tx)
	p.live--
	*w = waiter{}
	p.compact()
}

// compact drops done entries from the front; moving costs no more than what was
// dropped.
func (p *pool) compact() {
	n := 0
	for n < len(p.queue) && p.queue[n].tx == nil {
		n++
	}
	if n > 0 && n*2 >= len(p.queue) {
		rest := copy(p.queue, p.queue[n:])
		clear(p.queue[rest:])
		p.queue = p.queue[:rest]
		p.base += uint64(n)
	}
}

// oldest returns the entry that waits longest, after dropping those that no block
// after height can contain.
func (p *pool) oldest(height uint64) *waiter {
	for i := 0; i < len(p.queue); i++ {
		w := &p.queue[i]
		if w.tx == nil {
			continue
		}
		if w.tx.ValidUntil > height {
			return w
		}
		p.expire(w)
		i = -1 // the queue may have moved
	}
	return nil
}

func (p *pool) expire(w *waiter) {
	k := p.known[w.id]
	place := k.place
	if k.place = 0; k.sequence == 0 {
		delete(p.known, w.id)
	} else {
		p.known[w.id] = k
	}
	p.remove(place)
}

// claim assigns the transactions of a fresh proposal to its sequence, if none of
// them is ordered, proposed elsewhere or repeated and all of them may be in that
// block; else it changes nothing.
func (p *pool) claim(txs []*block.Tx, sequence uint64) bool {
	for i, tx := range txs {
		if !p.claimOne(tx, sequence) {
			p.release(txs[:i], sequence)
			return false
		}
	}
	return true
}

func (p *pool) claimOne(tx *block.Tx, sequence uint64) bool {
	if tx.ValidUntil < sequence || tx.ValidUntil > sequence+p.opts.MaxLife {
		return false
	}
	id := tx.ContentHash()
	k := p.known[id]
	if k.ordered || k.sequence != 0 {
		return false
	}
	k.sequence = sequence
	p.known[id] = k
	return true
}

// assign notes that a view proposes transactions again, whatever is known of them.
func (p *pool) assign(txs []*block.Tx, sequence uint64) {
	for _, tx := range txs {
		id := tx.ContentHash()
		if k := p.known[id]; !k.ordered && k.sequence == 0 {
			k.sequence = sequence
			p.known[id] = k
		}
	}
}

// release undoes an assignment.
func (p *pool) release(txs []*block.Tx, sequence uint64) {
	for _, tx := range txs {
		id := tx.ContentHash()
		k, ok := p.known[id]
		if !ok || k.ordered || k.sequence != sequence {
			continue
		}
		if k.sequence = 0; k.place == 0 {
			delete(p.known, id)
		} else {
			p.known[id] = k
		}
	}
}

// ordered notes the transactions of the next block and returns the indexes of
// those that were ordered before.
func (p *pool) ordered(txs []*block.Tx, height uint64) (repeats []int) {
	for i, tx := range txs {
		id := tx.ContentHash()
		k := p.known[id]
		if k.ordered {
			repeats = append(repeats, i)
			continue
		}
		place := k.place
		p.known[id] = known{sequence: height, ordered: true}
		if p.forget {
			delete(p.known, id)
		}
		p.expiry[tx.ValidUntil] = append(p.expiry[tx.ValidUntil], id)
		if place != 0 {
			p.remove(place)
		}
	}
	for _, id := range p.expiry[height] {
		delete(p.known, id)
	}
	delete(p.expiry, height)
	return repeats
}

// restore notes a block of the past.
func (p *pool) restore(b *block.Block) { p.ordered(b.Txs, b.Number) }

// restart lets everything that waits wait anew, for a primary that is this member
// or another one.
func (p *pool) restart(leads bool, tick uint64) {
	p.relayed = [2]uint64{}
	p.cut = nil
	if leads {
		p.cut = cutter.New(cutter.Config{
			MaxTxs: p.opts.BatchTxs, MaxBytes: p.opts.BatchBytes,
			Timeout: int64(p.opts.BatchTicks), Pipeline: p.opts.Pipeline,
		}, 0)
	}
	for i := range p.queue {
		w := &p.queue[i]
		if w.tx == nil {
			continue
		}
		w.since = tick
		if leads && p.known[w.id].sequence == 0 {
			p.cut.Add(w.tx, int64(tick))
		}
	}
}

// pick returns what waits on behalf of a member, or of all others, and is not
// proposed, among the entries from an index on that wait since the given tick or
// longer, and the index where it stopped. About limit bytes come at once.
func (p *pool) pick(member int, own bool, from, since uint64, limit int) (txs []*block.Tx, upto uint64) {
	size := 0
	upto = max(from, p.base)
	for upto < p.base+uint64(len(p.queue)) {
		w := &p.queue[upto-p.base]
		if w.tx != nil {
			if w.since > since || size > limit || len(txs) >= block.MaxTxsPerBlock {
				break
			}
			if (w.origin == member) == own && p.known[w.id].sequence == 0 {
				txs = append(txs, w.tx)
				size += block.TxSizeInBlock(w.tx)
			}
		}
		upto++
	}
	return txs, upto
}

// remap renames the members of one epoch to those of the next. What waits on
// behalf of one that leaves is dropped.
func (p *pool) remap(old, next *identity.OrdererSet) {
	p.origins = make([]origin, len(next.Keys))
	for i := range p.queue {
		w := &p.queue[i]
		if w.tx == nil {
			continue
		}
		to := next.Index(old.Keys[w.origin])
		if to < 0 {
			k := p.known[w.id]
			if k.place = 0; k.sequence == 0 {
				delete(p.known, w.id)
			} else {
				p.known[w.id] = k
			}
			p.live--
			*w = waiter{}
			continue
		}
		w.origin = to
		p.origins[to].txs++
		p.origins[to].bytes += block.TxSizeInBlock(w.tx)
	}
	p.compact()
}
