package plan

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/tallystick/tallystick/mvcc/rwset"
	"github.com/tallystick/tallystick/sql/builtin"
	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/parse"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// planner is the state of planning one statement.
type planner struct {
	opts       *Options
	slots      int
	subqueries int
	ctes       int
	reads      []rwset.Read
	seen       map[string]bool // keys of reads
	params     []*Param        // by number; nil = not used so far
	writes     bool
	// writesChain tells that a replicated table is written.
	writesChain bool
	depth       int
	override    pg.OverridingKind // of the INSERT that is planned
	parts       map[int]*partOf   // its targets that are parts of columns
	// pending are the rels of the join that is being ordered.
	pending map[*rel]bool
	// owner maps a slot of a FROM item to that item, for join planning.
	owner map[int]*rel
	// script and skip are those of the text that is planned now: views have
	// their own.
	script string
	skip   int
	// stored counts how deep we are in texts of the catalog (defaults, checks,
	// views): variables of the statement mean nothing there.
	stored int
	// copyScans makes every leaf of a join a node of its own: see joinAgain.
	copyScans bool
	// multi are the subqueries that are assigned to several columns, by location:
	// the parse tree holds a copy for each of the columns.
	multi map[int32]*multiSource
	// views are the views whose text is planned now, the outermost first.
	views []*catalog.Table
	// policed are the tables whose policies are planned now.
	policed []catalog.OID
}

// maxDepth bounds the nesting of expressions and subqueries.
const maxDepth = 500

func newPlanner(opts *Options) *planner {
	return &planner{opts: opts, seen: map[string]bool{}, owner: map[int]*rel{}, script: opts.Script, skip: opts.Skip}
}

// statement plans a whole statement.
func (p *planner) statement(stmt *pg.Node) (*Plan, error) {
	top := &scope{}
	var q *query
	var err error
	command := ""
	switch s := stmt.Node.(type) {
	case *pg.Node_SelectStmt:
		command = "SELECT"
		q, err = p.selectStmt(s.SelectStmt, top)
	case *pg.Node_InsertStmt:
		command = "INSERT"
		q, err = p.insertStmt(s.InsertStmt, top)
	case *pg.Node_UpdateStmt:
		command = "UPDATE"
		q, err = p.updateStmt(s.UpdateStmt, top)
	case *pg.Node_DeleteStmt:
		command = "DELETE"
		q, err = p.deleteStmt(s.DeleteStmt, top)
	case *pg.Node_MergeStmt:
		command = "MERGE"
		q, err = p.mergeStmt(s.MergeStmt, top)
	default:
		return nil, pgerr.New(pgerr.InternalError, "statement cannot be planned")
	}
	if err != nil {
		return nil, err
	}
	if err := p.settleUnknown(q); err != nil {
		return nil, err
	}
	types, err := p.paramTypes()
	if err != nil {
		return nil, err
	}
	finish(q.node)
	return &Plan{
		Root: q.node, Columns: q.columns(), Out: q.out(), Slots: p.slots, Params: types,
		Subqueries: p.subqueries, CTEs: p.ctes, Command: command, Reads: p.reads, Writes: p.writes, Local: p.writes && !p.writesChain,
		Order: q.order,
	}, nil
}

// settleUnknown makes text of result columns whose type nothing decided.
func (p *planner) settleUnknown(q *query) error {
	var exprs []Expr
	var out []int
	for i := range q.cols {
		c := &q.cols[i]
		if c.typ.Desc != datum.Unknown {
			continue
		}
		e, err := p.coerce(NewSlot(c.typ, c.slot, c.name), datum.T(datum.Text), builtin.Implicit, 0)
		if err != nil {
			return err
		}
		c.typ, c.slot = datum.T(datum.Text), p.newSlot()
		exprs, out = append(exprs, e), append(out, c.slot)
	}
	if exprs != nil {
		q.node = &Project{Child: q.node, Exprs: exprs, Out: out}
	}
	return nil
}

// standalone plans an expression outside any query.
func (p *planner) standalone(node *pg.Node, want datum.Type) (*ExprPlan, error) {
	e, err := p.expr(node, &scope{}, "an expression")
	if err != nil {
		return nil, err
	}
	if want.Desc != nil {
		if e, err = p.assign(e, want, location(node)); err != nil {
			return nil, err
		}
	}
	finishExpr(e)
	return &ExprPlan{Expr: e, Slots: p.slots, Subqueries: p.subqueries, CTEs: p.ctes, Reads: p.reads}, nil
}

func (p *planner) newSlot() int {
	p.slots++
	return p.slots - 1
}

// note records that the plan depends on catalog rows.
func (p *planner) note(reads []rwset.Read) {
	if p.opts.Note != nil {
		p.opts.Note(reads)
	}
	for _, r := range reads {
		if k := string(r.Start); !p.seen[k] {
			p.seen[k] = true
			p.reads = append(p.reads, r)
		}
	}
}

// errAt makes an error at a byte location of the text that is planned.
func (p *planner) errAt(loc int32, code pgerr.Code, format string, args ...any) *pgerr.Error {
	return p.at(pgerr.New(code, format, args...), loc)
}

// at sets the position of an error from a byte location.
func (p *planner) at(e *pgerr.Error, loc int32) *pgerr.Error {
	if loc < int32(p.skip) || p.script == "" {
		return e
	}
	pos := parse.Position(p.script, loc)
	if pos > 0 {
		e.At(pos - p.skip)
	}
	return e
}

// locate adds a position to an error that has none.
func (p *planner) locate(err error, loc int32) error {
	if e, ok := pgerr.From(err); ok && e.Position == 0 && loc >= 0 {
		return p.at(e, loc)
	}
	return err
}

// enter guards against nesting that would exhaust the stack.
func (p *planner) enter() error {
	p.depth++
	if p.depth > maxDepth {
		return pgerr.New(pgerr.StatementTooComplex, "stack depth limit exceeded").
			WithHint("Simplify the statement: it nests more than %d levels.", maxDepth)
	}
	return nil
}

func (p *planner) leave() { p.depth-- }

// param returns parameter number n (from 1). All uses share one node, so that
// the type that one use decides holds for all.
func (p *planner) param(n int, loc int32) (Expr, error) {
	if n < 1 || n > 65535 {
		return nil, p.errAt(loc, pgerr.UndefinedParameter, "there is no parameter $%d", n)
	}
	for len(p.params) < n {
		p.params = append(p.params, nil)
	}
	if p.params[n-1] == nil {
		t := datum.T(datum.Unknown)
		if n <= len(p.opts.Params) && p.opts.Params[n-1].Desc != nil {
			t = p.opts.Params[n-1]
		}
		p.params[n-1] = NewParam(t, n-1)
	}
	return p.params[n-1], nil
}

func (p *planner) paramTypes() ([]datum.Type, error) {
	types := slices.Clone(p.opts.Params)
	for i, prm := range p.params {
		if i >= len(types) {
			types = append(types, datum.Type{})
		}
		if prm == nil {
			continue
		}
		if prm.typ.Desc == datum.Unknown {
			prm.typ = datum.T(datum.Text)
		}
		types[i] = prm.typ
	}
	for i := range types {
		if types[i].Desc == nil || types[i].Desc == datum.Unknown {
			if p.opts.Variable != nil {
				types[i] = datum.T(datum.Text)
				continue
			}
			return nil, pgerr.New(pgerr.IndeterminateDatatype, "could not determine data type of parameter $%d", i+1)
		}
	}
	return types, nil
}

// query is a planned query: a node and the columns it makes.
type query struct {
	node Node
	cols []column
	// correlated tells that it reads slots of an outer query.
	correlated bool
	volatile   bool
	semi       *semiSource // what a semijoin can be made from; nil = nothing
	order      []SortKey   // ORDER BY
}

// column is an output column of a query or a FROM item.
type column struct {
	name  string
	typ   datum.Type
	slot  int
	table datum.OID
	attr  int16
	// lit is the literal or parameter of unknown type that the column is, if it is
	// one: what uses the column decides the type. loc is where it was written.
	lit Expr
	loc int32
}

func (q *query) columns() []Column {
	if q.cols == nil {
		return nil
	}
	out := make([]Column, len(q.cols))
	for i, c := range q.cols {
		out[i] = Column{Name: c.name, Type: c.typ, Table: c.table, Attr: c.attr}
	}
	return out
}

func (q *query) out() []int {
	out := make([]int, len(q.cols))
	for i, c := range q.cols {
		out[i] = c.slot
	}
	return out
}

// inStored runs f on a text of the catalog: it has no positions in what the
// user wrote, and no variables.
func (p *planner) inStored(f func() error) error {
	script, skip := p.script, p.skip
	p.script, p.skip = "", 0
	p.stored++
	defer func() {
		p.script, p.skip = script, skip
		p.stored--
	}()
	return f()
}
