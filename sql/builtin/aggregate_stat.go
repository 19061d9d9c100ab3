package builtin

import (
	"math"

	"github.com/cockroachdb/apd/v3"
	"github.com/tallystick/tallystick/sql/datum"
)

// numericVarState is the variance family over exact numbers: it keeps the sums
// of the values and of their squares, so no digit is lost.
type numericVarState struct {
	name     string
	int      bool
	sum, sqr datum.NumericSum
}

func (s *numericVarState) Add(_ *Ctx, a []datum.Datum) error {
	v := a[0]
	if s.int {
		s.sum.AddInt(v.Int())
		if p, ok := mul64(v.Int(), v.Int()); ok {
			s.sqr.AddInt(p)
			return nil
		}
		v = datum.NumericFromInt64(v.Int())
	} else {
		s.sum.Add(v)
	}
	sq, err := datum.NumericMul(v, v)
	if err != nil {
		return err
	}
	s.sqr.Add(sq)
	return nil
}

// Result is numeric_stddev_internal: (n*sum(x^2) - sum(x)^2) / (n*(n-1)), or n*n
// for the population.
func (s *numericVarState) Result(*Ctx) (datum.Datum, error) {
	count := s.sum.Count()
	if count == 0 || count == 1 && isSample(s.name) {
		return datum.Null, nil
	}
	sum, err := s.sum.Sum()
	if err != nil {
		return datum.Null, err
	}
	if !isFinite(sum) {
		return datum.ParseNumeric("NaN")
	}
	sqr, err := s.sqr.Sum()
	if err != nil {
		return datum.Null, err
	}
	n := datum.NumericFromInt64(count)
	num, err := deviation(n, sum, sqr)
	if err != nil {
		return datum.Null, err
	}
	zero := datum.NumericFromInt64(0)
	if datum.NumericCmp(num, zero) <= 0 {
		return zero, nil
	}
	m := n
	if isSample(s.name) {
		m = datum.NumericFromInt64(count - 1)
	}
	den, err := datum.NumericMul(n, m)
	if err != nil {
		return datum.Null, err
	}
	v, err := datum.NumericDiv(num, den)
	if err != nil || !isStddev(s.name) {
		return v, err
	}
	return sqrtAtScale(v)
}

func deviation(n, sum, sqr datum.Datum) (datum.Datum, error) {
	square, err := datum.NumericMul(sum, sum)
	if err != nil {
		return datum.Null, err
	}
	scaled, err := datum.NumericMul(n, sqr)
	if err != nil {
		return datum.Null, err
	}
	return datum.NumericSub(scaled, square)
}

// sqrtAtScale takes the square root to the scale that the operand has.
func sqrtAtScale(v datum.Datum) (datum.Datum, error) {
	var x, r apd.Decimal
	datum.NumericToApd(v, &x)
	scale := datum.NumericScale(v)
	// Enough digits that rounding to the scale is the only rounding that shows.
	ctx := apd.BaseContext.WithPrecision(uint32(x.NumDigits()) + uint32(scale) + 10)
	ctx.Rounding = apd.RoundDown
	if _, err := ctx.Sqrt(&r, &x); err != nil {
		return datum.Null, err
	}
	ctx.Rounding = apd.RoundHalfUp
	if _, err := ctx.Quantize(&r, &r, -scale); err != nil {
		return datum.Null, err
	}
	return datum.NumericFromApd(&r)
}

// regressionState is corr, covar_* and regr_* (float8_regr_accum): y is the
// first argument.
type regressionState struct {
	name                     string
	n, sx, sxx, sy, syy, sxy float64
}

func (s *regressionState) Add(_ *Ctx, a []datum.Datum) error {
	y, x := a[0].Float(), a[1].Float()
	n0, sx0, sy0 := s.n, s.sx, s.sy
	s.n++
	s.sx += x
	s.sy += y
	if n0 == 0 {
		s.first(x, y)
		return nil
	}
	tx, ty := float64(x*s.n)-s.sx, float64(y*s.n)-s.sy
	scale := 1 / float64(s.n*n0)
	s.sxx += float64(float64(tx*tx) * scale)
	s.syy += float64(float64(ty*ty) * scale)
	s.sxy += float64(float64(tx*ty) * scale)
	if isInf(s.sx) || isInf(s.sxx) || isInf(s.sy) || isInf(s.syy) || isInf(s.sxy) {
		xOK, yOK := !isInf(sx0) && !isInf(x), !isInf(sy0) && !isInf(y)
		if (isInf(s.sx) || isInf(s.sxx)) && xOK || (isInf(s.sy) || isInf(s.syy)) && yOK || isInf(s.sxy) && xOK && yOK {
			return floatOverflow()
		}
		if isInf(s.sxx) {
			s.sxx = math.NaN()
		}
		if isInf(s.syy) {
			s.syy = math.NaN()
		}
		if isInf(s.sxy) {
			s.sxy = math.NaN()
		}
	}
	return nil
}

func (s *regressionState) first(x, y float64) {
	special := func(v float64) bool { return math.IsNaN(v) || isInf(v) }
	if special(x) {
		s.sxx, s.sxy = math.NaN(), math.NaN()
	}
	if special(y) {
		s.syy, s.sxy = math.NaN(), math.NaN()
	}
}

func (s *regressionState) Result(*Ctx) (datum.Datum, error) {
	if s.name == "regr_count" {
		return datum.Int(int64(s.n)), nil
	}
	if s.n == 0 || s.name == "covar_samp" && s.n < 2 {
		return datum.Null, nil
	}
	v, ok := s.compute()
	if !ok {
		return datum.Null, nil
	}
	return datum.Float(v), nil
}

func (s *regressionState) compute() (v float64, ok bool) {
	switch s.name {
	case "covar_pop":
		return s.sxy / s.n, true
	case "covar_samp":
		return s.sxy / (s.n - 1), true
	case "regr_avgx":
		return s.sx / s.n, true
	case "regr_avgy":
		return s.sy / s.n, true
	case "regr_sxx":
		return s.sxx, true
	case "regr_syy":
		return s.syy, true
	case "regr_sxy":
		return s.sxy, true
	case "corr":
		if s.sxx == 0 || s.syy == 0 {
			return 0, false
		}
		return s.sxy / math.Sqrt(float64(s.sxx*s.syy)), true
	}
	if s.sxx == 0 {
		return 0, false
	}
	switch s.name {
	case "regr_slope":
		return s.sxy / s.sxx, true
	case "regr_intercept":
		return (s.sy - float64(s.sx*s.sxy)/s.sxx) / s.n, true
	}
	if s.syy == 0 { // regr_r2
		return 1, true
	}
	return float64(s.sxy*s.sxy) / float64(s.sxx*s.syy), true
}
