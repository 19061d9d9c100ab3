package sql

import (
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/tallystick/tallystick/mvcc"
	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/exec"
	"github.com/tallystick/tallystick/sql/parse"
	"github.com/tallystick/tallystick/sql/pgerr"
	"github.com/tallystick/tallystick/sql/plan"
)

// rewrite writes every row of a table again, as versions of this block: old has
// the layout that the rows were written with, next the one they get. convert
// makes the new row in place of now, which holds the old one.
func (d *definer) rewrite(old, next *catalog.Table, convert func(now []datum.Datum) error) error {
	to, err := catalog.NewLayout(next)
	if err != nil {
		return err
	}
	rows, err := d.allRows(old)
	if err != nil {
		return err
	}
	if err := d.deleteRows(old); err != nil {
		return err
	}
	exprs, err := exec.NewIndexExprs(next, to, d.catalog().With(next))
	if err != nil {
		return err
	}
	for _, row := range rows {
		now := slices.Clone(row)
		for len(now) < len(next.Columns) {
			now = append(now, datum.Null)
		}
		if err := convert(now); err != nil {
			return err
		}
		if now, err = exprs.Extend(d.env, nil, now); err != nil {
			return err
		}
		for i := range next.Indexes {
			if !to.Exclusive(i, now) {
				continue
			}
			_, _, taken, err := d.txn().Get(to.IndexKey(nil, i, now), mvcc.ReadExistence)
			if err != nil {
				return err
			}
			if taken {
				return pgerr.New(pgerr.UniqueViolation, "could not create unique index \"%s\"", next.Indexes[i].Name).
					WithDetail("Key %s is duplicated.", to.KeyText(i, now, &datum.ContractFormat))
			}
		}
		if err := to.EachEntry(now, d.txn().PutInsert); err != nil {
			return err
		}
	}
	return nil
}

// rowExpr compiles an expression over the columns of a table, converted to a
// type as an assignment is; it is evaluated with the row as parameters.
func (d *definer) rowExpr(t *catalog.Table, text string, want datum.Type, st parse.Statement) (*exec.ExprProgram, error) {
	ep, err := plan.RowExpression(text, want, t, d.options(st))
	if err != nil {
		return nil, err
	}
	return exec.CompileExpr(ep.Expr, ep.Slots, ep.Subqueries, ep.CTEs)
}

// alterType is ALTER TABLE ... ALTER COLUMN ... TYPE: every row is converted and
// written again, so an old height still shows the old values.
func (d *definer) alterType(t *catalog.Table, c *pg.AlterTableCmd, st parse.Statement) error {
	i := t.Column(c.Name)
	if i < 0 {
		return pgerr.New(pgerr.UndefinedColumn, "column \"%s\" of relation \"%s\" does not exist", c.Name, t.Name)
	}
	n := c.Def.GetColumnDef()
	typ, err := d.resolveType(n.TypeName, st)
	if err != nil {
		return err
	}
	col := &t.Columns[i]
	if typ.Kind == datum.Pseudo || uses(typ.Desc, t.RowType) {
		return pgerr.New(pgerr.InvalidTableDefinition, "column \"%s\" has pseudo-type %s", c.Name, datum.FormatType(typ))
	}
	if err := d.typeChangeable(t, i); err != nil {
		return err
	}
	text := datum.QuoteIdent(c.Name)
	if n.RawDefault != nil {
		if text, err = deparse(n.RawDefault); err != nil {
			return err
		}
	}
	x, err := d.rowExpr(t, text, typ, st)
	if err != nil {
		if code := pgerr.CodeOf(err); n.RawDefault == nil && (code == pgerr.CannotCoerce || code == pgerr.DatatypeMismatch) {
			return pgerr.New(pgerr.DatatypeMismatch, "column \"%s\" cannot be cast automatically to type %s", c.Name, datum.FormatType(typ)).
				WithHint("You might need to specify \"USING %s::%s\".", datum.QuoteIdent(c.Name), datum.FormatType(typ))
		}
		return err
	}
	next := copyTable(t)
	nc := &next.Columns[i]
	nc.TypeOID, nc.TypMod, nc.Type, nc.Missing = typ.OID, typ.Mod, typ, nil
	if col.Default != "" {
		if _, err := plan.ExpressionText("("+col.Default+")::"+datum.FormatType(col.Type), typ, d.options(st)); err != nil {
			return pgerr.New(pgerr.DatatypeMismatch, "default for column \"%s\" cannot be cast automatically to type %s", c.Name, datum.FormatType(typ))
		}
	}
	for k := range next.Indexes {
		if next.Indexes[k].HasColumn(i) {
			if err := indexable(nc); err != nil {
				return err
			}
		}
	}
	if err := d.reanalyzeIndexes(next); err != nil {
		return err
	}
	// The new column is analyzed with everything that mentions it before any row
	// is touched.
	if err := d.editor.PutTable(next); err != nil {
		return err
	}
	if err := d.checkTable(next, st); err != nil {
		return err
	}
	// What rows that lack later columns have there is written out as well.
	err = d.rewrite(t, next, func(now []datum.Datum) error {
		v, err := x.Eval(d.env, now)
		if err != nil {
			return err
		}
		if v.IsNull() && nc.NotNull {
			return pgerr.New(pgerr.NotNullViolation, "column \"%s\" of relation \"%s\" contains null values", c.Name, t.Name)
		}
		now[i] = v
		return nil
	})
	if err != nil {
		return err
	}
	return d.verifyRows(next, next.Checks, st)
}

// typeChangeable refuses a change of a column's type where something else was
// made for the type that it has.
func (d *definer) typeChangeable(t *catalog.Table, i int) error {
	col := &t.Columns[i]
	if err := d.rowTypeUnused(t); err != nil {
		return err
	}
	for k := range t.Columns {
		if o := &t.Columns[k]; !o.Dropped && o.Generated != "" && mentions(o.Generated, col.Name) {
			return pgerr.New(pgerr.SyntaxError, "cannot alter type of a column used by a generated column").
				WithDetail("Column \"%s\" is used by generated column \"%s\".", col.Name, o.Name)
		}
	}
	if col.Generated != "" {
		return pgerr.NotBuilt("changing the type of a generated column is not supported")
	}
	for _, o := range d.catalog().Tables() {
		if o.HasQuery() && viewReads(o, t) && d.viewNeeds(o, t, i) {
			return pgerr.New(pgerr.FeatureNotSupported, "cannot alter type of a column used by a view or rule").
				WithDetail("rule _RETURN on view %s depends on column \"%s\"", o.Name, col.Name)
		}
		for _, fk := range o.ForeignKeys {
			if o.OID == t.OID && slices.Contains(fk.Columns, i) || fk.RefSchema == t.Schema && fk.RefTable == t.Name && slices.Contains(fk.RefColumns, i) {
				return pgerr.NotBuilt("changing the type of column \"%s\", which foreign key \"%s\" uses, is not supported", col.Name, fk.Name)
			}
		}
	}
	for _, x := range t.Triggers {
		if slices.Contains(x.Columns, i) || x.When != "" && mentions(x.When, col.Name) {
			return pgerr.New(pgerr.FeatureNotSupported, "cannot alter type of a column used in a trigger definition").
				WithDetail("trigger %s on table %s depends on column \"%s\"", x.Name, t.Name, col.Name)
		}
	}
	return nil
}

// fillGenerated computes a new generated column for the rows that exist.
func (d *definer) fillGenerated(t, next *catalog.Table, st parse.Statement) error {
	i := len(next.Columns) - 1
	col := &next.Columns[i]
	x, err := d.rowExpr(next, col.Generated, col.Type, st)
	if err != nil {
		return err
	}
	return d.rewrite(t, next, func(now []datum.Datum) error {
		v, err := x.Eval(d.env, now)
		if err == nil && v.IsNull() && col.NotNull {
			err = pgerr.New(pgerr.NotNullViolation, "column \"%s\" of relation \"%s\" contains null values", col.Name, t.Name)
		}
		now[i] = v
		return err
	})
}

// verifyForeignKeys looks for rows that violate new foreign keys.
func (d *definer) verifyForeignKeys(t *catalog.Table, fks []catalog.ForeignKey) error {
	for i := range fks {
		if err := d.verifyForeignKey(t, &fks[i]); err != nil {
			return err
		}
	}
	return nil
}

func (d *definer) verifyForeignKey(t *catalog.Table, fk *catalog.ForeignKey) error {
	ref, ok := d.catalog().Table(fk.RefSchema, fk.RefTable)
	if !ok {
		return pgerr.New(pgerr.InternalError, "foreign key \"%s\" refers to a missing table", fk.Name)
	}
	var cond, filled, names []string
	for k, c := range fk.Columns {
		name := datum.QuoteIdent(t.Columns[c].Name)
		names = append(names, name)
		filled = append(filled, "child."+name+" IS NOT NULL")
		cond = append(cond, "parent."+datum.QuoteIdent(ref.Columns[fk.RefColumns[k]].Name)+" = child."+name)
	}
	q := "SELECT concat_ws(', ', child." + strings.Join(names, ", child.") + ") FROM " + quoteQualified(t) + " AS child WHERE " + strings.Join(filled, " AND ") +
		" AND NOT EXISTS (SELECT 1 FROM " + quoteQualified(ref) + " AS parent WHERE " + strings.Join(cond, " AND ") + ") LIMIT 1"
	found, err := d.firstText(q)
	if err != nil || found == nil {
		return err
	}
	e := pgerr.New(pgerr.ForeignKeyViolation, "insert or update on table \"%s\" violates foreign key constraint \"%s\"", t.Name, fk.Name).
		WithDetail("Key (%s)=(%s) is not present in table \"%s\".", strings.Join(names, ", "), *found, ref.Name)
	e.Schema, e.Table, e.Constraint = t.Schema, t.Name, fk.Name
	return e
}

// firstText is the first value of a query of one text column; nil if it has no
// rows.
func (d *definer) firstText(text string) (*string, error) {
	one, err := parse.One(text)
	if err != nil {
		return nil, err
	}
	pl, err := plan.Statement(one.Node, d.options(one))
	if err != nil {
		return nil, err
	}
	prog, err := exec.Compile(pl)
	if err != nil {
		return nil, err
	}
	row := make([]datum.Datum, 1)
	n, err := prog.First(d.env, nil, row)
	if err != nil || n == 0 {
		return nil, err
	}
	s := strings.Clone(row[0].Str())
	return &s, nil
}

// renameTable is ALTER TABLE or VIEW ... RENAME TO. Stored texts keep the names
// they were written with, so what views and functions of other objects mention
// keeps its name.
func (d *definer) renameTable(n *pg.RenameStmt) error {
	t, err := d.findTable(n.Relation)
	if err != nil {
		if n.MissingOk && pgerr.CodeOf(err) == pgerr.UndefinedTable {
			d.say(pgerr.SuccessfulCompletion, "relation \"%s\" does not exist, skipping", n.Relation.Relname)
			return nil
		}
		return err
	}
	if err := d.relationFree(t.Schema, n.Newname); err != nil {
		return err
	}
	if err := d.typeFree(t.Schema, n.Newname); err != nil {
		return err
	}
	for _, o := range d.catalog().Tables() {
		if o.HasQuery() && viewReads(o, t) {
			return pgerr.NotBuilt("renaming table \"%s\", which view \"%s\" reads, is not supported", t.Name, o.Name)
		}
	}
	next := copyTable(t)
	next.Name = n.Newname
	for i := range next.ForeignKeys {
		if fk := &next.ForeignKeys[i]; fk.RefSchema == t.Schema && fk.RefTable == t.Name {
			fk.RefTable = n.Newname
		}
	}
	if err := d.editor.DropTable(t); err != nil {
		return err
	}
	if err := d.editor.PutTable(next); err != nil {
		return err
	}
	for _, o := range d.catalog().Tables() {
		if o.OID == t.OID || !slices.ContainsFunc(o.ForeignKeys, func(k catalog.ForeignKey) bool { return k.RefSchema == t.Schema && k.RefTable == t.Name }) {
			continue
		}
		from := copyTable(o)
		for i := range from.ForeignKeys {
			if fk := &from.ForeignKeys[i]; fk.RefSchema == t.Schema && fk.RefTable == t.Name {
				fk.RefTable = n.Newname
			}
		}
		if err := d.editor.PutTable(from); err != nil {
			return err
		}
	}
	return nil
}

// renameIndex is ALTER INDEX ... RENAME TO.
func (d *definer) renameIndex(n *pg.RenameStmt) error {
	for _, schema := range d.searchIn(n.Relation.Schemaname) {
		t, ok := d.catalog().IndexTable(schema, n.Relation.Relname)
		if !ok || t.System {
			continue
		}
		if err := d.relationFree(t.Schema, n.Newname); err != nil {
			return err
		}
		next := copyTable(t)
		for i := range next.Indexes {
			if next.Indexes[i].Name == n.Relation.Relname {
				next.Indexes[i].Name = n.Newname
			}
		}
		return d.editor.PutTable(next)
	}
	return pgerr.New(pgerr.UndefinedTable, "relation \"%s\" does not exist", n.Relation.Relname)
}

// renameConstraint is ALTER TABLE ... RENAME CONSTRAINT.
func (d *definer) renameConstraint(n *pg.RenameStmt) error {
	t, err := d.findTable(n.Relation)
	if err != nil {
		return err
	}
	next := copyTable(t)
	var name *string
	for i := range next.Checks {
		if next.Checks[i].Name == n.Subname {
			name = &next.Checks[i].Name
		}
	}
	for i := range next.ForeignKeys {
		if next.ForeignKeys[i].Name == n.Subname {
			name = &next.ForeignKeys[i].Name
		}
	}
	for i := range next.Indexes {
		if next.Indexes[i].Name == n.Subname && next.Indexes[i].Constraint {
			if err := d.relationFree(t.Schema, n.Newname); err != nil {
				return err
			}
			name = &next.Indexes[i].Name
		}
	}
	if name == nil {
		return pgerr.New(pgerr.UndefinedObject, "constraint \"%s\" for table \"%s\" does not exist", n.Subname, t.Name)
	}
	def := &tableDef{d: d, table: t}
	if _, err := def.constraintName(n.Newname); err != nil {
		return err
	}
	*name = n.Newname
	return d.editor.PutTable(next)
}
