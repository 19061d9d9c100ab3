package builtin

import (
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// span is a range taken apart, or what lies between the ends of a multirange.
type span struct {
	lower, upper datum.Bound
	empty        bool
}

// spanReader reads values of one type, a range or a multirange, as spans of the
// range type.
type spanReader struct {
	rng   *datum.Desc
	multi *datum.Desc // nil for a range
}

func spansOf(t datum.Type) spanReader {
	d := t.Root().Desc
	if d.IsMultirange() {
		return spanReader{d.Range, d}
	}
	return spanReader{d, nil}
}

func (r spanReader) read(d datum.Datum) (s span) {
	if r.multi == nil {
		s.lower, s.upper, s.empty = datum.RangeBounds(r.rng, d)
		return s
	}
	s.empty = true
	for x := range datum.MultirangeRanges(r.multi, d) {
		lower, upper, _ := datum.RangeBounds(r.rng, x)
		if s.empty {
			s.lower, s.empty = lower, false
		}
		s.upper = upper
	}
	return s
}

// make is the range between two bounds, or the empty one.
func (r spanReader) make(s span) (datum.Datum, error) {
	if s.empty {
		return datum.EmptyRange(), nil
	}
	return datum.MakeRange(r.rng, s.lower, s.upper)
}

// bindEnd implements lower and upper: null for what is empty or infinite there.
func bindEnd(upper bool) func([]datum.Type, datum.Type) (Eval, error) {
	return func(args []datum.Type, _ datum.Type) (Eval, error) {
		r := spansOf(args[0])
		return func(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
			s := r.read(a[0])
			b := s.lower
			if upper {
				b = s.upper
			}
			if s.empty || b.Infinite {
				return datum.Null, nil
			}
			return b.Val, nil
		}, nil
	}
}

// bindSpanTest implements the functions that ask something of one range or
// multirange.
func bindSpanTest(is func(s span) bool) func([]datum.Type, datum.Type) (Eval, error) {
	return func(args []datum.Type, _ datum.Type) (Eval, error) {
		r := spansOf(args[0])
		return func(_ *Ctx, a []datum.Datum) (datum.Datum, error) { return datum.Bool(is(r.read(a[0]))), nil }, nil
	}
}

// bindSpanPair implements the operators that see of a multirange only its ends;
// what is empty has no position, so that all of them are false for it.
func bindSpanPair(is func(t *datum.Desc, x, y span) bool) func([]datum.Type, datum.Type) (Eval, error) {
	return func(args []datum.Type, _ datum.Type) (Eval, error) {
		l, r := spansOf(args[0]), spansOf(args[1])
		return func(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
			x, y := l.read(a[0]), r.read(a[1])
			return datum.Bool(!x.empty && !y.empty && is(l.rng, x, y)), nil
		}, nil
	}
}

func spanBefore(t *datum.Desc, x, y span) bool { return datum.CompareBounds(t, x.upper, y.lower) < 0 }
func spanAfter(t *datum.Desc, x, y span) bool  { return datum.CompareBounds(t, x.lower, y.upper) > 0 }
func spanOverLeft(t *datum.Desc, x, y span) bool {
	return datum.CompareBounds(t, x.upper, y.upper) <= 0
}
func spanOverRight(t *datum.Desc, x, y span) bool {
	return datum.CompareBounds(t, x.lower, y.lower) >= 0
}
func spanAdjacent(t *datum.Desc, x, y span) bool {
	return datum.BoundsAdjacent(t, x.upper, y.lower) || datum.BoundsAdjacent(t, y.upper, x.lower)
}

// spanContains: the empty range lies in everything.
func spanContains(t *datum.Desc, x, y span) bool {
	switch {
	case y.empty:
		return true
	case x.empty:
		return false
	}
	return datum.CompareBounds(t, x.lower, y.lower) <= 0 && datum.CompareBounds(t, x.upper, y.upper) >= 0
}

func spanOverlaps(t *datum.Desc, x, y span) bool {
	return !x.empty && !y.empty && datum.CompareBounds(t, x.lower, y.upper) <= 0 && datum.CompareBounds(t, y.lower, x.upper) <= 0
}

func spanContainsElem(t *datum.Desc, x span, v datum.Datum) bool {
	if x.empty {
		return false
	}
	at := datum.Bound{Val: v, Inclusive: true, Lower: true}
	if datum.CompareBounds(t, x.lower, at) > 0 {
		return false
	}
	at.Lower = false
	return datum.CompareBounds(t, x.upper, at) >= 0
}

// bindRangePair implements the tests over two ranges in which empty ones count.
func bindRangePair(is func(t *datum.Desc, x, y span) bool, swap bool) func([]datum.Type, datum.Type) (Eval, error) {
	return func(args []datum.Type, _ datum.Type) (Eval, error) {
		r := spansOf(args[0])
		return func(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
			x, y := r.read(a[0]), r.read(a[1])
			if swap {
				x, y = y, x
			}
			return datum.Bool(is(r.rng, x, y)), nil
		}, nil
	}
}

// bindRangeElem implements range @> element and element <@ range.
func bindRangeElem(rangeArg int) func([]datum.Type, datum.Type) (Eval, error) {
	return func(args []datum.Type, _ datum.Type) (Eval, error) {
		r := spansOf(args[rangeArg])
		return func(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
			return datum.Bool(spanContainsElem(r.rng, r.read(a[rangeArg]), a[1-rangeArg])), nil
		}, nil
	}
}

// bindRangeOp implements the operators that make a range of two.
func bindRangeOp(op func(t *datum.Desc, x, y span) (span, error)) func([]datum.Type, datum.Type) (Eval, error) {
	return func(args []datum.Type, _ datum.Type) (Eval, error) {
		r := spansOf(args[0])
		return func(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
			s, err := op(r.rng, r.read(a[0]), r.read(a[1]))
			if err != nil {
				return datum.Null, err
			}
			return r.make(s)
		}, nil
	}
}

// spanMerge is range_merge: the smallest range that holds both.
func spanMerge(t *datum.Desc, x, y span) (span, error) {
	switch {
	case x.empty:
		return y, nil
	case y.empty:
		return x, nil
	}
	if datum.CompareBounds(t, y.lower, x.lower) < 0 {
		x.lower = y.lower
	}
	if datum.CompareBounds(t, y.upper, x.upper) > 0 {
		x.upper = y.upper
	}
	return x, nil
}

func spanUnion(t *datum.Desc, x, y span) (span, error) {
	if !x.empty && !y.empty && !spanOverlaps(t, x, y) && !spanAdjacent(t, x, y) {
		return span{}, pgerr.New(pgerr.DataException, "result of range union would not be contiguous")
	}
	return spanMerge(t, x, y)
}

func spanIntersect(t *datum.Desc, x, y span) (span, error) {
	if !spanOverlaps(t, x, y) {
		return span{empty: true}, nil
	}
	if datum.CompareBounds(t, y.lower, x.lower) > 0 {
		x.lower = y.lower
	}
	if datum.CompareBounds(t, y.upper, x.upper) < 0 {
		x.upper = y.upper
	}
	return x, nil
}

func spanMinus(t *datum.Desc, x, y span) (span, error) {
	before, after := spanCut(t, x, y)
	switch {
	case before.empty:
		return after, nil
	case after.empty:
		return before, nil
	}
	return span{}, pgerr.New(pgerr.DataException, "result of range difference would not be contiguous")
}

// spanCut is what is left of x below and above y. Where y lies outside of x, all
// of x is on one side.
func spanCut(t *datum.Desc, x, y span) (before, after span) {
	before, after = span{empty: true}, span{empty: true}
	if x.empty || y.empty || datum.CompareBounds(t, x.upper, y.lower) < 0 {
		return x, after
	}
	if datum.CompareBounds(t, x.lower, y.upper) > 0 {
		return before, x
	}
	if datum.CompareBounds(t, x.lower, y.lower) < 0 {
		before = span{lower: x.lower, upper: datum.Bound{Val: y.lower.Val, Inclusive: !y.lower.Inclusive}}
	}
	if datum.CompareBounds(t, x.upper, y.upper) > 0 {
		after = span{lower: datum.Bound{Val: y.upper.Val, Inclusive: !y.upper.Inclusive, Lower: true}, upper: x.upper}
	}
	return before, after
}

// bindRangeConstructor implements the functions named after range types: null
// bounds are infinite.
func bindRangeConstructor(_ []datum.Type, ret datum.Type) (Eval, error) {
	t := ret.Root().Desc
	return func(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
		flags := "[)"
		if len(a) == 3 {
			if a[2].IsNull() {
				return datum.Null, pgerr.New(pgerr.DataException, "range constructor flags argument must not be null")
			}
			flags = a[2].Str()
		}
		if len(flags) != 2 || flags[0] != '[' && flags[0] != '(' || flags[1] != ']' && flags[1] != ')' {
			return datum.Null, pgerr.New(pgerr.SyntaxError, "invalid range bound flags").
				WithHint("Valid values are \"[]\", \"[)\", \"(]\", and \"()\".")
		}
		return datum.MakeRange(t, datum.Bound{Val: a[0], Infinite: a[0].IsNull(), Inclusive: flags[0] == '[', Lower: true},
			datum.Bound{Val: a[1], Infinite: a[1].IsNull(), Inclusive: flags[1] == ']'})
	}, nil
}

func bindRangeSame([]datum.Type, datum.Type) (Eval, error) {
	return func(_ *Ctx, a []datum.Datum) (datum.Datum, error) { return a[0], nil }, nil
}

var rangeBinds = bindMap{
	"range_constructor2": bindRangeConstructor, "range_constructor3": bindRangeConstructor,
	"range_lower": bindEnd(false), "range_upper": bindEnd(true),
	"multirange_lower": bindEnd(false), "multirange_upper": bindEnd(true),
	"range_empty":     bindSpanTest(func(s span) bool { return s.empty }),
	"range_lower_inc": bindSpanTest(func(s span) bool { return !s.empty && s.lower.Inclusive }),
	"range_upper_inc": bindSpanTest(func(s span) bool { return !s.empty && s.upper.Inclusive }),
	"range_lower_inf": bindSpanTest(func(s span) bool { return !s.empty && s.lower.Infinite }),
	"range_upper_inf": bindSpanTest(func(s span) bool { return !s.empty && s.upper.Infinite }),

	"multirange_empty":     bindSpanTest(func(s span) bool { return s.empty }),
	"multirange_lower_inc": bindSpanTest(func(s span) bool { return !s.empty && s.lower.Inclusive }),
	"multirange_upper_inc": bindSpanTest(func(s span) bool { return !s.empty && s.upper.Inclusive }),
	"multirange_lower_inf": bindSpanTest(func(s span) bool { return !s.empty && s.lower.Infinite }),
	"multirange_upper_inf": bindSpanTest(func(s span) bool { return !s.empty && s.upper.Infinite }),

	"range_before": bindSpanPair(spanBefore), "range_before_multirange": bindSpanPair(spanBefore),
	"multirange_before_range": bindSpanPair(spanBefore), "multirange_before_multirange": bindSpanPair(spanBefore),
	"range_after": bindSpanPair(spanAfter), "range_after_multirange": bindSpanPair(spanAfter),
	"multirange_after_range": bindSpanPair(spanAfter), "multirange_after_multirange": bindSpanPair(spanAfter),
	"range_overleft": bindSpanPair(spanOverLeft), "range_overleft_multirange": bindSpanPair(spanOverLeft),
	"multirange_overleft_range": bindSpanPair(spanOverLeft), "multirange_overleft_multirange": bindSpanPair(spanOverLeft),
	"range_overright": bindSpanPair(spanOverRight), "range_overright_multirange": bindSpanPair(spanOverRight),
	"multirange_overright_range": bindSpanPair(spanOverRight), "multirange_overright_multirange": bindSpanPair(spanOverRight),
	"range_adjacent": bindSpanPair(spanAdjacent), "range_adjacent_multirange": bindSpanPair(spanAdjacent),
	"multirange_adjacent_range": bindSpanPair(spanAdjacent), "multirange_adjacent_multirange": bindSpanPair(spanAdjacent),

	"range_overlaps":      bindRangePair(spanOverlaps, false),
	"range_contains":      bindRangePair(spanContains, false),
	"range_contained_by":  bindRangePair(spanContains, true),
	"range_contains_elem": bindRangeElem(0), "elem_contained_by_range": bindRangeElem(1),

	"range_union": bindRangeOp(spanUnion), "range_intersect": bindRangeOp(spanIntersect), "range_minus": bindRangeOp(spanMinus),
	"range_merge": bindRangeOp(spanMerge), "range_intersect_agg_transfn": bindRangeOp(spanIntersect),

	"range_cmp": bindCompare, "multirange_cmp": bindCompare,
	"int4range_canonical": bindRangeSame, "int8range_canonical": bindRangeSame, "daterange_canonical": bindRangeSame,
	"range_send": bindSend, "multirange_send": bindSend,
}

// bindCompare implements the comparison functions behind btree indexes.
func bindCompare(args []datum.Type, _ datum.Type) (Eval, error) {
	t := args[0].Root()
	if t.Compare == nil {
		return nil, noOrder(t)
	}
	return func(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
		return datum.Int(int64(sign(t.Compare(a[0], a[1])))), nil
	}, nil
}

func sign(c int) int {
	switch {
	case c < 0:
		return -1
	case c > 0:
		return 1
	}
	return 0
}

// bindSend implements the functions that give the binary form.
func bindSend(args []datum.Type, _ datum.Type) (Eval, error) {
	t := args[0]
	return func(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
		return datum.Bytes(t.AppendBinary(nil, a[0])), nil
	}, nil
}

// The functions that measure how far two values of a subtype are apart.
var rangeEvals = evalMap{
	"int4range_subdiff": func(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
		return datum.Float(float64(a[0].Int()) - float64(a[1].Int())), nil
	},
	"int8range_subdiff": func(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
		return datum.Float(float64(a[0].Int()) - float64(a[1].Int())), nil
	},
	"daterange_subdiff": func(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
		return datum.Float(float64(a[0].Int() - a[1].Int())), nil
	},
	"numrange_subdiff": func(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
		d, err := datum.NumericSub(a[0], a[1])
		if err != nil {
			return datum.Null, err
		}
		f, err := datum.NumericToFloat(d)
		return datum.Float(f), err
	},
	"tsrange_subdiff":   timestampSubdiff,
	"tstzrange_subdiff": timestampSubdiff,
}

func timestampSubdiff(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
	return datum.Float((float64(a[0].Int()) - float64(a[1].Int())) / 1e6), nil
}
