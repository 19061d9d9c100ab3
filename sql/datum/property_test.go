package datum

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// identical compares what is stored, more than Compare does: 1.1 is not 1.10.
func identical(t Type, a, b Datum) bool {
	return bytes.Equal(AppendRow(nil, []Type{t}, []Datum{a}), AppendRow(nil, []Type{t}, []Datum{b}))
}

func TestTextRoundTrip(t *testing.T) {
	zone, err := LoadZone("America/St_Johns")
	if err != nil {
		t.Fatal(err)
	}
	var formats []*Format
	for _, style := range []DateStyle{ISO, SQL, Postgres, German} {
		for _, order := range []DateOrder{MDY, DMY, YMD} {
			if order == YMD && style != ISO || order == MDY && style == German {
				continue // written in another order than it is read
			}
			f := ContractFormat
			f.DateStyle, f.DateOrder = style, order
			f.IntervalStyle = IntervalStyle(style)
			f.ByteaEscape = style == SQL
			if style == ISO || style == German {
				f.Zone = zone
			}
			formats = append(formats, &f)
		}
	}
	rng := rand.New(rand.NewPCG(3, 4))
	for _, typ := range propertyTypes() {
		for range 400 {
			d := genDatum(rng, typ)
			f := formats[rng.IntN(len(formats))]
			if f.Zone == zone && (typ.OID == TimestampTZOID || typ.OID == TimestampTZArrayOID || typ.Desc == TSTZRange || typ.Desc == TSTZRange.Multi) &&
				f.DateStyle != ISO {
				continue // abbreviations do not tell all offsets apart
			}
			if f.IntervalStyle == IntervalSQLStandard && (typ.OID == IntervalOID || typ.OID == IntervalArrayOID) {
				f = formats[0] // this style drops signs that agree
			}
			s := string(typ.Append(nil, d, f))
			back, err := typ.Parse(s, typ.Mod, f)
			if err != nil {
				t.Fatalf("%s: %q: %v", FormatType(typ), s, err)
			}
			if !identical(typ, d, back) {
				t.Fatalf("%s: %q came back as %q", FormatType(typ), s, typ.Append(nil, back, f))
			}
		}
	}
}

func TestBinaryRoundTrip(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for _, typ := range propertyTypes() {
		for range 400 {
			d := genDatum(rng, typ)
			b := typ.AppendBinary(nil, d)
			back, err := typ.ParseBinary(b, typ.Mod)
			if err != nil {
				t.Fatalf("%s: %x: %v", FormatType(typ), b, err)
			}
			if !identical(typ, d, back) {
				t.Fatalf("%s: %s came back as %s", FormatType(typ), text(typ.Desc, d), text(typ.Desc, back))
			}
		}
	}
}

// TestOrder checks that keys sort as Compare says, that no key is a prefix of
// another, that SkipKey finds their ends, and that equal values hash alike.
func TestOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for _, typ := range propertyTypes() {
		for range 1500 {
			a, b := genDatum(rng, typ), genDatum(rng, typ)
			if rng.IntN(10) == 0 {
				b = Clone(a)
			}
			c := typ.Compare(a, b)
			ka, kb := typ.AppendKey(nil, a), typ.AppendKey(nil, b)
			if k := bytes.Compare(ka, kb); k != c {
				t.Fatalf("%s: Compare(%s, %s) = %d, keys %x and %x say %d", FormatType(typ), text(typ.Desc, a), text(typ.Desc, b), c, ka, kb, k)
			}
			if typ.Compare(b, a) != -c {
				t.Fatalf("%s: Compare is not antisymmetric for %s, %s", FormatType(typ), text(typ.Desc, a), text(typ.Desc, b))
			}
			if c != 0 && (bytes.HasPrefix(ka, kb) || bytes.HasPrefix(kb, ka)) {
				t.Fatalf("%s: one key is a prefix of the other: %x, %x", FormatType(typ), ka, kb)
			}
			if c == 0 && typ.Hash(9, a) != typ.Hash(9, b) {
				t.Fatalf("%s: %s and %s are equal with different hashes", FormatType(typ), text(typ.Desc, a), text(typ.Desc, b))
			}
			rest, err := typ.SkipKey(append(ka, 0xaa, 0xbb))
			if err != nil || !bytes.Equal(rest, []byte{0xaa, 0xbb}) {
				t.Fatalf("%s: SkipKey(%x...) left %x, %v", FormatType(typ), ka, rest, err)
			}
		}
	}
}

// TestKeyColumns checks composite keys against comparing column by column.
func TestKeyColumns(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	all := propertyTypes()
	for range 3000 {
		n := 1 + rng.IntN(3)
		types, desc, nullsFirst := make([]Type, n), make([]bool, n), make([]bool, n)
		a, b := make([]Datum, n), make([]Datum, n)
		for i := range n {
			types[i] = all[rng.IntN(len(all))]
			desc[i], nullsFirst[i] = rng.IntN(2) == 0, rng.IntN(2) == 0
			a[i], b[i] = genNullable(rng, types[i]), genNullable(rng, types[i])
			if rng.IntN(2) == 0 {
				b[i] = a[i]
			}
		}
		want := 0
		var ka, kb []byte
		for i := range n {
			if want == 0 {
				want = compareColumn(types[i], a[i], b[i], desc[i], nullsFirst[i])
			}
			ka = AppendKeyColumn(ka, types[i], a[i], desc[i], nullsFirst[i])
			kb = AppendKeyColumn(kb, types[i], b[i], desc[i], nullsFirst[i])
		}
		if got := bytes.Compare(ka, kb); got != want {
			t.Fatalf("keys %x and %x compare as %d, want %d", ka, kb, got, want)
		}
		if want != 0 && (bytes.HasPrefix(ka, kb) || bytes.HasPrefix(kb, ka)) {
			t.Fatalf("one key is a prefix of the other: %x, %x", ka, kb)
		}
		rest := ka
		for i := range n {
			var err error
			if rest, err = SkipKeyColumn(rest, types[i], desc[i]); err != nil {
				t.Fatal(err)
			}
		}
		if len(rest) != 0 {
			t.Fatalf("%x left of %x", rest, ka)
		}
	}
}

func genNullable(rng *rand.Rand, t Type) Datum {
	if rng.IntN(4) == 0 {
		return Null
	}
	return genDatum(rng, t)
}

func compareColumn(t Type, a, b Datum, desc, nullsFirst bool) int {
	nulls := 1
	if nullsFirst {
		nulls = -1
	}
	switch {
	case a.IsNull() && b.IsNull():
		return 0
	case a.IsNull():
		return nulls
	case b.IsNull():
		return -nulls
	case desc:
		return -t.Compare(a, b)
	}
	return t.Compare(a, b)
}

func TestRowRoundTrip(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	all := propertyTypes()
	for range 1000 {
		n := rng.IntN(20)
		types, row, slots := make([]Type, n), make([]Datum, n), make([]int, n)
		for i := range n {
			types[i] = all[rng.IntN(len(all))]
			row[i] = genNullable(rng, types[i])
			slots[i] = i
		}
		b := AppendRow([]byte("x"), types, row)[1:]
		out := make([]Datum, n)
		if err := NewRowDecoder(types, slots, nil).Decode(b, out); err != nil {
			t.Fatal(err)
		}
		if again := AppendRow(nil, types, out); !bytes.Equal(again, b) {
			t.Fatalf("a row is not canonical: %x, again %x", b, again)
		}
		// Some columns only, two added since, one of them with a default.
		wider := append(slices.Clone(types), T(Int4), T(Text))
		missing := make([]Datum, n+2)
		missing[n], missing[n+1] = Int(42), Null
		some := make([]int, n+2)
		next := 0
		for i := range some {
			some[i] = -1
			if rng.IntN(2) == 0 {
				some[i] = next
				next++
			}
		}
		got := make([]Datum, next)
		if err := NewRowDecoder(wider, some, missing).Decode(b, got); err != nil {
			t.Fatal(err)
		}
		for i, s := range some {
			want := missing[i]
			if i < n {
				want = row[i]
			}
			if s >= 0 && !identical(wider[i], got[s], want) {
				t.Fatalf("column %d is wrong", i)
			}
		}
		// A shortened row is an error or, if the cut lies behind what is
		// wanted, the same.
		for cut := range b {
			if err := NewRowDecoder(types, slots, nil).Decode(b[:cut], out); err == nil {
				t.Fatalf("no error for a row cut to %d of %d bytes", cut, len(b))
			}
		}
	}
}

// TestRowFormat pins the stored bytes: they are hashed, so a change of them is
// a new engine version.
func TestRowFormat(t *testing.T) {
	types := []Type{T(Int4), T(Text), T(BoolType), T(Numeric), T(Timestamp), T(Float8), T(Int8), T(UUID), T(Numeric), T(Text.Array)}
	row := []Datum{Int(-3), Str("hi"), Bool(true), smallNumeric(12345, 2), Int(1), Float(math.NaN()), Null, Bytes(bytes.Repeat([]byte{7}, 16)), NumericNaN,
		MakeArray(Text, []Datum{Str("a"), Null})}
	const want = "0a" + "4000" + "05" + "026869" + "01" + "e4810302" + "0100000000000000" + "000000000000f87f" + "07070707070707070707070707070707" + "0304" + "07" + "01800202020161"
	if got := fmt.Sprintf("%x", AppendRow(nil, types, row)); got != want {
		t.Errorf("stored row is %s, want %s", got, want)
	}
}

func TestArena(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 14))
	var a Arena
	var vals, clones []Datum
	for range 5000 {
		b := make([]byte, rng.IntN(300))
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		vals = append(vals, Bytes(b))
		clones = append(clones, a.Clone(vals[len(vals)-1]))
	}
	for i := range vals {
		if !bytes.Equal(vals[i].Bytes(), clones[i].Bytes()) {
			t.Fatalf("clone %d differs", i)
		}
		if b := vals[i].Bytes(); len(b) > 0 {
			b[0]++
			if clones[i].Bytes()[0] == b[0] {
				t.Fatalf("clone %d shares its bytes", i)
			}
		}
	}
	if d := a.Clone(Null); !d.IsNull() {
		t.Error("the clone of null is not null")
	}
}

// TestNumericSum checks sums against adding one by one.
func TestNumericSum(t *testing.T) {
	rng := rand.New(rand.NewPCG(15, 16))
	for range 400 {
		var s NumericSum
		want := Datum{}
		n := 1 + rng.IntN(30)
		for range n {
			d := genNumeric(rng)
			if rng.IntN(3) == 0 {
				v := genInt(rng, 64)
				d = NumericFromInt64(v)
				s.AddInt(v)
			} else {
				s.Add(d)
			}
			var err error
			if want, err = NumericAdd(want, d); err != nil {
				t.Fatal(err)
			}
		}
		got, err := s.Sum()
		if err != nil {
			t.Fatal(err)
		}
		if NumericText(got) != NumericText(want) {
			t.Fatalf("sum is %s, want %s", NumericText(got), NumericText(want))
		}
		avg, err := s.Avg()
		if err != nil {
			t.Fatal(err)
		}
		if want, _ = NumericDiv(want, NumericFromInt64(int64(n))); NumericText(avg) != NumericText(want) {
			t.Fatalf("average is %s, want %s", NumericText(avg), NumericText(want))
		}
	}
}

// TestNumericCanonical checks that results have the one form that their value
// and scale allow, whatever the way to them.
func TestNumericCanonical(t *testing.T) {
	rng := rand.New(rand.NewPCG(17, 18))
	ops := []func(a, b Datum) (Datum, error){NumericAdd, NumericSub, NumericMul, NumericDiv, NumericMod}
	for range 5000 {
		a, b := genNumeric(rng), genNumeric(rng)
		for _, op := range ops {
			d, err := op(a, b)
			if err != nil {
				continue
			}
			again, err := ParseNumeric(NumericText(d))
			if err != nil {
				t.Fatal(err)
			}
			if !identical(T(Numeric), d, again) || (d.p == nil) != (again.p == nil) {
				t.Fatalf("%s has two forms", NumericText(d))
			}
		}
	}
}

// TestNumericFastPaths checks the fast paths against the general one.
func TestNumericFastPaths(t *testing.T) {
	rng := rand.New(rand.NewPCG(19, 20))
	for range 20000 {
		a := smallNumeric(genInt(rng, 55), rng.IntN(12))
		b := smallNumeric(genInt(rng, 55), rng.IntN(30))
		slow, err := addBig(a, b, false)
		if err != nil {
			t.Fatal(err)
		}
		if fast, _ := NumericAdd(a, b); !identical(T(Numeric), fast, slow) {
			t.Fatalf("%s + %s = %s, want %s", NumericText(a), NumericText(b), NumericText(fast), NumericText(slow))
		}
		if fast, slow := NumericCmp(a, b), cmpBig(a, b); fast != slow {
			t.Fatalf("%s <=> %s = %d, want %d", NumericText(a), NumericText(b), fast, slow)
		}
		if numericSign(b) == 0 {
			continue
		}
		if fast, ok := divSmall(a, b); ok {
			var x, y decimal
			x.load(a)
			y.load(b)
			x.div(&y, int(NumericScale(fast)))
			if slow, _ := x.datum(); !identical(T(Numeric), fast, slow) {
				t.Fatalf("%s / %s = %s, want %s", NumericText(a), NumericText(b), NumericText(fast), NumericText(slow))
			}
		}
	}
}
