package mvcc

import (
	"bytes"
	"encoding/binary"
	"errors"

	"github.com/cockroachdb/pebble/v2"

	"github.com/tallystick/tallystick/mvcc/rwset"
)

// Bulk walks the committed rows of a span, forwards, as a snapshot sees them:
// for local queries over many rows. It records nothing and allocates nothing per
// row. It shares nothing with the transaction that it came from, so that several
// goroutines may walk parts of a table at a time.
type Bulk struct {
	c   cursor
	end []byte
}

// MayBulk tells whether what the transaction reads is the committed state alone
// and need not be recorded: it wrote nothing, stands on no block batch, and
// unrecorded says that its caller reads without a trace, or it is forgetful.
func (t *Txn) MayBulk(unrecorded bool) bool {
	return t.err == nil && t.b == nil && t.own.count == 0 && (t.forgetful || unrecorded)
}

// Bulk opens a walk over a span at the transaction's snapshot. It must be closed
// before the store is.
func (t *Txn) Bulk(span rwset.Span) (*Bulk, error) {
	if t.err != nil {
		return nil, t.err
	}
	if t.b != nil || t.own.count != 0 {
		return nil, errors.New("mvcc: bulk reads see committed rows only")
	}
	it, err := t.newIter(&pebble.IterOptions{})
	if err != nil {
		return nil, err
	}
	b := &Bulk{c: cursor{it: it, at: t.at}}
	b.Reset(span)
	return b, nil
}

// Reset starts again with another span.
func (b *Bulk) Reset(span rwset.Span) {
	b.end = append(b.end[:0], span.End...)
	b.c.reset(span.Start, span.End, false)
}

// Next goes to the next row; false at the end.
func (b *Bulk) Next() (bool, error) { return b.c.nextForward() }

// Key is the current row's key, valid until the next call.
func (b *Bulk) Key() []byte { return b.c.key }

// Value is the current row, valid until the next call.
func (b *Bulk) Value() []byte { return b.c.value }

// Close ends the walk.
func (b *Bulk) Close() error { return b.c.it.Close() }

// Rest divides what lies behind the current row into at most n spans, in key
// order, which together are all of it. They are of like size if keys are spread
// evenly; nothing depends on it.
func (b *Bulk) Rest(n int) ([]rwset.Span, error) {
	from := append(bytes.Clone(b.c.key), 0)
	end := bytes.Clone(b.end)
	last, err := b.lastKey()
	if err != nil {
		return nil, err
	}
	var spans []rwset.Span
	for _, cut := range between(from, last, n) {
		spans = append(spans, rwset.Span{Start: from, End: cut})
		from = cut
	}
	return append(spans, rwset.Span{Start: from, End: end}), nil
}

// lastKey finds the last stored key of the span, live or not; nil if there is
// none. The walk itself is over: Reset starts the next one.
func (b *Bulk) lastKey() ([]byte, error) {
	if !b.c.it.Last() {
		return nil, b.c.iterError()
	}
	key, _, _, err := decodeVersioned(b.c.it.Key())
	return bytes.Clone(key), err
}

// between makes up to n-1 keys that lie between two others, in order, evenly as
// far as the eight bytes say that follow what both begin with.
func between(from, last []byte, n int) [][]byte {
	common := 0
	for common < len(from) && common < len(last) && from[common] == last[common] {
		common++
	}
	lo, hi := eight(from, common), eight(last, common)
	if hi <= lo {
		return nil
	}
	var cuts [][]byte
	step := (hi - lo) / uint64(n)
	if step == 0 {
		return nil
	}
	for i := 1; i < n; i++ {
		cut := binary.BigEndian.AppendUint64(bytes.Clone(from[:common]), lo+uint64(i)*step)
		cuts = append(cuts, cut)
	}
	return cuts
}

// eight reads the eight bytes at a place as a number; what is missing is zero.
func eight(key []byte, at int) uint64 {
	var b [8]byte
	if at < len(key) {
		copy(b[:], key[at:])
	}
	return binary.BigEndian.Uint64(b[:])
}
