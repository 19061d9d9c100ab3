package plan

import pg "github.com/pganalyze/pg_query_go/v6"

// aliasedJoin is (... JOIN ...) AS alias, which hides the names inside: the same
// as a subquery that selects all columns.
func (p *planner) aliasedJoin(j *pg.JoinExpr, s *scope) ([]item, []Expr, error) {
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
