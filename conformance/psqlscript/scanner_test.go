package psqlscript

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// TestScanner reads scripts; "values" gives variables to the next one, and
// "copy" says which statements (from 1) are asked for data.
func TestScanner(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		values := map[string]string{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "values":
				clear(values)
				for _, line := range strings.Split(d.Input, "\n") {
					name, v, _ := strings.Cut(line, "=")
					values[name] = v
				}
				return ""
			case "scan":
				return scan(d.Input, d.HasArg("copy"), values)
			}
			return "unknown command"
		})
	})
}

func scan(script string, copies bool, values map[string]string) string {
	s := New(script)
	expand := func(t Text) string {
		return t.Expand(func(n string) (string, bool) { v, ok := values[n]; return v, ok })
	}
	var b strings.Builder
	for {
		it, ok := s.Next()
		if !ok {
			return b.String()
		}
		fmt.Fprintf(&b, "%d:", it.Line)
		if it.SQL != nil {
			fmt.Fprintf(&b, " %q", expand(it.SQL))
		}
		if it.Command != "" {
			fmt.Fprintf(&b, " \\%s %q", it.Command, expand(it.Args))
		}
		b.WriteByte('\n')
		if copies && strings.Contains(strings.ToLower(expand(it.SQL)), "from stdin") {
			fmt.Fprintf(&b, "data %q\n", s.CopyData())
		}
	}
}

// FuzzScanner: every script comes to its end, and no text is made up.
func FuzzScanner(f *testing.F) {
	for _, s := range []string{"select 1;", `\if :x \else`, "$a$;$a$;", "create function f() begin atomic; case end; end;", "E'\\';", "/*/**/;*/;", `:'a:"b:{?c}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, script string) {
		s := New(script)
		total := 0
		for n := 0; ; n++ {
			it, ok := s.Next()
			if !ok {
				break
			}
			if n > len(script) {
				t.Fatalf("more items than bytes: %q", script)
			}
			total += len(it.SQL.raw()) + len(it.Args.raw())
		}
		if total > len(script) {
			t.Fatalf("%d bytes out of %d", total, len(script))
		}
	})
}
