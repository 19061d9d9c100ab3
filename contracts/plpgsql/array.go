package plpgsql

import (
	"github.com/tallystick/tallystick/sql/builtin"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// assignPart computes the new value of a variable or field of type t and value
// old, the part of which that steps lead to is assigned d. The parts of a domain
// are those of its base type; its constraints are checked on the whole.
func (fr *frame) assignPart(t datum.Type, old datum.Datum, steps []placeStep, d datum.Datum) (datum.Datum, error) {
	if len(steps) == 0 {
		return d, nil
	}
	s := &steps[0]
	part, err := s.into(t)
	if err != nil {
		return d, err
	}
	root := t.Root()
	var out datum.Datum
	switch {
	case s.field != "":
		out, err = fr.assignField(root, s, part, old, steps[1:], d)
	case root.Desc == datum.JSONB:
		out, err = fr.assignJSON(s, old, d)
	case s.slices():
		out, err = fr.assignSlice(root.Elem, s, old, d)
	default:
		out, err = fr.assignElement(root.Elem, s, part, old, steps[1:], d)
	}
	if err != nil || t.Kind != datum.Domain {
		return out, err
	}
	return fr.convertType(out, root, t)
}

func (fr *frame) assignField(t datum.Type, s *placeStep, part datum.Type, old datum.Datum, rest []placeStep, d datum.Datum) (datum.Datum, error) {
	types, vals := make([]datum.Type, len(t.Fields)), make([]datum.Datum, len(t.Fields))
	for i, f := range t.Fields {
		types[i], vals[i] = f.Type, datum.Null
		if !old.IsNull() {
			vals[i] = datum.RecordField(old, i)
		}
		if f.Name == s.field {
			var err error
			if vals[i], err = fr.assignPart(part, vals[i], rest, d); err != nil {
				return d, err
			}
		}
	}
	return datum.MakeRecord(types, vals), nil
}

func (fr *frame) assignElement(elem *datum.Desc, s *placeStep, part datum.Type, old datum.Datum, rest []placeStep, d datum.Datum) (datum.Datum, error) {
	index := make([]int32, len(s.subs))
	for i := range s.subs {
		n, err := fr.subscript(&s.subs[i], s.subs[i].index)
		if err != nil {
			return d, err
		}
		index[i] = n
	}
	if len(rest) > 0 {
		inner := datum.Null
		if !old.IsNull() {
			inner = datum.ArrayIndex(old, index...)
		}
		var err error
		if d, err = fr.assignPart(part, inner, rest, d); err != nil {
			return d, err
		}
	}
	return datum.ArraySet(elem, old, index, d)
}

// subscript is an integer subscript.
func (fr *frame) subscript(s *subscript, x *site) (int32, error) {
	const null = "array subscript in assignment must not be null"
	if !s.free {
		n, err := fr.bound(x, null)
		return int32(n), err
	}
	d, t, err := fr.typed(x)
	if err != nil {
		return 0, err
	}
	if d.IsNull() {
		return 0, pgerr.New(pgerr.NullValueNotAllowed, null)
	}
	d, err = fr.convertType(d, t, int4)
	return int32(d.Int()), err
}

// typed is the value of a site with the type that it has.
func (fr *frame) typed(x *site) (datum.Datum, datum.Type, error) {
	p, err := x.ready(fr)
	if err != nil {
		return datum.Null, datum.Type{}, err
	}
	d, err := x.value(fr, p)
	return d, p.typ, err
}

func (fr *frame) assignSlice(elem *datum.Desc, s *placeStep, old, d datum.Datum) (datum.Datum, error) {
	lo, hi := make([]datum.ArrayBound, len(s.subs)), make([]datum.ArrayBound, len(s.subs))
	bound := func(b *datum.ArrayBound, sub *subscript, x *site) (err error) {
		if b.Omitted = x == nil; x != nil {
			b.At, err = fr.subscript(sub, x)
		}
		return err
	}
	for i := range s.subs {
		sub := &s.subs[i]
		from, to := sub.lo, sub.hi
		if !sub.slice { // beside slices, [n] is [1:n]
			lo[i], to = datum.ArrayBound{At: 1}, sub.index
		} else if err := bound(&lo[i], sub, from); err != nil {
			return d, err
		}
		if err := bound(&hi[i], sub, to); err != nil {
			return d, err
		}
	}
	return datum.ArraySetSlice(elem, old, lo, hi, d)
}

// assignJSON assigns to a place in a jsonb value.
func (fr *frame) assignJSON(s *placeStep, old, d datum.Datum) (datum.Datum, error) {
	path, array := make([]string, len(s.subs)), false
	for i := range s.subs {
		k, t, err := fr.typed(s.subs[i].index)
		if err != nil {
			return d, err
		}
		if k.IsNull() {
			return d, pgerr.New(pgerr.NullValueNotAllowed, "jsonb subscript in assignment must not be null")
		}
		isInt := t.Root().Desc == datum.Int4 || t.Root().Desc == datum.Int2
		array = array || i == 0 && isInt
		want := datum.T(datum.Text)
		if k, err = fr.convertType(k, t, want); err != nil {
			return d, err
		}
		path[i] = k.Str()
	}
	return builtin.JSONBAssign(old, path, array, d)
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
