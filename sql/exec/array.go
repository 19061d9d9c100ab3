package exec

import (
	"slices"

	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
	"github.com/tallystick/tallystick/sql/plan"
)

// elemOf is the element type of an array type, or nil.
func elemOf(t datum.Type) *datum.Desc {
	if r := t.Root(); r.Desc != nil {
		return r.Elem
	}
	return nil
}

func (c *compiler) coerceArray(e *plan.CoerceArray) (evalFunc, error) {
	arg, err := c.expr(e.Arg)
	if err != nil {
		return nil, err
	}
	elem, err := c.expr(e.Elem)
	if err != nil {
		return nil, err
	}
	desc, slot := elemOf(e.Type()), e.ElemSlot
	return func(f *frame) (datum.Datum, error) {
		d, err := arg(f)
		if err != nil || d.IsNull() {
			return datum.Null, err
		}
		dims, vals := datum.ArrayDims(d), datum.ArrayValues(d)
		out := make([]datum.Datum, len(vals))
		for i, v := range vals {
			f.slots[slot] = v
			if out[i], err = elem(f); err != nil {
				return datum.Null, err
			}
		}
		return datum.MakeArrayND(desc, dims, out)
	}, nil
}

func (c *compiler) arrayExpr(e *plan.ArrayExpr) (evalFunc, error) {
	args, err := c.exprs(e.Args)
	if err != nil {
		return nil, err
	}
	base, n, desc := c.scratch(len(args)), len(args), elemOf(e.Type())
	nested := e.Nested
	return func(f *frame) (datum.Datum, error) {
		room := f.args[base : base+n : base+n]
		if _, err := evalArgs(f, args, room); err != nil {
			return datum.Null, err
		}
		if err := f.spend(1); err != nil {
			return datum.Null, err
		}
		if nested {
			return nestArrays(desc, room)
		}
		return datum.MakeArray(desc, room), nil
	}, nil
}

// nestArrays makes one array of arrays that have equal dimensions. Empty and
// null members make the result empty if there are only such, else they do not
// match the others.
func nestArrays(elem *datum.Desc, members []datum.Datum) (datum.Datum, error) {
	var dims []datum.ArrayDim
	var vals []datum.Datum
	empty := 0
	for _, m := range members {
		var d []datum.ArrayDim
		if !m.IsNull() {
			d = datum.ArrayDims(m)
		}
		if len(d) == 0 {
			empty++
			continue
		}
		if dims == nil {
			dims = d
		} else if !slices.Equal(dims, d) {
			return datum.Null, errArrayMismatch()
		}
		vals = append(vals, datum.ArrayValues(m)...)
	}
	if empty == len(members) {
		return datum.MakeArray(elem, nil), nil
	}
	if empty > 0 {
		return datum.Null, errArrayMismatch()
	}
	dims = append([]datum.ArrayDim{{Len: int32(len(members)), Lower: 1}}, dims...)
	return datum.MakeArrayND(elem, dims, vals)
}

func errArrayMismatch() error {
	return pgerr.New(pgerr.ArraySubscriptError, "multidimensional arrays must have array expressions with matching dimensions")
}

// anyAll is operator ANY/ALL (array). Over no elements ANY is false and ALL
// true, even for a null left side.
func (c *compiler) anyAll(e *plan.AnyAll) (evalFunc, error) {
	if ev, err := c.anyConst(e); ev != nil || err != nil {
		return ev, err
	}
	args, err := c.exprs([]plan.Expr{e.Left, e.Array})
	if err != nil {
		return nil, err
	}
	left, array, decisive := args[0], args[1], !e.All
	test := c.equality(e.Eval)
	return func(f *frame) (datum.Datum, error) {
		x, err := left(f)
		if err != nil {
			return datum.Null, err
		}
		arr, err := array(f)
		if err != nil || arr.IsNull() {
			return datum.Null, err
		}
		result := datum.Bool(!decisive)
		for v := range datum.ArrayElems(arr) {
			if x.IsNull() || v.IsNull() {
				result = datum.Null
				continue
			}
			d, err := test(f, x, v)
			if err != nil {
				return datum.Null, err
			}
			if d.IsNull() {
				result = datum.Null
			} else if d.Bool() == decisive {
				return d, nil
			}
		}
		return result, nil
	}, nil
}

// listSearchMin is the length from which a constant list is searched by
// bisection instead of from end to end.
const listSearchMin = 9

// anyConst is x = ANY of a long constant list of the type of x: the list is
// sorted at compile time.
func (c *compiler) anyConst(e *plan.AnyAll) (evalFunc, error) {
	list, ok := e.Array.(*plan.Const)
	elem := elemOf(e.Array.Type())
	if !ok || !e.Equality || e.All || list.Value.IsNull() || elem == nil || elem.Compare == nil ||
		!e.Left.Type().Same(datum.T(elem)) {
		return nil, nil
	}
	vals, null := make([]datum.Datum, 0, 16), false
	for v := range datum.ArrayElems(list.Value) {
		if v.IsNull() {
			null = true
		} else {
			vals = append(vals, v)
		}
	}
	if len(vals) < listSearchMin {
		return nil, nil
	}
	slices.SortFunc(vals, elem.Compare)
	left, err := c.expr(e.Left)
	if err != nil {
		return nil, err
	}
	missing := datum.Bool(false)
	if null {
		missing = datum.Null
	}
	cmp := elem.Compare
	return func(f *frame) (datum.Datum, error) {
		x, err := left(f)
		if err != nil || x.IsNull() {
			return datum.Null, err
		}
		if err := f.spend(1); err != nil {
			return datum.Null, err
		}
		if _, found := slices.BinarySearchFunc(vals, x, cmp); found {
			return datum.Bool(true), nil
		}
		return missing, nil
	}, nil
}

func (c *compiler) subscript(e *plan.Subscript) (evalFunc, error) {
	if e.Array.Type().Root().Desc == datum.JSONB {
		return nil, pgerr.NotBuilt("subscripts of jsonb are not supported")
	}
	array, err := c.expr(e.Array)
	if err != nil {
		return nil, err
	}
	if e.Slice {
		return c.slice(e, array)
	}
	index, err := c.exprs(e.Index)
	if err != nil {
		return nil, err
	}
	return func(f *frame) (datum.Datum, error) {
		arr, err := array(f)
		if err != nil || arr.IsNull() {
			return datum.Null, err
		}
		var room [6]int32
		subs := room[:0]
		for _, ix := range index {
			d, err := ix(f)
			if err != nil || d.IsNull() {
				return datum.Null, err
			}
			subs = append(subs, int32(d.Int()))
		}
		return datum.ArrayIndex(arr, subs...), nil
	}, nil
}

// slice compiles array[lo:hi, ...]. Bounds left out are those of the array; a
// null bound makes the result null; what lies outside is cut off and an empty
// slice is the empty array. Subscripts start at 1 again.
func (c *compiler) slice(e *plan.Subscript, array evalFunc) (evalFunc, error) {
	lo, err := c.exprs(e.Lo)
	if err != nil {
		return nil, err
	}
	hi, err := c.exprs(e.Hi)
	if err != nil {
		return nil, err
	}
	elem := elemOf(e.Array.Type())
	return func(f *frame) (datum.Datum, error) {
		arr, err := array(f)
		if err != nil || arr.IsNull() {
			return datum.Null, err
		}
		dims := datum.ArrayDims(arr)
		from, to := make([]int64, len(lo)), make([]int64, len(hi))
		for i := range lo {
			if i < len(dims) {
				from[i], to[i] = int64(dims[i].Lower), int64(dims[i].Lower)+int64(dims[i].Len)-1
			}
			for _, b := range []struct {
				ev  evalFunc
				dst *int64
			}{{lo[i], &from[i]}, {hi[i], &to[i]}} {
				if b.ev == nil {
					continue
				}
				d, err := b.ev(f)
				if err != nil || d.IsNull() {
					return datum.Null, err
				}
				*b.dst = d.Int()
			}
		}
		return sliceArray(elem, arr, dims, from, to)
	}, nil
}

func sliceArray(elem *datum.Desc, arr datum.Datum, dims []datum.ArrayDim, from, to []int64) (datum.Datum, error) {
	if len(from) > len(dims) {
		return datum.MakeArray(elem, nil), nil
	}
	out := make([]datum.ArrayDim, len(dims))
	start := make([]int64, len(dims)) // offset in each dimension
	n := 1
	for i, d := range dims {
		lo, hi := int64(d.Lower), int64(d.Lower)+int64(d.Len)-1
		if i < len(from) {
			lo, hi = max(lo, from[i]), min(hi, to[i])
		}
		if hi < lo {
			return datum.MakeArray(elem, nil), nil
		}
		out[i] = datum.ArrayDim{Len: int32(hi - lo + 1), Lower: 1}
		start[i] = lo - int64(d.Lower)
		n *= int(out[i].Len)
	}
	vals := datum.ArrayValues(arr)
	part := make([]datum.Datum, 0, n)
	at := make([]int64, len(dims))
	for {
		flat := int64(0)
		for i := range dims {
			flat = flat*int64(dims[i].Len) + start[i] + at[i]
		}
		part = append(part, vals[flat])
		i := len(dims) - 1
		for ; i >= 0; i-- {
			if at[i]++; at[i] < int64(out[i].Len) {
				break
			}
			at[i] = 0
		}
		if i < 0 {
			return datum.MakeArrayND(elem, out, part)
		}
	}
}
