package contracts_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tallystick/tallystick/sql/pgerr"
)

// With -postgres the test data is compared with a real PostgreSQL, and -rewrite
// takes its answers: what our own engine answers is never taken for right, but
// for directives that say so.
//
//	go test ./contracts -run TestData -args -postgres "host=/tmp user=postgres" [-rewrite]
var postgres = flag.String("postgres", "", "connection string of a scratch PostgreSQL to compare the test data with")

// reference runs directives in PostgreSQL.
type reference struct {
	conn    *pgconn.PgConn
	notices strings.Builder
}

func openReference(t *testing.T) *reference {
	r := &reference{}
	cfg, err := pgconn.ParseConfig(*postgres)
	if err != nil {
		t.Fatal(err)
	}
	cfg.RuntimeParams["timezone"] = "UTC"
	cfg.RuntimeParams["plpgsql.check_asserts"] = "on"
	cfg.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) {
		fmt.Fprintf(&r.notices, "%s: %s\n", n.Severity, n.Message)
		writeFields(&r.notices, n.Detail, n.Hint)
	}
	if r.conn, err = pgconn.ConnectConfig(context.Background(), cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.conn.Close(context.Background()) })
	setup := "SET client_min_messages = warning; DROP SCHEMA IF EXISTS blockchain CASCADE; CREATE SCHEMA blockchain;" +
		"SET search_path = blockchain; SET client_min_messages = notice"
	if _, err := r.conn.Exec(context.Background(), setup).ReadAll(); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *reference) run(sql string) string {
	r.notices.Reset()
	results, err := r.conn.Exec(context.Background(), sql).ReadAll()
	var b strings.Builder
	b.WriteString(r.notices.String())
	if err != nil {
		var pe *pgconn.PgError
		if !errors.As(err, &pe) {
			return "broken: " + err.Error()
		}
		writeError(&b, &pgerr.Error{
			Code: pgerr.Code(pe.Code), Message: pe.Message, Detail: pe.Detail, Hint: pe.Hint, Context: pe.Where,
			Position: int(pe.Position), InternalPosition: int(pe.InternalPosition), InternalQuery: pe.InternalQuery,
			Schema: pe.SchemaName, Table: pe.TableName, Column: pe.ColumnName, DataType: pe.DataTypeName, Constraint: pe.ConstraintName,
		})
		return b.String()
	}
	for _, res := range results {
		for _, row := range res.Rows {
			for i, v := range row {
				if i > 0 {
					b.WriteByte('|')
				}
				if v == nil {
					b.WriteString("NULL")
				} else {
					b.Write(v)
				}
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}

func writeFields(b *strings.Builder, detail, hint string) {
	if detail != "" {
		fmt.Fprintf(b, "DETAIL: %s\n", detail)
	}
	if hint != "" {
		fmt.Fprintf(b, "HINT: %s\n", hint)
	}
}

// writeError shows a report with all its fields.
func writeError(b *strings.Builder, e *pgerr.Error) {
	fmt.Fprintf(b, "ERROR %s: %s\n", e.Code, e.Message)
	writeFields(b, e.Detail, e.Hint)
	if e.Position > 0 {
		fmt.Fprintf(b, "POSITION: %d\n", e.Position)
	}
	if e.InternalPosition > 0 {
		fmt.Fprintf(b, "QUERY: %s\nAT: %d\n", strings.TrimSpace(e.InternalQuery), e.InternalPosition)
	}
	if e.Context != "" {
		fmt.Fprintf(b, "CONTEXT: %s\n", e.Context)
	}
	for _, f := range []struct{ name, value string }{
		{"SCHEMA", e.Schema}, {"TABLE", e.Table}, {"COLUMN", e.Column}, {"DATATYPE", e.DataType}, {"CONSTRAINT", e.Constraint},
	} {
		if f.value != "" {
			fmt.Fprintf(b, "%s: %s\n", f.name, f.value)
		}
	}
}
