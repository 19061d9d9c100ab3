package exec

import (
	"fmt"

	"github.com/tallystick/tallystick/sql/builtin"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
	"github.com/tallystick/tallystick/sql/plan"
)

// windowFunc computes one function for the current row of it.
type windowFunc func(f *frame, it *windowIter, st *windowState) (datum.Datum, error)

// windowCall is one compiled call of a [plan.Window].
type windowCall struct {
	eval windowFunc
	args []evalFunc
	agg  *aggProg // of an aggregate
	out  int
}

type windowProg struct {
	child      nodeProg
	partition  []evalFunc
	kinds      *keyKinds // of the partition
	order      []sortKey
	calls      []*windowCall
	slots      []int
	start, end windowBound
	mode       plan.FrameMode
	exclude    plan.Exclusion
}

// windowBound is one end of the frame.
type windowBound struct {
	kind    plan.BoundKind
	offset  evalFunc
	inRange builtin.InRange
	name    string // for messages
}

func (c *compiler) window(n *plan.Window) (nodeProg, error) {
	child, err := c.node(n.Child)
	if err != nil {
		return nil, err
	}
	p := &windowProg{child: child, slots: n.Slots, mode: n.Frame.Mode, exclude: n.Frame.Exclude}
	if p.partition, err = c.exprs(n.Partition); err != nil {
		return nil, err
	}
	if p.kinds, err = orderKinds(typesOf(n.Partition)); err != nil {
		return nil, err
	}
	if p.order, err = c.sortKeys(n.Order); err != nil {
		return nil, err
	}
	if p.start, err = c.windowBound(n.Frame.Start, "starting"); err != nil {
		return nil, err
	}
	if p.end, err = c.windowBound(n.Frame.End, "ending"); err != nil {
		return nil, err
	}
	for i := range n.Funcs {
		w, err := c.windowCall(&n.Funcs[i])
		if err != nil {
			return nil, err
		}
		p.calls = append(p.calls, w)
		c.fills.add(w.out)
	}
	return p, nil
}

// orderKinds is newKeyKinds for types that are compared only.
func orderKinds(types []datum.Type) (*keyKinds, error) {
	k := &keyKinds{}
	for _, t := range types {
		cmp, err := compareOf(t)
		if err != nil {
			return nil, err
		}
		k.cmp = append(k.cmp, cmp)
	}
	return k, nil
}

func (c *compiler) windowBound(b plan.FrameBound, name string) (windowBound, error) {
	offset, err := c.optional(b.Offset)
	return windowBound{kind: b.Kind, offset: offset, inRange: b.InRange, name: name}, err
}

func (c *compiler) windowCall(n *plan.WindowFunc) (*windowCall, error) {
	w := &windowCall{out: n.Out}
	var err error
	if n.Func.Kind == builtin.Aggregate {
		w.agg, err = c.agg(&plan.Agg{Func: n.Func, Args: n.Args, Filter: n.Filter, Out: n.Out})
		w.eval = windowAggregate
		return w, err
	}
	if w.eval = windowFuncs[n.Func.Name]; w.eval == nil {
		return nil, fmt.Errorf("exec: window function %s has no implementation", n.Func.Name)
	}
	w.args, err = c.exprs(n.Args)
	return w, err
}

func (p *windowProg) iter() rowIter {
	it := &windowIter{p: p, child: p.child.iter(), states: make([]windowState, len(p.calls)),
		key: make([]datum.Datum, len(p.partition)), nextKey: make([]datum.Datum, len(p.partition))}
	width := len(p.slots) + len(p.order)
	it.rows.width, it.ahead.width = width, width
	it.rows.paged, it.ahead.paged = true, true
	maxArgs := 0
	for i, c := range p.calls {
		it.states[i].call = c
		if c.agg != nil {
			maxArgs = max(maxArgs, len(c.agg.args))
		}
	}
	it.args = make([]datum.Datum, maxArgs)
	return it
}

// windowState is what one call keeps from row to row of a partition.
type windowState struct {
	call *windowCall

	// Aggregates: what has been added to state is [from, to).
	state    builtin.AggState
	from, to int
	result   datum.Datum // of the frame [from, to), if known
	known    bool
	bytes    int64 // accounted for state

	// ntile: buckets are numbered from 1; place counts the rows of the current.
	bucket, place, size, larger int64
}

// rowSpan is a part of a partition.
type rowSpan struct{ from, to int }

// windowIter keeps one partition - slots, then order keys - and the first row
// of the next one.
type windowIter struct {
	p     *windowProg
	child rowIter

	rows, ahead  rowStore
	key, nextKey []datum.Datum // of the partition, and of the row ahead
	hasAhead     bool
	ended        bool
	ready        bool // the offsets of the frame are known

	groups []int32 // first rows of the groups of peers
	at     int     // the current row
	group  int     // its group
	loaded int     // the row whose values are in the slots

	frame    rowSpan
	frameSet bool // frame is that of the current row
	pieces   [3]rowSpan
	offsets  [2]datum.Datum
	counts   [2]int64 // offsets of ROWS and GROUPS frames

	states []windowState
	args   []datum.Datum
}

func (it *windowIter) open(f *frame) error {
	it.rows.reset(f)
	it.ahead.reset(f)
	for i := range it.states {
		it.states[i].restart(f)
	}
	it.at, it.hasAhead, it.ended, it.ready = 0, false, false, false
	return it.child.open(f)
}

func (it *windowIter) close() {
	it.child.close()
	it.rows.drop()
	it.ahead.drop()
	clear(it.key)
	clear(it.nextKey)
	clear(it.args)
	for i := range it.states {
		it.states[i] = windowState{call: it.states[i].call}
	}
	it.offsets = [2]datum.Datum{}
}

// restart forgets what a call kept.
func (st *windowState) restart(f *frame) {
	f.release(st.bytes)
	*st = windowState{call: st.call}
}

func (it *windowIter) next(f *frame) (bool, error) {
	if it.at++; it.at >= it.rows.n {
		more, err := it.fill(f)
		if err != nil || !more {
			return false, err
		}
	}
	if err := f.row(); err != nil {
		return false, err
	}
	if it.group+1 < len(it.groups) && it.at >= int(it.groups[it.group+1]) {
		it.group++
	}
	it.frameSet, it.loaded = false, -1
	it.load(f, it.at)
	for i := range it.states {
		st := &it.states[i]
		d, err := st.call.eval(f, it, st)
		if err != nil {
			return false, err
		}
		it.load(f, it.at)
		f.slots[st.call.out] = d
	}
	return true, nil
}

// load puts row i into the slots.
func (it *windowIter) load(f *frame, i int) {
	if it.loaded != i {
		it.rows.restore(f, i, 0, it.p.slots)
		it.loaded = i
	}
}

// fill reads the next partition.
func (it *windowIter) fill(f *frame) (bool, error) {
	it.rows.reset(f)
	it.at, it.group = 0, 0
	if it.hasAhead {
		it.rows, it.ahead = it.ahead, it.rows
		it.key, it.nextKey = it.nextKey, it.key
		it.hasAhead = false
	}
	for !it.ended {
		ok, err := it.child.next(f)
		if err != nil {
			return false, err
		}
		if !ok {
			it.ended = true
			break
		}
		first := it.rows.n == 0
		key := it.nextKey
		if first {
			key = it.key
		}
		if _, err := evalArgs(f, it.p.partition, key); err != nil {
			return false, err
		}
		if !first && !it.p.kinds.equal(it.key, key) {
			it.hasAhead = true
			if err := it.keep(f, &it.ahead); err != nil {
				return false, err
			}
			break
		}
		if err := it.keep(f, &it.rows); err != nil {
			return false, err
		}
	}
	if it.rows.n == 0 {
		return false, nil
	}
	return true, it.begin(f)
}

func (it *windowIter) keep(f *frame, rows *rowStore) error {
	row := rows.add()
	for i, s := range it.p.slots {
		row[i] = f.slots[s]
	}
	if err := evalKeys(f, it.p.order, row[len(it.p.slots):]); err != nil {
		return err
	}
	return rows.account(f)
}

func (it *windowIter) orderKey(i int) []datum.Datum { return it.rows.row(i)[len(it.p.slots):] }

// begin finds the groups of peers of a partition and resets what calls keep.
func (it *windowIter) begin(f *frame) error {
	it.groups = append(it.groups[:0], 0)
	for i := 1; i < it.rows.n; i++ {
		if compareKeys(it.p.order, it.orderKey(i-1), it.orderKey(i)) != 0 {
			it.groups = append(it.groups, int32(i))
		}
	}
	for i := range it.states {
		it.states[i].restart(f)
	}
	it.frame = rowSpan{}
	if it.ready {
		return nil
	}
	it.ready = true
	for i, b := range []*windowBound{&it.p.start, &it.p.end} {
		if err := it.evalOffset(f, i, b); err != nil {
			return err
		}
	}
	return nil
}

// evalOffset computes the offset of a bound, once per execution.
func (it *windowIter) evalOffset(f *frame, i int, b *windowBound) error {
	if b.offset == nil {
		return nil
	}
	d, err := b.offset(f)
	if err != nil {
		return err
	}
	if d.IsNull() {
		return pgerr.New(pgerr.NullValueNotAllowed, "frame %s offset must not be null", b.name)
	}
	it.offsets[i] = d
	if b.inRange != nil {
		return nil
	}
	if it.counts[i] = d.Int(); it.counts[i] < 0 {
		return pgerr.New(pgerr.InvalidPrecedingOrFollowingSize, "frame %s offset must not be negative", b.name)
	}
	return nil
}

// peers is the group of the current row.
func (it *windowIter) peers() rowSpan { return it.groupSpan(it.group) }

func (it *windowIter) groupSpan(g int) rowSpan {
	if g+1 < len(it.groups) {
		return rowSpan{int(it.groups[g]), int(it.groups[g+1])}
	}
	return rowSpan{int(it.groups[g]), it.rows.n}
}

// currentFrame is the frame of the current row, exclusion aside. Both ends only
// move forward while a partition passes.
func (it *windowIter) currentFrame(f *frame) (rowSpan, error) {
	if it.frameSet {
		return it.frame, nil
	}
	from, err := it.bound(f, 0, &it.p.start, it.frame.from)
	if err != nil {
		return rowSpan{}, err
	}
	to, err := it.bound(f, 1, &it.p.end, it.frame.to)
	if err != nil {
		return rowSpan{}, err
	}
	it.frame, it.frameSet = rowSpan{from, to}, true
	return it.frame, nil
}

// bound is the first row of the frame (i = 0) or the one behind its last (1);
// last is what it was for the row before.
func (it *windowIter) bound(f *frame, i int, b *windowBound, last int) (int, error) {
	n := it.rows.n
	switch b.kind {
	case plan.UnboundedPreceding:
		return 0, nil
	case plan.UnboundedFollowing:
		return n, nil
	case plan.CurrentRow:
		s := rowSpan{it.at, it.at + 1}
		if it.p.mode != plan.RowsFrame {
			s = it.peers()
		}
		if i == 0 {
			return s.from, nil
		}
		return s.to, nil
	}
	switch it.p.mode {
	case plan.RowsFrame:
		return clampRow(it.at+i, it.counts[i], b.kind, n), nil
	case plan.GroupsFrame:
		g := clampRow(it.group+i, it.counts[i], b.kind, len(it.groups))
		if g == len(it.groups) {
			return n, nil
		}
		return int(it.groups[g]), nil
	}
	return it.rangeBound(f, i, b, last)
}

// clampRow is at moved by an offset, within [0, n].
func clampRow(at int, offset int64, kind plan.BoundKind, n int) int {
	if kind == plan.OffsetPreceding {
		if offset > int64(at) {
			return 0
		}
		return at - int(offset)
	}
	if offset > int64(n-at) {
		return n
	}
	return at + int(offset)
}

// rangeBound moves an end of a RANGE frame with an offset forward. Where a value
// is null only the place of nulls decides, as in update_frameheadpos and
// update_frametailpos of PostgreSQL's nodeWindowAgg.c.
func (it *windowIter) rangeBound(f *frame, i int, b *windowBound, at int) (int, error) {
	k := &it.p.order[0]
	cur := it.orderKey(it.at)[0]
	sub, less := (b.kind == plan.OffsetPreceding) != k.desc, (i == 1) != k.desc
	for ; at < it.rows.n; at++ {
		if err := f.spend(1); err != nil {
			return 0, err
		}
		val := it.orderKey(at)[0]
		if val.IsNull() || cur.IsNull() {
			if i == 0 && !nullBefore(val, cur, k.nullsFirst) || i == 1 && nullBefore(cur, val, k.nullsFirst) {
				break
			}
			continue
		}
		in, err := b.inRange(&f.env.Ctx, val, cur, it.offsets[i], sub, less)
		if err != nil {
			return 0, err
		}
		if in == (i == 0) {
			break
		}
	}
	return at, nil
}

// nullBefore tells that a comes before b, at least one of which is null.
func nullBefore(a, b datum.Datum, nullsFirst bool) bool {
	if nullsFirst {
		return a.IsNull() && !b.IsNull()
	}
	return !a.IsNull() && b.IsNull()
}

// framePieces is the frame without what EXCLUDE takes out, in order.
func (it *windowIter) framePieces(f *frame) ([]rowSpan, error) {
	fr, err := it.currentFrame(f)
	if err != nil {
		return nil, err
	}
	out := it.pieces[:0]
	add := func(s rowSpan) {
		s.from, s.to = max(s.from, fr.from), min(s.to, fr.to)
		if s.from < s.to {
			out = append(out, s)
		}
	}
	hole := it.peers()
	switch it.p.exclude {
	case plan.ExcludeNoOthers:
		add(fr)
		return out, nil
	case plan.ExcludeCurrentRow:
		hole = rowSpan{it.at, it.at + 1}
	}
	add(rowSpan{0, hole.from})
	if it.p.exclude == plan.ExcludeTies {
		add(rowSpan{it.at, it.at + 1})
	}
	add(rowSpan{hole.to, it.rows.n})
	return out, nil
}

// windowAggregate computes an aggregate over the frame. While the frame only
// grows at its end, what came before stays in the state, so that all rows of a
// partition cost one addition each; otherwise it is computed afresh.
func windowAggregate(f *frame, it *windowIter, st *windowState) (datum.Datum, error) {
	pieces, err := it.framePieces(f)
	if err != nil {
		return datum.Null, err
	}
	whole := rowSpan{}
	if it.p.exclude == plan.ExcludeNoOthers && len(pieces) > 0 {
		whole = pieces[0]
	}
	reuse := it.p.exclude == plan.ExcludeNoOthers && st.state != nil && whole.from == st.from && whole.to >= st.to
	if reuse && whole.to == st.to && st.known {
		return st.result, nil
	}
	if reuse {
		pieces = append(it.pieces[:0], rowSpan{st.to, whole.to})
	} else {
		f.release(st.bytes)
		st.bytes, st.state = 0, st.call.agg.newState(st.call.agg.types)
	}
	for _, s := range pieces {
		for i := s.from; i < s.to; i++ {
			it.load(f, i)
			if err := it.accumulate(f, st); err != nil {
				return datum.Null, err
			}
		}
	}
	d, err := st.state.Result(&f.env.Ctx)
	if err != nil {
		return datum.Null, err
	}
	// The state goes on and may change what its result consists of.
	if !d.IsNull() && !d.Inline() {
		if err := f.spend(int64(len(d.Bytes())) / 64); err != nil {
			return datum.Null, err
		}
		d = datum.Clone(d)
	}
	st.from, st.to, st.result, st.known = whole.from, whole.to, d, it.p.exclude == plan.ExcludeNoOthers
	return d, nil
}

// accumulate adds the row in the slots to an aggregate.
func (it *windowIter) accumulate(f *frame, st *windowState) error {
	a := st.call.agg
	if err := f.spend(a.steps); err != nil {
		return err
	}
	if ok, err := pass(f, a.filter); err != nil || !ok {
		return err
	}
	args := it.args[:len(a.args)]
	null, err := evalArgs(f, a.args, args)
	if err != nil || null && a.strict {
		return err
	}
	if a.fn.OrderSensitive { // such collect their input
		for _, d := range args {
			n := datumSize(d)
			st.bytes += n
			if err := f.hold(n); err != nil {
				return err
			}
		}
	}
	return st.state.Add(&f.env.Ctx, args)
}
