package blockstore

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/tallystick/tallystick/blockstore/block"
)

// crashPoint is a file system as a crash may have left it, and the last block
// whose Append had returned by then (-1: not even Open had).
type crashPoint struct {
	fs    *vfs.MemFS
	acked int
}

// recorder calls point before every operation that writes.
func recorder(point func(op errorfs.Op) error) errorfs.Injector {
	return errorfs.InjectorFunc(func(op errorfs.Op) error {
		switch op.Kind {
		case errorfs.OpFileClose, errorfs.OpLock, errorfs.OpFileReadAt, errorfs.OpFileRead:
			return nil
		}
		if op.Kind.ReadOrWrite() == errorfs.OpIsRead {
			return nil
		}
		return point(op)
	})
}

// crashPoints runs work on a forgetting file system and returns one state for
// each write or sync and seed, of everything that a crash at that moment might
// leave.
func crashPoints(mem *vfs.MemFS, seeds uint64, work func(fs vfs.FS, ack func(height int))) []crashPoint {
	acked := -1
	var points []crashPoint
	record := func() {
		for seed := range seeds {
			points = append(points, crashPoint{
				fs: mem.CrashClone(vfs.CrashCloneCfg{
					UnsyncedDataPercent: []int{0, 50, 100, 20, 80}[seed%5],
					RNG:                 rand.New(rand.NewPCG(seed, uint64(len(points)))),
				}),
				acked: acked,
			})
		}
	}
	fs := errorfs.Wrap(mem, recorder(func(errorfs.Op) error { record(); return nil }))
	work(fs, func(height int) { acked = height })
	record()
	return points
}

// checkCrash opens what a crash left: every acknowledged block must be there,
// nothing that is there may be wrong, and the store must go on.
func checkCrash(t *testing.T, fs vfs.FS, acked int, segmentBytes int64, chain []*block.Block) {
	t.Helper()
	s := mustOpen(t, testOptions(fs, segmentBytes))
	height, _ := s.Tip()
	if int(height) < acked {
		t.Fatalf("block %d was acknowledged, the tip is %d: %+v", acked, height, s.Recovery())
	}
	checkStore(t, s, chain[:height+1])
	if err := s.AppendBatch(chain[height+1:]); err != nil {
		t.Fatal(err)
	}
	checkStore(t, s, chain)
	mustClose(t, s)
	if _, err := Verify(fs, testDir, Checks{}); err != nil {
		t.Fatal(err)
	}
}

var crashSeeds = flag.Uint64("crash-seeds", 2, "states to derive from each crash in TestCrashAnywhere")

// TestCrashAnywhere crashes at every write and sync of a store's life, then
// again at every write and sync of each recovery.
func TestCrashAnywhere(t *testing.T) {
	chain := testChain(t, 11)
	total := 0
	for _, segmentBytes := range []int64{segmentHeaderBytes, 2500, 1 << 20} {
		for _, batch := range []int{1, 4} {
			mem := vfs.NewCrashableMem()
			points := crashPoints(mem, *crashSeeds, func(fs vfs.FS, ack func(int)) {
				s := mustOpen(t, testOptions(fs, segmentBytes))
				ack(0)
				for i := 1; i < len(chain); i += batch {
					end := min(i+batch, len(chain))
					if err := s.AppendBatch(chain[i:end]); err != nil {
						t.Fatal(err)
					}
					ack(end - 1)
					if i == 1+batch { // reopen once in between
						mustClose(t, s)
						s = mustOpen(t, testOptions(fs, segmentBytes))
					}
				}
				mustClose(t, s)
			})
			for i, p := range points {
				// The state as it is now serves the second crash.
				again := crashPoints(p.fs, 1, func(fs vfs.FS, ack func(int)) {
					ack(p.acked)
					checkCrash(t, fs, p.acked, segmentBytes, chain)
				})
				if i%40 == 0 {
					for _, q := range again {
						checkCrash(t, q.fs, q.acked, segmentBytes, chain)
						total++
					}
				}
				total++
			}
		}
	}
	t.Logf("%d crashes", total)
}

// TestCrashTearsLargeBatches writes batches of many pages, of which a crash
// keeps some: intact records then stand behind lost ones.
func TestCrashTearsLargeBatches(t *testing.T) {
	chain := testChain(t, 0)
	for i := range 12 {
		txs := []*block.Tx{testTx(t, uint64(i), make([]byte, 3000+i*700))}
		chain = append(chain, nextBlock(chain[i], txs...))
	}
	torn := 0
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		segmentBytes := []int64{1 << 20, 20_000}[seed%2]
		split := 1 + rng.IntN(11)
		crashed := crashInLastSync(t, rng, segmentBytes, chain[1:split], chain[split:])
		if report, err := Verify(crashed, testDir, Checks{}); err != nil {
			var c *CorruptError
			if !errors.As(err, &c) || c.Height != report.Blocks {
				t.Fatalf("seed %d: %v", seed, err)
			}
			torn++
		}
		again := crashPoints(crashed, 1, func(fs vfs.FS, _ func(int)) {
			checkCrash(t, fs, split-1, segmentBytes, chain)
		})
		if seed%10 < 2 {
			for _, p := range again {
				checkCrash(t, p.fs, split-1, segmentBytes, chain)
			}
		}
	}
	if torn < 100 {
		t.Errorf("only %d of 300 crashes tore a record: the test is too weak", torn)
	}
}

// crashInLastSync appends two batches and returns what a crash in the last sync
// of a record leaves, each page with a random probability.
func crashInLastSync(t *testing.T, rng *rand.Rand, segmentBytes int64, first, second []*block.Block) *vfs.MemFS {
	t.Helper()
	mem := vfs.NewCrashableMem()
	var crashed *vfs.MemFS
	s := mustOpen(t, testOptions(errorfs.Wrap(mem, recorder(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileSyncData {
			crashed = mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 1 + rng.IntN(99), RNG: rng})
		}
		return nil
	})), segmentBytes))
	for _, batch := range [][]*block.Block{first, second} {
		if err := s.AppendBatch(batch); err != nil {
			t.Fatal(err)
		}
	}
	mustClose(t, s)
	return crashed
}

// unbornSegment makes a store of which the creation of segment 1 was
// interrupted, and returns the blocks in segment 0.
func unbornSegment(t *testing.T, mem *vfs.MemFS, chain []*block.Block) {
	t.Helper()
	s := mustOpen(t, testOptions(mem, 1<<20))
	if err := s.AppendBatch(chain[1:]); err != nil {
		t.Fatal(err)
	}
	mustClose(t, s)
	f, err := mem.Create(mem.PathJoin(testDir, segmentName(1)), writeCategory)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte(segmentMagic)); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Sync(), f.Close(), syncDir(mem, testDir)); err != nil {
		t.Fatal(err)
	}
}

// TestUnbornSegment removes a segment whose creation was interrupted. The one
// before is written to again, and may then have a torn tail of its own.
func TestUnbornSegment(t *testing.T) {
	chain := testChain(t, 5)
	for i := range 6 {
		chain = append(chain, nextBlock(chain[5+i], testTx(t, uint64(i), make([]byte, 5000))))
	}
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 3))
		mem := vfs.NewCrashableMem()
		unbornSegment(t, mem, chain[:6])
		s := mustOpen(t, testOptions(mem, 1<<20))
		checkStore(t, s, chain[:6])
		var crashed *vfs.MemFS
		s.file.File = errorfs.WrapFile(s.file.File, recorder(func(op errorfs.Op) error {
			if op.Kind == errorfs.OpFileSyncData {
				crashed = mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 1 + rng.IntN(99), RNG: rng})
			}
			return nil
		}))
		if err := s.AppendBatch(chain[6:]); err != nil {
			t.Fatal(err)
		}
		mustClose(t, s)
		checkCrash(t, crashed, 5, 1<<20, chain)
	}
}

// TestUnbornSegmentProvesDurability damages the last record before a segment
// whose creation had begun: it was durable and must not be cut.
func TestUnbornSegmentProvesDurability(t *testing.T) {
	chain := testChain(t, 5)
	mem := vfs.NewCrashableMem()
	unbornSegment(t, mem, chain)
	content := readFile(t, mem, segmentName(0))
	content[len(content)-1] ^= 1
	writeFile(t, mem, segmentName(0), content)
	_, err := Open(testDir, testOptions(mem, 1<<20))
	var c *CorruptError
	if !errors.As(err, &c) || c.Height != 5 {
		t.Errorf("got %v", err)
	}
}

// TestFailedWrites lets every write and sync fail once: the store must refuse
// to go on, and lose nothing that it had acknowledged.
func TestFailedWrites(t *testing.T) {
	chain := testChain(t, 12)
	for fail := 0; ; fail++ {
		mem := vfs.NewCrashableMem()
		n, hit := 0, ""
		fs := errorfs.Wrap(mem, recorder(func(op errorfs.Op) error {
			n++
			if n-1 == fail {
				hit = fmt.Sprintf("%v %s", op.Kind, op.Path)
				return errorfs.ErrInjected
			}
			return nil
		}))
		acked := -1
		s, err := Open(testDir, testOptions(fs, 1500))
		if err == nil {
			acked = 0
			for _, b := range chain[1:] {
				if err = s.Append(b); err != nil {
					break
				}
				acked++
			}
			if err != nil {
				if again := s.Append(chain[acked+1]); again == nil {
					t.Fatalf("%s: appended after a failure", hit)
				}
				checkStore(t, s, chain[:acked+1])
			}
			mustClose(t, s)
		}
		if hit == "" {
			if err != nil {
				t.Fatal(err)
			}
			if fail < 20 {
				t.Errorf("only %d operations could fail", fail)
			}
			return
		}
		if err == nil {
			t.Fatalf("%s: the failure was not noticed", hit)
		}
		if !errors.Is(err, errorfs.ErrInjected) {
			t.Fatalf("%s: %v", hit, err)
		}
		for _, percent := range []int{0, 100} {
			clone := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rand.New(rand.NewPCG(1, 1))})
			checkCrash(t, clone, acked, 1500, chain)
		}
		// The process starts again without a crash of the machine; what it
		// finds may never have been synced, but counts from then on.
		s = mustOpen(t, testOptions(mem, 1500))
		tip, _ := s.Tip()
		forgotten := mem.CrashClone(vfs.CrashCloneCfg{})
		checkCrash(t, forgotten, int(tip), 1500, chain)
		if err := s.AppendBatch(chain[tip+1:]); err != nil {
			t.Fatal(err)
		}
		forgotten = mem.CrashClone(vfs.CrashCloneCfg{})
		mustClose(t, s)
		checkCrash(t, forgotten, len(chain)-1, 1500, chain)
	}
}
