package mvcc

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/tallystick/tallystick/mvcc/rwset"
)

// Changed tells whether a block in (from, to] invalidates a footprint taken at
// snapshot AsOf(from): whether one created a version of a key in a span read
// (for an existence read: one that was live where the key was not at from, or
// the other way round), or of a key written.
//
// The conflict named is the same on every node: of the first read in recorded
// order that has one, shared reads after the others, and then of the first
// write, the one in the lowest block; in that block the lowest key and its
// lowest sequence.
func (s *Store) Changed(fp *rwset.Footprint, from, to uint64) (Conflict, bool, error) {
	if from >= to {
		return Conflict{}, false, nil
	}
	c := s.NewChecker()
	conflict, changed, err := c.Changed(fp, from, to)
	if err = errors.Join(err, c.Close()); err != nil {
		return Conflict{}, false, err
	}
	return conflict, changed, nil
}

// Checker answers [Store.Changed] for many footprints with the same iterators:
// one for each goroutine and block. It sees the blocks committed when it was
// made. Not safe for concurrent use.
type Checker struct {
	s      *Store
	height uint64

	points *pebble.Iterator
	// spans skips what holds no version of a block in (spanFrom, spanTo].
	spans            *pebble.Iterator
	spanFrom, spanTo uint64

	enc, enc2 []byte
}

// NewChecker makes a checker for blocks up to the present height.
func (s *Store) NewChecker() *Checker {
	return &Checker{s: s, height: s.Height()}
}

// Close releases the iterators.
func (c *Checker) Close() error {
	var err error
	if c.points != nil {
		err = c.points.Close()
		c.points = nil
	}
	if c.spans != nil {
		err = errors.Join(err, c.spans.Close())
		c.spans = nil
	}
	return err
}

// Changed is [Store.Changed].
func (c *Checker) Changed(fp *rwset.Footprint, from, to uint64) (conflict Conflict, changed bool, err error) {
	if from >= to {
		return Conflict{}, false, nil
	}
	if to > c.height {
		return Conflict{}, false, fmt.Errorf("mvcc: Changed up to block %d at height %d", to, c.height)
	}
	fp.EachRead(func(r rwset.Read) bool {
		if r.IsPoint() {
			conflict, changed, err = c.key(r.Start, r.Existence, from, to)
		} else if !r.Empty() {
			conflict, changed, err = c.span(r, from, to)
		}
		conflict.Read = r.Span
		return err == nil && !changed
	})
	if err != nil || changed {
		return conflict, changed, err
	}
	for i := range fp.Writes {
		conflict, changed, err = c.key(fp.Writes[i].Key, false, from, to)
		if err != nil || changed {
			conflict.Wrote = true
			return conflict, changed, err
		}
	}
	return Conflict{}, false, nil
}

// key looks for the oldest version in (from, to] that counts.
func (c *Checker) key(key []byte, existence bool, from, to uint64) (Conflict, bool, error) {
	if c.s.head != nil {
		// The newest version settles most keys: nothing newer exists.
		if e := c.s.head.get(c.s.hash(key), key); e != nil && e.version.Block <= from {
			return Conflict{}, false, nil
		}
	}
	if err := c.openPoints(); err != nil {
		return Conflict{}, false, err
	}
	it := c.points
	at := AsOf(to)
	c.enc = appendVersioned(c.enc[:0], key, at.Height, at.Seq)
	var oldestDead, oldestLive Version // in (from, to]
	wasLive := false
	for ok := it.SeekPrefixGE(c.enc); ok; ok = it.Next() {
		v, dead, err := c.stored(it)
		if err != nil {
			return Conflict{}, false, err
		}
		if v.Block <= from {
			wasLive = !dead
			break
		}
		if dead {
			oldestDead = v
		} else {
			oldestLive = v
		}
	}
	if err := it.Error(); err != nil {
		return Conflict{}, false, fmt.Errorf("mvcc: changed: %w", err)
	}
	var v Version
	switch {
	case existence && wasLive:
		v = oldestDead
	case existence:
		v = oldestLive
	default:
		v = older(oldestDead, oldestLive)
	}
	if v.IsZero() {
		return Conflict{}, false, nil
	}
	return Conflict{Key: bytes.Clone(key), Block: v.Block, Seq: v.Seq, XID: v.XID}, true, nil
}

// older returns the one that comes first in the chain; zero versions do not
// count.
func older(a, b Version) Version {
	if a.IsZero() || !b.IsZero() && (b.Block < a.Block || b.Block == a.Block && b.Seq < a.Seq) {
		return b
	}
	return a
}

// span looks through all keys of a span with a version in (from, to].
func (c *Checker) span(r rwset.Read, from, to uint64) (best Conflict, changed bool, err error) {
	if err := c.openSpans(r.Span, from, to); err != nil {
		return Conflict{}, false, err
	}
	it := c.spans
	for ok := it.First(); ok; {
		key, block, _, err := decodeVersioned(it.Key())
		if err != nil {
			return Conflict{}, false, err
		}
		if block > to {
			ok = it.Next() // an older version, or another key
			continue
		}
		if block > from {
			found, hit, err := c.key(key, r.Existence, from, to)
			if err != nil {
				return Conflict{}, false, err
			}
			if hit && (!changed || found.Block < best.Block) {
				best, changed = found, true
				if best.Block == from+1 {
					return best, true, nil // none can be lower, and keys ascend
				}
			}
		}
		ok = it.NextPrefix()
	}
	if err := it.Error(); err != nil {
		return Conflict{}, false, fmt.Errorf("mvcc: changed: %w", err)
	}
	return best, changed, nil
}

func (c *Checker) openPoints() (err error) {
	if c.points == nil {
		if c.points, err = c.s.db.NewIter(&pebble.IterOptions{UseL6Filters: true}); err != nil {
			return fmt.Errorf("mvcc: changed: %w", err)
		}
	}
	return nil
}

// openSpans makes the iterator over the span, filtered for the blocks.
func (c *Checker) openSpans(span rwset.Span, from, to uint64) (err error) {
	start := span.Start
	if bytes.Compare(start, reservedEnd) < 0 {
		start = reservedEnd
	}
	c.enc = appendPrefix(c.enc[:0], start)
	c.enc2 = appendPrefix(c.enc2[:0], span.End)
	if c.spans != nil && c.spanFrom == from && c.spanTo == to {
		c.spans.SetBounds(c.enc, c.enc2)
		return nil
	}
	opts := pebble.IterOptions{LowerBound: c.enc, UpperBound: c.enc2, PointKeyFilters: blockFilter(from+1, to)}
	if c.spans != nil {
		c.spans.SetOptions(&opts)
	} else if c.spans, err = c.s.db.NewIter(&opts); err != nil {
		return fmt.Errorf("mvcc: changed: %w", err)
	}
	c.spanFrom, c.spanTo = from, to
	return nil
}

// stored decodes the version under an iterator.
func (c *Checker) stored(it *pebble.Iterator) (Version, bool, error) {
	_, block, seq, err := decodeVersioned(it.Key())
	if err != nil {
		return Version{}, false, err
	}
	raw, err := it.ValueAndErr()
	if err != nil {
		return Version{}, false, fmt.Errorf("mvcc: changed: %w", err)
	}
	xid, dead, _, err := decodeValue(raw)
	return Version{Block: block, Seq: seq, XID: xid}, dead, err
}
