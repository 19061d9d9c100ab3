package plan

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"
)

// source is a subquery in FROM: planned as a whole, or, if it only restricts
// and joins tables, merged into the query around it, whose conditions then
// choose how its tables are read.
type source struct {
	cols []column
	node Node // nil if merged
	// items, conds and rels are the operands, conditions and names of a merged one.
	items []item
	conds []Expr
	rels  []*rel
}

// subquerySource analyzes a subquery or view in FROM.
func (p *planner) subquerySource(n *pg.SelectStmt, s *scope) (*source, error) {
	if !mergeable(n) {
		q, err := p.selectStmt(n, s)
		if err != nil {
			return nil, err
		}
		return p.plannedSource(q)
	}
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	items, conds, err := p.from(n.FromClause, s)
	if err != nil {
		return nil, err
	}
	targets, err := p.targets(n.TargetList, s)
	if err != nil {
		return nil, err
	}
	if n.WhereClause != nil {
		s.noAggs = "WHERE"
		e, err := p.condition(n.WhereClause, s, "WHERE")
		if err != nil {
			return nil, err
		}
		conds = append(conds, conjuncts(e)...)
	}
	src := &source{items: items, conds: conds, rels: s.rels}
	for _, t := range targets {
		sl, ok := t.expr.(*Slot)
		if !ok || !slices.Contains(s.rels, p.owner[sl.Index]) || s.volatile {
			return p.joinedSource(src, targets, s)
		}
		c := t.col
		c.typ, c.slot = sl.Type(), sl.Index
		src.cols = append(src.cols, c)
	}
	return src, nil
}

// joinedSource plans what cannot be merged after all.
func (p *planner) joinedSource(src *source, targets []target, s *scope) (*source, error) {
	node, err := p.joinAll(src.items, src.conds, nil)
	if err != nil {
		return nil, err
	}
	q := &query{}
	q.node, q.cols = p.project(node, targets, s)
	return p.plannedSource(q)
}

func (p *planner) plannedSource(q *query) (*source, error) {
	if err := p.settleUnknown(q); err != nil {
		return nil, err
	}
	return &source{cols: q.cols, node: q.node}, nil
}

// mergeable tells that a SELECT only joins, restricts and shows columns.
func mergeable(n *pg.SelectStmt) bool {
	if n == nil || n.Op != pg.SetOperation_SETOP_NONE || len(n.FromClause) == 0 || n.WithClause != nil || n.IntoClause != nil ||
		n.DistinctClause != nil || n.GroupClause != nil || n.HavingClause != nil || n.WindowClause != nil || n.ValuesLists != nil ||
		n.SortClause != nil || n.LimitCount != nil || n.LimitOffset != nil {
		return false
	}
	for _, t := range n.TargetList {
		if t.GetResTarget().GetVal().GetColumnRef() == nil {
			return false
		}
	}
	return true
}

// sourceItems names a subquery r and gives its operands to the join around it.
func (p *planner) sourceItems(src *source, r *rel, name string, alias *pg.Alias, siblings []*rel, s *scope) ([]item, []Expr, error) {
	r.cols = slices.Clone(src.cols)
	if err := p.nameRel(r, name, alias); err != nil {
		return nil, nil, err
	}
	if src.node != nil {
		p.own(r)
		it := item{rels: []*rel{r}, node: src.node, rows: estimate(src.node), needs: p.needs(src.node, siblings)}
		return []item{it}, nil, p.addRel(r, s)
	}
	if err := p.addRel(r, s); err != nil {
		return nil, nil, err
	}
	for _, in := range src.rels {
		in.inside, in.visible = true, false
	}
	s.rels = append(s.rels, src.rels...)
	return src.items, src.conds, nil
}
