package plan

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/tallystick/tallystick/sql/builtin"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// shown is a column that a name without qualifier can mean and that * shows: a
// column of an item, or one that JOIN ... USING has merged.
type shown struct {
	rel    *rel
	col    int
	merged *column // instead of rel and col
}

func (c *shown) name() string {
	if c.merged != nil {
		return c.merged.name
	}
	return c.rel.cols[c.col].name
}

// columns are the columns in sight, in the order in which * shows them.
func (s *scope) columns() []shown {
	if s.shown != nil {
		return s.shown
	}
	var out []shown
	for _, r := range s.rels {
		out = append(out, columnsOf(r)...)
	}
	return out
}

func columnsOf(r *rel) []shown {
	out := make([]shown, len(r.cols))
	for i := range r.cols {
		out[i] = shown{rel: r, col: i}
	}
	return out
}

// useShown returns a reference to a column in sight.
func (p *planner) useShown(c *shown) *Slot {
	if c.merged != nil {
		return NewSlot(c.merged.typ, c.merged.slot, c.merged.name)
	}
	return p.useColumn(c.rel, c.col)
}

// side is one operand of a JOIN.
type side struct {
	items []item
	conds []Expr
	rels  []*rel
	shown []shown
}

// join is a JOIN under analysis.
type join struct {
	kind        JoinKind
	left, right side
	on          []Expr
	using       []usingPair
}

// usingPair is a column that USING names, on both sides.
type usingPair struct {
	name        string
	left, right *Slot
}

// joinExpr is a JOIN written out.
func (p *planner) joinExpr(n *pg.JoinExpr, s *scope) ([]item, []Expr, error) {
	if n.Alias != nil {
		return p.aliasedJoin(n, s)
	}
	j := join{kind: joinKind(n.Jointype)}
	firstRel, firstShown := len(s.rels), len(s.shown)
	for i, operand := range []*pg.Node{n.Larg, n.Rarg} {
		at := []*side{&j.left, &j.right}[i]
		rels, columns := len(s.rels), len(s.shown)
		var err error
		if at.items, at.conds, err = p.fromItem(operand, s); err != nil {
			return nil, nil, err
		}
		at.rels, at.shown = slices.Clone(s.rels[rels:]), slices.Clone(s.shown[columns:])
	}
	reveal(s.rels[firstRel:])
	if err := p.joinCondition(n, &j, s); err != nil {
		return nil, nil, err
	}
	if j.kind == InnerJoin {
		columns, _, err := p.mergedColumns(&j)
		if err == nil {
			err = p.showJoin(n, columns, firstShown, s)
		}
		return append(j.left.items, j.right.items...), slices.Concat(j.left.conds, j.right.conds, j.on), err
	}
	columns, computed, err := p.mergedColumns(&j)
	if err != nil {
		return nil, nil, err
	}
	it := outerItem(&j)
	if computed != nil {
		holder := &rel{computed: computed.Out}
		it.rels, it.outer.computed = append(it.rels, holder), computed
		for _, slot := range computed.Out {
			p.owner[slot] = holder
		}
		s.rels = append(s.rels, holder)
	}
	return []item{it}, nil, p.showJoin(n, columns, firstShown, s)
}

// showJoin replaces what the operands of a join show by what the join shows, and
// gives the merged columns the name of JOIN ... USING (...) AS.
func (p *planner) showJoin(n *pg.JoinExpr, columns []shown, first int, s *scope) error {
	if n.JoinUsingAlias != nil {
		r := &rel{alias: n.JoinUsingAlias.Aliasname, visible: true}
		for _, c := range columns {
			if c.merged != nil {
				r.cols = append(r.cols, *c.merged)
			}
		}
		if err := p.addRel(r, s); err != nil {
			return err
		}
	}
	s.shown = append(s.shown[:first], columns...)
	return nil
}

func joinKind(t pg.JoinType) JoinKind {
	switch t {
	case pg.JoinType_JOIN_LEFT:
		return LeftJoin
	case pg.JoinType_JOIN_RIGHT:
		return RightJoin
	case pg.JoinType_JOIN_FULL:
		return FullJoin
	}
	return InnerJoin
}

// joinCondition analyzes ON, USING or NATURAL.
func (p *planner) joinCondition(n *pg.JoinExpr, j *join, s *scope) error {
	if n.Quals != nil {
		beside := &scope{
			parent: s.parent, rels: slices.Concat(j.left.rels, j.right.rels), shown: slices.Concat(j.left.shown, j.right.shown),
			ctes: s.ctes, noAggs: "JOIN conditions",
		}
		e, err := p.condition(n.Quals, beside, "JOIN/ON")
		s.absorb(beside)
		j.on = conjuncts(e)
		return err
	}
	names, _ := nameParts(n.UsingClause)
	if n.IsNatural {
		names = commonNames(j.left.shown, j.right.shown)
	}
	for _, name := range names {
		if slices.ContainsFunc(j.using, func(u usingPair) bool { return u.name == name }) {
			return pgerr.New(pgerr.DuplicateColumn, "column name \"%s\" appears more than once in USING clause", name)
		}
		l, err := p.usingColumn(name, j.left.shown, "left")
		if err != nil {
			return err
		}
		r, err := p.usingColumn(name, j.right.shown, "right")
		if err != nil {
			return err
		}
		if _, err := builtin.CommonType([]datum.Type{l.Type(), r.Type()}, "JOIN/USING"); err != nil {
			return err
		}
		e, err := p.operator("=", l, r, -1)
		if err != nil {
			return err
		}
		j.on, j.using = append(j.on, e), append(j.using, usingPair{name, l, r})
	}
	return nil
}

func commonNames(left, right []shown) []string {
	var names []string
	for i := range left {
		name := left[i].name()
		if slices.ContainsFunc(right, func(c shown) bool { return c.name() == name }) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

func (p *planner) usingColumn(name string, columns []shown, where string) (*Slot, error) {
	var found *shown
	for i := range columns {
		if columns[i].name() != name {
			continue
		}
		if found != nil {
			return nil, pgerr.New(pgerr.AmbiguousColumn, "common column name \"%s\" appears more than once in %s table", name, where)
		}
		found = &columns[i]
	}
	if found == nil {
		return nil, pgerr.New(pgerr.UndefinedColumn, "column \"%s\" specified in USING clause does not exist in %s table", name, where)
	}
	return p.useShown(found), nil
}

// mergedColumns are the columns of a join as * shows them: those of USING
// first, then the others of both sides. Merged columns that are neither side's
// column as it is are computed by the node that is returned.
func (p *planner) mergedColumns(j *join) ([]shown, *Project, error) {
	var columns []shown
	var computed *Project
	for _, u := range j.using {
		e, err := p.mergedValue(j.kind, u)
		if err != nil {
			return nil, nil, err
		}
		c := column{name: u.name, typ: e.Type()}
		if sl, ok := e.(*Slot); ok {
			c.slot = sl.Index
		} else {
			if computed == nil {
				computed = &Project{}
			}
			c.slot = p.newSlot()
			computed.Exprs, computed.Out = append(computed.Exprs, e), append(computed.Out, c.slot)
		}
		columns = append(columns, shown{merged: &c})
	}
	for _, c := range slices.Concat(j.left.shown, j.right.shown) {
		if !slices.ContainsFunc(j.using, func(u usingPair) bool { return u.name == c.name() }) {
			columns = append(columns, c)
		}
	}
	return columns, computed, nil
}

// mergedValue is what a column of USING shows: the side that is never padded
// with nulls, or for FULL JOIN the one that is there.
func (p *planner) mergedValue(kind JoinKind, u usingPair) (Expr, error) {
	t, err := builtin.CommonType([]datum.Type{u.left.Type(), u.right.Type()}, "JOIN/USING")
	if err != nil {
		return nil, err
	}
	l, err := p.coerce(u.left, t, builtin.Implicit, -1)
	if err != nil {
		return nil, err
	}
	r, err := p.coerce(u.right, t, builtin.Implicit, -1)
	if err != nil {
		return nil, err
	}
	switch kind {
	case LeftJoin:
		return l, nil
	case RightJoin:
		return r, nil
	case FullJoin:
		return &Coalesce{typed{t}, []Expr{l, r}}, nil
	}
	if _, ok := l.(*Slot); !ok { // both are equal: take the one of the common type
		return r, nil
	}
	return l, nil
}
