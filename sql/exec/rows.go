package exec

import "github.com/tallystick/tallystick/sql/datum"

// rowStore keeps rows of one width. Datums are immutable, so keeping a row is
// copying its datums.
type rowStore struct {
	width int
	data  []datum.Datum
	n     int
	bytes int64 // accounted with frame.hold

	// paged stores of local queries keep no more than work_mem in memory: the
	// rows before base are in disk.
	paged bool
	base  int
	disk  *pages
}

// reset empties the store and keeps its memory for the next use.
func (r *rowStore) reset(f *frame) {
	f.release(r.bytes)
	r.drop()
}

// drop is reset without accounting: for iterators that are put away after
// their frame gave everything back.
func (r *rowStore) drop() {
	if cap(r.data) > keepMost {
		r.data = nil
	}
	r.forget()
	if r.disk != nil {
		r.disk.file.close()
		r.disk = nil
	}
}

// forget empties the memory of the store and keeps all of it.
func (r *rowStore) forget() {
	clear(r.data)
	r.data, r.n, r.bytes, r.base = r.data[:0], 0, 0, 0
}

// keepMost bounds the memory that iterators keep from one execution to the
// next, in datums (16 bytes).
const keepMost = 1 << 16

func (r *rowStore) row(i int) []datum.Datum {
	if i < r.base {
		return r.onDisk(i)
	}
	i -= r.base
	return r.data[i*r.width : (i+1)*r.width : (i+1)*r.width]
}

// add appends a row of nulls and returns it to be filled; account follows.
func (r *rowStore) add() []datum.Datum {
	n := len(r.data)
	for range r.width {
		r.data = append(r.data, datum.Null)
	}
	r.n++
	return r.data[n:len(r.data):len(r.data)]
}

// account charges the last row added.
func (r *rowStore) account(f *frame) error {
	size := rowSize(r.row(r.n - 1))
	r.bytes += size
	if err := f.hold(size); err != nil {
		return err
	}
	if r.paged && f.full(r.bytes) {
		return r.evict(f)
	}
	return nil
}

// rowSize is what a row counts.
func rowSize(row []datum.Datum) int64 {
	size := int64(8)
	for _, d := range row {
		size += datumSize(d)
	}
	return size
}

// pop takes the last row away.
func (r *rowStore) pop() {
	r.n--
	r.data = r.data[:(r.n-r.base)*r.width]
}

// addSlots keeps the values of slots.
func (r *rowStore) addSlots(f *frame, slots []int) error {
	row := r.add()
	for i, s := range slots {
		row[i] = f.slots[s]
	}
	return r.account(f)
}

// addRow keeps a copy of a row.
func (r *rowStore) addRow(f *frame, row []datum.Datum) error {
	copy(r.add(), row)
	return r.account(f)
}

// restore puts columns from on of row i back into slots; negative slots are
// skipped.
func (r *rowStore) restore(f *frame, i, from int, slots []int) {
	row := r.row(i)[from:]
	for k, s := range slots {
		if s >= 0 {
			f.slots[s] = row[k]
		}
	}
}

func setNull(f *frame, slots []int) {
	for _, s := range slots {
		f.slots[s] = datum.Null
	}
}
