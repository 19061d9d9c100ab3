package plpgsql

import (
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/exec"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// frame is one call of a function.
type frame struct {
	p   *program
	env *exec.Env
	// vars are the scalar variables and the fields of rows of fixed type, and
	// behind them what expressions gather for themselves. It is the parameter
	// vector of everything the function evaluates.
	vars []datum.Datum
	recs []record

	// Where the function is, for the context of errors: a statement, or a phase
	// outside of any.
	at        *statement
	phase     string
	phaseLine int
	rethrown  bool // the error has this function's context already

	rowCount int64
	leave    *label      // what EXIT or CONTINUE goes to
	ret      datum.Datum // what RETURN gave
	retRow   *rowType    // of ret, if it is a row with known fields
	emit     func(row []datum.Datum) error
	handled  *pgerr.Error // in an exception handler: the error
	cursors  []*openCursor
	portals  int

	buf   []datum.Datum // a row of a query on its way into variables
	one   [1]datum.Datum
	noted *planned
	ticks uint32
}

// flow is how a statement ended.
type flow uint8

const (
	goOn flow = iota
	doExit
	doContinue
	doReturn
)

// frame takes a frame for a call.
func (p *program) frame(env *exec.Env) *frame {
	fr, ok := p.frames.Get().(*frame)
	if !ok {
		fr = &frame{p: p, recs: make([]record, p.records)}
	}
	fr.env = env
	fr.vars = append(fr.vars[:0], p.initial...)
	for i := range fr.recs {
		r := &fr.recs[i]
		r.typ, r.null = nil, true
		if v := p.fixed[i]; v != nil {
			r.typ = v.row
			r.vals = fr.vars[v.at : v.at+len(v.row.types) : v.at+len(v.row.types)]
		}
	}
	return fr
}

// grow makes room for what an expression gathers. The fields of fixed rows move
// along.
func (fr *frame) grow(n int) {
	for len(fr.vars) < n {
		fr.vars = append(fr.vars, datum.Null)
	}
	for i := range fr.recs {
		if v := fr.p.fixed[i]; v != nil {
			fr.recs[i].vals = fr.vars[v.at : v.at+len(v.row.types) : v.at+len(v.row.types)]
		}
	}
}

// release puts a frame away.
func (p *program) release(fr *frame) {
	fr.closeCursors(0)
	clear(fr.vars)
	clear(fr.buf)
	for i := range fr.recs {
		if p.fixed[i] == nil {
			clear(fr.recs[i].vals)
		}
	}
	*fr = frame{p: p, vars: fr.vars[:0], recs: fr.recs, buf: fr.buf[:0], cursors: fr.cursors[:0]}
	p.frames.Put(fr)
}

// deepest is how deep calls may nest whatever the limits say: the stack of a
// process is finite.
const deepest = 5000

// run executes the function.
func (fr *frame) run(args []datum.Datum) error {
	if fr.env.Depth > deepest {
		return pgerr.New(pgerr.StatementTooComplex, "stack depth limit exceeded").
			WithHint("Function calls nest more than %d levels.", deepest)
	}
	p := fr.p
	for i := range p.inputs {
		fr.pass(&p.inputs[i], args[i])
	}
	if p.reads != nil {
		fr.env.NoteShared(p.reads)
	}
	fl, err := seq(p.body).run(fr)
	if err == nil && fl != doReturn && !p.endsWell {
		fr.at = nil
		what := "function"
		if isTrigger(p.fn.def) {
			what = "trigger procedure"
		}
		err = pgerr.New(pgerr.FunctionExecutedNoReturn, "control reached end of %s without RETURN", what)
	}
	if err == nil {
		err = fr.finish()
	}
	if err != nil && !fr.rethrown {
		err = withContext(err, fr.context())
	}
	return err
}

// pass gives an argument to the function.
func (fr *frame) pass(in *input, d datum.Datum) {
	fr.vars[in.at] = d
	if in.info.rec < 0 {
		return
	}
	r := &fr.recs[in.info.rec]
	switch {
	case in.info.row == nil && d.IsNull():
		r.typ, r.null = nil, true
	case in.info.row == nil:
		row, vals := rowTypeOfValue(d)
		r.set(row, vals)
	case d.IsNull():
		r.null = true
	default:
		_, vals := datum.RecordFields(d)
		r.null = false
		for i := range r.vals {
			r.vals[i] = datum.Null
			if i < len(vals) {
				r.vals[i] = vals[i]
			}
		}
	}
}

// spend takes a step from the budget and looks for interruption now and then.
func (fr *frame) spend() error {
	if b := fr.env.Ctx.Budget; b != nil {
		if b.Left--; b.Left < 0 {
			return b.Spend(0)
		}
	}
	if fr.ticks++; fr.ticks&255 == 0 && fr.env.Interrupted != nil {
		return fr.env.Interrupted()
	}
	return nil
}

// statement is a compiled statement.
type statement struct {
	run   func(fr *frame) (flow, error)
	line  int
	title string
}

// seq is a list of statements.
type seq []statement

// run executes the statements in order. When one fails, fr.at stays at it.
func (s seq) run(fr *frame) (flow, error) {
	outer := fr.at
	for i := range s {
		st := &s[i]
		fr.at = st
		if err := fr.spend(); err != nil {
			return goOn, err
		}
		fl, err := st.run(fr)
		if err != nil {
			return goOn, err
		}
		if fl != goOn {
			fr.at = outer
			return fl, nil
		}
	}
	fr.at = outer
	return goOn, nil
}

// loops tells what a loop does after its body ended with fl: go on with the
// next round, or end with out.
func (fr *frame) loops(fl flow, l *label) (again bool, out flow) {
	switch fl {
	case goOn:
		return true, goOn
	case doExit:
		if fr.leave == l {
			return false, goOn
		}
	case doContinue:
		if fr.leave == l {
			return true, goOn
		}
	}
	return false, fl
}
