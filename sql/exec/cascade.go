package exec

import (
	"fmt"

	"github.com/tallystick/tallystick/mvcc"
	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
	"github.com/tallystick/tallystick/sql/plan"
)

// cascade applies ON DELETE or ON UPDATE CASCADE, SET NULL and SET DEFAULT to
// the rows that refer to a key that is gone. What these changes make necessary
// to verify in turn is queued, so cascades may reach any number of tables.
func (k *fkProg) cascade(f *frame, c *fkCheck, rule string) error {
	deletes := c.became == nil && rule == "c"
	if err := k.cascadable(deletes, rule); err != nil {
		return err
	}
	// Collected first: the rows change while they would be read.
	var keys [][]byte
	err := k.eachReferring(f, c.parent, false, func(suffix []byte) (bool, error) {
		key := append([]byte(nil), k.fromLayout.IndexPrefix(0)...)
		keys = append(keys, append(key, suffix...))
		return true, f.hold(int64(len(suffix)))
	})
	if err != nil || len(keys) == 0 {
		return err
	}
	op := "UPDATE"
	if deletes {
		op = "DELETE"
	}
	if err := noTriggers(k.from, op); err != nil {
		return err
	}
	fks, refs, err := f.keysOf(k.from, k.fromLayout)
	if err != nil {
		return err
	}
	exprs, err := NewIndexExprs(k.from, k.fromLayout, f.env.Catalog)
	if err != nil {
		return err
	}
	w := newTableWriter(k.from, k.fromLayout, exprs)
	old, now := make([]datum.Datum, len(k.from.Columns)), make([]datum.Datum, len(k.from.Columns))
	for _, key := range keys {
		if err := f.row(); err != nil {
			return err
		}
		value, _, ok, err := f.env.Store(k.from).Get(key, f.mode)
		if err != nil {
			return err
		}
		if !ok {
			return fmt.Errorf("exec: table %s has an index entry without a row, primary key %x", k.from.Name, key)
		}
		if err := k.search.Decode(value, old); err != nil {
			return err
		}
		after := now
		if deletes {
			after, err = nil, w.delete(f, old)
		} else {
			err = k.change(f, c, w, old, now)
		}
		if err != nil {
			return err
		}
		for _, fk := range fks {
			fk.noteChild(f, old, after)
		}
		for _, ref := range refs {
			ref.noteParent(f, old, after)
		}
	}
	return nil
}

// cascadable refuses actions that would have to evaluate expressions of the
// referring table, which are not part of the plan.
func (k *fkProg) cascadable(deletes bool, rule string) error {
	if deletes {
		return nil
	}
	refuse := func(why string) error {
		return pgerr.NotBuilt("foreign key constraint %q cannot change rows of table %q, which %s", k.fk.Name, k.from.Name, why)
	}
	if len(k.from.Checks) > 0 {
		return refuse("has check constraints")
	}
	for i := range k.from.Columns {
		if k.from.Columns[i].Generated != "" && !k.from.Columns[i].Dropped {
			return refuse("has generated columns")
		}
	}
	if rule == "d" {
		for _, col := range k.cols {
			if k.from.Columns[col].Default != "" {
				return refuse("has a default for the column")
			}
		}
	}
	return nil
}

// change updates one referring row: the key becomes the new one, or null (also
// the default of columns that have none).
func (k *fkProg) change(f *frame, c *fkCheck, w *tableWriter, old, now []datum.Datum) error {
	copy(now, old)
	changed := make([]bool, len(now))
	for i, col := range k.cols {
		changed[col] = true
		now[col] = datum.Null
		if k.rule(c) == "c" {
			now[col] = c.became[i]
			if now[col].IsNull() {
				continue
			}
			column, value := k.fromLayout.Types()[col], k.refLayout.Types()[k.refCols[i]]
			if narrowingOf(column, value).outside(now[col]) != 0 {
				return pgerr.New(pgerr.NumericValueOutOfRange, "%s out of range", datum.FormatType(datum.T(column.Desc)))
			}
			if column.Coerce != nil {
				var err error
				if now[col], err = column.Coerce(now[col], column.Mod, false); err != nil {
					return err
				}
			}
		}
	}
	if err := checkNotNull(f, k.from, now); err != nil {
		return err
	}
	return w.update(f, old, now, changed)
}

// keysOf finds the foreign keys of a table that a cascade reached, and those
// that refer to it, in the catalog. What they were resolved from becomes part of
// the footprint.
func (f *frame) keysOf(t *catalog.Table, l *catalog.Layout) (fks, refs []*fkProg, err error) {
	if f.env.Catalog == nil {
		return nil, nil, fmt.Errorf("exec: a cascade to table %s without a catalog", t.Name)
	}
	if f.mode == mvcc.ReadRecorded {
		f.env.Store(t).NoteShared(t.Reads())
	}
	resolve := func(from, ref *catalog.Table, fk *catalog.ForeignKey) (*fkProg, error) {
		check, err := resolveForeignKey(from, ref, fk)
		if err != nil {
			return nil, err
		}
		fromLayout, refLayout := l, l
		if from != t {
			if fromLayout, err = catalog.NewLayout(from); err != nil {
				return nil, err
			}
		}
		if ref != t {
			if refLayout, err = catalog.NewLayout(ref); err != nil {
				return nil, err
			}
		}
		return newForeignKey(check, fromLayout, refLayout)
	}
	for i := range t.ForeignKeys {
		fk := &t.ForeignKeys[i]
		ref, ok := f.env.Catalog.Table(fk.RefSchema, fk.RefTable)
		if !ok {
			return nil, nil, fmt.Errorf("exec: foreign key %s refers to no table", fk.Name)
		}
		k, err := resolve(t, ref, fk)
		if err != nil {
			return nil, nil, err
		}
		fks = append(fks, k)
	}
	for _, from := range f.env.Catalog.Tables() {
		for i := range from.ForeignKeys {
			fk := &from.ForeignKeys[i]
			if fk.RefSchema != t.Schema || fk.RefTable != t.Name {
				continue
			}
			if f.mode == mvcc.ReadRecorded {
				f.env.Store(from).NoteShared(from.Reads())
			}
			k, err := resolve(from, t, fk)
			if err != nil {
				return nil, nil, err
			}
			refs = append(refs, k)
		}
	}
	return fks, refs, nil
}

// resolveForeignKey finds the indexes of a foreign key.
func resolveForeignKey(from, ref *catalog.Table, fk *catalog.ForeignKey) (*plan.ForeignKeyCheck, error) {
	c := &plan.ForeignKeyCheck{FK: fk, From: from, Ref: ref}
	place := func(column int) int { // of a referenced column in the constraint
		for i, rc := range fk.RefColumns {
			if rc == column {
				return i
			}
		}
		return -1
	}
	for i := range ref.Indexes {
		idx := &ref.Indexes[i]
		if !idx.Unique && !idx.Primary || idx.Predicate != "" || len(idx.Keys) != len(fk.RefColumns) {
			continue
		}
		cols := make([]int, 0, len(idx.Keys))
		for _, key := range idx.Keys {
			if at := place(key.Column); at >= 0 {
				cols = append(cols, fk.Columns[at])
			}
		}
		if len(cols) == len(idx.Keys) {
			c.RefIndex, c.Columns = idx, cols
			break
		}
	}
	if c.RefIndex == nil {
		return nil, fmt.Errorf("exec: foreign key %s has no unique index to refer to", fk.Name)
	}
	for i := range from.Indexes {
		if leads(&from.Indexes[i], fk.Columns) {
			c.ByIndex = &from.Indexes[i]
			break
		}
	}
	return c, nil
}

// leads tells whether the first keys of an index are cols, in any order.
func leads(idx *catalog.Index, cols []int) bool {
	if len(idx.Keys) < len(cols) || idx.Predicate != "" {
		return false
	}
	for _, key := range idx.Keys[:len(cols)] {
		found := false
		for _, c := range cols {
			found = found || c == key.Column
		}
		if !found {
			return false
		}
	}
	return true
}
