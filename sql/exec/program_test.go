package exec

import (
	"fmt"
	"sync"
	"testing"

	"github.com/tallystick/tallystick/mvcc"
	"github.com/tallystick/tallystick/mvcc/rwset"
	"github.com/tallystick/tallystick/sql/builtin"
	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/plan"
)

func TestCursor(t *testing.T) {
	prog := compile(t, &plan.Plan{Root: column(0, 1, 2, 3), Slots: 1, Out: []int{0, 0}})
	c, err := prog.Open(noStore(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 1; i <= 3; i++ {
		row, err := c.Next()
		if err != nil || row[0] != num(i) || row[1] != num(i) {
			t.Fatalf("row %d: %v, %v", i, row, err)
		}
		if c.RowsAffected() != int64(i) {
			t.Errorf("%d rows so far", c.RowsAffected())
		}
	}
	for range 2 {
		if row, err := c.Next(); row != nil || err != nil {
			t.Errorf("behind the end: %v, %v", row, err)
		}
	}
	// Closing twice must not touch the execution that runs meanwhile.
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	d, err := prog.Open(noStore(), nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
	if row, _ := c.Next(); row != nil || c.RowsAffected() != 3 {
		t.Errorf("closed: %v, %d rows", row, c.RowsAffected())
	}
	if row, err := d.Next(); err != nil || row[0] != num(1) {
		t.Errorf("the other cursor: %v, %v", row, err)
	}
	_ = d.Close()
	if prog.Plan().Slots != 1 {
		t.Error("plan")
	}
}

func TestFirst(t *testing.T) {
	for _, test := range []struct{ rows, n int }{{0, 0}, {1, 1}, {2, 2}, {3, 2}} {
		vals := make([]any, test.rows)
		for i := range vals {
			vals[i] = 7 + i
		}
		prog := compile(t, &plan.Plan{Root: column(0, vals...), Slots: 1, Out: []int{0}})
		dst := []datum.Datum{null}
		n, err := prog.First(noStore(), nil, dst)
		if err != nil || n != test.n || n > 0 && dst[0] != num(7) || n == 0 && !dst[0].IsNull() {
			t.Errorf("%d rows: n = %d, %v, %v", test.rows, n, dst, err)
		}
	}
	// With a bound of one nothing behind the first row is read.
	d := newDB(t)
	tab := people()
	d.load(tab, peopleRows()...)
	prog := compile(t, &plan.Plan{Root: scanAll(tab, 0), Slots: 4, Out: []int{0}})
	e := d.env()
	dst := make([]datum.Datum, 1)
	if n, err := prog.FirstOf(e, nil, dst, 1); err != nil || n != 1 {
		t.Fatal(n, err)
	}
	l, _ := catalog.NewLayout(tab)
	for _, r := range e.Txn.Footprint().Reads {
		if r.Contains(l.PrimaryKey(nil, peopleRows()[1])) {
			t.Error("the second row is in the footprint")
		}
	}
}

func TestSharedReads(t *testing.T) {
	d := newDB(t)
	reads := []rwset.Read{{Span: rwset.Point([]byte("catalog row"))}}
	prog := compile(t, &plan.Plan{Root: &plan.Result{}, Reads: reads})
	e := d.env()
	for range 2 {
		if _, err := prog.Run(e, nil); err != nil {
			t.Fatal(err)
		}
	}
	if fp := e.Txn.Footprint(); len(fp.Shared) == 0 || string(fp.Shared[0][0].Start) != "catalog row" {
		t.Errorf("shared reads %v", fp.Shared)
	}
}

// everything is a plan with most kinds of nodes in it: departments with their
// best score, through a join, a subquery, a WITH query, grouping and sorting.
func everything(tab *catalog.Table) *plan.Plan {
	best := &plan.Aggregate{Child: idScan2(tab, 0), GroupBy: []plan.Expr{slot(tText, 2)}, GroupOut: []int{4}, Aggs: []plan.Agg{agg("max", 5, slot(tInt, 3)),
		{Func: aggFunc("array_agg", tInt), Args: []plan.Expr{slot(tInt, 0)}, OrderBy: []plan.SortKey{keyOf(slot(tInt, 3))}, Out: 6}}}
	cte := plan.CTE{ID: 0, Name: "best", Node: best, Out: []int{4, 5, 6}}
	inner := &plan.CTEScan{ID: 0, Slots: []int{7, 8, 9}}
	join := &plan.HashJoin{Kind: plan.LeftJoin, Outer: idScan2(tab, 10), Inner: inner, OuterKeys: []plan.Expr{slot(tText, 12)}, InnerKeys: []plan.Expr{slot(tText, 7)},
		InnerSlots: []int{7, 8, 9}, OuterSlots: seq(10, 4)}
	above := &plan.Aggregate{Child: &plan.Filter{Child: idScan2(tab, 14), Cond: op(">", slot(tInt, 17), slot(tInt, 13))}, Aggs: []plan.Agg{agg("count", 18)}}
	rank := typed(tBig, &plan.Subquery{Kind: plan.ScalarSub, Plan: above, Out: []int{18}, Correlated: true})
	project := &plan.Project{Child: join, Exprs: []plan.Expr{rank}, Out: []int{19}}
	sorted := &plan.Sort{Child: project, Keys: []plan.SortKey{{Expr: slot(tBig, 19)}, {Expr: slot(tInt, 10), Desc: true}}, Slots: []int{10, 12, 8, 9, 19}}
	return &plan.Plan{Root: &plan.With{CTEs: []plan.CTE{cte}, Body: sorted}, Slots: 20, Out: []int{10, 12, 8, 9, 19}, Subqueries: 1, CTEs: 1}
}

func idScan2(tab *catalog.Table, first int) *plan.Scan { return scanAll(tab, first) }

// One program run by eight goroutines gives each the same rows for the same
// steps and reads, whatever the iterators it gets were used for before.
func TestConcurrentRuns(t *testing.T) {
	d := newDB(t)
	tab := people()
	var rows [][]datum.Datum
	for i := range 60 {
		rows = append(rows, []datum.Datum{num(i), str(fmt.Sprint("p", i)), str(fmt.Sprint("d", i%7)), num(i * 37 % 50)})
	}
	d.load(tab, rows...)
	prog := compile(t, everything(tab))
	types := []datum.Type{tInt, tText, tInt, tInts, tBig}
	cost := func(e *Env) string {
		reads := 0
		for _, r := range e.Txn.Footprint().Reads {
			reads += len(r.Start) + len(r.End)
		}
		return fmt.Sprintf("%d steps left, %d bytes read, %d bytes of footprint", e.Ctx.Budget.Left, e.Txn.ReadBytes(), reads)
	}
	e := benchEnv(d)
	first, err := rowsOf(prog, e, nil)
	if err != nil {
		t.Fatal(err)
	}
	want, wantCost := format(types, first), cost(e)
	var envs []*Env
	for range 8 {
		envs = append(envs, benchEnv(d))
	}
	var wg sync.WaitGroup
	for _, e := range envs {
		wg.Go(func() {
			for again := range 20 {
				got, err := rowsOf(prog, e, nil)
				if err != nil {
					t.Error(err)
					return
				}
				if s := format(types, got); s != want {
					t.Errorf("got %s\nexpected %s", s, want)
					return
				}
				if c := cost(e); again == 0 && c != wantCost {
					t.Errorf("%s, expected %s", c, wantCost)
				}
			}
		})
	}
	wg.Wait()
}

// One program, two executions interleaved on one environment: a cursor open
// while the same statement runs again below it.
func TestInterleavedRuns(t *testing.T) {
	d := newDB(t)
	tab := people()
	d.load(tab, peopleRows()...)
	prog := compile(t, everything(tab))
	e := d.env()
	whole, err := rowsOf(prog, e, nil)
	if err != nil {
		t.Fatal(err)
	}
	types := []datum.Type{tInt, tText, tInt, tInts, tBig}
	c, err := prog.Open(e, nil)
	if err != nil {
		t.Fatal(err)
	}
	var got [][]datum.Datum
	for {
		row, err := c.Next()
		if err != nil {
			t.Fatal(err)
		}
		if row == nil {
			break
		}
		got = append(got, append([]datum.Datum(nil), row...))
		inner, err := rowsOf(prog, e, nil)
		if err != nil || format(types, inner) != format(types, whole) {
			t.Fatalf("inner run: %s, %v", format(types, inner), err)
		}
	}
	_ = c.Close()
	if format(types, got) != format(types, whole) {
		t.Errorf("outer run: %s, expected %s", format(types, got), format(types, whole))
	}
}

// Benchmarks read committed rows with a warm cache; a contract's environment.

func benchEnv(d *db) *Env {
	e := d.env()
	e.Ctx.Budget = &builtin.Budget{Left: 1 << 60}
	return e
}

func benchTable(b *testing.B, n int) (*db, *catalog.Table) {
	d := newDB(b)
	tab := people()
	rows := make([][]datum.Datum, n)
	for i := range rows {
		rows[i] = []datum.Datum{num(i), str(fmt.Sprint("name ", i)), str(fmt.Sprint("dept ", i%20)), num(i * 7919 % 1000)}
	}
	d.load(tab, rows...)
	return d, tab
}

func BenchmarkPointSelect(b *testing.B) {
	d, tab := benchTable(b, 1000)
	scan := idScan(tab, 0, false, plan.Range{Eq: []plan.RangeKey{eqKey(prm(tInt, 0))}})
	prog := compile(b, &plan.Plan{Root: scan, Slots: 3, Out: []int{0, 1, 2}})
	e := benchEnv(d)
	params := []datum.Datum{num(7)}
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		i++
		if i%1000 == 0 {
			if err := e.Txn.Reset(mvcc.AsOf(d.store.Height()), 1); err != nil {
				b.Fatal(err)
			}
		}
		params[0] = num(i % 1000)
		c, err := prog.Open(e, params)
		if err != nil {
			b.Fatal(err)
		}
		if row, err := c.Next(); err != nil || row == nil {
			b.Fatal(row, err)
		}
		if row, err := c.Next(); err != nil || row != nil {
			b.Fatal(row, err)
		}
		_ = c.Close()
	}
}

// benchRun runs a plan over and over and reports the time per row.
func benchRun(b *testing.B, d *db, p *plan.Plan, rows int) {
	prog := compile(b, p)
	e := benchEnv(d)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := prog.Run(e, nil); err != nil {
			b.Fatal(err)
		}
		if err := e.Txn.Reset(mvcc.AsOf(d.store.Height()), 1); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(rows), "ns/row")
}

func BenchmarkRangeScan(b *testing.B) {
	d, tab := benchTable(b, 1000)
	scan := idScan(tab, 0, false, plan.Range{Lo: incl(ival(100)), Hi: excl(ival(600))})
	benchRun(b, d, &plan.Plan{Root: scan, Slots: 3, Out: []int{0, 1, 2}}, 500)
}

func BenchmarkIndexScan(b *testing.B) {
	d, tab := benchTable(b, 1000)
	scan := idScan(tab, 1, false, plan.Range{Eq: []plan.RangeKey{eqKey(sval("dept 3"))}})
	benchRun(b, d, &plan.Plan{Root: scan, Slots: 3, Out: []int{0, 1, 2}}, 50)
}

func BenchmarkHashJoin500(b *testing.B) {
	d, tab := benchTable(b, 500)
	join := &plan.HashJoin{Kind: plan.InnerJoin, Outer: scanAll(tab, 0), Inner: scanAll(tab, 4), OuterKeys: []plan.Expr{slot(tText, 1)},
		InnerKeys: []plan.Expr{slot(tText, 5)}, InnerSlots: seq(4, 4), OuterSlots: seq(0, 4)}
	benchRun(b, d, &plan.Plan{Root: join, Slots: 8, Out: []int{0, 7}}, 500)
}

func BenchmarkAggregate500(b *testing.B) {
	d, tab := benchTable(b, 500)
	group := &plan.Aggregate{Child: scanAll(tab, 0), GroupBy: []plan.Expr{slot(tText, 2)}, GroupOut: []int{4}, Aggs: []plan.Agg{agg("sum", 5, slot(tInt, 3)), agg("count", 6)}}
	benchRun(b, d, &plan.Plan{Root: group, Slots: 7, Out: []int{4, 5, 6}}, 500)
}

func BenchmarkSort500(b *testing.B) {
	d, tab := benchTable(b, 500)
	sorted := &plan.Sort{Child: scanAll(tab, 0), Keys: []plan.SortKey{keyOf(slot(tInt, 3))}, Slots: seq(0, 4)}
	benchRun(b, d, &plan.Plan{Root: sorted, Slots: 4, Out: []int{0}}, 500)
}

func BenchmarkInsert(b *testing.B) {
	d := newDB(b)
	tab := people()
	m := insertInto(tab, []plan.Expr{prm(tInt, 0), nullOf(tText), sval("dept"), prm(tInt, 0)})
	prog := compile(b, &plan.Plan{Root: m, Slots: 24, Writes: true})
	e := benchEnv(d)
	params := []datum.Datum{num(0)}
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		params[0] = num(i)
		if i++; i%1000 == 0 {
			if err := e.Txn.Reset(mvcc.AsOf(d.store.Height()), 1); err != nil {
				b.Fatal(err)
			}
		}
		if _, err := prog.Run(e, params); err != nil {
			b.Fatal(err)
		}
	}
}

func benchExpr(b *testing.B, e plan.Expr) {
	x, err := CompileExpr(e, 0, 0, 0)
	if err != nil {
		b.Fatal(err)
	}
	env := noStore()
	env.Ctx.Budget = &builtin.Budget{Left: 1 << 60}
	params := []datum.Datum{num(3), num(4)}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := x.Eval(env, params); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkExprCompare(b *testing.B)  { benchExpr(b, op("<", prm(tInt, 0), prm(tInt, 1))) }
func BenchmarkExprAddConst(b *testing.B) { benchExpr(b, op("+", prm(tInt, 0), ival(1))) }
func BenchmarkExprBuiltinAnd(b *testing.B) {
	benchExpr(b, and(eq(op("%", prm(tInt, 0), ival(2)), ival(1)), op("<", prm(tInt, 0), ival(9))))
}
