package builtin

import (
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

func numeric1(f func(a datum.Datum) datum.Datum) Eval {
	return func(_ *Ctx, a []datum.Datum) (datum.Datum, error) { return f(a[0]), nil }
}

func numericTry(f func(a datum.Datum) (datum.Datum, error)) Eval {
	return func(_ *Ctx, a []datum.Datum) (datum.Datum, error) { return f(a[0]) }
}

func numeric2(f func(a, b datum.Datum) (datum.Datum, error)) Eval {
	return func(_ *Ctx, a []datum.Datum) (datum.Datum, error) { return f(a[0], a[1]) }
}

func isFinite(d datum.Datum) bool { return !datum.NumericIsNaN(d) && datum.NumericIsInf(d) == 0 }

// numericScaleArg bounds a scale argument as round(numeric, int) does.
func numericScaleArg(d datum.Datum) int32 { return int32(max(-2000, min(2000, d.Int()))) }

func numericRound(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
	return datum.NumericRound(a[0], numericScaleArg(a[1]))
}

func numericTrunc(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
	return datum.NumericTrunc(a[0], numericScaleArg(a[1]))
}

func numericToFloat(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
	f, err := datum.NumericToFloat(a[0])
	if err != nil {
		return datum.Null, err
	}
	return datum.Float(f), nil
}

func numericToFloat4(c *Ctx, a []datum.Datum) (datum.Datum, error) {
	// By way of the text: a numeric rounded to double first would be rounded twice.
	return datum.Float4.Parse(string(datum.Numeric.Append(nil, a[0], c.Format)), -1, c.Format)
}

func numericToInt(w *width) Eval {
	return func(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
		switch w {
		case &width2:
			v, err := datum.NumericToInt2(a[0])
			return datum.Int(int64(v)), err
		case &width4:
			v, err := datum.NumericToInt4(a[0])
			return datum.Int(int64(v)), err
		}
		v, err := datum.NumericToInt64(a[0])
		return datum.Int(v), err
	}
}

func numericScale(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
	if !isFinite(a[0]) {
		return datum.Null, nil
	}
	return datum.Int(int64(datum.NumericScale(a[0]))), nil
}

// minScale is the smallest scale that loses no digit.
func minScale(d datum.Datum) (int32, error) {
	lo, hi := int32(0), datum.NumericScale(d)
	for lo < hi {
		mid := (lo + hi) / 2
		t, err := datum.NumericTrunc(d, mid)
		if err != nil {
			return 0, err
		}
		if datum.NumericCmp(t, d) == 0 {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return lo, nil
}

func numericMinScale(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
	if !isFinite(a[0]) {
		return datum.Null, nil
	}
	s, err := minScale(a[0])
	return datum.Int(int64(s)), err
}

func numericTrimScale(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
	if !isFinite(a[0]) {
		return a[0], nil
	}
	s, err := minScale(a[0])
	if err != nil {
		return datum.Null, err
	}
	return datum.NumericTrunc(a[0], s)
}

func numericGCD(x, y datum.Datum) (datum.Datum, error) {
	if !isFinite(x) || !isFinite(y) {
		return datum.ParseNumeric("NaN")
	}
	scale := max(datum.NumericScale(x), datum.NumericScale(y))
	x, y = datum.NumericAbs(x), datum.NumericAbs(y)
	zero := datum.NumericFromInt64(0)
	for datum.NumericCmp(y, zero) != 0 {
		r, err := datum.NumericMod(x, y)
		if err != nil {
			return datum.Null, err
		}
		x, y = y, r
	}
	return datum.NumericRound(x, scale)
}

func numericLCM(x, y datum.Datum) (datum.Datum, error) {
	if !isFinite(x) || !isFinite(y) {
		return datum.ParseNumeric("NaN")
	}
	scale := max(datum.NumericScale(x), datum.NumericScale(y))
	zero := datum.NumericFromInt64(0)
	if datum.NumericCmp(x, zero) == 0 || datum.NumericCmp(y, zero) == 0 {
		return datum.NumericRound(zero, scale)
	}
	g, err := numericGCD(x, y)
	if err != nil {
		return datum.Null, err
	}
	q, err := datum.NumericDivTrunc(x, g)
	if err != nil {
		return datum.Null, err
	}
	p, err := datum.NumericMul(q, y)
	if err != nil {
		return datum.Null, err
	}
	return datum.NumericRound(datum.NumericAbs(p), scale)
}

// factorial of a bigint; beyond 32177 the result is too large for numeric.
func factorial(c *Ctx, a []datum.Datum) (datum.Datum, error) {
	n := a[0].Int()
	if n < 0 {
		return datum.Null, pgerr.New(pgerr.NumericValueOutOfRange, "factorial of a negative number is undefined")
	}
	if n > 32177 {
		return datum.Null, outOfRangeNumeric()
	}
	if err := c.Budget.Spend(n); err != nil {
		return datum.Null, err
	}
	r := datum.NumericFromInt64(1)
	for i := n; i > 1; i-- {
		var err error
		if r, err = datum.NumericMul(r, datum.NumericFromInt64(i)); err != nil {
			return datum.Null, err
		}
	}
	return r, nil
}

func outOfRangeNumeric() error {
	return pgerr.New(pgerr.NumericValueOutOfRange, "value overflows numeric format")
}

func numericLog10(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
	return datum.NumericLog(datum.NumericFromInt64(10), a[0])
}

// widthBucketNumeric is width_bucket_numeric.
func widthBucketNumeric(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
	x, lo, hi, n := a[0], a[1], a[2], a[3].Int()
	bad := func(s string) (datum.Datum, error) {
		return datum.Null, pgerr.New(pgerr.InvalidArgumentForWidthBucket, "%s", s)
	}
	switch {
	case n <= 0:
		return bad("count must be greater than zero")
	case datum.NumericIsNaN(x) || datum.NumericIsNaN(lo) || datum.NumericIsNaN(hi):
		return bad("operand, lower bound, and upper bound cannot be NaN")
	case !isFinite(lo) || !isFinite(hi):
		return bad("lower and upper bounds must be finite")
	}
	order := datum.NumericCmp(lo, hi)
	if order == 0 {
		return bad("lower bound cannot equal upper bound")
	}
	if order > 0 { // descending: mirror everything
		x, lo, hi = datum.NumericNeg(x), datum.NumericNeg(lo), datum.NumericNeg(hi)
	}
	if datum.NumericCmp(x, lo) < 0 {
		return datum.Int(0), nil
	}
	if datum.NumericCmp(x, hi) >= 0 {
		return width4.result(n + 1)
	}
	num, err := datum.NumericSub(x, lo)
	if err != nil {
		return datum.Null, err
	}
	if num, err = datum.NumericMul(num, datum.NumericFromInt64(n)); err != nil {
		return datum.Null, err
	}
	den, err := datum.NumericSub(hi, lo)
	if err != nil {
		return datum.Null, err
	}
	q, err := datum.NumericDivTrunc(num, den)
	if err != nil {
		return datum.Null, err
	}
	v, err := datum.NumericToInt64(q)
	if err != nil {
		return datum.Null, err
	}
	return width4.result(v + 1)
}

var numericEvals = evalMap{
	"numeric_add": numeric2(datum.NumericAdd), "numeric_sub": numeric2(datum.NumericSub),
	"numeric_mul": numeric2(datum.NumericMul), "numeric_div": numeric2(datum.NumericDiv),
	"numeric_mod": numeric2(datum.NumericMod), "numeric_div_trunc": numeric2(datum.NumericDivTrunc),
	"numeric_power": numeric2(datum.NumericPower), "numeric_log": numeric2(datum.NumericLog),
	"numeric_ln": numericTry(datum.NumericLn), "numeric_exp": numericTry(datum.NumericExp),
	"numeric_sqrt": numericTry(datum.NumericSqrt), "log(numeric)": numericLog10, "log10(numeric)": numericLog10,
	"numeric_uminus": numeric1(datum.NumericNeg), "numeric_uplus": same, "numeric_abs": numeric1(datum.NumericAbs),
	"numeric_sign": numeric1(datum.NumericSign), "numeric_ceil": numericTry(datum.NumericCeil), "numeric_floor": numericTry(datum.NumericFloor),
	"numeric_round": numericRound, "numeric_trunc": numericTrunc,
	"round(numeric)": numericTry(func(d datum.Datum) (datum.Datum, error) { return datum.NumericRound(d, 0) }),
	"trunc(numeric)": numericTry(func(d datum.Datum) (datum.Datum, error) { return datum.NumericTrunc(d, 0) }),
	"numeric_inc":    numericTry(func(d datum.Datum) (datum.Datum, error) { return datum.NumericAdd(d, datum.NumericFromInt64(1)) }),
	"numeric_scale":  numericScale, "numeric_min_scale": numericMinScale, "numeric_trim_scale": numericTrimScale,
	"numeric_gcd": numeric2(numericGCD), "numeric_lcm": numeric2(numericLCM), "numeric_fac": factorial,
	"int2_numeric": intToNumeric, "int4_numeric": intToNumeric, "int8_numeric": intToNumeric,
	"float4_numeric": func(_ *Ctx, a []datum.Datum) (datum.Datum, error) { return datum.NumericFromFloat4(a[0].Float()), nil },
	"float8_numeric": func(_ *Ctx, a []datum.Datum) (datum.Datum, error) { return datum.NumericFromFloat(a[0].Float()), nil },
	"numeric_float8": numericToFloat, "numeric_float4": numericToFloat4,
	"numeric_int2": numericToInt(&width2), "numeric_int4": numericToInt(&width4), "numeric_int8": numericToInt(&width8),
	"numeric": func(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
		return datum.Numeric.Coerce(a[0], int32(a[1].Int()), true)
	},
	"width_bucket_numeric": widthBucketNumeric,
}

func intToNumeric(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
	return datum.NumericFromInt64(a[0].Int()), nil
}
