package exec

import (
	"github.com/tallystick/tallystick/sql/builtin"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/plan"
)

// batchAggProg is an aggregate whose input the batch engine reads, and the same
// in the row engine.
type batchAggProg struct {
	row *aggregateProg

	scan     *scanProg
	scanCols []scanColumn
	stages   []batchStage
	joins    int // states of stages
	groupBy  []vecExpr
	kinds    *keyKinds
	intKey   []bool // per key: equal as its integer
	byMatch  bool   // see aggSink.groupByMatch
	aggs     []vecAggProg
	fixed    []bool // columns of expressions
	parallel bool
}

// scanColumn is a slot that the scan fills.
type scanColumn struct {
	slot  int
	fixed bool
}

// slotSeen is a set of slots.
type slotSeen map[int]bool

func (s slotSeen) with(exprs ...plan.Expr) slotSeen {
	out := slotSeen{}
	for k := range s {
		out[k] = true
	}
	for _, e := range exprs {
		plan.Walk(e, func(x plan.Expr) {
			if slot, ok := x.(*plan.Slot); ok {
				out[slot.Index] = true
			}
		})
	}
	return out
}

// batchAggregate makes the batch form of an aggregate; nil if it has none.
func (c *compiler) batchAggregate(n *plan.Aggregate, row *aggregateProg) (*batchAggProg, error) {
	p := &batchAggProg{row: row, kinds: row.kinds}
	vc := &vecCompiler{c: c, slots: map[int]bool{}}
	wanted := append([]plan.Expr{}, n.GroupBy...)
	for i := range n.Aggs {
		wanted = append(append(wanted, n.Aggs[i].Args...), n.Aggs[i].Filter)
	}
	if mayDiffer(wanted) {
		return nil, nil
	}
	if ok, err := p.pipeline(vc, n.Child, slotSeen{}.with(wanted...)); err != nil || !ok {
		return nil, err
	}
	for _, e := range n.GroupBy {
		x, err := vc.expr(e)
		if err != nil {
			return nil, err
		}
		p.groupBy = append(p.groupBy, x)
		p.intKey = append(p.intKey, x.fixed && intKeyed(e.Type()))
	}
	for i := range n.Aggs {
		a, ok, err := vc.vecAggOf(&n.Aggs[i])
		if err != nil || !ok {
			return nil, err
		}
		p.aggs = append(p.aggs, a)
	}
	p.byMatch = p.keysOfInner(n.GroupBy)
	p.fixed, p.parallel = vc.fixed, !vc.serial
	return p, nil
}

// mayDiffer tells whether computing an expression again, or more often, could be
// noticed.
func mayDiffer(exprs []plan.Expr) bool {
	found := false
	for _, e := range exprs {
		plan.Walk(e, func(x plan.Expr) {
			switch x := x.(type) {
			case *plan.Call:
				found = found || x.Func.Volatility == builtin.Volatile
			case *plan.UserCall:
				found = true
			}
		})
	}
	return found
}

// keysOfInner tells whether the group of a row depends on nothing but the inner
// row that the last join found.
func (p *batchAggProg) keysOfInner(keys []plan.Expr) bool {
	var last *joinStage
	for _, s := range p.stages {
		if j, ok := s.(*joinStage); ok {
			last = j
		}
	}
	if last == nil || len(keys) == 0 {
		return false
	}
	inner := slotSeen{}
	for _, s := range last.slots {
		inner[s] = true
	}
	for s := range (slotSeen{}).with(keys...) {
		if !inner[s] {
			return false
		}
	}
	return true
}

// pipeline makes stages of a plan, from the scan upwards; false if there is a
// node that only the row engine runs. want are the slots that are read above.
func (p *batchAggProg) pipeline(vc *vecCompiler, n plan.Node, want slotSeen) (bool, error) {
	switch n := n.(type) {
	case *plan.Scan:
		return p.source(vc, n)
	case *plan.Filter:
		if mayDiffer([]plan.Expr{n.Cond}) {
			return false, nil
		}
		if ok, err := p.pipeline(vc, n.Child, want.with(n.Cond)); err != nil || !ok {
			return ok, err
		}
		return true, p.filterBy(vc, n.Cond)
	case *plan.Project:
		if mayDiffer(n.Exprs) {
			return false, nil
		}
		if ok, err := p.pipeline(vc, n.Child, want.with(n.Exprs...)); err != nil || !ok {
			return ok, err
		}
		return true, p.projectTo(vc, n)
	case *plan.HashJoin:
		return p.joinWith(vc, n, want)
	}
	return false, nil
}

func (p *batchAggProg) source(vc *vecCompiler, n *plan.Scan) (bool, error) {
	if n.Provenance || n.Reverse || !n.Index.Primary || mayDiffer([]plan.Expr{n.Filter}) {
		return false, nil
	}
	prog, err := vc.c.scan(n)
	if err != nil {
		return false, err
	}
	p.scan = prog.(*scanProg)
	if p.scan.hasSys {
		return false, nil
	}
	for i, slot := range n.Slots {
		if slot >= 0 {
			fixed := datum.InColumn(p.scan.layout.Types()[i])
			vc.slots[slot] = fixed
			p.scanCols = append(p.scanCols, scanColumn{slot, fixed})
		}
	}
	if n.Filter == nil {
		return true, nil
	}
	return true, p.filterBy(vc, n.Filter)
}

func (p *batchAggProg) filterBy(vc *vecCompiler, cond plan.Expr) error {
	f, err := vc.filter(cond)
	p.stages = append(p.stages, &filterStage{f})
	return err
}

func (p *batchAggProg) projectTo(vc *vecCompiler, n *plan.Project) error {
	s := &projectStage{out: n.Out}
	for _, e := range n.Exprs {
		x, err := vc.expr(e)
		if err != nil {
			return err
		}
		s.exprs = append(s.exprs, x)
	}
	for i, slot := range n.Out {
		vc.slots[slot] = s.exprs[i].fixed
	}
	p.stages = append(p.stages, s)
	return nil
}

func (p *batchAggProg) joinWith(vc *vecCompiler, n *plan.HashJoin, want slotSeen) (bool, error) {
	switch n.Kind {
	case plan.InnerJoin:
	case plan.LeftJoin, plan.SemiJoin, plan.AntiJoin:
		if n.Cond != nil {
			return false, nil
		}
	default:
		return false, nil
	}
	exprs := append([]plan.Expr{n.Cond}, n.OuterKeys...)
	if mayDiffer(append(exprs, n.InnerKeys...)) {
		return false, nil
	}
	if ok, err := p.pipeline(vc, n.Outer, want.with(exprs...)); err != nil || !ok {
		return ok, err
	}
	above := want.with(n.Cond)
	s := &joinStage{at: p.joins, kind: n.Kind}
	p.joins++
	for slot, fixed := range vc.slots {
		if above[slot] {
			s.outer, s.fixedOut = append(s.outer, slot), append(s.fixedOut, fixed)
		}
	}
	for _, e := range n.OuterKeys {
		x, err := vc.expr(e)
		if err != nil {
			return false, err
		}
		s.keys = append(s.keys, x)
	}
	if ok, err := s.innerSide(vc.c, n, above); err != nil || !ok {
		return ok, err
	}
	s.intKey = len(s.keys) == 1 && s.keys[0].fixed && intKeyed(n.OuterKeys[0].Type()) && intKeyed(n.InnerKeys[0].Type())
	for i, slot := range s.slots {
		vc.slots[slot] = s.fixed[i]
	}
	var err error
	s.cond, err = vc.filter(n.Cond)
	p.stages = append(p.stages, s)
	return true, err
}

// innerSide compiles what the row engine runs to build the table.
func (s *joinStage) innerSide(c *compiler, n *plan.HashJoin, above slotSeen) (bool, error) {
	var err error
	if s.inner = c.shared[n.Inner]; s.inner == nil {
		return false, nil
	}
	if s.innerKeys, err = c.exprs(n.InnerKeys); err != nil {
		return false, err
	}
	if s.kinds, err = newKeyKinds(typesOf(n.InnerKeys)); err != nil {
		return false, err
	}
	if s.kind == plan.SemiJoin || s.kind == plan.AntiJoin {
		return true, nil
	}
	for _, slot := range n.InnerSlots {
		if above[slot] {
			s.slots = append(s.slots, slot)
			s.fixed = append(s.fixed, datum.InColumn(slotType(n.Inner, slot)))
		}
	}
	return true, nil
}
