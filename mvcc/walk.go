package mvcc

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/tallystick/tallystick/mvcc/rwset"
)

// EachVersion calls f for every stored version in a span that the blocks
// from..to (inclusive) created, deletions too: in key order, and of a key the
// newest first. What f is given is valid until it returns. Unlike
// [Txn.Versions] it shows what is there, not what it means. Blocks committed
// meanwhile are not seen.
func (s *Store) EachVersion(span rwset.Span, from, to uint64, f func(key []byte, v Version, dead bool, value []byte) error) (err error) {
	if span.Empty() || from > to {
		return nil
	}
	start := span.Start
	if bytes.Compare(start, reservedEnd) < 0 {
		start = reservedEnd
	}
	it, err := s.db.NewIter(&pebble.IterOptions{
		LowerBound: appendPrefix(nil, start), UpperBound: appendPrefix(nil, span.End), PointKeyFilters: blockFilter(from, to),
	})
	if err != nil {
		return fmt.Errorf("mvcc: iterator: %w", err)
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for ok := it.First(); ok; ok = it.Next() {
		key, block, seq, err := decodeVersioned(it.Key())
		if err != nil {
			return err
		}
		if block < from || block > to {
			continue
		}
		stored, err := it.ValueAndErr()
		if err != nil {
			return fmt.Errorf("mvcc: versions: %w", err)
		}
		xid, dead, row, err := decodeValue(stored)
		if err != nil {
			return err
		}
		if err := f(key, Version{Block: block, Seq: seq, XID: xid}, dead, row); err != nil {
			return err
		}
	}
	if err := it.Error(); err != nil {
		return fmt.Errorf("mvcc: versions: %w", err)
	}
	return nil
}
