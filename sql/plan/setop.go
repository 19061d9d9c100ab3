package plan

import (
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/tallystick/tallystick/sql/builtin"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// setOperation plans UNION, INTERSECT and EXCEPT.
func (p *planner) setOperation(n *pg.SelectStmt, s *scope) (*query, error) {
	name := map[pg.SetOperation]string{
		pg.SetOperation_SETOP_UNION: "UNION", pg.SetOperation_SETOP_INTERSECT: "INTERSECT", pg.SetOperation_SETOP_EXCEPT: "EXCEPT",
	}[n.Op]
	left, err := p.branch(n.Larg, s)
	if err != nil {
		return nil, err
	}
	right, err := p.branch(n.Rarg, s)
	if err != nil {
		return nil, err
	}
	if len(left.cols) != len(right.cols) {
		return nil, p.errAt(firstLocation(n.Rarg), pgerr.SyntaxError, "each %s query must have the same number of columns", name)
	}
	q := &query{}
	if err := p.matchColumns(left, right, q, name); err != nil {
		return nil, err
	}
	q.node = p.setNode(n, left, right, q)
	return p.orderOutput(q, n, s)
}

// branch plans one side, which sees the outer query and the WITH queries only.
func (p *planner) branch(n *pg.SelectStmt, s *scope) (*query, error) {
	side := &scope{parent: s.parent, ctes: s.ctes}
	q, err := p.selectStmt(n, side)
	if err != nil {
		return nil, err
	}
	s.absorb(side)
	return q, nil
}

func firstLocation(n *pg.SelectStmt) int32 {
	for n.Larg != nil {
		n = n.Larg
	}
	if len(n.TargetList) > 0 {
		return location(n.TargetList[0])
	}
	return -1
}

// matchColumns converts both sides to common types and gives q its columns.
func (p *planner) matchColumns(left, right *query, q *query, name string) error {
	for i := range left.cols {
		l, r := left.cols[i], right.cols[i]
		t, err := builtin.CommonType([]datum.Type{l.typ, r.typ}, name)
		if err != nil {
			return p.locate(err, r.loc)
		}
		if err := p.convertColumn(left, i, t); err != nil {
			return err
		}
		if err := p.convertColumn(right, i, t); err != nil {
			return err
		}
		q.cols = append(q.cols, column{name: l.name, typ: t, slot: p.newSlot(), loc: l.loc})
	}
	return nil
}

// convertColumn coerces an output column of a query.
func (p *planner) convertColumn(q *query, i int, t datum.Type) error {
	c := &q.cols[i]
	if c.typ.Same(t) && c.typ.Mod == t.Mod {
		return nil
	}
	var from Expr = NewSlot(c.typ, c.slot, c.name)
	if c.lit != nil {
		from = c.lit
	}
	e, err := p.coerce(from, t, builtin.Implicit, c.loc)
	if err != nil {
		return err
	}
	if e == from {
		return nil
	}
	c.typ, c.slot, c.lit = t, p.newSlot(), nil
	q.node = &Project{Child: q.node, Exprs: []Expr{e}, Out: []int{c.slot}}
	return nil
}

func (p *planner) setNode(n *pg.SelectStmt, left, right, q *query) Node {
	if n.Op == pg.SetOperation_SETOP_UNION {
		var node Node = &Append{Children: []Node{left.node, right.node}, In: [][]int{left.out(), right.out()}, Out: q.out()}
		if n.All {
			return node
		}
		u := &Unique{Child: node}
		for _, c := range q.cols {
			u.Keys = append(u.Keys, NewSlot(c.typ, c.slot, c.name))
		}
		return u
	}
	op := &SetOp{Kind: Intersect, All: n.All, Left: left.node, Right: right.node, LeftIn: left.out(), RightIn: right.out(), Out: q.out()}
	if n.Op == pg.SetOperation_SETOP_EXCEPT {
		op.Kind = Except
	}
	for _, c := range q.cols {
		op.Types = append(op.Types, c.typ)
	}
	return op
}
