package mvcc

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestHeadTable compares the table with a map while entries come, are replaced
// and go. Few distinct hashes make long runs of slots that wrap around.
func TestHeadTable(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	for round := range 50 {
		sh := &headShard{limit: 1 << 30}
		sh.table.Store(newHeadTable(8))
		want := map[uint64]*headEntry{}
		spread := uint64(1) << r.IntN(12)
		for step := range 2000 {
			hash := r.Uint64N(64) * spread
			if old := want[hash]; old != nil && r.IntN(2) == 0 {
				sh.remove(old)
				delete(want, hash)
			} else {
				e := newHeadEntry(fmt.Append(nil, step), Version{Block: 1}, false, nil)
				sh.put(hash, e)
				want[hash] = e
			}
			table := sh.table.Load()
			for h := range uint64(64) {
				if got := table.get(h * spread); got != want[h*spread] {
					t.Fatalf("seed %d, round %d, step %d: hash %d has %p, want %p", seed, round, step, h*spread, got, want[h*spread])
				}
			}
		}
	}
}

// TestHeadEntry has keys and rows around the size up to which an entry holds them.
func TestHeadEntry(t *testing.T) {
	t.Parallel()
	for n := range 80 {
		for k := range n {
			key, row := bytes.Repeat([]byte("k"), k), bytes.Repeat([]byte("r"), n-k)
			e := newHeadEntry(key, Version{Block: 7}, true, row)
			if !bytes.Equal(e.key(), key) || !bytes.Equal(e.value(), row) || e.version.Block != 7 || !e.dead {
				t.Fatalf("key of %d bytes and row of %d: %q %q", k, n-k, e.key(), e.value())
			}
			if cap(e.key()) != k || cap(e.value()) != n-k {
				t.Fatalf("key of %d bytes and row of %d: an append would overwrite what stands behind", k, n-k)
			}
		}
	}
}
