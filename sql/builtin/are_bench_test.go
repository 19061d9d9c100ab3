package builtin

import (
	"strings"
	"testing"

	"github.com/tallystick/tallystick/sql/datum"
)

// Groups are found by the own matcher within bounds that Go's regexp found, or by
// it alone where the expression needs it.
func BenchmarkRegexpReplace(b *testing.B) {
	text := strings.Repeat("order 1234 of 2020-01-02; ", 40)
	for _, c := range []struct{ name, pattern string }{
		{"plain", `\d+`}, {"groups", `(\d+)-(\d+)-(\d+)`}, {"lazy", `o.*?(\d+);`}, {"back reference", `(\d)\1`}, {"lookahead", `\d+(?=;)`},
	} {
		b.Run(c.name, func(b *testing.B) {
			f := regexpReplace(false)
			args := []datum.Datum{datum.Str(text), datum.Str(c.pattern), datum.Str("<>"), datum.Str("g")}
			for range b.N {
				if _, err := f(&Ctx{}, args); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
