package sql_test

import (
	"context"
	"fmt"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/exec"
	"github.com/tallystick/tallystick/sql/parse"
	"github.com/tallystick/tallystick/sql/pgerr"
	"github.com/tallystick/tallystick/sql/plan"
)

// answer is what a statement gave, in a form in which an engine and PostgreSQL
// can be compared: columns as "name type-OID", rows as text with "\N" for null,
// and the error.
type answer struct {
	columns []string
	types   []uint32
	rows    []string
	failure
}

// failure is an error of a statement; the zero value is none.
type failure struct {
	code, message, detail, hint string
	position                    int
}

func (f failure) String() string {
	if f.code == "" {
		return ""
	}
	s := fmt.Sprintf("ERROR:  %s: %s", f.code, f.message)
	if f.position > 0 {
		s += fmt.Sprintf(" at %d", f.position)
	}
	if f.detail != "" {
		s += "\nDETAIL:  " + f.detail
	}
	if f.hint != "" {
		s += "\nHINT:  " + f.hint
	}
	return s
}

func (a *answer) String() string {
	if a.code != "" {
		return a.failure.String() + "\n"
	}
	var b strings.Builder
	for i, c := range a.columns {
		if i > 0 {
			b.WriteString(" | ")
		}
		fmt.Fprintf(&b, "%s %s", c, typeLabel(a.types[i]))
	}
	if len(a.columns) > 0 {
		b.WriteByte('\n')
	}
	for _, r := range a.rows {
		b.WriteString(r)
		b.WriteByte('\n')
	}
	return b.String()
}

func typeLabel(oid uint32) string {
	if d := datum.ByOID(datum.OID(oid)); d != nil {
		return d.Name
	}
	return fmt.Sprint(oid)
}

// answer runs one statement on the engine: a panic is an answer too, which
// PostgreSQL never gives.
func (db *database) answer(text string) answer { return db.answerIn(context.Background(), text) }

func (db *database) answerIn(ctx context.Context, text string) (a answer) {
	defer func() {
		if r := recover(); r != nil {
			a = answer{failure: failure{code: "PANIC", message: fmt.Sprintf("%v\n%s", r, debug.Stack())}}
		}
	}()
	list, err := parse.Statements(text)
	if err == nil && len(list) != 1 {
		err = fmt.Errorf("%d statements", len(list))
	}
	if err == nil {
		err = db.run(ctx, &a, list[0])
	}
	if err != nil {
		e, ok := pgerr.From(err)
		if !ok {
			return answer{failure: failure{code: "FAULT", message: err.Error()}}
		}
		return answer{failure: failure{string(e.Code), e.Message, e.Detail, e.Hint, e.Position}}
	}
	return a
}

func (db *database) run(ctx context.Context, a *answer, st parse.Statement) error {
	switch st.Node.Node.(type) {
	case *pg.Node_InsertStmt, *pg.Node_UpdateStmt, *pg.Node_DeleteStmt:
		var b strings.Builder
		return db.statement(&b, st)
	case *pg.Node_CreateStmt, *pg.Node_IndexStmt, *pg.Node_DropStmt, *pg.Node_AlterTableStmt, *pg.Node_ViewStmt,
		*pg.Node_RenameStmt, *pg.Node_CreateFunctionStmt, *pg.Node_CommentStmt:
		return db.block(func(env *exec.Env) error { return db.engine.Script(env, "admin", st.Text, nil) })
	}
	p, err := db.session.Prepare(ctx, "", st, nil)
	if err != nil {
		return err
	}
	for _, c := range p.Columns() {
		a.columns, a.types = append(a.columns, c.Name), append(a.types, uint32(c.Type.OID))
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
		a.rows = append(a.rows, textRow(p.Columns(), row, db.session.Format()))
	}
}

func textRow(cols []plan.Column, row []datum.Datum, f *datum.Format) string {
	var b []byte
	for i, d := range row {
		if i > 0 {
			b = append(b, '|')
		}
		if d.IsNull() {
			b = append(b, `\N`...)
		} else {
			b = cols[i].Type.Append(b, d, f)
		}
	}
	return string(b)
}

// postgres is a connection to the PostgreSQL that is compared with.
type postgres struct{ conn *pgx.Conn }

// newPostgres connects and makes an empty schema blockchain.
func newPostgres(t testing.TB, address string) *postgres {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		t.Fatalf("no PostgreSQL at %q: %v", address, err)
	}
	t.Cleanup(func() { _ = conn.Close(ctx) })
	for _, s := range []string{
		"set client_min_messages = warning", "drop schema if exists blockchain cascade", "drop schema if exists private cascade",
		"create schema blockchain", "create schema private", "set search_path = blockchain, private", "set timezone = 'UTC'",
		"set default_transaction_isolation = 'serializable'", "set statement_timeout = '10s'",
	} {
		if _, err := conn.Exec(ctx, s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
	return &postgres{conn}
}

func (p *postgres) answer(text string) answer {
	var a answer
	results := p.conn.PgConn().Exec(context.Background(), text)
	for results.NextResult() {
		r := results.ResultReader()
		for _, f := range r.FieldDescriptions() {
			a.columns, a.types = append(a.columns, f.Name), append(a.types, f.DataTypeOID)
		}
		for r.NextRow() {
			var b []byte
			for i, v := range r.Values() {
				if i > 0 {
					b = append(b, '|')
				}
				if v == nil {
					b = append(b, `\N`...)
				} else {
					b = append(b, v...)
				}
			}
			a.rows = append(a.rows, string(b))
		}
	}
	if err := results.Close(); err != nil {
		e, ok := err.(*pgconn.PgError)
		if !ok {
			return answer{failure: failure{code: "FAULT", message: err.Error()}}
		}
		return answer{failure: failure{e.Code, e.Message, e.Detail, e.Hint, int(e.Position)}}
	}
	return a
}
