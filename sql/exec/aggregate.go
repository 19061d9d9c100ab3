package exec

import (
	"fmt"
	"slices"

	"github.com/tallystick/tallystick/sql/builtin"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/plan"
)

// aggProg is one compiled aggregate call.
type aggProg struct {
	fn       *builtin.Func
	newState func([]datum.Type) builtin.AggState
	args     []evalFunc
	types    []datum.Type
	filter   evalFunc
	distinct bool
	kinds    *keyKinds // of the arguments, for DISTINCT
	order    []sortKey // ORDER BY; then, for DISTINCT, the arguments
	strict   bool
	steps    int64
	out      int

	// Of ordered-set aggregates, which take the values of order.
	set      orderedSet
	direct   []evalFunc
	skipNull bool
}

// ordered tells that the input of a group must be kept and sorted first. Where
// the order of its input makes no difference to the aggregate, DISTINCT needs no
// sorting; elsewhere PostgreSQL sorts it by the arguments.
func (a *aggProg) ordered() bool { return len(a.order) > 0 }

type aggregateProg struct {
	child    nodeProg
	groupBy  []evalFunc
	groupOut []int
	kinds    *keyKinds
	aggs     []*aggProg
	sorted   bool
	maxArgs  int
	// saved are the slots that keys and aggregates read, for rows that go to disk;
	// nil if none may.
	saved []int
}

func (c *compiler) aggregate(n *plan.Aggregate) (nodeProg, error) {
	if n.Sets != nil || n.Groupings != nil {
		return c.groupingSets(n)
	}
	p, err := c.plainAggregate(n)
	if err != nil || !c.local {
		return p, err
	}
	b, err := c.batchAggregate(n, p)
	if err != nil || b == nil {
		return p, err
	}
	return b, nil
}

func (c *compiler) plainAggregate(n *plan.Aggregate) (*aggregateProg, error) {
	child, err := c.node(n.Child)
	if err != nil {
		return nil, err
	}
	p := &aggregateProg{child: child, groupOut: n.GroupOut, sorted: n.Sorted}
	if p.groupBy, err = c.exprs(n.GroupBy); err != nil {
		return nil, err
	}
	if c.local {
		p.saved = readsOf(n)
	}
	if p.kinds, err = newKeyKinds(typesOf(n.GroupBy)); err != nil {
		return nil, err
	}
	for i := range n.Aggs {
		a, err := c.agg(&n.Aggs[i])
		if err != nil {
			return nil, err
		}
		p.aggs = append(p.aggs, a)
		p.maxArgs = max(p.maxArgs, len(a.order)+len(a.args))
		c.fills.add(a.out)
	}
	c.fills.add(n.GroupOut...)
	return p, nil
}

// readsOf lists the slots that the keys and aggregates of a node read of its
// input.
func readsOf(n *plan.Aggregate) []int {
	wanted := slotSeen{}.with(n.GroupBy...)
	for i := range n.Aggs {
		a := &n.Aggs[i]
		wanted = wanted.with(a.Args...).with(a.Filter).with(a.Direct...)
		for _, k := range a.OrderBy {
			wanted = wanted.with(k.Expr)
		}
	}
	out := []int{}
	for _, s := range plan.Fills(n.Child) {
		if wanted[s] {
			out = append(out, s)
		}
	}
	return out
}

func (c *compiler) agg(n *plan.Agg) (*aggProg, error) {
	a := &aggProg{fn: n.Func, newState: n.Func.NewState, types: typesOf(n.Args), distinct: n.Distinct,
		strict: n.Func.Strict, steps: max(n.Func.Steps, 1), out: n.Out}
	var err error
	if n.Func.AggKind() != builtin.NormalAgg {
		if a.filter, err = c.optional(n.Filter); err != nil {
			return nil, err
		}
		return a, c.orderedAgg(a, n)
	}
	if a.newState == nil {
		return nil, fmt.Errorf("exec: aggregate %s has no implementation", n.Func.Name)
	}
	if a.args, err = c.exprs(n.Args); err != nil {
		return nil, err
	}
	if a.filter, err = c.optional(n.Filter); err != nil {
		return nil, err
	}
	if a.order, err = c.sortKeys(n.OrderBy); err != nil {
		return nil, err
	}
	if !n.Distinct {
		return a, nil
	}
	if a.kinds, err = newKeyKinds(a.types); err != nil {
		return nil, err
	}
	if n.Func.OrderSensitive || len(a.order) > 0 {
		for i, arg := range n.Args {
			cmp, err := compareOf(arg.Type())
			if err != nil {
				return nil, err
			}
			a.order = append(a.order, sortKey{eval: a.args[i], cmp: cmp})
		}
	}
	return a, nil
}

func (p *aggregateProg) iter() rowIter {
	it := p.newIter()
	it.child = p.child.iter()
	return it
}

func (p *aggregateProg) newIter() *aggregateIter {
	it := &aggregateIter{p: p, key: make([]datum.Datum, len(p.groupBy)), row: make([]datum.Datum, p.maxArgs)}
	it.groups.kinds, it.groups.rows.width = p.kinds, len(p.groupBy)
	return it
}

// aggState is one aggregate of one group.
type aggState struct {
	state builtin.AggState
	seen  *hashTable // DISTINCT without order
	input *rowStore  // ordered: keys, then arguments
}

type aggregateIter struct {
	p      *aggregateProg
	child  rowIter
	key    []datum.Datum
	row    []datum.Datum // scratch: order keys and arguments
	groups hashTable
	states []aggState // len(aggs) per group
	bytes  int64      // accounted for states
	filled bool
	at     int // next group to hand out

	spilled *spilledGroups // what work_mem has no room for; nil = nothing

	// Sorted input: one group at a time.
	pending   bool // a group is at hand: row 0 of groups
	ended     bool
	oldKey    []datum.Datum
	oldStates []aggState
}

func (it *aggregateIter) open(f *frame) error {
	it.forget(f)
	it.spilled.drop(f)
	it.spilled = nil
	it.filled, it.at, it.pending, it.ended = false, 0, false, false
	return it.child.open(f)
}

func (it *aggregateIter) forget(f *frame) {
	it.forgetGroups(f)
}

// forgetGroups empties the groups and keeps their memory.
func (it *aggregateIter) forgetGroups(f *frame) {
	it.groups.reset(f)
	it.releaseStates(f, it.states)
	it.states = it.states[:0]
	f.release(it.bytes)
	it.bytes = 0
}

// releaseStates gives back what the states of groups were accounted with.
func (it *aggregateIter) releaseStates(f *frame, states []aggState) {
	for i := range states {
		if s := states[i].seen; s != nil {
			s.reset(f)
		}
		if s := states[i].input; s != nil {
			s.reset(f)
		}
	}
	clear(states)
}

func (it *aggregateIter) close() {
	it.child.close()
	it.drop()
}

func (it *aggregateIter) drop() {
	it.spilled.drop(nil)
	it.spilled = nil
	it.groups.drop()
	clear(it.states)
	clear(it.oldStates)
	it.states, it.oldStates, it.bytes = it.states[:0], it.oldStates[:0], 0
	clear(it.key)
	clear(it.oldKey)
	clear(it.row)
}

func (it *aggregateIter) next(f *frame) (bool, error) {
	if it.p.sorted && len(it.p.groupBy) > 0 {
		return it.nextSorted(f)
	}
	if !it.filled {
		if err := it.fill(f); err != nil {
			return false, err
		}
		it.filled = true
	}
	return it.nextGroup(f)
}

// nextGroup makes the row of the next group once all input is read.
func (it *aggregateIter) nextGroup(f *frame) (bool, error) {
	if it.spilled != nil && (it.spilled.merged || it.at == it.groups.rows.n) {
		return it.nextSpilled(f)
	}
	if it.at == it.groups.rows.n {
		return false, nil
	}
	it.at++
	n := len(it.p.aggs)
	return true, it.emit(f, it.groups.rows.row(it.at-1), it.states[(it.at-1)*n:it.at*n])
}

// fill reads all input. A query without GROUP BY has its one group even when
// there is no input.
func (it *aggregateIter) fill(f *frame) error {
	if err := it.start(f); err != nil {
		return err
	}
	for {
		ok, err := it.child.next(f)
		if err != nil || !ok {
			return err
		}
		if err := it.take(f); err != nil {
			return err
		}
	}
}

func (it *aggregateIter) start(f *frame) error {
	if len(it.p.groupBy) > 0 {
		return nil
	}
	it.groups.rows.add()
	return it.newGroup(f)
}

// take adds the current row to its group, or to those that go to disk.
func (it *aggregateIter) take(f *frame) error {
	if it.spilled == nil && (len(it.p.groupBy) == 0 || !it.full(f)) {
		return it.takeInMemory(f)
	}
	if _, err := evalArgs(f, it.p.groupBy, it.key); err != nil {
		return err
	}
	if at := it.groups.find(it.key); at >= 0 {
		return it.add(f, at)
	}
	return it.spillRow(f)
}

// takeInMemory adds the current row to its group, a new one if need be.
func (it *aggregateIter) takeInMemory(f *frame) error {
	group := 0
	if len(it.p.groupBy) > 0 {
		if _, err := evalArgs(f, it.p.groupBy, it.key); err != nil {
			return err
		}
		var added bool
		var err error
		if group, added, err = it.groups.addUnique(f, it.key); err != nil {
			return err
		}
		if added {
			if err := it.newGroup(f); err != nil {
				return err
			}
		}
	}
	return it.add(f, group)
}

// stateSize is what a group counts per aggregate, whatever its kind.
const stateSize = 64

func (it *aggregateIter) newGroup(f *frame) error {
	for _, a := range it.p.aggs {
		s := aggState{}
		if a.set == nil {
			s.state = a.newState(a.types)
		}
		switch {
		case a.ordered():
			s.input = &rowStore{width: len(a.order) + len(a.args)}
		case a.distinct:
			s.seen = &hashTable{kinds: a.kinds, rows: rowStore{width: len(a.args)}}
		}
		it.states = append(it.states, s)
	}
	return it.hold(f, stateSize*int64(len(it.p.aggs)))
}

func (it *aggregateIter) hold(f *frame, n int64) error {
	it.bytes += n
	return f.hold(n)
}

// add feeds the current row into the aggregates of a group.
func (it *aggregateIter) add(f *frame, group int) error {
	for i, a := range it.p.aggs {
		if ok, err := pass(f, a.filter); err != nil {
			return err
		} else if !ok {
			continue
		}
		s := &it.states[group*len(it.p.aggs)+i]
		args := it.row[:len(a.args)]
		null, err := evalArgs(f, a.args, args)
		if err != nil {
			return err
		}
		if null && a.strict {
			continue
		}
		switch {
		case s.input != nil:
			row := s.input.add()
			copy(row[len(a.order):], args)
			if err := evalKeys(f, a.order, row); err != nil {
				return err
			}
			if a.skipNull && row[0].IsNull() {
				s.input.pop()
				continue
			}
			if err := s.input.account(f); err != nil {
				return err
			}
			continue
		case s.seen != nil:
			_, added, err := s.seen.addUnique(f, args)
			if err != nil {
				return err
			}
			if !added {
				continue
			}
		}
		if a.fn.OrderSensitive { // such collect their input
			for _, d := range args {
				if err := it.hold(f, datumSize(d)); err != nil {
					return err
				}
			}
		}
		if err := f.spend(a.steps); err != nil {
			return err
		}
		if err := s.state.Add(&f.env.Ctx, args); err != nil {
			return err
		}
	}
	return nil
}

// emit ends a group and fills the slots of its row.
func (it *aggregateIter) emit(f *frame, key []datum.Datum, states []aggState) error {
	if err := f.row(); err != nil {
		return err
	}
	for i, slot := range it.p.groupOut {
		f.slots[slot] = key[i]
	}
	for i, a := range it.p.aggs {
		s := &states[i]
		if a.set != nil {
			d, err := it.resultOfSet(f, a, s)
			if err != nil {
				return err
			}
			f.slots[a.out] = d
			continue
		}
		if s.input != nil {
			if err := it.feedSorted(f, a, s); err != nil {
				return err
			}
		}
		d, err := s.state.Result(&f.env.Ctx)
		if err != nil {
			return err
		}
		f.slots[a.out] = d
	}
	return nil
}

// feedSorted feeds the kept input of one group in its order, equal ones once
// for DISTINCT.
func (it *aggregateIter) feedSorted(f *frame, a *aggProg, s *aggState) error {
	order := sortedOrder(s.input, a.order)
	nk := len(a.order)
	var prev []datum.Datum
	for _, i := range order {
		args := s.input.row(int(i))[nk:]
		if a.distinct && prev != nil && a.kinds.equal(prev, args) {
			continue
		}
		prev = args
		if err := f.spend(a.steps); err != nil {
			return err
		}
		if err := s.state.Add(&f.env.Ctx, args); err != nil {
			return err
		}
	}
	s.input.reset(f)
	return nil
}

// sortedOrder returns the places of the rows of a store that begin with the
// values of keys, sorted; equal rows stay in their order.
func sortedOrder(rows *rowStore, keys []sortKey) []int32 {
	order := make([]int32, rows.n)
	for i := range order {
		order[i] = int32(i)
	}
	sortRows(rows, keys, order)
	return order
}

func sortRows(rows *rowStore, keys []sortKey, order []int32) {
	slices.SortFunc(order, func(a, b int32) int {
		if c := compareKeys(keys, rows.row(int(a)), rows.row(int(b))); c != 0 {
			return c
		}
		return int(a) - int(b)
	})
}

// nextSorted makes the next group of input whose groups come together.
func (it *aggregateIter) nextSorted(f *frame) (bool, error) {
	for !it.ended {
		ok, err := it.child.next(f)
		if err != nil {
			return false, err
		}
		if !ok {
			it.ended = true
			if it.pending {
				return true, it.emit(f, it.groups.rows.row(0), it.states)
			}
			return false, nil
		}
		if _, err := evalArgs(f, it.p.groupBy, it.key); err != nil {
			return false, err
		}
		if it.pending && it.p.kinds.equal(it.groups.rows.row(0), it.key) {
			if err := it.add(f, 0); err != nil {
				return false, err
			}
			continue
		}
		if it.pending {
			return true, it.turn(f)
		}
		if err := it.startGroup(f); err != nil {
			return false, err
		}
	}
	return false, nil
}

// turn starts the next group with the current row and then hands out the group
// before it: the output must not fill slots that the current row still needs.
func (it *aggregateIter) turn(f *frame) error {
	it.oldKey = append(it.oldKey[:0], it.groups.rows.row(0)...)
	it.states, it.oldStates = it.oldStates, it.states
	oldBytes := it.bytes
	it.bytes = 0
	if err := it.startGroup(f); err != nil {
		return err
	}
	err := it.emit(f, it.oldKey, it.oldStates)
	it.releaseStates(f, it.oldStates)
	it.oldStates = it.oldStates[:0]
	f.release(oldBytes)
	return err
}

// startGroup begins a group with the current row, whose key is in it.key.
func (it *aggregateIter) startGroup(f *frame) error {
	it.groups.reset(f)
	if err := it.groups.rows.addRow(f, it.key); err != nil {
		return err
	}
	if err := it.newGroup(f); err != nil {
		return err
	}
	it.pending = true
	return it.add(f, 0)
}
