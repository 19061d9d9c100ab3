package builtin

import (
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// JSONBAssign is d, which may be null, with the value at path replaced by v:
// what d['a'][1] = v does (jsonb_set_element). What the path needs is made on the
// way: objects, arrays for path elements that are integers, nulls in front of an
// element. array tells that the first element of the path is an integer: a null d
// is then an empty array, else an empty object. A null v is JSON's null. 22023
// where the path leads through a scalar, or before the beginning of an array.
func JSONBAssign(d datum.Datum, path []string, array bool, v datum.Datum) (datum.Datum, error) {
	var b datum.JSONBBuilder
	if v.IsNull() {
		v = jsonbNull()
	}
	if d.IsNull() {
		if array {
			b.BeginArray()
			b.EndArray()
		} else {
			b.BeginObject()
			b.EndObject()
		}
		d = b.Done()
	}
	a := jsonbAssignment{path: path, value: v}
	if err := a.assign(d, 0); err != nil {
		return datum.Null, err
	}
	return a.b.Done(), nil
}

type jsonbAssignment struct {
	path  []string
	value datum.Datum
	b     datum.JSONBBuilder
}

// maxJSONGap bounds the nulls that one assignment puts before an element.
const maxJSONGap = 1 << 22

func (a *jsonbAssignment) assign(d datum.Datum, level int) error {
	switch {
	case isObject(d):
		return a.object(d, level)
	case isArray(d):
		return a.array(d, level)
	}
	return jsonMisuse("cannot replace existing key").(*pgerr.Error).
		WithDetail("The path assumes key is a composite object, but it is a scalar value.")
}

// inside goes on with a value that exists; at the end of the path it is replaced.
func (a *jsonbAssignment) inside(d datum.Datum, level int) error {
	if level == len(a.path) {
		a.b.Value(a.value)
		return nil
	}
	return a.assign(d, level)
}

func (a *jsonbAssignment) object(d datum.Datum, level int) error {
	done := false
	a.b.BeginObject()
	for k, v := range datum.JSONBPairs(d) {
		a.b.Key(k)
		if k != a.path[level] {
			a.b.Value(v)
			continue
		}
		done = true
		if err := a.inside(v, level+1); err != nil {
			return err
		}
	}
	if !done {
		a.b.Key(a.path[level])
		if err := a.fresh(level + 1); err != nil {
			return err
		}
	}
	a.b.EndObject()
	return nil
}

func (a *jsonbAssignment) array(d datum.Datum, level int) error {
	at, ok := pathIndex(a.path[level])
	if !ok {
		return pgerr.New(pgerr.InvalidTextRepresentation, "path element at position %d is not an integer: \"%s\"", level+1, a.path[level])
	}
	size := int64(datum.JSONBLen(d))
	if at < 0 {
		if at += size; at < 0 {
			return jsonMisuse("path element at position %d is out of range: %d", level+1, at-size)
		}
	}
	a.b.BeginArray()
	i := int64(0)
	for v := range datum.JSONBElems(d) {
		if i == at {
			if err := a.inside(v, level+1); err != nil {
				return err
			}
		} else {
			a.b.Value(v)
		}
		i++
	}
	if at >= size {
		if err := a.gap(at - size); err != nil {
			return err
		}
		if err := a.fresh(level + 1); err != nil {
			return err
		}
	}
	a.b.EndArray()
	return nil
}

func (a *jsonbAssignment) gap(n int64) error {
	if n > maxJSONGap {
		return pgerr.New(pgerr.ProgramLimitExceeded, "total size of jsonb array elements exceeds the maximum of %d bytes", 1<<28-1)
	}
	for range n {
		a.b.Null()
	}
	return nil
}

// fresh makes what the rest of the path asks for (push_path).
func (a *jsonbAssignment) fresh(level int) error {
	if level == len(a.path) {
		a.b.Value(a.value)
		return nil
	}
	at, ok := pathIndex(a.path[level])
	if !ok {
		a.b.BeginObject()
		a.b.Key(a.path[level])
		if err := a.fresh(level + 1); err != nil {
			return err
		}
		a.b.EndObject()
		return nil
	}
	a.b.BeginArray()
	if err := a.gap(max(at, 0)); err != nil {
		return err
	}
	if err := a.fresh(level + 1); err != nil {
		return err
	}
	a.b.EndArray()
	return nil
}
