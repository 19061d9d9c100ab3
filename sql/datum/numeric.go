package datum

import (
	"math/big"
	"math/bits"

	"github.com/tallystick/tallystick/sql/pgerr"
)

// A numeric has one of two forms, chosen by its value alone.
//
// Small: no pointer; n is a signed coefficient of at most 55 bits and sign in
// its upper 56 bits, the display scale (0 to 255) in its lowest byte. The value
// is coefficient / 10^scale.
//
// Big: bytes of which the first is the form; a finite number continues with the
// display scale in two bytes and the magnitude of the coefficient, big endian,
// without leading zeros.
//
// What fits the small form always has it, so equal bytes mean equal value and
// equal display scale.

const (
	smallMax      = 1<<55 - 1
	smallMaxScale = 255
)

// The first byte of the big form, in order of value.
const (
	bigNegInf byte = iota
	bigNegative
	bigPositive
	bigPosInf
	bigNaN
)

// Limits of PostgreSQL's numeric.c.
const (
	numericMaxScale       = 16383  // NUMERIC_DSCALE_MAX
	numericMaxIntDigits   = 131072 // (NUMERIC_WEIGHT_MAX + 1) * DEC_DIGITS
	numericMaxResultScale = 2000   // NUMERIC_MAX_RESULT_SCALE
	numericMaxDisplay     = 1000   // NUMERIC_MAX_DISPLAY_SCALE
	numericMinSigDigits   = 16     // NUMERIC_MIN_SIG_DIGITS
)

// The special numerics.
var (
	NumericNaN    = Bytes([]byte{bigNaN})
	NumericPosInf = Bytes([]byte{bigPosInf})
	NumericNegInf = Bytes([]byte{bigNegInf})
)

var pow10u = [...]uint64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19}

func errNumericOverflow() error {
	return pgerr.New(pgerr.NumericValueOutOfRange, "value overflows numeric format")
}

func errDivisionByZero() error { return pgerr.New(pgerr.DivisionByZero, "division by zero") }

func smallNumeric(v int64, scale int) Datum { return Datum{n: uint64(v)<<8 | uint64(scale)} }

func (d Datum) smallParts() (v int64, scale int) { return int64(d.n) >> 8, int(d.n & 0xff) }

func abs64(v int64) uint64 {
	if v < 0 {
		return uint64(-v)
	}
	return uint64(v)
}

// validBig reports whether b is a canonical big form.
func validBig(b []byte) bool {
	if len(b) == 0 {
		return false
	}
	if b[0] != bigNegative && b[0] != bigPositive {
		return b[0] <= bigNaN && len(b) == 1
	}
	if len(b) < 3 {
		return false
	}
	scale, mag := int(b[1])<<8|int(b[2]), b[3:]
	if scale > numericMaxScale || len(mag) > 0 && mag[0] == 0 || len(mag) == 0 && b[0] == bigNegative {
		return false
	}
	if scale > smallMaxScale {
		return true
	}
	return len(mag) > 7 || len(mag) == 7 && mag[0] >= 0x80
}

// from128 makes the numeric ±(hi:lo) / 10^scale; scale is within limits.
func from128(neg bool, hi, lo uint64, scale int) Datum {
	if hi == 0 && lo <= smallMax && scale <= smallMaxScale {
		if neg {
			return smallNumeric(-int64(lo), scale)
		}
		return smallNumeric(int64(lo), scale)
	}
	n := (bits.Len64(lo) + 7) / 8
	if hi != 0 {
		n = 8 + (bits.Len64(hi)+7)/8
	}
	b := make([]byte, 3+n)
	b[0] = bigPositive
	if neg {
		b[0] = bigNegative
	}
	b[1], b[2] = byte(scale>>8), byte(scale)
	for i := len(b) - 1; i >= 3; i-- {
		b[i] = byte(lo)
		lo = lo>>8 | hi<<56
		hi >>= 8
	}
	return Bytes(b)
}

// decimal is a numeric taken apart for calculations that leave the fast paths.
type decimal struct {
	form  byte // one of bigNegInf, bigPositive (any finite value), bigPosInf, bigNaN
	coef  big.Int
	scale int
}

func (x *decimal) finite() bool { return x.form == bigPositive }

func (x *decimal) load(d Datum) {
	x.form = bigPositive
	if d.p == nil {
		v, scale := d.smallParts()
		x.coef.SetInt64(v)
		x.scale = scale
		return
	}
	b := d.Bytes()
	switch {
	case len(b) >= 3 && (b[0] == bigNegative || b[0] == bigPositive):
		x.scale = int(b[1])<<8 | int(b[2])
		x.coef.SetBytes(b[3:])
		if b[0] == bigNegative {
			x.coef.Neg(&x.coef)
		}
	case len(b) == 1 && (b[0] == bigNegInf || b[0] == bigPosInf):
		x.form = b[0]
	default:
		x.form = bigNaN
	}
}

// datum makes a datum of x; 22003 if it has too many digits.
func (x *decimal) datum() (Datum, error) {
	switch x.form {
	case bigNaN:
		return NumericNaN, nil
	case bigPosInf:
		return NumericPosInf, nil
	case bigNegInf:
		return NumericNegInf, nil
	}
	if x.scale > numericMaxScale || tooManyDigits(&x.coef, x.scale) {
		return Null, errNumericOverflow()
	}
	if x.scale <= smallMaxScale && x.coef.BitLen() <= 55 {
		return smallNumeric(x.coef.Int64(), x.scale), nil
	}
	n := (x.coef.BitLen() + 7) / 8
	b := make([]byte, 3+n)
	b[0] = bigPositive
	if x.coef.Sign() < 0 {
		b[0] = bigNegative
	}
	b[1], b[2] = byte(x.scale>>8), byte(x.scale)
	x.coef.FillBytes(b[3:])
	return Bytes(b), nil
}

// tooManyDigits reports whether the integer part has more digits than numeric
// allows; the bit length decides nearly always.
func tooManyDigits(coef *big.Int, scale int) bool {
	if int64(coef.BitLen())*30103/100000 < int64(numericMaxIntDigits+scale)-1 {
		return false
	}
	return decimalDigits(coef) > numericMaxIntDigits+scale
}

// decimalDigits counts the decimal digits of |v|; 0 has none.
func decimalDigits(v *big.Int) int {
	if v.Sign() == 0 {
		return 0
	}
	if v.IsUint64() {
		return digits64(v.Uint64())
	}
	n := int(int64(v.BitLen()-1) * 30103 / 100000) // at most the true count
	var p big.Int
	for v.CmpAbs(pow10(&p, n)) >= 0 {
		n++
	}
	return n
}

// digits64 counts decimal digits; 0 has none.
func digits64(u uint64) int {
	n := bits.Len64(u) * 1233 >> 12 // log10(2) * 4096
	if n < len(pow10u) && u >= pow10u[n] {
		n++
	}
	return n
}

// pow10 sets p to 10^n and returns it.
func pow10(p *big.Int, n int) *big.Int {
	if n < len(pow10u) {
		return p.SetUint64(pow10u[n])
	}
	var e big.Int
	return p.Exp(big.NewInt(10), e.SetInt64(int64(n)), nil)
}

// rescale changes the scale, rounding half away from zero when it shrinks.
func (x *decimal) rescale(scale int) {
	x.shift(scale, true)
}

// shift changes the scale; without round, digits are cut off.
func (x *decimal) shift(scale int, round bool) {
	var p big.Int
	switch {
	case scale > x.scale:
		x.coef.Mul(&x.coef, pow10(&p, scale-x.scale))
	case scale < x.scale:
		n := x.scale - scale
		if n > decimalDigits(&x.coef)+1 {
			x.coef.SetInt64(0)
			break
		}
		pow10(&p, n)
		if round {
			divRound(&x.coef, &x.coef, &p)
		} else {
			x.coef.Quo(&x.coef, &p)
		}
	}
	x.scale = scale
}

// divRound sets z to x / y rounded half away from zero.
func divRound(z, x, y *big.Int) {
	var q, r big.Int
	neg := x.Sign()*y.Sign() < 0
	q.QuoRem(x, y, &r)
	r.Lsh(&r, 1)
	if r.CmpAbs(y) >= 0 {
		if neg {
			q.Sub(&q, big.NewInt(1))
		} else {
			q.Add(&q, big.NewInt(1))
		}
	}
	z.Set(&q)
}

// NumericFromInt64 makes a numeric of scale 0.
func NumericFromInt64(v int64) Datum { return from128(v < 0, 0, abs64(v), 0) }

// NumericIsNaN reports whether a is NaN.
func NumericIsNaN(a Datum) bool { return a.p != nil && a.n == 1 && a.Bytes()[0] == bigNaN }

// NumericIsInf returns the sign of an infinity, 0 for any other value.
func NumericIsInf(a Datum) int {
	if a.p != nil && a.n == 1 {
		switch a.Bytes()[0] {
		case bigPosInf:
			return 1
		case bigNegInf:
			return -1
		}
	}
	return 0
}

// NumericScale is the display scale, -1 for NaN and the infinities.
func NumericScale(a Datum) int32 {
	if a.p == nil {
		return int32(a.n & 0xff)
	}
	if b := a.Bytes(); len(b) >= 3 {
		return int32(b[1])<<8 | int32(b[2])
	}
	return -1
}

// numericSign is -1, 0 or 1; NaN counts as positive, as in the order.
func numericSign(a Datum) int {
	if a.p == nil {
		switch v := int64(a.n) >> 8; {
		case v < 0:
			return -1
		case v > 0:
			return 1
		}
		return 0
	}
	b := a.Bytes()
	if b[0] <= bigNegative {
		return -1
	}
	if b[0] == bigPositive && len(b) == 3 {
		return 0
	}
	return 1
}

// NumericSign is sign(): -1, 0, 1 or NaN.
func NumericSign(a Datum) Datum {
	if NumericIsNaN(a) {
		return a
	}
	return smallNumeric(int64(numericSign(a)), 0)
}

// NumericNeg is -a.
func NumericNeg(a Datum) Datum {
	if a.p == nil {
		v, scale := a.smallParts()
		return smallNumeric(-v, scale)
	}
	b := a.Bytes()
	if b[0] == bigNaN || b[0] == bigPositive && len(b) == 3 {
		return a
	}
	c := append([]byte(nil), b...)
	c[0] = bigPosInf - b[0] // the forms are symmetric around the middle
	return Bytes(c)
}

// NumericAbs is abs(a).
func NumericAbs(a Datum) Datum {
	if numericSign(a) < 0 {
		return NumericNeg(a)
	}
	return a
}

// align brings two small numerics to one scale as 128-bit magnitudes. It fails
// when the scales are too far apart.
func align(a, b Datum) (ah, al, bh, bl uint64, scale int, ok bool) {
	av, as := a.smallParts()
	bv, bs := b.smallParts()
	al, bl = abs64(av), abs64(bv)
	scale = as
	switch {
	case as < bs:
		if bs-as >= len(pow10u) {
			return
		}
		scale = bs
		ah, al = bits.Mul64(al, pow10u[bs-as])
	case as > bs:
		if as-bs >= len(pow10u) {
			return
		}
		bh, bl = bits.Mul64(bl, pow10u[as-bs])
	}
	return ah, al, bh, bl, scale, true
}

// NumericAdd is a + b; the result has the larger display scale.
func NumericAdd(a, b Datum) (Datum, error) {
	if a.p == nil && b.p == nil {
		av, as := a.smallParts()
		bv, bs := b.smallParts()
		if as == bs {
			v := av + bv
			return from128(v < 0, 0, abs64(v), as), nil
		}
		if ah, al, bh, bl, scale, ok := align(a, b); ok {
			return add128(av < 0, ah, al, bv < 0, bh, bl, scale), nil
		}
	}
	return addBig(a, b, false)
}

// NumericSub is a - b; the result has the larger display scale.
func NumericSub(a, b Datum) (Datum, error) {
	if a.p == nil && b.p == nil {
		av, as := a.smallParts()
		bv, bs := b.smallParts()
		if as == bs {
			v := av - bv
			return from128(v < 0, 0, abs64(v), as), nil
		}
		if ah, al, bh, bl, scale, ok := align(a, b); ok {
			return add128(av < 0, ah, al, bv > 0, bh, bl, scale), nil
		}
	}
	return addBig(a, b, true)
}

// add128 adds signed magnitudes below 2^127.
func add128(an bool, ah, al uint64, bn bool, bh, bl uint64, scale int) Datum {
	if an == bn {
		lo, carry := bits.Add64(al, bl, 0)
		hi, _ := bits.Add64(ah, bh, carry)
		return from128(an, hi, lo, scale)
	}
	if ah < bh || ah == bh && al < bl {
		an, ah, al, bh, bl = bn, bh, bl, ah, al
	}
	lo, borrow := bits.Sub64(al, bl, 0)
	hi, _ := bits.Sub64(ah, bh, borrow)
	return from128(an && hi|lo != 0, hi, lo, scale)
}

func addBig(a, b Datum, sub bool) (Datum, error) {
	var x, y decimal
	x.load(a)
	y.load(b)
	if !x.finite() || !y.finite() {
		return addSpecial(x.form, y.form, sub), nil
	}
	scale := max(x.scale, y.scale)
	x.rescale(scale)
	y.rescale(scale)
	if sub {
		x.coef.Sub(&x.coef, &y.coef)
	} else {
		x.coef.Add(&x.coef, &y.coef)
	}
	return x.datum()
}

func addSpecial(x, y byte, sub bool) Datum {
	if sub && y != bigNaN && y != bigPositive {
		y = bigPosInf - y
	}
	switch {
	case x == bigNaN || y == bigNaN:
		return NumericNaN
	case x == bigPositive:
		return specialNumeric(y)
	case y == bigPositive || x == y:
		return specialNumeric(x)
	}
	return NumericNaN
}

func specialNumeric(form byte) Datum {
	switch form {
	case bigPosInf:
		return NumericPosInf
	case bigNegInf:
		return NumericNegInf
	}
	return NumericNaN
}

// infOf is the infinity of a sign; no sign makes NaN.
func infOf(sign int) Datum {
	switch {
	case sign > 0:
		return NumericPosInf
	case sign < 0:
		return NumericNegInf
	}
	return NumericNaN
}

// NumericMul is a * b; the display scales add up (to 16383 at most).
func NumericMul(a, b Datum) (Datum, error) {
	if a.p == nil && b.p == nil {
		av, as := a.smallParts()
		bv, bs := b.smallParts()
		hi, lo := bits.Mul64(abs64(av), abs64(bv))
		return from128(av < 0 != (bv < 0) && hi|lo != 0, hi, lo, as+bs), nil
	}
	if NumericIsNaN(a) || NumericIsNaN(b) {
		return NumericNaN, nil
	}
	if NumericIsInf(a) != 0 || NumericIsInf(b) != 0 {
		return infOf(numericSign(a) * numericSign(b)), nil
	}
	var x, y decimal
	x.load(a)
	y.load(b)
	x.coef.Mul(&x.coef, &y.coef)
	x.scale += y.scale
	if x.scale > numericMaxScale {
		x.rescale(numericMaxScale)
	}
	return x.datum()
}

// NumericCmp orders numerics by value: -Infinity, numbers, Infinity, NaN.
func NumericCmp(a, b Datum) int {
	if a.p == nil && b.p == nil {
		av, as := a.smallParts()
		bv, bs := b.smallParts()
		if as == bs {
			return cmp64(av, bv)
		}
		if sa, sb := numericSign(a), numericSign(b); sa != sb || sa == 0 {
			return cmp64(int64(sa), int64(sb))
		}
		if ah, al, bh, bl, _, ok := align(a, b); ok {
			c := cmpU64(ah, bh)
			if c == 0 {
				c = cmpU64(al, bl)
			}
			if av < 0 {
				return -c
			}
			return c
		}
	}
	return cmpBig(a, b)
}

func cmpBig(a, b Datum) int {
	var x, y decimal
	x.load(a)
	y.load(b)
	if x.form != y.form || !x.finite() {
		return cmp64(int64(x.form), int64(y.form))
	}
	scale := max(x.scale, y.scale)
	x.rescale(scale)
	y.rescale(scale)
	return x.coef.Cmp(&y.coef)
}

func cmp64(a, b int64) int {
	if a < b {
		return -1
	}
	if a > b {
		return 1
	}
	return 0
}

func cmpU64(a, b uint64) int {
	if a < b {
		return -1
	}
	if a > b {
		return 1
	}
	return 0
}
