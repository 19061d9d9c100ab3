package builtin

// A part of an expression as an automaton, which decides whether it matches a
// stretch of the text in time linear in it.

// The instructions of an automaton.
const (
	opSet    byte = iota // one character of a set, then the next instruction
	opSplit              // both x and y
	opJump               // x
	opCheck              // the next instruction where a condition holds
	opAccept             // the end
)

type reInst struct {
	op    byte
	x, y  int
	set   []rune
	check *reCheck
}

// reProgram is an automaton; it starts at its first instruction.
type reProgram []reInst

// maxReProgram bounds the instructions of one expression, all its parts counted:
// PostgreSQL bounds its automata by memory (REG_MAX_COMPILE_SPACE).
const maxReProgram = 100_000

// reCompiler makes automata; left is what it may still emit.
type reCompiler struct {
	left  int
	looks []*reProgram // of the lookarounds
}

// program makes the automaton of an expression.
func (c *reCompiler) program(e *reExpr) (*reProgram, error) {
	p := new(reProgram)
	if err := c.emit(p, e); err != nil {
		return nil, err
	}
	return p, c.add(p, reInst{op: opAccept})
}

func (c *reCompiler) add(p *reProgram, i reInst) error {
	if c.left--; c.left < 0 {
		return regexError(errTooComplex)
	}
	*p = append(*p, i)
	return nil
}

func (c *reCompiler) emit(p *reProgram, e *reExpr) error {
	switch e.kind {
	case exprSet:
		return c.add(p, reInst{op: opSet, set: e.set})
	case exprCheck:
		if e.check.look != nil {
			if err := c.lookaround(e.check); err != nil {
				return err
			}
		}
		return c.add(p, reInst{op: opCheck, check: e.check})
	case exprCat:
		for _, k := range e.kids {
			if err := c.emit(p, k); err != nil {
				return err
			}
		}
	case exprAlt:
		return c.alternatives(p, e.kids)
	case exprRepeat:
		return c.repeat(p, e)
	}
	return nil
}

func (c *reCompiler) lookaround(k *reCheck) error {
	for len(c.looks) <= k.index {
		c.looks = append(c.looks, nil)
	}
	if c.looks[k.index] != nil {
		return nil
	}
	p, err := c.program(k.look)
	c.looks[k.index] = p
	return err
}

func (c *reCompiler) alternatives(p *reProgram, kids []*reExpr) error {
	var ends []int
	for i, k := range kids {
		split := len(*p)
		if i+1 < len(kids) {
			if err := c.add(p, reInst{op: opSplit, x: split + 1}); err != nil {
				return err
			}
		}
		if err := c.emit(p, k); err != nil {
			return err
		}
		if i+1 < len(kids) {
			ends = append(ends, len(*p))
			if err := c.add(p, reInst{op: opJump}); err != nil {
				return err
			}
			(*p)[split].y = len(*p)
		}
	}
	for _, at := range ends {
		(*p)[at].x = len(*p)
	}
	return nil
}

func (c *reCompiler) star(p *reProgram, e *reExpr) error {
	split := len(*p)
	if err := c.add(p, reInst{op: opSplit, x: split + 1}); err != nil {
		return err
	}
	if err := c.emit(p, e); err != nil {
		return err
	}
	err := c.add(p, reInst{op: opJump, x: split})
	(*p)[split].y = len(*p)
	return err
}

func (c *reCompiler) repeat(p *reProgram, e *reExpr) error {
	for range e.min {
		if err := c.emit(p, e.kids[0]); err != nil {
			return err
		}
	}
	if e.max < 0 {
		return c.star(p, e.kids[0])
	}
	var splits []int
	for range e.max - e.min {
		splits = append(splits, len(*p))
		if err := c.add(p, reInst{op: opSplit, x: len(*p) + 1}); err != nil {
			return err
		}
		if err := c.emit(p, e.kids[0]); err != nil {
			return err
		}
	}
	for _, at := range splits {
		(*p)[at].y = len(*p)
	}
	return nil
}

// tree makes the automata of a tree: of every part that is looked for by itself.
func (c *reCompiler) tree(t *reTree) error {
	var err error
	if t.prog, err = c.program(t.expr); err != nil {
		return err
	}
	for _, k := range t.kids {
		if err := c.tree(k); err != nil {
			return err
		}
	}
	return nil
}

// inSet tells whether a character is in a set: a few characters in any order, or
// ascending ranges.
func inSet(set []rune, r rune) bool {
	if len(set) <= 8 {
		for i := 0; i < len(set); i += 2 {
			if set[i] <= r && r <= set[i+1] {
				return true
			}
		}
		return false
	}
	lo, hi := 0, len(set)/2
	for lo < hi {
		mid := (lo + hi) / 2
		switch {
		case r < set[2*mid]:
			hi = mid
		case r > set[2*mid+1]:
			lo = mid + 1
		default:
			return true
		}
	}
	return false
}
