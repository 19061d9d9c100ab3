package mvcc

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/tallystick/tallystick/mvcc/rwset"
)

func walkKey(k int) []byte { return []byte(fmt.Sprintf("\x00\x00\x12\x34\x00\x00\x00\x01k%07d", k)) }

func walkStore(tb testing.TB) *Store {
	tb.Helper()
	s, err := Open("db", Options{FS: vfs.NewMem(), MemTableBytes: 256 << 10, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	})
	return s
}

// TestEachVersion compares with a list of everything that was written.
func TestEachVersion(t *testing.T) {
	const seed = 11
	rng := rand.New(rand.NewPCG(seed, 0))
	s := walkStore(t)
	type row struct {
		key, value []byte
		v          Version
		dead       bool
	}
	var all []row
	for block := uint64(1); block <= 60; block++ {
		b := s.NewBlockBatch(block)
		for seq := uint32(1); seq <= 4; seq++ {
			txn := s.Begin(AsOf(block-1), 0)
			xid := block<<20 | uint64(seq)
			txn.SetXID(xid)
			done := map[int]bool{}
			for range 5 {
				k := rng.IntN(40)
				if done[k] {
					continue
				}
				done[k] = true
				r := row{key: walkKey(k), v: Version{Block: block, Seq: seq, XID: xid}}
				var err error
				if _, _, live, getErr := txn.Get(r.key, ReadUnrecorded); getErr == nil && live && rng.IntN(3) == 0 {
					r.dead = true
					err = txn.Delete(r.key)
				} else {
					r.value = bytes.Repeat([]byte{byte(k)}, 1+rng.IntN(3000))
					err = txn.Put(r.key, r.value)
				}
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, r)
			}
			if err := txn.Close(); err != nil {
				t.Fatal(err)
			}
			if err := b.Apply(txn, seq); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Commit(b, false); err != nil {
			t.Fatal(err)
		}
	}
	slices.SortFunc(all, func(a, b row) int {
		if c := bytes.Compare(a.key, b.key); c != 0 {
			return c
		}
		return int(int64(b.v.XID) - int64(a.v.XID))
	})
	for range 200 {
		lo, hi := rng.IntN(41), rng.IntN(41)
		from, to := uint64(rng.IntN(62)), uint64(rng.IntN(62))
		if rng.IntN(10) == 0 {
			to = math.MaxUint64
		}
		var want, got []string
		for _, r := range all {
			if bytes.Compare(r.key, walkKey(lo)) >= 0 && bytes.Compare(r.key, walkKey(hi)) < 0 && r.v.Block >= from && r.v.Block <= to {
				want = append(want, fmt.Sprint(string(r.key), r.v, r.dead, len(r.value)))
			}
		}
		err := s.EachVersion(rwset.Span{Start: walkKey(lo), End: walkKey(hi)}, from, to, func(key []byte, v Version, dead bool, value []byte) error {
			got = append(got, fmt.Sprint(string(key), v, dead, len(value)))
			return nil
		})
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("seed %d: keys %d to %d, blocks %d to %d: %d versions, want %d: %v", seed, lo, hi, from, to, len(got), len(want), err)
		}
	}
}

// TestEachMeta lists the records of a prefix and no others.
func TestEachMeta(t *testing.T) {
	s := walkStore(t)
	b := s.NewBlockBatch(1)
	for _, name := range []string{"a", "a/", "a/1", "a/2", "a/2x", "a0", "b"} {
		if err := b.SetMeta(name, []byte("of "+name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Commit(b, false); err != nil {
		t.Fatal(err)
	}
	var got []string
	err := s.EachMeta("a/", func(name string, value []byte) error {
		got = append(got, name+" "+string(value))
		return nil
	})
	if want := []string{"a/ of a/", "a/1 of a/1", "a/2 of a/2", "a/2x of a/2x"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("records are %q, want %q: %v", got, want, err)
	}
}

var historyVersions = flag.Int("history", 500_000, "versions in the store of BenchmarkHistory")

// BenchmarkHistory: all versions of one key among many, and what 100 blocks
// changed; -history 10000000 for a large store.
func BenchmarkHistory(b *testing.B) {
	s := walkStore(b)
	const perBlock, perKey = 500, 10
	blocks := *historyVersions / perBlock
	keys := *historyVersions / perKey
	for n := range blocks {
		batch := s.NewBlockBatch(uint64(n + 1))
		for i := range perBlock {
			// Every block writes keys from all over the table.
			k := (n*perBlock + i) * 7919 % keys
			if err := batch.Put(walkKey(k), []byte("a row of the usual length, which is some fifty bytes"), uint32(i+1), uint64(n)); err != nil {
				b.Fatal(err)
			}
		}
		if err := s.Commit(batch, false); err != nil {
			b.Fatal(err)
		}
	}
	walk := func(b *testing.B, span rwset.Span, from, to uint64) {
		rows := 0
		for b.Loop() {
			txn := s.Begin(AsOf(s.Height()), 0)
			v := txn.Versions(span, from, to)
			for rows = 0; v.Next(); {
				rows++
			}
			if err := v.Close(); err != nil {
				b.Fatal(err)
			}
			if err := txn.Close(); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(rows), "versions")
	}
	b.Run("key", func(b *testing.B) { walk(b, rwset.Point(walkKey(keys/2)), 0, math.MaxUint64) })
	span := rwset.Span{Start: walkKey(0), End: walkKey(keys)}
	b.Run("blocks=100/of-the-end", func(b *testing.B) { walk(b, span, s.Height()-99, s.Height()) })
	b.Run("blocks=100/of-the-middle", func(b *testing.B) { walk(b, span, s.Height()/2, s.Height()/2+99) })
	b.Run("all", func(b *testing.B) { walk(b, span, 0, math.MaxUint64) })
}
