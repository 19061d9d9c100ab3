package plan

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// MergeAction is a WHEN clause of MERGE. For every row of the source the first
// action whose Matched fits and whose Cond is true is carried out.
type MergeAction struct {
	// Matched tells that the action is for rows of the source that have a row of
	// the table.
	Matched bool
	Cond    Expr // nil = true
	// Nothing is DO NOTHING; otherwise Kind says what is done.
	Nothing bool
	Kind    ModifyKind
	// New is the complete new row of Insert and Update, Changed as in [Modify].
	New     []Expr
	Changed []bool
}

// mergeStmt plans MERGE: the source with the rows of the target that match, as
// an outer join, and what to do with each row of that.
func (p *planner) mergeStmt(n *pg.MergeStmt, s *scope) (*query, error) {
	if p.opts.Contract {
		return nil, pgerr.NotBuilt("MERGE is not supported in contracts")
	}
	if len(n.ReturningList) > 0 {
		return nil, pgerr.NotBuilt("MERGE with RETURNING is not supported")
	}
	finish, err := p.with(n.WithClause, s)
	if err != nil {
		return nil, err
	}
	t, err := p.mergeTarget(n.Relation)
	if err != nil {
		return nil, err
	}
	join := &pg.JoinExpr{Jointype: pg.JoinType_JOIN_LEFT, Larg: n.SourceRelation,
		Rarg: &pg.Node{Node: &pg.Node_RangeVar{RangeVar: n.Relation}}, Quals: n.JoinCondition}
	items, conds, err := p.from([]*pg.Node{{Node: &pg.Node_JoinExpr{JoinExpr: join}}}, s)
	if err != nil {
		return nil, err
	}
	// The target is the right side of the join, hence the last item.
	target := s.rels[len(s.rels)-1]
	if t.RowSecurity {
		return nil, p.at(pgerr.NotBuilt("MERGE into table \"%s\", which has row-level security, is not supported", t.Name), n.Relation.Location)
	}
	if len(t.Triggers) > 0 {
		return nil, p.at(pgerr.NotBuilt("MERGE into table \"%s\", which has triggers, is not supported", t.Name), n.Relation.Location)
	}
	m := &Modify{Kind: Merge, Table: t, NewSlots: p.newSlots(len(t.Columns)), Old: p.wholeOld(target)}
	source := &scope{parent: s.parent, rels: s.rels[:len(s.rels)-1], ctes: s.ctes}
	final := map[bool]bool{} // a clause without condition was seen
	for _, w := range n.MergeWhenClauses {
		a, err := p.mergeAction(w.GetMergeWhenClause(), m, s, source)
		if err != nil {
			return nil, err
		}
		if final[a.Matched] {
			return nil, pgerr.New(pgerr.SyntaxError, "unreachable WHEN clause specified after unconditional WHEN clause")
		}
		final[a.Matched] = a.Cond == nil
		m.Actions = append(m.Actions, *a)
	}
	if err := p.rowRules(m); err != nil {
		return nil, err
	}
	if m.Child, err = p.joinAll(items, conds, nil); err != nil {
		return nil, err
	}
	return finish(&query{node: m}), nil
}

func (p *planner) mergeTarget(v *pg.RangeVar) (*catalog.Table, error) {
	t, _, err := p.findTable(v)
	if err == nil && t != nil && t.Kind == catalog.View {
		return nil, pgerr.New(pgerr.WrongObjectType, "cannot execute MERGE on relation \"%s\"", t.Name).
			WithDetail("This operation is not supported for views.")
	}
	return p.writable(v, "MERGE")
}

// mergeAction plans one WHEN clause; both is the scope of source and target.
func (p *planner) mergeAction(n *pg.MergeWhenClause, m *Modify, both, source *scope) (*MergeAction, error) {
	if n.MatchKind == pg.MergeMatchKind_MERGE_WHEN_NOT_MATCHED_BY_SOURCE {
		return nil, pgerr.NotBuilt("WHEN NOT MATCHED BY SOURCE is not supported")
	}
	a := &MergeAction{Matched: n.MatchKind == pg.MergeMatchKind_MERGE_WHEN_MATCHED}
	at := source
	if a.Matched {
		at = both
	}
	at.noAggs = "MERGE WHEN"
	var err error
	if n.Condition != nil {
		if a.Cond, err = p.condition(n.Condition, at, "WHEN"); err != nil {
			return nil, err
		}
	}
	switch n.CommandType {
	case pg.CmdType_CMD_NOTHING:
		a.Nothing = true
	case pg.CmdType_CMD_DELETE:
		a.Kind = Delete
	case pg.CmdType_CMD_UPDATE:
		a.Kind = Update
		a.New, a.Changed, err = p.assignments(n.TargetList, m.Table, both, m.Old)
	case pg.CmdType_CMD_INSERT:
		a.Kind = Insert
		a.New, err = p.mergeInsert(n, m.Table, source)
	default:
		err = pgerr.New(pgerr.InternalError, "WHEN clause of MERGE cannot be planned")
	}
	return a, err
}

// mergeInsert plans the new row of INSERT in a WHEN clause.
func (p *planner) mergeInsert(n *pg.MergeWhenClause, t *catalog.Table, s *scope) ([]Expr, error) {
	if n.Override != pg.OverridingKind_OVERRIDING_NOT_SET && n.Override != pg.OverridingKind_OVERRIDING_KIND_UNDEFINED {
		return nil, pgerr.NotBuilt("OVERRIDING is not supported")
	}
	parts := p.parts
	p.parts = nil
	defer func() { p.parts = parts }()
	into, err := p.insertColumns(&pg.InsertStmt{Cols: n.TargetList}, t)
	if err != nil {
		return nil, err
	}
	switch {
	case len(n.Values) > len(into):
		return nil, p.errAt(location(n.Values[len(into)]), pgerr.SyntaxError, "INSERT has more expressions than target columns")
	case len(n.TargetList) > 0 && len(n.Values) < len(into):
		return nil, p.errAt(n.TargetList[len(n.Values)].GetResTarget().Location, pgerr.SyntaxError, "INSERT has more target columns than expressions")
	}
	var values []Expr
	for i, v := range n.Values {
		e, err := p.partCell(v, t, into, i, s)
		if err != nil {
			return nil, err
		}
		values = append(values, e)
	}
	// The values are typed cell by cell, as those of VALUES.
	row := &Modify{Kind: Insert, Table: t, Child: &Values{}}
	err = p.newRow(row, into, values, s)
	return row.New, err
}

// changedBy tells for MERGE which columns some action assigns.
func (m *Modify) changedBy() []bool {
	out := make([]bool, len(m.Table.Columns))
	for _, a := range m.Actions {
		for i := range a.Changed {
			out[i] = out[i] || a.Changed[i]
		}
	}
	return out
}

// does tells that some action of MERGE is of a kind.
func (m *Modify) does(kind ModifyKind) bool {
	return slices.ContainsFunc(m.Actions, func(a MergeAction) bool { return !a.Nothing && a.Kind == kind })
}
