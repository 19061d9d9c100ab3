package exec

import (
	"github.com/tallystick/tallystick/sql/datum"
)

// spilledGroups is what a hash aggregate does when its groups fill work_mem.
// Groups that are in memory stay and go on; rows of any other are written down,
// sorted by the hash of their keys, and grouped afterwards, one hash after the
// other. The results are sorted by where their group began. The order is
// therefore that of first appearance, as without a disk: the groups in memory all
// began before the first row that was written.
type spilledGroups struct {
	in     *sorter // hash, place, slots
	out    *sorter // place, keys, results
	seq    int64
	merged bool
}

// head is the number of columns in front of the slots in spilledGroups.in.
const spilledHead = 2

// spillRow keeps the current row, whose key is in it.key, for later.
func (it *aggregateIter) spillRow(f *frame) error {
	s := it.spilled
	if s == nil {
		s = &spilledGroups{in: newIntSorter(spilledHead+len(it.p.saved), 2)}
		it.spilled = s
	}
	row := s.in.rows.add()
	row[0], row[1] = datum.Int(int64(it.p.kinds.sum(it.key))), datum.Int(s.seq)
	s.seq++
	for i, slot := range it.p.saved {
		row[spilledHead+i] = f.slots[slot]
	}
	return s.in.added(f)
}

// full tells that no new group may be begun in memory.
func (it *aggregateIter) full(f *frame) bool {
	return it.p.saved != nil && f.full(it.groups.rows.bytes+it.bytes)
}

// nextSpilled makes the row of the next group that was not in memory.
func (it *aggregateIter) nextSpilled(f *frame) (bool, error) {
	s := it.spilled
	if !s.merged {
		s.merged = true
		if err := it.groupSpilled(f); err != nil {
			return false, err
		}
	}
	row, err := s.out.next()
	if err != nil || row == nil {
		return false, err
	}
	if err := f.row(); err != nil {
		return false, err
	}
	row = row[1:]
	for i, slot := range it.p.groupOut {
		f.slots[slot] = row[i]
	}
	row = row[len(it.p.groupOut):]
	for i, a := range it.p.aggs {
		f.slots[a.out] = row[i]
	}
	return true, nil
}

// groupSpilled groups the rows that were written down. The groups in memory have
// been handed out.
func (it *aggregateIter) groupSpilled(f *frame) error {
	s := it.spilled
	it.forget(f)
	it.groups = hashTable{kinds: it.p.kinds, rows: rowStore{width: len(it.key)}} // a small one
	s.out = newIntSorter(1+len(it.p.groupOut)+len(it.p.aggs), 1)
	if err := s.in.finish(f); err != nil {
		return err
	}
	hash, open := int64(0), false
	var first []int64
	for {
		row, err := s.in.next()
		if err != nil {
			return err
		}
		if open && (row == nil || row[0].Int() != hash) {
			if err := it.emitSpilled(f, first); err != nil {
				return err
			}
			first, open = first[:0], false
		}
		if row == nil {
			break
		}
		hash, open = row[0].Int(), true
		place := row[1].Int()
		for i, slot := range it.p.saved {
			f.slots[slot] = row[spilledHead+i]
		}
		before := it.groups.rows.n
		if err := it.takeInMemory(f); err != nil {
			return err
		}
		if it.groups.rows.n > before {
			first = append(first, place)
		}
	}
	s.in.close(f)
	return s.out.finish(f)
}

// emitSpilled writes down the results of the groups of one hash. Emitting fills
// slots that hold nothing else by now.
func (it *aggregateIter) emitSpilled(f *frame, first []int64) error {
	n := len(it.p.aggs)
	for g := range it.groups.rows.n {
		if err := it.emit(f, it.groups.rows.row(g), it.states[g*n:(g+1)*n]); err != nil {
			return err
		}
		row := it.spilled.out.rows.add()
		row[0] = datum.Int(first[g])
		for i, slot := range it.p.groupOut {
			row[1+i] = f.slots[slot]
		}
		for i, a := range it.p.aggs {
			row[1+len(it.p.groupOut)+i] = f.slots[a.out]
		}
		if err := it.spilled.out.added(f); err != nil {
			return err
		}
	}
	it.forgetGroups(f)
	return nil
}

// drop closes the files.
func (s *spilledGroups) drop(f *frame) {
	if s == nil {
		return
	}
	s.in.close(f)
	if s.out != nil {
		s.out.close(f)
	}
}
