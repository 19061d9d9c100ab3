package mvcc

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/tallystick/tallystick/mvcc/rwset"
)

// TestWritesManyKeys drives the index through splits and removals of chunks, in
// random, ascending and descending order, against a map.
func TestWritesManyKeys(t *testing.T) {
	t.Parallel()
	const n = 8000
	orders := map[string]func(r *rand.Rand, i int) int{
		"random":     func(r *rand.Rand, _ int) int { return r.IntN(n) },
		"ascending":  func(_ *rand.Rand, i int) int { return i },
		"descending": func(_ *rand.Rand, i int) int { return n - i },
	}
	for name, order := range orders {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(3, 5))
			var w writes
			for range 2 { // the second time on recycled memory
				want := map[string]string{}
				check := func() {
					t.Helper()
					var got []string
					for _, c := range w.index {
						if len(c) == 0 || len(c) > chunkMost {
							t.Fatalf("a chunk of %d", len(c))
						}
						for _, at := range c {
							e := w.log[at]
							if row, ok := want[string(e.key)]; !ok || row != string(e.value) {
								t.Fatalf("%q: %q, want %q %v", e.key, e.value, row, ok)
							}
							got = append(got, string(e.key))
						}
					}
					if !sort.StringsAreSorted(got) || len(got) != len(want) || w.count != len(want) {
						t.Fatalf("%d keys, count %d, want %d", len(got), w.count, len(want))
					}
				}
				var marks []int
				var saved []map[string]string
				for i := range n {
					key, row := fmt.Sprintf("key%06d", order(r, i)), fmt.Sprint(i)
					if err := w.put([]byte(key), []byte(row), false, wasDead); err != nil {
						t.Fatal(err)
					}
					want[key] = row
					if i%1000 == 500 {
						marks, saved = append(marks, w.mark()), append(saved, maps.Clone(want))
					}
				}
				check()
				for i := len(marks) - 1; i >= 0; i -= 3 {
					w.cut(marks[i])
					want = maps.Clone(saved[i])
					check()
				}
				w.cut(0)
				want = map[string]string{}
				check()
				if err := w.put([]byte("again"), nil, false, wasDead); err != nil {
					t.Fatal(err)
				}
				w.reset()
			}
		})
	}
}

// TestScanWhileWriting writes thousands of rows during a scan in either
// direction: the scan returns what was there when it was opened, as it was.
func TestScanWhileWriting(t *testing.T) {
	t.Parallel()
	for _, reverse := range []bool{false, true} {
		s := openTest(t, vfs.NewMem(), Options{})
		r := rand.New(rand.NewPCG(7, 7))
		x := s.Begin(AsOf(0), 1)
		var want []string
		for i := range 1000 {
			key := fmt.Sprintf("k%05d", i*10)
			want = append(want, key)
			must(t, x.PutInsert([]byte(key), []byte("old")))
		}
		if reverse {
			slices.Reverse(want)
		}
		it := x.Scan(rwset.Span{Start: []byte("k"), End: []byte("l")}, reverse, ReadRecorded)
		n := 0
		for ; it.Next(); n++ {
			if n >= len(want) || string(it.Key()) != want[n] || string(it.Value()) != "old" {
				t.Fatalf("row %d: %q %q", n, it.Key(), it.Value())
			}
			must(t, x.PutUpdate(it.Key(), []byte("new")))
			for range 5 {
				must(t, x.Put(fmt.Appendf(nil, "k%05d", r.IntN(10_000)), []byte("new")))
			}
		}
		must(t, it.Close())
		if n != len(want) {
			t.Fatalf("%d rows, want %d", n, len(want))
		}
		must(t, x.EachWrite(func(key, value []byte, _ bool) error {
			if string(value) != "new" {
				t.Fatalf("%q still is %q", key, value)
			}
			return nil
		}))
		must(t, x.Close())
	}
}

// TestValuesStayValid overwrites, rolls back and resets under values that were
// handed out.
func TestValuesStayValid(t *testing.T) {
	t.Parallel()
	s := openTest(t, vfs.NewMem(), Options{})
	x := s.Begin(AsOf(0), 1)
	var held [][]byte
	for i := range 100 {
		must(t, x.Put([]byte("k"), bytes.Repeat([]byte{byte(i)}, 50)))
		v, _, ok, err := x.Get([]byte("k"), ReadRecorded)
		if !ok || err != nil {
			t.Fatal(ok, err)
		}
		held = append(held, v)
	}
	must(t, x.Reset(AsOf(0), 2))
	for range 100 {
		must(t, x.Put([]byte("k"), bytes.Repeat([]byte{0xee}, 50)))
	}
	for i, v := range held {
		if !bytes.Equal(v, bytes.Repeat([]byte{byte(i)}, 50)) {
			t.Fatalf("value %d became %x", i, v)
		}
	}
	must(t, x.Close())
}
