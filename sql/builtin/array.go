package builtin

import (
	"strconv"

	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// elemOf is the element type of an array argument.
func elemOf(t datum.Type) *datum.Desc {
	if e := elementOf(t.Root().Desc); e != nil {
		return e
	}
	return datum.Text
}

// oneDimension checks that an array has at most one dimension and returns its
// lower bound.
func oneDimension(d datum.Datum) (lower int32, err error) {
	dims := datum.ArrayDims(d)
	switch len(dims) {
	case 0:
		return 1, nil
	case 1:
		return dims[0].Lower, nil
	}
	return 0, pgerr.New(pgerr.DataException, "argument must be empty or one-dimensional array")
}

// make1D builds a one-dimensional array with a lower bound.
func make1D(elem *datum.Desc, lower int32, vals []datum.Datum) (datum.Datum, error) {
	if lower == 1 || len(vals) == 0 {
		return datum.MakeArray(elem, vals), nil
	}
	return datum.MakeArrayND(elem, []datum.ArrayDim{{Len: int32(len(vals)), Lower: lower}}, vals)
}

func bindArrayAppend(args []datum.Type, _ datum.Type) (Eval, error) {
	elem := elemOf(args[0])
	return func(c *Ctx, a []datum.Datum) (datum.Datum, error) { return extendArray(c, elem, a[0], a[1], false) }, nil
}

func bindArrayPrepend(args []datum.Type, _ datum.Type) (Eval, error) {
	elem := elemOf(args[1])
	return func(c *Ctx, a []datum.Datum) (datum.Datum, error) { return extendArray(c, elem, a[1], a[0], true) }, nil
}

func extendArray(c *Ctx, elem *datum.Desc, array, v datum.Datum, front bool) (datum.Datum, error) {
	var vals []datum.Datum
	lower := int32(1)
	if !array.IsNull() {
		var err error
		if lower, err = oneDimension(array); err != nil {
			return datum.Null, err
		}
		vals = datum.ArrayValues(array)
		if err := c.Budget.Spend(int64(len(vals)) / 16); err != nil {
			return datum.Null, err
		}
	}
	out := make([]datum.Datum, 0, len(vals)+1)
	if front {
		out = append(out, v)
	}
	out = append(out, vals...)
	if !front {
		out = append(out, v)
	}
	return make1D(elem, lower, out)
}

// bindArrayCat concatenates arrays of the same number of dimensions, or appends
// an array to one that has one dimension more.
func bindArrayCat(args []datum.Type, _ datum.Type) (Eval, error) {
	elem := elemOf(args[0])
	return func(c *Ctx, a []datum.Datum) (datum.Datum, error) {
		x, y := a[0], a[1]
		switch {
		case x.IsNull():
			return y, nil
		case y.IsNull() || datum.ArrayLen(y) == 0:
			return x, nil
		case datum.ArrayLen(x) == 0:
			return y, nil
		}
		dims, err := catDims(datum.ArrayDims(x), datum.ArrayDims(y))
		if err != nil {
			return datum.Null, err
		}
		vals := datum.ArrayValues(x)
		vals = append(vals[:len(vals):len(vals)], datum.ArrayValues(y)...)
		if err := c.Budget.Spend(int64(len(vals)) / 16); err != nil {
			return datum.Null, err
		}
		return datum.MakeArrayND(elem, dims, vals)
	}, nil
}

func catDims(x, y []datum.ArrayDim) ([]datum.ArrayDim, error) {
	incompatible := pgerr.New(pgerr.ArraySubscriptError, "cannot concatenate incompatible arrays")
	outer, inner, same := x, y, len(x) == len(y)
	switch {
	case same:
	case len(x) == len(y)+1:
	case len(y) == len(x)+1:
		outer, inner = y, x
	default:
		return nil, incompatible.WithDetail("Arrays of %d and %d dimensions are not compatible for concatenation.", len(x), len(y))
	}
	rest := inner
	grow := int32(1)
	if same {
		rest, grow = inner[1:], inner[0].Len
	}
	for i := range rest {
		if rest[i] != outer[i+1] {
			what := "Arrays with differing dimensions are not compatible for concatenation."
			if same {
				what = "Arrays with differing element dimensions are not compatible for concatenation."
			}
			return nil, incompatible.WithDetail("%s", what)
		}
	}
	dims := append([]datum.ArrayDim(nil), outer...)
	dims[0].Len += grow
	return dims, nil
}

// dimension returns dimension n (from 1); ok is false if there is none.
func dimension(a []datum.Datum) (dim datum.ArrayDim, ok bool) {
	dims, n := datum.ArrayDims(a[0]), a[1].Int()
	if n < 1 || n > int64(len(dims)) {
		return dim, false
	}
	return dims[n-1], true
}

func arrayDim(f func(d datum.ArrayDim) int32) Eval {
	return func(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
		d, ok := dimension(a)
		if !ok {
			return datum.Null, nil
		}
		return datum.Int(int64(f(d))), nil
	}
}

func arrayNDims(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
	n := len(datum.ArrayDims(a[0]))
	if n == 0 {
		return datum.Null, nil
	}
	return datum.Int(int64(n)), nil
}

func arrayDimsText(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
	dims := datum.ArrayDims(a[0])
	if len(dims) == 0 {
		return datum.Null, nil
	}
	var b []byte
	for _, d := range dims {
		b = append(b, '[')
		b = strconv.AppendInt(b, int64(d.Lower), 10)
		b = append(b, ':')
		b = strconv.AppendInt(b, int64(d.Lower)+int64(d.Len)-1, 10)
		b = append(b, ']')
	}
	return datum.Bytes(b), nil
}

// equality is the notion of sameness of the search functions: null is only null.
func equality(t *datum.Desc) (func(a, b datum.Datum) bool, error) {
	if t.Compare == nil {
		return nil, pgerr.New(pgerr.UndefinedFunction, "could not identify an equality operator for type %s", typeName(datum.T(t)))
	}
	return func(a, b datum.Datum) bool {
		if a.IsNull() || b.IsNull() {
			return a.IsNull() && b.IsNull()
		}
		return t.Compare(a, b) == 0
	}, nil
}

func bindArrayPosition(all bool) func([]datum.Type, datum.Type) (Eval, error) {
	return func(args []datum.Type, _ datum.Type) (Eval, error) {
		equal, err := equality(elemOf(args[0]))
		if err != nil {
			return nil, err
		}
		return func(c *Ctx, a []datum.Datum) (datum.Datum, error) {
			if a[0].IsNull() {
				return datum.Null, nil
			}
			if len(datum.ArrayDims(a[0])) > 1 {
				return datum.Null, pgerr.New(pgerr.FeatureNotSupported, "searching for elements in multidimensional arrays is not supported")
			}
			from := int64(-1 << 31)
			if len(a) == 3 {
				if a[2].IsNull() {
					return datum.Null, pgerr.New(pgerr.NullValueNotAllowed, "initial position must not be null")
				}
				from = a[2].Int()
			}
			return findElements(a[0], a[1], from, all, equal), nil
		}, nil
	}
}

func findElements(array, v datum.Datum, from int64, all bool, equal func(a, b datum.Datum) bool) datum.Datum {
	var found []datum.Datum
	at := int64(1)
	if dims := datum.ArrayDims(array); len(dims) == 1 {
		at = int64(dims[0].Lower)
	}
	for e := range datum.ArrayElems(array) {
		if at >= from && equal(e, v) {
			if !all {
				return datum.Int(at)
			}
			found = append(found, datum.Int(at))
		}
		at++
	}
	if !all {
		return datum.Null
	}
	return datum.MakeArray(datum.Int4, found)
}

func bindArrayRemove(args []datum.Type, _ datum.Type) (Eval, error) {
	elem := elemOf(args[0])
	equal, err := equality(elem)
	if err != nil {
		return nil, err
	}
	return func(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
		if a[0].IsNull() {
			return datum.Null, nil
		}
		dims := datum.ArrayDims(a[0])
		if len(dims) == 0 {
			return a[0], nil
		}
		if len(dims) > 1 {
			return datum.Null, pgerr.New(pgerr.FeatureNotSupported, "removing elements from multidimensional arrays is not supported")
		}
		var out []datum.Datum
		for e := range datum.ArrayElems(a[0]) {
			if !equal(e, a[1]) {
				out = append(out, e)
			}
		}
		return make1D(elem, dims[0].Lower, out)
	}, nil
}

func bindArrayReplace(args []datum.Type, _ datum.Type) (Eval, error) {
	elem := elemOf(args[0])
	equal, err := equality(elem)
	if err != nil {
		return nil, err
	}
	return func(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
		if a[0].IsNull() {
			return datum.Null, nil
		}
		out := append([]datum.Datum(nil), datum.ArrayValues(a[0])...)
		for i := range out {
			if equal(out[i], a[1]) {
				out[i] = a[2]
			}
		}
		return datum.MakeArrayND(elem, datum.ArrayDims(a[0]), out)
	}, nil
}

// maxArrayElems bounds what array_fill and array_agg make, as MaxArraySize does.
const maxArrayElems = 1 << 27

func bindArrayFill(args []datum.Type, ret datum.Type) (Eval, error) {
	elem := elemOf(ret)
	return func(c *Ctx, a []datum.Datum) (datum.Datum, error) {
		if a[1].IsNull() || len(a) == 3 && a[2].IsNull() {
			return datum.Null, pgerr.New(pgerr.NullValueNotAllowed, "dimension array or low bound array cannot be null")
		}
		dims, err := fillDims(a)
		if err != nil || len(dims) == 0 {
			return datum.MakeArray(elem, nil), err
		}
		n := int64(1)
		for _, d := range dims {
			if d.Len < 0 || n*int64(d.Len) > maxArrayElems {
				return datum.Null, pgerr.New(pgerr.ProgramLimitExceeded, "array size exceeds the maximum allowed (%d)", maxArrayElems-1)
			}
			n *= int64(d.Len)
		}
		if n == 0 {
			return datum.MakeArray(elem, nil), nil
		}
		if err := c.Budget.Spend(n); err != nil {
			return datum.Null, err
		}
		vals := make([]datum.Datum, n)
		for i := range vals {
			vals[i] = a[0]
		}
		return datum.MakeArrayND(elem, dims, vals)
	}, nil
}

func fillDims(a []datum.Datum) ([]datum.ArrayDim, error) {
	wrong := pgerr.New(pgerr.ArraySubscriptError, "wrong number of array subscripts")
	if len(datum.ArrayDims(a[1])) > 1 {
		return nil, wrong.WithDetail("Dimension array must be one dimensional.")
	}
	lens := datum.ArrayValues(a[1])
	if len(lens) > 6 {
		return nil, pgerr.New(pgerr.ProgramLimitExceeded, "number of array dimensions (%d) exceeds the maximum allowed (%d)", len(lens), 6)
	}
	dims := make([]datum.ArrayDim, len(lens))
	for i, l := range lens {
		if l.IsNull() {
			return nil, pgerr.New(pgerr.NullValueNotAllowed, "dimension values cannot be null")
		}
		dims[i] = datum.ArrayDim{Len: int32(l.Int()), Lower: 1}
	}
	if len(a) < 3 {
		return dims, nil
	}
	lowers := datum.ArrayValues(a[2])
	if len(lowers) != len(lens) {
		return nil, wrong.WithDetail("Low bound array has different size than dimensions array.")
	}
	for i, l := range lowers {
		if l.IsNull() {
			return nil, pgerr.New(pgerr.NullValueNotAllowed, "dimension values cannot be null")
		}
		dims[i].Lower = int32(l.Int())
	}
	return dims, nil
}

func bindTrimArray(args []datum.Type, _ datum.Type) (Eval, error) {
	elem := elemOf(args[0])
	return func(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
		dims := append([]datum.ArrayDim(nil), datum.ArrayDims(a[0])...)
		size := int64(0)
		if len(dims) > 0 {
			size = int64(dims[0].Len)
		}
		n := a[1].Int()
		if n < 0 || n > size {
			return datum.Null, pgerr.New(pgerr.ArraySubscriptError, "number of elements to trim must be between 0 and %d", size)
		}
		if n == size {
			return datum.MakeArray(elem, nil), nil
		}
		vals := datum.ArrayValues(a[0])
		dims[0].Len -= int32(n)
		return datum.MakeArrayND(elem, dims, vals[:int64(len(vals))/size*(size-n)])
	}, nil
}

// bindContainment implements @>, <@ and &&. Nulls are equal to nothing.
func bindContainment(f func(x, y []datum.Datum, compare func(a, b datum.Datum) int) bool) func([]datum.Type, datum.Type) (Eval, error) {
	return func(args []datum.Type, _ datum.Type) (Eval, error) {
		elem := elemOf(args[0])
		if _, err := equality(elem); err != nil {
			return nil, err
		}
		return func(c *Ctx, a []datum.Datum) (datum.Datum, error) {
			x, y := datum.ArrayValues(a[0]), datum.ArrayValues(a[1])
			if err := c.Budget.Spend(int64(len(x)) * int64(len(y)) / 16); err != nil {
				return datum.Null, err
			}
			return datum.Bool(f(x, y, elem.Compare)), nil
		}, nil
	}
}

func has(list []datum.Datum, v datum.Datum, compare func(a, b datum.Datum) int) bool {
	if v.IsNull() {
		return false
	}
	for _, e := range list {
		if !e.IsNull() && compare(e, v) == 0 {
			return true
		}
	}
	return false
}

func containsAll(x, y []datum.Datum, compare func(a, b datum.Datum) int) bool {
	for _, v := range y {
		if !has(x, v, compare) {
			return false
		}
	}
	return true
}

func overlap(x, y []datum.Datum, compare func(a, b datum.Datum) int) bool {
	for _, v := range y {
		if has(x, v, compare) {
			return true
		}
	}
	return false
}

// bindWidthBucketArray finds the bucket of a value among sorted thresholds.
func bindWidthBucketArray(args []datum.Type, _ datum.Type) (Eval, error) {
	elem := elemOf(args[1])
	if elem.Compare == nil {
		return nil, noOrder(datum.T(elem))
	}
	return func(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
		if len(datum.ArrayDims(a[1])) > 1 {
			return datum.Null, pgerr.New(pgerr.ArraySubscriptError, "thresholds must be one-dimensional array")
		}
		vals := datum.ArrayValues(a[1])
		lo, hi := 0, len(vals)
		for lo < hi {
			mid := (lo + hi) / 2
			if vals[mid].IsNull() {
				return datum.Null, pgerr.New(pgerr.NullValueNotAllowed, "thresholds array must not contain NULLs")
			}
			if elem.Compare(a[0], vals[mid]) < 0 {
				hi = mid
			} else {
				lo = mid + 1
			}
		}
		return datum.Int(int64(lo)), nil
	}, nil
}

var arrayEvals = evalMap{
	"array_length": arrayDim(func(d datum.ArrayDim) int32 { return d.Len }),
	"array_lower":  arrayDim(func(d datum.ArrayDim) int32 { return d.Lower }),
	"array_upper":  arrayDim(func(d datum.ArrayDim) int32 { return d.Lower + d.Len - 1 }),
	"array_ndims":  arrayNDims, "array_dims": arrayDimsText,
	"array_cardinality": func(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
		return datum.Int(int64(datum.ArrayLen(a[0]))), nil
	},
}

var arrayBinds = bindMap{
	"array_append": bindArrayAppend, "array_prepend": bindArrayPrepend, "array_cat": bindArrayCat,
	"array_position": bindArrayPosition(false), "array_position_start": bindArrayPosition(false), "array_positions": bindArrayPosition(true),
	"array_remove": bindArrayRemove, "array_replace": bindArrayReplace, "trim_array": bindTrimArray,
	"array_fill": bindArrayFill, "array_fill_with_lower_bounds": bindArrayFill,
	"arraycontains": bindContainment(containsAll), "arrayoverlap": bindContainment(overlap),
	"arraycontained": bindContainment(func(x, y []datum.Datum, compare func(a, b datum.Datum) int) bool {
		return containsAll(y, x, compare)
	}),
	"width_bucket_array": bindWidthBucketArray,
	"array_to_text":      bindArrayToText, "array_to_text_null": bindArrayToText,
}
