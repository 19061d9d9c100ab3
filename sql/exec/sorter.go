package exec

import (
	"container/heap"
	"slices"

	"github.com/tallystick/tallystick/sql/datum"
)

// sorter sorts any number of rows: runs that fill work_mem are sorted in memory
// and written to a file, then merged. Equal rows stay in the order in which they
// were added.
type sorter struct {
	compare func(a, b []datum.Datum) int
	rows    rowStore
	order   []int32
	file    *tempFile
	runs    []fileRun
	merge   *merger
	at      int
	done    bool
}

// fileRun is a sorted piece of a file.
type fileRun struct{ from, to int64 }

// mergeMost is how many runs are merged at a time.
const mergeMost = 64

func newSorter(width int, compare func(a, b []datum.Datum) int) *sorter {
	return &sorter{compare: compare, rows: rowStore{width: width}}
}

// newIntSorter sorts by the first n columns, which are integers.
func newIntSorter(width, n int) *sorter {
	return newSorter(width, func(a, b []datum.Datum) int {
		for i := range n {
			if x, y := a[i].Int(), b[i].Int(); x != y {
				if x < y {
					return -1
				}
				return 1
			}
		}
		return 0
	})
}

// added accounts for the row that was added to rows last.
func (s *sorter) added(f *frame) error {
	if err := s.rows.account(f); err != nil {
		return err
	}
	if s.rows.n%1024 == 0 && f.env.Interrupted != nil {
		if err := f.env.Interrupted(); err != nil {
			return err
		}
	}
	if f.full(s.rows.bytes) {
		return s.spill(f)
	}
	return nil
}

// sort orders the rows in memory.
func (s *sorter) sort() {
	s.order = slices.Grow(s.order[:0], s.rows.n)[:s.rows.n]
	for i := range s.order {
		s.order[i] = int32(i)
	}
	slices.SortFunc(s.order, func(a, b int32) int {
		if c := s.compare(s.rows.row(int(a)), s.rows.row(int(b))); c != 0 {
			return c
		}
		return int(a) - int(b)
	})
}

// spill writes the rows in memory as a run.
func (s *sorter) spill(f *frame) (err error) {
	if s.file == nil {
		if s.file, err = f.env.Temp.create(); err != nil {
			return err
		}
	}
	s.sort()
	from := s.file.size
	for _, i := range s.order {
		if err := s.file.write(s.rows.row(int(i))); err != nil {
			return err
		}
	}
	s.runs = append(s.runs, fileRun{from, s.file.size})
	f.release(s.rows.bytes)
	s.rows.forget()
	return s.file.flush()
}

// finish ends the input.
func (s *sorter) finish(f *frame) error {
	s.done = true
	if s.file == nil {
		s.sort()
		return nil
	}
	if s.rows.n > 0 {
		if err := s.spill(f); err != nil {
			return err
		}
	}
	s.rows.drop()
	for len(s.runs) > mergeMost {
		if err := s.mergePass(f); err != nil {
			return err
		}
	}
	var err error
	s.merge, err = s.open(s.runs)
	return err
}

// mergePass merges neighbouring runs into fewer and longer ones, in a new file.
func (s *sorter) mergePass(f *frame) error {
	file, err := f.env.Temp.create()
	if err != nil {
		return err
	}
	var runs []fileRun
	for part := range slices.Chunk(s.runs, mergeMost) {
		m, err := s.open(part)
		from := file.size
		for err == nil {
			var row []datum.Datum
			if row, err = m.next(); err != nil || row == nil {
				break
			}
			err = file.write(row)
		}
		if err == nil && f.env.Interrupted != nil {
			err = f.env.Interrupted()
		}
		if err != nil {
			file.close()
			return err
		}
		runs = append(runs, fileRun{from, file.size})
	}
	s.file.close()
	s.file, s.runs = file, runs
	return file.flush()
}

// next returns the next row in order, valid until the call after; nil at the end.
func (s *sorter) next() ([]datum.Datum, error) {
	if s.merge != nil {
		return s.merge.next()
	}
	if s.at == len(s.order) {
		return nil, nil
	}
	s.at++
	return s.rows.row(int(s.order[s.at-1])), nil
}

// close gives back what the sorter holds.
func (s *sorter) close(f *frame) {
	if f != nil {
		f.release(s.rows.bytes)
	}
	s.drop()
}

func (s *sorter) drop() {
	s.rows.drop()
	s.file.close()
	s.file, s.runs, s.merge, s.order, s.at, s.done = nil, nil, nil, s.order[:0], 0, false
}

// merger merges runs.
type merger struct {
	s     *sorter
	heads []mergeHead
	out   []datum.Datum
}

type mergeHead struct {
	row []datum.Datum
	r   *tempReader
	run int
}

func (s *sorter) open(runs []fileRun) (*merger, error) {
	m := &merger{s: s, out: make([]datum.Datum, s.rows.width)}
	for i, run := range runs {
		h := mergeHead{row: make([]datum.Datum, s.rows.width), r: s.file.reader(run.from, run.to, 32<<10), run: i}
		ok, err := h.r.read(h.row)
		if err != nil {
			return nil, err
		}
		if ok {
			m.heads = append(m.heads, h)
		}
	}
	heap.Init(m)
	return m, nil
}

func (m *merger) next() ([]datum.Datum, error) {
	if len(m.heads) == 0 {
		return nil, nil
	}
	h := &m.heads[0]
	copy(m.out, h.row)
	ok, err := h.r.read(h.row)
	if err != nil {
		return nil, err
	}
	if ok {
		heap.Fix(m, 0)
	} else {
		heap.Pop(m)
	}
	return m.out, nil
}

// The methods of heap.Interface.

func (m *merger) Len() int { return len(m.heads) }
func (m *merger) Less(i, j int) bool {
	if c := m.s.compare(m.heads[i].row, m.heads[j].row); c != 0 {
		return c < 0
	}
	return m.heads[i].run < m.heads[j].run
}
func (m *merger) Swap(i, j int) { m.heads[i], m.heads[j] = m.heads[j], m.heads[i] }
func (m *merger) Push(any)      {}
func (m *merger) Pop() any {
	last := len(m.heads) - 1
	m.heads[last] = mergeHead{}
	m.heads = m.heads[:last]
	return nil
}
