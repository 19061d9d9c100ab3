package exec

import "github.com/tallystick/tallystick/sql/datum"

// spilledRows is rows that may be the first of their key, and come after all
// that were handed out already: DISTINCT beyond work_mem.
type spilledRows struct {
	in    *sorter // hash, place, slots
	out   *sorter // place, slots
	seq   int64
	ended bool // all input is in out
}

// keepLater writes the current row down, whose key is in it.key and new to what
// is in memory.
func (it *uniqueIter) keepLater(f *frame) error {
	if it.later == nil {
		it.later = &spilledRows{in: newIntSorter(2+len(it.p.saved), 2)}
	}
	s := it.later
	row := s.in.rows.add()
	row[0], row[1] = datum.Int(int64(it.p.kinds.sum(it.key))), datum.Int(s.seq)
	s.seq++
	for i, slot := range it.p.saved {
		row[2+i] = f.slots[slot]
	}
	return s.in.added(f)
}

// finishLater finds the first row of every key, and sorts these by their places.
func (it *uniqueIter) finishLater(f *frame) error {
	s := it.later
	it.seen.reset(f)
	it.seen = hashTable{kinds: it.p.kinds, rows: rowStore{width: len(it.key)}} // a small one
	s.out = newIntSorter(1+len(it.p.saved), 1)
	if err := s.in.finish(f); err != nil {
		return err
	}
	hash := int64(0)
	for {
		row, err := s.in.next()
		if err != nil {
			return err
		}
		if row == nil {
			break
		}
		if row[0].Int() != hash {
			it.seen.reset(f)
			hash = row[0].Int()
		}
		for i, slot := range it.p.saved {
			f.slots[slot] = row[2+i]
		}
		place := row[1]
		if _, err := evalArgs(f, it.p.keys, it.key); err != nil {
			return err
		}
		if _, added, err := it.seen.addUnique(f, it.key); err != nil {
			return err
		} else if !added {
			continue
		}
		first := s.out.rows.add()
		first[0] = place
		for i, slot := range it.p.saved {
			first[1+i] = f.slots[slot]
		}
		if err := s.out.added(f); err != nil {
			return err
		}
	}
	it.seen.reset(f)
	s.in.close(f)
	s.ended = true
	return s.out.finish(f)
}

// next puts the next row into the slots.
func (s *spilledRows) next(f *frame, saved []int) (bool, error) {
	row, err := s.out.next()
	if err != nil || row == nil {
		return false, err
	}
	for i, slot := range saved {
		f.slots[slot] = row[1+i]
	}
	return true, f.row()
}

func (s *spilledRows) drop(f *frame) {
	if s == nil {
		return
	}
	s.in.close(f)
	if s.out != nil {
		s.out.close(f)
	}
}
