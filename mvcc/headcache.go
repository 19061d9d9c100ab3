package mvcc

import (
	"bytes"
	"sync"
	"sync/atomic"
)

// headCache holds the newest version of keys, so that a point read at a recent
// height needs no iterator. An entry answers a snapshot that sees its version,
// because nothing newer exists; for an older snapshot it answers nothing. "No
// version at all" is an entry too and answers every snapshot.
//
// Three rules keep it right while blocks are committed and others read:
//
//  1. Commit of block n first raises the count of blocks of every shard, then
//     replaces the entries of the keys it wrote, and only then publishes
//     height n. A snapshot at n is therefore never served what n replaced.
//  2. A reader adds what it found newest only if the shard's count still is
//     the one that was published before it opened its iterator. If it is
//     not, a newer version may exist; if it is, a commit that follows will
//     replace the entry.
//  3. Entries are immutable. What a reader holds stays valid after eviction.
//
// Readers take no lock. One that runs beside a commit may meet what the commit
// replaces, which its snapshot, older than the commit, may see; or miss an
// entry that is being moved, which costs it a look at the store.
type headCache struct {
	shards [headShards]headShard
}

const headShards = 64

// headEntry is the newest version of a key.
type headEntry struct {
	hash    uint64 // of the key
	version Version
	buf     []byte // key, then row
	keyLen  int32
	slot    int32 // place in the ring; under the shard's lock
	used    atomic.Bool
	dead    bool // a tombstone, or no version
}

// headEntryRoom is a headEntry with its bytes beside it: a look-up that finds
// the entry in no cache of the processor waits for memory once, not twice.
type headEntryRoom struct {
	headEntry
	room [56]byte
}

func (e *headEntry) key() []byte   { return e.buf[:e.keyLen:e.keyLen] }
func (e *headEntry) value() []byte { return e.buf[e.keyLen:] }

// headOverhead estimates what an entry costs beyond its bytes: itself, its places
// in the ring and in the table.
const headOverhead = 176

func (e *headEntry) size() int64 { return int64(len(e.buf)) + headOverhead }

// headShard evicts by the clock algorithm. Entries are found by the 64-bit hash
// of their key; of two keys with one hash the later replaces the earlier.
type headShard struct {
	table atomic.Pointer[headTable]
	_     [56]byte // readers of table do not wait for writers of the rest

	mu     sync.Mutex
	ring   []*headEntry
	hand   int
	bytes  int64
	limit  int64
	blocks uint64 // Store.blocks as the last commit made it

	_ [56]byte
}

// headTable is a hash table with linear probing, of a power of two slots of which
// at most half are taken. It is changed under the shard's lock only.
type headTable struct{ slots []headSlot }

type headSlot struct {
	hash  atomic.Uint64
	entry atomic.Pointer[headEntry] // nil: the slot is free
}

func newHeadTable(size int) *headTable { return &headTable{slots: make([]headSlot, size)} }

// place returns the slot that has the hash or, if none has, the free one where
// its probing ends.
func (t *headTable) place(hash uint64) (i int, e *headEntry) {
	mask := len(t.slots) - 1
	for i = int(hash) & mask; ; i = (i + 1) & mask {
		s := &t.slots[i]
		if e = s.entry.Load(); e == nil || s.hash.Load() == hash {
			return i, e
		}
	}
}

// get is place for readers that hold no lock.
func (t *headTable) get(hash uint64) *headEntry {
	mask := len(t.slots) - 1
	for n, i := 0, int(hash)&mask; n <= mask; n, i = n+1, (i+1)&mask {
		s := &t.slots[i]
		if e := s.entry.Load(); e == nil || s.hash.Load() == hash {
			return e
		}
	}
	return nil
}

func (t *headTable) set(i int, hash uint64, e *headEntry) {
	t.slots[i].hash.Store(hash)
	t.slots[i].entry.Store(e)
}

// remove frees a slot and moves back what probing would not find any more.
func (t *headTable) remove(i int) {
	mask := len(t.slots) - 1
	for j := (i + 1) & mask; ; j = (j + 1) & mask {
		e := t.slots[j].entry.Load()
		if e == nil {
			break
		}
		home := int(e.hash) & mask
		if (j-home)&mask >= (j-i)&mask { // home is not behind i
			t.set(i, e.hash, e)
			i = j
		}
	}
	t.slots[i].entry.Store(nil)
}

// grow returns a table of twice the size with the same entries.
func (t *headTable) grow() *headTable {
	n := newHeadTable(2 * len(t.slots))
	for i := range t.slots {
		if e := t.slots[i].entry.Load(); e != nil {
			at, _ := n.place(e.hash)
			n.set(at, e.hash, e)
		}
	}
	return n
}

func newHeadCache(limit int64, blocks uint64) *headCache {
	c := new(headCache)
	for i := range c.shards {
		sh := &c.shards[i]
		sh.table.Store(newHeadTable(8))
		sh.limit = limit / headShards
		sh.blocks = blocks
	}
	return c
}

// The table uses the low bits of the hash, the choice of shard the high ones.
func (c *headCache) shard(hash uint64) *headShard { return &c.shards[hash>>58] }

// get returns the newest version of key, if known. Fields used and slot of the
// result must not be touched.
func (c *headCache) get(hash uint64, key []byte) *headEntry {
	e := c.shard(hash).table.Load().get(hash)
	if e == nil || !bytes.Equal(e.key(), key) {
		return nil
	}
	if !e.used.Load() { // a write would take the line from other readers
		e.used.Store(true)
	}
	return e
}

// fill adds what a reader found newest with an iterator opened after this many
// blocks were published.
func (c *headCache) fill(hash uint64, e *headEntry, blocks uint64) {
	sh := c.shard(hash)
	sh.mu.Lock()
	if sh.blocks == blocks {
		sh.put(hash, e)
	}
	sh.mu.Unlock()
}

// raise is the first step of a commit.
func (c *headCache) raise(blocks uint64) {
	for i := range c.shards {
		sh := &c.shards[i]
		sh.mu.Lock()
		sh.blocks = blocks
		sh.mu.Unlock()
	}
}

// committed replaces the entry of a key that a block wrote. A key without an
// entry gets none: what nobody read before it was written is not hot. The key
// an insert checked for absence has one. Key and row are copied.
func (c *headCache) committed(hash uint64, key []byte, v Version, dead bool, row []byte) {
	sh := c.shard(hash)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	_, old := sh.table.Load().place(hash)
	if old == nil || !bytes.Equal(old.key(), key) {
		return
	}
	if v.Block == old.version.Block && v.Seq < old.version.Seq {
		return // of several versions in one block the last in sequence counts
	}
	sh.put(hash, newHeadEntry(key, v, dead, row))
}

// newHeadEntry copies key and row.
func newHeadEntry(key []byte, v Version, dead bool, row []byte) *headEntry {
	n := len(key) + len(row)
	var e *headEntry
	if r := (*headEntryRoom)(nil); n <= len(r.room) {
		r = new(headEntryRoom)
		e, r.buf = &r.headEntry, r.room[:n:n]
	} else {
		e = &headEntry{buf: make([]byte, n)}
	}
	copy(e.buf, key)
	copy(e.buf[len(key):], row)
	e.keyLen, e.version, e.dead = int32(len(key)), v, dead
	return e
}

// put adds or replaces the entry of a hash and makes room for it. The shard is
// locked.
func (sh *headShard) put(hash uint64, e *headEntry) {
	t := sh.table.Load()
	at, old := t.place(hash)
	if e.size() > sh.limit/4 { // one entry must not empty a shard
		if old != nil {
			sh.remove(old)
		}
		return
	}
	e.hash = hash
	if old != nil {
		e.slot = old.slot
		e.used.Store(old.used.Load())
		sh.ring[e.slot] = e
		sh.bytes -= old.size()
	} else {
		e.slot = int32(len(sh.ring))
		sh.ring = append(sh.ring, e)
	}
	t.set(at, hash, e)
	if 2*len(sh.ring) > len(t.slots) {
		sh.table.Store(t.grow())
	}
	sh.bytes += e.size()
	for sh.bytes > sh.limit {
		sh.evictOne()
	}
}

// evictOne passes over entries used since the hand last came by.
func (sh *headShard) evictOne() {
	for {
		if sh.hand >= len(sh.ring) {
			sh.hand = 0
		}
		e := sh.ring[sh.hand]
		if e.used.Load() {
			e.used.Store(false)
			sh.hand++
			continue
		}
		sh.remove(e)
		return
	}
}

func (sh *headShard) remove(e *headEntry) {
	t := sh.table.Load()
	at, _ := t.place(e.hash)
	t.remove(at)
	last := len(sh.ring) - 1
	sh.ring[e.slot] = sh.ring[last]
	sh.ring[e.slot].slot = e.slot
	sh.ring[last] = nil
	sh.ring = sh.ring[:last]
	sh.bytes -= e.size()
}

// cacheCounters count what the head cache did, for metrics.
type cacheCounters struct{ hits, misses atomic.Uint64 }
