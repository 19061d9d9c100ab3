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
	index  map[block.Hash]ref // of what is known
	known  [][]known          // by ref, in pieces that never move
	made   int                // entries of known that were ever used
	free   []ref              // unused ones among them
	expiry map[uint64][]ref   // ordered ones, by their last valid height

	// queue[i] has the index base+i; queue[:head] is done. Entries that are done
	// have no transaction.
	queue   []waiter
	head    int
	base    uint64
	relayed [2]uint64 // entries before these indexes were shown to everybody: own, others'
	live    int
	origins []origin
	cut     *cutter.Cutter // at the primary

	// How many transactions were ordered in the present quarter of a timeout and in
	// the four before.
	recent [5]int

	forget bool // a planted bug
}

// ref is the place of a transaction in pool.known.
type ref uint32

const pieceBits = 10

func (p *pool) at(r ref) *known { return &p.known[r>>pieceBits][r&(1<<pieceBits-1)] }

// known says where a transaction stands.
type known struct {
	id       block.Hash
	sequence uint64 // where it is proposed in this view or ordered; 0 for nowhere
	place    uint64 // 1 + its index in the queue; 0 if it does not wait here
	ordered  bool
}

// waiter is a transaction that is not ordered yet.
type waiter struct {
	tx     *block.Tx
	ref    ref
	origin uint16
	since  uint64 // tick
}

// origin counts what waits on behalf of a member.
type origin struct{ txs, bytes int }

func (p *pool) init(opts *ordering.MachineOptions) {
	*p = pool{opts: opts, index: make(map[block.Hash]ref), expiry: make(map[uint64][]ref)}
	p.origins = make([]origin, opts.Members.N())
}

func (p *pool) waiting() int { return p.live }

func (p *pool) room(member int) int {
	if p.origins[member].bytes >= p.opts.MaxWaitingBytes {
		return 0
	}
	limit := p.opts.MaxWaiting
	if member == p.opts.Self {
		limit = min(limit, p.share())
	}
	return max(limit-p.origins[member].txs, 0)
}

// share is how much may wait on behalf of this orderer's clients: if all orderers
// have as much, half a timeout orders it at the present rate. More would make an
// honest primary look as if it left it lying.
func (p *pool) share() int {
	lately := 0
	for _, n := range p.recent[1:] {
		lately += n
	}
	return max(lately/(2*len(p.origins)), 4*p.opts.BatchTxs, minShare)
}

// minShare may always wait: a pipeline that is empty has no rate yet.
const minShare = 1000

// quarter ends a quarter of a timeout.
func (p *pool) quarter() {
	copy(p.recent[1:], p.recent[:])
	p.recent[0] = 0
}

// know returns the entry of a transaction, a new one if need be.
func (p *pool) know(id block.Hash) (ref, *known) {
	if r, ok := p.index[id]; ok {
		return r, p.at(r)
	}
	r := ref(p.made)
	if k := len(p.free); k > 0 {
		r, p.free = p.free[k-1], p.free[:k-1]
	} else {
		if p.made%(1<<pieceBits) == 0 {
			p.known = append(p.known, make([]known, 1<<pieceBits))
		}
		p.made++
	}
	p.index[id] = r
	k := p.at(r)
	*k = known{id: id}
	return r, k
}

// drop forgets an entry about which nothing is to be known any more.
func (p *pool) drop(r ref) {
	if k := p.at(r); k.place == 0 && k.sequence == 0 {
		delete(p.index, k.id)
		*k = known{}
		p.free = append(p.free, r)
	}
}

// add lets a transaction wait on behalf of a member. The chain has the given
// height here and a certain one elsewhere, as far as that is known.
func (p *pool) add(tx *block.Tx, member int, height, tick, elsewhere uint64) (added, room bool) {
	// What the next block cannot contain, or no block of the window may.
	if tx.ValidUntil <= height || tx.ValidUntil > elsewhere+p.opts.Window+p.opts.MaxLife {
		return false, true
	}
	r, k := p.know(tx.ContentHash())
	if k.place != 0 && !k.ordered {
		p.take(k, member)
	}
	if k.ordered || k.place != 0 {
		return false, true
	}
	if p.room(member) == 0 {
		p.drop(r)
		return false, false
	}
	p.queue = append(p.queue, waiter{tx: tx, ref: r, origin: uint16(member), since: tick})
	k.place = p.base + uint64(len(p.queue))
	p.origins[member].txs++
	p.origins[member].bytes += block.TxSizeInBlock(tx)
	p.live++
	if p.cut != nil && k.sequence == 0 {
		p.cut.Add(tx, int64(tick))
	}
	return true, true
}

// take makes this orderer answer for what waits on behalf of another one, once
// its own client submits it too.
func (p *pool) take(k *known, member int) {
	w := &p.queue[k.place-1-p.base]
	if member != p.opts.Self || int(w.origin) == member {
		return
	}
	size := block.TxSizeInBlock(w.tx)
	p.origins[w.origin].txs--
	p.origins[w.origin].bytes -= size
	w.origin = uint16(member)
	p.origins[member].txs++
	p.origins[member].bytes += size
}

// unqueue ends the waiting of a transaction.
func (p *pool) unqueue(k *known) {
	w := &p.queue[k.place-1-p.base]
	k.place = 0
	p.origins[w.origin].txs--
	p.origins[w.origin].bytes -= block.TxSizeInBlock(w.tx)
	p.live--
	*w = waiter{}
	p.compact()
}

// compact drops done entries from the front; moving costs no more than what was
// dropped.
func (p *pool) compact() {
	for p.head < len(p.queue) && p.queue[p.head].tx == nil {
		p.head++
	}
	if p.head > 0 && p.head*2 >= len(p.queue) {
		rest := copy(p.queue, p.queue[p.head:])
		clear(p.queue[rest:])
		p.queue = p.queue[:rest]
		p.base += uint64(p.head)
		p.head = 0
	}
}

// oldest returns the entry that waits longest, after dropping those that no block
// after height can contain.
func (p *pool) oldest(height uint64) *waiter {
	for p.live > 0 {
		w := &p.queue[p.head]
		if w.tx.ValidUntil > height {
			return w
		}
		r := w.ref
		p.unqueue(p.at(r))
		p.drop(r)
	}
	return nil
}

// claim assigns the transactions of a fresh proposal to its sequence, if none of
// them is ordered, proposed elsewhere or repeated and all of them may be in that
// block; else it changes nothing.
func (p *pool) claim(txs []*block.Tx, sequence uint64) ([]ref, bool) {
	refs := make([]ref, 0, len(txs))
	for _, tx := range txs {
		r, ok := p.claimOne(tx, sequence)
		if !ok {
			p.release(refs, sequence)
			return nil, false
		}
		refs = append(refs, r)
	}
	return refs, true
}

func (p *pool) claimOne(tx *block.Tx, sequence uint64) (ref, bool) {
	if tx.ValidUntil < sequence || tx.ValidUntil > sequence+p.opts.MaxLife {
		return 0, false
	}
	r, k := p.know(tx.ContentHash())
	if k.ordered || k.sequence != 0 {
		return 0, false
	}
	k.sequence = sequence
	return r, true
}

// assign notes that a view proposes transactions again, whatever is known of them.
func (p *pool) assign(txs []*block.Tx, sequence uint64) []ref {
	refs := make([]ref, 0, len(txs))
	for _, tx := range txs {
		r, k := p.know(tx.ContentHash())
		if !k.ordered && k.sequence == 0 {
			k.sequence = sequence
		}
		if k.sequence == sequence {
			refs = append(refs, r)
		}
	}
	return refs
}

// release undoes an assignment, as far as nothing was ordered since.
func (p *pool) release(refs []ref, sequence uint64) {
	for _, r := range refs {
		if k := p.at(r); !k.ordered && k.sequence == sequence {
			k.sequence = 0
			p.drop(r)
		}
	}
}

// ordered notes the transactions of the next block and returns the indexes of
// those that were ordered before.
func (p *pool) ordered(txs []*block.Tx, height uint64) (repeats []int) {
	p.recent[0] += len(txs)
	var until uint64 // the last one looked up, for they come in runs
	var dying []ref
	for i, tx := range txs {
		r, k := p.know(tx.ContentHash())
		if k.ordered {
			repeats = append(repeats, i)
			continue
		}
		if k.place != 0 {
			p.unqueue(k)
		}
		k.sequence, k.ordered = height, !p.forget
		if i == 0 || tx.ValidUntil != until {
			if dying != nil {
				p.expiry[until] = dying
			}
			until = tx.ValidUntil
			dying = p.expiry[until]
		}
		dying = append(dying, r)
	}
	if dying != nil {
		p.expiry[until] = dying
	}
	for _, r := range p.expiry[height] {
		p.at(r).sequence = 0
		p.drop(r)
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
		if leads && p.at(w.ref).sequence == 0 {
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
			if (int(w.origin) == member) == own && p.at(w.ref).sequence == 0 {
				txs = append(txs, w.tx)
				size += block.TxSizeInBlock(w.tx)
			}
		}
		upto++
	}
	return txs, upto
}

// remap renames the members of one epoch to those of the next. What waits on
// behalf of one that leaves waits on behalf of this one, self in the next epoch.
func (p *pool) remap(old, next *identity.OrdererSet, self int) {
	queue := p.queue[p.head:]
	p.queue, p.base, p.head, p.live = nil, p.base+uint64(len(p.queue)), 0, 0
	p.origins = make([]origin, len(next.Keys))
	for _, w := range queue {
		if w.tx == nil {
			continue
		}
		to := next.Index(old.Keys[w.origin])
		if to < 0 {
			to = self
		}
		w.origin = uint16(to)
		p.queue = append(p.queue, w)
		p.at(w.ref).place = p.base + uint64(len(p.queue))
		p.live++
		p.origins[to].txs++
		p.origins[to].bytes += block.TxSizeInBlock(w.tx)
	}
}
