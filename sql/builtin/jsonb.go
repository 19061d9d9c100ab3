package builtin

import (
	"strings"

	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// jsonbResult turns a part of a jsonb value into a result: itself or its text.
func jsonbResult(d datum.Datum, ok, text bool) datum.Datum {
	switch {
	case !ok:
		return datum.Null
	case !text:
		return d
	}
	s, null := datum.JSONBText(d)
	if null {
		return datum.Null
	}
	return datum.Str(s)
}

func isObject(d datum.Datum) bool { return datum.JSONBTypeOf(d) == "object" }
func isArray(d datum.Datum) bool  { return datum.JSONBTypeOf(d) == "array" }
func isScalar(d datum.Datum) bool { return !isObject(d) && !isArray(d) }

func jsonbField(text bool) Eval {
	return func(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
		if !isObject(a[0]) {
			return datum.Null, nil
		}
		v, ok := datum.JSONBGet(a[0], a[1].Str())
		return jsonbResult(v, ok, text), nil
	}
}

func jsonbElement(text bool) Eval {
	return func(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
		if isObject(a[0]) {
			return datum.Null, nil
		}
		if !isArray(a[0]) { // a scalar counts as an array of one
			return jsonbResult(a[0], a[1].Int() == 0 || a[1].Int() == -1, text), nil
		}
		v, ok := datum.JSONBIndex(a[0], int(a[1].Int()))
		return jsonbResult(v, ok, text), nil
	}
}

func jsonbExtractPath(text bool) Eval {
	return func(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
		v, ok := a[0], true
		for e := range datum.ArrayElems(a[1]) {
			if e.IsNull() {
				return datum.Null, nil
			}
			switch {
			case isObject(v):
				v, ok = datum.JSONBGet(v, e.Str())
			case isArray(v):
				n, isInt := pathIndex(e.Str())
				if !isInt {
					return datum.Null, nil
				}
				v, ok = datum.JSONBIndex(v, int(n))
			default:
				return datum.Null, nil
			}
			if !ok {
				return datum.Null, nil
			}
		}
		return jsonbResult(v, true, text), nil
	}
}

// jsonbHas: a key of an object, a string among an array's elements, or the
// string itself.
func jsonbHas(d datum.Datum, key string) bool {
	if isObject(d) {
		_, ok := datum.JSONBGet(d, key)
		return ok
	}
	if !isArray(d) {
		s, ok := datum.JSONBString(d)
		return ok && s == key
	}
	for e := range datum.JSONBElems(d) {
		if s, ok := datum.JSONBString(e); ok && s == key {
			return true
		}
	}
	return false
}

func jsonbExists(all bool) Eval {
	return func(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
		for e := range datum.ArrayElems(a[1]) {
			if !e.IsNull() && jsonbHas(a[0], e.Str()) != all {
				return datum.Bool(!all), nil
			}
		}
		return datum.Bool(all), nil
	}
}

func jsonbConcat(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
	x, y := a[0], a[1]
	var b datum.JSONBBuilder
	if isObject(x) && isObject(y) {
		b.BeginObject()
		for k, v := range datum.JSONBPairs(x) {
			if _, replaced := datum.JSONBGet(y, k); !replaced {
				b.Key(k)
				b.Value(v)
			}
		}
		for k, v := range datum.JSONBPairs(y) {
			b.Key(k)
			b.Value(v)
		}
		b.EndObject()
		return b.Done(), nil
	}
	b.BeginArray()
	for _, d := range []datum.Datum{x, y} {
		if !isArray(d) {
			b.Value(d)
			continue
		}
		for e := range datum.JSONBElems(d) {
			b.Value(e)
		}
	}
	b.EndArray()
	return b.Done(), nil
}

// deleteKeys removes the keys of an object, or the strings among an array's
// elements, for which drop answers true.
func deleteKeys(d datum.Datum, drop func(s string) bool) (datum.Datum, error) {
	var b datum.JSONBBuilder
	switch {
	case isObject(d):
		b.BeginObject()
		for k, v := range datum.JSONBPairs(d) {
			if !drop(k) {
				b.Key(k)
				b.Value(v)
			}
		}
		b.EndObject()
	case isArray(d):
		b.BeginArray()
		for e := range datum.JSONBElems(d) {
			if s, ok := datum.JSONBString(e); !ok || !drop(s) {
				b.Value(e)
			}
		}
		b.EndArray()
	default:
		return datum.Null, jsonMisuse("cannot delete from scalar")
	}
	return b.Done(), nil
}

func jsonbDelete(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
	return deleteKeys(a[0], func(s string) bool { return s == a[1].Str() })
}

func jsonbDeleteArray(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
	if datum.ArrayLen(a[1]) == 0 && !isScalar(a[0]) {
		return a[0], nil
	}
	return deleteKeys(a[0], func(s string) bool {
		for e := range datum.ArrayElems(a[1]) {
			if !e.IsNull() && e.Str() == s {
				return true
			}
		}
		return false
	})
}

func jsonbDeleteIndex(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
	switch {
	case isObject(a[0]):
		return datum.Null, jsonMisuse("cannot delete from object using integer index")
	case !isArray(a[0]):
		return datum.Null, jsonMisuse("cannot delete from scalar")
	}
	n, size := a[1].Int(), int64(datum.JSONBLen(a[0]))
	if n < 0 {
		n += size
	}
	if n < 0 || n >= size {
		return a[0], nil
	}
	var b datum.JSONBBuilder
	b.BeginArray()
	i := int64(0)
	for e := range datum.JSONBElems(a[0]) {
		if i != n {
			b.Value(e)
		}
		i++
	}
	b.EndArray()
	return b.Done(), nil
}

func jsonbStripNulls(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
	var b datum.JSONBBuilder
	stripNulls(&b, a[0])
	return b.Done(), nil
}

func stripNulls(b *datum.JSONBBuilder, d datum.Datum) {
	switch {
	case isObject(d):
		b.BeginObject()
		for k, v := range datum.JSONBPairs(d) {
			if !datum.JSONBIsNull(v) {
				b.Key(k)
				stripNulls(b, v)
			}
		}
		b.EndObject()
	case isArray(d):
		b.BeginArray()
		for e := range datum.JSONBElems(d) {
			stripNulls(b, e)
		}
		b.EndArray()
	default:
		b.Value(d)
	}
}

func jsonbPretty(c *Ctx, a []datum.Datum) (datum.Datum, error) {
	return datum.Bytes(appendPretty(nil, c, a[0], 0)), nil
}

func appendPretty(dst []byte, c *Ctx, d datum.Datum, depth int) []byte {
	line := func(depth int) {
		dst = append(append(dst, '\n'), strings.Repeat("    ", depth)...)
	}
	first := true
	next := func() {
		if !first {
			dst = append(dst, ',')
		}
		first = false
		line(depth + 1)
	}
	switch {
	case isObject(d):
		dst = append(dst, '{')
		for k, v := range datum.JSONBPairs(d) {
			next()
			dst = append(datum.AppendJSONString(dst, k), ':', ' ')
			dst = appendPretty(dst, c, v, depth+1)
		}
		line(depth)
		return append(dst, '}')
	case isArray(d):
		dst = append(dst, '[')
		for e := range datum.JSONBElems(d) {
			next()
			dst = appendPretty(dst, c, e, depth+1)
		}
		line(depth)
		return append(dst, ']')
	}
	return datum.JSONB.Append(dst, d, c.Format)
}

func jsonbArrayLength(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
	switch {
	case isArray(a[0]):
		return datum.Int(int64(datum.JSONBLen(a[0]))), nil
	case isObject(a[0]):
		return datum.Null, jsonMisuse("cannot get array length of a non-array")
	}
	return datum.Null, jsonMisuse("cannot get array length of a scalar")
}

func jsonbEach(function string, text bool) SetEval {
	return func(c *Ctx, a []datum.Datum, emit func([]datum.Datum) error) error {
		if !isObject(a[0]) {
			return jsonMisuse("cannot call %s on a non-object", function)
		}
		row := make([]datum.Datum, 2)
		for k, v := range datum.JSONBPairs(a[0]) {
			if err := c.Budget.Spend(1); err != nil {
				return err
			}
			row[0], row[1] = datum.Str(k), jsonbResult(v, true, text)
			if err := emit(row); err != nil {
				return err
			}
		}
		return nil
	}
}

func jsonbElements(text bool) SetEval {
	return func(c *Ctx, a []datum.Datum, emit func([]datum.Datum) error) error {
		switch {
		case isObject(a[0]):
			return jsonMisuse("cannot extract elements from an object")
		case !isArray(a[0]):
			return jsonMisuse("cannot extract elements from a scalar")
		}
		out := emitter(c, emit)
		for e := range datum.JSONBElems(a[0]) {
			if err := out(jsonbResult(e, true, text)); err != nil {
				return err
			}
		}
		return nil
	}
}

func jsonbObjectKeys(c *Ctx, a []datum.Datum, emit func([]datum.Datum) error) error {
	switch {
	case isArray(a[0]):
		return jsonMisuse("cannot call %s on an array", "jsonb_object_keys")
	case !isObject(a[0]):
		return jsonMisuse("cannot call %s on a scalar", "jsonb_object_keys")
	}
	out := emitter(c, emit)
	for k := range datum.JSONBPairs(a[0]) {
		if err := out(datum.Str(k)); err != nil {
			return err
		}
	}
	return nil
}

// jsonbTo casts a scalar: numbers to a numeric type by way of conv.
func jsonbTo(typ string, conv func(c *Ctx, num datum.Datum) (datum.Datum, error)) Eval {
	return func(c *Ctx, a []datum.Datum) (datum.Datum, error) {
		if n, ok := datum.JSONBNumber(a[0]); ok {
			return conv(c, n)
		}
		return datum.Null, jsonMisuse("cannot cast jsonb %s to type %s", datum.JSONBTypeOf(a[0]), typ)
	}
}

func jsonbToBool(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
	if v, ok := datum.JSONBBool(a[0]); ok {
		return datum.Bool(v), nil
	}
	kind := datum.JSONBTypeOf(a[0])
	if kind == "number" {
		kind = "numeric"
	}
	return datum.Null, jsonMisuse("cannot cast jsonb %s to type %s", kind, "boolean")
}

func numberVia(eval Eval) func(c *Ctx, num datum.Datum) (datum.Datum, error) {
	return func(c *Ctx, num datum.Datum) (datum.Datum, error) { return eval(c, []datum.Datum{num}) }
}

var jsonbEvals = evalMap{
	"jsonb_object_field": jsonbField(false), "jsonb_object_field_text": jsonbField(true),
	"jsonb_array_element": jsonbElement(false), "jsonb_array_element_text": jsonbElement(true),
	"jsonb_extract_path": jsonbExtractPath(false), "jsonb_extract_path_text": jsonbExtractPath(true),
	"jsonb_contains": func(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
		return datum.Bool(datum.JSONBContains(a[0], a[1])), nil
	},
	"jsonb_contained": func(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
		return datum.Bool(datum.JSONBContains(a[1], a[0])), nil
	},
	"jsonb_exists": func(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
		return datum.Bool(jsonbHas(a[0], a[1].Str())), nil
	},
	"jsonb_exists_any": jsonbExists(false), "jsonb_exists_all": jsonbExists(true),
	"jsonb_concat": jsonbConcat, "jsonb_delete": jsonbDelete, "jsonb_delete_idx": jsonbDeleteIndex,
	"jsonb_delete_array": jsonbDeleteArray, "jsonb_delete_path": jsonbDeletePath,
	"jsonb_set": jsonbSet, "jsonb_insert": jsonbInsert, "jsonb_set_lax": jsonbSetLax,
	"jsonb_strip_nulls": jsonbStripNulls, "jsonb_pretty": jsonbPretty, "jsonb_array_length": jsonbArrayLength,
	"jsonb_typeof":  func(_ *Ctx, a []datum.Datum) (datum.Datum, error) { return datum.Str(datum.JSONBTypeOf(a[0])), nil },
	"jsonb_bool":    jsonbToBool,
	"jsonb_numeric": jsonbTo("numeric", func(_ *Ctx, n datum.Datum) (datum.Datum, error) { return n, nil }),
	"jsonb_int2":    jsonbTo("smallint", numberVia(numericToInt(&width2))),
	"jsonb_int4":    jsonbTo("integer", numberVia(numericToInt(&width4))),
	"jsonb_int8":    jsonbTo("bigint", numberVia(numericToInt(&width8))),
	"jsonb_float4":  jsonbTo("real", numberVia(numericToFloat4)),
	"jsonb_float8":  jsonbTo("double precision", numberVia(numericToFloat)),
}

var jsonbSets = setMap{
	"jsonb_each": jsonbEach("jsonb_each", false), "jsonb_each_text": jsonbEach("jsonb_each_text", true),
	"jsonb_array_elements": jsonbElements(false), "jsonb_array_elements_text": jsonbElements(true),
	"jsonb_object_keys": jsonbObjectKeys,
}

// pathOp says what to do at the end of a path.
type pathOp uint8

const (
	pathReplace pathOp = iota
	pathCreate         // replace or add
	pathInsertBefore
	pathInsertAfter
	pathDelete
)

func (o pathOp) inserts() bool { return o == pathInsertBefore || o == pathInsertAfter }
func (o pathOp) adds() bool    { return o == pathCreate || o.inserts() }

// pathEdit changes a jsonb value along a path (setPath in jsonfuncs.c).
type pathEdit struct {
	path  []datum.Datum
	value datum.Datum
	op    pathOp
	b     datum.JSONBBuilder
}

func editPath(d, path, value datum.Datum, op pathOp) (datum.Datum, error) {
	if len(datum.ArrayDims(path)) > 1 {
		return datum.Null, pgerr.New(pgerr.ArraySubscriptError, "wrong number of array subscripts")
	}
	if isScalar(d) {
		if op == pathDelete {
			return datum.Null, jsonMisuse("cannot delete path in scalar")
		}
		return datum.Null, jsonMisuse("cannot set path in scalar")
	}
	e := pathEdit{path: datum.ArrayValues(path), value: value, op: op}
	if len(e.path) == 0 || datum.JSONBLen(d) == 0 && !op.adds() {
		return d, nil
	}
	if err := e.edit(d, 0); err != nil {
		return datum.Null, err
	}
	return e.b.Done(), nil
}

func (e *pathEdit) edit(d datum.Datum, level int) error {
	if isScalar(d) {
		e.b.Value(d)
		return nil
	}
	if e.path[level].IsNull() {
		return pgerr.New(pgerr.NullValueNotAllowed, "path element at position %d is null", level+1)
	}
	if isObject(d) {
		return e.object(d, level)
	}
	return e.array(d, level)
}

func (e *pathEdit) object(d datum.Datum, level int) error {
	key, last, done := e.path[level].Str(), level == len(e.path)-1, false
	e.b.BeginObject()
	for k, v := range datum.JSONBPairs(d) {
		switch {
		case k != key:
			e.b.Key(k)
			e.b.Value(v)
			continue
		case !last:
			e.b.Key(k)
			if err := e.edit(v, level+1); err != nil {
				return err
			}
		case e.op.inserts():
			return jsonMisuse("cannot replace existing key").(*pgerr.Error).
				WithHint("Try using the function jsonb_set to replace key value.")
		case e.op != pathDelete:
			e.b.Key(k)
			e.b.Value(e.value)
		}
		done = true
	}
	if !done && last && e.op.adds() {
		e.b.Key(key)
		e.b.Value(e.value)
	}
	e.b.EndObject()
	return nil
}

func (e *pathEdit) array(d datum.Datum, level int) error {
	size, last := int64(datum.JSONBLen(d)), level == len(e.path)-1
	at, ok := pathIndex(e.path[level].Str())
	if !ok {
		return pgerr.New(pgerr.InvalidTextRepresentation, "path element at position %d is not an integer: \"%s\"", level+1, e.path[level].Str())
	}
	before := false // in front of the first element
	if at < 0 {
		at += size
		before = at < 0
	}
	e.b.BeginArray()
	done := false
	if (before || size == 0) && last && e.op.adds() {
		e.b.Value(e.value)
		done = true
	}
	i := int64(0)
	for v := range datum.JSONBElems(d) {
		switch {
		case i != at:
			e.b.Value(v)
		case !last:
			if err := e.edit(v, level+1); err != nil {
				return err
			}
			done = true
		default:
			e.element(v)
			done = true
		}
		i++
	}
	if !done && last && e.op.adds() {
		e.b.Value(e.value)
	}
	e.b.EndArray()
	return nil
}

// element writes what takes the place of an array element.
func (e *pathEdit) element(v datum.Datum) {
	if e.op == pathInsertBefore || e.op == pathCreate {
		e.b.Value(e.value)
	}
	if e.op.inserts() {
		e.b.Value(v)
	}
	if e.op == pathInsertAfter || e.op == pathReplace {
		e.b.Value(e.value)
	}
}

func jsonbSet(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
	op := pathReplace
	if a[3].Bool() {
		op = pathCreate
	}
	return editPath(a[0], a[1], a[2], op)
}

func jsonbInsert(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
	op := pathInsertBefore
	if a[3].Bool() {
		op = pathInsertAfter
	}
	return editPath(a[0], a[1], a[2], op)
}

func jsonbDeletePath(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
	return editPath(a[0], a[1], datum.Null, pathDelete)
}

// jsonbSetLax is jsonb_set with a choice of what a null value means.
func jsonbSetLax(c *Ctx, a []datum.Datum) (datum.Datum, error) {
	if a[0].IsNull() || a[1].IsNull() || a[3].IsNull() {
		return datum.Null, nil
	}
	if a[4].IsNull() {
		return datum.Null, jsonMisuse("null_value_treatment must be \"delete_key\", \"return_target\", \"use_json_null\", or \"raise_exception\"")
	}
	if !a[2].IsNull() {
		return jsonbSet(c, a[:4])
	}
	switch a[4].Str() {
	case "raise_exception":
		return datum.Null, pgerr.New(pgerr.NullValueNotAllowed, "JSON value must not be null").
			WithDetail("Exception was raised because null_value_treatment is \"raise_exception\".").
			WithHint("To avoid, either change the null_value_treatment argument or ensure that an SQL NULL is not passed.")
	case "use_json_null":
		null, err := datum.ParseJSONB("null")
		if err != nil {
			return datum.Null, err
		}
		return jsonbSet(c, []datum.Datum{a[0], a[1], null, a[3]})
	case "delete_key":
		return jsonbDeletePath(c, a[:2])
	case "return_target":
		return a[0], nil
	}
	return datum.Null, jsonMisuse("null_value_treatment must be \"delete_key\", \"return_target\", \"use_json_null\", or \"raise_exception\"")
}
