package exec

import (
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/plan"
)

// spilledJoin is a hash join whose inner side has outgrown work_mem. Both sides
// are written down and sorted by the hash of their keys; then the rows of one
// hash are joined with those of the same, one hash after the other; then what
// came of it is sorted by the places of the outer rows, and of the inner rows
// that nothing matched behind them. That is the order of a join in memory.
type spilledJoin struct {
	inner *sorter // hash, place, keys, slots
	outer *sorter // hash, place, slots
	out   *sorter // part, place, slots of both sides
	ready bool
}

// The parts of the result: matches and outer rows, then inner rows by themselves.
const (
	partOuter = 0
	partInner = 1
)

// toDisk begins with the inner rows that are in memory.
func (it *hashJoinIter) toDisk(f *frame) error {
	p := it.p
	nk, ni, no := len(p.innerKeys), len(p.innerSlots), len(p.outerSlots)
	d := &spilledJoin{inner: newIntSorter(2+nk+ni, 2), outer: newIntSorter(2+no, 2), out: newIntSorter(2+no+ni, 2)}
	it.disk = d
	if !it.keepsInner() {
		for i := range it.table.rows.n {
			if err := it.innerToDisk(f, it.table.sums[i], int64(i), it.table.rows.row(i)); err != nil {
				return err
			}
		}
	}
	for place, at := range it.order {
		var err error
		if at < 0 {
			err = it.looseToDisk(f, int64(place), it.loose.row(int(-1-at)))
		} else {
			err = it.innerToDisk(f, it.table.sums[at], int64(place), it.table.rows.row(int(at)))
		}
		if err != nil {
			return err
		}
	}
	it.innerRows = int64(max(it.table.rows.n, len(it.order)))
	it.table.reset(f)
	it.table = hashTable{kinds: p.kinds, rows: rowStore{width: nk + ni}} // a small one
	it.loose.reset(f)
	it.order, it.matches = nil, nil
	return nil
}

func (it *hashJoinIter) innerToDisk(f *frame, sum uint64, place int64, row []datum.Datum) error {
	to := it.disk.inner.rows.add()
	to[0], to[1] = datum.Int(int64(sum)), datum.Int(place)
	copy(to[2:], row)
	return it.disk.inner.added(f)
}

// looseToDisk writes an inner row that nothing can match.
func (it *hashJoinIter) looseToDisk(f *frame, place int64, slots []datum.Datum) error {
	to := it.disk.out.rows.add()
	to[0], to[1] = datum.Int(partInner), datum.Int(place)
	copy(to[2+len(it.p.outerSlots):], slots)
	return it.disk.out.added(f)
}

// innerRow writes down the inner row in the slots.
func (it *hashJoinIter) innerRow(f *frame) error {
	place := it.innerRows
	it.innerRows++
	nk := len(it.p.innerKeys)
	row := it.table.rows.add()
	null, err := evalArgs(f, it.p.innerKeys, row[:nk])
	if err != nil {
		return err
	}
	for i, s := range it.p.innerSlots {
		row[nk+i] = f.slots[s]
	}
	switch {
	case !null:
		err = it.innerToDisk(f, it.p.kinds.sum(row), place, row)
	case it.keepsInner():
		err = it.looseToDisk(f, place, row[nk:])
	}
	it.table.rows.pop()
	return err
}

// outerRow writes down the outer row in the slots.
func (it *hashJoinIter) outerRow(f *frame) error {
	place := it.outerRows
	it.outerRows++
	null, err := evalArgs(f, it.p.outerKeys, it.key)
	if err != nil {
		return err
	}
	if null {
		switch it.p.kind {
		case plan.LeftJoin, plan.FullJoin, plan.AntiJoin:
			setNull(f, it.p.innerSlots)
			return it.resultRow(f, partOuter, place)
		}
		return nil
	}
	row := it.disk.outer.rows.add()
	row[0], row[1] = datum.Int(int64(it.p.kinds.sum(it.key))), datum.Int(place)
	for i, s := range it.p.outerSlots {
		row[2+i] = f.slots[s]
	}
	return it.disk.outer.added(f)
}

// resultRow writes down the slots of both sides.
func (it *hashJoinIter) resultRow(f *frame, part, place int64) error {
	row := it.disk.out.rows.add()
	row[0], row[1] = datum.Int(part), datum.Int(place)
	row = row[2:]
	for i, s := range it.p.outerSlots {
		row[i] = f.slots[s]
	}
	row = row[len(it.p.outerSlots):]
	for i, s := range it.p.innerSlots {
		row[i] = f.slots[s]
	}
	return it.disk.out.added(f)
}

// nextFromDisk makes the next row of the result.
func (it *hashJoinIter) nextFromDisk(f *frame) (bool, error) {
	d := it.disk
	if !d.ready {
		if err := it.joinOnDisk(f); err != nil {
			return false, err
		}
		d.ready = true
	}
	row, err := d.out.next()
	if err != nil || row == nil {
		return false, err
	}
	row = row[2:]
	for i, s := range it.p.outerSlots {
		f.slots[s] = row[i]
	}
	row = row[len(it.p.outerSlots):]
	for i, s := range it.p.innerSlots {
		f.slots[s] = row[i]
	}
	return true, f.row()
}

// joinOnDisk reads the outer side, whose first row is in the slots if onOuter,
// and joins.
func (it *hashJoinIter) joinOnDisk(f *frame) error {
	for more := it.onOuter; ; {
		if more {
			if err := it.outerRow(f); err != nil {
				return err
			}
		}
		var err error
		if more, err = it.outer.next(f); err != nil {
			return err
		}
		if !more {
			break
		}
	}
	d := it.disk
	if err := d.inner.finish(f); err != nil {
		return err
	}
	if err := d.outer.finish(f); err != nil {
		return err
	}
	if err := it.joinHashes(f); err != nil {
		return err
	}
	d.inner.close(f)
	d.outer.close(f)
	return d.out.finish(f)
}

// joinHashes walks both sides, one hash at a time.
func (it *hashJoinIter) joinHashes(f *frame) error {
	inner, err := it.disk.inner.next()
	if err != nil {
		return err
	}
	outer, err := it.disk.outer.next()
	if err != nil {
		return err
	}
	for inner != nil || outer != nil {
		hash := lowerHash(inner, outer)
		if inner != nil && inner[0].Int() == hash {
			if inner, err = it.hashOfInner(f, inner); err != nil {
				return err
			}
		}
		for outer != nil && outer[0].Int() == hash {
			if err := it.joinRow(f, outer); err != nil {
				return err
			}
			if outer, err = it.disk.outer.next(); err != nil {
				return err
			}
		}
		if err := it.loneInner(f); err != nil {
			return err
		}
	}
	return nil
}

// lowerHash is the hash of which of two rows comes first; one may be nil.
func lowerHash(a, b []datum.Datum) int64 {
	switch {
	case a == nil:
		return b[0].Int()
	case b == nil:
		return a[0].Int()
	}
	return min(a[0].Int(), b[0].Int())
}

// hashOfInner puts the inner rows of one hash, of which the first is given, into
// the table, and returns the first of the next.
func (it *hashJoinIter) hashOfInner(f *frame, row []datum.Datum) ([]datum.Datum, error) {
	hash := row[0].Int()
	for row != nil && row[0].Int() == hash {
		copy(it.table.rows.add(), row[2:])
		if err := it.table.rows.account(f); err != nil {
			return nil, err
		}
		it.table.insert()
		it.places, it.matches = append(it.places, row[1].Int()), append(it.matches, false)
		var err error
		if row, err = it.disk.inner.next(); err != nil {
			return nil, err
		}
	}
	return row, nil
}

// loneInner writes down the rows of the table that nothing matched, if they are
// wanted, and empties it.
func (it *hashJoinIter) loneInner(f *frame) error {
	if it.keepsInner() {
		for i := range it.table.rows.n {
			if !it.matches[i] {
				if err := it.looseToDisk(f, it.places[i], it.table.rows.row(i)[len(it.p.innerKeys):]); err != nil {
					return err
				}
			}
		}
	}
	it.table.reset(f)
	it.places, it.matches = it.places[:0], it.matches[:0]
	return nil
}

// joinRow joins one outer row with the table.
func (it *hashJoinIter) joinRow(f *frame, row []datum.Datum) error {
	for i, s := range it.p.outerSlots {
		f.slots[s] = row[2+i]
	}
	place, matched := row[1].Int(), false
	if _, err := evalArgs(f, it.p.outerKeys, it.key); err != nil {
		return err
	}
	it.at = it.table.find(it.key)
	for {
		ok, err := it.match(f)
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		matched = true
		if it.p.kind == plan.AntiJoin {
			return nil
		}
		if err := it.resultRow(f, partOuter, place); err != nil {
			return err
		}
		if it.p.kind == plan.SemiJoin {
			return nil
		}
	}
	if matched {
		return nil
	}
	switch it.p.kind {
	case plan.LeftJoin, plan.FullJoin, plan.AntiJoin:
		setNull(f, it.p.innerSlots)
		return it.resultRow(f, partOuter, place)
	}
	return nil
}

func (d *spilledJoin) drop(f *frame) {
	if d != nil {
		d.inner.close(f)
		d.outer.close(f)
		d.out.close(f)
	}
}
