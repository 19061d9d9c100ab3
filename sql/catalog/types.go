package catalog

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/tallystick/tallystick/mvcc/rwset"
	"github.com/tallystick/tallystick/sql/datum"
)

// TypeKind is pg_type.typtype of a user-defined type.
type TypeKind string

// The kinds of types that have a catalog row of their own. The row type of a
// table or view stands in the table's row.
const (
	EnumType      TypeKind = "e"
	DomainType    TypeKind = "d"
	CompositeType TypeKind = "c"
	RangeType     TypeKind = "r"
	// MultirangeType has a row beside that of its range type.
	MultirangeType TypeKind = "m"
)

// Type is a user-defined type.
type Type struct {
	OID    OID
	Array  OID // of its array type
	Schema string
	Name   string
	Kind   TypeKind
	Owner  string
	// Labels of an enum in sort order.
	Labels []datum.EnumLabel `json:",omitempty"`
	// BaseOID and BaseMod are what a domain is based on; BaseOID is the subtype of
	// a range type, and the range type of a multirange type.
	BaseOID OID    `json:",omitempty"`
	BaseMod int32  `json:",omitempty"`
	NotNull bool   `json:",omitempty"`
	Default string `json:",omitempty"`
	// Checks of a domain; VALUE stands for the value.
	Checks []Check `json:",omitempty"`
	// Relation is the OID of a composite type in pg_class, Fields its attributes.
	Relation OID      `json:",omitempty"`
	Fields   []Column `json:",omitempty"`
	// Multirange is the OID of the multirange type of a range type, SubtypeDiff
	// that of the function which subtracts bounds, 0 if there is none.
	Multirange  OID `json:",omitempty"`
	SubtypeDiff OID `json:",omitempty"`

	Desc *datum.Desc `json:"-"`

	key []rwset.Read
}

// Reads is what a transaction that resolved the type has read.
func (t *Type) Reads() []rwset.Read { return t.key }

func typeKey(schema, name string) []byte { return rowKey(kindType, schema, name) }

// MissingType is what a transaction has read that looked for a type and did not
// find it: neither a type nor a relation of that name.
func MissingType(schema, name string) []rwset.Read {
	return append(pointRead(typeKey(schema, name)), pointRead(relationKey(schema, name))...)
}

// Type finds an enum, domain, composite, range or multirange type by name; not the row type of a
// table.
func (c *Catalog) Type(schema, name string) (*Type, bool) {
	t, ok := c.types[c.named(schema, name)]
	return t, ok
}

// UserTypeByOID finds a type that has a row of its own.
func (c *Catalog) UserTypeByOID(oid OID) (*Type, bool) {
	t, ok := c.typeOID[oid]
	return t, ok
}

// Types lists the user-defined types by schema and name.
func (c *Catalog) Types() []*Type {
	return sorted(c.types, func(a, b *Type) int {
		return cmp.Or(cmp.Compare(a.Schema, b.Schema), cmp.Compare(a.Name, b.Name))
	})
}

// FindType finds a type of one schema by name, the row types of relations and
// the arrays of all included, with what has been read to know that.
func (c *Catalog) FindType(schema, name string) (*datum.Desc, []rwset.Read) {
	q := qualified{schema, name}
	if t, ok := c.types[q]; ok {
		return t.Desc, t.key
	}
	if t, ok := c.tables[q]; ok && t.RowType != 0 {
		return t.Row, t.key
	}
	if len(name) > 1 && name[0] == '_' {
		if d, reads := c.FindType(schema, name[1:]); d != nil && d.Array != nil {
			return d.Array, reads
		}
	}
	return nil, MissingType(schema, name)
}

// TypeByOID finds any type: built in, user-defined, the row type of a relation,
// or an array of these.
func (c *Catalog) TypeByOID(oid OID) *datum.Desc {
	if d := datum.ByOID(oid); d != nil {
		return d
	}
	return c.descs[oid]
}

// TypeReads is what a transaction that uses a type has read.
func (c *Catalog) TypeReads(d *datum.Desc) []rwset.Read {
	if d == nil || d.OID < FirstPrivateOID {
		return nil
	}
	if d.Elem != nil {
		d = d.Elem
	}
	if t, ok := c.typeOID[d.OID]; ok {
		return t.key
	}
	if t, ok := c.rowOID[d.OID]; ok {
		return t.key
	}
	return nil
}

// RowTable is the table or view whose row type has an OID.
func (c *Catalog) RowTable(oid OID) (*Table, bool) {
	t, ok := c.rowOID[oid]
	return t, ok
}

// resolver makes the descriptors of all types of a catalog. Types refer to each
// other by OID and in no order, but never in a circle.
type resolver struct {
	c       *Catalog
	pending map[OID]bool
}

// link resolves everything that a freshly loaded catalog holds.
func (c *Catalog) link() error {
	r := &resolver{c: c, pending: map[OID]bool{}}
	for _, t := range c.Types() {
		if _, err := r.desc(t.OID); err != nil {
			return err
		}
	}
	for _, t := range c.Tables() {
		if err := r.table(t); err != nil {
			return err
		}
	}
	for _, f := range c.AllFuncs() {
		if f.Language == SystemLanguage {
			continue
		}
		if err := c.resolveFunc(f); err != nil {
			return err
		}
	}
	return nil
}

// desc returns the descriptor of a type, making it if need be.
func (r *resolver) desc(oid OID) (*datum.Desc, error) {
	if d := r.c.TypeByOID(oid); d != nil {
		return d, nil
	}
	if r.pending[oid] {
		return nil, fmt.Errorf("catalog: type %d contains itself", oid)
	}
	r.pending[oid] = true
	defer delete(r.pending, oid)
	if elem, ok := r.c.arrayOf[oid]; ok {
		d, err := r.desc(elem)
		if err != nil {
			return nil, err
		}
		return d.Array, nil
	}
	if t, ok := r.c.typeOID[oid]; ok {
		return r.userType(t)
	}
	if t, ok := r.c.rowOID[oid]; ok {
		if err := r.table(t); err != nil {
			return nil, err
		}
		if t.Row == nil {
			return nil, fmt.Errorf("catalog: row type of %s contains itself", t.Name)
		}
		return t.Row, nil
	}
	return nil, fmt.Errorf("catalog: there is no type %d", oid)
}

func (r *resolver) userType(t *Type) (*datum.Desc, error) {
	name := t.Name
	switch t.Kind {
	case EnumType:
		t.Desc = datum.NewEnum(t.OID, name, t.Labels)
	case DomainType:
		base, err := r.desc(t.BaseOID)
		if err != nil {
			return nil, err
		}
		t.Desc = datum.NewDomain(t.OID, name, datum.Type{Desc: base, Mod: t.BaseMod})
		t.key = r.reads(t.key, base)
	case RangeType:
		return r.rangeType(t)
	case MultirangeType:
		if _, err := r.desc(t.BaseOID); err != nil {
			return nil, err
		}
		return t.Desc, nil
	default:
		if err := r.columns(t.Fields, &t.key); err != nil {
			return nil, err
		}
		t.Desc = datum.NewComposite(t.OID, name, fieldsOf(t.Fields))
	}
	t.Desc.Schema = shownSchema(t.Schema)
	r.keep(t.Desc, t.Array)
	return t.Desc, nil
}

// shownSchema is what format_type puts before the name: nothing for what the
// default search path finds.
func shownSchema(schema string) string {
	if schema == Blockchain || IsLocal(schema) {
		return ""
	}
	return schema
}

// keep publishes a descriptor together with that of its array type.
func (r *resolver) keep(d *datum.Desc, array OID) {
	r.c.descs[d.OID] = d
	if array != 0 {
		a := datum.NewArrayDesc(d, array)
		a.Schema = d.Schema
		r.c.descs[array] = a
	}
}

// columns fills in the types of columns and adds what they depend on to key.
func (r *resolver) columns(cols []Column, key *[]rwset.Read) error {
	for i := range cols {
		d, err := r.desc(cols[i].TypeOID)
		if err != nil {
			return fmt.Errorf("column %s: %w", cols[i].Name, err)
		}
		cols[i].Type = datum.Type{Desc: d, Mod: cols[i].TypMod}
		if !cols[i].Dropped {
			*key = r.reads(*key, d)
		}
	}
	return nil
}

// table resolves the columns of a table and makes its row type.
func (r *resolver) table(t *Table) error {
	if t.linked || t.System {
		return nil
	}
	t.linked = true
	if err := r.columns(t.Columns, &t.key); err != nil {
		return fmt.Errorf("catalog: table %s: %w", t.Name, err)
	}
	if err := r.c.resolveKeys(t); err != nil {
		return err
	}
	if t.RowType != 0 {
		t.Row = datum.NewComposite(t.RowType, t.Name, fieldsOf(t.Columns))
		t.Row.Schema = shownSchema(t.Schema)
		r.keep(t.Row, t.RowArray)
	}
	return nil
}

// reads adds the catalog rows of a type, unless it is built in.
func (r *resolver) reads(key []rwset.Read, d *datum.Desc) []rwset.Read {
	return addReads(key, r.c.TypeReads(d))
}

func addReads(key, more []rwset.Read) []rwset.Read {
	for _, m := range more {
		if !slices.ContainsFunc(key, func(k rwset.Read) bool { return string(k.Start) == string(m.Start) }) {
			key = append(key[:len(key):len(key)], m)
		}
	}
	return key
}

func fieldsOf(cols []Column) []datum.Field {
	fields := make([]datum.Field, 0, len(cols))
	for i := range cols {
		if !cols[i].Dropped {
			fields = append(fields, datum.Field{Name: cols[i].Name, Type: cols[i].Type})
		}
	}
	return fields
}

// resolveColumns fills in the types of the columns of an object that is about to
// be written.
func (c *Catalog) resolveColumns(name string, cols []Column) error {
	for i := range cols {
		d := c.TypeByOID(cols[i].TypeOID)
		if d == nil {
			return fmt.Errorf("catalog: column %s.%s has unknown type %d", name, cols[i].Name, cols[i].TypeOID)
		}
		cols[i].Type = datum.Type{Desc: d, Mod: cols[i].TypMod}
	}
	return nil
}

// resolveKeys fills in the types of index keys that are expressions; they are
// built in or belong to columns of the table.
func (c *Catalog) resolveKeys(t *Table) error {
	for i := range t.Indexes {
		for k := range t.Indexes[i].Keys {
			key := &t.Indexes[i].Keys[k]
			if key.Column >= 0 {
				continue
			}
			d := c.TypeByOID(key.TypeOID)
			if d == nil {
				return fmt.Errorf("catalog: index %s has a key of unknown type %d", t.Indexes[i].Name, key.TypeOID)
			}
			key.Type = datum.Type{Desc: d, Mod: key.TypMod}
		}
	}
	return nil
}

func (c *Catalog) resolveFunc(f *Func) error {
	for i := range f.Args {
		a := &f.Args[i]
		d := c.TypeByOID(a.TypeOID)
		if d == nil {
			return fmt.Errorf("catalog: function %s has an argument of unknown type %d", f.Name, a.TypeOID)
		}
		a.Type = datum.Type{Desc: d, Mod: a.TypMod}
		f.key = addReads(f.key, c.TypeReads(d))
	}
	d := c.TypeByOID(f.RetOID)
	if d == nil {
		return fmt.Errorf("catalog: function %s returns unknown type %d", f.Name, f.RetOID)
	}
	f.Ret = datum.Type{Desc: d, Mod: f.RetMod}
	f.key = addReads(f.key, c.TypeReads(d))
	return nil
}

// PutType creates or replaces a type; [Editor.PutRange] creates a range type.
func (e *Editor) PutType(t *Type) error {
	if err := e.catalog.resolveColumns(t.Name, t.Fields); err != nil {
		return err
	}
	return e.change(typeKey(t.Schema, t.Name), t)
}

// DropType removes a type.
func (e *Editor) DropType(t *Type) error { return e.drop(typeKey(t.Schema, t.Name)) }
