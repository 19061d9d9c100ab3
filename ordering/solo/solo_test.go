package solo

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tallystick/tallystick/blockstore"
	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/identity"
	"github.com/tallystick/tallystick/ordering"
	"github.com/tallystick/tallystick/ordering/cutter"
	"github.com/tallystick/tallystick/ordering/orderingtest"
)

var signer = identity.NewSigner([32]byte{7})

// testGenesis defines a network whose only orderer is signer.
func testGenesis(tb testing.TB) *block.Block {
	g := &block.Genesis{
		Network:   "test",
		Timestamp: 1_700_000_000_000_000,
		Orgs:      []block.Org{{Name: "org1", Users: []block.User{{Name: "admin", Role: identity.Admin, Key: signer.Public()}}}},
		Orderers:  identity.OrdererSet{Keys: []identity.PublicKey{signer.Public()}, Quorum: 1},
		Params:    block.DefaultParams(),
	}
	b, err := g.Block()
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// memStore is a block store in memory.
type memStore struct {
	mu      sync.Mutex
	blocks  []*block.Block
	appends []int // blocks of each append
}

func newMemStore(genesis *block.Block) *memStore {
	return &memStore{blocks: []*block.Block{genesis}}
}

func (m *memStore) persist(blocks []*block.Block) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.blocks = append(m.blocks, blocks...)
	m.appends = append(m.appends, len(blocks))
	return nil
}

func (m *memStore) get(h block.Height) (*block.Block, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if h >= uint64(len(m.blocks)) {
		return nil, errors.New("no such block")
	}
	return m.blocks[h], nil
}

func (m *memStore) tip() *block.Block {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.blocks[len(m.blocks)-1]
}

// options are those of an orderer over a store in memory.
func (m *memStore) options() Options {
	genesis := m.blocks[0]
	return Options{
		Network:  genesis.Genesis.NetworkID(),
		ConfigID: genesis.ConfigID,
		Orderers: genesis.Genesis.Orderers,
		Signer:   signer,
		Tip:      m.tip(),
		Persist:  m.persist,
		Source:   m.get,
		Cutter:   cutter.Config{MaxTxs: 10, MaxBytes: 1 << 20, Timeout: 2000, Pipeline: 1},
		Remember: 1000,
	}
}

func mustStart(tb testing.TB, opts Options) *Orderer {
	tb.Helper()
	o, err := Start(opts)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = o.Close() }) // a test that minds closes by itself
	return o
}

// collect returns the durable blocks from 1 on, when they have n transactions.
func collect(tb testing.TB, o *Orderer, n int) []*block.Block {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	var blocks []*block.Block
	enough := errors.New("enough")
	err := o.Deliver(ctx, 1, func(b *block.Block) error {
		blocks = append(blocks, b)
		o.Done(b.Number)
		if n -= len(b.Txs); n <= 0 {
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) {
		tb.Fatalf("%d transactions are missing: %v", n, err)
	}
	return blocks
}

// TestConformance runs the suite of ordering services on a block store on disk.
func TestConformance(t *testing.T) {
	orderingtest.Run(t, func(t *testing.T, setup orderingtest.Setup) *orderingtest.Cluster {
		return onDisk(t, t.TempDir(), testGenesis(t), setup)
	})
}

func onDisk(t *testing.T, dir string, genesis *block.Block, setup orderingtest.Setup) *orderingtest.Cluster {
	store, err := blockstore.Open(dir, blockstore.Options{Genesis: genesis.Genesis})
	if err != nil {
		t.Fatal(err)
	}
	height, _ := store.Tip()
	tip, err := store.Get(height)
	if err != nil {
		t.Fatal(err)
	}
	c := &orderingtest.Cluster{
		Network:  genesis.Genesis.NetworkID(),
		Genesis:  genesis,
		Orderers: genesis.Genesis.Orderers,
		ConfigID: genesis.ConfigID,
	}
	o, err := Start(Options{
		Network: c.Network, ConfigID: c.ConfigID, Orderers: c.Orderers, Signer: signer,
		Tip: tip, Persist: store.AppendBatch, Source: store.Get,
		Cutter: setup.Cutter, Queue: setup.Queue, Remember: genesis.Genesis.Params.ValidityWindow,
	})
	if err != nil {
		t.Fatal(err)
	}
	var once sync.Once
	stop := func() {
		once.Do(func() {
			if err := o.Close(); err != nil {
				t.Error(err)
			}
			if err := store.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(stop)
	c.Members = []ordering.Service{o}
	c.Restart = func() *orderingtest.Cluster {
		stop()
		return onDisk(t, dir, genesis, setup)
	}
	return c
}

// TestTimestamps: time moves on by a microsecond at least, whatever the clock
// does, over restarts too.
func TestTimestamps(t *testing.T) {
	store := newMemStore(testGenesis(t))
	first := store.tip().Timestamp
	clock := []int64{first + 100, first + 100, first - 5000, 0, first + 50, first + 900, first + 200}
	want := []int64{first + 100, first + 101, first + 102, first + 103, first + 104, first + 900, first + 901}
	maker := orderingtest.NewTxMaker(store.options().Network)
	for i := range clock {
		opts := store.options()
		opts.Clock = func() int64 { return clock[i] }
		o := mustStart(t, opts)
		if err := o.Submit(t.Context(), maker.Next()); err != nil {
			t.Fatal(err)
		}
		if err := o.Close(); err != nil {
			t.Fatal(err)
		}
		if got := store.tip().Timestamp; got != want[i] {
			t.Errorf("block %d has time %d, want %d", i+1, got-first, want[i]-first)
		}
	}
}

// TestBlocksShareASync holds the disk up and expects what was cut meanwhile in
// one append, and nothing of it delivered before.
func TestBlocksShareASync(t *testing.T) {
	store := newMemStore(testGenesis(t))
	opts := store.options()
	opts.Cutter.MaxTxs, opts.Cutter.Pipeline = 1, 0 // every transaction a block
	release := make(chan struct{})
	opts.Persist = func(blocks []*block.Block) error {
		<-release
		return store.persist(blocks)
	}
	o := mustStart(t, opts)
	maker := orderingtest.NewTxMaker(opts.Network)
	const n = 20
	for _, tx := range maker.Some(n) {
		if err := o.Submit(t.Context(), tx); err != nil {
			t.Fatal(err)
		}
	}
	for o.Status().InFlight < n {
		time.Sleep(time.Millisecond)
	}
	if got := o.Status().Height; got != 0 {
		t.Fatalf("height %d before anything is durable", got)
	}
	close(release)
	if got := len(collect(t, o, n)); got != n {
		t.Errorf("%d blocks, want %d", got, n)
	}
	if err := o.Close(); err != nil {
		t.Fatal(err)
	}
	if appends := len(store.appends); appends > 3 {
		t.Errorf("%d blocks that waited for one sync took %d (%v)", n, appends, store.appends)
	}
}

// TestPersistFails: a store that fails ends the service, and what is not
// durable is never delivered.
func TestPersistFails(t *testing.T) {
	store := newMemStore(testGenesis(t))
	opts := store.options()
	broken := errors.New("disk on fire")
	opts.Persist = func(blocks []*block.Block) error {
		if blocks[0].Number >= 3 {
			return broken
		}
		return store.persist(blocks[:1])
	}
	opts.Cutter.MaxTxs = 1
	o := mustStart(t, opts)
	maker := orderingtest.NewTxMaker(opts.Network)
	delivered := 0
	err := o.Deliver(t.Context(), 0, func(b *block.Block) error {
		delivered = int(b.Number)
		o.Done(b.Number)
		return o.Submit(t.Context(), maker.Next())
	})
	if !errors.Is(err, broken) || delivered != 2 {
		t.Errorf("Deliver ends with %v after block %d", err, delivered)
	}
	if err := o.Submit(t.Context(), maker.Next()); !errors.Is(err, broken) {
		t.Errorf("Submit says %v", err)
	}
	if err := o.Status().Err; !errors.Is(err, broken) {
		t.Errorf("Status says %v", err)
	}
	if err := o.Close(); !errors.Is(err, broken) {
		t.Errorf("Close says %v", err)
	}
}

// TestCloseKeepsWhatWasAccepted, and takes nothing afterwards.
func TestCloseKeepsWhatWasAccepted(t *testing.T) {
	store := newMemStore(testGenesis(t))
	opts := store.options()
	opts.Cutter = cutter.Config{MaxTxs: 4, MaxBytes: 1 << 20, Timeout: 1e9, MaxInFlight: 1}
	o := mustStart(t, opts)
	maker := orderingtest.NewTxMaker(opts.Network)
	for _, tx := range maker.Some(30) {
		if err := o.Submit(t.Context(), tx); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := o.Close(); err != nil {
			t.Fatal(err)
		}
	}
	total := 0
	for _, b := range store.blocks {
		total += len(b.Txs)
	}
	if total != 30 {
		t.Errorf("%d of 30 accepted transactions are ordered", total)
	}
	if err := o.Submit(t.Context(), maker.Next()); !errors.Is(err, ordering.ErrClosed) {
		t.Errorf("Submit after Close: %v", err)
	}
	err := o.Deliver(t.Context(), 0, func(*block.Block) error { return nil })
	if !errors.Is(err, ordering.ErrClosed) {
		t.Errorf("Deliver after Close: %v", err)
	}
}

// TestSourceFails: Deliver passes the error on.
func TestSourceFails(t *testing.T) {
	store := newMemStore(testGenesis(t))
	opts := store.options()
	o := mustStart(t, opts)
	maker := orderingtest.NewTxMaker(opts.Network)
	for i := range 2 * ordering.KeptBlocks {
		if err := o.Submit(t.Context(), maker.Next()); err != nil {
			t.Fatal(err)
		}
		collect(t, o, i+1)
	}
	store.mu.Lock()
	store.blocks = store.blocks[:1]
	store.mu.Unlock()
	err := o.Deliver(t.Context(), 1, func(*block.Block) error { return nil })
	if err == nil || !strings.Contains(err.Error(), "no such block") {
		t.Errorf("Deliver returns %v", err)
	}
	if _, err := Start(Options{
		Network: opts.Network, ConfigID: opts.ConfigID, Orderers: opts.Orderers, Signer: signer, Tip: o.tail.Get(ordering.KeptBlocks + 1),
		Persist: store.persist, Source: store.get, Cutter: opts.Cutter, Remember: 10,
	}); err == nil {
		t.Error("an orderer starts without the blocks it has to remember")
	}
}

// TestRecentForgets: a transaction is remembered for as long as a block may
// contain it, but no longer than the window, and memory stays bounded.
func TestRecentForgets(t *testing.T) {
	const window = 5
	r := newRecent(window)
	key := func(height uint64) content { return content{byte(height), byte(height >> 8)} }
	// One transaction in every block, valid until it, for two more, or for ever.
	kept := func(height uint64) uint64 { return []uint64{0, 2, window}[height%3] }
	for h := uint64(1); h <= 300; h++ {
		validUntil := []uint64{h, h + 2, 1 << 40}[h%3]
		if !r.add(key(h), validUntil, h) || r.add(key(h), validUntil, h) {
			t.Fatalf("height %d: a new transaction is known or a known one new", h)
		}
		r.passed(h)
		for old := h - min(h-1, 10); old <= h; old++ {
			if _, known := r.known[key(old)]; known != (h < old+kept(old)) {
				t.Fatalf("height %d passed: the transaction of block %d is remembered: %v", h, old, known)
			}
		}
		if len(r.known) > window || len(r.expiring) > window {
			t.Fatalf("height %d: %d transactions in %d lists", h, len(r.known), len(r.expiring))
		}
	}
}

func TestOptionsValidate(t *testing.T) {
	store := newMemStore(testGenesis(t))
	for name, spoil := range map[string]func(*Options){
		"no signer":       func(o *Options) { o.Signer = nil },
		"foreign signer":  func(o *Options) { o.Signer = identity.NewSigner([32]byte{9}) },
		"no tip":          func(o *Options) { o.Tip = nil },
		"no store":        func(o *Options) { o.Persist = nil },
		"no source":       func(o *Options) { o.Source = nil },
		"negative queue":  func(o *Options) { o.Queue = -1 },
		"no orderers":     func(o *Options) { o.Orderers.Keys = nil },
		"quorum of two":   func(o *Options) { o.Orderers.Quorum = 2 },
		"blocks of none":  func(o *Options) { o.Cutter.MaxTxs = 0 },
		"endless timeout": func(o *Options) { o.Cutter.Timeout = -1 },
	} {
		opts := store.options()
		spoil(&opts)
		if o, err := Start(opts); err == nil {
			t.Errorf("an orderer starts with %s", name)
			_ = o.Close()
		}
	}
}

// benchmarkOrderer pushes transactions through an orderer whose blocks are done
// as soon as they are delivered.
func benchmarkOrderer(b *testing.B, opts Options) {
	opts.Cutter = cutter.Config{MaxTxs: 500, MaxBytes: 4 << 20, Timeout: 100_000, Pipeline: 1}
	txs := orderingtest.NewTxMaker(opts.Network).Some(20_000)
	o := mustStart(b, opts)
	left := b.N
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		_ = o.Deliver(context.Background(), opts.Tip.Number+1, func(blk *block.Block) error { // ends by its own error
			o.Done(blk.Number)
			if left -= len(blk.Txs); left <= 0 {
				return errors.New("enough")
			}
			return nil
		})
	}()
	b.ResetTimer()
	for i := range b.N {
		tx := txs[i%len(txs)]
		if i >= len(txs) { // signing would be all that is measured
			raw := append([]byte(nil), tx.Encode()...)
			n := len(raw)
			raw[n-1], raw[n-2], raw[n-3] = byte(i), byte(i>>8), byte(i>>16)
			tx, _ = block.DecodeTx(raw)
		}
		if err := o.Submit(context.Background(), tx); err != nil {
			b.Fatal(err)
		}
	}
	<-finished
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "tx/s")
	b.ReportMetric(float64(b.N)/float64(o.Status().Height-opts.Tip.Number), "tx/block")
}

func BenchmarkInMemory(b *testing.B) {
	benchmarkOrderer(b, newMemStore(testGenesis(b)).options())
}

func BenchmarkOnDisk(b *testing.B) {
	genesis := testGenesis(b)
	store, err := blockstore.Open(b.TempDir(), blockstore.Options{Genesis: genesis.Genesis})
	if err != nil {
		b.Fatal(err)
	}
	opts := newMemStore(genesis).options()
	opts.Persist, opts.Source = store.AppendBatch, store.Get
	b.Cleanup(func() { _ = store.Close() })
	benchmarkOrderer(b, opts)
}
