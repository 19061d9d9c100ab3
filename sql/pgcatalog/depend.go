package pgcatalog

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protopath"
	"google.golang.org/protobuf/reflect/protorange"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/parse"
)

// The OIDs of the catalogs that pg_depend refers to.
const (
	classCatalog      datum.OID = 1259
	constraintCatalog datum.OID = 2606
)

// dependencies are the rows of pg_depend that clients follow: from a foreign
// key to the index that it relies on, from a constraint to its table, and from
// an index to the constraint that owns it.
func dependencies(env *Env, next func() *row, emit func() error) error {
	add := func(class, obj, refClass, ref datum.OID, kind byte) error {
		next().oid("classid", class).oid("objid", obj).int("objsubid", 0).
			oid("refclassid", refClass).oid("refobjid", ref).int("refobjsubid", 0).char("deptype", kind)
		return emit()
	}
	return eachConstraint(env, func(c *constraint) error {
		if err := add(constraintCatalog, c.oid, classCatalog, c.table.OID, 'a'); err != nil {
			return err
		}
		if c.index != nil {
			return add(classCatalog, c.index.OID, constraintCatalog, c.oid, 'i')
		}
		if idx := env.reliedOn(c.fk); idx != nil {
			return add(constraintCatalog, c.oid, classCatalog, idx.OID, 'n')
		}
		return nil
	})
}

// reliedOn is the unique index over the columns that a foreign key refers to.
func (env *Env) reliedOn(fk *catalog.ForeignKey) *catalog.Index {
	if fk == nil {
		return nil
	}
	ref, ok := env.Catalog.Table(fk.RefSchema, fk.RefTable)
	if !ok {
		return nil
	}
	for i := range ref.Indexes {
		idx := &ref.Indexes[i]
		if !idx.Unique || idx.Predicate != "" || len(idx.Keys) != len(fk.RefColumns) {
			continue
		}
		covers := true
		for _, k := range idx.Keys {
			covers = covers && slices.Contains(fk.RefColumns, k.Column)
		}
		if covers {
			return idx
		}
	}
	return nil
}

// checkedColumns are the columns that a check constraint mentions, in the order
// of the table.
func checkedColumns(t *catalog.Table, expr string) []int {
	node, err := parse.Expression(expr)
	if err != nil {
		return nil
	}
	named := ColumnNames(node)
	var cols []int
	for i, c := range t.Columns {
		if slices.Contains(named, c.Name) && !c.Dropped {
			cols = append(cols, i)
		}
	}
	return cols
}

// ColumnNames are the names, without qualifiers, of the columns that an
// expression refers to, in the order of the text, maybe repeated.
func ColumnNames(node *pg.Node) []string {
	var names []string
	for _, ref := range ColumnRefs(node) {
		if f := ref.Fields[len(ref.Fields)-1].GetString_(); f != nil {
			names = append(names, f.Sval)
		}
	}
	return names
}

// ColumnRefs are the references to columns in an expression, in the order of the
// text.
func ColumnRefs(node *pg.Node) []*pg.ColumnRef {
	var refs []*pg.ColumnRef
	see := func(p protopath.Values) error {
		m, ok := p.Index(-1).Value.Interface().(protoreflect.Message)
		if !ok {
			return nil
		}
		if ref, ok := m.Interface().(*pg.ColumnRef); ok {
			refs = append(refs, ref)
		}
		return nil
	}
	// The callback never fails.
	_ = protorange.Range(proto.Message(node).ProtoReflect(), see)
	return refs
}
