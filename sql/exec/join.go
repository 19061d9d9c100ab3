package exec

import (
	"fmt"

	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/plan"
)

type nestLoopProg struct {
	kind         plan.JoinKind
	outer, inner nodeProg
	cond         evalFunc
	innerSlots   []int
	// keep tells that the inner rows are the same for every outer row: they are
	// read once and kept.
	keep bool
}

func (c *compiler) nestLoop(n *plan.NestLoop) (nodeProg, error) {
	switch n.Kind {
	case plan.InnerJoin, plan.LeftJoin, plan.SemiJoin, plan.AntiJoin:
	default:
		return nil, fmt.Errorf("exec: nested loop join of kind %d", n.Kind)
	}
	p := &nestLoopProg{kind: n.Kind, innerSlots: n.InnerSlots}
	_, fills, err := c.watch(func() (err error) { p.outer, err = c.node(n.Outer); return err })
	if err != nil {
		return nil, err
	}
	reads, _, err := c.watch(func() (err error) { p.inner, err = c.node(n.Inner); return err })
	if err != nil {
		return nil, err
	}
	p.keep = !reads.meets(fills) && !oneRow(p.outer)
	p.cond, err = c.optional(n.Cond)
	return p, err
}

// oneRow tells that a node makes at most one row: then nothing is read twice for
// its rows.
func oneRow(n nodeProg) bool {
	switch n := n.(type) {
	case *resultProg:
		return true
	case *scanProg:
		return !n.provenance && len(n.ranges) == 1 && n.ranges[0].point && n.ranges[0].in == nil
	case *projectProg:
		return oneRow(n.child)
	case *filterProg:
		return oneRow(n.child)
	}
	return false
}

func (p *nestLoopProg) iter() rowIter {
	it := &nestLoopIter{p: p, outer: p.outer.iter(), inner: p.inner.iter()}
	if p.keep {
		it.inner = &keepIter{child: it.inner, slots: p.innerSlots, rows: rowStore{width: len(p.innerSlots), paged: true}}
	}
	return it
}

type nestLoopIter struct {
	p            *nestLoopProg
	outer, inner rowIter
	onOuter      bool // an outer row is at hand
	matched      bool
}

func (it *nestLoopIter) open(f *frame) error {
	it.onOuter = false
	if k, ok := it.inner.(*keepIter); ok {
		k.forget(f)
	}
	return it.outer.open(f)
}

func (it *nestLoopIter) next(f *frame) (bool, error) {
	for {
		if !it.onOuter {
			ok, err := it.outer.next(f)
			if err != nil || !ok {
				return false, err
			}
			if err := it.inner.open(f); err != nil {
				return false, err
			}
			it.onOuter, it.matched = true, false
		}
		ok, err := it.match(f)
		if err != nil {
			return false, err
		}
		if ok {
			it.matched = true
			if it.p.kind == plan.SemiJoin || it.p.kind == plan.AntiJoin {
				it.onOuter = false
				if it.p.kind == plan.AntiJoin {
					continue
				}
			}
			return true, f.row()
		}
		it.onOuter = false
		switch it.p.kind {
		case plan.LeftJoin:
			if !it.matched {
				setNull(f, it.p.innerSlots)
				return true, f.row()
			}
		case plan.AntiJoin:
			return true, f.row()
		}
	}
}

// match finds the next inner row that satisfies the condition.
func (it *nestLoopIter) match(f *frame) (bool, error) {
	for {
		ok, err := it.inner.next(f)
		if err != nil || !ok {
			return false, err
		}
		if ok, err = pass(f, it.p.cond); err != nil || ok {
			return ok, err
		}
		if err := f.row(); err != nil {
			return false, err
		}
	}
}

func (it *nestLoopIter) close() {
	it.outer.close()
	it.inner.close()
}

// keepIter reads its child once and repeats the rows.
type keepIter struct {
	child  rowIter
	slots  []int
	rows   rowStore
	filled bool // rows is complete
	begun  bool
	at     int
}

func (it *keepIter) forget(f *frame) {
	it.rows.reset(f)
	it.filled, it.begun = false, false
}

func (it *keepIter) open(f *frame) error {
	it.at = 0
	if it.begun {
		return nil
	}
	it.begun = true
	return it.child.open(f)
}

func (it *keepIter) next(f *frame) (bool, error) {
	if it.at < it.rows.n {
		it.rows.restore(f, it.at, 0, it.slots)
		it.at++
		return true, nil
	}
	if it.filled {
		return false, nil
	}
	ok, err := it.child.next(f)
	if err != nil {
		return false, err
	}
	if !ok {
		it.filled = true
		return false, nil
	}
	it.at++
	return true, it.rows.addSlots(f, it.slots)
}

func (it *keepIter) close() {
	it.child.close()
	it.rows.drop()
	it.filled, it.begun, it.at = false, false, 0
}

type hashJoinProg struct {
	kind                   plan.JoinKind
	outer, inner           nodeProg
	outerKeys, innerKeys   []evalFunc
	kinds                  *keyKinds
	cond                   evalFunc
	innerSlots, outerSlots []int
	spill                  bool // rows may go to disk
}

func (c *compiler) hashJoin(n *plan.HashJoin) (nodeProg, error) {
	if len(n.OuterKeys) != len(n.InnerKeys) || len(n.OuterKeys) == 0 {
		return nil, fmt.Errorf("exec: hash join on %d and %d keys", len(n.OuterKeys), len(n.InnerKeys))
	}
	p := &hashJoinProg{kind: n.Kind, innerSlots: n.InnerSlots, outerSlots: n.OuterSlots, spill: c.local}
	var err error
	if p.outer, err = c.node(n.Outer); err != nil {
		return nil, err
	}
	if p.inner, err = c.node(n.Inner); err != nil {
		return nil, err
	}
	if c.local {
		c.shared[n.Inner] = p.inner
	}
	if p.outerKeys, err = c.exprs(n.OuterKeys); err != nil {
		return nil, err
	}
	if p.innerKeys, err = c.exprs(n.InnerKeys); err != nil {
		return nil, err
	}
	if p.kinds, err = newKeyKinds(typesOf(n.InnerKeys)); err != nil {
		return nil, err
	}
	p.cond, err = c.optional(n.Cond)
	return p, err
}

func (p *hashJoinProg) iter() rowIter {
	it := &hashJoinIter{p: p, outer: p.outer.iter(), inner: p.inner.iter(), key: make([]datum.Datum, len(p.outerKeys))}
	it.table.kinds, it.table.rows.width = p.kinds, len(p.innerKeys)+len(p.innerSlots)
	it.loose.width = len(p.innerSlots)
	return it
}

type hashJoinIter struct {
	p            *hashJoinProg
	outer, inner rowIter
	key          []datum.Datum
	table        hashTable // keys, then slots of the inner rows

	// Right and Full joins: inner rows in order, those with null keys too.
	// order holds places in the table, or -1-i for row i of loose.
	loose   rowStore
	order   []int32
	matches []bool // of rows in the table

	built   bool
	onOuter bool
	matched bool
	at      int // next candidate, -1 at the end
	tail    int // next of order; the outer side is at its end
	inTail  bool

	disk                 *spilledJoin // beyond work_mem; nil = all is in memory
	innerRows, outerRows int64        // that went to disk
	places               []int64      // of the inner rows in the table
}

func (it *hashJoinIter) open(f *frame) error {
	it.table.reset(f)
	it.loose.reset(f)
	it.order, it.matches = it.order[:0], it.matches[:0]
	it.built, it.onOuter, it.inTail, it.tail = false, false, false, 0
	it.disk.drop(f)
	it.disk, it.innerRows, it.outerRows = nil, 0, 0
	return it.outer.open(f)
}

func (it *hashJoinIter) keepsInner() bool {
	return it.p.kind == plan.RightJoin || it.p.kind == plan.FullJoin
}

// build reads the inner side. It waits for the first outer row unless inner
// rows are wanted without one: an empty outer side reads nothing.
func (it *hashJoinIter) build(f *frame) error {
	it.built = true
	if err := it.inner.open(f); err != nil {
		return err
	}
	nk := len(it.p.innerKeys)
	for {
		ok, err := it.inner.next(f)
		if err != nil || !ok {
			return err
		}
		if it.disk != nil {
			if err := it.innerRow(f); err != nil {
				return err
			}
			continue
		}
		row := it.table.rows.add()
		null, err := evalArgs(f, it.p.innerKeys, row[:nk])
		if err != nil {
			return err
		}
		if null {
			it.table.rows.pop()
			if it.keepsInner() {
				it.order = append(it.order, int32(-1-it.loose.n))
				if err := it.loose.addSlots(f, it.p.innerSlots); err != nil {
					return err
				}
			}
			continue
		}
		for i, s := range it.p.innerSlots {
			row[nk+i] = f.slots[s]
		}
		if err := it.table.rows.account(f); err != nil {
			return err
		}
		it.table.insert()
		if it.keepsInner() {
			it.order = append(it.order, int32(it.table.rows.n-1))
			it.matches = append(it.matches, false)
		}
		if it.p.spill && f.full(it.table.rows.bytes+it.loose.bytes) {
			if err := it.toDisk(f); err != nil {
				return err
			}
		}
	}
}

func (it *hashJoinIter) next(f *frame) (bool, error) {
	for {
		if it.disk != nil {
			return it.nextFromDisk(f)
		}
		if it.inTail {
			return it.unmatchedInner(f)
		}
		if !it.onOuter {
			if it.keepsInner() && !it.built {
				if err := it.build(f); err != nil {
					return false, err
				}
				if it.disk != nil {
					continue
				}
			}
			ok, err := it.outer.next(f)
			if err != nil {
				return false, err
			}
			if !ok {
				if it.inTail = it.keepsInner(); it.inTail {
					continue
				}
				return false, nil
			}
			if err := it.probe(f); err != nil {
				return false, err
			}
			if it.disk != nil {
				continue
			}
		}
		ok, err := it.match(f)
		if err != nil {
			return false, err
		}
		if ok {
			it.matched = true
			switch it.p.kind {
			case plan.SemiJoin:
				it.onOuter = false
			case plan.AntiJoin:
				it.onOuter = false
				continue
			}
			return true, f.row()
		}
		it.onOuter = false
		if it.matched {
			continue
		}
		switch it.p.kind {
		case plan.LeftJoin, plan.FullJoin:
			setNull(f, it.p.innerSlots)
			return true, f.row()
		case plan.AntiJoin:
			return true, f.row()
		}
	}
}

// probe looks the key of a new outer row up.
func (it *hashJoinIter) probe(f *frame) error {
	if !it.built {
		if err := it.build(f); err != nil {
			return err
		}
	}
	it.onOuter, it.matched, it.at = true, false, -1
	if it.disk != nil {
		return nil // the row is the first that goes there
	}
	null, err := evalArgs(f, it.p.outerKeys, it.key)
	if err != nil || null {
		return err
	}
	it.at = it.table.find(it.key)
	return nil
}

// match restores the next inner row with an equal key that satisfies the
// further condition.
func (it *hashJoinIter) match(f *frame) (bool, error) {
	for it.at >= 0 {
		row := it.at
		it.at = it.table.following(row)
		it.table.rows.restore(f, row, len(it.p.innerKeys), it.p.innerSlots)
		ok, err := pass(f, it.p.cond)
		if err != nil {
			return false, err
		}
		if ok {
			if it.keepsInner() {
				it.matches[row] = true
			}
			return true, nil
		}
		if err := f.row(); err != nil {
			return false, err
		}
	}
	return false, nil
}

func (it *hashJoinIter) unmatchedInner(f *frame) (bool, error) {
	for it.tail < len(it.order) {
		at := it.order[it.tail]
		it.tail++
		if at < 0 {
			it.loose.restore(f, int(-1-at), 0, it.p.innerSlots)
		} else if it.matches[at] {
			continue
		} else {
			it.table.rows.restore(f, int(at), len(it.p.innerKeys), it.p.innerSlots)
		}
		setNull(f, it.p.outerSlots)
		return true, f.row()
	}
	return false, nil
}

func (it *hashJoinIter) close() {
	it.outer.close()
	it.inner.close()
	it.table.drop()
	it.loose.drop()
	it.order, it.matches = it.order[:0], it.matches[:0]
	it.disk.drop(nil)
	it.disk = nil
	clear(it.key)
	it.built, it.onOuter, it.inTail = false, false, false
}
