package builtin

import (
	"math/bits"
	"strconv"

	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

var errDivisionByZero = pgerr.New(pgerr.DivisionByZero, "division by zero")

func divisionByZero() error {
	e := *errDivisionByZero
	return &e
}

func outOfRange(typ string) error {
	return pgerr.New(pgerr.NumericValueOutOfRange, "%s out of range", typ)
}

// width checks results of one integer type.
type width struct {
	name     string
	min, max int64
}

var (
	width2 = width{"smallint", -1 << 15, 1<<15 - 1}
	width4 = width{"integer", -1 << 31, 1<<31 - 1}
	width8 = width{"bigint", -1 << 63, 1<<63 - 1}
)

func (w *width) result(v int64) (datum.Datum, error) {
	if v < w.min || v > w.max {
		return datum.Null, outOfRange(w.name)
	}
	return datum.Int(v), nil
}

// Sums of int2 and int4 cannot leave int64, those of int8 can: the sign tells.

func (w *width) add(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
	x, y := a[0].Int(), a[1].Int()
	s := x + y
	if (x^s)&(y^s) < 0 {
		return datum.Null, outOfRange(w.name)
	}
	return w.result(s)
}

func (w *width) sub(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
	x, y := a[0].Int(), a[1].Int()
	s := x - y
	if (x^y)&(x^s) < 0 {
		return datum.Null, outOfRange(w.name)
	}
	return w.result(s)
}

func (w *width) mul(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
	p, ok := mul64(a[0].Int(), a[1].Int())
	if !ok {
		return datum.Null, outOfRange(w.name)
	}
	return w.result(p)
}

// mul64 multiplies; ok is false if the product does not fit.
func mul64(x, y int64) (int64, bool) {
	hi, lo := bits.Mul64(uint64(x), uint64(y))
	// The signed high word follows from the unsigned one.
	h := int64(hi)
	if x < 0 {
		h -= y
	}
	if y < 0 {
		h -= x
	}
	return int64(lo), h == int64(lo)>>63
}

func (w *width) div(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
	x, y := a[0].Int(), a[1].Int()
	if y == 0 {
		return datum.Null, divisionByZero()
	}
	if y == -1 { // min / -1 overflows
		if x == w.min {
			return datum.Null, outOfRange(w.name)
		}
		return w.result(-x)
	}
	return datum.Int(x / y), nil
}

func intMod(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
	x, y := a[0].Int(), a[1].Int()
	switch y {
	case 0:
		return datum.Null, divisionByZero()
	case -1:
		return datum.Int(0), nil
	}
	return datum.Int(x % y), nil
}

func (w *width) neg(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
	if a[0].Int() == w.min {
		return datum.Null, outOfRange(w.name)
	}
	return datum.Int(-a[0].Int()), nil
}

func (w *width) abs(c *Ctx, a []datum.Datum) (datum.Datum, error) {
	if a[0].Int() < 0 {
		return w.neg(c, a)
	}
	return a[0], nil
}

func (w *width) gcd(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
	g, ok := w.gcdOf(a[0].Int(), a[1].Int())
	if !ok {
		return datum.Null, outOfRange(w.name)
	}
	return datum.Int(g), nil
}

// gcdOf works on negative numbers, which reach one further than positive ones.
func (w *width) gcdOf(x, y int64) (int64, bool) {
	for y != 0 {
		if y == -1 {
			x, y = 1, 0
			break
		}
		x, y = y, x%y
	}
	if x == w.min {
		return 0, false
	}
	if x < 0 {
		x = -x
	}
	return x, true
}

func (w *width) lcm(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
	x, y := a[0].Int(), a[1].Int()
	if x == 0 || y == 0 {
		return datum.Int(0), nil
	}
	g, ok := w.gcdOf(x, y)
	if !ok {
		return datum.Null, outOfRange(w.name)
	}
	p, ok := mul64(x/g, y)
	if !ok || p == width8.min {
		return datum.Null, outOfRange(w.name)
	}
	if p < 0 {
		p = -p
	}
	return w.result(p)
}

// shift takes the bits of the count that the width has, and wraps, as C does on
// PostgreSQL's platforms.
func (w *width) shiftLeft(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
	n := uint(a[1].Int())
	switch w {
	case &width2:
		return datum.Int(int64(int16(int32(a[0].Int()) << (n & 31)))), nil
	case &width4:
		return datum.Int(int64(int32(a[0].Int()) << (n & 31))), nil
	}
	return datum.Int(a[0].Int() << (n & 63)), nil
}

func (w *width) shiftRight(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
	n := uint(a[1].Int())
	if w == &width8 {
		return datum.Int(a[0].Int() >> (n & 63)), nil
	}
	return datum.Int(a[0].Int() >> (n & 31)), nil
}

func (w *width) narrow(_ *Ctx, a []datum.Datum) (datum.Datum, error) { return w.result(a[0].Int()) }

// same returns its argument: casts that widen, and unary plus.
func same(_ *Ctx, a []datum.Datum) (datum.Datum, error) { return a[0], nil }

func intAnd(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
	return datum.Int(a[0].Int() & a[1].Int()), nil
}
func intOr(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
	return datum.Int(a[0].Int() | a[1].Int()), nil
}
func intXor(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
	return datum.Int(a[0].Int() ^ a[1].Int()), nil
}
func intNot(_ *Ctx, a []datum.Datum) (datum.Datum, error) { return datum.Int(^a[0].Int()), nil }

// integerEvals builds the operators of all widths; PostgreSQL names them by the
// widths of the operands (int24pl adds an int2 and an int4).
func integerEvals() evalMap {
	m := evalMap{
		"i8tooid":   toOID,
		"oidtoi8":   same,
		"int4_bool": func(_ *Ctx, a []datum.Datum) (datum.Datum, error) { return datum.Bool(a[0].Int() != 0), nil },
		"bool_int4": same,
		"i2toi4":    same, "int28": same, "int48": same,
		"i4toi2": width2.narrow, "int82": width2.narrow, "int84": width4.narrow,
		"xideq": intComparisons["="], "xidneq": intComparisons["<>"], "cideq": intComparisons["="],
		"xid8toxid": func(_ *Ctx, a []datum.Datum) (datum.Datum, error) { return datum.Int(int64(uint32(a[0].Int()))), nil },
	}
	for name, w := range map[string]*width{"2": &width2, "4": &width4, "8": &width8} {
		p := "int" + name
		m[p+"mod"] = intMod
		m[p+"um"], m[p+"abs"], m[p+"up"] = w.neg, w.abs, same
		m[p+"and"], m[p+"or"], m[p+"xor"], m[p+"not"] = intAnd, intOr, intXor, intNot
		m[p+"shl"], m[p+"shr"] = w.shiftLeft, w.shiftRight
		if w != &width2 {
			m[p+"gcd"], m[p+"lcm"] = w.gcd, w.lcm
		}
	}
	for name, w := range map[string]*width{
		"2": &width2, "4": &width4, "8": &width8,
		"24": &width4, "42": &width4, "28": &width8, "82": &width8, "48": &width8, "84": &width8,
	} {
		p := "int" + name
		m[p+"pl"], m[p+"mi"], m[p+"mul"], m[p+"div"] = w.add, w.sub, w.mul, w.div
	}
	return m
}

func toOID(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
	v := a[0].Int()
	if v < 0 || v > 1<<32-1 {
		return datum.Null, pgerr.New(pgerr.NumericValueOutOfRange, "OID out of range")
	}
	return a[0], nil
}

func itoa(n int) string { return strconv.Itoa(n) }
