package ssi

import (
	"fmt"
	"math/rand/v2"

	"github.com/tallystick/tallystick/mvcc/rwset"
)

// blockShape says what random blocks look like.
type blockShape struct {
	txs, keys     int // transactions of a block, keys to choose from
	reads, writes int // at most, of each transaction
	spans         int // percent of the reads that are real spans
	existence     int // percent of the reads that are for existence
	excluded      int // percent of the transactions
	shared        int // read lists that transactions share
	readOwn       bool
}

// testKey returns key number i: variable length, never a prefix of another,
// and in the order of the numbers.
func testKey(i int) []byte {
	return []byte(fmt.Sprintf("t1/%04d%s", i, "/////////////"[:i%4+1]))
}

func point(i int) rwset.Span { return rwset.Point(testKey(i)) }

// randomSpan covers keys lo to hi with either bound open or closed; now and
// then it lies outside of all keys or is empty.
func randomSpan(r *rand.Rand, keys int) rwset.Span {
	lo := r.IntN(keys)
	hi := lo + r.IntN(1+r.IntN(keys))
	s := rwset.Span{Start: point(lo).Start, End: point(hi).Start}
	switch r.IntN(12) {
	case 0:
		s.Start = []byte("a")
	case 1:
		s.End = []byte("z")
	case 2:
		s.Start, s.End = s.End, s.Start
	case 3:
		s.Start = point(lo).End
	case 4:
		s.End = nil
	case 5:
		s.Start = nil
	case 6:
		s = rwset.Span{Start: []byte("t1/00"), End: rwset.PrefixEnd([]byte("t1/00"))}
	default:
		s.End = point(hi).End
	}
	return s
}

func (b blockShape) read(r *rand.Rand) rwset.Read {
	var rd rwset.Read
	if r.IntN(100) < b.spans {
		rd.Span = randomSpan(r, b.keys)
	} else {
		rd.Span = point(r.IntN(b.keys))
	}
	rd.Existence = r.IntN(100) < b.existence
	return rd
}

// block makes a random block of this shape.
func (b blockShape) block(r *rand.Rand) []Candidate {
	lists := make([][]rwset.Read, b.shared)
	for i := range lists {
		for range r.IntN(4) {
			lists[i] = append(lists[i], b.read(r))
		}
	}
	order := make([]Candidate, b.txs)
	for i := range order {
		fp := &rwset.Footprint{}
		for range r.IntN(b.reads + 1) {
			fp.Reads = append(fp.Reads, b.read(r))
		}
		for range r.IntN(b.writes + 1) {
			k := r.IntN(b.keys)
			fp.Writes = append(fp.Writes, rwset.Write{Key: testKey(k), Liveness: r.IntN(2) == 0})
			if b.readOwn {
				fp.Reads = append(fp.Reads, rwset.Read{Span: point(k)})
			}
		}
		for _, list := range lists {
			if r.IntN(3) == 0 {
				fp.Shared = append(fp.Shared, list)
			}
		}
		order[i] = Candidate{Footprint: fp, Excluded: r.IntN(100) < b.excluded}
		if order[i].Excluded && r.IntN(2) == 0 {
			order[i].Footprint = nil
		}
	}
	return order
}

// shapes go from a few transactions that all collide to middling blocks.
var shapes = []struct {
	shape  blockShape
	rounds int
}{
	{blockShape{txs: 2, keys: 3, reads: 2, writes: 2}, 4000},
	{blockShape{txs: 3, keys: 3, reads: 2, writes: 1, excluded: 5}, 10000},
	{blockShape{txs: 4, keys: 5, reads: 2, writes: 1, spans: 30, existence: 20}, 10000},
	{blockShape{txs: 6, keys: 9, reads: 2, writes: 2, spans: 20, existence: 30, excluded: 10, shared: 2}, 10000},
	{blockShape{txs: 8, keys: 20, reads: 3, writes: 2, spans: 10, readOwn: true}, 6000},
	{blockShape{txs: 12, keys: 12, reads: 2, writes: 1, spans: 60}, 3000},
	{blockShape{txs: 20, keys: 80, reads: 4, writes: 3, spans: 15, existence: 15, excluded: 10, shared: 3}, 2000},
	{blockShape{txs: 40, keys: 40, reads: 3, writes: 1}, 600},
	{blockShape{txs: 60, keys: 500, reads: 6, writes: 3, spans: 10, existence: 20, readOwn: true, shared: 2}, 150},
	{blockShape{txs: 100, keys: 3000, reads: 8, writes: 4, spans: 5}, 40},
	{blockShape{txs: 200, keys: 1500, reads: 3, writes: 2, existence: 10, excluded: 3}, 15},
}
