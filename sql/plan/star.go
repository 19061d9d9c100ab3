package plan

import (
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/tallystick/tallystick/sql/pgerr"
)

// starRef resolves t.* where it is a value and not a list of columns: the row,
// of a FROM item or of a variable (transformColumnRef).
func (p *planner) starRef(parts []string, s *scope, loc int32) (Expr, error) {
	if len(parts) == 0 {
		return nil, p.errAt(loc, pgerr.SyntaxError, "row expansion via \"*\" is not supported here")
	}
	e, err := p.wholeRow(parts, s, loc)
	if e != nil || err != nil {
		return e, err
	}
	if e, err = p.variable(parts); e != nil || err != nil {
		return e, p.locate(err, loc)
	}
	return nil, p.noColumn(append(parts, "*"), s, loc)
}

// expandStars puts the columns of t in the place of t.* in the lists where it
// stands for them, those of ROW and VALUES (transformExpressionList).
func (p *planner) expandStars(list []*pg.Node, s *scope) ([]*pg.Node, error) {
	if !hasStar(list) {
		return list, nil
	}
	var out []*pg.Node
	for _, n := range list {
		parts, star := nameParts(n.GetColumnRef().GetFields())
		if !star {
			out = append(out, n)
			continue
		}
		ref := n.GetColumnRef()
		row, err := p.starRef(parts, s, ref.Location)
		if err != nil {
			return nil, err
		}
		fields := row.Type().Fields
		if len(fields) == 0 { // a function's scalar result, which is its row
			out = append(out, n)
		}
		prefix := ref.Fields[:len(ref.Fields)-1]
		for _, f := range fields {
			name := append(prefix[:len(prefix):len(prefix)], pg.MakeStrNode(f.Name))
			out = append(out, &pg.Node{Node: &pg.Node_ColumnRef{ColumnRef: &pg.ColumnRef{Fields: name, Location: ref.Location}}})
		}
	}
	return out, nil
}

func hasStar(list []*pg.Node) bool {
	for _, n := range list {
		if _, star := nameParts(n.GetColumnRef().GetFields()); star {
			return true
		}
	}
	return false
}

// expandValues is expandStars for the lists of VALUES. What it returns has what
// goes with VALUES: the lists, ORDER BY and LIMIT.
func (p *planner) expandValues(n *pg.SelectStmt, s *scope) (*pg.SelectStmt, error) {
	out := &pg.SelectStmt{SortClause: n.SortClause, LimitCount: n.LimitCount, LimitOffset: n.LimitOffset, LimitOption: n.LimitOption}
	changed := false
	for _, l := range n.ValuesLists {
		items := l.GetList().Items
		if hasStar(items) {
			var err error
			if items, err = p.expandStars(items, s); err != nil {
				return nil, err
			}
			if len(items) == 0 {
				return nil, p.errAt(location(l.GetList().Items[0]), pgerr.FeatureNotSupported, "VALUES of no columns is not supported")
			}
			l, changed = &pg.Node{Node: &pg.Node_List{List: &pg.List{Items: items}}}, true
		}
		out.ValuesLists = append(out.ValuesLists, l)
	}
	if !changed {
		return n, nil
	}
	return out, nil
}
