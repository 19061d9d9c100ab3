package raft

import (
	"context"
	"errors"
	"flag"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/identity"
	"github.com/tallystick/tallystick/ordering/orderingtest"
)

var soak = flag.Duration("soak", 0, "how long TestChaos goes on; seconds of crashes if 0")

// client submits transactions to one orderer, and what that has not brought into
// a block in time to the next one, as a client without a receipt does.
type client struct {
	txs []*block.Tx
}

// run submits everything once, to the orderers that run at the time.
func (cl *client) run(ctx context.Context, pick func(i int) *Orderer) {
	for i, tx := range cl.txs {
		for {
			if ctx.Err() != nil {
				return
			}
			o := pick(i)
			if o == nil {
				time.Sleep(time.Millisecond)
				continue
			}
			try, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
			err := o.Submit(try, tx)
			cancel()
			if err == nil {
				break
			}
		}
	}
}

// directory tells clients which orderers run.
type directory struct {
	mu   sync.Mutex
	list []*Orderer
}

func (d *directory) set(c *cluster) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.list = nil
	for _, i := range c.running() {
		d.list = append(d.list, c.nodes[i].Orderer)
	}
}

func (d *directory) pick(i int) *Orderer {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.list) == 0 {
		return nil
	}
	return d.list[i%len(d.list)]
}

// consume collects what an orderer delivers until it ends, and counts it.
func consume(o *Orderer, into *[]block.Hash, count *atomic.Int64) *sync.WaitGroup {
	var wg sync.WaitGroup
	wg.Go(func() {
		_ = o.Deliver(context.Background(), 1, func(b *block.Block) error { // ends with the orderer
			*into = append(*into, b.Hash())
			count.Add(1)
			o.Done(b.Number)
			return nil
		})
	})
	return &wg
}

// TestLeaderCrashes kills the leader in the middle of load. What it delivered
// stands, what others accepted comes without being submitted again, and what the
// leader alone had accepted comes once when it is submitted elsewhere.
func TestLeaderCrashes(t *testing.T) {
	c := newCluster(t, 3, nil)
	c.startAll()
	c.crown(0)
	txs := orderingtest.NewTxMaker(c.genesis.Genesis.NetworkID()).Some(1200)
	var delivered []block.Hash
	var count atomic.Int64
	ended := consume(c.nodes[0].Orderer, &delivered, &count)

	lost, rest := txs[:400], txs[400:] // to the leader, to the others
	var wg sync.WaitGroup
	wg.Go(func() {
		for _, tx := range lost {
			if c.nodes[0].Submit(t.Context(), tx) != nil {
				return
			}
		}
	})
	others := []*Orderer{c.nodes[1].Orderer, c.nodes[2].Orderer}
	for i, o := range others {
		wg.Go(func() {
			for k := i; k < len(rest); k += 2 {
				if err := o.Submit(t.Context(), rest[k]); err != nil {
					t.Errorf("an orderer that runs refuses: %v", err)
					return
				}
			}
		})
	}
	c.until("nothing is ordered", func() bool { return count.Load() >= 15 })
	old := c.nodes[0]
	old.stop(errCrash)
	wg.Wait()
	c.crash(0)
	ended.Wait()

	c.leader(1, 2)
	c.blocks(1, rest) // nobody submits these again
	c.submit(2, lost...)
	c.agree(txs, 1, 2)
	now := c.blocks(1, txs)
	for i, hash := range delivered {
		if now[i].Hash() != hash {
			t.Fatalf("block %d was delivered and is another one now", i+1)
		}
	}
	if len(delivered) < 15 {
		t.Errorf("only %d blocks before the crash: it shows nothing", len(delivered))
	}
	c.start(0, c.peers(3))
	c.agree(txs, 0, 1, 2)
}

// TestLeaderIsCutOff: without a majority nothing is delivered; what the old
// leader was given meanwhile is ordered once it is back, by the new one.
func TestLeaderIsCutOff(t *testing.T) {
	t.Run("log", func(t *testing.T) { testLeaderIsCutOff(t, nil) })
	t.Run("snapshot", func(t *testing.T) { testLeaderIsCutOff(t, func(o *Options) { compact(o, 8, 2) }) })
}

func testLeaderIsCutOff(t *testing.T, tune func(*Options)) {
	c := newCluster(t, 3, tune)
	c.startAll()
	c.crown(0)
	maker := orderingtest.NewTxMaker(c.genesis.Genesis.NetworkID())
	before := maker.Some(50)
	c.submit(0, before...)
	c.agree(before, 0, 1, 2)
	height := c.nodes[0].Status().Height

	c.fabric.isolate("orderer0", true)
	inside := maker.Some(70)
	c.submit(0, inside...) // waits with the one that is alone
	both := maker.Some(20)
	c.submit(0, both...)
	c.submit(1, both...)
	outside := maker.Some(600)
	c.submit(1, outside[:300]...)
	c.submit(2, outside[300:]...)
	c.leader(1, 2)
	c.agree(append(append([]*block.Tx(nil), before...), append(outside, both...)...), 1, 2)
	c.until("the old leader goes on alone", func() bool { return !c.nodes[0].Leads() })
	if got := c.nodes[0].Status(); got.Height != height {
		t.Errorf("an orderer alone has height %d, before it was %d", got.Height, height)
	}

	c.fabric.isolate("orderer0", false)
	all := append(append(append(before, inside...), outside...), both...)
	c.agree(all, 0, 1, 2)
	if n := c.nodes[0].Status().Waiting; n != 0 {
		t.Errorf("%d transactions wait although all are ordered", n)
	}
}

// TestRestartOfAll: crashed at once, they go on with what they have, and what was
// ordered before is not ordered again.
func TestRestartOfAll(t *testing.T) {
	c := newCluster(t, 3, func(o *Options) { compact(o, 8, 4) })
	txs := orderingtest.NewTxMaker(c.genesis.Genesis.NetworkID()).Some(900)
	for round := range 3 {
		c.startAll()
		c.crown(round)
		c.submit((round+1)%3, txs[:300*(round+1)]...) // the old ones again
		c.agree(txs[:300*(round+1)], 0, 1, 2)
		for i := range c.nodes {
			c.crash(i)
		}
	}
	c.startAll()
	c.agree(txs, 0, 1, 2)
	if got := len(c.blocks(0, txs)); int(c.nodes[0].Status().Height) != got {
		t.Errorf("height %d, but all transactions are in %d blocks", c.nodes[0].Status().Height, got)
	}
}

// compact makes snapshots frequent and the log short.
func compact(o *Options, entries, trailing uint64) {
	o.SnapshotEntries, o.TrailingEntries, o.SnapshotCheck = entries, trailing, 20*time.Millisecond
}

// TestLaggardGetsSnapshot: an orderer that was away so long that the log no longer
// has what it misses gets a snapshot and the blocks before it from the others.
func TestLaggardGetsSnapshot(t *testing.T) {
	c := newCluster(t, 3, func(o *Options) { compact(o, 10, 2) })
	c.startAll()
	c.crown(0)
	maker := orderingtest.NewTxMaker(c.genesis.Genesis.NetworkID())
	txs := maker.Some(1200)
	c.submit(0, txs[:100]...)
	c.agree(txs[:100], 0, 1, 2)
	before := c.nodes[2].Status().Height

	c.crash(2)
	c.submit(1, txs[100:]...)
	c.agree(txs, 0, 1)
	c.until("nobody takes a snapshot", func() bool { return c.nodes[0].raft.Stats()["last_snapshot_index"] != "0" })
	// How many entries the load became is open: it goes on until the log begins
	// behind what the laggard has.
	for tries := 0; ; tries++ {
		first, err := c.nodes[0].firstEntry()
		if err != nil {
			t.Fatal(err)
		}
		if first > before+10 {
			break
		}
		if tries == 200 {
			t.Fatalf("the log begins with entry %d: the laggard needs no snapshot", first)
		}
		more := maker.Some(5)
		txs = append(txs, more...)
		c.submit(1, more...)
		c.agree(txs, 0, 1)
	}
	c.start(2, c.peers(3))
	c.agree(txs, 2, 0, 1)

	// It certifies again by itself what comes now, and it remembers.
	c.submit(2, txs...)
	fresh := orderingtest.NewTxMaker(c.genesis.Genesis.NetworkID())
	fresh.Some(len(txs))
	last := fresh.Some(5)
	c.submit(2, last...)
	blocks := c.blocks(2, append(last, txs...))
	cert, err := identity.DecodeCertificate(blocks[len(blocks)-1].Certificate)
	if err != nil {
		t.Fatal(err)
	}
	if cert.Votes[0].Member != 2 {
		t.Errorf("orderer 2 delivers a new block with a certificate of orderer %d", cert.Votes[0].Member)
	}
	fetched := 0
	for _, b := range blocks {
		if cert, err := identity.DecodeCertificate(b.Certificate); err == nil && cert.Votes[0].Member != 2 {
			fetched++
		}
	}
	if fetched == 0 {
		t.Error("no block was fetched from another orderer")
	}
}

// TestCrashBeforeFetching: the snapshot is there, the blocks before it are not.
func TestCrashBeforeFetching(t *testing.T) {
	c := newCluster(t, 3, func(o *Options) { compact(o, 10, 2) })
	c.startAll()
	txs := orderingtest.NewTxMaker(c.genesis.Genesis.NetworkID()).Some(600)
	c.submit(0, txs[:500]...)
	c.agree(txs[:500], 0, 1, 2)
	c.until("no snapshot is taken", func() bool { return c.nodes[2].raft.Stats()["last_snapshot_index"] != "0" })
	c.crash(2)
	c.loseBlocks(2)
	c.start(2, c.peers(3))
	c.submit(2, txs[500:]...)
	c.agree(txs, 2, 0, 1)
}

// TestMembership: an orderer is admitted under load and gets everything, and the
// leader is dismissed.
func TestMembership(t *testing.T) {
	c := newCluster(t, 4, nil)
	for i := range 3 {
		c.start(i, c.peers(3))
	}
	c.crown(0)
	txs := orderingtest.NewTxMaker(c.genesis.Genesis.NetworkID()).Some(800)
	c.submit(0, txs[:200]...)
	if err := c.nodes[1].AddOrderer(t.Context(), c.peer(3)); !errors.Is(err, ErrNotLeader) {
		t.Errorf("a follower admits somebody: %v", err)
	}
	c.start(3, nil)
	var wg sync.WaitGroup
	wg.Go(func() { c.submit(1, txs[200:400]...) })
	if err := c.nodes[0].AddOrderer(t.Context(), c.peer(3)); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	c.submit(3, txs[400:600]...)
	c.agree(txs[:600], 3, 0, 1, 2)
	if peers, err := c.nodes[3].Peers(); err != nil || len(peers) != 4 {
		t.Errorf("the new orderer knows %v: %v", peers, err)
	}

	wg.Go(func() { c.submit(2, txs[600:]...) })
	if err := c.nodes[0].RemoveOrderer(t.Context(), c.peer(0).Key); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	c.close(0)
	c.leader(1, 2, 3)
	c.agree(txs, 1, 2, 3)
	// Now three of three were needed if the old one still counted.
	c.crash(1)
	last := orderingtest.NewTxMaker(c.genesis.Genesis.NetworkID())
	last.Some(len(txs))
	more := last.Some(50)
	c.submit(3, more...)
	c.agree(append(txs, more...), 2, 3)
}

// TestTransferUnderLoad passes the leadership round while clients submit.
func TestTransferUnderLoad(t *testing.T) {
	c := newCluster(t, 3, nil)
	c.startAll()
	c.crown(0)
	txs := orderingtest.NewTxMaker(c.genesis.Genesis.NetworkID()).Some(1500)
	var wg sync.WaitGroup
	for i := range 3 {
		wg.Go(func() {
			for k := i; k < len(txs); k += 3 {
				if err := c.nodes[i].Submit(t.Context(), txs[k]); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for i := range 6 {
		c.crown((i + 1) % 3)
	}
	wg.Wait()
	c.agree(txs, 0, 1, 2)
}

// TestChaos crashes, cuts off and restarts orderers at random under load.
func TestChaos(t *testing.T) {
	chaos(t, max(*soak, 3*time.Second))
}
