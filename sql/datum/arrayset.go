package datum

import (
	"math"

	"github.com/tallystick/tallystick/sql/pgerr"
)

func errSubscriptRange() error {
	return pgerr.New(pgerr.ArraySubscriptError, "array subscript out of range")
}

func errSubscriptCount() error {
	return pgerr.New(pgerr.ArraySubscriptError, "wrong number of array subscripts")
}

func checkSubscriptCount(n int) error {
	if n > maxArrayDims {
		return pgerr.New(pgerr.ProgramLimitExceeded, "number of array dimensions (%d) exceeds the maximum allowed (%d)", n, maxArrayDims)
	}
	return nil
}

// ArraySet is the array old, which may be null, with one element replaced
// (array_set_element): a null or empty array gets the dimensions that the
// subscripts ask for; one dimension grows at either end, with nulls between;
// several do not grow. 2202E for subscripts that do not fit, 54000 for too many.
func ArraySet(elem *Desc, old Datum, index []int32, v Datum) (Datum, error) {
	if err := checkSubscriptCount(len(index)); err != nil {
		return Null, err
	}
	var dims []ArrayDim
	var vals []Datum
	if !old.IsNull() {
		dims, vals = ArrayDims(old), ArrayValues(old)
	}
	if len(dims) == 0 {
		dims = make([]ArrayDim, len(index))
		for i, n := range index {
			if n == math.MaxInt32 {
				return Null, errSubscriptRange()
			}
			dims[i] = ArrayDim{Len: 1, Lower: n}
		}
		return MakeArrayND(elem, dims, []Datum{v})
	}
	if len(dims) != len(index) {
		return Null, errSubscriptCount()
	}
	if len(dims) == 1 {
		n := int64(index[0])
		next, dim, err := widenArray(dims[0], vals, n, n)
		if err != nil {
			return Null, err
		}
		next[n-int64(dim.Lower)] = v
		return MakeArrayND(elem, []ArrayDim{dim}, next)
	}
	flat := int64(0)
	for i, n := range index {
		at := int64(n) - int64(dims[i].Lower)
		if at < 0 || at >= int64(dims[i].Len) {
			return Null, errSubscriptRange()
		}
		flat = flat*int64(dims[i].Len) + at
	}
	vals[flat] = v
	return MakeArrayND(elem, dims, vals)
}

// widenArray copies the elements of a one-dimensional array into one that covers
// subscripts lo to hi as well.
func widenArray(dim ArrayDim, vals []Datum, lo, hi int64) ([]Datum, ArrayDim, error) {
	first, last := int64(dim.Lower), int64(dim.Lower)+int64(dim.Len)-1
	from, to := min(first, lo), max(last, hi)
	switch {
	case to-from+1 > maxArraySize:
		return nil, dim, errArraySize()
	case to >= math.MaxInt32 || from < math.MinInt32:
		return nil, dim, errSubscriptRange()
	}
	next := make([]Datum, to-from+1)
	for i := range next {
		next[i] = Null
	}
	copy(next[first-from:], vals)
	return next, ArrayDim{Len: int32(to - from + 1), Lower: int32(from)}, nil
}

// ArrayBound is a bound of a slice; Omitted stands for the array's own.
type ArrayBound struct {
	At      int32
	Omitted bool
}

// ArraySetSlice is the array old, which may be null, with a slice replaced by
// the elements of src in order (array_set_slice). Dimensions without bounds are
// taken whole. A null src changes nothing.
func ArraySetSlice(elem *Desc, old Datum, lo, hi []ArrayBound, src Datum) (Datum, error) {
	if src.IsNull() {
		return old, nil
	}
	if err := checkSubscriptCount(len(lo)); err != nil {
		return Null, err
	}
	var dims []ArrayDim
	var vals []Datum
	if !old.IsNull() {
		dims, vals = ArrayDims(old), ArrayValues(old)
	}
	if len(dims) == 0 {
		return newFromSlice(elem, lo, hi, src)
	}
	if len(dims) < len(lo) {
		return Null, errSubscriptCount()
	}
	from, to := make([]int64, len(dims)), make([]int64, len(dims))
	for i, d := range dims {
		from[i], to[i] = int64(d.Lower), int64(d.Lower)+int64(d.Len)-1
		if i < len(lo) && !lo[i].Omitted {
			from[i] = int64(lo[i].At)
		}
		if i < len(hi) && !hi[i].Omitted {
			to[i] = int64(hi[i].At)
		}
		if from[i] > to[i] {
			return Null, pgerr.New(pgerr.ArraySubscriptError, "upper bound cannot be less than lower bound")
		}
		if len(dims) > 1 && (from[i] < int64(d.Lower) || to[i] > int64(d.Lower)+int64(d.Len)-1) {
			return Null, errSubscriptRange()
		}
	}
	if len(dims) == 1 {
		next, dim, err := widenArray(dims[0], vals, from[0], to[0])
		if err != nil {
			return Null, err
		}
		vals, dims = next, []ArrayDim{dim}
	}
	return replaceSlice(elem, dims, vals, from, to, ArrayValues(src))
}

// newFromSlice is a slice assigned to an empty array: the bounds must all be
// there and make the array.
func newFromSlice(elem *Desc, lo, hi []ArrayBound, src Datum) (Datum, error) {
	dims := make([]ArrayDim, len(lo))
	n := int64(1)
	for i := range lo {
		if lo[i].Omitted || hi[i].Omitted {
			return Null, pgerr.New(pgerr.ArraySubscriptError, "array slice subscript must provide both boundaries").
				WithDetail("When assigning to a slice of an empty array value, slice boundaries must be fully specified.")
		}
		size := int64(hi[i].At) - int64(lo[i].At) + 1
		if size < 1 {
			return Null, pgerr.New(pgerr.ArraySubscriptError, "upper bound cannot be less than lower bound")
		}
		if n *= size; n > maxArraySize {
			return Null, errArraySize()
		}
		dims[i] = ArrayDim{Len: int32(size), Lower: lo[i].At}
	}
	vals := ArrayValues(src)
	if int64(len(vals)) < n {
		return Null, pgerr.New(pgerr.ArraySubscriptError, "source array too small")
	}
	return MakeArrayND(elem, dims, vals[:n])
}

func replaceSlice(elem *Desc, dims []ArrayDim, vals []Datum, from, to []int64, src []Datum) (Datum, error) {
	n := int64(1)
	for i := range from {
		n *= to[i] - from[i] + 1
	}
	if int64(len(src)) < n {
		return Null, pgerr.New(pgerr.ArraySubscriptError, "source array too small")
	}
	at := append([]int64(nil), from...)
	for _, v := range src[:n] {
		flat := int64(0)
		for i, d := range dims {
			flat = flat*int64(d.Len) + at[i] - int64(d.Lower)
		}
		vals[flat] = v
		for i := len(dims) - 1; i >= 0; i-- {
			if at[i]++; at[i] <= to[i] {
				break
			}
			at[i] = from[i]
		}
	}
	return MakeArrayND(elem, dims, vals)
}
