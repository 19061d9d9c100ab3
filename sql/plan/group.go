package plan

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// grouping collects the aggregates and keys of one query level.
type grouping struct {
	used  bool // an aggregate was seen
	aggs  []Agg
	keys  []Expr
	out   []int
	sets  [][]int // grouping sets: indexes into keys; nil = one of all
	calls []groupingCall
}

// insideAggregate is s for the arguments of an aggregate: aggregates must not
// nest.
func (s *scope) insideAggregate(name string) *scope {
	in := *s
	in.noAggs, in.sets = "aggregate", nil
	return &in
}

// aggregateCall turns a call of an aggregate into a reference to its result.
func (p *planner) aggregateCall(n *pg.FuncCall, c *callee, here *scope, clause string) (Expr, error) {
	if err := p.withinGroupForm(n, c.builtin); err != nil {
		return nil, err
	}
	if err := p.admit(c.builtin, n.Location); err != nil {
		return nil, err
	}
	if len(n.Args) == 0 && !n.AggStar && !n.AggWithinGroup {
		return nil, p.errAt(n.Location, pgerr.WrongObjectType, "%s(*) must be used to call a parameterless aggregate function", funcName(n))
	}
	agg := Agg{Func: c.builtin, Args: c.args, Distinct: n.AggDistinct, Type: c.ret, At: p.place(n.Location)}
	inner := here.insideAggregate(c.builtin.Name)
	order := p.aggregateOrder
	if n.AggWithinGroup {
		order = p.orderedSet
	}
	if err := order(&agg, n, inner, clause); err != nil {
		return nil, err
	}
	if n.AggFilter != nil {
		e, err := p.condition(n.AggFilter, inner, "FILTER")
		if err != nil {
			return nil, err
		}
		agg.Filter = e
	}
	here.absorb(inner)
	home := p.aggregateHome(&agg, here)
	if err := p.aggregateAllowed(home, clause, n.Location); err != nil {
		return nil, err
	}
	if c.builtin.NewState == nil && !n.AggWithinGroup {
		return nil, p.at(pgerr.NotBuilt("aggregate %s is not supported", c.builtin), n.Location)
	}
	if agg.Distinct && slices.ContainsFunc(agg.Args, func(a Expr) bool { return a.Type().Hash == nil }) {
		return nil, p.errAt(n.Location, pgerr.UndefinedFunction, "could not identify an equality operator for type %s", datum.FormatType(agg.Args[0].Type()))
	}
	markCorrelated(here, home)
	home.group.used = true
	for i := range home.group.aggs {
		if o := &home.group.aggs[i]; sameAgg(o, &agg) {
			return NewSlot(c.ret, o.Out, c.builtin.Name), nil
		}
	}
	agg.Out = p.newSlot()
	home.group.aggs = append(home.group.aggs, agg)
	return NewSlot(c.ret, agg.Out, c.builtin.Name), nil
}

// aggregateOrder analyzes ORDER BY inside the parentheses of an aggregate.
func (p *planner) aggregateOrder(agg *Agg, n *pg.FuncCall, inner *scope, clause string) error {
	for _, o := range n.AggOrder {
		sb := o.GetSortBy()
		e, err := p.expr(sb.Node, inner, clause)
		if err != nil {
			return err
		}
		if e, err = p.settle(e); err != nil {
			return err
		}
		k := SortKey{Expr: e}
		if k.Desc, k.NullsFirst, err = p.direction(sb); err != nil {
			return err
		}
		if agg.Distinct && !slices.ContainsFunc(agg.Args, func(a Expr) bool { return sameExpr(a, e) }) {
			return p.errAt(location(sb.Node), pgerr.InvalidColumnReference, "in an aggregate with DISTINCT, ORDER BY expressions must appear in argument list")
		}
		agg.OrderBy = append(agg.OrderBy, k)
	}
	return nil
}

// aggregateAllowed refuses an aggregate where the query that it belongs to has
// not been grouped yet.
func (p *planner) aggregateAllowed(home *scope, clause string, loc int32) error {
	switch {
	case home.noAggs == "aggregate":
		return p.errAt(loc, pgerr.GroupingError, "aggregate function calls cannot be nested")
	case home.noAggs != "":
		clause = home.noAggs
	case home.group != nil:
		return nil
	}
	return p.errAt(loc, pgerr.GroupingError, "aggregate functions are not allowed in %s", clause)
}

// aggregateHome is the query that an aggregate belongs to: the innermost one
// whose columns its arguments, order or filter mention, its own if they mention
// none.
func (p *planner) aggregateHome(agg *Agg, s *scope) *scope {
	args := slices.Concat(agg.Args, agg.Direct)
	for _, k := range agg.OrderBy {
		args = append(args, k.Expr)
	}
	if agg.Filter != nil {
		args = append(args, agg.Filter)
	}
	for at := s; at != nil; at = at.parent {
		for _, a := range args {
			found := false
			walk(a, func(e Expr) {
				if sl, ok := e.(*Slot); ok {
					r := p.owner[sl.Index]
					found = found || r != nil && slices.Contains(at.rels, r)
				}
			})
			if found {
				return at
			}
		}
	}
	return s
}

// groupClauses analyzes GROUP BY and HAVING.
func (p *planner) groupClauses(n *pg.SelectStmt, targets []target, s *scope) (Expr, error) {
	s.noAggs = "GROUP BY"
	if err := p.groupingSets(n, targets, s); err != nil {
		return nil, err
	}
	s.noAggs = ""
	if n.HavingClause == nil {
		return nil, nil
	}
	return p.condition(n.HavingClause, s, "HAVING")
}

// groupKey analyzes one GROUP BY entry. An input column has precedence over an
// output name, unlike in ORDER BY.
func (p *planner) groupKey(g *pg.Node, targets []target, s *scope) (Expr, error) {
	if ref := g.GetColumnRef(); ref != nil {
		parts, _ := nameParts(ref.Fields)
		col, err := p.findColumn(parts, &scope{rels: s.rels, shown: s.shown}, ref.Location)
		if err != nil {
			return nil, err
		}
		if col != nil {
			return p.columnRef(ref, s)
		}
	}
	i, err := p.outputColumn(g, targets, "GROUP BY")
	if err != nil {
		return nil, err
	}
	if i >= 0 {
		if p.hasAggregate(targets[i].expr, s) {
			return nil, p.errAt(location(g), pgerr.GroupingError, "aggregate functions are not allowed in GROUP BY")
		}
		window := false
		walk1(targets[i].expr, func(x Expr) {
			sl, ok := x.(*Slot)
			window = window || ok && s.windows.isResult(sl.Index)
		})
		if window {
			return nil, p.errAt(location(g), pgerr.WindowingError, "window functions are not allowed in GROUP BY")
		}
		return p.settle(targets[i].expr)
	}
	e, err := p.expr(g, s, "GROUP BY")
	if err != nil {
		return nil, err
	}
	return p.settle(e)
}

func (p *planner) hasAggregate(e Expr, s *scope) bool {
	found := false
	walk(e, func(x Expr) {
		if sl, ok := x.(*Slot); ok && s.group.isResult(sl.Index) {
			found = true
		}
	})
	return found
}

func (g *grouping) isResult(slot int) bool {
	return slices.ContainsFunc(g.aggs, func(a Agg) bool { return a.Out == slot }) ||
		slices.ContainsFunc(g.calls, func(c groupingCall) bool { return c.out == slot })
}

// aggregate adds the grouping and rewrites what stands above it.
func (p *planner) aggregate(node Node, s *scope, targets []target, keys []orderKey, having Expr) (Node, error) {
	g := s.group
	for _, k := range g.keys {
		if sl, ok := k.(*Slot); ok {
			g.out = append(g.out, sl.Index)
		} else {
			g.out = append(g.out, p.newSlot())
		}
	}
	for i := range targets {
		e, err := p.regroup(targets[i].expr, s, location(targets[i].node))
		if err != nil {
			return nil, err
		}
		targets[i].expr = e
	}
	for i := range keys {
		if keys[i].target >= 0 {
			continue
		}
		e, err := p.regroup(keys[i].key.Expr, s, -1)
		if err != nil {
			return nil, err
		}
		keys[i].key.Expr = e
	}
	if having != nil {
		var err error
		if having, err = p.regroup(having, s, -1); err != nil {
			return nil, err
		}
	}
	if err := p.regroupWindows(s); err != nil {
		return nil, err
	}
	if err := p.regroupDirect(s); err != nil {
		return nil, err
	}
	groupings, err := p.groupings(g)
	if err != nil {
		return nil, err
	}
	agg := &Aggregate{Child: node, GroupBy: g.keys, GroupOut: g.out, Aggs: g.aggs, Sets: g.sets, Groupings: groupings}
	if having != nil {
		return &Filter{Child: agg, Cond: having}, nil
	}
	return agg, nil
}

// regroup replaces group keys in e by their results and refuses columns that
// are neither grouped nor aggregated.
func (p *planner) regroup(e Expr, s *scope, loc int32) (Expr, error) {
	for i, k := range s.group.keys {
		if sameExpr(e, k) {
			return NewSlot(k.Type(), s.group.out[i], ""), nil
		}
	}
	switch x := e.(type) {
	case *Slot:
		return e, p.checkGrouped(x, s, loc)
	case *Subquery:
		var err error
		walkNode(x.Plan, func(y Expr) {
			if sl, ok := y.(*Slot); ok && err == nil {
				err = p.checkGrouped(sl, s, loc)
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return p.regroupOperands(e, s, loc)
}

// regroupOperands applies regroup to the direct operands of e.
func (p *planner) regroupOperands(e Expr, s *scope, loc int32) (Expr, error) {
	var err error
	one := func(x *Expr) {
		if err == nil && *x != nil {
			*x, err = p.regroup(*x, s, loc)
		}
	}
	eachOperand(e, one)
	return e, err
}

// checkGrouped accepts a slot that does not belong to the query's own items,
// is a group key, or depends on one: a column of a table whose primary key is
// grouped.
func (p *planner) checkGrouped(sl *Slot, s *scope, loc int32) error {
	r := p.owner[sl.Index]
	if r == nil || !slices.Contains(s.rels, r) || s.group.isResult(sl.Index) {
		return nil
	}
	if slices.Contains(s.group.out, sl.Index) {
		return nil
	}
	if p.dependsOnKey(r, s) {
		s.group.addDependent(NewSlot(sl.Type(), sl.Index, sl.Name), sl.Index)
		return nil
	}
	name := sl.Name
	if alias := shownAlias(sl.Index, r, s); alias != "" {
		name = alias + "." + name
	}
	return p.errAt(loc, pgerr.GroupingError, "column \"%s\" must appear in the GROUP BY clause or be used in an aggregate function", name)
}

// shownAlias is the name under which the query knows the item of a slot.
func shownAlias(slot int, r *rel, s *scope) string {
	for _, o := range s.rels {
		if !o.inside && slices.ContainsFunc(o.cols, func(c column) bool { return c.slot == slot }) {
			return o.alias
		}
	}
	return r.alias
}

// dependsOnKey tells whether all primary key columns of r are group keys.
func (p *planner) dependsOnKey(r *rel, s *scope) bool {
	if r.inside || r.table == nil || r.scan == nil || r.scan.Provenance {
		return false
	}
	key := r.table.PrimaryKey()
	if key == nil {
		return false
	}
	for _, k := range key.Keys {
		slot := r.scan.Slots[k.Column]
		if i := slices.Index(s.group.out, slot); slot < 0 || i < 0 || !s.group.common(i) {
			return false
		}
	}
	return true
}

// sameAgg tells that two aggregates of one query have the same result.
func sameAgg(a, b *Agg) bool {
	return a.Func == b.Func && a.Distinct == b.Distinct && sameList(aggExprs(a), aggExprs(b)) &&
		slices.EqualFunc(a.OrderBy, b.OrderBy, func(x, y SortKey) bool {
			return x.Desc == y.Desc && x.NullsFirst == y.NullsFirst && sameExpr(x.Expr, y.Expr) && !hasVolatile(x.Expr)
		})
}

// aggExprs are the operands of an aggregate, nil between the kinds.
func aggExprs(a *Agg) []Expr {
	list := append(slices.Clone(a.Args), nil)
	list = append(append(list, a.Direct...), nil)
	return append(list, a.Filter)
}
