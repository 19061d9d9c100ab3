package builtin

import (
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// parts are the ranges of a value, be it a range or a multirange.
func (r spanReader) parts(d datum.Datum) []span {
	if r.multi == nil {
		if s := r.read(d); !s.empty {
			return []span{s}
		}
		return nil
	}
	list := make([]span, 0, datum.MultirangeLen(d))
	for x := range datum.MultirangeRanges(r.multi, d) {
		var s span
		s.lower, s.upper, s.empty = datum.RangeBounds(r.rng, x)
		list = append(list, s)
	}
	return list
}

func (r spanReader) makeMulti(parts []span) (datum.Datum, error) {
	list := make([]datum.Datum, 0, len(parts))
	for _, s := range parts {
		d, err := r.make(s)
		if err != nil {
			return datum.Null, err
		}
		list = append(list, d)
	}
	return datum.MakeMultirange(r.rng.Multi, list), nil
}

// partsOverlap walks over two sorted lists at once.
func partsOverlap(t *datum.Desc, x, y []span) bool {
	for len(x) > 0 && len(y) > 0 {
		switch {
		case spanOverlaps(t, x[0], y[0]):
			return true
		case datum.CompareBounds(t, x[0].upper, y[0].upper) < 0:
			x = x[1:]
		default:
			y = y[1:]
		}
	}
	return false
}

// partsContain: each of y lies in one of x.
func partsContain(t *datum.Desc, x, y []span) bool {
	for len(y) > 0 {
		for len(x) > 0 && datum.CompareBounds(t, x[0].upper, y[0].upper) < 0 {
			x = x[1:]
		}
		if len(x) == 0 || !spanContains(t, x[0], y[0]) {
			return false
		}
		y = y[1:]
	}
	return true
}

func partsIntersect(t *datum.Desc, x, y []span) []span {
	var out []span
	for len(x) > 0 && len(y) > 0 {
		if s, _ := spanIntersect(t, x[0], y[0]); !s.empty {
			out = append(out, s)
		}
		if datum.CompareBounds(t, x[0].upper, y[0].upper) < 0 {
			x = x[1:]
		} else {
			y = y[1:]
		}
	}
	return out
}

func partsMinus(t *datum.Desc, x, y []span) []span {
	var out []span
	for _, s := range x {
		for len(y) > 0 && datum.CompareBounds(t, y[0].upper, s.lower) < 0 {
			y = y[1:]
		}
		for _, cut := range y {
			if s.empty || datum.CompareBounds(t, cut.lower, s.upper) > 0 {
				break
			}
			before, after := spanCut(t, s, cut)
			if !before.empty {
				out = append(out, before)
			}
			s = after
		}
		if !s.empty {
			out = append(out, s)
		}
	}
	return out
}

// partsCost charges for the ranges that an operator walks over.
func partsCost(c *Ctx, x, y []span) error { return c.Budget.Spend(int64(len(x)+len(y)) / 16) }

// bindParts implements the tests between two values of which one at least is a
// multirange.
func bindParts(is func(t *datum.Desc, x, y []span) bool, swap bool) func([]datum.Type, datum.Type) (Eval, error) {
	return func(args []datum.Type, _ datum.Type) (Eval, error) {
		l, r := spansOf(args[0]), spansOf(args[1])
		return func(c *Ctx, a []datum.Datum) (datum.Datum, error) {
			x, y := l.parts(a[0]), r.parts(a[1])
			if swap {
				x, y = y, x
			}
			if err := partsCost(c, x, y); err != nil {
				return datum.Null, err
			}
			return datum.Bool(is(l.rng, x, y)), nil
		}, nil
	}
}

func bindPartsOp(op func(t *datum.Desc, x, y []span) []span) func([]datum.Type, datum.Type) (Eval, error) {
	return func(args []datum.Type, _ datum.Type) (Eval, error) {
		r := spansOf(args[0])
		return func(c *Ctx, a []datum.Datum) (datum.Datum, error) {
			x, y := r.parts(a[0]), r.parts(a[1])
			if err := partsCost(c, x, y); err != nil {
				return datum.Null, err
			}
			return r.makeMulti(op(r.rng, x, y))
		}, nil
	}
}

func bindMultiElem(multiArg int) func([]datum.Type, datum.Type) (Eval, error) {
	return func(args []datum.Type, _ datum.Type) (Eval, error) {
		r := spansOf(args[multiArg])
		return func(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
			for _, s := range r.parts(a[multiArg]) {
				if spanContainsElem(r.rng, s, a[1-multiArg]) {
					return datum.Bool(true), nil
				}
			}
			return datum.Bool(false), nil
		}, nil
	}
}

// bindMultiConstructor implements the functions named after multirange types:
// without argument, from one range, from an array of ranges.
func bindMultiConstructor(args []datum.Type, ret datum.Type) (Eval, error) {
	t := ret.Root().Desc
	if len(args) == 0 {
		return func(*Ctx, []datum.Datum) (datum.Datum, error) { return datum.MakeMultirange(t, nil), nil }, nil
	}
	if !args[0].Root().Desc.IsArray() {
		return func(_ *Ctx, a []datum.Datum) (datum.Datum, error) { return datum.MakeMultirange(t, a[:1]), nil }, nil
	}
	return func(c *Ctx, a []datum.Datum) (datum.Datum, error) {
		if len(datum.ArrayDims(a[0])) > 1 {
			return datum.Null, pgerr.New(pgerr.CardinalityViolation, "multiranges cannot be constructed from multidimensional arrays")
		}
		list := datum.ArrayValues(a[0])
		for _, d := range list {
			if d.IsNull() {
				return datum.Null, pgerr.New(pgerr.NullValueNotAllowed, "multirange values cannot contain null members")
			}
		}
		if err := c.Budget.Spend(int64(len(list)) / 16); err != nil {
			return datum.Null, err
		}
		return datum.MakeMultirange(t, list), nil
	}, nil
}

// bindMultiMerge is range_merge of a multirange: from its first to its last bound.
func bindMultiMerge(args []datum.Type, _ datum.Type) (Eval, error) {
	r := spansOf(args[0])
	return func(_ *Ctx, a []datum.Datum) (datum.Datum, error) { return r.make(r.read(a[0])) }, nil
}

// bindMultiUnnest makes a row of every range.
func bindMultiUnnest(args []datum.Type) (SetEval, []Column, error) {
	t := args[0].Root().Desc
	return func(c *Ctx, a []datum.Datum, emit func([]datum.Datum) error) error {
		if a[0].IsNull() {
			return nil
		}
		out := emitter(c, emit)
		for d := range datum.MultirangeRanges(t, a[0]) {
			if err := out(d); err != nil {
				return err
			}
		}
		return nil
	}, []Column{{Name: "unnest", Type: datum.T(t.Range)}}, nil
}

var multirangeBinds = bindMap{
	"multirange_constructor0": bindMultiConstructor, "multirange_constructor1": bindMultiConstructor,
	"multirange_constructor2":   bindMultiConstructor,
	"range_overlaps_multirange": bindParts(partsOverlap, false), "multirange_overlaps_range": bindParts(partsOverlap, false),
	"multirange_overlaps_multirange": bindParts(partsOverlap, false),
	"multirange_contains_range":      bindParts(partsContain, false), "multirange_contains_multirange": bindParts(partsContain, false),
	"range_contains_multirange":     bindParts(partsContain, false),
	"range_contained_by_multirange": bindParts(partsContain, true), "multirange_contained_by_multirange": bindParts(partsContain, true),
	"multirange_contained_by_range": bindParts(partsContain, true),
	"multirange_contains_elem":      bindMultiElem(0), "elem_contained_by_multirange": bindMultiElem(1),
	"multirange_union":     bindPartsOp(func(_ *datum.Desc, x, y []span) []span { return append(x, y...) }),
	"multirange_intersect": bindPartsOp(partsIntersect), "multirange_intersect_agg_transfn": bindPartsOp(partsIntersect),
	"multirange_minus":            bindPartsOp(partsMinus),
	"range_merge_from_multirange": bindMultiMerge,
}

var multirangeBindSets = bindSetMap{"multirange_unnest": bindMultiUnnest}

// rangeAggState is range_agg: the union of ranges or multiranges, null if there
// was none.
type rangeAggState struct {
	in    spanReader
	any   bool
	list  []datum.Datum
	arena datum.Arena
}

func (s *rangeAggState) Add(c *Ctx, a []datum.Datum) error {
	s.any = true
	own := s.arena.Clone(a[0])
	if s.in.multi == nil {
		s.list = append(s.list, own)
	} else {
		for d := range datum.MultirangeRanges(s.in.multi, own) {
			s.list = append(s.list, d)
		}
	}
	return c.Budget.Spend(int64(len(a[0].Bytes())) / 64)
}

func (s *rangeAggState) Result(*Ctx) (datum.Datum, error) {
	if !s.any {
		return datum.Null, nil
	}
	return datum.MakeMultirange(s.in.rng.Multi, s.list), nil
}

// intersectAggState is range_intersect_agg.
type intersectAggState struct {
	in    spanReader
	any   bool
	value datum.Datum
}

func (s *intersectAggState) Add(c *Ctx, a []datum.Datum) error {
	if !s.any {
		s.any, s.value = true, datum.Clone(a[0])
		return nil
	}
	x, y := s.in.parts(s.value), s.in.parts(a[0])
	if err := partsCost(c, x, y); err != nil {
		return err
	}
	parts := partsIntersect(s.in.rng, x, y)
	var err error
	switch {
	case s.in.multi != nil:
		s.value, err = s.in.makeMulti(parts)
	case len(parts) == 0:
		s.value = datum.EmptyRange()
	default:
		s.value, err = s.in.make(parts[0])
	}
	return err
}

func (s *intersectAggState) Result(*Ctx) (datum.Datum, error) {
	if !s.any {
		return datum.Null, nil
	}
	return s.value, nil
}
