package plan

import (
	"slices"
	"strconv"

	"github.com/tallystick/tallystick/sql/builtin"
	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
)

func itoa(n int) string { return strconv.Itoa(n) }

// Nominal figures. A plan may not depend on how many rows a table has, so every
// table counts as nominalRows long; what matters is only how the alternatives
// compare.
const (
	nominalRows  = 100000
	eqRows       = 10   // rows per value of an index that is not unique
	rangeRows    = 1000 // rows between two bounds
	halfRows     = 30000
	partialRows  = 20000 // entries of a partial index
	lookupCost   = 4     // finding the start of a range
	entryCost    = 3     // following an index entry to its row
	contractScan = 100
)

// path is one way to read a table.
type path struct {
	index   *catalog.Index
	ranges  []Range
	used    []Expr // conjuncts that the ranges answer
	rows    float64
	cost    float64
	full    bool // no range: the whole index is read
	reverse bool
	// eq is the number of leading key columns bound to one value.
	eq int
}

// comparison is a conjunct of the form column op value.
type comparison struct {
	cond  Expr
	op    string // = < <= > >= in isnull
	value Expr
}

// bestPath chooses how to read r given the conditions whose other operands are
// known: constants, parameters, outer rows and the rels of available.
func (p *planner) bestPath(r *rel, conds []Expr, available []*rel) path {
	full := path{index: r.table.Primary(), rows: nominalRows, cost: nominalRows, full: true}
	if p.opts.Contract {
		full.cost *= contractScan
	}
	best := full
	if r.scan.Provenance {
		return p.provenancePath(r, conds, available, full)
	}
	cmps := p.comparisons(r, conds, available)
	for i := range r.table.Indexes {
		if pt, ok := p.indexPath(r, &r.table.Indexes[i], cmps, conds); ok && pt.cost < best.cost {
			best = pt
		}
	}
	if pt, ok := p.alternativesPath(r, conds, available); ok && pt.cost < best.cost {
		best = pt
	}
	for _, c := range conds {
		if !slices.Contains(best.used, c) && p.refersTo(c, r) && p.known(c, append(available, r)) {
			best.rows *= 0.5
		}
	}
	best.rows = max(best.rows, 1)
	return best
}

// alternativesPath reads a range of one index for every arm of an OR. The OR
// itself stays as a filter: the ranges may answer its arms in part only.
func (p *planner) alternativesPath(r *rel, conds []Expr, available []*rel) (path, bool) {
	best, found := path{}, false
	for _, c := range conds {
		or, ok := c.(*BoolOp)
		if !ok || or.Op != Or {
			continue
		}
		for i := range r.table.Indexes {
			pt := path{index: &r.table.Indexes[i]}
			for _, arm := range or.Args {
				one, ok := p.indexPath(r, pt.index, p.comparisons(r, conjuncts(arm), available), conds)
				if !ok {
					pt.ranges = nil
					break
				}
				pt.ranges = append(pt.ranges, one.ranges...)
				pt.rows, pt.cost = pt.rows+one.rows, pt.cost+one.cost
			}
			if pt.ranges != nil && (!found || pt.cost < best.cost) {
				best, found = pt, true
			}
		}
	}
	return best, found
}

// provenancePath reads versions through the primary index only: an entry of a
// secondary index says nothing about older versions of its row.
func (p *planner) provenancePath(r *rel, conds []Expr, available []*rel, full path) path {
	cmps := p.comparisons(r, conds, available)
	if pt, ok := p.indexPath(r, r.table.Primary(), cmps, nil); ok {
		return pt
	}
	return full
}

// comparisons groups the usable conjuncts by the column of r they bound, or by
// the expression of an index: see keyOf.
func (p *planner) comparisons(r *rel, conds []Expr, available []*rel) map[int][]comparison {
	out := map[int][]comparison{}
	add := func(cond, column Expr, op string, value Expr) bool {
		i, ok := p.keyOf(column, r)
		if !ok || p.refersTo(value, r) || !p.known(value, available) || hasVolatile(value) {
			return false
		}
		out[i] = append(out[i], comparison{cond, op, value})
		return true
	}
	for _, cond := range conds {
		switch e := cond.(type) {
		case *Call:
			op, ok := comparisonOps[e.Func.OID]
			if !ok || len(e.Args) != 2 || !sameKey(e.Args[0].Type(), e.Args[1].Type()) {
				continue
			}
			if !add(cond, e.Args[0], op, e.Args[1]) {
				add(cond, e.Args[1], mirrored[op], e.Args[0])
			}
		case *AnyAll:
			if e.Equality {
				add(cond, e.Left, "in", e.Array)
			}
		case *IsNull:
			if i, ok := p.keyOf(e.Arg, r); ok && !e.Not {
				out[i] = append(out[i], comparison{cond, "isnull", nil})
			}
		case *Slot, *BoolOp, *BoolTest:
			p.booleanComparison(cond, add)
		}
	}
	return out
}

// booleanComparison uses a bare boolean column, or NOT of one, as an equality.
func (p *planner) booleanComparison(cond Expr, add func(cond, column Expr, op string, value Expr) bool) {
	switch e := cond.(type) {
	case *Slot:
		add(cond, e, "=", NewConst(datum.T(datum.BoolType), datum.Bool(true)))
	case *BoolTest:
		if s, ok := e.Arg.(*Slot); ok && !e.Not && !e.Want.IsNull() {
			add(cond, s, "=", NewConst(datum.T(datum.BoolType), e.Want))
		}
	case *BoolOp:
		if e.Op == Not {
			if s, ok := e.Args[0].(*Slot); ok {
				add(cond, s, "=", NewConst(datum.T(datum.BoolType), datum.Bool(false)))
			}
		}
	}
}

var mirrored = map[string]string{"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}

// comparisonOps maps the functions of btree comparison operators to their names.
var comparisonOps = func() map[datum.OID]string {
	m := map[datum.OID]string{}
	for _, op := range builtin.Operators() {
		if _, ok := mirrored[op.Name]; ok && op.Left != nil && sameKey(datum.T(op.Left), datum.T(op.Right)) {
			m[op.Func.OID] = op.Name
		}
	}
	return m
}()

// sameKey tells that values of the two types have comparable index keys: the
// same type, two integer types, or text and varchar.
func sameKey(a, b datum.Type) bool {
	return a.Same(b) || isInt(a) && isInt(b) || isText(a) && isText(b)
}

func isInt(t datum.Type) bool {
	return t.Desc == datum.Int2 || t.Desc == datum.Int4 || t.Desc == datum.Int8
}

func isText(t datum.Type) bool { return t.Desc == datum.Text || t.Desc == datum.VarChar }

// columnOf finds the position in the table of a plain column of r.
func (p *planner) columnOf(e Expr, r *rel) (int, bool) {
	if rl, ok := e.(*Relabel); ok && sameKey(rl.Type(), rl.Arg.Type()) {
		e = rl.Arg
	}
	s, ok := e.(*Slot)
	if !ok || p.owner[s.Index] != r {
		return 0, false
	}
	i := slices.Index(r.scan.Slots, s.Index)
	return i, i >= 0
}

// indexPath bounds as many leading key columns of an index as the comparisons
// allow. A partial index serves if its predicate follows from conds, then also
// as a whole.
func (p *planner) indexPath(r *rel, idx *catalog.Index, cmps map[int][]comparison, conds []Expr) (path, bool) {
	pt := path{index: idx, rows: nominalRows}
	if !p.usable(r, idx, conds) {
		return pt, false
	}
	rg := Range{}
	list := 1.0
	closed := false // a list or an inequality ends the bounded prefix
	for k := 0; k < len(idx.Keys) && !closed; k++ {
		cands := cmps[p.keyPlace(r, idx, k)]
		switch {
		case p.takeEq(&pt, &rg, cands):
			pt.eq++
		case p.takeIn(&pt, &rg, cands, &list):
			closed = true
		case p.takeBounds(&pt, &rg, cands):
			closed = true
		default:
			closed = true
		}
	}
	if len(pt.used) == 0 && idx.Predicate == "" {
		return pt, false
	}
	all := pt.eq == len(idx.Keys) || rg.In != nil && pt.eq+1 == len(idx.Keys)
	switch {
	case all && idx.Unique:
		pt.rows = list
	case rg.Lo != nil && rg.Hi != nil:
		pt.rows = rangeRows
	case rg.Lo != nil || rg.Hi != nil:
		pt.rows = halfRows
	case len(pt.used) == 0:
		pt.rows = partialRows
	default:
		pt.rows = eqRows * list
	}
	if pt.eq > 0 && (rg.Lo != nil || rg.Hi != nil) {
		pt.rows = min(pt.rows, eqRows)
	}
	for i := 1; i < pt.eq && !(all && idx.Unique); i++ {
		pt.rows = max(pt.rows/2, 1)
	}
	if len(pt.used) > 0 {
		pt.ranges = []Range{rg}
	}
	pt.cost = lookupCost*list + pt.rows
	if !idx.Primary {
		pt.cost += entryCost * pt.rows
	}
	return pt, true
}

func (p *planner) takeEq(pt *path, rg *Range, cands []comparison) bool {
	for _, c := range cands {
		if c.op == "=" {
			rg.Eq = append(rg.Eq, RangeKey{Value: c.value})
			pt.used = append(pt.used, c.cond)
			return true
		}
	}
	for _, c := range cands {
		if c.op == "isnull" {
			rg.Eq = append(rg.Eq, RangeKey{})
			pt.used = append(pt.used, c.cond)
			return true
		}
	}
	return false
}

func (p *planner) takeIn(pt *path, rg *Range, cands []comparison, list *float64) bool {
	for _, c := range cands {
		if c.op != "in" {
			continue
		}
		rg.In = c.value
		*list = 10
		if a, ok := c.value.(*ArrayExpr); ok {
			*list = float64(max(len(a.Args), 1))
		}
		pt.used = append(pt.used, c.cond)
		return true
	}
	return false
}

func (p *planner) takeBounds(pt *path, rg *Range, cands []comparison) bool {
	for _, c := range cands {
		b := &Bound{Value: c.value, Inclusive: c.op == "<=" || c.op == ">="}
		switch {
		case (c.op == ">" || c.op == ">=") && rg.Lo == nil:
			rg.Lo = b
		case (c.op == "<" || c.op == "<=") && rg.Hi == nil:
			rg.Hi = b
		default:
			continue
		}
		pt.used = append(pt.used, c.cond)
	}
	return rg.Lo != nil || rg.Hi != nil
}

// refersTo tells whether e reads a slot of r.
func (p *planner) refersTo(e Expr, r *rel) bool {
	found := false
	walk(e, func(x Expr) {
		if s, ok := x.(*Slot); ok && p.owner[s.Index] == r {
			found = true
		}
	})
	return found
}

// known tells whether everything that e reads of the query's own items belongs
// to available ones. Slots of outer queries are always known.
func (p *planner) known(e Expr, available []*rel) bool {
	ok := true
	walk(e, func(x Expr) {
		if s, isSlot := x.(*Slot); isSlot {
			if r := p.owner[s.Index]; r != nil && p.pending[r] && !slices.Contains(available, r) {
				ok = false
			}
		}
	})
	return ok
}

// leaf makes the node that reads one item, with the conditions that concern it
// alone (or it and what is available) applied. It returns the conditions used.
func (p *planner) leaf(it *item, pt *path, conds []Expr, available []*rel) (Node, []Expr) {
	var used []Expr
	mine := append(slices.Clone(available), it.rels...)
	for _, c := range conds {
		if p.known(c, mine) {
			used = append(used, c)
		}
	}
	if it.base == nil {
		if f := conjunction(slices.Clone(used)); f != nil {
			return &Filter{Child: it.node, Cond: f}, used
		}
		return it.node, used
	}
	r := it.base
	var rest []Expr
	for _, c := range used {
		if pt == nil || !slices.Contains(pt.used, c) {
			rest = append(rest, c)
		}
	}
	filter := conjunction(rest)
	if p.copyScans {
		r = r.copyScan()
	}
	switch {
	case r.scan != nil:
		r.scan.Index, r.scan.Ranges, r.scan.Filter, r.scan.Reverse = pt.index, pt.ranges, filter, pt.reverse
		return r.scan, used
	case r.vscan != nil:
		r.vscan.Filter = filter
		return r.vscan, used
	default:
		r.cscan.Filter = filter
		return r.cscan, used
	}
}
