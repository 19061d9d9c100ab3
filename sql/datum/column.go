package datum

import (
	"encoding/binary"
	"unsafe"
)

// Column is one column of a batch of rows. Values of fixed size stand in Ints,
// as [Datum.Int] gives them (floats as their bits), and Nulls tells which are
// null, if HasNulls; all others are datums in Data.
type Column struct {
	Ints     []int64
	Nulls    []bool
	HasNulls bool
	Data     []Datum
}

// NewColumn makes a column of n places for values of a type.
func NewColumn(t Type, n int) Column {
	if InColumn(t) {
		return Column{Ints: make([]int64, n), Nulls: make([]bool, n)}
	}
	return Column{Data: make([]Datum, n)}
}

// InColumn tells that columns hold values of a type as integers.
func InColumn(t Type) bool { return t.Desc != nil && t.Fixed }

// Get returns the value in a place.
func (c *Column) Get(i int) Datum {
	if c.Data != nil {
		return c.Data[i]
	}
	if c.HasNulls && c.Nulls[i] {
		return Null
	}
	return Datum{n: uint64(c.Ints[i])}
}

// Set puts a value into a place. Columns of fixed-size values whose HasNulls is
// false have false in all of Nulls.
func (c *Column) Set(i int, d Datum) {
	switch {
	case c.Data != nil:
		c.Data[i] = d
	case d.IsNull():
		c.HasNulls = true
		c.Nulls[i] = true
		c.Ints[i] = 0
	default:
		c.Ints[i] = int64(d.n)
		if c.HasNulls {
			c.Nulls[i] = false
		}
	}
}

// IsNull tells whether the value in a place is null.
func (c *Column) IsNull(i int) bool {
	if c.Data != nil {
		return c.Data[i].IsNull()
	}
	return c.HasNulls && c.Nulls[i]
}

// Clear makes the column free of nulls again, for other rows.
func (c *Column) Clear() {
	if c.HasNulls {
		clear(c.Nulls)
		c.HasNulls = false
	}
}

// Lent is memory for the bytes behind datums of a batch. What it lent stays
// valid until Reset and, if Reset found it too small since, for ever.
type Lent struct{ buf []byte }

// Reset takes all back.
func (l *Lent) Reset() { l.buf = l.buf[:0] }

// copyOf returns d with its bytes in l.
func (l *Lent) copyOf(d Datum) Datum {
	n := int(d.n)
	if n > cap(l.buf)-len(l.buf) {
		l.buf = make([]byte, 0, max(2*cap(l.buf), n, 4096))
	}
	at := len(l.buf)
	l.buf = append(l.buf, unsafe.Slice((*byte)(d.p), n)...)
	return Datum{p: unsafe.Pointer(&l.buf[at]), n: d.n}
}

// DecodeColumns is Decode into place i of columns: column c of the table goes to
// cols[slots[c]]. Values do not refer to b: their bytes are copied into lent.
func (r *RowDecoder) DecodeColumns(b []byte, i int, cols []Column, lent *Lent) error {
	stored, n := uvarint(b)
	if n == 0 || stored > uint64(len(r.cols)) || uint64(len(b)-n) < (stored+7)/8 {
		return errBadRow()
	}
	nulls := b[n:]
	b = b[n+int(stored+7)/8:]
	if stored&7 != 0 && nulls[stored/8]>>(stored&7) != 0 {
		return errBadRow()
	}
	last := min(int(stored), r.last)
	for c := range last {
		col := r.cols[c]
		if nulls[c>>3]>>(c&7)&1 != 0 {
			if col.slot >= 0 {
				cols[col.slot].Set(i, Null)
			}
			continue
		}
		var d Datum
		var n int
		if col.store == storeInt {
			var u uint64
			if u, n = smallUvarint(b); n == 0 {
				return errBadRow()
			}
			d.n = u>>1 ^ -(u & 1)
		} else if d, n = readValue(b, col.store); n == 0 {
			return errBadRow()
		}
		b = b[n:]
		if col.slot < 0 {
			continue
		}
		dst := &cols[col.slot]
		if dst.Data == nil {
			dst.Ints[i] = int64(d.n)
			if dst.HasNulls {
				dst.Nulls[i] = false
			}
			continue
		}
		if d.p != nil {
			d = lent.copyOf(d)
		}
		dst.Data[i] = d
	}
	if last == int(stored) && len(b) != 0 {
		return errBadRow()
	}
	for c := last; c < r.last; c++ {
		if slot := r.cols[c].slot; slot >= 0 {
			d := Null
			if r.missing != nil {
				d = r.missing[c]
			}
			cols[slot].Set(i, d)
		}
	}
	return nil
}

// smallUvarint is uvarint with the short cases unrolled.
func smallUvarint(b []byte) (uint64, int) {
	if len(b) >= 3 {
		switch {
		case b[0] < 0x80:
			return uint64(b[0]), 1
		case b[1] < 0x80 && b[1] != 0:
			return uint64(b[0]&0x7f) | uint64(b[1])<<7, 2
		case b[2] < 0x80 && b[2] != 0:
			return uint64(b[0]&0x7f) | uint64(b[1]&0x7f)<<7 | uint64(b[2])<<14, 3
		}
	} else if len(b) > 0 && b[0] < 0x80 {
		return uint64(b[0]), 1
	}
	u, n := binary.Uvarint(b)
	if n <= 0 || b[n-1] == 0 {
		return 0, 0
	}
	return u, n
}

// MulIntNumeric multiplies an integer with a numeric, as numeric(v) * d.
func MulIntNumeric(v int64, d Datum) (Datum, error) {
	if d.p == nil && v == int64(int32(v)) {
		c, scale := d.smallParts()
		if c == int64(int32(c)) {
			if p := v * c; p <= smallMax && p >= -smallMax {
				return smallNumeric(p, scale), nil
			}
		}
	}
	return NumericMul(NumericFromInt64(v), d)
}
