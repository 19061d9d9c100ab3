package exec

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
	"github.com/tallystick/tallystick/sql/plan"
)

// insertInto makes INSERT of Values: the child fills slots from 0 on, the new
// row stands behind them.
func insertInto(t *catalog.Table, rows ...[]plan.Expr) *plan.Modify {
	n := len(t.Columns)
	m := &plan.Modify{Kind: plan.Insert, Table: t, Child: values(seq(0, n), rows...), Carry: seq(0, n), NewSlots: seq(n, n)}
	for i := range n {
		m.New = append(m.New, slot(t.Columns[i].Type, i))
	}
	return m
}

// update makes UPDATE: the old row is in slots from 0 on, the new one behind.
func update(t *catalog.Table, filter plan.Expr, set map[int]plan.Expr) *plan.Modify {
	n := len(t.Columns)
	scan := scanAll(t, 0)
	scan.Filter = filter
	m := &plan.Modify{Kind: plan.Update, Table: t, Child: scan, Old: seq(0, n), NewSlots: seq(n, n), Changed: make([]bool, n)}
	for i := range n {
		e, ok := set[i]
		if !ok {
			e = slot(t.Columns[i].Type, i)
		}
		m.New, m.Changed[i] = append(m.New, e), ok
	}
	return m
}

func deleteFrom(t *catalog.Table, filter plan.Expr) *plan.Modify {
	scan := scanAll(t, 0)
	scan.Filter = filter
	return &plan.Modify{Kind: plan.Delete, Table: t, Child: scan, Old: seq(0, len(t.Columns))}
}

func exec(t testing.TB, e *Env, root plan.Node) (int64, error) {
	t.Helper()
	return compile(t, &plan.Plan{Root: root, Slots: 24, Subqueries: 2, CTEs: 3, Writes: true, Command: "UPDATE"}).Run(e, nil)
}

func mustExec(t testing.TB, e *Env, root plan.Node, affected int64) {
	t.Helper()
	n, err := exec(t, e, root)
	if err != nil {
		t.Fatal(err)
	}
	if n != affected {
		t.Errorf("%d rows affected, expected %d", n, affected)
	}
}

func person(id int, name any, dept, score plan.Expr) []plan.Expr {
	n := nullOf(tText)
	if name != nil {
		n = sval(name.(string))
	}
	return []plan.Expr{ival(id), n, dept, score}
}

func TestInsertUpdateDelete(t *testing.T) {
	d := newDB(t)
	tab := people()
	d.load(tab, peopleRows()...)
	e := d.env()
	insert := insertInto(tab, person(7, "gus", sval("it"), ival(5)), person(8, nil, nullOf(tText), nullOf(tInt)))
	insert.Returning, insert.Out = []plan.Expr{slot(tInt, 4), op("||", slot(tText, 5), sval("!"))}, []int{20, 21}
	p := &plan.Plan{Root: insert, Slots: 24, Out: []int{20, 21}, Writes: true}
	c, err := compile(t, p).Open(e, nil)
	if err != nil {
		t.Fatal(err)
	}
	row, err := c.Next()
	if err != nil {
		t.Fatal(err)
	}
	if got := format([]datum.Type{tInt, tText}, [][]datum.Datum{row}); got != "(7,gus!)" {
		t.Errorf("returned %s", got)
	}
	if err := c.Close(); err != nil { // early: the statement is complete all the same
		t.Fatal(err)
	}
	if c.RowsAffected() != 2 {
		t.Errorf("%d rows inserted", c.RowsAffected())
	}
	// Move two people to another department; one score goes up.
	mustExec(t, e, update(tab, eq(slot(tText, 2), sval("hr")), map[int]plan.Expr{2: sval("law"), 3: op("+", slot(tInt, 3), ival(1))}), 2)
	mustExec(t, e, update(tab, eq(slot(tInt, 0), ival(1)), map[int]plan.Expr{1: sval("anna")}), 1)
	mustExec(t, e, deleteFrom(tab, op("<=", slot(tInt, 3), ival(10))), 2)
	want := "(2,bob,it,30)(3,null,law,21)(4,dan,null,40)(5,null,it,null)(6,eve,law,21)(8,null,null,null)"
	if got := d.stored(e, tab); got != want {
		t.Errorf("stored %s, expected %s", got, want)
	}
	d.commit(e)
	if got := d.stored(d.env(), tab); got != want {
		t.Errorf("committed %s, expected %s", got, want)
	}
}

func TestKeysAreVerifiedPerRow(t *testing.T) {
	tab := testTable(1<<20, "t", 1, "id", tInt, "v", tInt)
	d := newDB(t)
	for i := 1; i <= 3; i++ {
		d.load(tab, []datum.Datum{num(i), num(10 * i)})
	}
	_, err := exec(t, d.env(), update(tab, nil, map[int]plan.Expr{0: op("+", slot(tInt, 0), ival(1))}))
	e := wantCode(t, err, pgerr.UniqueViolation, `duplicate key value violates unique constraint "t_pkey"`)
	if e.Detail != "Key (id)=(2) already exists." || e.Schema != "blockchain" || e.Table != "t" || e.Constraint != "t_pkey" {
		t.Errorf("%+v", e)
	}
	env := d.env()
	mustExec(t, env, update(tab, nil, map[int]plan.Expr{0: op("-", slot(tInt, 0), ival(1))}), 3)
	if got := d.stored(env, tab); got != "(0,10)(1,20)(2,30)" {
		t.Errorf("moved down: %s", got)
	}
	// Onto itself and back over a key that this transaction has deleted.
	mustExec(t, env, update(tab, nil, map[int]plan.Expr{0: slot(tInt, 0)}), 3)
	mustExec(t, env, deleteFrom(tab, eq(slot(tInt, 0), ival(1))), 1)
	mustExec(t, env, insertInto(tab, []plan.Expr{ival(1), ival(7)}), 1)
	if got := d.stored(env, tab); got != "(0,10)(1,7)(2,30)" {
		t.Errorf("after all: %s", got)
	}
}

func TestUniqueIndex(t *testing.T) {
	tab := people()
	d := newDB(t)
	d.load(tab, peopleRows()...)
	_, err := exec(t, d.env(), insertInto(tab, person(9, "bob", nullOf(tText), nullOf(tInt))))
	e := wantCode(t, err, pgerr.UniqueViolation, `duplicate key value violates unique constraint "people_name"`)
	if e.Detail != "Key (name)=(bob) already exists." {
		t.Error(e.Detail)
	}
	_, err = exec(t, d.env(), update(tab, eq(slot(tInt, 0), ival(1)), map[int]plan.Expr{1: sval("bob")}))
	wantCode(t, err, pgerr.UniqueViolation, `duplicate key value violates unique constraint "people_name"`)
	_, err = exec(t, d.env(), insertInto(tab, person(9, "x", nullOf(tText), nullOf(tInt)), person(10, "x", nullOf(tText), nullOf(tInt))))
	wantCode(t, err, pgerr.UniqueViolation, `duplicate key value violates unique constraint "people_name"`)
	// Nulls do not collide; changing one's key changes what the name points to.
	env := d.env()
	mustExec(t, env, insertInto(tab, person(9, nil, nullOf(tText), nullOf(tInt))), 1)
	mustExec(t, env, update(tab, eq(slot(tInt, 0), ival(2)), map[int]plan.Expr{0: ival(20)}), 1)
	mustExec(t, env, update(tab, eq(slot(tInt, 0), ival(5)), map[int]plan.Expr{1: sval("kim")}), 1)
	mustExec(t, env, update(tab, eq(slot(tInt, 0), ival(6)), map[int]plan.Expr{1: nullOf(tText)}), 1)
	if got := d.stored(env, tab); got != "(1,ann,it,10)(3,null,hr,20)(4,dan,null,40)(5,kim,it,null)(6,null,hr,20)(9,null,null,null)(20,bob,it,30)" {
		t.Errorf("stored %s", got)
	}
}

// A uniqueness check reads only whether the key is there.
func TestModifyFootprint(t *testing.T) {
	tab := people()
	d := newDB(t)
	d.load(tab, peopleRows()...)
	e := d.env()
	mustExec(t, e, insertInto(tab, person(9, "joe", sval("it"), ival(1))), 1)
	reads, writes := 0, 0
	for _, r := range e.Txn.Footprint().Reads {
		reads++
		if !r.Existence || !r.IsPoint() {
			t.Errorf("read %x with existence %t", r.Start, r.Existence)
		}
	}
	for _, w := range e.Txn.Footprint().Writes {
		writes++
		if !w.Liveness {
			t.Errorf("write %x does not change liveness", w.Key)
		}
	}
	if reads != 2 || writes != 3 {
		t.Errorf("%d reads, %d writes; expected 2 and 3", reads, writes)
	}
	// An update of a column without index writes the row alone, as an update.
	tab2 := testTable(1<<21, "t", 1, "id", tInt, "v", tInt)
	addIndex(tab2, "t_v", false, catalog.IndexKey{Column: 1})
	tab2.Columns = append(tab2.Columns, catalog.Column{Name: "w", Type: tInt, TypeOID: tInt.OID})
	d.load(tab2, []datum.Datum{num(1), num(2), num(3)})
	e = d.env()
	mustExec(t, e, update(tab2, nil, map[int]plan.Expr{2: slot(tInt, 2)}), 1)
	if fp := e.Txn.Footprint(); len(fp.Writes) != 1 || fp.Writes[0].Liveness {
		t.Errorf("writes %+v", fp.Writes)
	}
}

func TestNotNullAndChecks(t *testing.T) {
	tab := testTable(1<<20, "t", 1, "id", tInt, "s", tText, "n", tInt, "double", tInt)
	tab.Columns[2].NotNull = true
	d := newDB(t)
	build := func(rows ...[]plan.Expr) *plan.Modify {
		m := insertInto(tab, rows...)
		m.New[3] = nil
		m.Generated = []plan.GeneratedColumn{{Column: 3, Expr: op("+", slot(tInt, 6), slot(tInt, 6))}}
		m.Checks = []plan.CheckExpr{{Name: "t_double", Expr: op("<", slot(tInt, 7), ival(100))}}
		return m
	}
	row := func(id, s, n plan.Expr) []plan.Expr { return []plan.Expr{id, s, n, nullOf(tInt)} }
	_, err := exec(t, d.env(), build(row(ival(1), sval("abc"), nullOf(tInt))))
	e := wantCode(t, err, pgerr.NotNullViolation, `null value in column "n" of relation "t" violates not-null constraint`)
	if e.Detail != "Failing row contains (1, abc, null, null)." || e.Column != "n" || e.Table != "t" || e.Schema != "blockchain" {
		t.Errorf("%+v", e)
	}
	_, err = exec(t, d.env(), build(row(ival(1), sval(strings.Repeat("é", 40)), ival(50))))
	e = wantCode(t, err, pgerr.CheckViolation, `new row for relation "t" violates check constraint "t_double"`)
	if want := "Failing row contains (1, " + strings.Repeat("é", 32) + "..., 50, 100)."; e.Detail != want || e.Constraint != "t_double" {
		t.Errorf("%q, expected %q; constraint %q", e.Detail, want, e.Constraint)
	}
	env := d.env()
	mustExec(t, env, build(row(ival(1), sval("ok"), ival(21))), 1)
	if got := d.stored(env, tab); got != "(1,ok,21,42)" {
		t.Errorf("stored %s", got)
	}
	// A check that is null passes.
	m := insertInto(tab, []plan.Expr{ival(2), nullOf(tText), ival(1), nullOf(tInt)})
	m.Checks = []plan.CheckExpr{{Name: "t_double", Expr: op("<", slot(tInt, 7), ival(100))}}
	mustExec(t, env, m, 1)
}

func TestReadOnly(t *testing.T) {
	d := newDB(t)
	tab := people()
	e := d.env()
	e.ReadOnly = true
	_, err := compile(t, &plan.Plan{Root: deleteFrom(tab, nil), Slots: 4, Writes: true, Command: "DELETE"}).Run(e, nil)
	wantCode(t, err, pgerr.ReadOnlySQLTransaction, "cannot execute DELETE in a read-only transaction")
}

// A statement does not meet its own effects.
func TestHalloween(t *testing.T) {
	tab := testTable(1<<20, "t", 1, "id", tInt, "v", tInt)
	d := newDB(t)
	d.load(tab, []datum.Datum{num(1), num(1)}, []datum.Datum{num(2), num(2)})
	e := d.env()
	m := insertInto(tab)
	m.Child = &plan.Project{Child: scanAll(tab, 8), Exprs: []plan.Expr{op("+", slot(tInt, 8), ival(10)), slot(tInt, 9)}, Out: []int{0, 1}}
	mustExec(t, e, m, 2)
	mustExec(t, e, update(tab, nil, map[int]plan.Expr{0: op("+", slot(tInt, 0), ival(100))}), 4)
	if got := d.stored(e, tab); got != "(101,1)(102,2)(111,1)(112,2)" {
		t.Errorf("stored %s", got)
	}
}

// UPDATE ... FROM with several matches changes a row once.
func TestUpdateFromJoin(t *testing.T) {
	tab := testTable(1<<20, "t", 1, "id", tInt, "v", tInt)
	d := newDB(t)
	d.load(tab, []datum.Datum{num(1), num(0)}, []datum.Datum{num(2), num(0)})
	join := func() plan.Node {
		return &plan.NestLoop{Kind: plan.InnerJoin, Outer: scanAll(tab, 0), Inner: column(5, 7, 8), InnerSlots: []int{5}}
	}
	e := d.env()
	m := update(tab, nil, map[int]plan.Expr{1: slot(tInt, 5)})
	m.Child, m.Carry = join(), []int{0, 1, 5}
	mustExec(t, e, m, 2)
	if got := d.stored(e, tab); got != "(1,7)(2,7)" {
		t.Errorf("stored %s", got)
	}
	del := deleteFrom(tab, nil)
	del.Child, del.Carry = join(), []int{0, 1, 5}
	mustExec(t, e, del, 2)
	if got := d.stored(e, tab); got != "" {
		t.Errorf("stored %s", got)
	}
}

func TestOnConflict(t *testing.T) {
	d := newDB(t)
	tab := people()
	d.load(tab, peopleRows()...)
	conflict := func(index int, where plan.Expr, rows ...[]plan.Expr) *plan.Modify {
		m := insertInto(tab, rows...)
		m.Conflict = &plan.Conflict{}
		if index >= 0 {
			m.Conflict.Index = &tab.Indexes[index]
		}
		if where != nil { // SET score = old + excluded, name = excluded
			m.Conflict.ExistingSlots = seq(12, 4)
			m.Conflict.Set = []plan.Expr{slot(tInt, 12), slot(tText, 5), slot(tText, 14), op("+", slot(tInt, 15), slot(tInt, 7))}
			m.Conflict.Where = where
			m.Conflict.Changed = []bool{false, true, false, true}
		}
		m.Returning, m.Out = []plan.Expr{slot(tInt, 4), slot(tText, 5), slot(tInt, 7)}, []int{20, 21, 22}
		return m
	}
	types := []datum.Type{tInt, tText, tInt}
	returned := func(t *testing.T, e *Env, m *plan.Modify) (string, error) {
		prog := compile(t, &plan.Plan{Root: m, Slots: 24, Out: []int{20, 21, 22}, Writes: true})
		rows, err := rowsOf(prog, e, nil)
		return format(types, rows), err
	}
	it := sval("it")
	for _, test := range []struct {
		name string
		m    *plan.Modify
		want string
	}{
		{"nothing", conflict(-1, nil, person(1, "zoe", it, ival(1)), person(9, "bob", it, ival(1)), person(9, "zoe", it, ival(1)), person(9, "yan", it, ival(1))), "(9,zoe,1)"},
		{"nothing on the key", conflict(0, nil, person(1, "zoe", it, ival(1)), person(9, "zoe", it, ival(1))), "(9,zoe,1)"},
		{"update", conflict(0, bval(true), person(1, "zoe", it, ival(5)), person(9, "xav", it, ival(5))), "(1,zoe,15)(9,xav,5)"},
		{"update by name", conflict(2, bval(true), person(77, "bob", it, ival(5))), "(2,bob,35)"},
		{"update where", conflict(0, op(">", slot(tInt, 15), ival(20)), person(1, "zoe", it, ival(5)), person(2, "yan", it, ival(5))), "(2,yan,35)"},
	} {
		t.Run(test.name, func(t *testing.T) {
			e := d.env()
			got, err := returned(t, e, test.m)
			if err != nil {
				t.Fatal(err)
			}
			if got != test.want {
				t.Errorf("returned %s, expected %s", got, test.want)
			}
			d.stored(e, tab)
		})
	}
	t.Run("other index", func(t *testing.T) {
		_, err := returned(t, d.env(), conflict(0, nil, person(9, "bob", it, ival(1))))
		wantCode(t, err, pgerr.UniqueViolation, `duplicate key value violates unique constraint "people_name"`)
	})
	t.Run("twice", func(t *testing.T) {
		const message = "ON CONFLICT DO UPDATE command cannot affect row a second time"
		_, err := returned(t, d.env(), conflict(0, bval(true), person(1, "zoe", it, ival(1)), person(1, "yan", it, ival(1))))
		wantCode(t, err, pgerr.CardinalityViolation, message)
		_, err = returned(t, d.env(), conflict(0, bval(true), person(9, "zoe", it, ival(1)), person(9, "yan", it, ival(1))))
		wantCode(t, err, pgerr.CardinalityViolation, message)
	})
}

// WITH members and the statement proper see the tables as they were before.
func TestDataModifyingWith(t *testing.T) {
	src := testTable(1<<20, "src", 1, "id", tInt, "v", tInt)
	dst := testTable(1<<21, "dst", 1, "id", tInt, "v", tInt)
	d := newDB(t)
	d.load(src, []datum.Datum{num(1), num(10)}, []datum.Datum{num(2), num(20)}, []datum.Datum{num(3), num(30)})
	member := func(id int, m *plan.Modify, out ...int) plan.CTE {
		m.Out = out
		for i := range out {
			m.Returning = append(m.Returning, slot(tInt, m.Old[i]))
		}
		return plan.CTE{ID: id, Name: "m", Node: m, Out: out, Modifies: true, Types: []datum.Type{tInt, tInt}}
	}
	shifted := func(m *plan.Modify, by int) *plan.Modify {
		m.Child.(*plan.Scan).Slots = seq(by, 2)
		m.Old = seq(by, 2)
		return m
	}
	some := func(s int) plan.Expr { return op("<", slot(tInt, s), ival(3)) }

	t.Run("move", func(t *testing.T) {
		e := d.env()
		del := shifted(deleteFrom(src, some(8)), 8)
		ins := insertInto(dst)
		ins.Child = &plan.CTEScan{ID: 0, Slots: []int{0, 1}}
		mustExec(t, e, &plan.With{CTEs: []plan.CTE{member(0, del, 10, 11)}, Body: ins}, 2)
		if got := d.stored(e, src) + " " + d.stored(e, dst); got != "(3,30) (1,10)(2,20)" {
			t.Errorf("stored %s", got)
		}
	})
	t.Run("body sees the old rows", func(t *testing.T) {
		e := d.env()
		del := shifted(deleteFrom(src, some(8)), 8)
		count := &plan.Aggregate{Child: scanAll(src, 0), Aggs: []plan.Agg{agg("count", 5)}}
		p := &plan.Plan{Root: &plan.With{CTEs: []plan.CTE{member(0, del, 10, 11)}, Body: count}, Slots: 24, CTEs: 1, Out: []int{5}, Writes: true}
		if got := format([]datum.Type{tBig}, collect(t, e, p, nil)); got != "(3)" {
			t.Errorf("counted %s", got)
		}
		if got := d.stored(e, src); got != "(3,30)" {
			t.Errorf("stored %s", got)
		}
	})
	t.Run("delete and insert again", func(t *testing.T) {
		e := d.env()
		del := shifted(deleteFrom(src, some(8)), 8)
		ins := insertInto(src)
		ins.New[1] = op("+", slot(tInt, 1), ival(1))
		ins.Child = &plan.CTEScan{ID: 0, Slots: []int{0, 1}}
		mustExec(t, e, &plan.With{CTEs: []plan.CTE{member(0, del, 10, 11)}, Body: ins}, 2)
		if got := d.stored(e, src); got != "(1,11)(2,21)(3,30)" {
			t.Errorf("stored %s", got)
		}
	})
	t.Run("both change a row", func(t *testing.T) {
		e := d.env()
		del := shifted(deleteFrom(src, some(8)), 8)
		up := update(src, nil, map[int]plan.Expr{1: ival(0)})
		if _, err := exec(t, e, &plan.With{CTEs: []plan.CTE{member(0, del)}, Body: up}); err != nil {
			t.Fatal(err)
		}
		if got := d.stored(e, src); got != "(3,0)" {
			t.Errorf("stored %s", got)
		}
	})
	t.Run("error at the end", func(t *testing.T) {
		ins := insertInto(src, []plan.Expr{ival(1), ival(1)})
		cte := plan.CTE{ID: 0, Name: "m", Node: ins, Modifies: true}
		_, err := exec(t, d.env(), &plan.With{CTEs: []plan.CTE{cte}, Body: &plan.Result{}})
		wantCode(t, err, pgerr.UniqueViolation, `duplicate key value violates unique constraint "src_pkey"`)
	})
}

// A function that changes the row its caller is about to change.
func TestFunctionChangesTheRow(t *testing.T) {
	tab := testTable(1<<20, "t", 1, "id", tInt, "v", tInt)
	d := newDB(t)
	d.load(tab, []datum.Datum{num(1), num(10)})
	inner := compile(t, &plan.Plan{Root: deleteFrom(tab, nil), Slots: 2, Writes: true})
	e := d.env()
	e.Functions = &Functions{Call: func(env *Env, _ *catalog.Func, _ []datum.Datum) (datum.Datum, error) {
		_, err := inner.Run(env, nil)
		return num(1), err
	}}
	call := typed(tInt, &plan.UserCall{Func: &catalog.Func{}})
	_, err := exec(t, e, update(tab, nil, map[int]plan.Expr{1: call}))
	wantCode(t, err, "27000", "tuple to be updated was already modified by an operation triggered by the current command")
}

func TestWriteLimit(t *testing.T) {
	d := newDB(t)
	tab := people()
	e := d.env()
	e.Limits.WriteBytes = 100
	_, err := exec(t, e, insertInto(tab, person(1, "a", sval("it"), ival(1)), person(2, "b", sval("it"), ival(1)), person(3, "c", sval("it"), ival(1))))
	wantCode(t, err, pgerr.ProgramLimitExceeded, "transaction writes more than 100 bytes")
}

// Random statements on a table with three indexes, against a slice of rows;
// after each, indexes and rows match.
func TestModifyRandom(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	d := newDB(t)
	tab := people()
	e := d.env()
	var rows [][]datum.Datum
	find := func(match func([]datum.Datum) bool) int { return slices.IndexFunc(rows, match) }
	name := func() datum.Datum {
		if r.IntN(3) == 0 {
			return null
		}
		return str(fmt.Sprint("n", r.IntN(12)))
	}
	types := []datum.Type{tInt, tText, tText, tInt}
	for step := range 400 {
		id, n, dept, score := num(r.IntN(20)), name(), str(fmt.Sprint("d", r.IntN(3))), num(r.IntN(10))
		byID := find(func(row []datum.Datum) bool { return row[0] == id })
		byName := find(func(row []datum.Datum) bool { return !n.IsNull() && !row[1].IsNull() && row[1].Str() == n.Str() })
		sp := e.Txn.Savepoint()
		var err error
		fails := false
		filter := eq(slot(tInt, 0), val(tInt, id))
		switch r.IntN(3) {
		case 0:
			_, err = exec(t, e, insertInto(tab, []plan.Expr{val(tInt, id), val(tText, n), val(tText, dept), val(tInt, score)}))
			if fails = byID >= 0 || byName >= 0; !fails {
				rows = append(rows, []datum.Datum{id, n, dept, score})
			}
		case 1:
			to := num(r.IntN(20))
			other := find(func(row []datum.Datum) bool { return row[0] == to })
			_, err = exec(t, e, update(tab, filter, map[int]plan.Expr{0: val(tInt, to), 1: val(tText, n), 3: val(tInt, score)}))
			if byID >= 0 {
				if fails = other >= 0 && other != byID || byName >= 0 && byName != byID; !fails {
					rows[byID] = []datum.Datum{to, n, rows[byID][2], score}
				}
			}
		case 2:
			_, err = exec(t, e, deleteFrom(tab, filter))
			if byID >= 0 {
				rows = slices.Delete(rows, byID, byID+1)
			}
		}
		if (err != nil) != fails || fails && pgerr.CodeOf(err) != pgerr.UniqueViolation {
			t.Fatalf("step %d: error %v, expected one: %t", step, err, fails)
		}
		if fails {
			e.Txn.RollbackTo(sp)
		}
		slices.SortFunc(rows, func(a, b []datum.Datum) int { return int(a[0].Int() - b[0].Int()) })
		if got, want := d.stored(e, tab), format(types, rows); got != want {
			t.Fatalf("step %d: stored %s, expected %s", step, got, want)
		}
		if step%50 == 49 {
			d.commit(e)
			e = d.env()
		}
	}
}
