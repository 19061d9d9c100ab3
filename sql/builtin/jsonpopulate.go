package builtin

import (
	"fmt"
	"strings"

	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// bindPopulate implements json(b)_populate_record: fields of the composite type
// from the keys of an object, missing ones from the base record.
func bindPopulate(args []datum.Type, ret datum.Type) (Eval, error) {
	t, binary := args[0].Root().Desc, args[1].Root().Desc == datum.JSONB
	if !isComposite(t) {
		if binary {
			return nil, notRowType("jsonb_populate_record")
		}
		return nil, notRowType("json_populate_record")
	}
	return func(c *Ctx, a []datum.Datum) (datum.Datum, error) {
		if a[1].IsNull() {
			return a[0], nil
		}
		d, err := asJSONB(a[1], binary)
		if err != nil {
			return datum.Null, err
		}
		return populate(c, t, a[0], d)
	}, nil
}

func notRowType(function string) error {
	return pgerr.New(pgerr.DatatypeMismatch, "first argument of %s must be a row type", function)
}

func notArray(function string, d datum.Datum, binary bool) error {
	switch {
	case binary:
		return jsonMisuse("cannot call %s on a non-array", function)
	case isObject(d):
		return jsonMisuse("cannot call %s on an object", function)
	}
	return jsonMisuse("cannot call %s on a scalar", function)
}

func asJSONB(d datum.Datum, binary bool) (datum.Datum, error) {
	if binary {
		return d, nil
	}
	return datum.ParseJSONB(d.Str())
}

func populate(c *Ctx, t *datum.Desc, base, d datum.Datum) (datum.Datum, error) {
	types, vals, err := populateFields(c, t, base, d)
	if err != nil {
		return datum.Null, err
	}
	return datum.MakeRecord(types, vals), nil
}

func populateFields(c *Ctx, t *datum.Desc, base, d datum.Datum) ([]datum.Type, []datum.Datum, error) {
	if !isObject(d) {
		kind := "a scalar"
		if isArray(d) {
			kind = "an array"
		}
		return nil, nil, jsonMisuse("cannot call %s on %s", "populate_composite", kind)
	}
	vals := make([]datum.Datum, len(t.Fields))
	types := make([]datum.Type, len(t.Fields))
	var old []datum.Datum
	if !base.IsNull() {
		_, old = datum.RecordFields(base)
	}
	for i, f := range t.Fields {
		types[i], vals[i] = f.Type, datum.Null
		if i < len(old) {
			vals[i] = old[i]
		}
		v, ok := datum.JSONBGet(d, f.Name)
		if !ok {
			continue
		}
		var err error
		if vals[i], err = fromJSON(c, f.Type, f.Name, v); err != nil {
			return nil, nil, err
		}
	}
	return types, vals, nil
}

// fromJSON converts the jsonb value of a key to a type (populate_record_field).
func fromJSON(c *Ctx, t datum.Type, key string, d datum.Datum) (datum.Datum, error) {
	root := t.Root()
	switch {
	case datum.JSONBIsNull(d):
		return datum.Null, nil
	case root.Desc == datum.JSONB:
		return d, nil
	case root.Desc == datum.JSON:
		return datum.Bytes(datum.JSONB.Append(nil, d, c.Format)), nil
	case isComposite(root.Desc):
		if _, isText := datum.JSONBString(d); !isText { // a string is the text form
			return populate(c, root.Desc, datum.Null, d)
		}
	case root.IsArray():
		if _, isText := datum.JSONBString(d); !isText { // a string is the text form
			return arrayFromJSON(c, root, key, d)
		}
	}
	s, _ := datum.JSONBText(d)
	return root.Parse(s, root.Mod, c.Format)
}

// arrayFromJSON converts nested JSON arrays into the dimensions of one array. The
// first element of each level tells how deep they go.
func arrayFromJSON(c *Ctx, t datum.Type, key string, d datum.Datum) (datum.Datum, error) {
	var dims []datum.ArrayDim
	for level := d; isArray(level); {
		n := datum.JSONBLen(level)
		dims = append(dims, datum.ArrayDim{Len: int32(n), Lower: 1})
		if n == 0 {
			break
		}
		level, _ = datum.JSONBIndex(level, 0)
	}
	var vals []datum.Datum
	malformed := pgerr.New(pgerr.InvalidTextRepresentation, "malformed JSON array").
		WithDetail("Multidimensional arrays must have sub-arrays with matching dimensions.")
	var walk func(d datum.Datum, at []int) error
	walk = func(d datum.Datum, at []int) error {
		depth := len(at)
		if depth == max(len(dims), 1) {
			v, err := fromJSON(c, datum.Type{Desc: t.Elem, Mod: t.Mod}, key, d)
			vals = append(vals, v)
			return err
		}
		if !isArray(d) {
			return notJSONArray(key, at)
		}
		if datum.JSONBLen(d) != int(dims[depth].Len) {
			return malformed
		}
		i := 0
		for e := range datum.JSONBElems(d) {
			if err := walk(e, append(at, i)); err != nil {
				return err
			}
			i++
		}
		return nil
	}
	if err := walk(d, nil); err != nil {
		return datum.Null, err
	}
	if len(vals) == 0 {
		return datum.MakeArray(t.Elem, nil), nil
	}
	return datum.MakeArrayND(t.Elem, dims, vals)
}

// notJSONArray says where an array is missing: at indexes at of the value of key.
func notJSONArray(key string, at []int) error {
	hint := fmt.Sprintf("See the value of key \"%s\".", key)
	if len(at) > 0 {
		hint = "See the array element "
		for _, i := range at {
			hint += fmt.Sprintf("[%d]", i)
		}
		hint += fmt.Sprintf(" of key \"%s\".", key)
	}
	return pgerr.New(pgerr.InvalidTextRepresentation, "expected JSON array").WithHint("%s", hint)
}

// bindPopulateSet implements json(b)_populate_recordset.
func bindPopulateSet(args []datum.Type) (SetEval, []Column, error) {
	t := args[0].Root().Desc
	binary := args[1].Root().Desc == datum.JSONB
	name := "json_populate_recordset"
	if binary {
		name = "jsonb_populate_recordset"
	}
	if !isComposite(t) {
		return nil, nil, notRowType(name)
	}
	cols := make([]Column, len(t.Fields))
	for i, f := range t.Fields {
		cols[i] = Column{f.Name, f.Type}
	}
	return func(c *Ctx, a []datum.Datum, emit func([]datum.Datum) error) error {
		if a[1].IsNull() {
			return nil
		}
		d, err := asJSONB(a[1], binary)
		if err != nil {
			return err
		}
		if !isArray(d) {
			return notArray(name, d, binary)
		}
		for e := range datum.JSONBElems(d) {
			if err := c.Budget.Spend(1); err != nil {
				return err
			}
			if !isObject(e) {
				return jsonMisuse("argument of %s must be an array of objects", name)
			}
			_, vals, err := populateFields(c, t, a[0], e)
			if err != nil {
				return err
			}
			if err := emit(vals); err != nil {
				return err
			}
		}
		return nil
	}, cols, nil
}

// BindColumns returns the implementation of json(b)_to_record and
// json(b)_to_recordset for the column definition list of the query; other
// functions answer 42601, as PostgreSQL does for a list that is not needed.
func (f *Func) BindColumns(cols []Column) (SetEval, error) {
	set := strings.HasSuffix(f.Name, "_to_recordset")
	if !set && !strings.HasSuffix(f.Name, "_to_record") {
		return nil, pgerr.New(pgerr.SyntaxError, "a column definition list is only allowed for functions returning \"record\"")
	}
	row := &datum.Desc{Kind: datum.Composite}
	for _, col := range cols {
		row.Fields = append(row.Fields, datum.Field{Name: col.Name, Type: col.Type})
	}
	binary := f.Args[0] == datum.JSONB
	return func(c *Ctx, a []datum.Datum, emit func([]datum.Datum) error) error {
		if a[0].IsNull() {
			return nil
		}
		d, err := asJSONB(a[0], binary)
		if err != nil {
			return err
		}
		if !set {
			return emitFields(c, row, d, emit)
		}
		if !isArray(d) {
			return notArray(f.Name, d, binary)
		}
		for e := range datum.JSONBElems(d) {
			if !isObject(e) {
				return jsonMisuse("argument of %s must be an array of objects", f.Name)
			}
			if err := emitFields(c, row, e, emit); err != nil {
				return err
			}
		}
		return nil
	}, nil
}

func emitFields(c *Ctx, t *datum.Desc, d datum.Datum, emit func([]datum.Datum) error) error {
	if err := c.Budget.Spend(1); err != nil {
		return err
	}
	_, vals, err := populateFields(c, t, datum.Null, d)
	if err != nil {
		return err
	}
	return emit(vals)
}

var populateBinds = bindMap{"jsonb_populate_record": bindPopulate, "json_populate_record": bindPopulate}

var populateBindSets = bindSetMap{
	"jsonb_populate_recordset": bindPopulateSet, "json_populate_recordset": bindPopulateSet,
}
