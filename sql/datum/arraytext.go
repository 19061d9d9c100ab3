package datum

import (
	"encoding/binary"
	"math"
	"strconv"
	"strings"

	"github.com/tallystick/tallystick/sql/pgerr"
)

func appendArray(dst []byte, elem *Desc, d Datum, f *Format) []byte {
	var r arrayReader
	r.openAs(elem, d)
	if r.ndim == 0 {
		return append(dst, "{}"...)
	}
	for i := range r.ndim {
		if r.dims[i].Lower != 1 {
			dst = appendBounds(dst, r.dims[:r.ndim])
			break
		}
	}
	dst, _ = appendLevel(dst, elem, &r, 0, f, nil)
	return dst
}

func appendBounds(dst []byte, dims []ArrayDim) []byte {
	for _, d := range dims {
		dst = strconv.AppendInt(append(dst, '['), int64(d.Lower), 10)
		dst = strconv.AppendInt(append(dst, ':'), int64(d.Lower)+int64(d.Len)-1, 10)
		dst = append(dst, ']')
	}
	return append(dst, '=')
}

func appendLevel(dst []byte, elem *Desc, r *arrayReader, level int, f *Format, buf []byte) ([]byte, []byte) {
	dst = append(dst, '{')
	for i := range r.dims[level].Len {
		if i > 0 {
			dst = append(dst, ',')
		}
		if level+1 < r.ndim {
			dst, buf = appendLevel(dst, elem, r, level+1, f, buf)
			continue
		}
		v, ok := r.next()
		if !ok || v.IsNull() {
			dst = append(dst, "NULL"...)
			continue
		}
		buf = elem.Append(buf[:0], v, f)
		dst = appendArrayElem(dst, buf)
	}
	return append(dst, '}'), buf
}

// appendArrayElem quotes an element where array_in would misread it.
func appendArrayElem(dst, s []byte) []byte {
	quote := len(s) == 0 || len(s) == 4 && strings.EqualFold(string(s), "null")
	for _, c := range s {
		if c == '"' || c == '\\' || c == '{' || c == '}' || c == ',' || isSpace(c) {
			quote = true
		}
	}
	if !quote {
		return append(dst, s...)
	}
	dst = append(dst, '"')
	for _, c := range s {
		if c == '"' || c == '\\' {
			dst = append(dst, '\\')
		}
		dst = append(dst, c)
	}
	return append(dst, '"')
}

// arrayParser reads array_in's syntax: {a,"b c",NULL}, nested for more
// dimensions, with optional bounds before it.
type arrayParser struct {
	s     string
	pos   int
	from  int // where the braces start; messages show the rest
	items []arrayItem
	ndim  int // -1 until the first element is met
	dims  [maxArrayDims]int32
}

// arrayItem is the text of an element; all are found before any is converted.
type arrayItem struct {
	text string
	null bool
}

func errArray(s, format string, args ...any) error {
	return pgerr.New(pgerr.InvalidTextRepresentation, `malformed array literal: "%s"`, s).WithDetail(format, args...)
}

func parseArray(elem *Desc, s string, mod int32, f *Format) (Datum, error) {
	p := arrayParser{s: s, ndim: -1}
	bounds, err := p.bounds()
	if err != nil {
		return Null, err
	}
	if p.pos >= len(s) || s[p.pos] != '{' {
		if bounds != nil {
			return Null, errArray(s, `Array contents must start with "{".`)
		}
		return Null, errArray(s, `Array value must start with "{" or dimension information.`)
	}
	p.from = p.pos
	if err := p.level(0); err != nil {
		return Null, err
	}
	p.space()
	if p.pos < len(s) {
		return Null, errArray(s[p.from:], "Junk after closing right brace.")
	}
	if len(p.items) == 0 {
		return encodeArray(elem.store, nil, nil), nil
	}
	dims := make([]ArrayDim, p.ndim)
	for i := range dims {
		dims[i] = ArrayDim{p.dims[i], 1}
	}
	if bounds != nil {
		if len(bounds) != len(dims) {
			return Null, errArray(s, "Specified array dimensions do not match array contents.")
		}
		for i := range dims {
			if bounds[i].Len != dims[i].Len {
				return Null, errArray(s, "Specified array dimensions do not match array contents.")
			}
		}
		dims = bounds
	}
	if err := checkDims(dims); err != nil {
		return Null, err
	}
	vals := make([]Datum, len(p.items))
	for i, item := range p.items {
		vals[i] = Null
		if !item.null {
			if vals[i], err = elem.Parse(item.text, mod, f); err != nil {
				return Null, err
			}
		}
	}
	return encodeArray(elem.store, dims, vals), nil
}

func (p *arrayParser) space() {
	for p.pos < len(p.s) && isSpace(p.s[p.pos]) {
		p.pos++
	}
}

// bounds reads [1:3][0:1]= and the like; nil if there is none.
func (p *arrayParser) bounds() ([]ArrayDim, error) {
	var dims []ArrayDim
	for p.space(); p.pos < len(p.s) && p.s[p.pos] == '['; p.space() {
		if len(dims) == maxArrayDims {
			return nil, pgerr.New(pgerr.ProgramLimitExceeded, "number of array dimensions (%d) exceeds the maximum allowed (%d)", len(dims)+1, maxArrayDims)
		}
		p.pos++
		lower, err := p.bound()
		if err != nil {
			return nil, err
		}
		upper := lower
		if p.pos < len(p.s) && p.s[p.pos] == ':' {
			p.pos++
			if upper, err = p.bound(); err != nil {
				return nil, err
			}
		} else {
			lower = 1
		}
		if p.pos >= len(p.s) || p.s[p.pos] != ']' {
			return nil, errArray(p.s, `Missing "%s" after array dimensions.`, "]")
		}
		p.pos++
		if upper < lower {
			return nil, pgerr.New(pgerr.ArraySubscriptError, "upper bound cannot be less than lower bound")
		}
		n := int64(upper) - int64(lower) + 1
		if n > maxArraySize {
			return nil, errArraySize()
		}
		dims = append(dims, ArrayDim{int32(n), lower})
	}
	if dims == nil {
		return nil, nil
	}
	if p.pos >= len(p.s) || p.s[p.pos] != '=' {
		return nil, errArray(p.s, `Missing "%s" after array dimensions.`, "=")
	}
	p.pos++
	p.space()
	return dims, nil
}

func (p *arrayParser) bound() (int32, error) {
	start := p.pos
	for p.pos < len(p.s) && (isDigit(p.s[p.pos]) || p.pos == start && (p.s[p.pos] == '-' || p.s[p.pos] == '+')) {
		p.pos++
	}
	v, err := strconv.ParseInt(p.s[start:p.pos], 10, 64)
	if err != nil {
		return 0, errArray(p.s, `"[" must introduce explicitly-specified array dimensions.`)
	}
	if v < math.MinInt32 || v > math.MaxInt32 {
		return 0, pgerr.New(pgerr.ProgramLimitExceeded, "array bound is out of integer range")
	}
	return int32(v), nil
}

// level reads one brace-enclosed list at a depth.
func (p *arrayParser) level(depth int) error {
	if depth >= maxArrayDims {
		return pgerr.New(pgerr.ProgramLimitExceeded, "number of array dimensions (%d) exceeds the maximum allowed (%d)", depth+1, maxArrayDims)
	}
	p.pos++
	n := int32(0)
	for {
		p.space()
		if p.pos >= len(p.s) {
			return errArray(p.s[p.from:], "Unexpected end of input.")
		}
		c := p.s[p.pos]
		switch {
		case c == '}':
			if n > 0 {
				return errArray(p.s[p.from:], `Unexpected "%c" character.`, c)
			}
		case c == '{':
			if p.ndim >= 0 && depth+1 >= p.ndim {
				return errDimensions(p.s[p.from:])
			}
			if err := p.level(depth + 1); err != nil {
				return err
			}
			n++
		case c == ',':
			return errArray(p.s[p.from:], `Unexpected "%c" character.`, c)
		default:
			if p.ndim >= 0 && depth+1 != p.ndim {
				return errDimensions(p.s[p.from:])
			}
			if p.ndim < 0 {
				p.ndim = depth + 1
			}
			if err := p.element(); err != nil {
				return err
			}
			n++
		}
		p.space()
		if p.pos >= len(p.s) {
			return errArray(p.s[p.from:], "Unexpected end of input.")
		}
		c = p.s[p.pos]
		if c == ',' {
			p.pos++
			continue
		}
		if c != '}' {
			return errArray(p.s[p.from:], "Unexpected array element.")
		}
		p.pos++
		return p.closeLevel(depth, n)
	}
}

func errDimensions(s string) error {
	return errArray(s, "Multidimensional arrays must have sub-arrays with matching dimensions.")
}

func (p *arrayParser) closeLevel(depth int, n int32) error {
	if n == 0 {
		if depth > 0 {
			return errArray(p.s[p.from:], `Unexpected "%c" character.`, '}')
		}
		return nil
	}
	if p.dims[depth] == 0 {
		p.dims[depth] = n
	} else if p.dims[depth] != n {
		return errDimensions(p.s[p.from:])
	}
	return nil
}

// element reads a quoted or bare element.
func (p *arrayParser) element() error {
	var b []byte
	quoted := p.s[p.pos] == '"'
	escaped := false
	keep := 0 // white space at the end of a bare element does not count
	if quoted {
		p.pos++
	}
	for {
		if p.pos >= len(p.s) {
			return errArray(p.s[p.from:], "Unexpected end of input.")
		}
		c := p.s[p.pos]
		if quoted && c == '"' {
			p.pos++
			break
		}
		if !quoted && (c == ',' || c == '}') {
			b = b[:keep]
			break
		}
		if !quoted && (c == '"' || c == '{') {
			if c == '{' {
				return errArray(p.s[p.from:], `Unexpected "%c" character.`, c)
			}
			return errArray(p.s[p.from:], "Unexpected array element.")
		}
		plainSpace := !quoted && isSpace(c)
		if c == '\\' {
			p.pos++
			if p.pos >= len(p.s) {
				return errArray(p.s[p.from:], "Unexpected end of input.")
			}
			c, escaped, plainSpace = p.s[p.pos], true, false
		}
		b = append(b, c)
		if !plainSpace {
			keep = len(b)
		}
		p.pos++
	}
	null := !quoted && !escaped && strings.EqualFold(string(b), "null")
	p.items = append(p.items, arrayItem{string(b), null})
	return nil
}

func appendBinaryArray(dst []byte, elem *Desc, d Datum) []byte {
	var r arrayReader
	r.openAs(elem, d)
	dst = binary.BigEndian.AppendUint32(dst, uint32(r.ndim))
	dst = binary.BigEndian.AppendUint32(dst, uint32(boolBit(r.nulls != nil)))
	dst = binary.BigEndian.AppendUint32(dst, uint32(elem.OID))
	for i := range r.ndim {
		dst = binary.BigEndian.AppendUint32(dst, uint32(r.dims[i].Len))
		dst = binary.BigEndian.AppendUint32(dst, uint32(r.dims[i].Lower))
	}
	for v, ok := r.next(); ok; v, ok = r.next() {
		dst = appendBinaryField(dst, elem, v)
	}
	return dst
}

// appendBinaryField writes a length and a value, or -1 for null.
func appendBinaryField(dst []byte, t *Desc, v Datum) []byte {
	if v.IsNull() {
		return append(dst, 0xff, 0xff, 0xff, 0xff)
	}
	at := len(dst)
	dst = t.AppendBinary(append(dst, 0, 0, 0, 0), v)
	binary.BigEndian.PutUint32(dst[at:], uint32(len(dst)-at-4))
	return dst
}

// parseBinaryField reads what appendBinaryField writes.
func parseBinaryField(b []byte, t *Desc, mod int32) (v Datum, rest []byte, err error) {
	if len(b) < 4 {
		return Null, nil, errShort()
	}
	n := int32(binary.BigEndian.Uint32(b))
	b = b[4:]
	if n == -1 {
		return Null, b, nil
	}
	if n < -1 || int(n) > len(b) {
		return Null, nil, errShort()
	}
	v, err = t.ParseBinary(b[:n:n], mod)
	return v, b[n:], err
}

func parseBinaryArray(elem *Desc, b []byte, mod int32) (Datum, error) {
	if len(b) < 12 {
		return Null, errShort()
	}
	ndim := int32(binary.BigEndian.Uint32(b))
	flags := binary.BigEndian.Uint32(b[4:])
	oid := OID(binary.BigEndian.Uint32(b[8:]))
	b = b[12:]
	switch {
	case ndim < 0:
		return Null, pgerr.New(pgerr.InvalidBinaryRepresentation, "invalid number of dimensions: %d", ndim)
	case ndim > maxArrayDims:
		return Null, pgerr.New(pgerr.ProgramLimitExceeded, "number of array dimensions (%d) exceeds the maximum allowed (%d)", ndim, maxArrayDims)
	case flags > 1:
		return Null, pgerr.New(pgerr.InvalidBinaryRepresentation, "invalid array flags")
	case oid != elem.OID:
		return Null, pgerr.New(pgerr.DatatypeMismatch, "binary data has array element type %d (%s) instead of expected %d (%s)",
			oid, FormatType(T(ByOID(oid))), elem.OID, FormatType(T(elem)))
	case len(b) < 8*int(ndim):
		return Null, errShort()
	}
	dims := make([]ArrayDim, ndim)
	count := 1
	for i := range dims {
		dims[i] = ArrayDim{int32(binary.BigEndian.Uint32(b)), int32(binary.BigEndian.Uint32(b[4:]))}
		b = b[8:]
	}
	if err := checkDims(dims); err != nil {
		return Null, err
	}
	for _, d := range dims {
		count *= int(d.Len)
	}
	if ndim == 0 || count == 0 {
		if len(b) > 0 {
			return Null, errBinary()
		}
		return encodeArray(elem.store, nil, nil), nil
	}
	if count > len(b)/4 {
		return Null, errShort()
	}
	vals := make([]Datum, count)
	for i := range vals {
		var err error
		if vals[i], b, err = parseBinaryField(b, elem, mod); err != nil {
			return Null, err
		}
	}
	if len(b) > 0 {
		return Null, errBinary()
	}
	return encodeArray(elem.store, dims, vals), nil
}

// parseVector reads int2vector and oidvector: numbers between blanks, as an
// array with lower bound 0.
func parseVector(elem *Desc) func(string, int32, *Format) (Datum, error) {
	return func(s string, _ int32, f *Format) (Datum, error) {
		var vals []Datum
		for _, w := range strings.Fields(s) {
			v, err := elem.Parse(w, -1, f)
			if err != nil {
				return Null, err
			}
			vals = append(vals, v)
		}
		return MakeVector(elem, vals), nil
	}
}

// MakeVector makes an int2vector or oidvector.
func MakeVector(elem *Desc, vals []Datum) Datum {
	if len(vals) == 0 {
		return encodeArray(elem.store, nil, nil)
	}
	return encodeArray(elem.store, []ArrayDim{{int32(len(vals)), 0}}, vals)
}

func appendVector(dst []byte, d Datum, _ *Format) []byte {
	first := true
	for v := range ArrayElems(d) {
		if !first {
			dst = append(dst, ' ')
		}
		first = false
		dst = strconv.AppendInt(dst, v.Int(), 10)
	}
	return dst
}

func setVectorFunctions(t, elem *Desc) {
	t.Parse, t.Append = parseVector(elem), appendVector
	// The elements may get their functions later: look at them only when called.
	t.ParseBinary = func(b []byte, mod int32) (Datum, error) { return parseBinaryArray(elem, b, mod) }
	t.AppendBinary = func(dst []byte, d Datum) []byte { return appendBinaryArray(dst, elem, d) }
	t.Compare = func(x, y Datum) int { return compareArrays(elem, x, y) }
	t.AppendKey = func(dst []byte, d Datum) []byte { return keyArray(dst, elem, d) }
	t.SkipKey = func(b []byte) ([]byte, error) { return skipArrayKey(b, elem) }
	t.Hash = func(h uint64, d Datum) uint64 { return hashArray(h, elem, d) }
}
