package plan

import (
	"slices"

	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// joinAll orders the inner join of items and applies conds. order, if not nil,
// is what the query sorts by: the scan of a single table may deliver it.
func (p *planner) joinAll(items []item, conds []Expr, order *wantedOrder) (Node, error) {
	outer := p.pending
	p.pending = map[*rel]bool{}
	defer func() { p.pending = outer }()
	for _, it := range items {
		for _, r := range it.rels {
			p.pending[r] = true
		}
	}
	gate, conds := p.splitConstant(conds)
	node, rest, err := p.joinItems(items, conds, order)
	if err != nil {
		return nil, err
	}
	if f := conjunction(rest); f != nil {
		node = &Filter{Child: node, Cond: f}
	}
	if gate != nil {
		if r, ok := node.(*Result); ok && r.Cond == nil {
			return &Result{Cond: gate}, nil
		}
		// Nothing is read if a condition without columns is not true.
		node = &NestLoop{Kind: InnerJoin, Outer: &Result{Cond: gate}, Inner: node}
	}
	return node, nil
}

// splitConstant separates the conditions that read no item.
func (p *planner) splitConstant(conds []Expr) (Expr, []Expr) {
	var gate, rest []Expr
	for _, c := range conds {
		if nullCondition(c) && !hasVolatile(c) {
			c = NewConst(datum.T(datum.BoolType), datum.Null)
		}
		if p.known(c, nil) && !hasVolatile(c) {
			gate = append(gate, c)
		} else {
			rest = append(rest, c)
		}
	}
	return conjunction(gate), rest
}

func hasVolatile(e Expr) bool {
	found := false
	walk(e, func(x Expr) {
		switch x := x.(type) {
		case *Call:
			found = found || x.Func.Volatility == 'v'
		case *UserCall:
			found = found || x.Func.Volatility == "v"
		}
	})
	return found
}

// joinItems builds a left-deep tree, at each step adding the item that is
// cheapest to join to what is there. It returns the conditions left over.
func (p *planner) joinItems(items []item, conds []Expr, order *wantedOrder) (Node, []Expr, error) {
	if len(items) == 0 {
		return &Result{}, conds, nil
	}
	left, conds, err := p.openJoins(items, conds)
	if err != nil {
		return nil, nil, err
	}
	var node Node
	var joined []*rel
	rows := 1.0
	for len(left) > 0 {
		best, step, err := p.nextItem(left, conds, joined, rows, node == nil)
		if err != nil {
			return nil, nil, err
		}
		it := left[best]
		if node == nil && len(left) == 1 && order != nil && it.base != nil && it.base.table != nil {
			p.useOrder(&it, &step.path, order, conds)
		}
		var used []Expr
		node, used = p.addItem(node, &it, step, conds, joined)
		conds = without(conds, used)
		joined = append(joined, it.rels...)
		rows = max(rows*step.rows, 1)
		left = slices.Delete(left, best, best+1)
	}
	return node, conds, nil
}

func without(list, drop []Expr) []Expr {
	var out []Expr
	for _, e := range list {
		if !slices.Contains(drop, e) {
			out = append(out, e)
		}
	}
	return out
}

// joinStep is one way to add an item to a join.
type joinStep struct {
	path path
	hash *hashKeys // nil = nested loop
	rows float64   // rows of the item per outer row
	cost float64
}

type hashKeys struct {
	outer, inner []Expr
	used         []Expr
}

// nextItem chooses the item to join next; ties go to the first in FROM.
func (p *planner) nextItem(left []item, conds []Expr, joined []*rel, rows float64, first bool) (int, joinStep, error) {
	best := -1
	var bestStep joinStep
	for i := range left {
		if !p.satisfied(left[i].needs, joined) {
			continue
		}
		step := p.stepFor(&left[i], conds, joined, rows, first)
		connected := first || len(left[i].needs) > 0 || p.connects(&left[i], conds, joined)
		if !connected {
			step.cost *= nominalRows // a cross product comes last
		}
		if best < 0 || step.cost < bestStep.cost {
			best, bestStep = i, step
		}
	}
	if best < 0 {
		return 0, bestStep, pgerr.New(pgerr.InternalError, "no order of joins satisfies the LATERAL references")
	}
	return best, bestStep, nil
}

// satisfied tells that the items that a LATERAL item refers to are joined, or
// stand outside the join that is being ordered.
func (p *planner) satisfied(needs, joined []*rel) bool {
	for _, r := range needs {
		if p.pending[r] && !slices.Contains(joined, r) {
			return false
		}
	}
	return true
}

// connects tells whether some condition links the item to what is joined.
func (p *planner) connects(it *item, conds []Expr, joined []*rel) bool {
	mine := append(slices.Clone(joined), it.rels...)
	for _, c := range conds {
		if p.known(c, mine) && !p.known(c, joined) && !p.known(c, it.rels) {
			return true
		}
	}
	return false
}

// stepFor costs adding one item: by look-ups for every outer row, or by
// hashing it once.
func (p *planner) stepFor(it *item, conds []Expr, joined []*rel, rows float64, first bool) joinStep {
	alone := p.itemPath(it, conds, nil)
	if first {
		return joinStep{path: alone, rows: alone.rows, cost: alone.cost}
	}
	loop := p.itemPath(it, conds, joined)
	step := joinStep{path: loop, rows: loop.rows, cost: rows * loop.cost}
	if len(it.needs) > 0 {
		return step
	}
	keys := p.hashKeysOf(it, conds, joined)
	if keys == nil {
		return step
	}
	cost := alone.cost + rows
	if cost < step.cost {
		perRow := max(alone.rows/nominalRows*eqRows, 1)
		return joinStep{path: alone, hash: keys, rows: perRow, cost: cost}
	}
	return step
}

// itemPath is the best path of a base item, or the cost of running a planned
// one again.
func (p *planner) itemPath(it *item, conds []Expr, available []*rel) path {
	if it.base != nil && it.base.table != nil {
		return p.bestPath(it.base, conds, available)
	}
	rows := it.rows
	if it.base != nil {
		rows = 1000
	}
	for _, c := range conds {
		if p.known(c, append(slices.Clone(available), it.rels...)) {
			rows *= 0.5
		}
	}
	return path{rows: max(rows, 1), cost: max(it.rows, 1000), full: true}
}

// hashKeysOf collects the equalities between the item and what is joined.
func (p *planner) hashKeysOf(it *item, conds []Expr, joined []*rel) *hashKeys {
	keys := &hashKeys{}
	for _, cond := range conds {
		c, ok := cond.(*Call)
		if !ok || comparisonOps[c.Func.OID] != "=" || len(c.Args) != 2 {
			continue
		}
		a, b := c.Args[0], c.Args[1]
		if !hashPair(a, b) {
			continue
		}
		switch {
		case p.onlyOf(a, joined) && p.onlyOf(b, it.rels):
			keys.add(a, b, cond)
		case p.onlyOf(b, joined) && p.onlyOf(a, it.rels):
			keys.add(b, a, cond)
		}
	}
	if len(keys.used) == 0 {
		return nil
	}
	return keys
}

func (k *hashKeys) add(outer, inner, cond Expr) {
	k.outer, k.inner, k.used = append(k.outer, outer), append(k.inner, inner), append(k.used, cond)
}

// hashPair tells that equal values of both types have equal hashes.
func hashPair(a, b Expr) bool {
	return sameKey(a.Type(), b.Type()) && a.Type().Hash != nil
}

// onlyOf tells that e reads items, and only those of rels.
func (p *planner) onlyOf(e Expr, rels []*rel) bool {
	return p.known(e, rels) && !p.known(e, nil)
}

// addItem joins one item to the tree so far.
func (p *planner) addItem(node Node, it *item, step joinStep, conds []Expr, joined []*rel) (Node, []Expr) {
	if node == nil {
		return p.leaf(it, &step.path, conds, nil)
	}
	if step.hash == nil {
		inner, used := p.leaf(it, &step.path, conds, joined)
		return &NestLoop{Kind: InnerJoin, Outer: node, Inner: inner}, used
	}
	inner, used := p.leaf(it, &step.path, conds, nil)
	mine := append(slices.Clone(joined), it.rels...)
	var rest []Expr
	for _, c := range without(without(conds, used), step.hash.used) {
		if p.known(c, mine) {
			rest = append(rest, c)
		}
	}
	used = append(append(used, step.hash.used...), rest...)
	return &HashJoin{
		Kind: InnerJoin, Outer: node, Inner: inner,
		OuterKeys: step.hash.outer, InnerKeys: step.hash.inner, Cond: conjunction(rest),
	}, used
}

func filtered(n Node, conds []Expr) Node {
	if f := conjunction(conds); f != nil {
		return &Filter{Child: n, Cond: f}
	}
	return n
}

// wantedOrder is the ORDER BY of a query over one table; met is set if the
// scan delivers it.
type wantedOrder struct {
	keys    []SortKey
	limited bool
	noNulls bool // rows whose keys are null do not matter
	met     bool
}

// useOrder tries to read the table in the wanted order.
func (p *planner) useOrder(it *item, pt *path, order *wantedOrder, conds []Expr) {
	r := it.base
	if r.scan.Provenance {
		return
	}
	if p.delivers(r, pt, order) {
		order.met = true
		return
	}
	if !pt.full {
		return
	}
	if order.limited { // of a range only the first rows are read
		cmps := p.comparisons(r, conds, nil)
		for i := range r.table.Indexes {
			if try, ok := p.indexPath(r, &r.table.Indexes[i], cmps, conds); ok && p.delivers(r, &try, order) {
				*pt, order.met = try, true
				return
			}
		}
	}
	for i := range r.table.Indexes {
		idx := &r.table.Indexes[i]
		if !idx.Primary && !order.limited || !p.usable(r, idx, conds) {
			continue // following every entry costs more than sorting
		}
		try := *pt
		try.index = idx
		if p.delivers(r, &try, order) {
			*pt, order.met = try, true
			return
		}
	}
}

// delivers tells whether the path's index order is the wanted one, forwards or
// backwards, and sets the direction.
func (p *planner) delivers(r *rel, pt *path, order *wantedOrder) bool {
	if len(pt.ranges) > 1 || len(pt.ranges) == 1 && pt.ranges[0].In != nil {
		return false
	}
	k := 0 // next index key
	reverse, decided := false, false
	for _, want := range order.keys {
		col, ok := p.keyOf(want.Expr, r)
		if !ok {
			return false
		}
		if p.boundColumn(r, pt, col) {
			continue
		}
		for k < pt.eq {
			k++
		}
		if k >= len(pt.index.Keys) {
			if !pt.index.Primary {
				return false
			}
			break // the primary key decides: further keys cannot matter
		}
		key := pt.index.Keys[k]
		if p.keyPlace(r, pt.index, k) != col {
			return false
		}
		back := key.Desc != want.Desc
		if decided && back != reverse {
			return false
		}
		nullsFirst := key.NullsFirst != back
		if (col >= len(r.table.Columns) || !r.table.Columns[col].NotNull) && !order.noNulls && nullsFirst != want.NullsFirst {
			return false
		}
		reverse, decided = back, true
		k++
	}
	pt.reverse = reverse
	return true
}

// boundColumn tells that the path holds a column at one value.
func (p *planner) boundColumn(r *rel, pt *path, col int) bool {
	for k := 0; k < pt.eq; k++ {
		if p.keyPlace(r, pt.index, k) == col {
			return true
		}
	}
	return false
}

// estimate is the nominal number of rows of a planned query.
func estimate(n Node) float64 {
	switch n := n.(type) {
	case *Aggregate:
		if len(n.GroupBy) == 0 {
			return 1
		}
		return eqRows * 10
	case *Limit:
		if c, ok := n.Count.(*Const); ok && !c.Value.IsNull() && c.Type().Desc == datum.Int8 {
			return max(float64(c.Value.Int()), 1)
		}
		return eqRows
	case *Values:
		return float64(len(n.Rows))
	case *Result:
		return 1
	case *Scan:
		if len(n.Ranges) > 0 {
			return eqRows
		}
		return nominalRows
	case *Project:
		return estimate(n.Child)
	case *Filter:
		return max(estimate(n.Child)/2, 1)
	case *Sort:
		return estimate(n.Child)
	case *Window:
		return estimate(n.Child)
	case *Unique:
		return estimate(n.Child)
	}
	return rangeRows
}
