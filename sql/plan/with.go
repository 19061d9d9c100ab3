package plan

import (
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// cteRef is a WITH query that names can refer to.
type cteRef struct {
	id   int
	name string
	cols []column
	// recursive is set while its own recursive term is planned.
	recursive bool
}

func (s *scope) findCTE(name string) *cteRef {
	for ; s != nil; s = s.parent {
		if c := s.ctes[name]; c != nil {
			return c
		}
	}
	return nil
}

// with plans a WITH clause and makes its queries known in s. The function that
// it returns puts the body under the clause.
func (p *planner) with(w *pg.WithClause, s *scope) (func(*query) *query, error) {
	if w == nil {
		return func(q *query) *query { return q }, nil
	}
	known := map[string]*cteRef{}
	for k, v := range s.ctes {
		known[k] = v
	}
	s.ctes = known
	node := &With{}
	for _, n := range w.Ctes {
		c := n.GetCommonTableExpr()
		cte, ref, err := p.commonTable(c, w.Recursive, s)
		if err != nil {
			return nil, err
		}
		if known[c.Ctename] != nil && s.declared(node, c.Ctename) {
			return nil, p.errAt(c.Location, pgerr.DuplicateAlias, "WITH query name \"%s\" specified more than once", c.Ctename)
		}
		known[c.Ctename] = ref
		node.CTEs = append(node.CTEs, *cte)
	}
	return func(q *query) *query {
		node.Body = q.node
		return &query{node: node, cols: q.cols, correlated: q.correlated, volatile: q.volatile, order: q.order}
	}, nil
}

func (s *scope) declared(w *With, name string) bool {
	for _, c := range w.CTEs {
		if c.Name == name {
			return true
		}
	}
	return false
}

func (p *planner) commonTable(c *pg.CommonTableExpr, recursive bool, s *scope) (*CTE, *cteRef, error) {
	if c.SearchClause != nil || c.CycleClause != nil {
		return nil, nil, pgerr.NotBuilt("SEARCH and CYCLE clauses of WITH queries are not supported")
	}
	id := p.ctes
	p.ctes++
	if sel := c.Ctequery.GetSelectStmt(); recursive && sel != nil && sel.Op == pg.SetOperation_SETOP_UNION && refersToTable(sel.Rarg, c.Ctename) {
		return p.recursiveTable(c, sel, id, s)
	}
	inner := &scope{parent: s.parent, ctes: s.ctes}
	q, modifies, err := p.cteQuery(c.Ctequery, inner)
	if err != nil {
		return nil, nil, err
	}
	s.absorb(inner)
	if err := p.settleUnknown(q); err != nil {
		return nil, nil, err
	}
	ref, err := p.cteColumns(c, id, q)
	if err != nil {
		return nil, nil, err
	}
	return &CTE{ID: id, Name: c.Ctename, Node: q.node, Out: q.out(), Types: typesOf(q.cols), Modifies: modifies}, ref, nil
}

func (p *planner) cteQuery(n *pg.Node, s *scope) (*query, bool, error) {
	var q *query
	var err error
	switch n := n.Node.(type) {
	case *pg.Node_SelectStmt:
		q, err = p.selectStmt(n.SelectStmt, s)
		return q, false, err
	case *pg.Node_InsertStmt:
		q, err = p.insertStmt(n.InsertStmt, s)
	case *pg.Node_UpdateStmt:
		q, err = p.updateStmt(n.UpdateStmt, s)
	case *pg.Node_DeleteStmt:
		q, err = p.deleteStmt(n.DeleteStmt, s)
	default:
		err = pgerr.NotBuilt("this kind of WITH query is not supported")
	}
	return q, true, err
}

func typesOf(cols []column) []datum.Type {
	out := make([]datum.Type, len(cols))
	for i, c := range cols {
		out[i] = c.typ
	}
	return out
}

func (p *planner) cteColumns(c *pg.CommonTableExpr, id int, q *query) (*cteRef, error) {
	ref := &cteRef{id: id, name: c.Ctename}
	names, _ := nameParts(c.Aliascolnames)
	if len(names) > len(q.cols) {
		return nil, p.errAt(c.Location, pgerr.InvalidColumnReference, "WITH query \"%s\" has %d columns available but %d columns specified", c.Ctename, len(q.cols), len(names))
	}
	for i, col := range q.cols {
		name := col.name
		if i < len(names) {
			name = names[i]
		}
		ref.cols = append(ref.cols, column{name: name, typ: col.typ, slot: -1})
	}
	return ref, nil
}

// recursiveTable plans a UNION whose right side refers to the query itself.
func (p *planner) recursiveTable(c *pg.CommonTableExpr, sel *pg.SelectStmt, id int, s *scope) (*CTE, *cteRef, error) {
	if len(sel.SortClause) > 0 || sel.LimitCount != nil || sel.LimitOffset != nil {
		return nil, nil, p.errAt(c.Location, pgerr.FeatureNotSupported, "ORDER BY and LIMIT in a recursive query are not implemented")
	}
	if sel.WithClause != nil {
		return nil, nil, p.at(pgerr.NotBuilt("WITH inside a recursive query is not supported"), c.Location)
	}
	base, err := p.branch(sel.Larg, s)
	if err != nil {
		return nil, nil, err
	}
	if err := p.settleUnknown(base); err != nil {
		return nil, nil, err
	}
	ref, err := p.cteColumns(c, id, base)
	if err != nil {
		return nil, nil, err
	}
	ref.recursive = true
	inner := &scope{parent: s.parent, ctes: map[string]*cteRef{}}
	for k, v := range s.ctes {
		inner.ctes[k] = v
	}
	inner.ctes[c.Ctename] = ref
	step, err := p.selectStmt(sel.Rarg, inner)
	if err != nil {
		return nil, nil, err
	}
	ref.recursive = false
	s.absorb(inner)
	if len(step.cols) != len(base.cols) {
		return nil, nil, p.errAt(firstLocation(sel.Rarg), pgerr.SyntaxError, "each UNION query must have the same number of columns")
	}
	for i := range step.cols {
		want := base.cols[i].typ
		if !step.cols[i].typ.Same(want) && step.cols[i].typ.Desc != datum.Unknown {
			return nil, nil, p.errAt(base.cols[i].loc, pgerr.DatatypeMismatch,
				"recursive query \"%s\" column %d has type %s in non-recursive term but type %s overall",
				c.Ctename, i+1, datum.FormatType(want), datum.FormatType(step.cols[i].typ)).
				WithHint("Cast the output of the non-recursive term to the correct type.")
		}
		if err := p.convertColumn(step, i, want); err != nil {
			return nil, nil, err
		}
	}
	return &CTE{
		ID: id, Name: c.Ctename, Node: base.node, Out: base.out(), Types: typesOf(base.cols),
		Step: step.node, StepOut: step.out(), Distinct: !sel.All,
	}, ref, nil
}

// refersToTable tells whether FROM, at any depth of joins and set operations,
// names a relation.
func refersToTable(n *pg.SelectStmt, name string) bool {
	if n == nil {
		return false
	}
	if n.Larg != nil && (refersToTable(n.Larg, name) || refersToTable(n.Rarg, name)) {
		return true
	}
	for _, f := range n.FromClause {
		if fromNames(f, name) {
			return true
		}
	}
	return false
}

func fromNames(n *pg.Node, name string) bool {
	switch n := n.Node.(type) {
	case *pg.Node_RangeVar:
		return n.RangeVar.Schemaname == "" && n.RangeVar.Relname == name
	case *pg.Node_JoinExpr:
		return fromNames(n.JoinExpr.Larg, name) || fromNames(n.JoinExpr.Rarg, name)
	case *pg.Node_RangeSubselect:
		return refersToTable(n.RangeSubselect.Subquery.GetSelectStmt(), name)
	}
	return false
}

// cteItem reads a WITH query in FROM.
func (p *planner) cteItem(c *cteRef, v *pg.RangeVar, s *scope) (item, error) {
	r := &rel{cscan: &CTEScan{ID: c.id, Working: c.recursive}}
	for _, col := range c.cols {
		r.cols = append(r.cols, column{name: col.name, typ: col.typ, slot: -1})
		r.cscan.Slots = append(r.cscan.Slots, -1)
	}
	if err := p.nameRel(r, v.Relname, v.Alias); err != nil {
		return item{}, err
	}
	return item{rels: []*rel{r}, base: r}, p.addRel(r, s)
}
