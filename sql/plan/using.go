package plan

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/tallystick/tallystick/sql/builtin"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// using is a column that JOIN ... USING or NATURAL JOIN has merged. It stands
// before the columns of first, the first item of its join.
type using struct {
	column
	first *rel
}

// joinSides are the two operands of a join: their items and merged columns.
type joinSides struct {
	left, right             []*rel
	leftUsings, rightUsings []using
}

// merging collects what the USING of one join makes.
type merging struct {
	cols  []using
	exprs []Expr // per column: what computes it; nil if it is a column of one side
}

// usingNames are the names of USING, or those that NATURAL finds on both sides.
func (d *joinSides) usingNames(j *pg.JoinExpr) []string {
	if !j.IsNatural {
		names, _ := nameParts(j.UsingClause)
		return names
	}
	right := sideNames(d.right, d.rightUsings)
	var names []string
	for _, name := range sideNames(d.left, d.leftUsings) {
		if slices.Contains(right, name) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// sideNames are the names that the columns of one side of a join have.
func sideNames(rels []*rel, usings []using) []string {
	var names []string
	for _, r := range rels {
		for _, u := range usings {
			if u.first == r {
				names = append(names, u.name)
			}
		}
		for i, c := range r.cols {
			if !r.merged[i] {
				names = append(names, c.name)
			}
		}
	}
	return names
}

// usingColumn equates the columns of one name on both sides and merges them.
func (p *planner) usingColumn(name string, d *joinSides, kind JoinKind, m *merging) (Expr, error) {
	l, err := p.sideColumn(name, d.left, &d.leftUsings, "left")
	if err != nil {
		return nil, err
	}
	r, err := p.sideColumn(name, d.right, &d.rightUsings, "right")
	if err != nil {
		return nil, err
	}
	e, err := p.operator("=", l, r, -1)
	if err != nil {
		return nil, err
	}
	t, err := builtin.CommonType([]datum.Type{l.Type(), r.Type()}, "JOIN/USING")
	if err != nil {
		return nil, err
	}
	keep, other := l, r
	if kind == RightJoin || kind == InnerJoin && !l.Type().Same(t) {
		keep, other = r, l
	}
	u := using{column: column{name: name, typ: keep.typ, slot: keep.Index}, first: d.left[0]}
	var compute Expr
	switch {
	case kind == FullJoin:
		pair := []Expr{l, r}
		if u.typ, err = p.unify(pair, "JOIN/USING", []int32{-1, -1}); err != nil {
			return nil, err
		}
		compute = &Coalesce{typed{u.typ}, pair}
	case kind != InnerJoin && !keep.Type().Same(t):
		if compute, err = p.coerce(keep, t, builtin.Implicit, -1); err != nil {
			return nil, err
		}
		u.typ = t
	case keep.typ.Mod != other.typ.Mod:
		u.typ = datum.T(keep.typ.Desc)
	}
	if compute != nil {
		u.slot = p.newSlot()
	}
	m.cols, m.exprs = append(m.cols, u), append(m.exprs, compute)
	return e, nil
}

// sideColumn finds the one column of a name on one side and takes it out of what
// * shows.
func (p *planner) sideColumn(name string, rels []*rel, usings *[]using, side string) (*Slot, error) {
	var found *Slot
	ambiguous := func() error {
		return pgerr.New(pgerr.AmbiguousColumn, "common column name \"%s\" appears more than once in %s table", name, side)
	}
	for i, u := range *usings {
		if u.name != name {
			continue
		}
		if found != nil {
			return nil, ambiguous()
		}
		found = NewSlot(u.typ, u.slot, name)
		defer func() { *usings = slices.Delete(slices.Clone(*usings), i, i+1) }()
	}
	for _, r := range rels {
		for i := range r.cols {
			if r.cols[i].name != name || r.merged[i] {
				continue
			}
			if found != nil {
				return nil, ambiguous()
			}
			found = p.useColumn(r, i)
			r.merge(i)
		}
	}
	if found == nil {
		return nil, pgerr.New(pgerr.UndefinedColumn, "column \"%s\" specified in USING clause does not exist in %s table", name, side)
	}
	return found, nil
}

func (r *rel) merge(i int) {
	if r.merged == nil {
		r.merged = map[int]bool{}
	}
	r.merged[i] = true
}

// mergedRel is an item without columns of its own: it owns computed merged
// columns, or gives merged columns a name (JOIN ... USING (...) AS name).
func mergedRel(alias string, cols []using) *rel {
	r := &rel{alias: alias, name: alias}
	for i, u := range cols {
		r.cols = append(r.cols, u.column)
		r.merge(i)
	}
	return r
}

// computeMerged adds the merged columns that are not simply those of one side to
// an outer join.
func (p *planner) computeMerged(it *item, m *merging, s *scope) error {
	node := &Project{Child: it.node}
	var cols []using
	for i, e := range m.exprs {
		if e != nil {
			node.Exprs, node.Out = append(node.Exprs, e), append(node.Out, m.cols[i].slot)
			cols = append(cols, m.cols[i])
		}
	}
	if cols == nil {
		return nil
	}
	r := mergedRel("", cols)
	p.own(r)
	it.node, it.rels = node, append(it.rels, r)
	return p.addRel(r, s)
}

// aliasedJoin is (... JOIN ...) AS alias, which hides the names inside: the same
// as a subquery that selects all columns.
func (p *planner) aliasedJoin(j *pg.JoinExpr, s *scope) (item, error) {
	inner := &pg.JoinExpr{Jointype: j.Jointype, IsNatural: j.IsNatural, Larg: j.Larg, Rarg: j.Rarg,
		UsingClause: j.UsingClause, JoinUsingAlias: j.JoinUsingAlias, Quals: j.Quals, Rtindex: j.Rtindex}
	all := &pg.Node{Node: &pg.Node_ColumnRef{ColumnRef: &pg.ColumnRef{Fields: []*pg.Node{{Node: &pg.Node_AStar{AStar: &pg.A_Star{}}}}, Location: -1}}}
	sel := &pg.SelectStmt{
		TargetList:  []*pg.Node{{Node: &pg.Node_ResTarget{ResTarget: &pg.ResTarget{Val: all, Location: -1}}}},
		FromClause:  []*pg.Node{{Node: &pg.Node_JoinExpr{JoinExpr: inner}}},
		LimitOption: pg.LimitOption_LIMIT_OPTION_DEFAULT, Op: pg.SetOperation_SETOP_NONE,
	}
	return p.rangeSubselect(&pg.RangeSubselect{
		Lateral: isLateral(j.Larg) || isLateral(j.Rarg), Alias: j.Alias,
		Subquery: &pg.Node{Node: &pg.Node_SelectStmt{SelectStmt: sel}},
	}, s)
}

// isLateral tells that an operand of a join may refer to items beside the join.
func isLateral(n *pg.Node) bool {
	switch n := n.Node.(type) {
	case *pg.Node_RangeFunction:
		return true
	case *pg.Node_RangeSubselect:
		return n.RangeSubselect.Lateral
	case *pg.Node_JoinExpr:
		return isLateral(n.JoinExpr.Larg) || isLateral(n.JoinExpr.Rarg)
	}
	return false
}
