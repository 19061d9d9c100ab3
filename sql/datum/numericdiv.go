package datum

import (
	"math/big"
	"math/bits"

	"github.com/tallystick/tallystick/sql/pgerr"
)

// base10000 returns what PostgreSQL's select_div_scale looks at: the weight of
// the first nonzero digit in base 10000 and that digit.
func (x *decimal) base10000() (weight, first int) {
	n := decimalDigits(&x.coef)
	if n == 0 {
		return 0, 0
	}
	e := n - 1 - x.scale
	weight = e >> 2
	lead := e - weight<<2 + 1 // decimal digits in the first base-10000 digit
	var p, v big.Int
	v.Abs(&x.coef)
	if n >= lead {
		v.Quo(&v, pow10(&p, n-lead))
	} else {
		v.Mul(&v, pow10(&p, lead-n))
	}
	return weight, int(v.Int64())
}

// smallBase10000 is base10000 for a small coefficient.
func smallBase10000(u uint64, scale int) (weight, first int) {
	if u == 0 {
		return 0, 0
	}
	n := digits64(u)
	e := n - 1 - scale
	weight = e >> 2
	lead := e - weight<<2 + 1
	if n >= lead {
		return weight, int(u / pow10u[n-lead])
	}
	return weight, int(u * pow10u[lead-n])
}

// divScale is select_div_scale: at least 16 significant digits and no fewer
// decimals than either operand.
func divScale(w1, f1, s1, w2, f2, s2 int) int {
	q := w1 - w2
	if f1 <= f2 {
		q--
	}
	return min(max(numericMinSigDigits-4*q, s1, s2, 0), numericMaxDisplay)
}

// NumericDiv is a / b with PostgreSQL's choice of display scale; 22012 for a
// zero divisor.
func NumericDiv(a, b Datum) (Datum, error) {
	if a.p == nil && b.p == nil {
		if d, ok := divSmall(a, b); ok {
			return d, nil
		}
	}
	if d, special, err := divSpecial(a, b); special || err != nil {
		return d, err
	}
	var x, y decimal
	x.load(a)
	y.load(b)
	w1, f1 := x.base10000()
	w2, f2 := y.base10000()
	x.div(&y, divScale(w1, f1, x.scale, w2, f2, y.scale))
	return x.datum()
}

// divSmall divides with a 128-bit numerator; not ok if that does not suffice or
// the divisor is zero.
func divSmall(a, b Datum) (Datum, bool) {
	av, as := a.smallParts()
	bv, bs := b.smallParts()
	if bv == 0 {
		return Null, false
	}
	au, bu := abs64(av), abs64(bv)
	w1, f1 := smallBase10000(au, as)
	w2, f2 := smallBase10000(bu, bs)
	scale := divScale(w1, f1, as, w2, f2, bs)
	e := scale - as + bs
	if e < 0 {
		return Null, false
	}
	hi, lo := uint64(0), au
	for e > 0 {
		k := min(e, len(pow10u)-1)
		over, h := bits.Mul64(hi, pow10u[k])
		if over != 0 {
			return Null, false
		}
		var carry uint64
		hi, lo = bits.Mul64(lo, pow10u[k])
		if hi, carry = bits.Add64(hi, h, 0); carry != 0 {
			return Null, false
		}
		e -= k
	}
	qh := hi / bu
	ql, r := bits.Div64(hi%bu, lo, bu)
	if 2*r >= bu {
		var carry uint64
		ql, carry = bits.Add64(ql, 1, 0)
		qh += carry
	}
	return from128(av < 0 != (bv < 0) && qh|ql != 0, qh, ql, scale), true
}

// div sets x to x / y with a given scale, rounded half away from zero.
func (x *decimal) div(y *decimal, scale int) {
	var p big.Int
	den := &y.coef
	if e := scale - x.scale + y.scale; e >= 0 {
		x.coef.Mul(&x.coef, pow10(&p, e))
	} else {
		den = new(big.Int).Mul(den, pow10(&p, -e))
	}
	divRound(&x.coef, &x.coef, den)
	x.scale = scale
}

// divSpecial answers divisions with a NaN, an infinity or a zero divisor.
func divSpecial(a, b Datum) (d Datum, special bool, err error) {
	if NumericIsNaN(a) || NumericIsNaN(b) {
		return NumericNaN, true, nil
	}
	ai, bi := NumericIsInf(a), NumericIsInf(b)
	switch {
	case ai != 0 && bi != 0:
		return NumericNaN, true, nil
	case ai != 0:
		s := numericSign(b)
		if s == 0 {
			return Null, true, errDivisionByZero()
		}
		return infOf(ai * s), true, nil
	case bi != 0:
		return Datum{}, true, nil
	case numericSign(b) == 0:
		return Null, true, errDivisionByZero()
	}
	return Null, false, nil
}

// NumericDivTrunc is div(a, b): the quotient truncated to an integer.
func NumericDivTrunc(a, b Datum) (Datum, error) {
	if d, special, err := divSpecial(a, b); special || err != nil {
		return d, err
	}
	var x, y decimal
	x.load(a)
	y.load(b)
	scale := max(x.scale, y.scale)
	x.rescale(scale)
	y.rescale(scale)
	x.coef.Quo(&x.coef, &y.coef)
	x.scale = 0
	return x.datum()
}

// NumericMod is a % b: the sign of a, the larger display scale.
func NumericMod(a, b Datum) (Datum, error) {
	if a.p == nil && b.p == nil {
		av, as := a.smallParts()
		bv, bs := b.smallParts()
		if bv != 0 && as == bs {
			return smallNumeric(av%bv, as), nil
		}
	}
	switch {
	case NumericIsNaN(a) || NumericIsNaN(b):
		return NumericNaN, nil
	case numericSign(b) == 0:
		return Null, errDivisionByZero()
	case NumericIsInf(a) != 0:
		return NumericNaN, nil
	case NumericIsInf(b) != 0:
		return a, nil
	}
	var x, y decimal
	x.load(a)
	y.load(b)
	scale := max(x.scale, y.scale)
	x.rescale(scale)
	y.rescale(scale)
	x.coef.Rem(&x.coef, &y.coef)
	return x.datum()
}

// NumericRound is round(a, scale), half away from zero. A negative scale rounds
// before the decimal point.
func NumericRound(a Datum, scale int32) (Datum, error) { return roundTo(a, scale, true) }

// NumericTrunc is trunc(a, scale).
func NumericTrunc(a Datum, scale int32) (Datum, error) { return roundTo(a, scale, false) }

func roundTo(a Datum, scale int32, round bool) (Datum, error) {
	s := int(min(max(scale, -numericMaxIntDigits-1), numericMaxScale))
	if a.p == nil {
		v, as := a.smallParts()
		switch {
		case s == as:
			return a, nil
		case s >= 0 && s < as && as-s < len(pow10u)-1:
			p := int64(pow10u[as-s])
			q, r := v/p, abs64(v%p)
			if round && r >= uint64(p)-r {
				if v < 0 {
					q--
				} else {
					q++
				}
			}
			return smallNumeric(q, s), nil
		}
	}
	var x decimal
	x.load(a)
	if !x.finite() {
		return a, nil
	}
	x.shift(s, round)
	if s < 0 {
		x.rescale(0)
	}
	return x.datum()
}

// NumericCeil is ceil(a).
func NumericCeil(a Datum) (Datum, error) { return toInteger(a, 1) }

// NumericFloor is floor(a).
func NumericFloor(a Datum) (Datum, error) { return toInteger(a, -1) }

// toInteger rounds toward the infinity of a sign.
func toInteger(a Datum, sign int) (Datum, error) {
	t, err := NumericTrunc(a, 0)
	if err != nil || NumericCmp(t, a) == 0 || numericSign(a) != sign {
		return t, err
	}
	return NumericAdd(t, smallNumeric(int64(sign), 0))
}

// numericMod splits a numeric type modifier into precision and scale; ok is
// false if there is none.
func numericMod(mod int32) (precision, scale int, ok bool) {
	if mod < 4 {
		return 0, 0, false
	}
	m := mod - 4
	return int(m >> 16 & 0xffff), int(m&0x7ff^1024) - 1024, true
}

// coerceNumeric is apply_typmod.
func coerceNumeric(d Datum, mod int32, _ bool) (Datum, error) {
	precision, scale, ok := numericMod(mod)
	if !ok {
		return d, nil
	}
	if d.p == nil && scale == int(d.n&0xff) {
		if v, _ := d.smallParts(); precision < len(pow10u) && abs64(v) < pow10u[precision] {
			return d, nil
		}
	}
	if NumericIsNaN(d) {
		return d, nil
	}
	overflow := func() *pgerr.Error {
		return pgerr.New(pgerr.NumericValueOutOfRange, "numeric field overflow")
	}
	if NumericIsInf(d) != 0 {
		return Null, overflow().WithDetail("A field with precision %d, scale %d cannot hold an infinite value.", precision, scale)
	}
	r, err := NumericRound(d, int32(scale))
	if err != nil {
		return Null, err
	}
	var x decimal
	x.load(r)
	most := precision - scale
	if decimalDigits(&x.coef)-x.scale > most {
		e := overflow()
		if most != 0 {
			return Null, e.WithDetail("A field with precision %d, scale %d must round to an absolute value less than 10^%d.", precision, scale, most)
		}
		return Null, e.WithDetail("A field with precision %d, scale %d must round to an absolute value less than 1.", precision, scale)
	}
	return r, nil
}
