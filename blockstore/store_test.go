package blockstore

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/tallystick/tallystick/blockstore/block"
)

func TestAppendAndReopen(t *testing.T) {
	chain := testChain(t, 60)
	for _, segmentBytes := range []int64{segmentHeaderBytes, 1000, 4096, 0} {
		for _, batch := range []int{1, 2, 7, 60} {
			t.Run(fmt.Sprintf("segment=%d/batch=%d", segmentBytes, batch), func(t *testing.T) {
				fs := vfs.NewMem()
				s := mustOpen(t, testOptions(fs, segmentBytes))
				checkStore(t, s, chain[:1])
				for i := 1; i < len(chain); i += batch {
					end := min(i+batch, len(chain))
					if err := s.AppendBatch(chain[i:end]); err != nil {
						t.Fatal(err)
					}
					checkStore(t, s, chain[:end])
				}
				if s.NetworkID() != chain[0].ConfigID {
					t.Errorf("network is %s", s.NetworkID())
				}
				mustClose(t, s)
				for range 2 {
					s = mustOpen(t, testOptions(fs, segmentBytes))
					checkStore(t, s, chain)
					if r := s.Recovery(); r != (Recovery{}) {
						t.Errorf("something was repaired: %+v", r)
					}
					mustClose(t, s)
				}
				report, err := Verify(fs, testDir, Checks{Network: chain[0].ConfigID})
				if err != nil || report.Tip != 60 || report.TipHash != chain[60].Hash() || report.Blocks != 61 || report.Txs != 90 {
					t.Errorf("%+v, %v", report, err)
				}
			})
		}
	}
}

func TestOnOperatingSystem(t *testing.T) {
	chain := testChain(t, 20)
	dir := t.TempDir() + "/a/b"
	for n := 1; n <= 20; n++ {
		s, err := Open(dir, Options{Genesis: testGenesis(), SegmentBytes: 2000})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Open(dir, Options{}); err == nil {
			t.Fatal("opened twice")
		}
		if err := s.Append(chain[n]); err != nil {
			t.Fatal(err)
		}
		checkStore(t, s, chain[:n+1])
		mustClose(t, s)
	}
	if _, err := Verify(vfs.Default, dir, Checks{}); err != nil {
		t.Error(err)
	}
}

func TestOpenRefuses(t *testing.T) {
	fs := vfs.NewMem()
	if _, err := Open(testDir, Options{FS: fs}); !errors.Is(err, ErrNoGenesis) {
		t.Errorf("without genesis: %v", err)
	}
	for _, size := range []int64{-1, segmentHeaderBytes - 1, MaxSegmentBytes + 1} {
		if _, err := Open(testDir, testOptions(fs, size)); err == nil {
			t.Errorf("segments of %d bytes", size)
		}
	}
	mustClose(t, mustOpen(t, testOptions(fs, 0)))
	other := testGenesis()
	other.Network = "other"
	if _, err := Open(testDir, Options{FS: fs, Genesis: other}); err == nil {
		t.Error("opened with another genesis")
	}
	mustClose(t, mustOpen(t, Options{FS: fs})) // none is needed any more
}

func TestAppendRefuses(t *testing.T) {
	chain := testChain(t, 3)
	refused := errors.New("no quorum")
	opts := testOptions(vfs.NewMem(), 0)
	opts.Verify = func(b *block.Block) error {
		if string(b.Certificate) != "signed" {
			return refused
		}
		return nil
	}
	s := mustOpen(t, opts)
	defer mustClose(t, s)
	if err := s.Append(chain[1]); err != nil {
		t.Fatal(err)
	}
	fork := nextBlock(chain[0], testTx(t, 1, nil))
	uncertified := nextBlock(chain[1])
	uncertified.Certificate = nil
	late := &block.Block{Number: 2, PrevHash: chain[1].Hash(), ConfigID: chain[1].ConfigID, Timestamp: chain[1].Timestamp}
	for name, b := range map[string]*block.Block{
		"again":     chain[1],
		"gap":       chain[3],
		"genesis":   chain[0],
		"fork":      nextBlock(fork),
		"time":      late,
		"oversized": {Number: 2, Certificate: make([]byte, block.MaxCertificateBytes+1)},
	} {
		if err := s.Append(b); err == nil {
			t.Errorf("%s: appended", name)
		}
	}
	if err := s.Append(uncertified); !errors.Is(err, refused) {
		t.Errorf("without certificate: %v", err)
	}
	checkStore(t, s, chain[:2])
	// A batch is appended up to the block that is refused.
	if err := s.AppendBatch([]*block.Block{chain[2], chain[3], chain[3]}); err == nil {
		t.Error("a batch with a block twice is appended")
	}
	checkStore(t, s, chain)
}

func TestClosed(t *testing.T) {
	chain := testChain(t, 1)
	s := mustOpen(t, testOptions(vfs.NewMem(), 0))
	mustClose(t, s)
	if err := s.Append(chain[1]); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	if _, err := s.Get(0); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	if _, _, _, err := s.FindTx(block.TxID{}); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	if err := s.Close(); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
}

func TestNotFound(t *testing.T) {
	s := mustOpen(t, testOptions(vfs.NewMem(), 0))
	defer mustClose(t, s)
	for _, h := range []uint64{1, 1 << 63, 1<<64 - 1} {
		if _, err := s.Get(h); !errors.Is(err, ErrNotFound) {
			t.Errorf("%d: %v", h, err)
		}
	}
}

// TestFirstOccurrence repeats a transaction in its block, its segment and a
// later segment.
func TestFirstOccurrence(t *testing.T) {
	chain := testChain(t, 0)
	tx, other := testTx(t, 1, nil), testTx(t, 2, make([]byte, 3000))
	chain = append(chain, nextBlock(chain[0], other, tx, tx))
	for i := range 4 {
		chain = append(chain, nextBlock(chain[i+1], tx, testTx(t, uint64(i+3), make([]byte, 1500))))
	}
	fs := vfs.NewMem()
	s := mustOpen(t, testOptions(fs, 5000))
	for range 2 {
		if height, _ := s.Tip(); height == 0 {
			if err := s.AppendBatch(chain[1:]); err != nil {
				t.Fatal(err)
			}
		}
		if h, p, ok, err := s.FindTx(tx.ID()); h != 1 || p != 2 || !ok || err != nil {
			t.Errorf("found at %d/%d: %v, %v", h, p, ok, err)
		}
		if len(s.sealed) == 0 {
			t.Error("there is one segment only")
		}
		mustClose(t, s)
		s = mustOpen(t, testOptions(fs, 5000))
	}
	mustClose(t, s)
}

// TestManyTransactions makes a side index of several pages.
func TestManyTransactions(t *testing.T) {
	chain := testChain(t, 0)
	n := uint64(0)
	for range 12 {
		var txs []*block.Tx
		for range 100 {
			n++
			txs = append(txs, testTx(t, n, nil))
		}
		chain = append(chain, nextBlock(chain[len(chain)-1], txs...))
	}
	fs := vfs.NewMem()
	s := mustOpen(t, testOptions(fs, 128<<10))
	if err := s.AppendBatch(chain[1:]); err != nil {
		t.Fatal(err)
	}
	if len(s.sealed) == 0 || s.sealed[0].entries <= 3*entriesPerPage {
		t.Fatal("the segments are too small for this test")
	}
	checkStore(t, s, chain)
	rng := rand.New(rand.NewPCG(1, 1))
	for range 2000 {
		var id block.TxID
		for i := range id {
			id[i] = byte(rng.Uint32())
		}
		switch rng.IntN(10) {
		case 0:
			id = block.TxID{}
		case 1:
			for i := range id {
				id[i] = 0xff
			}
		case 2: // a neighbour of one that is there
			id = chain[1+rng.IntN(12)].Txs[rng.IntN(100)].ID()
			id[31] ^= 1
		}
		if _, _, ok, err := s.FindTx(id); ok || err != nil {
			t.Fatalf("%s: %v, %v", id, ok, err)
		}
	}
	mustClose(t, s)
}

// TestSideIndexIsACache removes and damages side indexes before and after the
// store is opened.
func TestSideIndexIsACache(t *testing.T) {
	chain := testChain(t, 40)
	fs := vfs.NewMem()
	s := mustOpen(t, testOptions(fs, 2000))
	if err := s.AppendBatch(chain[1:]); err != nil {
		t.Fatal(err)
	}
	mustClose(t, s)
	pristine := takeSnapshot(t, fs)
	name := segmentName(1) + indexSuffix
	intact := pristine[name]
	damages := map[string]func() []byte{
		"missing": nil,
		"empty":   func() []byte { return nil },
		"head":    func() []byte { b := append([]byte(nil), intact...); b[30] ^= 1; return b },
		"page":    func() []byte { b := append([]byte(nil), intact...); b[len(b)-9] ^= 1; return b },
		"cut":     func() []byte { return intact[:len(intact)-1] },
		"other":   func() []byte { return pristine[segmentName(0)+indexSuffix] },
	}
	for damage, content := range damages {
		for _, whileOpen := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/open=%v", damage, whileOpen), func(t *testing.T) {
				fs := pristine.restore(t)
				apply := func() {
					if content == nil {
						if err := fs.Remove(fs.PathJoin(testDir, name)); err != nil {
							t.Fatal(err)
						}
						return
					}
					writeFile(t, fs, name, content())
				}
				if !whileOpen {
					apply()
				}
				s := mustOpen(t, testOptions(fs, 2000))
				if whileOpen {
					apply()
				}
				checkStore(t, s, chain)
				mustClose(t, s)
				if got := readFile(t, fs, name); damage != "head" && string(got) != string(intact) {
					t.Error("the index was not restored")
				}
			})
		}
	}
}

// TestProperty runs random operations against a slice of blocks.
func TestProperty(t *testing.T) {
	chain := testChain(t, 150)
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 0))
		fs := vfs.NewMem()
		opts := testOptions(fs, int64(segmentHeaderBytes+rng.IntN(5000)))
		s := mustOpen(t, opts)
		tip := 0
		for range 60 {
			switch rng.IntN(6) {
			case 0, 1, 2:
				end := min(tip+rng.IntN(6), len(chain)-1)
				if err := s.AppendBatch(chain[tip+1 : end+1]); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				tip = end
			case 3:
				mustClose(t, s)
				opts.SegmentBytes = int64(segmentHeaderBytes + rng.IntN(5000)) // may change
				s = mustOpen(t, opts)
			case 4:
				if err := s.Append(chain[rng.IntN(tip+1)]); err == nil {
					t.Fatalf("seed %d: an old block was appended", seed)
				}
			case 5:
				h := rng.IntN(tip + 1)
				if b, err := s.Get(uint64(h)); err != nil || b.Hash() != chain[h].Hash() {
					t.Fatalf("seed %d: block %d: %v", seed, h, err)
				}
			}
		}
		checkStore(t, s, chain[:tip+1])
		mustClose(t, s)
		if report, err := Verify(fs, testDir, Checks{}); err != nil || report.Tip != uint64(tip) {
			t.Fatalf("seed %d: %+v, %v", seed, report, err)
		}
	}
}

// TestConcurrentReaders reads while blocks are appended and segments sealed.
func TestConcurrentReaders(t *testing.T) {
	chain := testChain(t, 120)
	s := mustOpen(t, testOptions(vfs.NewMem(), 3000))
	done := make(chan struct{})
	var wg sync.WaitGroup
	for r := range 3 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(r), 0))
			for {
				select {
				case <-done:
					return
				default:
				}
				tip, hash := s.Tip()
				if hash != chain[tip].Hash() {
					t.Error("tip and hash are of different blocks")
					return
				}
				want := chain[rng.IntN(int(tip)+1)]
				b, err := s.Get(want.Number)
				if err != nil || b.Hash() != want.Hash() {
					t.Errorf("block %d: %v", want.Number, err)
					return
				}
				if len(want.Txs) > 0 {
					if h, _, ok, err := s.FindTx(want.Txs[0].ID()); h != want.Number || !ok || err != nil {
						t.Errorf("transaction of block %d: found at %d, %v, %v", want.Number, h, ok, err)
						return
					}
				}
			}
		})
	}
	for _, b := range chain[1:] {
		if err := s.Append(b); err != nil {
			t.Error(err)
		}
	}
	close(done)
	wg.Wait()
	mustClose(t, s)
}

func TestSegmentNames(t *testing.T) {
	for _, n := range []uint32{0, 7, 99999999, 100000000, 1<<32 - 1} {
		if got, ok := parseSegmentName(segmentName(n)); !ok || got != n {
			t.Errorf("%s: %d, %v", segmentName(n), got, ok)
		}
	}
	for _, s := range []string{"", "LOCK", "pgblockstore-", "pgblockstore-1", "pgblockstore-000000001", "pgblockstore-0000000x", "pgblockstore-00000000.index", "pgblockstore--0000001", "pgblockstore-4294967296"} {
		if n, ok := parseSegmentName(s); ok {
			t.Errorf("%q is taken for segment %d", s, n)
		}
	}
}

func BenchmarkAppend(b *testing.B) {
	for _, sync := range []bool{true, false} {
		b.Run(fmt.Sprintf("fsync=%v", sync), func(b *testing.B) {
			opts := Options{Genesis: testGenesis(), FS: vfs.Default}
			dir := b.TempDir()
			if !sync {
				opts.FS, dir = noSyncFS{vfs.Default}, b.TempDir()
			}
			s, err := Open(dir, opts)
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			prev := testChain(b, 0)[0]
			var txs []*block.Tx
			for i := range 100 {
				txs = append(txs, testTx(b, uint64(i), make([]byte, 30)))
			}
			next := nextBlock(prev, txs...)
			b.SetBytes(int64(next.EncodedSize()))
			for b.Loop() {
				b.StopTimer()
				next = nextBlock(prev, txs...)
				b.StartTimer()
				if err := s.Append(next); err != nil {
					b.Fatal(err)
				}
				prev = next
			}
		})
	}
}

// noSyncFS leaves out the syncs, to tell their cost from ours.
type noSyncFS struct{ vfs.FS }

func (fs noSyncFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := fs.FS.Create(name, c)
	return noSyncFile{f}, err
}

type noSyncFile struct{ vfs.File }

func (noSyncFile) Sync() error     { return nil }
func (noSyncFile) SyncData() error { return nil }

func BenchmarkGet(b *testing.B) {
	s, err := Open(b.TempDir(), Options{Genesis: testGenesis(), SegmentBytes: 1 << 20})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	prev := testChain(b, 0)[0]
	n := uint64(0)
	var ids []block.TxID
	for range 200 {
		var txs []*block.Tx
		for range 100 {
			n++
			txs = append(txs, testTx(b, n, make([]byte, 30)))
		}
		ids = append(ids, txs[0].ID())
		prev = nextBlock(prev, txs...)
		if err := s.Append(prev); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("block", func(b *testing.B) {
		for i := uint64(0); b.Loop(); i++ {
			if _, err := s.Get(i % 200); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("tx", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			if _, _, ok, err := s.FindTx(ids[i%len(ids)]); err != nil || !ok {
				b.Fatal(err)
			}
		}
	})
}
