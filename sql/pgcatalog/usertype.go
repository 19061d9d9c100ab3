package pgcatalog

import (
	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
)

// The functions behind the external forms of users' types, by pg_type.typtype
// (pg_proc.dat); array types have array_in and its like.
var userCodecs = map[datum.Kind][4]int64{
	datum.Enum:       {3506, 3507, 3532, 3533},
	datum.Composite:  {2290, 2291, 2402, 2403},
	datum.Domain:     {2597, 0, 2598, 0}, // output and send are those of the base type
	datum.Range:      {3834, 3835, 3836, 3837},
	datum.Multirange: {4231, 4232, 4233, 4234},
}

const defaultTypeDelimiter = ','

// userTypes makes the rows of pg_type for users' types, the row types of
// relations, and the arrays of both.
func userTypes(env *Env, next func() *row, emit func() error) error {
	one := func(d *datum.Desc, schema, owner string, relid datum.OID, t *catalog.Type) error {
		r := next().oid("oid", d.OID).str("typname", d.Name).oid("typnamespace", env.namespace(schema)).oid("typowner", env.ownerOID(owner))
		r.int("typlen", int64(d.Len)).bool("typbyval", d.Fixed).char("typtype", byte(d.Kind)).char("typcategory", d.Category)
		r.bool("typispreferred", false).bool("typisdefined", true).char("typdelim", defaultTypeDelimiter).char("typalign", 'i')
		r.char("typstorage", storage(datum.T(d))).bool("typnotnull", false).int("typtypmod", -1)
		r.zeros("typsubscript", "typelem", "typarray", "typmodin", "typmodout", "typanalyze", "typbasetype", "typndims")
		r.oid("typrelid", relid).oid("typcollation", collationOf(datum.T(d)))
		codecs := userCodecs[d.Kind]
		for i, name := range [4]string{"typinput", "typoutput", "typreceive", "typsend"} {
			r.int(name, codecs[i])
		}
		if d.Array != nil {
			r.oid("typarray", d.Array.OID)
		}
		if t != nil && t.Kind == catalog.DomainType {
			r.set("typoutput", procOID(d.Base.Desc, "out")).set("typsend", procOID(d.Base.Desc, "send"))
			r.bool("typnotnull", t.NotNull).oid("typbasetype", t.BaseOID).int("typtypmod", int64(t.BaseMod))
			if t.Default != "" {
				r.str("typdefault", t.Default).str("typdefaultbin", t.Default)
			}
		}
		if err := emit(); err != nil || d.Array == nil {
			return err
		}
		a := d.Array
		r = next().oid("oid", a.OID).str("typname", a.Name).oid("typnamespace", env.namespace(schema)).oid("typowner", env.ownerOID(owner))
		r.int("typlen", -1).bool("typbyval", false).char("typtype", 'b').char("typcategory", 'A')
		r.bool("typispreferred", false).bool("typisdefined", true).char("typdelim", defaultTypeDelimiter).char("typalign", 'i')
		r.char("typstorage", 'x').bool("typnotnull", false).int("typtypmod", -1)
		r.zeros("typrelid", "typsubscript", "typarray", "typmodin", "typmodout", "typanalyze", "typbasetype", "typndims", "typcollation")
		r.oid("typelem", d.OID)
		for _, what := range [4][2]string{{"typinput", "in"}, {"typoutput", "out"}, {"typreceive", "recv"}, {"typsend", "send"}} {
			r.set(what[0], procOID(a, what[1]))
		}
		return emit()
	}
	for _, t := range env.Catalog.Types() {
		if err := one(t.Desc, t.Schema, t.Owner, t.Relation, t); err != nil {
			return err
		}
	}
	for _, t := range env.Catalog.Tables() {
		if t.Row == nil {
			continue
		}
		if err := one(t.Row, t.Schema, t.Owner, t.OID, nil); err != nil {
			return err
		}
	}
	return nil
}

// enumLabels makes the rows of pg_enum.
func enumLabels(env *Env, next func() *row, emit func() error) error {
	for _, t := range env.Catalog.Types() {
		for _, l := range t.Labels {
			next().oid("oid", l.OID).oid("enumtypid", t.OID).set("enumsortorder", datum.Float(float64(l.Sort))).str("enumlabel", l.Label)
			if err := emit(); err != nil {
				return err
			}
		}
	}
	return nil
}

// domainConstraints makes the rows of pg_constraint for domains.
func domainConstraints(env *Env, next func() *row, emit func() error) error {
	for _, t := range env.Catalog.Types() {
		for _, k := range t.Checks {
			r := next().oid("oid", k.OID).str("conname", k.Name).oid("connamespace", env.namespace(t.Schema)).char("contype", 'c')
			r.bools(false, "condeferrable", "condeferred").bools(true, "convalidated", "conislocal", "connoinherit")
			r.zeros("conrelid", "conindid", "conparentid", "confrelid", "coninhcount").oid("contypid", t.OID)
			r.char("confupdtype", ' ').char("confdeltype", ' ').char("confmatchtype", ' ').str("conbin", k.Expr)
			if err := emit(); err != nil {
				return err
			}
		}
	}
	return nil
}

// domainCheck finds the check constraint of a domain by OID.
func (env *Env) domainCheck(oid datum.OID) (*catalog.Check, bool) {
	for _, t := range env.Catalog.Types() {
		for i := range t.Checks {
			if t.Checks[i].OID == oid {
				return &t.Checks[i], true
			}
		}
	}
	return nil, false
}

// compositeClass is a composite type as pg_class has it.
func compositeClass(t *catalog.Type) *class {
	c := &class{oid: t.Relation, schema: t.Schema, name: t.Name, kind: 'c', owner: t.Owner, rowType: t.OID}
	for _, f := range t.Fields {
		c.cols = append(c.cols, column{name: f.Name, typ: f.Type})
	}
	return c
}

// typeSchema is the schema of any type.
func (env *Env) typeSchema(d *datum.Desc) string {
	if d.Elem != nil && d.IsArray() {
		d = d.Elem
	}
	if t, ok := env.Catalog.UserTypeByOID(d.OID); ok {
		return t.Schema
	}
	if t, ok := env.Catalog.RowTable(d.OID); ok {
		return t.Schema
	}
	return catalog.PgCatalog
}

// descriptions makes the rows of pg_description.
func descriptions(env *Env, next func() *row, emit func() error) error {
	for _, k := range env.Catalog.Comments() {
		next().oid("objoid", k.OID).oid("classoid", k.Class).int("objsubid", int64(k.Sub)).str("description", k.Text)
		if err := emit(); err != nil {
			return err
		}
	}
	return nil
}

// description answers obj_description and col_description.
func (env *Env) description(oid datum.OID, sub int) (string, bool) {
	for _, k := range env.Catalog.Comments() {
		if k.OID == oid && k.Sub == sub {
			return k.Text, true
		}
	}
	return "", false
}
