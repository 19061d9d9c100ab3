package exec

import (
	"github.com/tallystick/tallystick/sql/datum"
)

// pageRows is how many rows of a store go to disk together.
const pageRows = 1024

// pages is the part of a rowStore that is on disk: its first rows, in pages that
// are read back one at a time. A reader that goes from row to row reads each page
// once; the last few are kept.
type pages struct {
	file   *tempFile
	starts []int64 // of the pages, and the end of the last
	kept   [4]page
	turn   int
}

type page struct {
	no   int // from 1; 0 = none
	data []datum.Datum
}

// tempFault is what goes wrong when a page is read back. It travels as a panic
// from places that cannot fail otherwise, and Cursor and Run make an error of it.
type tempFault struct{ err error }

// catchTempFault is deferred where programs are run.
func catchTempFault(err *error) {
	switch p := recover().(type) {
	case nil:
	case tempFault:
		*err = p.err
	default:
		panic(p)
	}
}

// evict writes all whole pages of the rows in memory.
func (r *rowStore) evict(f *frame) (err error) {
	whole := (r.n - r.base) / pageRows
	if whole == 0 {
		return nil
	}
	if r.disk == nil {
		r.disk = &pages{starts: []int64{0}}
		if r.disk.file, err = f.env.Temp.create(); err != nil {
			return err
		}
	}
	d, first := r.disk, r.base
	for p := range whole {
		for i := range pageRows {
			if err := d.file.write(r.row(first + p*pageRows + i)); err != nil {
				return err
			}
		}
		d.starts = append(d.starts, d.file.size)
	}
	if err := d.file.flush(); err != nil {
		return err
	}
	r.base += whole * pageRows
	n := copy(r.data, r.data[whole*pageRows*r.width:])
	// Datums behind the rest would keep what they refer to.
	clear(r.data[n:])
	r.data = r.data[:n]
	left := int64(0)
	for i := range r.n - r.base {
		left += rowSize(r.row(r.base + i))
	}
	f.release(r.bytes - left)
	r.bytes = left
	return nil
}

// onDisk returns a row of a page.
func (r *rowStore) onDisk(i int) []datum.Datum {
	d, no := r.disk, i/pageRows+1
	p := (*page)(nil)
	for k := range d.kept {
		if d.kept[k].no == no {
			p = &d.kept[k]
		}
	}
	if p == nil {
		p = &d.kept[d.turn%len(d.kept)]
		d.turn++
		*p = page{no: no, data: r.load(no - 1)}
	}
	at := i % pageRows * r.width
	return p.data[at : at+r.width : at+r.width]
}

func (r *rowStore) load(no int) []datum.Datum {
	d := r.disk
	data := make([]datum.Datum, pageRows*r.width)
	in := d.file.reader(d.starts[no], d.starts[no+1], 64<<10)
	for i := range pageRows {
		ok, err := in.read(data[i*r.width : (i+1)*r.width])
		if err != nil {
			panic(tempFault{err})
		}
		if !ok && r.width > 0 {
			panic(tempFault{errShortTemp})
		}
	}
	return data
}
