package datum

import (
	"math"
	"unsafe"
)

// Datum is one SQL value, untyped. The zero Datum is the integer 0, false and
// the empty string; SQL's null is [Null].
//
// Fixed-size types (bool, integers, floats, oid, date, time, timestamps, "char",
// small numerics) use n with p nil. Variable ones use p as the address of their
// first byte and n as their length.
type Datum struct {
	p unsafe.Pointer
	n uint64
}

var nullMark byte

// Null is SQL's null of every type.
var Null = Datum{p: unsafe.Pointer(&nullMark)}

// IsNull reports whether d is null.
func (d Datum) IsNull() bool { return d.p == unsafe.Pointer(&nullMark) }

// Int makes an integer of any width, an oid, a date (days since 2000-01-01) or
// a time (microseconds), the way PostgreSQL counts them.
func Int(v int64) Datum { return Datum{n: uint64(v)} }

// Int returns the value made by [Int].
func (d Datum) Int() int64 { return int64(d.n) }

// Bool makes a boolean.
func Bool(v bool) Datum {
	if v {
		return Datum{n: 1}
	}
	return Datum{}
}

// Bool returns the value made by [Bool].
func (d Datum) Bool() bool { return d.n != 0 }

// IsTrue reports whether d is true: neither false nor null.
func (d Datum) IsTrue() bool { return d.p == nil && d.n != 0 }

// Float makes a float4 or float8 (a float4 is kept widened).
func Float(v float64) Datum { return Datum{n: math.Float64bits(v)} }

// Float returns the value made by [Float].
func (d Datum) Float() float64 { return math.Float64frombits(d.n) }

// Str makes a value of a variable-length type from a string; no copy.
func Str(s string) Datum {
	return Datum{p: unsafe.Pointer(unsafe.StringData(s)), n: uint64(len(s))}
}

// Bytes makes a value of a variable-length type from bytes that nobody will
// change any more; no copy.
func Bytes(b []byte) Datum {
	return Datum{p: unsafe.Pointer(unsafe.SliceData(b)), n: uint64(len(b))}
}

// Str returns the bytes of a variable-length value as a string; no copy.
func (d Datum) Str() string { return unsafe.String((*byte)(d.p), int(d.n)) }

// Bytes returns the bytes of a variable-length value; the caller must not
// change them.
func (d Datum) Bytes() []byte { return unsafe.Slice((*byte)(d.p), int(d.n)) }

// Inline reports whether d has no bytes behind a pointer: a fixed-size value, a
// small numeric or an empty string. Null is not inline.
func (d Datum) Inline() bool { return d.p == nil }
