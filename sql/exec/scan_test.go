package exec

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tallystick/tallystick/mvcc/rwset"
	"github.com/tallystick/tallystick/sql/builtin"
	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
	"github.com/tallystick/tallystick/sql/plan"
)

// people: id, name, dept, score; an index by department and descending score
// and a unique one by name.
func people() *catalog.Table {
	t := testTable(1<<20, "people", 1, "id", tInt, "name", tText, "dept", tText, "score", tInt)
	t.Indexes = slices.Grow(t.Indexes, 2)
	addIndex(t, "people_dept", false, catalog.IndexKey{Column: 2}, catalog.IndexKey{Column: 3, Desc: true, NullsFirst: true})
	addIndex(t, "people_name", true, catalog.IndexKey{Column: 1})
	return t
}

func peopleRows() [][]datum.Datum {
	return [][]datum.Datum{
		{num(1), str("ann"), str("it"), num(10)},
		{num(2), str("bob"), str("it"), num(30)},
		{num(3), null, str("hr"), num(20)},
		{num(4), str("dan"), null, num(40)},
		{num(5), null, str("it"), null},
		{num(6), str("eve"), str("hr"), num(20)},
	}
}

func idScan(t *catalog.Table, index int, reverse bool, ranges ...plan.Range) *plan.Scan {
	return &plan.Scan{Table: t, Index: &t.Indexes[index], Slots: []int{0, 1, -1, 2}, Sys: noSys(), Reverse: reverse, Ranges: ranges}
}

func TestScanRanges(t *testing.T) {
	d := newDB(t)
	tab := people()
	d.load(tab, peopleRows()...)
	rng := func(r plan.Range) []plan.Range { return []plan.Range{r} }
	eqs := func(e ...plan.Expr) []plan.RangeKey {
		var out []plan.RangeKey
		for _, v := range e {
			out = append(out, plan.RangeKey{Value: v})
		}
		return out
	}
	texts := func(s ...string) plan.Expr {
		var v []datum.Datum
		for _, x := range s {
			v = append(v, str(x))
		}
		return val(datum.T(datum.Text.Array), datum.MakeArray(datum.Text, v))
	}
	it := sval("it")
	tests := []struct {
		name    string
		index   int
		reverse bool
		ranges  []plan.Range
		want    string // ids
	}{
		{"all", 0, false, nil, "1 2 3 4 5 6"},
		{"all backwards", 0, true, nil, "6 5 4 3 2 1"},
		{"key", 0, false, rng(plan.Range{Eq: eqs(ival(2))}), "2"},
		{"no key", 0, false, rng(plan.Range{Eq: eqs(ival(9))}), ""},
		{"null key", 0, false, rng(plan.Range{Eq: eqs(nullOf(tInt))}), ""},
		{"key too wide", 0, false, rng(plan.Range{Eq: eqs(val(tBig, datum.Int(1<<32+2)))}), ""},
		{"from", 0, false, rng(plan.Range{Lo: incl(ival(4))}), "4 5 6"},
		{"above", 0, false, rng(plan.Range{Lo: excl(ival(4))}), "5 6"},
		{"up to", 0, false, rng(plan.Range{Hi: incl(ival(2))}), "1 2"},
		{"below", 0, false, rng(plan.Range{Hi: excl(ival(2))}), "1"},
		{"between", 0, true, rng(plan.Range{Lo: excl(ival(1)), Hi: incl(ival(4))}), "4 3 2"},
		{"nothing between", 0, false, rng(plan.Range{Lo: incl(ival(4)), Hi: incl(ival(1))}), ""},
		{"null bound", 0, false, rng(plan.Range{Lo: incl(nullOf(tInt))}), ""},
		{"wide bounds", 0, false, rng(plan.Range{Lo: incl(val(tBig, datum.Int(math.MinInt64))), Hi: excl(val(tBig, datum.Int(math.MaxInt64)))}), "1 2 3 4 5 6"},
		{"too high", 0, false, rng(plan.Range{Lo: incl(val(tBig, datum.Int(math.MaxInt64)))}), ""},
		{"too low", 0, false, rng(plan.Range{Hi: incl(val(tBig, datum.Int(math.MinInt64)))}), ""},
		{"list", 0, false, rng(plan.Range{In: intArray(num(5), num(1), num(9), null, num(5))}), "1 5"},
		{"list backwards", 0, true, rng(plan.Range{In: intArray(num(5), num(1))}), "5 1"},
		{"null list", 0, false, rng(plan.Range{In: nullOf(tInts)}), ""},
		{"two keys", 0, false, []plan.Range{{Eq: eqs(ival(4))}, {Eq: eqs(ival(2))}, {Eq: eqs(ival(4))}}, "2 4"},
		{"overlapping", 0, false, []plan.Range{{Lo: incl(ival(4))}, {Eq: eqs(ival(5))}, {Lo: incl(ival(2)), Hi: incl(ival(4))}}, "2 3 4 5 6"},
		{"by department", 1, false, rng(plan.Range{Eq: eqs(it)}), "5 2 1"},
		{"by department backwards", 1, true, rng(plan.Range{Eq: eqs(it)}), "1 2 5"},
		{"descending from", 1, false, rng(plan.Range{Eq: eqs(it), Lo: incl(ival(30))}), "2"},
		{"descending up to", 1, false, rng(plan.Range{Eq: eqs(it), Hi: excl(ival(30))}), "1"},
		{"descending, no nulls", 1, false, rng(plan.Range{Eq: eqs(it), Lo: excl(ival(0))}), "2 1"},
		{"departments", 1, false, rng(plan.Range{In: texts("it", "hr", "it")}), "3 6 5 2 1"},
		{"no department", 1, false, rng(plan.Range{Eq: []plan.RangeKey{{}}}), "4"},
		{"department and no score", 1, false, rng(plan.Range{Eq: []plan.RangeKey{eqKey(it), {}}}), "5"},
		{"ascending, no nulls", 1, false, rng(plan.Range{Lo: incl(sval(""))}), "3 6 5 2 1"},
		{"unique", 2, false, rng(plan.Range{Eq: eqs(sval("bob"))}), "2"},
		{"unique none", 2, false, rng(plan.Range{Eq: eqs(sval("joe"))}), ""},
		{"unique null", 2, false, rng(plan.Range{Eq: []plan.RangeKey{{}}}), "3 5"},
		{"unique list", 2, false, rng(plan.Range{In: texts("eve", "ann", "eve")}), "1 6"},
		{"unique all", 2, false, nil, "1 2 4 6 3 5"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			rows := collect(t, d.env(), &plan.Plan{Root: idScan(tab, test.index, test.reverse, test.ranges...), Slots: 3, Out: []int{0}}, nil)
			var ids []string
			for _, r := range rows {
				ids = append(ids, fmt.Sprint(r[0].Int()))
			}
			if got := strings.Join(ids, " "); got != test.want {
				t.Errorf("rows %q, expected %q", got, test.want)
			}
		})
	}
}

// Random ranges over random rows, against a test of every row; and the
// footprint holds the key of every row that came out, and of every row that
// would have.
func TestScanRangesRandom(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for round := range 40 {
		d := newDB(t)
		tab := testTable(1<<20, "r", 1, "id", tInt, "a", tInt, "b", tInt)
		key := func(c int) catalog.IndexKey {
			return catalog.IndexKey{Column: c, Desc: r.IntN(2) == 0, NullsFirst: r.IntN(2) == 0}
		}
		idx := addIndex(tab, "r_ab", false, key(1), key(2))
		var rows [][]datum.Datum
		small := func() datum.Datum {
			if r.IntN(6) == 0 {
				return null
			}
			return num(r.IntN(6))
		}
		for id := range 40 {
			rows = append(rows, []datum.Datum{num(id), small(), small()})
		}
		d.load(tab, rows...)
		for range 25 {
			var ranges []plan.Range
			var tests []func(row []datum.Datum) bool
			for range 1 + r.IntN(3) {
				rg, test := randomRange(r, small)
				ranges, tests = append(ranges, rg), append(tests, test)
			}
			reverse := r.IntN(2) == 0
			scan := &plan.Scan{Table: tab, Index: idx, Slots: []int{0, 1, 2}, Sys: noSys(), Ranges: ranges, Reverse: reverse}
			e := d.env()
			got := collect(t, e, &plan.Plan{Root: scan, Slots: 3, Out: []int{0, 1, 2}}, nil)
			var want [][]datum.Datum
			for _, row := range rows {
				if slices.ContainsFunc(tests, func(f func([]datum.Datum) bool) bool { return f(row) }) {
					want = append(want, row)
				}
			}
			l, err := catalog.NewLayout(tab)
			if err != nil {
				t.Fatal(err)
			}
			slices.SortFunc(want, func(x, y []datum.Datum) int {
				c := bytes.Compare(l.IndexKey(nil, 1, x), l.IndexKey(nil, 1, y))
				if reverse {
					return -c
				}
				return c
			})
			types := []datum.Type{tInt, tInt, tInt}
			if format(types, got) != format(types, want) {
				t.Fatalf("round %d, reverse %t: %s, expected %s", round, reverse, format(types, got), format(types, want))
			}
			fp := e.Txn.Footprint()
			for _, row := range want {
				k := l.IndexKey(nil, 1, row)
				if !slices.ContainsFunc(fp.Reads, func(rd rwset.Read) bool { return rd.Contains(k) }) {
					t.Fatalf("the footprint lacks the entry of row %s", format(types, [][]datum.Datum{row}))
				}
			}
			_ = e.Txn.Close()
		}
	}
}

func randomRange(r *rand.Rand, small func() datum.Datum) (plan.Range, func(row []datum.Datum) bool) {
	bound := func() *plan.Bound {
		if r.IntN(3) == 0 {
			return nil
		}
		return &plan.Bound{Value: val(tInt, num(r.IntN(6))), Inclusive: r.IntN(2) == 0}
	}
	within := func(lo, hi *plan.Bound, d datum.Datum) bool {
		if d.IsNull() {
			return lo == nil && hi == nil
		}
		if lo != nil {
			v := lo.Value.(*plan.Const).Value.Int()
			if d.Int() < v || d.Int() == v && !lo.Inclusive {
				return false
			}
		}
		if hi != nil {
			v := hi.Value.(*plan.Const).Value.Int()
			if d.Int() > v || d.Int() == v && !hi.Inclusive {
				return false
			}
		}
		return true
	}
	var rg plan.Range
	var conds []func(row []datum.Datum) bool
	column := 1
	if r.IntN(2) == 0 {
		if r.IntN(4) == 0 {
			rg.Eq = append(rg.Eq, plan.RangeKey{})
			conds = append(conds, func(row []datum.Datum) bool { return row[1].IsNull() })
		} else {
			v := small()
			rg.Eq = append(rg.Eq, plan.RangeKey{Value: val(tInt, v)})
			conds = append(conds, func(row []datum.Datum) bool { return !v.IsNull() && row[1] == v })
		}
		column = 2
	}
	c := column
	if r.IntN(3) == 0 {
		list := []datum.Datum{small(), small(), small()}
		rg.In = intArray(list...)
		conds = append(conds, func(row []datum.Datum) bool { return !row[c].IsNull() && slices.Contains(list, row[c]) })
	} else {
		lo, hi := bound(), bound()
		rg.Lo, rg.Hi = lo, hi
		conds = append(conds, func(row []datum.Datum) bool { return within(lo, hi, row[c]) })
	}
	return rg, func(row []datum.Datum) bool {
		for _, f := range conds {
			if !f(row) {
				return false
			}
		}
		return true
	}
}

func TestScanFilterAndParams(t *testing.T) {
	d := newDB(t)
	tab := people()
	d.load(tab, peopleRows()...)
	scan := idScan(tab, 0, false, plan.Range{Lo: incl(prm(tInt, 0))})
	scan.Filter = op(">", slot(tInt, 2), prm(tInt, 1))
	prog := compile(t, &plan.Plan{Root: scan, Slots: 3, Out: []int{0, 1}})
	for _, test := range []struct {
		from, score int
		want        string
	}{{1, 20, "(2,bob)(4,dan)"}, {3, 5, "(3,null)(4,dan)(6,eve)"}, {9, 0, ""}} {
		rows, err := rowsOf(prog, d.env(), []datum.Datum{num(test.from), num(test.score)})
		if err != nil {
			t.Fatal(err)
		}
		if got := format([]datum.Type{tInt, tText}, rows); got != test.want {
			t.Errorf("from %d, above %d: %s, expected %s", test.from, test.score, got, test.want)
		}
	}
}

// What a scan leaves in the footprint: points for complete keys, spans for
// ranges, existence only where the result depends on nothing else.
func TestScanFootprint(t *testing.T) {
	d := newDB(t)
	tab := people()
	d.load(tab, peopleRows()...)
	point := plan.Range{Eq: []plan.RangeKey{eqKey(ival(2))}}
	footprint := func(scan *plan.Scan, change func(e *Env)) string {
		e := d.env()
		if change != nil {
			change(e)
		}
		collect(t, e, &plan.Plan{Root: scan, Slots: 4, Out: nil}, nil)
		var out []string
		for _, r := range e.Txn.Footprint().Reads {
			s := "span"
			if r.IsPoint() {
				s = "point"
			}
			if r.Existence {
				s += " existence"
			}
			out = append(out, s)
		}
		return strings.Join(out, ", ")
	}
	keyOnly := idScan(tab, 0, false, point)
	keyOnly.Slots = []int{0, -1, -1, -1}
	xmin := idScan(tab, 0, false, point)
	xmin.Slots = []int{0, -1, -1, -1}
	xmin.Sys.Xmin = 3
	count := &plan.Scan{Table: tab, Index: tab.Primary(), Slots: []int{-1, -1, -1, -1}, Sys: noSys()}
	for _, test := range []struct {
		name   string
		scan   *plan.Scan
		change func(e *Env)
		want   string
	}{
		{"row by key", idScan(tab, 0, false, point), nil, "point"},
		{"key by key", keyOnly, nil, "point existence"},
		{"xmin by key", xmin, nil, "point"},
		{"count", count, nil, "span existence"},
		{"by index", idScan(tab, 1, false, plan.Range{Eq: []plan.RangeKey{eqKey(sval("hr"))}}), nil, "point, point, span"},
		{"by unique index", idScan(tab, 2, false, plan.Range{Eq: []plan.RangeKey{eqKey(sval("bob"))}}), nil, "point, point"},
		{"local query", idScan(tab, 0, false, point), func(e *Env) { e.ReadOnly, e.Ctx.Tx = true, nil }, ""},
		{"read-only contract", idScan(tab, 0, false, point), func(e *Env) { e.ReadOnly = true }, "point"},
	} {
		if got := footprint(test.scan, test.change); got != test.want {
			t.Errorf("%s: %q, expected %q", test.name, got, test.want)
		}
	}
}

func TestSystemColumns(t *testing.T) {
	d := newDB(t)
	tab := people()
	d.load(tab, peopleRows()[:2]...) // block 1
	d.load(tab, peopleRows()[2])     // block 2
	scan := idScan(tab, 0, false)
	scan.Sys = plan.SysSlots{Xmin: 3, Xmax: 4, CreatorBlock: 5, DeleterBlock: 6, TableOID: 7, Ctid: -1}
	e := d.env()
	l, _ := catalog.NewLayout(tab)
	if err := l.EachEntry(peopleRows()[3], e.Txn.PutInsert); err != nil {
		t.Fatal(err)
	}
	got := run(t, e, scan, 8, []int{0, 3, 4, 5, 6, 7}, tInt, tBig, tBig, tBig, tBig, tBig)
	want := "(1,1,0,1,null,1048576)(2,1,0,1,null,1048576)(3,2,0,2,null,1048576)(4,3,0,null,null,1048576)"
	if got != want {
		t.Errorf("got %s, expected %s", got, want)
	}
}

func TestProvenanceScan(t *testing.T) {
	d := newDB(t)
	tab := people()
	rows := peopleRows()
	d.load(tab, rows[0], rows[1]) // block 1
	l, _ := catalog.NewLayout(tab)
	w := newTableWriter(tab, l, nil)
	step := func(change func(f *frame) error) {
		e := d.env()
		f := &frame{}
		f.start(e, nil)
		if err := change(f); err != nil {
			t.Fatal(err)
		}
		d.commit(e)
	}
	moved := []datum.Datum{num(1), str("ann"), str("hr"), num(11)}
	step(func(f *frame) error { return w.update(f, rows[0], moved, nil) }) // block 2
	step(func(f *frame) error { return w.delete(f, rows[1]) })             // block 3
	step(func(f *frame) error { return w.insert(f, rows[1]) })             // block 4
	scan := func(index int, from, to plan.Expr, ranges ...plan.Range) string {
		s := idScan(tab, index, false, ranges...)
		s.Provenance, s.FromBlock, s.ToBlock = true, from, to
		s.Sys = plan.SysSlots{Xmin: 3, Xmax: 4, CreatorBlock: 5, DeleterBlock: 6, TableOID: -1, Ctid: -1}
		return run(t, d.env(), s, 8, []int{0, 2, 5, 6, 3, 4}, tInt, tInt, tBig, tBig, tBig, tBig)
	}
	big := func(v int) plan.Expr { return val(tBig, num(v)) }
	department := func(s string) plan.Range { return plan.Range{Eq: []plan.RangeKey{eqKey(sval(s))}} }
	for _, test := range []struct{ name, got, want string }{
		{"all", scan(0, nil, nil), "(1,10,1,2,1,2)(1,11,2,null,2,0)(2,30,1,3,1,3)(2,30,4,null,4,0)"},
		{"bounds", scan(0, big(2), big(3)), "(1,11,2,null,2,0)"},
		{"null bound", scan(0, nullOf(tBig), nil), ""},
		{"key", scan(0, nil, nil, plan.Range{Eq: []plan.RangeKey{eqKey(ival(2))}}), "(2,30,1,3,1,3)(2,30,4,null,4,0)"},
		{"index", scan(1, nil, nil, department("it")), "(2,30,1,3,1,3)(2,30,4,null,4,0)(1,10,1,2,1,2)"},
		{"index, moved away", scan(1, nil, nil, department("hr")), "(1,11,2,null,2,0)"},
		{"index, bounds", scan(1, big(4), nil, department("it")), "(2,30,4,null,4,0)"},
	} {
		if test.got != test.want {
			t.Errorf("%s: %s, expected %s", test.name, test.got, test.want)
		}
	}
}

// Rows stay valid after the cursor has moved on and even after the store is
// overwritten.
func TestRowsMayBeKept(t *testing.T) {
	d := newDB(t)
	tab := testTable(1<<20, "t", 1, "id", tInt, "s", tText)
	for i := range 300 {
		d.load(tab, []datum.Datum{num(i), str(strings.Repeat(string(rune('a'+i%26)), 1+i%50))})
	}
	rows := collect(t, d.env(), &plan.Plan{Root: scanAll(tab, 0), Slots: 2, Out: []int{0, 1}}, nil)
	if len(rows) != 300 {
		t.Fatalf("%d rows", len(rows))
	}
	for i, r := range rows {
		if want := strings.Repeat(string(rune('a'+i%26)), 1+i%50); r[1].Str() != want {
			t.Fatalf("row %d became %q", i, r[1].Str())
		}
	}
}

func TestAddedColumn(t *testing.T) {
	d := newDB(t)
	tab := testTable(1<<20, "t", 1, "id", tInt)
	d.load(tab, []datum.Datum{num(1)})
	missing := "7"
	tab.Columns = append(tab.Columns,
		catalog.Column{Name: "a", TypeOID: tInt.OID, TypMod: -1, Type: tInt, Missing: &missing},
		catalog.Column{Name: "b", TypeOID: tInt.OID, TypMod: -1, Type: tInt})
	d.load(tab, []datum.Datum{num(2), num(8), num(9)})
	if got := run(t, d.env(), scanAll(tab, 0), 3, []int{0, 1, 2}, tInt, tInt, tInt); got != "(1,7,null)(2,8,9)" {
		t.Errorf("got %s", got)
	}
}

func TestLimits(t *testing.T) {
	d := newDB(t)
	tab := people()
	d.load(tab, peopleRows()...)
	prog := compile(t, &plan.Plan{Root: scanAll(tab, 0), Slots: 4, Out: []int{0}})
	t.Run("read bytes", func(t *testing.T) {
		e := d.env()
		e.Limits.ReadBytes = 100
		_, err := prog.Run(e, nil)
		wantCode(t, err, pgerr.ProgramLimitExceeded, "transaction reads more than 100 bytes")
	})
	t.Run("steps", func(t *testing.T) {
		e := d.env()
		e.Ctx.Budget = &builtin.Budget{Left: 3}
		n, err := countRows(prog, e)
		if pgerr.CodeOf(err) != pgerr.ProgramLimitExceeded || n != 3 {
			t.Errorf("%d rows, %v", n, err)
		}
	})
	t.Run("interrupt", func(t *testing.T) {
		e := d.env()
		asked := 0
		e.Interrupted = func() error {
			asked++
			return pgerr.New(pgerr.QueryCanceled, "canceling statement due to user request")
		}
		cross := &plan.NestLoop{Kind: plan.InnerJoin, Outer: scanAll(tab, 0), Inner: &plan.NestLoop{Kind: plan.InnerJoin, Outer: scanAll(tab, 4),
			Inner: &plan.NestLoop{Kind: plan.InnerJoin, Outer: scanAll(tab, 8), Inner: scanAll(tab, 12), InnerSlots: seq(12, 4)}, InnerSlots: seq(8, 8)}, InnerSlots: seq(4, 12)}
		_, err := compile(t, &plan.Plan{Root: cross, Slots: 16}).Run(e, nil)
		wantCode(t, err, pgerr.QueryCanceled, "canceling statement due to user request")
		if asked != 1 {
			t.Errorf("asked %d times", asked)
		}
	})
	t.Run("memory", func(t *testing.T) {
		sorted := compile(t, &plan.Plan{Root: &plan.Sort{Child: scanAll(tab, 0), Keys: []plan.SortKey{keyOf(slot(tInt, 3))}, Slots: seq(0, 4)}, Slots: 4, Out: []int{0}})
		e := d.env()
		e.Limits.Memory = 300
		_, err := sorted.Run(e, nil)
		wantCode(t, err, pgerr.ProgramLimitExceeded, "transaction keeps more than 300 bytes of intermediate rows")
		e.Ctx.Tx = nil
		_, err = sorted.Run(e, nil)
		wantCode(t, err, pgerr.OutOfMemory, "out of memory")
		e.Limits.Memory = 1 << 20
		if _, err := sorted.Run(e, nil); err != nil {
			t.Error(err)
		}
		if e.held != 0 {
			t.Errorf("%d bytes are still held", e.held)
		}
	})
}

func countRows(prog *Program, e *Env) (int, error) {
	c, err := prog.Open(e, nil)
	if err != nil {
		return 0, err
	}
	defer func() { _ = c.Close() }()
	for n := 0; ; n++ {
		row, err := c.Next()
		if row == nil || err != nil {
			return n, err
		}
	}
}

func TestDamagedIndex(t *testing.T) {
	d := newDB(t)
	tab := people()
	d.load(tab, peopleRows()...)
	e := d.env()
	l, _ := catalog.NewLayout(tab)
	if err := e.Txn.Delete(l.PrimaryKey(nil, peopleRows()[1])); err != nil {
		t.Fatal(err)
	}
	_, err := rowsOf(compile(t, &plan.Plan{Root: idScan(tab, 1, false), Slots: 3, Out: []int{0}}), e, nil)
	if err == nil || pgerr.IsVerdict(err) {
		t.Errorf("an index entry without a row: %v", err)
	}
}
