package builtin

import (
	"strings"

	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// jsonFormat writes dates and times as JSON wants them, whatever the session's
// DateStyle is; other settings are the session's.
func jsonFormat(f *datum.Format) *datum.Format {
	if f.DateStyle == datum.ISO {
		return f
	}
	g := *f
	g.DateStyle = datum.ISO
	return &g
}

// appendJSON appends a value as JSON (datum_to_json in json.c): numbers and
// booleans bare, arrays and composites by structure, json as it is, all else as
// the string of its text form.
func appendJSON(dst []byte, t datum.Type, d datum.Datum, f *datum.Format, pretty bool) []byte {
	if d.IsNull() {
		return append(dst, "null"...)
	}
	root := t.Root()
	switch root.Desc {
	case datum.BoolType:
		if d.Bool() {
			return append(dst, "true"...)
		}
		return append(dst, "false"...)
	case datum.Int2, datum.Int4, datum.Int8, datum.Float4, datum.Float8, datum.Numeric:
		return appendJSONNumber(dst, root.Desc, d, f)
	case datum.JSON:
		return append(dst, d.Str()...)
	case datum.JSONB:
		return datum.JSONB.Append(dst, d, f)
	case datum.Timestamp, datum.TimestampTZ:
		return appendJSONTime(dst, root.Desc, d, f)
	case datum.Date:
		return datum.AppendJSONString(dst, string(root.Append(nil, d, jsonFormat(f))))
	}
	switch {
	case root.IsArray():
		return appendJSONArray(dst, root.Elem, d, f, pretty)
	case root.Desc == datum.Record || isComposite(root.Desc):
		return appendJSONRecord(dst, root.Desc, d, f, pretty)
	}
	return datum.AppendJSONString(dst, string(appendOut(nil, root.Desc, d, f)))
}

// appendJSONNumber quotes what JSON has no numbers for: NaN and the infinities.
func appendJSONNumber(dst []byte, t *datum.Desc, d datum.Datum, f *datum.Format) []byte {
	start := len(dst)
	dst = t.Append(dst, d, f)
	if c := dst[len(dst)-1]; c < '0' || c > '9' {
		return datum.AppendJSONString(dst[:start], string(dst[start:]))
	}
	return dst
}

// appendJSONTime writes ISO 8601: a T in the middle, and hours and minutes of
// the zone.
func appendJSONTime(dst []byte, t *datum.Desc, d datum.Datum, f *datum.Format) []byte {
	s := string(t.Append(nil, d, jsonFormat(f)))
	date, clock, ok := strings.Cut(s, " ")
	if !ok {
		return datum.AppendJSONString(dst, s) // infinity
	}
	clock, era, bc := strings.Cut(clock, " ")
	if t == datum.TimestampTZ {
		if i := strings.LastIndexAny(clock, "+-"); i >= 0 && len(clock)-i == 3 {
			clock += ":00"
		}
	}
	s = date + "T" + clock
	if bc {
		s += " " + era
	}
	return datum.AppendJSONString(dst, s)
}

func appendJSONArray(dst []byte, elem *datum.Desc, d datum.Datum, f *datum.Format, pretty bool) []byte {
	dims := datum.ArrayDims(d)
	if len(dims) == 0 {
		return append(dst, "[]"...)
	}
	vals := datum.ArrayValues(d)
	var walk func(dst []byte, level int, pretty bool) []byte
	walk = func(dst []byte, level int, pretty bool) []byte {
		dst = append(dst, '[')
		for i := range dims[level].Len {
			if i > 0 {
				dst = append(dst, ',')
				if pretty {
					dst = append(dst, "\n "...)
				}
			}
			if level+1 < len(dims) {
				dst = walk(dst, level+1, false)
				continue
			}
			dst = appendJSON(dst, datum.T(elem), vals[0], f, false)
			vals = vals[1:]
		}
		return append(dst, ']')
	}
	return walk(dst, 0, pretty)
}

// appendJSONRecord uses the field names of a composite type and f1, f2 ... for
// anonymous records.
func appendJSONRecord(dst []byte, t *datum.Desc, d datum.Datum, f *datum.Format, pretty bool) []byte {
	oids, vals := datum.RecordFields(d)
	dst = append(dst, '{')
	for i, v := range vals {
		if i > 0 {
			dst = append(dst, ',')
			if pretty {
				dst = append(dst, "\n "...)
			}
		}
		name, typ := fieldOf(t, i, oids[i], f)
		dst = append(datum.AppendJSONString(dst, name), ':')
		dst = appendJSON(dst, typ, v, f, false)
	}
	return append(dst, '}')
}

func fieldOf(t *datum.Desc, i int, oid datum.OID, f *datum.Format) (string, datum.Type) {
	if i < len(t.Fields) {
		return t.Fields[i].Name, t.Fields[i].Type
	}
	d := datum.ByOID(oid)
	if d == nil && f.TypeByOID != nil {
		d = f.TypeByOID(oid)
	}
	if d == nil {
		d = datum.Text
	}
	return "f" + itoa(i+1), datum.T(d)
}

// finishJSON gives text as json, or parses it if jsonb is wanted.
func finishJSON(c *Ctx, b []byte, binary bool) (datum.Datum, error) {
	if err := spendBytes(c, int64(len(b))); err != nil {
		return datum.Null, err
	}
	if binary {
		return datum.ParseJSONB(string(b))
	}
	return datum.Bytes(b), nil
}

// bindToJSON implements to_json and its like for one value.
func bindToJSON(binary bool) func([]datum.Type, datum.Type) (Eval, error) {
	return func(args []datum.Type, _ datum.Type) (Eval, error) {
		t := args[0]
		return func(c *Ctx, a []datum.Datum) (datum.Datum, error) {
			pretty := len(a) == 2 && a[1].Bool()
			return finishJSON(c, appendJSON(nil, t, a[0], c.Format, pretty), binary)
		}, nil
	}
}

func bindBuildArray(binary bool) func([]datum.Type, datum.Type) (Eval, error) {
	return func(args []datum.Type, _ datum.Type) (Eval, error) {
		return func(c *Ctx, a []datum.Datum) (datum.Datum, error) {
			b := []byte{'['}
			for i, v := range a {
				if i > 0 {
					b = append(b, ", "...)
				}
				b = appendJSON(b, args[i], v, c.Format, false)
			}
			return finishJSON(c, append(b, ']'), binary)
		}, nil
	}
}

func bindBuildObject(binary bool) func([]datum.Type, datum.Type) (Eval, error) {
	return func(args []datum.Type, _ datum.Type) (Eval, error) {
		return func(c *Ctx, a []datum.Datum) (datum.Datum, error) {
			if len(a)%2 != 0 {
				name := "json_build_object()"
				if binary {
					name = "jsonb_build_object()"
				}
				return datum.Null, jsonMisuse("argument list must have even number of elements").(*pgerr.Error).
					WithHint("The arguments of %s must consist of alternating keys and values.", name)
			}
			b := []byte{'{'}
			for i := 0; i < len(a); i += 2 {
				if i > 0 {
					b = append(b, ", "...)
				}
				if a[i].IsNull() {
					return datum.Null, nullKey(i+1, binary)
				}
				var err error
				if b, err = appendJSONKey(b, args[i], a[i], c.Format); err != nil {
					return datum.Null, err
				}
				b = append(b, " : "...)
				b = appendJSON(b, args[i+1], a[i+1], c.Format, false)
			}
			return finishJSON(c, append(b, '}'), binary)
		}, nil
	}
}

func nullKey(arg int, binary bool) error {
	if binary {
		return jsonMisuse("argument %d: key must not be null", arg)
	}
	return jsonMisuse("argument %d cannot be null", arg).(*pgerr.Error).WithHint("Object keys should be text.")
}

func appendJSONKey(dst []byte, t datum.Type, d datum.Datum, f *datum.Format) ([]byte, error) {
	root := t.Root().Desc
	if root.IsArray() || root == datum.Record || isComposite(root) || root == datum.JSON || root == datum.JSONB {
		return dst, jsonMisuse("key value must be scalar, not array, composite, or json")
	}
	if root == datum.Timestamp || root == datum.TimestampTZ {
		return appendJSONTime(dst, root, d, f), nil
	}
	return datum.AppendJSONString(dst, string(appendCast(nil, root, d, jsonFormat(f)))), nil
}

// jsonObject is json_object(text[]): pairs in a row, or two columns.
func jsonObject(binary bool) Eval {
	return func(c *Ctx, a []datum.Datum) (datum.Datum, error) {
		dims := datum.ArrayDims(a[0])
		switch {
		case len(dims) == 1 && dims[0].Len%2 != 0:
			return datum.Null, pgerr.New(pgerr.ArraySubscriptError, "array must have even number of elements")
		case len(dims) == 2 && dims[1].Len != 2:
			return datum.Null, pgerr.New(pgerr.ArraySubscriptError, "array must have two columns")
		case len(dims) > 2:
			return datum.Null, pgerr.New(pgerr.ArraySubscriptError, "wrong number of array subscripts")
		}
		vals := datum.ArrayValues(a[0])
		return makeObject(c, len(vals)/2, func(i int) (k, v datum.Datum) { return vals[2*i], vals[2*i+1] }, binary)
	}
}

func jsonObjectTwo(binary bool) Eval {
	return func(c *Ctx, a []datum.Datum) (datum.Datum, error) {
		if len(datum.ArrayDims(a[0])) > 1 || len(datum.ArrayDims(a[1])) > 1 {
			return datum.Null, pgerr.New(pgerr.ArraySubscriptError, "wrong number of array subscripts")
		}
		keys, vals := datum.ArrayValues(a[0]), datum.ArrayValues(a[1])
		if len(keys) != len(vals) {
			return datum.Null, pgerr.New(pgerr.ArraySubscriptError, "mismatched array dimensions")
		}
		return makeObject(c, len(keys), func(i int) (k, v datum.Datum) { return keys[i], vals[i] }, binary)
	}
}

func makeObject(c *Ctx, n int, pair func(i int) (k, v datum.Datum), binary bool) (datum.Datum, error) {
	b := []byte{'{'}
	for i := range n {
		k, v := pair(i)
		if k.IsNull() {
			return datum.Null, pgerr.New(pgerr.NullValueNotAllowed, "null value not allowed for object key")
		}
		if i > 0 {
			b = append(b, ", "...)
		}
		b = append(datum.AppendJSONString(b, k.Str()), " : "...)
		if v.IsNull() {
			b = append(b, "null"...)
		} else {
			b = datum.AppendJSONString(b, v.Str())
		}
	}
	return finishJSON(c, append(b, '}'), binary)
}

var jsonMakeEvals = evalMap{
	"json_object": jsonObject(false), "jsonb_object": jsonObject(true),
	"json_object_two_arg": jsonObjectTwo(false), "jsonb_object_two_arg": jsonObjectTwo(true),
}

var jsonMakeBinds = bindMap{
	"to_json": bindToJSON(false), "to_jsonb": bindToJSON(true),
	"row_to_json": bindToJSON(false), "row_to_json_pretty": bindToJSON(false),
	"array_to_json": bindToJSON(false), "array_to_json_pretty": bindToJSON(false),
	"json_build_array": bindBuildArray(false), "jsonb_build_array": bindBuildArray(true),
	"json_build_array_noargs": bindBuildArray(false), "jsonb_build_array_noargs": bindBuildArray(true),
	"json_build_object": bindBuildObject(false), "jsonb_build_object": bindBuildObject(true),
	"json_build_object_noargs": bindBuildObject(false), "jsonb_build_object_noargs": bindBuildObject(true),
}
