package pbft

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/ordering"
)

// oracle is the pool as its documentation reads, over plain lists.
type oracle struct {
	maxLife  uint64
	assigned map[block.Hash]uint64
	ordered  map[block.Hash]uint64 // by last valid height
	waiting  []*block.Tx
}

func (o *oracle) waits(tx *block.Tx) bool {
	return slices.ContainsFunc(o.waiting, func(w *block.Tx) bool { return w.ContentHash() == tx.ContentHash() })
}

func (o *oracle) claim(txs []*block.Tx, sequence uint64) bool {
	seen := map[block.Hash]bool{}
	for _, tx := range txs {
		id := tx.ContentHash()
		_, ordered := o.ordered[id]
		if seen[id] || ordered || o.assigned[id] != 0 || tx.ValidUntil < sequence || tx.ValidUntil > sequence+o.maxLife {
			return false
		}
		seen[id] = true
	}
	for _, tx := range txs {
		o.assigned[tx.ContentHash()] = sequence
	}
	return true
}

func (o *oracle) order(txs []*block.Tx, height uint64) (repeats []int) {
	for i, tx := range txs {
		id := tx.ContentHash()
		if _, ok := o.ordered[id]; ok {
			repeats = append(repeats, i)
			continue
		}
		o.ordered[id] = tx.ValidUntil
		delete(o.assigned, id)
		o.waiting = slices.DeleteFunc(o.waiting, func(w *block.Tx) bool { return w.ContentHash() == id })
	}
	for id, until := range o.ordered {
		if until <= height {
			delete(o.ordered, id)
		}
	}
	return repeats
}

// TestPoolAgainstOracle runs random histories on both.
func TestPoolAgainstOracle(t *testing.T) {
	c := newCluster(t, 4, nil)
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 9))
		opts := c.opts
		opts.EnsureDefaults()
		opts.MaxLife = 30
		var p pool
		p.init(&opts)
		o := &oracle{maxLife: 30, assigned: map[block.Hash]uint64{}, ordered: map[block.Hash]uint64{}}
		var all []*block.Tx
		height := uint64(0)
		claims := map[uint64][]ref{}
		batches := map[uint64][]*block.Tx{}
		some := func() (txs []*block.Tx) {
			for range 1 + r.IntN(4) {
				txs = append(txs, all[len(all)-1-r.IntN(min(len(all), 12))])
			}
			return txs
		}
		for range 400 {
			tx := c.tx()
			tx.ValidUntil = height + uint64(r.IntN(40))
			tx, _ = block.DecodeTx(withUntil(tx))
			all = append(all, tx)
			switch r.IntN(4) {
			case 0:
				tx := some()[0]
				_, ordered := o.ordered[tx.ContentHash()]
				want := !ordered && !o.waits(tx) && tx.ValidUntil > height && tx.ValidUntil <= height+opts.Window+opts.MaxLife
				if added, room := p.add(tx, r.IntN(4), height, 1, height); added != want || !room {
					t.Fatalf("seed %d: added %v, want %v", seed, added, want)
				}
				if want {
					o.waiting = append(o.waiting, tx)
				}
			case 1:
				sequence := height + 1 + uint64(r.IntN(5))
				if claims[sequence] != nil {
					continue
				}
				txs := some()
				refs, ok := p.claim(txs, sequence)
				if want := o.claim(txs, sequence); ok != want {
					t.Fatalf("seed %d: claimed %v, want %v", seed, ok, want)
				}
				if ok {
					claims[sequence], batches[sequence] = refs, txs
				}
			case 2: // a view change
				sequence := height + 1 + uint64(r.IntN(5))
				p.release(claims[sequence], sequence)
				for _, tx := range batches[sequence] {
					if o.assigned[tx.ContentHash()] == sequence {
						delete(o.assigned, tx.ContentHash())
					}
				}
				delete(claims, sequence)
				delete(batches, sequence)
			case 3:
				height++
				txs := batches[height]
				if txs == nil || r.IntN(3) == 0 {
					p.release(claims[height], height) // the view decided on something else
					for _, tx := range txs {
						if o.assigned[tx.ContentHash()] == height {
							delete(o.assigned, tx.ContentHash())
						}
					}
					txs = slices.DeleteFunc(some(), func(tx *block.Tx) bool { return tx.ValidUntil < height })
				}
				if got, want := p.ordered(txs, height), o.order(txs, height); !slices.Equal(got, want) {
					t.Fatalf("seed %d: repeats %v, want %v", seed, got, want)
				}
				p.oldest(height)
			}
			checkPool(t, seed, &p, o, height)
		}
	}
}

// withUntil encodes a transaction anew.
func withUntil(tx *block.Tx) []byte {
	plain := block.Tx{
		Network: tx.Network, User: tx.User, Call: tx.Call, Snapshot: tx.Snapshot, Nonce: tx.Nonce,
		Time: tx.Time, ValidUntil: tx.ValidUntil,
	}
	return plain.Encode()
}

func checkPool(t *testing.T, seed uint64, p *pool, o *oracle, height uint64) {
	t.Helper()
	// What expired goes when it comes to the front of the queue.
	live := 0
	for _, tx := range o.waiting {
		if tx.ValidUntil > height {
			live++
		}
	}
	if p.live < live || len(p.index)+len(p.free) != p.made {
		t.Fatalf("seed %d: %d wait, at least %d should; %d known, %d free of %d", seed, p.live, live, len(p.index), len(p.free), p.made)
	}
	sum := 0
	for _, at := range p.origins {
		sum += at.txs
	}
	if sum != p.live {
		t.Fatalf("seed %d: %d wait, on behalf of members %d", seed, p.live, sum)
	}
	for id := range o.ordered {
		if r, ok := p.index[id]; !ok || !p.at(r).ordered {
			t.Fatalf("seed %d: an ordered transaction is forgotten", seed)
		}
	}
}

// TestShare: what may wait here follows what is ordered.
func TestShare(t *testing.T) {
	c := newCluster(t, 4, func(o *ordering.MachineOptions) { o.MaxWaiting = 1 << 20 })
	p := &c.nodes[0].m.pool
	if got := p.share(); got != minShare {
		t.Errorf("at first %d may wait", got)
	}
	for range 4 {
		p.recent[0] = 20_000
		p.quarter()
	}
	if got := p.share(); got != 10_000 {
		t.Errorf("at 80000 a timeout %d may wait, not an eighth", got)
	}
	for range 4 {
		p.quarter()
	}
	if got := p.share(); got != minShare {
		t.Errorf("after a pause %d may wait", got)
	}
}
