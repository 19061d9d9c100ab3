package exec

import (
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/plan"
)

type setOpProg struct {
	kind            plan.SetOpKind
	all             bool
	left, right     nodeProg
	leftIn, rightIn []int
	out             []int
	kinds           *keyKinds
}

func (c *compiler) setOp(n *plan.SetOp) (nodeProg, error) {
	p := &setOpProg{kind: n.Kind, all: n.All, leftIn: n.LeftIn, rightIn: n.RightIn, out: n.Out}
	c.fills.add(n.Out...)
	var err error
	if p.left, err = c.node(n.Left); err != nil {
		return nil, err
	}
	if p.right, err = c.node(n.Right); err != nil {
		return nil, err
	}
	p.kinds, err = newKeyKinds(n.Types)
	return p, err
}

func (p *setOpProg) iter() rowIter {
	it := &setOpIter{p: p, left: p.left.iter(), right: p.right.iter(), row: make([]datum.Datum, len(p.out))}
	it.seen.kinds, it.seen.rows.width = p.kinds, len(p.out)
	return it
}

// setOpIter counts the rows of the right side, then passes those of the left
// side by what is left of the counts.
type setOpIter struct {
	p           *setOpProg
	left, right rowIter
	row         []datum.Datum
	seen        hashTable
	counts      []int64 // per row of seen: how often it came on the right
	filled      bool
}

func (it *setOpIter) open(f *frame) error {
	it.seen.reset(f)
	it.counts, it.filled = it.counts[:0], false
	return it.left.open(f)
}

func (it *setOpIter) close() {
	it.left.close()
	it.right.close()
	it.seen.drop()
	it.counts = it.counts[:0]
	clear(it.row)
}

// find returns the place of the present row in seen; it is added with a count
// of zero if it is new.
func (it *setOpIter) find(f *frame, in []int) (at int, added bool, err error) {
	for i, s := range in {
		it.row[i] = f.slots[s]
	}
	at, added, err = it.seen.addUnique(f, it.row)
	if added {
		it.counts = append(it.counts, 0)
	}
	return at, added, err
}

func (it *setOpIter) fill(f *frame) error {
	if err := it.right.open(f); err != nil {
		return err
	}
	for {
		ok, err := it.right.next(f)
		if err != nil || !ok {
			return err
		}
		at, _, err := it.find(f, it.p.rightIn)
		if err != nil {
			return err
		}
		it.counts[at]++
	}
}

func (it *setOpIter) next(f *frame) (bool, error) {
	if !it.filled {
		if err := it.fill(f); err != nil {
			return false, err
		}
		it.filled = true
	}
	for {
		ok, err := it.left.next(f)
		if err != nil || !ok {
			return false, err
		}
		at, added, err := it.find(f, it.p.leftIn)
		if err != nil {
			return false, err
		}
		if it.passes(at, added) {
			for i, s := range it.p.out {
				f.slots[s] = it.row[i]
			}
			return true, f.row()
		}
	}
}

// passes decides about a left row; added tells that neither side had it before.
// Once a distinct row has been passed, or refused, its count says so: an
// intersection uses its match up, a difference becomes excluded.
func (it *setOpIter) passes(at int, added bool) bool {
	count := &it.counts[at]
	if it.p.kind == plan.Intersect {
		if *count <= 0 {
			return false
		}
		if it.p.all {
			*count--
		} else {
			*count = 0
		}
		return true
	}
	if *count > 0 {
		if it.p.all {
			*count--
		}
		return false
	}
	if !it.p.all {
		*count = 1
	}
	return true
}
