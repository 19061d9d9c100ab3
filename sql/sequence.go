package sql

import (
	"encoding/binary"
	"fmt"
	"sync"

	"github.com/tallystick/tallystick/sql/builtin"
	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// sequences are the states of all sequences. As in PostgreSQL they are outside
// of transactions: a number that was given out is gone. A write sets so many
// numbers aside that a crash may skip; an orderly end gives them back.
type sequences struct {
	private *Private
	mu      sync.Mutex
	states  map[catalog.OID]*sequenceState // by SequenceDef.StateOID
}

// sequenceState is the state of one sequence. Last was given out if called, else
// it is the next.
type sequenceState struct {
	last   int64
	called bool
	ahead  int // how many more numbers the stored state covers
	dirty  bool
}

// sequenceAhead is how many numbers one write covers (SEQ_LOG_VALS).
const sequenceAhead = 32

func sequenceKey(state catalog.OID) []byte {
	return binary.BigEndian.AppendUint32(catalog.Prefix(counterTable, sequenceCounter), uint32(state))
}

// state finds the state of a sequence; the lock is held.
func (q *sequences) state(def *catalog.SequenceDef) (*sequenceState, error) {
	if st, ok := q.states[def.StateOID]; ok {
		return st, nil
	}
	st := &sequenceState{last: def.Initial}
	value, found, err := q.private.get(sequenceKey(def.StateOID))
	if err != nil {
		return nil, err
	}
	if found {
		if len(value) != 9 {
			return nil, fmt.Errorf("sql: damaged sequence state %x", value)
		}
		st.last, st.called = int64(binary.BigEndian.Uint64(value)), value[8] != 0
	}
	q.states[def.StateOID] = st
	return st, nil
}

func (q *sequences) store(state catalog.OID, last int64, called bool) error {
	value := binary.BigEndian.AppendUint64(nil, uint64(last))
	value = append(value, 0)
	if called {
		value[8] = 1
	}
	return q.private.put(sequenceKey(state), value)
}

// advance is the number after last: false if the sequence has reached its end.
func advance(def *catalog.SequenceDef, last int64) (int64, bool) {
	next := last + def.Increment
	over := def.Increment > 0 && (next > def.Max || next < last)
	under := def.Increment < 0 && (next < def.Min || next > last)
	switch {
	case !over && !under:
		return next, true
	case !def.Cycle:
		return 0, false
	case over:
		return def.Min, true
	}
	return def.Max, true
}

// next gives out a number.
func (q *sequences) next(t *catalog.Table) (int64, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	def := t.Sequence
	st, err := q.state(def)
	if err != nil {
		return 0, err
	}
	value := st.last
	if st.called {
		var ok bool
		if value, ok = advance(def, st.last); !ok {
			word, limit := "maximum", def.Max
			if def.Increment < 0 {
				word, limit = "minimum", def.Min
			}
			return 0, pgerr.New(errSequenceLimit, "nextval: reached %s value of sequence \"%s\" (%d)", word, t.Name, limit)
		}
	}
	if st.ahead == 0 {
		far, n := value, 0
		for n < sequenceAhead {
			further, ok := advance(def, far)
			if !ok || def.Cycle && further != far+def.Increment {
				break
			}
			far, n = further, n+1
		}
		if err := q.store(def.StateOID, far, true); err != nil {
			return 0, err
		}
		st.ahead = n
	} else {
		st.ahead--
	}
	st.last, st.called, st.dirty = value, true, true
	return value, nil
}

// errSequenceLimit is sequence_generator_limit_exceeded.
const errSequenceLimit pgerr.Code = "2200H"

// set is setval.
func (q *sequences) set(t *catalog.Table, value int64, called bool) error {
	def := t.Sequence
	if value < def.Min || value > def.Max {
		return pgerr.New(pgerr.NumericValueOutOfRange, "setval: value %d is out of bounds for sequence \"%s\" (%d..%d)", value, t.Name, def.Min, def.Max)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.store(def.StateOID, value, called); err != nil {
		return err
	}
	q.states[def.StateOID] = &sequenceState{last: value, called: called}
	return nil
}

// peek tells the state without changing it.
func (q *sequences) peek(def *catalog.SequenceDef) (last int64, called bool, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	st, err := q.state(def)
	if err != nil {
		return 0, false, err
	}
	return st.last, st.called, nil
}

// flush stores the exact states.
func (q *sequences) flush() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	for state, st := range q.states { // any order: each has a row of its own
		if !st.dirty || st.ahead == 0 {
			continue
		}
		if err := q.store(state, st.last, st.called); err != nil {
			return err
		}
		st.ahead, st.dirty = 0, false
	}
	return nil
}

// sessionSequences is what a session remembers for currval and lastval.
type sessionSequences struct {
	current map[catalog.OID]int64
	last    catalog.OID
}

// sequenceFunctions are nextval and its like over a catalog.
func (s *Session) sequenceFunctions(c *catalog.Catalog, readOnly bool) *builtin.Sequences {
	p := s.engine.private
	if p == nil {
		return nil
	}
	mem := &s.sequences
	find := func(oid datum.OID) (*catalog.Table, error) {
		if t, ok := c.SequenceByOID(oid); ok {
			return t, nil
		}
		if t, ok := c.TableByOID(oid); ok {
			return nil, pgerr.New(pgerr.WrongObjectType, "\"%s\" is not a sequence", t.Name)
		}
		return nil, pgerr.New(pgerr.UndefinedTable, "could not open relation with OID %d", oid)
	}
	write := func(function string, oid datum.OID) (*catalog.Table, error) {
		t, err := find(oid)
		if err == nil && readOnly {
			err = pgerr.New(pgerr.ReadOnlySQLTransaction, "cannot execute %s in a read-only transaction", function)
		}
		return t, err
	}
	remember := func(oid catalog.OID, v int64) {
		if mem.current == nil {
			mem.current = map[catalog.OID]int64{}
		}
		mem.current[oid] = v
	}
	current := func(oid datum.OID) (int64, error) {
		t, err := find(oid)
		if err != nil {
			return 0, err
		}
		v, ok := mem.current[oid]
		if !ok {
			return 0, pgerr.New(pgerr.ObjectNotInPrerequisiteState, "currval of sequence \"%s\" is not yet defined in this session", t.Name)
		}
		return v, nil
	}
	return &builtin.Sequences{
		Next: func(oid datum.OID) (int64, error) {
			t, err := write("nextval()", oid)
			if err != nil {
				return 0, err
			}
			v, err := p.sequences.next(t)
			if err == nil {
				remember(oid, v)
				mem.last = oid
			}
			return v, err
		},
		Current: current,
		Last: func() (int64, error) {
			if _, known := c.SequenceByOID(mem.last); !known {
				return 0, pgerr.New(pgerr.ObjectNotInPrerequisiteState, "lastval is not yet defined in this session")
			}
			v, ok := mem.current[mem.last]
			if !ok {
				return 0, pgerr.New(pgerr.ObjectNotInPrerequisiteState, "lastval is not yet defined in this session")
			}
			return v, nil
		},
		Set: func(oid datum.OID, value int64, called bool) error {
			t, err := write("setval()", oid)
			if err != nil {
				return err
			}
			if err := p.sequences.set(t, value, called); err != nil {
				return err
			}
			if called {
				remember(oid, value)
			}
			return nil
		},
	}
}
