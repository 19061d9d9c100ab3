package ssi

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/tallystick/tallystick/mvcc/rwset"
)

// benchKey has the length and the look of a key of a real table: relation,
// index, one or two columns.
func benchKey(k int) []byte {
	return []byte(fmt.Sprintf("\x00\x00\x12\x34\x00\x01\x80%016d\x00\x01", k))
}

// benchBlock makes transactions of reads, of which percent are spans over a
// hundred keys, and writes of some keys that they read.
func benchBlock(txs, keys, reads, writes, percent int) []Candidate {
	r := rand.New(rand.NewPCG(8, 0))
	order := make([]Candidate, txs)
	for i := range order {
		fp := &rwset.Footprint{}
		for j := range reads {
			k := r.IntN(keys)
			span := rwset.Point(benchKey(k))
			if j >= writes && r.IntN(100) < percent {
				span.End = benchKey(k + 100)
			}
			fp.Reads = append(fp.Reads, rwset.Read{Span: span, Existence: j%5 == 4})
			if j < writes {
				fp.Writes = append(fp.Writes, rwset.Write{Key: benchKey(k), Liveness: j%2 == 1})
			}
		}
		order[i].Footprint = fp
	}
	return order
}

func BenchmarkDecide(b *testing.B) {
	for _, bench := range []struct {
		name                              string
		txs, keys, reads, writes, percent int
	}{
		{"txs=500/reads=20/points", 500, 1_000_000, 20, 5, 0},
		{"txs=500/reads=20/spans=20%", 500, 1_000_000, 20, 5, 20},
		{"txs=500/reads=20/spans=100%", 500, 1_000_000, 20, 5, 100},
		{"txs=500/reads=20/contended", 500, 10_000, 20, 2, 0},
		{"txs=500/reads=20/hot", 500, 40, 20, 5, 20},
		{"txs=10000/reads=20/spans=20%", 10000, 1_000_000, 20, 5, 20},
	} {
		order := benchBlock(bench.txs, bench.keys, bench.reads, bench.writes, bench.percent)
		for _, rule := range rules {
			b.Run(bench.name+"/"+rule.String(), func(b *testing.B) {
				var d Decider
				d.Decide(rule, order)
				b.ReportAllocs()
				for b.Loop() {
					d.Decide(rule, order)
				}
				b.ReportMetric(b.Elapsed().Seconds()*1e9/float64(b.N)/float64(bench.txs), "ns/tx")
			})
		}
	}
}

// BenchmarkEverybodyMeets is the worst block for whoever makes lists of edges:
// every transaction reads all keys and writes a key of its own.
func BenchmarkEverybodyMeets(b *testing.B) {
	const txs = 2000
	order := make([]Candidate, txs)
	for i := range order {
		order[i].Footprint = &rwset.Footprint{
			Reads:  []rwset.Read{{Span: rwset.Span{Start: benchKey(0), End: benchKey(txs)}}},
			Writes: []rwset.Write{{Key: benchKey(i)}},
		}
	}
	for _, rule := range rules {
		b.Run(rule.String(), func(b *testing.B) {
			var d Decider
			for b.Loop() {
				d.Decide(rule, order)
			}
		})
	}
}

// TestNoAllocations keeps deciding free of garbage but for its result.
func TestNoAllocations(t *testing.T) {
	order := benchBlock(200, 2000, 10, 3, 20)
	for _, rule := range rules {
		var d Decider
		d.Decide(rule, order)
		if n := testing.AllocsPerRun(20, func() { d.Decide(rule, order) }); n > 1 {
			t.Errorf("%v: %v allocations a block, want the slice of verdicts only", rule, n)
		}
	}
}
