package builtin

import (
	"slices"
	"unicode"

	"github.com/tallystick/tallystick/sql/pgerr"
)

// areRegex is an expression that is matched by PostgreSQL's own rules: the
// leftmost start, then the longest or the shortest end as the expression as a
// whole prefers, then the tree taken apart over that stretch.
type areRegex struct {
	tree   *reTree
	looks  []*reProgram
	groups int
	refers bool
	opt    reOptions
}

// compileARE parses an expression without its director and embedded options.
func compileARE(in string, opt reOptions) (*areRegex, error) {
	p := reParser{t: reTranslator{in: in, opt: opt}}
	tree, err := p.alternatives(0)
	if err != nil {
		return nil, err
	}
	if p.t.in != "" {
		return nil, regexError("parentheses () not balanced")
	}
	c := reCompiler{left: maxReProgram}
	if err := c.tree(tree); err != nil {
		return nil, err
	}
	return &areRegex{tree: tree, looks: c.looks, groups: len(p.groups), refers: tree.flags&reRefers != 0, opt: opt}, nil
}

// simple tells that Go's leftmost-longest matching finds the same matches, bounds
// of groups aside.
func (a *areRegex) simple() bool {
	return !a.refers && a.tree.flags&(reShorter|reMixed) == 0
}

// reMatcher matches one expression against one text.
type reMatcher struct {
	c     *Ctx
	re    *areRegex
	text  []rune
	bytes []int // offset of each character, and of the end; nil if all are one byte

	groups []int // two bounds each, of the match being taken apart; -1 is unset
	ahead  []map[int]bool
	behind [][]bool
	steps  int64
	free   []*threads
	err    error
}

// threads are the states of an automaton at one place, each once.
type threads struct {
	at, start []int
	seen      []int // the place at which an instruction was last added, plus one
}

func (a *areRegex) matcher(c *Ctx, s string) *reMatcher {
	m := &reMatcher{c: c, re: a, text: []rune(s), ahead: make([]map[int]bool, len(a.looks)), behind: make([][]bool, len(a.looks))}
	if len(m.text) != len(s) {
		m.bytes = make([]int, 0, len(m.text)+1)
		for i := range s {
			m.bytes = append(m.bytes, i)
		}
		m.bytes = append(m.bytes, len(s))
	}
	return m
}

func (m *reMatcher) toBytes(i int) int {
	if m.bytes == nil || i < 0 {
		return i
	}
	return m.bytes[i]
}

func (m *reMatcher) fromBytes(i int) int {
	if m.bytes == nil {
		return i
	}
	at, _ := slices.BinarySearch(m.bytes, i)
	return at
}

// stepsPerUnit is how many steps of the automata cost one unit of the budget.
const stepsPerUnit = 64

// maxReSteps ends what back references can make exponential, where no budget does.
const maxReSteps = 1 << 30

// work counts a step; false if the budget is spent.
func (m *reMatcher) work() bool {
	if m.steps++; m.steps%stepsPerUnit == 0 && m.err == nil {
		if m.err = m.c.Budget.Spend(1); m.steps > maxReSteps && m.err == nil {
			m.err = pgerr.New(pgerr.ProgramLimitExceeded, "regular expression is too complex for this text")
		}
	}
	return m.err == nil
}

// find returns the bounds of the first match that begins at or behind byte at,
// and of its groups, nil if there is none.
func (m *reMatcher) find(at int) ([]int, error) {
	from := m.fromBytes(at)
	for from >= 0 && from <= len(m.text) {
		start := m.leftmost(m.re.tree.prog, from)
		if start < 0 || m.err != nil {
			break
		}
		if end := m.preferred(start); end >= 0 {
			return m.result(start, end), m.err
		}
		from = start + 1
	}
	return nil, m.err
}

// preferred is the end of the match that begins at start, which has been taken
// apart; -1 if back references leave none.
func (m *reMatcher) preferred(start int) int {
	found := -1
	if m.re.tree.flags&reShorter != 0 {
		m.run(m.re.tree.prog, start, len(m.text), func(i int) bool {
			if m.takeApart(start, i) {
				found = i
			}
			return found < 0 && m.err == nil
		})
		return found
	}
	ends := m.ends(m.re.tree.prog, start, len(m.text))
	for i := len(ends) - 1; i >= 0 && found < 0 && m.err == nil; i-- {
		if m.takeApart(start, ends[i]) {
			found = ends[i]
		}
	}
	return found
}

// within takes a match apart whose bounds are known, in bytes.
func (m *reMatcher) within(lo, hi int) ([]int, error) {
	lo, hi = m.fromBytes(lo), m.fromBytes(hi)
	if !m.takeApart(lo, hi) && m.err == nil {
		m.groups = slices.Repeat([]int{-1}, 2*m.re.groups+2)
	}
	return m.result(lo, hi), m.err
}

func (m *reMatcher) takeApart(lo, hi int) bool {
	m.groups = slices.Repeat([]int{-1}, 2*m.re.groups+2)
	return m.dissect(m.re.tree, lo, hi)
}

func (m *reMatcher) result(lo, hi int) []int {
	m.groups[0], m.groups[1] = lo, hi
	for i, v := range m.groups {
		m.groups[i] = m.toBytes(v)
	}
	return m.groups
}

// leftmost is the first place at or behind from where a match begins, -1 if none.
func (m *reMatcher) leftmost(p *reProgram, from int) int {
	cur, next := m.take(len(*p)), m.take(len(*p))
	defer func() { m.free = append(m.free, cur, next) }()
	best := -1
	for i := from; ; i++ {
		if best < 0 {
			m.follow(p, cur, 0, i, i)
		}
		for k := 0; k < len(cur.at) && m.err == nil; k++ {
			if best >= 0 && cur.start[k] >= best {
				break
			}
			in := &(*p)[cur.at[k]]
			switch {
			case in.op == opAccept:
				best = cur.start[k]
			case i < len(m.text) && m.work() && inSet(in.set, m.text[i]):
				m.follow(p, next, cur.at[k]+1, i+1, cur.start[k])
			}
		}
		cur.at, cur.start = cur.at[:0], cur.start[:0]
		cur, next = next, cur
		if i == len(m.text) || best >= 0 && len(cur.at) == 0 || m.err != nil {
			return best
		}
	}
}

// ends lists the places up to limit where a match ends that begins at from.
func (m *reMatcher) ends(p *reProgram, from, limit int) []int {
	var list []int
	m.run(p, from, limit, func(i int) bool { list = append(list, i); return true })
	return list
}

// run calls f with the ends of matches that begin at from, in ascending order,
// until it returns false.
func (m *reMatcher) run(p *reProgram, from, limit int, f func(i int) bool) {
	cur, next := m.take(len(*p)), m.take(len(*p))
	defer func() { m.free = append(m.free, cur, next) }()
	m.follow(p, cur, 0, from, from)
	for i := from; len(cur.at) > 0 && m.err == nil; i++ {
		accepted := false
		for _, at := range cur.at {
			in := &(*p)[at]
			switch {
			case in.op == opAccept:
				accepted = true
			case i < limit && m.work() && inSet(in.set, m.text[i]):
				m.follow(p, next, at+1, i+1, from)
			}
		}
		if accepted && !f(i) {
			return
		}
		cur.at, cur.start = cur.at[:0], cur.start[:0]
		cur, next = next, cur
	}
}

// take provides empty threads for an automaton of n instructions.
func (m *reMatcher) take(n int) *threads {
	t := new(threads)
	if k := len(m.free); k > 0 {
		t, m.free = m.free[k-1], m.free[:k-1]
	}
	t.at, t.start = t.at[:0], t.start[:0]
	if cap(t.seen) < n {
		t.seen = make([]int, n)
	}
	t.seen = t.seen[:n]
	clear(t.seen)
	return t
}

// follow adds the states that are reached from an instruction at a place without
// reading: those that read, and the accepting one.
func (m *reMatcher) follow(p *reProgram, t *threads, pc, i, start int) {
	stack := make([]int, 0, 16)
	for stack = append(stack, pc); len(stack) > 0 && m.work(); {
		pc := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if t.seen[pc] == i+1 {
			continue
		}
		t.seen[pc] = i + 1
		switch in := &(*p)[pc]; in.op {
		case opJump:
			stack = append(stack, in.x)
		case opSplit:
			stack = append(stack, in.y, in.x)
		case opCheck:
			if m.holds(in.check, i) {
				stack = append(stack, pc+1)
			}
		default:
			t.at, t.start = append(t.at, pc), append(t.start, start)
		}
	}
}

func (m *reMatcher) word(i int) bool { return i >= 0 && i < len(m.text) && isWordRune(m.text[i]) }

// holds tells whether a condition holds at a place.
func (m *reMatcher) holds(k *reCheck, i int) bool {
	switch k.kind {
	case '^':
		return i == 0 || m.re.opt.multi && m.text[i-1] == '\n'
	case '$':
		return i == len(m.text) || m.re.opt.multi && m.text[i] == '\n'
	case 'A':
		return i == 0
	case 'Z':
		return i == len(m.text)
	case 'm':
		return !m.word(i-1) && m.word(i)
	case 'M':
		return m.word(i-1) && !m.word(i)
	case 'y':
		return m.word(i-1) != m.word(i)
	case 'Y':
		return m.word(i-1) == m.word(i)
	}
	if k.behind {
		return m.looksBehind(k)[i] != k.not
	}
	seen := m.ahead[k.index]
	if seen == nil {
		seen = map[int]bool{}
		m.ahead[k.index] = seen
	}
	found, known := seen[i]
	if !known {
		m.run(m.re.looks[k.index], i, len(m.text), func(int) bool { found = true; return false })
		seen[i] = found
	}
	return found != k.not
}

// looksBehind marks all places where a match of a lookbehind ends, wherever it
// begins.
func (m *reMatcher) looksBehind(k *reCheck) []bool {
	if m.behind[k.index] != nil {
		return m.behind[k.index]
	}
	marks := make([]bool, len(m.text)+1)
	m.behind[k.index] = marks
	p := m.re.looks[k.index]
	cur, next := m.take(len(*p)), m.take(len(*p))
	defer func() { m.free = append(m.free, cur, next) }()
	for i := 0; m.err == nil; i++ {
		m.follow(p, cur, 0, i, i)
		for _, at := range cur.at {
			in := &(*p)[at]
			switch {
			case in.op == opAccept:
				marks[i] = true
			case i < len(m.text) && m.work() && inSet(in.set, m.text[i]):
				m.follow(p, next, at+1, i+1, i)
			}
		}
		if i == len(m.text) {
			break
		}
		cur.at, cur.start = cur.at[:0], cur.start[:0]
		cur, next = next, cur
	}
	return marks
}

// sameCase compares characters as a back reference does.
func (m *reMatcher) sameCase(a, b rune) bool {
	return a == b || m.re.opt.fold && unicode.ToLower(a) == unicode.ToLower(b)
}
