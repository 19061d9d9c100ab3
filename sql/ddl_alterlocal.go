package sql

import (
	"fmt"
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/parse"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// What ALTER and DROP can do to private objects only: a node may rewrite its own
// tables whenever it likes.

// alterLocal carries out the subcommands of ALTER TABLE that replicated tables
// do not have.
func (d *definer) alterLocal(t *catalog.Table, c *pg.AlterTableCmd, st parse.Statement) error {
	switch c.Subtype {
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

// addLocalColumn finishes ADD COLUMN: rows that exist get the default, each its
// own; then come keys, foreign keys and checks.
func (d *definer) addLocalColumn(t *catalog.Table, def *tableDef, st parse.Statement) error {
	next := def.table
	i := len(next.Columns) - 1
	col := &next.Columns[i]
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
	next.Indexes = append(next.Indexes, def.keys...)
	for _, fk := range def.fks {
		if err := def.addForeignKey(fk); err != nil {
			return err
		}
	}
	if err := d.editor.PutTable(next); err != nil {
		return err
	}
	if err := d.checkTable(next, st); err != nil {
		return err
	}
	value, err := d.initial(next, col, st)
	if err != nil {
		return err
	}
	err = d.rewrite(t, next, func(now []datum.Datum) error {
		v, err := value(now)
		if err == nil && v.IsNull() && col.NotNull {
			err = pgerr.New(pgerr.NotNullViolation, "column \"%s\" of relation \"%s\" contains null values", col.Name, t.Name)
		}
		now[i] = v
		return err
	})
	if err != nil {
		return err
	}
	if err := d.touchReferenced(next); err != nil {
		return err
	}
	if err := d.verifyForeignKeys(next, next.ForeignKeys[len(t.ForeignKeys):]); err != nil {
		return err
	}
	return d.verifyRows(next, next.Checks[len(t.Checks):], st)
}

// initial is what rows that exist get in a new column.
func (d *definer) initial(t *catalog.Table, col *catalog.Column, st parse.Statement) (func(row []datum.Datum) (datum.Datum, error), error) {
	expr := col.Default
	switch {
	case col.Sequence != 0:
		return func([]datum.Datum) (datum.Datum, error) {
			v, err := d.nextOf(col.Sequence)
			return datum.Int(v), err
		}, nil
	case col.Generated != "":
		expr = col.Generated
	case expr == "":
		return func([]datum.Datum) (datum.Datum, error) { return datum.Null, nil }, nil
	}
	x, err := d.rowExpr(t, expr, col.Type, st)
	if err != nil {
		return nil, err
	}
	return func(row []datum.Datum) (datum.Datum, error) { return x.Eval(d.env, row) }, nil
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
	def := &tableDef{d: d, table: copyTable(t)}
	def.table.Indexes = nil
	if err := def.identifyRows(); err != nil {
		return err
	}
	def.table.Indexes = append(def.table.Indexes, t.Indexes[1:]...)
	if err := d.editor.PutTable(def.table); err != nil {
		return err
	}
	return d.rewrite(t, def.table, func(now []datum.Datum) error {
		id, err := d.engine.private.nextRowID()
		now[len(now)-1] = datum.Int(id)
		return err
	})
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
