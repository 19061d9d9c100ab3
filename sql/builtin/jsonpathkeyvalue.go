package builtin

import (
	"encoding/binary"

	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// keyValue makes an object of every member. Its id names the object that the
// member belongs to: the place of that object in PostgreSQL's form of the
// document, 0 for the document itself and for objects from elsewhere.
func (x *pathExec) keyValue(n *datum.PathNode, it pathItem, out pathSink) error {
	if it.kind() != "object" {
		return pgerr.New(pgerr.JSONObjectNotFound, "jsonpath item method .%s() can only be applied to an object", n.Str)
	}
	id := datum.Datum{}
	if at := datum.OffsetIn(x.root.json, it.json); at > 0 {
		w := jsonbLayout{root: x.root.json, want: at}
		w.container(x.root.json, 0)
		id = datum.NumericFromInt64(w.found)
		if err := x.c.Budget.Spend(at / 16); err != nil {
			return err
		}
	}
	for k, v := range datum.JSONBPairs(it.json) {
		var b datum.JSONBBuilder
		b.BeginObject()
		b.Key("id")
		b.Number(id)
		b.Key("key")
		b.String(k)
		b.Key("value")
		b.Value(v)
		b.EndObject()
		if err := x.next(n, pathItem{json: b.Done()}, out); err != nil {
			return err
		}
	}
	return nil
}

// jsonbLayout finds where a node of root would lie in PostgreSQL's jsonb (the
// layout of jsonb.h): a header of four bytes, four for every key and value, the
// keys, then the values, numbers and containers at multiples of four.
type jsonbLayout struct {
	root        datum.Datum
	want, found int64
}

// container returns the end of a container that begins at at.
func (w *jsonbLayout) container(d datum.Datum, at int64) int64 {
	if datum.OffsetIn(w.root, d) == w.want {
		w.found = at
	}
	n := int64(datum.JSONBLen(d))
	if isObject(d) {
		at += 4 + 8*n
		for k := range datum.JSONBPairs(d) {
			at += int64(len(k))
		}
		for _, v := range datum.JSONBPairs(d) {
			at = w.value(v, at)
		}
		return at
	}
	at += 4 + 4*n
	for v := range datum.JSONBElems(d) {
		at = w.value(v, at)
	}
	return at
}

func (w *jsonbLayout) value(v datum.Datum, at int64) int64 {
	if s, ok := datum.JSONBString(v); ok {
		return at + int64(len(s))
	}
	if num, ok := datum.JSONBNumber(v); ok {
		b := datum.Numeric.AppendBinary(nil, num)
		header := int64(4 + 2) // a varlena's length, a short numeric's header
		if weight, scale := int16(binary.BigEndian.Uint16(b[2:])), binary.BigEndian.Uint16(b[6:]); weight < -64 || weight > 63 || scale > 63 {
			header += 2
		}
		return (at+3)&^3 + header + 2*int64(binary.BigEndian.Uint16(b))
	}
	if isScalar(v) {
		return at
	}
	return w.container(v, (at+3)&^3)
}
