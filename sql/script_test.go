package sql_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/tallystick/tallystick/sql/parse"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// session runs a script on the engine and prints rows, and errors with all
// that a client sees of them.
func (db *database) transcript(text string) string {
	var b strings.Builder
	list, err := parse.Statements(text)
	if err != nil {
		return report(err)
	}
	for _, st := range list {
		if err := db.statement(&b, st); err != nil {
			db.session.Fail(err)
			b.WriteString(report(err))
		}
	}
	if b.Len() == 0 {
		return "ok\n"
	}
	return b.String()
}

func report(err error) string {
	e, ok := pgerr.From(err)
	if !ok {
		return fmt.Sprintf("FAULT: %v\n", err)
	}
	s := fmt.Sprintf("ERROR %s: %s\n", e.Code, e.Message)
	for _, more := range []struct{ name, text string }{{"DETAIL", e.Detail}, {"HINT", e.Hint}, {"CONTEXT", e.Context}} {
		if more.text != "" {
			s += more.name + ": " + more.text + "\n"
		}
	}
	return s
}

var times = regexp.MustCompile(`(time=)[0-9.]+\.\.[0-9.]+|(Time: )[0-9.]+ ms|(Time": )[0-9.]+`)

// TestExplain compares explanations with testdata/explain.
func TestExplain(t *testing.T) {
	db := newDatabase(t)
	datadriven.RunTest(t, "testdata/explain", func(t *testing.T, d *datadriven.TestData) string {
		return times.ReplaceAllString(db.transcript(d.Input), "${1}${2}${3}#")
	})
}
