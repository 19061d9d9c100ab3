package exec

import (
	"testing"

	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
	"github.com/tallystick/tallystick/sql/plan"
)

// family is a parent table, a child that refers to it and a grandchild that
// refers to the child.
type family struct {
	*db
	parent, child, grandchild *catalog.Table
}

func newFamily(t *testing.T, onDelete, onUpdate string, indexed bool) *family {
	f := &family{db: newDB(t)}
	f.parent = testTable(1<<20, "parent", 1, "id", tInt, "v", tInt)
	f.child = testTable(1<<21, "child", 1, "id", tInt, "pid", tBig)
	f.grandchild = testTable(1<<22, "grandchild", 1, "id", tInt, "cid", tInt)
	if indexed {
		addIndex(f.child, "child_pid", false, catalog.IndexKey{Column: 1, Desc: true})
	}
	f.child.ForeignKeys = []catalog.ForeignKey{{Name: "child_pid_fkey", Columns: []int{1}, RefSchema: "blockchain", RefTable: "parent", RefColumns: []int{0}, OnDelete: onDelete, OnUpdate: onUpdate}}
	f.grandchild.ForeignKeys = []catalog.ForeignKey{{Name: "grandchild_cid_fkey", Columns: []int{1}, RefSchema: "blockchain", RefTable: "child", RefColumns: []int{0}, OnDelete: onDelete, OnUpdate: onUpdate}}
	f.load(f.parent, []datum.Datum{num(1), num(0)}, []datum.Datum{num(2), num(0)}, []datum.Datum{num(3), num(0)})
	f.load(f.child, []datum.Datum{num(10), num(1)}, []datum.Datum{num(11), num(1)}, []datum.Datum{num(12), num(2)}, []datum.Datum{num(13), null})
	f.load(f.grandchild, []datum.Datum{num(100), num(10)}, []datum.Datum{num(101), num(12)})
	return f
}

// env has the three tables in its catalog, for cascades.
func (f *family) env() *Env {
	e := f.db.env()
	txn := f.store.Begin(e.Txn.Snapshot(), 0)
	f.t.Cleanup(func() { _ = txn.Close() })
	ed := catalog.NewEditor(txn, mustLoad(f.t, e))
	for _, t := range []*catalog.Table{f.parent, f.child, f.grandchild} {
		if err := ed.PutTable(t); err != nil {
			f.t.Fatal(err)
		}
	}
	e.Catalog = ed.Catalog()
	return e
}

func mustLoad(t testing.TB, e *Env) *catalog.Catalog {
	c, err := catalog.Load(e.Txn)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// on adds the foreign keys that concern the table to a statement.
func (f *family) on(m *plan.Modify) *plan.Modify {
	add := func(from, ref *catalog.Table) {
		check, err := resolveForeignKey(from, ref, &from.ForeignKeys[0])
		if err != nil {
			f.t.Fatal(err)
		}
		if m.Table == from {
			m.ForeignKeys = append(m.ForeignKeys, *check)
		}
		if m.Table == ref {
			m.Referenced = append(m.Referenced, *check)
		}
	}
	add(f.child, f.parent)
	add(f.grandchild, f.child)
	return m
}

func (f *family) all(e *Env) string {
	return f.stored(e, f.parent) + " " + f.stored(e, f.child) + " " + f.stored(e, f.grandchild)
}

func byID(ids ...int) plan.Expr {
	var any []plan.Expr
	for _, id := range ids {
		any = append(any, eq(slot(tInt, 0), ival(id)))
	}
	return or(any...)
}

func TestForeignKeyOfChild(t *testing.T) {
	f := newFamily(t, "a", "a", true)
	insert := func(pid plan.Expr) error {
		_, err := exec(t, f.env(), f.on(insertInto(f.child, []plan.Expr{ival(20), pid})))
		return err
	}
	for _, pid := range []plan.Expr{val(tBig, num(3)), nullOf(tBig)} {
		if err := insert(pid); err != nil {
			t.Error(err)
		}
	}
	e := wantCode(t, insert(val(tBig, num(9))), pgerr.ForeignKeyViolation, `insert or update on table "child" violates foreign key constraint "child_pid_fkey"`)
	if e.Detail != `Key (pid)=(9) is not present in table "parent".` || e.Table != "child" || e.Constraint != "child_pid_fkey" {
		t.Errorf("%+v", e)
	}
	wantCode(t, insert(val(tBig, datum.Int(1<<32+1))), pgerr.ForeignKeyViolation, `insert or update on table "child" violates foreign key constraint "child_pid_fkey"`)
	_, err := exec(t, f.env(), f.on(update(f.child, byID(10), map[int]plan.Expr{1: val(tBig, num(9))})))
	wantCode(t, err, pgerr.ForeignKeyViolation, `insert or update on table "child" violates foreign key constraint "child_pid_fkey"`)
	// Only the existence of the parent is read, and nothing if the key stays.
	env := f.env()
	mustExec(t, env, f.on(update(f.child, byID(10), map[int]plan.Expr{1: val(tBig, num(2))})), 1)
	l, _ := catalog.NewLayout(f.parent)
	key, found := l.PrimaryKey(nil, []datum.Datum{num(2), null}), false
	for _, r := range env.Txn.Footprint().Reads {
		if r.Contains(key) {
			found = true
			if !r.Existence {
				t.Error("the parent's row is read, not only its existence")
			}
		}
	}
	if !found {
		t.Error("the parent is not in the footprint")
	}
	env = f.env()
	mustExec(t, env, f.on(update(f.child, byID(10), map[int]plan.Expr{1: slot(tBig, 1)})), 1)
	for _, r := range env.Txn.Footprint().Reads {
		if r.Contains(l.PrimaryKey(nil, []datum.Datum{num(1), null})) {
			t.Error("an unchanged reference was verified")
		}
	}
}

func TestForeignKeyOfParent(t *testing.T) {
	for _, indexed := range []bool{true, false} {
		for _, rule := range []string{"a", "r"} {
			f := newFamily(t, rule, rule, indexed)
			_, err := exec(t, f.env(), f.on(deleteFrom(f.parent, byID(1))))
			e := wantCode(t, err, pgerr.ForeignKeyViolation, `update or delete on table "parent" violates foreign key constraint "child_pid_fkey" on table "child"`)
			if e.Detail != `Key (id)=(1) is still referenced from table "child".` || e.Table != "child" || e.Constraint != "child_pid_fkey" {
				t.Errorf("%+v", e)
			}
			_, err = exec(t, f.env(), f.on(update(f.parent, byID(1), map[int]plan.Expr{0: ival(7)})))
			wantCode(t, err, pgerr.ForeignKeyViolation, `update or delete on table "parent" violates foreign key constraint "child_pid_fkey" on table "child"`)
			env := f.env()
			mustExec(t, env, f.on(deleteFrom(f.parent, byID(3))), 1)
			mustExec(t, env, f.on(update(f.parent, byID(1), map[int]plan.Expr{1: ival(7)})), 1)
			// The key is given up by one row and taken by another: keys swap places
			// only in the eyes of NO ACTION.
			swap := typed(tInt, &plan.Case{Whens: []plan.When{{Cond: byID(2), Result: ival(5)}}, Else: ival(2)})
			env = f.env()
			_, err = exec(t, env, f.on(update(f.parent, byID(2, 3), map[int]plan.Expr{0: swap})))
			if rule == "a" && err != nil {
				t.Errorf("NO ACTION: %v", err)
			}
			if rule == "r" && pgerr.CodeOf(err) != pgerr.ForeignKeyViolation {
				t.Errorf("RESTRICT: %v", err)
			}
		}
	}
}

func TestSelfReference(t *testing.T) {
	d := newDB(t)
	tab := testTable(1<<20, "tree", 1, "id", tInt, "up", tInt)
	tab.ForeignKeys = []catalog.ForeignKey{{Name: "tree_up_fkey", Columns: []int{1}, RefSchema: "blockchain", RefTable: "tree", RefColumns: []int{0}, OnDelete: "a", OnUpdate: "a"}}
	check, err := resolveForeignKey(tab, tab, &tab.ForeignKeys[0])
	if err != nil {
		t.Fatal(err)
	}
	on := func(m *plan.Modify) *plan.Modify {
		m.ForeignKeys, m.Referenced = []plan.ForeignKeyCheck{*check}, []plan.ForeignKeyCheck{*check}
		return m
	}
	e := d.env()
	mustExec(t, e, on(insertInto(tab, []plan.Expr{ival(2), ival(1)}, []plan.Expr{ival(1), nullOf(tInt)}, []plan.Expr{ival(3), ival(3)})), 3)
	_, err = exec(t, e, on(deleteFrom(tab, byID(1))))
	wantCode(t, err, pgerr.ForeignKeyViolation, `update or delete on table "tree" violates foreign key constraint "tree_up_fkey" on table "tree"`)
	e = d.env()
	mustExec(t, e, on(insertInto(tab, []plan.Expr{ival(2), ival(1)}, []plan.Expr{ival(1), nullOf(tInt)})), 2)
	mustExec(t, e, on(deleteFrom(tab, nil)), 2)
}

func TestCascades(t *testing.T) {
	for _, test := range []struct {
		name, rule string
		indexed    bool
		m          func(f *family) *plan.Modify
		want       string
	}{
		{"delete", "c", true, func(f *family) *plan.Modify { return deleteFrom(f.parent, byID(1)) },
			"(2,0)(3,0) (12,2)(13,null) (101,12)"},
		{"delete without index", "c", false, func(f *family) *plan.Modify { return deleteFrom(f.parent, nil) },
			" (13,null) "},
		{"update", "c", true, func(f *family) *plan.Modify {
			return update(f.parent, byID(1), map[int]plan.Expr{0: ival(5)})
		}, "(2,0)(3,0)(5,0) (10,5)(11,5)(12,2)(13,null) (100,10)(101,12)"},
		{"set null", "n", true, func(f *family) *plan.Modify { return deleteFrom(f.parent, byID(1)) },
			"(2,0)(3,0) (10,null)(11,null)(12,2)(13,null) (100,10)(101,12)"},
		{"set null on update", "n", false, func(f *family) *plan.Modify {
			return update(f.parent, byID(2), map[int]plan.Expr{0: ival(5)})
		}, "(1,0)(3,0)(5,0) (10,1)(11,1)(12,null)(13,null) (100,10)(101,12)"},
		{"set default", "d", true, func(f *family) *plan.Modify { return deleteFrom(f.parent, byID(2)) },
			"(1,0)(3,0) (10,1)(11,1)(12,null)(13,null) (100,10)(101,12)"},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFamily(t, test.rule, test.rule, test.indexed)
			e := f.env()
			if _, err := exec(t, e, f.on(test.m(f))); err != nil {
				t.Fatal(err)
			}
			if got := f.all(e); got != test.want {
				t.Errorf("stored %s, expected %s", got, test.want)
			}
		})
	}
	t.Run("stopped further down", func(t *testing.T) {
		f := newFamily(t, "c", "c", true)
		f.grandchild.ForeignKeys[0].OnDelete = "a"
		_, err := exec(t, f.env(), f.on(deleteFrom(f.parent, byID(1))))
		wantCode(t, err, pgerr.ForeignKeyViolation, `update or delete on table "child" violates foreign key constraint "grandchild_cid_fkey" on table "grandchild"`)
	})
	t.Run("not null", func(t *testing.T) {
		f := newFamily(t, "n", "n", true)
		f.child.Columns[1].NotNull = true
		_, err := exec(t, f.env(), f.on(deleteFrom(f.parent, byID(2))))
		wantCode(t, err, pgerr.NotNullViolation, `null value in column "pid" of relation "child" violates not-null constraint`)
	})
	t.Run("not built", func(t *testing.T) {
		f := newFamily(t, "n", "n", true)
		f.child.Checks = []catalog.Check{{Name: "c", Expr: "true"}}
		_, err := exec(t, f.env(), f.on(deleteFrom(f.parent, byID(2))))
		wantCode(t, err, pgerr.FeatureNotSupported, `foreign key constraint "child_pid_fkey" cannot change rows of table "child", which has check constraints`)
	})
}
