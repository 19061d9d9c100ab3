package sql_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/tallystick/tallystick/mvcc"
	"github.com/tallystick/tallystick/sql"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/exec"
	"github.com/tallystick/tallystick/sql/parse"
	"github.com/tallystick/tallystick/sql/pgerr"
	"github.com/tallystick/tallystick/sql/plan"
)

// The scripts in testdata/pg run here and, to make the expected output, in
// PostgreSQL 15: testdata/regen.sh. Each .out file is what psql printed.

func TestScriptsAgainstPostgreSQL(t *testing.T) {
	files, err := filepath.Glob("testdata/pg/*.sql")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, f := range files {
		t.Run(strings.TrimSuffix(filepath.Base(f), ".sql"), func(t *testing.T) {
			script, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			want, err := os.ReadFile(strings.TrimSuffix(f, ".sql") + ".out")
			if err != nil {
				t.Fatal(err)
			}
			db := newDatabase(t)
			got := db.script(string(script))
			compare(t, got, string(want))
		})
	}
}

// compare reports the first statements whose output differs. Statements are
// separated by marker lines "--n".
func compare(t *testing.T, got, want string) {
	t.Helper()
	g, w := strings.Split(got, "\x1e"), strings.Split(want, "\x1e")
	if len(w) == 1 {
		w = splitMarked(want)
		g = splitMarked(got)
	}
	bad := 0
	for i := range max(len(g), len(w)) {
		a, b := "<missing>", "<missing>"
		if i < len(g) {
			a = g[i]
		}
		if i < len(w) {
			b = w[i]
		}
		if a != b {
			t.Errorf("got:\n%s\nPostgreSQL:\n%s", a, b)
			if bad++; bad == 10 {
				t.Fatal("too many differences")
			}
		}
	}
}

func splitMarked(s string) []string { return strings.Split(s, "\n-- ") }

// database is an engine over a store in memory in which every statement that
// writes is a block of its own.
type database struct {
	t       testing.TB
	store   *mvcc.Store
	engine  *sql.Engine
	session *sql.Session
	// interrupted, if not nil, stops writes.
	interrupted func() error
}

func newDatabase(t testing.TB) *database {
	t.Helper()
	store, err := mvcc.Open("state", mvcc.Options{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	engine := sql.NewEngine(store, &exec.Functions{}, sql.EngineOptions{})
	db := &database{t: t, store: store, engine: engine}
	db.session = engine.NewSession(sql.SessionOptions{User: "admin", Database: sql.Database})
	return db
}

// script runs statements and prints what psql -A -t would; every statement is
// announced by its own text.
func (db *database) script(text string) string {
	var b strings.Builder
	list, err := parse.Statements(text)
	if err != nil {
		db.t.Fatalf("script does not parse: %v", err)
	}
	for _, st := range list {
		fmt.Fprintf(&b, "-- %s\n", oneLine(st.Text))
		if err := db.statement(&b, st); err != nil {
			e, ok := pgerr.From(err)
			if !ok {
				db.t.Errorf("%s: fault: %v", st.Text, err)
				continue
			}
			if os.Getenv("SQL_TRACE") != "" {
				fmt.Fprintf(&b, "# %s %s %s\n", e.Message, e.Detail, e.Context)
			}
			fmt.Fprintf(&b, "ERROR:  %s\n", e.Code)
		}
	}
	return b.String()
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

func (db *database) statement(b *strings.Builder, st parse.Statement) error {
	switch n := st.Node.Node.(type) {
	case *pg.Node_InsertStmt, *pg.Node_UpdateStmt, *pg.Node_DeleteStmt, *pg.Node_MergeStmt:
		return db.write(b, st)
	case *pg.Node_SelectStmt:
		if n.SelectStmt.WithClause != nil && writes(n.SelectStmt.WithClause) {
			return db.write(b, st)
		}
		return db.query(b, st)
	case *pg.Node_CreateStmt, *pg.Node_IndexStmt, *pg.Node_DropStmt, *pg.Node_AlterTableStmt, *pg.Node_ViewStmt, *pg.Node_RenameStmt,
		*pg.Node_CreateEnumStmt, *pg.Node_AlterEnumStmt, *pg.Node_CompositeTypeStmt, *pg.Node_CreateDomainStmt, *pg.Node_AlterDomainStmt, *pg.Node_CreateRangeStmt,
		*pg.Node_CreateSchemaStmt, *pg.Node_CommentStmt, *pg.Node_CreateFunctionStmt, *pg.Node_CreateTrigStmt, *pg.Node_CreateTableAsStmt:
		return db.block(func(env *exec.Env) error {
			return db.engine.Script(env, "admin", st.Text, func(e *pgerr.Error) { fmt.Fprintf(b, "NOTICE:  %s\n", e.Code) })
		})
	}
	return db.query(b, st)
}

func writes(w *pg.WithClause) bool {
	for _, c := range w.Ctes {
		if c.GetCommonTableExpr().Ctequery.GetSelectStmt() == nil {
			return true
		}
	}
	return false
}

// block runs f as the only transaction of the next block.
func (db *database) block(f func(env *exec.Env) error) error {
	h := db.store.Height() + 1
	batch := db.store.NewBlockBatch(h)
	txn := batch.Begin(mvcc.Snapshot{Height: h}, h<<20|1)
	defer txn.Close()
	c, err := db.engine.Catalog(txn)
	if err != nil {
		return err
	}
	env := db.engine.ContractEnv(txn, h<<20|1, c, nil)
	env.Interrupted = db.interrupted
	if err := f(env); err != nil {
		return err
	}
	if err := batch.Apply(txn, 1); err != nil {
		return err
	}
	return db.store.Commit(batch, false)
}

func (db *database) write(b *strings.Builder, st parse.Statement) error {
	var lines []string
	err := db.block(func(env *exec.Env) error {
		pl, err := plan.Statement(st.Node, &plan.Options{Catalog: env.Catalog, SearchPath: sql.SearchPath, Script: st.Script})
		if err != nil {
			return err
		}
		prog, err := exec.Compile(pl)
		if err != nil {
			return err
		}
		cur, err := prog.Open(env, nil)
		if err != nil {
			return err
		}
		defer cur.Close()
		for {
			row, err := cur.Next()
			if err != nil || row == nil {
				return err
			}
			lines = append(lines, line(pl.Columns, row, env.Ctx.Format))
		}
	})
	if err == nil {
		for _, l := range lines {
			b.WriteString(l)
		}
	}
	return err
}

func (db *database) query(b *strings.Builder, st parse.Statement) error {
	ctx := context.Background()
	p, err := db.session.Prepare(ctx, "", st, nil)
	if err != nil {
		return err
	}
	portal, err := db.session.Bind(ctx, p, nil)
	if err != nil {
		return err
	}
	defer portal.Close()
	for {
		row, err := portal.Next(ctx)
		if err != nil || row == nil {
			return err
		}
		b.WriteString(line(p.Columns(), row, db.session.Format()))
	}
}

func line(cols []plan.Column, row []datum.Datum, f *datum.Format) string {
	var b []byte
	for i, d := range row {
		if i > 0 {
			b = append(b, '|')
		}
		if !d.IsNull() {
			b = cols[i].Type.Append(b, d, f)
		}
	}
	return string(append(b, '\n'))
}
