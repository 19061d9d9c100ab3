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
type headCache struct {
	shards [headShards]headShard
}

const headShards = 64

// headEntry is the newest version of a key.
type headEntry struct {
	key     []byte
	value   []byte
	version Version // zero: the key has no version
	dead    bool    // a tombstone, or no version
	hash    uint64  // of the key
	used    bool    // second chance; under the shard's lock
	slot    int     // place in the ring; under the shard's lock
}

// headOverhead estimates what an entry costs beyond its bytes: itself, its ring
// slot and its share of the map.
const headOverhead = 176

func (e *headEntry) size() int64 { return int64(len(e.key)+len(e.value)) + headOverhead }

// headShard evicts by the clock algorithm. Entries are found by the 64-bit hash
// of their key; of two keys with one hash the later replaces the earlier.
type headShard struct {
	mu     sync.Mutex
	byHash map[uint64]*headEntry
	ring   []*headEntry
	hand   int
	bytes  int64
	limit  int64
	blocks uint64 // Store.blocks as the last commit made it

	_ [64]byte // keeps neighbouring locks off one cache line
}

func newHeadCache(limit int64, blocks uint64) *headCache {
	c := new(headCache)
	for i := range c.shards {
		sh := &c.shards[i]
		sh.byHash = make(map[uint64]*headEntry)
		sh.limit = limit / headShards
		sh.blocks = blocks
	}
	return c
}

// The map uses the low bits of the hash, the choice of shard the high ones.
func (c *headCache) shard(hash uint64) *headShard { return &c.shards[hash>>58] }

// get returns the newest version of key, if known. Fields used and slot of the
// result must not be touched.
func (c *headCache) get(hash uint64, key []byte) *headEntry {
	sh := c.shard(hash)
	sh.mu.Lock()
	e := sh.byHash[hash]
	if e == nil || !bytes.Equal(e.key, key) {
		sh.mu.Unlock()
		return nil
	}
	e.used = true
	sh.mu.Unlock()
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
	old := sh.byHash[hash]
	if old == nil || !bytes.Equal(old.key, key) {
		return
	}
	if v.Block == old.version.Block && v.Seq < old.version.Seq {
		return // of several versions in one block the last in sequence counts
	}
	sh.put(hash, newHeadEntry(key, v, dead, row))
}

// newHeadEntry copies key and row into one allocation.
func newHeadEntry(key []byte, v Version, dead bool, row []byte) *headEntry {
	buf := make([]byte, len(key)+len(row))
	copy(buf, key)
	copy(buf[len(key):], row)
	return &headEntry{key: buf[:len(key):len(key)], value: buf[len(key):], version: v, dead: dead}
}

// put adds or replaces the entry of a hash and makes room for it. The shard is
// locked.
func (sh *headShard) put(hash uint64, e *headEntry) {
	old := sh.byHash[hash]
	if e.size() > sh.limit/4 { // one entry must not empty a shard
		if old != nil {
			sh.remove(hash, old)
		}
		return
	}
	if old != nil {
		e.slot, e.used = old.slot, old.used
		sh.ring[e.slot] = e
		sh.bytes -= old.size()
	} else {
		e.slot = len(sh.ring)
		sh.ring = append(sh.ring, e)
	}
	sh.byHash[hash] = e
	sh.bytes += e.size()
	e.hash = hash
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
		if e.used {
			e.used = false
			sh.hand++
			continue
		}
		sh.remove(e.hash, e)
		return
	}
}

func (sh *headShard) remove(hash uint64, e *headEntry) {
	delete(sh.byHash, hash)
	last := len(sh.ring) - 1
	sh.ring[e.slot] = sh.ring[last]
	sh.ring[e.slot].slot = e.slot
	sh.ring[last] = nil
	sh.ring = sh.ring[:last]
	sh.bytes -= e.size()
}

// cacheCounters count what the head cache did, for metrics.
type cacheCounters struct{ hits, misses atomic.Uint64 }
