package datum

import (
	"math/big"

	"github.com/tallystick/tallystick/sql/pgerr"
)

// The transcendental functions work in binary fixed point on integers alone, so
// that every platform computes the same digits. Result scales are PostgreSQL's
// (numeric.c): they promise 16 significant digits and the scale of the input.

func clampScale(s int) int { return min(max(s, 0), numericMaxDisplay) }

// firstDigit is the decimal exponent of the first digit: 3 for 1234, -1 for 0.5.
func (x *decimal) firstDigit() int { return decimalDigits(&x.coef) - 1 - x.scale }

// NumericSqrt is sqrt(a); 2201F for a negative number.
func NumericSqrt(a Datum) (Datum, error) {
	if NumericIsNaN(a) {
		return a, nil
	}
	if numericSign(a) < 0 {
		return Null, pgerr.New(pgerr.InvalidArgumentForPowerFunction, "cannot take square root of a negative number")
	}
	if NumericIsInf(a) > 0 {
		return a, nil
	}
	var x decimal
	x.load(a)
	weight, _ := x.base10000()
	rscale := clampScale(max(numericMinSigDigits-(weight*2+1), x.scale))
	// One digit more than wanted, cut off, then rounded.
	n := 2*(rscale+1) - x.scale
	var p big.Int
	if n >= 0 {
		x.coef.Mul(&x.coef, pow10(&p, n))
	} else {
		x.coef.Quo(&x.coef, pow10(&p, -n))
	}
	x.coef.Sqrt(&x.coef)
	x.scale = rscale + 1
	x.rescale(rscale)
	return x.datum()
}

// fixed converts a finite decimal to a binary fixed-point number.
func (x *decimal) fixed(prec uint) *big.Int {
	var p big.Int
	z := new(big.Int).Lsh(&x.coef, prec)
	return z.Quo(z, pow10(&p, x.scale))
}

// setFixed rounds a binary fixed-point number to a scale.
func (x *decimal) setFixed(v *big.Int, prec uint, scale int) {
	var p, one big.Int
	x.form, x.scale = bigPositive, scale
	v.Mul(v, pow10(&p, scale))
	divRound(&x.coef, v, one.Lsh(one.SetInt64(1), prec))
}

// bitsFor is the number of bits that n decimal digits take, and some to spare.
func bitsFor(n int) uint { return uint(max(n, 0)*10/3 + n/64 + 64) }

// atanhInv is 2 atanh(1/n) in fixed point.
func atanhInv(n int64, prec uint) *big.Int {
	var sum, term, t, k big.Int
	nn := big.NewInt(n * n)
	term.Lsh(big.NewInt(2), prec)
	term.Quo(&term, big.NewInt(n))
	for i := int64(1); term.Sign() != 0; i += 2 {
		sum.Add(&sum, t.Quo(&term, k.SetInt64(i)))
		term.Quo(&term, nn)
	}
	return &sum
}

// ln2 is the logarithm of 2: 2 atanh(1/3).
func ln2(prec uint) *big.Int { return atanhInv(3, prec) }

// lnFixed is the natural logarithm of a positive decimal, with an error of some
// units in the last place.
func lnFixed(x *decimal, prec uint) *big.Int {
	prec += 32
	// x = m * 2^k with m near 1.
	var den, num big.Int
	pow10(&den, x.scale)
	num.Set(&x.coef)
	k := num.BitLen() - den.BitLen()
	if k > 0 {
		den.Lsh(&den, uint(k))
	} else {
		num.Lsh(&num, uint(-k))
	}
	// num/den lies in (1/2, 2); bring it to [3/4, 3/2).
	var t, u big.Int
	if t.Lsh(&num, 1).Cmp(u.Mul(&den, big.NewInt(3))) >= 0 {
		den.Lsh(&den, 1)
		k++
	} else if t.Lsh(&num, 2).Cmp(&u) < 0 {
		num.Lsh(&num, 1)
		k--
	}
	// ln m = 2 atanh z with z = (num - den) / (num + den), |z| <= 1/5.
	var z, zz, term, sum, i big.Int
	z.Sub(&num, &den)
	z.Lsh(&z, prec)
	z.Quo(&z, t.Add(&num, &den))
	zz.Mul(&z, &z)
	zz.Rsh(&zz, prec)
	term.Lsh(&z, 1)
	for n := int64(1); term.Sign() != 0; n += 2 {
		sum.Add(&sum, t.Quo(&term, i.SetInt64(n)))
		term.Mul(&term, &zz)
		term.Quo(&term, u.Lsh(u.SetInt64(1), prec))
	}
	if k != 0 {
		sum.Add(&sum, t.Mul(ln2(prec), i.SetInt64(int64(k))))
	}
	return sum.Rsh(&sum, 32)
}

// expFixed is e^x for x >= 0 in fixed point, with a relative error of about
// 2^-prec; the result may have many bits before the point.
func expFixed(x *big.Int, prec uint) *big.Int {
	// e^x = 2^k e^r with 0 <= r < ln 2, and e^r = (e^(r/256))^256.
	const halvings = 8
	work := prec + 64
	var r, k, t, one, sum, term, n big.Int
	// k needs ln 2 precisely enough for the product to be exact to 2^-work.
	extra := uint(x.BitLen())
	if extra > prec {
		extra -= prec
	} else {
		extra = 0
	}
	wide := work + extra
	l := ln2(wide)
	r.Lsh(x, wide-prec)
	k.QuoRem(&r, l, &r)
	r.Rsh(&r, wide-work+halvings)
	one.Lsh(one.SetInt64(1), work)
	sum.Set(&one)
	term.Set(&one)
	for i := int64(1); ; i++ {
		term.Mul(&term, &r)
		term.Rsh(&term, work)
		term.Quo(&term, n.SetInt64(i))
		if term.Sign() == 0 {
			break
		}
		sum.Add(&sum, &term)
	}
	for range halvings {
		sum.Mul(&sum, &sum)
		sum.Rsh(&sum, work)
	}
	t.Lsh(&sum, uint(k.Int64()))
	return t.Rsh(&t, work-prec)
}

// lnWeight estimates the decimal exponent of ln x the way PostgreSQL does
// (estimate_ln_dweight).
func lnWeight(x *decimal) int {
	if x.coef.Sign() <= 0 {
		return 0
	}
	var lo, hi, one decimal
	lo.load(smallNumeric(9, 1))
	hi.load(smallNumeric(11, 1))
	one.load(smallNumeric(1, 0))
	if x.cmp(&lo) >= 0 && x.cmp(&hi) <= 0 {
		// ln(1+y) is about y.
		y := decimal{form: bigPositive, scale: x.scale}
		y.coef.Set(&x.coef)
		one.coef.Neg(&one.coef)
		y.plus(&one)
		if y.coef.Sign() == 0 {
			return 0
		}
		return y.firstDigit()
	}
	// |ln x| is at least 0.09 here; a few bits tell its first digit.
	v := lnFixed(x, 64)
	v.Abs(v)
	var d decimal
	d.setFixed(v, 64, 18)
	// C truncates the logarithm toward zero: 0.0966 counts as 10^-1.
	if w := d.firstDigit(); w >= 0 {
		return w
	}
	return d.firstDigit() + 1
}

// cmp compares two finite decimals.
func (x *decimal) cmp(y *decimal) int {
	var p, t big.Int
	if x.scale < y.scale {
		return t.Mul(&x.coef, pow10(&p, y.scale-x.scale)).Cmp(&y.coef)
	}
	return x.coef.Cmp(t.Mul(&y.coef, pow10(&p, x.scale-y.scale)))
}

func errLog(a Datum) error {
	if numericSign(a) < 0 {
		return pgerr.New(pgerr.InvalidArgumentForLogarithm, "cannot take logarithm of a negative number")
	}
	return pgerr.New(pgerr.InvalidArgumentForLogarithm, "cannot take logarithm of zero")
}

// NumericLn is ln(a); 2201E unless a is positive.
func NumericLn(a Datum) (Datum, error) {
	switch {
	case NumericIsNaN(a):
		return a, nil
	case numericSign(a) <= 0:
		return Null, errLog(a)
	case NumericIsInf(a) > 0:
		return a, nil
	}
	var x, r decimal
	x.load(a)
	rscale := clampScale(max(numericMinSigDigits-lnWeight(&x), x.scale))
	prec := bitsFor(rscale)
	r.setFixed(lnFixed(&x, prec), prec, rscale)
	return r.datum()
}

// NumericLog is log(base, a).
func NumericLog(base, a Datum) (Datum, error) {
	if NumericIsNaN(base) || NumericIsNaN(a) {
		return NumericNaN, nil
	}
	bi, ai := NumericIsInf(base), NumericIsInf(a)
	if ai < 0 {
		return Null, errLog(a)
	}
	for _, v := range []Datum{base, a} {
		if numericSign(v) <= 0 {
			return Null, errLog(v)
		}
	}
	switch {
	case bi != 0 && ai != 0:
		return NumericNaN, nil
	case bi != 0:
		return Datum{}, nil
	case ai != 0:
		return NumericPosInf, nil
	}
	var b, x, r decimal
	b.load(base)
	x.load(a)
	bw, xw := lnWeight(&b), lnWeight(&x)
	rscale := clampScale(max(numericMinSigDigits-(xw-bw), b.scale, x.scale))
	// Digits lost to a small ln(base) or gained by a large ln(a) are added.
	prec := bitsFor(rscale + max(0, xw) + 2*max(0, -bw) + 8)
	lb := lnFixed(&b, prec)
	if lb.Sign() == 0 {
		return Null, errDivisionByZero()
	}
	lx := lnFixed(&x, prec)
	lx.Lsh(lx, prec)
	lx.Quo(lx, lb)
	r.setFixed(lx, prec, rscale)
	return r.datum()
}

// NumericExp is exp(a); 22003 if the result is too large.
func NumericExp(a Datum) (Datum, error) {
	switch {
	case NumericIsNaN(a) || NumericIsInf(a) > 0:
		return a, nil
	case NumericIsInf(a) < 0:
		return Datum{}, nil
	}
	var x decimal
	x.load(a)
	w, huge := tenthPower(&x)
	if huge {
		w = numericMaxResultScale
		if x.coef.Sign() < 0 {
			w = -w
		}
	}
	rscale := clampScale(max(numericMinSigDigits-w, x.scale))
	return expDecimal(&x, rscale, 3*numericMaxResultScale)
}

// tenthPower is the decimal exponent of e^x, cut toward zero; huge if beyond
// 2000.
func tenthPower(x *decimal) (w int, huge bool) {
	// log10(e) to 15 digits, as PostgreSQL has it.
	var p, v big.Int
	v.Mul(&x.coef, big.NewInt(434294481903252))
	v.Quo(&v, pow10(&p, 15+x.scale))
	if !v.IsInt64() || abs64(v.Int64()) >= numericMaxResultScale {
		return 0, true
	}
	return int(v.Int64()), false
}

// expDecimal is e^x at a scale; limit is the |x| beyond which the result
// overflows or is 0.
func expDecimal(x *decimal, rscale int, limit int64) (Datum, error) {
	r := decimal{form: bigPositive, scale: rscale}
	var p, whole big.Int
	whole.Quo(&x.coef, pow10(&p, x.scale))
	if whole.CmpAbs(big.NewInt(limit)) >= 0 {
		if x.coef.Sign() > 0 {
			return Null, errNumericOverflow()
		}
		return r.datum()
	}
	prec := bitsFor(rscale) + uint(abs64(whole.Int64()))*3/2 + 64
	neg := x.coef.Sign() < 0
	v := x.fixed(prec)
	v.Abs(v)
	v = expFixed(v, prec)
	if neg {
		var one big.Int
		v.Quo(one.Lsh(one.SetInt64(1), 2*prec), v)
	}
	r.setFixed(v, prec, rscale)
	return r.datum()
}

// NumericPower is a ^ b.
func NumericPower(a, b Datum) (Datum, error) {
	if d, done, err := powerSpecial(a, b); done {
		return d, err
	}
	var x, y decimal
	x.load(a)
	y.load(b)
	if n, ok := y.integer(); ok && n.IsInt64() && n.Int64() == int64(int32(n.Int64())) {
		return powerInt(&x, int32(n.Int64()), clampScale(max(numericMinSigDigits, x.scale)))
	}
	if x.coef.Sign() == 0 {
		return from128(false, 0, 0, numericMinSigDigits), nil
	}
	neg := false
	if x.coef.Sign() < 0 {
		n, ok := y.integer()
		if !ok {
			return Null, errNegativePower()
		}
		neg = n.Bit(0) != 0
		x.coef.Neg(&x.coef)
	}
	d, err := powerReal(&x, &y)
	if neg && err == nil {
		d = NumericNeg(d)
	}
	return d, err
}

func errNegativePower() error {
	return pgerr.New(pgerr.InvalidArgumentForPowerFunction, "a negative number raised to a non-integer power yields a complex result")
}

// integer returns x as an integer if it is one.
func (x *decimal) integer() (*big.Int, bool) {
	var p, q, r big.Int
	q.QuoRem(&x.coef, pow10(&p, x.scale), &r)
	return &q, r.Sign() == 0
}

// powerReal is e^(y ln x) for positive x.
func powerReal(x, y *decimal) (Datum, error) {
	// ln x to few digits gives the size of the result.
	ydigits := max(y.firstDigit()+1, 0)
	rough := bitsFor(ydigits + 20)
	e := lnFixed(x, rough)
	e.Mul(e, y.fixed(rough))
	e.Rsh(e, rough)
	var est decimal
	est.setFixed(e, rough, 8)
	var p, whole big.Int
	whole.Quo(&est.coef, pow10(&p, 8))
	if whole.CmpAbs(big.NewInt(numericMaxResultScale*301/100)) > 0 {
		if whole.Sign() > 0 {
			return Null, errNumericOverflow()
		}
		return from128(false, 0, 0, numericMaxDisplay), nil
	}
	w, huge := tenthPower(&est)
	if huge {
		w = numericMaxResultScale
		if est.coef.Sign() < 0 {
			w = -w
		}
	}
	rscale := clampScale(max(numericMinSigDigits-w, x.scale, y.scale))
	prec := bitsFor(rscale+max(w, 0)+ydigits+y.scale) + 64
	l := lnFixed(x, prec)
	l.Mul(l, &y.coef)
	l.Quo(l, pow10(&p, y.scale))
	neg := l.Sign() < 0
	v := expFixed(l.Abs(l), prec)
	if neg {
		var one big.Int
		v.Quo(one.Lsh(one.SetInt64(1), 2*prec), v)
	}
	var r decimal
	r.setFixed(v, prec, rscale)
	return r.datum()
}

// powerInt is x^n by repeated squaring, with some digits more than the result
// needs.
func powerInt(x *decimal, n int32, rscale int) (Datum, error) {
	r := decimal{form: bigPositive, scale: rscale}
	switch n {
	case 0:
		pow10(&r.coef, rscale)
		return r.datum()
	case 1:
		x.rescale(rscale)
		return x.datum()
	}
	if x.coef.Sign() == 0 {
		if n < 0 {
			return Null, errDivisionByZero()
		}
		return r.datum()
	}
	// The result has about n * log10|x| digits before the point.
	e := powerWeight(x, n)
	if e > 3*32767*4 {
		return Null, errNumericOverflow()
	}
	if e+1 < -int64(rscale) {
		return r.datum()
	}
	keep := int(max(e, 0)) + rscale + 32
	m := int64(n)
	if m < 0 {
		m = -m
		keep = rscale + int(max(e, -e)) + 32
	}
	acc := decimal{form: bigPositive}
	acc.coef.SetInt64(1)
	sq := decimal{form: bigPositive, scale: x.scale}
	sq.coef.Set(&x.coef)
	for ; m > 0; m >>= 1 {
		if m&1 != 0 {
			acc.coef.Mul(&acc.coef, &sq.coef)
			acc.scale += sq.scale
			acc.limit(keep)
		}
		if m > 1 {
			sq.coef.Mul(&sq.coef, &sq.coef)
			sq.scale *= 2
			sq.limit(keep)
		}
	}
	if n < 0 {
		one := decimal{form: bigPositive}
		one.coef.SetInt64(1)
		return one.quo(&acc, rscale)
	}
	if acc.scale < 0 && -acc.scale > 4*numericMaxIntDigits {
		return Null, errNumericOverflow()
	}
	acc.rescale(rscale)
	return acc.datum()
}

// quo divides where the divisor's scale may be negative or large.
func (x *decimal) quo(y *decimal, rscale int) (Datum, error) {
	e := rscale - x.scale + y.scale
	if e < 0 {
		r := decimal{form: bigPositive, scale: rscale}
		if decimalDigits(&x.coef)+1 < -e+decimalDigits(&y.coef)-1 {
			return r.datum()
		}
	}
	x.div(y, rscale)
	return x.datum()
}

// limit drops digits beyond n; the scale may become negative.
func (x *decimal) limit(n int) {
	if d := decimalDigits(&x.coef) - n; d > 0 {
		var p big.Int
		divRound(&x.coef, &x.coef, pow10(&p, d))
		x.scale -= d
	}
}

// powerWeight estimates n * log10|x|, cut toward minus infinity.
func powerWeight(x *decimal, n int32) int64 {
	pos := decimal{form: bigPositive, scale: x.scale}
	pos.coef.Abs(&x.coef)
	const prec = 96
	l := lnFixed(&pos, prec)
	var ten decimal
	ten.load(smallNumeric(10, 0))
	l.Mul(l, big.NewInt(int64(n)))
	l.Div(l, lnFixed(&ten, prec))
	if !l.IsInt64() {
		return int64(l.Sign()) * (1 << 40)
	}
	return l.Int64()
}

// powerSpecial answers powers with NaN and infinities, which follow POSIX
// pow(3), and a zero base with a negative exponent.
func powerSpecial(a, b Datum) (d Datum, done bool, err error) {
	one := smallNumeric(1, 0)
	sa, sb := numericSign(a), numericSign(b)
	if NumericIsNaN(a) || NumericIsNaN(b) {
		// NaN to the 0 and 1 to the NaN are 1.
		if NumericIsNaN(a) && NumericIsNaN(b) {
			return NumericNaN, true, nil
		}
		if NumericIsNaN(a) && sb == 0 || NumericIsNaN(b) && NumericCmp(a, one) == 0 {
			return one, true, nil
		}
		return NumericNaN, true, nil
	}
	if sa == 0 && sb < 0 {
		return Null, true, pgerr.New(pgerr.InvalidArgumentForPowerFunction, "zero raised to a negative power is undefined")
	}
	ai, bi := NumericIsInf(a), NumericIsInf(b)
	if ai == 0 && bi == 0 {
		return Null, false, nil
	}
	var y decimal
	y.load(b)
	odd := false
	if bi == 0 {
		n, whole := y.integer()
		if sa < 0 && !whole {
			return Null, true, errNegativePower()
		}
		odd = whole && n.Bit(0) != 0
	}
	switch {
	case NumericCmp(a, one) == 0 || sb == 0:
		return one, true, nil
	case bi != 0:
		c := NumericCmp(NumericAbs(a), one)
		switch {
		case sa == 0: // b is +Infinity
			return Datum{}, true, nil
		case c == 0:
			return one, true, nil
		case c > 0 == (bi > 0):
			return NumericPosInf, true, nil
		}
		return Datum{}, true, nil
	case ai > 0:
		if sb > 0 {
			return NumericPosInf, true, nil
		}
		return Datum{}, true, nil
	}
	// a is -Infinity.
	switch {
	case sb < 0:
		return Datum{}, true, nil
	case odd:
		return NumericNegInf, true, nil
	}
	return NumericPosInf, true, nil
}
