package sql_test

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/tallystick/tallystick/sql/parse"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// FuzzStatement runs arbitrary text as statements: whatever it is, the engine
// answers with rows or with an error of SQL, never with a panic or a fault.
func FuzzStatement(f *testing.F) {
	for _, s := range seedStatements(f) {
		f.Add(s)
	}
	shared := newComparison(f, 1) // for statements that change nothing
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 2000 {
			return
		}
		list, err := parse.Statements(text)
		if err != nil {
			return
		}
		c := shared
		if changes(list) {
			c = newComparison(t, 1)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		c.db.interrupted = func() error {
			if ctx.Err() != nil {
				return pgerr.New(pgerr.QueryCanceled, "canceling statement due to statement timeout")
			}
			return nil
		}
		for _, st := range list {
			if a := c.db.answerIn(ctx, st.Text); a.code == "PANIC" || a.code == "FAULT" {
				t.Fatalf("%s\n%s", st.Text, a.failure)
			}
		}
	})
}

// changes tells whether statements may leave another database or session behind.
func changes(list []parse.Statement) bool {
	for _, st := range list {
		if st.Node.GetSelectStmt() == nil {
			return true
		}
	}
	return false
}

// seedStatements are the statements of the scripts, the faulty ones and some
// that the generator writes.
func seedStatements(t testing.TB) []string {
	var out []string
	files, err := filepath.Glob("testdata/pg/*.sql")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range append(files, errorCases) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if file == errorCases {
			out = append(out, faulty(string(text))...)
			continue
		}
		list, err := parse.Statements(string(text))
		if err != nil {
			t.Fatal(err)
		}
		for _, st := range list {
			out = append(out, st.Text)
		}
	}
	g := &generator{r: rand.New(rand.NewPCG(1, 2))}
	for range 100 {
		s, _ := g.statement()
		out = append(out, s)
	}
	return out
}
