package sql

import (
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/exec"
	"github.com/tallystick/tallystick/sql/parse"
	"github.com/tallystick/tallystick/sql/pgerr"
	"github.com/tallystick/tallystick/sql/plan"
)

// createTableAs is CREATE TABLE AS and SELECT INTO; n is the number of rows.
func (d *definer) createTableAs(s *pg.CreateTableAsStmt, st parse.Statement) (n int64, err error) {
	schema, err := d.placeOf(s.Into.Rel)
	if err != nil {
		return 0, err
	}
	name := s.Into.Rel.Relname
	if err := d.relationFree(schema, name); err != nil {
		if s.IfNotExists {
			d.say(pgerr.DuplicateTable, "relation \"%s\" already exists, skipping", name)
			return -1, nil
		}
		return 0, err
	}
	if s.Query.GetSelectStmt() == nil {
		return 0, pgerr.NotBuilt("CREATE TABLE AS EXECUTE is not supported")
	}
	pl, err := plan.Statement(s.Query, d.options(st))
	if err != nil {
		return 0, err
	}
	if pl.Writes && !pl.Local {
		return 0, d.notLocal()
	}
	prog, err := exec.Compile(pl)
	if err != nil {
		return 0, err
	}
	def := &tableDef{d: d, st: st, table: &catalog.Table{Schema: schema, Name: name, Kind: catalog.OrdinaryTable, Owner: d.owner}}
	if err := onCommit(s.Into.OnCommit, def.table); err != nil {
		return 0, err
	}
	if def.table.OID, err = d.editor.NextOID(); err != nil {
		return 0, err
	}
	if def.table.Columns, err = viewColumns(pl, s.Into.ColNames); err != nil {
		return 0, err
	}
	if s.Objtype == pg.ObjectType_OBJECT_MATVIEW {
		def.table.Kind, def.table.Unpopulated = catalog.MaterializedView, s.Into.SkipData
		if def.table.Query, err = deparseStatement(s.Query); err != nil {
			return 0, err
		}
	}
	for _, c := range def.table.Columns {
		if isSystemColumn(c.Name) {
			return 0, pgerr.New(pgerr.DuplicateColumn, "column name \"%s\" conflicts with a system column name", c.Name)
		}
	}
	if err := def.finish(); err != nil {
		return 0, err
	}
	// The rows are read before the table is there.
	rows, err := d.collect(prog)
	if err != nil {
		return 0, err
	}
	if err := d.editor.PutTable(def.table); err != nil {
		return 0, err
	}
	if s.Into.SkipData {
		rows = nil
	}
	return int64(len(rows)), d.insertRows(def.table, rows)
}

// collect runs a program to its end.
func (d *definer) collect(prog *exec.Program) ([][]datum.Datum, error) {
	cur, err := prog.Open(d.env, nil)
	if err != nil {
		return nil, err
	}
	defer cur.Close()
	var rows [][]datum.Datum
	for {
		row, err := cur.Next()
		if err != nil || row == nil {
			return rows, err
		}
		rows = append(rows, append([]datum.Datum(nil), row...))
	}
}

// insertRows writes rows into a table and verifies its keys; columns that they
// lack at the end are null.
func (d *definer) insertRows(t *catalog.Table, rows [][]datum.Datum) error {
	layout, err := catalog.NewLayout(t)
	if err != nil {
		return err
	}
	exprs, err := exec.NewIndexExprs(t, layout, d.catalog())
	if err != nil {
		return err
	}
	full := make([]datum.Datum, len(t.Columns))
	for _, row := range rows {
		for i := range full {
			full[i] = datum.Null
		}
		copy(full, row)
		if h := t.RowIdentity(); h >= 0 && full[h].IsNull() {
			id, err := d.engine.private.nextRowID()
			if err != nil {
				return err
			}
			full[h] = datum.Int(id)
		}
		entries, err := exprs.Extend(d.env, nil, full)
		if err != nil {
			return err
		}
		if err := d.verifyKeys(t, layout, entries); err != nil {
			return err
		}
		if err := layout.EachEntry(entries, d.txn().PutInsert); err != nil {
			return err
		}
	}
	return nil
}
