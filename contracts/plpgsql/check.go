package plpgsql

import (
	"errors"
	"fmt"

	"github.com/tallystick/tallystick/sql/plan"
)

// check plans one piece of SQL, or follows what a statement makes of the row
// type of a RECORD variable. Checks run in the order of the text over a frame
// that has no values.
type check func(fr *frame, c *checker)

// checker collects what checks find.
type checker struct {
	p     *program
	errs  []error
	visit func(line int, st *plan.Plan, e *plan.ExprPlan)
	to    *Inspector
	row   *rowType // of NEW and OLD in a trigger function; nil = unknown
	// refusals counts what has been refused
	refusals int
}

func (b *builder) check(c check) { b.p.checks = append(b.p.checks, c) }

func (p *program) check() []error { return p.visit(&checker{p: p}) }

func (p *program) visit(c *checker) []error {
	fr := &frame{p: p, recs: make([]record, p.records)}
	for i, v := range p.fixed {
		if v != nil {
			fr.recs[i].typ = v.row
		}
	}
	if c.row != nil {
		for _, v := range []int{varNew, varOld} {
			fr.recs[p.vars[p.fn.trigger[v].id].rec].typ = c.row
		}
	}
	for _, f := range p.checks {
		f(fr, c)
	}
	return c.errs
}

// add keeps an error, with the place in the function that it concerns.
func (c *checker) add(err error, line int, title string) {
	if err == nil || errors.Is(err, errUnassigned) {
		return
	}
	where := fmt.Sprintf("PL/pgSQL function %s line %d", c.p.fn.name, line)
	if title != "" {
		where += " at " + title
	}
	c.errs = append(c.errs, withContext(err, where))
}

// check plans the site.
func (s *site) check(fr *frame, c *checker) {
	pl := s.cur.Load()
	if pl == nil || pl.deps != nil && !pl.fits(fr) {
		var err error
		c.inspecting(s)
		before := c.refusals
		if pl, err = s.plan(fr); err != nil {
			if c.to != nil && !errors.Is(err, errUnassigned) && c.refusals == before {
				c.to.Failed(s.e.pos, err)
			}
			c.add(err, s.line(), "")
			return
		}
		s.cur.Store(pl)
	}
	c.show(s, pl)
	if c.visit == nil {
		return
	}
	if pl.prog != nil {
		c.visit(s.line(), pl.prog.Plan(), nil)
	} else {
		c.visit(s.line(), nil, pl.ep)
	}
}

// line is the line of the body that the site begins on.
func (s *site) line() int {
	line := 1
	for i := 0; i < s.e.pos && i < len(s.p.fn.def.Body); i++ {
		if s.p.fn.def.Body[i] == '\n' {
			line++
		}
	}
	return line
}

// checkInto follows the row type of a query into a RECORD variable.
func (b *builder) checkInto(q *site, in *intoProg) {
	b.check(func(fr *frame, c *checker) {
		pl := q.cur.Load()
		if pl == nil {
			in.forget(fr)
			return
		}
		if pl.cols == nil {
			c.add(errNoRows(), q.line(), "")
			return
		}
		if in.rec != nil && in.rec.row == nil {
			fr.recs[in.rec.rec].typ = pl.cols
		}
		if _, err := in.castsFor(b.p, pl.cols); err != nil {
			c.add(err, q.line(), "")
		}
	})
}

// checkUnknown notes that a RECORD variable gets a row type that only running
// shows.
func (b *builder) checkUnknown(in *intoProg) {
	b.check(func(fr *frame, _ *checker) { in.forget(fr) })
}

func (in *intoProg) forget(fr *frame) {
	if in.rec != nil && in.rec.row == nil {
		fr.recs[in.rec.rec].typ = nil
	}
}
