package sql

import (
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/parse"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// The OIDs of the catalogs that have the objects of comments.
const (
	typeCatalog       catalog.OID = 1247
	procCatalog       catalog.OID = 1255
	classCatalog      catalog.OID = 1259
	constraintCatalog catalog.OID = 2606
	namespaceCatalog  catalog.OID = 2615
	triggerCatalog    catalog.OID = 2620
)

// comment is COMMENT ON.
func (d *definer) comment(n *pg.CommentStmt) error {
	k := &catalog.Comment{Text: n.Comment}
	var err error
	switch n.Objtype {
	case pg.ObjectType_OBJECT_TABLE, pg.ObjectType_OBJECT_VIEW, pg.ObjectType_OBJECT_MATVIEW, pg.ObjectType_OBJECT_SEQUENCE:
		err = d.commentRelation(k, n)
	case pg.ObjectType_OBJECT_COLUMN, pg.ObjectType_OBJECT_TABCONSTRAINT, pg.ObjectType_OBJECT_TRIGGER:
		err = d.commentPart(k, n)
	case pg.ObjectType_OBJECT_INDEX:
		err = d.commentIndex(k, n)
	case pg.ObjectType_OBJECT_SCHEMA:
		name := n.Object.GetString_().GetSval()
		s, ok := d.catalog().Schema(name)
		if !ok {
			return pgerr.New(pgerr.InvalidSchemaName, "schema \"%s\" does not exist", name)
		}
		k.Class, k.OID = namespaceCatalog, s.OID
	case pg.ObjectType_OBJECT_TYPE, pg.ObjectType_OBJECT_DOMAIN:
		t, rerr := d.resolveType(n.Object.GetTypeName(), parse.Statement{})
		if rerr != nil {
			return rerr
		}
		k.Class, k.OID = typeCatalog, t.OID
	case pg.ObjectType_OBJECT_FUNCTION, pg.ObjectType_OBJECT_PROCEDURE, pg.ObjectType_OBJECT_ROUTINE:
		err = d.commentFunction(k, n)
	default:
		err = pgerr.NotBuilt("COMMENT ON %s is not supported", objectName(n.Objtype))
	}
	if err != nil {
		return err
	}
	return d.editor.PutComment(k)
}

func (d *definer) commentRelation(k *catalog.Comment, n *pg.CommentStmt) error {
	v, err := qualifiedName(n.Object)
	if err != nil {
		return err
	}
	t, err := d.findTable(v)
	if err != nil {
		return err
	}
	kind, word := catalog.OrdinaryTable, "table"
	switch n.Objtype {
	case pg.ObjectType_OBJECT_VIEW:
		kind, word = catalog.View, "view"
	case pg.ObjectType_OBJECT_MATVIEW:
		kind, word = catalog.MaterializedView, "materialized view"
	case pg.ObjectType_OBJECT_SEQUENCE:
		kind, word = catalog.Sequence, "sequence"
	}
	if kind != t.Kind {
		return pgerr.New(pgerr.WrongObjectType, "\"%s\" is not a %s", t.Name, word)
	}
	k.Class, k.OID = classCatalog, t.OID
	return nil
}

// commentPart is a comment on a column, constraint or trigger: its name stands
// behind that of the table.
func (d *definer) commentPart(k *catalog.Comment, n *pg.CommentStmt) error {
	parts, err := stringList(n.Object.GetList().GetItems())
	if err != nil || len(parts) < 2 {
		return pgerr.New(pgerr.SyntaxError, "a name was expected")
	}
	name := parts[len(parts)-1]
	v := &pg.RangeVar{Relname: parts[len(parts)-2]}
	if len(parts) > 2 {
		v.Schemaname = parts[len(parts)-3]
	}
	t, err := d.findTable(v)
	if err != nil {
		return err
	}
	switch n.Objtype {
	case pg.ObjectType_OBJECT_COLUMN:
		i := t.Column(name)
		if i < 0 {
			return pgerr.New(pgerr.UndefinedColumn, "column \"%s\" of relation \"%s\" does not exist", name, t.Name)
		}
		k.Class, k.OID, k.Sub = classCatalog, t.OID, i+1
		return nil
	case pg.ObjectType_OBJECT_TRIGGER:
		i := t.Trigger(name)
		if i < 0 {
			return noTrigger(t, name)
		}
		k.Class, k.OID = triggerCatalog, t.Triggers[i].OID
		return nil
	}
	k.Class = constraintCatalog
	for _, c := range t.Checks {
		if c.Name == name {
			k.OID = c.OID
		}
	}
	for _, c := range t.ForeignKeys {
		if c.Name == name {
			k.OID = c.OID
		}
	}
	for _, c := range t.Indexes {
		if c.Name == name && c.Constraint {
			k.OID = c.OID
		}
	}
	if k.OID == 0 {
		return pgerr.New(pgerr.UndefinedObject, "constraint \"%s\" for table \"%s\" does not exist", name, t.Name)
	}
	return nil
}

func (d *definer) commentIndex(k *catalog.Comment, n *pg.CommentStmt) error {
	v, err := qualifiedName(n.Object)
	if err != nil {
		return err
	}
	for _, schema := range d.searchIn(v.Schemaname) {
		t, ok := d.catalog().IndexTable(schema, v.Relname)
		if !ok {
			continue
		}
		for _, idx := range t.Indexes {
			if idx.Name == v.Relname {
				k.Class, k.OID = classCatalog, idx.OID
				return nil
			}
		}
	}
	return pgerr.New(pgerr.UndefinedTable, "relation \"%s\" does not exist", v.Relname)
}

func (d *definer) commentFunction(k *catalog.Comment, n *pg.CommentStmt) error {
	owa := n.Object.GetObjectWithArgs()
	parts, err := stringList(owa.Objname)
	if err != nil {
		return err
	}
	schema := ""
	if len(parts) > 1 {
		schema = parts[0]
	}
	f, shown, err := d.findFunction(owa, schema, parts[len(parts)-1], "function")
	if err != nil {
		return err
	}
	if f == nil {
		return pgerr.New(pgerr.UndefinedFunction, "function %s does not exist", shown)
	}
	k.Class, k.OID = procCatalog, f.OID
	return nil
}
