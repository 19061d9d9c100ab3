package plan

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"
)

// semiSource is what a subquery of WHERE needs to be read once, by itself,
// instead of again for every outer row: its FROM items, its conditions, and what
// computes its columns (nil for EXISTS and for plain columns).
type semiSource struct {
	items   []item
	conds   []Expr
	project *Project
	scope   *scope
}

// semiSourceOf keeps the parts of a query from which a semijoin can be made: one
// of FROM and WHERE alone, whose rows are what the join makes of its items.
func semiSourceOf(n *pg.SelectStmt, q *query, items []item, conds []Expr, s *scope, plain bool) *semiSource {
	if !plain || len(items) == 0 || len(n.DistinctClause) > 0 || n.LimitCount != nil || n.LimitOffset != nil ||
		n.WithClause != nil || len(n.LockingClause) > 0 || s.parent == nil {
		return nil
	}
	src := &semiSource{items: items, conds: conds, scope: s}
	src.project, _ = q.node.(*Project)
	return src
}

// semiJoin is a conjunct of WHERE that becomes a join.
type semiJoin struct {
	kind         JoinKind
	source       *semiSource
	outer, inner []Expr // keys, pairwise
	local, cross []Expr // conditions of the subquery alone, and of both sides
	columns      bool   // the columns of the subquery are compared
}

// joinWhere is joinAll for the items and conditions of a whole query. Conjuncts
// of the form EXISTS, NOT EXISTS, x IN and x NOT IN (SELECT ...) whose subquery
// would be read in full for every row are taken out and become semijoins and
// antijoins by hash above the rest. Where an index finds the rows of the
// subquery, or hardly any outer row is there to ask, the subquery stays what it
// is: it reads less.
func (p *planner) joinWhere(items []item, conds []Expr, order *wantedOrder, s *scope) (Node, error) {
	var semis []*semiJoin
	var rest []Expr
	for _, c := range conds {
		if j := p.semiJoinOf(c, items, s); j != nil {
			semis = append(semis, j)
		} else {
			rest = append(rest, c)
		}
	}
	if semis != nil && p.fewRows(items, rest) {
		semis, rest = nil, conds
	}
	node, err := p.joinAll(items, rest, order)
	if err != nil {
		return nil, err
	}
	for _, j := range semis {
		inner, err := p.joinAgain(j)
		if err != nil {
			return nil, err
		}
		if pr := j.source.project; pr != nil && j.columns {
			inner = &Project{Child: inner, Exprs: pr.Exprs, Out: pr.Out}
		}
		node = &HashJoin{Kind: j.kind, Outer: node, Inner: inner, OuterKeys: j.outer, InnerKeys: j.inner, Cond: conjunction(j.cross)}
	}
	return node, nil
}

// joinAgain plans the items of a subquery without the conditions on the outer
// row. The plan that it has already stays intact: what contains it may still
// decide to use it, or look for what it reads.
func (p *planner) joinAgain(j *semiJoin) (Node, error) {
	before := p.copyScans
	p.copyScans = true
	defer func() { p.copyScans = before }()
	return p.joinWhere(j.source.items, j.local, nil, j.source.scope)
}

// during runs f while slots of the items are unknown, as they are when the join
// of the items is ordered.
func (p *planner) during(items []item, f func()) {
	outer := p.pending
	p.pending = map[*rel]bool{}
	for _, it := range items {
		for _, r := range it.rels {
			p.pending[r] = true
		}
	}
	f()
	p.pending = outer
}

// fewRows tells that the items are a single table of which an index finds a few
// rows.
func (p *planner) fewRows(items []item, conds []Expr) (few bool) {
	if len(items) != 1 || items[0].base == nil || items[0].base.table == nil {
		return false
	}
	p.during(items, func() { few = p.bestPath(items[0].base, conds, nil).rows <= eqRows })
	return few
}

// semiJoinOf decides whether a condition becomes a join, and how.
func (p *planner) semiJoinOf(cond Expr, items []item, s *scope) *semiJoin {
	j := &semiJoin{kind: SemiJoin}
	sub, ok := cond.(*Subquery)
	if b, not := cond.(*BoolOp); not && b.Op == Not {
		sub, ok = b.Args[0].(*Subquery)
		j.kind = AntiJoin
	}
	if !ok || !sub.Correlated || sub.semi == nil || sub.semi.scope.volatile || len(items) == 0 {
		return nil
	}
	j.source = sub.semi
	var tests []Expr
	switch sub.Kind {
	case ExistsSub:
	case AnySub:
		j.columns, tests = true, conjuncts(sub.Test)
		if j.kind == AntiJoin && !p.neverNull(tests, items, sub.semi) {
			return nil
		}
	default:
		return nil
	}
	if !p.splitSemi(j, tests, s) || p.indexed(j) {
		return nil
	}
	return j
}

// splitSemi sorts the conditions of a subquery into its own, keys and others. It
// fails if something else than a condition reads the outer row, or if there is
// no key.
func (p *planner) splitSemi(j *semiJoin, tests []Expr, s *scope) bool {
	mine := j.source.scope.rels
	for _, it := range j.source.items {
		if it.node != nil && p.nodeReads(it.node, s.rels) {
			return false
		}
	}
	if pr := j.source.project; pr != nil && j.columns {
		if slices.ContainsFunc(pr.Exprs, func(e Expr) bool { return p.readsOf(e, s.rels) }) {
			return false
		}
		// Columns that the query computes belong to its side.
		for _, slot := range pr.Out {
			if p.owner[slot] == nil {
				p.owner[slot] = mine[0]
			}
		}
	}
	for _, c := range j.source.conds {
		if !p.readsOf(c, s.rels) {
			j.local = append(j.local, c)
		} else if !p.semiKey(j, c, mine, s.rels) {
			j.cross = append(j.cross, c)
		}
	}
	for _, c := range tests {
		if !p.semiKey(j, c, mine, s.rels) {
			j.cross = append(j.cross, c)
		}
	}
	return len(j.outer) > 0
}

// semiKey makes a key of an equality between the two sides.
func (p *planner) semiKey(j *semiJoin, cond Expr, mine, outer []*rel) bool {
	c, ok := cond.(*Call)
	if !ok || comparisonOps[c.Func.OID] != "=" || len(c.Args) != 2 || !hashPair(c.Args[0], c.Args[1]) {
		return false
	}
	a, b := c.Args[0], c.Args[1]
	if p.readsOf(a, mine) {
		a, b = b, a
	}
	if p.readsOf(a, mine) || p.readsOf(b, outer) || !p.readsOf(b, mine) {
		return false
	}
	j.outer, j.inner = append(j.outer, a), append(j.inner, b)
	return true
}

// readsOf tells that an expression reads a slot of one of rels.
func (p *planner) readsOf(e Expr, rels []*rel) bool {
	found := false
	walk(e, func(x Expr) {
		if sl, ok := x.(*Slot); ok {
			r := p.owner[sl.Index]
			found = found || r != nil && slices.Contains(rels, r)
		}
	})
	return found
}

func (p *planner) nodeReads(n Node, rels []*rel) bool {
	found := false
	walkNode(n, func(x Expr) {
		if sl, ok := x.(*Slot); ok {
			r := p.owner[sl.Index]
			found = found || r != nil && slices.Contains(rels, r)
		}
	})
	return found
}

// indexed tells that the conditions on the outer row let an index find the rows
// of some table of the subquery.
func (p *planner) indexed(j *semiJoin) (better bool) {
	p.during(j.source.items, func() {
		for _, it := range j.source.items {
			if it.base == nil || it.base.table == nil {
				continue
			}
			with, alone := p.bestPath(it.base, j.source.conds, nil), p.bestPath(it.base, j.local, nil)
			better = better || !with.full && with.cost < alone.cost
		}
	})
	return better
}

// neverNull tells that both sides of all tests are columns declared NOT NULL, or
// constants: then NOT IN is an antijoin.
func (p *planner) neverNull(tests []Expr, items []item, src *semiSource) bool {
	for _, t := range tests {
		c, ok := t.(*Call)
		if !ok || len(c.Args) != 2 {
			return false
		}
		for _, a := range c.Args {
			if !p.notNullable(a, items) && !p.notNullable(a, src.items) {
				return false
			}
		}
	}
	return true
}

// notNullable tells that e is a constant, or a NOT NULL column of one of the items
// that is a plain table: no outer join makes it null.
func (p *planner) notNullable(e Expr, items []item) bool {
	if c, ok := e.(*Const); ok {
		return !c.Value.IsNull()
	}
	for _, it := range items {
		if it.base == nil || it.base.table == nil || it.base.scan.Provenance {
			continue
		}
		if i, ok := p.columnOf(e, it.base); ok && it.base.table.Columns[i].NotNull {
			return true
		}
	}
	return false
}

// copyScan is r with a copy of the node that reads it.
func (r *rel) copyScan() *rel {
	c := *r
	switch {
	case r.scan != nil:
		n := *r.scan
		c.scan = &n
	case r.vscan != nil:
		n := *r.vscan
		c.vscan = &n
	default:
		n := *r.cscan
		c.cscan = &n
	}
	return &c
}
