package plpgsql

import (
	"math"

	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

var (
	int4    = datum.T(datum.Int4)
	boolean = datum.T(datum.BoolType)
	textual = datum.T(datum.Text)
)

// builder turns the syntax tree into closures. The first error wins.
type builder struct {
	p     *program
	line  int
	bound map[*variable]*site // queries of bound cursors
	err   error
}

// fail notes an error of compilation.
func (b *builder) fail(e *pgerr.Error) {
	if b.err == nil {
		b.err = compileContext(b.p.fn.def, b.line, e)
	}
}

// site makes the place where an expression is evaluated, converted to want.
func (b *builder) site(e *expr, want datum.Type) *site {
	s := &site{p: b.p, e: e, want: want}
	b.check(s.check)
	return s
}

func (b *builder) optional(e *expr, want datum.Type) *site {
	if e == nil {
		return nil
	}
	return b.site(e, want)
}

func (b *builder) sites(list []*expr) []*site {
	var out []*site
	for _, e := range list {
		out = append(out, b.site(e, datum.Type{}))
	}
	return out
}

// list compiles statements.
func (b *builder) list(body []stmt) seq {
	out := make(seq, 0, len(body))
	for _, s := range body {
		outer := b.line
		b.line = s.line()
		run := b.statement(s)
		b.line = outer
		out = append(out, statement{run: run, line: s.line(), title: s.title()})
	}
	return out
}

type runFunc = func(fr *frame) (flow, error)

func (b *builder) statement(s stmt) runFunc {
	switch s := s.(type) {
	case *block:
		return b.block(s)
	case *assignStmt:
		return b.assign(s)
	case *ifStmt:
		return b.ifStatement(s)
	case *caseStmt:
		return b.caseStatement(s)
	case *loopStmt:
		return b.loop(s)
	case *forIntStmt:
		return b.forInt(s)
	case *forQueryStmt:
		return b.forQuery(s)
	case *forCursorStmt:
		return b.forCursor(s)
	case *foreachStmt:
		return b.foreach(s)
	case *exitStmt:
		return b.exit(s)
	case *returnStmt:
		return b.returnStatement(s)
	case *returnNextStmt:
		return b.returnNext(s)
	case *returnQueryStmt:
		return b.returnQuery(s)
	case *raiseStmt:
		return b.raise(s)
	case *assertStmt:
		return b.assert(s)
	case *sqlStmt:
		return b.sql(s)
	case *performStmt:
		return b.perform(s)
	case *callStmt:
		return b.call(s)
	case *executeStmt:
		return b.execute(s)
	case *diagStmt:
		return b.diagnostics(s)
	case *openStmt:
		return b.open(s)
	case *fetchStmt:
		return b.fetch(s)
	case *closeStmt:
		return b.closeCursor(s)
	}
	panic("plpgsql: unknown statement")
}

func (b *builder) assign(s *assignStmt) runFunc {
	pl := b.place(&s.target)
	if pl.kind == wholeRow {
		return b.assignRow(s, pl)
	}
	v := &site{p: b.p, e: s.value}
	if pl.static() {
		v.want = pl.valueType(pl.typ)
	} else {
		v.target = pl
	}
	b.check(v.check)
	if pl.static() && len(pl.steps) == 0 && pl.info.rec < 0 && !pl.info.v.notNull {
		at := pl.at
		return func(fr *frame) (flow, error) {
			d, err := v.eval(fr)
			if err != nil {
				return goOn, err
			}
			fr.vars[at] = d
			return goOn, nil
		}
	}
	return func(fr *frame) (flow, error) {
		d, err := v.eval(fr)
		if err != nil {
			return goOn, err
		}
		return goOn, pl.store(fr, d)
	}
}

// assignRow assigns to a record variable as a whole.
func (b *builder) assignRow(s *assignStmt, pl *place) runFunc {
	v := b.site(s.value, datum.Type{})
	b.check(func(fr *frame, c *checker) {
		if p := v.cur.Load(); p != nil && pl.info.row == nil {
			fr.recs[pl.info.rec].typ = p.rowOf(fr)
		}
	})
	in := &intoProg{rec: pl.info}
	return func(fr *frame) (flow, error) {
		row, vals, err := v.rowValue(fr)
		if err != nil {
			return goOn, err
		}
		return goOn, fr.storeRow(in, row, vals)
	}
}

// storeRow moves a row of any type into a record variable; without a row type
// it is a null of unknown type.
func (fr *frame) storeRow(in *intoProg, row *rowType, vals []datum.Datum) error {
	if row == nil {
		r := &fr.recs[in.rec.rec]
		if in.rec.row == nil {
			r.typ, r.null = nil, true
			return nil
		}
		return in.moveRecord(fr, in.rec.row, nil, nil)
	}
	casts, err := in.castsFor(fr.p, row)
	if err != nil {
		return err
	}
	return in.move(fr, row, casts, vals)
}

// rowOf is the row type of a planned expression, as far as it is known before
// it is evaluated.
func (pl *planned) rowOf(fr *frame) *rowType {
	if pl.mode == readRow {
		return fr.recs[pl.at].typ
	}
	return pl.row
}

// rowValue evaluates an expression that must give a row; nil vals are null.
func (s *site) rowValue(fr *frame) (*rowType, []datum.Datum, error) {
	pl, err := s.ready(fr)
	if err != nil {
		return nil, nil, err
	}
	if pl.mode == readRow {
		r := &fr.recs[pl.at]
		if r.null {
			return r.typ, nil, nil
		}
		return r.typ, r.vals, nil
	}
	d, err := s.value(fr, pl)
	if err != nil {
		return nil, nil, err
	}
	if d.IsNull() {
		return pl.row, nil, nil
	}
	if !isRow(pl.typ) {
		return nil, nil, pgerr.New(pgerr.FeatureNotSupported, "input of anonymous composite types is not implemented")
	}
	if pl.row != nil {
		_, vals := datum.RecordFields(d)
		return pl.row, vals, nil
	}
	row, vals := rowTypeOfValue(d)
	return row, vals, nil
}

func (b *builder) ifStatement(s *ifStmt) runFunc {
	type branch struct {
		cond *site
		body seq
	}
	var arms []branch
	for i := range s.arms {
		arms = append(arms, branch{b.site(s.arms[i].cond, boolean), b.list(s.arms[i].body)})
	}
	otherwise := b.list(s.elseBody)
	return func(fr *frame) (flow, error) {
		for i := range arms {
			d, err := arms[i].cond.eval(fr)
			if err != nil {
				return goOn, err
			}
			if d.IsTrue() {
				return arms[i].body.run(fr)
			}
		}
		return otherwise.run(fr)
	}
}

func (b *builder) caseStatement(s *caseStmt) runFunc {
	var arg *site
	var argVar *varInfo
	if s.arg != nil {
		arg, argVar = b.site(s.arg, datum.Type{}), b.p.vars[s.argVar.id]
		b.check(func(fr *frame, c *checker) {
			if pl := arg.cur.Load(); pl != nil {
				fr.recs[argVar.rec].typ = pl.single()
			}
		})
	}
	conds, bodies := make([]*site, len(s.arms)), make([]seq, len(s.arms))
	for i := range s.arms {
		conds[i], bodies[i] = b.site(s.arms[i].cond, boolean), b.list(s.arms[i].body)
	}
	otherwise := b.list(s.elseBody)
	return func(fr *frame) (flow, error) {
		if arg != nil {
			pl, err := arg.ready(fr)
			if err != nil {
				return goOn, err
			}
			d, err := arg.value(fr, pl)
			if err != nil {
				return goOn, err
			}
			fr.one[0] = d
			fr.recs[argVar.rec].set(pl.single(), fr.one[:])
		}
		for i, c := range conds {
			d, err := c.eval(fr)
			if err != nil {
				return goOn, err
			}
			if d.IsTrue() {
				return bodies[i].run(fr)
			}
		}
		if s.hasElse {
			return otherwise.run(fr)
		}
		return goOn, pgerr.New(pgerr.CaseNotFound, "case not found").
			WithHint("CASE statement is missing ELSE part.")
	}
}

// single is the row type with the value of an expression as its only field.
func (pl *planned) single() *rowType {
	return newRowType([]string{"value"}, []datum.Type{pl.typ})
}

func (b *builder) loop(s *loopStmt) runFunc {
	cond, body, label := b.optional(s.cond, boolean), b.list(s.body), s.label
	return func(fr *frame) (flow, error) {
		for {
			if err := fr.spend(); err != nil {
				return goOn, err
			}
			if cond != nil {
				d, err := cond.eval(fr)
				if err != nil {
					return goOn, err
				}
				if !d.IsTrue() {
					return goOn, nil
				}
			}
			fl, err := body.run(fr)
			if err != nil {
				return goOn, err
			}
			if again, out := fr.loops(fl, label); !again {
				return out, nil
			}
		}
	}
}

func (b *builder) forInt(s *forIntStmt) runFunc {
	lower, upper, step := b.site(s.lower, int4), b.site(s.upper, int4), b.optional(s.step, int4)
	body, label, at, reverse := b.list(s.body), s.label, b.p.vars[s.v.id].at, s.reverse
	found := b.found()
	return func(fr *frame) (flow, error) {
		lo, err := fr.bound(lower, "lower bound of FOR loop cannot be null")
		if err != nil {
			return goOn, err
		}
		hi, err := fr.bound(upper, "upper bound of FOR loop cannot be null")
		if err != nil {
			return goOn, err
		}
		by := int64(1)
		if step != nil {
			if by, err = fr.bound(step, "BY value of FOR loop cannot be null"); err != nil {
				return goOn, err
			}
			if by <= 0 {
				return goOn, pgerr.New(pgerr.InvalidParameterValue, "BY value of FOR loop must be greater than zero")
			}
		}
		any := false
		for i := lo; ; {
			if reverse && i < hi || !reverse && i > hi {
				break
			}
			if err := fr.spend(); err != nil {
				return goOn, err
			}
			any = true
			fr.vars[at] = datum.Int(i)
			fl, err := body.run(fr)
			if err != nil {
				return goOn, err
			}
			if again, out := fr.loops(fl, label); !again {
				fr.setFound(found, true)
				return out, nil
			}
			if reverse {
				i -= by
			} else {
				i += by
			}
			if i > math.MaxInt32 || i < math.MinInt32 {
				break
			}
		}
		fr.setFound(found, any)
		return goOn, nil
	}
}

// bound evaluates a bound of an integer loop.
func (fr *frame) bound(s *site, null string) (int64, error) {
	d, err := s.eval(fr)
	if err != nil {
		return 0, err
	}
	if d.IsNull() {
		return 0, pgerr.New(pgerr.NullValueNotAllowed, "%s", null)
	}
	return d.Int(), nil
}

// found is the place of the variable FOUND.
func (b *builder) found() int { return b.p.vars[b.p.fn.found.id].at }

func (fr *frame) setFound(at int, v bool) { fr.vars[at] = datum.Bool(v) }

func (b *builder) exit(s *exitStmt) runFunc {
	cond, label := b.optional(s.cond, boolean), s.label
	how := doExit
	if s.again {
		how = doContinue
	}
	return func(fr *frame) (flow, error) {
		if cond != nil {
			d, err := cond.eval(fr)
			if err != nil || !d.IsTrue() {
				return goOn, err
			}
		}
		fr.leave = label
		return how, nil
	}
}
