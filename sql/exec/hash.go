package exec

import (
	"github.com/tallystick/tallystick/sql/datum"
)

// keyKinds is how a list of key columns is hashed and compared. Equality is
// always that of Compare; hashes only narrow the search.
type keyKinds struct {
	hash []func(h uint64, d datum.Datum) uint64
	cmp  []func(a, b datum.Datum) int
}

func newKeyKinds(types []datum.Type) (*keyKinds, error) {
	k := &keyKinds{}
	for _, t := range types {
		h, err := hashOf(t)
		if err != nil {
			return nil, err
		}
		c, err := compareOf(t)
		if err != nil {
			return nil, err
		}
		k.hash, k.cmp = append(k.hash, h), append(k.cmp, c)
	}
	return k, nil
}

// sum hashes a key; nulls hash alike.
func (k *keyKinds) sum(key []datum.Datum) uint64 {
	h := uint64(0x51ed270b)
	for i, d := range key[:len(k.hash)] {
		if d.IsNull() {
			h = datum.HashInt(h, 0x6e756c6c)
		} else {
			h = k.hash[i](h, d)
		}
	}
	return h
}

// equal tells whether two keys are equal, null being equal to null.
func (k *keyKinds) equal(a, b []datum.Datum) bool {
	for i := range k.cmp {
		an, bn := a[i].IsNull(), b[i].IsNull()
		if an != bn || !an && k.cmp[i](a[i], b[i]) != 0 {
			return false
		}
	}
	return true
}

// hashTable finds rows of a rowStore by the key columns that they begin with.
// Rows with equal keys are chained in the order in which they came.
type hashTable struct {
	kinds   *keyKinds
	rows    rowStore
	buckets []int32 // 1 + first row with this hash, open addressing
	sums    []uint64
	next    []int32 // 1 + next row with an equal key
	last    []int32 // the last row of the chain that a row begins; -1 if it begins none
	keys    int     // chains
}

func (t *hashTable) reset(f *frame) {
	t.rows.reset(f)
	t.empty()
}

func (t *hashTable) drop() {
	t.rows.drop()
	t.empty()
}

func (t *hashTable) empty() {
	if len(t.buckets) > keepMost {
		*t = hashTable{kinds: t.kinds, rows: t.rows}
	}
	clear(t.buckets)
	t.sums, t.next, t.last, t.keys = t.sums[:0], t.next[:0], t.last[:0], 0
}

// find returns the first row whose key equals key, or -1.
func (t *hashTable) find(key []datum.Datum) int {
	if t.keys == 0 {
		return -1
	}
	at, _ := t.probe(key, t.kinds.sum(key))
	return int(at) - 1
}

// probe returns 1 + the first row of key's chain, or 0 and the free bucket.
func (t *hashTable) probe(key []datum.Datum, sum uint64) (row int32, bucket int) {
	mask := uint64(len(t.buckets) - 1)
	for i := sum & mask; ; i = (i + 1) & mask {
		b := t.buckets[i]
		if b == 0 {
			return 0, int(i)
		}
		if t.sums[b-1] == sum && t.kinds.equal(t.rows.row(int(b-1)), key) {
			return b, int(i)
		}
	}
}

// insert puts the last row of rows into the table and returns the first row of
// its chain, which is the row itself if its key is new.
func (t *hashTable) insert() int {
	t.grow()
	at := t.rows.n - 1
	key := t.rows.row(at)
	sum := t.kinds.sum(key)
	first, bucket := t.probe(key, sum)
	t.sums = append(t.sums, sum)
	t.next = append(t.next, 0)
	if first != 0 {
		t.last = append(t.last, -1)
		head := first - 1
		t.next[t.last[head]] = int32(at) + 1
		t.last[head] = int32(at)
		return int(head)
	}
	t.last = append(t.last, int32(at))
	t.buckets[bucket] = int32(at) + 1
	t.keys++
	return at
}

// addUnique keeps row unless its key is there already, and reports the place of
// the row with that key.
func (t *hashTable) addUnique(f *frame, row []datum.Datum) (at int, added bool, err error) {
	if at := t.find(row); at >= 0 {
		return at, false, nil
	}
	if err := t.rows.addRow(f, row); err != nil {
		return 0, false, err
	}
	return t.insert(), true, nil
}

// following returns the next row with the same key, or -1.
func (t *hashTable) following(row int) int { return int(t.next[row]) - 1 }

func (t *hashTable) grow() {
	if len(t.buckets) >= 2*(t.keys+1) {
		return
	}
	t.buckets = make([]int32, max(16, 2*len(t.buckets)))
	mask := uint64(len(t.buckets) - 1)
	for i, last := range t.last {
		if last < 0 {
			continue // not the first of its chain
		}
		b := t.sums[i] & mask
		for t.buckets[b] != 0 {
			b = (b + 1) & mask
		}
		t.buckets[b] = int32(i) + 1
	}
}
