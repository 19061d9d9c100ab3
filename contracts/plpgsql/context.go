package plpgsql

import (
	"fmt"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// maxContext bounds the context of an error: deep recursion must not make it
// grow with the square of the depth.
const maxContext = 32 << 10

// withContext adds a line to the context of an error. The error is copied: its
// maker may keep it. What is not a *pgerr.Error stays as it is.
func withContext(err error, line string) error {
	e, ok := pgerr.From(err)
	if !ok || len(e.Context) > maxContext {
		return err
	}
	c := *e
	return c.AddContext(line)
}

// inSQL places an error that the planner or the executor raised for a piece of
// SQL: a position becomes one in that piece, which is reported with it;
// without a position the piece is named in the context. Skip characters in
// front of the text were not in the source; lead characters of shown stand
// before the text.
func inSQL(err error, what, shown string, skip, lead int) error {
	e, ok := pgerr.From(err)
	if !ok {
		return err
	}
	c := *e
	if c.Position > 0 {
		c.InternalQuery, c.InternalPosition, c.Position = shown, max(c.Position-skip+lead, 1), 0
		return &c
	}
	return withContext(err, fmt.Sprintf("%s \"%s\"", what, shown))
}

// compileContext is the context of errors found while compiling that have no
// position.
func compileContext(f *catalog.Func, line int, e *pgerr.Error) *pgerr.Error {
	return e.AddContext(fmt.Sprintf("compilation of PL/pgSQL function \"%s\" near line %d", f.Name, line))
}

// context is the line that the function of a frame adds to an error: where it
// was when the error came up.
func (fr *frame) context() string {
	var b strings.Builder
	b.WriteString("PL/pgSQL function ")
	b.WriteString(fr.p.fn.name)
	switch {
	case fr.phase != "" && fr.phaseLine > 0:
		fmt.Fprintf(&b, " line %d %s", fr.phaseLine, fr.phase)
	case fr.phase != "":
		b.WriteString(" " + fr.phase)
	case fr.at != nil:
		fmt.Fprintf(&b, " line %d at %s", fr.at.line, fr.at.title)
	}
	return b.String()
}

// quoteIdent quotes a name where SQL needs it.
func quoteIdent(s string) string {
	plain := s != ""
	for i := 0; i < len(s) && plain; i++ {
		c := s[i]
		plain = c >= 'a' && c <= 'z' || c == '_' || i > 0 && c >= '0' && c <= '9'
	}
	if plain {
		res, err := pg.Scan(s)
		if err == nil && len(res.Tokens) == 1 {
			switch res.Tokens[0].KeywordKind {
			case pg.KeywordKind_NO_KEYWORD, pg.KeywordKind_UNRESERVED_KEYWORD:
				return s
			}
		}
	}
	return `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
}
