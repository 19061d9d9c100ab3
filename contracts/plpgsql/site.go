package plpgsql

import (
	"errors"
	"sync/atomic"
	"unicode/utf8"

	"github.com/tallystick/tallystick/mvcc/rwset"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/exec"
	"github.com/tallystick/tallystick/sql/pgerr"
	"github.com/tallystick/tallystick/sql/plan"
)

// site is one piece of SQL in a program, with the plan that was last made.
type site struct {
	p *program
	e *expr
	// want is what an expression is converted to; zero: nothing. It may depend
	// on the row type of a RECORD variable: then target gives it.
	want   datum.Type
	target *place
	use    Use
	cur    atomic.Pointer[planned]
}

// planned is a plan for certain row types of the RECORD variables it reads. It
// is immutable.
type planned struct {
	deps   []dep
	gather []gatherStep
	width  int // length of frame.vars that gathering needs; 0 = none
	used   bool
	lead   int // bytes that were put in front of the text for the planner

	// Of an expression:
	mode   mode
	typ    datum.Type
	row    *rowType // of a value that is a row with known fields
	value  datum.Datum
	at     int // variable, or record
	field  int
	x      *exec.ExprProgram
	cast   *exec.ExprProgram // to what the site wants; nil = none needed
	reads  []rwset.Read
	simple bool
	ep     *plan.ExprPlan

	// Of a statement:
	prog  *exec.Program
	cols  *rowType // nil: it returns no rows
	casts []*exec.ExprProgram
	into  *intoProg
}

// mode says how an expression gets its value.
type mode uint8

const (
	evaluate  mode = iota
	constant       // value
	readVar        // frame.vars[at]
	readField      // field of record at
	readRow        // record at as a whole
)

// dep is the row type that a RECORD variable had when a plan was made.
type dep struct {
	rec int
	typ *rowType
}

// gatherStep brings a part of a record into frame.vars; field -1 is the whole.
type gatherStep struct{ rec, field, to int }

// fits reports whether the plan is for the row types that the variables have.
func (pl *planned) fits(fr *frame) bool {
	for _, d := range pl.deps {
		if !d.typ.same(fr.recs[d.rec].typ) {
			return false
		}
	}
	return true
}

// ready returns a plan that fits.
func (s *site) ready(fr *frame) (*planned, error) {
	pl := s.cur.Load()
	if pl != nil && (pl.deps == nil || pl.fits(fr)) {
		return pl, nil
	}
	pl, err := s.plan(fr)
	if err != nil {
		return nil, err
	}
	s.cur.Store(pl)
	return pl, nil
}

// bring gathers what the plan reads from records.
func (pl *planned) bring(fr *frame) {
	if len(fr.vars) < pl.width {
		fr.grow(pl.width)
	}
	for _, g := range pl.gather {
		r := &fr.recs[g.rec]
		switch {
		case g.field < 0:
			fr.vars[g.to] = r.value()
		case g.field < len(r.vals):
			fr.vars[g.to] = r.vals[g.field]
		default:
			fr.vars[g.to] = datum.Null
		}
	}
}

// eval computes an expression.
func (s *site) eval(fr *frame) (datum.Datum, error) {
	pl, err := s.ready(fr)
	if err != nil {
		return datum.Null, err
	}
	return s.value(fr, pl)
}

// value computes an expression by a plan.
func (s *site) value(fr *frame, pl *planned) (datum.Datum, error) {
	if pl.cast == nil {
		return s.raw(fr, pl)
	}
	d, err := s.raw(fr, pl)
	if err != nil {
		return d, err
	}
	return fr.convert(pl.cast, d)
}

// raw is value before the conversion to what the site wants.
func (s *site) raw(fr *frame, pl *planned) (datum.Datum, error) {
	if pl.reads != nil && fr.noted != pl {
		fr.note(pl)
	}
	switch pl.mode {
	case constant:
		return pl.value, nil
	case readVar:
		return fr.vars[pl.at], nil
	case readField:
		return fr.recs[pl.at].vals[pl.field], nil
	case readRow:
		return fr.recs[pl.at].value(), nil
	}
	if pl.gather != nil {
		pl.bring(fr)
	}
	d, err := pl.x.Eval(fr.env, fr.vars)
	if err != nil {
		return datum.Null, s.failed(err, pl)
	}
	if !pl.simple {
		fr.rowCount = 1 // PostgreSQL runs such an expression as a query
	}
	return d, nil
}

// note puts the catalog rows of an expression's plan into the footprint; a
// loop over one expression does it once.
func (fr *frame) note(pl *planned) {
	fr.env.NoteShared(pl.reads)
	fr.noted = pl
}

// failed places an error of an evaluation. PostgreSQL names the expression in
// the context only if it was run as a query, or folded when it was planned.
func (s *site) failed(err error, pl *planned) error {
	e, ok := pgerr.From(err)
	if !ok {
		return err
	}
	if pl.simple && e.Position == 0 && (pl.used || e.Context != "") {
		return err
	}
	return s.placed(err, 0)
}

// placed adds the text of the site to an error; skip characters were put in
// front of the text for the planner.
func (s *site) placed(err error, skip int) error {
	switch {
	case s.e.mode == exprStatement:
		return inSQL(err, "SQL statement", s.e.text, 0, 0)
	case s.e.assign != "":
		lead := utf8.RuneCountInString(s.e.assign) - utf8.RuneCountInString(s.e.text)
		return inSQL(err, "PL/pgSQL assignment", s.e.assign, skip, lead)
	}
	return inSQL(err, "SQL expression", s.e.text, skip, 0)
}

// plan makes a plan for the present row types.
func (s *site) plan(fr *frame) (*planned, error) {
	var l looked
	var pl *planned
	var err error
	if s.e.mode == exprStatement {
		pl, err = s.planStatement(fr, &l)
	} else {
		pl, err = s.planExpression(fr, &l)
	}
	if err != nil {
		l.failed(fr.env)
	}
	return pl, err
}

func (s *site) planStatement(fr *frame, l *looked) (*planned, error) {
	pl := &planned{}
	b := binder{p: s.p, fr: fr, ns: s.e.ns, pl: pl}
	opts := s.p.opts
	opts.Variable, opts.VariableFields, opts.Script, opts.Note = b.variable, b.fields, s.e.whole.Script, l.note
	st, err := plan.Statement(s.e.whole.Node, &opts)
	if err != nil {
		return nil, s.placed(b.blame(err), 0)
	}
	if pl.prog, err = exec.Compile(st); err != nil {
		return nil, s.placed(err, 0)
	}
	if st.Columns != nil {
		pl.cols = rowTypeOf(st.Columns)
	}
	if err := s.p.verify(s.piece(pl)); err != nil {
		return nil, s.placed(err, 0)
	}
	return pl, nil
}

// planExpression plans the right side of an assignment together with its
// conversion, as PostgreSQL does. What other expressions give is converted
// afterwards, so that errors of the conversion are not those of the expression.
func (s *site) planExpression(fr *frame, l *looked) (*planned, error) {
	want := datum.Type{}
	switch {
	case s.target != nil:
		var err error
		if want, err = s.target.typeNow(fr); err != nil {
			return nil, s.placed(err, 0)
		}
	case s.e.assign != "":
		want = s.want
	}
	b, ep, skip, err := s.planText(fr, want, l)
	if err != nil {
		return nil, s.placed(err, skip)
	}
	pl := b.pl
	if s.target != nil {
		pl.deps = s.target.dependOn(fr, pl.deps)
	}
	if err := pl.setExpr(ep); err != nil {
		return nil, s.placed(err, skip)
	}
	pl.lead = skip
	if err := s.p.verify(s.piece(pl)); err != nil {
		return nil, s.placed(err, skip)
	}
	if s.want.Desc != nil && want.Desc == nil {
		return pl, pl.convertTo(s.p, s.want)
	}
	return pl, nil
}

// planText plans the text of the site. Skip is the number of characters that
// were put in front of it.
func (s *site) planText(fr *frame, want datum.Type, l *looked) (b *binder, ep *plan.ExprPlan, skip int, err error) {
	try := func(text string, want datum.Type) {
		b = &binder{p: s.p, fr: fr, ns: s.e.ns, pl: &planned{}}
		opts := s.p.opts
		opts.Variable, opts.VariableFields, opts.Note = b.variable, b.fields, l.note
		if ep, err = plan.ExpressionText(text, want, &opts); err != nil {
			err = b.blame(err)
		}
	}
	text := s.e.text
	try(text, want)
	if err != nil && pgerr.CodeOf(err) == pgerr.SyntaxError && checkExpression(text) == nil {
		// count(*) FROM t
		text, skip = asSubquery(text), len(subqueryPrefix)
		if s.p.inspected {
			s.p.lead = skip
		}
		try(text, want)
	}
	if err == nil || want.Desc == nil || !noCast(err) {
		return b, ep, skip, err
	}
	first := err
	if try(text, datum.Type{}); err != nil {
		return nil, nil, skip, first
	}
	// There is no cast by assignment: PL/pgSQL goes through the text.
	try("(("+text+")::text)::"+datum.FormatType(want), want)
	return b, ep, skip + len("(("), err
}

// convertTo adds the conversion to a type. That of a constant number is made
// at once; it is the same in every environment.
func (pl *planned) convertTo(p *program, want datum.Type) error {
	var err error
	pl.cast, err = p.cast(pl.typ, want)
	if err != nil || pl.cast == nil {
		return err
	}
	if pl.mode == constant && pl.typ.Category == 'N' && want.Category == 'N' && !pl.value.IsNull() {
		if d, err := pl.cast.Eval(&exec.Env{}, []datum.Datum{pl.value}); err == nil {
			pl.value, pl.cast = d, nil
		}
	}
	pl.typ = want
	return nil
}

// setExpr chooses how the expression is evaluated.
func (pl *planned) setExpr(ep *plan.ExprPlan) error {
	pl.ep, pl.typ, pl.reads, pl.simple = ep, ep.Expr.Type(), ep.Reads, ep.Subqueries == 0
	if pl.typ.Desc == datum.Unknown {
		pl.typ = datum.T(datum.Text)
	}
	switch e := ep.Expr.(type) {
	case *plan.Const:
		pl.mode, pl.value = constant, e.Value
		return nil
	case *plan.Param:
		if pl.readDirectly(e.Index) {
			return nil
		}
	case *plan.CoerceDomain:
		pl.used = true // PostgreSQL folds no check of a domain
	case *plan.UserCall:
		if len(e.Func.OutArgs()) > 1 {
			pl.row = rowTypeOfOut(e.Func)
		}
	}
	if pl.row == nil && isRow(pl.typ) {
		pl.row = rowTypeOfDesc(pl.typ.Desc)
	}
	var err error
	pl.x, err = exec.CompileExpr(ep.Expr, ep.Slots, ep.Subqueries, ep.CTEs)
	return err
}

// readDirectly recognizes an expression that is nothing but a variable.
func (pl *planned) readDirectly(index int) bool {
	for _, g := range pl.gather {
		if g.to != index {
			continue
		}
		pl.mode, pl.at, pl.field = readField, g.rec, g.field
		if g.field < 0 {
			pl.mode = readRow
		}
		return true
	}
	pl.mode, pl.at = readVar, index
	return true
}

// binder resolves names of variables while one piece of SQL is planned.
type binder struct {
	p  *program
	fr *frame
	ns *name
	pl *planned
	// why a name that is a record's did not resolve
	noField error
	// the RECORD variable that has no row type yet
	unassigned *variable
}

// errUnassigned says that the row type of a RECORD variable is not known: a
// fault of the function when it runs, none while it is only checked.
var errUnassigned = errors.New("plpgsql: the row type of a record variable is not known")

// variable implements plan.Options.Variable.
func (b *binder) variable(parts []string) (plan.Expr, error) {
	v, used := lookup(b.ns, parts, false)
	if v == nil {
		return nil, nil
	}
	info, rest := b.p.vars[v.id], parts[used:]
	if info.rec < 0 {
		if len(rest) > 0 {
			return nil, nil
		}
		b.pl.used = true
		return plan.NewParam(info.typ, info.at), nil
	}
	if len(rest) > 1 {
		return nil, nil
	}
	b.pl.used = true
	if len(rest) == 0 && info.row == nil && b.fr.recs[info.rec].typ == nil && b.fr.env != nil {
		// Null, of no row type.
		b.depend(info.rec, nil)
		return b.gather(info, -1, datum.T(datum.Record)), nil
	}
	row, err := b.rowType(info)
	if err != nil {
		return nil, err
	}
	if v.typ.kind == dynamicType {
		rest = row.names[:1]
	}
	if len(rest) == 0 {
		return b.gather(info, -1, datum.T(row.desc)), nil
	}
	i := row.field(rest[0])
	if i < 0 {
		b.noField = pgerr.New(pgerr.UndefinedColumn, "record \"%s\" has no field \"%s\"", v.name, rest[0])
		return nil, nil
	}
	if info.row != nil {
		return plan.NewParam(row.types[i], info.at+i), nil
	}
	return b.gather(info, i, row.types[i]), nil
}

// fields implements plan.Options.VariableFields: rec.* of a record variable.
func (b *binder) fields(parts []string) ([]string, error) {
	v, used := lookup(b.ns, parts, false)
	if v == nil || used < len(parts) {
		return nil, nil
	}
	info := b.p.vars[v.id]
	if info.rec < 0 {
		return nil, nil
	}
	row, err := b.rowType(info)
	if err != nil {
		return nil, err
	}
	return row.names, nil
}

// rowType is the row type that a record variable has now.
func (b *binder) rowType(info *varInfo) (*rowType, error) {
	if info.row != nil {
		return info.row, nil
	}
	t := b.fr.recs[info.rec].typ
	if t == nil {
		b.unassigned = info.v
		return nil, errUnassigned
	}
	b.depend(info.rec, t)
	return t, nil
}

// depend notes that the plan is for this row type of a RECORD variable.
func (b *binder) depend(rec int, t *rowType) {
	for _, d := range b.pl.deps {
		if d.rec == rec {
			return
		}
	}
	b.pl.deps = append(b.pl.deps, dep{rec, t})
}

func notAssigned(v *variable) error {
	return pgerr.New(pgerr.ObjectNotInPrerequisiteState, "record \"%s\" is not assigned yet", v.name).
		WithDetail("The tuple structure of a not-yet-assigned record is indeterminate.")
}

// gather has a part of a record brought into the parameters.
func (b *binder) gather(info *varInfo, field int, t datum.Type) plan.Expr {
	for _, g := range b.pl.gather {
		if g.rec == info.rec && g.field == field {
			return plan.NewParam(t, g.to)
		}
	}
	to := b.p.width + len(b.pl.gather)
	b.pl.gather = append(b.pl.gather, gatherStep{rec: info.rec, field: field, to: to})
	b.pl.width = to + 1
	return plan.NewParam(t, to)
}

// blame replaces the planner's report by that of what is behind it: a RECORD
// variable without a row type, or a record without the field.
func (b *binder) blame(err error) error {
	if b.unassigned != nil && errors.Is(err, errUnassigned) {
		if b.fr.env == nil {
			return errUnassigned
		}
		return notAssigned(b.unassigned)
	}
	if b.noField == nil {
		return err
	}
	e, ok := pgerr.From(err)
	if !ok || e.Code != pgerr.UndefinedColumn && e.Code != pgerr.UndefinedTable {
		return err
	}
	return b.noField
}
