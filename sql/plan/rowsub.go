package plan

import (
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// rowSubquery plans a subquery whose one row is wanted: computing it fills the
// slots of its columns, with nulls if there is no row.
func (p *planner) rowSubquery(n *pg.SubLink, s *scope) (*Subquery, []column, error) {
	inner := s.child()
	q, err := p.selectStmt(n.Subselect.GetSelectStmt(), inner)
	if err != nil {
		return nil, nil, err
	}
	if inner.volatile {
		s.markVolatile()
	}
	if err := p.settleUnknown(q); err != nil {
		return nil, nil, err
	}
	sub := &Subquery{typed: typed{datum.T(datum.BoolType)}, Kind: RowSub, Plan: q.node, Out: q.out(),
		Correlated: inner.correlated || inner.volatile, ID: p.subqueries}
	p.subqueries++
	return sub, q.cols, nil
}

// rowCompareSub is row op (SELECT ...); null if there is no row.
func (p *planner) rowCompareSub(op string, l *pg.RowExpr, n *pg.SubLink, loc int32, s *scope, clause string) (Expr, error) {
	sub, cols, err := p.rowSubquery(n, s)
	if err != nil {
		return nil, err
	}
	switch {
	case len(l.Args) < len(cols):
		return nil, p.errAt(loc, pgerr.SyntaxError, "subquery has too many columns")
	case len(l.Args) > len(cols):
		return nil, p.errAt(loc, pgerr.SyntaxError, "subquery has too few columns")
	}
	left, err := p.exprs(l.Args, s, clause)
	if err != nil {
		return nil, err
	}
	cmp, err := p.comparePairs(op, left, slotsOf(cols), loc)
	if err != nil {
		return nil, err
	}
	return &Case{typed: cmp.typed, Whens: []When{{Cond: sub, Result: cmp}}}, nil
}

func slotsOf(cols []column) []Expr {
	out := make([]Expr, len(cols))
	for i, c := range cols {
		out[i] = NewSlot(c.typ, c.slot, c.name)
	}
	return out
}

// comparePairs compares two rows of equal length.
func (p *planner) comparePairs(op string, left, right []Expr, loc int32) (*RowCompare, error) {
	if op == "!=" {
		op = "<>"
	}
	if !strings.Contains(" = <> < <= > >= ", " "+op+" ") {
		for i := range left {
			if _, err := p.operator(op, left[i], right[i], loc); err != nil {
				return nil, err
			}
		}
		return nil, p.errAt(loc, pgerr.FeatureNotSupported, "could not determine interpretation of row comparison operator %s", op)
	}
	out := &RowCompare{typed: typed{datum.T(datum.BoolType)}, Op: op}
	for i := range left {
		pair := []Expr{left[i], right[i]}
		if _, err := p.operator(op, pair[0], pair[1], loc); err != nil {
			return nil, err
		}
		if _, err := p.unify(pair, "ROW", []int32{loc, loc}); err != nil {
			return nil, err
		}
		out.Left, out.Right = append(out.Left, pair[0]), append(out.Right, pair[1])
	}
	return out, nil
}

// multiSource is the subquery of SET (a, b) = (SELECT ...).
type multiSource struct {
	sub  *Subquery
	cols []column
	lead int // the column of the table that is computed first; -1 = none so far
}

// multiAssigned is the value of one of the columns that a subquery is assigned
// to. New values are computed in the order of the table's columns, so the first
// of these computes the subquery and the others read its slots: see leadMulti.
func (p *planner) multiAssigned(rt *pg.ResTarget, n *pg.SubLink, col *catalog.Column, place int, s *scope) (Expr, error) {
	ref := rt.Val.GetMultiAssignRef()
	m := p.multi[n.Location]
	if m == nil {
		sub, cols, err := p.rowSubquery(n, s)
		if err != nil {
			return nil, err
		}
		if len(cols) != int(ref.Ncolumns) {
			return nil, p.errAt(n.Location, pgerr.SyntaxError, "number of columns does not match number of values")
		}
		m = &multiSource{sub: sub, cols: cols, lead: -1}
		if p.multi == nil {
			p.multi = map[int32]*multiSource{}
		}
		p.multi[n.Location] = m
	}
	if col.Generated != "" {
		return nil, p.errAt(rt.Location, pgerr.GeneratedAlways, "column \"%s\" can only be updated to DEFAULT", col.Name).
			WithDetail("Column \"%s\" is a generated column.", col.Name)
	}
	if m.lead < 0 || place < m.lead {
		m.lead = place
	}
	c := m.cols[ref.Colno-1]
	return p.assignColumn(NewSlot(c.typ, c.slot, c.name), col.Type, col.Name, location(rt.Val))
}

// leadMulti makes the first column that a subquery is assigned to compute it.
func (p *planner) leadMulti(list []*pg.Node, row []Expr) {
	done := map[*multiSource]bool{}
	for _, n := range list {
		link := n.GetResTarget().Val.GetMultiAssignRef().GetSource().GetSubLink()
		if link == nil {
			continue
		}
		m := p.multi[link.Location]
		if m == nil || done[m] {
			continue
		}
		done[m] = true
		e := row[m.lead]
		row[m.lead] = &Case{typed: typed{e.Type()}, Whens: []When{{Cond: m.sub, Result: e}}}
	}
}
