package exec

import (
	"fmt"

	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/plan"
)

type cteProg struct {
	id       int
	name     string
	node     nodeProg
	out      []int
	step     nodeProg // recursive term, or nil
	stepOut  []int
	kinds    *keyKinds // UNION of a recursive query
	modifies bool
}

type withProg struct {
	ctes []*cteProg
	body nodeProg
}

func (c *compiler) withNode(n *plan.With) (nodeProg, error) {
	p := &withProg{}
	for i := range n.CTEs {
		cte := &n.CTEs[i]
		cp := &cteProg{id: cte.ID, name: cte.Name, out: cte.Out, stepOut: cte.StepOut, modifies: cte.Modifies}
		var err error
		if cp.node, err = c.node(cte.Node); err != nil {
			return nil, err
		}
		if m, ok := cp.node.(*modifyProg); ok {
			m.deferWrites()
		}
		if cte.Step != nil {
			if cp.step, err = c.node(cte.Step); err != nil {
				return nil, err
			}
			if cte.Distinct {
				if cp.kinds, err = newKeyKinds(cte.Types); err != nil {
					return nil, err
				}
			}
		}
		p.ctes = append(p.ctes, cp)
	}
	var err error
	p.body, err = c.node(n.Body)
	return p, err
}

func (p *withProg) iter() rowIter {
	it := &withIter{p: p, body: p.body.iter(), states: make([]cteState, len(p.ctes))}
	for i, cte := range p.ctes {
		st := &it.states[i]
		st.p, st.node = cte, cte.node.iter()
		st.seen.rows.width = len(cte.out)
		st.seen.rows.paged = cte.kinds == nil
		if cte.step != nil {
			st.step = cte.step.iter()
			st.seen.kinds = cte.kinds
		}
		it.modifies = it.modifies || cte.modifies
	}
	return it
}

type withIter struct {
	p        *withProg
	body     rowIter
	states   []cteState
	modifies bool
}

func (it *withIter) open(f *frame) error {
	for i := range it.states {
		st := &it.states[i]
		st.forget(f)
		f.ctes[st.p.id] = st
	}
	if it.modifies {
		f.with = it
	}
	return it.body.open(f)
}

func (it *withIter) next(f *frame) (bool, error) {
	ok, err := it.body.next(f)
	if err != nil || ok || !it.modifies {
		return ok, err
	}
	return false, it.runRest(f)
}

// runRest runs the data-modifying queries that nobody has read to their end.
func (it *withIter) runRest(f *frame) error {
	for i := range it.states {
		st := &it.states[i]
		if !st.p.modifies {
			continue
		}
		for !st.done {
			if err := st.more(f); err != nil {
				return err
			}
		}
	}
	return nil
}

func (it *withIter) close() {
	it.body.close()
	for i := range it.states {
		it.states[i].close()
	}
}

// cteState holds the rows of one WITH query as far as they were asked for.
//
// The rows of a recursive query are produced in rounds: rows lo..hi are the
// working table of the present round, what it produces is appended and is the
// working table of the next.
type cteState struct {
	p      *cteProg
	node   rowIter
	step   rowIter
	seen   hashTable // its rows are the result; hashed for UNION only
	row    []datum.Datum
	begun  bool
	inStep bool
	done   bool
	busy   bool
	lo, hi int
}

func (s *cteState) forget(f *frame) {
	s.seen.reset(f)
	s.begun, s.inStep, s.done, s.busy, s.lo, s.hi = false, false, false, false, 0, 0
}

func (s *cteState) close() {
	s.node.close()
	if s.step != nil {
		s.step.close()
	}
	s.seen.drop()
	clear(s.row)
	s.begun, s.inStep, s.done, s.busy, s.lo, s.hi = false, false, false, false, 0, 0
}

// more appends at least one row to the result, or sets done.
func (s *cteState) more(f *frame) error {
	if s.busy {
		return fmt.Errorf("exec: WITH query %s reads itself", s.p.name)
	}
	s.busy = true
	err := s.advance(f)
	s.busy = false
	return err
}

func (s *cteState) advance(f *frame) error {
	if !s.begun {
		s.begun = true
		if err := s.node.open(f); err != nil {
			return err
		}
	}
	for {
		it, out := s.node, s.p.out
		if s.inStep {
			it, out = s.step, s.p.stepOut
		}
		ok, err := it.next(f)
		if err != nil {
			return err
		}
		if ok {
			if added, err := s.keep(f, out); err != nil || added {
				return err
			}
			continue
		}
		if s.step == nil {
			s.done = true
			return nil
		}
		// The round is over: its rows are the next working table.
		s.lo, s.hi = s.hi, s.seen.rows.n
		if s.lo == s.hi {
			s.done = true
			return nil
		}
		s.inStep = true
		if err := s.step.open(f); err != nil {
			return err
		}
	}
}

func (s *cteState) keep(f *frame, out []int) (added bool, err error) {
	if s.seen.kinds == nil {
		return true, s.seen.rows.addSlots(f, out)
	}
	s.row = resize(s.row, len(out))
	for i, slot := range out {
		s.row[i] = f.slots[slot]
	}
	_, added, err = s.seen.addUnique(f, s.row)
	return added, err
}

type cteScanProg struct {
	id      int
	slots   []int
	filter  evalFunc
	working bool
}

func (c *compiler) cteScan(n *plan.CTEScan) (nodeProg, error) {
	c.fills.add(n.Slots...)
	filter, err := c.optional(n.Filter)
	return &cteScanProg{n.ID, n.Slots, filter, n.Working}, err
}

func (p *cteScanProg) iter() rowIter { return &cteScanIter{p: p} }

type cteScanIter struct {
	p  *cteScanProg
	st *cteState
	at int
}

func (it *cteScanIter) open(f *frame) error {
	it.st = f.ctes[it.p.id]
	if it.st == nil {
		return fmt.Errorf("exec: WITH query %d is read outside of its WITH", it.p.id)
	}
	it.at = 0
	if it.p.working {
		it.at = it.st.lo
	}
	return nil
}

func (it *cteScanIter) close() { it.st = nil }

func (it *cteScanIter) next(f *frame) (bool, error) {
	rows := &it.st.seen.rows
	for {
		switch {
		case it.p.working:
			if it.at >= it.st.hi {
				return false, nil
			}
		default:
			for it.at >= rows.n {
				if it.st.done {
					return false, nil
				}
				if err := it.st.more(f); err != nil {
					return false, err
				}
			}
		}
		if err := f.row(); err != nil {
			return false, err
		}
		rows.restore(f, it.at, 0, it.p.slots)
		it.at++
		if ok, err := pass(f, it.p.filter); err != nil || ok {
			return ok, err
		}
	}
}
