package catalog

import (
	"cmp"
	"maps"
	"slices"

	"github.com/tallystick/tallystick/mvcc"
	"github.com/tallystick/tallystick/mvcc/rwset"
	"github.com/tallystick/tallystick/sql/datum"
)

// The schemas that always exist.
const (
	Blockchain  = "blockchain" // replicated, written by contracts only
	Private     = "private"    // of this node's organization
	Provenance  = "provenance" // the twins of all tables, over all versions
	PgCatalog   = "pg_catalog" // computed
	Information = "information_schema"
)

type qualified struct{ schema, name string }

// Catalog is an immutable picture of all objects as of one snapshot.
type Catalog struct {
	// Version is that of the newest change of the catalog that it shows.
	Version mvcc.Version

	schemas  map[string]*Schema
	tables   map[qualified]*Table
	indexes  map[qualified]*Table // index name -> its table
	tableOID map[OID]*Table
	funcs    map[qualified][]*Func // by signature
	funcOID  map[OID]*Func
	nextOID  OID

	types   map[qualified]*Type
	typeOID map[OID]*Type
	rowOID  map[OID]*Table      // by the OID of the row type
	arrayOf map[OID]OID         // element of the array types of users
	descs   map[OID]*datum.Desc // of all types that are not built in

	comments map[commentOf]*Comment

	temp string // the schema that pg_temp means
}

// Table finds a table or view.
func (c *Catalog) Table(schema, name string) (*Table, bool) {
	t, ok := c.tables[c.named(schema, name)]
	return t, ok
}

// TableByOID finds a table or view.
func (c *Catalog) TableByOID(oid OID) (*Table, bool) {
	t, ok := c.tableOID[oid]
	return t, ok
}

// IndexTable finds the table that an index of this name belongs to.
func (c *Catalog) IndexTable(schema, name string) (*Table, bool) {
	t, ok := c.indexes[c.named(schema, name)]
	return t, ok
}

// Funcs returns the functions of one name, ordered by signature.
func (c *Catalog) Funcs(schema, name string) []*Func {
	return c.funcs[c.named(schema, name)]
}

// FuncByOID finds a function.
func (c *Catalog) FuncByOID(oid OID) (*Func, bool) {
	f, ok := c.funcOID[oid]
	return f, ok
}

// Schema finds a schema.
func (c *Catalog) Schema(name string) (*Schema, bool) {
	if name == Temp && c.temp != "" {
		name = c.temp
	}
	s, ok := c.schemas[name]
	return s, ok
}

// Schemas lists the schemas by name.
func (c *Catalog) Schemas() []*Schema {
	return sorted(c.schemas, func(a, b *Schema) int { return cmp.Compare(a.Name, b.Name) })
}

// Tables lists tables and views by schema and name.
func (c *Catalog) Tables() []*Table {
	return sorted(c.tables, func(a, b *Table) int {
		return cmp.Or(cmp.Compare(a.Schema, b.Schema), cmp.Compare(a.Name, b.Name))
	})
}

// AllFuncs lists all functions by OID.
func (c *Catalog) AllFuncs() []*Func {
	return sorted(c.funcOID, func(a, b *Func) int { return cmp.Compare(a.OID, b.OID) })
}

// sorted returns the values of m in the order of less, which must be total.
func sorted[K comparable, V any](m map[K]V, order func(a, b V) int) []V {
	out := make([]V, 0, len(m))
	for _, v := range m {
		out = append(out, v)
	}
	slices.SortFunc(out, order)
	return out
}

// MissingTable is what a transaction has read that looked for a table and did
// not find it.
func MissingTable(schema, name string) []rwset.Read {
	return pointRead(relationKey(schema, name))
}

// FuncName is what a transaction has read that looked a function name up: all
// functions of that name, found or not.
func FuncName(schema, name string) []rwset.Read {
	prefix := funcPrefix(schema, name)
	return []rwset.Read{{Span: rwset.Span{Start: prefix, End: rwset.PrefixEnd(prefix)}}}
}

func pointRead(key []byte) []rwset.Read {
	return []rwset.Read{{Span: rwset.Point(key)}}
}

// With is the catalog with one table replaced by a changed copy of it, for
// asking what the change would break.
func (c *Catalog) With(t *Table) *Catalog {
	next := *c
	next.tables, next.tableOID = maps.Clone(c.tables), maps.Clone(c.tableOID)
	next.tables[qualified{t.Schema, t.Name}] = t
	next.tableOID[t.OID] = t
	return &next
}

func (c *Catalog) addTable(t *Table) {
	c.tables[qualified{t.Schema, t.Name}] = t
	c.tableOID[t.OID] = t
	if t.RowType != 0 {
		c.rowOID[t.RowType] = t
		c.arrayOf[t.RowArray] = t.RowType
	}
	for i := range t.Indexes {
		c.indexes[qualified{t.Schema, t.Indexes[i].Name}] = t
	}
}

func (c *Catalog) addType(t *Type) {
	c.types[qualified{t.Schema, t.Name}] = t
	c.typeOID[t.OID] = t
	c.arrayOf[t.Array] = t.OID
}

func (c *Catalog) addFunc(f *Func) {
	q := qualified{f.Schema, f.Name}
	c.funcs[q] = append(c.funcs[q], f)
	c.funcOID[f.OID] = f
}
