package system_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/contracts/plpgsql"
	"github.com/tallystick/tallystick/contracts/system"
	"github.com/tallystick/tallystick/identity"
	"github.com/tallystick/tallystick/mvcc"
	"github.com/tallystick/tallystick/sql"
	"github.com/tallystick/tallystick/sql/builtin"
	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/exec"
	"github.com/tallystick/tallystick/sql/parse"
	"github.com/tallystick/tallystick/sql/pgerr"
	"github.com/tallystick/tallystick/sql/plan"
)

// network is a store whose every transaction is a block.
type network struct {
	t      *testing.T
	store  *mvcc.Store
	engine *sql.Engine
	system *system.System
	limits exec.Limits
	steps  int64
}

func newNetwork(t *testing.T) *network {
	store, err := mvcc.Open("state", mvcc.Options{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	n := &network{t: t, store: store}
	n.engine = sql.NewEngine(store, &exec.Functions{}, sql.EngineOptions{}) // deployed functions are not called
	n.system = system.New(n.engine, inspect)
	return n
}

// inspect knows PL/pgSQL only, as the functions of these tests do.
func inspect(fn *catalog.Func, cat *catalog.Catalog, to *plpgsql.Inspector) error {
	f, err := plpgsql.Compile(fn, plpgsql.Options{SearchPath: []string{catalog.Blockchain}, Contract: true})
	if err != nil {
		return err
	}
	return f.Inspect(cat, to)
}

// user writes a row of pgcerts, as the genesis does.
func (n *network) user(t *testing.T, id identity.UserID, role identity.Role) {
	layout, err := catalog.NewLayout(catalog.Certs)
	if err != nil {
		t.Fatal(err)
	}
	key := identity.NewSigner([32]byte{1}).Public()
	n.block(identity.UserID{}, func(env *exec.Env) error {
		return layout.EachEntry([]datum.Datum{
			datum.Str(id.Org), datum.Str(id.Name), datum.Str(role.String()), datum.Bytes(key[:]), datum.Int(0), datum.Null,
		}, env.Txn.PutInsert)
	})
}

// block runs f as the only transaction of a block, in its system phase. On an
// error nothing is written.
func (n *network) block(user identity.UserID, f func(env *exec.Env) error) error {
	height := n.store.Height() + 1
	batch := n.store.NewBlockBatch(height)
	txn := batch.Begin(mvcc.AsOf(height-1), block.XID(height, 1))
	cat, err := n.engine.Catalog(txn)
	if err != nil {
		n.t.Fatal(err)
	}
	env := n.engine.ContractEnv(txn, txn.XID(), cat, &builtin.TxInfo{User: user.Name, Org: user.Org})
	env.Limits = n.limits
	if n.steps > 0 {
		env.Ctx.Budget = &builtin.Budget{Left: n.steps}
	}
	result := f(env)
	if err := txn.Close(); err != nil {
		n.t.Fatal(err)
	}
	if result == nil {
		if err := batch.Apply(txn, 1); err != nil {
			n.t.Fatal(err)
		}
	}
	if err := n.store.Commit(batch, false); err != nil {
		n.t.Fatal(err)
	}
	return result
}

// call runs SELECT f(...) as a transaction and shows what it returned.
func (n *network) call(user identity.UserID, text string) string {
	var out strings.Builder
	err := n.block(user, func(env *exec.Env) error {
		env.Ctx.Notice = func(severity string, e *pgerr.Error) { fmt.Fprintf(&out, "%s: %s\n", severity, e.Message) }
		st, err := parse.One(text)
		if err != nil {
			n.t.Fatal(err)
		}
		pl, err := plan.Statement(st.Node, &plan.Options{Catalog: env.Catalog, SearchPath: sql.SearchPath, Script: st.Script})
		if err != nil {
			n.t.Fatalf("%s: %v", text, err)
		}
		call := pl.AsCall()
		args := make([]datum.Datum, len(call.Args))
		for i, a := range call.Args {
			x, err := exec.CompileExpr(a, call.Slots, call.Subqueries, call.CTEs)
			if err != nil {
				n.t.Fatal(err)
			}
			if args[i], err = x.Eval(env, nil); err != nil {
				n.t.Fatal(err)
			}
		}
		d, err := n.system.Call(env, call.Func, args)
		if err == nil && !d.IsNull() {
			out.Write(append(call.Func.Ret.Append(nil, d, &datum.ContractFormat), '\n'))
		}
		return err
	})
	if err == nil {
		return out.String() + "ok\n"
	}
	e, ok := pgerr.From(err)
	if !ok || !e.Code.IsVerdict() {
		n.t.Errorf("%s: %v is no verdict", text, err)
		return err.Error()
	}
	fmt.Fprintf(&out, "ERROR: %s: %s\n", e.Code, e.Message)
	for _, line := range []struct{ name, text string }{{"DETAIL", e.Detail}, {"HINT", e.Hint}, {"CONTEXT", e.Context}} {
		if line.text != "" {
			fmt.Fprintf(&out, "%s: %s\n", line.name, line.text)
		}
	}
	return out.String()
}

// query shows the rows of a SELECT.
func (n *network) query(text string) string {
	var out strings.Builder
	txn := n.store.Begin(mvcc.AsOf(n.store.Height()), 0)
	defer txn.Close()
	cat, err := n.engine.Catalog(txn)
	if err != nil {
		n.t.Fatal(err)
	}
	st, err := parse.One(text)
	if err != nil {
		n.t.Fatal(err)
	}
	pl, err := plan.Statement(st.Node, &plan.Options{Catalog: cat, SearchPath: sql.SearchPath, Script: st.Script})
	if err != nil {
		return "ERROR: " + err.Error() + "\n"
	}
	prog, err := exec.Compile(pl)
	if err != nil {
		n.t.Fatal(err)
	}
	env := &exec.Env{Txn: txn, Catalog: cat, ReadOnly: true}
	env.Ctx.Format = &datum.ContractFormat
	cur, err := prog.Open(env, nil)
	if err != nil {
		n.t.Fatal(err)
	}
	defer cur.Close()
	for {
		row, err := cur.Next()
		if err != nil {
			n.t.Fatal(err)
		}
		if row == nil {
			return out.String()
		}
		for i, d := range row {
			if i > 0 {
				out.WriteByte('|')
			}
			if !d.IsNull() {
				out.Write(pl.Columns[i].Type.Append(nil, d, &datum.ContractFormat))
			}
		}
		out.WriteByte('\n')
	}
}

// TestData runs the scripts in testdata. Directives:
//
//	genesis          users, one org/name and role a line
//	call USER        SELECT f(...), as a transaction signed by the user
//	query            SELECT on the newest block
//	limits           write=n steps=n
func TestData(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		n := newNetwork(t)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			n.t = t
			switch d.Cmd {
			case "genesis":
				for line := range strings.Lines(d.Input) {
					words := strings.Fields(line)
					id, err := identity.ParseUserID(words[0])
					if err != nil {
						t.Fatal(err)
					}
					role, err := identity.ParseRole(words[1])
					if err != nil {
						t.Fatal(err)
					}
					n.user(t, id, role)
				}
				return ""
			case "call":
				id, err := identity.ParseUserID(d.CmdArgs[0].Key)
				if err != nil {
					t.Fatal(err)
				}
				return n.call(id, d.Input)
			case "query":
				return n.query(d.Input)
			case "limits":
				n.limits, n.steps = exec.Limits{}, 0
				d.MaybeScanArgs(t, "write", &n.limits.WriteBytes)
				d.MaybeScanArgs(t, "steps", &n.steps)
				return ""
			}
			t.Fatalf("unknown directive %s", d.Cmd)
			return ""
		})
	})
}

// TestEverySystemFunctionHasAHandler calls each of the catalog's with nulls,
// which runs nothing but finds the handler.
func TestEverySystemFunctionHasAHandler(t *testing.T) {
	n := newNetwork(t)
	txn := n.store.Begin(mvcc.AsOf(0), 1)
	defer txn.Close()
	cat, err := n.engine.Catalog(txn)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, f := range cat.AllFuncs() {
		if f.Language != catalog.SystemLanguage {
			continue
		}
		found++
		env := n.engine.ContractEnv(txn, 1, cat, &builtin.TxInfo{})
		args := make([]datum.Datum, len(f.InArgs()))
		for i := range args {
			args[i] = datum.Null
		}
		if d, err := n.system.Call(env, f, args); err != nil || !d.IsNull() {
			t.Errorf("%s: %v, %v", f.Name, d, err)
		}
	}
	if found != 13 {
		t.Errorf("%d system contracts, want 13", found)
	}
	if _, err := n.system.Call(n.engine.ContractEnv(txn, 1, cat, &builtin.TxInfo{}), &catalog.Func{Name: "f"}, nil); err == nil || pgerr.IsVerdict(err) {
		t.Errorf("a call of another function: %v, want a fault", err)
	}
}
