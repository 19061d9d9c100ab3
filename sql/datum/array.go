package datum

import (
	"encoding/binary"
	"iter"

	"github.com/tallystick/tallystick/sql/pgerr"
)

// An array value is
//
//	byte   number of dimensions, 0 for an empty array
//	byte   storeClass of the elements, plus 0x80 if some are null
//	per dimension: uvarint length, zigzag varint lower bound
//	[(n+7)/8]byte  null bitmap, if some are null
//	the elements that are not null, in row-major order, as rows store them
const arrayHasNulls = 0x80

const (
	maxArrayDims = 6         // MAXDIM
	maxArraySize = 134217727 // MaxArraySize
)

// ArrayDim is one dimension of an array: Len elements from subscript Lower on.
type ArrayDim struct{ Len, Lower int32 }

// MakeArray makes a one-dimensional array with lower bound 1; with no values,
// the empty array.
func MakeArray(elem *Desc, vals []Datum) Datum {
	var dims []ArrayDim
	if len(vals) > 0 {
		dims = []ArrayDim{{int32(len(vals)), 1}}
	}
	return encodeArray(elem.store, dims, vals)
}

// MakeArrayND makes an array of the given dimensions from its elements in
// row-major order (54000 for too many dimensions or elements).
func MakeArrayND(elem *Desc, dims []ArrayDim, vals []Datum) (Datum, error) {
	if err := checkDims(dims); err != nil {
		return Null, err
	}
	if len(vals) == 0 {
		dims = nil
	}
	return encodeArray(elem.store, dims, vals), nil
}

func checkDims(dims []ArrayDim) error {
	if len(dims) > maxArrayDims {
		return pgerr.New(pgerr.ProgramLimitExceeded, "number of array dimensions (%d) exceeds the maximum allowed (%d)", len(dims), maxArrayDims)
	}
	n := int64(1)
	for _, d := range dims {
		if n *= int64(d.Len); n > maxArraySize || d.Len < 0 {
			return errArraySize()
		}
		if int64(d.Lower)+int64(d.Len) > 1<<31-1 {
			return pgerr.New(pgerr.ProgramLimitExceeded, "array lower bound is too large: %d", d.Lower)
		}
	}
	return nil
}

func errArraySize() error {
	return pgerr.New(pgerr.ProgramLimitExceeded, "array size exceeds the maximum allowed (%d)", maxArraySize)
}

func encodeArray(class storeClass, dims []ArrayDim, vals []Datum) Datum {
	b := make([]byte, 0, 8+9*len(vals))
	b = append(b, byte(len(dims)), byte(class))
	for _, d := range dims {
		b = appendUvarint(b, uint64(d.Len))
		b = appendUvarint(b, uint64(uint32(d.Lower<<1)^uint32(d.Lower>>31)))
	}
	nulls := 0
	for i, v := range vals {
		if v.IsNull() {
			if nulls == 0 {
				b[1] |= arrayHasNulls
				nulls = len(b)
				b = append(b, make([]byte, (len(vals)+7)/8)...)
			}
			b[nulls+i/8] |= 1 << (i & 7)
		}
	}
	for _, v := range vals {
		if !v.IsNull() {
			b = appendValue(b, class, v)
		}
	}
	return Bytes(b)
}

// arrayReader walks over an array.
type arrayReader struct {
	dims  [maxArrayDims]ArrayDim
	ndim  int
	class storeClass
	count int
	nulls []byte
	rest  []byte // elements not yet read
	i     int
}

// open reads the header; corrupt bytes read as an empty array.
func (r *arrayReader) open(d Datum) {
	b := d.Bytes()
	*r = arrayReader{}
	if len(b) < 2 || b[0] == 0 || b[0] > maxArrayDims || storeClass(b[1]&^arrayHasNulls) >= storeClasses {
		return
	}
	ndim, flags := int(b[0]), b[1]
	b = b[2:]
	count := uint64(1)
	for i := range ndim {
		l, n := uvarint(b)
		if n == 0 || l > maxArraySize {
			return
		}
		b = b[n:]
		u, n := uvarint(b)
		if n == 0 || u >= 1<<32 {
			return
		}
		b = b[n:]
		r.dims[i] = ArrayDim{int32(l), int32(u>>1) ^ -int32(u&1)}
		if count *= l; count > maxArraySize {
			return
		}
	}
	if flags&arrayHasNulls != 0 {
		n := int(count+7) / 8
		if n > len(b) {
			return
		}
		r.nulls, b = b[:n], b[n:]
	} else if count > uint64(len(b)) {
		return // every element takes a byte at least
	}
	r.ndim, r.class, r.count, r.rest = ndim, storeClass(flags&^arrayHasNulls), int(count), b
}

// openAs is open for a known element type: an array of anything else reads as
// empty.
func (r *arrayReader) openAs(elem *Desc, d Datum) {
	if r.open(d); r.class != elem.store {
		*r = arrayReader{}
	}
}

// next returns the next element; ok is false after the last one.
func (r *arrayReader) next() (d Datum, ok bool) {
	if r.i >= r.count {
		return Null, false
	}
	i := r.i
	r.i++
	if r.nulls != nil && r.nulls[i>>3]>>(i&7)&1 != 0 {
		return Null, true
	}
	d, n := readValue(r.rest, r.class)
	if n == 0 {
		r.i = r.count
		return Null, false
	}
	r.rest = r.rest[n:]
	return d, true
}

// ArrayDims returns the dimensions; none for an empty array.
func ArrayDims(d Datum) []ArrayDim {
	var r arrayReader
	r.open(d)
	if r.ndim == 0 {
		return nil
	}
	return append([]ArrayDim(nil), r.dims[:r.ndim]...)
}

// ArrayLen is the number of elements in all dimensions together.
func ArrayLen(d Datum) int {
	var r arrayReader
	r.open(d)
	return r.count
}

// ArrayElems yields the elements in row-major order, null ones included. They
// refer to d's bytes.
func ArrayElems(d Datum) iter.Seq[Datum] {
	return func(yield func(Datum) bool) {
		var r arrayReader
		r.open(d)
		for v, ok := r.next(); ok; v, ok = r.next() {
			if !yield(v) {
				return
			}
		}
	}
}

// ArrayValues collects the elements.
func ArrayValues(d Datum) []Datum {
	var r arrayReader
	r.open(d)
	vals := make([]Datum, 0, r.count)
	for v, ok := r.next(); ok; v, ok = r.next() {
		vals = append(vals, v)
	}
	return vals
}

// ArrayIndex is the element at a subscript for each dimension; null if their
// number is wrong or one is out of bounds.
func ArrayIndex(d Datum, subscripts ...int32) Datum {
	var r arrayReader
	r.open(d)
	if r.ndim == 0 || len(subscripts) != r.ndim {
		return Null
	}
	at := 0
	for i, s := range subscripts {
		k := int64(s) - int64(r.dims[i].Lower)
		if k < 0 || k >= int64(r.dims[i].Len) {
			return Null
		}
		at = at*int(r.dims[i].Len) + int(k)
	}
	for ; at > 0; at-- {
		if _, ok := r.next(); !ok {
			return Null
		}
	}
	v, _ := r.next()
	return v
}

// NewArrayDesc makes the array type of elem and sets elem.Array.
func NewArrayDesc(elem *Desc, oid OID) *Desc {
	a := &Desc{OID: oid, Name: TruncateName("_" + elem.Name), Len: -1, Kind: Base, Category: 'A', Elem: elem}
	elem.Array = a
	setArrayFunctions(a)
	return a
}

func setArrayFunctions(a *Desc) {
	elem := a.Elem
	a.Parse = func(s string, mod int32, f *Format) (Datum, error) { return parseArray(elem, s, mod, f) }
	a.Append = func(dst []byte, d Datum, f *Format) []byte { return appendArray(dst, elem, d, f) }
	a.ParseBinary = func(b []byte, mod int32) (Datum, error) { return parseBinaryArray(elem, b, mod) }
	a.AppendBinary = func(dst []byte, d Datum) []byte { return appendBinaryArray(dst, elem, d) }
	if elem.Compare != nil {
		a.Compare = func(x, y Datum) int { return compareArrays(elem, x, y) }
	}
	if elem.AppendKey != nil {
		a.AppendKey = func(dst []byte, d Datum) []byte { return keyArray(dst, elem, d) }
		a.SkipKey = func(b []byte) ([]byte, error) { return skipArrayKey(b, elem) }
	}
	if elem.Hash != nil {
		a.Hash = func(h uint64, d Datum) uint64 { return hashArray(h, elem, d) }
	}
	if elem.Coerce != nil {
		a.Coerce = func(d Datum, mod int32, explicit bool) (Datum, error) {
			return coerceArray(elem, d, mod, explicit)
		}
	}
}

func coerceArray(elem *Desc, d Datum, mod int32, explicit bool) (Datum, error) {
	if mod < 0 {
		return d, nil
	}
	var r arrayReader
	r.openAs(elem, d)
	dims := r.dims
	vals := make([]Datum, 0, r.count)
	for v, ok := r.next(); ok; v, ok = r.next() {
		if !v.IsNull() {
			var err error
			if v, err = elem.Coerce(v, mod, explicit); err != nil {
				return Null, err
			}
		}
		vals = append(vals, v)
	}
	return encodeArray(elem.store, dims[:r.ndim], vals), nil
}

// compareArrays is array_cmp: element by element, nulls last; then the number
// of elements and of dimensions, lengths, lower bounds.
func compareArrays(elem *Desc, x, y Datum) int {
	var a, b arrayReader
	a.openAs(elem, x)
	b.openAs(elem, y)
	for {
		v, ok1 := a.next()
		w, ok2 := b.next()
		if !ok1 || !ok2 {
			break
		}
		if c := compareNullable(elem.Compare, v, w); c != 0 {
			return c
		}
	}
	if a.count != b.count {
		return cmp64(int64(a.count), int64(b.count))
	}
	if a.ndim != b.ndim {
		return cmp64(int64(a.ndim), int64(b.ndim))
	}
	for i := range a.ndim {
		if c := cmp64(int64(a.dims[i].Len), int64(b.dims[i].Len)); c != 0 {
			return c
		}
	}
	for i := range a.ndim {
		if c := cmp64(int64(a.dims[i].Lower), int64(b.dims[i].Lower)); c != 0 {
			return c
		}
	}
	return 0
}

// compareNullable orders nulls last and equal to each other.
func compareNullable(compare func(a, b Datum) int, v, w Datum) int {
	switch nv, nw := v.IsNull(), w.IsNull(); {
	case nv && nw:
		return 0
	case nv:
		return 1
	case nw:
		return -1
	}
	return compare(v, w)
}

// Markers before the elements of an array key and the fields of a record key.
const (
	keyElemEnd  = 0x00
	keyElem     = 0x01
	keyElemNull = 0x02
)

func keyArray(dst []byte, elem *Desc, d Datum) []byte {
	var r arrayReader
	r.openAs(elem, d)
	for v, ok := r.next(); ok; v, ok = r.next() {
		if v.IsNull() {
			dst = append(dst, keyElemNull)
		} else {
			dst = elem.AppendKey(append(dst, keyElem), v)
		}
	}
	dst = append(dst, keyElemEnd, byte(r.ndim))
	for i := range r.ndim {
		dst = binary.BigEndian.AppendUint32(dst, uint32(r.dims[i].Len))
	}
	for i := range r.ndim {
		dst = binary.BigEndian.AppendUint32(dst, uint32(r.dims[i].Lower)^1<<31)
	}
	return dst
}

func skipArrayKey(b []byte, elem *Desc) ([]byte, error) {
	for {
		if len(b) < 2 {
			return nil, errBadKey()
		}
		mark := b[0]
		b = b[1:]
		switch mark {
		case keyElemNull:
		case keyElem:
			var err error
			if b, err = elem.SkipKey(b); err != nil {
				return nil, err
			}
		case keyElemEnd:
			n := int(b[0])
			if n > maxArrayDims {
				return nil, errBadKey()
			}
			return skipFixed(1 + 8*n)(b)
		default:
			return nil, errBadKey()
		}
	}
}

func hashArray(h uint64, elem *Desc, d Datum) uint64 {
	var r arrayReader
	r.openAs(elem, d)
	h = HashInt(h, uint64(r.count))
	for v, ok := r.next(); ok; v, ok = r.next() {
		if v.IsNull() {
			h = HashInt(h, 0x6e756c6c)
		} else {
			h = elem.Hash(h, v)
		}
	}
	return h
}
