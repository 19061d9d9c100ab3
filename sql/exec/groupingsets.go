package exec

import (
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/plan"
)

// groupingProg groups its input by several sets of keys at once. Groups come
// set by set, those of one set in the order of their first row.
type groupingProg struct {
	child    nodeProg
	sets     []*aggregateProg // without a child
	rest     [][]int          // per set: the slots of the keys that are not in it
	grouping []plan.Grouping
}

func (c *compiler) groupingSets(n *plan.Aggregate) (nodeProg, error) {
	whole, err := c.plainAggregate(n)
	if err != nil {
		return nil, err
	}
	p := &groupingProg{child: whole.child, grouping: n.Groupings}
	sets := n.Sets
	if sets == nil {
		all := make([]int, len(n.GroupBy))
		for i := range all {
			all[i] = i
		}
		sets = [][]int{all}
	}
	for _, set := range sets {
		sub, rest := *whole, []int(nil)
		sub.child, sub.groupBy, sub.groupOut, sub.kinds = nil, nil, nil, &keyKinds{}
		in := make([]bool, len(n.GroupBy))
		for _, k := range set {
			in[k] = true
		}
		for k := range n.GroupBy {
			if !in[k] {
				rest = append(rest, n.GroupOut[k])
				continue
			}
			sub.groupBy, sub.groupOut = append(sub.groupBy, whole.groupBy[k]), append(sub.groupOut, n.GroupOut[k])
			sub.kinds.hash = append(sub.kinds.hash, whole.kinds.hash[k])
			sub.kinds.cmp = append(sub.kinds.cmp, whole.kinds.cmp[k])
		}
		p.sets, p.rest = append(p.sets, &sub), append(p.rest, rest)
	}
	for _, g := range n.Groupings {
		c.fills.add(g.Out)
	}
	return p, nil
}

func (p *groupingProg) iter() rowIter {
	it := &groupingIter{p: p, child: p.child.iter()}
	for _, s := range p.sets {
		it.sets = append(it.sets, s.newIter())
	}
	return it
}

type groupingIter struct {
	p      *groupingProg
	child  rowIter
	sets   []*aggregateIter
	filled bool
	set    int // whose groups are handed out
}

func (it *groupingIter) open(f *frame) error {
	for _, s := range it.sets {
		s.forget(f)
		s.spilled.drop(f)
		s.spilled, s.at = nil, 0
	}
	it.filled, it.set = false, 0
	return it.child.open(f)
}

func (it *groupingIter) close() {
	it.child.close()
	for _, s := range it.sets {
		s.drop()
	}
}

func (it *groupingIter) next(f *frame) (bool, error) {
	if !it.filled {
		if err := it.fill(f); err != nil {
			return false, err
		}
		it.filled = true
	}
	for ; it.set < len(it.sets); it.set++ {
		setNull(f, it.p.rest[it.set])
		ok, err := it.sets[it.set].nextGroup(f)
		if err != nil {
			return false, err
		}
		if !ok {
			continue
		}
		setNull(f, it.p.rest[it.set]) // groups that were on disk brought input rows back
		for _, g := range it.p.grouping {
			f.slots[g.Out] = datum.Int(g.Values[it.set])
		}
		return true, nil
	}
	return false, nil
}

func (it *groupingIter) fill(f *frame) error {
	for _, s := range it.sets {
		if err := s.start(f); err != nil {
			return err
		}
	}
	for {
		ok, err := it.child.next(f)
		if err != nil || !ok {
			return err
		}
		for _, s := range it.sets {
			if err := s.take(f); err != nil {
				return err
			}
		}
	}
}
