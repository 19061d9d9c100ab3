package pgcatalog

import (
	"slices"

	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/plan"
)

// SequenceRelation is the relation of one row that a sequence is.
func SequenceRelation(t *catalog.Table) *plan.Virtual {
	v := &plan.Virtual{OID: t.OID, Schema: t.Schema, Name: t.Name}
	for _, c := range t.Columns {
		v.Columns = append(v.Columns, plan.VirtualColumn{Name: c.Name, Type: c.Type})
	}
	v.Rows = func(env any, emit func(row []datum.Datum) error) error {
		e := env.(*Env)
		if e.SequenceState == nil {
			return nil
		}
		last, called, err := e.SequenceState(t.Sequence)
		if err != nil {
			return err
		}
		return emit([]datum.Datum{datum.Int(last), datum.Int(0), datum.Bool(called)})
	}
	return v
}

// stored is a stored relation with the defaults of its serial columns.
func (env *Env) stored(t *catalog.Table) *class {
	c := storedClass(t)
	for i := range t.Columns {
		col := &t.Columns[i]
		if col.Sequence == 0 || col.Identity != "" || col.Dropped {
			continue
		}
		if q, ok := env.Catalog.SequenceByOID(col.Sequence); ok {
			name := datum.QuoteIdent(q.Name)
			if !slices.Contains(env.Path, q.Schema) {
				name = datum.QuoteIdent(q.Schema) + "." + name
			}
			c.cols[i].def = "nextval('" + name + "'::regclass)"
		}
	}
	return c
}

// hasIndex tells that a table has an index that clients see.
func hasIndex(t *catalog.Table) bool {
	for i := range t.Indexes {
		if !t.Indexes[i].Hidden {
			return true
		}
	}
	return false
}

func eachSequence(env *Env, f func(*catalog.Table, *catalog.SequenceDef) error) error {
	for _, t := range env.Catalog.Tables() {
		if t.Kind == catalog.Sequence {
			if err := f(t, t.Sequence); err != nil {
				return err
			}
		}
	}
	return nil
}

func sequenceRows(env *Env, next func() *row, emit func() error) error {
	return eachSequence(env, func(t *catalog.Table, s *catalog.SequenceDef) error {
		next().oid("seqrelid", t.OID).oid("seqtypid", s.TypeOID).int("seqstart", s.Start).int("seqincrement", s.Increment).
			int("seqmax", s.Max).int("seqmin", s.Min).int("seqcache", s.Cache).bool("seqcycle", s.Cycle)
		return emit()
	})
}

func sequenceViews(env *Env, next func() *row, emit func() error) error {
	return eachSequence(env, func(t *catalog.Table, s *catalog.SequenceDef) error {
		r := next().str("schemaname", t.Schema).str("sequencename", t.Name).str("sequenceowner", t.Owner).oid("data_type", s.TypeOID).
			int("start_value", s.Start).int("min_value", s.Min).int("max_value", s.Max).int("increment_by", s.Increment).
			bool("cycle", s.Cycle).int("cache_size", s.Cache)
		if env.SequenceState != nil {
			last, called, err := env.SequenceState(s)
			if err != nil {
				return err
			}
			if called {
				r.int("last_value", last)
			}
		}
		return emit()
	})
}

// named answers the functions that take names.
func (env *Env) named(function string, path []string, args ...string) (string, bool) {
	if function != "pg_get_serial_sequence" || len(args) != 2 {
		return "", false
	}
	oid, err := env.RegOID(datum.RegClass, args[0], path)
	if err != nil {
		return "", false
	}
	t, ok := env.Catalog.TableByOID(oid)
	if !ok {
		return "", false
	}
	i := t.Column(args[1])
	for _, q := range env.Catalog.Tables() {
		if q.Kind == catalog.Sequence && q.Sequence.OwnerTable == t.OID && q.Sequence.OwnerColumn == i {
			return datum.QuoteIdent(q.Schema) + "." + datum.QuoteIdent(q.Name), true
		}
	}
	return "", false
}
