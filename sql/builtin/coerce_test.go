package builtin

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

var coerceTypes = strings.Fields(`int2 int4 int8 numeric float4 float8 oid regclass text varchar bpchar name char bytea
	bool date time timestamp timestamptz interval uuid json jsonb int4[] text[] numeric[] int2vector oidvector`)

// TestCoerce compares casts and common types with PostgreSQL's, for all pairs
// of the types in testdata/coerce.txt, whose header says how to read it.
func TestCoerce(t *testing.T) {
	if *psql != "" {
		rewriteCoerce(t, "testdata/coerce.txt")
	}
	types := typeList(coerceTypes)
	for _, line := range facts(t, "coerce.txt") {
		head, want, _ := strings.Cut(line, ": ")
		f := strings.Fields(head)
		if f[0] == "common" {
			pair := typeList(f[1:])
			got, err := CommonType(pair, "COALESCE")
			text := typeName(got)
			if e, ok := pgerr.From(err); ok {
				text = "!" + string(e.Code) + " " + e.Message
			}
			if text != want {
				t.Errorf("%s: got %s, want %s", head, text, want)
			}
			continue
		}
		dst := typeList(f[1:])[0]
		for i, w := range strings.Fields(want) {
			if got := castLetter(types[i].Desc, dst.Desc); got != w {
				t.Errorf("cast %s to %s: got %s, want %s", types[i].Name, dst.Name, got, w)
			}
		}
	}
}

func castLetter(src, dst *datum.Desc) string {
	for _, ctx := range []CastContext{Implicit, Assignment, Explicit} {
		if CanCoerce(src, dst, ctx) {
			return string(rune(ctx))
		}
	}
	return "."
}

// TestBindCastAgreesWithFindCast: what can be cast can be bound.
func TestBindCastAgreesWithFindCast(t *testing.T) {
	for _, src := range datum.Builtins() {
		for _, dst := range datum.Builtins() {
			if src.Kind == datum.Pseudo || dst.Kind == datum.Pseudo || dst == datum.Cidr || dst == datum.Cidr.Array {
				continue
			}
			_, ok := FindCast(src, dst, Explicit)
			if _, err := BindCast(datum.T(src), datum.T(dst), Explicit); ok != (err == nil) {
				t.Errorf("%s to %s: found %v, bound %v", src.Name, dst.Name, ok, err)
			}
		}
	}
}

func TestDomainsCountAsTheirBase(t *testing.T) {
	d := datum.NewDomain(1<<31, "amount", datum.T(datum.Int4))
	if c, ok := FindCast(d, datum.Int8, Implicit); !ok || c.Method != ByFunc {
		t.Errorf("amount to int8: %v %v", c, ok)
	}
	op, err := ResolveOperator("+", datum.T(d), datum.T(datum.Int8))
	if err != nil || op.OID != 692 { // int4 + int8
		t.Errorf("amount + int8: %v %v", op, err)
	}
	if op, err = ResolveOperator("=", datum.T(d), datum.T(datum.Unknown)); err != nil || op.OID != 96 {
		t.Errorf("amount = unknown: %v %v", op, err)
	}
	common, err := CommonType([]datum.Type{datum.T(d), datum.T(d)}, "UNION")
	if err != nil || common.Desc != d {
		t.Errorf("common type of a domain with itself: %v %v", common, err)
	}
	if common, err = CommonType([]datum.Type{datum.T(d), datum.T(datum.Int8)}, "UNION"); err != nil || common.Desc != datum.Int8 {
		t.Errorf("common type of a domain and int8: %v %v", common, err)
	}
}

func TestEnums(t *testing.T) {
	mood := datum.NewEnum(1<<31+1, "mood", []datum.EnumLabel{{OID: 1<<31 + 2, Label: "sad", Sort: 1}, {OID: 1<<31 + 3, Label: "ok", Sort: 2}})
	if mood.Array == nil {
		datum.NewArrayDesc(mood, 1<<31+4)
	}
	c := &Ctx{Format: &datum.ContractFormat}
	op, err := ResolveOperator("<", datum.T(mood), datum.T(datum.Unknown))
	if err != nil {
		t.Fatal(err)
	}
	eval, err := op.Func.BindEval([]datum.Type{datum.T(mood), datum.T(mood)}, datum.T(datum.BoolType))
	if err != nil {
		t.Fatal(err)
	}
	sad, err := datum.EnumValue(mood, "sad")
	if err != nil {
		t.Fatal(err)
	}
	ok, err := datum.EnumValue(mood, "ok")
	if err != nil {
		t.Fatal(err)
	}
	if d, err := eval(c, []datum.Datum{sad, ok}); err != nil || !d.IsTrue() {
		t.Errorf("sad < ok: %v %v", d, err)
	}
	if _, err := ResolveOperator("<", datum.T(mood), datum.T(datum.Int4)); pgerr.CodeOf(err) != pgerr.UndefinedFunction {
		t.Errorf("mood < integer: %v", err)
	}
	f, m, err := ResolveFunc("enum_range", []datum.Type{datum.T(mood)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	args, ret, err := ResolvePolymorphic(m.Args, f.Ret, []datum.Type{datum.T(mood)})
	if err != nil || ret.Desc != mood.Array {
		t.Fatal(ret, err)
	}
	if eval, err = f.BindEval(args, ret); err != nil {
		t.Fatal(err)
	}
	d, err := eval(c, []datum.Datum{datum.Null})
	if err != nil {
		t.Fatal(err)
	}
	if got := string(ret.Append(nil, d, c.Format)); got != "{sad,ok}" {
		t.Errorf("enum_range: %s", got)
	}
}

// rewriteCoerce asks PostgreSQL: by calling a function of the target type
// (implicit), by inserting (assignment) and by casting (explicit).
func rewriteCoerce(t *testing.T, file string) {
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var script bytes.Buffer
	script.WriteString(`set client_min_messages = error;
create function pg_temp.try(e text) returns bool language plpgsql as $$
begin execute e; return true;
exception when undefined_function or datatype_mismatch or cannot_coerce then return false; end $$;
create function pg_temp.common(e text) returns text language plpgsql as $$
declare r text; begin execute e into r; return r;
exception when others then return '!' || sqlstate || ' ' || sqlerrm; end $$;
`)
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	for _, line := range lines {
		f := strings.Fields(strings.TrimSuffix(strings.SplitN(line, ": ", 2)[0], ":"))
		switch f[0] {
		case "common":
			fmt.Fprintf(&script, "select pg_temp.common('select pg_typeof(coalesce(%s, %s))');\n", sqlNull(f[1]), sqlNull(f[2]))
		case "cast":
			dst := sqlType(f[1])
			fmt.Fprintf(&script, "create function pg_temp.f(%s) returns int language sql as 'select 1'; create temp table tt(x %s);\nselect concat_ws(' '", dst, dst)
			for _, src := range coerceTypes {
				null := sqlNull(src)
				fmt.Fprintf(&script, ", case when pg_temp.try('select pg_temp.f(%s)') then 'i' when pg_temp.try('insert into tt select %s') then 'a' when pg_temp.try('select %s::%s') then 'e' else '.' end",
					null, null, null, dst)
			}
			fmt.Fprintf(&script, ");\ndrop function pg_temp.f(%s); drop table tt;\n", dst)
		}
	}
	answers := runPSQL(t, &script)
	for i, line := range lines {
		if line[0] != '#' {
			head, _, _ := strings.Cut(line, ": ")
			lines[i], answers = head+": "+answers[0], answers[1:]
		}
	}
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}
