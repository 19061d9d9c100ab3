package plpgsql

import (
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/tallystick/tallystick/sql/builtin"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/parse"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// function parses the whole body: options and one block.
func (p *parser) function() *block {
	for p.isOp(0, "#") {
		p.option()
	}
	l := p.label(false)
	if !p.tok().is("declare") && !p.tok().is("begin") {
		p.syntaxError()
	}
	b := p.block(l)
	p.acceptKind(tokSemicolon)
	if p.tok().kind != eof {
		p.syntaxError()
	}
	return b
}

// option parses a line such as #variable_conflict error.
func (p *parser) option() {
	p.next()
	start := p.tok()
	switch word := p.next(); {
	case word.is("option"):
		p.expect("dump")
	case word.is("print_strict_params"):
		if !p.accept("on") && !p.accept("off") {
			p.syntaxError()
		}
	case word.is("variable_conflict"):
		if p.accept("error") {
			return
		}
		if p.tok().is("use_variable") || p.tok().is("use_column") {
			p.failAt(start.start, pgerr.NotBuilt("#variable_conflict %s is not supported", p.tok().word))
		}
		p.syntaxError()
	default:
		p.complainAt("syntax error", start)
	}
}

// label parses an optional <<name>>; without one it returns an unnamed label.
func (p *parser) label(loop bool) *label {
	l := &label{loop: loop}
	if !p.isOp(0, "<<") {
		return l
	}
	p.next()
	if p.tok().word == "" {
		p.syntaxError()
	}
	l.name = p.next().word
	if !p.isOp(0, ">>") {
		p.syntaxError()
	}
	p.next()
	return l
}

// endLabel parses the optional label after END and compares it.
func (p *parser) endLabel(l *label) {
	t := p.tok()
	if !t.ident() {
		return
	}
	p.next()
	if l.name == "" {
		p.failAt(t.start, pgerr.New(pgerr.SyntaxError, "end label \"%s\" specified for unlabeled block", t.word))
	}
	if t.word != l.name {
		p.failAt(t.start, pgerr.New(pgerr.SyntaxError, "end label \"%s\" differs from block's label \"%s\"", t.word, l.name))
	}
}

// block parses [DECLARE ...] BEGIN ... END [label], without the semicolon.
func (p *parser) block(l *label) *block {
	outer := p.ns
	p.scope(l)
	b := &block{label: l}
	if p.accept("declare") {
		for !p.tok().is("begin") {
			if p.accept("declare") {
				continue
			}
			if v := p.declaration(); v != nil {
				b.decls = append(b.decls, v)
			}
		}
	}
	b.at = p.here()
	p.expect("begin")
	b.body = p.body()
	if p.tok().is("exception") {
		p.handlers(b)
	}
	p.expect("end")
	p.endLabel(l)
	p.ns = outer
	return b
}

func (p *parser) handlers(b *block) {
	line := p.here().line()
	p.next()
	text := typeRef{kind: namedType, text: "text"}
	b.sqlstate, b.sqlerrm = p.declare("sqlstate", text), p.declare("sqlerrm", text)
	b.sqlstate.constant, b.sqlerrm.constant = true, true
	b.sqlstate.lineNo, b.sqlerrm.lineNo = line, line
	for p.tok().is("when") {
		var h handler
		p.next()
		for {
			h.conditions = append(h.conditions, p.condition())
			if !p.accept("or") {
				break
			}
		}
		p.expect("then")
		h.body = p.body()
		b.handlers = append(b.handlers, h)
	}
	if b.handlers == nil {
		p.syntaxError()
	}
}

func (p *parser) condition() condition {
	t := p.tok()
	if t.word == "" {
		p.syntaxError()
	}
	p.next()
	switch t.word {
	case "others":
		return condition{others: true}
	case "sqlstate":
		return condition{codes: []pgerr.Code{p.sqlstate()}}
	}
	codes := conditions[t.word]
	if codes == nil {
		p.failLine(p.lineOf(t.start), pgerr.New(pgerr.UndefinedObject, "unrecognized exception condition \"%s\"", t.word))
	}
	return condition{codes: codes}
}

// sqlstate parses the literal after SQLSTATE.
func (p *parser) sqlstate() pgerr.Code {
	t := p.tok()
	if t.kind != pg.Token_SCONST {
		p.syntaxError()
	}
	s := p.literal()
	if !validCode(s) {
		p.complainAt("invalid SQLSTATE code", t)
	}
	return pgerr.Code(s)
}

func validCode(s string) bool {
	return len(s) == 5 && strings.Trim(s, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
}

// literal reads a string constant.
func (p *parser) literal() string {
	t := p.next()
	node, err := parse.Expression(p.src[t.start:t.end])
	if err != nil {
		p.sqlError(err, t.start)
	}
	c := node.GetAConst()
	if c == nil || c.GetSval() == nil {
		p.complainAt("syntax error", t)
	}
	return c.GetSval().Sval
}

// declaration parses one line of a DECLARE section; nil for an alias.
func (p *parser) declaration() *variable {
	if p.isOp(0, "<<") {
		p.complain("block label must be placed before DECLARE, not after")
	}
	t := p.tok()
	if !t.ident() {
		p.syntaxError()
	}
	if v, _ := lookup(p.ns, []string{t.word}, true); v != nil {
		p.complain("duplicate declaration")
	}
	p.next()
	switch {
	case p.accept("alias"):
		p.expect("for")
		p.alias(t.word)
		return nil
	case p.tok().is("cursor"), p.tok().is("scroll") && p.peek(1).is("cursor"),
		p.tok().is("no") && p.peek(1).is("scroll"):
		return p.cursorDeclaration(t)
	}
	v := &variable{name: t.word, lineNo: p.lineOf(t.start)}
	v.constant = p.accept("constant")
	v.typ = p.dataType()
	if p.accept("collate") {
		p.failAt(p.tok().start, pgerr.NotBuilt("COLLATE in a declaration is not supported"))
	}
	not := p.tok()
	if p.accept("not") {
		p.expect("null")
		v.notNull = true
	}
	if !p.acceptKind(tokSemicolon) {
		p.initializer()
		v.init = p.expression(";", semicolonStop)
		p.next()
	} else if v.notNull {
		p.failAt(not.start, pgerr.New(pgerr.NullValueNotAllowed,
			"variable \"%s\" must have a default value, since it's declared NOT NULL", v.name))
	}
	v.id = len(p.vars)
	p.vars = append(p.vars, v)
	p.push(v.name, v)
	return v
}

// initializer consumes := = or DEFAULT.
func (p *parser) initializer() {
	if !p.acceptKind(pg.Token_COLON_EQUALS) && !p.acceptKind(tokEquals) && !p.accept("default") {
		p.syntaxError()
	}
}

func (p *parser) alias(text string) {
	t := p.tok()
	parts, ok := p.nameParts()
	if !ok {
		p.syntaxError()
	}
	v, used := lookup(p.ns, parts, false)
	if v == nil || used != len(parts) {
		p.failAt(t.start, pgerr.New(pgerr.UndefinedObject, "variable \"%s\" does not exist", strings.Join(parts, ".")))
	}
	p.expectKind(tokSemicolon)
	p.push(text, v)
}

// nameParts reads a.b.c or $n.
func (p *parser) nameParts() ([]string, bool) {
	t := p.tok()
	if t.kind == pg.Token_PARAM {
		p.next()
		return []string{p.src[t.start:t.end]}, true
	}
	if t.word == "" {
		return nil, false
	}
	p.next()
	parts := []string{t.word}
	for p.tok().kind == tokDot && p.peek(1).word != "" && len(parts) < 3 {
		p.next()
		parts = append(parts, p.next().word)
	}
	return parts, true
}

// dataType parses a type in a declaration.
func (p *parser) dataType() typeRef {
	start := p.tok()
	if start.word != "" {
		save := p.pos
		parts, _ := p.nameParts()
		if p.tok().kind == tokPercent {
			return p.referredType(start, parts)
		}
		if len(parts) == 1 && !start.quoted {
			switch parts[0] {
			case "record":
				return typeRef{kind: recordType, text: "record", pos: start.start}
			case "refcursor":
				return typeRef{kind: cursorType, text: "refcursor", pos: start.start}
			}
		}
		p.pos = save
	}
	depth := 0
	end := start.start
	for {
		t := p.tok()
		if t.kind == tokSemicolon || t.kind == tokEquals || t.kind == pg.Token_COLON_EQUALS ||
			t.is("collate") || t.is("not") || t.is("default") ||
			depth == 0 && (t.kind == tokComma || t.kind == tokParenClose) {
			break
		}
		switch t.kind {
		case eof:
			if depth != 0 {
				p.complain("mismatched parentheses")
			}
			p.complain("incomplete data type declaration")
		case tokParenOpen:
			depth++
		case tokParenClose:
			depth--
		}
		end = t.end
		p.next()
	}
	text := strings.TrimSpace(p.src[start.start:end])
	if text == "" {
		p.complain("missing data type declaration")
	}
	if _, err := parse.Expression("NULL::" + text); err != nil {
		p.typeError(err, start.start)
	}
	return typeRef{kind: namedType, text: text, pos: start.start}
}

// typeError reports a syntax error in a type name.
func (p *parser) typeError(err error, from int) {
	if e, ok := pgerr.From(err); ok && e.Position > len("NULL::") {
		e.Position -= len("NULL::")
	}
	p.sqlError(err, from)
}

// referredType parses %TYPE and %ROWTYPE.
func (p *parser) referredType(start *token, parts []string) typeRef {
	p.next()
	t := typeRef{text: strings.Join(parts, "."), parts: parts, pos: start.start}
	switch {
	case p.accept("rowtype"):
		t.kind = rowOf
		if len(parts) > 2 {
			p.complainAt("syntax error", start)
		}
	case p.accept("type"):
		t.kind = copyType
		if v, used := lookup(p.ns, parts, false); v != nil {
			switch len(parts) - used {
			case 0:
				t.of = v
			case 1:
				t.of, t.field = v, parts[len(parts)-1]
			}
		}
		if t.of == nil && len(parts) == 1 {
			p.failAt(start.start, pgerr.New(pgerr.UndefinedObject, "variable \"%s\" does not exist", parts[0]))
		}
	default:
		p.syntaxError()
	}
	return t
}

// cursorDeclaration parses name [NO SCROLL] CURSOR [(args)] FOR query.
func (p *parser) cursorDeclaration(t *token) *variable {
	if p.accept("no") {
		p.expect("scroll")
	} else if p.tok().is("scroll") {
		p.failAt(p.tok().start, pgerr.NotBuilt("SCROLL cursors are not supported"))
	}
	p.expect("cursor")
	v := &variable{name: t.word, lineNo: p.lineOf(t.start), typ: typeRef{kind: cursorType}, cursor: &cursorDecl{}}
	outer := p.ns
	p.scope(&label{})
	if p.acceptKind(tokParenOpen) {
		for {
			a := p.tok()
			if !a.ident() {
				p.syntaxError()
			}
			p.next()
			arg := p.declare(a.word, p.dataType())
			v.cursor.args = append(v.cursor.args, arg)
			if p.acceptKind(tokParenClose) {
				break
			}
			p.expectKind(tokComma)
		}
	}
	if !p.accept("for") && !p.accept("is") {
		p.syntaxError()
	}
	text, from := p.cut(-1, false, ";", semicolonStop)
	v.cursor.query = p.statement(text, from)
	p.next()
	p.ns = outer
	v.id = len(p.vars)
	p.vars = append(p.vars, v)
	p.push(v.name, v)
	return v
}

// typeByWord knows the usual one-word spellings of built-in types.
func typeByWord(word string) (*datum.Desc, bool) {
	switch word = foldIdent(word); word {
	case "int", "integer":
		return datum.Int4, true
	case "bigint":
		return datum.Int8, true
	case "smallint":
		return datum.Int2, true
	case "boolean":
		return datum.BoolType, true
	case "real":
		return datum.Float4, true
	case "decimal":
		return datum.Numeric, true
	}
	return builtin.TypeByName(word)
}
