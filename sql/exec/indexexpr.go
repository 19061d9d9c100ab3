package exec

import (
	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/plan"
)

// IndexExprs computes what the indexes of a table hold of a row besides its
// columns: expression keys, and predicates of partial indexes. The nil IndexExprs
// is that of a table which has none. It is immutable.
type IndexExprs struct {
	columns int
	progs   []*ExprProgram
	// needs tells, per index, the columns on which its entries depend besides
	// those that are keys; nil = none.
	needs [][]bool
}

// NewIndexExprs plans and compiles the expressions of a table's indexes.
func NewIndexExprs(t *catalog.Table, l *catalog.Layout, c *catalog.Catalog) (*IndexExprs, error) {
	plans, err := plan.IndexExpressions(t, l, c)
	if err != nil {
		return nil, err
	}
	return compileIndexExprs(t, l, plans)
}

func compileIndexExprs(t *catalog.Table, l *catalog.Layout, plans []*plan.ExprPlan) (*IndexExprs, error) {
	if len(plans) == 0 {
		return nil, nil
	}
	x := &IndexExprs{columns: len(t.Columns), needs: make([][]bool, len(t.Indexes))}
	for i, ep := range plans {
		prog, err := CompileExpr(ep.Expr, ep.Slots, ep.Subqueries, ep.CTEs)
		if err != nil {
			return nil, err
		}
		x.progs = append(x.progs, prog)
		at := l.Computed()[i].Index
		if x.needs[at] == nil {
			x.needs[at] = make([]bool, len(t.Columns))
		}
		plan.Walk(ep.Expr, func(e plan.Expr) {
			if p, ok := e.(*plan.Param); ok {
				x.needs[at][p.Index] = true
			}
		})
	}
	return x, nil
}

// Extend appends the row and its computed values to dst: what the methods of
// [catalog.Layout] take that make entries. Without expressions it is row itself.
func (x *IndexExprs) Extend(env *Env, dst, row []datum.Datum) ([]datum.Datum, error) {
	if x == nil {
		return row, nil
	}
	dst = append(dst, row[:x.columns]...)
	for _, prog := range x.progs {
		d, err := prog.Eval(env, row)
		if err != nil {
			return nil, err
		}
		dst = append(dst, d)
	}
	return dst, nil
}

// concerns tells whether a change of columns may change what index i computes.
func (x *IndexExprs) concerns(i int, changed []bool) bool {
	if x == nil || x.needs[i] == nil {
		return false
	}
	for c, need := range x.needs[i] {
		if need && changed[c] {
			return true
		}
	}
	return false
}
