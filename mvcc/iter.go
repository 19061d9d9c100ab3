package mvcc

import (
	"bytes"
	"errors"

	"github.com/cockroachdb/pebble/v2"

	"github.com/tallystick/tallystick/mvcc/rwset"
)

// Iter returns the live rows of a span in key order, forwards or backwards: the
// snapshot's, overlaid with the transaction's own writes as they were when the
// scan was opened. A statement therefore never meets the rows that it writes
// itself, and may write while it scans.
//
// Key and Value are valid until the next Next or Close.
type Iter struct {
	t       *Txn
	span    rwset.Span
	mode    ReadMode
	reverse bool

	store     *cursor // nil once released
	own       ownCursor
	haveStore bool   // store stands on a row that was not returned yet
	ownNext   *entry // own row or tombstone not returned yet
	storeEnd  bool   // no more rows there
	ownEnd    bool

	key, value []byte
	version    Version
	returned   bool // key is the last row returned
	done       bool // the span is exhausted
	err        error
}

// Scan opens a scan over a span. What the footprint gets when the scan is
// exhausted is the whole span; when it is closed earlier, the part up to and
// including the last row returned; nothing if no row was asked for.
func (t *Txn) Scan(span rwset.Span, reverse bool, mode ReadMode) *Iter {
	it := &Iter{t: t, mode: mode, reverse: reverse, err: t.err}
	if it.err != nil {
		return it
	}
	// The caller's bounds may change under us, and the note needs them.
	it.span = rwset.Span{Start: t.arena.copy(span.Start), End: t.arena.copy(span.End)}
	if span.Empty() {
		it.storeEnd, it.ownEnd = true, true
		return it
	}
	if it.store, it.err = t.takeCursor(it.span, reverse); it.err != nil {
		return it
	}
	if t.own.count == 0 {
		it.ownEnd = true
	} else {
		it.own = ownCursor{w: &t.own, mark: t.own.mark(), start: it.span.Start, end: it.span.End, reverse: reverse}
	}
	t.open = append(t.open, it)
	return it
}

// takeCursor reuses an idle cursor or opens one.
func (t *Txn) takeCursor(span rwset.Span, reverse bool) (*cursor, error) {
	var c *cursor
	if n := len(t.cursors); n > 0 {
		c, t.cursors = t.cursors[n-1], t.cursors[:n-1]
	} else {
		it, err := t.newIter(&pebble.IterOptions{})
		if err != nil {
			return nil, err
		}
		c = &cursor{it: it}
	}
	c.at = t.at
	c.reset(span.Start, span.End, reverse)
	return c, nil
}

// Next goes to the next row. False means the end or an error: see Err.
func (it *Iter) Next() bool {
	if it.err != nil || it.done {
		return false
	}
	it.returned = false
	for {
		if !it.haveStore && !it.storeEnd {
			ok, err := it.store.next()
			if err != nil {
				it.fail(err)
				return false
			}
			it.haveStore, it.storeEnd = ok, !ok
		}
		if it.ownNext == nil && !it.ownEnd {
			it.ownNext = it.own.next()
			it.ownEnd = it.ownNext == nil
		}
		switch it.which() {
		case fromNone:
			it.done = true
			it.note()
			return false
		case fromStore:
			it.haveStore = false
			it.key, it.value, it.version = it.store.key, it.store.value, it.store.version
		case fromBoth:
			it.haveStore = false // shadowed
			fallthrough
		case fromOwn:
			e := it.ownNext
			it.ownNext = nil
			if e.tombstone {
				continue
			}
			it.key, it.value, it.version = e.key, e.value, it.t.ownVersion()
		}
		it.returned = true
		it.t.reads++
		it.t.readBytes += int64(len(it.key) + len(it.value))
		return true
	}
}

type source uint8

const (
	fromNone source = iota
	fromStore
	fromOwn
	fromBoth
)

// which tells whose row comes next.
func (it *Iter) which() source {
	switch {
	case !it.haveStore && it.ownNext == nil:
		return fromNone
	case it.ownNext == nil:
		return fromStore
	case !it.haveStore:
		return fromOwn
	}
	c := bytes.Compare(it.store.key, it.ownNext.key)
	if it.reverse {
		c = -c
	}
	switch {
	case c < 0:
		return fromStore
	case c > 0:
		return fromOwn
	}
	return fromBoth
}

// Key is the current row's key. Valid until the next Next or Close.
func (it *Iter) Key() []byte { return it.key }

// Value is the current row. Valid until the next Next or Close.
func (it *Iter) Value() []byte { return it.value }

// Version is the current row's creator; see [Version.Own] for own rows.
func (it *Iter) Version() Version { return it.version }

// Err is the error that ended the scan, if one did.
func (it *Iter) Err() error { return it.err }

// note adds the part of the span that was visited to the footprint.
func (it *Iter) note() {
	if it.mode == ReadUnrecorded || it.t.forgetful {
		return
	}
	visited := it.span
	switch {
	case it.done:
	case !it.returned:
		return
	case it.reverse:
		visited.Start = it.t.arena.copy(it.key)
	default:
		end := it.t.arena.alloc(len(it.key) + 1)
		end[copy(end, it.key)] = 0
		visited.End = end
	}
	if visited.Empty() {
		return
	}
	it.t.fp.Reads = append(it.t.fp.Reads, rwset.Read{Span: visited, Existence: it.mode == ReadExistence})
}

// Close ends the scan and returns its error. Closing again does nothing more.
func (it *Iter) Close() error {
	if it.store == nil {
		return it.err
	}
	if !it.done {
		it.note()
	}
	it.done = true
	t := it.t
	for i := len(t.open) - 1; i >= 0; i-- { // nearly always the last
		if t.open[i] == it {
			t.open = append(t.open[:i], t.open[i+1:]...)
			break
		}
	}
	it.key, it.value, it.ownNext = nil, nil, nil
	if it.err != nil {
		// The iterator may be in any state: not for others.
		it.err = errors.Join(it.err, it.store.it.Close())
	} else {
		t.cursors = append(t.cursors, it.store)
	}
	it.store = nil
	return it.err
}

// fail ends the scan with an error. What it visited stays in the footprint, as
// the error may come from what it returned before.
func (it *Iter) fail(err error) {
	it.err = err
}
