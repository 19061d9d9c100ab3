package sql

import (
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
	if len(n.SchemaElts) > 0 {
		return pgerr.NotBuilt("CREATE SCHEMA with definitions in it is not supported").
			WithHint("Create the objects by statements of their own.")
	}
	s := &catalog.Schema{Name: name, Owner: d.owner}
	if err := d.oids(&s.OID); err != nil {
		return err
	}
	return d.editor.PutSchema(s)
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
		if t.Schema == schema {
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
