package plan

import (
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// subLink analyzes a subquery in an expression.
func (p *planner) subLink(n *pg.SubLink, s *scope, clause string) (Expr, error) {
	inner := s.child()
	q, err := p.selectStmt(n.Subselect.GetSelectStmt(), inner)
	if err != nil {
		return nil, err
	}
	if err := p.settleUnknown(q); err != nil {
		return nil, err
	}
	if inner.volatile {
		s.markVolatile()
	}
	sub := &Subquery{Plan: q.node, Out: q.out(), Correlated: inner.correlated || inner.volatile, ID: p.subqueries, semi: q.semi}
	p.subqueries++
	sub.typ = datum.T(datum.BoolType)
	switch n.SubLinkType {
	case pg.SubLinkType_EXISTS_SUBLINK:
		sub.Kind = ExistsSub
		return sub, nil
	case pg.SubLinkType_EXPR_SUBLINK:
		if len(q.cols) != 1 {
			return nil, p.errAt(n.Location, pgerr.SyntaxError, "subquery must return only one column")
		}
		sub.Kind = ScalarSub
		sub.typ = q.cols[0].typ
		return p.settle(sub)
	case pg.SubLinkType_ARRAY_SUBLINK:
		return p.arraySub(sub, q, n.Location)
	case pg.SubLinkType_ANY_SUBLINK, pg.SubLinkType_ALL_SUBLINK:
		return p.quantified(n, sub, q, s, clause)
	}
	return nil, p.at(pgerr.NotBuilt("this kind of subquery is not supported"), n.Location)
}

func (p *planner) arraySub(sub *Subquery, q *query, loc int32) (Expr, error) {
	if len(q.cols) != 1 {
		return nil, p.errAt(loc, pgerr.SyntaxError, "subquery must return only one column")
	}
	t := q.cols[0].typ
	if t.Desc == datum.Unknown {
		t = datum.T(datum.Text)
	}
	switch {
	case t.IsArray():
		sub.typ = datum.T(t.Desc)
	case t.Array == nil:
		return nil, p.errAt(loc, pgerr.UndefinedObject, "could not find array type for data type %s", datum.FormatType(t))
	default:
		sub.typ = datum.T(t.Array)
	}
	sub.Kind = ArraySub
	return sub, nil
}

// quantified is x op ANY|ALL (SELECT ...), of which IN is a case. The result
// of NOT IN comes from the NOT that the grammar puts around it.
func (p *planner) quantified(n *pg.SubLink, sub *Subquery, q *query, s *scope, clause string) (Expr, error) {
	sub.Kind = AnySub
	if n.SubLinkType == pg.SubLinkType_ALL_SUBLINK {
		sub.Kind = AllSub
	}
	op := "="
	if len(n.OperName) > 0 {
		parts, _ := nameParts(n.OperName)
		op = parts[len(parts)-1]
	}
	left, err := p.leftSide(n.Testexpr, s, clause)
	if err != nil {
		return nil, err
	}
	if len(left) != len(q.cols) {
		if len(left) > len(q.cols) {
			return nil, p.errAt(n.Location, pgerr.SyntaxError, "subquery has too few columns")
		}
		return nil, p.errAt(n.Location, pgerr.SyntaxError, "subquery has too many columns")
	}
	if len(left) > 1 && op != "=" {
		cmp, err := p.comparePairs(op, left, slotsOf(q.cols), n.Location)
		if err != nil {
			return nil, err
		}
		sub.Test = cmp
		return sub, nil
	}
	var tests []Expr
	for i, l := range left {
		c := q.cols[i]
		test, err := p.operator(op, l, NewSlot(c.typ, c.slot, c.name), n.Location)
		if err != nil {
			return nil, err
		}
		if test, err = p.boolean(test, "a quantified comparison", n.Location); err != nil {
			return nil, err
		}
		tests = append(tests, test)
	}
	sub.Test = conjunction(tests)
	if len(tests) == 1 && op == "=" && sub.Kind == AnySub && !sub.Correlated {
		p.hashable(sub, q.cols[0].slot)
	}
	return sub, nil
}

func (p *planner) leftSide(n *pg.Node, s *scope, clause string) ([]Expr, error) {
	if r := n.GetRowExpr(); r != nil {
		return p.exprs(r.Args, s, clause)
	}
	e, err := p.expr(n, s, clause)
	return []Expr{e}, err
}

// hashable marks an uncorrelated x = ANY (SELECT y) whose comparison is the
// equality of one type over the plain column, so that rows can be hashed.
func (p *planner) hashable(sub *Subquery, slot int) {
	c, ok := sub.Test.(*Call)
	if !ok || len(c.Args) != 2 || !c.Args[0].Type().Same(c.Args[1].Type()) || c.Args[0].Type().Hash == nil {
		return
	}
	if y, ok := c.Args[1].(*Slot); ok && y.Index == slot {
		sub.Hash = c.Args[0]
	}
}

// conjunction joins conditions with AND; nil for none.
func conjunction(list []Expr) Expr {
	switch len(list) {
	case 0:
		return nil
	case 1:
		return list[0]
	}
	return &BoolOp{typed{datum.T(datum.BoolType)}, And, list}
}

// conjuncts splits a condition at its ANDs.
func conjuncts(e Expr) []Expr {
	if e == nil {
		return nil
	}
	if b, ok := e.(*BoolOp); ok && b.Op == And {
		var out []Expr
		for _, a := range b.Args {
			out = append(out, conjuncts(a)...)
		}
		return out
	}
	return []Expr{e}
}
