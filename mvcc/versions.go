package mvcc

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/tallystick/tallystick/mvcc/rwset"
)

// VersionIter walks the history of a span: every row version, live or not, in
// key order and then oldest first.
//
// Key and Value are valid until the next Next or Close.
type VersionIter struct {
	it       *pebble.Iterator
	at       Snapshot
	from, to uint64
	started  bool
	done     bool
	err      error

	key      []byte
	versions []histEntry // of key, newest first, wanted rows only
	rows     []byte      // their bytes
	value    []byte
	creator  Version
	deleter  Version

	// A key with more versions than are worth holding is walked backwards
	// from its oldest instead.
	streaming bool
	enc       []byte
}

type histEntry struct {
	creator, deleter Version
	start, end       int // in rows
}

// streamFrom is the number of versions of one key that are buffered.
const streamFrom = 256

// Versions returns the committed versions that the blocks fromBlock..toBlock
// (inclusive) created, as far as the snapshot sees them. Deletions are not
// versions; they appear as the deleter of the version that they ended, together
// with updates. A deleter beyond toBlock is still named when the snapshot sees
// it. The transaction's own writes do not appear, and nothing is recorded in
// the footprint: provenance is for queries, not for contracts.
func (t *Txn) Versions(span rwset.Span, fromBlock, toBlock uint64) *VersionIter {
	v := &VersionIter{at: t.at, from: fromBlock, to: toBlock, err: t.err}
	if v.err != nil {
		return v
	}
	if span.Empty() || fromBlock > min(toBlock, t.at.Height) {
		v.done = true
		return v
	}
	start := span.Start
	if bytes.Compare(start, reservedEnd) < 0 {
		start = reservedEnd
	}
	v.it, v.err = t.newIter(&pebble.IterOptions{
		LowerBound: appendPrefix(nil, start),
		UpperBound: appendPrefix(nil, span.End),
		// What is older than fromBlock is not wanted and ends nothing that is.
		PointKeyFilters: blockFilter(fromBlock, t.at.Height),
	})
	return v
}

// Next goes to the next version. False means the end or an error: see Err.
func (v *VersionIter) Next() bool {
	for v.err == nil && !v.done {
		if v.streaming {
			if v.nextStreaming() {
				return true
			}
			continue
		}
		if n := len(v.versions); n > 0 {
			e := v.versions[n-1]
			v.versions = v.versions[:n-1]
			v.value, v.creator, v.deleter = v.rows[e.start:e.end:e.end], e.creator, e.deleter
			return true
		}
		v.nextKey()
	}
	return false
}

// nextKey collects the wanted versions of the next key. The iterator ends on
// the key after it.
func (v *VersionIter) nextKey() {
	ok := v.it.Valid()
	if !v.started {
		v.started = true
		ok = v.it.First()
	}
	if !ok {
		v.finish()
		return
	}
	key, block, seq, err := decodeVersioned(v.it.Key())
	if err != nil {
		v.err = err
		return
	}
	v.key = append(v.key[:0], key...)
	v.rows = v.rows[:0]
	var newer Version
	for n := 0; ; n++ {
		if n == streamFrom {
			v.stream()
			return
		}
		if v.at.sees(block, seq) {
			if newer, err = v.collect(block, seq, newer); err != nil {
				v.err = err
				return
			}
		}
		if block < v.from {
			ok = v.it.NextPrefix()
		} else {
			ok = v.it.Next()
		}
		if !ok {
			v.err = v.iterError()
			return
		}
		if key, block, seq, err = decodeVersioned(v.it.Key()); err != nil {
			v.err = err
			return
		}
		if !bytes.Equal(key, v.key) {
			return
		}
	}
}

// collect buffers the version under the iterator if it is wanted, and returns
// it as the deleter of the next older one.
func (v *VersionIter) collect(block uint64, seq uint32, newer Version) (Version, error) {
	creator, dead, row, err := v.stored(block, seq)
	if err != nil || dead || block < v.from || block > v.to {
		return creator, err
	}
	start := len(v.rows)
	v.rows = append(v.rows, row...)
	v.versions = append(v.versions, histEntry{creator: creator, deleter: newer, start: start, end: len(v.rows)})
	return creator, nil
}

// stream begins the backward walk over the key's versions.
func (v *VersionIter) stream() {
	v.versions = v.versions[:0]
	v.rows = v.rows[:0]
	v.streaming = true
	// The successor prefix: behind all versions of the key.
	v.enc = append(appendPrefix(v.enc[:0], v.key), terminator)
	if !v.it.SeekLT(v.enc) {
		if v.err = v.iterError(); v.err == nil {
			v.err = fmt.Errorf("mvcc: corruption: key %x lost its versions", v.key)
		}
	}
}

// nextStreaming takes the version under the iterator and looks one newer for
// its deleter. False: there is none any more, or it was not wanted.
func (v *VersionIter) nextStreaming() bool {
	same, block, seq := v.onKey()
	if v.err != nil {
		return false
	}
	if !same || !v.at.sees(block, seq) {
		v.endStreaming()
		return false
	}
	creator, dead, row, err := v.stored(block, seq)
	if err != nil {
		v.err = err
		return false
	}
	v.rows = append(v.rows[:0], row...)
	v.creator, v.deleter = creator, Version{}
	v.value = v.rows[:len(row):len(row)]
	if !v.it.Prev() {
		if v.err = v.iterError(); v.err != nil {
			return false
		}
	}
	same, block, seq = v.onKey()
	if v.err != nil {
		return false
	}
	if same && v.at.sees(block, seq) {
		if v.deleter, _, _, v.err = v.stored(block, seq); v.err != nil {
			return false
		}
	}
	return !dead && creator.Block >= v.from && creator.Block <= v.to
}

// endStreaming returns to the forward walk, at the next key.
func (v *VersionIter) endStreaming() {
	v.streaming = false
	v.enc = append(appendPrefix(v.enc[:0], v.key), terminator)
	if !v.it.SeekGE(v.enc) {
		v.err = v.iterError()
	}
}

// onKey reports whether the iterator stands on a version of the current key.
func (v *VersionIter) onKey() (same bool, block uint64, seq uint32) {
	if !v.it.Valid() {
		return false, 0, 0
	}
	key, block, seq, err := decodeVersioned(v.it.Key())
	if err != nil {
		v.err = err
		return false, 0, 0
	}
	return bytes.Equal(key, v.key), block, seq
}

func (v *VersionIter) stored(block uint64, seq uint32) (Version, bool, []byte, error) {
	raw, err := v.it.ValueAndErr()
	if err != nil {
		return Version{}, false, nil, fmt.Errorf("mvcc: versions: %w", err)
	}
	xid, dead, row, err := decodeValue(raw)
	return Version{Block: block, Seq: seq, XID: xid}, dead, row, err
}

func (v *VersionIter) iterError() error {
	if err := v.it.Error(); err != nil {
		return fmt.Errorf("mvcc: versions: %w", err)
	}
	return nil
}

func (v *VersionIter) finish() {
	v.done = true
	v.err = v.iterError()
}

// Key is the current version's key.
func (v *VersionIter) Key() []byte { return v.key }

// Value is the current version's row.
func (v *VersionIter) Value() []byte { return v.value }

// Creator is who wrote the current version.
func (v *VersionIter) Creator() Version { return v.creator }

// Deleter is who replaced or deleted it; zero while it is live.
func (v *VersionIter) Deleter() Version { return v.deleter }

// Err is the error that ended the walk, if one did.
func (v *VersionIter) Err() error { return v.err }

// Close releases the iterator, which must happen before its transaction's
// store or block batch is closed, and returns the walk's error.
func (v *VersionIter) Close() error {
	v.done = true
	if v.it != nil {
		v.err = errors.Join(v.err, v.it.Close())
		v.it = nil
	}
	return v.err
}
