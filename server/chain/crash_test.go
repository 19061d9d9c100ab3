package chain

import (
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/tallystick/tallystick/blockstore/block"
)

// TestCrashes crashes a node at random moments, between and within blocks. The
// block store keeps what it synced, the state what it happened to. Whatever is
// left, the node comes back with the state that the blocks give.
func TestCrashes(t *testing.T) {
	seed := testSeed()
	t.Log("seed", seed)
	rng := rand.New(rand.NewPCG(seed, 2))
	g := testGenesis(nil)
	s := newRandomSource(t, g, seed)
	blocksFS, stateFS := vfs.NewCrashableMem(), vfs.NewCrashableMem()
	n := openStores(t, g, blocksFS, stateFS)
	t.Cleanup(n.close)
	n.workers = 2
	n.reopen()

	type crash struct{ blocks, state *vfs.MemFS }
	var crashes []crash
	snap := func(rng *rand.Rand) {
		// The state first: the block store must never be behind it.
		cfg := vfs.CrashCloneCfg{UnsyncedDataPercent: rng.IntN(101), RNG: rng}
		state := stateFS.CrashClone(cfg)
		crashes = append(crashes, crash{blocksFS.CrashClone(vfs.CrashCloneCfg{}), state})
	}
	var blocks []*block.Block
	blocks = append(blocks, s.first()...)
	for range 20 {
		blocks = append(blocks, s.next())
	}
	var processing atomic.Bool
	processing.Store(true)
	done := make(chan struct{})
	go func() {
		defer close(done)
		rng := rand.New(rand.NewPCG(seed, 3))
		for i := 0; processing.Load() && i < 12; i++ {
			time.Sleep(time.Duration(rng.IntN(20)) * time.Millisecond)
			snap(rng)
		}
	}()
	for _, b := range blocks {
		n.process(b)
	}
	processing.Store(false)
	<-done
	snap(rng)

	behind := 0
	for i, c := range crashes {
		r := openStores(t, g, c.blocks, c.state)
		last, _ := r.blocks.Tip()
		if r.store.Height() < last {
			behind++
		}
		r.workers = 1 + i%3
		r.reopen()
		if h, _, state := r.chain.Tip(); h != last || state != n.state(last) {
			t.Errorf("crash %d: the chain comes back at block %d with state %s; the blocks end at %d with %s", i, h, state, last, n.state(last))
		}
		// It goes on like one that never crashed.
		for _, b := range blocks[last:] {
			r.process(b)
		}
		if _, _, state := r.chain.Tip(); state != n.state(n.chain.Height()) {
			t.Errorf("crash %d: the chain goes on to another state", i)
		}
		r.close()
	}
	t.Logf("%d crashes, %d with blocks to replay", len(crashes), behind)
	if behind == 0 {
		t.Error("no crash lost anything: the test does not test")
	}
}
