package builtin

import (
	"regexp/syntax"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The parser of PostgreSQL's advanced regular expressions (regcomp.c). It makes
// two things at once: what the expression matches (reExpr), and how a match is
// taken apart to find its groups (reTree). The second is what greediness means in
// PostgreSQL, so the steps of parseqatom are followed one by one.

// The kinds of expressions.
const (
	exprEmpty byte = iota
	exprSet        // one character of a set
	exprCheck      // a condition on the place
	exprCat
	exprAlt
	exprRepeat
)

// reExpr is what a part of an expression matches.
type reExpr struct {
	kind     byte
	set      []rune // bounds of ranges, ascending
	check    *reCheck
	kids     []*reExpr
	min, max int // of exprRepeat; max is unbounded if negative
}

// reCheck is a condition on a place in the text.
type reCheck struct {
	kind   byte // ^ $ A Z m M y Y, or = for a lookaround
	behind bool
	not    bool
	look   *reExpr
	index  int // among the lookarounds of the expression
}

// reFlags are those of a subexpression (regguts.h).
type reFlags byte

// A subexpression prefers long or short matches, or neither; it is mixed if its
// parts disagree.
const (
	reLonger reFlags = 1 << iota
	reShorter
	reMixed
	reCaptures
	reRefers

	rePreference = reLonger | reShorter
)

// up is what of the flags passes to what encloses the subexpression.
func (f reFlags) up() reFlags {
	up := f &^ rePreference
	if f&rePreference == rePreference {
		up |= reMixed
	}
	return up
}

// combine are the flags of two parts, the first of which decides.
func combine(f, g reFlags) reFlags {
	p := f & rePreference
	if p == 0 {
		p = g & rePreference
	}
	return (f | g).up() | p
}

func (f reFlags) messy() bool { return f&(reMixed|reCaptures|reRefers) != 0 }

// The operations of a tree.
const (
	treeLeaf   byte = '='
	treeCat    byte = '.'
	treeAlt    byte = '|'
	treeRepeat byte = '*'
	treeGroup  byte = '('
	treeRef    byte = 'b'
)

// reTree says how a match is taken apart (struct subre).
type reTree struct {
	op       byte
	flags    reFlags
	group    int // that captures what is matched here; 0 is none
	ref      int // the group that a back reference means
	min, max int
	expr     *reExpr
	kids     []*reTree
	prog     *reProgram // made on first use by compileTree
}

// reParser reads an expression. Single characters, classes and brackets are read
// by the translator, whose rules of lexing are the same.
type reParser struct {
	t      reTranslator
	groups []*reTree // finished ones; nil while open
	looks  int
	inLook bool
	depth  int
}

// maxReDepth bounds what recurses over an expression.
const maxReDepth = 1000

const errTooComplex = "regular expression is too complex"

func (p *reParser) end(stop byte) bool {
	return p.t.in == "" || p.t.in[0] == '|' || stop != 0 && p.t.in[0] == stop
}

// skip passes over comments and, in expanded syntax, white space.
func (p *reParser) skip() error {
	for {
		in := p.t.in
		switch {
		case strings.HasPrefix(in, "(?#"):
			_, rest, ok := strings.Cut(in, ")")
			if !ok {
				rest = ""
			}
			p.t.in = rest
		case p.t.opt.expanded && in != "" && strings.IndexByte(" \t\n\r\f\v", in[0]) >= 0:
			p.t.in = in[1:]
		case p.t.opt.expanded && strings.HasPrefix(in, "#"):
			_, rest, _ := strings.Cut(in, "\n")
			p.t.in = rest
		default:
			return nil
		}
	}
}

// alternatives is parse in regcomp.c: branches up to a stopper.
func (p *reParser) alternatives(stop byte) (*reTree, error) {
	if p.depth++; p.depth > maxReDepth {
		return nil, regexError(errTooComplex)
	}
	defer func() { p.depth-- }()
	top := &reTree{op: treeAlt, flags: reLonger, expr: &reExpr{kind: exprAlt}}
	for {
		b, err := p.branch(stop)
		if err != nil {
			return nil, err
		}
		top.kids = append(top.kids, b)
		top.expr.kids = append(top.expr.kids, b.expr)
		top.flags |= (top.flags | b.flags).up()
		if p.t.in == "" || p.t.in[0] != '|' {
			break
		}
		p.t.take(1)
	}
	if len(top.kids) == 1 {
		return top.kids[0], nil
	}
	if !top.flags.messy() {
		top.op, top.kids = treeLeaf, nil
	}
	return top, nil
}

// branch is parsebranch: a run of simple atoms is one leaf; with the first that
// is not, the rest becomes the right side of a concatenation.
func (p *reParser) branch(stop byte) (*reTree, error) {
	if p.depth++; p.depth > maxReDepth {
		return nil, regexError(errTooComplex)
	}
	defer func() { p.depth-- }()
	top := &reTree{op: treeLeaf, expr: &reExpr{kind: exprCat}}
	for {
		if err := p.skip(); err != nil {
			return nil, err
		}
		if p.end(stop) {
			if p.t.in != "" || stop == 0 {
				return top, nil
			}
			return nil, regexError("parentheses () not balanced")
		}
		done, err := p.atom(top, stop)
		if done || err != nil {
			return top, err
		}
	}
}

// atom is parseqatom: one quantified atom or one condition. It tells whether it
// has read the rest of the branch too.
func (p *reParser) atom(top *reTree, stop byte) (bool, error) {
	check, err := p.condition()
	if err != nil {
		return false, err
	}
	if check != nil {
		top.expr.kids = append(top.expr.kids, &reExpr{kind: exprCheck, check: check})
		return false, nil
	}
	tree, group, err := p.operand()
	if err != nil {
		return false, err
	}
	q, err := p.quantifier()
	if err != nil {
		return false, err
	}
	if q.max == 0 { // cancels everything
		return false, nil
	}
	f := top.flags | q.prefer | tree.flags
	if !group && tree.op != treeRef && !f.up().messy() {
		top.flags = f
		top.expr.kids = append(top.expr.kids, repeated(tree.expr, q.min, q.max))
		return false, nil
	}
	if f = combine(q.prefer, tree.flags); p.end(stop) {
		f = 0
	} // else the preference counts even where the quantifier asks for nothing
	tree = p.quantified(tree, q)
	f |= tree.flags
	rest, err := p.branch(stop)
	if err != nil {
		return false, err
	}
	right := &reTree{op: treeCat, kids: []*reTree{tree, rest}, expr: concat(tree.expr, rest.expr)}
	right.flags = f | combine(f, rest.flags)
	left := *top
	*top = reTree{op: treeCat, kids: []*reTree{&left, right}, expr: concat(left.expr, right.expr), flags: left.flags | combine(left.flags, right.flags)}
	return true, nil
}

func concat(a, b *reExpr) *reExpr { return &reExpr{kind: exprCat, kids: []*reExpr{a, b}} }

func repeated(e *reExpr, least, most int) *reExpr {
	if least == 1 && most == 1 {
		return e
	}
	return &reExpr{kind: exprRepeat, kids: []*reExpr{e}, min: least, max: most}
}

// quantified applies a quantifier to an atom that has to be taken apart.
func (p *reParser) quantified(atom *reTree, q reQuantifier) *reTree {
	f := combine(q.prefer, atom.flags)
	whole := repeated(atom.expr, q.min, q.max)
	switch pref := atom.flags & (rePreference | reMixed); {
	case atom.op == treeRef:
		atom.min, atom.max, atom.expr = q.min, q.max, whole
		atom.flags |= f
		return atom
	case q.min == 1 && q.max == 1 && (q.prefer == 0 || pref == 0 || q.prefer == pref):
		return atom
	case atom.flags&(reCaptures|reRefers) == 0:
		return &reTree{op: treeLeaf, flags: f, expr: whole}
	case q.min > 0 && atom.flags&reRefers == 0:
		// Only the last round is taken apart.
		most := q.max
		if most > 0 {
			most--
		}
		before := &reExpr{kind: exprEmpty}
		if most != 0 {
			before = repeated(atom.expr, q.min-1, most)
		}
		first := &reTree{op: treeLeaf, flags: f & rePreference, expr: before}
		return &reTree{op: treeCat, flags: f, kids: []*reTree{first, atom}, expr: concat(before, atom.expr)}
	}
	return &reTree{op: treeRepeat, flags: f, min: q.min, max: q.max, kids: []*reTree{atom}, expr: whole}
}

// reQuantifier is a quantifier; without one both bounds are 1.
type reQuantifier struct {
	min, max int
	prefer   reFlags
}

func (p *reParser) quantifier() (reQuantifier, error) {
	q := reQuantifier{min: 1, max: 1}
	if err := p.skip(); err != nil || p.t.in == "" {
		return q, err
	}
	counted := false
	switch c := p.t.in[0]; {
	case c == '*':
		q.min, q.max = 0, -1
	case c == '+':
		q.max = -1
	case c == '?':
		q.min = 0
	case c == '{' && len(p.t.in) > 1 && isDigitByte(p.t.in[1]):
		end := strings.IndexByte(p.t.in, '}')
		if end < 0 {
			return q, regexError("braces {} not balanced")
		}
		lo, hi, ranged := strings.Cut(p.t.in[1:end], ",")
		var ok bool
		q.min, ok = smallNumber(lo)
		switch q.max = q.min; {
		case ranged && hi == "":
			q.max = -1
		case ranged:
			var ok2 bool
			q.max, ok2 = smallNumber(hi)
			ok = ok && ok2 && q.min <= q.max
		}
		if !ok {
			return q, regexError("invalid repetition count(s)")
		}
		counted = !ranged
		p.t.take(end)
	default:
		return q, nil
	}
	p.t.take(1)
	q.prefer = reLonger
	if strings.HasPrefix(p.t.in, "?") {
		p.t.take(1)
		q.prefer = reShorter
	}
	if counted {
		q.prefer = 0
	}
	if err := p.skip(); err != nil {
		return q, err
	}
	if in := p.t.in; in != "" && (strings.IndexByte("*+?", in[0]) >= 0 || in[0] == '{' && len(in) > 1 && isDigitByte(in[1])) {
		return q, regexError("quantifier operand invalid")
	}
	return q, nil
}

func isDigitByte(c byte) bool { return c >= '0' && c <= '9' }

// condition reads what stands for no character; nil if something else follows.
func (p *reParser) condition() (*reCheck, error) {
	in := p.t.in
	for _, w := range []string{"[[:<:]]", "[[:>:]]"} {
		if strings.HasPrefix(in, w) {
			p.t.take(len(w))
			return &reCheck{kind: map[byte]byte{'<': 'm', '>': 'M'}[w[3]]}, nil
		}
	}
	switch {
	case in[0] == '^' || in[0] == '$':
		return &reCheck{kind: p.t.take(1)[0]}, nil
	case len(in) > 1 && in[0] == '\\' && strings.IndexByte("AZmMyY", in[1]) >= 0:
		return &reCheck{kind: p.t.take(2)[1]}, nil
	}
	for _, w := range []string{"(?=", "(?!", "(?<=", "(?<!"} {
		if !strings.HasPrefix(in, w) {
			continue
		}
		p.t.take(len(w))
		c := &reCheck{kind: '=', behind: len(w) == 4, not: w[len(w)-1] == '!', index: p.looks}
		p.looks++
		was := p.inLook
		p.inLook = true
		defer func() { p.inLook = was }()
		tree, err := p.alternatives(')')
		if err != nil {
			return nil, err
		}
		p.t.take(1)
		c.look = tree.expr
		return c, nil
	}
	return nil, nil
}

// operand reads an atom; group tells that it is a capturing group.
func (p *reParser) operand() (tree *reTree, group bool, err error) {
	in := p.t.in
	switch {
	case strings.IndexByte("*+?", in[0]) >= 0 || in[0] == '{' && len(in) > 1 && isDigitByte(in[1]):
		return nil, false, regexError("quantifier operand invalid")
	case in[0] == ')':
		return nil, false, regexError("parentheses () not balanced")
	case in[0] == '(':
		return p.parenthesis()
	}
	if n, size := p.reference(); size > 0 {
		if p.inLook || n > len(p.groups) || p.groups[n-1] == nil {
			return nil, false, regexError("invalid backreference number")
		}
		p.t.take(size)
		return &reTree{op: treeRef, ref: n, min: 1, max: 1, flags: reRefers, expr: unconditional(p.groups[n-1].expr)}, false, nil
	}
	set, err := p.set()
	return &reTree{op: treeLeaf, expr: &reExpr{kind: exprSet, set: set}}, false, err
}

// unconditional is an expression without its conditions: what a back reference to
// it can match at most, before that is verified.
func unconditional(e *reExpr) *reExpr {
	switch e.kind {
	case exprSet:
		return e
	case exprCheck:
		return &reExpr{kind: exprEmpty}
	}
	bare := *e
	bare.kids = make([]*reExpr, len(e.kids))
	for i, k := range e.kids {
		bare.kids[i] = unconditional(k)
	}
	return &bare
}

// parenthesis reads a group.
func (p *reParser) parenthesis() (*reTree, bool, error) {
	if !strings.HasPrefix(p.t.in, "(?") {
		p.t.take(1)
		if p.inLook {
			return p.closed(0)
		}
		p.groups = append(p.groups, nil)
		return p.closed(len(p.groups))
	}
	if !strings.HasPrefix(p.t.in, "(?:") {
		return nil, false, regexError("quantifier operand invalid")
	}
	p.t.take(3)
	return p.closed(0)
}

func (p *reParser) closed(group int) (*reTree, bool, error) {
	tree, err := p.alternatives(')')
	if err != nil {
		return nil, false, err
	}
	p.t.take(1)
	if group == 0 {
		return tree, false, nil
	}
	if tree.group != 0 {
		tree = &reTree{op: treeGroup, flags: tree.flags, kids: []*reTree{tree}, expr: tree.expr}
	}
	tree.group = group
	tree.flags |= reCaptures
	p.groups[group-1] = tree
	return tree, true, nil
}

// reference recognizes a back reference: of several digits only if there are so
// many groups (lexescape in regc_lex.c). It returns the length of it too.
func (p *reParser) reference() (n, size int) {
	in := p.t.in
	if len(in) < 2 || in[0] != '\\' || in[1] < '1' || in[1] > '9' {
		return 0, 0
	}
	for size = 1; size < len(in) && isDigitByte(in[size]) && n < 1000; size++ {
		n = n*10 + int(in[size]-'0')
	}
	if size == 2 || n <= len(p.groups) {
		return n, size
	}
	return 0, 0
}

// set reads what stands for one character, by way of the translator.
func (p *reParser) set() ([]rune, error) {
	p.t.out.Reset()
	if p.t.in[0] != '\\' && p.t.in[0] != '[' && p.t.in[0] != '.' {
		r, n := utf8.DecodeRuneInString(p.t.in)
		p.t.take(n)
		return p.folded(r), nil
	}
	if c := p.t.in[0]; c == '\\' && len(p.t.in) > 1 && p.t.in[1] >= '1' && p.t.in[1] <= '9' {
		return p.octal()
	}
	if err := p.t.step(); err != nil {
		return nil, err
	}
	flags := syntax.Perl | syntax.UnicodeGroups
	if p.t.opt.fold {
		flags |= syntax.FoldCase
	}
	if !p.t.opt.dotNoNL {
		flags |= syntax.DotNL
	}
	re, err := syntax.Parse(p.t.out.String(), flags)
	if err != nil {
		return nil, goRegexError(err)
	}
	switch re.Op {
	case syntax.OpLiteral:
		return p.folded(re.Rune[0]), nil
	case syntax.OpCharClass:
		return re.Rune, nil
	case syntax.OpAnyChar:
		return []rune{0, unicode.MaxRune}, nil
	case syntax.OpAnyCharNotNL:
		return []rune{0, '\n' - 1, '\n' + 1, unicode.MaxRune}, nil
	}
	return nil, nil // matches nothing
}

// octal reads a number that was too large for a back reference.
func (p *reParser) octal() ([]rune, error) {
	v, n := rune(0), 1
	for ; n < len(p.t.in) && n < 4 && p.t.in[n] >= '0' && p.t.in[n] <= '7' && v<<3|rune(p.t.in[n]-'0') <= 0xff; n++ {
		v = v<<3 | rune(p.t.in[n]-'0')
	}
	if n == 1 {
		return nil, regexError(errBadEscape)
	}
	p.t.take(n)
	return p.folded(v), nil
}

// folded is the set of a character and, if case does not matter, its other cases.
func (p *reParser) folded(r rune) []rune {
	set := []rune{r, r}
	if p.t.opt.fold {
		for o := unicode.SimpleFold(r); o != r; o = unicode.SimpleFold(o) {
			set = append(set, o, o)
		}
	}
	return set
}
