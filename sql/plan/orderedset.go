package plan

import (
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/tallystick/tallystick/sql/builtin"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// withinGroupForm refuses WITHIN GROUP where it cannot stand, and its absence
// where it must.
func (p *planner) withinGroupForm(n *pg.FuncCall, f *builtin.Func) error {
	ordered := f.AggKind() != builtin.NormalAgg
	switch {
	case n.AggWithinGroup && !ordered:
		return p.errAt(n.Location, pgerr.WrongObjectType, "%s is not an ordered-set aggregate, so it cannot have WITHIN GROUP", funcName(n))
	case !n.AggWithinGroup && ordered:
		return p.errAt(n.Location, pgerr.WrongObjectType, "WITHIN GROUP is required for ordered-set aggregate %s", funcName(n))
	}
	return nil
}

// orderedSet splits the arguments of an ordered-set aggregate, direct ones
// before those that rows are sorted by, and makes its order.
func (p *planner) orderedSet(agg *Agg, n *pg.FuncCall, _ *scope, _ string) error {
	direct := len(n.Args)
	agg.Direct, agg.Args = agg.Args[:direct:direct], agg.Args[direct:]
	if agg.Func.AggKind() == builtin.HypotheticalAgg {
		if direct != len(agg.Args) {
			return p.errAt(n.Location, pgerr.UndefinedFunction, "function %s does not exist", agg.Func.Name).
				WithHint("To use the hypothetical-set aggregate %s, the number of hypothetical direct arguments (here %d) must match the number of ordering columns (here %d).",
					agg.Func.Name, direct, len(agg.Args))
		}
		for i := range agg.Args {
			pair := []Expr{agg.Direct[i], agg.Args[i]}
			if _, err := p.unify(pair, "WITHIN GROUP", []int32{location(n.Args[i]), location(n.AggOrder[i])}); err != nil {
				return err
			}
			agg.Direct[i], agg.Args[i] = pair[0], pair[1]
		}
	}
	for i, o := range n.AggOrder {
		sb := o.GetSortBy()
		e, err := p.settle(agg.Args[i])
		if err != nil {
			return err
		}
		if t := e.Type(); t.Compare == nil && t.Root().Compare == nil {
			return p.errAt(location(sb.Node), pgerr.UndefinedFunction, "could not identify an ordering operator for type %s", datum.FormatType(t)).
				WithHint("Use an explicit ordering operator or modify the query.")
		}
		k := SortKey{Expr: e}
		if k.Desc, k.NullsFirst, err = p.direction(sb); err != nil {
			return err
		}
		agg.OrderBy = append(agg.OrderBy, k)
	}
	agg.Args = nil
	return nil
}

// regroupDirect puts the results of a grouping into the direct arguments of its
// ordered-set aggregates, which are computed once per group.
func (p *planner) regroupDirect(s *scope) error {
	for i := range s.group.aggs {
		direct := s.group.aggs[i].Direct
		for k := range direct {
			e, err := p.regroup(direct[k], s, -1)
			if err != nil {
				if e, ok := pgerr.From(err); ok {
					return e.WithDetail("Direct arguments of an ordered-set aggregate must use only grouped columns.")
				}
				return err
			}
			direct[k] = e
		}
	}
	return nil
}
