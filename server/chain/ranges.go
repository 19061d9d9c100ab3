package chain

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/mvcc"
	"github.com/tallystick/tallystick/mvcc/lthash"
	"github.com/tallystick/tallystick/mvcc/rwset"
)

// Peer is another node that is asked what its state is. Nothing that it says is
// trusted: answers about a state add up to its hash, or they are refused. A Chain
// is one, for nodes in one process; the network carries requests to others.
type Peer interface {
	// StateAt is the state hash of a processed block and its step.
	StateAt(height block.Height) (block.Hash, block.StateStep, error)
	// Digests answers a request.
	Digests(*DigestRequest) (*DigestAnswer, error)
}

// DigestRequest asks for digests of parts of a state.
type DigestRequest struct {
	Height block.Height
	// Start and End bound the keys, End excluded. Both nil: one part for every
	// table that is not empty.
	Start, End []byte
	// Bounds cut the range into parts; ascending, within it. At most MaxParts-1.
	Bounds [][]byte
	// Rows asks for the rows themselves, if there are at most MaxRows.
	Rows bool
}

// Bounds of a request and its answer.
const (
	MaxParts = 64
	MaxRows  = 256
)

// DigestAnswer has the parts in order.
type DigestAnswer struct {
	Parts []DigestPart
	// List has the rows in key order if they were asked for and are few.
	List []StateRow
}

// DigestPart is the digest of the live row versions of a range.
type DigestPart struct {
	Table uint32 // in an answer about tables
	Rows  uint64
	Sum   []byte // lthash.Sum
}

// StateRow is one live version.
type StateRow struct {
	Key, Value []byte
	Version    mvcc.Version
}

// StateAt implements [Peer].
func (c *Chain) StateAt(height block.Height) (block.Hash, block.StateStep, error) {
	state, err := c.StateHash(height)
	if err != nil {
		return block.Hash{}, block.StateStep{}, err
	}
	step, err := c.Step(height)
	return state, step, err
}

// Digests implements [Peer]. It reads all rows of the range.
func (c *Chain) Digests(q *DigestRequest) (*DigestAnswer, error) {
	if err := q.check(c.Height()); err != nil {
		return nil, err
	}
	a := &DigestAnswer{}
	if q.Start == nil && q.End == nil {
		return a, c.tableParts(q.Height, a)
	}
	total := uint64(0)
	start := q.Start
	for i := range len(q.Bounds) + 1 {
		end := q.End
		if i < len(q.Bounds) {
			end = q.Bounds[i]
		}
		var x lthash.Expander
		var sum lthash.Sum
		var element []byte
		part := DigestPart{}
		err := c.eachLive(rwset.Span{Start: start, End: end}, q.Height, func(key []byte, v mvcc.Version, value []byte) error {
			element = appendElement(element[:0], key, v, value)
			x.Add(&sum, element)
			part.Rows++
			if total++; q.Rows && total <= MaxRows {
				a.List = append(a.List, StateRow{bytes.Clone(key), bytes.Clone(value), v})
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		part.Sum = sum.Append(nil)
		a.Parts = append(a.Parts, part)
		start = end
	}
	if total > MaxRows {
		a.List = nil
	}
	return a, nil
}

func (q *DigestRequest) check(height block.Height) error {
	switch {
	case q.Height > height:
		return fmt.Errorf("%w: block %d", errNoBlock, q.Height)
	case len(q.Bounds) >= MaxParts:
		return fmt.Errorf("chain: %d bounds in a request, at most %d", len(q.Bounds), MaxParts-1)
	}
	last := q.Start
	for _, b := range append(slices.Clone(q.Bounds), q.End) {
		if bytes.Compare(last, b) > 0 {
			return errors.New("chain: bounds of a request are not in order")
		}
		last = b
	}
	return nil
}

// tableParts makes one part for each table, from one scan.
func (c *Chain) tableParts(height block.Height, a *DigestAnswer) error {
	t := newTally()
	rows := map[tableID]uint64{}
	var order []tableID
	err := c.eachLive(everything, height, func(key []byte, v mvcc.Version, value []byte) error {
		id := tableOf(key)
		if chainsOwn(id) {
			return nil
		}
		if rows[id]++; rows[id] == 1 {
			order = append(order, id)
		}
		t.add(key, v, value)
		return nil
	})
	for _, id := range order {
		a.Parts = append(a.Parts, DigestPart{Table: id, Rows: rows[id], Sum: t.sums[id].Append(nil)})
	}
	return err
}

// everything is the span of all keys: they begin with two object identifiers.
var everything = rwset.Span{End: bytes.Repeat([]byte{0xff}, 9)}

// eachLive calls f for the rows of a span as of a height.
func (c *Chain) eachLive(span rwset.Span, height block.Height, f func(key []byte, v mvcc.Version, value []byte) error) error {
	txn := c.store.Begin(mvcc.AsOf(height), 0)
	defer txn.Close()
	it := txn.Scan(span, false, mvcc.ReadUnrecorded)
	defer it.Close()
	for it.Next() {
		if err := f(it.Key(), it.Version(), it.Value()); err != nil {
			return err
		}
	}
	return it.Err()
}

// tableSpan is the span of the keys of a table.
func tableSpan(id tableID) rwset.Span {
	start := binary.BigEndian.AppendUint32(nil, id)
	return rwset.Span{Start: start, End: rwset.PrefixEnd(start)}
}
