package datum

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// Each fuzzer also runs over its seeds as an ordinary test. What a decoder
// accepts must survive the way out and back.

func fuzzTypes() []Type {
	return append(propertyTypes(), T(JSON), T(Int8.Array), T(XID), T(CID), T(Inet), T(Cidr), T(JSONPathType))
}

func FuzzParse(f *testing.F) {
	for _, path := range []string{`strict $.a[*] ? (@."b" > 1 && exists (@.c)).keyvalue()`, `lax -$.**{1 to last}[last - 1, 0 to 2].datetime("HH24")`,
		`$ ? (@ like_regex "^a" flag "i" || !(@ starts with $v))`} {
		f.Add(uint8(len(fuzzTypes())-1), path)
	}
	for _, c := range handCases() {
		if c.op == "io" {
			t := testType(c.args[0])
			for i, typ := range fuzzTypes() {
				if typ.OID == t.OID {
					f.Add(uint8(i), c.args[4])
				}
			}
		}
	}
	types := fuzzTypes()
	f.Fuzz(func(t *testing.T, i uint8, s string) {
		typ := types[int(i)%len(types)]
		d, err := typ.Parse(s, typ.Mod, &ContractFormat)
		if err != nil {
			return
		}
		out := string(typ.Append(nil, d, &ContractFormat))
		back, err := typ.Parse(out, typ.Mod, &ContractFormat)
		if err != nil {
			t.Fatalf("%s: %q printed as %q: %v", FormatType(typ), s, out, err)
		}
		if !identical(typ, d, back) {
			t.Fatalf("%s: %q printed as %q reads back differently", FormatType(typ), s, out)
		}
	})
}

func FuzzParseBinary(f *testing.F) {
	rng := rand.New(rand.NewPCG(21, 22))
	types := fuzzTypes()
	for i, typ := range types[:len(propertyTypes())] {
		for range 3 {
			f.Add(uint8(i), typ.AppendBinary(nil, genDatum(rng, typ)))
		}
	}
	f.Fuzz(func(t *testing.T, i uint8, b []byte) {
		typ := types[int(i)%len(types)]
		d, err := typ.ParseBinary(bytes.Clone(b), typ.Mod)
		if err != nil {
			return
		}
		back, err := typ.ParseBinary(typ.AppendBinary(nil, d), typ.Mod)
		if err != nil || !identical(typ, d, back) {
			t.Fatalf("%s: %x does not survive: %v", FormatType(typ), b, err)
		}
	})
}

func FuzzRow(f *testing.F) {
	rng := rand.New(rand.NewPCG(23, 24))
	types := propertyTypes()
	slots := make([]int, len(types))
	for i := range slots {
		slots[i] = i
	}
	for range 10 {
		row := make([]Datum, len(types))
		for i := range row {
			row[i] = genNullable(rng, types[i])
		}
		f.Add(AppendRow(nil, types, row))
		f.Add(AppendRow(nil, types[:7], row[:7]))
	}
	dec := NewRowDecoder(types, slots, nil)
	f.Fuzz(func(t *testing.T, b []byte) {
		out := make([]Datum, len(types))
		if err := dec.Decode(b, out); err != nil {
			return
		}
		n, _ := uvarint(b)
		again := AppendRow(nil, types[:n], out[:n])
		if !bytes.Equal(again, b) && !hasNaN(types, out) {
			t.Fatalf("row %x is stored again as %x", b, again)
		}
		// Whatever variable-length bytes a corrupt row holds, looking at them
		// must not panic.
		for i, typ := range types {
			if d := out[i]; !d.IsNull() && validDatum(typ, d) {
				typ.Append(nil, d, &ContractFormat)
				typ.Compare(d, d)
				typ.AppendKey(nil, d)
				typ.Hash(0, d)
			}
		}
	})
}

// hasNaN: other NaNs than the canonical one are read, and stored canonically.
func hasNaN(types []Type, row []Datum) bool {
	for i, t := range types {
		if f := row[i].Float(); f != f && (t.store == storeFloat4 || t.store == storeFloat8) {
			return true
		}
	}
	return false
}

// validDatum leaves out inline values that no type could have made.
func validDatum(t Type, d Datum) bool {
	switch t.OID {
	case DateOID:
		return !finiteDate(int32(d.Int())) || validDate(d.Int())
	case TimeOID:
		return d.Int() >= 0 && d.Int() <= usPerDay
	case TimeTZOID:
		us, west := TimeTZParts(d)
		return us >= 0 && us <= usPerDay && west > -16*3600 && west < 16*3600
	case TimestampOID, TimestampTZOID:
		return !finiteTimestamp(d.Int()) || validTimestamp(d.Int())
	}
	switch t.Kind {
	case Range:
		lower, upper, empty := RangeBounds(t.Desc, d)
		return empty || (lower.Infinite || validDatum(T(t.Sub), lower.Val)) && (upper.Infinite || validDatum(T(t.Sub), upper.Val))
	case Multirange:
		for r := range MultirangeRanges(t.Desc, d) {
			if !validDatum(T(t.Range), r) {
				return false
			}
		}
	}
	return t.Elem == nil || t.Elem.OID != TimeTZOID && t.Elem.OID != TimestampOID
}

func FuzzJSONBBytes(f *testing.F) {
	rng := rand.New(rand.NewPCG(25, 26))
	for range 10 {
		f.Add(genRaw(rng, T(JSONB)).Bytes())
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		d := Bytes(b)
		JSONB.Append(nil, d, &ContractFormat)
		key := JSONB.AppendKey(nil, d)
		if rest, err := JSONB.SkipKey(key); err != nil || len(rest) != 0 {
			t.Fatalf("key %x: %v", key, err)
		}
		JSONB.Compare(d, d)
		JSONB.Hash(0, d)
		JSONBGet(d, "a")
		JSONBIndex(d, -1)
		JSONBContains(d, d)
		JSONBText(d)
	})
}

func FuzzArrayBytes(f *testing.F) {
	rng := rand.New(rand.NewPCG(27, 28))
	for range 10 {
		f.Add(genArray(rng, Text.Array).Bytes())
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		d := Bytes(b)
		n := 0
		for range ArrayElems(d) {
			n++
		}
		if n > ArrayLen(d) {
			t.Fatalf("%d elements of %d", n, ArrayLen(d))
		}
		ArrayValues(d)
		ArrayIndex(d, 1)
		ArrayIndex(d, 1, 1)
		RecordFields(d)
	})
}

func FuzzNumeric(f *testing.F) {
	f.Add("1.10", "-3", uint8(0))
	f.Add("1e20", "7.00001", uint8(3))
	f.Add("NaN", "Infinity", uint8(4))
	f.Add("99999999999999999", "0.00000000000000001", uint8(2))
	ops := []func(a, b Datum) (Datum, error){NumericAdd, NumericSub, NumericMul, NumericDiv, NumericMod, NumericDivTrunc}
	f.Fuzz(func(t *testing.T, a, b string, op uint8) {
		if len(a) > 50 || len(b) > 50 {
			return
		}
		x, err := ParseNumeric(a)
		if err != nil || NumericScale(x) > 1000 || x.p != nil && len(x.Bytes()) > 1000 {
			return
		}
		y, err := ParseNumeric(b)
		if err != nil || NumericScale(y) > 1000 || y.p != nil && len(y.Bytes()) > 1000 {
			return
		}
		if c := NumericCmp(x, y); c != bytes.Compare(keyNumeric(nil, x), keyNumeric(nil, y)) {
			t.Fatalf("%s and %s compare as %d, their keys otherwise", a, b, c)
		}
		d, err := ops[int(op)%len(ops)](x, y)
		if err != nil {
			return
		}
		again, err := ParseNumeric(NumericText(d))
		if err != nil || !identical(T(Numeric), d, again) {
			t.Fatalf("%s and %s give %s, which is not canonical: %v", a, b, NumericText(d), err)
		}
	})
}
