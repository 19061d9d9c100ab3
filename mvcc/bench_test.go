package mvcc

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/tallystick/tallystick/mvcc/rwset"
)

// benchKey lays a key out as SQL does: table, index, an int8 column.
func benchKey(dst []byte, table uint32, id uint64) []byte {
	dst = binary.BigEndian.AppendUint32(dst, table)
	dst = binary.BigEndian.AppendUint32(dst, 1)
	return binary.BigEndian.AppendUint64(dst, id)
}

// indexKey is an entry of a secondary index: indexed value, then primary key.
func indexKey(dst []byte, value, id uint64) []byte {
	dst = binary.BigEndian.AppendUint32(dst, 100)
	dst = binary.BigEndian.AppendUint32(dst, 2)
	dst = binary.BigEndian.AppendUint64(dst, value)
	return binary.BigEndian.AppendUint64(dst, id)
}

const benchRows = 100_000

// benchStore has benchRows rows of 100 bytes with a secondary index.
func benchStore(b *testing.B, opts Options) *Store {
	opts.Logger = quiet()
	s, err := Open(b.TempDir(), opts)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	row := make([]byte, 100)
	for first := 0; first < benchRows; first += 10_000 {
		batch := s.NewBlockBatch(s.Height() + 1)
		for i := first; i < first+10_000; i++ {
			binary.BigEndian.PutUint64(row, uint64(i))
			if err := batch.Put(benchKey(nil, 100, uint64(i)), row, 1, 1); err != nil {
				b.Fatal(err)
			}
			if err := batch.Put(indexKey(nil, uint64(i)*7919%benchRows, uint64(i)), nil, 1, 1); err != nil {
				b.Fatal(err)
			}
		}
		if err := s.Commit(batch, false); err != nil {
			b.Fatal(err)
		}
	}
	if err := s.db.Flush(); err != nil {
		b.Fatal(err)
	}
	if err := s.db.Compact(b.Context(), []byte{0}, []byte{0xff, 0}, true); err != nil {
		b.Fatal(err)
	}
	return s
}

func BenchmarkGet(b *testing.B) {
	for _, c := range []struct {
		name  string
		cache int64
		table uint32
		keys  uint64
	}{
		{"cached", 0, 100, 10_000},
		{"engine", -1, 100, 10_000},
		{"engine all rows", -1, 100, benchRows},
		{"miss cached", 0, 101, 10_000},
		{"miss engine", -1, 100, 0},
	} {
		b.Run(c.name, func(b *testing.B) {
			s := benchStore(b, Options{HeadCacheBytes: c.cache})
			r := rand.New(rand.NewPCG(1, 1))
			t := s.Begin(AsOf(s.Height()), 1)
			defer t.Close()
			var key []byte
			id := func() uint64 {
				if c.keys == 0 {
					return benchRows + r.Uint64N(1<<40)
				}
				return r.Uint64N(c.keys)
			}
			for i := range 2 * c.keys {
				key = benchKey(key[:0], c.table, i%c.keys)
				t.Get(key, ReadUnrecorded)
			}
			b.ReportAllocs()
			for b.Loop() {
				key = benchKey(key[:0], c.table, id())
				if _, _, _, err := t.Get(key, ReadUnrecorded); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkTxn is a whole small transaction: three recorded reads, two updates.
func BenchmarkTxn(b *testing.B) {
	s := benchStore(b, Options{})
	r := rand.New(rand.NewPCG(1, 1))
	row := make([]byte, 100)
	var key []byte
	t := s.Begin(AsOf(s.Height()), 1)
	b.ReportAllocs()
	for b.Loop() {
		for i := range 3 {
			key = benchKey(key[:0], 100, r.Uint64N(10_000))
			if _, _, _, err := t.Get(key, ReadRecorded); err != nil {
				b.Fatal(err)
			}
			if i > 0 {
				if err := t.PutUpdate(key, row); err != nil {
					b.Fatal(err)
				}
			}
		}
		t.Footprint()
		if err := t.Reset(AsOf(s.Height()), 1); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkTxnScan is a new transaction that scans one row.
func BenchmarkTxnScan(b *testing.B) {
	s := benchStore(b, Options{})
	r := rand.New(rand.NewPCG(1, 1))
	b.ReportAllocs()
	for b.Loop() {
		t := s.Begin(AsOf(s.Height()), 1)
		at := r.Uint64N(benchRows - 1)
		it := t.Scan(rwset.Span{Start: benchKey(nil, 100, at), End: benchKey(nil, 100, at+1)}, false, ReadRecorded)
		if !it.Next() {
			b.Fatal(it.Err())
		}
		it.Close()
		t.Close()
	}
}

func BenchmarkScan(b *testing.B) {
	for _, reverse := range []bool{false, true} {
		for _, rows := range []uint64{1, 10, 10_000} {
			b.Run(fmt.Sprintf("rows=%d/reverse=%v", rows, reverse), func(b *testing.B) {
				s := benchStore(b, Options{})
				r := rand.New(rand.NewPCG(1, 1))
				t := s.Begin(AsOf(s.Height()), 1)
				defer t.Close()
				b.ReportAllocs()
				for b.Loop() {
					at := r.Uint64N(benchRows - rows)
					span := rwset.Span{Start: benchKey(nil, 100, at), End: benchKey(nil, 100, at+rows)}
					it := t.Scan(span, reverse, ReadUnrecorded)
					n := uint64(0)
					for it.Next() {
						n++
					}
					if err := it.Close(); err != nil || n != rows {
						b.Fatal(n, err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(rows), "ns/row")
			})
		}
	}
}

// BenchmarkIndexLookups scans 500 places of a secondary index, one entry each,
// and gets the rows they lead to.
func BenchmarkIndexLookups(b *testing.B) {
	for _, cache := range []int64{0, -1} {
		b.Run(fmt.Sprintf("cache=%v", cache == 0), func(b *testing.B) {
			s := benchStore(b, Options{HeadCacheBytes: cache})
			b.ReportAllocs()
			var key, start, end []byte
			for b.Loop() {
				t := s.Begin(AsOf(s.Height()), 1)
				for i := range uint64(500) {
					start = indexKey(start[:0], i*13, 0)[:16]
					end = indexKey(end[:0], i*13+1, 0)[:16]
					it := t.Scan(rwset.Span{Start: start, End: end}, false, ReadRecorded)
					if !it.Next() {
						b.Fatal(it.Err())
					}
					key = benchKey(key[:0], 100, binary.BigEndian.Uint64(it.Key()[16:]))
					if err := it.Close(); err != nil {
						b.Fatal(err)
					}
					if _, _, ok, err := t.Get(key, ReadRecorded); !ok || err != nil {
						b.Fatal(ok, err)
					}
				}
				t.Close()
			}
		})
	}
}

// BenchmarkCommit applies and commits blocks of 500 transactions that write
// three rows each.
func BenchmarkCommit(b *testing.B) {
	for _, c := range []struct {
		name    string
		cache   int64
		indexed bool
	}{{"plain", 0, false}, {"no cache", -1, false}, {"read by the block", 0, true}} {
		b.Run(c.name, func(b *testing.B) {
			s, err := Open(b.TempDir(), Options{HeadCacheBytes: c.cache, Logger: quiet()})
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			r := rand.New(rand.NewPCG(1, 1))
			row := make([]byte, 100)
			var key []byte
			for b.Loop() {
				b.StopTimer()
				txns := make([]*Txn, 500)
				for i := range txns {
					txns[i] = s.Begin(AsOf(s.Height()), uint64(i))
					for range 3 {
						key = benchKey(key[:0], 100, r.Uint64N(1_000_000))
						if err := txns[i].Put(key, row); err != nil {
							b.Fatal(err)
						}
					}
				}
				b.StartTimer()
				batch := s.NewBlockBatch(s.Height() + 1)
				if c.indexed {
					batch.Begin(AsOf(s.Height()), 1).Close()
				}
				for i, t := range txns {
					if err := batch.Apply(t, uint32(i+1)); err != nil {
						b.Fatal(err)
					}
					t.Close()
				}
				if err := s.Commit(batch, false); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/500, "ns/txn")
		})
	}
}

// BenchmarkChanged checks 20 point reads against the last three blocks.
func BenchmarkChanged(b *testing.B) {
	for _, cache := range []int64{0, -1} {
		b.Run(fmt.Sprintf("cache=%v", cache == 0), func(b *testing.B) {
			s := benchStore(b, Options{HeadCacheBytes: cache})
			t := s.Begin(AsOf(s.Height()), 1)
			for i := range uint64(20) {
				t.Get(benchKey(nil, 100, i*4999), ReadRecorded)
			}
			fp := *t.Footprint()
			t.Close()
			from := s.Height()
			for i := range uint64(3) {
				batch := s.NewBlockBatch(s.Height() + 1)
				for j := range uint64(1500) {
					batch.Put(benchKey(nil, 102, i*1500+j), nil, 1, 1)
				}
				if err := s.Commit(batch, false); err != nil {
					b.Fatal(err)
				}
			}
			c := s.NewChecker()
			defer c.Close()
			b.ReportAllocs()
			for b.Loop() {
				if _, changed, err := c.Changed(&fp, from, s.Height()); changed || err != nil {
					b.Fatal(changed, err)
				}
			}
		})
	}
	b.Run("span", func(b *testing.B) {
		s := benchStore(b, Options{})
		batch := s.NewBlockBatch(s.Height() + 1)
		if err := s.Commit(batch, false); err != nil {
			b.Fatal(err)
		}
		fp := rwset.Footprint{Reads: []rwset.Read{{Span: rwset.Span{Start: benchKey(nil, 100, 1000), End: benchKey(nil, 100, 20_000)}}}}
		c := s.NewChecker()
		defer c.Close()
		for b.Loop() {
			if _, changed, err := c.Changed(&fp, s.Height()-1, s.Height()); changed || err != nil {
				b.Fatal(changed, err)
			}
		}
	})
}

// BenchmarkWrites inserts into one transaction.
func BenchmarkWrites(b *testing.B) {
	for _, n := range []int{3, 1000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			r := rand.New(rand.NewPCG(1, 1))
			row := make([]byte, 50)
			var key []byte
			var w writes
			for b.Loop() {
				w.reset()
				for range n {
					key = benchKey(key[:0], 100, r.Uint64())
					if err := w.put(key, row, false, wasDead); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/write")
		})
	}
}
