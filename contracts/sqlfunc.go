package contracts

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tallystick/tallystick/contracts/plpgsql"
	"github.com/tallystick/tallystick/mvcc/rwset"
	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/exec"
	"github.com/tallystick/tallystick/sql/parse"
	"github.com/tallystick/tallystick/sql/pgerr"
	"github.com/tallystick/tallystick/sql/plan"
)

// sqlFunction is a function in language SQL: a list of statements, of which the
// last gives the result. Arguments are parameters, by number or by name.
type sqlFunction struct {
	def   *catalog.Func
	stmts []parse.Statement
	opts  plan.Options // but the catalog
	// verify, if not nil, says whether a statement may be executed here
	verify func(*plpgsql.Piece) error
	// format is how literals are read against a catalog; nil: as opts says.
	format func(cat *catalog.Catalog) *datum.Format

	mu    sync.Mutex
	plans atomic.Pointer[[]*sqlProgram] // newest catalog last
}

// sqlProgram is the function planned against one catalog.
type sqlProgram struct {
	catalog *catalog.Catalog
	progs   []*exec.Program
	casts   []*exec.ExprProgram // of the columns of the last statement; nil = none needed
	fields  []datum.Type        // of a result that is a row
	whole   bool                // the last statement gives the row as one column
}

// keptPlans bounds how many catalogs a function is kept planned for.
const keptPlans = 4

func compileSQL(fn *catalog.Func, opts *plan.Options, format func(*catalog.Catalog) *datum.Format) (*sqlFunction, error) {
	if fn.Ret.Desc == datum.Trigger {
		return nil, pgerr.New(pgerr.InvalidFunctionDefinition, "SQL functions cannot return type trigger")
	}
	stmts, err := parse.Statements(fn.Body)
	if err != nil {
		if e, ok := pgerr.From(err); ok && e.Position > 0 {
			c := *e
			c.InternalQuery, c.InternalPosition, c.Position = fn.Body, e.Position, 0
			return nil, &c
		}
		return nil, err
	}
	s := &sqlFunction{def: fn, stmts: stmts, opts: *opts, format: format}
	for _, st := range stmts {
		if st.Node.GetSelectStmt() == nil && st.Node.GetInsertStmt() == nil && st.Node.GetUpdateStmt() == nil && st.Node.GetDeleteStmt() == nil {
			return nil, pgerr.New(pgerr.FeatureNotSupported, "\"%s\" is not allowed in a SQL function", parse.Clip(st.Text))
		}
	}
	for _, a := range fn.InArgs() {
		if a.Type.Kind == datum.Pseudo && a.Type.Desc != datum.Record {
			return nil, pgerr.NotBuilt("SQL functions with arguments of type %s are not supported", datum.FormatType(a.Type))
		}
		s.opts.Params = append(s.opts.Params, a.Type)
	}
	return s, nil
}

// program returns the function planned against the catalog of env. If planning
// fails, the names that it looked for are in the footprint.
func (s *sqlFunction) program(env *exec.Env) (*sqlProgram, error) {
	cat := env.Catalog
	if list := s.plans.Load(); list != nil {
		for i := len(*list) - 1; i >= 0; i-- {
			if (*list)[i].catalog == cat {
				return (*list)[i], nil
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []*sqlProgram
	if old := s.plans.Load(); old != nil {
		list = *old
	}
	var looked []rwset.Read
	p, err := s.plan(cat, " during startup", func(reads []rwset.Read) { looked = append(looked, reads...) })
	if err != nil {
		note(env, looked)
		return nil, err
	}
	next := append(slices.Clone(list[max(len(list)-keptPlans+1, 0):]), p)
	s.plans.Store(&next)
	return p, nil
}

// plan plans all statements; where tells in the context of an error what the
// function was doing, and looked is as in plan.Options.Note.
func (s *sqlFunction) plan(cat *catalog.Catalog, where string, looked func([]rwset.Read)) (*sqlProgram, error) {
	p := &sqlProgram{catalog: cat}
	for i := range s.stmts {
		pl, err := s.statement(&s.stmts[i], cat, looked)
		if err == nil && s.verify != nil {
			err = s.verify(s.piece(i, pl))
		}
		if err == nil {
			var prog *exec.Program
			prog, err = exec.Compile(pl)
			p.progs = append(p.progs, prog)
		}
		if err != nil {
			return nil, s.placed(err, where)
		}
	}
	if err := s.result(p); err != nil {
		return nil, s.placed(err, where)
	}
	return p, nil
}

// statement plans one statement. A column hides an argument of the same name,
// unlike a variable of PL/pgSQL: when the planner finds both, the statement is
// planned again without the argument.
func (s *sqlFunction) statement(st *parse.Statement, cat *catalog.Catalog, looked func([]rwset.Read)) (*plan.Plan, error) {
	hidden := map[string]bool{}
	for {
		opts := s.opts
		last := ""
		opts.Catalog, opts.Script, opts.Note = cat, st.Script, looked
		if s.format != nil {
			opts.Format = s.format(cat)
		}
		opts.Variable = func(parts []string) (plan.Expr, error) {
			last = ""
			i := s.argument(parts)
			if i < 0 || len(parts) == 1 && hidden[parts[0]] {
				return nil, nil
			}
			if len(parts) == 1 {
				last = parts[0]
			}
			return plan.NewParam(s.opts.Params[i], i), nil
		}
		pl, err := plan.Statement(st.Node, &opts)
		if err == nil || last == "" || pgerr.CodeOf(err) != pgerr.AmbiguousColumn {
			return pl, err
		}
		hidden[last] = true
	}
}

// argument finds an input argument by name, or by function and name.
func (s *sqlFunction) argument(parts []string) int {
	name := parts[len(parts)-1]
	if len(parts) > 2 || len(parts) == 2 && parts[0] != s.def.Name {
		return -1
	}
	return slices.IndexFunc(s.def.InArgs(), func(a catalog.Arg) bool { return a.Name == name && name != "" })
}

// result compares the columns of the last statement with the declared result.
func (s *sqlFunction) result(p *sqlProgram) error {
	want := s.columns()
	if want == nil {
		return nil
	}
	mismatch := pgerr.New(pgerr.InvalidFunctionDefinition, "return type mismatch in function declared to return %s", datum.FormatType(s.def.Ret))
	if len(p.progs) == 0 || p.progs[len(p.progs)-1].Plan().Columns == nil {
		return mismatch.WithDetail("Function's final statement must be SELECT or INSERT/UPDATE/DELETE RETURNING.")
	}
	have := p.progs[len(p.progs)-1].Plan().Columns
	if ret := s.def.Ret; s.outs() == 0 && ret.Kind == datum.Composite && len(have) == 1 && have[0].Type.Same(ret) {
		p.fields, p.whole = want, true
		return nil
	}
	if len(have) != len(want) {
		switch {
		case len(want) == 1 && s.outs() == 0:
			return mismatch.WithDetail("Final statement must return exactly one column.")
		case len(have) > len(want):
			return mismatch.WithDetail("Final statement returns too many columns.")
		}
		return mismatch.WithDetail("Final statement returns too few columns.")
	}
	p.fields = want
	p.casts = make([]*exec.ExprProgram, len(want))
	for i := range want {
		from, to := have[i].Type, want[i]
		if from.Same(to) && (to.Mod < 0 || to.Mod == from.Mod) {
			continue
		}
		ep, err := plan.ExpressionText("$1", to, &plan.Options{Params: []datum.Type{from}, Format: s.opts.Format, Catalog: p.catalog, SearchPath: s.opts.SearchPath})
		if err != nil {
			if len(want) == 1 {
				return mismatch.WithDetail("Final statement returns %s instead of %s.", datum.FormatType(from), datum.FormatType(to))
			}
			return mismatch.WithDetail("Final statement returns %s instead of %s at column %d.", datum.FormatType(from), datum.FormatType(to), i+1)
		}
		if p.casts[i], err = exec.CompileExpr(ep.Expr, ep.Slots, ep.Subqueries, ep.CTEs); err != nil {
			return err
		}
	}
	return nil
}

func (s *sqlFunction) outs() int { return len(s.def.OutArgs()) }

// columns are the types of the result's columns; nil if there is no result, or
// if only the caller knows its shape.
func (s *sqlFunction) columns() []datum.Type {
	if out := s.def.OutArgs(); len(out) > 0 {
		types := make([]datum.Type, len(out))
		for i := range out {
			types[i] = out[i].Type
		}
		return types
	}
	d := s.def.Ret.Desc
	switch {
	case d == datum.Void || s.def.Kind == catalog.Procedure:
		return nil
	case d == datum.Record:
		return nil
	case d.Kind == datum.Composite:
		types := make([]datum.Type, len(d.Fields))
		for i, f := range d.Fields {
			types[i] = f.Type
		}
		return types
	}
	return []datum.Type{s.def.Ret}
}

// placed adds the function to the context of an error.
func (s *sqlFunction) placed(err error, where string) error {
	e, ok := pgerr.From(err)
	if !ok {
		return err
	}
	c := *e
	if c.Position > 0 {
		c.InternalQuery, c.InternalPosition, c.Position = s.def.Body, c.Position, 0
		if where == "" {
			return &c // PostgreSQL shows it in the CREATE statement
		}
	}
	return c.AddContext(fmt.Sprintf("SQL function \"%s\"%s", s.def.Name, where))
}

// Check plans the statements.
func (s *sqlFunction) Check(cat *catalog.Catalog) []error {
	if _, err := s.plan(cat, "", nil); err != nil {
		return []error{err}
	}
	return nil
}

// Call runs the function for its first row.
func (s *sqlFunction) Call(env *exec.Env, args []datum.Datum) (datum.Datum, error) {
	if s.def.RetSet {
		return datum.Null, pgerr.New(pgerr.FeatureNotSupported, "set-valued function called in context that cannot accept a set")
	}
	p, last, err := s.run(env, args)
	if err != nil {
		return datum.Null, err
	}
	if last == nil {
		return datum.Null, nil
	}
	row, n, err := s.first(env, last, args)
	if err != nil {
		return datum.Null, err
	}
	types := p.fields
	switch {
	case p.whole && n > 0:
		return row[0], nil
	case s.noResult(), n == 0:
		return datum.Null, nil
	case types == nil:
		types = columnTypes(last.Plan())
	}
	if row, err = p.convert(env, row); err != nil {
		return datum.Null, s.placed(err, s.number(len(p.progs)))
	}
	if s.rowResult() {
		return datum.MakeRecord(types, row), nil
	}
	return row[0], nil
}

func (s *sqlFunction) noResult() bool {
	return s.outs() == 0 && (s.def.Ret.Desc == datum.Void || s.def.Kind == catalog.Procedure)
}

// rowResult tells that the value of a call is a record.
func (s *sqlFunction) rowResult() bool {
	switch n := s.outs(); {
	case n > 1, n == 1 && s.def.Kind == catalog.Procedure:
		return true
	case n == 1:
		return false
	}
	return s.def.Ret.Desc == datum.Record || s.def.Ret.Kind == datum.Composite
}

func (s *sqlFunction) number(n int) string { return fmt.Sprintf(" statement %d", n) }

// run executes all statements but the last, which it returns; nil if there is
// none.
func (s *sqlFunction) run(env *exec.Env, args []datum.Datum) (*sqlProgram, *exec.Program, error) {
	p, err := s.program(env)
	if err != nil {
		return nil, nil, err
	}
	for i, prog := range p.progs {
		if i == len(p.progs)-1 {
			return p, prog, nil
		}
		if _, err := prog.Run(env, args); err != nil {
			// That the statements behind it could be planned came first.
			for _, rest := range p.progs[i+1:] {
				note(env, rest.Plan().Reads)
			}
			return nil, nil, s.placed(err, s.number(i+1))
		}
	}
	return p, nil, nil
}

// first runs the last statement for one row; a query reads no further.
func (s *sqlFunction) first(env *exec.Env, prog *exec.Program, args []datum.Datum) ([]datum.Datum, int, error) {
	row := make([]datum.Datum, len(prog.Plan().Columns))
	n, err := prog.FirstOf(env, args, row, 1)
	if err != nil {
		return nil, 0, s.placed(err, s.number(len(s.stmts)))
	}
	return row, n, nil
}

func (p *sqlProgram) convert(env *exec.Env, row []datum.Datum) ([]datum.Datum, error) {
	if p.whole {
		out := make([]datum.Datum, len(p.fields))
		for i := range out {
			out[i] = datum.Null
		}
		if !row[0].IsNull() {
			_, vals := datum.RecordFields(row[0])
			copy(out, vals)
		}
		return out, nil
	}
	for i, x := range p.casts {
		if x == nil || row[i].IsNull() && p.fields[i].Kind != datum.Domain {
			continue
		}
		d, err := x.Eval(env, row[i:i+1])
		if err != nil {
			return nil, err
		}
		row[i] = d
	}
	return row, nil
}

func columnTypes(p *plan.Plan) []datum.Type {
	types := make([]datum.Type, len(p.Columns))
	for i := range types {
		types[i] = p.Columns[i].Type
	}
	return types
}

// CallSet runs the function for all its rows, or for one if it returns no set.
func (s *sqlFunction) CallSet(env *exec.Env, args []datum.Datum, emit func(row []datum.Datum) error) error {
	p, last, err := s.run(env, args)
	if err != nil {
		return err
	}
	if last == nil || s.noResult() {
		if last != nil {
			if _, err := last.Run(env, args); err != nil {
				return s.placed(err, s.number(len(s.stmts)))
			}
		}
		if s.def.RetSet {
			return nil
		}
		return emit([]datum.Datum{datum.Null})
	}
	if !s.def.RetSet {
		row, n, err := s.first(env, last, args)
		if err != nil {
			return err
		}
		if n == 0 {
			for i := range row {
				row[i] = datum.Null
			}
		}
		if row, err = p.convert(env, row); err != nil {
			return s.placed(err, s.number(len(s.stmts)))
		}
		return emit(row)
	}
	return s.rows(env, p, last, args, emit)
}

func (s *sqlFunction) rows(env *exec.Env, p *sqlProgram, prog *exec.Program, args []datum.Datum, emit func(row []datum.Datum) error) error {
	c, err := prog.Open(env, args)
	if err != nil {
		return s.placed(err, s.number(len(s.stmts)))
	}
	defer c.Close()
	var out []datum.Datum
	for {
		row, err := c.Next()
		if err == nil && row != nil {
			out = append(out[:0], row...)
			out, err = p.convert(env, out)
		}
		if err != nil {
			return s.placed(err, s.number(len(s.stmts)))
		}
		if row == nil {
			return nil
		}
		if err := emit(out); err != nil {
			return err
		}
	}
}
