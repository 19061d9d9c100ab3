package exec

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tallystick/tallystick/sql/builtin"
	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
	"github.com/tallystick/tallystick/sql/plan"
)

// ints makes a Values node over int columns; nil is null.
func ints(slots []int, rows ...[]any) *plan.Values {
	v := &plan.Values{Slots: slots}
	for _, r := range rows {
		var row []plan.Expr
		for _, x := range r {
			if x == nil {
				row = append(row, nullOf(tInt))
			} else {
				row = append(row, ival(x.(int)))
			}
		}
		v.Rows = append(v.Rows, row)
	}
	return v
}

func column(s int, vals ...any) *plan.Values {
	v := ints([]int{s})
	for _, x := range vals {
		v.Rows = append(v.Rows, ints(nil, []any{x}).Rows[0])
	}
	return v
}

func agg(name string, out int, args ...plan.Expr) plan.Agg {
	return plan.Agg{Func: aggFunc(name, typesOf(args)...), Args: args, Out: out}
}

func set(name string) builtin.SetEval {
	for _, f := range builtin.LookupFuncs(name) {
		if f.RetSet && len(f.Args) == 2 && f.Args[0] == datum.Int4 {
			s, _, err := f.BindRows([]datum.Type{tInt, tInt}, tInt)
			if err != nil {
				panic(err)
			}
			return s
		}
	}
	panic("no function " + name)
}

func TestNodes(t *testing.T) {
	a, b := slot(tInt, 0), slot(tInt, 1)
	series := set("generate_series")
	pairs := func() plan.Node {
		return ints([]int{0, 1}, []any{1, 5}, []any{2, nil}, []any{1, 7}, []any{nil, 2}, []any{1, 5}, []any{nil, 3})
	}
	desc := func(e plan.Expr, nullsFirst bool) plan.SortKey {
		return plan.SortKey{Expr: e, Desc: true, NullsFirst: nullsFirst}
	}
	list := datum.T(datum.Int4.Array)
	tests := []struct {
		name  string
		root  plan.Node
		out   []int
		types []datum.Type
		want  string
	}{
		{"result", &plan.Project{Child: &plan.Result{}, Exprs: []plan.Expr{ival(3)}, Out: []int{0}}, []int{0}, nil, "(3)"},
		{"result of nothing", &plan.Project{Child: &plan.Result{Cond: nullOf(tBool)}, Exprs: []plan.Expr{divide()}, Out: []int{0}}, []int{0}, nil, ""},
		{"values", pairs(), []int{1, 0}, nil, "(5,1)(null,2)(7,1)(2,null)(5,1)(3,null)"},
		{"filter", &plan.Filter{Child: pairs(), Cond: op(">", b, ival(2))}, []int{0, 1}, nil, "(1,5)(1,7)(1,5)(null,3)"},
		{"append", &plan.Append{Children: []plan.Node{column(0, 1, 2), column(1), column(1, 3)}, In: [][]int{{0}, {1}, {1}}, Out: []int{2}}, []int{2}, nil, "(1)(2)(3)"},
		{"sort", &plan.Sort{Child: pairs(), Keys: []plan.SortKey{keyOf(a), desc(b, true)}, Slots: []int{0, 1}}, []int{0, 1}, nil,
			"(1,7)(1,5)(1,5)(2,null)(null,3)(null,2)"},
		{"sort nulls first", &plan.Sort{Child: pairs(), Keys: []plan.SortKey{{Expr: b, NullsFirst: true}, keyOf(a)}, Slots: []int{0, 1}}, []int{0, 1}, nil,
			"(2,null)(null,2)(null,3)(1,5)(1,5)(1,7)"},
		{"sort is stable", &plan.Sort{Child: ints([]int{0, 1}, []any{1, 1}, []any{0, 2}, []any{1, 3}, []any{0, 4}), Keys: []plan.SortKey{keyOf(a)}, Slots: []int{0, 1}}, []int{0, 1}, nil,
			"(0,2)(0,4)(1,1)(1,3)"},
		{"top is stable", &plan.Sort{Child: ints([]int{0, 1}, []any{1, 1}, []any{0, 2}, []any{1, 3}, []any{0, 4}), Keys: []plan.SortKey{keyOf(a)}, Slots: []int{0, 1}, Top: ival(3)}, []int{0, 1}, nil,
			"(0,2)(0,4)(1,1)"},
		{"top 0", &plan.Sort{Child: pairs(), Keys: []plan.SortKey{keyOf(a)}, Slots: []int{0, 1}, Top: ival(0)}, []int{0, 1}, nil, ""},
		{"top null", &plan.Sort{Child: column(0, 2, 1), Keys: []plan.SortKey{keyOf(a)}, Slots: []int{0}, Top: nullOf(tBig)}, []int{0}, nil, "(1)(2)"},
		{"limit", &plan.Limit{Child: column(0, 1, 2, 3, 4), Count: ival(2), Offset: ival(1)}, []int{0}, nil, "(2)(3)"},
		{"limit none", &plan.Limit{Child: column(0, 1, 2), Count: nullOf(tBig), Offset: nullOf(tBig)}, []int{0}, nil, "(1)(2)"},
		{"limit 0 does not run", &plan.Limit{Child: &plan.Project{Child: &plan.Result{}, Exprs: []plan.Expr{divide()}, Out: []int{0}}, Count: ival(0)}, []int{0}, nil, ""},
		{"offset beyond", &plan.Limit{Child: column(0, 1, 2), Offset: ival(5)}, []int{0}, nil, ""},
		{"ties", &plan.Limit{Child: column(0, 1, 2, 2, 2, 3), Count: ival(2), Ties: []plan.SortKey{keyOf(a)}}, []int{0}, nil, "(1)(2)(2)(2)"},
		{"distinct", &plan.Unique{Child: pairs(), Keys: []plan.Expr{a, b}}, []int{0, 1}, nil, "(1,5)(2,null)(1,7)(null,2)(null,3)"},
		{"distinct on", &plan.Unique{Child: pairs(), Keys: []plan.Expr{a}}, []int{0, 1}, nil, "(1,5)(2,null)(null,2)"},
		{"group", &plan.Aggregate{Child: pairs(), GroupBy: []plan.Expr{a}, GroupOut: []int{2}, Aggs: []plan.Agg{agg("count", 3), agg("sum", 4, b)}}, []int{2, 3, 4},
			[]datum.Type{tInt, tBig, tBig}, "(1,3,17)(2,1,null)(null,2,5)"},
		{"group sorted", &plan.Aggregate{Sorted: true, Child: ints([]int{0, 1}, []any{1, 5}, []any{1, 6}, []any{nil, 1}, []any{nil, 2}, []any{3, 3}),
			GroupBy: []plan.Expr{a}, GroupOut: []int{0}, Aggs: []plan.Agg{agg("max", 1, b), agg("count", 2, a)}}, []int{0, 1, 2}, []datum.Type{tInt, tInt, tBig},
			"(1,6,2)(null,2,0)(3,3,1)"},
		{"group sorted, nothing", &plan.Aggregate{Sorted: true, Child: column(0), GroupBy: []plan.Expr{a}, GroupOut: []int{2}}, []int{2}, nil, ""},
		{"no group, nothing", &plan.Aggregate{Child: column(0), Aggs: []plan.Agg{agg("count", 1), agg("sum", 2, a)}}, []int{1, 2}, []datum.Type{tBig, tBig}, "(0,null)"},
		{"groups of nothing", &plan.Aggregate{Child: column(0), GroupBy: []plan.Expr{a}, GroupOut: []int{2}}, []int{2}, nil, ""},
		{"aggregate distinct", &plan.Aggregate{Child: column(0, 2, 1, 2, nil, nil), Aggs: []plan.Agg{{Func: aggFunc("count", tInt), Args: []plan.Expr{a}, Distinct: true, Out: 1}}},
			[]int{1}, []datum.Type{tBig}, "(2)"},
		{"aggregate filter", &plan.Aggregate{Child: column(0, 1, 2, 3), Aggs: []plan.Agg{{Func: aggFunc("count"), Filter: op(">", a, ival(1)), Out: 1}}}, []int{1}, []datum.Type{tBig}, "(2)"},
		{"aggregate order", &plan.Aggregate{Child: pairs(), Aggs: []plan.Agg{{Func: aggFunc("array_agg", tInt), Args: []plan.Expr{a}, OrderBy: []plan.SortKey{desc(b, false)}, Out: 2}}},
			[]int{2}, []datum.Type{list}, "({1,1,1,NULL,NULL,2})"},
		{"aggregate distinct is sorted", &plan.Aggregate{Child: column(0, 3, 1, 3, nil, 2), Aggs: []plan.Agg{{Func: aggFunc("array_agg", tInt), Args: []plan.Expr{a}, Distinct: true, Out: 2}}},
			[]int{2}, []datum.Type{list}, "({1,2,3,NULL})"},
		{"aggregate distinct order", &plan.Aggregate{Child: column(0, 3, 1, 3, nil, 2), Aggs: []plan.Agg{{Func: aggFunc("array_agg", tInt), Args: []plan.Expr{a}, Distinct: true,
			OrderBy: []plan.SortKey{desc(a, true)}, Out: 2}}}, []int{2}, []datum.Type{list}, "({NULL,3,2,1})"},
		{"function", &plan.FuncScan{Set: series, Args: []plan.Expr{ival(1), ival(3)}, Slots: []int{0}, Ordinality: 1}, []int{0, 1}, []datum.Type{tInt, tBig}, "(1,1)(2,2)(3,3)"},
		{"function filtered", &plan.FuncScan{Set: series, Args: []plan.Expr{ival(1), ival(3)}, Slots: []int{0}, Ordinality: -1, Filter: op(">", a, ival(2))}, []int{0}, nil, "(3)"},
		{"function of a value", &plan.FuncScan{Value: ival(7), Slots: []int{0}, Ordinality: 1}, []int{0, 1}, []datum.Type{tInt, tBig}, "(7,1)"},
		{"function of a row", &plan.FuncScan{Value: rec(ival(7), ival(8)), Slots: []int{0, 1}, Ordinality: -1}, []int{0, 1}, nil, "(7,8)"},
		{"function of a null row", &plan.FuncScan{Value: nullOf(datum.T(datum.Record)), Slots: []int{0, 1}, Ordinality: -1}, []int{0, 1}, nil, "(null,null)"},
		{"sets in a list", &plan.ProjectSet{Child: column(0, 1, 0, 2), Sets: []plan.SetItem{
			{Set: series, Args: []plan.Expr{ival(1), a}, Out: 1}, {Set: series, Args: []plan.Expr{a, ival(2)}, Out: 2}}}, []int{0, 1, 2}, nil,
			"(1,1,1)(1,null,2)(0,null,0)(0,null,1)(0,null,2)(2,1,2)(2,2,null)"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			types := test.types
			if types == nil {
				types = []datum.Type{tInt, tInt, tInt, tInt}
			}
			p := &plan.Plan{Root: test.root, Slots: 6, Out: test.out}
			prog := compile(t, p)
			e := noStore()
			for again := range 3 { // iterators come out of the pool as new
				rows, err := rowsOf(prog, e, nil)
				if err != nil {
					t.Fatal(err)
				}
				if got := format(types, rows); got != test.want {
					t.Errorf("run %d: %s, expected %s", again, got, test.want)
				}
				if e.held != 0 {
					t.Errorf("run %d: %d bytes are still held", again, e.held)
				}
			}
		})
	}
}

func TestLimitErrors(t *testing.T) {
	e := noStore()
	_, err := compile(t, &plan.Plan{Root: &plan.Limit{Child: column(0, 1), Count: ival(-1)}, Slots: 1}).Run(e, nil)
	wantCode(t, err, pgerr.InvalidRowCountInLimit, "LIMIT must not be negative")
	_, err = compile(t, &plan.Plan{Root: &plan.Limit{Child: column(0, 1), Offset: ival(-1)}, Slots: 1}).Run(e, nil)
	wantCode(t, err, pgerr.InvalidRowCountInOffset, "OFFSET must not be negative")
}

// randomInts makes n rows of two small columns, some null.
func randomInts(r *rand.Rand, n int) [][]any {
	rows := make([][]any, n)
	for i := range rows {
		rows[i] = []any{nil, i}
		if r.IntN(8) > 0 {
			rows[i][0] = r.IntN(6)
		}
	}
	return rows
}

// Joins of all kinds and both methods against two loops.
func TestJoinsRandom(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	types := []datum.Type{tInt, tInt, tInt, tInt}
	for round := range 60 {
		outer, inner := randomInts(r, r.IntN(12)), randomInts(r, r.IntN(12))
		less := op("<", slot(tInt, 1), slot(tInt, 3)) // further condition
		var cond plan.Expr
		if r.IntN(2) == 0 {
			cond = less
		}
		for kind := plan.InnerJoin; kind <= plan.AntiJoin; kind++ {
			want := naiveJoin(kind, outer, inner, cond != nil)
			o, i := ints([]int{0, 1}, outer...), ints([]int{2, 3}, inner...)
			out := []int{0, 1, 2, 3}
			if kind == plan.SemiJoin || kind == plan.AntiJoin {
				out = out[:2]
			}
			hash := &plan.HashJoin{Kind: kind, Outer: o, Inner: i, OuterKeys: []plan.Expr{slot(tInt, 0)}, InnerKeys: []plan.Expr{slot(tInt, 2)},
				Cond: cond, InnerSlots: []int{2, 3}, OuterSlots: []int{0, 1}}
			if got := run(t, noStore(), hash, 4, out, types...); got != want {
				t.Fatalf("round %d, hash join %d of %v and %v: %s, expected %s", round, kind, outer, inner, got, want)
			}
			if kind == plan.RightJoin || kind == plan.FullJoin {
				continue
			}
			match := eq(slot(tInt, 0), slot(tInt, 2))
			if cond != nil {
				match = and(match, cond)
			}
			loop := &plan.NestLoop{Kind: kind, Outer: o, Inner: i, Cond: match, InnerSlots: []int{2, 3}}
			if got := run(t, noStore(), loop, 4, out, types...); got != want {
				t.Fatalf("round %d, nested loop %d: %s, expected %s", round, kind, got, want)
			}
			lateral := &plan.NestLoop{Kind: kind, Outer: o, Inner: &plan.Filter{Child: i, Cond: match}, InnerSlots: []int{2, 3}}
			if got := run(t, noStore(), lateral, 4, out, types...); got != want {
				t.Fatalf("round %d, lateral %d: %s, expected %s", round, kind, got, want)
			}
		}
	}
}

func naiveJoin(kind plan.JoinKind, outer, inner [][]any, less bool) string {
	var out string
	show := func(vals ...any) {
		s := "("
		for i, v := range vals {
			if i > 0 {
				s += ","
			}
			if v == nil {
				s += "null"
			} else {
				s += fmt.Sprint(v)
			}
		}
		out += s + ")"
	}
	used := make([]bool, len(inner))
	for _, o := range outer {
		matched := false
		for k, i := range inner {
			if o[0] == nil || i[0] == nil || o[0] != i[0] || less && o[1].(int) >= i[1].(int) {
				continue
			}
			if kind == plan.SemiJoin || kind == plan.AntiJoin {
				matched = true
				break
			}
			matched, used[k] = true, true
			show(o[0], o[1], i[0], i[1])
		}
		switch {
		case kind == plan.SemiJoin && matched, kind == plan.AntiJoin && !matched:
			show(o...)
		case !matched && (kind == plan.LeftJoin || kind == plan.FullJoin):
			show(o[0], o[1], nil, nil)
		}
	}
	if kind == plan.RightJoin || kind == plan.FullJoin {
		for k, i := range inner {
			if !used[k] {
				show(nil, nil, i[0], i[1])
			}
		}
	}
	return out
}

// Rows whose keys all have one hash must still be told apart.
func TestHashCollisions(t *testing.T) {
	flat := *datum.Int4
	flat.Hash = func(uint64, datum.Datum) uint64 { return 42 }
	typ := datum.T(&flat)
	var rows [][]any
	for i := range 50 {
		rows = append(rows, []any{i % 10, i})
	}
	unique := &plan.Unique{Child: ints([]int{0, 1}, rows...), Keys: []plan.Expr{slot(typ, 0)}}
	if got := run(t, noStore(), unique, 2, []int{1}, tInt); got != "(0)(1)(2)(3)(4)(5)(6)(7)(8)(9)" {
		t.Errorf("distinct: %s", got)
	}
	join := &plan.HashJoin{Kind: plan.InnerJoin, Outer: column(2, 3, 11), Inner: ints([]int{0, 1}, rows...), OuterKeys: []plan.Expr{slot(typ, 2)},
		InnerKeys: []plan.Expr{slot(typ, 0)}, InnerSlots: []int{0, 1}, OuterSlots: []int{2}}
	if got := run(t, noStore(), join, 3, []int{1}, tInt); got != "(3)(13)(23)(33)(43)" {
		t.Errorf("join: %s", got)
	}
}

// Values that are equal but not identical are one group, shown as it came first.
func TestEqualNotIdentical(t *testing.T) {
	child := values([]int{0}, []plan.Expr{val(tNum, numeric("1.50"))}, []plan.Expr{val(tNum, numeric("1.5"))}, []plan.Expr{val(tNum, numeric("2"))})
	group := &plan.Aggregate{Child: child, GroupBy: []plan.Expr{slot(tNum, 0)}, GroupOut: []int{1}, Aggs: []plan.Agg{agg("count", 2)}}
	if got := run(t, noStore(), group, 3, []int{1, 2}, tNum, tBig); got != "(1.50,2)(2,1)" {
		t.Errorf("got %s", got)
	}
}

// Set operations against counting by hand.
func TestSetOperationsRandom(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 60 {
		draw := func() []any {
			out := make([]any, r.IntN(10))
			for i := range out {
				if v := r.IntN(5); v > 0 {
					out[i] = v
				}
			}
			return out
		}
		left, right := draw(), draw()
		for kind := plan.Intersect; kind <= plan.Except; kind++ {
			for _, all := range []bool{true, false} {
				counts := map[any]int{}
				for _, v := range right {
					counts[v]++
				}
				done := map[any]bool{}
				want := ""
				for _, v := range left {
					hit := counts[v] > 0
					if all {
						counts[v] -= 1
					} else if done[v] {
						continue
					}
					if hit == (kind == plan.Intersect) {
						done[v] = true
						if v == nil {
							want += "(null)"
						} else {
							want += fmt.Sprintf("(%d)", v)
						}
					}
				}
				op := &plan.SetOp{Kind: kind, All: all, Left: column(0, left...), Right: column(1, right...), LeftIn: []int{0}, RightIn: []int{1}, Out: []int{2}, Types: []datum.Type{tInt}}
				if got := run(t, noStore(), op, 3, []int{2}, tInt); got != want {
					t.Fatalf("kind %d, all %t, %v and %v: %s, expected %s", kind, all, left, right, got, want)
				}
			}
		}
	}
}

// Sorting, with and without a bound, against a stable sort of the rows.
func TestSortRandom(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for range 60 {
		rows := randomInts(r, r.IntN(60))
		desc, nullsFirst := r.IntN(2) == 0, r.IntN(2) == 0
		want := slices.Clone(rows)
		slices.SortStableFunc(want, func(a, b []any) int {
			x, y := a[0], b[0]
			switch {
			case x == nil && y == nil:
				return 0
			case (x == nil) != (y == nil):
				if (x == nil) == nullsFirst {
					return -1
				}
				return 1
			}
			c := cmp.Compare(x.(int), y.(int))
			if desc {
				c = -c
			}
			return c
		})
		for _, top := range []int{-1, 0, 1, 7, 1000, heapMost + 1} {
			node := &plan.Sort{Child: ints([]int{0, 1}, rows...), Keys: []plan.SortKey{{Expr: slot(tInt, 0), Desc: desc, NullsFirst: nullsFirst}}, Slots: []int{0, 1}}
			expected := want
			if top >= 0 {
				node.Top = ival(top)
				expected = want[:min(top, len(want))]
			}
			s := ""
			for _, row := range expected {
				s += fmt.Sprintf("(%d)", row[1])
			}
			if got := run(t, noStore(), node, 2, []int{1}, tInt); got != s {
				t.Fatalf("top %d: %s, expected %s", top, got, s)
			}
		}
	}
}

// Grouping of rows, hashed and sorted, against a list of groups.
func TestAggregateRandom(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for range 60 {
		rows := randomInts(r, r.IntN(200))
		type group struct {
			key      any
			n, total int
		}
		var groups []*group
		for _, row := range rows {
			i := slices.IndexFunc(groups, func(g *group) bool { return g.key == row[0] })
			if i < 0 {
				i = len(groups)
				groups = append(groups, &group{key: row[0]})
			}
			groups[i].n++
			groups[i].total += row[1].(int)
		}
		show := func() (s string) {
			for _, g := range groups {
				key := "null"
				if g.key != nil {
					key = fmt.Sprint(g.key)
				}
				s += fmt.Sprintf("(%s,%d,%d)", key, g.n, g.total)
			}
			return s
		}
		node := &plan.Aggregate{Child: ints([]int{0, 1}, rows...), GroupBy: []plan.Expr{slot(tInt, 0)}, GroupOut: []int{2},
			Aggs: []plan.Agg{agg("count", 3), agg("sum", 4, slot(tInt, 1))}}
		if got, want := run(t, noStore(), node, 5, []int{2, 3, 4}, tInt, tBig, tBig), show(); got != want {
			t.Fatalf("%s, expected %s", got, want)
		}
		node.Sorted = true
		node.Child = &plan.Sort{Child: node.Child, Keys: []plan.SortKey{keyOf(slot(tInt, 0))}, Slots: []int{0, 1}}
		slices.SortStableFunc(groups, func(a, b *group) int {
			if a.key == nil || b.key == nil {
				return cmp.Compare(boolInt(a.key == nil), boolInt(b.key == nil))
			}
			return cmp.Compare(a.key.(int), b.key.(int))
		})
		if got, want := run(t, noStore(), node, 5, []int{2, 3, 4}, tInt, tBig, tBig), show(); got != want {
			t.Fatalf("sorted: %s, expected %s", got, want)
		}
	}
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

func TestVirtualScan(t *testing.T) {
	rel := &plan.Virtual{Name: "v", Columns: []plan.VirtualColumn{{Name: "a", Type: tInt}, {Name: "b", Type: tText}}}
	rel.Rows = func(env any, emit func([]datum.Datum) error) error {
		row := make([]datum.Datum, 2) // the same for every call
		for i := range env.(int) {
			row[0], row[1] = num(i), str(fmt.Sprint("row ", i))
			if err := emit(row); err != nil {
				return err
			}
		}
		return nil
	}
	e := noStore()
	e.Virtual = 3
	node := &plan.VirtualScan{Relation: rel, Slots: []int{1, 0}, Filter: op(">", slot(tInt, 1), ival(0))}
	if got := run(t, e, node, 2, []int{0, 1}, tText, tInt); got != "(row 1,1)(row 2,2)" {
		t.Errorf("got %s", got)
	}
	if got := run(t, e, &plan.VirtualScan{Relation: rel, Slots: []int{-1, 0}}, 1, []int{0}, tText); got != "(row 0)(row 1)(row 2)" {
		t.Errorf("got %s", got)
	}
}

func TestUserFunctionInFrom(t *testing.T) {
	fn := &catalog.Func{Name: "f", Strict: true}
	e := noStore()
	e.Functions = &Functions{CallSet: func(env *Env, f *catalog.Func, args []datum.Datum, emit func([]datum.Datum) error) error {
		if f != fn || env.Depth != 1 {
			t.Errorf("function %s at depth %d", f.Name, env.Depth)
		}
		for i := range args[0].Int() {
			if err := emit([]datum.Datum{datum.Int(i), datum.Int(i * i)}); err != nil {
				return err
			}
		}
		return nil
	}}
	join := &plan.NestLoop{Kind: plan.InnerJoin, Outer: column(0, 2, nil, 3), InnerSlots: []int{1, 2},
		Inner: &plan.FuncScan{User: fn, Args: []plan.Expr{slot(tInt, 0)}, Slots: []int{1, 2}, Ordinality: -1}}
	if got := run(t, e, join, 3, []int{0, 1, 2}, tInt, tInt, tInt); got != "(2,0,0)(2,1,1)(3,0,0)(3,1,1)(3,2,4)" {
		t.Errorf("got %s", got)
	}
	fn.Args = []catalog.Arg{{Mode: catalog.In, Type: tInt}, {Mode: catalog.TableArg, Type: tInt}, {Mode: catalog.TableArg, Type: tInt}}
	fn.Ret = datum.T(datum.Record)
	list := &plan.ProjectSet{Child: column(0, 2), Sets: []plan.SetItem{{User: fn, Args: []plan.Expr{slot(tInt, 0)}, Out: 1}}}
	if got := run(t, e, list, 2, []int{1}, datum.T(datum.Record)); got != "((0,0))((1,1))" {
		t.Errorf("in a select list: %s", got)
	}
	if e.Depth != 0 {
		t.Errorf("depth %d", e.Depth)
	}
}
