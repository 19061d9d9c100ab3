package exec

import (
	"bytes"
	"math"
	"slices"

	"github.com/tallystick/tallystick/mvcc/rwset"
	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/plan"
)

// rangeProg is a compiled plan.Range.
type rangeProg struct {
	eq     []rangeKey // leading key columns; a nil eval is IS NULL
	in     evalFunc
	inNarw narrowing
	lo, hi *boundProg
	// point tells that the range names complete keys of a unique index: each is
	// read with a get instead of a scan, unless a column IS NULL.
	point bool
}

type rangeKey struct {
	eval   evalFunc
	narrow narrowing
}

type boundProg struct {
	eval      evalFunc
	inclusive bool
	narrow    narrowing
}

// narrowing says how far values of a wider integer type reach beyond those of
// the key column they are compared with: keys hold what fits the column only.
type narrowing struct{ min, max int64 }

func narrowingOf(column, value datum.Type) narrowing {
	c, v := column.Root(), value.Root()
	if c.Desc == v.Desc {
		return narrowing{}
	}
	switch c.Desc {
	case datum.Int2:
		return narrowing{math.MinInt16, math.MaxInt16}
	case datum.Int4:
		return narrowing{math.MinInt32, math.MaxInt32}
	}
	return narrowing{}
}

// outside is -1 below the column's values, 1 above, else 0.
func (n narrowing) outside(d datum.Datum) int {
	switch {
	case n.min == n.max:
		return 0
	case d.Int() < n.min:
		return -1
	case d.Int() > n.max:
		return 1
	}
	return 0
}

func (c *compiler) ranges(n *plan.Scan, l *catalog.Layout, index int) ([]rangeProg, error) {
	out := make([]rangeProg, 0, len(n.Ranges))
	for i := range n.Ranges {
		r, err := c.rangeOf(n, l, &n.Ranges[i])
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
}

func (c *compiler) rangeOf(n *plan.Scan, l *catalog.Layout, r *plan.Range) (p rangeProg, err error) {
	keyType := func(k int) datum.Type { return l.KeyType(l.Position(n.Index), k) }
	nulls := false
	for k, eq := range r.Eq {
		key := rangeKey{}
		if eq.Value == nil {
			nulls = true
		} else {
			if key.eval, err = c.expr(eq.Value); err != nil {
				return p, err
			}
			key.narrow = narrowingOf(keyType(k), eq.Value.Type())
		}
		p.eq = append(p.eq, key)
	}
	keys := len(r.Eq)
	if r.In != nil {
		if p.in, err = c.expr(r.In); err != nil {
			return p, err
		}
		if elem := elemOf(r.In.Type()); elem != nil {
			p.inNarw = narrowingOf(keyType(keys), datum.T(elem))
		}
		keys++
	}
	bound := func(b *plan.Bound) (*boundProg, error) {
		if b == nil {
			return nil, nil
		}
		ev, err := c.expr(b.Value)
		return &boundProg{ev, b.Inclusive, narrowingOf(keyType(len(r.Eq)), b.Value.Type())}, err
	}
	if p.lo, err = bound(r.Lo); err != nil {
		return p, err
	}
	if p.hi, err = bound(r.Hi); err != nil {
		return p, err
	}
	p.point = keys == len(n.Index.Keys) && (n.Index.Unique || n.Index.Primary) && !nulls && p.lo == nil && p.hi == nil
	return p, nil
}

// span is a part of an index to read: one key if end is nil.
type span struct{ start, end []byte }

func (s *span) point() bool { return s.end == nil }

// spanSet is the list of spans of a scan, in key order and disjoint. Its memory
// is reused from one opening to the next.
type spanSet struct {
	buf   []byte
	spans []span
}

// build computes the spans of the ranges; no range is the whole index.
func (s *spanSet) build(f *frame, p *scanProg) error {
	s.buf, s.spans = s.buf[:0], s.spans[:0]
	if len(p.ranges) == 0 {
		prefix := p.layout.IndexPrefix(p.index)
		s.spans = append(s.spans, span{prefix, p.indexEnd})
		return nil
	}
	for i := range p.ranges {
		if err := s.add(f, p, &p.ranges[i]); err != nil {
			return err
		}
	}
	if len(s.spans) > 1 {
		s.merge()
	}
	return nil
}

// add appends the spans of one range. Slices into buf stay valid when it grows:
// the old memory is not touched any more.
func (s *spanSet) add(f *frame, p *scanProg, r *rangeProg) error {
	at := len(s.buf)
	s.buf = append(s.buf, p.layout.IndexPrefix(p.index)...)
	for k := range r.eq {
		key := &r.eq[k]
		d := datum.Null
		if key.eval != nil {
			var err error
			if d, err = key.eval(f); err != nil {
				return err
			}
			if d.IsNull() || key.narrow.outside(d) != 0 {
				return nil
			}
		}
		s.buf = p.layout.AppendKeyColumn(s.buf, p.index, k, d)
	}
	switch {
	case r.in != nil:
		return s.addList(f, p, r, s.buf[at:])
	case r.lo != nil || r.hi != nil:
		return s.addBounds(f, p, r, s.buf[at:])
	case r.point:
		s.spans = append(s.spans, span{start: s.cut(at)})
		return nil
	}
	start := s.cut(at)
	s.spans = append(s.spans, span{start, s.prefixEnd(start)})
	return nil
}

// cut returns what buf holds from at on.
func (s *spanSet) cut(at int) []byte { return s.buf[at:len(s.buf):len(s.buf)] }

// prefixEnd is rwset.PrefixEnd into buf.
func (s *spanSet) prefixEnd(prefix []byte) []byte {
	n := len(prefix)
	for prefix[n-1] == 0xff { // a prefix begins with an OID that is not all ones
		n--
	}
	at := len(s.buf)
	s.buf = append(s.buf, prefix[:n]...)
	s.buf[len(s.buf)-1]++
	return s.cut(at)
}

func (s *spanSet) addList(f *frame, p *scanProg, r *rangeProg, prefix []byte) error {
	list, err := r.in(f)
	if err != nil || list.IsNull() {
		return err
	}
	for d := range datum.ArrayElems(list) {
		if d.IsNull() || r.inNarw.outside(d) != 0 {
			continue
		}
		at := len(s.buf)
		s.buf = append(s.buf, prefix...)
		s.buf = p.layout.AppendKeyColumn(s.buf, p.index, len(r.eq), d)
		start := s.cut(at)
		if r.point {
			s.spans = append(s.spans, span{start: start})
		} else {
			s.spans = append(s.spans, span{start, s.prefixEnd(start)})
		}
	}
	return nil
}

// addBounds appends prefix plus a bounded key column. Nulls are outside of
// every bound; in the key they stand before or behind all values.
func (s *spanSet) addBounds(f *frame, p *scanProg, r *rangeProg, prefix []byte) error {
	k := len(r.eq)
	key := &p.keys[k]
	first, last := r.lo, r.hi // in key order
	below := -1
	if key.Desc {
		first, last = r.hi, r.lo
		below = 1
	}
	start, empty, err := s.bound(f, p, first, k, prefix, below, true)
	if err != nil || empty {
		return err
	}
	end, empty, err := s.bound(f, p, last, k, prefix, -below, false)
	if err != nil || empty {
		return err
	}
	if bytes.Compare(start, end) < 0 {
		s.spans = append(s.spans, span{start, end})
	}
	return nil
}

// bound computes where the values that satisfy a bound begin (isStart) or end in
// the index. free is the side on which a value outside of the column's type
// bounds nothing; on the other it makes the range empty.
func (s *spanSet) bound(f *frame, p *scanProg, b *boundProg, k int, prefix []byte, free int, isStart bool) (key []byte, empty bool, err error) {
	at := len(s.buf)
	if b != nil {
		d, err := b.eval(f)
		if err != nil || d.IsNull() {
			return nil, true, err
		}
		switch b.narrow.outside(d) {
		case 0:
			s.buf = p.layout.AppendKeyColumn(append(s.buf, prefix...), p.index, k, d)
			key = s.cut(at)
			if b.inclusive != isStart {
				key = s.prefixEnd(key)
			}
			return key, false, nil
		case free:
		default:
			return nil, true, nil
		}
	}
	// No bound on this side: only nulls are to be left out, if they stand here.
	if p.keys[k].NullsFirst == isStart {
		s.buf = p.layout.AppendKeyColumn(append(s.buf, prefix...), p.index, k, datum.Null)
		key = s.cut(at)
		if isStart {
			key = s.prefixEnd(key)
		}
		return key, false, nil
	}
	if isStart {
		return prefix, false, nil
	}
	return s.prefixEnd(prefix), false, nil
}

// merge sorts the spans and joins those that overlap or touch the same key.
func (s *spanSet) merge() {
	slices.SortFunc(s.spans, func(a, b span) int {
		if c := bytes.Compare(a.start, b.start); c != 0 {
			return c
		}
		if a.point() != b.point() {
			if a.point() {
				return 1
			}
			return -1
		}
		return bytes.Compare(b.end, a.end)
	})
	out := s.spans[:1]
	for _, next := range s.spans[1:] {
		last := &out[len(out)-1]
		switch {
		case last.point() && bytes.Equal(last.start, next.start): // the same key again
		case last.point() || bytes.Compare(next.start, last.end) >= 0:
			out = append(out, next)
		case next.point() || bytes.Compare(next.end, last.end) <= 0:
		default:
			last.end = next.end
		}
	}
	s.spans = out
}

func (s *span) rwset() rwset.Span { return rwset.Span{Start: s.start, End: s.end} }
