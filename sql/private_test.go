package sql_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/tallystick/tallystick/mvcc"
	"github.com/tallystick/tallystick/sql"
	"github.com/tallystick/tallystick/sql/exec"
	"github.com/tallystick/tallystick/sql/parse"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// privateNode is an engine with schema private over file systems in memory.
type privateNode struct {
	t       *testing.T
	chain   *mvcc.Store
	store   *mvcc.Store
	private *sql.Private
	engine  *sql.Engine
}

func openStore(t *testing.T, fs vfs.FS, sync bool) *mvcc.Store {
	t.Helper()
	store, err := mvcc.Open("store", mvcc.Options{FS: fs, Sync: sync})
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// openPrivate opens a node whose private store lies in fs.
func openPrivate(t *testing.T, fs vfs.FS) *privateNode {
	t.Helper()
	n := &privateNode{t: t, chain: openStore(t, vfs.NewMem(), false), store: openStore(t, fs, true)}
	var err error
	if n.private, err = sql.NewPrivate(n.store); err != nil {
		t.Fatal(err)
	}
	n.engine = sql.NewEngine(n.chain, &exec.Functions{}, sql.EngineOptions{Private: n.private})
	return n
}

func newPrivateNode(t *testing.T) *privateNode {
	n := openPrivate(t, vfs.NewMem())
	t.Cleanup(n.close)
	return n
}

func (n *privateNode) close() {
	for _, f := range []func() error{n.private.Close, n.store.Close, n.chain.Close} {
		if err := f(); err != nil {
			n.t.Error(err)
		}
	}
}

// client is a session as a psql user has it, with what it was told.
type client struct {
	t       *testing.T
	session *sql.Session
	out     strings.Builder
}

// connect opens a session that works in schema private.
func (n *privateNode) connect() *client {
	c := &client{t: n.t}
	c.session = n.engine.NewSession(sql.SessionOptions{User: "admin", Database: sql.Database,
		Notice: func(severity string, e *pgerr.Error) { fmt.Fprintf(&c.out, "%s:  %s\n", severity, e.Code) }})
	n.t.Cleanup(c.session.Close)
	c.must("SET search_path = private")
	c.out.Reset()
	return c
}

// run runs one statement and writes what it gives.
func (c *client) run(st parse.Statement) (tag string, err error) {
	ctx := context.Background()
	defer func() {
		if err != nil {
			c.session.Fail(err)
		}
	}()
	p, err := c.session.Prepare(ctx, "", st, nil)
	if err != nil {
		return "", err
	}
	portal, err := c.session.Bind(ctx, p, nil)
	if err != nil {
		return "", err
	}
	defer portal.Close()
	for {
		row, err := portal.Next(ctx)
		if err != nil {
			return "", err
		}
		if row == nil {
			return portal.Tag(), nil
		}
		c.out.WriteString(line(p.Columns(), row, c.session.Format()))
	}
}

// exec runs statements up to the first error.
func (c *client) exec(text string) (tag string, err error) {
	list, err := parse.Statements(text)
	if err != nil {
		c.t.Fatalf("%s: %v", text, err)
	}
	for _, st := range list {
		if tag, err = c.run(st); err != nil {
			return "", err
		}
	}
	return tag, nil
}

func (c *client) must(text string) string {
	c.t.Helper()
	tag, err := c.exec(text)
	if err != nil {
		c.t.Fatalf("%s: %v", text, err)
	}
	return tag
}

// query runs a statement and returns its rows, one a line.
func (c *client) query(text string) string {
	c.t.Helper()
	c.out.Reset()
	c.must(text)
	return strings.TrimSuffix(c.out.String(), "\n")
}

// script prints what psql -q -A -t does, statement by statement.
func (c *client) script(text string) string {
	list, err := parse.Statements(text)
	if err != nil {
		c.t.Fatalf("script does not parse: %v", err)
	}
	for _, st := range list {
		fmt.Fprintf(&c.out, "-- %s\n", oneLine(st.Text))
		if _, err := c.run(st); err != nil {
			e, ok := pgerr.From(err)
			if !ok {
				c.t.Errorf("%s: fault: %v", st.Text, err)
				continue
			}
			if os.Getenv("SQL_TRACE") != "" {
				fmt.Fprintf(&c.out, "# %s %s %s\n", e.Message, e.Detail, e.Context)
			}
			fmt.Fprintf(&c.out, "ERROR:  %s\n", e.Code)
		}
	}
	return c.out.String()
}

// The scripts of testdata/pg, which contracts' tables run too, and those of
// testdata/private, as a user of psql would type them.
func TestScriptsInPrivate(t *testing.T) {
	for _, dir := range []string{"pg", "private"} {
		files, err := filepath.Glob("testdata/" + dir + "/*.sql")
		if err != nil || len(files) == 0 {
			t.Fatalf("no scripts: %v", err)
		}
		for _, f := range files {
			t.Run(dir+"/"+strings.TrimSuffix(filepath.Base(f), ".sql"), func(t *testing.T) {
				script, err := os.ReadFile(f)
				if err != nil {
					t.Fatal(err)
				}
				want, err := os.ReadFile(strings.TrimSuffix(f, ".sql") + ".out")
				if err != nil {
					t.Fatal(err)
				}
				compare(t, newPrivateNode(t).connect().script(string(script)), string(want))
			})
		}
	}
}

func TestCopyIntoPrivate(t *testing.T) {
	c, ctx := newPrivateNode(t).connect(), context.Background()
	c.must("CREATE TABLE t (id int GENERATED ALWAYS AS IDENTITY, note text, n int DEFAULT 7)")
	list, err := parse.Statements("COPY t (id, note) FROM STDIN")
	if err != nil {
		t.Fatal(err)
	}
	p, err := c.session.Prepare(ctx, "", list[0], nil)
	if err != nil {
		t.Fatal(err)
	}
	portal, err := c.session.Bind(ctx, p, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer portal.Close()
	if err := portal.Start(ctx); err != nil {
		t.Fatal(err)
	}
	if err := portal.CopyIn(ctx, pieces([]byte("1\ta\n5\t\\N\n"), 3)); err != nil {
		t.Fatal(err)
	}
	c.out.Reset()
	c.must("SELECT * FROM t ORDER BY id")
	if got := c.out.String(); got != "1|a|7\n5||7\n" {
		t.Errorf("got %q", got)
	}
}
