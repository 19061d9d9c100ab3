package mvcc

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"reflect"
	"slices"
	"sort"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/tallystick/tallystick/mvcc/rwset"
)

// model is the brute-force oracle: all versions of all keys, in memory.
type model struct {
	keys   map[string][]modelVersion // oldest first
	all    []string                  // every key there may be, in order
	height uint64
}

type modelVersion struct {
	v    Version
	dead bool
	row  string
}

func newModel(keys []string) *model { return &model{keys: map[string][]modelVersion{}, all: keys} }

// at returns the version that a snapshot sees, tombstones included.
func (m *model) at(key string, at Snapshot) (modelVersion, bool) {
	var found modelVersion
	ok := false
	for _, v := range m.keys[key] {
		if v.v.Block < at.Height || v.v.Block == at.Height && v.v.Seq <= at.Seq {
			found, ok = v, true
		}
	}
	return found, ok
}

func (m *model) live(key string, at Snapshot) (modelVersion, bool) {
	v, ok := m.at(key, at)
	return v, ok && !v.dead
}

func (m *model) add(key string, v modelVersion) {
	m.keys[key] = append(m.keys[key], v)
}

// changed is the specification of Store.Changed.
func (m *model) changed(fp *rwset.Footprint, from, to uint64) (Conflict, bool) {
	var found Conflict
	hit := false
	try := func(span rwset.Span, existence, wrote bool) bool {
		for _, k := range m.all {
			if !span.Contains([]byte(k)) {
				continue
			}
			_, was := m.live(k, AsOf(from))
			for _, v := range m.keys[k] {
				if v.v.Block <= from || v.v.Block > to || existence && was == !v.dead {
					continue
				}
				if !hit || v.v.Block < found.Block {
					hit = true
					found = Conflict{Key: []byte(k), Block: v.v.Block, Seq: v.v.Seq, XID: v.v.XID, Wrote: wrote}
					if !wrote {
						found.Read = span
					}
				}
				break
			}
		}
		return hit
	}
	fp.EachRead(func(r rwset.Read) bool { return !try(r.Span, r.Existence, false) })
	if hit {
		return found, true
	}
	for _, w := range fp.Writes {
		if try(rwset.Point(w.Key), false, true) {
			return found, true
		}
	}
	return found, false
}

// modelTxn is a transaction over the model.
type modelTxn struct {
	m      *model
	at     Snapshot
	xid    uint64
	own    map[string]*string // nil: deleted
	base   map[string]bool
	saved  []map[string]*string
	points []int
}

func (t *modelTxn) get(key string) (string, bool) {
	if row, ok := t.own[key]; ok {
		if row == nil {
			return "", false
		}
		return *row, true
	}
	v, ok := t.m.live(key, t.at)
	return v.row, ok
}

type modelRow struct {
	key, row string
	v        Version
}

func (t *modelTxn) scan(span rwset.Span, reverse bool) []modelRow {
	seen := map[string]bool{}
	var rows []modelRow
	for k := range t.own {
		seen[k] = true
		if row := t.own[k]; row != nil && span.Contains([]byte(k)) {
			rows = append(rows, modelRow{k, *row, Version{Block: OwnBlock, Seq: OwnSeq, XID: t.xid}})
		}
	}
	for k := range t.m.keys {
		if v, ok := t.m.live(k, t.at); ok && !seen[k] && span.Contains([]byte(k)) {
			rows = append(rows, modelRow{k, v.row, v.v})
		}
	}
	slices.SortFunc(rows, func(a, b modelRow) int { return bytes.Compare([]byte(a.key), []byte(b.key)) })
	if reverse {
		slices.Reverse(rows)
	}
	return rows
}

func (t *modelTxn) write(key string, row *string) {
	if _, ok := t.own[key]; !ok {
		_, t.base[key] = t.m.live(key, t.at)
	}
	t.own[key] = row
}

// testKeys is a small universe with keys that try the encoding: zero bytes,
// 0xff, prefixes of each other, the length bytes of suffixes at the end.
func testKeys(r *rand.Rand, n int) []string {
	tails := []string{"", "\x00", "\x00\x00", "\x09", "\x0d", "\xff", "\x00\x09", "\x00\x0d", "a", "\x01"}
	set := map[string]bool{}
	for len(set) < n {
		k := fmt.Sprintf("\x00\x00\x00%c", 1+r.IntN(3))
		if r.IntN(2) == 0 {
			k += fmt.Sprintf("k%02d", r.IntN(n))
		}
		k += tails[r.IntN(len(tails))] + tails[r.IntN(len(tails))]
		set[k] = true
	}
	var keys []string
	for k := range set {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

// world runs a store and the model side by side.
type world struct {
	t    *testing.T
	r    *rand.Rand
	keys []string
	m    *model
	s    *Store
	opts Options
	next int
}

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

func newWorld(t *testing.T, seed uint64, opts Options, keys int) *world {
	r := rand.New(rand.NewPCG(seed, 17))
	w := &world{t: t, r: r, keys: testKeys(r, keys), opts: opts}
	w.m = newModel(w.keys)
	w.opts.FS = vfs.NewMem()
	w.opts.Logger = quiet()
	w.open()
	t.Cleanup(func() {
		if err := w.s.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

func (w *world) open() {
	s, err := Open("db", w.opts)
	if err != nil {
		w.t.Fatal(err)
	}
	w.s = s
	if s.Height() != w.m.height {
		w.t.Fatalf("height %d after open, want %d", s.Height(), w.m.height)
	}
}

func (w *world) key() string { return w.keys[w.r.IntN(len(w.keys))] }

func (w *world) row() string {
	w.next++
	return fmt.Sprintf("row-%d-%s", w.next, bytes.Repeat([]byte{'x'}, w.r.IntN(60)))
}

func (w *world) span() rwset.Span {
	if w.r.IntN(6) == 0 {
		return rwset.Point([]byte(w.key()))
	}
	a, b := w.key(), w.key()
	if w.r.IntN(8) == 0 {
		a = ""
	}
	if w.r.IntN(8) == 0 {
		b = "\xff"
	}
	if a > b && w.r.IntN(10) > 0 {
		a, b = b, a
	}
	return rwset.Span{Start: []byte(a), End: []byte(b)}
}

func (w *world) snapshot() Snapshot {
	h := w.m.height - min(uint64(w.r.IntN(6)), w.m.height)
	if w.r.IntN(2) == 0 {
		h = w.m.height
	}
	if w.r.IntN(4) == 0 {
		return Snapshot{Height: h, Seq: uint32(w.r.IntN(6))}
	}
	return AsOf(h)
}

// check compares a whole read of a Txn with the model's.
func (w *world) checkGet(t *Txn, mt *modelTxn, key string, mode ReadMode) {
	w.t.Helper()
	value, v, ok, err := t.Get([]byte(key), mode)
	if err != nil {
		w.t.Fatal(err)
	}
	row, wantOK := mt.get(key)
	if _, own := mt.own[key]; !own && mode != ReadUnrecorded && !slices.ContainsFunc(t.fp.Reads, func(r rwset.Read) bool {
		return r.IsPoint() && string(r.Start) == key && (mode == ReadExistence || !r.Existence)
	}) {
		w.t.Fatalf("get %q in mode %d left no trace", key, mode)
	}
	if ok != wantOK || string(value) != row {
		w.t.Fatalf("get %q at %+v: %q %v, want %q %v", key, t.at, value, ok, row, wantOK)
	}
	if !ok {
		if !v.IsZero() {
			w.t.Fatalf("get %q: no row, but version %+v", key, v)
		}
		return
	}
	if _, own := mt.own[key]; own != v.Own() {
		w.t.Fatalf("get %q: version %+v, own %v", key, v, own)
	}
	if mv, _ := mt.m.at(key, mt.at); !v.Own() && v != mv.v {
		w.t.Fatalf("get %q: version %+v, want %+v", key, v, mv.v)
	}
}

// checkScan scans, perhaps stopping early, writing meanwhile, or with a scan
// inside, and checks rows and note.
func (w *world) checkScan(t *Txn, mt *modelTxn, depth int) {
	w.t.Helper()
	span, reverse := w.span(), w.r.IntN(2) == 0
	mode := ReadMode(w.r.IntN(3))
	want := mt.scan(span, reverse)
	stop := -1
	if w.r.IntN(3) == 0 {
		stop = w.r.IntN(len(want) + 1)
	}
	it := t.Scan(span, reverse, mode)
	n, nested := 0, 0
	for ; n != stop && it.Next(); n++ {
		if n >= len(want) {
			w.t.Fatalf("scan returns %q beyond the %d rows expected", it.Key(), len(want))
		}
		if g := (modelRow{string(it.Key()), string(it.Value()), it.Version()}); g != want[n] {
			w.t.Fatalf("scan %q reverse %v at %+v row %d: %+v, want %+v", span, reverse, t.at, n, g, want[n])
		}
		switch w.r.IntN(12) {
		case 0:
			w.write(t, mt)
		case 1:
			if nested++; nested < 3 && depth < 2 {
				w.checkScan(t, mt, depth+1)
			}
		case 2:
			w.checkGet(t, mt, w.key(), ReadUnrecorded)
		}
	}
	if n != stop && n != len(want) {
		w.t.Fatalf("scan %q reverse %v at %+v: %d rows, want %d", span, reverse, t.at, n, len(want))
	}
	before := len(t.fp.Reads)
	if n != stop {
		before-- // noted when Next found the end
		if mode == ReadUnrecorded || span.Empty() {
			before++
		}
	}
	if err := it.Close(); err != nil {
		w.t.Fatal(err)
	}
	visited := span
	switch {
	case span.Empty() || mode == ReadUnrecorded || n == stop && n == 0:
		if len(t.fp.Reads) != before {
			w.t.Fatalf("scan noted %v", t.fp.Reads[before:])
		}
		return
	case n != stop:
	case reverse:
		visited.Start = []byte(want[n-1].key)
	default:
		visited.End = []byte(want[n-1].key + "\x00")
	}
	got := t.fp.Reads[before:]
	if len(got) != 1 || !bytes.Equal(got[0].Start, visited.Start) || !bytes.Equal(got[0].End, visited.End) ||
		got[0].Existence != (mode == ReadExistence) {
		w.t.Fatalf("scan %v stop %d of %d noted %v, want %v", span, stop, len(want), got, visited)
	}
}

// write does one random write on both.
func (w *world) write(t *Txn, mt *modelTxn) {
	w.t.Helper()
	key := w.key()
	_, live := mt.get(key)
	row := w.row()
	var err error
	switch {
	case w.r.IntN(3) == 0:
		err = t.Put([]byte(key), []byte(row))
		mt.write(key, &row)
	case !live:
		err = t.PutInsert([]byte(key), []byte(row))
		mt.write(key, &row)
	case w.r.IntN(3) == 0:
		err = t.Delete([]byte(key))
		mt.write(key, nil)
	default:
		err = t.PutUpdate([]byte(key), []byte(row))
		mt.write(key, &row)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// runTxn does random work in one transaction and leaves it open.
func (w *world) runTxn(t *Txn) *modelTxn {
	mt := &modelTxn{m: w.m, at: t.at, xid: t.xid, own: map[string]*string{}, base: map[string]bool{}}
	for range w.r.IntN(12) {
		switch w.r.IntN(8) {
		case 0, 1:
			w.checkGet(t, mt, w.key(), ReadMode(w.r.IntN(3)))
		case 2:
			w.checkScan(t, mt, 0)
		case 3:
			mt.points = append(mt.points, t.Savepoint())
			copied := map[string]*string{}
			for k, v := range mt.own {
				copied[k] = v
			}
			mt.saved = append(mt.saved, copied)
		case 4:
			if n := len(mt.saved); n > 0 {
				i := w.r.IntN(n)
				t.RollbackTo(mt.points[i])
				mt.own = map[string]*string{}
				for k, v := range mt.saved[i] {
					mt.own[k] = v
				}
				mt.saved, mt.points = mt.saved[:i+1], mt.points[:i+1]
			}
		default:
			w.write(t, mt)
		}
	}
	w.checkWrites(t, mt)
	return mt
}

// checkWrites compares net effects.
func (w *world) checkWrites(t *Txn, mt *modelTxn) {
	w.t.Helper()
	var keys []string
	err := t.EachWrite(func(key, value []byte, tombstone bool) error {
		row, ok := mt.own[string(key)]
		if !ok || (row == nil) != tombstone || row != nil && *row != string(value) {
			w.t.Fatalf("write of %q: %q %v", key, value, tombstone)
		}
		keys = append(keys, string(key))
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	if len(keys) != len(mt.own) || !sort.StringsAreSorted(keys) {
		w.t.Fatalf("writes %q, want the %d of the model", keys, len(mt.own))
	}
	for i, wr := range t.Footprint().Writes {
		k := string(wr.Key)
		if k != keys[i] || wr.Liveness != (mt.base[k] != (mt.own[k] != nil)) {
			w.t.Fatalf("footprint write %d: %q %v, base %v", i, k, wr.Liveness, mt.base[k])
		}
	}
}

// apply puts a transaction into the block on both sides.
func (w *world) apply(b *BlockBatch, t *Txn, mt *modelTxn, seq uint32) {
	w.t.Helper()
	if err := b.Apply(t, seq); err != nil {
		w.t.Fatal(err)
	}
	for k, row := range mt.own {
		mv := modelVersion{v: Version{Block: b.height, Seq: seq, XID: t.xid}, dead: row == nil}
		if row != nil {
			mv.row = *row
		}
		w.m.add(k, mv)
	}
}

// block commits one block of random transactions, the last of which read it.
func (w *world) block() {
	w.t.Helper()
	height := w.m.height + 1
	b := w.s.NewBlockBatch(height)
	type pair struct {
		t  *Txn
		mt *modelTxn
	}
	var all []pair
	for i := range w.r.IntN(5) {
		t := w.s.Begin(w.snapshot(), height<<20+uint64(i))
		all = append(all, pair{t, w.runTxn(t)})
	}
	seq := uint32(w.r.IntN(2))
	for _, p := range all {
		if w.r.IntN(4) > 0 {
			w.apply(b, p.t, p.mt, seq)
			seq++
		}
		if err := p.t.Close(); err != nil {
			w.t.Fatal(err)
		}
	}
	for range w.r.IntN(3) {
		at := Snapshot{Height: height}
		if seq == 0 {
			seq = 1
		}
		at.Seq = seq - 1
		t := b.Begin(at, height<<20+uint64(seq)+100)
		mt := w.runTxn(t)
		if err := t.Close(); err != nil {
			w.t.Fatal(err)
		}
		w.apply(b, t, mt, seq)
		seq++
	}
	if w.r.IntN(2) == 0 {
		k, row := w.key(), w.row()
		if err := b.Put([]byte(k), []byte(row), seq, 7); err != nil {
			w.t.Fatal(err)
		}
		w.m.add(k, modelVersion{v: Version{height, seq, 7}, row: row})
	}
	if err := b.SetMeta("state", fmt.Appendf(nil, "hash-%d", height)); err != nil {
		w.t.Fatal(err)
	}
	if err := w.s.Commit(b, w.r.IntN(4) == 0); err != nil {
		w.t.Fatal(err)
	}
	w.m.height = height
	if w.s.Height() != height {
		w.t.Fatalf("height %d, want %d", w.s.Height(), height)
	}
}

// checkChanged compares Changed for a random footprint.
func (w *world) checkChanged() {
	w.t.Helper()
	var fp rwset.Footprint
	for range w.r.IntN(4) {
		fp.Reads = append(fp.Reads, rwset.Read{Span: w.span(), Existence: w.r.IntN(2) == 0})
	}
	for range w.r.IntN(2) {
		fp.Shared = append(fp.Shared, []rwset.Read{{Span: rwset.Point([]byte(w.key()))}})
	}
	for range w.r.IntN(3) {
		fp.Writes = append(fp.Writes, rwset.Write{Key: []byte(w.key())})
	}
	to := w.m.height - min(w.m.height, uint64(w.r.IntN(3)))
	from := to - min(to, uint64(w.r.IntN(4)))
	got, ok, err := w.s.Changed(&fp, from, to)
	if err != nil {
		w.t.Fatal(err)
	}
	want, wantOK := w.m.changed(&fp, from, to)
	if ok != wantOK || !reflect.DeepEqual(got, want) {
		w.t.Fatalf("changed %v in (%d, %d]: %v %v, want %v %v", fp, from, to, ok, got, wantOK, want)
	}
}

// checkVersions compares the history of a random span.
func (w *world) checkVersions() {
	w.t.Helper()
	span, at := w.span(), w.snapshot()
	from := uint64(w.r.IntN(int(w.m.height) + 2))
	to := from + uint64(w.r.IntN(int(w.m.height)+2))
	var want []string
	for _, k := range w.m.all {
		if !span.Contains([]byte(k)) {
			continue
		}
		all := w.m.keys[k]
		for i, v := range all {
			if v.dead || v.v.Block < from || v.v.Block > to || !at.sees(v.v.Block, v.v.Seq) {
				continue
			}
			var deleter Version
			if i+1 < len(all) && at.sees(all[i+1].v.Block, all[i+1].v.Seq) {
				deleter = all[i+1].v
			}
			want = append(want, fmt.Sprintf("%q %q %v %v", k, v.row, v.v, deleter))
		}
	}
	t := w.s.Begin(at, 1)
	defer t.Close()
	it := t.Versions(span, from, to)
	var got []string
	for it.Next() {
		got = append(got, fmt.Sprintf("%q %q %v %v", it.Key(), it.Value(), it.Creator(), it.Deleter()))
	}
	if err := it.Close(); err != nil {
		w.t.Fatal(err)
	}
	if !slices.Equal(got, want) {
		w.t.Fatalf("versions %q %d..%d at %+v:\n%q\nwant\n%q", span, from, to, at, got, want)
	}
	if len(t.Footprint().Reads) != 0 {
		w.t.Fatal("provenance left a footprint")
	}
}

// checkState reads everything at a snapshot.
func (w *world) checkState(at Snapshot) {
	w.t.Helper()
	t := w.s.Begin(at, 1)
	defer t.Close()
	mt := &modelTxn{m: w.m, at: at}
	for _, k := range w.keys {
		w.checkGet(t, mt, k, ReadUnrecorded)
	}
	for _, reverse := range []bool{false, true} {
		want := mt.scan(rwset.Span{End: []byte("\xff")}, reverse)
		it := t.Scan(rwset.Span{End: []byte("\xff")}, reverse, ReadUnrecorded)
		n := 0
		for ; it.Next(); n++ {
			if g := (modelRow{string(it.Key()), string(it.Value()), it.Version()}); n >= len(want) || g != want[n] {
				w.t.Fatalf("state at %+v, row %d: %+v", at, n, g)
			}
		}
		if err := it.Close(); err != nil || n != len(want) {
			w.t.Fatalf("state at %+v: %d rows, want %d (%v)", at, n, len(want), err)
		}
	}
	if meta, ok, err := w.s.Meta("state"); err != nil || ok != (w.m.height > 0) || ok && string(meta) != fmt.Sprintf("hash-%d", w.m.height) {
		w.t.Fatalf("meta %q %v %v at height %d", meta, ok, err, w.m.height)
	}
}

func TestAgainstModel(t *testing.T) {
	t.Parallel()
	configs := []struct {
		name string
		opts Options
		keys int
	}{
		{"default", Options{}, 60},
		{"few keys", Options{}, 5},
		{"no cache", Options{HeadCacheBytes: -1}, 60},
		{"tiny cache", Options{HeadCacheBytes: 64 * 1200}, 400},
		{"small memtables", Options{MemTableBytes: 64 << 10, CacheBytes: 64 << 10}, 400},
	}
	for _, c := range configs {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(10) {
				w := newWorld(t, seed, c.opts, c.keys)
				for range 60 {
					w.block()
					for range 3 {
						w.checkChanged()
						w.checkVersions()
					}
					switch w.r.IntN(10) {
					case 0:
						if err := w.s.Close(); err != nil {
							t.Fatal(err)
						}
						w.open()
					case 1:
						if err := w.s.db.Flush(); err != nil {
							t.Fatal(err)
						}
					case 2:
						if err := w.s.db.Compact(t.Context(), []byte{0}, []byte{0xff, 0}, false); err != nil {
							t.Fatal(err)
						}
					case 3:
						w.checkState(w.snapshot())
					}
				}
				w.checkState(AsOf(w.m.height))
			}
		})
	}
}
