package ssi

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
	"slices"

	"github.com/tallystick/tallystick/mvcc/rwset"
)

// A cell is a set of written keys that footprints meet in. Every written key is
// a cell; when spans are read, so is every inner node of a binary tree over the
// written keys in sorted order. A point read enters one cell, a span read
// O(log keys) of them (the maximal nodes that the span covers), and a write
// touches the cell of its key and the nodes above it. So
//
//	N -> T  holds if and only if  some cell that T touches was entered by N
//
// and no list of edges is ever made: a block in which everybody reads what
// everybody writes costs as much as one without conflicts.
//
// Each set exists twice. Ordinary reads enter the even cell and reads for
// existence the odd one; every write touches the even cell, and only a write
// that changes liveness touches the odd one as well.
type cell = int32

// index holds the footprints of a block in terms of cells. Its memory is kept
// from one block to the next.
type index struct {
	keys keyTable

	// sorted and rank order the written keys; made at the first span read.
	sorted   []sortedKey // by key
	rank     []int32     // key id -> position in sorted
	prefix   []byte      // what all written keys have in common
	isSorted bool

	// writes of transaction t are writeKeys[writeOff[t]:writeOff[t+1]].
	writeKeys []keyWrite
	writeOff  []int32

	// entered cells of transaction t are entered[enterOff[t]:enterOff[t+1]].
	entered  []cell
	enterOff []int32

	// touched cells of transaction t are touched[touchOff[t]:touchOff[t+1]];
	// cells that nobody entered are left out.
	touched  []cell
	touchOff []int32

	// readers of cell c, ascending, are readers[head[c]:tail[c]]. Deciding
	// drops readers at the head that cannot matter any more.
	readers    []int32
	head, tail []int32

	stamp       []int32 // cell -> last transaction that entered or touched it
	shared      map[sharedList]cellRange
	sharedCells []cell
}

// keyWrite is one write, its key as an id of the key table.
type keyWrite struct {
	key  int32
	live bool
}

// sortedKey is a written key with eight bytes of it, taken after the common
// prefix and zero padded, which settle nearly every comparison.
type sortedKey struct {
	abbrev uint64
	id     int32
}

// sharedList identifies a read list that cached plans share between
// transactions by its memory; equal memory is equal contents.
type sharedList struct {
	first *rwset.Read
	n     int
}

type cellRange struct{ from, to int32 }

// build lays out the block. Excluded candidates leave no trace.
func (x *index) build(order []Candidate) {
	x.internWrites(order)
	x.enterReads(order)
	x.groupReaders(len(order))
	x.touchCells(len(order))
}

// release drops every reference to the caller's memory.
func (x *index) release() {
	x.keys.reset()
	x.prefix = nil
	clear(x.shared)
}

func (x *index) internWrites(order []Candidate) {
	total := 0
	for i := range order {
		if !order[i].Excluded {
			total += len(order[i].Footprint.Writes)
		}
	}
	x.keys.init(total)
	x.isSorted = false
	x.writeKeys = slices.Grow(x.writeKeys[:0], total)
	x.writeOff = append(x.writeOff[:0], 0)
	for i := range order {
		if !order[i].Excluded {
			for _, w := range order[i].Footprint.Writes {
				x.writeKeys = append(x.writeKeys, keyWrite{x.keys.intern(w.Key), w.Liveness})
			}
		}
		x.writeOff = append(x.writeOff, int32(len(x.writeKeys)))
	}
}

// cells returns how many cell numbers there are: two for each key, two for each
// node of the tree (numbered from 1; leaves are the keys themselves).
func (x *index) cells() int { return 4 * x.keys.len() }

func (x *index) keyCell(id int32) cell    { return 2 * id }
func (x *index) nodeCell(node int32) cell { return 2 * (int32(x.keys.len()) + node) }

func (x *index) enterReads(order []Candidate) {
	x.stamp = filled(x.stamp, x.cells(), -1)
	x.entered = x.entered[:0]
	x.enterOff = append(x.enterOff[:0], 0)
	x.sharedCells = x.sharedCells[:0]
	for t := range order {
		if !order[t].Excluded && x.keys.len() > 0 {
			x.enter(int32(t), order[t].Footprint)
		}
		x.enterOff = append(x.enterOff, int32(len(x.entered)))
	}
}

func (x *index) enter(t int32, fp *rwset.Footprint) {
	from := len(x.entered)
	for i := range fp.Reads {
		x.entered = x.appendCells(x.entered, &fp.Reads[i])
	}
	for _, list := range fp.Shared {
		x.entered = append(x.entered, x.cellsOfShared(list)...)
	}
	x.entered = x.dropStamped(t, x.entered, from)
}

// cellsOfShared looks a shared read list up once for the whole block.
func (x *index) cellsOfShared(list []rwset.Read) []cell {
	if len(list) == 0 {
		return nil
	}
	id := sharedList{&list[0], len(list)}
	r, ok := x.shared[id]
	if !ok {
		if x.shared == nil {
			x.shared = make(map[sharedList]cellRange)
		}
		r.from = int32(len(x.sharedCells))
		for i := range list {
			x.sharedCells = x.appendCells(x.sharedCells, &list[i])
		}
		r.to = int32(len(x.sharedCells))
		x.shared[id] = r
	}
	return x.sharedCells[r.from:r.to]
}

// dropStamped removes from cells[from:] what transaction t has stamped already.
func (x *index) dropStamped(t int32, cells []cell, from int) []cell {
	kept := cells[:from]
	for _, c := range cells[from:] {
		if x.stamp[c] != t {
			x.stamp[c] = t
			kept = append(kept, c)
		}
	}
	return kept
}

// appendCells appends the cells that r enters: none if no written key lies in
// its span.
func (x *index) appendCells(dst []cell, r *rwset.Read) []cell {
	var kind cell
	if r.Existence {
		kind = 1
	}
	if r.IsPoint() {
		if id := x.keys.find(r.Start); id >= 0 {
			dst = append(dst, x.keyCell(id)+kind)
		}
		return dst
	}
	if !x.isSorted {
		x.sortKeys()
	}
	// Bottom-up walk over the tree whose leaf p is node len(keys)+p.
	n := int32(x.keys.len())
	lo := x.lowerBound(0, r.Start)
	hi := x.lowerBound(lo, r.End)
	for lo, hi = lo+n, hi+n; lo < hi; lo, hi = lo>>1, hi>>1 {
		if lo&1 == 1 {
			dst = append(dst, x.treeCell(lo)+kind)
			lo++
		}
		if hi&1 == 1 {
			hi--
			dst = append(dst, x.treeCell(hi)+kind)
		}
	}
	return dst
}

func (x *index) treeCell(node int32) cell {
	if leaf := node - int32(x.keys.len()); leaf >= 0 {
		return x.keyCell(x.sorted[leaf].id)
	}
	return x.nodeCell(node)
}

// groupReaders turns the cells of each transaction into the transactions of
// each cell, by counting.
func (x *index) groupReaders(n int) {
	x.tail = filled(x.tail, x.cells(), 0)
	for _, c := range x.entered {
		x.tail[c]++
	}
	x.head = filled(x.head, x.cells(), 0)
	var at int32
	for c, count := range x.tail {
		x.head[c], x.tail[c] = at, at
		at += count
	}
	x.readers = filled(x.readers, len(x.entered), 0)
	for t := int32(0); t < int32(n); t++ {
		for _, c := range x.entered[x.enterOff[t]:x.enterOff[t+1]] {
			x.readers[x.tail[c]] = t
			x.tail[c]++
		}
	}
}

func (x *index) touchCells(n int) {
	x.stamp = filled(x.stamp, x.cells(), -1)
	x.touched = x.touched[:0]
	x.touchOff = append(x.touchOff[:0], 0)
	for t := int32(0); t < int32(n); t++ {
		for _, w := range x.writesOf(t) {
			x.touch(t, x.keyCell(w.key), w.live)
			if x.isSorted {
				leaf := int32(x.keys.len()) + x.rank[w.key]
				for node := leaf >> 1; node > 0; node >>= 1 {
					x.touch(t, x.nodeCell(node), w.live)
				}
			}
		}
		x.touchOff = append(x.touchOff, int32(len(x.touched)))
	}
}

func (x *index) touch(t int32, c cell, live bool) {
	if x.head[c] < x.tail[c] && x.stamp[c] != t {
		x.stamp[c] = t
		x.touched = append(x.touched, c)
	}
	if live {
		x.touch(t, c+1, false)
	}
}

func (x *index) writesOf(t int32) []keyWrite {
	return x.writeKeys[x.writeOff[t]:x.writeOff[t+1]]
}

func (x *index) enteredBy(t int32) []cell { return x.entered[x.enterOff[t]:x.enterOff[t+1]] }
func (x *index) touchedBy(t int32) []cell { return x.touched[x.touchOff[t]:x.touchOff[t+1]] }
func (x *index) readersOf(c cell) []int32 { return x.readers[x.head[c]:x.tail[c]] }

// sortKeys orders the written keys.
func (x *index) sortKeys() {
	x.isSorted = true
	x.prefix = x.keys.commonPrefix()
	n := x.keys.len()
	x.sorted = slices.Grow(x.sorted[:0], n)
	for id := int32(0); id < int32(n); id++ {
		x.sorted = append(x.sorted, sortedKey{abbreviate(x.keys.key(id)[len(x.prefix):]), id})
	}
	slices.SortFunc(x.sorted, func(a, b sortedKey) int {
		if a.abbrev != b.abbrev {
			if a.abbrev < b.abbrev {
				return -1
			}
			return 1
		}
		return bytes.Compare(x.keys.key(a.id), x.keys.key(b.id))
	})
	x.rank = filled(x.rank, n, 0)
	for p, k := range x.sorted {
		x.rank[k.id] = int32(p)
	}
}

// lowerBound returns how many written keys are smaller than bound, of which the
// caller knows that the first from are. It looks near from at first: most spans
// are narrow.
func (x *index) lowerBound(from int32, bound []byte) int32 {
	if !bytes.HasPrefix(bound, x.prefix) {
		if bytes.Compare(bound, x.prefix) < 0 {
			return from
		}
		return int32(len(x.sorted))
	}
	abbrev := abbreviate(bound[len(x.prefix):])
	smaller := func(i int) bool {
		k := &x.sorted[i]
		return k.abbrev < abbrev || k.abbrev == abbrev && bytes.Compare(x.keys.key(k.id), bound) < 0
	}
	lo, hi := int(from), len(x.sorted)
	for step := 1; from > 0 && lo+step < hi; step *= 2 {
		if !smaller(lo + step - 1) {
			hi = lo + step - 1
			break
		}
		lo += step
	}
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if smaller(mid) {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return int32(lo)
}

// abbreviate returns the first eight bytes of b, zero padded, as a number:
// abbreviations that differ are ordered as their keys are.
func abbreviate(b []byte) uint64 {
	if len(b) >= 8 {
		return binary.BigEndian.Uint64(b)
	}
	var a uint64
	for i, c := range b {
		a |= uint64(c) << (56 - 8*i)
	}
	return a
}

// keyTable numbers the distinct written keys in order of first appearance. The
// hash has a secret seed, so that nobody can write keys that collide; no result
// depends on it.
type keyTable struct {
	seed    maphash.Seed
	seeded  bool
	slots   []int32 // id+1, 0 is free; a power of two, at most half full
	entries []keyEntry
}

type keyEntry struct {
	key  []byte
	hash uint64
}

// init makes room for up to n keys in an empty table.
func (k *keyTable) init(n int) {
	if !k.seeded {
		k.seed, k.seeded = maphash.MakeSeed(), true
	}
	size := 16
	for size < 2*n {
		size *= 2
	}
	k.slots = filled(k.slots, size, 0)
	k.entries = k.entries[:0]
}

// reset empties the table and lets go of the keys.
func (k *keyTable) reset() {
	clear(k.entries)
	k.entries = k.entries[:0]
}

func (k *keyTable) len() int            { return len(k.entries) }
func (k *keyTable) key(id int32) []byte { return k.entries[id].key }

// find returns the id of key, or -1 if nobody writes it.
func (k *keyTable) find(key []byte) int32 {
	_, id := k.probe(key, maphash.Bytes(k.seed, key))
	return id
}

// intern returns the id of key, giving it one if it has none.
func (k *keyTable) intern(key []byte) int32 {
	hash := maphash.Bytes(k.seed, key)
	slot, id := k.probe(key, hash)
	if id < 0 {
		id = int32(len(k.entries))
		k.entries = append(k.entries, keyEntry{key, hash})
		k.slots[slot] = id + 1
	}
	return id
}

func (k *keyTable) probe(key []byte, hash uint64) (slot int, id int32) {
	mask := len(k.slots) - 1
	for slot = int(hash) & mask; k.slots[slot] != 0; slot = (slot + 1) & mask {
		id = k.slots[slot] - 1
		if e := &k.entries[id]; e.hash == hash && bytes.Equal(e.key, key) {
			return slot, id
		}
	}
	return slot, -1
}

// commonPrefix returns the longest prefix of all keys.
func (k *keyTable) commonPrefix() []byte {
	if len(k.entries) == 0 {
		return nil
	}
	prefix := k.entries[0].key
	for _, e := range k.entries[1:] {
		n := 0
		for n < len(prefix) && n < len(e.key) && prefix[n] == e.key[n] {
			n++
		}
		prefix = prefix[:n]
	}
	return prefix
}

// filled returns a slice of n copies of value in the memory of s if it is large
// enough.
func filled(s []int32, n int, value int32) []int32 {
	if cap(s) < n {
		s = make([]int32, n)
	}
	s = s[:n]
	if value == 0 {
		clear(s)
		return s
	}
	for i := range s {
		s[i] = value
	}
	return s
}
