package plan

import (
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/tallystick/tallystick/sql/pgerr"
)

// Walk calls f for e and everything below it, plans of subqueries included.
func Walk(e Expr, f func(Expr)) { walk(e, f) }

// WalkOperands is [Walk] without the plans of subqueries.
func WalkOperands(e Expr, f func(Expr)) { walk1(e, f) }

// Inputs returns the child nodes of n, WITH queries first.
func Inputs(n Node) []Node { return inputs(n) }

// NodeExprs calls f for the expressions that stand in n itself.
func NodeExprs(n Node, f func(Expr)) { nodeExprs(n, f) }

// Fills returns the slots that n and its inputs fill, in ascending order.
func Fills(n Node) []int { return fills(n) }

// Refusal says what kind of thing a contract may not use.
type Refusal uint8

// The kinds of refusals.
const (
	RefusedFunction Refusal = iota
	RefusedRelation
	RefusedColumn
)

// refuse makes an error of what contracts may not use, or hands it to whoever
// collects them.
func (p *planner) refuse(what Refusal, e *pgerr.Error) error {
	if p.opts.Refused == nil {
		return e
	}
	p.opts.Refused(what, e)
	return nil
}

// place makes a Place of a location in the text that is planned.
func (p *planner) place(loc int32) Place {
	if p.script == "" || loc < int32(p.skip) {
		return 0
	}
	return Place(loc - int32(p.skip) + 1)
}

// limitLocation is where LIMIT, FETCH or OFFSET stands, as far as the tree
// tells: at its operand.
func limitLocation(n *pg.SelectStmt) int32 {
	if n.LimitCount != nil {
		return location(n.LimitCount)
	}
	return location(n.LimitOffset)
}

// IsEquality tells that c compares two values with the equality that indexes
// and sorts use.
func IsEquality(c *Call) bool {
	return comparisonOps[c.Func.OID] == "=" && len(c.Args) == 2 && sameKey(c.Args[0].Type(), c.Args[1].Type())
}
