package datum

import (
	"slices"
	"strings"
	"testing"

	"github.com/tallystick/tallystick/sql/pgerr"
)

func TestJSONBAccess(t *testing.T) {
	d, err := ParseJSONB(`{"b": [1, "two", null, {"x": 2.50}], "a": "s", "long key": true}`)
	if err != nil {
		t.Fatal(err)
	}
	get := func(d Datum, path ...any) string {
		for _, p := range path {
			var ok bool
			switch p := p.(type) {
			case string:
				d, ok = JSONBGet(d, p)
			case int:
				d, ok = JSONBIndex(d, p)
			}
			if !ok {
				return "missing"
			}
		}
		s, null := JSONBText(d)
		if null {
			return "null"
		}
		return s
	}
	for _, c := range []struct {
		path []any
		want string
	}{
		{[]any{"a"}, "s"},
		{[]any{"b", 0}, "1"},
		{[]any{"b", -1, "x"}, "2.50"},
		{[]any{"b", 2}, "null"},
		{[]any{"b", 4}, "missing"},
		{[]any{"b", -5}, "missing"},
		{[]any{"c"}, "missing"},
		{[]any{"a", "b"}, "missing"},
		{[]any{"long key"}, "true"},
		{[]any{"b"}, `[1, "two", null, {"x": 2.50}]`},
	} {
		if got := get(d, c.path...); got != c.want {
			t.Errorf("%v is %s, want %s", c.path, got, c.want)
		}
	}
	var keys []string
	for k, v := range JSONBPairs(d) {
		keys = append(keys, k+":"+JSONBTypeOf(v))
	}
	if want := []string{"a:string", "b:array", "long key:boolean"}; !slices.Equal(keys, want) {
		t.Errorf("pairs are %q, want %q", keys, want)
	}
}

// TestJSONBWide builds an object whose numbers need each width.
func TestJSONBWide(t *testing.T) {
	for _, n := range []int{1, 100, 300, 70000} {
		var b JSONBBuilder
		b.BeginObject()
		b.Key("s")
		b.String(strings.Repeat("x", n))
		b.Key("n")
		b.Number(NumericFromInt64(int64(n)))
		b.EndObject()
		d := b.Done()
		v, _ := JSONBGet(d, "n")
		num, ok := JSONBNumber(v)
		if !ok || NumericText(num) != NumericText(NumericFromInt64(int64(n))) {
			t.Errorf("n is %s, want %d", NumericText(num), n)
		}
		v, _ = JSONBGet(d, "s")
		if s, _ := JSONBString(v); len(s) != n {
			t.Errorf("s has %d bytes, want %d", len(s), n)
		}
	}
}

func TestArrayAccess(t *testing.T) {
	d, err := Text.Array.Parse("[2:3][0:1]={{a,b},{c,NULL}}", -1, &ContractFormat)
	if err != nil {
		t.Fatal(err)
	}
	if dims := ArrayDims(d); !slices.Equal(dims, []ArrayDim{{2, 2}, {2, 0}}) {
		t.Errorf("dimensions are %v", dims)
	}
	if got := ArrayIndex(d, 3, 0).Str(); got != "c" {
		t.Errorf("[3][0] is %q", got)
	}
	for _, sub := range [][]int32{{3, 1}, {1, 0}, {4, 0}, {3}, {3, 2}, {3, 0, 0}} {
		if !ArrayIndex(d, sub...).IsNull() {
			t.Errorf("%v is not null", sub)
		}
	}
}

func TestUserTypes(t *testing.T) {
	mood := NewEnum(90001, "mood", []EnumLabel{{1, "sad", 1}, {3, "fine", 1.5}, {2, "happy", 2}})
	pair := NewComposite(90002, "pair", []Field{{"m", T(mood)}, {"n", T(Numeric)}, {"t", T(Text)}})
	grown := NewComposite(90002, "pair", append(slices.Clone(pair.Fields), Field{"x", T(Int4)}))
	d, err := pair.Parse(`(fine,1.50,"a ""b"", c")`, -1, &ContractFormat)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := text(pair, d), `(fine,1.50,"a ""b"", c")`; got != want {
		t.Errorf("composite prints as %s, want %s", got, want)
	}
	if got, want := text(grown, d), `(fine,1.50,"a ""b"", c",)`; got != want {
		t.Errorf("with one more attribute it prints as %s, want %s", got, want)
	}
	f := ContractFormat
	f.TypeByOID = func(oid OID) *Desc {
		if oid == mood.OID {
			return mood
		}
		return nil
	}
	if got, want := string(Record.Append(nil, d, &f)), `(fine,1.50,"a ""b"", c")`; got != want {
		t.Errorf("as a record it prints as %s, want %s", got, want)
	}
	for _, c := range []struct {
		t          *Desc
		in         string
		code       pgerr.Code
		msg, extra string
	}{
		{mood, "angry", pgerr.InvalidTextRepresentation, `invalid input value for enum mood: "angry"`, ""},
		{pair, "x", pgerr.InvalidTextRepresentation, `malformed record literal: "x"`, "Missing left parenthesis."},
		{pair, "(fine,1)", pgerr.InvalidTextRepresentation, `malformed record literal: "(fine,1)"`, "Too few columns."},
		{pair, "(fine,1,2,3)", pgerr.InvalidTextRepresentation, `malformed record literal: "(fine,1,2,3)"`, "Too many columns."},
		{pair, "(fine,1,a", pgerr.InvalidTextRepresentation, `malformed record literal: "(fine,1,a"`, "Unexpected end of input."},
		{pair, "(fine,1,a)b", pgerr.InvalidTextRepresentation, `malformed record literal: "(fine,1,a)b"`, "Junk after right parenthesis."},
		{Record, "(1)", pgerr.FeatureNotSupported, "input of anonymous composite types is not implemented", ""},
		{AnyElement, "1", pgerr.FeatureNotSupported, "cannot accept a value of type anyelement", ""},
		{Text, "a\x00", pgerr.CharacterNotInRepertoire, `invalid byte sequence for encoding "UTF8": 0x00`, ""},
		{Text, "\xe4\xf6", pgerr.CharacterNotInRepertoire, `invalid byte sequence for encoding "UTF8": 0xe4 0xf6`, ""},
		{Date, "today", pgerr.FeatureNotSupported, "date/time values relative to the current time are not available in a contract", ""},
		{Numeric, "1e200000", pgerr.NumericValueOutOfRange, "value overflows numeric format", ""},
		{JSON, `{"a":1,}`, pgerr.InvalidTextRepresentation, "invalid input syntax for type json", `Expected string, but found "}".`},
	} {
		_, err := c.t.Parse(c.in, -1, &ContractFormat)
		e, ok := pgerr.From(err)
		if !ok || e.Code != c.code || e.Message != c.msg || e.Detail != c.extra {
			t.Errorf("%s %q: error is %#v, want %s %s (%s)", c.t.Name, c.in, e, c.code, c.msg, c.extra)
		}
	}
}

func TestRelativeDates(t *testing.T) {
	f := testFormat("ISO, MDY", "postgres", "Asia/Tokyo")
	now, err := TimestampTZ.Parse("2024-02-29 20:30:00.5+00", -1, f)
	if err != nil {
		t.Fatal(err)
	}
	f.Now = now.Int()
	for _, c := range []struct {
		t        *Desc
		in, want string
	}{
		{TimestampTZ, "now", "2024-03-01 05:30:00.5+09"},
		{Timestamp, "now", "2024-03-01 05:30:00.5"},
		{Date, "today", "2024-03-01"},
		{Date, "yesterday", "2024-02-29"},
		{Timestamp, "tomorrow 10:00", "2024-03-02 10:00:00"},
		{Time, "now", "05:30:00.5"},
		{TimestampTZ, "today allballs", "2024-03-01 09:00:00+09"},
	} {
		d, err := c.t.Parse(c.in, -1, f)
		if err != nil {
			t.Errorf("%s %q: %v", c.t.Name, c.in, err)
		} else if got := string(c.t.Append(nil, d, f)); got != c.want {
			t.Errorf("%s %q is %s, want %s", c.t.Name, c.in, got, c.want)
		}
	}
}

// TestZones loads every embedded zone and checks that none comes from elsewhere.
func TestZones(t *testing.T) {
	t.Setenv("ZONEINFO", "/nonexistent")
	names := ZoneNames()
	if len(names) < 590 {
		t.Fatalf("only %d zones", len(names))
	}
	for _, name := range names {
		if _, err := LoadZone(strings.ToUpper(name)); err != nil {
			t.Error(err)
		}
	}
	z, err := LoadZone("europe/berlin")
	if err != nil || z.String() != "Europe/Berlin" {
		t.Errorf("zone is %v, %v", z, err)
	}
	if off, abbrev := TZOffset(0, z); off != 3600 || abbrev != "CET" {
		t.Errorf("Berlin was at %d (%s) on 2000-01-01", off, abbrev)
	}
	if z := FixedZone(-19800); z.String() != "<-05:30>+05:30" {
		t.Errorf("fixed zone is %s", z)
	}
}

func TestModIn(t *testing.T) {
	for _, c := range []struct {
		t    *Desc
		args []int64
		want string
	}{
		{VarChar, []int64{0}, "length for type varchar must be at least 1"},
		{BpChar, []int64{10485761}, "length for type char cannot exceed 10485760"},
		{Numeric, []int64{0}, "NUMERIC precision 0 must be between 1 and 1000"},
		{Numeric, []int64{5, 1001}, "NUMERIC scale 1001 must be between -1000 and 1000"},
		{Numeric, []int64{1, 2, 3}, "invalid NUMERIC type modifier"},
		{Timestamp, []int64{-1}, "TIMESTAMP(-1) precision must not be negative"},
		{TimeTZ, []int64{-1}, "TIME(-1) WITH TIME ZONE precision must not be negative"},
		{Int4, []int64{3}, `type modifier is not allowed for type "integer"`},
		{Interval, []int64{3}, "invalid INTERVAL type modifier"},
	} {
		_, err := ModIn(c.t, c.args)
		if e, ok := pgerr.From(err); !ok || e.Message != c.want {
			t.Errorf("%s%v: %v, want %s", c.t.Name, c.args, err, c.want)
		}
	}
	mod, err := ModIn(Interval, []int64{maskDay | maskHour | maskMinute | maskSecond, 2})
	if err != nil || FormatType(Type{Interval, mod}) != "interval day to second(2)" {
		t.Errorf("interval is %s, %v", FormatType(Type{Interval, mod}), err)
	}
}
