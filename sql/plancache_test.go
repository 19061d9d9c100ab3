package sql_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/tallystick/tallystick/sql/parse"
)

// once runs a script as the simple protocol does and returns its first column.
func (db *database) once(t testing.TB, script string) (out []string) {
	ctx := context.Background()
	list, err := db.session.Split(script)
	if err != nil {
		t.Fatal(err)
	}
	for _, st := range list {
		p, err := db.session.Prepare(ctx, "", st, nil)
		if err != nil {
			t.Fatalf("%s: %v", script, err)
		}
		portal, err := db.session.Bind(ctx, p, nil)
		if err != nil {
			t.Fatal(err)
		}
		for {
			row, err := portal.Next(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if row == nil {
				break
			}
			out = append(out, string(p.Columns()[0].Type.Append(nil, row[0], db.session.Format())))
		}
		portal.Close()
	}
	return out
}

// TestPlanCache: a plan that is remembered gives what a new one would.
func TestPlanCache(t *testing.T) {
	db := newDatabase(t)
	db.transcript("create table t (a int primary key, b text); insert into t values (1, 'x'), (2, 'y')")
	want := func(script, rows string) {
		t.Helper()
		for range 3 {
			if got := fmt.Sprint(db.once(t, script)); got != rows {
				t.Fatalf("%s: %s, want %s", script, got, rows)
			}
		}
	}
	want("select * from t order by a", "[1 2]")
	want("select count(*) from t", "[2]")
	db.transcript("insert into t values (3, 'z')")
	want("select * from t order by a", "[1 2 3]")
	// The catalog changes: other columns, another table of the name.
	db.transcript("alter table t add column c int")
	want("select * from t order by a", "[1 2 3]")
	db.transcript("drop table t; create table t (z text primary key); insert into t values ('new')")
	want("select * from t", "[new]")
	// Settings change what literals mean.
	want("select '01/02/2003'::date::text", "[2003-01-02]")
	db.once(t, "set datestyle = 'SQL, DMY'")
	want("select '01/02/2003'::date::text", "[01/02/2003]")
	db.once(t, "reset datestyle")
	want("select '01/02/2003'::date::text", "[2003-01-02]")
	db.once(t, "set search_path = private")
	want("select to_regclass('t') is null", "[t]")
	db.once(t, "reset search_path")
	want("select to_regclass('t') is null", "[f]")
	// More scripts than are remembered, and scripts of several statements.
	for i := range 200 {
		want(fmt.Sprintf("select %d", i), fmt.Sprintf("[%d]", i))
		want(fmt.Sprintf("select %d; select %d", i, i+1), fmt.Sprintf("[%d %d]", i, i+1))
	}
	// A plan of the text is not the plan of the query inside.
	want("explain select z from t", "[Seq Scan on t   Reads: t_pkey, the whole index]")
	want("select z from t", "[new]")
}

// BenchmarkSimpleSelect is a point look-up whose text is parsed and planned
// anew, unless it is remembered.
func BenchmarkSimpleSelect(b *testing.B) {
	db := newDatabase(&testing.T{})
	db.transcript("create table kv (k int primary key, v text not null); insert into kv select g, repeat('v', 64) from generate_series(1, 1000) g")
	run := func(b *testing.B, split func(string) ([]parse.Statement, error), text func(i int) string) {
		ctx := context.Background()
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			list, err := split(text(i))
			if err != nil {
				b.Fatal(err)
			}
			p, err := db.session.Prepare(ctx, "", list[0], nil)
			if err != nil {
				b.Fatal(err)
			}
			portal, err := db.session.Bind(ctx, p, nil)
			if err != nil {
				b.Fatal(err)
			}
			if row, err := portal.Next(ctx); err != nil || row == nil {
				b.Fatal(row, err)
			}
			portal.Close()
		}
	}
	same := func(int) string { return "select v from kv where k = 77" }
	other := func(i int) string { return fmt.Sprintf("select v from kv where k = %d", 1+i%1000) }
	b.Run("uncached", func(b *testing.B) { run(b, parse.Statements, same) })
	b.Run("same", func(b *testing.B) { run(b, db.session.Split, same) })
	b.Run("other", func(b *testing.B) { run(b, db.session.Split, other) })
}
