package sql_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// errorCases holds faulty statements, one a line, each followed by what
// PostgreSQL says: SQLSTATE, position and message.
const errorCases = "testdata/errors.txt"

// TestErrors compares SQLSTATE, message and position with PostgreSQL's. With
// -pg and -record the file is written again.
func TestErrors(t *testing.T) {
	data, err := os.ReadFile(errorCases)
	if err != nil {
		t.Fatal(err)
	}
	c := newComparison(t, recordedSeed)
	var pgdb *postgres
	if *record {
		pgdb = newPostgres(t, *pgAddress)
		for _, s := range c.setup {
			if a := pgdb.answer(s); a.code != "" {
				t.Fatalf("%s: %s", s, a.failure)
			}
		}
	}
	var out strings.Builder
	var statement string
	n := 0
	for _, line := range strings.Split(strings.TrimSpace(string(data)), "\n") {
		want, isAnswer := strings.CutPrefix(line, "\t")
		if !isAnswer {
			if statement = line; *record {
				fmt.Fprintf(&out, "%s\n\t%s\n", line, brief(pgdb.answer(line)))
			}
			continue
		}
		n++
		if got := brief(c.db.answer(statement)); got != want && !*record {
			t.Errorf("%s\ngot:        %s\nPostgreSQL: %s", statement, got, want)
		}
	}
	if *record {
		if err := os.WriteFile(errorCases, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if n < 100 {
		t.Fatalf("only %d answers in %s: run with -pg and -record", n, errorCases)
	}
}

func brief(a answer) string {
	if a.code == "" {
		return "no error"
	}
	return fmt.Sprintf("%s %d %s", a.code, a.position, a.message)
}

// faulty lists the statements of the file of errors.
func faulty(text string) []string {
	var out []string
	for _, line := range strings.Split(text, "\n") {
		if line != "" && !strings.HasPrefix(line, "\t") {
			out = append(out, line)
		}
	}
	return out
}
