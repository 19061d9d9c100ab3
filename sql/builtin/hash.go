package builtin

import (
	"encoding/binary"
	"math"
	"math/bits"
	"strings"

	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// PostgreSQL's hash functions (hashint4 and the like), for those who compute with
// them: values are those of src/common/hashfn.c, Bob Jenkins' lookup3, on a
// little-endian machine. Nothing in the engine depends on them.

type jenkins struct{ a, b, c uint32 }

func newJenkins(n int, seed uint64) jenkins {
	v := uint32(0x9e3779b9) + uint32(n) + 3923095
	h := jenkins{v, v, v}
	if seed != 0 {
		h.a += uint32(seed >> 32)
		h.b += uint32(seed)
		h.mix()
	}
	return h
}

func (h *jenkins) mix() {
	a, b, c := h.a, h.b, h.c
	a = (a - c) ^ bits.RotateLeft32(c, 4)
	c += b
	b = (b - a) ^ bits.RotateLeft32(a, 6)
	a += c
	c = (c - b) ^ bits.RotateLeft32(b, 8)
	b += a
	a = (a - c) ^ bits.RotateLeft32(c, 16)
	c += b
	b = (b - a) ^ bits.RotateLeft32(a, 19)
	a += c
	c = (c - b) ^ bits.RotateLeft32(b, 4)
	b += a
	h.a, h.b, h.c = a, b, c
}

func (h *jenkins) final() uint64 {
	a, b, c := h.a, h.b, h.c
	c = (c ^ b) - bits.RotateLeft32(b, 14)
	a = (a ^ c) - bits.RotateLeft32(c, 11)
	b = (b ^ a) - bits.RotateLeft32(a, 25)
	c = (c ^ b) - bits.RotateLeft32(b, 16)
	a = (a ^ c) - bits.RotateLeft32(c, 4)
	b = (b ^ a) - bits.RotateLeft32(a, 14)
	c = (c ^ b) - bits.RotateLeft32(b, 24)
	return uint64(b)<<32 | uint64(c)
}

// hashAny is hash_bytes_extended; its low half with seed 0 is hash_bytes.
func hashAny(k []byte, seed uint64) uint64 {
	h := newJenkins(len(k), seed)
	for len(k) >= 12 {
		h.a += binary.LittleEndian.Uint32(k)
		h.b += binary.LittleEndian.Uint32(k[4:])
		h.c += binary.LittleEndian.Uint32(k[8:])
		h.mix()
		k = k[12:]
	}
	var tail [12]byte
	copy(tail[:8], k)
	if len(k) > 8 {
		copy(tail[9:], k[8:]) // the lowest byte of c is the length's
	}
	h.a += binary.LittleEndian.Uint32(tail[:])
	h.b += binary.LittleEndian.Uint32(tail[4:])
	h.c += binary.LittleEndian.Uint32(tail[8:])
	return h.final()
}

func hashUint32(v uint32, seed uint64) uint64 {
	h := newJenkins(4, seed)
	h.a += v
	return h.final()
}

func hashInt64(v int64, seed uint64) uint64 {
	low, high := uint32(v), uint32(v>>32)
	if v < 0 {
		high = ^high
	}
	return hashUint32(low^high, seed)
}

// pgHash is the extended hash of a value; ok is false if its type has none here.
// Without extension PostgreSQL's hash is the low half of that with seed 0,
// except for what is made of several hashes (wide is false for those).
type pgHash struct {
	seed uint64
	wide bool
}

func (p pgHash) value(t *datum.Desc, d datum.Datum) (uint64, bool) {
	r := datum.T(t).Root().Desc
	switch {
	case r.IsArray():
		return p.list(1, datum.ArrayValues(d), func(int) *datum.Desc { return r.Elem })
	case r.IsRange():
		return p.rangeHash(r, d)
	case r.IsMultirange():
		h := uint64(1)
		for x := range datum.MultirangeRanges(r, d) {
			v, ok := p.rangeHash(r.Range, x)
			if !ok {
				return 0, false
			}
			h = p.fold(h, v)
		}
		return h, true
	case r.Kind == datum.Enum:
		for i := range r.Labels {
			if float64(r.Labels[i].Sort) == d.Float() {
				return hashUint32(uint32(r.Labels[i].OID), p.seed), true
			}
		}
		return 0, false
	case r.Kind == datum.Composite, r == datum.Record:
		oids, vals := datum.RecordFields(d)
		return p.list(0, vals, func(i int) *datum.Desc {
			if i < len(r.Fields) {
				return r.Fields[i].Type.Desc
			}
			return datum.ByOID(oids[i])
		})
	}
	return p.scalar(r, d)
}

// fold is h * 31 + v.
func (p pgHash) fold(h, v uint64) uint64 {
	if !p.wide {
		return uint64(uint32(h)<<5 - uint32(h) + uint32(v))
	}
	return h<<5 - h + v
}

func (p pgHash) list(h uint64, vals []datum.Datum, typ func(i int) *datum.Desc) (uint64, bool) {
	for i, v := range vals {
		e, ok := uint64(0), true
		if !v.IsNull() {
			t := typ(i)
			if t == nil {
				return 0, false
			}
			e, ok = p.value(t, v)
		}
		if !ok {
			return 0, false
		}
		h = p.fold(h, e)
	}
	return h, true
}

func (p pgHash) rangeHash(t *datum.Desc, d datum.Datum) (uint64, bool) {
	lower, upper, empty := datum.RangeBounds(t, d)
	var low, high uint64
	ok1, ok2 := true, true
	if !empty && !lower.Infinite {
		low, ok1 = p.value(t.Sub, lower.Val)
	}
	if !empty && !upper.Infinite {
		high, ok2 = p.value(t.Sub, upper.Val)
	}
	h := hashUint32(uint32(t.AppendBinary(nil, d)[0]), p.seed) ^ low
	if p.wide {
		h = h<<1&^(1<<32|1) | h>>31&(1<<32|1) // each half by itself
	} else {
		h = uint64(bits.RotateLeft32(uint32(h), 1))
	}
	return h ^ high, ok1 && ok2
}

func (p pgHash) scalar(t *datum.Desc, d datum.Datum) (uint64, bool) {
	switch t {
	case datum.BoolType, datum.Int2, datum.Int4, datum.OIDType, datum.Date, datum.XID, datum.CID:
		return hashUint32(uint32(d.Int()), p.seed), true
	case datum.Char:
		return hashUint32(uint32(int8(d.Int())), p.seed), true
	case datum.Int8, datum.Time, datum.Timestamp, datum.TimestampTZ, datum.XID8:
		return hashInt64(d.Int(), p.seed), true
	case datum.Float4, datum.Float8:
		return p.float(d.Float()), true
	case datum.Numeric:
		return p.numeric(d), true
	case datum.BpChar:
		return hashAny([]byte(datum.BpCharTrim(d)), p.seed), true
	case datum.Text, datum.VarChar, datum.Name, datum.Bytea, datum.UUID, datum.Inet, datum.Cidr:
		return hashAny(d.Bytes(), p.seed), true
	case datum.TimeTZ:
		us, west := datum.TimeTZParts(d)
		return hashInt64(us, p.seed) ^ hashUint32(uint32(west), p.seed), true
	case datum.Interval:
		return hashInt64(datum.IntervalSpan(d), p.seed), true
	case datum.TID:
		b := datum.TID.AppendBinary(nil, d)
		for _, at := range []int{0, 2, 4} { // three numbers of two bytes
			b[at], b[at+1] = b[at+1], b[at]
		}
		return hashAny(b, p.seed), true
	case datum.OIDVector:
		var b []byte
		for v := range datum.ArrayElems(d) {
			b = binary.LittleEndian.AppendUint32(b, uint32(v.Int()))
		}
		return hashAny(b, p.seed), true
	}
	return 0, false
}

func (p pgHash) float(v float64) uint64 {
	if v == 0 {
		return p.seed
	}
	b := math.Float64bits(v)
	if v != v {
		b = 0x7ff8000000000000
	}
	var k [8]byte
	binary.LittleEndian.PutUint64(k[:], b)
	return hashAny(k[:], p.seed)
}

// numeric hashes the digits without zeros at either end, and the weight.
func (p pgHash) numeric(d datum.Datum) uint64 {
	b := datum.Numeric.AppendBinary(nil, d)
	if binary.BigEndian.Uint16(b[4:]) >= 0xc000 {
		return p.seed // NaN and the infinities
	}
	n, weight := int(binary.BigEndian.Uint16(b)), int16(binary.BigEndian.Uint16(b[2:]))
	digits := b[8 : 8+2*n]
	for len(digits) > 0 && digits[0] == 0 && digits[1] == 0 {
		digits, weight = digits[2:], weight-1
	}
	for k := len(digits); k > 0 && digits[k-1] == 0 && digits[k-2] == 0; k = len(digits) {
		digits = digits[:k-2]
	}
	if len(digits) == 0 {
		return p.seed - 1
	}
	le := make([]byte, len(digits))
	for i := 0; i < len(digits); i += 2 {
		le[i], le[i+1] = digits[i+1], digits[i]
	}
	return hashAny(le, p.seed) ^ uint64(int64(weight))
}

// bindHash implements the hash functions, of one argument and with a seed.
func bindHash(args []datum.Type, _ datum.Type) (Eval, error) {
	t := args[0].Root().Desc
	return func(c *Ctx, a []datum.Datum) (datum.Datum, error) {
		p := pgHash{wide: len(a) == 2}
		if p.wide {
			p.seed = uint64(a[1].Int())
		}
		if !a[0].Inline() {
			if err := c.Budget.Spend(int64(len(a[0].Bytes())) / 64); err != nil {
				return datum.Null, err
			}
		}
		h, ok := p.value(t, a[0])
		switch {
		case !ok && (t.IsArray() || isComposite(t) || t == datum.Record):
			return datum.Null, pgerr.New(pgerr.UndefinedFunction, "could not identify a hash function for type %s", typeName(args[0]))
		case !ok:
			return datum.Null, pgerr.NotBuilt("hashing type %s is not supported", typeName(args[0]))
		case p.wide:
			return datum.Int(int64(h)), nil
		}
		return datum.Int(int64(int32(h))), nil
	}, nil
}

// linkByShape implements the families of functions that one rule covers: those
// that compare for an index, those that hash, those that send.
func linkByShape(f *Func, impl string) bool {
	switch n := len(f.Args); {
	case f.RetSet:
	case n == 1 && f.Ret == datum.Bytea && strings.HasSuffix(impl, "send"):
		f.Bind = bindSend
	case impl == "btint2cmp":
		f.Eval = func(_ *Ctx, a []datum.Datum) (datum.Datum, error) { return datum.Int(a[0].Int() - a[1].Int()), nil }
		return true
	case n == 2 && f.Ret == datum.Int4 && strings.HasSuffix(impl, "cmp") && f.Args[0] == f.Args[1]:
		f.Bind = bindCompare
	case n == 2 && f.Ret == datum.Int4 && strings.HasPrefix(impl, "bt") && strings.HasSuffix(impl, "cmp"):
		f.Bind = bindCrossCompare
	case n == 1 && f.Ret == datum.Int4 && strings.Contains(impl, "hash"), n == 2 && f.Ret == datum.Int8 && strings.Contains(impl, "hash"):
		if f.Args[0] == datum.JSONB {
			return false
		}
		f.Bind = bindHash
	default:
		return false
	}
	return f.Bind != nil
}

// bindCrossCompare compares numbers of different widths, or text and names.
func bindCrossCompare(args []datum.Type, _ datum.Type) (Eval, error) {
	compare := datum.Text.Compare
	switch {
	case isInt(args[0].Desc):
		compare = compareInts
	case isFloat(args[0].Desc):
		compare = datum.Float8.Compare
	}
	return func(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
		return datum.Int(int64(sign(compare(a[0], a[1])))), nil
	}, nil
}
