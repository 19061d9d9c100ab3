package chain

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/mvcc/lthash"
	"github.com/tallystick/tallystick/mvcc/rwset"
)

// ErrUntrustworthy is wrapped by what is returned about a peer whose answers do
// not add up to the state that it claims.
var ErrUntrustworthy = errors.New("chain: answers of the peer do not add up to its state")

// Locate finds out, with a peer that has the state which the majority signed,
// where the own state begins to differ, and keeps it for the error that clients
// get. It bisects: first the blocks, by their state hashes, then the keys, by
// digests of ranges. The peer proves its answers on the way, from the signed state
// hash down to the row.
//
// The state before the first block with another hash is looked at first: a row
// that was changed at rest changes no hash before somebody reads it.
func (c *Chain) Locate(ctx context.Context, peer Peer) (*Difference, error) {
	d := c.Diverged()
	if d == nil {
		return nil, errors.New("chain: nothing is known against the state of this node")
	}
	l := locator{ctx: ctx, chain: c, peer: peer}
	found, err := l.locate(d)
	if err != nil {
		return nil, err
	}
	named := *d
	named.Difference = found
	c.mu.Lock()
	c.diverged = &named
	c.mu.Unlock()
	c.log.Error("chain: found where the state differs", "difference", found.String())
	return found, nil
}

type locator struct {
	ctx   context.Context
	chain *Chain
	peer  Peer
}

func (l *locator) locate(d *Divergence) (*Difference, error) {
	state, _, err := l.peer.StateAt(d.Height)
	if err != nil {
		return nil, err
	}
	if state != d.Expected {
		return nil, fmt.Errorf("chain: the peer has state %s at block %d, not the one that was signed", state, d.Height)
	}
	first, step, err := l.firstBlock(d)
	if err != nil {
		return nil, err
	}
	// What was damaged before the first hash that differs is the cause of it.
	if first > 0 {
		_, before, err := l.peer.StateAt(first - 1)
		if err != nil {
			return nil, err
		}
		if own, err := l.chain.Step(first - 1); err != nil || own != before {
			return nil, errors.Join(err, ErrUntrustworthy)
		}
		if found, err := l.rows(first-1, &before); found != nil || err != nil {
			if found != nil {
				found.Block = first
				found.Reason += ", in the state before that block"
			}
			return found, err
		}
	}
	if found, err := l.rows(first, step); found != nil || err != nil {
		return found, err
	}
	own, err := l.chain.Step(first)
	if err != nil {
		return nil, err
	}
	reason := "its transactions wrote something else on the way to the same rows"
	if own.Outcomes != step.Outcomes {
		reason = "its transactions had other outcomes"
	}
	return &Difference{Block: first, Reason: reason}, nil
}

// firstBlock bisects for the first block with another state hash. The peer's step
// at it, and all from there to the signed one, have to lead to the latter.
func (l *locator) firstBlock(d *Divergence) (block.Height, *block.StateStep, error) {
	lo, hi := block.Height(0), d.Height // differs at hi
	for lo < hi {
		if err := l.ctx.Err(); err != nil {
			return 0, nil, err
		}
		mid := lo + (hi-lo)/2
		own, err := l.chain.StateHash(mid)
		if err != nil {
			return 0, nil, err
		}
		theirs, _, err := l.peer.StateAt(mid)
		if err != nil {
			return 0, nil, err
		}
		if own == theirs {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == 0 {
		return 0, nil, ErrUntrustworthy // block 0 is that of the genesis
	}
	state, err := l.chain.StateHash(lo - 1)
	if err != nil {
		return 0, nil, err
	}
	var first *block.StateStep
	for h := lo; h <= d.Height; h++ {
		_, step, err := l.peer.StateAt(h)
		if err != nil {
			return 0, nil, err
		}
		if state = step.Next(state, h); first == nil {
			first = &step
		}
	}
	if state != d.Expected {
		return 0, nil, ErrUntrustworthy
	}
	return lo, first, nil
}

// rows looks for the first row in which the states of a height differ.
func (l *locator) rows(height block.Height, step *block.StateStep) (*Difference, error) {
	q := &DigestRequest{Height: height}
	theirs, err := l.peer.Digests(q)
	if err != nil {
		return nil, err
	}
	hashes := map[tableID]block.Hash{}
	for _, p := range theirs.Parts {
		sum, err := lthash.Decode(p.Sum)
		if err != nil {
			return nil, err
		}
		hashes[p.Table] = sum.Hash()
	}
	if tablesHash(hashes) != step.Tables {
		return nil, ErrUntrustworthy
	}
	own, err := l.chain.Digests(q)
	if err != nil {
		return nil, err
	}
	byTable := func(a, b DigestPart) int { return cmp.Compare(a.Table, b.Table) }
	all := slices.Clone(theirs.Parts)
	for _, p := range own.Parts {
		if _, ok := slices.BinarySearchFunc(theirs.Parts, p, byTable); !ok {
			all = append(all, DigestPart{Table: p.Table, Sum: new(lthash.Sum).Append(nil)})
		}
	}
	slices.SortFunc(all, byTable)
	for _, want := range all {
		i, ok := slices.BinarySearchFunc(own.Parts, want, byTable)
		if !ok || !bytes.Equal(own.Parts[i].Sum, want.Sum) {
			return l.within(height, tableSpan(want.Table), want)
		}
	}
	return nil, nil
}

// within bisects a range of which the peer's digest, known to be right, is not
// the own one.
func (l *locator) within(height block.Height, span rwset.Span, want DigestPart) (*Difference, error) {
	for {
		if err := l.ctx.Err(); err != nil {
			return nil, err
		}
		q := &DigestRequest{Height: height, Start: span.Start, End: span.End}
		var rows uint64
		var err error
		if q.Bounds, rows, err = l.chain.cut(span, height); err != nil {
			return nil, err
		}
		q.Rows = rows <= MaxRows && want.Rows <= MaxRows
		if q.Rows || len(q.Bounds) == 0 {
			q.Bounds, q.Rows = nil, true
			return l.list(q, want)
		}
		theirs, err := l.ask(q, want.Sum)
		if err != nil {
			return nil, err
		}
		own, err := l.chain.Digests(q)
		if err != nil {
			return nil, err
		}
		i := 0
		for i < len(own.Parts) && bytes.Equal(own.Parts[i].Sum, theirs.Parts[i].Sum) {
			i++
		}
		if i == len(own.Parts) {
			return nil, ErrUntrustworthy // the sums of equal parts are equal
		}
		if i > 0 {
			span.Start = q.Bounds[i-1]
		}
		if i < len(q.Bounds) {
			span.End = q.Bounds[i]
		}
		want = theirs.Parts[i]
	}
}

// ask sends a request whose parts have to add up to a sum.
func (l *locator) ask(q *DigestRequest, sum []byte) (*DigestAnswer, error) {
	a, err := l.peer.Digests(q)
	if err != nil {
		return nil, err
	}
	if len(a.Parts) != len(q.Bounds)+1 {
		return nil, ErrUntrustworthy
	}
	var total lthash.Sum
	for _, p := range a.Parts {
		s, err := lthash.Decode(p.Sum)
		if err != nil {
			return nil, err
		}
		total.Add(s)
	}
	if !bytes.Equal(total.Append(nil), sum) {
		return nil, ErrUntrustworthy
	}
	return a, nil
}

// list compares the rows of a range one by one.
func (l *locator) list(q *DigestRequest, want DigestPart) (*Difference, error) {
	theirs, err := l.ask(q, want.Sum)
	if err != nil {
		return nil, err
	}
	own, err := l.chain.Digests(q)
	if err != nil {
		return nil, err
	}
	if own.List == nil && own.Parts[0].Rows > 0 || theirs.List == nil && theirs.Parts[0].Rows > 0 {
		return l.chain.difference(q.Height, q.Start, nil,
			fmt.Sprintf("from this key on there are %d rows here and %d at the peer", own.Parts[0].Rows, theirs.Parts[0].Rows)), nil
	}
	if err := checkList(theirs, want.Sum); err != nil {
		return nil, err
	}
	a, b := own.List, theirs.List
	for {
		switch {
		case len(a) == 0 && len(b) == 0:
			return nil, ErrUntrustworthy
		case len(b) == 0 || len(a) > 0 && bytes.Compare(a[0].Key, b[0].Key) < 0:
			return l.chain.difference(q.Height, a[0].Key, a[0].Value, fmt.Sprintf("block %d wrote it here, and it is not at the peer", a[0].Version.Block)), nil
		case len(a) == 0 || bytes.Compare(a[0].Key, b[0].Key) > 0:
			return l.chain.difference(q.Height, b[0].Key, b[0].Value, fmt.Sprintf("it is missing here; block %d wrote it", b[0].Version.Block)), nil
		case a[0].Version != b[0].Version:
			return l.chain.difference(q.Height, a[0].Key, a[0].Value, fmt.Sprintf("block %d wrote it here, and block %d at the peer", a[0].Version.Block, b[0].Version.Block)), nil
		case !bytes.Equal(a[0].Value, b[0].Value):
			return l.chain.difference(q.Height, a[0].Key, b[0].Value, fmt.Sprintf("the version that block %d wrote has another value", a[0].Version.Block)), nil
		}
		a, b = a[1:], b[1:]
	}
}

// checkList checks that the rows of an answer are those of its digest.
func checkList(a *DigestAnswer, sum []byte) error {
	var x lthash.Expander
	var s lthash.Sum
	for i := range a.List {
		x.Add(&s, appendElement(nil, a.List[i].Key, a.List[i].Version, a.List[i].Value))
	}
	if !bytes.Equal(s.Append(nil), sum) {
		return ErrUntrustworthy
	}
	return nil
}

// cut counts the rows of a span and finds keys that cut it into about equal
// parts.
func (c *Chain) cut(span rwset.Span, height block.Height) (bounds [][]byte, rows uint64, err error) {
	if rows, err = c.count(span, height); err != nil || rows < 2 {
		return nil, rows, err
	}
	const parts = 16
	every, n := max(rows/parts, 1), uint64(0)
	err = c.eachKey(span, height, func(key []byte) error {
		if n > 0 && n%every == 0 && len(bounds) < parts-1 {
			bounds = append(bounds, bytes.Clone(key))
		}
		n++
		return nil
	})
	return bounds, rows, err
}
