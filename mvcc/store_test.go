package mvcc

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/tallystick/tallystick/mvcc/rwset"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func openTest(t *testing.T, fs vfs.FS, opts Options) *Store {
	t.Helper()
	opts.FS, opts.Logger = fs, quiet()
	s, err := Open("db", opts)
	must(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

// commitRows commits a block in which every transaction writes one row.
func commitRows(t *testing.T, s *Store, rows ...string) {
	t.Helper()
	b := s.NewBlockBatch(s.Height() + 1)
	for i, kv := range rows {
		key, value, live := strings.Cut(kv, "=")
		x := s.Begin(AsOf(s.Height()), b.height*100+uint64(i))
		if live {
			must(t, x.Put([]byte(key), []byte(value)))
		} else {
			must(t, x.Delete([]byte(key)))
		}
		must(t, b.Apply(x, uint32(i+1)))
		must(t, x.Close())
	}
	must(t, s.Commit(b, false))
}

// TestHotKey has one key with far more versions than walks step over.
func TestHotKey(t *testing.T) {
	t.Parallel()
	s := openTest(t, vfs.NewMem(), Options{HeadCacheBytes: -1})
	const blocks, perBlock = 60, 10 // over streamFrom in all
	for b := range blocks {
		rows := []string{fmt.Sprintf("a=%d", b)}
		for i := range perBlock {
			if i == perBlock-1 && b%7 == 6 {
				rows = append(rows, "hot")
			} else {
				rows = append(rows, fmt.Sprintf("hot=%d/%d", b+1, i))
			}
		}
		commitRows(t, s, append(rows, fmt.Sprintf("z=%d", b))...)
	}
	all := rwset.Span{Start: []byte("a"), End: []byte("zz")}
	for at := uint64(0); at <= blocks; at += 3 {
		x := s.Begin(AsOf(at), 1)
		for _, reverse := range []bool{false, true} {
			var got []string
			it := x.Scan(all, reverse, ReadUnrecorded)
			for it.Next() {
				got = append(got, string(it.Key())+"="+string(it.Value()))
			}
			must(t, it.Close())
			var want []string
			if at > 0 {
				want = []string{fmt.Sprintf("a=%d", at-1), fmt.Sprintf("hot=%d/%d", at, perBlock-1), fmt.Sprintf("z=%d", at-1)}
				if at%7 == 0 {
					want = []string{want[0], want[2]}
				}
				if reverse {
					want[0], want[len(want)-1] = want[len(want)-1], want[0]
				}
			}
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("at %d reverse %v: %q, want %q", at, reverse, got, want)
			}
		}
		must(t, x.Close())
	}
	// History of everything as of block 50, created in blocks 5..45.
	x := s.Begin(AsOf(50), 1)
	defer x.Close()
	it := x.Versions(all, 5, 45)
	counts := map[string]int{}
	var last Version
	for it.Next() {
		c, d := it.Creator(), it.Deleter()
		if c.Block < 5 || c.Block > 45 || d.IsZero() || d.Block < c.Block || d.Block == c.Block && d.Seq <= c.Seq {
			t.Fatalf("%q: creator %+v deleter %+v", it.Key(), c, d)
		}
		key := string(it.Key())
		if key == "hot" {
			if want := fmt.Sprintf("%d/%d", c.Block, c.Seq-2); string(it.Value()) != want {
				t.Fatalf("hot %+v: %q, want %q", c, it.Value(), want)
			}
			if counts[key] > 0 && (c.Block < last.Block || c.Block == last.Block && c.Seq <= last.Seq) {
				t.Fatalf("hot %+v after %+v", c, last)
			}
			last = c
		}
		counts[key]++
	}
	must(t, it.Close())
	if want := map[string]int{"a": 41, "hot": 41*perBlock - 6, "z": 41}; !reflect.DeepEqual(counts, want) {
		t.Fatalf("versions %v, want %v", counts, want)
	}
}

// TestCrash crashes at random moments of a run of blocks, on a file system that
// forgets some or all of what was not synced. Whatever is left must be the
// state after some whole block, no older than the last synced one.
func TestCrash(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		fs := vfs.NewCrashableMem()
		s := openTest(t, fs, Options{MemTableBytes: 64 << 10})
		r := rand.New(rand.NewPCG(seed, 1))
		synced := uint64(0)
		for range 60 {
			h := s.Height() + 1
			b := s.NewBlockBatch(h)
			// Every block rewrites all of a fixed set of rows, and adds its own.
			for i := range 20 {
				must(t, b.Put(fmt.Appendf(nil, "k%02d", i), fmt.Appendf(nil, "%d-%s", h, strings.Repeat("x", r.IntN(300))), uint32(i), h))
			}
			must(t, b.Put(fmt.Appendf(nil, "own%04d", h), nil, 99, h))
			must(t, b.SetMeta("hash", fmt.Append(nil, h)))
			sync := r.IntN(6) == 0
			must(t, s.Commit(b, sync))
			if sync {
				synced = h
			}
			if r.IntN(5) > 0 {
				continue
			}
			clone := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: r.IntN(101), RNG: r})
			after, err := Open("db", Options{FS: clone, Logger: quiet()})
			must(t, err)
			if after.Height() < synced || after.Height() > h {
				t.Fatalf("height %d after the crash, synced %d, committed %d", after.Height(), synced, h)
			}
			checkWhole(t, after)
			must(t, after.Close())
		}
		must(t, s.Close())
	}
}

// checkWhole checks that rows, record and height of TestCrash tell of one block.
func checkWhole(t *testing.T, s *Store) {
	t.Helper()
	h := s.Height()
	meta, ok, err := s.Meta("hash")
	must(t, err)
	if ok != (h > 0) || ok && string(meta) != fmt.Sprint(h) {
		t.Fatalf("record %q at height %d", meta, h)
	}
	// A snapshot beyond the height would show rows of a later block.
	x := s.Begin(AsOf(h), 1)
	x.at = AsOf(h + 100)
	defer x.Close()
	it := x.Scan(rwset.Span{Start: []byte("k"), End: []byte("p")}, false, ReadUnrecorded)
	n := uint64(0)
	for ; it.Next(); n++ {
		if it.Key()[0] == 'k' && it.Version().Block != h || it.Version().Block > h {
			t.Fatalf("row %q of block %d at height %d", it.Key(), it.Version().Block, h)
		}
	}
	must(t, it.Close())
	if want := h + 20; h > 0 && n != want {
		t.Fatalf("%d rows at height %d", n, h)
	}
}

// TestReadErrors injects failing reads into everything that reads. An answer
// must be right or an error.
func TestReadErrors(t *testing.T) {
	t.Parallel()
	mem := vfs.NewMem()
	w := &world{t: t, r: rand.New(rand.NewPCG(5, 5)), opts: Options{FS: mem, Logger: quiet(), HeadCacheBytes: -1}}
	w.keys = testKeys(w.r, 300)
	w.m = newModel(w.keys)
	w.open()
	for range 80 {
		w.block()
	}
	must(t, w.s.db.Flush())
	must(t, w.s.Close())

	var on atomic.Bool
	var injected atomic.Int64
	var mu sync.Mutex
	r := rand.New(rand.NewPCG(6, 6))
	fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		mu.Lock()
		defer mu.Unlock()
		if on.Load() && op.Kind == errorfs.OpFileReadAt && r.IntN(3) == 0 {
			injected.Add(1)
			return errorfs.ErrInjected
		}
		return nil
	}))
	failed, answered := 0, 0
	for round := range 24 {
		// Reopened each time, and with next to no cache: reads reach the disk.
		s, err := Open("db", Options{FS: fs, Logger: quiet(), CacheBytes: 1, MemTableBytes: 64 << 10, HeadCacheBytes: int64(round%2) * 1 << 20})
		must(t, err)
		on.Store(true)
		at := w.snapshot()
		mt := &modelTxn{m: w.m, at: at}
		note := func(err error) bool {
			if err == nil {
				answered++
				return true
			}
			if !errors.Is(err, errorfs.ErrInjected) {
				t.Fatal(err)
			}
			failed++
			return false
		}
		x := s.Begin(at, 1)
		for range 10 {
			key := w.key()
			value, _, ok, err := x.Get([]byte(key), ReadRecorded)
			if row, wantOK := mt.get(key); note(err) && (ok != wantOK || string(value) != row) {
				t.Fatalf("get %q: %q %v, want %q %v", key, value, ok, row, wantOK)
			}
			span, reverse := w.span(), w.r.IntN(2) == 0
			want := mt.scan(span, reverse)
			it := x.Scan(span, reverse, ReadRecorded)
			n := 0
			for ; it.Next(); n++ {
				if g := (modelRow{string(it.Key()), string(it.Value()), it.Version()}); n >= len(want) || g != want[n] {
					t.Fatalf("scan row %d: %+v", n, g)
				}
			}
			if note(it.Close()) && n != len(want) {
				t.Fatalf("scan: %d rows, want %d", n, len(want))
			}
			h := x.Versions(span, 0, w.m.height)
			for h.Next() {
			}
			note(h.Close())
			fp := rwset.Footprint{Reads: []rwset.Read{{Span: span}, {Span: w.span(), Existence: true}, {Span: rwset.Point([]byte(w.key()))}}}
			got, changed, err := s.Changed(&fp, w.m.height-10, w.m.height)
			wantC, wantChanged := w.m.changed(&fp, w.m.height-10, w.m.height)
			if note(err) && (changed != wantChanged || !reflect.DeepEqual(got, wantC)) {
				t.Fatalf("changed %v %v, want %v %v", changed, got, wantChanged, wantC)
			}
		}
		on.Store(false)
		x.Close() // returns the error of the iterator once more
		s.Close()
	}
	if failed == 0 || answered == 0 || injected.Load() == 0 {
		t.Fatalf("%d injected, %d failed, %d answered: the test tests nothing", injected.Load(), failed, answered)
	}
}

// TestWriteErrors injects failing writes. The commit that meets one returns it,
// no other is accepted, and what a restart finds is a whole block.
func TestWriteErrors(t *testing.T) {
	t.Parallel()
	for n := range int32(12) {
		mem := vfs.NewCrashableMem()
		toggle := &errorfs.Toggle{Injector: errorfs.InjectorFunc(func() func(op errorfs.Op) error {
			var count atomic.Int32
			return func(op errorfs.Op) error {
				if op.Kind.ReadOrWrite() == errorfs.OpIsWrite && strings.HasSuffix(op.Path, ".log") && count.Add(1) > n {
					return errorfs.ErrInjected
				}
				return nil
			}
		}())}
		s, err := Open("db", Options{FS: errorfs.Wrap(mem, toggle), Logger: quiet()})
		must(t, err)
		toggle.On()
		var failure error
		for failure == nil {
			h := s.Height() + 1
			b := s.NewBlockBatch(h)
			for i := range 20 {
				must(t, b.Put(fmt.Appendf(nil, "k%02d", i), []byte("row"), uint32(i), h))
			}
			must(t, b.Put(fmt.Appendf(nil, "own%04d", h), nil, 99, h))
			must(t, b.SetMeta("hash", fmt.Append(nil, h)))
			if failure = s.Commit(b, true); failure == nil && h > 100 {
				t.Fatal("no write failed")
			}
		}
		if !strings.Contains(failure.Error(), errorfs.ErrInjected.Error()) {
			t.Fatal(failure)
		}
		h := s.Height()
		if err := s.Commit(s.NewBlockBatch(h+1), true); err == nil || s.Height() != h {
			t.Fatalf("commit after a failure: %v, height %d", err, s.Height())
		}
		if err := s.Close(); err == nil {
			t.Fatal("close of a failed store returns nil")
		}
		after, err := Open("db", Options{FS: mem.CrashClone(vfs.CrashCloneCfg{}), Logger: quiet()})
		must(t, err)
		if after.Height() != h && after.Height() != h+1 {
			t.Fatalf("height %d, acknowledged %d", after.Height(), h)
		}
		checkWhole(t, after)
		must(t, after.Close())
	}
}

// TestConcurrentReaders reads at the newest and at older heights while blocks
// are committed, with the head cache serving and filling. Every block writes
// its number into all rows, so that a snapshot that mixes blocks shows.
func TestConcurrentReaders(t *testing.T) {
	t.Parallel()
	s := openTest(t, vfs.NewMem(), Options{HeadCacheBytes: 64 * 1500, MemTableBytes: 256 << 10})
	const keys, rounds, readers = 40, 300, 4
	key := func(i int) []byte { return fmt.Appendf(nil, "key%03d", i) }
	commit := func() error {
		h := s.Height() + 1
		b := s.NewBlockBatch(h)
		for i := range keys {
			if err := b.Put(key(i), fmt.Append(nil, h), 1, h); err != nil {
				return err
			}
		}
		return s.Commit(b, false)
	}
	must(t, commit())
	var wg sync.WaitGroup
	done := make(chan struct{})
	errs := make(chan error, readers)
	for n := range readers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			r := rand.New(rand.NewPCG(uint64(n), 0))
			for range rounds {
				if err := readOnce(s, r, key, keys); err != nil {
					errs <- err
					return
				}
			}
		}()
	}
	go func() { wg.Wait(); close(done) }()
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
			must(t, commit())
		}
	}
	close(errs)
	for err := range errs {
		t.Error(err)
	}
	if m := s.Metrics(); m.HeadHits == 0 || m.HeadMisses == 0 {
		t.Errorf("hits %d, misses %d: the cache was not tried", m.HeadHits, m.HeadMisses)
	}
}

func readOnce(s *Store, r *rand.Rand, key func(int) []byte, keys int) error {
	h := s.Height()
	if r.IntN(3) == 0 {
		h -= min(h-1, r.Uint64N(4))
	}
	x := s.Begin(AsOf(h), 1)
	want := fmt.Append(nil, h)
	for range 20 {
		i := r.IntN(keys)
		value, v, ok, err := x.Get(key(i), ReadRecorded)
		if err != nil || !ok || !bytes.Equal(value, want) || v.Block != h {
			return fmt.Errorf("get at %d: %q %+v %v %v", h, value, v, ok, err)
		}
	}
	it := x.Scan(rwset.Span{Start: []byte("key"), End: []byte("kez")}, r.IntN(2) == 0, ReadRecorded)
	n := 0
	for ; it.Next(); n++ {
		if !bytes.Equal(it.Value(), want) {
			return fmt.Errorf("scan at %d: %q", h, it.Value())
		}
	}
	if err := it.Close(); err != nil || n != keys {
		return fmt.Errorf("scan at %d: %d rows, %v", h, n, err)
	}
	if _, changed, err := s.Changed(x.Footprint(), h, s.Height()); err != nil || changed != (s.Height() > h) && !changed {
		return fmt.Errorf("changed since %d: %v %v", h, changed, err)
	}
	return x.Close()
}

// TestHeadCacheBounds fills a shard beyond its limit.
func TestHeadCacheBounds(t *testing.T) {
	t.Parallel()
	const limit = 64 * 4000
	c := newHeadCache(limit, 5)
	hot := newHeadEntry([]byte("hot"), Version{Block: 1}, false, []byte("row"))
	c.fill(42, hot, 5)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 20_000 {
		hash := r.Uint64()
		c.fill(hash, newHeadEntry(fmt.Append(nil, i), Version{Block: 1}, false, make([]byte, r.IntN(100))), 5)
		if c.get(42, []byte("hot")) == nil {
			t.Fatal("an entry in constant use was evicted")
		}
	}
	bytes, entries := int64(0), 0
	for i := range c.shards {
		sh := &c.shards[i]
		sum := int64(0)
		table := sh.table.Load()
		for slot, e := range sh.ring {
			if int(e.slot) != slot || table.get(e.hash) != e {
				t.Fatal("ring and table differ")
			}
			sum += e.size()
		}
		taken := 0
		for i := range table.slots {
			if table.slots[i].entry.Load() != nil {
				taken++
			}
		}
		if sum != sh.bytes || sum > sh.limit || len(sh.ring) != taken || 2*taken > len(table.slots) {
			t.Fatalf("shard of %d bytes, counted %d, limit %d", sum, sh.bytes, sh.limit)
		}
		bytes, entries = bytes+sum, entries+len(sh.ring)
	}
	if bytes < limit*3/4 || entries < 500 {
		t.Fatalf("%d bytes in %d entries: the cache is not used", bytes, entries)
	}
	c.fill(7, newHeadEntry([]byte("late"), Version{Block: 1}, false, nil), 4)
	c.fill(8, newHeadEntry([]byte("big"), Version{Block: 1}, false, make([]byte, limit/64)), 5)
	if c.get(7, []byte("late")) != nil || c.get(8, []byte("big")) != nil || c.get(42, []byte("other")) != nil {
		t.Fatal("took an entry of an older height or beyond its size, or mixed up keys")
	}
}

// TestMisuse checks that calls out of order are errors, not wrong answers.
func TestMisuse(t *testing.T) {
	t.Parallel()
	s := openTest(t, vfs.NewMem(), Options{})
	commitRows(t, s, "a=1", "b=2")
	fails := func(what string, err error) {
		t.Helper()
		if err == nil {
			t.Errorf("%s: no error", what)
		}
	}
	get := func(x *Txn) error { _, _, _, err := x.Get([]byte("a"), ReadRecorded); return err }

	future := s.Begin(AsOf(2), 1)
	fails("read above the height", get(future))
	fails("scan above the height", future.Scan(rwset.Span{End: []byte("z")}, false, ReadRecorded).Close())
	fails("versions above the height", future.Versions(rwset.Span{End: []byte("z")}, 0, 9).Close())
	fails("write above the height", future.Put([]byte("a"), nil))

	x := s.Begin(AsOf(1), 1)
	fails("reserved key", x.Put([]byte{0, 0, 0, 0, 9}, nil))
	must(t, x.Delete([]byte("a")))
	fails("delete again", x.Delete([]byte("a")))
	fails("update of deleted", x.PutUpdate([]byte("a"), nil))
	must(t, x.PutInsert([]byte("a"), nil))
	fails("insert again", x.PutInsert([]byte("a"), nil))
	sp := x.Savepoint()
	it := x.Scan(rwset.Span{End: []byte("z")}, false, ReadRecorded)
	must(t, x.Put([]byte("c"), nil))
	it2 := x.Scan(rwset.Span{End: []byte("z")}, false, ReadRecorded)
	x.RollbackTo(sp)
	if !it.Next() {
		t.Errorf("scan from before the savepoint: %v", it.Err())
	}
	if it2.Next() {
		t.Error("scan from after the savepoint goes on")
	}
	fails("scan over a rollback", it2.Err())
	must(t, it.Close())
	x.Close()
	fails("read of a closed transaction", get(x))

	b := s.NewBlockBatch(2)
	fails("apply of a failed transaction", b.Apply(future, 1))
	must(t, b.Apply(x, 3))
	y := b.Begin(Snapshot{Height: 2, Seq: 3}, 2)
	must(t, y.Close())
	fails("apply before its snapshot", b.Apply(y, 3))
	must(t, b.Apply(y, 4))
	fails("commit of the wrong height", s.Commit(s.NewBlockBatch(3), false))
	must(t, s.Commit(b, false))
	fails("commit twice", s.Commit(b, false))
	fails("put to a committed batch", b.Put([]byte("a"), nil, 1, 1))
	fails("record in a committed batch", b.SetMeta("m", nil))
	fails("read of a committed batch", get(b.Begin(AsOf(1), 1)))
	_, _, err := s.Changed(&rwset.Footprint{}, 0, 9)
	fails("changed beyond the height", err)
	must(t, s.Close())
	fails("commit to a closed store", s.Commit(s.NewBlockBatch(3), false))
}

// TestAccounting pins what limits are counted by.
func TestAccounting(t *testing.T) {
	t.Parallel()
	for _, cache := range []int64{0, -1} {
		s := openTest(t, vfs.NewMem(), Options{HeadCacheBytes: cache})
		commitRows(t, s, "aa=123", "bb=4567", "cc=8")
		commitRows(t, s, "cc")
		x := s.Begin(AsOf(2), 1)
		for _, k := range []string{"aa", "aa", "cc", "nn"} {
			_, _, _, err := x.Get([]byte(k), ReadRecorded)
			must(t, err)
		}
		must(t, x.Put([]byte("aa"), []byte("12345")))
		sp := x.Savepoint()
		must(t, x.PutInsert([]byte("dd"), []byte("1")))
		x.RollbackTo(sp)
		it := x.Scan(rwset.Span{Start: []byte("a"), End: []byte("z")}, false, ReadExistence)
		for it.Next() {
		}
		must(t, it.Close())
		x.NoteRead(rwset.Span{Start: []byte("x"), End: []byte("y")}, true)
		x.NoteShared([]rwset.Read{{Span: rwset.Point([]byte("cat"))}})
		if x.Reads() != 6 || x.ReadBytes() != 2+3+2+3+2+2+(2+5)+(2+4) || x.WriteBytes() != 7+3 || x.Writes() != 1 {
			t.Errorf("cache %d: reads %d of %d bytes, writes %d of %d bytes", cache, x.Reads(), x.ReadBytes(), x.Writes(), x.WriteBytes())
		}
		fp := x.Footprint()
		got := fmt.Sprintf("%q", fp.Reads[0].Start)
		for _, r := range fp.Reads[1:] {
			got += fmt.Sprintf(" %q", r.Start)
		}
		// A repetition is noted once.
		if want := `"aa" "cc" "nn" "a" "x"`; got != want || len(fp.Shared) != 1 {
			t.Errorf("reads %s, want %s", got, want)
		}
		must(t, x.Close())
	}
}

// TestSequenceOrder writes the versions of one key into a block out of order.
func TestSequenceOrder(t *testing.T) {
	t.Parallel()
	s := openTest(t, vfs.NewMem(), Options{})
	commitRows(t, s, "k=0") // its Put looks for k, so that the head cache knows k
	x := s.Begin(AsOf(1), 1)
	_, _, _, err := x.Get([]byte("k"), ReadRecorded)
	must(t, err)
	must(t, x.Close())
	b := s.NewBlockBatch(2)
	for _, seq := range []uint32{2, 3, 1, 0} {
		must(t, b.Put([]byte("k"), fmt.Append(nil, seq), seq, 9))
	}
	must(t, s.Commit(b, false))
	for _, c := range []struct {
		at   Snapshot
		want string
	}{{AsOf(1), "0"}, {Snapshot{2, 0}, "0"}, {Snapshot{2, 1}, "1"}, {Snapshot{2, 2}, "2"}, {AsOf(2), "3"}} {
		x := s.Begin(c.at, 1)
		if v, _, ok, err := x.Get([]byte("k"), ReadRecorded); err != nil || !ok || string(v) != c.want {
			t.Errorf("at %+v: %q %v %v, want %q", c.at, v, ok, err, c.want)
		}
		must(t, x.Close())
	}
}

// TestFootprintOfOpenScan: what an abandoned scan saw counts.
func TestFootprintOfOpenScan(t *testing.T) {
	t.Parallel()
	s := openTest(t, vfs.NewMem(), Options{})
	commitRows(t, s, "a=1", "b=2", "c=3")
	x := s.Begin(AsOf(1), 1)
	it := x.Scan(rwset.Span{Start: []byte("a"), End: []byte("d")}, false, ReadRecorded)
	it.Next()
	it.Next()
	reads := x.Footprint().Reads
	if len(reads) != 1 || string(reads[0].Start) != "a" || string(reads[0].End) != "b\x00" {
		t.Fatalf("reads %v", reads)
	}
	must(t, x.Close())
}

// TestForeignDatabase refuses to take over other data or another format.
func TestForeignDatabase(t *testing.T) {
	t.Parallel()
	fs := vfs.NewMem()
	s := openTest(t, fs, Options{})
	must(t, s.db.Set(appendMeta(nil, metaFormat, ""), []byte{formatNumber + 1}, pebble.Sync))
	must(t, s.Close())
	if _, err := Open("db", Options{FS: fs, Logger: quiet()}); err == nil || !strings.Contains(err.Error(), "format 02") {
		t.Fatalf("opened another format: %v", err)
	}
	fs = vfs.NewMem()
	db, err := pebble.Open("db", &pebble.Options{FS: fs, Comparer: &comparer, Logger: engineLogger{&Store{opts: Options{Logger: quiet()}}}})
	must(t, err)
	must(t, db.Set(appendPrefix(nil, []byte("other")), nil, pebble.Sync))
	must(t, db.Close())
	if _, err := Open("db", Options{FS: fs, Logger: quiet()}); err == nil || !strings.Contains(err.Error(), "something else") {
		t.Fatalf("opened a foreign database: %v", err)
	}
	for _, o := range []Options{{CacheBytes: -1}, {MemTableBytes: 1}, {MemTableBytes: 1 << 40}} {
		if _, err := Open("db", o); err == nil {
			t.Errorf("opened with %+v", o)
		}
	}
}

// TestForget: a forgetful transaction reads alike and records nothing, and the
// next use of the same Txn records again.
func TestForget(t *testing.T) {
	t.Parallel()
	s := openTest(t, vfs.NewMem(), Options{})
	commitRows(t, s, "a=1", "b=2")
	x := s.Begin(AsOf(1), 1)
	read := func() int {
		_, _, ok, err := x.Get([]byte("a"), ReadRecorded)
		must(t, err)
		it := x.Scan(rwset.Span{Start: []byte("a"), End: []byte("c")}, false, ReadRecorded)
		n := 0
		for it.Next() {
			n++
		}
		must(t, it.Close())
		x.NoteRead(rwset.Point([]byte("z")), false)
		x.NoteShared([]rwset.Read{{Span: rwset.Point([]byte("cat"))}})
		if !ok || n != 2 {
			t.Fatalf("read %v, %d rows", ok, n)
		}
		return len(x.Footprint().Reads) + len(x.Footprint().Shared)
	}
	x.Forget()
	if n := read(); n != 0 {
		t.Errorf("a forgetful transaction recorded %d reads", n)
	}
	must(t, x.Reset(AsOf(1), 2))
	if n := read(); n != 4 {
		t.Errorf("recorded %d reads after Reset, want 4", n)
	}
	must(t, x.Close())
}
