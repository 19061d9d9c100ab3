package datum

import (
	"math"
	"math/rand/v2"
	"strings"
)

// A testbed of types with every feature: built-in ones, arrays of them, user
// types.
var (
	testEnum = NewEnum(90001, "mood", []EnumLabel{{1, "sad", 1}, {2, "so so", 1.5}, {3, "happy", 2}})
)

func propertyTypes() []Type {
	mod := func(t *Desc, args ...int64) Type {
		m, err := ModIn(t, args)
		if err != nil {
			panic(err)
		}
		return Type{t, m}
	}
	composite := NewComposite(90002, "pair", []Field{{"a", T(Int4)}, {"b", mod(VarChar, 20)}, {"c", T(Numeric.Array)}, {"d", T(testEnum)}})
	domain := NewDomain(90003, "short", mod(VarChar, 5))
	types := []Type{
		T(BoolType), T(Char), T(Int2), T(Int4), T(Int8), T(OIDType), T(XID8), T(TID), T(Float4), T(Float8), T(Numeric), mod(Numeric, 12, 4),
		T(Text), mod(VarChar, 4), mod(BpChar, 5), T(BpChar), T(Name), T(Bytea), T(UUID), T(JSONB), T(Date), T(Time), T(TimeTZ), T(Timestamp),
		T(TimestampTZ), T(Interval), mod(Timestamp, 3), T(testEnum), T(composite), T(domain), T(Int2Vector), T(OIDVector), T(RegClass),
		T(NewArrayDesc(composite, 90004)), T(NewArrayDesc(domain, 90005)),
	}
	types = append(types, T(NewRange(90006, "textrange", Text, 90007, "textmultirange")), T(Int4Range.Array))
	for _, t := range []*Desc{Int4Range, Int8Range, NumRange, DateRange, TSRange, TSTZRange} {
		types = append(types, T(t), T(t.Multi))
	}
	for _, t := range []*Desc{BoolType, Int4, Int8, Text, Numeric, Float8, Timestamp, Interval, JSONB, UUID, Bytea, TimeTZ} {
		types = append(types, T(t.Array))
	}
	return types
}

// genDatum makes a random value; small domains so that equal values occur.
func genDatum(rng *rand.Rand, t Type) Datum {
	d := genRaw(rng, t)
	if t.Coerce != nil && t.Mod >= 0 {
		var err error
		if d, err = t.Coerce(d, t.Mod, true); err != nil {
			panic(err)
		}
	}
	return d
}

func genInt(rng *rand.Rand, bits uint) int64 {
	v := int64(rng.Uint64()) >> (64 - bits)
	if rng.IntN(2) == 0 {
		v >>= rng.UintN(bits)
	}
	return v
}

func genString(rng *rand.Rand) string {
	alphabet := []rune("ab ,\"\\{}()'\n\tNUL\x01ä€😀01")
	var b strings.Builder
	for range rng.IntN(8) {
		b.WriteRune(alphabet[rng.IntN(len(alphabet))])
	}
	if rng.IntN(20) == 0 {
		return "NULL"
	}
	return b.String()
}

func genFloat(rng *rand.Rand) float64 {
	switch rng.IntN(8) {
	case 0:
		return math.NaN()
	case 1:
		return math.Inf(1 - 2*rng.IntN(2))
	case 2:
		return math.Copysign(0, float64(rng.IntN(2))-0.5)
	case 3:
		return float64(rng.IntN(5) - 2)
	case 4:
		f := math.Float64frombits(rng.Uint64())
		return f
	}
	return rng.NormFloat64() * math.Pow(10, float64(rng.IntN(40)-20))
}

func genNumeric(rng *rand.Rand) Datum {
	if rng.IntN(12) == 0 {
		return []Datum{NumericNaN, NumericPosInf, NumericNegInf, smallNumeric(0, rng.IntN(4))}[rng.IntN(4)]
	}
	s := randomNumeric(rng)
	if rng.IntN(3) == 0 {
		s += "00"
	}
	d, err := ParseNumeric(s)
	if err != nil {
		panic(err)
	}
	return d
}

func genJSON(rng *rand.Rand, b *JSONBBuilder, depth int) {
	switch n := rng.IntN(8); {
	case n == 0:
		b.Null()
	case n == 1:
		b.Bool(rng.IntN(2) == 0)
	case n <= 3 || depth > 3:
		d := genNumeric(rng)
		if NumericScale(d) < 0 {
			d = Datum{}
		}
		b.Number(d)
	case n == 4:
		b.String(genString(rng))
	case n <= 6:
		b.BeginArray()
		for range rng.IntN(4) {
			genJSON(rng, b, depth+1)
		}
		b.EndArray()
	default:
		b.BeginObject()
		for range rng.IntN(4) {
			b.Key(genString(rng))
			genJSON(rng, b, depth+1)
		}
		b.EndObject()
	}
}

func genMoment(rng *rand.Rand) int64 {
	switch rng.IntN(8) {
	case 0:
		return TimestampPosInf
	case 1:
		return TimestampNegInf
	case 2:
		return int64(rng.IntN(3)) * usPerDay
	case 3:
		return minTimestamp + rng.Int64N(1<<40)
	}
	return rng.Int64N(1<<52) - 1<<51
}

func genRaw(rng *rand.Rand, t Type) Datum {
	if t.Kind == Domain {
		return genDatum(rng, t.Base)
	}
	if t.Elem != nil {
		return genArray(rng, t.Desc)
	}
	switch t.Kind {
	case Composite:
		types, vals := make([]Type, len(t.Fields)), make([]Datum, len(t.Fields))
		for i, f := range t.Fields {
			types[i], vals[i] = f.Type, Null
			if rng.IntN(4) > 0 {
				vals[i] = genDatum(rng, f.Type)
			}
		}
		return MakeRecord(types, vals)
	case Enum:
		return Float(float64(t.Labels[rng.IntN(len(t.Labels))].Sort))
	case Range:
		return genRange(rng, t.Desc)
	case Multirange:
		var list []Datum
		for range rng.IntN(4) {
			list = append(list, genRange(rng, t.Range))
		}
		return MakeMultirange(t.Desc, list)
	}
	switch t.OID {
	case BoolOID:
		return Bool(rng.IntN(2) == 0)
	case CharOID:
		return Datum{n: uint64(rng.IntN(256))}
	case Int2OID:
		return Int(genInt(rng, 16))
	case Int4OID:
		return Int(genInt(rng, 32))
	case Int8OID:
		return Int(genInt(rng, 64))
	case OIDOID, RegClassOID:
		return Int(int64(uint32(genInt(rng, 33))))
	case XID8OID:
		return Int(genInt(rng, 64))
	case TIDOID:
		return MakeTID(rng.Uint32N(5), uint16(rng.Uint32()))
	case Float4OID:
		return Float(float64(float32(genFloat(rng))))
	case Float8OID:
		return Float(genFloat(rng))
	case NumericOID:
		d := genNumeric(rng)
		if t.Mod >= 0 {
			d = decimalInt(genInt(rng, 25), rng.IntN(7))
		}
		return d
	case TextOID, VarCharOID, BpCharOID, NameOID:
		return Str(genString(rng))
	case ByteaOID:
		b := make([]byte, rng.IntN(6))
		for i := range b {
			b[i] = []byte{0, 1, 0xfe, 0xff, byte(rng.Uint32())}[rng.IntN(5)]
		}
		return Bytes(b)
	case UUIDOID:
		b := make([]byte, 16)
		b[rng.IntN(16)] = byte(rng.Uint32())
		return Bytes(b)
	case JSONBOID:
		var b JSONBBuilder
		genJSON(rng, &b, 0)
		return b.Done()
	case DateOID:
		return Int([]int64{DateNegInf, DatePosInf, 0, minDate, endDate - 1, int64(rng.IntN(1e6)) - 5e5}[rng.IntN(6)])
	case TimeOID:
		return Int(rng.Int64N(usPerDay + 1))
	case TimeTZOID:
		return MakeTimeTZ(rng.Int64N(3)*usPerHour, int32(rng.IntN(5)-2)*3600)
	case TimestampOID, TimestampTZOID:
		return Int(genMoment(rng))
	case IntervalOID:
		return MakeInterval(int32(genInt(rng, 4)), int32(genInt(rng, 8)), []int64{0, usPerDay, -usPerDay, genInt(rng, 60)}[rng.IntN(4)])
	}
	panic("no generator for " + t.Name)
}

func genArray(rng *rand.Rand, t *Desc) Datum {
	if !t.IsArray() {
		var vals []Datum
		for range rng.IntN(4) {
			vals = append(vals, genDatum(rng, T(t.Elem)))
		}
		return MakeVector(t.Elem, vals)
	}
	var dims []ArrayDim
	n := 1
	for range rng.IntN(3) {
		d := ArrayDim{Len: 1 + rng.Int32N(3), Lower: 1}
		if rng.IntN(5) == 0 {
			d.Lower = rng.Int32N(5) - 2
		}
		dims = append(dims, d)
		n *= int(d.Len)
	}
	if dims == nil {
		return MakeArray(t.Elem, nil)
	}
	vals := make([]Datum, n)
	for i := range vals {
		vals[i] = Null
		if rng.IntN(5) > 0 {
			vals[i] = genDatum(rng, T(t.Elem))
		}
	}
	d, err := MakeArrayND(t.Elem, dims, vals)
	if err != nil {
		panic(err)
	}
	return d
}

// genRange makes a range from two random bounds in the order that they have.
func genRange(rng *rand.Rand, t *Desc) Datum {
	bound := func() Bound {
		return Bound{Val: genDatum(rng, T(t.Sub)), Infinite: rng.IntN(6) == 0, Inclusive: rng.IntN(2) == 0}
	}
	a, b := bound(), bound()
	if !a.Infinite && !b.Infinite && t.Sub.Compare(a.Val, b.Val) > 0 {
		a, b = b, a
	}
	d, err := MakeRange(t, a, b)
	if err != nil || rng.IntN(8) == 0 {
		return EmptyRange() // the last value of a discrete type has none after it
	}
	return d
}
