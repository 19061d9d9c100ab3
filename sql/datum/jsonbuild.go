package datum

import (
	"encoding/binary"
	"slices"
	"strings"
)

// JSONBBuilder builds a jsonb value from the outside in. Calls must balance; in
// an object each value follows its Key, and of equal keys the last wins. The
// zero value is ready; after Done it may be used again.
type JSONBBuilder struct {
	out    []byte // the finished root
	frames []jsonFrame
	depth  int
}

// jsonFrame is an array or object under construction.
type jsonFrame struct {
	object bool
	vals   []byte
	ends   []int // end of each value in vals
	keys   []byte
	keyEnd []int
}

func (b *JSONBBuilder) begin(object bool) {
	if b.depth == len(b.frames) {
		b.frames = append(b.frames, jsonFrame{})
	}
	f := &b.frames[b.depth]
	b.depth++
	f.object = object
	f.vals, f.ends, f.keys, f.keyEnd = f.vals[:0], f.ends[:0], f.keys[:0], f.keyEnd[:0]
}

// put appends a finished node where it belongs.
func (b *JSONBBuilder) put(write func(dst []byte) []byte) {
	if b.depth == 0 {
		b.out = write(nil)
		return
	}
	f := &b.frames[b.depth-1]
	f.vals = write(f.vals)
	f.ends = append(f.ends, len(f.vals))
}

// BeginObject starts an object.
func (b *JSONBBuilder) BeginObject() { b.begin(true) }

// BeginArray starts an array.
func (b *JSONBBuilder) BeginArray() { b.begin(false) }

// Key gives the key of the next value.
func (b *JSONBBuilder) Key(k string) {
	f := &b.frames[b.depth-1]
	f.keys = append(f.keys, k...)
	f.keyEnd = append(f.keyEnd, len(f.keys))
}

// Null adds the JSON null.
func (b *JSONBBuilder) Null() { b.scalar(jsonNull) }

// Bool adds true or false.
func (b *JSONBBuilder) Bool(v bool) {
	if v {
		b.scalar(jsonTrue)
	} else {
		b.scalar(jsonFalse)
	}
}

func (b *JSONBBuilder) scalar(kind byte) {
	b.put(func(dst []byte) []byte { return append(dst, kind) })
}

// String adds a string; it is copied.
func (b *JSONBBuilder) String(s string) {
	b.put(func(dst []byte) []byte { return append(append(dst, jsonString), s...) })
}

// Number adds a numeric that is neither NaN nor infinite.
func (b *JSONBBuilder) Number(num Datum) {
	b.put(func(dst []byte) []byte { return appendNumericValue(append(dst, jsonNumber), num) })
}

// Value adds a copy of a jsonb value.
func (b *JSONBBuilder) Value(jsonb Datum) {
	b.put(func(dst []byte) []byte { return append(dst, jsonb.Bytes()...) })
}

// EndArray ends an array.
func (b *JSONBBuilder) EndArray() {
	b.depth--
	f := &b.frames[b.depth]
	b.put(func(dst []byte) []byte {
		count := len(f.ends)
		wide := boxWidth(max(len(f.vals), count))
		dst = append(dst, jsonArray|wide<<4)
		dst = appendWidth(dst, wide, count)
		for _, e := range f.ends {
			dst = appendWidth(dst, wide, e)
		}
		return append(dst, f.vals...)
	})
}

// EndObject ends an object.
func (b *JSONBBuilder) EndObject() {
	b.depth--
	f := &b.frames[b.depth]
	order := f.order()
	b.put(func(dst []byte) []byte {
		keys, vals := 0, 0
		for _, i := range order {
			keys += len(f.key(i))
			vals += len(f.val(i))
		}
		wide := boxWidth(max(keys, vals, len(order)))
		dst = append(dst, jsonObject|wide<<4)
		dst = appendWidth(dst, wide, len(order))
		end := 0
		for _, i := range order {
			end += len(f.key(i))
			dst = appendWidth(dst, wide, end)
		}
		end = 0
		for _, i := range order {
			end += len(f.val(i))
			dst = appendWidth(dst, wide, end)
		}
		for _, i := range order {
			dst = append(dst, f.key(i)...)
		}
		for _, i := range order {
			dst = append(dst, f.val(i)...)
		}
		return dst
	})
}

func (f *jsonFrame) key(i int) []byte {
	start := 0
	if i > 0 {
		start = f.keyEnd[i-1]
	}
	return f.keys[start:f.keyEnd[i]]
}

func (f *jsonFrame) val(i int) []byte {
	start := 0
	if i > 0 {
		start = f.ends[i-1]
	}
	return f.vals[start:f.ends[i]]
}

// order lists the pairs to keep, sorted by key.
func (f *jsonFrame) order() []int {
	order := make([]int, len(f.ends))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return compareKeys(f.key(i), Bytes(f.key(j)).Str()) })
	kept := order[:0]
	for n, i := range order {
		if n+1 < len(order) && strings.Compare(Bytes(f.key(i)).Str(), Bytes(f.key(order[n+1])).Str()) == 0 {
			continue
		}
		kept = append(kept, i)
	}
	return kept
}

// boxWidth is the code of the least width that holds v.
func boxWidth(v int) byte {
	switch {
	case v < 1<<8:
		return 0
	case v < 1<<16:
		return 1
	}
	return 2
}

func appendWidth(dst []byte, wide byte, v int) []byte {
	switch wide {
	case 0:
		return append(dst, byte(v))
	case 1:
		return binary.LittleEndian.AppendUint16(dst, uint16(v))
	}
	return binary.LittleEndian.AppendUint32(dst, uint32(v))
}

// Done returns the value; every Begin must have met its End.
func (b *JSONBBuilder) Done() Datum {
	d := Bytes(b.out)
	b.out, b.depth = nil, 0
	return d
}
