package exec

import (
	"testing"

	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
	"github.com/tallystick/tallystick/sql/plan"
)

func TestSubqueries(t *testing.T) {
	outer := slot(tInt, 0)
	// The subquery's rows are in slot 1.
	rows := func(vals ...any) plan.Node { return column(1, vals...) }
	above := func(vals ...any) plan.Node {
		return &plan.Filter{Child: rows(vals...), Cond: op(">", slot(tInt, 1), outer)}
	}
	sub := func(kind plan.SubqueryKind, n plan.Node, correlated bool) *plan.Subquery {
		return typed(tInt, &plan.Subquery{Kind: kind, Plan: n, Out: []int{1}, Correlated: correlated, ID: 2})
	}
	any := func(kind plan.SubqueryKind, n plan.Node, name string, correlated bool) *plan.Subquery {
		s := sub(kind, n, correlated)
		s.Test = op(name, outer, slot(tInt, 1))
		return typed(tBool, s)
	}
	hashed := func(n plan.Node) *plan.Subquery {
		s := any(plan.AnySub, n, "=", false)
		s.Hash = outer
		return s
	}
	array := func(n plan.Node, correlated bool) *plan.Subquery {
		return typed(tInts, sub(plan.ArraySub, n, correlated))
	}
	exists := func(n plan.Node, correlated bool) *plan.Subquery {
		return typed(tBool, sub(plan.ExistsSub, n, correlated))
	}
	first := func(n plan.Node) plan.Node { return &plan.Limit{Child: n, Count: ival(1)} }
	tests := []struct {
		name string
		expr plan.Expr
		want string // for 1, 3, null
	}{
		{"scalar", sub(plan.ScalarSub, rows(7), false), "(7)(7)(7)"},
		{"scalar of nothing", sub(plan.ScalarSub, rows(), false), "(null)(null)(null)"},
		{"correlated", sub(plan.ScalarSub, first(above(2, 4)), true), "(2)(4)(null)"},
		{"exists", exists(rows(1), false), "(t)(t)(t)"},
		{"exists of nothing", exists(rows(), false), "(f)(f)(f)"},
		{"exists correlated", exists(above(2), true), "(t)(f)(f)"},
		{"any", any(plan.AnySub, rows(1, 2), "=", false), "(t)(f)(null)"},
		{"any with null", any(plan.AnySub, rows(1, nil), "=", false), "(t)(null)(null)"},
		{"any of nothing", any(plan.AnySub, rows(), "=", false), "(f)(f)(f)"},
		{"any correlated", any(plan.AnySub, above(2, 4), "<", true), "(t)(t)(f)"},
		{"all", any(plan.AllSub, rows(1, 2), "<=", false), "(t)(f)(null)"},
		{"all with null", any(plan.AllSub, rows(2, nil), "<", false), "(null)(f)(null)"},
		{"all of nothing", any(plan.AllSub, rows(), "<", false), "(t)(t)(t)"},
		{"hashed any", hashed(rows(1, 2, 1)), "(t)(f)(null)"},
		{"hashed any with null", hashed(rows(1, nil)), "(t)(null)(null)"},
		{"hashed any of nothing", hashed(rows()), "(f)(f)(f)"},
		{"array", array(rows(1, nil, 2), false), "({1,NULL,2})({1,NULL,2})({1,NULL,2})"},
		{"array correlated", array(above(2, 4), true), "({2,4})({4})({})"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			root := &plan.Project{Child: column(0, 1, 3, nil), Exprs: []plan.Expr{test.expr}, Out: []int{2}}
			prog := compile(t, &plan.Plan{Root: root, Slots: 3, Out: []int{2}, Subqueries: 3})
			for again := range 2 {
				got, err := rowsOf(prog, noStore(), nil)
				if err != nil {
					t.Fatal(err)
				}
				if s := format([]datum.Type{test.expr.Type()}, got); s != test.want {
					t.Errorf("run %d: %s, expected %s", again, s, test.want)
				}
			}
		})
	}
	t.Run("array of arrays", func(t *testing.T) {
		n := values([]int{1}, []plan.Expr{intArray(num(1), num(2))}, []plan.Expr{intArray(num(3), num(4))})
		root := &plan.Project{Child: &plan.Result{}, Exprs: []plan.Expr{array(&plan.Filter{Child: n, Cond: bval(true)}, false)}, Out: []int{2}}
		if got := run(t, noStore(), root, 3, []int{2}, tInts); got != "({{1,2},{3,4}})" {
			t.Errorf("got %s", got)
		}
	})
	t.Run("too many rows", func(t *testing.T) {
		root := &plan.Project{Child: &plan.Result{}, Exprs: []plan.Expr{sub(plan.ScalarSub, rows(1, 2), false)}, Out: []int{2}}
		_, err := compile(t, &plan.Plan{Root: root, Slots: 3, Subqueries: 3}).Run(noStore(), nil)
		wantCode(t, err, pgerr.CardinalityViolation, "more than one row returned by a subquery used as an expression")
	})
	t.Run("in an expression of its own", func(t *testing.T) {
		x, err := CompileExpr(op("+", sub(plan.ScalarSub, rows(7), false), prm(tInt, 0)), 3, 3, 0)
		if err != nil {
			t.Fatal(err)
		}
		env := noStore()
		for i := range 3 {
			if d, err := x.Eval(env, []datum.Datum{num(i)}); err != nil || d.Int() != int64(7+i) {
				t.Errorf("%d, %v", d.Int(), err)
			}
		}
	})
}

func TestRowSubquery(t *testing.T) {
	// SET (a, b) = (SELECT ...): slots 1 and 2, twice, over outer rows in slot 0.
	match := &plan.Filter{Child: ints([]int{1, 2}, []any{1, 10}, []any{2, 20}, []any{9, 90}), Cond: eq(slot(tInt, 0), slot(tInt, 1))}
	sub := typed(datum.T(datum.Record), &plan.Subquery{Kind: plan.RowSub, Plan: match, Out: []int{1, 2}, Correlated: true})
	root := &plan.Project{Child: column(0, 2, 5, 1), Exprs: []plan.Expr{sub}, Out: []int{3}}
	if got := run(t, noStore(), root, 4, []int{0, 1, 2}, tInt, tInt, tInt); got != "(2,2,20)(5,null,null)(1,1,10)" {
		t.Errorf("got %s", got)
	}
}

// An uncorrelated subquery runs once for an execution, however many rows ask.
func TestSubqueryRunsOnce(t *testing.T) {
	calls := 0
	e := noStore()
	e.Functions = &Functions{Call: func(*Env, *catalog.Func, []datum.Datum) (datum.Datum, error) {
		calls++
		return num(calls), nil
	}}
	call := typed(tInt, &plan.UserCall{Func: &catalog.Func{}})
	for _, correlated := range []bool{false, true} {
		calls = 0
		sub := typed(tInt, &plan.Subquery{Kind: plan.ScalarSub, Plan: values([]int{1}, []plan.Expr{call}), Out: []int{1}, Correlated: correlated})
		root := &plan.Project{Child: column(0, 1, 2, 3), Exprs: []plan.Expr{sub}, Out: []int{2}}
		want := "(1)(1)(1)"
		if correlated {
			want = "(1)(2)(3)"
		}
		if got := run(t, e, root, 3, []int{2}, tInt); got != want {
			t.Errorf("correlated %t: %s", correlated, got)
		}
	}
}

// The inner side of a loop join runs once if it does not depend on the outer
// row, and every time if it does.
func TestInnerSideIsKept(t *testing.T) {
	calls := 0
	e := noStore()
	e.Functions = &Functions{Call: func(_ *Env, _ *catalog.Func, args []datum.Datum) (datum.Datum, error) {
		calls++
		return args[0], nil
	}}
	join := func(arg plan.Expr) *plan.NestLoop {
		call := typed(tInt, &plan.UserCall{Func: &catalog.Func{}, Args: []plan.Expr{arg}})
		return &plan.NestLoop{Kind: plan.InnerJoin, Outer: column(0, 1, 2, 3), Inner: values([]int{1}, []plan.Expr{call}), InnerSlots: []int{1}}
	}
	if got := run(t, e, join(ival(5)), 2, []int{0, 1}, tInt, tInt); got != "(1,5)(2,5)(3,5)" || calls != 1 {
		t.Errorf("%s, %d calls", got, calls)
	}
	calls = 0
	if got := run(t, e, join(slot(tInt, 0)), 2, []int{0, 1}, tInt, tInt); got != "(1,1)(2,2)(3,3)" || calls != 3 {
		t.Errorf("%s, %d calls", got, calls)
	}
	// In a loop around it the kept rows are those of the present outer row.
	calls = 0
	inner := join(slot(tInt, 2))
	around := &plan.NestLoop{Kind: plan.InnerJoin, Outer: column(2, 8, 9), Inner: inner, InnerSlots: []int{0, 1}}
	if got := run(t, e, around, 3, []int{2, 0, 1}, tInt, tInt, tInt); got != "(8,1,8)(8,2,8)(8,3,8)(9,1,9)(9,2,9)(9,3,9)" || calls != 2 {
		t.Errorf("%s, %d calls", got, calls)
	}
}

func TestWith(t *testing.T) {
	cte := plan.CTE{ID: 1, Name: "c", Node: column(0, 1, 2, 3), Out: []int{0}, Types: []datum.Type{tInt}}
	scan := func(s int, filter plan.Expr) plan.Node { return &plan.CTEScan{ID: 1, Slots: []int{s}, Filter: filter} }
	join := &plan.NestLoop{Kind: plan.InnerJoin, Outer: scan(1, nil), Inner: scan(2, op("<", slot(tInt, 2), slot(tInt, 1))), InnerSlots: []int{2}}
	if got := run(t, noStore(), &plan.With{CTEs: []plan.CTE{cte}, Body: join}, 3, []int{1, 2}, tInt, tInt); got != "(2,1)(3,1)(3,2)" {
		t.Errorf("got %s", got)
	}
	// Inside a correlated subquery, one WITH query per outer row.
	cte.Node = &plan.Filter{Child: column(0, 1, 2, 3), Cond: op("<", slot(tInt, 0), slot(tInt, 3))}
	count := &plan.Aggregate{Child: scan(1, nil), Aggs: []plan.Agg{agg("count", 4)}}
	sub := typed(tBig, &plan.Subquery{Kind: plan.ScalarSub, Plan: &plan.With{CTEs: []plan.CTE{cte}, Body: count}, Out: []int{4}, Correlated: true})
	root := &plan.Project{Child: column(3, 1, 2, 4), Exprs: []plan.Expr{sub}, Out: []int{5}}
	if got := run(t, noStore(), root, 6, []int{5}, tBig); got != "(0)(1)(3)" {
		t.Errorf("correlated: %s", got)
	}
}

func TestRecursiveWith(t *testing.T) {
	next := op("+", slot(tInt, 1), ival(1))
	with := func(step plan.Node, distinct bool, body plan.Node) *plan.With {
		return &plan.With{CTEs: []plan.CTE{{ID: 0, Name: "r", Node: column(0, 1), Out: []int{0}, Types: []datum.Type{tInt}, Step: step, StepOut: []int{2}, Distinct: distinct}}, Body: body}
	}
	working := func(filter plan.Expr) plan.Node {
		return &plan.Project{Child: &plan.CTEScan{ID: 0, Slots: []int{1}, Working: true, Filter: filter}, Exprs: []plan.Expr{next}, Out: []int{2}}
	}
	all := &plan.CTEScan{ID: 0, Slots: []int{3}}
	if got := run(t, noStore(), with(working(op("<", slot(tInt, 1), ival(5))), false, all), 4, []int{3}, tInt); got != "(1)(2)(3)(4)(5)" {
		t.Errorf("counting: %s", got)
	}
	// Without an end, but only four rows are asked for.
	if got := run(t, noStore(), with(working(nil), false, &plan.Limit{Child: all, Count: ival(4)}), 4, []int{3}, tInt); got != "(1)(2)(3)(4)" {
		t.Errorf("endless: %s", got)
	}
	// UNION ends when nothing new comes: n+1 modulo 4.
	cycle := &plan.Project{Child: &plan.CTEScan{ID: 0, Slots: []int{1}, Working: true}, Exprs: []plan.Expr{op("%", next, ival(4))}, Out: []int{2}}
	if got := run(t, noStore(), with(cycle, true, all), 4, []int{3}, tInt); got != "(1)(2)(3)(0)" {
		t.Errorf("cycle: %s", got)
	}
	// Each round sees the rows of the round before, not all: two rows in, each
	// makes two.
	double := &plan.NestLoop{Kind: plan.InnerJoin, Outer: working(op("<", slot(tInt, 1), ival(3))), Inner: column(4, 1, 2), InnerSlots: []int{4}}
	if got := run(t, noStore(), with(double, false, all), 5, []int{3}, tInt); got != "(1)(2)(2)(3)(3)(3)(3)" {
		t.Errorf("doubling: %s", got)
	}
}
