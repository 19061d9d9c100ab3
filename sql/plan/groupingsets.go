package plan

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// Grouping is one GROUPING(...) of an [Aggregate]: its value for each of Sets,
// or for the one set of all keys.
type Grouping struct {
	Values []int64
	Out    int
}

// groupingCall is GROUPING(...) before the keys of its query are known.
type groupingCall struct {
	args []Expr
	loc  int32
	out  int
}

const (
	maxGroupingSets = 4096 // as in PostgreSQL
	maxCube         = 12
	maxGroupingArgs = 31
)

// groupElement analyzes one entry of GROUP BY and returns the grouping sets that
// it stands for, as indexes into the keys.
func (p *planner) groupElement(n *pg.Node, targets []target, s *scope) ([][]int, error) {
	gs := n.GetGroupingSet()
	if gs == nil {
		set, err := p.groupKeys(n, targets, s)
		return [][]int{set}, err
	}
	switch gs.Kind {
	case pg.GroupingSetKind_GROUPING_SET_EMPTY:
		return [][]int{{}}, nil
	case pg.GroupingSetKind_GROUPING_SET_SETS:
		var out [][]int
		for _, c := range gs.Content {
			sets, err := p.groupElement(c, targets, s)
			if err != nil {
				return nil, err
			}
			if out = append(out, sets...); len(out) > maxGroupingSets {
				return nil, p.tooManySets(gs.Location)
			}
		}
		return out, nil
	}
	parts := make([][]int, len(gs.Content))
	for i, c := range gs.Content {
		var err error
		if parts[i], err = p.groupKeys(c, targets, s); err != nil {
			return nil, err
		}
	}
	if gs.Kind == pg.GroupingSetKind_GROUPING_SET_ROLLUP {
		return rollup(parts), nil
	}
	if len(parts) > maxCube {
		return nil, p.errAt(gs.Location, pgerr.TooManyColumns, "CUBE is limited to %d elements", maxCube)
	}
	return cube(parts), nil
}

func (p *planner) tooManySets(loc int32) error {
	return p.errAt(loc, pgerr.StatementTooComplex, "too many grouping sets present (maximum %d)", maxGroupingSets)
}

// rollup is all prefixes, the longest first.
func rollup(parts [][]int) [][]int {
	var out [][]int
	for n := len(parts); n >= 0; n-- {
		out = append(out, unionSets(parts[:n]...))
	}
	return out
}

// cube is all subsets, that of all parts first.
func cube(parts [][]int) [][]int {
	var out [][]int
	for mask := 1<<len(parts) - 1; mask >= 0; mask-- {
		var chosen [][]int
		for i := range parts {
			if mask>>(len(parts)-1-i)&1 != 0 {
				chosen = append(chosen, parts[i])
			}
		}
		out = append(out, unionSets(chosen...))
	}
	return out
}

func unionSets(sets ...[]int) []int {
	out := []int{}
	for _, set := range sets {
		for _, k := range set {
			if !slices.Contains(out, k) {
				out = append(out, k)
			}
		}
	}
	return out
}

// groupKeys analyzes an expression of GROUP BY, or several in parentheses, and
// returns the places of the keys.
func (p *planner) groupKeys(n *pg.Node, targets []target, s *scope) ([]int, error) {
	if row := n.GetRowExpr(); row != nil && row.RowFormat == pg.CoercionForm_COERCE_IMPLICIT_CAST {
		var out [][]int
		for _, a := range row.Args {
			set, err := p.groupKeys(a, targets, s)
			if err != nil {
				return nil, err
			}
			out = append(out, set)
		}
		return unionSets(out...), nil
	}
	e, err := p.groupKey(n, targets, s)
	if err != nil {
		return nil, err
	}
	if e.Type().Hash == nil {
		return nil, p.errAt(location(n), pgerr.UndefinedFunction, "could not identify an equality operator for type %s", datum.FormatType(e.Type()))
	}
	k := slices.IndexFunc(s.group.keys, func(k Expr) bool { return sameExpr(k, e) })
	if k < 0 {
		k = len(s.group.keys)
		s.group.keys = append(s.group.keys, e)
	}
	return []int{k}, nil
}

// groupingSets analyzes GROUP BY. Its entries multiply: the sets of one are
// combined with each of the next. Without GROUPING SETS and its like there is
// one set of all keys, which is not written down.
func (p *planner) groupingSets(n *pg.SelectStmt, targets []target, s *scope) error {
	sets, special := [][]int{{}}, false
	for _, g := range n.GroupClause {
		special = special || g.GetGroupingSet() != nil
		more, err := p.groupElement(g, targets, s)
		if err != nil {
			return err
		}
		if len(sets)*len(more) > maxGroupingSets {
			return p.tooManySets(location(g))
		}
		var product [][]int
		for _, a := range sets {
			for _, b := range more {
				product = append(product, unionSets(a, b))
			}
		}
		sets = product
	}
	if !special {
		return nil
	}
	if n.GroupDistinct {
		sets = distinctSets(sets)
	}
	s.group.sets = sets
	return nil
}

func distinctSets(sets [][]int) [][]int {
	var out [][]int
	for _, set := range sets {
		same := func(o []int) bool {
			return len(o) == len(set) && !slices.ContainsFunc(set, func(k int) bool { return !slices.Contains(o, k) })
		}
		if !slices.ContainsFunc(out, same) {
			out = append(out, set)
		}
	}
	return out
}

// common tells that a key is in all grouping sets.
func (g *grouping) common(key int) bool {
	return !slices.ContainsFunc(g.sets, func(set []int) bool { return !slices.Contains(set, key) })
}

// addDependent makes a column a key that follows from the others.
func (g *grouping) addDependent(e Expr, slot int) {
	for i := range g.sets {
		g.sets[i] = append(g.sets[i], len(g.keys))
	}
	g.keys, g.out = append(g.keys, e), append(g.out, slot)
}

// groupingFunc analyzes GROUPING(...).
func (p *planner) groupingFunc(n *pg.GroupingFunc, s *scope, clause string) (Expr, error) {
	if len(n.Args) > maxGroupingArgs {
		return nil, p.errAt(n.Location, pgerr.TooManyArguments, "GROUPING must have fewer than 32 arguments")
	}
	args, err := p.exprs(n.Args, s, clause)
	if err != nil {
		return nil, err
	}
	home := p.aggregateHome(&Agg{Args: args}, s)
	switch {
	case home.noAggs == "aggregate":
		return nil, p.errAt(n.Location, pgerr.GroupingError, "aggregate function calls cannot be nested")
	case home.noAggs != "" || home.group == nil:
		if home.noAggs != "" {
			clause = home.noAggs
		}
		return nil, p.errAt(n.Location, pgerr.GroupingError, "grouping operations are not allowed in %s", clause)
	}
	markCorrelated(s, home)
	g := home.group
	g.used = true
	call := groupingCall{args: args, loc: n.Location, out: p.newSlot()}
	g.calls = append(g.calls, call)
	return NewSlot(datum.T(datum.Int4), call.out, "grouping"), nil
}

// groupings computes the values of GROUPING: a bit for each argument, set if
// the argument is not in the set.
func (p *planner) groupings(g *grouping) ([]Grouping, error) {
	sets := max(len(g.sets), 1)
	var out []Grouping
	for _, c := range g.calls {
		values := make([]int64, sets)
		for _, a := range c.args {
			k := slices.IndexFunc(g.keys, func(k Expr) bool { return sameExpr(k, a) })
			if k < 0 {
				return nil, p.errAt(c.loc, pgerr.GroupingError, "arguments to GROUPING must be grouping expressions of the associated query level")
			}
			for i := range values {
				values[i] <<= 1
				if g.sets != nil && !slices.Contains(g.sets[i], k) {
					values[i] |= 1
				}
			}
		}
		out = append(out, Grouping{Values: values, Out: c.out})
	}
	return out, nil
}
