package exec

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tallystick/tallystick/sql/builtin"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// fillEntries puts rows into entry: account is a partition, amount repeats and
// may be null, n numbers the rows of a partition.
func fillEntries(t *testing.T, s *sqlTest, r *rand.Rand, partitions, rows int) {
	t.Helper()
	exec := func(text string) {
		if out := s.statement(text, false); strings.HasPrefix(out, "ERROR") {
			t.Fatal(out)
		}
	}
	exec("insert into branch values (1, 'b')")
	for a := range partitions {
		exec(fmt.Sprintf("insert into account values (%d, 'o%d', 1, 1, null)", a, a))
		var list []string
		for n := range rows {
			amount := fmt.Sprint(r.IntN(8))
			if r.IntN(8) == 0 {
				amount = "null"
			}
			list = append(list, fmt.Sprintf("(%d, %d, %s, 'n%d')", a, n, amount, r.IntN(3)))
		}
		exec("insert into entry values " + strings.Join(list, ", "))
	}
}

// TestWindowFrames compares frames of all kinds with the rows that a subquery
// finds by the definition of the frame.
func TestWindowFrames(t *testing.T) {
	s := newSQLTest(t)
	r := rand.New(rand.NewPCG(3, 4))
	fillEntries(t, s, r, 3, 12)
	// The position of a row among those of its partition, the number of its group
	// of peers, and the value that groups are made of; null is the largest.
	const ranked = `with e as (select account, n, coalesce(amount, 100) as v,
		row_number() over (partition by account order by amount, n) as pos,
		dense_rank() over (partition by account order by amount) as grp from entry) `
	bound := func(unit string) (clause, low string) {
		k := r.IntN(4)
		switch r.IntN(5) {
		case 0:
			return "unbounded preceding", "-1000"
		case 1:
			return fmt.Sprintf("%d preceding", k), fmt.Sprintf("a.%s - %d", unit, k)
		case 2:
			return "current row", "a." + unit
		case 3:
			return fmt.Sprintf("%d following", k), fmt.Sprintf("a.%s + %d", unit, k)
		}
		return "unbounded following", "1000"
	}
	rank := func(clause string) int {
		for i, suffix := range []string{"unbounded preceding", " preceding", "current row", " following", "unbounded following"} {
			if strings.HasPrefix(clause, "unbounded") == strings.HasPrefix(suffix, "unbounded") && strings.HasSuffix(clause, suffix) {
				return i
			}
		}
		return 0
	}
	for range 150 {
		mode := []string{"rows", "range", "groups"}[r.IntN(3)]
		unit := map[string]string{"rows": "pos", "range": "v", "groups": "grp"}[mode]
		from, low := bound(unit)
		to, high := bound(unit)
		if rank(from) > rank(to) || from == "unbounded following" || to == "unbounded preceding" {
			continue // the grammar refuses these
		}
		exclude, rest := "", ""
		switch r.IntN(4) {
		case 0:
			exclude, rest = "exclude current row", " and b.pos <> a.pos"
		case 1:
			exclude, rest = "exclude group", " and b.grp <> a.grp"
		case 2:
			exclude, rest = "exclude ties", " and (b.grp <> a.grp or b.pos = a.pos)"
		}
		// Ties are in the order of n because input and sort are stable.
		order := map[string]string{"rows": "v, n", "range": "v", "groups": "v"}[mode]
		if mode == "rows" && exclude != "" && exclude != "exclude current row" {
			order = "v" // peers must be those of grp
		}
		window := ranked + fmt.Sprintf(`select account, n, array_agg(n) over (partition by account order by %s %s between %s and %s %s)
			from e order by account, n`, order, mode, from, to, exclude)
		oracle := ranked + fmt.Sprintf(`select account, n, (select array_agg(b.n order by b.pos) from e b
			where b.account = a.account and b.%s between %s and %s%s) from e a order by account, n`, unit, low, high, rest)
		got, want := s.statement(window, true), s.statement(oracle, true)
		if strings.HasPrefix(want, "ERROR") || got != want {
			t.Fatalf("%s:\n%s\nby definition:\n%s", window, got, want)
		}
	}
}

// steps runs a statement and returns what it costs.
func (s *sqlTest) steps(t *testing.T, text string) int64 {
	t.Helper()
	e := s.env()
	e.Catalog = s.catalog
	budget := &builtin.Budget{Left: 1 << 40}
	e.Ctx.Budget = budget
	if _, err := s.run(e, text, true); err != nil {
		t.Fatal(err)
	}
	return 1<<40 - budget.Left
}

// TestRunningAggregatesAreLinear: four times the rows cost four times the steps
// while a frame only grows, and sixteen times as many where it is computed afresh.
func TestRunningAggregatesAreLinear(t *testing.T) {
	s := newSQLTest(t)
	for _, x := range []struct {
		frame  string
		linear bool
	}{
		{"order by g", true},
		{"order by g rows unbounded preceding", true},
		{"order by g range between unbounded preceding and 5 following", true},
		{"order by g rows between unbounded preceding and unbounded following", true},
		{"order by g rows 3 preceding", true},
		{"order by g rows between current row and unbounded following", false},
		{"order by g rows between unbounded preceding and current row exclude current row", false},
	} {
		cost := func(n int) int64 {
			return s.steps(t, fmt.Sprintf("select sum(g) over (%s) from generate_series(1, %d) g", x.frame, n))
		}
		small, large := cost(200), cost(800)
		if ratio := float64(large) / float64(small); x.linear != (ratio < 5) {
			t.Errorf("%s: %d steps for 200 rows, %d for 800", x.frame, small, large)
		}
	}
}

// TestWindowBounds: partitions count against the memory of the transaction, and
// all of it is given back.
func TestWindowBounds(t *testing.T) {
	s := newSQLTest(t)
	e := s.env()
	e.Catalog = s.catalog
	e.Limits.Memory = 20000
	_, err := s.run(e, "select array_agg(g) over (order by g) from generate_series(1, 1000) g", true)
	wantCode(t, err, pgerr.ProgramLimitExceeded, "transaction keeps more than 20000 bytes of intermediate rows")
	e = s.env()
	e.Catalog = s.catalog
	e.Limits.Memory = 1 << 20
	if _, err := s.run(e, "select sum(g) over (partition by g / 10 order by g), array_agg(g) over (order by g rows 2 preceding) from generate_series(1, 100) g", true); err != nil {
		t.Fatal(err)
	}
	if e.held != 0 {
		t.Errorf("%d bytes are still held", e.held)
	}
}
