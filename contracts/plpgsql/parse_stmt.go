package plpgsql

import (
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/tallystick/tallystick/sql/parse"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// bodyEnd are the words that end a list of statements.
var bodyEnd = []string{"end", "exception", "else", "elsif", "elseif", "when"}

// body parses statements up to a word that ends the list.
func (p *parser) body() []stmt {
	if p.depth++; p.depth > maxNesting {
		p.failAt(p.tok().start, pgerr.New(pgerr.StatementTooComplex, "statements nest more than %d levels", maxNesting))
	}
	defer func() { p.depth-- }()
	var list []stmt
	for {
		t := p.tok()
		if t.kind == eof {
			p.syntaxError()
		}
		if !t.quoted && slices.Contains(bodyEnd, t.word) && !p.assigns(1) {
			return list
		}
		if s := p.statementNode(); s != nil {
			list = append(list, s)
		}
	}
}

// assigns reports whether the token n places ahead can only follow the name of
// a variable.
func (p *parser) assigns(n int) bool {
	switch p.peek(n).kind {
	case tokEquals, pg.Token_COLON_EQUALS, tokBracketOpen:
		return true
	}
	return false
}

// statementNode parses one statement with its semicolon; nil for NULL.
func (p *parser) statementNode() stmt {
	t := p.tok()
	if p.isOp(0, "<<") {
		return p.labelled()
	}
	if t.kind == pg.Token_PARAM || t.quoted || p.assigns(1) || t.ident() && p.peek(1).kind == tokDot {
		if !reserved[t.word] || t.quoted {
			return p.assignment()
		}
	}
	line := p.here()
	switch t.word {
	case "declare", "begin":
		b := p.block(&label{})
		p.expectKind(tokSemicolon)
		return b
	case "loop", "while", "for", "foreach":
		return p.loop(&label{loop: true})
	case "if":
		return p.ifStatement(line)
	case "case":
		return p.caseStatement(line)
	case "exit", "continue":
		return p.exitStatement(line)
	case "return":
		return p.returnStatement(line)
	case "raise":
		return p.raiseStatement(line)
	case "assert":
		return p.assertStatement(line)
	case "perform":
		return p.performStatement(line)
	case "execute":
		return p.executeStatement(line)
	case "get":
		return p.diagStatement(line)
	case "open":
		return p.openStatement(line)
	case "fetch", "move":
		return p.fetchStatement(line)
	case "close":
		return p.closeStatement(line)
	case "null":
		p.next()
		p.expectKind(tokSemicolon)
		return nil
	case "commit", "rollback":
		p.failAt(t.start, pgerr.New(pgerr.FeatureNotSupported, "%s is not allowed in a function", strings.ToUpper(t.word)).
			WithHint("A call is one transaction: raise an exception to undo it, or use a block with an EXCEPTION clause."))
	case "":
		p.syntaxError()
	}
	if reserved[t.word] {
		p.syntaxError()
	}
	return p.sqlStatement(line)
}

// labelled parses a block or loop with a label.
func (p *parser) labelled() stmt {
	l := p.label(false)
	switch t := p.tok(); {
	case t.is("declare"), t.is("begin"):
		b := p.block(l)
		p.expectKind(tokSemicolon)
		return b
	case t.is("loop"), t.is("while"), t.is("for"), t.is("foreach"):
		l.loop = true
		return p.loop(l)
	}
	p.syntaxError()
	return nil
}

// sqlStatement parses a SQL statement, taking its INTO clause out. The clause
// is blanked, so that positions in the rest stay right.
func (p *parser) sqlStatement(line at) stmt {
	first := p.tok()
	if first.is("do") {
		p.failAt(first.start, pgerr.NotBuilt("DO is not supported in a function"))
	}
	if k := p.peek(1).kind; k == tokDot || p.assigns(1) {
		p.notVariable(first)
	}
	var in *into
	var text []byte
	from, depth := first.start, 0
	end := from
	prev := ""
	for {
		t := p.tok()
		switch t.kind {
		case eof:
			p.complain("unexpected end of function definition")
		case tokParenOpen, tokBracketOpen:
			depth++
		case tokParenClose, tokBracketClose:
			depth--
		}
		if t.kind == tokSemicolon && depth <= 0 {
			break
		}
		if t.is("into") && prev != "insert" && prev != "merge" {
			if in != nil {
				p.complain("INTO specified more than once")
			}
			text = append(text, p.src[from:t.start]...)
			p.next()
			in = p.intoClause()
			from = p.tok().start
			text = append(text, strings.Repeat(" ", from-t.start)...)
			prev = ""
			end = max(end, from)
			continue
		}
		prev, end = t.word, t.end
		p.next()
	}
	text = append(text, p.src[from:max(end, from)]...)
	p.next()
	q := p.statement(strings.TrimRight(string(text), " \t\r\n\f\v"), first.start)
	if q.whole.Node.GetCallStmt() != nil {
		if in != nil {
			p.complainAt("syntax error", first)
		}
		return &callStmt{at: line, query: q}
	}
	return &sqlStmt{at: line, query: q, into: in}
}

// notVariable reports the name at t, which stands where a variable must.
func (p *parser) notVariable(t *token) {
	for i := range p.toks {
		if &p.toks[i] == t {
			p.pos = i
			break
		}
	}
	parts, ok := p.nameParts()
	if !ok {
		p.complainAt("syntax error", t)
	}
	p.failAt(t.start, pgerr.New(pgerr.SyntaxError, "\"%s\" is not a known variable", strings.Join(parts, ".")))
}

// intoClause parses [STRICT] target, ...
func (p *parser) intoClause() *into {
	in := &into{strict: p.accept("strict")}
	for {
		in.targets = append(in.targets, p.simpleTarget())
		if !p.acceptKind(tokComma) {
			break
		}
	}
	if len(in.targets) > 1 {
		for _, t := range in.targets {
			if t.v.typ.kind == recordType && t.path == nil || t.v.typ.kind == rowOf && t.path == nil {
				p.complain("record variable cannot be part of multiple-item INTO list")
			}
		}
	}
	return in
}

// simpleTarget parses a variable with an optional field.
func (p *parser) simpleTarget() target {
	t := p.tok()
	if !t.ident() && t.kind != pg.Token_PARAM {
		p.syntaxError()
	}
	parts, _ := p.nameParts()
	return p.resolveTarget(t, parts)
}

func (p *parser) resolveTarget(t *token, parts []string) target {
	v, used := lookup(p.ns, parts, false)
	if v == nil {
		p.failAt(t.start, pgerr.New(pgerr.SyntaxError, "\"%s\" is not a known variable", strings.Join(parts, ".")))
	}
	if v.constant {
		p.failAt(t.start, pgerr.New("22005", "variable \"%s\" is declared CONSTANT", v.name))
	}
	tg := target{v: v}
	for _, f := range parts[used:] {
		tg.path = append(tg.path, step{field: f})
	}
	return tg
}

// assignment parses target := value.
func (p *parser) assignment() stmt {
	line, start := p.here(), p.tok()
	parts, ok := p.nameParts()
	if !ok {
		p.syntaxError()
	}
	tg := p.resolveTarget(start, parts)
	for p.tok().kind == tokBracketOpen || p.tok().kind == tokDot {
		if p.acceptKind(tokDot) {
			if p.tok().word == "" {
				p.syntaxError()
			}
			tg.path = append(tg.path, step{field: p.next().word})
			continue
		}
		p.next()
		tg.path = append(tg.path, p.subscript())
	}
	if !p.acceptKind(tokEquals) && !p.acceptKind(pg.Token_COLON_EQUALS) {
		p.syntaxError()
	}
	value := p.expression(";", semicolonStop)
	value.assign = p.src[start.start : value.pos+len(value.text)]
	p.next()
	return &assignStmt{at: line, target: tg, value: value}
}

// subscript parses what stands between brackets, and the closing one.
func (p *parser) subscript() step {
	stop := kindStop(tokBracketClose, tokColon)
	var s step
	if p.tok().kind != tokColon {
		s.index = p.expression("]", stop)
	}
	if p.acceptKind(tokColon) {
		s.slice, s.lo, s.index = true, s.index, nil
		if p.tok().kind != tokBracketClose {
			s.hi = p.expression("]", kindStop(tokBracketClose))
		}
	}
	p.expectKind(tokBracketClose)
	return s
}

func (p *parser) ifStatement(line at) stmt {
	s := &ifStmt{at: line}
	for {
		p.next() // IF or ELSIF
		a := arm{cond: p.expression("THEN", wordStop("then"))}
		p.next()
		a.body = p.body()
		s.arms = append(s.arms, a)
		if !p.tok().is("elsif") && !p.tok().is("elseif") {
			break
		}
	}
	if p.accept("else") {
		s.elseBody = p.body()
	}
	p.expect("end")
	p.expect("if")
	p.expectKind(tokSemicolon)
	return s
}

func (p *parser) caseStatement(line at) stmt {
	s := &caseStmt{at: line}
	p.next()
	outer := p.ns
	if !p.tok().is("when") {
		s.arg = p.expression("WHEN", wordStop("when"))
		// The name is quoted in the comparisons and cannot clash with a user's.
		s.argVar = p.declare("__Case__Variable_"+dollar(len(p.vars) + 1)[1:]+"__", typeRef{kind: dynamicType})
	}
	if !p.tok().is("when") {
		p.syntaxError()
	}
	for p.accept("when") {
		var a arm
		if s.arg == nil {
			a.cond = p.expression("THEN", wordStop("then"))
		} else {
			text, from := p.cut(-1, true, "THEN", wordStop("then"))
			p.checkList(text, from)
			a.cond = &expr{text: "\"" + s.argVar.name + "\" IN (" + text + ")", pos: from, ns: p.ns}
		}
		p.expect("then")
		a.body = p.body()
		s.arms = append(s.arms, a)
	}
	if p.accept("else") {
		s.hasElse, s.elseBody = true, p.body()
	}
	p.expect("end")
	p.expect("case")
	p.expectKind(tokSemicolon)
	p.ns = outer
	return s
}

// checkList checks the syntax of a list of expressions.
func (p *parser) checkList(text string, from int) {
	const before = "SELECT "
	_, err := parse.One(before + text)
	if err == nil {
		_, err = parse.Expression("1 IN (" + text + ")")
	} else if e, ok := pgerr.From(err); ok && e.Position > len(before) {
		e.Position -= len(before)
	}
	if err != nil {
		p.sqlError(err, from)
	}
}

// loop parses LOOP, WHILE, FOR and FOREACH.
func (p *parser) loop(l *label) stmt {
	line, outer := p.here(), p.ns
	p.scope(l)
	var s stmt
	switch p.next().word {
	case "loop":
		s = &loopStmt{at: line, label: l, body: p.loopBody(l)}
	case "while":
		cond := p.expression("LOOP", wordStop("loop"))
		p.next()
		s = &loopStmt{at: line, label: l, cond: cond, body: p.loopBody(l)}
	case "for":
		s = p.forLoop(line, l)
	default:
		s = p.foreachLoop(line, l)
	}
	p.ns = outer
	return s
}

// loopBody parses from behind LOOP to the semicolon after END LOOP.
func (p *parser) loopBody(l *label) []stmt {
	body := p.body()
	p.expect("end")
	p.expect("loop")
	p.endLabel(l)
	p.expectKind(tokSemicolon)
	return body
}

// loopTarget is a name, or names, before IN.
type loopTarget struct {
	tok   *token
	names [][]string
	first []*token
}

func (p *parser) loopTarget() loopTarget {
	lt := loopTarget{tok: p.tok()}
	for {
		t := p.tok()
		if !t.ident() && t.kind != pg.Token_PARAM {
			p.syntaxError()
		}
		parts, _ := p.nameParts()
		lt.names, lt.first = append(lt.names, parts), append(lt.first, t)
		if !p.acceptKind(tokComma) {
			return lt
		}
	}
}

// variables resolves the targets of a loop over rows.
func (p *parser) rowTargets(lt *loopTarget) *into {
	in := &into{}
	for i, parts := range lt.names {
		v, _ := lookup(p.ns, parts, false)
		if v == nil {
			p.failAt(lt.first[i].start, pgerr.New(pgerr.DatatypeMismatch,
				"loop variable of loop over rows must be a record variable or list of scalar variables"))
		}
		in.targets = append(in.targets, p.resolveTarget(lt.first[i], parts))
	}
	return in
}

func (p *parser) forLoop(line at, l *label) stmt {
	lt := p.loopTarget()
	p.expect("in")
	if p.accept("execute") {
		return p.forExecute(line, l, &lt)
	}
	if v, used := p.cursorAhead(); v != nil {
		return p.forCursor(line, l, &lt, v, used)
	}
	start := p.tok()
	reverse := p.accept("reverse")
	loop := wordStop("loop")
	text, from := p.cut(-1, true, "LOOP", anyStop(loop, kindStop(pg.Token_DOT_DOT)))
	if p.tok().kind != pg.Token_DOT_DOT {
		if reverse {
			p.failAt(start.start, pgerr.New(pgerr.SyntaxError, "cannot specify REVERSE in query FOR loop"))
		}
		s := &forQueryStmt{at: line, label: l, query: p.statement(text, from)}
		s.into = p.rowTargets(&lt)
		p.next()
		s.body = p.loopBody(l)
		return s
	}
	s := &forIntStmt{at: line, label: l, reverse: reverse}
	s.lower = p.newExpr(text, from)
	p.next()
	s.upper = p.expression("LOOP", anyStop(loop, wordStop("by")))
	if p.accept("by") {
		s.step = p.expression("LOOP", loop)
	}
	if len(lt.names) > 1 || len(lt.names[0]) > 1 {
		p.failAt(lt.tok.start, pgerr.New(pgerr.SyntaxError, "integer FOR loop must have only one target variable"))
	}
	p.next()
	s.v = p.declare(lt.names[0][0], typeRef{kind: namedType, text: "integer"})
	s.body = p.loopBody(l)
	return s
}

func (p *parser) forExecute(line at, l *label, lt *loopTarget) stmt {
	s := &forQueryStmt{at: line, label: l, dyn: true}
	loop := wordStop("loop")
	s.query = p.expression("LOOP or USING", anyStop(loop, wordStop("using")))
	if p.accept("using") {
		s.using = p.exprList(", or LOOP", loop)
	}
	s.into = p.rowTargets(lt)
	p.expect("loop")
	s.body = p.loopBody(l)
	return s
}

// exprList parses expressions separated by commas up to a stop token.
func (p *parser) exprList(want string, stop func(*token) bool) []*expr {
	var list []*expr
	for {
		list = append(list, p.expression(want, anyStop(stop, kindStop(tokComma))))
		if !p.acceptKind(tokComma) {
			return list
		}
	}
}

// cursorAhead finds a cursor variable after IN.
func (p *parser) cursorAhead() (*variable, int) {
	t := p.tok()
	if !t.ident() || p.peek(1).kind != tokParenOpen && !p.peek(1).is("loop") {
		return nil, 0
	}
	v, _ := lookup(p.ns, []string{t.word}, false)
	if v == nil || v.typ.kind != cursorType {
		return nil, 0
	}
	return v, 1
}

func (p *parser) forCursor(line at, l *label, lt *loopTarget, v *variable, used int) stmt {
	at := p.tok()
	p.pos += used
	if len(lt.names) > 1 || len(lt.names[0]) > 1 {
		p.failAt(lt.tok.start, pgerr.New(pgerr.SyntaxError, "cursor FOR loop must have only one target variable"))
	}
	if v.cursor == nil {
		p.failAt(at.start, pgerr.New(pgerr.SyntaxError, "cursor FOR loop must use a bound cursor variable"))
	}
	s := &forCursorStmt{at: line, label: l, cursor: v}
	s.args = p.cursorArgs(v, at)
	p.expect("loop")
	s.v = p.declare(lt.names[0][0], typeRef{kind: recordType, text: "record"})
	s.body = p.loopBody(l)
	return s
}

func (p *parser) foreachLoop(line at, l *label) stmt {
	s := &foreachStmt{at: line, label: l}
	lt := p.loopTarget()
	v, _ := lookup(p.ns, lt.names[0], false)
	if v == nil || len(lt.names) > 1 {
		p.failAt(lt.tok.start, pgerr.New(pgerr.SyntaxError, "loop variable of FOREACH must be a known variable or list of variables"))
	}
	s.target = p.resolveTarget(lt.first[0], lt.names[0])
	if p.accept("slice") {
		t := p.next()
		if t.kind != pg.Token_ICONST {
			p.complainAt("syntax error", t)
		}
		for _, c := range p.src[t.start:t.end] {
			s.slice = min(s.slice*10+int(c-'0'), 1000)
		}
	}
	p.expect("in")
	p.expect("array")
	s.array = p.expression("LOOP", wordStop("loop"))
	p.next()
	s.body = p.loopBody(l)
	return s
}

func (p *parser) exitStatement(line at) stmt {
	start := p.next()
	s := &exitStmt{at: line, again: start.is("continue")}
	text := ""
	t := p.tok()
	if t.ident() {
		text = p.next().word
	}
	if p.accept("when") {
		s.cond = p.expression(";", semicolonStop)
	}
	p.expectKind(tokSemicolon)
	s.label = p.findLabel(text)
	switch {
	case s.label == nil && text != "":
		p.failAt(t.start, pgerr.New(pgerr.SyntaxError, "there is no label \"%s\" attached to any block or loop enclosing this statement", text))
	case s.label == nil && s.again:
		p.failAt(start.start, pgerr.New(pgerr.SyntaxError, "CONTINUE cannot be used outside a loop"))
	case s.label == nil:
		p.failAt(start.start, pgerr.New(pgerr.SyntaxError, "EXIT cannot be used outside a loop, unless it has a label"))
	case s.again && !s.label.loop:
		p.failAt(t.start, pgerr.New(pgerr.SyntaxError, "block label \"%s\" cannot be used in CONTINUE", text))
	}
	return s
}
