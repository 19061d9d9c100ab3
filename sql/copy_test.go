package sql_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tallystick/tallystick/sql"
	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/exec"
	"github.com/tallystick/tallystick/sql/parse"
	"github.com/tallystick/tallystick/sql/pgerr"
	"github.com/tallystick/tallystick/sql/plan"
)

// insertRows is COPY FROM of the tests: all rows in one block, each by INSERT.
func (db *database) insertRows(_ context.Context, t *catalog.Table, columns []int, next func() ([]datum.Datum, error)) (int64, error) {
	var count int64
	err := db.block(func(env *exec.Env) error {
		var names, params []string
		for i, c := range columns {
			names, params = append(names, datum.QuoteIdent(t.Columns[c].Name)), append(params, "$"+strconv.Itoa(i+1))
		}
		text := "insert into " + datum.QuoteIdent(t.Name) + " (" + strings.Join(names, ", ") + ") values (" + strings.Join(params, ", ") + ")"
		st, err := parse.One(text)
		if err != nil {
			return err
		}
		pl, err := plan.Statement(st.Node, &plan.Options{Catalog: env.Catalog, SearchPath: sql.SearchPath, Script: text})
		if err != nil {
			return err
		}
		prog, err := exec.Compile(pl)
		if err != nil {
			return err
		}
		for {
			row, err := next()
			if err != nil || row == nil {
				return err
			}
			if _, err := prog.Run(env, row); err != nil {
				return err
			}
			count++
		}
	})
	return count, err
}

// pieces is a source of data of which every read gives n bytes.
func pieces(data []byte, n int) func() ([]byte, error) {
	return func() ([]byte, error) {
		if len(data) == 0 {
			return nil, io.EOF
		}
		p := data[:min(n, len(data))]
		data = data[len(p):]
		return bytes.Clone(p), nil
	}
}

// copyIn runs COPY FROM with data that comes n bytes at a time.
func (db *database) copyIn(text string, data []byte, n int) (string, error) {
	ctx := context.Background()
	st, err := parse.One(text)
	if err != nil {
		return "", err
	}
	p, err := db.session.Prepare(ctx, "", st, nil)
	if err != nil {
		return "", err
	}
	portal, err := db.session.Bind(ctx, p, nil)
	if err != nil {
		return "", err
	}
	defer portal.Close()
	if err := portal.Start(ctx); err != nil {
		return "", err
	}
	if err := portal.CopyIn(ctx, pieces(data, n)); err != nil {
		return "", err
	}
	return portal.Tag(), nil
}

// TestCopyFrom runs COPY FROM with the data of testdata/copyfrom, in pieces of
// different sizes, which must make no difference. With -pg and -rewrite the
// expectations come from PostgreSQL.
//
//	sql
//	statements
//
//	copy
//	the COPY statement
//	"data", as quoted strings
//
// What is in table t afterwards is shown, and removed.
func TestCopyFrom(t *testing.T) {
	if *pgAddress != "" {
		pg := newPostgres(t, *pgAddress)
		datadriven.RunTest(t, "testdata/copyfrom", func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd == "sql" {
				return pg.failureOf(d.Input)
			}
			text, data := copyInput(t, d)
			return pg.copyFrom(text, data)
		})
		return
	}
	db := newDatabase(t)
	db.session = db.engine.NewSession(sql.SessionOptions{User: "admin", Database: sql.Database, InsertRows: db.insertRows})
	datadriven.RunTest(t, "testdata/copyfrom", func(t *testing.T, d *datadriven.TestData) string {
		if d.Cmd == "sql" {
			return db.transcript(d.Input)
		}
		text, data := copyInput(t, d)
		var first string
		for _, n := range []int{1 << 20, 1, 2, 7} {
			got := db.copyFrom(text, data, n)
			if first == "" {
				first = got
			}
			if got != first {
				d.Fatalf(t, "in pieces of %d bytes:\n%s\nat once:\n%s", n, got, first)
			}
		}
		return first
	})
}

func copyInput(t *testing.T, d *datadriven.TestData) (string, []byte) {
	text, rest, _ := strings.Cut(d.Input, "\n")
	var data []byte
	for line := range strings.Lines(rest) {
		s, err := strconv.Unquote(strings.TrimSpace(line))
		if err != nil {
			d.Fatalf(t, "%s: %v", line, err)
		}
		data = append(data, s...)
	}
	return text, data
}

func (db *database) copyFrom(text string, data []byte, n int) string {
	tag, err := db.copyIn(text, data, n)
	if err != nil {
		return report(err)
	}
	out := tag + "\n"
	for _, r := range db.answer("select * from t order by 1").rows {
		out += r + "\n"
	}
	db.transcript("delete from t; delete from g")
	return out
}

func (p *postgres) failureOf(text string) string {
	if a := p.answer(text); a.code != "" {
		return a.String()
	}
	return "ok\n"
}

func (p *postgres) copyFrom(text string, data []byte) string {
	tag, err := p.conn.PgConn().CopyFrom(context.Background(), bytes.NewReader(data), text)
	if e, ok := err.(*pgconn.PgError); ok {
		return report(&pgerr.Error{Code: pgerr.Code(e.Code), Message: e.Message, Detail: e.Detail, Hint: e.Hint, Context: e.Where})
	} else if err != nil {
		return fmt.Sprintf("FAULT: %v\n", err)
	}
	out := tag.String() + "\n"
	for _, r := range p.answer("select * from t order by 1").rows {
		out += r + "\n"
	}
	p.answer("delete from t")
	p.answer("delete from g")
	return out
}

func TestCopyFromIsRefused(t *testing.T) {
	db := newDatabase(t)
	db.transcript("create table t (a int primary key); create view v as select a from t")
	for _, c := range []struct{ text, code string }{
		{"copy t from stdin", "42501"}, {"copy pgledger from stdin", "42501"}, {"copy v from stdin", "42809"},
		{"copy t from stdin where a > 1", "0A000"}, {"copy t from '/etc/passwd'", "42501"}, {"copy t from program 'cat'", "42501"},
	} {
		_, err := db.copyIn(c.text, []byte("1\n"), 10)
		if got := string(pgerr.CodeOf(err)); got != c.code {
			t.Errorf("%s: %v, want %s", c.text, err, c.code)
		}
	}
}

// copyOut returns the data of COPY TO.
func (db *database) copyOut(t testing.TB, text string) []byte {
	t.Helper()
	ctx := context.Background()
	st, err := parse.One(text)
	if err != nil {
		t.Fatal(err)
	}
	p, err := db.session.Prepare(ctx, "", st, nil)
	if err != nil {
		t.Fatal(err)
	}
	portal, err := db.session.Bind(ctx, p, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer portal.Close()
	var data []byte
	for {
		row, err := portal.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if row == nil {
			return data
		}
		data = append(data, row[0].Bytes()...)
	}
}

// TestCopyRoundTrip copies rows with every difficult character out and in again.
func TestCopyRoundTrip(t *testing.T) {
	db := newDatabase(t)
	db.session = db.engine.NewSession(sql.SessionOptions{User: "admin", Database: sql.Database, InsertRows: db.insertRows})
	db.transcript(`create table t (a int primary key, b text, c bytea, d numeric, e timestamptz);
		insert into t select i, case when i % 7 = 0 then null else chr(i) || 'x,"\' || chr(9) || chr(10) || '|' end, '\x00ff'::bytea, i / 3.0, null from generate_series(1, 300) i;
		insert into t (a, b) values (0, ''), (-1, '\N'), (-2, '\.'), (-3, 'NULL')`)
	want := db.answer("select * from t order by 1").rows
	if len(want) != 304 {
		t.Fatalf("%d rows", len(want))
	}
	for _, options := range []string{"", "(delimiter '|', null 'nil')", "(format csv)", "(format csv, header, escape '\\', null 'NULL')",
		"(format csv, force_quote *)", "(format csv, quote '''', delimiter ';')", "(format binary)"} {
		data := db.copyOut(t, "copy t to stdout "+options)
		db.transcript("delete from t")
		tag, err := db.copyIn("copy t from stdin "+strings.Replace(options, ", force_quote *", "", 1), data, 100)
		if err != nil || tag != "COPY 304" {
			t.Fatalf("%s: %s, %v", options, tag, err)
		}
		got := db.answer("select * from t order by 1").rows
		if strings.Join(got, "\x00") != strings.Join(want, "\x00") {
			for i := range min(len(got), len(want)) {
				if got[i] != want[i] {
					t.Errorf("%s: row %d is %q, was %q", options, i, got[i], want[i])
					break
				}
			}
		}
	}
}
