package mvcc

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/batchrepr"

	"github.com/tallystick/tallystick/mvcc/rwset"
)

// formatNumber names the layout of keys and values in this package. A store of
// another format is refused, not guessed at.
const formatNumber = 1

// Store is the versions of all rows, on disk. It is safe for concurrent use:
// any number of transactions read while one block after the other is committed.
type Store struct {
	opts   Options
	db     *pebble.DB
	head   *headCache // nil when turned off
	seed   maphash.Seed
	blocks atomic.Uint64 // committed blocks, 0 included: height + 1; 0 = empty
	cache  cacheCounters

	commitMu sync.Mutex // one Commit at a time
	batchLen int        // length of the last block's batch: the next one's guess

	broken atomic.Pointer[error] // the first fault; set once, ends all commits
	closed bool
}

// Open opens the store in dir and makes one if there is none.
func Open(dir string, opts Options) (s *Store, err error) {
	opts.EnsureDefaults()
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	s = &Store{opts: opts, seed: maphash.MakeSeed()}
	defer catchFault(&err)
	s.db, err = pebble.Open(dir, s.pebbleOptions())
	if err != nil {
		return nil, fmt.Errorf("mvcc: open %s: %w", dir, err)
	}
	blocks, err := s.readState()
	if err != nil {
		return nil, errors.Join(err, s.db.Close())
	}
	s.blocks.Store(blocks)
	if opts.HeadCacheBytes > 0 {
		s.head = newHeadCache(opts.HeadCacheBytes, blocks)
	}
	return s, nil
}

// readState checks the format and returns the number of blocks. It writes the
// format into an empty store.
func (s *Store) readState() (uint64, error) {
	format, found, err := s.record(metaFormat, "")
	if err != nil {
		return 0, err
	}
	if !found {
		if err := s.requireEmpty(); err != nil {
			return 0, err
		}
		return 0, s.db.Set(appendMeta(nil, metaFormat, ""), []byte{formatNumber}, pebble.Sync)
	}
	if len(format) != 1 || format[0] != formatNumber {
		return 0, fmt.Errorf("mvcc: the store has format %x, this program reads format %d", format, formatNumber)
	}
	height, found, err := s.record(metaHeight, "")
	if err != nil || !found {
		return 0, err
	}
	if len(height) != 8 {
		return 0, fmt.Errorf("mvcc: corruption: height record %x", height)
	}
	return binary.BigEndian.Uint64(height) + 1, nil
}

// requireEmpty refuses a database that has keys but no format record.
func (s *Store) requireEmpty() error {
	it, err := s.db.NewIter(nil)
	if err != nil {
		return err
	}
	if it.First() {
		err = fmt.Errorf("mvcc: the directory holds a database of something else")
	}
	return errors.Join(err, it.Error(), it.Close())
}

// record reads a record of the engine.
func (s *Store) record(kind byte, name string) ([]byte, bool, error) {
	v, closer, err := s.db.Get(appendMeta(nil, kind, name))
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("mvcc: %w", err)
	}
	v = append([]byte{}, v...)
	return v, true, closer.Close()
}

// Close releases the store. All transactions and block batches must be closed.
// What was committed without sync is synced now.
func (s *Store) Close() error {
	s.commitMu.Lock()
	defer s.commitMu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	if p := s.broken.Load(); p != nil {
		var fault *engineFault
		if errors.As(*p, &fault) {
			// The commit pipeline stands still for ever; closing would wait
			// for it. The files are as after a crash, which Open handles.
			return fmt.Errorf("mvcc: closed without flushing: %w", *p)
		}
	}
	if err := s.db.Close(); err != nil {
		return fmt.Errorf("mvcc: close: %w", err)
	}
	return nil
}

// Height is the number of the last committed block; 0 when there is none.
func (s *Store) Height() uint64 {
	if n := s.blocks.Load(); n > 0 {
		return n - 1
	}
	return 0
}

// Empty reports whether no block was committed yet. An empty store accepts
// block 0 or block 1.
func (s *Store) Empty() bool { return s.blocks.Load() == 0 }

// SetMeta sets a named record between two blocks, durably. It is for what a node
// finds out about its store, never for what belongs to the state of a block.
func (s *Store) SetMeta(name string, value []byte) (err error) {
	s.commitMu.Lock()
	defer s.commitMu.Unlock()
	if s.closed {
		return errors.New("mvcc: the store is closed")
	}
	if p := s.broken.Load(); p != nil {
		return fmt.Errorf("mvcc: the store failed before: %w", *p)
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("mvcc: setting %s: %w", name, err)
			s.setBroken(err)
		}
	}()
	defer catchFault(&err)
	return s.db.Set(appendMeta(nil, metaNamed, name), value, pebble.Sync)
}

// Meta returns the record that was set last under a name, by a block or by
// SetMeta.
func (s *Store) Meta(name string) ([]byte, bool, error) {
	return s.record(metaNamed, name)
}

// EachMeta calls f for the records whose names begin with a prefix, by name, as
// of the last block. What f is given is valid until it returns.
func (s *Store) EachMeta(prefix string, f func(name string, value []byte) error) (err error) {
	start := appendMeta(nil, metaNamed, prefix)
	end := appendPrefix(nil, rwset.PrefixEnd(start[:len(start)-1]))
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: start, UpperBound: end})
	if err != nil {
		return fmt.Errorf("mvcc: %w", err)
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for ok := it.First(); ok; ok = it.Next() {
		key := it.Key()
		value, err := it.ValueAndErr()
		if err != nil {
			return fmt.Errorf("mvcc: %w", err)
		}
		const head = 5 // reserved table id and kind
		if err := f(string(key[head:len(key)-1]), value); err != nil {
			return err
		}
	}
	if err := it.Error(); err != nil {
		return fmt.Errorf("mvcc: %w", err)
	}
	return nil
}

// Commit applies a block: rows, named records and height in one atomic batch.
// With sync it is durable when Commit returns; without, a crash may lose it
// together with all later blocks, but never a part of it. The batch is closed
// whatever happens. After an error no block can be committed any more: the
// store must be reopened, and its height tells whether the block is in.
func (s *Store) Commit(b *BlockBatch, sync bool) (err error) {
	s.commitMu.Lock()
	defer s.commitMu.Unlock()
	if err := s.commitCheck(b); err != nil {
		return errors.Join(err, b.Close())
	}
	var height [8]byte
	binary.BigEndian.PutUint64(height[:], b.height)
	if err := b.rows.Set(appendMeta(nil, metaHeight, ""), height[:], nil); err != nil {
		return errors.Join(fmt.Errorf("mvcc: commit block %d: %w", b.height, err), b.Close())
	}
	// Taken before the commit: of a batch larger than a memtable Pebble takes
	// the bytes away, but not out of this slice.
	written := b.rows.Reader()
	s.batchLen = b.rows.Len()
	opts := pebble.NoSync
	if sync || s.opts.Sync {
		opts = pebble.Sync
	}
	if err := s.commitBatch(b.rows, opts); err != nil {
		err = fmt.Errorf("mvcc: commit block %d: %w", b.height, err)
		s.setBroken(err)
		b.closed = true // the commit pipeline may still hold it
		return err
	}
	if s.head != nil {
		if err := s.updateHead(b.height+1, written); err != nil {
			s.setBroken(err)
			return errors.Join(err, b.Close())
		}
	}
	s.blocks.Store(b.height + 1)
	return b.Close()
}

func (s *Store) commitCheck(b *BlockBatch) error {
	switch broken := s.broken.Load(); {
	case s.closed:
		return errors.New("mvcc: the store is closed")
	case broken != nil:
		return fmt.Errorf("mvcc: the store failed before: %w", *broken)
	case b.s != s || b.closed:
		return errors.New("mvcc: commit of a batch that is closed or of another store")
	case b.height != s.blocks.Load() && !(s.Empty() && b.height == 1):
		return fmt.Errorf("mvcc: commit of block %d at height %d", b.height, s.Height())
	}
	return nil
}

// commitBatch turns what Pebble reports through its logger into an error.
func (s *Store) commitBatch(batch *pebble.Batch, opts *pebble.WriteOptions) (err error) {
	defer catchFault(&err)
	return batch.Commit(opts)
}

// catchFault recovers a fault of the storage engine, and nothing else.
func catchFault(err *error) {
	switch p := recover().(type) {
	case nil:
	case *engineFault:
		*err = p
	default:
		panic(p)
	}
}

// updateHead carries a committed block into the head cache; see headCache for
// why in this order.
func (s *Store) updateHead(blocks uint64, written batchrepr.Reader) error {
	s.head.raise(blocks)
	return eachRow(written, func(key []byte, block uint64, seq uint32, value []byte) error {
		xid, dead, row, err := decodeValue(value)
		if err != nil {
			return err
		}
		s.head.committed(s.hash(key), key, Version{Block: block, Seq: seq, XID: xid}, dead, row)
		return nil
	})
}

// hash is the hash under which the head cache and block batches know a key. It
// differs between processes and never reaches a result.
func (s *Store) hash(key []byte) uint64 { return maphash.Bytes(s.seed, key) }

// backgroundError notes that flushing or compacting failed. Pebble would try
// again for ever; a node whose disk fails stops at its next block.
func (s *Store) backgroundError(err error) {
	s.opts.Logger.Error("mvcc: background error", "error", err)
	s.setBroken(fmt.Errorf("mvcc: background error: %w", err))
}

// setBroken remembers the first fault.
func (s *Store) setBroken(err error) { s.broken.CompareAndSwap(nil, &err) }
