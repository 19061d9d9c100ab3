package builtin

import (
	"errors"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/tallystick/tallystick/sql/pgerr"
)

// PostgreSQL's advanced regular expressions. Which matches an expression has, and
// what its groups are, is decided by areRegex, which follows PostgreSQL's engine.
// Where that comes to the leftmost-longest match, Go's regexp finds it, which is
// faster; only the groups are then left. Both take time linear in the text to find
// a match, unless there are back references, so that a contract cannot be stalled
// by a pattern; all work is charged to the step budget.

// reOptions are the options of one expression: function flags and embedded ones.
type reOptions struct {
	fold     bool // i: case does not matter
	dotNoNL  bool // n, p: . and negated brackets do not match a newline
	multi    bool // n, w: ^ and $ match at lines
	literal  bool // q
	expanded bool // x: white space and comments are ignored
}

// regex is a compiled expression.
type regex struct {
	own    *areRegex
	groups int
	// re finds the bounds of matches; nil if only own does.
	re *regexp.Regexp
	// after matches one character and then the expression: it finds matches
	// behind the beginning of a text, where ^ and \b look back. Nil if the
	// expression never does.
	after *regexp.Regexp
	// test tells whether there is a match at all; nil if only own does.
	test *regexp.Regexp
	// weight is the cost of matching one piece of text, by the size of the
	// automaton.
	weight int64
}

const regexCacheSize = 512

// regexCache keeps compiled expressions; what it holds never changes a result.
var regexCache = struct {
	sync.RWMutex
	m map[regexKey]*regex
}{m: make(map[regexKey]*regex)}

type regexKey struct {
	pattern string
	opt     reOptions
}

func compileRegex(pattern string, opt reOptions) (*regex, error) {
	key := regexKey{pattern, opt}
	regexCache.RLock()
	r := regexCache.m[key]
	regexCache.RUnlock()
	if r != nil {
		return r, nil
	}
	r, err := translateRegex(pattern, opt)
	if err != nil {
		return nil, err
	}
	key.pattern = strings.Clone(pattern)
	regexCache.Lock()
	if len(regexCache.m) >= regexCacheSize {
		clear(regexCache.m)
	}
	regexCache.m[key] = r
	regexCache.Unlock()
	return r, nil
}

func regexError(what string) error {
	return pgerr.New(pgerr.InvalidRegularExpression, "invalid regular expression: %s", what)
}

func translateRegex(pattern string, opt reOptions) (*regex, error) {
	t := reTranslator{in: pattern, opt: opt}
	if err := t.prefix(); err != nil {
		return nil, err
	}
	if t.opt.literal {
		quoted := t.literalPattern()
		t.opt.literal, t.opt.expanded, t.in = false, false, quoted
	}
	own, err := compileARE(t.in, t.opt)
	if err != nil {
		return nil, err
	}
	r := &regex{own: own, groups: own.groups, weight: 1 + int64(len(pattern))/32}
	if own.refers || t.run() != nil {
		return r, nil // what Go's syntax lacks
	}
	return r, r.translated(&t)
}

// translated takes over what the translator has made for Go.
func (r *regex) translated(t *reTranslator) error {
	src := t.flags() + t.out.String()
	r.weight = 1 + int64(len(src)+t.repeats)/32
	re, err := regexp.Compile(src)
	if err != nil {
		return nil // larger than Go admits
	}
	r.test = re
	if !r.own.simple() {
		return nil
	}
	re.Longest()
	if t.looksBack {
		after, err := regexp.Compile("(?s:.)(?:" + src + ")")
		if err != nil {
			return nil
		}
		after.Longest()
		r.after = after
	}
	r.re = re
	return nil
}

// literalPattern is an expression for the text of a literal one.
func (t *reTranslator) literalPattern() string {
	var b strings.Builder
	for _, c := range t.in {
		if c < utf8.RuneSelf && !isWordRune(c) {
			b.WriteByte('\\')
		}
		b.WriteRune(c)
	}
	return b.String()
}

// goRegexError words a complaint of Go's parser as PostgreSQL does.
func goRegexError(err error) error {
	var e *syntax.Error
	if !errors.As(err, &e) {
		return regexError(err.Error())
	}
	switch e.Code {
	case syntax.ErrMissingParen, syntax.ErrUnexpectedParen:
		return regexError("parentheses () not balanced")
	case syntax.ErrMissingBracket:
		return regexError("brackets [] not balanced")
	case syntax.ErrInvalidCharRange:
		return regexError("invalid character range")
	case syntax.ErrInvalidRepeatSize:
		return regexError("invalid repetition count(s)")
	case syntax.ErrTrailingBackslash, syntax.ErrInvalidEscape:
		return regexError("invalid escape \\ sequence")
	case syntax.ErrLarge, syntax.ErrNestingDepth:
		return regexError("regular expression is too complex")
	}
	return regexError("quantifier operand invalid")
}

// reTranslator rewrites an expression for Go.
type reTranslator struct {
	in  string
	opt reOptions
	out strings.Builder

	atom        bool // what came last may be quantified
	atomWord    bool // what came last is a word character
	lazy        bool
	greedy      bool
	alternation bool
	looksBack   bool
	depth       int
	repeats     int // sum of the bounds, which multiply what stands before them
}

func (t *reTranslator) flags() string {
	s := "(?"
	if t.opt.fold {
		s += "i"
	}
	if t.opt.multi {
		s += "m"
	}
	if !t.opt.dotNoNL {
		s += "s"
	}
	if s == "(?" {
		return ""
	}
	return s + ")"
}

// prefix takes the director ***= or ***: and embedded options from the front.
func (t *reTranslator) prefix() error {
	if rest, ok := strings.CutPrefix(t.in, "***"); ok {
		switch {
		case strings.HasPrefix(rest, "="):
			t.in, t.opt.literal = rest[1:], true
			return nil
		case strings.HasPrefix(rest, ":"):
			t.in = rest[1:]
		default:
			return regexError("quantifier operand invalid")
		}
	}
	if !strings.HasPrefix(t.in, "(?") || len(t.in) < 3 || !isLower(t.in[2]|0x20) {
		return nil
	}
	letters, rest, ok := strings.Cut(t.in[2:], ")")
	if !ok {
		return regexError("invalid embedded option")
	}
	for i := range len(letters) {
		if letters[i] == 'b' {
			return pgerr.NotBuilt("basic regular expressions are not supported")
		}
		if !t.opt.set(letters[i]) {
			return regexError("invalid embedded option")
		}
	}
	t.in = rest
	return nil
}

func isLower(c byte) bool { return c >= 'a' && c <= 'z' }

// set applies one option letter; false if it is unknown. b (basic expressions)
// is left to the caller: there is no such mode here.
func (o *reOptions) set(c byte) bool {
	switch c {
	case 'c':
		o.fold = false
	case 'e', 't':
	case 'i':
		o.fold = true
	case 'm', 'n':
		o.dotNoNL, o.multi = true, true
	case 'p':
		o.dotNoNL, o.multi = true, false
	case 'q':
		o.literal = true
	case 's':
		o.dotNoNL, o.multi = false, false
	case 'w':
		o.dotNoNL, o.multi = false, true
	case 'x':
		o.expanded = true
	default:
		return false
	}
	return true
}

func (t *reTranslator) run() error {
	for t.in != "" {
		if err := t.step(); err != nil {
			return err
		}
	}
	if t.depth > 0 {
		return regexError("parentheses () not balanced")
	}
	return nil
}

func (t *reTranslator) take(n int) string {
	s := t.in[:n]
	t.in = t.in[n:]
	return s
}

func (t *reTranslator) step() error {
	switch c := t.in[0]; c {
	case '\\':
		return t.escape()
	case '[':
		return t.bracket()
	case '(':
		return t.open()
	case ')':
		if t.depth == 0 {
			return regexError("parentheses () not balanced")
		}
		t.depth--
		t.emitAtom(t.take(1), false)
	case '|':
		t.alternation = true
		t.out.WriteString(t.take(1))
		t.atom, t.atomWord = false, false
	case '^', '$':
		t.looksBack = t.looksBack || c == '^'
		t.out.WriteString(t.take(1))
		t.atom, t.atomWord = false, false
	case '*', '+', '?':
		return t.quantifier(t.take(1))
	case '{':
		if len(t.in) > 1 && t.in[1] >= '0' && t.in[1] <= '9' {
			return t.bound()
		}
		t.take(1)
		t.emitAtom(`\{`, false)
	case '.':
		t.emitAtom(t.take(1), false)
	default:
		t.literal(c)
	}
	return nil
}

// literal takes an ordinary character, and a run of alternatives if it starts one.
func (t *reTranslator) literal(c byte) {
	if t.opt.expanded {
		if isBlank(c) || c == '\f' || c == '\v' {
			t.take(1)
			return
		}
		if c == '#' {
			if _, rest, ok := strings.Cut(t.in, "\n"); ok {
				t.in = rest
			} else {
				t.in = ""
			}
			return
		}
	}
	r, n := utf8.DecodeRuneInString(t.in)
	t.emitAtom(regexp.QuoteMeta(t.take(n)), isWordRune(r))
}

func (t *reTranslator) emitAtom(s string, word bool) {
	t.out.WriteString(s)
	t.atom, t.atomWord = true, word
}

func (t *reTranslator) quantifier(q string) error {
	if !t.atom {
		return regexError("quantifier operand invalid")
	}
	t.atom, t.atomWord = false, t.atomWord && q == "+"
	if strings.HasPrefix(t.in, "?") {
		q += t.take(1)
		t.lazy = true
	} else {
		t.greedy = true
	}
	t.out.WriteString(q)
	return nil
}

// bound takes {m}, {m,} or {m,n}.
func (t *reTranslator) bound() error {
	if !t.atom {
		return regexError("quantifier operand invalid")
	}
	end := strings.IndexByte(t.in, '}')
	if end < 0 {
		return regexError("braces {} not balanced")
	}
	q := t.take(end + 1)
	lo, hi, ranged := strings.Cut(q[1:end], ",")
	m, ok := smallNumber(lo)
	n := m
	if ranged && hi != "" {
		var ok2 bool
		n, ok2 = smallNumber(hi)
		ok = ok && ok2
	}
	if !ok || n < m {
		return regexError("invalid repetition count(s)")
	}
	t.atom, t.atomWord = false, t.atomWord && m > 0
	t.repeats += n * 4
	lazy := strings.HasPrefix(t.in, "?")
	if lazy {
		q += t.take(1)
	}
	if ranged && hi != lo { // a fixed count prefers nothing
		t.lazy, t.greedy = t.lazy || lazy, t.greedy || !lazy
	}
	t.out.WriteString(q)
	return nil
}

// smallNumber reads a repetition count, at most 255 as in PostgreSQL.
func smallNumber(s string) (int, bool) {
	n := 0
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		if n = n*10 + int(s[i]-'0'); n > 255 {
			return 0, false
		}
	}
	return n, s != ""
}

func (t *reTranslator) open() error {
	s := "("
	switch {
	case strings.HasPrefix(t.in, "(?:"):
		s = "(?:"
	case strings.HasPrefix(t.in, "(?=") || strings.HasPrefix(t.in, "(?!") || strings.HasPrefix(t.in, "(?<"):
		return pgerr.NotBuilt("lookaround in regular expressions is not supported")
	case strings.HasPrefix(t.in, "(?"):
		return regexError("quantifier operand invalid")
	}
	t.take(len(s))
	t.depth++
	t.out.WriteString(s)
	t.atom, t.atomWord = false, false
	if lits, n := literalAlternatives(t.in); n > 0 {
		t.take(n)
		for i, l := range lits {
			if i > 0 {
				t.out.WriteByte('|')
			}
			t.out.WriteString(regexp.QuoteMeta(l))
		}
	}
	return nil
}

// literalAlternatives recognizes a group whose alternatives are plain strings and
// orders them longest first: a POSIX matcher prefers the longest, Go's the
// first. It returns how much of s it read, up to the closing parenthesis.
func literalAlternatives(s string) ([]string, int) {
	body, _, ok := strings.Cut(s[:min(len(s), 256)], ")")
	if !ok || !strings.Contains(body, "|") || strings.ContainsAny(body, `\[]({}*+?.^$# `+"\t\n") {
		return nil, 0
	}
	lits := strings.Split(body, "|")
	slices.SortStableFunc(lits, func(a, b string) int { return len(b) - len(a) })
	return lits, len(body)
}
