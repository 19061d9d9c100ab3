package contracts_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/contracts"
	"github.com/tallystick/tallystick/contracts/system"
	"github.com/tallystick/tallystick/mvcc/rwset"
	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/exec"
	"github.com/tallystick/tallystick/sql/pgerr"
	"github.com/tallystick/tallystick/sql/plan"
)

// value parses the text form of a value; "" is null.
func value(t testing.TB, d *datum.Desc, text string) datum.Datum {
	t.Helper()
	if text == "" {
		return datum.Null
	}
	v, err := d.Parse(text, -1, &datum.ContractFormat)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// callOf makes a call from pairs of type and text.
func callOf(t testing.TB, name string, args ...any) block.Call {
	t.Helper()
	var types []datum.Type
	var values []datum.Datum
	for i := 0; i < len(args); i += 2 {
		d := args[i].(*datum.Desc)
		types, values = append(types, datum.T(d)), append(values, value(t, d, args[i+1].(string)))
	}
	c, err := contracts.MakeCall("blockchain", name, types, values)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// execute runs a call as a block and shows columns and rows.
func (d *database) execute(call block.Call) string {
	var res *contracts.Result
	err := d.block(func(env *exec.Env) (err error) {
		res, err = contracts.Execute(env, &call)
		return err
	})
	if err != nil {
		e, ok := pgerr.From(err)
		if !ok {
			return "fault: " + err.Error()
		}
		return fmt.Sprintf("%s: %s", e.Code, e.Message)
	}
	rows, err := res.Rows()
	if err != nil {
		d.t.Fatal(err)
	}
	again, err := contracts.EncodeRows(res.Columns, rows)
	if err != nil || !bytes.Equal(again, res.Encoded) {
		d.t.Errorf("rows are encoded as %x and again as %x, %v", res.Encoded, again, err)
	}
	var out []string
	for _, c := range res.Columns {
		out = append(out, c.Name+" "+datum.FormatType(c.Type))
	}
	lines := []string{strings.Join(out, ", ")}
	for _, r := range rows {
		out = out[:0]
		for i, v := range r {
			if v.IsNull() {
				out = append(out, "NULL")
			} else {
				out = append(out, string(res.Columns[i].Type.Append(nil, v, &datum.ContractFormat)))
			}
		}
		lines = append(lines, strings.Join(out, "|"))
	}
	return strings.Join(lines, "\n")
}

func executeDatabase(t testing.TB) *database {
	d := newDatabase(t)
	if out := d.run(`
		CREATE TABLE t (id int PRIMARY KEY, v text);
		CREATE FUNCTION one(a int, b text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RETURN a || b; END $$;
		CREATE FUNCTION one(a bigint, b text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RETURN 'big' || a || b; END $$;
		CREATE FUNCTION strict_one(a int) RETURNS int LANGUAGE plpgsql STRICT AS $$ BEGIN RETURN a + 1; END $$;
		CREATE FUNCTION nothing(a int) RETURNS void LANGUAGE plpgsql AS $$ BEGIN INSERT INTO t VALUES (a, 'x'); END $$;
		CREATE FUNCTION outs(a int, OUT b int, OUT c text) LANGUAGE plpgsql AS $$ BEGIN b := a + 1; c := 'c' || a; END $$;
		CREATE FUNCTION many(n int) RETURNS SETOF int LANGUAGE plpgsql AS $$ BEGIN FOR i IN 1..n LOOP RETURN NEXT i; END LOOP; END $$;
		CREATE FUNCTION tab(n int) RETURNS TABLE (x int, y numeric) LANGUAGE plpgsql AS $$ BEGIN RETURN QUERY SELECT g, g / 4.0 FROM generate_series(1, n) g; END $$;
		CREATE FUNCTION strict_many(n int) RETURNS SETOF int LANGUAGE plpgsql STRICT AS $$ BEGIN RETURN NEXT n; END $$;
		CREATE FUNCTION sums(VARIADIC a int[]) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT sum(x) FROM unnest(a) x); END $$;
		CREATE FUNCTION big(n int) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RETURN repeat('x', n); END $$;
		CREATE PROCEDURE proc(a int) LANGUAGE plpgsql AS $$ BEGIN INSERT INTO t VALUES (a, 'p'); END $$;
		CREATE PROCEDURE procout(a int, INOUT b int) LANGUAGE plpgsql AS $$ BEGIN b := a + b; END $$;
		CREATE FUNCTION rec() RETURNS record LANGUAGE plpgsql AS $$ DECLARE r record; BEGIN SELECT 1, 2 INTO r; RETURN r; END $$;
	`); out != "" {
		t.Fatal(out)
	}
	return d
}

func TestExecute(t *testing.T) {
	d := executeDatabase(t)
	int4, text := datum.Int4, datum.Text
	renamed := func(c block.Call, names ...string) block.Call {
		c.ArgTypes = names
		return c
	}
	cut := callOf(t, "one", int4, "1", text, "x")
	cut.Args[0].Value = cut.Args[0].Value[:2]
	utf8 := callOf(t, "one", int4, "1", text, "x")
	utf8.Args[1].Value = []byte{0xff}
	jsonb := callOf(t, "one", int4, "1", text, "x")
	for _, c := range []struct {
		name string
		call block.Call
		want string
	}{
		{"overloads: int", callOf(t, "one", int4, "1", text, "x"), "one text\n1x"},
		{"overloads: bigint", callOf(t, "one", datum.Int8, "1", text, "x"), "one text\nbig1x"},
		{"names of pg_type", renamed(callOf(t, "one", int4, "1", text, "x"), "int4", "text"), "one text\n1x"},
		{"no implicit cast", callOf(t, "one", datum.Int2, "1", text, "x"), "42883: function blockchain.one(smallint, text) does not exist"},
		{"too few", callOf(t, "one", int4, "1"), "42883: function blockchain.one(integer) does not exist"},
		{"too many", callOf(t, "nothing", int4, "1", int4, "1"), "42883: function blockchain.nothing(integer, integer) does not exist"},
		{"null", callOf(t, "one", int4, "", text, "x"), "one text\nNULL"},
		{"strict", callOf(t, "strict_one", int4, ""), "strict_one integer\nNULL"},
		{"not null", callOf(t, "strict_one", int4, "4"), "strict_one integer\n5"},
		{"void", callOf(t, "nothing", int4, "1"), "nothing void\n"},
		{"unique", callOf(t, "nothing", int4, "1"), `23505: duplicate key value violates unique constraint "t_pkey"`},
		{"OUT", callOf(t, "outs", int4, "1"), "b integer, c text\n2|c1"},
		{"SETOF", callOf(t, "many", int4, "3"), "many integer\n1\n2\n3"},
		{"empty SETOF", callOf(t, "many", int4, "0"), "many integer"},
		{"TABLE", callOf(t, "tab", int4, "2"), "x integer, y numeric\n1|0.25000000000000000000\n2|0.50000000000000000000"},
		{"strict SETOF", callOf(t, "strict_many", int4, ""), "strict_many integer"},
		{"VARIADIC", callOf(t, "sums", datum.Int4.Array, "{1,2,3}"), "sums integer\n6"},
		{"procedure", callOf(t, "proc", int4, "2"), ""},
		{"procedure with INOUT", callOf(t, "procout", int4, "2", int4, "3"), "b integer\n5"},
		{"record", callOf(t, "rec"), "0A000: a call that returns type record is not supported"},
		{"long result", callOf(t, "big", int4, "1000000"), "big text\n" + strings.Repeat("x", 1_000_000)},
		{"too long result", callOf(t, "big", int4, "1048576"), "54000: result of the transaction exceeds 1048576 bytes"},
		{"unknown type", renamed(callOf(t, "strict_one", int4, "1"), "no such type"), `42704: type "no such type" does not exist`},
		{"cut argument", cut, "22P03: incorrect binary data format in argument 1"},
		{"invalid text", utf8, `22021: invalid byte sequence for encoding "UTF8": 0xff`},
		{"damaged jsonb", renamed(jsonb, "integer", "jsonb"), "42883: function blockchain.one(integer, jsonb) does not exist"},
		{"pseudo type", renamed(callOf(t, "strict_one", int4, "1"), "trigger"), "42883: function blockchain.strict_one(trigger) does not exist"},
		{"system contract", callOf(t, "create_deploytx", text, "DROP TABLE t"), "42883: function blockchain.create_deploytx(text) does not exist"},
	} {
		if got := d.execute(c.call); got != c.want {
			t.Errorf("%s: got\n%.200s\nwant\n%.200s", c.name, got, c.want)
		}
	}
}

// TestExecuteFootprint: looking for a function is a read of its name, whether
// it exists or not.
func TestExecuteFootprint(t *testing.T) {
	d := executeDatabase(t)
	for _, name := range []string{"strict_one", "absent"} {
		call := callOf(t, name, datum.Int4, "1")
		want, found := catalog.FuncName("blockchain", name)[0], false
		_ = d.block(func(env *exec.Env) error {
			_, err := contracts.Execute(env, &call)
			env.Txn.Footprint().EachRead(func(r rwset.Read) bool {
				found = found || bytes.Equal(r.Start, want.Start) && bytes.Equal(r.End, want.End)
				return true
			})
			return err
		})
		if !found {
			t.Errorf("the name %s is not in the footprint", name)
		}
	}
}

func TestSystemCalls(t *testing.T) {
	private := callOf(t, "create_deploytx", datum.Text, "x")
	private.Schema = "private"
	for _, c := range []struct {
		call block.Call
		want bool
	}{
		{callOf(t, "create_deploytx", datum.Text, "x"), true},
		{callOf(t, "create_deploytx", datum.Text, ""), true},
		{callOf(t, "create_deploytx", datum.Int4, "1"), false},
		{callOf(t, "create_deploytx"), false},
		{callOf(t, "f", datum.Text, "x"), false},
		{private, false},
	} {
		if got := contracts.IsSystem(&c.call); got != c.want {
			t.Errorf("%s: IsSystem is %v", contracts.CallText(&c.call), got)
		}
	}
	d := newDatabase(t)
	call := callOf(t, "f")
	err := d.block(func(env *exec.Env) error {
		_, err := contracts.ExecuteSystem(env, system.New(d.engine, contracts.Inspect), &call)
		return err
	})
	if err == nil || pgerr.IsVerdict(err) {
		t.Errorf("system call of a user's function: %v, want a fault", err)
	}
}

func TestCallText(t *testing.T) {
	broken := callOf(t, "f", datum.Int4, "1", datum.Text, "x")
	broken.Args[0].Value, broken.ArgTypes[1] = []byte{1}, "my type"
	quoted := callOf(t, "f")
	quoted.Schema, quoted.Name = "My", `a"b`
	for _, c := range []struct {
		call block.Call
		want string
	}{
		{callOf(t, "transfer", datum.Text, "a", datum.Text, "b", datum.Int4, "10"), "blockchain.transfer('a', 'b', 10)"},
		{callOf(t, "f"), "blockchain.f()"},
		{callOf(t, "f", datum.Numeric, "-1.50", datum.Float8, "1e100", datum.Float8, "NaN", datum.Numeric, "NaN", datum.Int8, "-5"),
			"blockchain.f(-1.50, 1e+100, 'NaN'::double precision, 'NaN'::numeric, -5)"},
		{callOf(t, "f", datum.Float8, "-Infinity"), "blockchain.f('-Infinity'::double precision)"},
		{callOf(t, "f", datum.BoolType, "t", datum.BoolType, "f", datum.Text, ""), "blockchain.f(true, false, NULL)"},
		{callOf(t, "f", datum.Text, `it's a \`), `blockchain.f(E'it''s a \\')`},
		{callOf(t, "f", datum.Date, "2024-02-29", datum.Bytea, `\x00ff`, datum.Int4.Array, "{1,2}"),
			`blockchain.f('2024-02-29'::date, E'\\x00ff'::bytea, '{1,2}'::integer[])`},
		{broken, `blockchain.f('\x01'::integer, '\x78'::my type)`},
		{quoted, `"My"."a""b"()`},
	} {
		if got := contracts.CallText(&c.call); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
	long := callOf(t, "f", datum.Text, strings.Repeat("ä", 10_000), datum.Text, "x")
	if got := contracts.CallText(&long); len(got) > 8<<10+3 || !strings.HasSuffix(got, "ä...") {
		t.Errorf("a long text has %d bytes and ends with %q", len(got), got[len(got)-10:])
	}
}

// TestTypeNames: every type has a name that a signed call can carry, and no two
// types share one.
func TestTypeNames(t *testing.T) {
	seen := map[string]*datum.Desc{}
	for _, d := range datum.Builtins() {
		name := contracts.TypeName(d)
		if other := seen[name]; other != nil {
			t.Errorf("%s and %s are both called %q", d.Name, other.Name, name)
		}
		seen[name] = d
		if len(name) > block.MaxTypeNameBytes {
			t.Errorf("name %q is too long", name)
		}
	}
}

var resultColumns = []plan.Column{{Name: "a", Type: datum.T(datum.Int4)}, {Name: "b", Type: datum.T(datum.Text)}}

func TestDecodeRowsRefuses(t *testing.T) {
	good, err := contracts.EncodeRows(resultColumns, [][]datum.Datum{{datum.Int(1), datum.Str("x")}, {datum.Null, datum.Null}})
	if err != nil {
		t.Fatal(err)
	}
	if rows, err := contracts.DecodeRows(resultColumns, good); err != nil || len(rows) != 2 || rows[0][1].Str() != "x" || !rows[1][0].IsNull() {
		t.Fatalf("rows are %v, %v", rows, err)
	}
	for i := range good {
		if _, err := contracts.DecodeRows(resultColumns, good[:i]); err == nil {
			t.Errorf("%d bytes of %d decode", i, len(good))
		}
	}
	for name, b := range map[string][]byte{
		"a byte too many":        append(bytes.Clone(good), 0),
		"other number":           append([]byte{3}, good[1:]...),
		"rows without bytes":     {2, 0xff, 0xff, 0xff, 0xff, 0x7f},
		"long varint":            append([]byte{0x82, 0x00}, good[1:]...),
		"length beyond the end":  {2, 1, 0xff, 0x7f, 0},
		"nothing":                {},
		"integer of three bytes": {2, 1, 4, 1, 1, 1, 0},
	} {
		if rows, err := contracts.DecodeRows(resultColumns, b); err == nil {
			t.Errorf("%s: %v", name, rows)
		}
	}
	if _, err := contracts.DecodeRows(nil, []byte{0}); err == nil {
		t.Error("bytes without columns decode")
	}
}

// FuzzDecodeRows: whatever decodes is encoded to the same bytes, and the decoder
// allocates no more than its input justifies.
func FuzzDecodeRows(f *testing.F) {
	for _, rows := range [][][]datum.Datum{nil, {{datum.Int(1), datum.Str("x")}}, {{datum.Null, datum.Null}, {datum.Int(-1), datum.Str("")}}} {
		b, err := contracts.EncodeRows(resultColumns, rows)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte{2, 0xff, 0xff, 3})
	f.Fuzz(func(t *testing.T, b []byte) {
		rows, err := contracts.DecodeRows(resultColumns, b)
		if err != nil {
			return
		}
		again, err := contracts.EncodeRows(resultColumns, rows)
		if err != nil && len(b) <= contracts.MaxResultBytes || err == nil && !bytes.Equal(again, b) {
			t.Errorf("%x is encoded again as %x, %v", b, again, err)
		}
	})
}
