package builtin

import (
	"math"

	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// newState links an aggregate; orderSensitive tells that its result depends on
// the order of its input. Aggregates whose transition ignores nulls are marked
// strict, so that states see none.
func newState(f *Func, impl string) (make func(args []datum.Type) AggState, orderSensitive bool) {
	f.Strict = true
	var arg *datum.Desc
	if len(f.Args) > 0 {
		arg = f.Args[0]
	}
	switch f.Name {
	case "count":
		f.Strict = len(f.Args) > 0
		return func([]datum.Type) AggState { return new(countState) }, false
	case "max", "min":
		larger := f.Name == "max"
		return func(args []datum.Type) AggState { return newExtreme(args[0], larger) }, false
	case "bool_and", "every":
		return func([]datum.Type) AggState { return &boolState{and: true} }, false
	case "bool_or":
		return func([]datum.Type) AggState { return new(boolState) }, false
	case "bit_and", "bit_or", "bit_xor":
		if op := f.Name[4]; isInt(arg) {
			return func([]datum.Type) AggState { return &bitState{op: op} }, false
		}
	case "sum":
		return sumState(arg)
	case "avg":
		return avgState(arg)
	case "variance", "var_samp", "var_pop", "stddev", "stddev_samp", "stddev_pop":
		return varianceState(f.Name, arg)
	case "corr", "covar_pop", "covar_samp", "regr_avgx", "regr_avgy", "regr_count",
		"regr_intercept", "regr_r2", "regr_slope", "regr_sxx", "regr_sxy", "regr_syy":
		return func([]datum.Type) AggState { return &regressionState{name: f.Name} }, true
	}
	switch f.Name {
	case "range_intersect_agg":
		return func(args []datum.Type) AggState { return &intersectAggState{in: spansOf(args[0])} }, false
	case "range_agg":
		return func(args []datum.Type) AggState { return &rangeAggState{in: spansOf(args[0])} }, false
	}
	f.Strict = false
	return collectState(f, impl), true
}

func noOrder(t datum.Type) error {
	return pgerr.New(pgerr.UndefinedFunction, "could not identify a comparison function for type %s", typeName(t))
}

type countState struct{ n int64 }

func (s *countState) Add(*Ctx, []datum.Datum) error    { s.n++; return nil }
func (s *countState) Result(*Ctx) (datum.Datum, error) { return datum.Int(s.n), nil }

// extremeState keeps the largest or smallest value, in a buffer of its own.
type extremeState struct {
	typ    datum.Type
	larger bool
	any    bool
	best   datum.Datum
	buf    []byte
}

func newExtreme(t datum.Type, larger bool) AggState {
	return &extremeState{typ: t.Root(), larger: larger, best: datum.Null}
}

func (s *extremeState) Add(_ *Ctx, a []datum.Datum) error {
	v := a[0]
	if s.any {
		if s.typ.Compare == nil {
			return noOrder(s.typ)
		}
		c := s.typ.Compare(v, s.best)
		if s.larger && c < 0 || !s.larger && c > 0 || c == 0 && !takesEqual(s.typ.Desc) {
			return nil
		}
	}
	s.any = true
	if v.Inline() {
		s.best = v
		return nil
	}
	s.buf = append(s.buf[:0], v.Bytes()...)
	s.best = datum.Bytes(s.buf)
	return nil
}

// takesEqual tells whether a later one of equal values is kept, which shows in
// numerics of different scale: PostgreSQL's larger and smaller functions of the
// string types keep the earlier one, all others the later.
func takesEqual(d *datum.Desc) bool { return d != datum.BpChar && d != datum.Text }

func (s *extremeState) Result(*Ctx) (datum.Datum, error) { return s.best, nil }

type boolState struct{ and, any, value bool }

func (s *boolState) Add(_ *Ctx, a []datum.Datum) error {
	v := a[0].Bool()
	switch {
	case !s.any:
		s.any, s.value = true, v
	case s.and:
		s.value = s.value && v
	default:
		s.value = s.value || v
	}
	return nil
}

func (s *boolState) Result(*Ctx) (datum.Datum, error) {
	if !s.any {
		return datum.Null, nil
	}
	return datum.Bool(s.value), nil
}

type bitState struct {
	op  byte // 'a'nd, 'o'r, 'x'or
	any bool
	v   int64
}

func (s *bitState) Add(_ *Ctx, a []datum.Datum) error {
	v := a[0].Int()
	switch {
	case !s.any:
		s.any, s.v = true, v
	case s.op == 'a':
		s.v &= v
	case s.op == 'o':
		s.v |= v
	default:
		s.v ^= v
	}
	return nil
}

func (s *bitState) Result(*Ctx) (datum.Datum, error) {
	if !s.any {
		return datum.Null, nil
	}
	return datum.Int(s.v), nil
}

// intSumState is sum(int2) and sum(int4), a bigint.
type intSumState struct {
	any bool
	sum int64
}

func (s *intSumState) Add(_ *Ctx, a []datum.Datum) error {
	s.any = true
	s.sum += a[0].Int() // 2^32 rows of int4 fit
	return nil
}

func (s *intSumState) Result(*Ctx) (datum.Datum, error) {
	if !s.any {
		return datum.Null, nil
	}
	return datum.Int(s.sum), nil
}

// numericSumState is sum and avg with a numeric result.
type numericSumState struct {
	sum      datum.NumericSum
	avg, int bool
}

func (s *numericSumState) Add(_ *Ctx, a []datum.Datum) error {
	if s.int {
		s.sum.AddInt(a[0].Int())
	} else {
		s.sum.Add(a[0])
	}
	return nil
}

func (s *numericSumState) Result(*Ctx) (datum.Datum, error) {
	switch {
	case s.sum.Count() == 0:
		return datum.Null, nil
	case s.avg:
		return s.sum.Avg()
	}
	return s.sum.Sum()
}

// floatSumState is sum(float4) and sum(float8).
type floatSumState struct {
	add arith
	any bool
	sum float64
}

func (s *floatSumState) Add(_ *Ctx, a []datum.Datum) (err error) {
	if !s.any {
		s.any, s.sum = true, a[0].Float()
		return nil
	}
	s.sum, err = s.add.compute(s.sum, a[0].Float())
	return err
}

func (s *floatSumState) Result(*Ctx) (datum.Datum, error) {
	if !s.any {
		return datum.Null, nil
	}
	return datum.Float(s.sum), nil
}

// intervalState is sum and avg of intervals.
type intervalState struct {
	avg bool
	n   int64
	sum datum.Datum
}

func (s *intervalState) Add(_ *Ctx, a []datum.Datum) (err error) {
	if s.n++; s.n == 1 {
		s.sum = datum.Clone(a[0])
		return nil
	}
	s.sum, err = datum.IntervalAdd(s.sum, a[0])
	return err
}

func (s *intervalState) Result(*Ctx) (datum.Datum, error) {
	switch {
	case s.n == 0:
		return datum.Null, nil
	case s.avg:
		return datum.IntervalDiv(s.sum, float64(s.n))
	}
	return s.sum, nil
}

func sumState(arg *datum.Desc) (func([]datum.Type) AggState, bool) {
	switch arg {
	case datum.Int2, datum.Int4:
		return func([]datum.Type) AggState { return new(intSumState) }, false
	case datum.Int8, datum.Numeric:
		return func([]datum.Type) AggState { return &numericSumState{int: arg == datum.Int8} }, false
	case datum.Float4, datum.Float8:
		return func([]datum.Type) AggState { return &floatSumState{add: arith{'+', arg == datum.Float4}} }, true
	case datum.Interval:
		return func([]datum.Type) AggState { return new(intervalState) }, false
	}
	return nil, false
}

func avgState(arg *datum.Desc) (func([]datum.Type) AggState, bool) {
	switch {
	case isInt(arg), arg == datum.Numeric:
		return func([]datum.Type) AggState { return &numericSumState{avg: true, int: arg != datum.Numeric} }, false
	case isFloat(arg):
		return func([]datum.Type) AggState { return &floatVarState{name: "avg"} }, true
	case arg == datum.Interval:
		return func([]datum.Type) AggState { return &intervalState{avg: true} }, false
	}
	return nil, false
}

// youngsCramer accumulates a sum and the sum of squared deviations without
// cancellation (float8_accum in float.c).
type youngsCramer struct{ n, sx, sxx float64 }

func (s *youngsCramer) add(v float64) error {
	n0, sx0 := s.n, s.sx
	s.n++
	s.sx += v
	if n0 == 0 {
		if math.IsNaN(v) || isInf(v) {
			s.sxx = math.NaN()
		}
		return nil
	}
	tmp := float64(v*s.n) - s.sx
	s.sxx += float64(tmp*tmp) / float64(s.n*n0)
	if isInf(s.sx) || isInf(s.sxx) {
		if !isInf(sx0) && !isInf(v) {
			return floatOverflow()
		}
		s.sxx = math.NaN()
	}
	return nil
}

// floatVarState is avg and the variance family over floats.
type floatVarState struct {
	name string
	acc  youngsCramer
}

func (s *floatVarState) Add(_ *Ctx, a []datum.Datum) error { return s.acc.add(a[0].Float()) }

func (s *floatVarState) Result(*Ctx) (datum.Datum, error) {
	n := s.acc.n
	switch {
	case n == 0, n == 1 && isSample(s.name):
		return datum.Null, nil
	case s.name == "avg":
		return datum.Float(s.acc.sx / n), nil
	case isSample(s.name):
		n--
	}
	v := s.acc.sxx / n
	if isStddev(s.name) {
		v = math.Sqrt(v)
	}
	return datum.Float(v), nil
}

func isStddev(name string) bool { return name[:3] == "std" }

// isSample: variance and stddev alone mean the sample's.
func isSample(name string) bool { return name != "avg" && name != "var_pop" && name != "stddev_pop" }

func varianceState(name string, arg *datum.Desc) (func([]datum.Type) AggState, bool) {
	if isFloat(arg) {
		return func([]datum.Type) AggState { return &floatVarState{name: name} }, true
	}
	return func([]datum.Type) AggState { return &numericVarState{name: name, int: arg != datum.Numeric} }, false
}
