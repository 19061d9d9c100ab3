package sql

import (
	"fmt"
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/tallystick/tallystick/mvcc"
	"github.com/tallystick/tallystick/mvcc/rwset"
	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/exec"
	"github.com/tallystick/tallystick/sql/parse"
	"github.com/tallystick/tallystick/sql/pgerr"
	"github.com/tallystick/tallystick/sql/plan"
)

func (d *definer) createIndex(n *pg.IndexStmt, st parse.Statement) error {
	t, err := d.findTable(n.Relation)
	if err != nil {
		return err
	}
	if t.Kind != catalog.OrdinaryTable && t.Kind != catalog.MaterializedView {
		return pgerr.New(pgerr.WrongObjectType, "cannot create index on relation \"%s\"", t.Name).
			WithDetail("This operation is not supported for views.")
	}
	switch {
	case n.AccessMethod != "" && n.AccessMethod != "btree":
		return pgerr.NotBuilt("index access method \"%s\" is not supported", n.AccessMethod)
	case n.NullsNotDistinct:
		return pgerr.NotBuilt("NULLS NOT DISTINCT is not supported")
	}
	idx := catalog.Index{Name: n.Idxname, Unique: n.Unique}
	parts := []string{t.Name}
	for _, p := range n.IndexParams {
		key, name, err := d.indexKey(p.GetIndexElem(), t, st)
		if err != nil {
			return err
		}
		idx.Keys, parts = append(idx.Keys, key), append(parts, name)
	}
	for _, p := range n.IndexIncludingParams {
		el := p.GetIndexElem()
		if el.Name == "" {
			return pgerr.New(pgerr.FeatureNotSupported, "expressions are not supported in included columns")
		}
		i := t.Column(el.Name)
		if i < 0 {
			return pgerr.New(pgerr.UndefinedColumn, "column \"%s\" does not exist", el.Name)
		}
		idx.Include, parts = append(idx.Include, i), append(parts, el.Name)
	}
	if n.WhereClause != nil {
		if idx.Predicate, _, err = plan.IndexExpression(n.WhereClause, t, plan.PredicatePart, d.options(st)); err != nil {
			return err
		}
	}
	if idx.Name == "" {
		idx.Name = d.freeName(t.Schema, append(parts, "idx"))
	}
	if err := d.relationFree(t.Schema, idx.Name); err != nil {
		if n.IfNotExists {
			d.say(pgerr.DuplicateTable, "relation \"%s\" already exists, skipping", idx.Name)
			return nil
		}
		return err
	}
	return d.addIndex(t, idx)
}

// indexKey reads a key of CREATE INDEX; name is its part in the name of an index
// that was given none.
func (d *definer) indexKey(el *pg.IndexElem, t *catalog.Table, st parse.Statement) (k catalog.IndexKey, name string, err error) {
	if len(el.Opclass) > 0 {
		return k, "", pgerr.NotBuilt("operator classes are not supported")
	}
	if el.Name == "" {
		k, name, err = d.expressionKey(el.Expr, t, st)
	} else if k.Column = t.Column(el.Name); k.Column < 0 {
		err = pgerr.New(pgerr.UndefinedColumn, "column \"%s\" does not exist", el.Name)
	} else {
		name, err = el.Name, indexable(&t.Columns[k.Column])
	}
	if err != nil {
		return k, "", err
	}
	k.Desc = el.Ordering == pg.SortByDir_SORTBY_DESC
	k.NullsFirst = k.Desc
	switch el.NullsOrdering {
	case pg.SortByNulls_SORTBY_NULLS_FIRST:
		k.NullsFirst = true
	case pg.SortByNulls_SORTBY_NULLS_LAST:
		k.NullsFirst = false
	}
	return k, name, nil
}

// expressionKey analyzes a key that is an expression. One that is a column in
// parentheses is that column.
func (d *definer) expressionKey(n *pg.Node, t *catalog.Table, st parse.Statement) (k catalog.IndexKey, name string, err error) {
	if ref := n.GetColumnRef(); ref != nil && len(ref.Fields) == 1 && ref.Fields[0].GetString_() != nil {
		if i := t.Column(ref.Fields[0].GetString_().Sval); i >= 0 {
			return catalog.IndexKey{Column: i}, t.Columns[i].Name, indexable(&t.Columns[i])
		}
	}
	text, typ, err := plan.IndexExpression(n, t, plan.IndexKeyPart, d.options(st))
	if err != nil {
		return k, "", err
	}
	k = catalog.IndexKey{Column: -1, Expr: text, TypeOID: typ.OID, TypMod: typ.Mod, Type: typ}
	return k, plan.IndexColumnName(n), indexable(&catalog.Column{Name: text, Type: typ})
}

func (d *definer) freeName(schema string, parts []string) string {
	base := shortName(parts)
	name := base
	for i := 1; d.relationFree(schema, name) != nil; i++ {
		name = fmt.Sprintf("%s%d", base, i)
	}
	return name
}

// addIndex adds an index to a table's descriptor and builds its entries.
func (d *definer) addIndex(t *catalog.Table, idx catalog.Index) error {
	oid, err := d.editor.NextOID()
	if err != nil {
		return err
	}
	idx.OID = oid
	next := *t
	next.Indexes = append(append([]catalog.Index(nil), t.Indexes...), idx)
	if err := d.editor.PutTable(&next); err != nil {
		return err
	}
	return d.buildIndex(&next, &next.Indexes[len(next.Indexes)-1])
}

// buildIndex writes an entry for every live row. The entries are versions of
// this block: an older height does not see the index's descriptor either.
func (d *definer) buildIndex(t *catalog.Table, idx *catalog.Index) error {
	layout, err := catalog.NewLayout(t)
	if err != nil {
		return err
	}
	i := layout.Position(idx)
	return d.eachFullRow(t, layout, func(row []datum.Datum) error {
		if !layout.Has(i, row) {
			return nil
		}
		key := layout.IndexKey(nil, i, row)
		if layout.Exclusive(i, row) {
			_, _, taken, err := d.txn().Get(key, mvcc.ReadExistence)
			if err != nil {
				return err
			}
			if taken {
				return pgerr.New(pgerr.UniqueViolation, "could not create unique index \"%s\"", idx.Name).
					WithDetail("Key %s is duplicated.", layout.KeyText(i, row, &datum.ContractFormat))
			}
		}
		return d.txn().PutInsert(key, layout.IndexValue(nil, row))
	})
}

// eachFullRow is eachRow for rows that are extended by what the indexes of the
// table compute.
func (d *definer) eachFullRow(t *catalog.Table, layout *catalog.Layout, f func(row []datum.Datum) error) error {
	exprs, err := exec.NewIndexExprs(t, layout, d.catalog())
	if err != nil {
		return err
	}
	var full []datum.Datum
	return d.eachRow(t, layout, func(row []datum.Datum) error {
		if full, err = exprs.Extend(d.env, full[:0], row); err != nil {
			return err
		}
		return f(full)
	})
}

// eachRow calls f for every live row of a table, in key order; the row is only
// valid during the call. The scan does not see what f writes.
func (d *definer) eachRow(t *catalog.Table, layout *catalog.Layout, f func(row []datum.Datum) error) error {
	prefix := catalog.Prefix(t.OID, t.Primary().OID)
	all := make([]int, len(t.Columns))
	for i := range all {
		all[i] = i
	}
	dec := layout.Decoder(all)
	row := make([]datum.Datum, len(t.Columns))
	it := d.txn().Scan(prefixSpan(prefix), false, d.readMode())
	defer it.Close()
	for it.Next() {
		if err := dec.Decode(it.Value(), row); err != nil {
			return err
		}
		if err := d.env.Ctx.Budget.Spend(1); err != nil {
			return err
		}
		if err := f(row); err != nil {
			return err
		}
	}
	return it.Err()
}

func (d *definer) createView(n *pg.ViewStmt, st parse.Statement) error {
	schema, err := d.placeOfView(n, st)
	if err != nil {
		return err
	}
	if n.WithCheckOption != pg.ViewCheckOption_NO_CHECK_OPTION && n.WithCheckOption != pg.ViewCheckOption_VIEW_CHECK_OPTION_UNDEFINED {
		return pgerr.NotBuilt("WITH CHECK OPTION is not supported")
	}
	name := n.View.Relname
	old, exists := d.catalog().Table(schema, name)
	if err := d.relationFree(schema, name); err != nil && !(n.Replace && exists && old.Kind == catalog.View) {
		return err
	}
	opts := d.options(st)
	opts.Contract = false
	pl, err := plan.Statement(n.Query, opts)
	if err != nil {
		return err
	}
	text, err := deparseStatement(n.Query)
	if err != nil {
		return err
	}
	view := &catalog.Table{Schema: schema, Name: name, Kind: catalog.View, Owner: d.owner, Query: text, Path: opts.SearchPath}
	if slices.Equal(view.Path, SearchPath) {
		view.Path = nil
	}
	if view.Columns, err = viewColumns(pl, n.Aliases); err != nil {
		return err
	}
	if exists {
		view.OID, view.RowType, view.RowArray = old.OID, old.RowType, old.RowArray
	} else if err := d.typeFree(schema, name); err != nil {
		return err
	} else if err := d.oids(&view.OID, &view.RowType, &view.RowArray); err != nil {
		return err
	}
	return d.editor.PutTable(view)
}

func viewColumns(pl *plan.Plan, aliases []*pg.Node) ([]catalog.Column, error) {
	names, err := stringList(aliases)
	if err != nil {
		return nil, err
	}
	var cols []catalog.Column
	for i, c := range pl.Columns {
		name := c.Name
		if i < len(names) {
			name = names[i]
		}
		for _, o := range cols {
			if o.Name == name {
				return nil, pgerr.New(pgerr.DuplicateColumn, "column \"%s\" specified more than once", name)
			}
		}
		cols = append(cols, catalog.Column{Name: name, TypeOID: c.Type.OID, TypMod: c.Type.Mod, Type: c.Type})
	}
	return cols, nil
}

// prefixSpan holds the keys with a prefix.
func prefixSpan(prefix []byte) rwset.Span {
	return rwset.Span{Start: prefix, End: rwset.PrefixEnd(prefix)}
}
