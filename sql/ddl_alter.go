package sql

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/exec"
	"github.com/tallystick/tallystick/sql/parse"
	"github.com/tallystick/tallystick/sql/pgerr"
	"github.com/tallystick/tallystick/sql/plan"
)

func (d *definer) alterTable(n *pg.AlterTableStmt, st parse.Statement) error {
	if n.Objtype != pg.ObjectType_OBJECT_TABLE && (d.local == nil || !ownerOnly(n)) {
		return pgerr.NotBuilt("ALTER %s is not supported", objectName(n.Objtype))
	}
	for _, c := range n.Cmds {
		t, err := d.findTable(n.Relation)
		if err != nil {
			if n.MissingOk && pgerr.CodeOf(err) == pgerr.UndefinedTable {
				d.say(pgerr.SuccessfulCompletion, "relation \"%s\" does not exist, skipping", n.Relation.Relname)
				return nil
			}
			return err
		}
		if err := d.alter(t, c.GetAlterTableCmd(), st); err != nil {
			return err
		}
	}
	return nil
}

// alter carries out one subcommand.
func (d *definer) alter(t *catalog.Table, c *pg.AlterTableCmd, st parse.Statement) error {
	switch c.Subtype {
	case pg.AlterTableType_AT_AddColumn:
		return d.addColumn(t, c, st)
	case pg.AlterTableType_AT_DropColumn:
		return d.dropColumn(t, c)
	case pg.AlterTableType_AT_ColumnDefault:
		return d.changeColumn(t, c.Name, func(def *tableDef, col *catalog.Column) error {
			if col.Identity != "" {
				return pgerr.New(pgerr.SyntaxError, "column \"%s\" of relation \"%s\" is an identity column", col.Name, t.Name)
			}
			col.Default, col.Sequence = "", 0
			if c.Def == nil {
				return nil
			}
			return def.setDefault(col, c.Def)
		}, st)
	case pg.AlterTableType_AT_SetNotNull:
		return d.setNotNull(t, c.Name, st)
	case pg.AlterTableType_AT_DropNotNull:
		return d.dropNotNull(t, c.Name, st)
	case pg.AlterTableType_AT_AddConstraint:
		return d.addConstraint(t, c.Def.GetConstraint(), st)
	case pg.AlterTableType_AT_EnableTrig, pg.AlterTableType_AT_EnableAlwaysTrig:
		return d.enableTrigger(t, c.Name, false)
	case pg.AlterTableType_AT_DisableTrig:
		return d.enableTrigger(t, c.Name, true)
	case pg.AlterTableType_AT_EnableTrigAll, pg.AlterTableType_AT_EnableTrigUser:
		return d.enableTrigger(t, "", false)
	case pg.AlterTableType_AT_DisableTrigAll, pg.AlterTableType_AT_DisableTrigUser:
		return d.enableTrigger(t, "", true)
	case pg.AlterTableType_AT_AlterColumnType:
		return d.alterType(t, c, st)
	case pg.AlterTableType_AT_DropConstraint:
		return d.dropConstraint(t, c)
	case pg.AlterTableType_AT_EnableRowSecurity, pg.AlterTableType_AT_DisableRowSecurity,
		pg.AlterTableType_AT_ForceRowSecurity, pg.AlterTableType_AT_NoForceRowSecurity:
		return d.secureTable(t, c.Subtype)
	}
	if d.local != nil {
		return d.alterLocal(t, c, st)
	}
	return pgerr.NotBuilt("this form of ALTER TABLE is not supported")
}

// copyTable is a table that may be changed.
func copyTable(t *catalog.Table) *catalog.Table {
	next := *t
	next.Columns = slices.Clone(t.Columns)
	next.Indexes = slices.Clone(t.Indexes)
	next.Checks = slices.Clone(t.Checks)
	next.ForeignKeys = slices.Clone(t.ForeignKeys)
	next.Triggers = slices.Clone(t.Triggers)
	return &next
}

func (d *definer) addColumn(t *catalog.Table, c *pg.AlterTableCmd, st parse.Statement) error {
	n := c.Def.GetColumnDef()
	if t.Column(n.Colname) >= 0 {
		if c.MissingOk {
			d.say(pgerr.DuplicateColumn, "column \"%s\" of relation \"%s\" already exists, skipping", n.Colname, t.Name)
			return nil
		}
		return pgerr.New(pgerr.DuplicateColumn, "column \"%s\" of relation \"%s\" already exists", n.Colname, t.Name)
	}
	def := &tableDef{d: d, st: st, table: copyTable(t)}
	if err := def.column(n); err != nil {
		return err
	}
	if d.local != nil {
		return d.addLocalColumn(t, def, st)
	}
	col := &def.table.Columns[len(def.table.Columns)-1]
	for _, k := range def.keys {
		if k.Primary {
			return pgerr.New(pgerr.InvalidTableDefinition, "multiple primary keys for table \"%s\" are not allowed", t.Name)
		}
	}
	if col.Generated == "" {
		if err := d.missingValue(def.table, col, st); err != nil {
			return err
		}
	}
	for _, fk := range def.fks {
		if err := def.addForeignKey(fk); err != nil {
			return err
		}
	}
	if err := d.editor.PutTable(def.table); err != nil {
		return err
	}
	if col.Generated != "" {
		if err := d.checkTable(def.table, st); err != nil {
			return err
		}
		if err := d.fillGenerated(t, def.table, st); err != nil {
			return err
		}
	}
	return d.established(t, def, st)
}

// missingValue computes what rows that exist already have in a new column.
func (d *definer) missingValue(t *catalog.Table, col *catalog.Column, st parse.Statement) error {
	if col.Default == "" {
		if !col.NotNull {
			return nil
		}
		empty, err := d.isEmpty(t)
		if err == nil && !empty {
			err = pgerr.New(pgerr.NotNullViolation, "column \"%s\" of relation \"%s\" contains null values", col.Name, t.Name)
		}
		return err
	}
	ep, err := plan.ExpressionText(col.Default, col.Type, d.options(st))
	if err != nil {
		return err
	}
	x, err := exec.CompileExpr(ep.Expr, ep.Slots, ep.Subqueries, ep.CTEs)
	if err != nil {
		return err
	}
	v, err := x.Eval(d.env, nil)
	if err != nil || v.IsNull() {
		return err
	}
	text := string(col.Type.Append(nil, v, &datum.ContractFormat))
	col.Missing = &text
	return nil
}

func (d *definer) isEmpty(t *catalog.Table) (bool, error) {
	prefix := catalog.Prefix(t.OID, t.Primary().OID)
	it := d.txn().Scan(prefixSpan(prefix), false, d.readMode())
	defer it.Close()
	return !it.Next(), it.Err()
}

func (d *definer) dropColumn(t *catalog.Table, c *pg.AlterTableCmd) error {
	i := t.Column(c.Name)
	if i < 0 {
		if c.MissingOk {
			d.say(pgerr.SuccessfulCompletion, "column \"%s\" of relation \"%s\" does not exist, skipping", c.Name, t.Name)
			return nil
		}
		return pgerr.New(pgerr.UndefinedColumn, "column \"%s\" of relation \"%s\" does not exist", c.Name, t.Name)
	}
	if d.local == nil && t.Primary().HasColumn(i) {
		return pgerr.New(pgerr.InvalidTableDefinition, "table \"%s\" needs its primary key", t.Name)
	}
	if err := d.settleDependents("column "+c.Name+" of table "+t.Name, d.columnDependents(t, i), c.Behavior); err != nil {
		return err
	}
	t, _ = d.catalog().TableByOID(t.OID) // without what CASCADE has dropped
	if t.Primary().HasColumn(i) {
		if err := d.dropKey(t, 0, c.Behavior); err != nil {
			return err
		}
		t, _ = d.catalog().TableByOID(t.OID)
	}
	t, err := d.withoutColumn(t, i)
	if err != nil {
		return err
	}
	if err := d.rowTypeUnused(t); err != nil {
		return err
	}
	next := copyTable(t)
	col := &next.Columns[i]
	col.Dropped, col.NotNull, col.Default, col.Generated, col.Sequence, col.Identity = true, false, "", "", 0, ""
	col.TypeOID, col.Missing = col.Type.StoredAs().OID, nil
	if err := d.editor.PutTable(next); err != nil {
		return err
	}
	if err := d.dropOwned(t, i); err != nil {
		return err
	}
	// Whatever else refers to the column does not analyze any more.
	if err := d.checkTable(next, parse.Statement{}); err != nil {
		return pgerr.New(pgerr.DependentObjectsStillExist, "cannot drop column %s of table %s because other objects depend on it", c.Name, t.Name)
	}
	return d.checkViews(t, "column "+c.Name+" of table "+t.Name)
}

// checkViews plans all views again after a change of a table.
func (d *definer) checkViews(t *catalog.Table, what string) error {
	for _, v := range d.catalog().Tables() {
		if !v.HasQuery() || !viewReads(v, t) {
			continue
		}
		st, err := parse.One(v.Query)
		if err != nil {
			return err
		}
		if _, err := plan.Statement(st.Node, d.viewOptions(v, st)); err != nil {
			return pgerr.New(pgerr.DependentObjectsStillExist, "cannot change %s because view %s depends on it", what, v.Name)
		}
	}
	return nil
}

// changeColumn replaces one column's descriptor.
func (d *definer) changeColumn(t *catalog.Table, name string, f func(*tableDef, *catalog.Column) error, st parse.Statement) error {
	i := t.Column(name)
	if i < 0 {
		return pgerr.New(pgerr.UndefinedColumn, "column \"%s\" of relation \"%s\" does not exist", name, t.Name)
	}
	def := &tableDef{d: d, st: st, table: copyTable(t)}
	if err := f(def, &def.table.Columns[i]); err != nil {
		return err
	}
	if err := d.editor.PutTable(def.table); err != nil {
		return err
	}
	return d.checkTable(def.table, st)
}

func (d *definer) setNotNull(t *catalog.Table, name string, st parse.Statement) error {
	i := t.Column(name)
	if i >= 0 {
		layout, err := catalog.NewLayout(t)
		if err != nil {
			return err
		}
		err = d.eachRow(t, layout, func(row []datum.Datum) error {
			if row[i].IsNull() {
				return pgerr.New(pgerr.NotNullViolation, "column \"%s\" of relation \"%s\" contains null values", name, t.Name)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return d.changeColumn(t, name, func(_ *tableDef, col *catalog.Column) error { col.NotNull = true; return nil }, st)
}

func (d *definer) dropNotNull(t *catalog.Table, name string, st parse.Statement) error {
	return d.changeColumn(t, name, func(def *tableDef, col *catalog.Column) error {
		key := def.table.PrimaryKey()
		if key == nil {
			key = &catalog.Index{}
		}
		for _, k := range key.Keys {
			if &def.table.Columns[k.Column] == col {
				return pgerr.New(pgerr.InvalidTableDefinition, "column \"%s\" is in a primary key", name)
			}
		}
		col.NotNull = false
		return nil
	}, st)
}

func (d *definer) addConstraint(t *catalog.Table, c *pg.Constraint, st parse.Statement) error {
	def := &tableDef{d: d, st: st, table: copyTable(t)}
	if c.Contype == pg.ConstrType_CONSTR_PRIMARY && (d.local == nil || t.PrimaryKey() != nil) {
		return pgerr.New(pgerr.InvalidTableDefinition, "multiple primary keys for table \"%s\" are not allowed", t.Name)
	}
	if err := def.constraint(c, nil); err != nil {
		return err
	}
	for _, fk := range def.fks {
		if err := def.addForeignKey(fk); err != nil {
			return err
		}
	}
	if err := d.editor.PutTable(def.table); err != nil {
		return err
	}
	if err := d.verifyNotNull(t, def.table); err != nil {
		return err
	}
	return d.established(t, def, st)
}

// established builds the keys of a table that got new constraints, and verifies
// all of them; t is the table as it was.
func (d *definer) established(t *catalog.Table, def *tableDef, st parse.Statement) error {
	for _, idx := range def.keys {
		current, _ := d.catalog().Table(t.Schema, t.Name)
		next := copyTable(current)
		next.Indexes = append(next.Indexes, idx)
		if err := d.editor.PutTable(next); err != nil {
			return err
		}
		if err := d.buildIndex(next, &next.Indexes[len(next.Indexes)-1]); err != nil {
			return err
		}
	}
	if err := d.checkTable(def.table, st); err != nil {
		return err
	}
	if err := d.touchReferenced(def.table); err != nil {
		return err
	}
	if err := d.verifyForeignKeys(def.table, def.table.ForeignKeys[len(t.ForeignKeys):]); err != nil {
		return err
	}
	return d.verifyRows(def.table, def.table.Checks[len(t.Checks):], st)
}

// verifyRows applies new CHECK constraints to the rows that exist.
func (d *definer) verifyRows(t *catalog.Table, checks []catalog.Check, st parse.Statement) error {
	for _, c := range checks {
		one, err := parse.One("SELECT 1 FROM " + quoteQualified(t) + " WHERE NOT (" + c.Expr + ") LIMIT 1")
		if err != nil {
			return err
		}
		pl, err := plan.Statement(one.Node, d.options(one))
		if err != nil {
			return err
		}
		prog, err := exec.Compile(pl)
		if err != nil {
			return err
		}
		n, err := prog.First(d.env, nil, make([]datum.Datum, 1))
		if err != nil {
			return err
		}
		if n > 0 {
			return pgerr.New(pgerr.CheckViolation, "check constraint \"%s\" of relation \"%s\" is violated by some row", c.Name, t.Name)
		}
	}
	return nil
}

func quoteQualified(t *catalog.Table) string {
	return datum.QuoteIdent(t.Schema) + "." + datum.QuoteIdent(t.Name)
}

func (d *definer) dropConstraint(t *catalog.Table, c *pg.AlterTableCmd) error {
	next := copyTable(t)
	for i, k := range t.Checks {
		if k.Name == c.Name {
			next.Checks = slices.Delete(next.Checks, i, i+1)
			return d.editor.PutTable(next)
		}
	}
	for i, f := range t.ForeignKeys {
		if f.Name == c.Name {
			next.ForeignKeys = slices.Delete(next.ForeignKeys, i, i+1)
			if err := d.editor.PutTable(next); err != nil {
				return err
			}
			return d.touchReferenced(t)
		}
	}
	for i, idx := range t.Indexes {
		if idx.Name == c.Name && idx.Constraint {
			if d.local != nil {
				return d.dropKey(t, i, c.Behavior)
			}
			if idx.Primary {
				return pgerr.New(pgerr.InvalidTableDefinition, "table \"%s\" needs its primary key", t.Name)
			}
			return d.withoutIndex(t, i)
		}
	}
	if c.MissingOk {
		d.say(pgerr.SuccessfulCompletion, "constraint \"%s\" of relation \"%s\" does not exist, skipping", c.Name, t.Name)
		return nil
	}
	return pgerr.New(pgerr.UndefinedObject, "constraint \"%s\" of relation \"%s\" does not exist", c.Name, t.Name)
}

// rename carries out ALTER TABLE ... RENAME COLUMN. Names that stand in stored
// texts (contracts, views, checks) are not rewritten, so a column that a check,
// a generated column or a view mentions keeps its name.
func (d *definer) rename(n *pg.RenameStmt) error {
	if n.RenameType == pg.ObjectType_OBJECT_TRIGGER {
		return d.renameTrigger(n)
	}
	switch n.RenameType {
	case pg.ObjectType_OBJECT_TABLE, pg.ObjectType_OBJECT_VIEW, pg.ObjectType_OBJECT_MATVIEW, pg.ObjectType_OBJECT_SEQUENCE:
		return d.renameTable(n)
	case pg.ObjectType_OBJECT_TABCONSTRAINT:
		return d.renameConstraint(n)
	case pg.ObjectType_OBJECT_POLICY:
		return d.renamePolicy(n)
	case pg.ObjectType_OBJECT_INDEX:
		return d.renameIndex(n)
	}
	if n.RenameType != pg.ObjectType_OBJECT_COLUMN {
		return pgerr.NotBuilt("renaming a %s is not supported", objectName(n.RenameType))
	}
	t, err := d.findTable(n.Relation)
	if err != nil {
		return err
	}
	i := t.Column(n.Subname)
	if i < 0 {
		return pgerr.New(pgerr.UndefinedColumn, "column \"%s\" does not exist", n.Subname)
	}
	if t.Column(n.Newname) >= 0 {
		return pgerr.New(pgerr.DuplicateColumn, "column \"%s\" of relation \"%s\" already exists", n.Newname, t.Name)
	}
	next := copyTable(t)
	next.Columns[i].Name = n.Newname
	if err := d.renameMentions(next, n.Subname, n.Newname); err != nil {
		return err
	}
	if err := d.editor.PutTable(next); err != nil {
		return err
	}
	if err := d.checkTable(next, parse.Statement{}); err != nil {
		return pgerr.NotBuilt("renaming column \"%s\", which a constraint mentions, is not supported", n.Subname)
	}
	return d.checkViews(t, "column "+n.Subname+" of table "+t.Name)
}

// rowTypeUnused refuses a change of a table that would change the values of its
// row type in columns of other tables.
func (d *definer) rowTypeUnused(t *catalog.Table) error {
	if t.RowType == 0 {
		return nil
	}
	for _, o := range d.catalog().Tables() {
		if o.Kind != catalog.OrdinaryTable {
			continue
		}
		for i := range o.Columns {
			if c := &o.Columns[i]; !c.Dropped && uses(c.Type.Desc, t.RowType) {
				return pgerr.New(pgerr.FeatureNotSupported, "cannot alter table \"%s\" because column \"%s.%s\" uses its row type", t.Name, o.Name, c.Name)
			}
		}
	}
	return nil
}
