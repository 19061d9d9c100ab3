package mvcc

import (
	"errors"
	"fmt"
	"sync"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/batchrepr"
)

// BlockBatch collects the writes of one block. Transactions of the same block
// that must see earlier winners (system phase, re-execution) begin on it.
//
// Writing (Apply, Put, SetMeta) and reading (Txns begun on the batch) must not
// overlap: the caller alternates between phases. Within a reading phase any
// number of Txns run concurrently.
type BlockBatch struct {
	s      *Store
	height uint64
	closed bool

	mu   sync.Mutex    // orders concurrent Begins
	rows *pebble.Batch // indexed from the first Begin on

	// written has the hashes of all keys in an indexed batch: a key that is
	// not in it is read from the store alone, through the head cache.
	written map[uint64]struct{}
}

// NewBlockBatch starts block height, which must be Height()+1 when it commits.
func (s *Store) NewBlockBatch(height uint64) *BlockBatch {
	b := &BlockBatch{s: s, height: height}
	s.commitMu.Lock()
	defer s.commitMu.Unlock()
	if s.closed {
		b.closed = true
		return b
	}
	b.rows = s.db.NewBatchWithSize(max(s.batchLen, 4<<10))
	return b
}

// Height is the number of the block.
func (b *BlockBatch) Height() uint64 { return b.height }

// Close drops the batch. Closing again, or after Commit, does nothing.
func (b *BlockBatch) Close() error {
	if b.closed {
		return nil
	}
	b.closed = true
	return b.rows.Close()
}

// Apply adds t's writes as the versions (height, seq). A transaction that read
// the batch must come after what it read.
func (b *BlockBatch) Apply(t *Txn, seq uint32) error {
	switch {
	case b.closed:
		return errors.New("mvcc: apply to a closed block batch")
	case t.s != b.s:
		return errors.New("mvcc: apply of a transaction of another store")
	case t.at.Height > b.height || (t.at.Height == b.height && t.at.Seq >= seq):
		return fmt.Errorf("mvcc: version (%d, %d) would precede the snapshot (%d, %d) of its transaction",
			b.height, seq, t.at.Height, t.at.Seq)
	}
	if t.err != nil && t.err != errClosed {
		return t.err
	}
	return t.EachWrite(func(key, value []byte, tombstone bool) error {
		return b.set(key, value, tombstone, seq, t.xid)
	})
}

// Put adds one row of the chain's own (a ledger row). There must be at most one
// write of a key under one sequence.
func (b *BlockBatch) Put(key, value []byte, seq uint32, xid uint64) error {
	if b.closed {
		return errors.New("mvcc: put to a closed block batch")
	}
	if err := checkKey(key); err != nil {
		return err
	}
	return b.set(key, value, false, seq, xid)
}

// set encodes straight into the batch.
func (b *BlockBatch) set(key, value []byte, tombstone bool, seq uint32, xid uint64) error {
	if tombstone {
		value = nil
	}
	op := b.rows.SetDeferred(versionedLen(key, seq), valueHeader+len(value))
	appendVersioned(op.Key[:0], key, b.height, seq)
	putValue(op.Value, xid, tombstone, value)
	if err := op.Finish(); err != nil {
		return fmt.Errorf("mvcc: block %d: %w", b.height, err)
	}
	if b.written != nil {
		b.written[b.s.hash(key)] = struct{}{}
	}
	return nil
}

// SetMeta sets a named record that becomes visible (Store.Meta) with the block.
func (b *BlockBatch) SetMeta(name string, value []byte) error {
	if b.closed {
		return errors.New("mvcc: SetMeta on a closed block batch")
	}
	if err := b.rows.Set(appendMeta(nil, metaNamed, name), value, nil); err != nil {
		return fmt.Errorf("mvcc: block %d: %w", b.height, err)
	}
	return nil
}

// index makes the batch readable. Most blocks never need it, so that the cost
// of ordering the rows falls only on those that do.
func (b *BlockBatch) index() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed:
		return errors.New("mvcc: read of a closed block batch")
	case b.written != nil:
		return nil
	}
	written := make(map[uint64]struct{}, b.rows.Count())
	err := eachRow(b.rows.Reader(), func(key []byte, _ uint64, _ uint32, _ []byte) error {
		written[b.s.hash(key)] = struct{}{}
		return nil
	})
	if err != nil {
		return err
	}
	indexed := b.s.db.NewIndexedBatch()
	if err := indexed.Apply(b.rows, nil); err != nil {
		return errors.Join(fmt.Errorf("mvcc: block %d: %w", b.height, err), indexed.Close())
	}
	plain := b.rows
	b.rows, b.written = indexed, written
	return plain.Close()
}

// wrote reports whether the batch may hold a version of the key with a hash.
func (b *BlockBatch) wrote(hash uint64) bool {
	_, ok := b.written[hash]
	return ok
}

// eachRow calls f for the row versions in a batch, in the order of writing.
func eachRow(r batchrepr.Reader, f func(key []byte, block uint64, seq uint32, value []byte) error) error {
	for {
		kind, enc, value, ok, err := r.Next()
		if err != nil {
			return fmt.Errorf("mvcc: block batch: %w", err)
		}
		if !ok {
			return nil
		}
		if kind != pebble.InternalKeyKindSet {
			return fmt.Errorf("mvcc: block batch holds a record of kind %s", kind)
		}
		if isMeta(enc) {
			continue
		}
		key, block, seq, err := decodeVersioned(enc)
		if err != nil {
			return err
		}
		if err := f(key, block, seq, value); err != nil {
			return err
		}
	}
}
