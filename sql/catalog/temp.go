package catalog

import (
	"strings"

	"github.com/tallystick/tallystick/mvcc"
	"github.com/tallystick/tallystick/mvcc/rwset"
)

// Temporary tables belong to one session. They are objects of the private store
// in a schema of the session's own, pg_temp_N; the session itself calls it
// pg_temp, which its catalog resolves (WithTemp).

// Temp is the name by which a session finds its temporary objects.
const Temp = "pg_temp"

const tempPrefix = "pg_temp_"

// TempSchema is the name of the schema of session number n.
func TempSchema(n string) string { return tempPrefix + n }

// IsTemp tells that a schema holds the temporary objects of some session.
func IsTemp(schema string) bool { return strings.HasPrefix(schema, tempPrefix) }

// IsLocal tells that what is in a schema lies in the private store.
func IsLocal(schema string) bool { return schema == Private || IsTemp(schema) || schema == Temp }

// WithTemp is the catalog as the session sees it whose temporary objects are in
// a schema.
func (c *Catalog) WithTemp(schema string) *Catalog {
	if c.temp == schema {
		return c
	}
	next := *c
	next.temp = schema
	return &next
}

// TempSchema is the schema that pg_temp means; "" for a session without
// temporary objects.
func (c *Catalog) TempSchema() string { return c.temp }

// named is a qualified name with pg_temp resolved.
func (c *Catalog) named(schema, name string) qualified {
	if schema == Temp && c.temp != "" {
		schema = c.temp
	}
	return qualified{schema, name}
}

// Temporary tells that the relation is a temporary one.
func (t *Table) Temporary() bool { return IsTemp(t.Schema) }

// EraseTemp deletes the temporary objects that which selects, of a session that
// has ended, with all their rows. c is the private catalog that txn sees.
func EraseTemp(txn *mvcc.Txn, c *Catalog, which func(schema string) bool) error {
	found := false
	erase := func(key []byte) error {
		found = true
		return txn.Delete(key)
	}
	for _, t := range c.Tables() {
		if !IsTemp(t.Schema) || !which(t.Schema) {
			continue
		}
		if err := eraseRows(txn, t.OID); err != nil {
			return err
		}
		if err := erase(relationKey(t.Schema, t.Name)); err != nil {
			return err
		}
	}
	for _, t := range c.Types() {
		if IsTemp(t.Schema) && which(t.Schema) {
			if err := erase(typeKey(t.Schema, t.Name)); err != nil {
				return err
			}
			if t.constructs() {
				if err := erase(constructorKey(t)); err != nil {
					return err
				}
			}
		}
	}
	for _, f := range c.AllFuncs() {
		if IsTemp(f.Schema) && which(f.Schema) {
			if err := erase(funcKey(f)); err != nil {
				return err
			}
		}
	}
	for _, s := range c.Schemas() {
		if IsTemp(s.Name) && which(s.Name) {
			if err := erase(rowKey(kindSchema, s.Name)); err != nil {
				return err
			}
		}
	}
	if !found {
		return nil
	}
	return txn.Put(versionKey, nil)
}

// eraseRows deletes everything that is stored of a table.
func eraseRows(txn *mvcc.Txn, table OID) error {
	prefix := Prefix(table, 0)[:4]
	it := txn.Scan(rwset.Span{Start: prefix, End: rwset.PrefixEnd(prefix)}, false, mvcc.ReadUnrecorded)
	var keys [][]byte
	for it.Next() {
		keys = append(keys, append([]byte(nil), it.Key()...))
	}
	if err := it.Close(); err != nil {
		return err
	}
	for _, k := range keys {
		if err := txn.Delete(k); err != nil {
			return err
		}
	}
	return nil
}
