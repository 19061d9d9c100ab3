package contracts_test

import (
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/tallystick/tallystick/contracts"
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

// database is a store with an engine over it; every statement is a block.
type database struct {
	t         testing.TB
	store     *mvcc.Store
	engine    *sql.Engine
	functions *contracts.Functions
	height    uint64
	notices   strings.Builder
	limits    exec.Limits
	steps     int64
	role      catalog.Role // who runs statements; zero: whoever may do everything
}

// newFunctions runs functions as PostgreSQL would: what contracts may not do is
// the subject of deploy_test.go.
func newFunctions() *contracts.Functions {
	f := contracts.NewFunctions()
	f.Verify = nil
	return f
}

func newDatabase(t testing.TB) *database {
	store, err := mvcc.Open("db", mvcc.Options{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	d := &database{t: t, store: store, functions: newFunctions()}
	d.engine = sql.NewEngine(store, d.functions.Exec(), sql.EngineOptions{ValidateFunction: contracts.ValidateFunction})
	d.limits.Nesting = 100
	d.block(func(env *exec.Env) error {
		e := catalog.NewEditor(env.Txn, env.Catalog)
		for _, s := range []string{catalog.Blockchain, catalog.Private} {
			if _, ok := e.Catalog().Schema(s); ok {
				continue
			}
			if err := e.PutSchema(&catalog.Schema{Name: s}); err != nil {
				return err
			}
		}
		return nil
	})
	return d
}

// block runs f in a transaction and commits it, unless it fails.
func (d *database) block(f func(env *exec.Env) error) error {
	d.height++
	b := d.store.NewBlockBatch(d.height)
	defer b.Close()
	txn := d.store.Begin(mvcc.AsOf(d.height-1), d.height<<20)
	defer txn.Close()
	cat, err := d.engine.Catalog(txn)
	if err != nil {
		d.t.Fatal(err)
	}
	env := d.engine.ContractEnv(txn, d.height<<20, cat, &builtin.TxInfo{})
	env.Limits, env.Role = d.limits, d.role
	if d.steps > 0 {
		env.Ctx.Budget = &builtin.Budget{Left: d.steps}
	}
	env.Ctx.Notice = func(severity string, e *pgerr.Error) {
		if severity != "LOG" && severity != "DEBUG" {
			fmt.Fprintf(&d.notices, "%s: %s\n", severity, e.Message)
			writeFields(&d.notices, e.Detail, e.Hint)
		}
	}
	result := f(env)
	if result == nil {
		if err := b.Apply(txn, 1); err != nil {
			d.t.Fatal(err)
		}
	}
	if err := d.store.Commit(b, false); err != nil {
		d.t.Fatal(err)
	}
	return result
}

// run executes statements as one transaction and shows rows, notices and errors.
func (d *database) run(text string) string {
	d.notices.Reset()
	var out strings.Builder
	err := d.block(func(env *exec.Env) error {
		list, err := parse.Statements(text)
		if err != nil {
			return err
		}
		for _, st := range list {
			if err := d.statement(env, st, &out); err != nil {
				return err
			}
		}
		return nil
	})
	var b strings.Builder
	b.WriteString(d.notices.String())
	if err == nil {
		return b.String() + out.String()
	}
	e, ok := pgerr.From(err)
	if !ok {
		return "broken: " + err.Error()
	}
	c := *e
	// The engine names the statement of a script; PostgreSQL does not.
	for _, verb := range []string{"CREATE", "DROP", "ALTER"} {
		if i := strings.Index(c.Context, "SQL statement \""+verb); i >= 0 {
			c.Context = strings.TrimSuffix(c.Context[:i], "\n")
		}
	}
	writeError(&b, &c)
	return b.String()
}

func (d *database) statement(env *exec.Env, st parse.Statement, out *strings.Builder) error {
	if st.Node.GetSelectStmt() == nil && st.Node.GetInsertStmt() == nil && st.Node.GetUpdateStmt() == nil && st.Node.GetDeleteStmt() == nil {
		return d.engine.Script(env, "test", st.Text, func(e *pgerr.Error) { env.Ctx.Notice("NOTICE", e) })
	}
	pl, err := plan.Statement(st.Node, &plan.Options{Catalog: env.Catalog, SearchPath: []string{catalog.Blockchain}, Script: st.Script})
	if err != nil {
		return err
	}
	prog, err := exec.Compile(pl)
	if err != nil {
		return err
	}
	c, err := prog.Open(env, nil)
	if err != nil {
		return err
	}
	defer c.Close()
	for {
		row, err := c.Next()
		if err != nil || row == nil {
			return err
		}
		for i, v := range row {
			if i > 0 {
				out.WriteByte('|')
			}
			if v.IsNull() {
				out.WriteString("NULL")
			} else {
				out.Write(pl.Columns[i].Type.Append(nil, v, &datum.ContractFormat))
			}
		}
		out.WriteByte('\n')
	}
}

// TestData runs the scripts in testdata. Directives:
//
//	run [differs] [ours]   statements, one transaction
//	limits nesting=n steps=n
//
// The expected output is PostgreSQL's (see -postgres), unless the directive
// says that we differ, or that only we can run it, and a comment says why.
func TestData(t *testing.T) {
	if f := flag.Lookup("rewrite"); f != nil && f.Value.String() == "true" && *postgres == "" {
		t.Fatal("-rewrite takes the answers of PostgreSQL: give -postgres")
	}
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		d := newDatabase(t)
		var ref *reference
		if *postgres != "" {
			ref = openReference(t)
		}
		datadriven.RunTest(t, path, func(t *testing.T, td *datadriven.TestData) string {
			switch td.Cmd {
			case "limits":
				td.MaybeScanArgs(t, "nesting", &d.limits.Nesting)
				td.MaybeScanArgs(t, "steps", &d.steps)
				return ""
			case "run":
				ours := d.run(td.Input)
				if ref == nil || td.HasArg("ours") {
					return ours
				}
				theirs := ref.run(td.Input)
				if td.HasArg("differs") {
					if ours == theirs {
						t.Errorf("%s: says that we differ, but we do not", td.Pos)
					}
					return ours
				}
				return theirs
			}
			t.Fatalf("unknown directive %s", td.Cmd)
			return ""
		})
	})
}
