package catalog

import (
	"fmt"

	"github.com/tallystick/tallystick/sql/datum"
)

// A range type has two rows, its own and that of its multirange type, which name
// each other by OID. Both types have constructor functions of their names. Those
// are derived from the types wherever functions are looked up, and have no rows;
// but a transaction that looked for functions of a name has to conflict with the
// creation of a range type of that name. An empty row among the functions makes
// it so.

// constructorKey is the row that stands for the constructor functions of a range
// or multirange type. No signature reads like that.
func constructorKey(t *Type) []byte { return rowKey(kindFunc, t.Schema, t.Name, "-") }

// constructs tells that a type has constructor functions.
func (t *Type) constructs() bool { return t.Kind == RangeType || t.Kind == MultirangeType }

// Constructed finds the range or multirange type whose constructor functions
// have a name; nil if there is none. [FuncName] is what has been read to know.
func (c *Catalog) Constructed(schema, name string) *Type {
	if t, ok := c.Type(schema, name); ok && t.constructs() {
		return t
	}
	return nil
}

// PutRange creates a range type together with its multirange type.
func (e *Editor) PutRange(t, multi *Type) error {
	for _, x := range []*Type{multi, t} {
		if err := e.put(constructorKey(x), struct{}{}); err != nil {
			return err
		}
		if err := e.put(typeKey(x.Schema, x.Name), x); err != nil {
			return err
		}
	}
	return e.reload()
}

// DropRange removes a range type and its multirange type.
func (e *Editor) DropRange(t *Type) error {
	multi, ok := e.catalog.UserTypeByOID(t.Multirange)
	if !ok {
		return fmt.Errorf("catalog: range type %s has no multirange type", t.Name)
	}
	for _, x := range []*Type{multi, t} {
		for _, key := range [][]byte{constructorKey(x), typeKey(x.Schema, x.Name)} {
			if err := e.txn.Delete(key); err != nil {
				return err
			}
		}
	}
	return e.reload()
}

// rangeType makes the descriptors of a range type and of its multirange type.
func (r *resolver) rangeType(t *Type) (*datum.Desc, error) {
	sub, err := r.desc(t.BaseOID)
	if err != nil {
		return nil, err
	}
	multi, ok := r.c.typeOID[t.Multirange]
	if !ok {
		return nil, fmt.Errorf("catalog: range type %s has no multirange type", t.Name)
	}
	t.Desc = datum.NewRange(t.OID, t.Name, sub, multi.OID, multi.Name)
	multi.Desc = t.Desc.Multi
	t.key = r.reads(t.key, sub)
	for _, x := range []*Type{t, multi} {
		x.Desc.Schema = shownSchema(x.Schema)
		r.keep(x.Desc, x.Array)
	}
	multi.key = addReads(multi.key, t.key)
	return t.Desc, nil
}
