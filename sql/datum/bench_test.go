package datum

import "testing"

func benchRow() ([]Type, []Datum) {
	types := []Type{T(Int8), T(Int4), T(Text), T(Numeric), T(Timestamp), T(BoolType), T(Int4), T(Float8), T(Text), T(Date), T(Int8)}
	row := []Datum{Int(123456), Int(7), Str("invoice"), smallNumeric(1999, 2), Int(8e14), Bool(true), Int(-1), Float(1.5), Null, Int(9000), Int(1 << 40)}
	return types, row
}

func BenchmarkAppendRow11(b *testing.B) {
	types, row := benchRow()
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		buf = AppendRow(buf[:0], types, row)
	}
}

func BenchmarkDecodeRow11(b *testing.B) {
	types, row := benchRow()
	buf := AppendRow(nil, types, row)
	slots := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	dec := NewRowDecoder(types, slots, nil)
	out := make([]Datum, len(types))
	b.ReportAllocs()
	for b.Loop() {
		if err := dec.Decode(buf, out); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecodeRow2Of11(b *testing.B) {
	types, row := benchRow()
	buf := AppendRow(nil, types, row)
	dec := NewRowDecoder(types, []int{0, -1, -1, 1, -1, -1, -1, -1, -1, -1, -1}, nil)
	out := make([]Datum, 2)
	b.ReportAllocs()
	for b.Loop() {
		if err := dec.Decode(buf, out); err != nil {
			b.Fatal(err)
		}
	}
}

var sink Datum

func benchNumeric(b *testing.B, op func(a, b Datum) (Datum, error), x, y Datum) {
	b.ReportAllocs()
	for b.Loop() {
		var err error
		if sink, err = op(x, y); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkNumericAdd(b *testing.B) {
	benchNumeric(b, NumericAdd, smallNumeric(1999, 2), smallNumeric(250, 2))
}
func BenchmarkNumericAddScales(b *testing.B) {
	benchNumeric(b, NumericAdd, smallNumeric(1999, 2), smallNumeric(25, 0))
}
func BenchmarkNumericMul(b *testing.B) {
	benchNumeric(b, NumericMul, smallNumeric(1999, 2), smallNumeric(250, 2))
}
func BenchmarkNumericDiv(b *testing.B) {
	benchNumeric(b, NumericDiv, smallNumeric(1999, 2), smallNumeric(3, 0))
}
func BenchmarkNumericCmp(b *testing.B) {
	x, y := smallNumeric(1999, 2), smallNumeric(25, 0)
	for b.Loop() {
		sink.n += uint64(NumericCmp(x, y))
	}
}

func BenchmarkNumericSum(b *testing.B) {
	var s NumericSum
	x, y := smallNumeric(1999, 2), smallNumeric(25, 0)
	b.ReportAllocs()
	for b.Loop() {
		s.Add(x)
		s.Add(y)
	}
}

func benchParse(b *testing.B, t *Desc, s string) {
	b.ReportAllocs()
	for b.Loop() {
		var err error
		if sink, err = t.Parse(s, -1, &ContractFormat); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParseInt4(b *testing.B)      { benchParse(b, Int4, "1234567") }
func BenchmarkParseNumeric(b *testing.B)   { benchParse(b, Numeric, "12345.67") }
func BenchmarkParseTimestamp(b *testing.B) { benchParse(b, Timestamp, "2024-05-06 07:08:09.123") }
func BenchmarkParseJSONB(b *testing.B)     { benchParse(b, JSONB, `{"id":1,"name":"x","tags":["a","b"]}`) }

func BenchmarkAppendKey(b *testing.B) {
	var buf []byte
	t := T(Text)
	d := Str("invoice-0001")
	b.ReportAllocs()
	for b.Loop() {
		buf = AppendKeyColumn(buf[:0], T(Int8), Int(12345), false, false)
		buf = AppendKeyColumn(buf, t, d, false, false)
	}
}

func BenchmarkJSONBGet(b *testing.B) {
	d, err := ParseJSONB(`{"id":1,"name":"x","tags":["a","b"],"amount":12.5}`)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		sink, _ = JSONBGet(d, "amount")
	}
}
