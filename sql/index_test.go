package sql_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tallystick/tallystick/mvcc/rwset"
	"github.com/tallystick/tallystick/sql"
	"github.com/tallystick/tallystick/sql/exec"
	"github.com/tallystick/tallystick/sql/parse"
	"github.com/tallystick/tallystick/sql/plan"
)

// one runs statements and returns what psql would print, errors too, for a table
// in the place of TABLE.
func (db *database) one(text, table string) string {
	out := db.script(strings.ReplaceAll(text, "TABLE", table))
	_, out, _ = strings.Cut(out, "\n")
	return out
}

// randomIndexes are partial and expression indexes over the columns of table x.
var randomIndexes = []string{
	"((a + b))", "(lower(s))", "(a) WHERE f", "(b, a DESC) WHERE a > 2", "(s) WHERE s IS NOT NULL AND NOT f",
	"(coalesce(a, -1), id)", "((a * b) DESC NULLS LAST, s) WHERE b <= 3", "(id) WHERE s IN ('A', 'b') OR a = 1", "((a % 2)) WHERE b <> 2",
}

// randomConds are conditions that such indexes may serve; # stands for a number.
var randomConds = []string{
	"a + b = #", "a + b > #", "lower(s) = 'a'", "lower(s) IN ('a', 'c')", "f", "NOT f", "f IS TRUE", "a = #", "a > #", "a >= #", "a IN (#, 5)",
	"b = #", "b <= #", "b < #", "s = 'A'", "s IN ('A', 'b')", "s IS NOT NULL", "s > 'A'", "coalesce(a, -1) = #", "a * b < #", "a IS NULL",
	"a % 2 = 1", "b <> 2", "b = 1", "a = 1", "(s = 'b' OR a = 1)", "lower(s) IS NULL", "(a = # OR a = 4)",
}

// TestIndexesAgainstPlainTable changes a table with partial and expression
// indexes and one without any alike; queries must not tell them apart.
func TestIndexesAgainstPlainTable(t *testing.T) {
	seed := uint64(rand.Uint32())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	served := 0
	for range 4 {
		db := newDatabase(t)
		for _, table := range []string{"x", "plain"} {
			db.one("CREATE table TABLE (id int PRIMARY KEY, a int, b int, s text, f bool)", table)
		}
		for _, i := range r.Perm(len(randomIndexes))[:5] {
			if out := db.one("CREATE INDEX ON TABLE "+randomIndexes[i], "x"); out != "" {
				t.Fatal(out)
			}
		}
		for range 60 {
			change := randomChange(r)
			if got, want := db.one(change, "x"), db.one(change, "plain"); got != want {
				t.Fatalf("%s\ngot:\n%s\nwant:\n%s", change, got, want)
			}
			q := randomQuery(r)
			if got, want := db.one(q, "x"), db.one(q, "plain"); got != want {
				t.Fatalf("%s\ngot:\n%s\nwant:\n%s\n%s", q, got, want, db.one("EXPLAIN "+q, "x"))
			}
			if strings.Contains(db.one("EXPLAIN "+q, "x"), "Index Scan using x_") {
				served++
			}
		}
	}
	if served < 40 {
		t.Errorf("only %d queries were served by an index", served)
	}
}

func randomQuery(r *rand.Rand) string {
	var conds []string
	for range 1 + r.IntN(3) {
		conds = append(conds, strings.ReplaceAll(randomConds[r.IntN(len(randomConds))], "#", fmt.Sprint(r.IntN(7)-1)))
	}
	order := []string{"id", "lower(s), id", "a + b DESC, id", "a, b, id"}[r.IntN(4)]
	return "SELECT id, a, b, s, f FROM TABLE WHERE " + strings.Join(conds, " AND ") + " ORDER BY " + order
}

func randomChange(r *rand.Rand) string {
	num := func() string {
		if r.IntN(6) == 0 {
			return "NULL"
		}
		return fmt.Sprint(r.IntN(7))
	}
	text := []string{"'A'", "'a'", "'b'", "'C'", "NULL"}[r.IntN(5)]
	flag := []string{"true", "false", "NULL"}[r.IntN(3)]
	switch r.IntN(5) {
	case 0, 1:
		return fmt.Sprintf("INSERT INTO TABLE VALUES (%d, %s, %s, %s, %s) ON CONFLICT (id) DO UPDATE SET a = excluded.a, s = excluded.s", r.IntN(40), num(), num(), text, flag)
	case 2:
		set := []string{"a = " + num(), "b = b + 1", "s = " + text, "f = NOT f", "id = id + 1000, a = " + num()}[r.IntN(5)]
		return "UPDATE TABLE SET " + set + fmt.Sprintf(" WHERE id %% 5 = %d", r.IntN(5))
	case 3:
		return fmt.Sprintf("INSERT INTO TABLE SELECT id + 40, b, a, upper(s), f FROM TABLE WHERE id < 40 AND id %% 7 = %d ON CONFLICT DO NOTHING", r.IntN(7))
	}
	return fmt.Sprintf("DELETE FROM TABLE WHERE id %% 9 = %d", r.IntN(9))
}

// TestPartialIndexFootprint: verifying a partial unique index reads the existence
// of one key, and nothing where a row has no entry.
func TestPartialIndexFootprint(t *testing.T) {
	db := newDatabase(t)
	db.one("CREATE table t (id int PRIMARY KEY, a int, open bool); CREATE UNIQUE INDEX t_open ON t (a) WHERE open; INSERT INTO t VALUES (1, 10, true)", "")
	for _, c := range []struct {
		text              string
		existence, writes int
	}{
		{"INSERT INTO t VALUES (2, 20, true)", 2, 2},
		{"INSERT INTO t VALUES (2, 20, false)", 1, 1},
		{"UPDATE t SET open = false WHERE id = 1", 0, 2},
		{"UPDATE t SET a = 11 WHERE id = 1", 1, 3},
		{"UPDATE t SET a = 10 WHERE id = 1", 0, 1},
	} {
		var fp *rwset.Footprint
		err := db.block(func(env *exec.Env) error {
			st, err := parse.One(c.text)
			if err != nil {
				return err
			}
			pl, err := plan.Statement(st.Node, &plan.Options{Catalog: env.Catalog, SearchPath: sql.SearchPath, Contract: true})
			if err != nil {
				return err
			}
			prog, err := exec.Compile(pl)
			if err != nil {
				return err
			}
			if _, err := prog.Run(env, nil); err != nil {
				return err
			}
			fp = env.Txn.Footprint()
			return fmt.Errorf("undone")
		})
		if err == nil || err.Error() != "undone" {
			t.Fatal(err)
		}
		n := 0
		for _, r := range fp.Reads {
			if r.Existence {
				n++
			}
		}
		if n != c.existence || len(fp.Writes) != c.writes {
			t.Errorf("%s: %d reads of existence, %d writes; want %d, %d", c.text, n, len(fp.Writes), c.existence, c.writes)
		}
	}
}
