package exec

import (
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
	"github.com/tallystick/tallystick/sql/plan"
)

// result makes one row or none.
func (c *compiler) result(n *plan.Result) (nodeProg, error) {
	cond, err := c.optional(n.Cond)
	return &resultProg{cond}, err
}

type resultProg struct{ cond evalFunc }

func (p *resultProg) iter() rowIter { return &resultIter{p: p} }

type resultIter struct {
	p    *resultProg
	done bool
}

func (it *resultIter) open(*frame) error { it.done = false; return nil }
func (it *resultIter) close()            {}

func (it *resultIter) next(f *frame) (bool, error) {
	if it.done {
		return false, nil
	}
	it.done = true
	return pass(f, it.p.cond)
}

func (c *compiler) filter(n *plan.Filter) (nodeProg, error) {
	child, err := c.node(n.Child)
	if err != nil {
		return nil, err
	}
	cond, err := c.expr(n.Cond)
	return &filterProg{child, cond}, err
}

type filterProg struct {
	child nodeProg
	cond  evalFunc
}

func (p *filterProg) iter() rowIter { return &filterIter{p.child.iter(), p} }

type filterIter struct {
	rowIter
	p *filterProg
}

func (it *filterIter) next(f *frame) (bool, error) {
	for {
		ok, err := it.rowIter.next(f)
		if err != nil || !ok {
			return false, err
		}
		if ok, err = pass(f, it.p.cond); err != nil || ok {
			return ok, err
		}
	}
}

func (c *compiler) project(n *plan.Project) (nodeProg, error) {
	child, err := c.node(n.Child)
	if err != nil {
		return nil, err
	}
	exprs, err := c.exprs(n.Exprs)
	c.fills.add(n.Out...)
	return &projectProg{child, exprs, n.Out}, err
}

type projectProg struct {
	child nodeProg
	exprs []evalFunc
	out   []int
}

func (p *projectProg) iter() rowIter { return &projectIter{p.child.iter(), p} }

type projectIter struct {
	rowIter
	p *projectProg
}

func (it *projectIter) next(f *frame) (bool, error) {
	ok, err := it.rowIter.next(f)
	if err != nil || !ok {
		return false, err
	}
	for i, ev := range it.p.exprs {
		if f.slots[it.p.out[i]], err = ev(f); err != nil {
			return false, err
		}
	}
	return true, nil
}

func (c *compiler) values(n *plan.Values) (nodeProg, error) {
	p := &valuesProg{slots: n.Slots}
	c.fills.add(n.Slots...)
	for _, row := range n.Rows {
		exprs, err := c.exprs(row)
		if err != nil {
			return nil, err
		}
		p.rows = append(p.rows, exprs)
	}
	return p, nil
}

type valuesProg struct {
	rows  [][]evalFunc
	slots []int
}

func (p *valuesProg) iter() rowIter { return &valuesIter{p: p} }

type valuesIter struct {
	p  *valuesProg
	at int
}

func (it *valuesIter) open(*frame) error { it.at = 0; return nil }
func (it *valuesIter) close()            {}

func (it *valuesIter) next(f *frame) (bool, error) {
	if it.at == len(it.p.rows) {
		return false, nil
	}
	if err := f.row(); err != nil {
		return false, err
	}
	for i, ev := range it.p.rows[it.at] {
		d, err := ev(f)
		if err != nil {
			return false, err
		}
		if s := it.p.slots[i]; s >= 0 {
			f.slots[s] = d
		}
	}
	it.at++
	return true, nil
}

func (c *compiler) appendNode(n *plan.Append) (nodeProg, error) {
	p := &appendProg{in: n.In, out: n.Out}
	c.fills.add(n.Out...)
	for _, child := range n.Children {
		cp, err := c.node(child)
		if err != nil {
			return nil, err
		}
		p.children = append(p.children, cp)
	}
	return p, nil
}

type appendProg struct {
	children []nodeProg
	in       [][]int
	out      []int
}

func (p *appendProg) iter() rowIter {
	it := &appendIter{p: p}
	for _, c := range p.children {
		it.children = append(it.children, c.iter())
	}
	return it
}

type appendIter struct {
	p        *appendProg
	children []rowIter
	at       int
	opened   bool // children[at] is open
}

func (it *appendIter) open(*frame) error {
	it.at, it.opened = 0, false
	return nil
}

func (it *appendIter) next(f *frame) (bool, error) {
	for it.at < len(it.children) {
		child := it.children[it.at]
		if !it.opened {
			if err := child.open(f); err != nil {
				return false, err
			}
			it.opened = true
		}
		ok, err := child.next(f)
		if err != nil {
			return false, err
		}
		if ok {
			for i, s := range it.p.in[it.at] {
				f.slots[it.p.out[i]] = f.slots[s]
			}
			return true, nil
		}
		it.at++
		it.opened = false
	}
	return false, nil
}

func (it *appendIter) close() {
	for _, c := range it.children {
		c.close()
	}
}

func (c *compiler) limit(n *plan.Limit) (nodeProg, error) {
	child, err := c.node(n.Child)
	if err != nil {
		return nil, err
	}
	p := &limitProg{child: child}
	if p.count, err = c.optional(n.Count); err != nil {
		return nil, err
	}
	if p.offset, err = c.optional(n.Offset); err != nil {
		return nil, err
	}
	p.ties, err = c.sortKeys(n.Ties)
	return p, err
}

type limitProg struct {
	child         nodeProg
	count, offset evalFunc
	ties          []sortKey
}

func (p *limitProg) iter() rowIter {
	return &limitIter{p: p, child: p.child.iter(), last: make([]datum.Datum, len(p.ties)), key: make([]datum.Datum, len(p.ties))}
}

type limitIter struct {
	p         *limitProg
	child     rowIter
	skip      int64
	left      int64 // -1: no limit
	none      bool
	last, key []datum.Datum // WITH TIES
}

func (it *limitIter) open(f *frame) (err error) {
	it.left, it.skip, it.none = -1, 0, false
	if it.p.offset != nil {
		d, err := it.p.offset(f)
		if err != nil {
			return err
		}
		if !d.IsNull() {
			if it.skip = d.Int(); it.skip < 0 {
				return pgerr.New(pgerr.InvalidRowCountInOffset, "OFFSET must not be negative")
			}
		}
	}
	if it.p.count != nil {
		d, err := it.p.count(f)
		if err != nil {
			return err
		}
		if !d.IsNull() {
			if it.left = d.Int(); it.left < 0 {
				return pgerr.New(pgerr.InvalidRowCountInLimit, "LIMIT must not be negative")
			}
		}
	}
	if it.left == 0 {
		it.none = true
		return nil
	}
	return it.child.open(f)
}

func (it *limitIter) next(f *frame) (bool, error) {
	if it.none {
		return false, nil
	}
	for ; it.skip > 0; it.skip-- {
		ok, err := it.child.next(f)
		if err != nil || !ok {
			it.none = !ok
			return false, err
		}
	}
	if it.left == 0 {
		return it.tie(f)
	}
	ok, err := it.child.next(f)
	if err != nil || !ok {
		it.none = !ok
		return false, err
	}
	if it.left > 0 {
		it.left--
		if it.left == 0 && len(it.p.ties) > 0 {
			return true, evalKeys(f, it.p.ties, it.last)
		}
	}
	return true, nil
}

// tie makes one more row if it equals the last one in the order.
func (it *limitIter) tie(f *frame) (bool, error) {
	if len(it.p.ties) > 0 {
		ok, err := it.child.next(f)
		if err != nil {
			return false, err
		}
		if ok {
			if err := evalKeys(f, it.p.ties, it.key); err != nil {
				return false, err
			}
			if compareKeys(it.p.ties, it.last, it.key) == 0 {
				return true, nil
			}
		}
	}
	it.none = true
	return false, nil
}

func (it *limitIter) close() {
	it.child.close()
	clear(it.last)
	clear(it.key)
}

func (c *compiler) unique(n *plan.Unique) (nodeProg, error) {
	child, err := c.node(n.Child)
	if err != nil {
		return nil, err
	}
	keys, err := c.exprs(n.Keys)
	if err != nil {
		return nil, err
	}
	kinds, err := newKeyKinds(typesOf(n.Keys))
	p := &uniqueProg{child: child, keys: keys, kinds: kinds}
	if c.local {
		p.saved = plan.Fills(n.Child)
	}
	return p, err
}

type uniqueProg struct {
	child nodeProg
	keys  []evalFunc
	kinds *keyKinds
	saved []int // the slots of a row, if rows may go to disk
}

func (p *uniqueProg) iter() rowIter {
	it := &uniqueIter{p: p, child: p.child.iter(), key: make([]datum.Datum, len(p.keys))}
	it.seen.kinds, it.seen.rows.width = p.kinds, len(p.keys)
	return it
}

type uniqueIter struct {
	p     *uniqueProg
	child rowIter
	key   []datum.Datum
	seen  hashTable
	later *spilledRows // what work_mem has no room for; nil = nothing
}

func (it *uniqueIter) open(f *frame) error {
	it.seen.reset(f)
	it.later.drop(f)
	it.later = nil
	return it.child.open(f)
}

func (it *uniqueIter) next(f *frame) (bool, error) {
	for {
		if it.later != nil && it.later.ended {
			return it.later.next(f, it.p.saved)
		}
		ok, err := it.child.next(f)
		if err != nil {
			return false, err
		}
		if !ok {
			if it.later == nil {
				return false, nil
			}
			if err := it.finishLater(f); err != nil {
				return false, err
			}
			continue
		}
		if _, err := evalArgs(f, it.p.keys, it.key); err != nil {
			return false, err
		}
		if it.later != nil || it.p.saved != nil && f.full(it.seen.rows.bytes) {
			if it.seen.find(it.key) < 0 {
				if err := it.keepLater(f); err != nil {
					return false, err
				}
			}
			continue
		}
		if _, added, err := it.seen.addUnique(f, it.key); err != nil || added {
			return added, err
		}
	}
}

func (it *uniqueIter) close() {
	it.child.close()
	it.seen.drop()
	it.later.drop(nil)
	it.later = nil
	clear(it.key)
}
