package pgcatalog

import (
	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
)

// lookup finds relations without going through all of them: the information
// functions are called once per row of a catalog query.
type lookup struct {
	relations   map[datum.OID]relationName // indexes too
	names       map[relationName]datum.OID
	indexes     map[datum.OID]tableIndex
	constraints map[datum.OID]*constraint
}

type relationName struct{ schema, name string }

type tableIndex struct {
	table *catalog.Table
	index *catalog.Index
}

// lookup returns the index over the catalog of this query. An Env belongs to
// one query and so to one goroutine.
func (env *Env) lookup() *lookup {
	if env.found != nil {
		return env.found
	}
	l := &lookup{
		relations: map[datum.OID]relationName{}, names: map[relationName]datum.OID{},
		indexes: map[datum.OID]tableIndex{}, constraints: map[datum.OID]*constraint{},
	}
	add := func(oid datum.OID, schema, name string) {
		n := relationName{schema, name}
		l.relations[oid], l.names[n] = n, oid
	}
	// The callbacks never fail.
	_ = eachClass(env, func(c *class) error { add(c.oid, c.schema, c.name); return nil })
	_ = eachIndex(env, func(t *catalog.Table, idx *catalog.Index) error {
		add(idx.OID, t.Schema, idx.Name)
		l.indexes[idx.OID] = tableIndex{t, idx}
		return nil
	})
	_ = eachConstraint(env, func(c *constraint) error { l.constraints[c.oid] = c; return nil })
	env.found = l
	return l
}
