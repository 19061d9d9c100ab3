package sql

import (
	"cmp"
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/parse"
	"github.com/tallystick/tallystick/sql/pgerr"
)

func (d *definer) createSchema(n *pg.CreateSchemaStmt, st parse.Statement) error {
	if n.Authrole != nil {
		return pgerr.NotBuilt("CREATE SCHEMA ... AUTHORIZATION is not supported")
	}
	name := n.Schemaname
	if len(name) > 2 && name[:3] == "pg_" {
		return pgerr.New(pgerr.ReservedName, "unacceptable schema name \"%s\"", name).
			WithDetail("The prefix \"pg_\" is reserved for system schemas.")
	}
	if _, taken := d.catalog().Schema(name); taken || name == "public" {
		if n.IfNotExists {
			d.say(pgerr.DuplicateSchema, "schema \"%s\" already exists, skipping", name)
			return nil
		}
		return pgerr.New(pgerr.DuplicateSchema, "schema \"%s\" already exists", name)
	}
	if len(n.SchemaElts) > 0 && d.local == nil {
		return pgerr.NotBuilt("CREATE SCHEMA with definitions in it is not supported").
			WithHint("Create the objects by statements of their own.")
	}
	s := &catalog.Schema{Name: name, Owner: d.owner}
	if err := d.oids(&s.OID); err != nil {
		return err
	}
	if err := d.editor.PutSchema(s); err != nil {
		return err
	}
	return d.schemaElements(n, st)
}

// schemaElements executes the definitions within CREATE SCHEMA, with the new
// schema first in the search path: tables, views, indexes and so on, each kind
// in the order of the statement (transformCreateSchemaStmtElements).
func (d *definer) schemaElements(n *pg.CreateSchemaStmt, st parse.Statement) error {
	if len(n.SchemaElts) == 0 {
		return nil
	}
	outer := d.local.path
	d.local.path, d.local.within = append([]string{n.Schemaname}, outer...), n.Schemaname
	defer func() { d.local.path, d.local.within = outer, "" }()
	elements := slices.Clone(n.SchemaElts)
	for _, e := range elements {
		if v := elementRelation(e); v == nil {
			continue
		} else if v.Schemaname != "" && v.Schemaname != n.Schemaname {
			return pgerr.New(pgerr.InvalidSchemaDefinition, "CREATE specifies a schema (%s) different from the one being created (%s)",
				v.Schemaname, n.Schemaname)
		}
	}
	slices.SortStableFunc(elements, func(a, b *pg.Node) int { return cmp.Compare(elementOrder(a), elementOrder(b)) })
	for _, e := range elements {
		element := st
		element.Node = e
		if err := d.execute(element); err != nil {
			return err
		}
	}
	return nil
}

// elementRelation is what an element of CREATE SCHEMA makes, nil if it makes no
// relation of its own.
func elementRelation(n *pg.Node) *pg.RangeVar {
	switch n := n.Node.(type) {
	case *pg.Node_CreateSeqStmt:
		return n.CreateSeqStmt.Sequence
	case *pg.Node_CreateStmt:
		return n.CreateStmt.Relation
	case *pg.Node_ViewStmt:
		return n.ViewStmt.View
	case *pg.Node_IndexStmt:
		return n.IndexStmt.Relation
	case *pg.Node_CreateTrigStmt:
		return n.CreateTrigStmt.Relation
	}
	return nil
}

func elementOrder(n *pg.Node) int {
	switch n.Node.(type) {
	case *pg.Node_CreateSeqStmt:
		return 0
	case *pg.Node_CreateStmt:
		return 1
	case *pg.Node_ViewStmt:
		return 2
	case *pg.Node_IndexStmt:
		return 3
	case *pg.Node_CreateTrigStmt:
		return 4
	}
	return 5
}

func (d *definer) dropSchema(n *pg.DropStmt, o *pg.Node) error {
	name := o.GetString_().GetSval()
	s, ok := d.catalog().Schema(name)
	if !ok {
		if n.MissingOk {
			d.say(pgerr.SuccessfulCompletion, "schema \"%s\" does not exist, skipping", name)
			return nil
		}
		return pgerr.New(pgerr.InvalidSchemaName, "schema \"%s\" does not exist", name)
	}
	if s.OID < catalog.FirstPrivateOID {
		return pgerr.New(pgerr.DependentObjectsStillExist, "cannot drop schema %s because it is required by the database system", name)
	}
	if err := d.settleDependents("schema "+name, d.schemaMembers(name), n.Behavior); err != nil {
		return err
	}
	return d.editor.DropSchema(s)
}

// schemaMembers are the objects of a schema.
func (d *definer) schemaMembers(schema string) []dependent {
	var who []dependent
	shown := " depends on schema " + schema
	for _, t := range d.catalog().Types() {
		if t.Schema == schema && t.Kind != catalog.MultirangeType {
			who = append(who, dependent{typ: t, text: "type " + schema + "." + t.Name + shown})
		}
	}
	for _, t := range d.catalog().Tables() {
		if t.Schema == schema {
			who = append(who, dependent{view: t, text: relationWord(t) + schema + "." + t.Name + shown})
		}
	}
	for _, f := range d.catalog().AllFuncs() {
		if f.Schema == schema {
			who = append(who, dependent{fn: f, text: kindName(f) + " " + schema + "." + f.Name + "(" + f.Signature() + ")" + shown})
		}
	}
	return who
}
