package exec

import (
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/plan"
)

type sortProg struct {
	child nodeProg
	keys  []sortKey
	slots []int
	top   evalFunc
}

func (c *compiler) sort(n *plan.Sort) (nodeProg, error) {
	child, err := c.node(n.Child)
	if err != nil {
		return nil, err
	}
	p := &sortProg{child: child, slots: n.Slots}
	if p.keys, err = c.sortKeys(n.Keys); err != nil {
		return nil, err
	}
	p.top, err = c.optional(n.Top)
	return p, err
}

func (p *sortProg) iter() rowIter {
	return &sortIter{p: p, child: p.child.iter(), rows: rowStore{width: len(p.keys) + len(p.slots)}}
}

// sortIter keeps its input - keys, then slots - and sorts places. With a bound
// it keeps a heap of the best rows so far, the worst on top.
type sortIter struct {
	p      *sortProg
	child  rowIter
	rows   rowStore
	order  []int32
	seq    []int64 // of bounded sorts: when the row in a place arrived
	filled bool
	at     int
	spare  []datum.Datum
	left   int64   // rows wanted of disk; negative = all
	disk   *sorter // what did not fit into work_mem; nil = all did
}

func (it *sortIter) open(f *frame) error {
	it.rows.reset(f)
	it.order, it.seq = it.order[:0], it.seq[:0]
	it.filled, it.at = false, 0
	it.dropDisk(f)
	return it.child.open(f)
}

func (it *sortIter) close() {
	it.child.close()
	it.rows.drop()
	it.order, it.seq = it.order[:0], it.seq[:0]
	it.dropDisk(nil)
	clear(it.spare)
}

func (it *sortIter) dropDisk(f *frame) {
	if it.disk != nil {
		it.disk.close(f)
		it.disk = nil
	}
}

// toDisk hands the rows so far to a sorter, and all that follow.
func (it *sortIter) toDisk(f *frame) error {
	keys := it.p.keys
	it.disk = newSorter(it.rows.width, func(a, b []datum.Datum) int { return compareKeys(keys, a, b) })
	it.disk.rows, it.rows = it.rows, it.disk.rows
	return it.disk.spill(f)
}

func (it *sortIter) next(f *frame) (bool, error) {
	if !it.filled {
		if err := it.fill(f); err != nil {
			return false, err
		}
		it.filled = true
	}
	if it.disk != nil {
		return it.fromDisk(f)
	}
	if it.at == len(it.order) {
		return false, nil
	}
	it.rows.restore(f, int(it.order[it.at]), len(it.p.keys), it.p.slots)
	it.at++
	return true, nil
}

// fromDisk puts the next row of the merged runs into the slots.
func (it *sortIter) fromDisk(f *frame) (bool, error) {
	if it.left == 0 {
		return false, nil
	}
	it.left--
	row, err := it.disk.next()
	if err != nil || row == nil {
		return false, err
	}
	for i, s := range it.p.slots {
		f.slots[s] = row[len(it.p.keys)+i]
	}
	return true, f.row()
}

// heapMost is the largest bound for which a heap is kept; a larger one sorts all.
const heapMost = 1 << 12

func (it *sortIter) fill(f *frame) error {
	top := int64(-1)
	if it.p.top != nil {
		d, err := it.p.top(f)
		if err != nil {
			return err
		}
		if !d.IsNull() {
			top = max(d.Int(), 0)
		}
	}
	bounded := top >= 0 && top <= heapMost
	for arrived := int64(0); ; arrived++ {
		ok, err := it.child.next(f)
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		if err := f.row(); err != nil {
			return err
		}
		if bounded && int64(it.rows.n) >= top {
			err = it.replace(f, arrived)
		} else {
			err = it.keep(f, arrived, bounded)
		}
		if err != nil {
			return err
		}
	}
	if it.disk != nil {
		it.left = top
		return it.disk.finish(f)
	}
	it.finish(bounded)
	if top >= 0 && int64(len(it.order)) > top {
		it.order = it.order[:top]
	}
	return nil
}

func (it *sortIter) finish(bounded bool) {
	if !bounded {
		it.order = it.order[:0]
		for i := range it.rows.n {
			it.order = append(it.order, int32(i))
		}
		sortRows(&it.rows, it.p.keys, it.order)
		return
	}
	// Unwind the heap: the worst goes to the end.
	for n := len(it.order) - 1; n > 0; n-- {
		it.order[0], it.order[n] = it.order[n], it.order[0]
		it.down(0, n)
	}
}

func (it *sortIter) read(f *frame, row []datum.Datum) error {
	if err := evalKeys(f, it.p.keys, row); err != nil {
		return err
	}
	for i, s := range it.p.slots {
		row[len(it.p.keys)+i] = f.slots[s]
	}
	return nil
}

func (it *sortIter) keep(f *frame, arrived int64, bounded bool) error {
	if it.disk != nil {
		if err := it.read(f, it.disk.rows.add()); err != nil {
			return err
		}
		return it.disk.added(f)
	}
	if err := it.read(f, it.rows.add()); err != nil {
		return err
	}
	if err := it.rows.account(f); err != nil {
		return err
	}
	if bounded {
		it.seq = append(it.seq, arrived)
		it.order = append(it.order, int32(it.rows.n-1))
		it.up(len(it.order) - 1)
		return nil
	}
	if f.full(it.rows.bytes) {
		return it.toDisk(f)
	}
	return nil
}

// replace puts the current row in place of the worst, if it is better. What
// was accounted for the old row stands for the new one.
func (it *sortIter) replace(f *frame, arrived int64) error {
	if len(it.order) == 0 {
		return nil // LIMIT 0
	}
	it.spare = resize(it.spare, it.rows.width)
	if err := evalKeys(f, it.p.keys, it.spare); err != nil {
		return err
	}
	worst := it.order[0]
	// A row that came later loses against an equal one.
	if compareKeys(it.p.keys, it.spare, it.rows.row(int(worst))) >= 0 {
		return nil
	}
	row := it.rows.row(int(worst))
	copy(row, it.spare[:len(it.p.keys)])
	for i, s := range it.p.slots {
		row[len(it.p.keys)+i] = f.slots[s]
	}
	it.seq[worst] = arrived
	it.down(0, len(it.order))
	return nil
}

// worse orders places: a is worse than b if it sorts behind it.
func (it *sortIter) worse(a, b int32) bool {
	if c := compareKeys(it.p.keys, it.rows.row(int(a)), it.rows.row(int(b))); c != 0 {
		return c > 0
	}
	return it.seq[a] > it.seq[b]
}

func (it *sortIter) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !it.worse(it.order[i], it.order[parent]) {
			return
		}
		it.order[i], it.order[parent] = it.order[parent], it.order[i]
		i = parent
	}
}

func (it *sortIter) down(i, n int) {
	for {
		child := 2*i + 1
		if child >= n {
			return
		}
		if child+1 < n && it.worse(it.order[child+1], it.order[child]) {
			child++
		}
		if !it.worse(it.order[child], it.order[i]) {
			return
		}
		it.order[i], it.order[child] = it.order[child], it.order[i]
		i = child
	}
}
