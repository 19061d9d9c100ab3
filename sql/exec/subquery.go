package exec

import (
	"fmt"

	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
	"github.com/tallystick/tallystick/sql/plan"
)

// subState is what one subquery keeps during an execution.
type subState struct {
	it   rowIter
	done bool // value, row or set are computed and hold for the execution

	value datum.Datum
	row   []datum.Datum // RowSub
	table *hashTable    // hashed ANY, and the rows of an unhashed one
	null  bool          // a row of a hashed ANY is null
	key   [1]datum.Datum
}

// reset forgets results and keeps the iterator.
func (s *subState) reset() {
	s.done, s.value, s.null = false, datum.Datum{}, false
	clear(s.row)
	if s.table != nil {
		s.table.drop()
	}
}

func (s *subState) close() {
	if s.it != nil {
		s.it.close()
	}
}

// subProg is a compiled subquery.
type subProg struct {
	plan   nodeProg
	kind   plan.SubqueryKind
	id     int
	out    []int
	once   bool // not correlated
	test   evalFunc
	hash   evalFunc
	kinds  *keyKinds
	elem   *datum.Desc // ArraySub: of the result
	nested bool        // ArraySub: the rows are arrays
}

func (c *compiler) subquery(e *plan.Subquery) (evalFunc, error) {
	node, err := c.node(e.Plan)
	if err != nil {
		return nil, err
	}
	s := &subProg{plan: node, kind: e.Kind, id: e.ID, out: e.Out, once: !e.Correlated}
	if s.test, err = c.optional(e.Test); err != nil {
		return nil, err
	}
	if e.Hash != nil {
		if s.hash, err = c.expr(e.Hash); err != nil {
			return nil, err
		}
		if s.kinds, err = newKeyKinds([]datum.Type{e.Hash.Type()}); err != nil {
			return nil, err
		}
	}
	switch e.Kind {
	case plan.ScalarSub:
		return s.cached(s.scalar), nil
	case plan.ExistsSub:
		return s.cached(s.exists), nil
	case plan.ArraySub:
		s.elem = elemOf(e.Type())
		s.nested = slotType(e.Plan, e.Out[0]).IsArray()
		return s.cached(s.array), nil
	case plan.RowSub:
		return s.rowValue, nil
	case plan.AnySub, plan.AllSub:
		if s.hash != nil && e.Kind == plan.AnySub {
			return s.hashedAny, nil
		}
		if s.test == nil {
			return nil, fmt.Errorf("exec: subquery %d has no test", e.ID)
		}
		return s.quantified, nil
	}
	return nil, fmt.Errorf("exec: subquery of kind %d", e.Kind)
}

// open starts the subquery's rows. A subquery never runs inside itself: calls of
// functions have frames of their own.
func (s *subProg) open(f *frame) (*subState, error) {
	st := &f.subs[s.id]
	if st.it == nil {
		st.it = s.plan.iter()
	}
	return st, st.it.open(f)
}

// cached keeps the value of an uncorrelated subquery.
func (s *subProg) cached(run evalFunc) evalFunc {
	if !s.once {
		return run
	}
	return func(f *frame) (datum.Datum, error) {
		st := &f.subs[s.id]
		if st.done {
			return st.value, nil
		}
		d, err := run(f)
		if err == nil {
			st.value, st.done = d, true
			st.close()
		}
		return d, err
	}
}

func (s *subProg) scalar(f *frame) (datum.Datum, error) {
	st, err := s.open(f)
	if err != nil {
		return datum.Null, err
	}
	ok, err := st.it.next(f)
	if err != nil || !ok {
		return datum.Null, err
	}
	d := f.slots[s.out[0]]
	if err := s.noMore(f, st); err != nil {
		return datum.Null, err
	}
	return d, nil
}

// noMore raises 21000 if there is another row.
func (s *subProg) noMore(f *frame, st *subState) error {
	more, err := st.it.next(f)
	if err == nil && more {
		return pgerr.New(pgerr.CardinalityViolation, "more than one row returned by a subquery used as an expression")
	}
	return err
}

func (s *subProg) exists(f *frame) (datum.Datum, error) {
	st, err := s.open(f)
	if err != nil {
		return datum.Null, err
	}
	ok, err := st.it.next(f)
	if err != nil {
		return datum.Null, err
	}
	if ok {
		st.it.close() // not read further; the footprint ends here
	}
	return datum.Bool(ok), nil
}

func (s *subProg) array(f *frame) (datum.Datum, error) {
	st, err := s.open(f)
	if err != nil {
		return datum.Null, err
	}
	vals, held := make([]datum.Datum, 0, 8), int64(0)
	defer func() { f.release(held) }()
	for {
		ok, err := st.it.next(f)
		if err != nil {
			return datum.Null, err
		}
		if !ok {
			break
		}
		d := f.slots[s.out[0]]
		vals = append(vals, d)
		held += datumSize(d)
		if err := f.hold(datumSize(d)); err != nil {
			return datum.Null, err
		}
	}
	if s.nested {
		return nestArrays(s.elem, vals)
	}
	return datum.MakeArray(s.elem, vals), nil
}

// rowValue fills the slots of Out with the one row of the subquery, or with
// nulls. Its own value is true if there was a row, else null.
func (s *subProg) rowValue(f *frame) (datum.Datum, error) {
	st := &f.subs[s.id]
	if !st.done || !s.once {
		var err error
		if st, err = s.open(f); err != nil {
			return datum.Null, err
		}
		ok, err := st.it.next(f)
		if err != nil {
			return datum.Null, err
		}
		st.row = resize(st.row, len(s.out))
		st.value = datum.Null
		for i, slot := range s.out {
			st.row[i] = datum.Null
			if ok {
				st.row[i] = f.slots[slot]
			}
		}
		if ok {
			st.value = datum.Bool(true)
			if err := s.noMore(f, st); err != nil {
				return datum.Null, err
			}
		}
		st.done = true
	}
	for i, slot := range s.out {
		f.slots[slot] = st.row[i]
	}
	return st.value, nil
}

// hashedAny is x = ANY (subquery) with the rows in a hash table.
func (s *subProg) hashedAny(f *frame) (datum.Datum, error) {
	st := &f.subs[s.id]
	if !st.done || !s.once {
		var err error
		if st, err = s.fill(f); err != nil {
			return datum.Null, err
		}
	}
	x, err := s.hash(f)
	if err != nil {
		return datum.Null, err
	}
	if st.table.keys == 0 && !st.null {
		return datum.Bool(false), nil
	}
	if x.IsNull() {
		return datum.Null, nil
	}
	if err := f.spend(1); err != nil {
		return datum.Null, err
	}
	st.key[0] = x
	if st.table.find(st.key[:]) >= 0 {
		return datum.Bool(true), nil
	}
	if st.null {
		return datum.Null, nil
	}
	return datum.Bool(false), nil
}

// fill reads the subquery into its hash table.
func (s *subProg) fill(f *frame) (*subState, error) {
	st, err := s.open(f)
	if err != nil {
		return nil, err
	}
	if st.table == nil {
		st.table = &hashTable{}
	}
	st.table.kinds, st.table.rows.width = s.kinds, 1
	st.table.reset(f)
	st.null = false
	for {
		ok, err := st.it.next(f)
		if err != nil {
			return nil, err
		}
		if !ok {
			st.done = true
			return st, nil
		}
		if st.key[0] = f.slots[s.out[0]]; st.key[0].IsNull() {
			st.null = true
			continue
		}
		if _, _, err := st.table.addUnique(f, st.key[:]); err != nil {
			return nil, err
		}
	}
}

// quantified is ANY or ALL with a test over the slots of Out. The rows of an
// uncorrelated subquery are kept.
func (s *subProg) quantified(f *frame) (datum.Datum, error) {
	if s.once {
		return s.quantifiedKept(f)
	}
	st, err := s.open(f)
	if err != nil {
		return datum.Null, err
	}
	decisive := s.kind == plan.AnySub
	result := datum.Bool(!decisive)
	for {
		ok, err := st.it.next(f)
		if err != nil {
			return datum.Null, err
		}
		if !ok {
			return result, nil
		}
		d, err := s.test(f)
		if err != nil {
			return datum.Null, err
		}
		if d.IsNull() {
			result = datum.Null
		} else if d.Bool() == decisive {
			st.it.close()
			return d, nil
		}
	}
}

func (s *subProg) quantifiedKept(f *frame) (datum.Datum, error) {
	st := &f.subs[s.id]
	if !st.done {
		var err error
		if st, err = s.open(f); err != nil {
			return datum.Null, err
		}
		if st.table == nil {
			st.table = &hashTable{}
		}
		st.table.rows.width = len(s.out)
		st.table.rows.reset(f)
		for {
			ok, err := st.it.next(f)
			if err != nil {
				return datum.Null, err
			}
			if !ok {
				break
			}
			if err := st.table.rows.addSlots(f, s.out); err != nil {
				return datum.Null, err
			}
		}
		st.done = true
	}
	decisive := s.kind == plan.AnySub
	result := datum.Bool(!decisive)
	for i := range st.table.rows.n {
		st.table.rows.restore(f, i, 0, s.out)
		if err := f.row(); err != nil {
			return datum.Null, err
		}
		d, err := s.test(f)
		if err != nil {
			return datum.Null, err
		}
		if d.IsNull() {
			result = datum.Null
		} else if d.Bool() == decisive {
			return d, nil
		}
	}
	return result, nil
}
