package ssi

import (
	"bytes"
	"slices"

	"github.com/tallystick/tallystick/mvcc/rwset"
)

// Overwrites knows what the committed transactions of a block wrote, and tells
// whether a transaction that failed on its own might have fared differently after
// those that stand before it. Such a failure is as good an outcome as any, since
// there is a serial order for it, but not the one that a client expects who was
// ordered later. The zero value is empty.
type Overwrites struct {
	writes []overwrite
	sorted bool
}

type overwrite struct {
	key      []byte
	liveness bool
	by       int // place in the block
}

// Add adds the writes of the committed transaction at a place in the block.
func (o *Overwrites) Add(by int, fp *rwset.Footprint) {
	for i := range fp.Writes {
		o.writes = append(o.writes, overwrite{fp.Writes[i].Key, fp.Writes[i].Liveness, by})
	}
	o.sorted = false
}

// Reset empties o and keeps its memory.
func (o *Overwrites) Reset() {
	clear(o.writes)
	o.writes = o.writes[:0]
}

// Before reports whether a transaction that stands before place at wrote
// something that fp read.
func (o *Overwrites) Before(at int, fp *rwset.Footprint) bool {
	if !o.sorted {
		slices.SortFunc(o.writes, func(a, b overwrite) int { return bytes.Compare(a.key, b.key) })
		o.sorted = true
	}
	found := false
	fp.EachRead(func(r rwset.Read) bool {
		first, _ := slices.BinarySearchFunc(o.writes, r.Start, func(w overwrite, key []byte) int { return bytes.Compare(w.key, key) })
		for _, w := range o.writes[first:] {
			if bytes.Compare(w.key, r.End) >= 0 {
				break
			}
			if w.by < at && (w.liveness || !r.Existence) {
				found = true
				break
			}
		}
		return !found
	})
	return found
}
