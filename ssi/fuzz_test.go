package ssi

import (
	"slices"
	"testing"

	"github.com/tallystick/tallystick/mvcc/rwset"
)

// FuzzDecide reads a block from arbitrary bytes and compares with the rules as
// the text states them.
func FuzzDecide(f *testing.F) {
	f.Add([]byte{3, 0x11, 0x42, 0x81, 0xff, 0x21, 0x33, 0x9a, 0x10, 0x00})
	f.Add([]byte("\x04\x10\x21\x80\x91\xc0\x11\x22\x81\x92\xc0\x12\x20\x82\x90"))
	f.Add([]byte("every transaction reads what every other one writes"))
	f.Fuzz(func(t *testing.T, data []byte) {
		order := blockOf(data)
		edge := naiveEdges(order)
		for _, rule := range rules {
			got, want := Decide(rule, order), naiveDecide(rule, order)
			if !slices.Equal(got, want) {
				t.Fatalf("%v:\n%s\n got %v\nwant %v", rule, describe(order), got, want)
			}
			if !acyclic(edge, committedOf(got)) {
				t.Fatalf("%v: cycle among the committed of\n%s", rule, describe(order))
			}
		}
	})
}

// blockOf turns every byte into one operation of the current transaction: the
// upper bits choose it, the lower ones a key of eight or the ends of a span.
func blockOf(data []byte) []Candidate {
	const maxTxs, maxOps = 24, 400
	order := []Candidate{{Footprint: &rwset.Footprint{}}}
	for i, c := range data[:min(len(data), maxOps)] {
		cur := &order[len(order)-1]
		fp, k := cur.Footprint, int(c&7)
		key := []byte{'k', byte(k)}
		switch c >> 5 {
		case 0, 1:
			fp.Reads = append(fp.Reads, rwset.Read{Span: rwset.Point(key), Existence: c&8 != 0})
		case 2:
			end := []byte{'k', byte(i % 9)}
			if c&16 != 0 {
				end = append(end, 0)
			}
			fp.Reads = append(fp.Reads, rwset.Read{Span: rwset.Span{Start: key, End: end}, Existence: c&8 != 0})
		case 3, 4:
			fp.Writes = append(fp.Writes, rwset.Write{Key: key, Liveness: c&8 != 0})
		case 5:
			if len(fp.Reads) > 0 {
				fp.Shared = append(fp.Shared, fp.Reads)
			}
		case 6:
			if len(order) < maxTxs {
				order = append(order, Candidate{Footprint: &rwset.Footprint{}})
			}
		case 7:
			cur.Excluded = cur.Excluded || c&31 == 0
		}
	}
	return order
}
