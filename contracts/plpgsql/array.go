package plpgsql

import (
	"math"

	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// maxArray bounds the elements of an array that an assignment extends
// (PostgreSQL's MaxArraySize for 16-byte elements is of that order).
const maxArray = 1 << 27

// subscripted computes the new value of a variable of type t and value old
// whose element or slice is assigned d. Without subscripts it is d.
func (pl *place) subscripted(fr *frame, t datum.Type, old, d datum.Datum) (datum.Datum, error) {
	if len(pl.subs) == 0 {
		return d, nil
	}
	elem := t.Root().Elem
	if elem == nil {
		return d, pgerr.New(pgerr.DatatypeMismatch, "cannot subscript type %s because it does not support subscripting", datum.FormatType(t))
	}
	if len(pl.subs) > 6 {
		return d, pgerr.New(pgerr.ProgramLimitExceeded, "number of array dimensions (%d) exceeds the maximum allowed (%d)", len(pl.subs), 6)
	}
	for i := range pl.subs {
		if pl.subs[i].slice {
			return pl.assignSlice(fr, elem, old, d)
		}
	}
	index := make([]int64, len(pl.subs))
	for i := range pl.subs {
		n, err := fr.subscript(pl.subs[i].index)
		if err != nil {
			return d, err
		}
		index[i] = n
	}
	return setElement(elem, old, index, d)
}

func (fr *frame) subscript(s *site) (int64, error) {
	return fr.bound(s, "array subscript in assignment must not be null")
}

func outOfRange() error {
	return pgerr.New(pgerr.ArraySubscriptError, "array subscript out of range")
}

// setElement is array_set_element of arrayfuncs.c: a null or empty array gets
// the dimensions that the subscripts ask for; one dimension grows at either
// end, with nulls between; several do not grow.
func setElement(elem *datum.Desc, old datum.Datum, index []int64, d datum.Datum) (datum.Datum, error) {
	var dims []datum.ArrayDim
	var vals []datum.Datum
	if !old.IsNull() {
		dims, vals = datum.ArrayDims(old), datum.ArrayValues(old)
	}
	if len(dims) == 0 {
		dims = make([]datum.ArrayDim, len(index))
		for i, n := range index {
			if n >= math.MaxInt32 {
				return d, outOfRange()
			}
			dims[i] = datum.ArrayDim{Len: 1, Lower: int32(n)}
		}
		return datum.MakeArrayND(elem, dims, []datum.Datum{d})
	}
	if len(dims) != len(index) {
		return d, pgerr.New(pgerr.ArraySubscriptError, "wrong number of array subscripts")
	}
	if len(dims) == 1 {
		return setIn(elem, dims[0], vals, index[0], d)
	}
	flat := int64(0)
	for i, n := range index {
		n -= int64(dims[i].Lower)
		if n < 0 || n >= int64(dims[i].Len) {
			return d, outOfRange()
		}
		flat = flat*int64(dims[i].Len) + n
	}
	next := append([]datum.Datum(nil), vals...)
	next[flat] = d
	return datum.MakeArrayND(elem, dims, next)
}

// setIn sets one element of a one-dimensional array.
func setIn(elem *datum.Desc, dim datum.ArrayDim, vals []datum.Datum, n int64, d datum.Datum) (datum.Datum, error) {
	next, dim, err := widen(dim, vals, n, n)
	if err != nil {
		return d, err
	}
	next[n-int64(dim.Lower)] = d
	return datum.MakeArrayND(elem, []datum.ArrayDim{dim}, next)
}

// widen copies the elements of a one-dimensional array into one that covers
// subscripts lo to hi as well.
func widen(dim datum.ArrayDim, vals []datum.Datum, lo, hi int64) ([]datum.Datum, datum.ArrayDim, error) {
	first, last := int64(dim.Lower), int64(dim.Lower)+int64(dim.Len)-1
	from, to := min(first, lo), max(last, hi)
	if to-from+1 > maxArray {
		return nil, dim, pgerr.New(pgerr.ProgramLimitExceeded, "array size exceeds the maximum allowed (%d)", maxArray)
	}
	if to >= math.MaxInt32 || from < math.MinInt32 {
		return nil, dim, outOfRange()
	}
	next := make([]datum.Datum, to-from+1)
	for i := range next {
		next[i] = datum.Null
	}
	copy(next[first-from:], vals)
	return next, datum.ArrayDim{Len: int32(to - from + 1), Lower: int32(from)}, nil
}

// assignSlice is array_set_slice for one dimension.
func (pl *place) assignSlice(fr *frame, elem *datum.Desc, old, d datum.Datum) (datum.Datum, error) {
	if len(pl.subs) > 1 {
		return d, pgerr.NotBuilt("assignment to slices of several dimensions is not supported")
	}
	if d.IsNull() {
		return old, nil
	}
	dim := datum.ArrayDim{Lower: 1}
	var vals []datum.Datum
	empty := true
	if !old.IsNull() {
		if dims := datum.ArrayDims(old); len(dims) > 1 {
			return d, pgerr.New(pgerr.ArraySubscriptError, "wrong number of array subscripts")
		} else if len(dims) == 1 {
			dim, vals, empty = dims[0], datum.ArrayValues(old), false
		}
	}
	s := &pl.subs[0]
	lo, hi := int64(dim.Lower), int64(dim.Lower)+int64(dim.Len)-1
	if empty && (s.lo == nil || s.hi == nil) {
		return d, pgerr.New(pgerr.ArraySubscriptError, "array slice subscript must provide both boundaries").
			WithDetail("When assigning to a slice of an empty array value, slice boundaries must be fully specified.")
	}
	var err error
	if s.lo != nil {
		if lo, err = fr.subscript(s.lo); err != nil {
			return d, err
		}
	}
	if s.hi != nil {
		if hi, err = fr.subscript(s.hi); err != nil {
			return d, err
		}
	}
	if lo > hi {
		return d, pgerr.New(pgerr.ArraySubscriptError, "upper bound cannot be less than lower bound")
	}
	src := datum.ArrayValues(d)
	if int64(len(src)) < hi-lo+1 {
		return d, pgerr.New(pgerr.ArraySubscriptError, "source array too small")
	}
	if empty {
		dim = datum.ArrayDim{Len: 0, Lower: int32(lo)}
	}
	next, dim, err := widen(dim, vals, lo, hi)
	if err != nil {
		return d, err
	}
	copy(next[lo-int64(dim.Lower):], src[:hi-lo+1])
	return datum.MakeArrayND(elem, []datum.ArrayDim{dim}, next)
}

func (b *builder) foreach(s *foreachStmt) runFunc {
	array, pl := b.site(s.array, datum.Type{}), b.place(&s.target)
	body, label, found, slice := b.list(s.body), s.label, b.found(), s.slice
	b.check(func(fr *frame, c *checker) { c.add(foreachTarget(fr, pl, slice), s.line(), s.title()) })
	return func(fr *frame) (flow, error) {
		ap, err := array.ready(fr)
		if err != nil {
			return goOn, err
		}
		d, err := array.value(fr, ap)
		if err != nil {
			return goOn, err
		}
		if d.IsNull() {
			return goOn, pgerr.New(pgerr.NullValueNotAllowed, "FOREACH expression must not be null")
		}
		elem := ap.typ.Root().Elem
		if elem == nil {
			return goOn, pgerr.New(pgerr.DatatypeMismatch, "FOREACH expression must yield an array, not type %s", datum.FormatType(ap.typ))
		}
		if err := foreachTarget(fr, pl, slice); err != nil {
			return goOn, err
		}
		items, itemType, err := arraySlices(ap.typ, d, slice)
		if err != nil {
			return goOn, err
		}
		any := false
		for _, item := range items {
			if err := fr.spend(); err != nil {
				return goOn, err
			}
			any = true
			if err := fr.storeAs(pl, item, itemType); err != nil {
				return goOn, err
			}
			fl, err := body.run(fr)
			if err != nil {
				return goOn, err
			}
			if again, out := fr.loops(fl, label); !again {
				fr.setFound(found, true)
				return out, nil
			}
		}
		fr.setFound(found, any)
		return goOn, nil
	}
}

// foreachTarget compares the loop variable with the kind of the loop.
func foreachTarget(fr *frame, pl *place, slice int) error {
	if pl.kind == wholeRow {
		return nil
	}
	t, err := pl.typeNow(fr)
	if err != nil {
		return err
	}
	switch isArray := t.Root().Elem != nil; {
	case slice > 0 && !isArray:
		return pgerr.New(pgerr.DatatypeMismatch, "FOREACH ... SLICE loop variable must be of an array type")
	case slice == 0 && isArray:
		return pgerr.New(pgerr.DatatypeMismatch, "FOREACH loop variable must not be of an array type")
	}
	return nil
}

// storeAs converts a value and stores it.
func (fr *frame) storeAs(pl *place, d datum.Datum, t datum.Type) error {
	if pl.kind == wholeRow {
		in := &intoProg{rec: pl.info}
		if !isRow(t) {
			return pgerr.New(pgerr.DatatypeMismatch, "cannot assign non-composite value to a record variable")
		}
		if d.IsNull() {
			return fr.storeRow(in, rowTypeOfDesc(t.Desc), nil)
		}
		row, vals := rowTypeOfValue(d)
		return fr.storeRow(in, row, vals)
	}
	want, err := pl.typeNow(fr)
	if err != nil {
		return err
	}
	if d, err = fr.convertType(d, t, want); err != nil {
		return err
	}
	return pl.store(fr, d)
}

// arraySlices cuts an array into its elements, or into subarrays of n dimensions.
func arraySlices(t datum.Type, d datum.Datum, n int) ([]datum.Datum, datum.Type, error) {
	elem := t.Root().Elem
	dims, vals := datum.ArrayDims(d), datum.ArrayValues(d)
	if n == 0 {
		return vals, datum.Type{Desc: elem, Mod: t.Mod}, nil
	}
	if n > len(dims) {
		return nil, t, pgerr.New(pgerr.ArraySubscriptError, "slice dimension (%d) is out of the valid range 0..%d", n, len(dims))
	}
	inner, size := dims[len(dims)-n:], 1
	for _, x := range inner {
		size *= int(x.Len)
	}
	var out []datum.Datum
	for at := 0; at < len(vals); at += size {
		part, err := datum.MakeArrayND(elem, inner, vals[at:at+size])
		if err != nil {
			return nil, t, err
		}
		out = append(out, part)
	}
	return out, t, nil
}
