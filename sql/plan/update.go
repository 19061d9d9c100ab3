package plan

import (
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// updateStmt plans UPDATE.
func (p *planner) updateStmt(n *pg.UpdateStmt, s *scope) (*query, error) {
	finish, err := p.with(n.WithClause, s)
	if err != nil {
		return nil, err
	}
	target, items, conds, err := p.changeSource(n.Relation, n.FromClause, n.WhereClause, "UPDATE", s)
	if err != nil {
		return nil, err
	}
	t := target.table
	m := &Modify{Kind: Update, Table: t, NewSlots: p.newSlots(len(t.Columns)), Old: p.wholeOld(target)}
	s.noAggs = "UPDATE"
	if m.New, m.Changed, err = p.assignments(n.TargetList, t, s, m.Old); err != nil {
		return nil, err
	}
	if err := p.rowRules(m); err != nil {
		return nil, err
	}
	if err := p.secureRows(m, catalog.PolicyUpdate, true); err != nil {
		return nil, err
	}
	if err := p.triggers(m, "UPDATE"); err != nil {
		return nil, err
	}
	if m.Child, err = p.joinWhere(items, conds, nil, s); err != nil {
		return nil, err
	}
	fresh := p.slotsRel(t, target.alias, m.NewSlots)
	fresh.schema = target.schema
	after := &scope{parent: s.parent, rels: append([]*rel{fresh}, s.rels[1:]...), ctes: s.ctes, noAggs: "RETURNING"}
	q, err := p.returning(m, n.ReturningList, after)
	if err != nil {
		return nil, err
	}
	return finish(q), nil
}

// deleteStmt plans DELETE.
func (p *planner) deleteStmt(n *pg.DeleteStmt, s *scope) (*query, error) {
	finish, err := p.with(n.WithClause, s)
	if err != nil {
		return nil, err
	}
	target, items, conds, err := p.changeSource(n.Relation, n.UsingClause, n.WhereClause, "DELETE", s)
	if err != nil {
		return nil, err
	}
	m := &Modify{Kind: Delete, Table: target.table, Old: p.wholeOld(target)}
	if err := p.referencing(m); err != nil {
		return nil, err
	}
	if err := p.indexExpressions(m); err != nil {
		return nil, err
	}
	if err := p.triggers(m, "DELETE"); err != nil {
		return nil, err
	}
	if m.Child, err = p.joinWhere(items, conds, nil, s); err != nil {
		return nil, err
	}
	s.noAggs = "RETURNING"
	q, err := p.returning(m, n.ReturningList, s)
	if err != nil {
		return nil, err
	}
	return finish(q), nil
}

// changeSource plans the target of UPDATE or DELETE joined with its FROM or
// USING list; the target is the first rel of s.
func (p *planner) changeSource(v *pg.RangeVar, list []*pg.Node, where *pg.Node, verb string, s *scope) (*rel, []item, []Expr, error) {
	t, err := p.writable(v, verb)
	if err != nil {
		return nil, nil, nil, err
	}
	target, err := p.tableItem(t, false, v, s) // whatever WITH queries are called
	if err != nil {
		return nil, nil, nil, err
	}
	if err := p.secure(target.base, map[string]string{"UPDATE": catalog.PolicyUpdate, "DELETE": catalog.PolicyDelete}[verb]); err != nil {
		return nil, nil, nil, err
	}
	items, conds, err := p.from(list, s)
	if err != nil {
		return nil, nil, nil, err
	}
	if where != nil {
		s.noAggs = "WHERE"
		e, err := p.condition(where, s, "WHERE")
		if err != nil {
			return nil, nil, nil, err
		}
		conds = append(conds, conjuncts(e)...)
	}
	return target.base, append([]item{target}, items...), conds, nil
}

// wholeOld makes the scan of the target deliver the complete old row.
func (p *planner) wholeOld(r *rel) []int {
	for i := range r.cols {
		p.useColumn(r, i)
	}
	old := make([]int, len(r.table.Columns))
	for i := range old {
		if r.scan.Slots[i] < 0 { // a dropped column
			r.scan.Slots[i] = p.newSlot()
			p.owner[r.scan.Slots[i]] = r
		}
		old[i] = r.scan.Slots[i]
	}
	return old
}

// assignments analyzes SET. It returns the complete new row over the slots of
// s, columns that are not assigned being taken from old.
func (p *planner) assignments(list []*pg.Node, t *catalog.Table, s *scope, old []int) ([]Expr, []bool, error) {
	row := make([]Expr, len(t.Columns))
	changed := make([]bool, len(t.Columns))
	parted := make([]bool, len(t.Columns))
	for _, n := range list {
		rt := n.GetResTarget()
		i := t.Column(rt.Name)
		if i < 0 {
			return nil, nil, p.errAt(rt.Location, pgerr.UndefinedColumn, "column \"%s\" of relation \"%s\" does not exist", rt.Name, t.Name)
		}
		if len(rt.Indirection) > 0 && (!changed[i] || parted[i]) {
			base := row[i]
			if base == nil {
				base = NewSlot(t.Columns[i].Type, old[i], t.Columns[i].Name)
			}
			e, err := p.updatePart(rt, &t.Columns[i], i, base, s)
			if err != nil {
				return nil, nil, err
			}
			row[i], changed[i], parted[i] = e, true, true
			continue
		}
		if changed[i] {
			return nil, nil, p.errAt(rt.Location, pgerr.SyntaxError, "multiple assignments to same column \"%s\"", rt.Name)
		}
		e, err := p.assignedValue(rt, &t.Columns[i], i, s)
		if err != nil {
			return nil, nil, err
		}
		row[i], changed[i] = e, true
	}
	p.leadMulti(list, row)
	for i := range row {
		switch {
		case t.Columns[i].Dropped:
			row[i] = NewConst(t.Columns[i].Type, datum.Null)
		case row[i] == nil:
			row[i] = NewSlot(t.Columns[i].Type, old[i], t.Columns[i].Name)
		}
		if t.Columns[i].Generated != "" {
			changed[i] = true
		}
	}
	return row, changed, nil
}

func (p *planner) assignedValue(rt *pg.ResTarget, col *catalog.Column, place int, s *scope) (Expr, error) {
	val := rt.Val
	if multi := val.GetMultiAssignRef(); multi != nil {
		if n := multi.Source.GetSubLink(); n != nil && n.SubLinkType == pg.SubLinkType_EXPR_SUBLINK {
			return p.multiAssigned(rt, n, col, place, s)
		}
		row := multi.Source.GetRowExpr()
		if row == nil {
			return nil, p.errAt(rt.Location, pgerr.FeatureNotSupported, "source for a multiple-column UPDATE item must be a sub-SELECT or ROW() expression")
		}
		if len(row.Args) != int(multi.Ncolumns) {
			return nil, p.errAt(rt.Location, pgerr.SyntaxError, "number of columns does not match number of values")
		}
		val = row.Args[multi.Colno-1]
	}
	if val.GetSetToDefault() != nil {
		if col.Generated != "" {
			return NewConst(col.Type, datum.Null), nil
		}
		return p.columnDefault(col)
	}
	if col.Generated != "" {
		return nil, p.errAt(rt.Location, pgerr.GeneratedAlways, "column \"%s\" can only be updated to DEFAULT", col.Name).
			WithDetail("Column \"%s\" is a generated column.", col.Name)
	}
	if col.Identity == "a" {
		return nil, p.errAt(rt.Location, pgerr.GeneratedAlways, "column \"%s\" can only be updated to DEFAULT", col.Name).
			WithDetail("Column \"%s\" is an identity column defined as GENERATED ALWAYS.", col.Name)
	}
	e, err := p.expr(val, s, "UPDATE")
	if err != nil {
		return nil, err
	}
	return p.assignColumn(e, col.Type, col.Name, location(val))
}
