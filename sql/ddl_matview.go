package sql

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/tallystick/tallystick/mvcc"
	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/exec"
	"github.com/tallystick/tallystick/sql/parse"
	"github.com/tallystick/tallystick/sql/pgerr"
	"github.com/tallystick/tallystick/sql/plan"
)

// A materialized view is a stored table with the query that fills it. It exists
// in schema private only: on the chain its rows would have to be written by every
// block that changes what the query reads.

// refresh is REFRESH MATERIALIZED VIEW.
func (d *definer) refresh(n *pg.RefreshMatViewStmt, st parse.Statement) error {
	t, err := d.findTable(n.Relation)
	if err != nil {
		return err
	}
	if t.Kind != catalog.MaterializedView {
		return pgerr.New(pgerr.FeatureNotSupported, "\"%s\" is not a materialized view", t.Name)
	}
	if n.Concurrent {
		if err := concurrently(t, n.SkipData); err != nil {
			return err
		}
	}
	var rows [][]datum.Datum
	if !n.SkipData {
		if rows, err = d.queryRows(t, st); err != nil {
			return err
		}
	}
	next := copyTable(t)
	next.Unpopulated = n.SkipData
	if next.Unpopulated != t.Unpopulated {
		if err := d.editor.PutTable(next); err != nil {
			return err
		}
	}
	if n.Concurrent {
		return d.replaceRows(next, rows)
	}
	if err := d.deleteRows(next); err != nil {
		return err
	}
	return d.insertRows(next, rows)
}

// concurrently says whether REFRESH ... CONCURRENTLY is possible.
func concurrently(t *catalog.Table, skipData bool) error {
	switch {
	case skipData:
		return pgerr.New(pgerr.SyntaxError, "REFRESH options CONCURRENTLY and WITH NO DATA cannot be used together")
	case t.Unpopulated:
		return pgerr.New(pgerr.FeatureNotSupported, "CONCURRENTLY cannot be used when the materialized view is not populated")
	case !slices.ContainsFunc(t.Indexes, func(x catalog.Index) bool { return x.Unique && !x.Hidden && !x.Computed() }):
		return pgerr.New(pgerr.ObjectNotInPrerequisiteState, "cannot refresh materialized view \"%s.%s\" concurrently", t.Schema, t.Name).
			WithHint("Create a unique index with no WHERE clause on one or more columns of the materialized view.")
	}
	return nil
}

// queryRows runs the query of a materialized view.
func (d *definer) queryRows(t *catalog.Table, st parse.Statement) ([][]datum.Datum, error) {
	one, err := parse.One(t.Query)
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
	return d.collect(prog)
}

// replaceRows makes the rows of a table these: rows that are there already stay
// as they are, with their xmin.
func (d *definer) replaceRows(t *catalog.Table, rows [][]datum.Datum) error {
	layout, err := catalog.NewLayout(t)
	if err != nil {
		return err
	}
	hidden := t.RowIdentity()
	image := func(row []datum.Datum) string {
		full := make([]datum.Datum, len(t.Columns))
		for i := range full {
			if full[i] = datum.Null; i < len(row) && i != hidden {
				full[i] = row[i]
			}
		}
		return string(layout.EncodeRow(nil, full))
	}
	wanted := map[string][]datum.Datum{}
	for _, row := range rows {
		key := image(row)
		if _, twice := wanted[key]; twice && !slices.ContainsFunc(row, datum.Datum.IsNull) {
			return pgerr.New(pgerr.CardinalityViolation, "new data for materialized view \"%s\" contains duplicate rows without any null columns", t.Name)
		}
		wanted[key] = row
	}
	err = d.eachFullRow(t, layout, func(row []datum.Datum) error {
		key := image(row[:len(t.Columns)])
		if _, ok := wanted[key]; ok {
			delete(wanted, key)
			return nil
		}
		return layout.EachEntry(row, func(key, _ []byte) error { return d.txn().Delete(key) })
	})
	if err != nil {
		return err
	}
	var fresh [][]datum.Datum
	for _, row := range rows {
		key := image(row)
		if _, ok := wanted[key]; ok {
			fresh = append(fresh, row)
			delete(wanted, key)
		}
	}
	return d.insertRows(t, fresh)
}

// verifyKeys refuses a row whose key a unique index has already.
func (d *definer) verifyKeys(t *catalog.Table, layout *catalog.Layout, row []datum.Datum) error {
	for i := range t.Indexes {
		if t.Indexes[i].Hidden || !layout.Exclusive(i, row) {
			continue
		}
		_, _, taken, err := d.txn().Get(layout.IndexKey(nil, i, row), mvcc.ReadExistence)
		if err != nil {
			return err
		}
		if taken {
			return pgerr.New(pgerr.UniqueViolation, "could not create unique index \"%s\"", t.Indexes[i].Name).
				WithDetail("Key %s is duplicated.", layout.KeyText(i, row, &datum.ContractFormat))
		}
	}
	return nil
}
