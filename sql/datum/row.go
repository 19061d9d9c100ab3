package datum

import (
	"encoding/binary"
	"math"
	"unsafe"

	"github.com/tallystick/tallystick/sql/pgerr"
)

// A stored row is
//
//	uvarint  number of columns n
//	[(n+7)/8]byte  null bitmap, bit c%8 of byte c/8 set: column c is null
//	values of the columns that are not null, by storeClass
//
// There is one encoding of a row only: varints are minimal, unused bits zero,
// NaN has one form. It is hashed, so a change of it is a new engine version.

// AppendRow appends the stored form of a row.
func AppendRow(dst []byte, types []Type, row []Datum) []byte {
	dst = appendUvarint(dst, uint64(len(types)))
	nulls := len(dst)
	for range (len(types) + 7) / 8 {
		dst = append(dst, 0)
	}
	for c := range types {
		d := row[c]
		if d.IsNull() {
			dst[nulls+c/8] |= 1 << (c & 7)
			continue
		}
		switch types[c].store {
		case storeInt:
			v := int64(d.n)
			u := uint64(v<<1) ^ uint64(v>>63)
			if u < 0x80 {
				dst = append(dst, byte(u))
			} else {
				dst = binary.AppendUvarint(dst, u)
			}
		case storeBytes:
			dst = appendUvarint(dst, d.n)
			dst = append(dst, d.Bytes()...)
		default:
			dst = appendValue(dst, types[c].store, d)
		}
	}
	return dst
}

func appendUvarint(dst []byte, u uint64) []byte {
	if u < 0x80 {
		return append(dst, byte(u))
	}
	return binary.AppendUvarint(dst, u)
}

// appendValue appends one value that is not null.
func appendValue(dst []byte, c storeClass, d Datum) []byte {
	switch c {
	case storeBool, storeByte:
		return append(dst, byte(d.n))
	case storeInt:
		v := int64(d.n)
		return appendUvarint(dst, uint64(v<<1)^uint64(v>>63))
	case storeFixed8:
		return binary.LittleEndian.AppendUint64(dst, d.n)
	case storeFloat8:
		return binary.LittleEndian.AppendUint64(dst, floatBits(d.Float()))
	case storeFloat4:
		f := float32(d.Float())
		b := uint32(0x7fc00000)
		if f == f {
			b = math.Float32bits(f)
		}
		return binary.LittleEndian.AppendUint32(dst, b)
	case storeNumeric:
		return appendNumericValue(dst, d)
	case store16, store12:
		return append(dst, d.Bytes()...)
	}
	return append(appendUvarint(dst, d.n), d.Bytes()...)
}

// appendNumericValue stores a small numeric as uvarint(zigzag(coefficient)<<1)
// and a scale byte, any other as uvarint(length<<1|1) and its bytes.
func appendNumericValue(dst []byte, d Datum) []byte {
	if d.p == nil {
		v := int64(d.n) >> 8
		dst = appendUvarint(dst, (uint64(v<<1)^uint64(v>>63))<<1)
		return append(dst, byte(d.n))
	}
	dst = appendUvarint(dst, d.n<<1|1)
	return append(dst, d.Bytes()...)
}

// uvarint reads a minimal uvarint; n is 0 if there is none.
func uvarint(b []byte) (u uint64, n int) {
	if len(b) > 0 && b[0] < 0x80 {
		return uint64(b[0]), 1
	}
	u, n = binary.Uvarint(b)
	if n <= 0 || b[n-1] == 0 {
		return 0, 0
	}
	return u, n
}

// fixedWidth is the stored width of a class, 0 if it varies.
var fixedWidth = [storeClasses]uint8{storeBool: 1, storeByte: 1, storeFixed8: 8, storeFloat4: 4, storeFloat8: 8, store16: 16, store12: 12}

// readValue reads one value; n is 0 if b is corrupt. The datum refers to b.
func readValue(b []byte, c storeClass) (d Datum, n int) {
	if w := int(fixedWidth[c]); w != 0 {
		if len(b) < w {
			return Null, 0
		}
		switch c {
		case storeBool:
			if b[0] > 1 {
				return Null, 0
			}
			return Datum{n: uint64(b[0])}, 1
		case storeByte:
			return Datum{n: uint64(b[0])}, 1
		case storeFixed8, storeFloat8:
			return Datum{n: binary.LittleEndian.Uint64(b)}, 8
		case storeFloat4:
			return Float(float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))), 4
		}
		return Datum{p: unsafe.Pointer(&b[0]), n: uint64(w)}, w
	}
	u, n := uvarint(b)
	if n == 0 {
		return Null, 0
	}
	switch c {
	case storeInt:
		return Datum{n: u>>1 ^ -(u & 1)}, n
	case storeNumeric:
		if u&1 == 0 {
			if n >= len(b) || u>>57 != 0 {
				return Null, 0
			}
			u >>= 1
			v := int64(u>>1) ^ -int64(u&1)
			if v < -smallMax {
				return Null, 0
			}
			return Datum{n: uint64(v)<<8 | uint64(b[n])}, n + 1
		}
		u >>= 1
		if u == 0 || u > uint64(len(b)-n) || !validBig(b[n:n+int(u)]) {
			return Null, 0
		}
		return Datum{p: unsafe.Pointer(&b[n]), n: u}, n + int(u)
	}
	if u > uint64(len(b)-n) {
		return Null, 0
	}
	if u == 0 {
		return Datum{}, n
	}
	return Datum{p: unsafe.Pointer(&b[n]), n: u}, n + int(u)
}

// RowDecoder decodes stored rows of one table, only the columns that are
// wanted. It holds no state between rows and may be shared.
type RowDecoder struct {
	cols    []decodeColumn
	last    int // columns up to the last wanted one
	missing []Datum
}

type decodeColumn struct {
	store storeClass
	slot  int32 // -1: not wanted
}

// NewRowDecoder makes a decoder for rows with columns of these types. Column c
// goes to slot slots[c] of the output, or nowhere if that is negative. A column
// that a row is too short to have takes missing[c]; a nil missing means nulls.
func NewRowDecoder(types []Type, slots []int, missing []Datum) *RowDecoder {
	r := &RowDecoder{cols: make([]decodeColumn, len(types)), missing: missing}
	for c := range types {
		r.cols[c] = decodeColumn{store: types[c].store, slot: -1}
		if c < len(slots) && slots[c] >= 0 {
			r.cols[c].slot = int32(slots[c])
			r.last = c + 1
		}
	}
	return r
}

// Decode fills the slots of out from a stored row; the datums refer to b. The
// error is XX001 for bytes that [AppendRow] cannot have written; columns behind
// the last wanted one are not looked at.
func (r *RowDecoder) Decode(b []byte, out []Datum) error {
	cols, n := uvarint(b)
	if n == 0 || cols > uint64(len(r.cols)) || uint64(len(b)-n) < (cols+7)/8 {
		return errBadRow()
	}
	nulls := b[n:]
	b = b[n+int(cols+7)/8:]
	if cols&7 != 0 && nulls[cols/8]>>(cols&7) != 0 {
		return errBadRow()
	}
	stored := min(int(cols), r.last)
	for c := range stored {
		col := r.cols[c]
		if nulls[c>>3]>>(c&7)&1 != 0 {
			if col.slot >= 0 {
				out[col.slot] = Null
			}
			continue
		}
		var d Datum
		var n int
		if len(b) > 0 && b[0] < 0x80 && (col.store == storeInt || col.store == storeBytes) {
			// The usual cases of readValue, without the call.
			u := uint64(b[0])
			n = 1
			if col.store == storeInt {
				d.n = u>>1 ^ -(u & 1)
			} else if u != 0 {
				if u >= uint64(len(b)) {
					return errBadRow()
				}
				d = Datum{p: unsafe.Pointer(&b[1]), n: u}
				n = 1 + int(u)
			}
		} else if d, n = readValue(b, col.store); n == 0 {
			return errBadRow()
		}
		b = b[n:]
		if col.slot >= 0 {
			out[col.slot] = d
		}
	}
	if stored == int(cols) && len(b) != 0 {
		return errBadRow()
	}
	for c := stored; c < r.last; c++ {
		if slot := r.cols[c].slot; slot >= 0 {
			out[slot] = Null
			if r.missing != nil {
				out[slot] = r.missing[c]
			}
		}
	}
	return nil
}

func errBadRow() error { return pgerr.New(pgerr.DataCorrupted, "corrupt stored row") }
