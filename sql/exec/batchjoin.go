package exec

import (
	"slices"

	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/plan"
)

// batchStage passes on what it makes of a batch. It may change the batch.
type batchStage interface {
	push(v *vecRun, b *batch, rest []batchStage) error
}

// stageState is what a stage keeps between batches of one worker.
type stageState struct {
	join  *joinTable
	out   *batch
	heads []int32
}

// pass hands a batch to the first of the stages that are left, or to the sink.
func (v *vecRun) pass(b *batch, rest []batchStage) error {
	if len(b.sel) == 0 {
		return nil
	}
	if len(rest) == 0 {
		return v.sink.take(v, b)
	}
	return rest[0].push(v, b, rest[1:])
}

type filterStage struct{ cond vecFilter }

func (s *filterStage) push(v *vecRun, b *batch, rest []batchStage) error {
	b.match = nil
	if err := s.cond.apply(v, b); err != nil {
		return err
	}
	return v.pass(b, rest)
}

// projectStage computes slots.
type projectStage struct {
	exprs []vecExpr
	out   []int
}

func (s *projectStage) push(v *vecRun, b *batch, rest []batchStage) error {
	for i := range s.exprs {
		c, err := s.exprs[i].eval(v, b)
		if err != nil {
			return err
		}
		b.cols[s.out[i]] = *c
	}
	return v.pass(b, rest)
}

// joinStage probes a hash table of its inner side, which the row engine reads.
type joinStage struct {
	at        int // place in vecRun.stages
	kind      plan.JoinKind
	inner     nodeProg
	innerKeys []evalFunc
	kinds     *keyKinds
	slots     []int // of the inner side that are kept
	fixed     []bool
	outer     []int // slots of the outer side that are wanted above
	fixedOut  []bool
	keys      []vecExpr
	intKey    bool // one key, of a type that is equal as its integer
	cond      vecFilter
}

// joinTable is an inner side. Workers share it; nobody changes it after build.
type joinTable struct {
	table  hashTable
	ints   intTable
	unique bool
}

// intTable finds rows by an integer: in a plain array if the keys lie close
// together.
type intTable struct {
	base  int64
	dense []int32 // 1 + row, by key-base
	mask  uint64
	keys  []int64
	rows  []int32 // 1 + row
}

func (t *intTable) fill(rows *hashTable) {
	lo, hi := int64(0), int64(-1)
	for i := range rows.rows.n {
		k := rows.rows.row(i)[0].Int()
		if i == 0 {
			lo, hi = k, k
		}
		lo, hi = min(lo, k), max(hi, k)
	}
	*t = intTable{base: lo}
	n := rows.rows.n
	if span := uint64(hi) - uint64(lo); n > 0 && span < uint64(4*n+1024) {
		t.dense = make([]int32, span+1)
		for i := n - 1; i >= 0; i-- {
			if rows.last[i] >= 0 {
				t.dense[rows.rows.row(i)[0].Int()-lo] = int32(i) + 1
			}
		}
		return
	}
	size := 16
	for size < 2*n {
		size *= 2
	}
	t.mask, t.keys, t.rows = uint64(size-1), make([]int64, size), make([]int32, size)
	for i := range n {
		if rows.last[i] < 0 {
			continue
		}
		k := rows.rows.row(i)[0].Int()
		at := mixInt(uint64(k)) & t.mask
		for t.rows[at] != 0 {
			at = (at + 1) & t.mask
		}
		t.keys[at], t.rows[at] = k, int32(i)+1
	}
}

func mixInt(x uint64) uint64 {
	x *= 0x9e3779b97f4a7c15
	return x ^ x>>32
}

// find returns the first row with a key, or -1.
func (t *intTable) find(k int64) int32 {
	if t.dense != nil {
		if at := uint64(k) - uint64(t.base); at < uint64(len(t.dense)) {
			return t.dense[at] - 1
		}
		return -1
	}
	for at := mixInt(uint64(k)) & t.mask; t.rows[at] != 0; at = (at + 1) & t.mask {
		if t.keys[at] == k {
			return t.rows[at] - 1
		}
	}
	return -1
}

// build reads the inner side.
func (s *joinStage) build(v *vecRun) (*joinTable, error) {
	f, it := v.f, s.inner.iter()
	defer it.close()
	if err := it.open(f); err != nil {
		return nil, err
	}
	nk := len(s.innerKeys)
	t := &joinTable{table: hashTable{kinds: s.kinds, rows: rowStore{width: nk + len(s.slots)}}}
	for {
		ok, err := it.next(f)
		if err != nil {
			return nil, err
		}
		if !ok {
			break
		}
		row := t.table.rows.add()
		null, err := evalArgs(f, s.innerKeys, row[:nk])
		if err != nil {
			return nil, err
		}
		if null {
			t.table.rows.pop()
			continue
		}
		for i, slot := range s.slots {
			row[nk+i] = f.slots[slot]
		}
		if err := t.table.rows.account(f); err != nil {
			return nil, err
		}
		if v.tooMuch(t.table.rows.bytes) {
			return nil, errUseRows
		}
		t.table.insert()
	}
	t.unique = t.table.keys == t.table.rows.n
	if s.intKey {
		t.ints.fill(&t.table)
	}
	return t, nil
}

func (s *joinStage) push(v *vecRun, b *batch, rest []batchStage) error {
	st := &v.stages[s.at]
	if st.join == nil {
		var err error
		if st.join, err = s.build(v); err != nil {
			return err
		}
	}
	heads, err := s.probe(v, b, st.join)
	if err != nil {
		return err
	}
	switch {
	case s.kind == plan.SemiJoin || s.kind == plan.AntiJoin:
		b.sel, b.match = keepMatched(b.sel, heads, s.kind == plan.SemiJoin), nil
	case st.join.unique:
		s.single(st.join, b, heads)
	default:
		return s.expand(v, b, heads, rest)
	}
	if s.cond != nil {
		if err := s.cond.apply(v, b); err != nil {
			return err
		}
		b.match = nil
	}
	return v.pass(b, rest)
}

// probe finds the first inner row for every selected row, or -1, one for one with
// b.sel.
func (s *joinStage) probe(v *vecRun, b *batch, t *joinTable) ([]int32, error) {
	cols := make([]*datum.Column, 0, 4)
	for i := range s.keys {
		c, err := s.keys[i].eval(v, b)
		if err != nil {
			return nil, err
		}
		cols = append(cols, c)
	}
	st := &v.stages[s.at]
	st.heads = slices.Grow(st.heads[:0], len(b.sel))[:len(b.sel)]
	heads := st.heads
	if s.intKey {
		c := cols[0]
		for k, i := range b.sel {
			heads[k] = -1
			if !c.HasNulls || !c.Nulls[i] {
				heads[k] = t.ints.find(c.Ints[i])
			}
		}
		return heads, nil
	}
	key := v.values(len(cols))
rows:
	for k, i := range b.sel {
		heads[k] = -1
		for j, c := range cols {
			if key[j] = c.Get(int(i)); key[j].IsNull() {
				continue rows
			}
		}
		heads[k] = int32(t.table.find(key))
	}
	return heads, nil
}

func keepMatched(sel, heads []int32, want bool) []int32 {
	n := 0
	for k, i := range sel {
		sel[n] = i
		if (heads[k] >= 0) == want {
			n++
		}
	}
	return sel[:n]
}

// single joins each row with at most one: the batch stays, with more columns.
func (s *joinStage) single(t *joinTable, b *batch, heads []int32) {
	n := 0
	for k, i := range b.sel {
		b.sel[n], heads[n] = i, heads[k]
		if heads[k] >= 0 || s.kind == plan.LeftJoin {
			n++
		}
	}
	b.sel, heads = b.sel[:n], heads[:n]
	b.match = heads
	nk := len(s.innerKeys)
	for c, slot := range s.slots {
		col := s.column(b, slot, s.fixed[c])
		for k, i := range b.sel {
			d := datum.Null
			if heads[k] >= 0 {
				d = t.table.rows.row(int(heads[k]))[nk+c]
			}
			col.Set(int(i), d)
		}
	}
}

// column is the column of a slot in a batch, made if need be.
func (s *joinStage) column(b *batch, slot int, fixed bool) *datum.Column {
	col := &b.cols[slot]
	if col.Ints == nil && col.Data == nil {
		*col = columnOf(fixed, batchSize)
	}
	col.Clear()
	return col
}

// expand joins rows with any number of matches into batches of their own.
func (s *joinStage) expand(v *vecRun, b *batch, heads []int32, rest []batchStage) error {
	st := &v.stages[s.at]
	if st.out == nil {
		st.out = newBatch(len(b.cols))
	}
	out, nk, n := st.out, len(s.innerKeys), 0
	s.begin(out)
	flush := func() error {
		out.all(n)
		out.match = nil
		n = 0
		err := s.cond.apply(v, out)
		if err == nil {
			err = v.pass(out, rest)
		}
		s.begin(out)
		return err
	}
	for k, i := range b.sel {
		for at := int(heads[k]); at >= 0 || s.kind == plan.LeftJoin; at = st.join.table.following(at) {
			for _, slot := range s.outer {
				out.cols[slot].Set(n, b.cols[slot].Get(int(i)))
			}
			for c, slot := range s.slots {
				d := datum.Null
				if at >= 0 {
					d = st.join.table.rows.row(at)[nk+c]
				}
				out.cols[slot].Set(n, d)
			}
			if n++; n == batchSize {
				if err := flush(); err != nil {
					return err
				}
			}
			if at < 0 || st.join.table.following(at) < 0 {
				break
			}
		}
	}
	if n == 0 {
		return nil
	}
	return flush()
}

// begin clears the columns of an output batch.
func (s *joinStage) begin(out *batch) {
	for c, slot := range s.slots {
		s.column(out, slot, s.fixed[c])
	}
	for c, slot := range s.outer {
		s.column(out, slot, s.fixedOut[c])
	}
}
