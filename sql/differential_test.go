package sql_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	pgAddress  = flag.String("pg", "", "connection string of a PostgreSQL 15 (database with C collation) to compare with")
	statements = flag.Int("statements", 1000, "how many random statements TestDifferential compares")
	seed       = flag.Uint64("seed", 1, "seed of the random statements")
	record     = flag.Bool("record", false, "keep PostgreSQL's answers for runs without -pg")
)

// recorded holds PostgreSQL's answers to the first statements of seed 1.
const (
	recorded      = "testdata/differential.txt"
	recordedCount = 400
	recordedSeed  = 1
)

// TestDifferential compares answers to random statements with PostgreSQL's:
// rows, types and SQLSTATEs. Without -pg it checks those that are recorded.
func TestDifferential(t *testing.T) {
	if *pgAddress == "" {
		checkRecorded(t)
		return
	}
	if *record {
		recordAnswers(t)
		return
	}
	c := newComparison(t, *seed)
	pgdb := newPostgres(t, *pgAddress)
	for _, s := range c.setup {
		if a := pgdb.answer(s); a.code != "" {
			t.Fatalf("%s: %s", s, a.failure)
		}
	}
	bad := 0
	for i := range *statements {
		text, ordered := c.gen.statement()
		want := pgdb.answer(text)
		if leftOpen(&want) {
			continue
		}
		if d := c.check(text, ordered, comparable(&want, ordered)); d != "" {
			t.Errorf("seed %d, statement %d: %s", *seed, i, d)
			if bad++; bad >= 20 {
				t.Fatal("too many differences")
			}
		}
	}
}

// leftOpen tells that PostgreSQL's answer settles nothing: it ran out of time,
// refused a FULL JOIN without equality, or found a call ambiguous because of
// types that exist in PostgreSQL only.
func leftOpen(a *answer) bool {
	return a.code == "57014" || a.code == "0A000" || a.code == "42725"
}

// comparison is an engine with the tables of a generator.
type comparison struct {
	db    *database
	gen   *generator
	setup []string
}

func newComparison(t testing.TB, seed uint64) *comparison {
	g := &generator{r: rand.New(rand.NewPCG(seed, 2))}
	c := &comparison{db: newDatabase(t), gen: g, setup: append(g.schema(), g.data()...)}
	for _, s := range c.setup {
		c.db.mustScript(s)
	}
	return c
}

// check runs a statement and describes how its answer differs, "" if it does
// not.
func (c *comparison) check(text string, ordered bool, want string) string {
	a := c.db.answer(text)
	if got := comparable(&a, ordered); got != want {
		return fmt.Sprintf("\n%s\n-- got:\n%s%s-- PostgreSQL:\n%s", text, got, a.failure.message, want)
	}
	return ""
}

// Equal values may look different; DISTINCT keeps any of them, and ORDER BY
// leaves their order open: numerics with trailing zeros, floats with a sign.
var (
	negativeZero  = regexp.MustCompile(`(^|\|)-0(\||$)`)
	trailingZeros = regexp.MustCompile(`(\d)\.0+(\||$)|(\.\d*[1-9])0+(\||$)`)
)

// comparable is what must agree of an answer. Which of several faulty rows is
// met first is left open, so errors at run time are one.
func comparable(a *answer, ordered bool) string {
	if a.code != "" {
		if strings.HasPrefix(a.code, "22") {
			return "ERROR:  22xxx\n"
		}
		return "ERROR:  " + a.code + "\n"
	}
	b := answer{columns: make([]string, len(a.columns)), types: a.types}
	for _, r := range a.rows {
		r = negativeZero.ReplaceAllString(r, "${1}0$2")
		b.rows = append(b.rows, trailingZeros.ReplaceAllString(r, "$1$3$2$4"))
	}
	if !ordered {
		slices.Sort(b.rows)
	}
	return b.String()
}

func recordAnswers(t *testing.T) {
	c := newComparison(t, recordedSeed)
	pgdb := newPostgres(t, *pgAddress)
	for _, s := range c.setup {
		if a := pgdb.answer(s); a.code != "" {
			t.Fatalf("%s: %s", s, a.failure)
		}
	}
	var b strings.Builder
	for n := 0; n < recordedCount; {
		text, ordered := c.gen.statement()
		want := pgdb.answer(text)
		if leftOpen(&want) {
			continue
		}
		n++
		fmt.Fprintf(&b, "%s\n%s\x1e\n", text, comparable(&want, ordered))
	}
	if err := os.WriteFile(recorded, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

func checkRecorded(t *testing.T) {
	data, err := os.ReadFile(recorded)
	if err != nil {
		t.Fatal(err)
	}
	cases := strings.Split(strings.TrimSuffix(string(data), "\x1e\n"), "\x1e\n")
	if len(cases) != recordedCount {
		t.Fatalf("%d recorded answers, want %d: run with -pg and -record", len(cases), recordedCount)
	}
	c := newComparison(t, recordedSeed)
	for i, rec := range cases {
		was, want, _ := strings.Cut(rec, "\n")
		text, ordered := c.gen.statement()
		for skipped := 0; text != was; skipped++ { // what was left open is not recorded
			if skipped == 50 {
				t.Fatalf("the generator writes other statements than it did when answers were recorded: run with -pg and -record\n%s", was)
			}
			text, ordered = c.gen.statement()
		}
		if d := c.check(text, ordered, want); d != "" {
			t.Errorf("statement %d: %s", i, d)
		}
	}
}
