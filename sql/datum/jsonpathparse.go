package datum

import (
	"strconv"
	"strings"

	"github.com/tallystick/tallystick/sql/pgerr"
)

// maxPathDepth bounds how deeply a path expression is nested.
const maxPathDepth = 1000

// pathParser reads path expressions by recursive descent over the grammar of
// PostgreSQL 15's jsonpath_gram.y.
type pathParser struct {
	lex   pathLexer
	tok   pathToken
	depth int
	joins int // operators in a row, which nest to the left
}

// maxPathJoins bounds the operators of one path: the tree is walked by recursion.
const maxPathJoins = 20000

func (p *pathParser) join() error {
	if p.joins++; p.joins > maxPathJoins {
		return pgerr.New(pgerr.StatementTooComplex, "stack depth limit exceeded")
	}
	return nil
}

// ParseJSONPath reads a path expression: 42601 for one that is not well formed.
func ParseJSONPath(s string) (*JSONPath, error) {
	p := pathParser{lex: pathLexer{s: s}}
	if err := p.advance(); err != nil {
		return nil, err
	}
	if p.tok.kind == pathEOF {
		return nil, errSyntax("jsonpath", s)
	}
	path := &JSONPath{}
	if p.word("strict") || p.word("lax") {
		path.Strict = p.word("strict")
		if err := p.advance(); err != nil {
			return nil, err
		}
	}
	o, err := p.or()
	if err != nil {
		return nil, err
	}
	if p.tok.kind != pathEOF {
		return nil, p.unexpected()
	}
	path.Root = o.node
	return path, checkPath(path.Root, 0, false)
}

// operand is a node that may be a predicate, which is no value unless something
// is applied to it.
type operand struct {
	node *PathNode
	pred bool
}

func (p *pathParser) advance() (err error) {
	p.tok, err = p.lex.next()
	return err
}

func (p *pathParser) unexpected() error { return errPath("syntax error", p.tok.raw) }

// word reports whether the current token is a key word.
func (p *pathParser) word(w string) bool {
	return p.tok.kind == pathIdent && isPathWord(p.tok.text, w)
}

// isPathWord: key words may be written in capitals, but for the literals.
func isPathWord(text, w string) bool {
	if w == "null" || w == "true" || w == "false" {
		return text == w
	}
	return strings.EqualFold(text, w)
}

func (p *pathParser) op(text string) bool { return p.tok.kind == pathOp && p.tok.text == text }

// expect passes over a special character.
func (p *pathParser) expect(c byte) error {
	if p.tok.kind != c {
		return p.unexpected()
	}
	return p.advance()
}

func (p *pathParser) expectWord(w string) error {
	if !p.word(w) {
		return p.unexpected()
	}
	return p.advance()
}

// deeper guards recursion.
func (p *pathParser) deeper() error {
	if p.depth++; p.depth > maxPathDepth {
		return pgerr.New(pgerr.StatementTooComplex, "stack depth limit exceeded")
	}
	return nil
}

func (p *pathParser) or() (operand, error) {
	if err := p.deeper(); err != nil {
		return operand{}, err
	}
	defer func() { p.depth-- }()
	return p.logical("||", PathOr, func() (operand, error) { return p.logical("&&", PathAnd, p.comparison) })
}

// logical reads a sequence of predicates joined by one operator.
func (p *pathParser) logical(text string, op PathOp, side func() (operand, error)) (operand, error) {
	left, err := side()
	for err == nil && p.op(text) {
		if !left.pred {
			return left, p.unexpected()
		}
		if err = p.join(); err != nil {
			break
		}
		if err = p.advance(); err != nil {
			break
		}
		var right operand
		if right, err = side(); err == nil && !right.pred {
			err = p.unexpected()
		}
		left = operand{&PathNode{Op: op, Left: left.node, Right: right.node}, true}
	}
	return left, err
}

func (p *pathParser) comparisonOp() (PathOp, bool) {
	switch p.tok.kind {
	case '<':
		return PathLess, true
	case '>':
		return PathGreater, true
	case pathOp:
		switch p.tok.text {
		case "==":
			return PathEqual, true
		case "!=":
			return PathNotEqual, true
		case "<=":
			return PathLessEqual, true
		case ">=":
			return PathGreaterEqual, true
		}
	}
	return 0, false
}

func (p *pathParser) comparison() (operand, error) {
	if p.tok.kind == '!' {
		return p.negation()
	}
	left, err := p.additive()
	if err != nil || left.pred {
		return left, err
	}
	if op, ok := p.comparisonOp(); ok {
		if err := p.advance(); err != nil {
			return left, err
		}
		right, err := p.value(p.additive)
		return operand{&PathNode{Op: op, Left: left.node, Right: right}, true}, err
	}
	switch {
	case p.word("starts"):
		return p.startsWith(left.node)
	case p.word("like_regex"):
		return p.likeRegex(left.node)
	}
	return left, nil
}

// negation is ! before a predicate in parentheses or exists.
func (p *pathParser) negation() (operand, error) {
	if err := p.advance(); err != nil {
		return operand{}, err
	}
	if p.tok.kind != '(' && !p.word("exists") {
		return operand{}, p.unexpected()
	}
	o, err := p.delimited()
	if err == nil && !o.pred {
		err = p.unexpected()
	}
	return operand{&PathNode{Op: PathNot, Left: o.node}, true}, err
}

// delimited is exists(...) or what stands in parentheses, with nothing applied.
func (p *pathParser) delimited() (operand, error) {
	if p.word("exists") {
		if err := p.advance(); err != nil {
			return operand{}, err
		}
		if err := p.expect('('); err != nil {
			return operand{}, err
		}
		v, err := p.value(p.or)
		if err != nil {
			return operand{}, err
		}
		return operand{&PathNode{Op: PathExists, Left: v}, true}, p.expect(')')
	}
	if err := p.expect('('); err != nil {
		return operand{}, err
	}
	o, err := p.or()
	if err != nil {
		return o, err
	}
	return o, p.expect(')')
}

// value reads something that must not be a predicate.
func (p *pathParser) value(read func() (operand, error)) (*PathNode, error) {
	o, err := read()
	if err == nil && o.pred {
		err = p.unexpected()
	}
	return o.node, err
}

func (p *pathParser) startsWith(left *PathNode) (operand, error) {
	if err := p.advance(); err != nil {
		return operand{}, err
	}
	if err := p.expectWord("with"); err != nil {
		return operand{}, err
	}
	right := &PathNode{Op: PathString, Str: p.tok.text}
	switch p.tok.kind {
	case pathQuoted:
	case pathVar:
		right.Op = PathVariable
	default:
		return operand{}, p.unexpected()
	}
	return operand{&PathNode{Op: PathStartsWith, Left: left, Right: right}, true}, p.advance()
}

func (p *pathParser) likeRegex(left *PathNode) (operand, error) {
	if err := p.advance(); err != nil {
		return operand{}, err
	}
	if p.tok.kind != pathQuoted {
		return operand{}, p.unexpected()
	}
	n := &PathNode{Op: PathLikeRegex, Left: left, Str: p.tok.text}
	if err := p.advance(); err != nil {
		return operand{}, err
	}
	if p.word("flag") {
		if err := p.advance(); err != nil {
			return operand{}, err
		}
		if p.tok.kind != pathQuoted {
			return operand{}, p.unexpected()
		}
		var err error
		if n.Flags, err = pathFlags(p.tok.text); err != nil {
			return operand{}, err
		}
		if err := p.advance(); err != nil {
			return operand{}, err
		}
	}
	if CheckPathRegex != nil {
		if err := CheckPathRegex(n.Str, n.Flags); err != nil {
			return operand{}, err
		}
	}
	return operand{n, true}, nil
}

// pathFlags brings XQuery's flags into one order.
func pathFlags(s string) (string, error) {
	for _, c := range s {
		if !strings.ContainsRune("ismxq", c) {
			return "", pgerr.New(pgerr.SyntaxError, "invalid input syntax for type %s", "jsonpath").
				WithDetail("Unrecognized flag character \"%c\" in LIKE_REGEX predicate.", c)
		}
	}
	out := ""
	for _, c := range "ismxq" {
		if strings.ContainsRune(s, c) {
			out += string(c)
		}
	}
	if strings.Contains(out, "x") && !strings.Contains(out, "q") {
		return "", pgerr.New(pgerr.FeatureNotSupported, "XQuery \"x\" flag (expanded regular expressions) is not implemented")
	}
	return out, nil
}

func (p *pathParser) additive() (operand, error) {
	return p.arithmetic(map[byte]PathOp{'+': PathAdd, '-': PathSub}, func() (operand, error) {
		return p.arithmetic(map[byte]PathOp{'*': PathMul, '/': PathDiv, '%': PathMod}, p.unary)
	})
}

func (p *pathParser) arithmetic(ops map[byte]PathOp, side func() (operand, error)) (operand, error) {
	left, err := side()
	for err == nil {
		op, ok := ops[p.tok.kind]
		if !ok {
			break
		}
		if left.pred {
			return left, p.unexpected()
		}
		if err = p.join(); err != nil {
			break
		}
		if err = p.advance(); err != nil {
			break
		}
		var right *PathNode
		right, err = p.value(side)
		left = operand{&PathNode{Op: op, Left: left.node, Right: right}, false}
	}
	return left, err
}

func (p *pathParser) unary() (operand, error) {
	op := PathPlus
	switch p.tok.kind {
	case '-':
		op = PathMinus
	case '+':
	default:
		return p.primary()
	}
	if err := p.deeper(); err != nil {
		return operand{}, err
	}
	defer func() { p.depth-- }()
	if err := p.advance(); err != nil {
		return operand{}, err
	}
	v, err := p.value(p.unary)
	if err != nil {
		return operand{}, err
	}
	if v.Op == PathNumber && v.Next == nil {
		if op == PathMinus {
			v = &PathNode{Op: PathNumber, Num: NumericNeg(v.Num)}
		}
		return operand{v, false}, nil
	}
	return operand{&PathNode{Op: op, Left: v}, false}, nil
}

// primary is a literal, a variable, a place, or something in parentheses, with
// the accessors that follow.
func (p *pathParser) primary() (operand, error) {
	if p.tok.kind == '(' || p.word("exists") {
		o, err := p.delimited()
		if err != nil {
			return o, err
		}
		if o.pred && o.node.Op != PathExists && p.word("is") {
			if err := p.advance(); err != nil {
				return o, err
			}
			return operand{&PathNode{Op: PathIsUnknown, Left: o.node}, true}, p.expectWord("unknown")
		}
		if p.isAccessor() && o.node.Op != PathExists {
			o.pred = false
			return o, p.accessors(o.node)
		}
		return o, nil
	}
	n := &PathNode{Str: p.tok.text}
	switch {
	case p.tok.kind == pathQuoted:
		n.Op = PathString
	case p.tok.kind == pathVar:
		n.Op = PathVariable
	case p.tok.kind == pathInt, p.tok.kind == pathNumber:
		num, err := ParseNumeric(p.tok.text)
		if err != nil {
			return operand{}, err
		}
		n.Op, n.Num, n.Str = PathNumber, num, ""
	case p.tok.kind == '$':
		n.Op = PathRoot
	case p.tok.kind == '@':
		n.Op = PathCurrent
	case p.word("last"):
		n.Op = PathLast
	case p.word("null"):
		n.Op = PathNull
	case p.word("true"), p.word("false"):
		n.Op, n.Num = PathBool, Bool(p.word("true"))
	default:
		return operand{}, p.unexpected()
	}
	if err := p.advance(); err != nil {
		return operand{}, err
	}
	return operand{n, false}, p.accessors(n)
}

func (p *pathParser) isAccessor() bool {
	return p.tok.kind == '.' || p.tok.kind == '[' || p.tok.kind == '?'
}

// accessors appends what follows to the end of a chain.
func (p *pathParser) accessors(n *PathNode) error {
	for n.Next != nil {
		n = n.Next
	}
	for p.isAccessor() {
		var err error
		if n.Next, err = p.accessor(); err != nil {
			return err
		}
		if err := p.join(); err != nil {
			return err
		}
		n = n.Next
	}
	return nil
}

func (p *pathParser) accessor() (*PathNode, error) {
	kind := p.tok.kind
	if err := p.advance(); err != nil {
		return nil, err
	}
	switch kind {
	case '[':
		return p.subscripts()
	case '?':
		if p.tok.kind != '(' {
			return nil, p.unexpected()
		}
		if err := p.advance(); err != nil {
			return nil, err
		}
		o, err := p.or()
		if err == nil && !o.pred {
			err = p.unexpected()
		}
		if err != nil {
			return nil, err
		}
		return &PathNode{Op: PathFilter, Left: o.node}, p.expect(')')
	}
	return p.member()
}

func (p *pathParser) subscripts() (*PathNode, error) {
	if p.tok.kind == '*' {
		if err := p.advance(); err != nil {
			return nil, err
		}
		return &PathNode{Op: PathAnyElem}, p.expect(']')
	}
	n := &PathNode{Op: PathIndex}
	for {
		var s PathSubscript
		var err error
		if s.From, err = p.value(p.or); err != nil {
			return nil, err
		}
		if p.word("to") {
			if err := p.advance(); err != nil {
				return nil, err
			}
			if s.To, err = p.value(p.or); err != nil {
				return nil, err
			}
		}
		n.Subscripts = append(n.Subscripts, s)
		if p.tok.kind != ',' {
			return n, p.expect(']')
		}
		if err := p.advance(); err != nil {
			return nil, err
		}
	}
}

// pathMethods are the item methods.
var pathMethods = []string{"abs", "size", "type", "floor", "double", "ceiling", "keyvalue", "datetime"}

// member is what follows a dot: a key, *, ** or a method.
func (p *pathParser) member() (*PathNode, error) {
	t := p.tok
	switch {
	case t.kind == '*':
		return &PathNode{Op: PathAnyKey}, p.advance()
	case p.op("**"):
		return p.levels()
	case t.kind != pathIdent && t.kind != pathQuoted:
		return nil, p.unexpected()
	}
	if err := p.advance(); err != nil {
		return nil, err
	}
	if p.tok.kind == '(' && t.kind == pathIdent {
		for _, m := range pathMethods {
			if isPathWord(t.text, m) {
				return p.method(m)
			}
		}
	}
	return &PathNode{Op: PathKey, Str: t.text}, nil
}

func (p *pathParser) method(name string) (*PathNode, error) {
	n := &PathNode{Op: PathMethod, Str: name}
	if err := p.advance(); err != nil {
		return nil, err
	}
	if name == "datetime" && p.tok.kind == pathQuoted {
		n.Left = &PathNode{Op: PathString, Str: p.tok.text}
		if err := p.advance(); err != nil {
			return nil, err
		}
	}
	return n, p.expect(')')
}

func (p *pathParser) levels() (*PathNode, error) {
	n := &PathNode{Op: PathAny, Last: PathEnd}
	if err := p.advance(); err != nil || p.tok.kind != '{' {
		return n, err
	}
	if err := p.advance(); err != nil {
		return nil, err
	}
	var err error
	if n.First, err = p.level(); err != nil {
		return nil, err
	}
	n.Last = n.First
	if p.word("to") {
		if err := p.advance(); err != nil {
			return nil, err
		}
		if n.Last, err = p.level(); err != nil {
			return nil, err
		}
	}
	return n, p.expect('}')
}

func (p *pathParser) level() (uint32, error) {
	if p.word("last") {
		return PathEnd, p.advance()
	}
	if p.tok.kind != pathInt {
		return 0, p.unexpected()
	}
	v, err := strconv.ParseUint(p.tok.text, 10, 31)
	if err != nil {
		return 0, errOutOfRange(p.tok.text, "integer")
	}
	return uint32(v), p.advance()
}

// checkPath refuses @ outside of filters and last outside of subscripts.
func checkPath(n *PathNode, filters int, subscript bool) error {
	for ; n != nil; n = n.Next {
		switch {
		case n.Op == PathCurrent && filters == 0:
			return pgerr.New(pgerr.SyntaxError, "@ is not allowed in root expressions")
		case n.Op == PathLast && !subscript:
			return pgerr.New(pgerr.SyntaxError, "LAST is allowed only in array subscripts")
		}
		inner := filters
		if n.Op == PathFilter {
			inner++
		}
		for _, s := range n.Subscripts {
			if err := checkPath(s.From, filters, true); err != nil {
				return err
			}
			if err := checkPath(s.To, filters, true); err != nil {
				return err
			}
		}
		if err := checkPath(n.Left, inner, subscript); err != nil {
			return err
		}
		if err := checkPath(n.Right, inner, subscript); err != nil {
			return err
		}
	}
	return nil
}
