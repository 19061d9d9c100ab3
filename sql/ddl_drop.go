package sql

import (
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/parse"
	"github.com/tallystick/tallystick/sql/pgerr"
)

func (d *definer) drop(n *pg.DropStmt) error {
	if err := d.noteDropping(n); err != nil {
		return err
	}
	for _, o := range n.Objects {
		var err error
		switch n.RemoveType {
		case pg.ObjectType_OBJECT_TABLE, pg.ObjectType_OBJECT_VIEW, pg.ObjectType_OBJECT_MATVIEW, pg.ObjectType_OBJECT_SEQUENCE:
			err = d.dropTable(n, o)
		case pg.ObjectType_OBJECT_INDEX:
			err = d.dropIndex(n, o)
		case pg.ObjectType_OBJECT_FUNCTION, pg.ObjectType_OBJECT_PROCEDURE, pg.ObjectType_OBJECT_ROUTINE:
			err = d.dropFunction(n, o)
		case pg.ObjectType_OBJECT_SCHEMA:
			err = d.dropSchema(n, o)
		case pg.ObjectType_OBJECT_POLICY:
			err = d.dropPolicy(n, o)
		case pg.ObjectType_OBJECT_TRIGGER:
			err = d.dropTrigger(n, o)
		case pg.ObjectType_OBJECT_TYPE, pg.ObjectType_OBJECT_DOMAIN:
			err = d.dropType(n, o)
		default:
			err = pgerr.NotBuilt("DROP %s is not supported", objectName(n.RemoveType))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// qualifiedName reads schema.name from a list of names.
func qualifiedName(n *pg.Node) (*pg.RangeVar, error) {
	parts, err := stringList(n.GetList().GetItems())
	if err != nil || len(parts) == 0 {
		return nil, pgerr.New(pgerr.SyntaxError, "a name was expected")
	}
	v := &pg.RangeVar{Relname: parts[len(parts)-1]}
	if len(parts) > 1 {
		v.Schemaname = parts[len(parts)-2]
	}
	return v, nil
}

func (d *definer) dropTable(n *pg.DropStmt, o *pg.Node) error {
	v, err := qualifiedName(o)
	if err != nil {
		return err
	}
	kind, word := catalog.OrdinaryTable, "table"
	if n.RemoveType == pg.ObjectType_OBJECT_VIEW {
		kind, word = catalog.View, "view"
	} else if n.RemoveType == pg.ObjectType_OBJECT_MATVIEW {
		kind, word = catalog.MaterializedView, "materialized view"
	} else if n.RemoveType == pg.ObjectType_OBJECT_SEQUENCE {
		kind, word = catalog.Sequence, "sequence"
	}
	t, err := d.findTable(v)
	if err != nil {
		if pgerr.CodeOf(err) != pgerr.UndefinedTable {
			return err
		}
		if n.MissingOk {
			d.say(pgerr.SuccessfulCompletion, "%s \"%s\" does not exist, skipping", word, v.Relname)
			return nil
		}
		return pgerr.New(pgerr.UndefinedTable, "%s \"%s\" does not exist", word, v.Relname)
	}
	if t.Kind != kind {
		return pgerr.New(pgerr.WrongObjectType, "\"%s\" is not a %s", t.Name, word)
	}
	if kind == catalog.Sequence {
		if err := d.usedSequence(t, n.Behavior); err != nil {
			return err
		}
	}
	return d.removeTable(t, n.Behavior)
}

// viewReads tells whether a view names a table anywhere.
func viewReads(view, t *catalog.Table) bool {
	if t.Local() && !view.Local() {
		return false
	}
	st, err := parse.One(view.Query)
	if err != nil {
		return true // cannot tell: keep the table
	}
	return strings.Contains(st.Node.String(), "relname:\""+t.Name+"\"")
}

// deleteRows writes a tombstone for every live row and index entry: the history
// of a dropped table stays.
func (d *definer) deleteRows(t *catalog.Table) error {
	layout, err := catalog.NewLayout(t)
	if err != nil {
		return err
	}
	return d.eachFullRow(t, layout, func(row []datum.Datum) error {
		return layout.EachEntry(row, func(key, _ []byte) error { return d.txn().Delete(key) })
	})
}

func (d *definer) dropIndex(n *pg.DropStmt, o *pg.Node) error {
	v, err := qualifiedName(o)
	if err != nil {
		return err
	}
	for _, schema := range d.searchIn(v.Schemaname) {
		t, ok := d.catalog().IndexTable(schema, v.Relname)
		if !ok {
			continue
		}
		if t.System {
			return pgerr.New(pgerr.InsufficientPrivilege, "permission denied: \"%s\" belongs to the ledger", v.Relname)
		}
		return d.removeIndex(t, v.Relname)
	}
	if n.MissingOk {
		d.say(pgerr.SuccessfulCompletion, "index \"%s\" does not exist, skipping", v.Relname)
		return nil
	}
	return pgerr.New(pgerr.UndefinedObject, "index \"%s\" does not exist", v.Relname)
}

func (d *definer) removeIndex(t *catalog.Table, name string) error {
	i := slices.IndexFunc(t.Indexes, func(x catalog.Index) bool { return x.Name == name })
	if t.Indexes[i].Constraint {
		return pgerr.New(pgerr.DependentObjectsStillExist, "cannot drop index %s because constraint %s on table %s requires it", name, name, t.Name).
			WithHint("You can drop constraint %s on table %s instead.", name, t.Name)
	}
	return d.withoutIndex(t, i)
}

// withoutIndex takes an index out of a table and deletes its entries.
func (d *definer) withoutIndex(t *catalog.Table, i int) error {
	layout, err := catalog.NewLayout(t)
	if err != nil {
		return err
	}
	err = d.eachFullRow(t, layout, func(row []datum.Datum) error {
		if !layout.Has(i, row) {
			return nil
		}
		return d.txn().Delete(layout.IndexKey(nil, i, row))
	})
	if err != nil {
		return err
	}
	next := *t
	next.Indexes = slices.Delete(slices.Clone(t.Indexes), i, i+1)
	return d.editor.PutTable(&next)
}

func (d *definer) dropFunction(n *pg.DropStmt, o *pg.Node) error {
	owa := o.GetObjectWithArgs()
	parts, err := stringList(owa.Objname)
	if err != nil {
		return err
	}
	name := parts[len(parts)-1]
	schema := ""
	if len(parts) > 1 {
		schema = parts[0]
	}
	word := strings.ToLower(objectName(n.RemoveType))
	f, shown, err := d.findFunction(owa, schema, name, word)
	if err != nil {
		return err
	}
	if f == nil {
		if n.MissingOk {
			d.say(pgerr.SuccessfulCompletion, "%s %s does not exist, skipping", word, shown)
			return nil
		}
		return pgerr.New(pgerr.UndefinedFunction, "%s %s does not exist", word, shown)
	}
	if f.Language == catalog.SystemLanguage {
		return pgerr.New(pgerr.InsufficientPrivilege, "system contract %s cannot be dropped", f.Name)
	}
	if word != "routine" && word != kindName(f) {
		return pgerr.New(pgerr.WrongObjectType, "%s(%s) is not a %s", f.Name, f.Signature(), word)
	}
	return d.removeFunc(f, n.Behavior)
}

// findFunction finds a function by name and, if given, argument types.
func (d *definer) findFunction(owa *pg.ObjectWithArgs, schema, name, word string) (*catalog.Func, string, error) {
	var sig []string
	for _, a := range owa.Objargs {
		t, err := d.resolveType(a.GetTypeName(), parse.Statement{})
		if err != nil {
			return nil, "", err
		}
		sig = append(sig, datum.FormatType(datum.T(t.Desc)))
	}
	want := strings.Join(sig, ",")
	shown := name + "(" + strings.Join(sig, ", ") + ")"
	for _, s := range d.searchIn(schema) {
		list := d.catalog().Funcs(s, name)
		if owa.ArgsUnspecified {
			if len(list) > 1 {
				return nil, "", pgerr.New(pgerr.AmbiguousFunction, "%s name \"%s\" is not unique", word, name).
					WithHint("Specify the argument list to select the %s unambiguously.", word)
			}
			if len(list) == 1 {
				return list[0], shown, nil
			}
			continue
		}
		for _, f := range list {
			if f.Signature() == want {
				return f, shown, nil
			}
		}
	}
	return nil, shown, nil
}
