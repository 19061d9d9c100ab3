package mvcc

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/tallystick/tallystick/mvcc/rwset"
)

// Txn is the workspace of one transaction: a snapshot, the transaction's own
// writes on top of it and the record of what it read. It is not safe for
// concurrent use; many Txns run concurrently.
//
// What a Txn counts and records depends on the snapshot and on the calls made
// alone, never on caches or on how far the store has got meanwhile.
type Txn struct {
	s   *Store
	b   *BlockBatch // nil: reads committed blocks only
	at  Snapshot
	xid uint64
	err error // why the transaction cannot run, if it cannot
	// forgetful: nothing is recorded, see Forget.
	forgetful bool

	own    writes
	fp     rwset.Footprint
	recent [recentReads]int32 // by hash: 1 + place in fp.Reads of a point read
	arena  arena              // keys of the footprint

	reads     int
	readBytes int64

	points       *pebble.Iterator // for point reads, opened at need
	pointsBlocks uint64           // published before points was opened
	open         []*Iter          // scans not closed yet
	cursors      []*cursor        // idle, for later scans
	enc          []byte           // scratch
}

const recentReads = 64

// Begin starts a transaction on committed blocks. The snapshot must not lie
// above Height: such a transaction could not read the same again, and every
// read of it fails.
func (s *Store) Begin(at Snapshot, xid uint64) *Txn {
	t := &Txn{s: s}
	t.begin(at, xid)
	return t
}

// Begin starts a transaction on committed blocks plus what the batch holds
// already. It must be closed before the batch is committed or closed.
func (b *BlockBatch) Begin(at Snapshot, xid uint64) *Txn {
	t := &Txn{s: b.s, b: b}
	t.begin(at, xid)
	return t
}

func (t *Txn) begin(at Snapshot, xid uint64) {
	t.at, t.xid, t.err, t.forgetful = at, xid, nil, false
	limit := t.s.Height()
	if t.b != nil {
		if t.err = t.b.index(); t.err != nil {
			return
		}
		limit = t.b.height
	}
	if at.Height > limit {
		t.err = fmt.Errorf("mvcc: snapshot at height %d, the store has %d", at.Height, limit)
	}
}

// Forget makes the transaction record nothing from now on: for local queries,
// which no verdict depends on and which may read more than a footprint can hold.
func (t *Txn) Forget() { t.forgetful = true }

// Snapshot is the state the transaction reads.
func (t *Txn) Snapshot() Snapshot { return t.at }

// XID is the transaction's number.
func (t *Txn) XID() uint64 { return t.xid }

// SetXID gives the transaction the number under which its writes will be applied:
// one that was executed before it had a place in a block gets it afterwards. What
// it read of its own rows had the number that it began with.
func (t *Txn) SetXID(xid uint64) { t.xid = xid }

// Get reads the row under key: the transaction's own, else the one its snapshot
// sees. The value is immutable and valid for ever. A row of its own leaves no
// trace in the footprint; of anything else, a miss included, mode decides.
func (t *Txn) Get(key []byte, mode ReadMode) (value []byte, v Version, ok bool, err error) {
	if t.err != nil {
		return nil, Version{}, false, t.err
	}
	if err := checkKey(key); err != nil {
		return nil, Version{}, false, err
	}
	t.reads++
	t.readBytes += int64(len(key))
	if e, found := t.own.get(key); found {
		if e.tombstone {
			return nil, Version{}, false, nil
		}
		t.readBytes += int64(len(e.value))
		return e.value, t.ownVersion(), true, nil
	}
	hash := t.s.hash(key)
	if mode != ReadUnrecorded {
		t.notePoint(key, hash, mode == ReadExistence)
	}
	value, v, ok, err = t.read(key, hash)
	t.readBytes += int64(len(value))
	return value, v, ok, err
}

func (t *Txn) ownVersion() Version { return Version{Block: OwnBlock, Seq: OwnSeq, XID: t.xid} }

// read finds the committed version of key that the snapshot sees.
func (t *Txn) read(key []byte, hash uint64) ([]byte, Version, bool, error) {
	overlay := t.b != nil && t.at.Height >= t.b.height && t.b.wrote(hash)
	cached := t.s.head != nil && !overlay
	newest := cached // look for the newest version, to cache it
	if cached {
		if e := t.s.head.get(hash, key); e != nil {
			if e.version.IsZero() || t.at.sees(e.version.Block, e.version.Seq) {
				t.s.cache.hits.Add(1)
				return e.row()
			}
			newest = false
		}
		t.s.cache.misses.Add(1)
	}
	it, err := t.pointIter()
	if err != nil {
		return nil, Version{}, false, err
	}
	if newest {
		t.enc = appendPrefix(t.enc[:0], key)
		e, err := readVersion(it, it.SeekPrefixGE(t.enc), key)
		if err != nil {
			return nil, Version{}, false, err
		}
		t.s.head.fill(hash, e, t.pointsBlocks)
		if e.version.IsZero() || t.at.sees(e.version.Block, e.version.Seq) {
			return e.row()
		}
	}
	t.enc = appendVersioned(t.enc[:0], key, t.at.Height, t.at.Seq)
	e, err := readVersion(it, it.SeekPrefixGE(t.enc), key)
	if err != nil {
		return nil, Version{}, false, err
	}
	return e.row()
}

// row turns a version into the answer of a read.
func (e *headEntry) row() ([]byte, Version, bool, error) {
	if e.dead {
		return nil, Version{}, false, nil
	}
	return e.value(), e.version, true, nil
}

// readVersion copies the version at which a prefix seek for key arrived.
func readVersion(it *pebble.Iterator, valid bool, key []byte) (*headEntry, error) {
	if !valid {
		if err := it.Error(); err != nil {
			return nil, fmt.Errorf("mvcc: read %x: %w", key, err)
		}
		return newHeadEntry(key, Version{}, true, nil), nil
	}
	found, block, seq, err := decodeVersioned(it.Key())
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(found, key) {
		return nil, fmt.Errorf("mvcc: a seek within %x arrived at %x", key, found)
	}
	stored, err := it.ValueAndErr()
	if err != nil {
		return nil, fmt.Errorf("mvcc: read %x: %w", key, err)
	}
	xid, dead, row, err := decodeValue(stored)
	if err != nil {
		return nil, err
	}
	return newHeadEntry(key, Version{Block: block, Seq: seq, XID: xid}, dead, row), nil
}

// pointIter is the transaction's one iterator for point reads.
func (t *Txn) pointIter() (*pebble.Iterator, error) {
	if t.points == nil {
		t.pointsBlocks = t.s.blocks.Load()
		it, err := t.newIter(&pebble.IterOptions{UseL6Filters: true})
		if err != nil {
			return nil, err
		}
		t.points = it
	}
	return t.points, nil
}

func (t *Txn) newIter(o *pebble.IterOptions) (it *pebble.Iterator, err error) {
	if t.b != nil {
		it, err = t.b.rows.NewIter(o)
	} else {
		it, err = t.s.db.NewIter(o)
	}
	if err != nil {
		return nil, fmt.Errorf("mvcc: iterator: %w", err)
	}
	return it, nil
}

// notePoint adds a key to the footprint, unless a recent read of the same key
// covers it. Which repetitions are dropped varies between processes, the set
// and the order of first mention do not.
func (t *Txn) notePoint(key []byte, hash uint64, existence bool) {
	if t.forgetful {
		return
	}
	r := &t.recent[hash%recentReads]
	if *r > 0 {
		old := &t.fp.Reads[*r-1]
		if bytes.Equal(old.Start, key) && (existence || !old.Existence) {
			return
		}
	}
	end := t.arena.alloc(len(key) + 1)
	end[copy(end, key)] = 0
	t.fp.Reads = append(t.fp.Reads, rwset.Read{
		Span: rwset.Span{Start: end[:len(key):len(key)], End: end}, Existence: existence,
	})
	*r = int32(len(t.fp.Reads))
}

// NoteRead adds a span to the footprint. The bounds are copied.
func (t *Txn) NoteRead(span rwset.Span, existence bool) {
	if t.forgetful || span.Empty() {
		return
	}
	t.fp.Reads = append(t.fp.Reads, rwset.Read{
		Span:      rwset.Span{Start: t.arena.copy(span.Start), End: t.arena.copy(span.End)},
		Existence: existence,
	})
}

// NoteShared adds the reads that a cached plan was made from. The list is not
// copied and must not change.
func (t *Txn) NoteShared(reads []rwset.Read) {
	if !t.forgetful && len(reads) > 0 {
		t.fp.Shared = append(t.fp.Shared, reads)
	}
}

// Put writes a row, whether or not one is there.
func (t *Txn) Put(key, value []byte) error {
	return t.write(key, value, false, func() (bool, error) {
		// Unrecorded: the write itself conflicts with any change of the key.
		_, _, live, err := t.read(key, t.s.hash(key))
		return live, err
	})
}

var (
	wasLive = func() (bool, error) { return true, nil }
	wasDead = func() (bool, error) { return false, nil }
)

// PutInsert is Put of a key that the caller knows to hold no row.
func (t *Txn) PutInsert(key, value []byte) error {
	if e, ok := t.own.get(key); ok && !e.tombstone {
		return fmt.Errorf("mvcc: PutInsert over the transaction's own row %x", key)
	}
	return t.write(key, value, false, wasDead)
}

// PutUpdate is Put of a key that the caller knows to hold a row.
func (t *Txn) PutUpdate(key, value []byte) error {
	if e, ok := t.own.get(key); ok && e.tombstone {
		return fmt.Errorf("mvcc: PutUpdate of row %x, which the transaction deleted", key)
	}
	return t.write(key, value, false, wasLive)
}

// Delete removes a row that the caller knows to be there.
func (t *Txn) Delete(key []byte) error {
	if e, ok := t.own.get(key); ok && e.tombstone {
		return fmt.Errorf("mvcc: Delete of row %x, which the transaction deleted", key)
	}
	return t.write(key, nil, true, wasLive)
}

func (t *Txn) write(key, value []byte, tombstone bool, base func() (bool, error)) error {
	if t.err != nil {
		return t.err
	}
	if err := checkKey(key); err != nil {
		return err
	}
	return t.own.put(key, value, tombstone, base)
}

// Savepoint marks the present state of the transaction's writes.
func (t *Txn) Savepoint() int { return t.own.mark() }

// RollbackTo undoes the writes since a savepoint, which stays. What was read
// stays in the footprint: it may have decided that the rollback happened.
// Scans opened since must not be used any more.
func (t *Txn) RollbackTo(sp int) {
	for _, it := range t.open {
		if it.own.mark > sp {
			it.fail(errors.New("mvcc: the scan is younger than a savepoint that was rolled back to"))
		}
	}
	t.own.cut(sp)
}

// Release forgets a savepoint and keeps the writes since.
func (t *Txn) Release(sp int) {}

// Footprint is what the transaction read and, as the net effect, wrote. It
// includes what scans still open have visited. It shares memory with the Txn
// that is never reused, and is itself valid until the next call or Reset.
//
// A row that the transaction inserted and deleted again is still a write, one
// that leaves liveness alone: the key's tombstone takes its place in the chain,
// which keeps the verdict on the transaction independent of its inner course.
func (t *Txn) Footprint() *rwset.Footprint {
	for _, it := range t.open {
		it.note()
	}
	t.fp.Writes = make([]rwset.Write, 0, t.own.count)
	for _, chunk := range t.own.index {
		for _, at := range chunk {
			e := &t.own.log[at]
			t.fp.Writes = append(t.fp.Writes, rwset.Write{Key: e.key, Liveness: e.baseLive == e.tombstone})
		}
	}
	return &t.fp
}

// EachWrite calls f for the net effect on every key, in key order: the
// canonical order for digests and for commit. A tombstone has no value. The
// slices are immutable.
func (t *Txn) EachWrite(f func(key, value []byte, tombstone bool) error) error {
	for _, chunk := range t.own.index {
		for _, at := range chunk {
			e := &t.own.log[at]
			if err := f(e.key, e.value, e.tombstone); err != nil {
				return err
			}
		}
	}
	return nil
}

// EachChange is EachWrite and says of every key whether a row was live under it
// before the transaction.
func (t *Txn) EachChange(f func(key, value []byte, tombstone, replaces bool) error) error {
	for _, chunk := range t.own.index {
		for _, at := range chunk {
			e := &t.own.log[at]
			if err := f(e.key, e.value, e.tombstone, e.baseLive); err != nil {
				return err
			}
		}
	}
	return nil
}

// Writes is the number of keys that EachWrite visits.
func (t *Txn) Writes() int { return t.own.count }

// WriteBytes is the size of the keys and values of all writes so far, those
// overwritten or rolled back included: what the transaction had to hold.
func (t *Txn) WriteBytes() int64 { return t.own.bytes }

// ReadBytes is the size of the keys asked for and the rows returned so far, own
// rows included.
func (t *Txn) ReadBytes() int64 { return t.readBytes }

// Reads is the number of Gets and of rows returned by scans so far.
func (t *Txn) Reads() int { return t.reads }

// Reset makes t a new transaction on the same store or block batch. Values
// obtained from it stay valid; its footprint and iterators do not.
func (t *Txn) Reset(at Snapshot, xid uint64) error {
	err := t.Close()
	t.own.reset()
	t.fp = rwset.Footprint{}
	t.recent = [recentReads]int32{}
	t.arena = arena{}
	t.reads, t.readBytes = 0, 0
	t.begin(at, xid)
	return err
}

// Close releases the iterators, open scans included. Writes and footprint can
// still be read and applied, reads fail. Closing again does nothing.
func (t *Txn) Close() error {
	var err error
	for len(t.open) > 0 {
		err = errors.Join(err, t.open[len(t.open)-1].Close())
	}
	if t.points != nil {
		err = errors.Join(err, t.points.Close())
		t.points = nil
	}
	for _, c := range t.cursors {
		err = errors.Join(err, c.it.Close())
	}
	t.cursors = nil
	if t.err == nil {
		t.err = errClosed
	}
	return err
}

var errClosed = errors.New("mvcc: the transaction is closed")
