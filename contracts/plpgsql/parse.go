package plpgsql

import (
	"errors"
	"sort"
	"strings"
	"unicode/utf8"

	pg "github.com/pganalyze/pg_query_go/v6"
	pgparser "github.com/pganalyze/pg_query_go/v6/parser"

	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/parse"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// maxNesting bounds how deep statements may stand inside each other.
const maxNesting = 200

// parser is a recursive-descent parser of the block structure, after
// PostgreSQL's pl_gram.y. It cuts SQL out of the text and lets PostgreSQL's
// grammar check it. Errors leave it as panics with a syntaxPanic.
type parser struct {
	src   string
	def   *catalog.Func
	toks  []token
	pos   int
	lines []int // byte offsets of the line starts
	ns    *name
	vars  []*variable
	depth int
	found *variable
	// trigger are the variables of triggerVars, for a trigger function.
	trigger []*variable
}

type syntaxPanic struct{ err error }

// parse parses the body of the function: its outermost block. All its variables
// are then in p.vars, the arguments first ($n is variable n-1).
func (p *parser) parse() (body *block, err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case syntaxPanic:
			err = r.err
		default:
			panic(r)
		}
	}()
	p.start()
	p.arguments()
	return p.function(), nil
}

func (p *parser) start() {
	switch {
	case len(p.src) > parse.MaxBytes:
		panic(syntaxPanic{pgerr.New(pgerr.StatementTooComplex, "function body of %d bytes exceeds the limit of %d bytes", len(p.src), parse.MaxBytes)})
	case !utf8.ValidString(p.src) || strings.IndexByte(p.src, 0) >= 0:
		panic(syntaxPanic{pgerr.New(pgerr.CharacterNotInRepertoire, "invalid byte sequence for encoding \"UTF8\"")})
	}
	for i := 0; i < len(p.src); i++ {
		if i == 0 || p.src[i-1] == '\n' {
			p.lines = append(p.lines, i)
		}
	}
	toks, err := tokenize(p.src)
	if err != nil {
		p.scanError(err)
	}
	p.toks = toks
}

func (p *parser) scanError(err error) {
	var pe *pgparser.Error
	if !errors.As(err, &pe) {
		panic(syntaxPanic{pgerr.New(pgerr.SyntaxError, "%v", err)})
	}
	e := pgerr.New(pgerr.SyntaxError, "%s", pe.Message)
	e.InternalQuery, e.InternalPosition = p.src, pe.Cursorpos
	panic(syntaxPanic{e})
}

// arguments makes the outermost scope: the arguments, also by number, and FOUND.
func (p *parser) arguments() {
	p.ns = &name{text: p.def.Name, label: &label{name: p.def.Name}}
	for i := range p.def.Args {
		a := &p.def.Args[i]
		v := p.newVariable(a.Name, typeRef{kind: givenType, given: a.Type})
		p.push(dollar(i+1), v)
		if a.Name != "" {
			p.push(a.Name, v)
		}
	}
	p.found = p.declare("found", typeRef{kind: namedType, text: "boolean"})
	p.found.lineNo = 0
	p.triggerVariables()
}

func dollar(n int) string {
	var b [8]byte
	i := len(b)
	for ; n > 0; n /= 10 {
		i--
		b[i] = byte('0' + n%10)
	}
	return "$" + string(b[i:])
}

func (p *parser) newVariable(name string, t typeRef) *variable {
	v := &variable{name: name, id: len(p.vars), typ: t, lineNo: p.lineOf(p.tok().start)}
	p.vars = append(p.vars, v)
	return v
}

func (p *parser) push(text string, v *variable) { p.ns = &name{outer: p.ns, text: text, v: v} }

func (p *parser) declare(text string, t typeRef) *variable {
	v := p.newVariable(text, t)
	p.push(text, v)
	return v
}

// scope opens a scope with a label, which may be unnamed.
func (p *parser) scope(l *label) { p.ns = &name{outer: p.ns, text: l.name, label: l} }

// Tokens.

func (p *parser) tok() *token { return p.peek(0) }

func (p *parser) peek(n int) *token {
	if p.pos+n >= len(p.toks) {
		if len(p.toks) == 0 {
			return &token{}
		}
		return &p.toks[len(p.toks)-1]
	}
	return &p.toks[p.pos+n]
}

func (p *parser) next() *token {
	t := p.tok()
	if p.pos < len(p.toks) {
		p.pos++
	}
	return t
}

// accept consumes the keyword if it is next.
func (p *parser) accept(word string) bool {
	if p.tok().is(word) {
		p.pos++
		return true
	}
	return false
}

func (p *parser) acceptKind(k pg.Token) bool {
	if p.tok().kind == k {
		p.pos++
		return true
	}
	return false
}

func (p *parser) expect(word string) {
	if !p.accept(word) {
		p.syntaxError()
	}
}

func (p *parser) expectKind(k pg.Token) {
	if !p.acceptKind(k) {
		p.syntaxError()
	}
}

// isOp reports whether the next token is an operator spelled like this.
func (p *parser) isOp(n int, text string) bool {
	t := p.peek(n)
	return t.kind == pg.Token_Op && p.src[t.start:t.end] == text
}

// lineOf gives the line of a byte offset, from 1.
func (p *parser) lineOf(offset int) int {
	n := sort.SearchInts(p.lines, offset+1)
	return max(n, 1)
}

func (p *parser) here() at { return at(p.lineOf(p.tok().start)) }

// Errors.

// failAt reports an error at a byte offset of the body.
func (p *parser) failAt(offset int, e *pgerr.Error) {
	if offset >= 0 {
		e.InternalQuery, e.InternalPosition = p.src, parse.Position(p.src, int32(offset))
	}
	panic(syntaxPanic{e})
}

// failLine reports an error without a position.
func (p *parser) failLine(line int, e *pgerr.Error) {
	panic(syntaxPanic{compileContext(p.def, line, e)})
}

// complain is yyerror: the message and the text of the next token.
func (p *parser) complain(message string) { p.complainAt(message, p.tok()) }

func (p *parser) complainAt(message string, t *token) {
	if t.kind == eof {
		p.failAt(t.start, pgerr.New(pgerr.SyntaxError, "%s at end of input", message))
	}
	p.failAt(t.start, pgerr.New(pgerr.SyntaxError, "%s at or near \"%s\"", message, p.src[t.start:t.end]))
}

func (p *parser) syntaxError() { p.complain("syntax error") }

// Names.

// lookup finds the variable that parts refer to and how many of the parts name
// it (the rest are fields); nil if there is none. In local mode only the
// innermost scope is searched.
func lookup(ns *name, parts []string, local bool) (v *variable, used int) {
	for ; ns != nil; ns = ns.outer {
		// The entries of one scope, then its label.
		first := ns
		for ; ns != nil && ns.v != nil; ns = ns.outer {
			if ns.text == parts[0] && (len(parts) == 1 || mayHaveFields(ns.v)) {
				return ns.v, 1
			}
		}
		if local || ns == nil {
			return nil, 0
		}
		if len(parts) > 1 && ns.text == parts[0] && ns.text != "" {
			for e := first; e != ns; e = e.outer {
				if e.text == parts[1] && (len(parts) == 2 || mayHaveFields(e.v)) {
					return e.v, 2
				}
			}
		}
	}
	return nil, 0
}

// mayHaveFields reports whether v.f can be a field: what is certain to be a
// scalar does not hide a label or a table of the same name.
func mayHaveFields(v *variable) bool {
	return v.typ.kind != copyType && v.typ.kind != cursorType && v.typ.kind != dynamicType && !v.typ.scalar()
}

// scalar reports whether the type is spelled as no table could be.
func (t *typeRef) scalar() bool {
	if t.kind == givenType {
		return !isRow(t.given)
	}
	if t.kind != namedType || t.text == "" {
		return false
	}
	if d, ok := typeByWord(t.text); ok {
		return d.Kind != datum.Composite && d != datum.Record
	}
	return strings.ContainsAny(t.text, "([ ")
}

// findLabel resolves the label of EXIT or CONTINUE; with an empty name, the
// innermost loop.
func (p *parser) findLabel(text string) *label {
	for ns := p.ns; ns != nil; ns = ns.outer {
		if ns.v != nil || ns.label == nil {
			continue
		}
		if text == "" && ns.label.loop || text != "" && ns.text == text {
			return ns.label
		}
	}
	return nil
}

// Pieces of SQL.

// cut reads up to one of the stop words or kinds at the top level of
// parentheses and returns the text from byte start on. The stop token is not
// consumed. want says in errors what is missing.
func (p *parser) cut(start int, isExpr bool, want string, stop func(*token) bool) (text string, from int) {
	if start < 0 {
		start = p.tok().start
	}
	depth := 0
	end := start
	for {
		t := p.tok()
		if depth == 0 && stop(t) {
			break
		}
		switch t.kind {
		case tokParenOpen, tokBracketOpen:
			depth++
		case tokParenClose, tokBracketClose:
			depth--
			if depth < 0 {
				p.complain("mismatched parentheses")
			}
		case eof, tokSemicolon:
			if depth != 0 {
				p.complain("mismatched parentheses")
			}
			what := "SQL statement"
			if isExpr {
				what = "SQL expression"
			}
			p.failAt(t.start, pgerr.New(pgerr.SyntaxError, "missing \"%s\" at end of %s", want, what))
		}
		end = t.end
		p.pos++
	}
	if end <= start {
		if isExpr {
			p.complain("missing expression")
		}
		p.complain("missing SQL statement")
	}
	return p.src[start:end], start
}

// expression reads an expression up to a stop token.
func (p *parser) expression(want string, stop func(*token) bool) *expr {
	text, from := p.cut(-1, true, want, stop)
	return p.newExpr(text, from)
}

func (p *parser) newExpr(text string, from int) *expr {
	e := &expr{text: text, pos: from, ns: p.ns, mode: exprValue}
	if err := checkExpression(text); err != nil {
		p.sqlError(err, from)
	}
	return e
}

// checkExpression checks the syntax of an expression. PL/pgSQL takes whatever
// may follow SELECT: count(*) FROM t is an expression too.
func checkExpression(text string) error {
	_, err := parse.Expression(text)
	if err == nil {
		return nil
	}
	if _, err2 := parse.Expression(asSubquery(text)); err2 == nil {
		return nil
	}
	return err
}

const subqueryPrefix = "(SELECT "

func asSubquery(text string) string { return subqueryPrefix + text + ")" }

// sqlError reports an error of the grammar in a piece of SQL cut out at from.
func (p *parser) sqlError(err error, from int) {
	e, ok := pgerr.From(err)
	if !ok {
		panic(syntaxPanic{err})
	}
	if e.Position > 0 {
		before := utf8.RuneCountInString(p.src[:from])
		e.InternalQuery, e.InternalPosition, e.Position = p.src, before+e.Position, 0
	}
	panic(syntaxPanic{e})
}

// statement makes a piece of SQL that is a whole statement.
func (p *parser) statement(text string, from int) *expr {
	e := &expr{text: text, pos: from, ns: p.ns, mode: exprStatement}
	st, err := parse.One(text)
	if err != nil {
		p.sqlError(err, from)
	}
	e.whole = st
	p.checkKind(st, from)
	return e
}

// checkKind refuses what is not a query or a change of rows.
func (p *parser) checkKind(st parse.Statement, from int) {
	switch st.Node.Node.(type) {
	case *pg.Node_SelectStmt, *pg.Node_InsertStmt, *pg.Node_UpdateStmt, *pg.Node_DeleteStmt, *pg.Node_CallStmt:
		return
	}
	p.failAt(from, refusedStatement(st))
}

// refusedStatement reports a statement that has no place in a function.
func refusedStatement(st parse.Statement) *pgerr.Error {
	verb := st.Text
	if i := strings.IndexAny(verb, " \t\r\n\f\v(;"); i > 0 {
		verb = verb[:i]
	}
	return pgerr.New(pgerr.FeatureNotSupported, "%s is not allowed in a function", strings.ToUpper(parse.Clip(verb))).
		WithHint("Functions read and change rows: SELECT, INSERT, UPDATE, DELETE and CALL. Objects are changed by deploying a script.")
}

func kindStop(kinds ...pg.Token) func(*token) bool {
	return func(t *token) bool {
		for _, k := range kinds {
			if t.kind == k {
				return true
			}
		}
		return false
	}
}

func wordStop(word string) func(*token) bool {
	return func(t *token) bool { return t.is(word) }
}

func anyStop(list ...func(*token) bool) func(*token) bool {
	return func(t *token) bool {
		for _, f := range list {
			if f(t) {
				return true
			}
		}
		return false
	}
}

var semicolonStop = kindStop(tokSemicolon)
