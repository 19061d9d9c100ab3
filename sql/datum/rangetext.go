package datum

import (
	"encoding/binary"
	"strings"

	"github.com/tallystick/tallystick/sql/pgerr"
)

func skipSpace(s string) string {
	for s != "" && isSpace(s[0]) {
		s = s[1:]
	}
	return s
}

func hasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

func errRange(s, detail string) error {
	return pgerr.New(pgerr.InvalidTextRepresentation, `malformed range literal: "%s"`, s).WithDetail("%s", detail)
}

// parseRange reads [a,b), (,b], empty and the like (range_parse).
func parseRange(t *Desc, s string, f *Format) (Datum, error) {
	p := skipSpace(s)
	if hasPrefixFold(p, "empty") {
		if skipSpace(p[len("empty"):]) != "" {
			return Null, errRange(s, `Junk after "empty" key word.`)
		}
		return EmptyRange(), nil
	}
	if p == "" || p[0] != '[' && p[0] != '(' {
		return Null, errRange(s, "Missing left parenthesis or bracket.")
	}
	lower := Bound{Lower: true, Inclusive: p[0] == '['}
	var upper Bound
	low, infinite, p, ok := scanBound(p[1:])
	if !ok {
		return Null, errRange(s, "Unexpected end of input.")
	}
	if p[0] != ',' {
		return Null, errRange(s, "Missing comma after lower bound.")
	}
	lower.Infinite = infinite
	high, infinite, p, ok := scanBound(p[1:])
	if !ok {
		return Null, errRange(s, "Unexpected end of input.")
	}
	if p[0] == ',' {
		return Null, errRange(s, "Too many commas.")
	}
	upper.Infinite, upper.Inclusive = infinite, p[0] == ']'
	if skipSpace(p[1:]) != "" {
		return Null, errRange(s, "Junk after right parenthesis or bracket.")
	}
	var err error
	if !lower.Infinite {
		if lower.Val, err = t.Sub.Parse(low, -1, f); err != nil {
			return Null, err
		}
	}
	if !upper.Infinite {
		if upper.Val, err = t.Sub.Parse(high, -1, f); err != nil {
			return Null, err
		}
	}
	return MakeRange(t, lower, upper)
}

// scanBound reads up to the comma or parenthesis after a bound; nothing at all
// means that it is infinite. rest is not empty if ok.
func scanBound(s string) (text string, infinite bool, rest string, ok bool) {
	if s != "" && (s[0] == ',' || s[0] == ')' || s[0] == ']') {
		return "", true, s, true
	}
	var b []byte
	quoted := false
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case !quoted && (c == ',' || c == ')' || c == ']'):
			return string(b), false, s[i:], true
		case c == '\\':
			if i++; i < len(s) {
				b = append(b, s[i])
			}
		case c == '"' && quoted && i+1 < len(s) && s[i+1] == '"':
			b = append(b, c)
			i++
		case c == '"':
			quoted = !quoted
		default:
			b = append(b, c)
		}
	}
	return "", false, "", false
}

func appendRange(dst []byte, t *Desc, d Datum, f *Format) []byte {
	lower, upper, empty := RangeBounds(t, d)
	if empty {
		return append(dst, "empty"...)
	}
	if lower.Inclusive {
		dst = append(dst, '[')
	} else {
		dst = append(dst, '(')
	}
	dst = appendBound(dst, t, lower, f)
	dst = append(dst, ',')
	dst = appendBound(dst, t, upper, f)
	if upper.Inclusive {
		return append(dst, ']')
	}
	return append(dst, ')')
}

// appendBound quotes a value where range_parse would misread it.
func appendBound(dst []byte, t *Desc, b Bound, f *Format) []byte {
	if b.Infinite {
		return dst
	}
	var room [64]byte
	s := t.Sub.Append(room[:0], b.Val, f)
	quote := len(s) == 0
	for _, c := range s {
		if c == '"' || c == '\\' || c == '(' || c == ')' || c == '[' || c == ']' || c == ',' || isSpace(c) {
			quote = true
		}
	}
	if !quote {
		return append(dst, s...)
	}
	dst = append(dst, '"')
	for _, c := range s {
		if c == '"' || c == '\\' {
			dst = append(dst, c)
		}
		dst = append(dst, c)
	}
	return append(dst, '"')
}

// appendBinaryRange is range_send: the flags, then each finite bound with its
// length.
func appendBinaryRange(dst []byte, t *Desc, d Datum) []byte {
	lower, upper, empty := RangeBounds(t, d)
	if empty {
		return append(dst, rangeEmpty)
	}
	dst = append(dst, d.Bytes()[0])
	for _, b := range [2]Bound{lower, upper} {
		if !b.Infinite {
			at := len(dst)
			dst = t.Sub.AppendBinary(append(dst, 0, 0, 0, 0), b.Val)
			binary.BigEndian.PutUint32(dst[at:], uint32(len(dst)-at-4))
		}
	}
	return dst
}

func parseBinaryRange(t *Desc, b []byte) (Datum, error) {
	if len(b) == 0 {
		return Null, errShort()
	}
	flags := b[0]
	b = b[1:]
	lower := Bound{Lower: true, Infinite: flags&rangeLowerInf != 0, Inclusive: flags&rangeLowerInc != 0}
	upper := Bound{Infinite: flags&rangeUpperInf != 0, Inclusive: flags&rangeUpperInc != 0}
	for _, x := range [2]*Bound{&lower, &upper} {
		if x.Infinite || flags&rangeEmpty != 0 {
			continue
		}
		if len(b) < 4 {
			return Null, errShort()
		}
		n := binary.BigEndian.Uint32(b)
		if b = b[4:]; uint64(n) > uint64(len(b)) {
			return Null, errShort()
		}
		var err error
		if x.Val, err = t.Sub.ParseBinary(b[:n:n], -1); err != nil {
			return Null, err
		}
		b = b[n:]
	}
	if len(b) > 0 {
		return Null, errBinary()
	}
	if flags&rangeEmpty != 0 {
		return EmptyRange(), nil
	}
	return MakeRange(t, lower, upper)
}
