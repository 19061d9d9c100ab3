package datum

import (
	"bytes"
	"encoding/binary"
	"iter"
	"strings"
)

// A jsonb value is one node, and every node is a jsonb value: its first byte is
// the kind (low four bits) and, for arrays and objects, the width of their
// numbers (high four bits: 0, 1, 2 for 1, 2, 4 bytes, the least that suffices).
//
//	number  a numeric as rows store it
//	string  its bytes
//	array   count, the end of each element, elements
//	object  count, the end of each key, the end of each value, keys, values
//
// Ends are offsets from the start of what they delimit, little endian. Keys are
// unique and sorted by length, then bytes, as in PostgreSQL.
const (
	jsonNull byte = iota
	jsonFalse
	jsonTrue
	jsonNumber
	jsonString
	jsonArray
	jsonObject
)

func jsonKind(n []byte) byte {
	if len(n) == 0 {
		return jsonNull
	}
	return n[0] & 15
}

// jsonBox is an array or object taken apart. Offsets that lead nowhere read as
// empty, so that corrupt bytes cannot cause a panic.
type jsonBox struct {
	count      int
	width      int
	keyEnds    []byte
	valEnds    []byte
	keys, vals []byte
}

func openBox(n []byte) (b jsonBox) {
	kind := jsonKind(n)
	if kind != jsonArray && kind != jsonObject || n[0]>>4 > 2 {
		return b
	}
	b.width = 1 << (n[0] >> 4)
	n = n[1:]
	if len(n) < b.width {
		return jsonBox{}
	}
	count := b.number(n, 0)
	n = n[b.width:]
	tables := 1
	if kind == jsonObject {
		tables = 2
	}
	if count > len(n)/b.width/tables {
		return jsonBox{}
	}
	b.count = count
	size := count * b.width
	if kind == jsonObject {
		b.keyEnds, n = n[:size], n[size:]
	}
	b.valEnds, n = n[:size], n[size:]
	if kind == jsonObject && count > 0 {
		end := min(b.number(b.keyEnds, count-1), len(n))
		b.keys, n = n[:end], n[end:]
	}
	b.vals = n
	return b
}

func (b *jsonBox) number(table []byte, i int) int {
	switch t := table[i*b.width:]; b.width {
	case 1:
		return int(t[0])
	case 2:
		return int(binary.LittleEndian.Uint16(t))
	default:
		return int(binary.LittleEndian.Uint32(t))
	}
}

func (b *jsonBox) slice(table, data []byte, i int) []byte {
	start, end := 0, b.number(table, i)
	if i > 0 {
		start = b.number(table, i-1)
	}
	if start > end || end > len(data) {
		return nil
	}
	return data[start:end:end]
}

func (b *jsonBox) key(i int) []byte { return b.slice(b.keyEnds, b.keys, i) }
func (b *jsonBox) val(i int) []byte { return b.slice(b.valEnds, b.vals, i) }

// find looks a key up in an object.
func (b *jsonBox) find(key string) (int, bool) {
	lo, hi := 0, b.count
	for lo < hi {
		mid := int(uint(lo+hi) / 2)
		switch c := compareKeys(b.key(mid), key); {
		case c == 0:
			return mid, true
		case c < 0:
			lo = mid + 1
		default:
			hi = mid
		}
	}
	return 0, false
}

// compareKeys is the order in which objects keep their keys.
func compareKeys(a []byte, b string) int {
	if len(a) != len(b) {
		return cmp64(int64(len(a)), int64(len(b)))
	}
	return strings.Compare(Bytes(a).Str(), b)
}

// JSONBTypeOf is jsonb_typeof: object, array, string, number, boolean or null.
func JSONBTypeOf(d Datum) string {
	switch jsonKind(d.Bytes()) {
	case jsonFalse, jsonTrue:
		return "boolean"
	case jsonNumber:
		return "number"
	case jsonString:
		return "string"
	case jsonArray:
		return "array"
	case jsonObject:
		return "object"
	}
	return "null"
}

// JSONBLen is the number of elements or pairs; 0 for a scalar.
func JSONBLen(d Datum) int {
	b := openBox(d.Bytes())
	return b.count
}

// JSONBGet is the value of a key of an object. It refers to d's bytes.
func JSONBGet(d Datum, key string) (Datum, bool) {
	if jsonKind(d.Bytes()) != jsonObject {
		return Null, false
	}
	b := openBox(d.Bytes())
	i, ok := b.find(key)
	if !ok {
		return Null, false
	}
	return Bytes(b.val(i)), true
}

// JSONBIndex is the i-th element of an array from 0; a negative i counts from
// the end.
func JSONBIndex(d Datum, i int) (Datum, bool) {
	if jsonKind(d.Bytes()) != jsonArray {
		return Null, false
	}
	b := openBox(d.Bytes())
	if i < 0 {
		i += b.count
	}
	if i < 0 || i >= b.count {
		return Null, false
	}
	return Bytes(b.val(i)), true
}

// JSONBElems yields the elements of an array; nothing for other values.
func JSONBElems(d Datum) iter.Seq[Datum] {
	return func(yield func(Datum) bool) {
		if jsonKind(d.Bytes()) != jsonArray {
			return
		}
		b := openBox(d.Bytes())
		for i := range b.count {
			if !yield(Bytes(b.val(i))) {
				return
			}
		}
	}
}

// JSONBPairs yields the pairs of an object in stored order; nothing for other
// values.
func JSONBPairs(d Datum) iter.Seq2[string, Datum] {
	return func(yield func(string, Datum) bool) {
		if jsonKind(d.Bytes()) != jsonObject {
			return
		}
		b := openBox(d.Bytes())
		for i := range b.count {
			if !yield(Bytes(b.key(i)).Str(), Bytes(b.val(i))) {
				return
			}
		}
	}
}

// JSONBString is the content of a string value.
func JSONBString(d Datum) (string, bool) {
	if n := d.Bytes(); jsonKind(n) == jsonString {
		return Bytes(n[1:]).Str(), true
	}
	return "", false
}

// JSONBNumber is the numeric of a number value.
func JSONBNumber(d Datum) (Datum, bool) {
	n := d.Bytes()
	if jsonKind(n) != jsonNumber {
		return Null, false
	}
	v, used := readValue(n[1:], storeNumeric)
	return v, used > 0
}

// JSONBBool is the value of a boolean.
func JSONBBool(d Datum) (v, ok bool) {
	k := jsonKind(d.Bytes())
	return k == jsonTrue, k == jsonTrue || k == jsonFalse
}

// JSONBIsNull reports whether d is the JSON null.
func JSONBIsNull(d Datum) bool { return jsonKind(d.Bytes()) == jsonNull }

// JSONBText is what ->> returns: a string without quotes, other values as text;
// null for the JSON null.
func JSONBText(d Datum) (s string, null bool) {
	if JSONBIsNull(d) {
		return "", true
	}
	if s, ok := JSONBString(d); ok {
		return s, false
	}
	return string(appendNode(nil, d.Bytes())), false
}

// appendNode writes a node as PostgreSQL prints jsonb.
func appendNode(dst, n []byte) []byte {
	switch jsonKind(n) {
	case jsonFalse:
		return append(dst, "false"...)
	case jsonTrue:
		return append(dst, "true"...)
	case jsonNumber:
		d, _ := JSONBNumber(Bytes(n))
		if d.IsNull() {
			return append(dst, "null"...)
		}
		return appendNumeric(dst, d, nil)
	case jsonString:
		return AppendJSONString(dst, Bytes(n[1:]).Str())
	case jsonArray:
		b := openBox(n)
		dst = append(dst, '[')
		for i := range b.count {
			if i > 0 {
				dst = append(dst, ", "...)
			}
			dst = appendNode(dst, b.val(i))
		}
		return append(dst, ']')
	case jsonObject:
		b := openBox(n)
		dst = append(dst, '{')
		for i := range b.count {
			if i > 0 {
				dst = append(dst, ", "...)
			}
			dst = append(AppendJSONString(dst, Bytes(b.key(i)).Str()), ": "...)
			dst = appendNode(dst, b.val(i))
		}
		return append(dst, '}')
	}
	return append(dst, "null"...)
}

// jsonRank orders kinds: null < string < number < boolean < array < object.
var jsonRank = [16]byte{jsonNull: 0, jsonString: 1, jsonNumber: 2, jsonFalse: 3, jsonTrue: 3, jsonArray: 4, jsonObject: 5}

// compareJSONB is compareJsonbContainers: by kind, then by count, then by
// content. For historical reasons an empty array at the top is below all else
// but an object.
func compareJSONB(a, b Datum) int {
	x, y := a.Bytes(), b.Bytes()
	if ex, ey := emptyArray(x), emptyArray(y); ex != ey {
		if ex {
			return -1
		}
		return 1
	}
	return compareNodes(x, y)
}

func emptyArray(n []byte) bool { return jsonKind(n) == jsonArray && JSONBLen(Bytes(n)) == 0 }

func compareNodes(x, y []byte) int {
	kx, ky := jsonKind(x), jsonKind(y)
	if jsonRank[kx] != jsonRank[ky] {
		return cmp64(int64(jsonRank[kx]), int64(jsonRank[ky]))
	}
	switch kx {
	case jsonFalse, jsonTrue:
		return cmp64(int64(kx), int64(ky))
	case jsonNumber:
		a, _ := JSONBNumber(Bytes(x))
		b, _ := JSONBNumber(Bytes(y))
		if a.IsNull() || b.IsNull() {
			return bytes.Compare(x, y)
		}
		return NumericCmp(a, b)
	case jsonString:
		return bytes.Compare(x[1:], y[1:])
	case jsonArray, jsonObject:
		a, b := openBox(x), openBox(y)
		if a.count != b.count {
			return cmp64(int64(a.count), int64(b.count))
		}
		for i := range a.count {
			if kx == jsonObject {
				if c := bytes.Compare(a.key(i), b.key(i)); c != 0 {
					return c
				}
			}
			if c := compareNodes(a.val(i), b.val(i)); c != 0 {
				return c
			}
		}
	}
	return 0
}

// Markers of jsonb keys, in the order of compareJSONB.
const (
	keyJSONEmpty = 0x01 // the empty array at the top
	keyJSONRank  = 0x10 // plus jsonRank
)

func keyJSONB(dst []byte, d Datum) []byte {
	if emptyArray(d.Bytes()) {
		return append(dst, keyJSONEmpty)
	}
	return keyNode(dst, d.Bytes())
}

func keyNode(dst, n []byte) []byte {
	kind := jsonKind(n)
	dst = append(dst, keyJSONRank+jsonRank[kind])
	switch kind {
	case jsonFalse, jsonTrue:
		return append(dst, kind)
	case jsonNumber:
		d, _ := JSONBNumber(Bytes(n))
		if d.IsNull() {
			d = NumericNaN
		}
		return keyNumeric(dst, d)
	case jsonString:
		return appendEscaped(dst, n[1:])
	case jsonArray, jsonObject:
		b := openBox(n)
		dst = binary.BigEndian.AppendUint32(dst, uint32(b.count))
		for i := range b.count {
			if kind == jsonObject {
				dst = appendEscaped(dst, b.key(i))
			}
			dst = keyNode(dst, b.val(i))
		}
	}
	return dst
}

func skipJSONBKey(b []byte) ([]byte, error) {
	if len(b) > 0 && b[0] == keyJSONEmpty {
		return b[1:], nil
	}
	return skipNodeKey(b, 0)
}

func skipNodeKey(b []byte, depth int) ([]byte, error) {
	if len(b) == 0 || b[0] < keyJSONRank || depth > maxJSONDepth {
		return nil, errBadKey()
	}
	rank := b[0] - keyJSONRank
	b = b[1:]
	switch rank {
	case jsonRank[jsonNull]:
		return b, nil
	case jsonRank[jsonTrue]:
		return skipFixed(1)(b)
	case jsonRank[jsonNumber]:
		return skipNumericKey(b)
	case jsonRank[jsonString]:
		return skipEscaped(b)
	case jsonRank[jsonArray], jsonRank[jsonObject]:
		if len(b) < 4 {
			return nil, errBadKey()
		}
		count := binary.BigEndian.Uint32(b)
		b = b[4:]
		var err error
		for ; count > 0 && err == nil; count-- {
			if rank == jsonRank[jsonObject] {
				if b, err = skipEscaped(b); err != nil {
					return nil, err
				}
			}
			b, err = skipNodeKey(b, depth+1)
		}
		return b, err
	}
	return nil, errBadKey()
}

func hashJSONB(h uint64, d Datum) uint64 { return hashNode(h, d.Bytes()) }

func hashNode(h uint64, n []byte) uint64 {
	kind := jsonKind(n)
	h = HashInt(h, uint64(kind))
	switch kind {
	case jsonNumber:
		if d, ok := JSONBNumber(Bytes(n)); ok {
			return hashNumeric(h, d)
		}
	case jsonString:
		return HashBytes(h, n[1:])
	case jsonArray, jsonObject:
		b := openBox(n)
		for i := range b.count {
			if kind == jsonObject {
				h = HashBytes(h, b.key(i))
			}
			h = hashNode(h, b.val(i))
		}
	}
	return h
}

// JSONBContains is a @> b.
func JSONBContains(a, b Datum) bool {
	x, y := a.Bytes(), b.Bytes()
	if jsonKind(x) == jsonArray && jsonKind(y) < jsonArray {
		return containsElem(x, y)
	}
	return containsNode(x, y)
}

func containsNode(x, y []byte) bool {
	kx, ky := jsonKind(x), jsonKind(y)
	if jsonRank[kx] != jsonRank[ky] {
		return false
	}
	switch kx {
	case jsonObject:
		a, b := openBox(x), openBox(y)
		for i := range b.count {
			at, ok := a.find(Bytes(b.key(i)).Str())
			if !ok || !containsNode(a.val(at), b.val(i)) {
				return false
			}
		}
		return true
	case jsonArray:
		b := openBox(y)
		for i := range b.count {
			if !containsElem(x, b.val(i)) {
				return false
			}
		}
		return true
	}
	return compareNodes(x, y) == 0
}

// containsElem reports whether some element of the array x contains y.
func containsElem(x, y []byte) bool {
	a := openBox(x)
	for i := range a.count {
		if containsNode(a.val(i), y) {
			return true
		}
	}
	return false
}

// OffsetIn is the number of bytes of doc that lie before part, a node inside of
// it; -1 if it lies elsewhere.
func OffsetIn(doc, part Datum) int64 {
	at := int64(uintptr(part.p)) - int64(uintptr(doc.p))
	if part.p == nil || at < 0 || at >= int64(doc.n) {
		return -1
	}
	return at
}
