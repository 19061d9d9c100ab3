package mvcc

import (
	"bytes"
	"fmt"
)

// writes holds what a transaction wrote: an append-only log of entries and an
// index that orders the newest entry of every key. Each entry links to its
// key's older one, so that a savepoint is a length of the log and undoing is
// cutting it. The index is a sorted list in chunks: one chunk for the usual
// handful of writes, and still one short move per insert for a million.
type writes struct {
	log   []entry
	index [][]int32 // log positions in key order; no chunk is empty
	count int       // keys in the index
	shape uint64    // changes whenever keys enter or leave the index
	// fence is the log length at the newest savepoint or scan: entries before
	// it must keep what they say, later ones may be overwritten in place.
	fence int
	bytes int64 // keys and values of every write, undone ones included
	arena arena
	spare []int32 // a chunk of an earlier use
}

type entry struct {
	key, value []byte
	prev       int32 // older entry of the same key, or -1
	tombstone  bool
	baseLive   bool // the key was live before this transaction
}

const (
	chunkMost = 512
	noEntry   = -1
)

// slot is a place in the index.
type slot struct{ chunk, pos int }

// seek returns the first slot whose key is >= key, and whether it is equal.
func (w *writes) seek(key []byte) (slot, bool) {
	lo, hi := 0, len(w.index)
	for lo < hi { // first chunk whose last key is >= key
		m := int(uint(lo+hi) >> 1)
		c := w.index[m]
		if bytes.Compare(w.log[c[len(c)-1]].key, key) < 0 {
			lo = m + 1
		} else {
			hi = m
		}
	}
	if lo == len(w.index) {
		return slot{lo, 0}, false
	}
	c := w.index[lo]
	a, b := 0, len(c)-1 // the last is known to be >= key
	for a < b {
		m := int(uint(a+b) >> 1)
		if bytes.Compare(w.log[c[m]].key, key) < 0 {
			a = m + 1
		} else {
			b = m
		}
	}
	return slot{lo, a}, bytes.Equal(w.log[c[a]].key, key)
}

// get returns the newest entry of key.
func (w *writes) get(key []byte) (*entry, bool) {
	if w.count == 0 {
		return nil, false
	}
	s, ok := w.seek(key)
	if !ok {
		return nil, false
	}
	return &w.log[w.index[s.chunk][s.pos]], true
}

// valid reports whether there is a key at s.
func (w *writes) valid(s slot) bool { return s.chunk >= 0 && s.chunk < len(w.index) }

func (w *writes) next(s slot) slot {
	if s.pos++; s.pos == len(w.index[s.chunk]) {
		return slot{s.chunk + 1, 0}
	}
	return s
}

// before returns the slot before s, which may be the end.
func (w *writes) before(s slot) slot {
	if s.pos > 0 {
		return slot{s.chunk, s.pos - 1}
	}
	if s.chunk == 0 {
		return slot{-1, 0}
	}
	return slot{s.chunk - 1, len(w.index[s.chunk-1]) - 1}
}

// put adds a write. When the key is new to the transaction, base says whether
// it was live before; otherwise base is not called.
func (w *writes) put(key, value []byte, tombstone bool, base func() (bool, error)) error {
	w.bytes += int64(len(key) + len(value))
	s, found := slot{}, false
	if w.count > 0 {
		s, found = w.seek(key)
	}
	if len(w.log) == maxEntries {
		return fmt.Errorf("mvcc: a transaction cannot hold more than %d writes", maxEntries)
	}
	if found {
		at := w.index[s.chunk][s.pos]
		e := &w.log[at]
		if int(at) >= w.fence {
			e.value, e.tombstone = w.arena.copy(value), tombstone
			return nil
		}
		w.index[s.chunk][s.pos] = int32(len(w.log))
		w.log = append(w.log, entry{key: e.key, value: w.arena.copy(value), prev: at, tombstone: tombstone, baseLive: e.baseLive})
		return nil
	}
	live, err := base()
	if err != nil {
		return err
	}
	w.log = append(w.log, entry{key: w.arena.copy(key), value: w.arena.copy(value), prev: noEntry, tombstone: tombstone, baseLive: live})
	w.insert(s, int32(len(w.log)-1))
	return nil
}

const maxEntries = 1<<31 - 1

// insert puts a log position before what is at s.
func (w *writes) insert(s slot, at int32) {
	w.count++
	w.shape++
	if s.chunk == len(w.index) { // greater than every key
		if s.chunk == 0 {
			if w.spare == nil {
				w.spare = make([]int32, 0, 8)
			}
			w.index = append(w.index, append(w.spare, at))
			w.spare = nil
			return
		}
		s.chunk--
		if s.pos = len(w.index[s.chunk]); s.pos == chunkMost {
			// Ascending inserts fill chunks instead of splitting them in halves.
			w.index = append(w.index, append(make([]int32, 0, chunkMost), at))
			return
		}
	}
	c := w.index[s.chunk]
	if len(c) == chunkMost {
		right := append(make([]int32, 0, chunkMost), c[chunkMost/2:]...)
		w.index[s.chunk] = c[:chunkMost/2]
		w.index = append(w.index, nil)
		copy(w.index[s.chunk+2:], w.index[s.chunk+1:])
		w.index[s.chunk+1] = right
		if s.pos > chunkMost/2 {
			s = slot{s.chunk + 1, s.pos - chunkMost/2}
		}
		c = w.index[s.chunk]
	}
	c = append(c, 0)
	copy(c[s.pos+1:], c[s.pos:])
	c[s.pos] = at
	w.index[s.chunk] = c
}

// remove takes the key at s out of the index.
func (w *writes) remove(s slot) {
	w.count--
	w.shape++
	c := w.index[s.chunk]
	copy(c[s.pos:], c[s.pos+1:])
	if c = c[:len(c)-1]; len(c) > 0 {
		w.index[s.chunk] = c
		return
	}
	copy(w.index[s.chunk:], w.index[s.chunk+1:])
	w.index = w.index[:len(w.index)-1]
}

// mark makes everything so far unchangeable and returns its place.
func (w *writes) mark() int {
	w.fence = len(w.log)
	return w.fence
}

// cut undoes all entries from the mark on.
func (w *writes) cut(mark int) {
	for i := len(w.log) - 1; i >= mark; i-- {
		e := &w.log[i]
		s, _ := w.seek(e.key)
		if e.prev == noEntry {
			w.remove(s)
		} else {
			w.index[s.chunk][s.pos] = e.prev
		}
	}
	clear(w.log[mark:])
	w.log = w.log[:mark]
	w.fence = mark
}

// asOf returns the key's entry at s as it was at a mark.
func (w *writes) asOf(s slot, mark int) (*entry, bool) {
	at := w.index[s.chunk][s.pos]
	for int(at) >= mark {
		if at = w.log[at].prev; at == noEntry {
			return nil, false
		}
	}
	return &w.log[at], true
}

// reset forgets everything and keeps the slices.
func (w *writes) reset() {
	clear(w.log)
	log := w.log[:0]
	if cap(log) > 1024 {
		log = nil
	}
	spare := w.spare
	if len(w.index) > 0 {
		spare = w.index[0][:0]
	}
	*w = writes{log: log, index: w.index[:0], spare: spare}
}

// ownCursor walks the keys of a span in the writes as they were at a mark, while
// the transaction goes on writing.
type ownCursor struct {
	w       *writes
	mark    int
	start   []byte
	end     []byte
	reverse bool
	begun   bool
	done    bool
	at      slot
	shape   uint64
	key     []byte // the key at which it stands
}

// next returns the next entry, or nil.
func (c *ownCursor) next() *entry {
	for {
		if c.done {
			return nil
		}
		c.move()
		if !c.w.valid(c.at) {
			c.done = true
			return nil
		}
		c.key = c.w.log[c.w.index[c.at.chunk][c.at.pos]].key
		if c.reverse && bytes.Compare(c.key, c.start) < 0 || !c.reverse && bytes.Compare(c.key, c.end) >= 0 {
			c.done = true
			return nil
		}
		if e, ok := c.w.asOf(c.at, c.mark); ok {
			return e
		}
	}
}

// move goes one slot on. The index may have changed shape since: then the place
// is found again by key.
func (c *ownCursor) move() {
	switch {
	case !c.begun && c.reverse:
		s, _ := c.w.seek(c.end)
		c.at = c.w.before(s)
	case !c.begun:
		c.at, _ = c.w.seek(c.start)
	case c.reverse:
		if c.shape != c.w.shape {
			c.at, _ = c.w.seek(c.key)
		}
		c.at = c.w.before(c.at)
	case c.shape != c.w.shape:
		s, found := c.w.seek(c.key)
		if found {
			s = c.w.next(s)
		}
		c.at = s
	default:
		c.at = c.w.next(c.at)
	}
	c.begun = true
	c.shape = c.w.shape
}
