package sql

import (
	"fmt"
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

// What ALTER and DROP can do to private objects only: a node may rewrite its own
// tables whenever it likes.

// alterLocal carries out the subcommands of ALTER TABLE that replicated tables
// do not have.
func (d *definer) alterLocal(t *catalog.Table, c *pg.AlterTableCmd, st parse.Statement) error {
	switch c.Subtype {
	case pg.AlterTableType_AT_AlterColumnType:
		return d.alterType(t, c, st)
	case pg.AlterTableType_AT_ChangeOwner:
		next := copyTable(t)
		if next.Owner = c.Newowner.GetRolename(); next.Owner == "" {
			next.Owner = d.owner
		}
		return d.editor.PutTable(next)
	case pg.AlterTableType_AT_SetStatistics, pg.AlterTableType_AT_SetStorage, pg.AlterTableType_AT_ClusterOn, pg.AlterTableType_AT_SetRelOptions,
		pg.AlterTableType_AT_ValidateConstraint:
		return nil // nothing here depends on it
	case pg.AlterTableType_AT_AddIdentity:
		return d.addIdentity(t, c, st)
	case pg.AlterTableType_AT_DropIdentity:
		return d.dropIdentity(t, c, st)
	case pg.AlterTableType_AT_SetIdentity:
		return d.setIdentity(t, c, st)
	case pg.AlterTableType_AT_DropExpression:
		return d.changeColumn(t, c.Name, func(_ *tableDef, col *catalog.Column) error { col.Generated = ""; return nil }, st)
	}
	return pgerr.NotBuilt("this form of ALTER TABLE is not supported")
}

// ownerOnly tells that a statement changes the owner of something else than a
// table.
func ownerOnly(n *pg.AlterTableStmt) bool {
	return !slices.ContainsFunc(n.Cmds, func(c *pg.Node) bool {
		return c.GetAlterTableCmd().GetSubtype() != pg.AlterTableType_AT_ChangeOwner
	})
}

// allRows reads all rows of a table into memory, in key order.
func (d *definer) allRows(t *catalog.Table) ([][]datum.Datum, error) {
	layout, err := catalog.NewLayout(t)
	if err != nil {
		return nil, err
	}
	var list [][]datum.Datum
	var arena datum.Arena
	err = d.eachRow(t, layout, func(row []datum.Datum) error {
		kept := make([]datum.Datum, len(row))
		arena.CloneRow(kept, row)
		list = append(list, kept)
		return nil
	})
	return list, err
}

// rewrite replaces a table by next and its rows by what they become.
func (d *definer) rewrite(old, next *catalog.Table, rows [][]datum.Datum) error {
	if err := d.deleteRows(old); err != nil {
		return err
	}
	if err := d.editor.PutTable(next); err != nil {
		return err
	}
	layout, err := catalog.NewLayout(next)
	if err != nil {
		return err
	}
	var key []byte
	for _, row := range rows {
		for i := range next.Indexes {
			if next.Indexes[i].Hidden || !layout.Exclusive(i, row) {
				continue
			}
			key = layout.IndexKey(key[:0], i, row)
			_, _, taken, err := d.txn().Get(key, mvcc.ReadExistence)
			if err != nil {
				return err
			}
			if taken {
				return pgerr.New(pgerr.UniqueViolation, "could not create unique index \"%s\"", next.Indexes[i].Name).
					WithDetail("Key %s is duplicated.", keyText(next, &next.Indexes[i], row))
			}
		}
		if err := layout.EachEntry(row, d.txn().PutInsert); err != nil {
			return err
		}
	}
	return nil
}

// alterType is ALTER COLUMN TYPE: the rows are written anew.
func (d *definer) alterType(t *catalog.Table, c *pg.AlterTableCmd, st parse.Statement) error {
	i := t.Column(c.Name)
	if i < 0 {
		return pgerr.New(pgerr.UndefinedColumn, "column \"%s\" of relation \"%s\" does not exist", c.Name, t.Name)
	}
	def := c.Def.GetColumnDef()
	typ, err := plan.ResolveType(def.TypeName)
	if err != nil {
		return positioned(err, st, def.TypeName.Location)
	}
	for _, v := range d.catalog().Tables() {
		if v.Kind == catalog.View && viewReads(v, t) {
			return pgerr.New(pgerr.FeatureNotSupported, "cannot alter type of a column used by a view or rule").
				WithDetail("rule _RETURN on view %s depends on column \"%s\"", v.Name, c.Name)
		}
	}
	values, err := d.converted(t, i, typ, def.RawDefault)
	if err != nil {
		return err
	}
	rows, err := d.allRows(t)
	if err != nil {
		return err
	}
	next := copyTable(t)
	for j := range next.Columns {
		next.Columns[j].Missing = nil
	}
	col := &next.Columns[i]
	col.TypeOID, col.TypMod, col.Type = typ.OID, typ.Mod, typ
	for _, idx := range next.Indexes {
		for _, k := range idx.Keys {
			if err := indexable(&next.Columns[k.Column]); err != nil {
				return err
			}
		}
	}
	for n, row := range rows {
		if row[i] = values[n]; row[i].IsNull() && col.NotNull {
			return pgerr.New(pgerr.NotNullViolation, "column \"%s\" of relation \"%s\" contains null values", c.Name, t.Name)
		}
	}
	if err := d.rewrite(t, next, rows); err != nil {
		return err
	}
	if err := d.checkTable(next, st); err != nil {
		return err
	}
	return d.verifyRows(next, next.Checks, st)
}

// converted computes the new values of column i, in key order.
func (d *definer) converted(t *catalog.Table, i int, typ datum.Type, using *pg.Node) ([]datum.Datum, error) {
	expr := datum.QuoteIdent(t.Columns[i].Name)
	if using != nil {
		var err error
		if expr, err = deparse(using); err != nil {
			return nil, err
		}
	}
	one, err := parse.One("SELECT " + expr + " FROM " + quoteQualified(t))
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
	rows, err := d.collect(prog)
	if err != nil {
		return nil, err
	}
	opts := d.options(one)
	opts.Params = []datum.Type{pl.Columns[0].Type}
	ep, err := plan.ExpressionText("$1", typ, opts)
	if err != nil {
		name := t.Columns[i].Name
		if using != nil {
			return nil, pgerr.New(pgerr.DatatypeMismatch, "result of USING clause for column \"%s\" cannot be cast automatically to type %s", name, datum.FormatType(typ)).
				WithHint("You might need to add an explicit cast.")
		}
		return nil, pgerr.New(pgerr.DatatypeMismatch, "column \"%s\" cannot be cast automatically to type %s", name, datum.FormatType(typ)).
			WithHint("You might need to specify \"USING %s::%s\".", datum.QuoteIdent(name), datum.FormatType(typ))
	}
	x, err := exec.CompileExpr(ep.Expr, ep.Slots, ep.Subqueries, ep.CTEs)
	if err != nil {
		return nil, err
	}
	out := make([]datum.Datum, len(rows))
	for n, row := range rows {
		if out[n], err = x.Eval(d.env, row); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// addLocalColumn finishes ADD COLUMN: rows that exist get the default, each its
// own; then come keys, foreign keys and checks.
func (d *definer) addLocalColumn(t *catalog.Table, def *tableDef, st parse.Statement) error {
	next := def.table
	i := len(next.Columns) - 1
	col := &next.Columns[i]
	plain := *next
	plain.Checks = t.Checks
	notNull := col.NotNull
	for _, k := range def.keys {
		if k.Primary && t.PrimaryKey() != nil {
			return pgerr.New(pgerr.InvalidTableDefinition, "multiple primary keys for table \"%s\" are not allowed", t.Name)
		}
	}
	for _, q := range def.sequences {
		if err := d.editor.PutTable(q); err != nil {
			return err
		}
	}
	if err := d.editor.PutTable(&plain); err != nil {
		return err
	}
	if err := d.checkTable(&plain, st); err != nil {
		return err
	}
	rows, err := d.allRows(&plain)
	if err != nil {
		return err
	}
	if len(rows) > 0 && (col.Default != "" || col.Sequence != 0 || col.Generated != "") {
		if err := d.fill(&plain, i, rows, st); err != nil {
			return err
		}
	}
	for _, row := range rows {
		if notNull && row[i].IsNull() {
			return pgerr.New(pgerr.NotNullViolation, "column \"%s\" of relation \"%s\" contains null values", col.Name, t.Name)
		}
	}
	next.Indexes = append(slices.Clone(t.Indexes), def.keys...)
	for _, fk := range def.fks {
		if len(rows) > 0 && col.Default != "" {
			return pgerr.NotBuilt("adding a column with a default and a foreign key to a table that has rows is not supported")
		}
		if err := def.addForeignKey(fk); err != nil {
			return err
		}
	}
	if err := d.rewrite(&plain, next, rows); err != nil {
		return err
	}
	if err := d.checkTable(next, st); err != nil {
		return err
	}
	if err := d.touchReferenced(next); err != nil {
		return err
	}
	return d.verifyRows(next, next.Checks[len(t.Checks):], st)
}

// fill computes the default or the generated value of column i for every row.
func (d *definer) fill(t *catalog.Table, i int, rows [][]datum.Datum, st parse.Statement) error {
	col := &t.Columns[i]
	if col.Sequence != 0 {
		for _, row := range rows {
			v, err := d.nextOf(col.Sequence)
			if err != nil {
				return err
			}
			row[i] = datum.Int(v)
		}
		return nil
	}
	expr := col.Default
	if col.Generated != "" {
		expr = col.Generated
	}
	one, err := parse.One("SELECT " + expr + " FROM " + quoteQualified(t))
	if err != nil {
		return err
	}
	values, err := d.converted(t, i, col.Type, one.Node.GetSelectStmt().TargetList[0].GetResTarget().Val)
	if err != nil {
		return err
	}
	for n, row := range rows {
		row[i] = values[n]
	}
	return nil
}

func (d *definer) nextOf(sequence catalog.OID) (int64, error) {
	q, ok := d.catalog().SequenceByOID(sequence)
	if !ok {
		return 0, fmt.Errorf("sql: there is no sequence %d", sequence)
	}
	return d.engine.private.sequences.next(q)
}

// verifyNotNull demands of the rows that columns which became NOT NULL have
// values.
func (d *definer) verifyNotNull(old, next *catalog.Table) error {
	if d.local == nil {
		return nil
	}
	layout, err := catalog.NewLayout(next)
	if err != nil {
		return err
	}
	var fresh []int
	for i := range old.Columns {
		if next.Columns[i].NotNull && !old.Columns[i].NotNull {
			fresh = append(fresh, i)
		}
	}
	if fresh == nil {
		return nil
	}
	return d.eachRow(next, layout, func(row []datum.Datum) error {
		for _, i := range fresh {
			if row[i].IsNull() {
				return pgerr.New(pgerr.NotNullViolation, "column \"%s\" of relation \"%s\" contains null values", next.Columns[i].Name, next.Name)
			}
		}
		return nil
	})
}

// dropKey drops a primary key or unique constraint. Rows that were stored by
// the primary key get a hidden one instead.
func (d *definer) dropKey(t *catalog.Table, i int, behavior pg.DropBehavior) error {
	t, err := d.releaseKey(t, i, behavior)
	if err != nil {
		return err
	}
	if i > 0 {
		return d.withoutIndex(t, i)
	}
	rows, err := d.allRows(t)
	if err != nil {
		return err
	}
	def := &tableDef{d: d, table: copyTable(t)}
	def.table.Indexes = nil
	if err := def.identifyRows(); err != nil {
		return err
	}
	def.table.Indexes = append(def.table.Indexes, t.Indexes[1:]...)
	for n := range rows {
		id, err := d.engine.private.nextRowID()
		if err != nil {
			return err
		}
		rows[n] = append(rows[n], datum.Int(id))
	}
	return d.rewrite(t, def.table, rows)
}

// releaseKey sees to it that no foreign key relies on index i.
func (d *definer) releaseKey(t *catalog.Table, i int, behavior pg.DropBehavior) (*catalog.Table, error) {
	idx := &t.Indexes[i]
	for _, o := range d.catalog().Tables() {
		for n := len(o.ForeignKeys) - 1; n >= 0; n-- {
			fk := &o.ForeignKeys[n]
			if fk.RefSchema != t.Schema || fk.RefTable != t.Name || len(fk.RefColumns) != len(idx.Keys) ||
				slices.ContainsFunc(idx.Keys, func(k catalog.IndexKey) bool { return !slices.Contains(fk.RefColumns, k.Column) }) {
				continue
			}
			if behavior != pg.DropBehavior_DROP_CASCADE {
				return nil, pgerr.New(pgerr.DependentObjectsStillExist, "cannot drop constraint %s on table %s because other objects depend on it", idx.Name, t.Name).
					WithDetail("constraint %s on table %s depends on index %s", fk.Name, o.Name, idx.Name).
					WithHint("Use DROP ... CASCADE to drop the dependent objects too.")
			}
			d.say(pgerr.SuccessfulCompletion, "drop cascades to constraint %s on table %s", fk.Name, o.Name)
			next := copyTable(o)
			next.ForeignKeys = slices.Delete(next.ForeignKeys, n, n+1)
			if err := d.editor.PutTable(next); err != nil {
				return nil, err
			}
			o = next
		}
	}
	now, _ := d.catalog().TableByOID(t.OID)
	return now, nil
}

// withoutDependents takes away what goes with a column: its indexes and
// constraints and, with CASCADE, the views.
func (d *definer) withoutDependents(t *catalog.Table, i int, behavior pg.DropBehavior) (*catalog.Table, int, error) {
	again := func() { t, _ = d.catalog().TableByOID(t.OID) }
	for n := len(t.Indexes) - 1; n >= 0; n-- {
		idx := &t.Indexes[n]
		if idx.Hidden || !slices.ContainsFunc(idx.Keys, func(k catalog.IndexKey) bool { return k.Column == i }) {
			continue
		}
		if err := d.dropKey(t, n, behavior); err != nil {
			return nil, 0, err
		}
		again()
	}
	next := copyTable(t)
	next.ForeignKeys = slices.DeleteFunc(next.ForeignKeys, func(fk catalog.ForeignKey) bool { return slices.Contains(fk.Columns, i) })
	name := t.Columns[i].Name
	next.Checks = slices.DeleteFunc(next.Checks, func(k catalog.Check) bool {
		node, err := parse.Expression(k.Expr)
		return err == nil && soleColumn(node) == name
	})
	if err := d.editor.PutTable(next); err != nil {
		return nil, 0, err
	}
	if behavior == pg.DropBehavior_DROP_CASCADE {
		for _, v := range d.catalog().Tables() {
			if v.Kind == catalog.View && viewReads(v, t) && strings.Contains(v.Query, name) {
				if err := d.dropDependents(v); err != nil {
					return nil, 0, err
				}
				d.say(pgerr.SuccessfulCompletion, "drop cascades to view %s", v.Name)
				if err := d.editor.DropTable(v); err != nil {
					return nil, 0, err
				}
			}
		}
	}
	if err := d.dropOwned(t, i); err != nil {
		return nil, 0, err
	}
	again()
	return t, i, nil
}

// noteDropping remembers the relations that a DROP names: they do not keep one
// another.
func (d *definer) noteDropping(n *pg.DropStmt) error {
	if d.local == nil {
		return nil
	}
	d.local.drops = map[catalog.OID]bool{}
	for _, o := range n.Objects {
		if o.GetList() == nil {
			continue
		}
		v, err := qualifiedName(o)
		if err != nil {
			return err
		}
		if t, err := d.findTable(v); err == nil {
			d.local.drops[t.OID] = true
		}
	}
	return nil
}

// dropping tells that the present DROP names a relation, or has reached it.
func (d *definer) dropping(t *catalog.Table) bool { return d.local != nil && d.local.drops[t.OID] }

// dropDependents drops what depends on a relation: views, and foreign keys of
// other tables.
func (d *definer) dropDependents(t *catalog.Table) error {
	gone, err := d.cascade(t)
	if err != nil || len(gone) == 0 || d.notice == nil {
		return err
	}
	e := pgerr.New(pgerr.SuccessfulCompletion, "drop cascades to %s", gone[0])
	if len(gone) > 1 {
		lines := make([]string, len(gone))
		for i, g := range gone {
			lines[i] = "drop cascades to " + g
		}
		e = pgerr.New(pgerr.SuccessfulCompletion, "drop cascades to %d other objects", len(gone)).WithDetail("%s", strings.Join(lines, "\n"))
	}
	d.notice(e)
	return nil
}

func (d *definer) cascade(t *catalog.Table) (gone []string, err error) {
	for _, o := range d.catalog().Tables() {
		if o.OID == t.OID || d.dropping(o) || !o.Local() {
			continue
		}
		if o.Kind == catalog.View && viewReads(o, t) {
			if _, still := d.catalog().TableByOID(o.OID); !still {
				continue
			}
			more, err := d.cascade(o)
			if err != nil {
				return nil, err
			}
			gone = append(append(gone, "view "+o.Name), more...)
			if err := d.editor.DropTable(o); err != nil {
				return nil, err
			}
			continue
		}
		next := copyTable(o)
		next.ForeignKeys = slices.DeleteFunc(next.ForeignKeys, func(fk catalog.ForeignKey) bool {
			if fk.RefSchema != t.Schema || fk.RefTable != t.Name {
				return false
			}
			gone = append(gone, "constraint "+fk.Name+" on table "+o.Name)
			return true
		})
		if len(next.ForeignKeys) != len(o.ForeignKeys) {
			if err := d.editor.PutTable(next); err != nil {
				return nil, err
			}
		}
	}
	return gone, nil
}

// renameLocal is ALTER ... RENAME of relations and constraints.
func (d *definer) renameLocal(n *pg.RenameStmt) error {
	switch n.RenameType {
	case pg.ObjectType_OBJECT_TABLE, pg.ObjectType_OBJECT_VIEW, pg.ObjectType_OBJECT_SEQUENCE, pg.ObjectType_OBJECT_INDEX:
		for _, schema := range d.searchIn(n.Relation.Schemaname) {
			if t, ok := d.catalog().IndexTable(schema, n.Relation.Relname); ok && t.Local() {
				return d.renameIndex(t, n.Relation.Relname, n.Newname)
			}
		}
		t, err := d.findTable(n.Relation)
		if err != nil {
			if n.MissingOk && pgerr.CodeOf(err) == pgerr.UndefinedTable {
				d.say(pgerr.SuccessfulCompletion, "relation \"%s\" does not exist, skipping", n.Relation.Relname)
				return nil
			}
			return err
		}
		return d.renameRelation(t, n.Newname)
	case pg.ObjectType_OBJECT_TABCONSTRAINT:
		t, err := d.findTable(n.Relation)
		if err != nil {
			return err
		}
		return d.renameConstraint(t, n.Subname, n.Newname)
	}
	return pgerr.NotBuilt("renaming a %s is not supported", objectName(n.RenameType))
}

func (d *definer) renameRelation(t *catalog.Table, name string) error {
	if err := d.relationFree(t.Schema, name); err != nil {
		return err
	}
	for _, v := range d.catalog().Tables() {
		if v.Kind == catalog.View && v.OID != t.OID && viewReads(v, t) {
			return pgerr.NotBuilt("renaming \"%s\", which view %s reads, is not supported", t.Name, v.Name)
		}
	}
	for _, o := range d.catalog().Tables() {
		next := copyTable(o)
		changed := false
		for i := range next.ForeignKeys {
			if fk := &next.ForeignKeys[i]; fk.RefSchema == t.Schema && fk.RefTable == t.Name {
				fk.RefTable, changed = name, true
			}
		}
		if changed && o.OID != t.OID {
			if err := d.editor.PutTable(next); err != nil {
				return err
			}
		}
		if o.OID == t.OID {
			t = next
		}
	}
	if err := d.editor.DropTable(t); err != nil {
		return err
	}
	t.Name = name
	return d.editor.PutTable(t)
}

func (d *definer) renameIndex(t *catalog.Table, from, to string) error {
	if err := d.relationFree(t.Schema, to); err != nil {
		return err
	}
	next := copyTable(t)
	for i := range next.Indexes {
		if next.Indexes[i].Name == from {
			next.Indexes[i].Name = to
		}
	}
	return d.editor.PutTable(next)
}

func (d *definer) renameConstraint(t *catalog.Table, from, to string) error {
	next := copyTable(t)
	for i := range next.Checks {
		if next.Checks[i].Name == from {
			next.Checks[i].Name = to
			return d.editor.PutTable(next)
		}
	}
	for i := range next.ForeignKeys {
		if next.ForeignKeys[i].Name == from {
			next.ForeignKeys[i].Name = to
			return d.editor.PutTable(next)
		}
	}
	for _, idx := range next.Indexes {
		if idx.Name == from && idx.Constraint {
			return d.renameIndex(t, from, to)
		}
	}
	return pgerr.New(pgerr.UndefinedObject, "constraint \"%s\" for table \"%s\" does not exist", from, t.Name)
}

// addIdentity is ALTER COLUMN ADD GENERATED ... AS IDENTITY.
func (d *definer) addIdentity(t *catalog.Table, c *pg.AlterTableCmd, st parse.Statement) error {
	i := t.Column(c.Name)
	if i < 0 {
		return pgerr.New(pgerr.UndefinedColumn, "column \"%s\" of relation \"%s\" does not exist", c.Name, t.Name)
	}
	if t.Columns[i].Identity != "" {
		return pgerr.New(pgerr.ObjectNotInPrerequisiteState, "column \"%s\" of relation \"%s\" is already an identity column", c.Name, t.Name)
	}
	if !t.Columns[i].NotNull {
		return pgerr.New(pgerr.ObjectNotInPrerequisiteState, "column \"%s\" of relation \"%s\" must be declared NOT NULL before identity can be added", c.Name, t.Name)
	}
	def := &tableDef{d: d, st: st, table: copyTable(t)}
	if err := def.identity(c.Def.GetConstraint(), c.Name); err != nil {
		return err
	}
	for _, q := range def.sequences {
		if err := d.editor.PutTable(q); err != nil {
			return err
		}
	}
	return d.editor.PutTable(def.table)
}

func (d *definer) dropIdentity(t *catalog.Table, c *pg.AlterTableCmd, st parse.Statement) error {
	i := t.Column(c.Name)
	if i >= 0 && t.Columns[i].Identity == "" {
		if c.MissingOk {
			d.say(pgerr.SuccessfulCompletion, "column \"%s\" of relation \"%s\" is not an identity column, skipping", c.Name, t.Name)
			return nil
		}
		return pgerr.New(pgerr.ObjectNotInPrerequisiteState, "column \"%s\" of relation \"%s\" is not an identity column", c.Name, t.Name)
	}
	err := d.changeColumn(t, c.Name, func(_ *tableDef, col *catalog.Column) error {
		col.Identity, col.Sequence = "", 0
		return nil
	}, st)
	if err != nil {
		return err
	}
	return d.dropOwned(t, i)
}

func (d *definer) setIdentity(t *catalog.Table, c *pg.AlterTableCmd, st parse.Statement) error {
	i := t.Column(c.Name)
	if i < 0 || t.Columns[i].Identity == "" {
		return pgerr.New(pgerr.ObjectNotInPrerequisiteState, "column \"%s\" of relation \"%s\" is not an identity column", c.Name, t.Name)
	}
	var options []*pg.Node
	for _, o := range c.Def.GetList().GetItems() {
		if e := o.GetDefElem(); e.Defname == "generated" {
			kind := string(rune(e.Arg.GetInteger().GetIval()))
			if err := d.changeColumn(t, c.Name, func(_ *tableDef, col *catalog.Column) error { col.Identity = kind; return nil }, st); err != nil {
				return err
			}
		} else {
			options = append(options, o)
		}
	}
	q, ok := d.catalog().SequenceByOID(t.Columns[i].Sequence)
	if !ok || options == nil {
		return nil
	}
	next := copySequence(q)
	if err := d.sequenceOptions(next, options, false); err != nil {
		return err
	}
	return d.editor.PutTable(next)
}

// like is LIKE in CREATE TABLE.
func (def *tableDef) like(n *pg.TableLikeClause) error {
	d := def.d
	var src *catalog.Table
	for _, schema := range d.searchIn(n.Relation.Schemaname) {
		if t, ok := d.catalog().Table(schema, n.Relation.Relname); ok {
			src = t
			break
		}
	}
	if src == nil {
		return pgerr.New(pgerr.UndefinedTable, "relation \"%s\" does not exist", n.Relation.Relname)
	}
	const (
		constraints = 1 << 2
		defaults    = 1 << 3
		generated   = 1 << 4
		identity    = 1 << 5
		indexes     = 1 << 6
	)
	t := def.table
	place := map[int]int{}
	for i, col := range src.Columns {
		if col.Dropped {
			continue
		}
		if t.Column(col.Name) >= 0 {
			return pgerr.New(pgerr.DuplicateColumn, "column \"%s\" specified more than once", col.Name)
		}
		next := catalog.Column{Name: col.Name, TypeOID: col.TypeOID, TypMod: col.TypMod, Type: col.Type, NotNull: col.NotNull}
		if n.Options&defaults != 0 {
			next.Default = col.Default
			if col.Identity == "" {
				next.Sequence = col.Sequence
			}
		}
		if n.Options&generated != 0 {
			next.Generated = col.Generated
		}
		place[i] = len(t.Columns)
		t.Columns = append(t.Columns, next)
		if n.Options&identity != 0 && col.Identity != "" {
			t.Columns[place[i]].Identity = col.Identity
			if err := def.ownSequence(col.Name, nil); err != nil {
				return err
			}
		}
	}
	if n.Options&constraints != 0 {
		for _, c := range src.Checks {
			oid, err := d.editor.NextOID()
			if err != nil {
				return err
			}
			t.Checks = append(t.Checks, catalog.Check{OID: oid, Name: c.Name, Expr: c.Expr})
		}
	}
	if n.Options&indexes == 0 {
		return nil
	}
	for _, idx := range src.Indexes {
		if idx.Hidden {
			continue
		}
		parts := []string{t.Name}
		copied := catalog.Index{Unique: idx.Unique, Primary: idx.Primary, Constraint: idx.Constraint}
		for _, k := range idx.Keys {
			parts = append(parts, src.Columns[k.Column].Name)
			copied.Keys = append(copied.Keys, catalog.IndexKey{Column: place[k.Column], Desc: k.Desc, NullsFirst: k.NullsFirst})
		}
		switch {
		case idx.Primary:
			parts = []string{t.Name, "pkey"}
		case idx.Constraint:
			parts = append(parts, "key")
		default:
			parts = append(parts, "idx")
		}
		var err error
		if copied.Name, err = def.constraintName("", parts...); err != nil {
			return err
		}
		if copied.OID, err = d.editor.NextOID(); err != nil {
			return err
		}
		def.keys = append(def.keys, copied)
	}
	return nil
}
