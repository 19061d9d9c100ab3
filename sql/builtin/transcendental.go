package builtin

import (
	"math"
	"math/big"

	"github.com/tallystick/tallystick/sql/pgerr"
)

// transcendentalSteps is what such a call costs in the step budget.
const transcendentalSteps = 16

func inputOutOfRange() error {
	return pgerr.New(pgerr.NumericValueOutOfRange, "input is out of range")
}

// tiny: below this f(x) = x to the last bit for the functions that behave like
// x at 0, and fixed point would run out of digits.
const tiny = 1.0 / (1 << 28)

func floatExp(x float64) (float64, error) {
	switch {
	case math.IsNaN(x), math.IsInf(x, 1):
		return x, nil
	case math.IsInf(x, -1):
		return 0, nil
	case x > 710:
		return 0, floatOverflow()
	case x < -746:
		return 0, floatUnderflow()
	}
	r := fromFix(fixExp(toFix(x)))
	return checkRange(r)
}

func checkRange(r float64) (float64, error) {
	if isInf(r) {
		return 0, floatOverflow()
	}
	if r == 0 {
		return 0, floatUnderflow()
	}
	return r, nil
}

func checkLog(x float64) error {
	if x == 0 {
		return pgerr.New(pgerr.InvalidArgumentForLogarithm, "cannot take logarithm of zero")
	}
	if x < 0 {
		return pgerr.New(pgerr.InvalidArgumentForLogarithm, "cannot take logarithm of a negative number")
	}
	return nil
}

func floatLn(x float64) (float64, error) {
	if err := checkLog(x); err != nil || math.IsNaN(x) || isInf(x) {
		return x, err
	}
	return fromFix(fixLog(x), 0), nil
}

func floatLog10(x float64) (float64, error) {
	if err := checkLog(x); err != nil || math.IsNaN(x) || isInf(x) {
		return x, err
	}
	return fromFix(fixQuo(fixLog(x), fixLn10()), 0), nil
}

func floatCbrt(x float64) (float64, error) {
	if x == 0 || math.IsNaN(x) || isInf(x) {
		return x, nil
	}
	third := fixLog(math.Abs(x))
	r := fromFix(fixExp(third.Quo(third, big.NewInt(3))))
	return math.Copysign(r, x), nil
}

func isOddInteger(y float64) bool { return math.Abs(math.Mod(y, 2)) == 1 }

// floatPow is dpow: POSIX's special cases, PostgreSQL's errors.
func floatPow(x, y float64) (float64, error) {
	switch {
	case y == 0, x == 1:
		return 1, nil
	case math.IsNaN(x) || math.IsNaN(y):
		return math.NaN(), nil
	case x == 0 && y < 0:
		return 0, pgerr.New(pgerr.InvalidArgumentForPowerFunction, "zero raised to a negative power is undefined")
	case x < 0 && math.Floor(y) != y:
		return 0, pgerr.New(pgerr.InvalidArgumentForPowerFunction, "a negative number raised to a non-integer power yields a complex result")
	case isInf(y):
		ax := math.Abs(x)
		if ax == 1 {
			return 1, nil
		}
		if (ax > 1) == (y > 0) {
			return math.Inf(1), nil
		}
		return 0, nil
	case isInf(x) || x == 0:
		r := 0.0
		if isInf(x) == (y > 0) {
			r = math.Inf(1)
		}
		if isOddInteger(y) {
			r = math.Copysign(r, x)
		}
		return r, nil
	}
	return finitePow(x, y)
}

func finitePow(x, y float64) (float64, error) {
	// y ln x, exactly scaled: y may be huge where ln x is tiny.
	var yf, lf, p big.Float
	yf.SetFloat64(y)
	lf.SetInt(fixLog(math.Abs(x)))
	p.SetPrec(fracBits+64).Mul(&yf, &lf)
	p.SetMantExp(&p, -fracBits)
	if v, _ := p.Float64(); v > 710 {
		return 0, floatOverflow()
	} else if v < -746 {
		return 0, floatUnderflow()
	}
	p.SetMantExp(&p, fracBits)
	e, _ := p.Int(nil)
	r, err := checkRange(fromFix(fixExp(e)))
	if x < 0 && isOddInteger(y) {
		r = -r
	}
	return r, err
}

// trig lifts a function of a finite angle.
func trig(f func(sin, cos *big.Int) float64) func(float64) (float64, error) {
	return func(x float64) (float64, error) {
		if math.IsNaN(x) {
			return x, nil
		}
		if isInf(x) {
			return 0, inputOutOfRange()
		}
		return f(fixSinCos(x)), nil
	}
}

func floatSin(x float64) (float64, error) {
	if math.Abs(x) < tiny {
		return x, nil
	}
	return trig(func(s, _ *big.Int) float64 { return fromFix(s, 0) })(x)
}

func floatTan(x float64) (float64, error) {
	if math.Abs(x) < tiny {
		return x, nil
	}
	return trig(func(s, c *big.Int) float64 { return fromFix(fixQuo(s, c), 0) })(x)
}

func floatCot(x float64) (float64, error) {
	if math.Abs(x) < tiny {
		return 1 / x, nil
	}
	return trig(func(s, c *big.Int) float64 { return fromFix(fixQuo(c, s), 0) })(x)
}

var floatCos = trig(func(_, c *big.Int) float64 { return fromFix(c, 0) })

// fixAsin is asin x for |x| <= 1.
func fixAsin(x float64) *big.Int {
	v := toFix(x)
	root := fixSqrt(fixSub(fixOne, fixMul(v, v)))
	if root.Sign() == 0 {
		half := new(big.Int).Rsh(fixPi(), 1)
		return half.Mul(half, big.NewInt(int64(v.Sign())))
	}
	return fixAtan(fixQuo(v, root))
}

func floatAsin(x float64) (float64, error) {
	switch {
	case math.IsNaN(x):
		return x, nil
	case x < -1 || x > 1:
		return 0, inputOutOfRange()
	case math.Abs(x) < tiny:
		return x, nil
	}
	return fromFix(fixAsin(x), 0), nil
}

func fixAcos(x float64) *big.Int { return fixSub(new(big.Int).Rsh(fixPi(), 1), fixAsin(x)) }

func floatAcos(x float64) (float64, error) {
	if math.IsNaN(x) {
		return x, nil
	}
	if x < -1 || x > 1 {
		return 0, inputOutOfRange()
	}
	return fromFix(fixAcos(x), 0), nil
}

func floatAtan(x float64) (float64, error) {
	switch {
	case math.IsNaN(x), math.Abs(x) < tiny:
		return x, nil
	case isInf(x):
		return math.Copysign(fromFix(fixPi(), -1), x), nil
	}
	return fromFix(fixAtan(toFix(x)), 0), nil
}

// fixAtan2 is the angle of the finite point (x, y), not both zero; ok is false
// if it is too small for fixed point.
func fixAtan2(y, x float64) (angle *big.Int, ok bool) {
	var q big.Float
	q.SetPrec(2*fracBits).Quo(new(big.Float).SetFloat64(math.Abs(y)), new(big.Float).SetFloat64(math.Abs(x)))
	if q.IsInf() || q.MantExp(nil) > 1000 { // x is zero or nearly so
		angle = new(big.Int).Rsh(fixPi(), 1)
	} else {
		if q.MantExp(nil) < -64 && x > 0 {
			return nil, false
		}
		q.SetMantExp(&q, fracBits)
		v, _ := q.Int(nil)
		angle = fixAtan(v)
	}
	if math.Signbit(x) {
		angle = fixSub(fixPi(), angle)
	}
	if math.Signbit(y) {
		angle.Neg(angle)
	}
	return angle, true
}

func floatAtan2(y, x float64) (float64, error) {
	switch {
	case math.IsNaN(x) || math.IsNaN(y):
		return math.NaN(), nil
	case isInf(x) || isInf(y): // as if the point were on a corner of a square
		cx, cy := direction(x, isInf(y)), direction(y, isInf(x))
		return floatAtan2(cy, cx)
	case y == 0:
		if math.Signbit(x) {
			return math.Copysign(fromFix(fixPi(), 0), y), nil
		}
		return y, nil
	}
	if a, ok := fixAtan2(y, x); ok {
		return fromFix(a, 0), nil
	}
	return y / x, nil
}

// direction reduces an infinite coordinate to 1, a finite one beside an
// infinite one to 0, keeping signs.
func direction(v float64, otherInf bool) float64 {
	if isInf(v) {
		return math.Copysign(1, v)
	}
	if otherInf {
		return math.Copysign(0, v)
	}
	return v
}

// expPair is e^x and e^-x as big floats.
func expPair(x float64) (up, down *big.Float) {
	v := toFix(x)
	m, e := fixExp(v)
	up = new(big.Float).SetInt(m)
	up.SetMantExp(up, e-fracBits)
	m, e = fixExp(v.Neg(v))
	down = new(big.Float).SetInt(m)
	down.SetMantExp(down, e-fracBits)
	return up, down
}

func floatSinh(x float64) (float64, error) {
	switch {
	case math.IsNaN(x), isInf(x), math.Abs(x) < tiny:
		return x, nil
	case math.Abs(x) > 711:
		return 0, floatOverflow()
	}
	up, down := expPair(x)
	return halfOf(up.Sub(up, down))
}

func floatCosh(x float64) (float64, error) {
	switch {
	case math.IsNaN(x):
		return x, nil
	case isInf(x):
		return math.Inf(1), nil
	case math.Abs(x) > 711:
		return 0, floatOverflow()
	}
	up, down := expPair(x)
	return halfOf(up.Add(up, down))
}

func halfOf(f *big.Float) (float64, error) {
	f.SetMantExp(f, -1)
	r, _ := f.Float64()
	if isInf(r) {
		return 0, floatOverflow()
	}
	return r, nil
}

func floatTanh(x float64) (float64, error) {
	switch {
	case math.IsNaN(x), math.Abs(x) < tiny:
		return x, nil
	case math.Abs(x) > 25:
		return math.Copysign(1, x), nil
	}
	up, down := expPair(x)
	var num, den big.Float
	num.Sub(up, down)
	den.Add(up, down)
	r, _ := num.Quo(&num, &den).Float64()
	return r, nil
}

func floatAsinh(x float64) (float64, error) {
	ax := math.Abs(x)
	switch {
	case math.IsNaN(x), isInf(x), ax < tiny:
		return x, nil
	case ax > 1<<100:
		return math.Copysign(fromFix(fixAdd(fixLog(ax), fixLn2()), 0), x), nil
	}
	v := toFix(ax)
	l := fixLogBig(fixAdd(v, fixSqrt(fixAdd(fixMul(v, v), fixOne))))
	return math.Copysign(fromFix(l, 0), x), nil
}

func floatAcosh(x float64) (float64, error) {
	switch {
	case math.IsNaN(x), math.IsInf(x, 1):
		return x, nil
	case x < 1:
		return 0, inputOutOfRange()
	case x > 1<<100:
		return fromFix(fixAdd(fixLog(x), fixLn2()), 0), nil
	}
	v := toFix(x)
	return fromFix(fixLogBig(fixAdd(v, fixSqrt(fixSub(fixMul(v, v), fixOne)))), 0), nil
}

func floatAtanh(x float64) (float64, error) {
	switch {
	case math.IsNaN(x), math.Abs(x) < tiny:
		return x, nil
	case x < -1 || x > 1:
		return 0, inputOutOfRange()
	case x == 1 || x == -1:
		return math.Inf(int(x)), nil
	}
	v := toFix(x)
	return fromFix(fixLogBig(fixQuo(fixAdd(fixOne, v), fixSub(fixOne, v))), -1), nil
}

// fixDegrees turns an angle in radians into degrees.
func fixDegrees(v *big.Int) float64 {
	return fromFix(fixQuo(new(big.Int).Mul(v, big.NewInt(180)), fixPi()), 0)
}

// trigDegrees lifts a function of an angle in degrees, which is reduced exactly:
// the sine of 30 degrees is one half.
func trigDegrees(f func(sin, cos *big.Int) float64) func(float64) (float64, error) {
	return func(x float64) (float64, error) {
		if math.IsNaN(x) {
			return x, nil
		}
		if isInf(x) {
			return 0, inputOutOfRange()
		}
		v := toFix(math.Mod(x, 360))
		v = v.Quo(v.Mul(v, fixPi()), new(big.Int).Mul(fixOne, big.NewInt(180)))
		s, c := sinCosOf(v, new(big.Int).Rsh(fixPi(), 1), fracBits)
		return f(snap(s), snap(c)), nil
	}
}

// snap takes what is zero but for the rounding of pi as zero.
func snap(v *big.Int) *big.Int {
	if v.BitLen() < 32 {
		return new(big.Int)
	}
	return v
}

func quotient(a, b *big.Int) float64 {
	if b.Sign() == 0 {
		return math.Inf(a.Sign())
	}
	return fromFix(fixQuo(a, b), 0)
}

func inverseDegrees(inverse func(x float64) *big.Int) func(float64) (float64, error) {
	return func(x float64) (float64, error) {
		if math.IsNaN(x) {
			return x, nil
		}
		if x < -1 || x > 1 {
			return 0, inputOutOfRange()
		}
		return fixDegrees(inverse(x)), nil
	}
}

func floatAtand(x float64) (float64, error) {
	if math.IsNaN(x) {
		return x, nil
	}
	if isInf(x) {
		return math.Copysign(90, x), nil
	}
	return fixDegrees(fixAtan(toFix(x))), nil
}

func floatAtan2d(y, x float64) (float64, error) {
	r, err := floatAtan2(y, x)
	if err != nil || math.IsNaN(r) || isInf(x) || isInf(y) || y == 0 {
		return math.RoundToEven(float64(r * (180 / math.Pi))), err
	}
	if a, ok := fixAtan2(y, x); ok {
		return fixDegrees(a), nil
	}
	return float64(r * (180 / math.Pi)), nil
}

var transcendentalEvals = evalMap{
	"dexp": floatTry(floatExp), "dlog1": floatTry(floatLn), "dlog10": floatTry(floatLog10),
	"dcbrt": floatTry(floatCbrt), "dpow": floatTry2(floatPow),
	"dsin": floatTry(floatSin), "dcos": floatTry(floatCos), "dtan": floatTry(floatTan), "dcot": floatTry(floatCot),
	"dasin": floatTry(floatAsin), "dacos": floatTry(floatAcos), "datan": floatTry(floatAtan), "datan2": floatTry2(floatAtan2),
	"dsinh": floatTry(floatSinh), "dcosh": floatTry(floatCosh), "dtanh": floatTry(floatTanh),
	"dasinh": floatTry(floatAsinh), "dacosh": floatTry(floatAcosh), "datanh": floatTry(floatAtanh),
	"dsind":  floatTry(trigDegrees(func(s, _ *big.Int) float64 { return fromFix(s, 0) })),
	"dcosd":  floatTry(trigDegrees(func(_, c *big.Int) float64 { return fromFix(c, 0) })),
	"dtand":  floatTry(trigDegrees(func(s, c *big.Int) float64 { return quotient(s, c) })),
	"dcotd":  floatTry(trigDegrees(func(s, c *big.Int) float64 { return quotient(c, s) })),
	"dasind": floatTry(inverseDegrees(fixAsin)), "dacosd": floatTry(inverseDegrees(fixAcos)),
	"datand": floatTry(floatAtand), "datan2d": floatTry2(floatAtan2d),
}
