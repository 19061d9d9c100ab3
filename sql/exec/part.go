package exec

import (
	"strconv"

	"github.com/tallystick/tallystick/sql/builtin"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
	"github.com/tallystick/tallystick/sql/plan"
)

// setField compiles an assignment to a field: the other fields of a null value
// are null.
func (c *compiler) setField(e *plan.SetField) (evalFunc, error) {
	args, err := c.exprs([]plan.Expr{e.Base, e.Value})
	if err != nil {
		return nil, err
	}
	base, value, at := args[0], args[1], e.Index
	fields := e.Type().Root().Fields
	types := make([]datum.Type, len(fields))
	for i, f := range fields {
		types[i] = f.Type
	}
	return func(f *frame) (datum.Datum, error) {
		old, err := base(f)
		if err != nil {
			return datum.Null, err
		}
		v, err := value(f)
		if err != nil {
			return datum.Null, err
		}
		if err := f.spend(1); err != nil {
			return datum.Null, err
		}
		vals := make([]datum.Datum, len(types))
		for i := range vals {
			vals[i] = datum.Null
			if !old.IsNull() {
				vals[i] = datum.RecordField(old, i)
			}
		}
		vals[at] = v
		return datum.MakeRecord(types, vals), nil
	}, nil
}

// setElement compiles an assignment to an element or slice.
func (c *compiler) setElement(e *plan.SetElement) (evalFunc, error) {
	args, err := c.exprs([]plan.Expr{e.Base, e.Value})
	if err != nil {
		return nil, err
	}
	base, value := args[0], args[1]
	if e.Slice {
		return c.setSlice(e, base, value)
	}
	index, err := c.exprs(e.Index)
	if err != nil {
		return nil, err
	}
	if e.Type().Desc == datum.JSONB {
		return setJSONB(e, base, value, index), nil
	}
	elem := elemOf(e.Type())
	return func(f *frame) (datum.Datum, error) {
		old, err := base(f)
		if err != nil {
			return datum.Null, err
		}
		subs := make([]int32, len(index))
		for i, ix := range index {
			if subs[i], err = subscriptOf(f, ix); err != nil {
				return datum.Null, err
			}
		}
		v, err := value(f)
		if err != nil {
			return datum.Null, err
		}
		if err := f.spend(1); err != nil {
			return datum.Null, err
		}
		d, err := datum.ArraySet(elem, old, subs, v)
		if err == nil {
			err = f.spend(int64(datum.ArrayLen(d)) / 16)
		}
		return d, err
	}, nil
}

func errNullSubscript() error {
	return pgerr.New(pgerr.NullValueNotAllowed, "array subscript in assignment must not be null")
}

func subscriptOf(f *frame, ix evalFunc) (int32, error) {
	d, err := ix(f)
	if err == nil && d.IsNull() {
		err = errNullSubscript()
	}
	return int32(d.Int()), err
}

func (c *compiler) setSlice(e *plan.SetElement, base, value evalFunc) (evalFunc, error) {
	lo, err := c.exprs(e.Lo)
	if err != nil {
		return nil, err
	}
	hi, err := c.exprs(e.Hi)
	if err != nil {
		return nil, err
	}
	elem := elemOf(e.Type())
	bounds := func(f *frame, list []evalFunc) ([]datum.ArrayBound, error) {
		out := make([]datum.ArrayBound, len(list))
		for i, ev := range list {
			if out[i].Omitted = ev == nil; ev == nil {
				continue
			}
			var err error
			if out[i].At, err = subscriptOf(f, ev); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return func(f *frame) (datum.Datum, error) {
		old, err := base(f)
		if err != nil {
			return datum.Null, err
		}
		from, err := bounds(f, lo)
		if err != nil {
			return datum.Null, err
		}
		to, err := bounds(f, hi)
		if err != nil {
			return datum.Null, err
		}
		v, err := value(f)
		if err != nil {
			return datum.Null, err
		}
		d, err := datum.ArraySetSlice(elem, old, from, to, v)
		if err == nil && !d.IsNull() {
			err = f.spend(1 + int64(datum.ArrayLen(d))/16)
		}
		return d, err
	}, nil
}

// setJSONB compiles an assignment to a place in a jsonb value; null is stored as
// JSON's null.
func setJSONB(e *plan.SetElement, base, value evalFunc, index []evalFunc) evalFunc {
	array := make([]bool, len(index))
	for i := range index {
		array[i] = e.Index[i].Type().Root().Desc == datum.Int4
	}
	return func(f *frame) (datum.Datum, error) {
		old, err := base(f)
		if err != nil {
			return datum.Null, err
		}
		path := make([]string, len(index))
		for i, ix := range index {
			k, err := ix(f)
			switch {
			case err != nil:
				return datum.Null, err
			case k.IsNull():
				return datum.Null, pgerr.New(pgerr.NullValueNotAllowed, "jsonb subscript in assignment must not be null")
			case array[i]:
				path[i] = strconv.FormatInt(k.Int(), 10)
			default:
				path[i] = k.Str()
			}
		}
		v, err := value(f)
		if err != nil {
			return datum.Null, err
		}
		if err := f.spend(1); err != nil {
			return datum.Null, err
		}
		d, err := builtin.JSONBAssign(old, path, array[0], v)
		if err == nil {
			err = f.spend(int64(len(d.Bytes())) / 64)
		}
		return d, err
	}
}
