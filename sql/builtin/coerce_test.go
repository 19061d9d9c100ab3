package builtin

import (
	"strings"
	"testing"

	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// TestCoerce compares casts and common types with PostgreSQL's, for all pairs
// of the types in testdata/coerce.txt, whose header says how to read it.
func TestCoerce(t *testing.T) {
	b := facts(t, "coerce.txt")
	types := typeList(strings.Fields(`int2 int4 int8 numeric float4 float8 oid regclass text varchar bpchar name char bytea
		bool date time timestamp timestamptz interval uuid json jsonb int4[] text[] numeric[] int2vector oidvector`))
	for _, line := range b {
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
