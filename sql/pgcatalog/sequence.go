package pgcatalog

import (
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
			c.cols[i].def = "nextval('" + datum.QuoteIdent(q.Schema) + "." + datum.QuoteIdent(q.Name) + "'::regclass)"
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
