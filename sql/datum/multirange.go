package datum

import (
	"encoding/binary"
	"iter"
	"slices"

	"github.com/tallystick/tallystick/sql/pgerr"
)

// A multirange value is the number of its ranges (uvarint) and the ranges one
// after another: none empty, in order, no two of them overlapping or adjacent.

// MakeMultirange makes a multirange of type t from ranges in any order
// (make_multirange): empty ones are left out, those that touch become one.
func MakeMultirange(t *Desc, ranges []Datum) Datum {
	r := t.Range
	list := make([]Datum, 0, len(ranges))
	for _, d := range ranges {
		if !RangeIsEmpty(d) {
			list = append(list, d)
		}
	}
	slices.SortStableFunc(list, r.Compare)
	out := list[:0]
	for _, d := range list {
		if n := len(out); n > 0 {
			if u, ok := joinSorted(r, out[n-1], d); ok {
				out[n-1] = u
				continue
			}
		}
		out = append(out, d)
	}
	b := appendUvarint(nil, uint64(len(out)))
	for _, d := range out {
		b = append(b, d.Bytes()...)
	}
	return Bytes(b)
}

// joinSorted is the union of two ranges of which the first does not begin after
// the second; ok is false if there is a gap.
func joinSorted(t *Desc, a, b Datum) (u Datum, ok bool) {
	lower, upper, _ := RangeBounds(t, a)
	next, last, _ := RangeBounds(t, b)
	if CompareBounds(t, upper, next) < 0 && !BoundsAdjacent(t, upper, next) {
		return Null, false
	}
	if CompareBounds(t, last, upper) <= 0 {
		return a, true
	}
	return encodeRange(t, lower, last), true
}

// MultirangeLen is the number of ranges.
func MultirangeLen(d Datum) int {
	u, n := uvarint(d.Bytes())
	if n == 0 || u > d.n {
		return 0
	}
	return int(u)
}

// MultirangeRanges yields the ranges of a value of multirange type t in order.
// They refer to d's bytes.
func MultirangeRanges(t *Desc, d Datum) iter.Seq[Datum] {
	return func(yield func(Datum) bool) {
		b := d.Bytes()
		u, n := uvarint(b)
		if n == 0 || u > d.n {
			return
		}
		b = b[n:]
		for range u {
			_, _, empty, n := readRange(t.Range, b)
			if empty || !yield(Bytes(b[:n:n])) {
				return
			}
			b = b[n:]
		}
	}
}

// MultirangeValues collects the ranges.
func MultirangeValues(t *Desc, d Datum) []Datum {
	return slices.AppendSeq(make([]Datum, 0, MultirangeLen(d)), MultirangeRanges(t, d))
}

func compareMultiranges(t *Desc) func(a, b Datum) int {
	return func(a, b Datum) int {
		x, y := MultirangeValues(t, a), MultirangeValues(t, b)
		return slices.CompareFunc(x, y, t.Range.Compare)
	}
}

func setMultirangeFunctions(t *Desc) {
	r := t.Range
	t.text(func(s string, _ int32, f *Format) (Datum, error) { return parseMultirange(t, s, f) },
		func(dst []byte, d Datum, f *Format) []byte { return appendMultirange(dst, t, d, f) })
	t.binary(func(b []byte, _ int32) (Datum, error) { return parseBinaryMultirange(t, b) },
		func(dst []byte, d Datum) []byte { return appendBinaryMultirange(dst, t, d) })
	t.Compare = compareMultiranges(t)
	if r.AppendKey != nil {
		t.AppendKey = func(dst []byte, d Datum) []byte {
			for x := range MultirangeRanges(t, d) {
				dst = r.AppendKey(append(dst, keyElem), x)
			}
			return append(dst, keyElemEnd)
		}
		t.SkipKey = skipMultirangeKey(r)
	}
	if r.Hash != nil {
		t.Hash = func(h uint64, d Datum) uint64 {
			for x := range MultirangeRanges(t, d) {
				h = r.Hash(h, x)
			}
			return HashInt(h, uint64(MultirangeLen(d)))
		}
	}
}

func skipMultirangeKey(r *Desc) func([]byte) ([]byte, error) {
	return func(b []byte) ([]byte, error) {
		for len(b) > 0 && b[0] == keyElem {
			var err error
			if b, err = r.SkipKey(b[1:]); err != nil {
				return nil, err
			}
		}
		if len(b) == 0 || b[0] != keyElemEnd {
			return nil, errBadKey()
		}
		return b[1:], nil
	}
}

func errMultirange(s, detail string) error {
	return pgerr.New(pgerr.InvalidTextRepresentation, `malformed multirange literal: "%s"`, s).WithDetail("%s", detail)
}

// parseMultirange reads {[1,2),[5,9)} as multirange_in does.
func parseMultirange(t *Desc, s string, f *Format) (Datum, error) {
	p := s
	for p != "" && isSpace(p[0]) {
		p = p[1:]
	}
	if p == "" || p[0] != '{' {
		return Null, errMultirange(s, "Missing left brace.")
	}
	p = p[1:]
	var ranges []Datum
	for first := true; ; first = false {
		p = skipSpace(p)
		switch {
		case p == "":
			return Null, errMultirange(s, "Unexpected end of input.")
		case p[0] == '}' && first:
			return finishMultirange(t, s, p[1:], ranges)
		case p[0] == '[' || p[0] == '(':
			n := rangeLiteral(p)
			if n < 0 {
				return Null, errMultirange(s, "Unexpected end of input.")
			}
			d, err := t.Range.Parse(p[:n], -1, f)
			if err != nil {
				return Null, err
			}
			ranges, p = append(ranges, d), p[n:]
		case hasPrefixFold(p, "empty"):
			p = p[len("empty"):]
		default:
			return Null, errMultirange(s, "Expected range start.")
		}
		p = skipSpace(p)
		switch {
		case p == "":
			return Null, errMultirange(s, "Unexpected end of input.")
		case p[0] == '}':
			return finishMultirange(t, s, p[1:], ranges)
		case p[0] != ',':
			return Null, errMultirange(s, "Expected comma or end of multirange.")
		}
		p = p[1:]
	}
}

func finishMultirange(t *Desc, s, rest string, ranges []Datum) (Datum, error) {
	if skipSpace(rest) != "" {
		return Null, errMultirange(s, "Junk after closing right brace.")
	}
	return MakeMultirange(t, ranges), nil
}

// rangeLiteral is the length of the range at the beginning of s, -1 if it has
// no end.
func rangeLiteral(s string) int {
	quoted := false
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case !quoted && (c == ']' || c == ')'):
			return i + 1
		}
	}
	return -1
}

func appendMultirange(dst []byte, t *Desc, d Datum, f *Format) []byte {
	dst = append(dst, '{')
	first := true
	for r := range MultirangeRanges(t, d) {
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = appendRange(dst, t.Range, r, f)
	}
	return append(dst, '}')
}

func parseBinaryMultirange(t *Desc, b []byte) (Datum, error) {
	if len(b) < 4 {
		return Null, errShort()
	}
	n := binary.BigEndian.Uint32(b)
	b = b[4:]
	var ranges []Datum
	for range n {
		if len(b) < 4 {
			return Null, errShort()
		}
		size := binary.BigEndian.Uint32(b)
		if b = b[4:]; uint64(size) > uint64(len(b)) {
			return Null, errShort()
		}
		d, err := t.Range.ParseBinary(b[:size:size], -1)
		if err != nil {
			return Null, err
		}
		ranges, b = append(ranges, d), b[size:]
	}
	if len(b) > 0 {
		return Null, errBinary()
	}
	return MakeMultirange(t, ranges), nil
}

func appendBinaryMultirange(dst []byte, t *Desc, d Datum) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(MultirangeLen(d)))
	for r := range MultirangeRanges(t, d) {
		at := len(dst)
		dst = appendBinaryRange(append(dst, 0, 0, 0, 0), t.Range, r)
		binary.BigEndian.PutUint32(dst[at:], uint32(len(dst)-at-4))
	}
	return dst
}
