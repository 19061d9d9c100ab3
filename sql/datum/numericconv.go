package datum

import (
	"math"

	"github.com/cockroachdb/apd/v3"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// NumericFromApd converts; 22003 beyond the limits of numeric.
func NumericFromApd(a *apd.Decimal) (Datum, error) {
	switch a.Form {
	case apd.Infinite:
		if a.Negative {
			return NumericNegInf, nil
		}
		return NumericPosInf, nil
	case apd.NaN, apd.NaNSignaling:
		return NumericNaN, nil
	}
	if a.Exponent > 2*numericMaxIntDigits || a.Exponent < -2*numericMaxIntDigits {
		return Null, errNumericOverflow()
	}
	x := decimal{form: bigPositive, scale: int(-a.Exponent)}
	x.coef.Set(a.Coeff.MathBigInt())
	if a.Negative {
		x.coef.Neg(&x.coef)
	}
	switch {
	case x.scale < 0:
		x.rescale(0)
	case x.scale > numericMaxScale:
		x.rescale(numericMaxScale)
	}
	return x.datum()
}

// NumericToApd sets dst to a, exactly.
func NumericToApd(a Datum, dst *apd.Decimal) {
	var x decimal
	x.load(a)
	dst.Negative, dst.Exponent = false, 0
	switch x.form {
	case bigNaN:
		dst.Form = apd.NaN
	case bigPosInf, bigNegInf:
		dst.Form = apd.Infinite
		dst.Negative = x.form == bigNegInf
	default:
		dst.Form = apd.Finite
		dst.Negative = x.coef.Sign() < 0
		x.coef.Abs(&x.coef)
		dst.Coeff.SetMathBigInt(&x.coef)
		dst.Exponent = int32(-x.scale)
	}
}

// integerPart rounds a finite numeric half away from zero to an int64.
func integerPart(a Datum) (int64, bool) {
	if a.p == nil {
		v, scale := a.smallParts()
		if scale >= len(pow10u)-1 {
			return 0, true // below 2^55 / 10^18
		}
		p := int64(pow10u[scale])
		q, r := v/p, v%p
		if abs64(r) >= uint64(p)-abs64(r) {
			if v < 0 {
				q--
			} else {
				q++
			}
		}
		return q, true
	}
	var x decimal
	x.load(a)
	x.rescale(0)
	return x.coef.Int64(), x.coef.IsInt64()
}

func numericToInt(a Datum, lo, hi int64, typ string) (int64, error) {
	if NumericIsNaN(a) {
		return 0, pgerr.New(pgerr.FeatureNotSupported, "cannot convert NaN to %s", typ)
	}
	if NumericIsInf(a) != 0 {
		return 0, pgerr.New(pgerr.FeatureNotSupported, "cannot convert infinity to %s", typ)
	}
	v, ok := integerPart(a)
	if !ok || v < lo || v > hi {
		return 0, pgerr.New(pgerr.NumericValueOutOfRange, "%s out of range", typ)
	}
	return v, nil
}

// NumericToInt64 rounds half away from zero; 22003 if it does not fit.
func NumericToInt64(a Datum) (int64, error) {
	return numericToInt(a, math.MinInt64, math.MaxInt64, "bigint")
}

// NumericToInt4 is [NumericToInt64] for integer.
func NumericToInt4(a Datum) (int32, error) {
	v, err := numericToInt(a, math.MinInt32, math.MaxInt32, "integer")
	return int32(v), err
}

// NumericToInt2 is [NumericToInt64] for smallint.
func NumericToInt2(a Datum) (int16, error) {
	v, err := numericToInt(a, math.MinInt16, math.MaxInt16, "smallint")
	return int16(v), err
}
