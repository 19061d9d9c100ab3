package plan

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/tallystick/tallystick/sql/builtin"
	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// IndexPart says what an expression of an index is for.
type IndexPart string

// The parts of an index that may be expressions, as messages call them.
const (
	IndexKeyPart  IndexPart = "index expression"
	PredicatePart IndexPart = "index predicate"
)

// RowExpression plans a text over the columns of a table, to be evaluated with
// the row as parameters. Unless want is the zero Type the value is converted to
// it as an assignment does.
func RowExpression(text string, want datum.Type, t *catalog.Table, opts *Options) (*ExprPlan, error) {
	return ExpressionText(text, want, overRow(t, opts))
}

// overRow is opts with the columns of a table as parameters.
func overRow(t *catalog.Table, opts *Options) *Options {
	o := *opts
	o.Params = t.Types()
	o.Variable = func(parts []string) (Expr, error) {
		if i := t.Column(parts[len(parts)-1]); i >= 0 && (len(parts) == 1 || len(parts) == 2 && parts[0] == t.Name) {
			return NewParam(t.Columns[i].Type, i), nil
		}
		return nil, nil
	}
	return &o
}

// IndexExpressions plans what the indexes of a table compute of a row: one
// expression for each of [catalog.Layout.Computed], over the row as parameters.
func IndexExpressions(t *catalog.Table, l *catalog.Layout, c *catalog.Catalog) ([]*ExprPlan, error) {
	if len(l.Computed()) == 0 {
		return nil, nil
	}
	opts := &Options{Catalog: c, SearchPath: []string{catalog.Blockchain}, Format: &datum.ContractFormat}
	out := make([]*ExprPlan, 0, len(l.Computed()))
	for _, k := range l.Computed() {
		ep, err := RowExpression(k.Expr, datum.Type{}, t, opts)
		if err != nil {
			return nil, err
		}
		out = append(out, ep)
	}
	return out, nil
}

// IndexExpression analyzes an expression of an index (an expression key, or the
// predicate of a partial index) and writes it as ruleutils.c does. What it
// computes must follow from the row alone, for ever: 42P17 for functions that are
// not immutable. Functions of users may be replaced by others, so they are not
// admitted (0A000).
func IndexExpression(node *pg.Node, t *catalog.Table, part IndexPart, opts *Options) (text string, typ datum.Type, err error) {
	free := overRow(t, opts)
	free.Contract = false // what a contract must not use is not immutable either
	p := newPlanner(free)
	s := &scope{noAggs: string(part) + "s"}
	e, err := p.expr(node, s, string(part)+"s")
	if err != nil {
		return "", typ, err
	}
	if part == PredicatePart {
		e, err = p.boolean(e, "WHERE", location(node))
	} else {
		e, err = p.settle(e)
	}
	if err != nil {
		return "", typ, err
	}
	if err := p.immutable(e, part); err != nil {
		return "", typ, p.locate(err, location(node))
	}
	text = p.rowText(e, t)
	// What was written must be read as what was meant.
	again, err := RowExpression(text, datum.Type{}, t, opts)
	if err != nil || !sameExpr(again.Expr, e) {
		return "", typ, p.at(pgerr.NotBuilt("this %s is not supported", string(part)), location(node))
	}
	return text, e.Type(), nil
}

// rowText writes an expression whose parameters are the columns of a table.
func (p *planner) rowText(e Expr, t *catalog.Table) string {
	nm := &namer{slots: map[int]slotSource{}, format: p.format(), visited: map[int]bool{}}
	for i := range t.Columns {
		nm.params = append(nm.params, datum.QuoteIdent(t.Columns[i].Name))
	}
	nm.caseArgs(e)
	return nm.expr(e)
}

// immutable refuses what an index cannot be made over.
func (p *planner) immutable(e Expr, part IndexPart) error {
	var err error
	fail := func(e error) {
		if err == nil {
			err = e
		}
	}
	mutable := func() error {
		return pgerr.New(pgerr.InvalidObjectDefinition, "functions in %s must be marked IMMUTABLE", string(part))
	}
	walk1(e, func(x Expr) {
		switch x := x.(type) {
		case *Call:
			if x.Func.Volatility != builtin.Immutable {
				fail(mutable())
			}
		case *UserCall:
			if x.Func.Volatility != "i" {
				fail(mutable())
			}
			fail(pgerr.NotBuilt("function %s in an %s is not supported: only built-in functions are", x.Func.Name, string(part)).
				WithHint("Keep the value in a generated column and make an index over that."))
		case *CoerceIO:
			if !stableText(x.Arg.Type(), false) || !stableText(x.Type(), true) {
				fail(mutable())
			}
		case *Subquery:
			fail(pgerr.New(pgerr.FeatureNotSupported, "cannot use subquery in %s", string(part)))
		case *CoerceDomain:
			fail(pgerr.NotBuilt("a conversion to domain %s in an %s is not supported", datum.FormatType(x.Type()), string(part)))
		}
	})
	return err
}

// stableText tells that the text form of a type, as input or as output, depends
// on no setting: that its input or output function is immutable in pg_proc.
func stableText(t datum.Type, input bool) bool {
	switch t.Root().Desc {
	case datum.Interval, datum.Time, datum.TimeTZ:
		return !input
	case datum.BoolType, datum.Int2, datum.Int4, datum.Int8, datum.Float4, datum.Float8, datum.Numeric, datum.Text, datum.VarChar,
		datum.BpChar, datum.Name, datum.UUID, datum.Bytea, datum.JSON, datum.JSONB, datum.OIDType, datum.Unknown:
		return true
	}
	return false
}

// rowIndexes is what the planner knows of the indexes of a FROM item: the
// expressions of [catalog.Layout.Computed].
type rowIndexes struct {
	computed []catalog.Computed
	exprs    []Expr
	prints   [][]byte // fingerprints
}

// indexesOf analyzes the expressions of the indexes of r, once; nil if there are
// none.
func (p *planner) indexesOf(r *rel) *rowIndexes {
	if r.indexes != nil || !r.table.ComputesKeys() {
		return r.indexes
	}
	r.indexes = &rowIndexes{}
	l, err := catalog.NewLayout(r.table)
	if err != nil {
		return r.indexes
	}
	plans, err := IndexExpressions(r.table, l, p.opts.Catalog)
	if err != nil {
		return r.indexes // it was analyzed when it was created; not to be used now
	}
	for _, ep := range plans {
		r.indexes.exprs = append(r.indexes.exprs, ep.Expr)
		r.indexes.prints = append(r.indexes.prints, (&printer{row: true}).print(nil, ep.Expr))
	}
	r.indexes.computed = l.Computed()
	return r.indexes
}

// rowPrint is the fingerprint of an expression over r, with columns in the place
// of their slots.
func (p *planner) rowPrint(e Expr, r *rel) []byte {
	pr := &printer{columns: map[int]int{}}
	for i, s := range r.scan.Slots {
		if s >= 0 {
			pr.columns[s] = i
		}
	}
	return pr.print(nil, e)
}

// keyOf finds what an index of r may hold of e: the position of a column, or
// behind the columns that of an expression.
func (p *planner) keyOf(e Expr, r *rel) (int, bool) {
	if i, ok := p.columnOf(e, r); ok {
		return i, true
	}
	x := p.indexesOf(r)
	if x == nil || !p.refersTo(e, r) {
		return 0, false
	}
	for _, try := range []Expr{e, unlabelled(e)} {
		print := p.rowPrint(try, r)
		for i := range x.computed {
			if x.computed[i].Key >= 0 && string(x.prints[i]) == string(print) {
				return len(r.table.Columns) + i, true
			}
		}
	}
	return 0, false
}

func unlabelled(e Expr) Expr {
	if rl, ok := e.(*Relabel); ok && sameKey(rl.Type(), rl.Arg.Type()) {
		return rl.Arg
	}
	return e
}

// keyPlace is the position of key k of an index of r as keyOf gives it: equal
// expressions of several indexes are one.
func (p *planner) keyPlace(r *rel, idx *catalog.Index, k int) int {
	if c := idx.Keys[k].Column; c >= 0 {
		return c
	}
	x := p.indexesOf(r)
	for i := range x.computed {
		c := &x.computed[i]
		if c.Key != k || r.table.Indexes[c.Index].OID != idx.OID {
			continue
		}
		for j := range i {
			if x.computed[j].Key >= 0 && string(x.prints[j]) == string(x.prints[i]) {
				return len(r.table.Columns) + j
			}
		}
		return len(r.table.Columns) + i
	}
	return -1
}

// usable tells whether an index may be read for rows that satisfy conds: it is
// complete, or its predicate follows from them.
func (p *planner) usable(r *rel, idx *catalog.Index, conds []Expr) bool {
	if !idx.Computed() {
		return true
	}
	x := p.indexesOf(r)
	if len(x.computed) == 0 {
		return false
	}
	if idx.Predicate == "" {
		return true
	}
	for i, c := range x.computed {
		if c.Key < 0 && r.table.Indexes[c.Index].OID == idx.OID {
			return p.implied(x.exprs[i], conds, r)
		}
	}
	return false
}

// indexExpressions plans for a data modification what the indexes of its table
// compute.
func (p *planner) indexExpressions(m *Modify) error {
	if !m.Table.ComputesKeys() {
		return nil
	}
	l, err := catalog.NewLayout(m.Table)
	if err != nil {
		return err
	}
	m.Computed, err = IndexExpressions(m.Table, l, p.opts.Catalog)
	return err
}

// inferredIndex tells whether an index is what ON CONFLICT (elements) WHERE cond
// means: unique, over exactly the elements, and complete or with a predicate that
// follows from cond.
func (p *planner) inferredIndex(idx *catalog.Index, places []int, conds []Expr, r *rel) bool {
	if !idx.Unique || len(idx.Keys) < len(places) || !p.usable(r, idx, conds) {
		return false
	}
	var have []int
	for k := range idx.Keys {
		at := p.keyPlace(r, idx, k)
		if !slices.Contains(places, at) {
			return false
		}
		have = append(have, at)
	}
	return !slices.ContainsFunc(places, func(at int) bool { return !slices.Contains(have, at) })
}
