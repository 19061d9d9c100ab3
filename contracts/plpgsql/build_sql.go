package plpgsql

import (
	"slices"
	"sync/atomic"

	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/exec"
	"github.com/tallystick/tallystick/sql/parse"
	"github.com/tallystick/tallystick/sql/pgerr"
	"github.com/tallystick/tallystick/sql/plan"
)

// sql is a statement with or without INTO.
func (b *builder) sql(s *sqlStmt) runFunc {
	q, found := b.site(s.query, datum.Type{}), b.found()
	if s.into == nil {
		b.check(func(_ *frame, c *checker) {
			if pl := q.cur.Load(); pl != nil && pl.cols != nil {
				c.add(noDestination(pl.prog.Plan().Command), s.line(), s.title())
			}
		})
		return func(fr *frame) (flow, error) {
			pl, err := q.ready(fr)
			if err != nil {
				return goOn, err
			}
			if pl.cols != nil {
				return goOn, noDestination(pl.prog.Plan().Command)
			}
			pl.bring(fr)
			n, err := pl.prog.Run(fr.env, fr.vars)
			if err != nil {
				return goOn, q.placed(err, 0)
			}
			fr.rowCount = n
			fr.setFound(found, n > 0)
			return goOn, nil
		}
	}
	in := b.into(s.into)
	if !in.strict {
		q.use = FirstRow
	}
	b.checkInto(q, in)
	return func(fr *frame) (flow, error) {
		pl, err := q.readyInto(fr, in)
		if err != nil {
			return goOn, err
		}
		pl.bring(fr)
		n, err := fr.first(pl.prog, fr.vars, in.strict)
		if err != nil {
			return goOn, q.placed(err, 0)
		}
		return goOn, fr.took(in, pl.cols, pl.casts, n, pl.prog.Plan().Command, found)
	}
}

func noDestination(command string) error {
	e := pgerr.New(pgerr.SyntaxError, "query has no destination for result data")
	if command == "SELECT" {
		e = e.WithHint("If you want to discard the results of a SELECT, use PERFORM instead.")
	}
	return e
}

func errNoRows() error {
	return pgerr.New(pgerr.SyntaxError, "INTO used with a command that cannot return data")
}

// readyInto is ready for a statement whose row goes into variables.
func (s *site) readyInto(fr *frame, in *intoProg) (*planned, error) {
	pl, err := s.ready(fr)
	if err != nil || pl.into == in {
		return pl, err
	}
	if pl.cols == nil {
		return nil, errNoRows()
	}
	c := *pl
	if c.casts, err = in.castsFor(s.p, c.cols); err != nil {
		return nil, err
	}
	c.into = in
	s.cur.Store(&c)
	return &c, nil
}

// first runs a statement and keeps its first row in fr.buf. A SELECT that need
// not be strict reads no further than that row.
func (fr *frame) first(prog *exec.Program, params []datum.Datum, strict bool) (int, error) {
	p := prog.Plan()
	fr.buf = slices.Grow(fr.buf[:0], len(p.Columns))[:len(p.Columns)]
	limit := 2
	if p.Command == "SELECT" && !p.Writes && !strict {
		limit = 1
	}
	return prog.FirstOf(fr.env, params, fr.buf, limit)
}

// took moves what first found into the targets. Statements that change rows are
// always strict about more than one.
func (fr *frame) took(in *intoProg, cols *rowType, casts []*exec.ExprProgram, n int, command string, found int) error {
	fr.rowCount = int64(n)
	if found >= 0 {
		fr.setFound(found, n > 0)
	}
	switch {
	case n == 0 && in.strict:
		return pgerr.New(pgerr.NoDataFound, "query returned no rows")
	case n > 1 && (in.strict || command != "SELECT"):
		return pgerr.New(pgerr.TooManyRows, "query returned more than one row").
			WithHint("Make sure the query returns a single row, or use LIMIT 1.")
	}
	if n == 0 {
		return in.move(fr, cols, casts, nil)
	}
	return in.move(fr, cols, casts, fr.buf)
}

func (b *builder) perform(s *performStmt) runFunc {
	q, found := b.site(s.query, datum.Type{}), b.found()
	return func(fr *frame) (flow, error) {
		pl, err := q.ready(fr)
		if err != nil {
			return goOn, err
		}
		pl.bring(fr)
		n, err := pl.prog.Run(fr.env, fr.vars)
		if err != nil {
			return goOn, q.placed(err, 0)
		}
		fr.rowCount = n
		fr.setFound(found, n > 0)
		return goOn, nil
	}
}

// dynamic is the statement that an EXECUTE last ran, made ready.
type dynamic struct {
	text  string
	types []datum.Type
	prog  *exec.Program
}

// dynamicSite is a text that is computed and its parameters.
type dynamicSite struct {
	text  *site
	using []*site
	use   Use
	last  atomic.Pointer[dynamic]
}

func (b *builder) dynamic(query *expr, using []*expr) *dynamicSite {
	d := &dynamicSite{text: b.site(query, textual), using: b.sites(using)}
	b.checkDynamic(d.text)
	return d
}

// prepare evaluates text and parameters and makes the statement ready.
func (d *dynamicSite) prepare(fr *frame) (text string, prog *exec.Program, params []datum.Datum, err error) {
	v, err := d.text.eval(fr)
	if err != nil {
		return "", nil, nil, err
	}
	if v.IsNull() {
		return "", nil, nil, pgerr.New(pgerr.NullValueNotAllowed, "query string argument of EXECUTE is null")
	}
	text = v.Str()
	var types []datum.Type
	for _, u := range d.using {
		pl, err := u.ready(fr)
		if err != nil {
			return "", nil, nil, err
		}
		val, err := u.value(fr, pl)
		if err != nil {
			return "", nil, nil, err
		}
		params, types = append(params, val), append(types, pl.typ)
	}
	if last := d.last.Load(); last != nil && last.text == text && slices.Equal(last.types, types) {
		return text, last.prog, params, nil
	}
	var l looked
	prog, err = fr.p.compileText(text, types, d.use, &l)
	if err != nil {
		l.failed(fr.env)
		return "", nil, nil, inSQL(err, "SQL statement", text, 0, 0)
	}
	d.last.Store(&dynamic{text: text, types: types, prog: prog})
	return text, prog, params, nil
}

func (p *program) compileText(text string, types []datum.Type, use Use, l *looked) (*exec.Program, error) {
	st, err := parse.One(text)
	if err != nil {
		return nil, err
	}
	if sel := st.Node.GetSelectStmt(); sel != nil && sel.IntoClause != nil {
		return nil, pgerr.New(pgerr.FeatureNotSupported, "EXECUTE of SELECT ... INTO is not implemented").
			WithHint("You might want to use EXECUTE ... INTO or EXECUTE CREATE TABLE ... AS instead.")
	}
	if st.Node.GetSelectStmt() == nil && st.Node.GetInsertStmt() == nil && st.Node.GetUpdateStmt() == nil && st.Node.GetDeleteStmt() == nil {
		return nil, refusedStatement(st)
	}
	opts := p.opts
	opts.Params, opts.Script, opts.Note = types, st.Script, l.note
	pl, err := plan.Statement(st.Node, &opts)
	if err == nil {
		err = p.verify(&Piece{Use: use, Plan: pl})
	}
	if err != nil {
		return nil, err
	}
	return exec.Compile(pl)
}

func (b *builder) execute(s *executeStmt) runFunc {
	d := b.dynamic(s.query, s.using)
	if s.into == nil {
		return func(fr *frame) (flow, error) {
			text, prog, params, err := d.prepare(fr)
			if err != nil {
				return goOn, err
			}
			n, err := prog.Run(fr.env, params)
			if err != nil {
				return goOn, inSQL(err, "SQL statement", text, 0, 0)
			}
			fr.rowCount = n
			return goOn, nil
		}
	}
	in := b.into(s.into)
	if !in.strict {
		d.use = FirstRow
	}
	b.checkUnknown(in)
	return func(fr *frame) (flow, error) {
		text, prog, params, err := d.prepare(fr)
		if err != nil {
			return goOn, err
		}
		cols := prog.Plan().Columns
		if cols == nil {
			return goOn, errNoRows()
		}
		n, err := fr.first(prog, params, in.strict)
		if err != nil {
			return goOn, inSQL(err, "SQL statement", text, 0, 0)
		}
		row := rowTypeOf(cols)
		casts, err := in.castsFor(fr.p, row)
		if err != nil {
			return goOn, err
		}
		// EXECUTE leaves FOUND alone and, unlike a statement, is not strict
		// about rows too many unless told.
		if n > 1 && !in.strict {
			n = 1
		}
		return goOn, fr.took(in, row, casts, n, "SELECT", -1)
	}
}

// rows is an open query whose rows go into variables one after the other.
type rows struct {
	cursor *exec.Cursor
	cols   *rowType
	casts  []*exec.ExprProgram
	place  func(error) error // adds the query to an error
}

// openRows opens a query whose parameters must not change while it is read.
func (fr *frame) openRows(prog *exec.Program, params []datum.Datum, r *rows) error {
	if prog.Plan().Columns == nil {
		return pgerr.New(pgerr.SyntaxError, "cannot open %s query as cursor", prog.Plan().Command)
	}
	c, err := prog.Open(fr.env, params)
	if err != nil {
		return r.place(err)
	}
	r.cursor = c
	return nil
}

func (r *rows) next() ([]datum.Datum, error) {
	row, err := r.cursor.Next()
	if err != nil {
		return nil, r.place(err)
	}
	return row, nil
}

func (b *builder) forQuery(s *forQueryStmt) runFunc {
	var open func(fr *frame) (*rows, error)
	var in *intoProg
	if s.dyn {
		d := b.dynamic(s.query, s.using)
		in = b.into(s.into)
		b.checkUnknown(in)
		open = func(fr *frame) (*rows, error) {
			text, prog, params, err := d.prepare(fr)
			if err != nil {
				return nil, err
			}
			r := &rows{place: func(err error) error { return inSQL(err, "SQL statement", text, 0, 0) }}
			if err := fr.openRows(prog, params, r); err != nil {
				return nil, err
			}
			r.cols = rowTypeOf(prog.Plan().Columns)
			r.casts, err = in.castsFor(fr.p, r.cols)
			return r, err
		}
	} else {
		q := b.site(s.query, datum.Type{})
		in = b.into(s.into)
		b.checkInto(q, in)
		open = func(fr *frame) (*rows, error) {
			pl, err := q.readyInto(fr, in)
			if err != nil {
				return nil, err
			}
			pl.bring(fr)
			r := &rows{cols: pl.cols, casts: pl.casts, place: func(err error) error { return q.placed(err, 0) }}
			return r, fr.openRows(pl.prog, slices.Clone(fr.vars), r)
		}
	}
	body, label, found := b.list(s.body), s.label, b.found()
	return func(fr *frame) (flow, error) {
		r, err := open(fr)
		if err != nil {
			return goOn, err
		}
		return fr.eachRow(r, in, body, label, found)
	}
}

// eachRow runs the body of a loop for every row and closes the query.
func (fr *frame) eachRow(r *rows, in *intoProg, body seq, label *label, found int) (flow, error) {
	defer r.cursor.Close()
	any := false
	for {
		if err := fr.spend(); err != nil {
			return goOn, err
		}
		row, err := r.next()
		if err != nil {
			return goOn, err
		}
		if row == nil {
			break
		}
		any = true
		if err := in.move(fr, r.cols, r.casts, row); err != nil {
			return goOn, err
		}
		fl, err := body.run(fr)
		if err != nil {
			return goOn, err
		}
		if again, out := fr.loops(fl, label); !again {
			fr.setFound(found, true)
			return out, nil
		}
	}
	if !any {
		if err := in.move(fr, r.cols, r.casts, nil); err != nil {
			return goOn, err
		}
	}
	fr.setFound(found, any)
	return goOn, nil
}
