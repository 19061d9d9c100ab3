package plan

import (
	"slices"

	"github.com/tallystick/tallystick/sql/datum"
)

// outerJoin is a LEFT or FULL JOIN (RIGHT is LEFT with the sides exchanged)
// that is still to be planned.
type outerJoin struct {
	kind                  JoinKind
	left, right           []item
	leftConds, rightConds []Expr
	on                    []Expr
	// computed makes merged columns on top of the join; nil = none.
	computed *Project
}

// outerItem makes one operand of a JOIN that is not an inner one.
func outerItem(j *join) item {
	left, right, kind := j.left, j.right, j.kind
	if kind == RightJoin {
		left, right, kind = right, left, LeftJoin
	}
	o := &outerJoin{kind: kind, left: left.items, leftConds: left.conds, right: right.items, rightConds: right.conds, on: j.on}
	out := item{outer: o, rows: nominalRows}
	both := slices.Concat(o.left, o.right)
	out.rels = relsOf(both)
	for _, it := range both {
		for _, r := range it.needs {
			if !slices.Contains(out.rels, r) {
				out.needs = append(out.needs, r)
			}
		}
	}
	return out
}

func relsOf(items []item) []*rel {
	var rels []*rel
	for _, it := range items {
		rels = append(rels, it.rels...)
	}
	return rels
}

// openJoins plans the outer joins among items. A condition that no row padded
// with nulls meets makes an inner join of a left one; a condition on the side
// that is never padded is applied there. It returns the items and the
// conditions that are left.
func (p *planner) openJoins(items []item, conds []Expr) ([]item, []Expr, error) {
	out := slices.Clone(items)
	for i := 0; i < len(out); {
		o := out[i].outer
		if o == nil {
			i++
			continue
		}
		if o.kind == LeftJoin && o.computed == nil && p.rejectsNulls(conds, relsOf(o.right)) {
			conds = slices.Concat(conds, o.leftConds, o.rightConds, o.on)
			out = slices.Concat(out[:i], o.left, o.right, out[i+1:])
			continue
		}
		var pushed []Expr
		if o.kind == LeftJoin {
			pushed = p.conditionsOn(relsOf(o.left), conds)
		}
		node, err := p.planOuter(o, pushed)
		if err != nil {
			return nil, nil, err
		}
		out[i].node, out[i].outer = node, nil
		conds = without(conds, pushed)
		i++
	}
	return out, conds, nil
}

// conditionsOn are the conditions that read rels and nothing else of the join
// that is being ordered.
func (p *planner) conditionsOn(rels []*rel, conds []Expr) []Expr {
	var out []Expr
	for _, c := range conds {
		if p.onlyOf(c, rels) && !hasVolatile(c) {
			out = append(out, c)
		}
	}
	return out
}

// rejectsNulls tells that some condition cannot be true for a row in which all
// columns of rels are null.
func (p *planner) rejectsNulls(conds []Expr, rels []*rel) bool {
	for _, c := range conds {
		if p.nullIfNull(c, rels) {
			return true
		}
		if n, ok := c.(*IsNull); ok && n.Not && p.nullIfNull(n.Arg, rels) {
			return true
		}
	}
	return false
}

// nullIfNull tells that e is null wherever all columns of rels are null.
func (p *planner) nullIfNull(e Expr, rels []*rel) bool {
	any := func(list ...Expr) bool {
		return slices.ContainsFunc(list, func(a Expr) bool { return p.nullIfNull(a, rels) })
	}
	switch e := e.(type) {
	case *Slot:
		r := p.owner[e.Index]
		return r != nil && r.computed == nil && slices.Contains(rels, r)
	case *Call:
		return e.Func.Strict && any(e.Args...)
	case *BoolOp:
		return e.Op == Not && any(e.Args...)
	case *AnyAll: // an empty array gives false, which is no less rejected
		return !e.All && any(e.Left)
	case *Relabel:
		return any(e.Arg)
	case *CoerceIO:
		return any(e.Arg)
	case *CoerceMod:
		return any(e.Arg)
	}
	return false
}

// planOuter plans an outer join as a unit, with more conditions on its left side.
func (p *planner) planOuter(o *outerJoin, pushed []Expr) (Node, error) {
	around := p.pending
	p.pending = map[*rel]bool{}
	defer func() { p.pending = around }()
	leftRels, rightRels := relsOf(o.left), relsOf(o.right)
	for _, r := range slices.Concat(leftRels, rightRels) {
		p.pending[r] = true
	}
	node, rest, err := p.joinItems(o.left, slices.Concat(o.leftConds, pushed), nil)
	if err != nil {
		return nil, err
	}
	node = filtered(node, rest)
	if o.kind == FullJoin {
		node, err = p.fullJoin(node, leftRels, o.right, o.rightConds, o.on)
	} else {
		node, err = p.leftJoin(node, leftRels, o.right, rightRels, o.rightConds, o.on)
	}
	if err != nil || o.computed == nil {
		return node, err
	}
	o.computed.Child = node
	return o.computed, nil
}

// leftJoin adds the right side: by index look-ups if it is a single table with
// a fitting index, hashed if there are equalities, else by a plain loop.
func (p *planner) leftJoin(lnode Node, leftRels []*rel, right []item, rightRels []*rel, rightConds, on []Expr) (Node, error) {
	// What ON says about the right side alone limits that side.
	var local, cross []Expr
	for _, c := range on {
		if p.known(c, rightRels) && !p.known(c, nil) {
			local = append(local, c)
		} else {
			cross = append(cross, c)
		}
	}
	right, rightConds, err := p.openJoins(right, rightConds)
	if err != nil {
		return nil, err
	}
	if len(right) == 1 {
		it := &right[0]
		pt := p.itemPath(it, on, leftRels)
		if !pt.full || len(it.needs) > 0 {
			inner, used := p.leaf(it, &pt, slices.Concat(on, rightConds), leftRels)
			return &NestLoop{Kind: LeftJoin, Outer: lnode, Inner: inner, Cond: conjunction(without(on, used))}, nil
		}
	}
	rnode, rest, err := p.joinItems(right, slices.Concat(rightConds, local), nil)
	if err != nil {
		return nil, err
	}
	rnode = filtered(rnode, rest)
	all := item{rels: rightRels}
	if keys := p.hashKeysOf(&all, cross, leftRels); keys != nil {
		return &HashJoin{Kind: LeftJoin, Outer: lnode, Inner: rnode, OuterKeys: keys.outer, InnerKeys: keys.inner,
			Cond: conjunction(without(cross, keys.used))}, nil
	}
	return &NestLoop{Kind: LeftJoin, Outer: lnode, Inner: rnode, Cond: conjunction(cross)}, nil
}

func (p *planner) fullJoin(lnode Node, leftRels []*rel, right []item, rightConds, on []Expr) (Node, error) {
	rnode, rest, err := p.joinItems(right, rightConds, nil)
	if err != nil {
		return nil, err
	}
	rnode = filtered(rnode, rest)
	all := item{}
	for _, it := range right {
		all.rels = append(all.rels, it.rels...)
	}
	keys := p.hashKeysOf(&all, on, leftRels)
	if keys == nil { // no equality to hash by: all rows meet under one key
		one := NewConst(datum.T(datum.Int4), datum.Int(1))
		keys = &hashKeys{outer: []Expr{one}, inner: []Expr{one}}
	}
	return &HashJoin{Kind: FullJoin, Outer: lnode, Inner: rnode, OuterKeys: keys.outer, InnerKeys: keys.inner,
		Cond: conjunction(without(on, keys.used))}, nil
}
