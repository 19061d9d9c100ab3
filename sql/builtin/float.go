package builtin

import (
	"math"

	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

func floatOverflow() error {
	return pgerr.New(pgerr.NumericValueOutOfRange, "value out of range: overflow")
}

func floatUnderflow() error {
	return pgerr.New(pgerr.NumericValueOutOfRange, "value out of range: underflow")
}

func isInf(f float64) bool { return math.IsInf(f, 0) }

// arith is one of the four operations at one precision, with PostgreSQL's range
// checks: an infinity or a zero that the operands do not explain is an error.
type arith struct {
	op     byte
	single bool
}

func (o arith) eval(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
	r, err := o.compute(a[0].Float(), a[1].Float())
	if err != nil {
		return datum.Null, err
	}
	return datum.Float(r), nil
}

func (o arith) compute(x, y float64) (float64, error) {
	if o.op == '/' && y == 0 && !math.IsNaN(x) {
		return 0, divisionByZero()
	}
	var r float64
	if o.single {
		r = float64(single(o.op, float32(x), float32(y)))
	} else {
		r = double(o.op, x, y)
	}
	switch o.op {
	case '+', '-':
		if isInf(r) && !isInf(x) && !isInf(y) {
			return 0, floatOverflow()
		}
	case '*':
		if isInf(r) && !isInf(x) && !isInf(y) {
			return 0, floatOverflow()
		}
		if r == 0 && x != 0 && y != 0 {
			return 0, floatUnderflow()
		}
	case '/':
		if isInf(r) && !isInf(x) {
			return 0, floatOverflow()
		}
		if r == 0 && x != 0 && !isInf(y) {
			return 0, floatUnderflow()
		}
	}
	return r, nil
}

func double(op byte, x, y float64) float64 {
	switch op {
	case '+':
		return x + y
	case '-':
		return x - y
	case '*':
		return x * y
	}
	return x / y
}

func single(op byte, x, y float32) float32 {
	switch op {
	case '+':
		return x + y
	case '-':
		return x - y
	case '*':
		return x * y
	}
	return x / y
}

func floatEval(f func(float64) float64) Eval {
	return func(_ *Ctx, a []datum.Datum) (datum.Datum, error) { return datum.Float(f(a[0].Float())), nil }
}

func floatTry(f func(float64) (float64, error)) Eval {
	return func(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
		r, err := f(a[0].Float())
		if err != nil {
			return datum.Null, err
		}
		return datum.Float(r), nil
	}
}

func floatTry2(f func(x, y float64) (float64, error)) Eval {
	return func(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
		r, err := f(a[0].Float(), a[1].Float())
		if err != nil {
			return datum.Null, err
		}
		return datum.Float(r), nil
	}
}

// fromFloat rounds half to even, like rint(), and checks the range.
func (w *width) fromFloat(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
	v := math.RoundToEven(a[0].Float())
	// The upper bound of bigint is not a float; its successor 2^63 is.
	if math.IsNaN(v) || v < float64(w.min) || v >= float64(w.max/2+1)*2 {
		return datum.Null, outOfRange(w.name)
	}
	return datum.Int(int64(v)), nil
}

func intToFloat(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
	return datum.Float(float64(a[0].Int())), nil
}

// intToFloat4 converts in one rounding step: by way of float64 a bigint would be
// rounded twice.
func intToFloat4(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
	return datum.Float(float64(float32(a[0].Int()))), nil
}

func floatToFloat4(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
	x := a[0].Float()
	r := float64(float32(x))
	if isInf(r) && !isInf(x) {
		return datum.Null, floatOverflow()
	}
	if r == 0 && x != 0 {
		return datum.Null, floatUnderflow()
	}
	return datum.Float(r), nil
}

func floatSign(x float64) float64 {
	switch {
	case x > 0:
		return 1
	case x < 0:
		return -1
	case math.IsNaN(x):
		return x
	}
	return 0
}

func floatSqrt(x float64) (float64, error) {
	if x < 0 {
		return 0, pgerr.New(pgerr.InvalidArgumentForPowerFunction, "cannot take square root of a negative number")
	}
	return math.Sqrt(x), nil // correctly rounded on every platform
}

func floatDegrees(x float64) (float64, error) {
	return arith{op: '/'}.compute(x, math.Pi/180)
}

func floatRadians(x float64) (float64, error) {
	return arith{op: '*'}.compute(x, math.Pi/180)
}

// widthBucketFloat is width_bucket_float8.
func widthBucketFloat(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
	x, lo, hi, n := a[0].Float(), a[1].Float(), a[2].Float(), a[3].Int()
	bad := func(s string) (datum.Datum, error) {
		return datum.Null, pgerr.New(pgerr.InvalidArgumentForWidthBucket, "%s", s)
	}
	switch {
	case n <= 0:
		return bad("count must be greater than zero")
	case math.IsNaN(x) || math.IsNaN(lo) || math.IsNaN(hi):
		return bad("operand, lower bound, and upper bound cannot be NaN")
	case isInf(lo) || isInf(hi):
		return bad("lower and upper bounds must be finite")
	case lo == hi:
		return bad("lower bound cannot equal upper bound")
	}
	var r int64
	if lo < hi {
		switch {
		case x < lo:
			r = 0
		case x >= hi:
			r = n + 1
		case !isInf(hi - lo):
			r = bucket(n, (x-lo)/(hi-lo))
		default: // the span overflows: halve everything
			r = bucket(n, (x/2-lo/2)/(hi/2-lo/2))
		}
	} else {
		switch {
		case x > lo:
			r = 0
		case x <= hi:
			r = n + 1
		case !isInf(lo - hi):
			r = bucket(n, (lo-x)/(lo-hi))
		default:
			r = bucket(n, (lo/2-x/2)/(lo/2-hi/2))
		}
	}
	return width4.result(r)
}

func bucket(n int64, fraction float64) int64 {
	r := int64(float64(float64(n) * fraction))
	return min(r, n-1) + 1 // rounding can reach n
}

func floatEvals() evalMap {
	m := evalMap{
		"float4um": floatEval(func(x float64) float64 { return -x }),
		"float8um": floatEval(func(x float64) float64 { return -x }),
		"float4up": same, "float8up": same, "ftod": same,
		"float4abs": floatEval(math.Abs), "float8abs": floatEval(math.Abs),
		"dround": floatEval(math.RoundToEven), "dtrunc": floatEval(math.Trunc),
		"dceil": floatEval(math.Ceil), "dfloor": floatEval(math.Floor),
		"dsign": floatEval(floatSign), "dsqrt": floatTry(floatSqrt),
		"degrees": floatTry(floatDegrees), "radians": floatTry(floatRadians),
		"dpi":   func(*Ctx, []datum.Datum) (datum.Datum, error) { return datum.Float(math.Pi), nil },
		"i2tod": intToFloat, "i4tod": intToFloat, "i8tod": intToFloat,
		"i2tof": intToFloat4, "i4tof": intToFloat4, "i8tof": intToFloat4,
		"dtof":  floatToFloat4,
		"dtoi2": width2.fromFloat, "ftoi2": width2.fromFloat,
		"dtoi4": width4.fromFloat, "ftoi4": width4.fromFloat,
		"dtoi8": width8.fromFloat, "ftoi8": width8.fromFloat,
		"width_bucket_float8": widthBucketFloat,
	}
	for name, op := range map[string]byte{"pl": '+', "mi": '-', "mul": '*', "div": '/'} {
		m["float4"+name] = arith{op, true}.eval
		m["float8"+name] = arith{op, false}.eval
		m["float48"+name] = arith{op, false}.eval
		m["float84"+name] = arith{op, false}.eval
	}
	return m
}
