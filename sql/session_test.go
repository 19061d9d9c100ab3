package sql_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/tallystick/tallystick/sql"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/exec"
	"github.com/tallystick/tallystick/sql/parse"
	"github.com/tallystick/tallystick/sql/pgerr"
	"github.com/tallystick/tallystick/sql/plan"
)

// The files in testdata/session are conversations with one session. Every line
// is a statement of its own.
//
//	block     DDL and writes, every statement as a block
//	sql       statements through Prepare, Bind and Next: rows, command tag,
//	          transaction status, notices; calls that it makes are shown
//	prepare   types=(oid, ...): the parameter types and result columns of each
//	bind      args=(value, ...): runs the one statement with text arguments
func TestSession(t *testing.T) {
	datadriven.Walk(t, filepath.Join("testdata", "session"), func(t *testing.T, path string) {
		c := newConversation(t)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			c.out.Reset()
			switch d.Cmd {
			case "block":
				c.block(d.Input)
			case "sql":
				for _, line := range strings.Split(d.Input, "\n") {
					c.statement(line)
				}
			case "prepare":
				c.prepare(d)
			case "bind":
				c.bind(d)
			default:
				t.Fatalf("%s: unknown command %s", d.Pos, d.Cmd)
			}
			return c.out.String()
		})
	})
}

// conversation is a session whose events are written down.
type conversation struct {
	*database
	out strings.Builder
}

func newConversation(t *testing.T) *conversation {
	c := &conversation{database: newDatabase(t)}
	c.session = c.engine.NewSession(sql.SessionOptions{
		User: "ann", Database: sql.Database,
		Notice: func(severity string, e *pgerr.Error) {
			fmt.Fprintf(&c.out, "%s:  %s: %s\n", severity, e.Code, e.Message)
		},
		Parameter: func(name, value string) { fmt.Fprintf(&c.out, "[%s = %s]\n", name, value) },
		Submit:    c.submit,
	})
	return c
}

// submit shows a call and answers it with a row of nulls.
func (c *conversation) submit(_ context.Context, call *sql.Call) (*sql.Outcome, error) {
	fmt.Fprintf(&c.out, "call %s.%s(", call.Schema, call.Name)
	for i, a := range call.Args {
		if i > 0 {
			c.out.WriteString(", ")
		}
		fmt.Fprintf(&c.out, "%s ", datum.FormatType(call.ArgTypes[i]))
		c.out.WriteString(textRow([]plan.Column{{Type: call.ArgTypes[i]}}, []datum.Datum{a}, c.session.Format()))
	}
	c.out.WriteString(")\n")
	if len(call.Columns) == 0 {
		return &sql.Outcome{}, nil
	}
	row := make([]datum.Datum, len(call.Columns))
	for i := range row {
		row[i] = datum.Null
	}
	return &sql.Outcome{Rows: [][]datum.Datum{row}}, nil
}

// block runs a script, every statement as a block, and shows the height.
func (c *conversation) block(script string) {
	list, err := parse.Statements(script)
	if err != nil {
		c.t.Fatal(err)
	}
	for _, st := range list {
		switch st.Node.Node.(type) {
		case *pg.Node_InsertStmt, *pg.Node_UpdateStmt, *pg.Node_DeleteStmt:
			err = c.write(&c.out, st)
		default:
			err = c.database.block(func(env *exec.Env) error { return c.engine.Script(env, "admin", st.Text, nil) })
		}
		c.failed(err)
	}
	fmt.Fprintf(&c.out, "height %d\n", c.store.Height())
}

func (c *conversation) failed(err error) bool {
	if err == nil {
		return false
	}
	e, ok := pgerr.From(err)
	if !ok {
		c.t.Fatalf("fault: %v", err)
	}
	c.session.Fail(err)
	f := failure{string(e.Code), e.Message, e.Detail, e.Hint, e.Position}
	c.out.WriteString(f.String() + "\n")
	return true
}

// statement runs a line as the simple protocol does.
func (c *conversation) statement(line string) {
	list, err := c.session.Split(line)
	if c.failed(err) {
		return
	}
	for _, st := range list {
		c.run(st, nil, nil)
	}
	fmt.Fprintf(&c.out, "%c\n", c.session.TxStatus())
}

func (c *conversation) run(st parse.Statement, types []datum.OID, args []datum.Datum) {
	ctx := context.Background()
	p, err := c.session.Prepare(ctx, "", st, types)
	if c.failed(err) {
		return
	}
	portal, err := c.session.Bind(ctx, p, args)
	if c.failed(err) {
		return
	}
	defer portal.Close()
	for {
		row, err := portal.Next(ctx)
		if c.failed(err) {
			return
		}
		if row == nil {
			break
		}
		if portal.Copy() != nil {
			c.out.WriteString(row[0].Str()) // a piece of the data, ends with its line
			continue
		}
		c.out.WriteString(textRow(p.Columns(), row, c.session.Format()) + "\n")
	}
	fmt.Fprintf(&c.out, "%s\n", portal.Tag())
}

func declared(d *datadriven.TestData) []datum.OID {
	var out []datum.OID
	for _, a := range d.CmdArgs {
		if a.Key != "types" {
			continue
		}
		for _, v := range a.Vals {
			oid := datum.OID(0)
			if t := datum.ByName(v); t != nil {
				oid = t.OID
			} else if n, err := strconv.Atoi(v); err == nil {
				oid = datum.OID(n)
			}
			out = append(out, oid)
		}
	}
	return out
}

// prepare shows what a driver would learn from Describe.
func (c *conversation) prepare(d *datadriven.TestData) {
	for _, line := range strings.Split(d.Input, "\n") {
		st, err := parse.One(line)
		if c.failed(err) {
			continue
		}
		p, err := c.session.Prepare(context.Background(), "", st, declared(d))
		if c.failed(err) {
			continue
		}
		var parts []string
		for _, t := range p.Params() {
			parts = append(parts, datum.FormatType(t))
		}
		fmt.Fprintf(&c.out, "(%s)", strings.Join(parts, ", "))
		parts = nil
		for _, col := range p.Columns() {
			parts = append(parts, col.Name+" "+datum.FormatType(col.Type))
		}
		fmt.Fprintf(&c.out, " -> %s\n", strings.Join(parts, ", "))
	}
}

func (c *conversation) bind(d *datadriven.TestData) {
	st, err := parse.One(d.Input)
	if c.failed(err) {
		return
	}
	p, err := c.session.Prepare(context.Background(), "", st, declared(d))
	if c.failed(err) {
		return
	}
	var args []datum.Datum
	for _, a := range d.CmdArgs {
		if a.Key != "args" {
			continue
		}
		for i, v := range a.Vals {
			if v == "null" || i >= len(p.Params()) {
				args = append(args, datum.Null)
				continue
			}
			arg, err := p.Params()[i].Parse(v, -1, c.session.Format())
			if c.failed(err) {
				return
			}
			args = append(args, arg)
		}
	}
	c.run(st, declared(d), args)
}
