package plpgsql

import (
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

func (p *parser) returnStatement(line at) stmt {
	start := p.next()
	switch t := p.tok(); {
	case t.is("next"):
		p.next()
		return p.returnNext(line, start)
	case t.is("query"):
		p.next()
		return p.returnQuery(line, start)
	}
	f := p.def
	t := p.tok()
	if why := returnRefusal(f); why != "" {
		if t.kind != tokSemicolon {
			e := pgerr.New(pgerr.DatatypeMismatch, "RETURN cannot have a parameter in %s", why)
			if f.RetSet {
				e = e.WithHint("Use RETURN NEXT or RETURN QUERY.")
			}
			p.failAt(t.start, e)
		}
		p.next()
		return &returnStmt{at: line}
	}
	s := &returnStmt{at: line}
	s.value, s.v = p.returned()
	return s
}

// returnRefusal names the kind of function whose RETURN takes no value.
func returnRefusal(f *catalog.Func) string {
	switch {
	case f.RetSet:
		return "function returning set"
	case f.Kind == catalog.Procedure && len(f.OutArgs()) == 0:
		return "a procedure"
	case len(f.OutArgs()) > 0:
		return "function with OUT parameters"
	case f.Ret.Desc == datum.Void:
		return "function returning void"
	}
	return ""
}

// returned parses a value; a bare variable is recognized, so that a record is
// returned as it is.
func (p *parser) returned() (*expr, *variable) {
	var v *variable
	if t := p.tok(); (t.ident() || t.kind == pg.Token_PARAM) && p.peek(1).kind == tokSemicolon {
		text := t.word
		if t.kind == pg.Token_PARAM {
			text = p.src[t.start:t.end]
		}
		v, _ = lookup(p.ns, []string{text}, false)
	}
	e := p.expression(";", semicolonStop)
	p.next()
	return e, v
}

func (p *parser) returnNext(line at, t *token) stmt {
	f := p.def
	if !f.RetSet {
		p.failAt(t.start, pgerr.New(pgerr.DatatypeMismatch, "cannot use RETURN NEXT in a non-SETOF function"))
	}
	s := &returnNextStmt{at: line}
	if len(f.OutArgs()) > 0 {
		if k := p.tok(); k.kind != tokSemicolon {
			p.failAt(k.start, pgerr.New(pgerr.DatatypeMismatch, "RETURN NEXT cannot have a parameter in function with OUT parameters"))
		}
		p.next()
		return s
	}
	s.value, s.v = p.returned()
	return s
}

func (p *parser) returnQuery(line at, t *token) stmt {
	if !p.def.RetSet {
		p.failAt(t.start, pgerr.New(pgerr.DatatypeMismatch, "cannot use RETURN QUERY in a non-SETOF function"))
	}
	s := &returnQueryStmt{at: line}
	if !p.accept("execute") {
		text, from := p.cut(-1, false, ";", semicolonStop)
		s.query = p.statement(text, from)
		p.next()
		return s
	}
	s.dyn = true
	s.query = p.expression("; or USING", anyStop(semicolonStop, wordStop("using")))
	if p.accept("using") {
		s.using = p.exprList(", or ;", semicolonStop)
	}
	p.expectKind(tokSemicolon)
	return s
}

var raiseLevels = map[string]string{
	"exception": "ERROR", "warning": "WARNING", "notice": "NOTICE", "info": "INFO", "log": "LOG", "debug": "DEBUG",
}

func (p *parser) raiseStatement(line at) stmt {
	p.next()
	s := &raiseStmt{at: line, level: "ERROR"}
	if p.acceptKind(tokSemicolon) {
		s.bare = true
		return s
	}
	if l, ok := raiseLevels[p.tok().word]; ok && !p.tok().quoted {
		s.level = l
		p.next()
	}
	switch t := p.tok(); {
	case t.kind == pg.Token_SCONST:
		p.raiseFormat(s, line)
	case t.is("using"):
	case t.is("sqlstate"):
		p.next()
		s.code = p.sqlstate()
		s.name = string(s.code)
	case t.ident():
		p.next()
		codes := conditions[t.word]
		if codes == nil {
			p.failLine(p.lineOf(t.start), pgerr.New(pgerr.UndefinedObject, "unrecognized exception condition \"%s\"", t.word))
		}
		s.code, s.name = codes[0], t.word
	default:
		p.syntaxError()
	}
	if p.accept("using") {
		p.raiseOptions(s)
	}
	p.expectKind(tokSemicolon)
	return s
}

// raiseFormat parses the format and its arguments and counts the placeholders.
func (p *parser) raiseFormat(s *raiseStmt, line at) {
	format := p.literal()
	s.format = splitFormat(format)
	for p.acceptKind(tokComma) {
		s.args = append(s.args, p.expression(", or ; or USING",
			anyStop(kindStop(tokComma, tokSemicolon), wordStop("using"))))
	}
	switch n := len(s.format) - 1; {
	case n < len(s.args):
		p.failLine(line.line(), pgerr.New(pgerr.SyntaxError, "too many parameters specified for RAISE"))
	case n > len(s.args):
		p.failLine(line.line(), pgerr.New(pgerr.SyntaxError, "too few parameters specified for RAISE"))
	}
}

// splitFormat cuts a format at its placeholders; %% stands for a percent sign.
func splitFormat(f string) []string {
	var out []string
	var b strings.Builder
	for i := 0; i < len(f); i++ {
		switch {
		case f[i] != '%':
			b.WriteByte(f[i])
		case i+1 < len(f) && f[i+1] == '%':
			b.WriteByte('%')
			i++
		default:
			out = append(out, b.String())
			b.Reset()
		}
	}
	return append(out, b.String())
}

var raiseOptionNames = map[string]bool{
	"errcode": true, "message": true, "detail": true, "hint": true, "column": true,
	"constraint": true, "datatype": true, "table": true, "schema": true,
}

func (p *parser) raiseOptions(s *raiseStmt) {
	for {
		t := p.tok()
		if !raiseOptionNames[t.word] || t.quoted {
			p.complain("unrecognized RAISE statement option")
		}
		p.next()
		if !p.acceptKind(tokEquals) && !p.acceptKind(pg.Token_COLON_EQUALS) {
			p.complain("syntax error, expected \"=\"")
		}
		v := p.expression(", or ;", kindStop(tokComma, tokSemicolon))
		s.options = append(s.options, raiseOption{name: t.word, value: v})
		if !p.acceptKind(tokComma) {
			return
		}
	}
}

func (p *parser) assertStatement(line at) stmt {
	p.next()
	s := &assertStmt{at: line}
	s.cond = p.expression(", or ;", kindStop(tokComma, tokSemicolon))
	if p.acceptKind(tokComma) {
		s.message = p.expression(";", semicolonStop)
	}
	p.expectKind(tokSemicolon)
	return s
}

func (p *parser) performStatement(line at) stmt {
	start := p.next()
	if p.tok().kind == tokSemicolon {
		p.complain("missing expression")
	}
	text, _ := p.cut(start.end, false, ";", semicolonStop)
	p.next()
	// SELECT is one letter shorter than PERFORM: the text starts a byte later.
	return &performStmt{at: line, query: p.statement("SELECT"+text, start.start+1)}
}

func (p *parser) executeStatement(line at) stmt {
	p.next()
	s := &executeStmt{at: line}
	stop := anyStop(semicolonStop, wordStop("into"), wordStop("using"))
	s.query = p.expression("INTO or USING or ;", stop)
	for {
		switch {
		case p.tok().is("into") && s.into == nil:
			p.next()
			s.into = p.intoClause()
		case p.tok().is("using") && s.using == nil:
			p.next()
			s.using = p.exprList(", or ;", stop)
		case p.acceptKind(tokSemicolon):
			return s
		default:
			p.syntaxError()
		}
	}
}

// The items of GET DIAGNOSTICS, those of the present and of the handled error.
var (
	currentItems = map[string]bool{"row_count": true, "pg_context": true}
	stackedItems = map[string]bool{
		"returned_sqlstate": true, "message_text": true, "pg_exception_detail": true, "pg_exception_hint": true,
		"pg_exception_context": true, "column_name": true, "constraint_name": true, "pg_datatype_name": true,
		"table_name": true, "schema_name": true,
	}
)

func (p *parser) diagStatement(line at) stmt {
	p.next()
	s := &diagStmt{at: line}
	if p.accept("stacked") {
		s.stacked = true
	} else {
		p.accept("current")
	}
	p.expect("diagnostics")
	for {
		tg := p.simpleTarget()
		if !p.acceptKind(tokEquals) && !p.acceptKind(pg.Token_COLON_EQUALS) {
			p.syntaxError()
		}
		t := p.tok()
		if !currentItems[t.word] && !stackedItems[t.word] || t.quoted {
			p.complain("unrecognized GET DIAGNOSTICS item")
		}
		if s.stacked && !stackedItems[t.word] {
			p.failAt(t.start, pgerr.New(pgerr.SyntaxError, "diagnostics item %s is not allowed in GET STACKED DIAGNOSTICS", strings.ToUpper(t.word)))
		}
		if !s.stacked && !currentItems[t.word] {
			p.failAt(t.start, pgerr.New(pgerr.SyntaxError, "diagnostics item %s is not allowed in GET CURRENT DIAGNOSTICS", strings.ToUpper(t.word)))
		}
		p.next()
		s.items = append(s.items, diagItem{target: tg, kind: t.word})
		if p.acceptKind(tokSemicolon) {
			return s
		}
		p.expectKind(tokComma)
	}
}

// cursorName parses the name of a cursor variable.
func (p *parser) cursorName() (*variable, *token) {
	t := p.tok()
	if !t.ident() && t.kind != pg.Token_PARAM {
		p.syntaxError()
	}
	parts, _ := p.nameParts()
	v, used := lookup(p.ns, parts, false)
	switch {
	case v == nil || used != len(parts):
		p.failAt(t.start, pgerr.New(pgerr.SyntaxError, "\"%s\" is not a known variable", strings.Join(parts, ".")))
	case v.typ.kind != cursorType:
		p.failAt(t.start, pgerr.New(pgerr.DatatypeMismatch, "variable \"%s\" must be of type cursor or refcursor", v.name))
	}
	return v, t
}

// cursorArgs parses the arguments of a bound cursor, in the order declared.
func (p *parser) cursorArgs(v *variable, at *token) []*expr {
	want := v.cursor.args
	if p.tok().kind != tokParenOpen {
		if len(want) > 0 {
			p.failAt(at.start, pgerr.New(pgerr.SyntaxError, "cursor \"%s\" has arguments", v.name))
		}
		return nil
	}
	if len(want) == 0 {
		p.failAt(at.start, pgerr.New(pgerr.SyntaxError, "cursor \"%s\" has no arguments", v.name))
	}
	open := p.next()
	args := make([]*expr, len(want))
	for i := 0; ; i++ {
		k := i
		if t := p.tok(); t.word != "" && (p.peek(1).kind == pg.Token_COLON_EQUALS || p.peek(1).kind == pg.Token_EQUALS_GREATER) {
			k = p.cursorArgNamed(v, t)
			p.pos += 2
		}
		if k >= len(want) {
			p.failAt(open.start, pgerr.New(pgerr.SyntaxError, "too many arguments for cursor \"%s\"", v.name))
		}
		if args[k] != nil {
			p.failAt(open.start, pgerr.New(pgerr.SyntaxError, "value for parameter \"%s\" of cursor \"%s\" specified more than once", want[k].name, v.name))
		}
		args[k] = p.expression(",\" or \")", kindStop(tokComma, tokParenClose))
		if p.acceptKind(tokParenClose) {
			break
		}
		p.next()
	}
	for _, a := range args {
		if a == nil {
			p.failAt(open.start, pgerr.New(pgerr.SyntaxError, "not enough arguments for cursor \"%s\"", v.name))
		}
	}
	return args
}

func (p *parser) cursorArgNamed(v *variable, t *token) int {
	for i, a := range v.cursor.args {
		if a.name == t.word {
			return i
		}
	}
	p.failAt(t.start, pgerr.New(pgerr.SyntaxError, "cursor \"%s\" has no argument named \"%s\"", v.name, t.word))
	return 0
}

func (p *parser) openStatement(line at) stmt {
	p.next()
	s := &openStmt{at: line}
	v, t := p.cursorName()
	s.cursor = v
	if v.cursor != nil {
		s.args = p.cursorArgs(v, t)
		p.expectKind(tokSemicolon)
		return s
	}
	if p.accept("no") {
		p.expect("scroll")
	} else if p.tok().is("scroll") {
		p.failAt(p.tok().start, pgerr.NotBuilt("SCROLL cursors are not supported"))
	}
	if !p.accept("for") {
		p.complain("syntax error, expected \"FOR\"")
	}
	if !p.accept("execute") {
		text, from := p.cut(-1, false, ";", semicolonStop)
		s.query = p.statement(text, from)
		p.next()
		return s
	}
	s.dyn = true
	s.query = p.expression("; or USING", anyStop(semicolonStop, wordStop("using")))
	if p.accept("using") {
		s.using = p.exprList(", or ;", semicolonStop)
	}
	p.expectKind(tokSemicolon)
	return s
}

func (p *parser) fetchStatement(line at) stmt {
	move := p.next().is("move")
	s := &fetchStmt{at: line}
	p.direction(s, move)
	s.cursor, _ = p.cursorName()
	if !move {
		p.expect("into")
		s.into = p.intoClause()
	}
	p.expectKind(tokSemicolon)
	return s
}

// direction parses [direction FROM | IN]; cursors go forward only.
func (p *parser) direction(s *fetchStmt, move bool) {
	from := anyStop(wordStop("from"), wordStop("in"))
	t := p.tok()
	switch t.word {
	case "prior", "first", "last", "absolute", "relative", "backward":
		if k := p.peek(1); !k.is("into") && k.kind != tokSemicolon {
			p.failAt(t.start, pgerr.NotBuilt("FETCH %s is not supported: cursors go forward only", strings.ToUpper(t.word)))
		}
	case "next":
		p.next()
	case "all":
		p.next()
		s.all = true
	case "forward":
		p.next()
		switch k := p.tok(); {
		case from(k):
		case k.is("all"):
			p.next()
			s.all = true
		case !k.ident() || from(p.peek(1)):
			s.count = p.expression("FROM or IN", from)
		}
	default:
		if t.kind == pg.Token_ICONST {
			s.count = p.expression("FROM or IN", from)
		}
	}
	if !p.accept("from") {
		p.accept("in")
	}
	if !move && (s.all || s.count != nil) {
		p.failAt(t.start, pgerr.New(pgerr.FeatureNotSupported, "FETCH statement cannot return multiple rows"))
	}
}

func (p *parser) closeStatement(line at) stmt {
	p.next()
	v, _ := p.cursorName()
	p.expectKind(tokSemicolon)
	return &closeStmt{at: line, cursor: v}
}
