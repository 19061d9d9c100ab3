package sql

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/parse"
	"github.com/tallystick/tallystick/sql/pgcatalog"
	"github.com/tallystick/tallystick/sql/plan"
)

// Expressions of a table (checks, generated columns, indexes, conditions of
// triggers) are kept as texts that name columns; a renamed column is renamed in
// them.

// renameMentions writes the texts of a table, whose column has its new name
// already, with that name.
func (d *definer) renameMentions(t *catalog.Table, old, name string) error {
	rename := func(text *string) error {
		if *text == "" {
			return nil
		}
		next, err := renameIn(*text, old, name)
		if err == nil {
			*text = next
		}
		return err
	}
	for i := range t.Columns {
		if err := rename(&t.Columns[i].Generated); err != nil {
			return err
		}
	}
	for i := range t.Checks {
		if err := rename(&t.Checks[i].Expr); err != nil {
			return err
		}
	}
	t.Policies = slices.Clone(t.Policies)
	for i := range t.Policies {
		if err := rename(&t.Policies[i].Using); err != nil {
			return err
		}
		if err := rename(&t.Policies[i].Check); err != nil {
			return err
		}
	}
	for i := range t.Triggers {
		if err := rename(&t.Triggers[i].When); err != nil {
			return err
		}
	}
	return d.rewriteIndexes(t, func(node *pg.Node) { renameColumns(node, old, name) })
}

// renameIn renames a column in the text of an expression, which is not written
// anew if it does not mention it.
func renameIn(text, old, name string) (string, error) {
	node, err := parse.Expression(text)
	if err != nil || !slices.Contains(pgcatalog.ColumnNames(node), old) {
		return text, err
	}
	renameColumns(node, old, name)
	return deparse(node)
}

func renameColumns(node *pg.Node, old, name string) {
	for _, ref := range pgcatalog.ColumnRefs(node) {
		if f := ref.Fields[len(ref.Fields)-1].GetString_(); f != nil && f.Sval == old {
			f.Sval = name
		}
	}
}

// reanalyzeIndexes analyzes the expressions of indexes again, after a column of
// the table got another type.
func (d *definer) reanalyzeIndexes(t *catalog.Table) error {
	return d.rewriteIndexes(t, func(*pg.Node) {})
}

// rewriteIndexes changes the expressions of a table's indexes. The table is a
// copy, its indexes too.
func (d *definer) rewriteIndexes(t *catalog.Table, change func(*pg.Node)) error {
	opts := d.options(parse.Statement{})
	for i := range t.Indexes {
		x := &t.Indexes[i]
		if !x.Computed() {
			continue
		}
		x.Keys = slices.Clone(x.Keys)
		for k := range x.Keys {
			key := &x.Keys[k]
			if key.Column >= 0 {
				continue
			}
			node, err := parse.Expression(key.Expr)
			if err != nil {
				return err
			}
			change(node)
			if key.Expr, key.Type, err = plan.IndexExpression(node, t, plan.IndexKeyPart, opts); err != nil {
				return err
			}
			key.TypeOID, key.TypMod = key.Type.OID, key.Type.Mod
		}
		if x.Predicate == "" {
			continue
		}
		node, err := parse.Expression(x.Predicate)
		if err != nil {
			return err
		}
		change(node)
		if x.Predicate, _, err = plan.IndexExpression(node, t, plan.PredicatePart, opts); err != nil {
			return err
		}
	}
	return nil
}
