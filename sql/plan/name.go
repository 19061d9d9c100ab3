package plan

import (
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
)

// nameStrength says how well an expression suggests a column name: that of a
// cast or CASE gives way to one that stands inside it or around it.
type nameStrength uint8

const (
	noName nameStrength = iota
	weakName
	strongName
)

// figureName is PostgreSQL's choice of a name for an unnamed result column
// (FigureColname).
func figureName(n *pg.Node) string {
	if name, strength := suggestName(n); strength > noName {
		return name
	}
	return "?column?"
}

// IndexColumnName is the name of an index's key that is an expression
// (FigureIndexColname), before it is made unique.
func IndexColumnName(n *pg.Node) string {
	if name, strength := suggestName(n); strength > noName {
		return name
	}
	return "expr"
}

func suggestName(n *pg.Node) (string, nameStrength) {
	if n == nil {
		return "", noName
	}
	switch n := n.Node.(type) {
	case *pg.Node_ColumnRef:
		parts, star := nameParts(n.ColumnRef.Fields)
		if !star && len(parts) > 0 {
			return parts[len(parts)-1], strongName
		}
	case *pg.Node_AIndirection:
		list := n.AIndirection.Indirection
		for i := len(list) - 1; i >= 0; i-- {
			if f := list[i].GetString_(); f != nil {
				return f.Sval, strongName
			}
		}
		return suggestName(n.AIndirection.Arg)
	case *pg.Node_FuncCall:
		return funcName(n.FuncCall), strongName
	case *pg.Node_TypeCast:
		if name, strength := suggestName(n.TypeCast.Arg); strength == strongName {
			return name, strength
		}
		parts, _ := nameParts(n.TypeCast.TypeName.Names)
		return parts[len(parts)-1], weakName
	case *pg.Node_CollateClause:
		return suggestName(n.CollateClause.Arg)
	case *pg.Node_CaseExpr:
		if name, strength := suggestName(n.CaseExpr.Defresult); strength == strongName {
			return name, strength
		}
		return "case", weakName
	case *pg.Node_SubLink:
		return suggestSubLink(n.SubLink)
	}
	return constructName(n.Node)
}

// constructName names the constructs that the grammar treats apart from
// functions.
func constructName(n any) (string, nameStrength) {
	switch n := n.(type) {
	case *pg.Node_AArrayExpr:
		return "array", strongName
	case *pg.Node_RowExpr:
		return "row", strongName
	case *pg.Node_CoalesceExpr:
		return "coalesce", strongName
	case *pg.Node_GroupingFunc:
		return "grouping", strongName
	case *pg.Node_MinMaxExpr:
		if n.MinMaxExpr.Op == pg.MinMaxOp_IS_LEAST {
			return "least", strongName
		}
		return "greatest", strongName
	case *pg.Node_AExpr:
		if n.AExpr.Kind == pg.A_Expr_Kind_AEXPR_NULLIF {
			return "nullif", strongName
		}
	case *pg.Node_SqlvalueFunction:
		name := strings.ToLower(strings.TrimPrefix(n.SqlvalueFunction.Op.String(), "SVFOP_"))
		return strings.TrimSuffix(name, "_n"), strongName
	}
	return "", noName
}

func suggestSubLink(n *pg.SubLink) (string, nameStrength) {
	switch n.SubLinkType {
	case pg.SubLinkType_EXISTS_SUBLINK:
		return "exists", strongName
	case pg.SubLinkType_ARRAY_SUBLINK:
		return "array", strongName
	case pg.SubLinkType_EXPR_SUBLINK:
		sel := n.Subselect.GetSelectStmt()
		for sel != nil && sel.Larg != nil {
			sel = sel.Larg
		}
		if sel != nil && len(sel.TargetList) > 0 {
			t := sel.TargetList[0].GetResTarget()
			if t.Name != "" {
				return t.Name, strongName
			}
			return figureName(t.Val), strongName
		}
		if sel != nil && len(sel.ValuesLists) > 0 {
			return "column1", strongName
		}
	}
	return "", noName
}
