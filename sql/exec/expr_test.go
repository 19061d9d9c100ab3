package exec

import (
	"errors"
	"testing"

	"github.com/tallystick/tallystick/sql/builtin"
	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
	"github.com/tallystick/tallystick/sql/plan"
)

// divide raises 22012: what must not be computed is.
func divide() plan.Expr { return op("/", ival(1), ival(0)) }

func eqFunc(t datum.Type) builtin.Eval { return operator("=", t, t).Eval }

func rec(args ...plan.Expr) plan.Expr {
	return typed(datum.T(datum.Record), &plan.Row{Args: args})
}

func TestExpressions(t *testing.T) {
	yes, no, unknown := bval(true), bval(false), nullOf(tBool)
	anyOf := func(all bool, left, array plan.Expr, name string) plan.Expr {
		f := operator(name, left.Type(), tInt)
		return typed(tBool, &plan.AnyAll{Left: left, Array: array, Eval: f.Eval, All: all, Equality: name == "="})
	}
	sub := func(ix ...int) plan.Expr {
		var index []plan.Expr
		for _, i := range ix {
			index = append(index, ival(i))
		}
		return typed(tInt, &plan.Subscript{Array: intArray(num(10), null, num(30)), Index: index})
	}
	slice := func(lo, hi plan.Expr) plan.Expr {
		return typed(tInts, &plan.Subscript{Array: intArray(num(10), num(20), num(30)), Slice: true, Lo: []plan.Expr{lo}, Hi: []plan.Expr{hi}})
	}
	nested := typed(tInts, &plan.ArrayExpr{Nested: true, Args: []plan.Expr{intArray(num(1), num(2)), intArray(num(3), num(4))}})
	rowCmp := func(name string, l, r []plan.Expr) plan.Expr {
		return typed(tBool, &plan.RowCompare{Op: name, Left: l, Right: r})
	}
	list := func(e ...plan.Expr) []plan.Expr { return e }
	distinct := func(not bool, a, b plan.Expr) plan.Expr {
		return typed(tBool, &plan.Distinct{Left: a, Right: b, Not: not, Equal: eqFunc(a.Type())})
	}
	caseOf := func(arg plan.Expr, els plan.Expr, whens ...plan.When) plan.Expr {
		return typed(tText, &plan.Case{Arg: arg, ArgSlot: 0, Whens: whens, Else: els})
	}
	long := make([]datum.Datum, 20)
	for i := range long {
		long[i] = num(3 * i)
	}
	tests := []struct {
		name string
		expr plan.Expr
		want string // "null" for null
	}{
		{"const", ival(7), "7"},
		{"null", nullOf(tInt), "null"},
		{"param", prm(tInt, 0), "42"},
		{"param text", prm(tText, 1), "par"},
		{"add", op("+", prm(tInt, 0), ival(1)), "43"},
		{"subtract", op("-", prm(tInt, 0), ival(50)), "-8"},
		{"mixed widths", op("+", ival(1), val(tBig, num(2))), "3"},
		{"param < const", op("<", prm(tInt, 0), ival(43)), "t"},
		{"param >= const", op(">=", prm(tInt, 0), ival(43)), "f"},
		{"const = param", eq(ival(42), prm(tInt, 0)), "t"},
		{"null comparison", op("<", nullOf(tInt), ival(1)), "null"},
		{"text equality", eq(prm(tText, 1), sval("par")), "t"},
		{"text order", op(">", sval("b"), sval("a")), "t"},
		{"numeric order", op("<=", val(tNum, numeric("1.50")), val(tNum, numeric("1.5"))), "t"},
		{"strict call of null", op("||", sval("a"), nullOf(tText)), "null"},
		{"concatenation", op("||", sval("a"), sval("b")), "ab"},
		{"and", and(yes, yes), "t"},
		{"and false", and(yes, no), "f"},
		{"and unknown", and(yes, unknown), "null"},
		{"and unknown false", and(unknown, no), "f"},
		{"and three", and(unknown, yes, no), "f"},
		{"and stops", and(no, eq(divide(), ival(1))), "f"},
		{"or", or(no, yes), "t"},
		{"or unknown", or(no, unknown), "null"},
		{"or unknown true", or(unknown, yes), "t"},
		{"or three", or(no, no, unknown), "null"},
		{"or stops", or(yes, eq(divide(), ival(1))), "t"},
		{"not", typed(tBool, &plan.BoolOp{Op: plan.Not, Args: list(no)}), "t"},
		{"not unknown", typed(tBool, &plan.BoolOp{Op: plan.Not, Args: list(unknown)}), "null"},
		{"is null", isNull(nullOf(tInt)), "t"},
		{"is not null", typed(tBool, &plan.IsNull{Arg: nullOf(tInt), Not: true}), "f"},
		{"row is null", isNull(rec(nullOf(tInt), nullOf(tInt))), "t"},
		{"mixed row is null", isNull(rec(nullOf(tInt), ival(1))), "f"},
		{"mixed row is not null", typed(tBool, &plan.IsNull{Arg: rec(nullOf(tInt), ival(1)), Not: true}), "f"},
		{"full row is not null", typed(tBool, &plan.IsNull{Arg: rec(ival(2), ival(1)), Not: true}), "t"},
		{"is true", typed(tBool, &plan.BoolTest{Arg: unknown, Want: datum.Bool(true)}), "f"},
		{"is not true", typed(tBool, &plan.BoolTest{Arg: unknown, Want: datum.Bool(true), Not: true}), "t"},
		{"is false", typed(tBool, &plan.BoolTest{Arg: no, Want: datum.Bool(false)}), "t"},
		{"is unknown", typed(tBool, &plan.BoolTest{Arg: unknown, Want: null}), "t"},
		{"distinct", distinct(false, ival(1), ival(2)), "t"},
		{"distinct null", distinct(false, ival(1), nullOf(tInt)), "t"},
		{"distinct nulls", distinct(false, nullOf(tInt), nullOf(tInt)), "f"},
		{"not distinct", distinct(true, ival(1), ival(1)), "t"},
		{"case", caseOf(nil, sval("no"), plan.When{Cond: unknown, Result: sval("?")}, plan.When{Cond: yes, Result: sval("yes")}), "yes"},
		{"case else", caseOf(nil, sval("no"), plan.When{Cond: no, Result: sval("yes")}), "no"},
		{"case without else", caseOf(nil, nil, plan.When{Cond: no, Result: sval("yes")}), "null"},
		{"case of a value", caseOf(ival(2), nil, plan.When{Cond: eq(slot(tInt, 0), ival(2)), Result: sval("two")}), "two"},
		{"coalesce", typed(tInt, &plan.Coalesce{Args: list(nullOf(tInt), ival(3), divide())}), "3"},
		{"coalesce of nulls", typed(tInt, &plan.Coalesce{Args: list(nullOf(tInt))}), "null"},
		{"greatest", typed(tInt, &plan.MinMax{Args: list(ival(1), nullOf(tInt), ival(3), ival(2))}), "3"},
		{"least", typed(tInt, &plan.MinMax{Args: list(ival(2), ival(1)), Least: true}), "1"},
		{"greatest of nulls", typed(tInt, &plan.MinMax{Args: list(nullOf(tInt))}), "null"},
		{"nullif", typed(tInt, &plan.NullIf{Left: ival(1), Right: ival(1), Value: ival(1), Equal: eqFunc(tInt)}), "null"},
		{"nullif differs", typed(tInt, &plan.NullIf{Left: ival(1), Right: ival(2), Value: ival(1), Equal: eqFunc(tInt)}), "1"},
		{"nullif null", typed(tInt, &plan.NullIf{Left: ival(1), Right: nullOf(tInt), Value: ival(1), Equal: eqFunc(tInt)}), "1"},
		{"int to text", typed(tText, &plan.CoerceIO{Arg: ival(-5)}), "-5"},
		{"text to int", typed(tInt, &plan.CoerceIO{Arg: sval(" 12 ")}), "12"},
		{"null by text", typed(tInt, &plan.CoerceIO{Arg: nullOf(tText)}), "null"},
		{"relabel", typed(datum.T(datum.VarChar), &plan.Relabel{Arg: sval("x")}), "x"},
		{"cut to length", typed(datum.Type{Desc: datum.VarChar, Mod: 4 + 2}, &plan.CoerceMod{Arg: sval("abc"), Explicit: true}), "ab"},
		{"array", typed(tInts, &plan.ArrayExpr{Args: list(ival(1), nullOf(tInt))}), "{1,NULL}"},
		{"nested array", nested, "{{1,2},{3,4}}"},
		{"nested empty", typed(tInts, &plan.ArrayExpr{Nested: true, Args: list(intArray(), intArray())}), "{}"},
		{"array elements", typed(datum.T(datum.Text.Array), &plan.CoerceArray{Arg: nested, ElemSlot: 1,
			Elem: typed(tText, &plan.CoerceIO{Arg: op("+", slot(tInt, 1), ival(1))})}), "{{2,3},{4,5}}"},
		{"any", anyOf(false, ival(2), intArray(num(1), num(2)), "="), "t"},
		{"any none", anyOf(false, ival(3), intArray(num(1), num(2)), "="), "f"},
		{"any null", anyOf(false, ival(3), intArray(num(1), null), "="), "null"},
		{"any of null", anyOf(false, nullOf(tInt), intArray(num(1)), "="), "null"},
		{"any of nothing", anyOf(false, nullOf(tInt), intArray(), "="), "f"},
		{"any null array", anyOf(false, ival(1), nullOf(tInts), "="), "null"},
		{"any less", anyOf(false, ival(2), intArray(num(1), num(3)), "<"), "t"},
		{"all", anyOf(true, ival(5), intArray(num(1), num(3)), ">"), "t"},
		{"all fails", anyOf(true, ival(2), intArray(num(1), null, num(3)), ">"), "f"},
		{"all null", anyOf(true, ival(5), intArray(num(1), null), ">"), "null"},
		{"all of nothing", anyOf(true, ival(5), intArray(), ">"), "t"},
		{"long list", anyOf(false, ival(57), intArray(long...), "="), "t"},
		{"long list none", anyOf(false, ival(58), intArray(long...), "="), "f"},
		{"long list null", anyOf(false, ival(58), intArray(append(long, null)...), "="), "null"},
		{"element", sub(3), "30"},
		{"null element", sub(2), "null"},
		{"no element", sub(4), "null"},
		{"slice", slice(ival(2), ival(9)), "{20,30}"},
		{"open slice", slice(nil, ival(2)), "{10,20}"},
		{"empty slice", slice(ival(3), ival(2)), "{}"},
		{"null slice", slice(nullOf(tInt), nil), "null"},
		{"slice of two", typed(tInts, &plan.Subscript{Array: nested, Slice: true, Lo: list(ival(1), ival(2)), Hi: list(ival(2), ival(2))}), "{{2},{4}}"},
		{"row", rec(ival(1), nullOf(tInt), sval("a b")), `(1,,"a b")`},
		{"field", typed(tText, &plan.Field{Arg: rec(ival(1), sval("x")), Index: 1}), "x"},
		{"field of null", typed(tText, &plan.Field{Arg: nullOf(datum.T(datum.Record)), Index: 1}), "null"},
		{"rows equal", rowCmp("=", list(ival(1), ival(2)), list(ival(1), ival(2))), "t"},
		{"rows with null", rowCmp("=", list(ival(1), nullOf(tInt)), list(ival(1), ival(2))), "null"},
		{"rows differ behind null", rowCmp("=", list(nullOf(tInt), ival(1)), list(ival(1), ival(2))), "f"},
		{"rows not equal", rowCmp("<>", list(nullOf(tInt), ival(1)), list(ival(1), ival(2))), "t"},
		{"rows less", rowCmp("<", list(ival(1), ival(1)), list(ival(1), ival(2))), "t"},
		{"rows less null", rowCmp("<", list(nullOf(tInt), ival(1)), list(ival(1), ival(2))), "null"},
		{"rows less decided", rowCmp("<", list(ival(0), nullOf(tInt)), list(ival(1), ival(2))), "t"},
		{"rows at least", rowCmp(">=", list(ival(1), ival(2)), list(ival(1), ival(2))), "t"},
	}
	env := noStore()
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			x, err := CompileExpr(test.expr, 2, 0, 0)
			if err != nil {
				t.Fatal(err)
			}
			d, err := x.Eval(env, []datum.Datum{num(42), str("par")})
			if err != nil {
				t.Fatal(err)
			}
			got := "null"
			if !d.IsNull() {
				got = string(x.Type().Append(nil, d, &datum.ContractFormat))
			}
			if got != test.want {
				t.Errorf("got %s, expected %s", got, test.want)
			}
		})
	}
	if env.nested != 0 {
		t.Errorf("%d frames are still taken", env.nested)
	}
}

func numeric(s string) datum.Datum {
	d, err := datum.ParseNumeric(s)
	if err != nil {
		panic(err)
	}
	return d
}

func TestExpressionErrors(t *testing.T) {
	tests := []struct {
		name    string
		expr    plan.Expr
		code    pgerr.Code
		message string
	}{
		{"division", divide(), pgerr.DivisionByZero, "division by zero"},
		{"integer overflow", op("+", ival(1<<31-1), ival(1)), pgerr.NumericValueOutOfRange, "integer out of range"},
		{"integer underflow", op("-", ival(-1<<31), ival(1)), pgerr.NumericValueOutOfRange, "integer out of range"},
		{"bigint overflow", op("+", val(tBig, datum.Int(1<<63-1)), val(tBig, num(1))), pgerr.NumericValueOutOfRange, "bigint out of range"},
		{"bigint underflow", op("-", val(tBig, datum.Int(-1<<63)), val(tBig, num(1))), pgerr.NumericValueOutOfRange, "bigint out of range"},
		{"parameter", prm(tInt, 5), pgerr.UndefinedParameter, "there is no parameter $6"},
		{"parameter compared", op("<", prm(tInt, 5), ival(1)), pgerr.UndefinedParameter, "there is no parameter $6"},
		{"text to int", typed(tInt, &plan.CoerceIO{Arg: sval("x")}), pgerr.InvalidTextRepresentation, `invalid input syntax for type integer: "x"`},
		{"ragged array", typed(tInts, &plan.ArrayExpr{Nested: true, Args: []plan.Expr{intArray(num(1)), intArray()}}), pgerr.ArraySubscriptError,
			"multidimensional arrays must have array expressions with matching dimensions"},
		{"and does not hide", and(bval(true), eq(divide(), ival(1))), pgerr.DivisionByZero, "division by zero"},
	}
	env := noStore()
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			x, err := CompileExpr(test.expr, 2, 0, 0)
			if err != nil {
				t.Fatal(err)
			}
			_, err = x.Eval(env, nil)
			wantCode(t, err, test.code, test.message)
		})
	}
}

// The operators that the executor computes itself must agree with the functions
// that they stand for.
func TestFastOperatorsAgree(t *testing.T) {
	ints := []int64{-1 << 63, -1 << 31, -5, -1, 0, 1, 5, 1<<31 - 1, 1<<63 - 1}
	texts := []string{"", "a", "ab", "b", "\xc3\xa9"}
	nums := []string{"0", "-1.5", "1.50", "1.5", "1e30"}
	env := noStore()
	check := func(t *testing.T, name string, typ datum.Type, a, b datum.Datum) {
		f := operator(name, typ, typ)
		want, wantErr := f.Eval(&env.Ctx, []datum.Datum{a, b})
		for _, left := range []plan.Expr{val(typ, a), prm(typ, 0), slot(typ, 0)} {
			e := typed(datum.T(f.Ret), &plan.Call{Func: f, Eval: f.Eval, Args: []plan.Expr{left, val(typ, b)}})
			x, err := CompileExpr(e, 1, 0, 0)
			if err != nil {
				t.Fatal(err)
			}
			if _, isSlot := left.(*plan.Slot); isSlot {
				continue // evaluated below, in a program that fills the slot
			}
			got, err := x.Eval(env, []datum.Datum{a})
			if got != want || (err == nil) != (wantErr == nil) || err != nil && pgerr.CodeOf(err) != pgerr.CodeOf(wantErr) {
				t.Errorf("%s %s: %v %v, the function says %v %v", typ.Name, name, got, err, want, wantErr)
			}
		}
		root := &plan.Project{Child: values([]int{0}, []plan.Expr{val(typ, a)}), Out: []int{1},
			Exprs: []plan.Expr{typed(datum.T(f.Ret), &plan.Call{Func: f, Eval: f.Eval, Args: []plan.Expr{slot(typ, 0), val(typ, b)}})}}
		rows, err := rowsOf(compile(t, &plan.Plan{Root: root, Slots: 2, Out: []int{1}}), env, nil)
		if (err == nil) != (wantErr == nil) || err == nil && rows[0][0] != want {
			t.Errorf("%s %s over a slot: %v %v, the function says %v %v", typ.Name, name, rows, err, want, wantErr)
		}
	}
	for _, name := range []string{"=", "<>", "<", "<=", ">", ">=", "+", "-"} {
		for _, a := range ints {
			for _, b := range ints {
				check(t, name, tBig, datum.Int(a), datum.Int(b))
				if a == int64(int32(a)) && b == int64(int32(b)) {
					check(t, name, tInt, datum.Int(a), datum.Int(b))
				}
			}
		}
		if name == "+" || name == "-" {
			continue
		}
		for _, a := range texts {
			for _, b := range texts {
				check(t, name, tText, str(a), str(b))
			}
		}
		for _, a := range nums {
			for _, b := range nums {
				check(t, name, tNum, numeric(a), numeric(b))
			}
		}
	}
}

// A user-defined function evaluates the very expression that called it.
func TestExpressionRecursion(t *testing.T) {
	fact := &catalog.Func{Name: "fact", Strict: true}
	call := typed(tInt, &plan.UserCall{Func: fact, Args: []plan.Expr{op("-", prm(tInt, 0), ival(1))}})
	body := typed(tInt, &plan.Case{Whens: []plan.When{{Cond: op("<=", prm(tInt, 0), ival(1)), Result: ival(1)}}, Else: op("*", prm(tInt, 0), call)})
	x, err := CompileExpr(body, 0, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	env := noStore()
	deepest := 0
	env.Functions = &Functions{Call: func(env *Env, f *catalog.Func, args []datum.Datum) (datum.Datum, error) {
		deepest = max(deepest, env.Depth)
		return x.Eval(env, append([]datum.Datum(nil), args...))
	}}
	d, err := x.Eval(env, []datum.Datum{num(10)})
	if err != nil || d.Int() != 3628800 {
		t.Fatalf("fact(10) = %d, %v", d.Int(), err)
	}
	if deepest != 9 || env.Depth != 0 {
		t.Errorf("the deepest call was at depth %d, expected 9; %d now", deepest, env.Depth)
	}
	env.Limits.Nesting = 5
	_, err = x.Eval(env, []datum.Datum{num(10)})
	wantCode(t, err, pgerr.StatementTooComplex, "stack depth limit exceeded")
	if env.Depth != 0 || env.nested != 0 {
		t.Errorf("depth %d, %d frames after an error", env.Depth, env.nested)
	}
	if d, err = x.Eval(env, []datum.Datum{num(5)}); err != nil || d.Int() != 120 {
		t.Errorf("fact(5) = %d, %v", d.Int(), err)
	}
}

func TestStrictUserFunction(t *testing.T) {
	called := 0
	env := noStore()
	env.Functions = &Functions{Call: func(*Env, *catalog.Func, []datum.Datum) (datum.Datum, error) {
		called++
		return num(1), nil
	}}
	for _, strict := range []bool{true, false} {
		x, err := CompileExpr(typed(tInt, &plan.UserCall{Func: &catalog.Func{Strict: strict}, Args: []plan.Expr{nullOf(tInt)}}), 0, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := x.Eval(env, nil); err != nil {
			t.Fatal(err)
		}
	}
	if called != 1 {
		t.Errorf("called %d times, expected once", called)
	}
}

// Steps are counted the same whether the executor computes an operator itself or
// calls its function, and running out is 54000.
func TestStepBudget(t *testing.T) {
	steps := func(e plan.Expr) int64 {
		x, err := CompileExpr(e, 0, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		env := noStore()
		env.Ctx.Budget = &builtin.Budget{Left: 100}
		if _, err := x.Eval(env, []datum.Datum{num(1)}); err != nil {
			t.Fatal(err)
		}
		return 100 - env.Ctx.Budget.Left
	}
	if n := steps(op("<", prm(tInt, 0), ival(1))); n != 1 {
		t.Errorf("a comparison takes %d steps", n)
	}
	if n := steps(op("*", op("%", ival(7), ival(4)), op("+", prm(tInt, 0), ival(1)))); n != 3 {
		t.Errorf("three operators take %d steps", n)
	}
	if n := steps(op("<", nullOf(tInt), ival(1))); n != 0 {
		t.Errorf("a strict operator over null takes %d steps", n)
	}
	x, err := CompileExpr(op("+", op("+", ival(1), ival(1)), ival(1)), 0, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	env := noStore()
	env.Ctx.Budget = &builtin.Budget{Left: 1}
	_, err = x.Eval(env, nil)
	if pgerr.CodeOf(err) != pgerr.ProgramLimitExceeded {
		t.Errorf("out of steps: %v", err)
	}
}

func TestFaultsPass(t *testing.T) {
	fault := errors.New("disk")
	env := noStore()
	env.Functions = &Functions{Call: func(*Env, *catalog.Func, []datum.Datum) (datum.Datum, error) { return null, fault }}
	x, err := CompileExpr(and(bval(true), typed(tBool, &plan.UserCall{Func: &catalog.Func{}})), 0, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := x.Eval(env, nil); !errors.Is(err, fault) {
		t.Errorf("got %v", err)
	}
}
