package exec

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unsafe"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/tallystick/tallystick/mvcc"
	"github.com/tallystick/tallystick/sql/builtin"
	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
	"github.com/tallystick/tallystick/sql/plan"
)

var (
	tInt  = datum.T(datum.Int4)
	tBig  = datum.T(datum.Int8)
	tText = datum.T(datum.Text)
	tBool = datum.T(datum.BoolType)
	tNum  = datum.T(datum.Numeric)
	tInts = datum.T(datum.Int4.Array)
	null  = datum.Null
)

func num(v int) datum.Datum    { return datum.Int(int64(v)) }
func str(s string) datum.Datum { return datum.Str(s) }

// typed gives a hand-made expression its type: plans are made by package plan,
// whose constructor functions cover only leaves.
func typed[E plan.Expr](t datum.Type, e E) E {
	field := reflect.ValueOf(e).Elem().Field(0)
	if field.Type().NumField() != 1 || field.Type().Field(0).Type != reflect.TypeFor[datum.Type]() {
		panic("the first field of an expression is not its type")
	}
	*(*datum.Type)(unsafe.Pointer(field.UnsafeAddr())) = t
	return e
}

func slot(t datum.Type, i int) plan.Expr        { return plan.NewSlot(t, i, "") }
func prm(t datum.Type, i int) plan.Expr         { return plan.NewParam(t, i) }
func val(t datum.Type, d datum.Datum) plan.Expr { return plan.NewConst(t, d) }
func ival(v int) plan.Expr                      { return plan.NewConst(tInt, num(v)) }
func sval(s string) plan.Expr                   { return plan.NewConst(tText, str(s)) }
func bval(b bool) plan.Expr                     { return plan.NewConst(tBool, datum.Bool(b)) }
func nullOf(t datum.Type) plan.Expr             { return plan.NewConst(t, null) }
func and(args ...plan.Expr) plan.Expr           { return typed(tBool, &plan.BoolOp{Op: plan.And, Args: args}) }
func or(args ...plan.Expr) plan.Expr            { return typed(tBool, &plan.BoolOp{Op: plan.Or, Args: args}) }
func isNull(e plan.Expr) plan.Expr              { return typed(tBool, &plan.IsNull{Arg: e}) }
func eq(a, b plan.Expr) plan.Expr               { return op("=", a, b) }
func intArray(vals ...datum.Datum) plan.Expr {
	return plan.NewConst(tInts, datum.MakeArray(datum.Int4, vals))
}
func keyOf(e plan.Expr) plan.SortKey  { return plan.SortKey{Expr: e} }
func eqKey(e plan.Expr) plan.RangeKey { return plan.RangeKey{Value: e} }
func incl(e plan.Expr) *plan.Bound    { return &plan.Bound{Value: e, Inclusive: true} }
func excl(e plan.Expr) *plan.Bound    { return &plan.Bound{Value: e} }
func noSys() plan.SysSlots {
	return plan.SysSlots{Xmin: -1, Xmax: -1, CreatorBlock: -1, DeleterBlock: -1, TableOID: -1, Ctid: -1}
}
func values(slots []int, rows ...[]plan.Expr) *plan.Values {
	return &plan.Values{Slots: slots, Rows: rows}
}

// operator finds the built-in implementation of an operator over two types.
func operator(name string, l, r datum.Type) *builtin.Func {
	for _, o := range builtin.LookupOperators(name) {
		if o.Left == l.Desc && o.Right == r.Desc {
			return o.Func
		}
	}
	panic(fmt.Sprintf("no operator %s %s %s", l.Name, name, r.Name))
}

func op(name string, a, b plan.Expr) plan.Expr {
	f := operator(name, a.Type(), b.Type())
	return typed(datum.T(f.Ret), &plan.Call{Func: f, Eval: f.Eval, Args: []plan.Expr{a, b}})
}

func aggFunc(name string, args ...datum.Type) *builtin.Func {
next:
	for _, f := range builtin.LookupFuncs(name) {
		if f.Kind != builtin.Aggregate || len(f.Args) != len(args) {
			continue
		}
		for i, a := range f.Args {
			if a != args[i].Desc && a.Kind != datum.Pseudo {
				continue next
			}
		}
		return f
	}
	panic("no aggregate " + name)
}

// testTable describes a table compactly: the first npk columns are its key.
func testTable(oid datum.OID, name string, npk int, cols ...any) *catalog.Table {
	t := &catalog.Table{OID: oid, Schema: "blockchain", Name: name, Kind: catalog.OrdinaryTable}
	for i := 0; i < len(cols); i += 2 {
		typ := cols[i+1].(datum.Type)
		t.Columns = append(t.Columns, catalog.Column{Name: cols[i].(string), TypeOID: typ.OID, TypMod: typ.Mod, Type: typ, NotNull: i/2 < npk})
	}
	pk := catalog.Index{OID: oid + 1, Name: name + "_pkey", Unique: true, Primary: true, Constraint: true}
	for i := range npk {
		pk.Keys = append(pk.Keys, catalog.IndexKey{Column: i})
	}
	t.Indexes = []catalog.Index{pk}
	return t
}

func addIndex(t *catalog.Table, name string, unique bool, keys ...catalog.IndexKey) *catalog.Index {
	t.Indexes = append(t.Indexes, catalog.Index{OID: t.OID + 1 + datum.OID(len(t.Indexes)), Name: name, Unique: unique, Constraint: unique, Keys: keys})
	return &t.Indexes[len(t.Indexes)-1]
}

// db is a store with a block per load.
type db struct {
	t     testing.TB
	store *mvcc.Store
	xid   uint64
}

func newDB(t testing.TB) *db {
	s, err := mvcc.Open("db", mvcc.Options{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return &db{t: t, store: s}
}

// env begins a transaction on the newest block, as a contract sees it.
func (d *db) env() *Env {
	d.xid++
	txn := d.store.Begin(mvcc.AsOf(d.store.Height()), d.xid)
	d.t.Cleanup(func() { _ = txn.Close() })
	return &Env{Txn: txn, XID: d.xid, Ctx: builtin.Ctx{Format: &datum.ContractFormat, Tx: &builtin.TxInfo{}}}
}

// commit makes a block of one transaction.
func (d *db) commit(e *Env) {
	d.t.Helper()
	b := d.store.NewBlockBatch(d.store.Height() + 1)
	if err := b.Apply(e.Txn, 1); err != nil {
		d.t.Fatal(err)
	}
	if err := e.Txn.Close(); err != nil {
		d.t.Fatal(err)
	}
	if err := d.store.Commit(b, false); err != nil {
		d.t.Fatal(err)
	}
}

// load inserts rows in one block, through the layout alone.
func (d *db) load(t *catalog.Table, rows ...[]datum.Datum) {
	d.t.Helper()
	l, err := catalog.NewLayout(t)
	if err != nil {
		d.t.Fatal(err)
	}
	e := d.env()
	for _, r := range rows {
		if err := l.EachEntry(r, e.Txn.PutInsert); err != nil {
			d.t.Fatal(err)
		}
	}
	d.commit(e)
}

// stored lists what a table holds, all its indexes, as the transaction sees it,
// and verifies that index entries and rows match one another.
func (d *db) stored(e *Env, t *catalog.Table) string {
	d.t.Helper()
	n := len(t.Columns)
	scan := scanAll(t, 0)
	p := &plan.Plan{Root: scan, Out: scan.Slots, Slots: n}
	rows := collect(d.t, e, p, nil)
	l, err := catalog.NewLayout(t)
	if err != nil {
		d.t.Fatal(err)
	}
	want := map[string]string{}
	for _, r := range rows {
		_ = l.EachEntry(r, func(k, v []byte) error { want[string(k)] = string(v); return nil })
	}
	got := 0
	for i := range t.Indexes {
		var set spanSet
		prefix := l.IndexPrefix(i)
		s := span{prefix, set.prefixEnd(prefix)}
		it := e.Txn.Scan(s.rwset(), false, mvcc.ReadUnrecorded)
		for it.Next() {
			got++
			if v, ok := want[string(it.Key())]; !ok || v != string(it.Value()) {
				d.t.Errorf("table %s, index %d: entry %x = %x, expected %x (%t)", t.Name, i, it.Key(), it.Value(), v, ok)
			}
		}
		if err := it.Close(); err != nil {
			d.t.Fatal(err)
		}
	}
	if got != len(want) {
		d.t.Errorf("table %s has %d entries in its indexes, its rows make %d", t.Name, got, len(want))
	}
	types := make([]datum.Type, n)
	for i := range types {
		types[i] = t.Columns[i].Type
	}
	return format(types, rows)
}

// scanAll reads a whole table into slots from first on.
func scanAll(t *catalog.Table, first int) *plan.Scan {
	return &plan.Scan{Table: t, Index: t.Primary(), Slots: seq(first, len(t.Columns)), Sys: noSys()}
}

func seq(first, n int) []int {
	s := make([]int, n)
	for i := range s {
		s[i] = first + i
	}
	return s
}

func compile(t testing.TB, p *plan.Plan) *Program {
	t.Helper()
	prog, err := Compile(p)
	if err != nil {
		t.Fatal(err)
	}
	return prog
}

// collect runs a plan and copies its rows.
func collect(t testing.TB, e *Env, p *plan.Plan, params []datum.Datum) [][]datum.Datum {
	t.Helper()
	rows, err := rowsOf(compile(t, p), e, params)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func rowsOf(prog *Program, e *Env, params []datum.Datum) ([][]datum.Datum, error) {
	c, err := prog.Open(e, params)
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }()
	var rows [][]datum.Datum
	for {
		row, err := c.Next()
		if err != nil {
			return nil, err
		}
		if row == nil {
			return rows, nil
		}
		rows = append(rows, append([]datum.Datum(nil), row...))
	}
}

// format writes rows as (1,a)(2,null).
func format(types []datum.Type, rows [][]datum.Datum) string {
	var b strings.Builder
	for _, r := range rows {
		b.WriteByte('(')
		for i, d := range r {
			if i > 0 {
				b.WriteByte(',')
			}
			if d.IsNull() {
				b.WriteString("null")
			} else {
				b.Write(types[i].Append(nil, d, &datum.ContractFormat))
			}
		}
		b.WriteByte(')')
	}
	return b.String()
}

// run executes a plan over its Out slots and formats the result.
func run(t testing.TB, e *Env, root plan.Node, slots int, out []int, types ...datum.Type) string {
	t.Helper()
	p := &plan.Plan{Root: root, Slots: slots, Out: out, Subqueries: 8, CTEs: 4}
	return format(types, collect(t, e, p, nil))
}

// wantCode demands an error with a SQLSTATE and a text in its message.
func wantCode(t testing.TB, err error, code pgerr.Code, message string) *pgerr.Error {
	t.Helper()
	e, ok := pgerr.From(err)
	if !ok {
		t.Fatalf("error %v, expected %s %s", err, code, message)
	}
	if e.Code != code || e.Message != message {
		t.Errorf("error %s %q, expected %s %q", e.Code, e.Message, code, message)
	}
	return e
}

// noStore is an environment for programs that touch no table.
func noStore() *Env { return &Env{Ctx: builtin.Ctx{Format: &datum.ContractFormat}} }
