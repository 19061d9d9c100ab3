package exec

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/tallystick/tallystick/mvcc"
	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// tableWriter writes complete rows of one table together with their index
// entries and enforces its keys. A key is verified when the row is written, not
// at the end of the statement, as PostgreSQL does: UPDATE t SET id = id + 1
// fails if a row meets one that has not moved yet.
type tableWriter struct {
	table    *catalog.Table
	layout   *catalog.Layout
	hidden   int      // the column of the row identity, -1 if the table has a primary key
	old, new [][]byte // keys per index; empty where a row has no entry
	exprs    *IndexExprs
	was, now []datum.Datum // old and new row with their computed values
	row      []byte
	scratch  []byte
}

func newTableWriter(t *catalog.Table, l *catalog.Layout, x *IndexExprs) *tableWriter {
	return &tableWriter{table: t, layout: l, hidden: t.RowIdentity(), old: make([][]byte, len(t.Indexes)), new: make([][]byte, len(t.Indexes)), exprs: x}
}

// extend gives a new row its computed values.
func (w *tableWriter) extend(f *frame, row []datum.Datum) (out []datum.Datum, err error) {
	if w.exprs == nil {
		return row, nil
	}
	w.now, err = w.exprs.Extend(f.env, w.now[:0], row)
	return w.now, err
}

// extendOld does that for an old row.
func (w *tableWriter) extendOld(f *frame, row []datum.Datum) (out []datum.Datum, err error) {
	if w.exprs == nil {
		return row, nil
	}
	w.was, err = w.exprs.Extend(f.env, w.was[:0], row)
	return w.was, err
}

// store is the transaction on the store that holds the table.
func (w *tableWriter) store(f *frame) *mvcc.Txn { return f.env.Store(w.table) }

// identify gives a new row version of a table without primary key its place: as
// in a heap, behind all others.
func (w *tableWriter) identify(f *frame, row []datum.Datum) error {
	if w.hidden < 0 {
		return nil
	}
	id, err := f.env.RowID()
	row[w.hidden] = datum.Int(id)
	return err
}

// verify raises 23505 if a live row has the new key in index i. Only whether
// there is one is read.
func (w *tableWriter) verify(f *frame, i int, row []datum.Datum) error {
	_, _, live, err := w.store(f).Get(w.new[i], mvcc.ReadExistence)
	if err == nil && live {
		return errDuplicate(f, w.table, w.layout, i, row)
	}
	return err
}

// insert writes a new row.
func (w *tableWriter) insert(f *frame, row []datum.Datum) error {
	if err := w.identify(f, row); err != nil {
		return err
	}
	l := w.layout
	row, err := w.extend(f, row)
	if err != nil {
		return err
	}
	for i := range w.new {
		w.new[i] = w.new[i][:0]
		if !l.Has(i, row) {
			continue
		}
		w.new[i] = l.IndexKey(w.new[i], i, row)
		if l.Exclusive(i, row) && (i > 0 || w.hidden < 0) {
			if err := w.verify(f, i, row); err != nil {
				return err
			}
		}
	}
	w.row = l.EncodeRow(w.row[:0], row)
	if err := w.store(f).PutInsert(w.new[0], w.row); err != nil {
		return err
	}
	suffix := w.new[0][catalog.PrefixLen:]
	for i := 1; i < len(w.new); i++ {
		if len(w.new[i]) == 0 {
			continue
		}
		if err := w.store(f).PutInsert(w.new[i], suffix); err != nil {
			return err
		}
	}
	return f.checkWrites(w.table)
}

// update replaces old, which is live, by row. Changed tells which columns may
// differ; nil means any. A row that did not change is written all the same: it
// gets a new version.
func (w *tableWriter) update(f *frame, old, row []datum.Datum, changed []bool) error {
	if err := w.identify(f, row); err != nil {
		return err
	}
	l := w.layout
	old, err := w.extendOld(f, old)
	if err != nil {
		return err
	}
	if row, err = w.extend(f, row); err != nil {
		return err
	}
	moved := false
	for i := range w.new {
		w.old[i], w.new[i] = w.old[i][:0], w.new[i][:0]
		if i > 0 && !moved && !w.concerns(i, changed) {
			continue
		}
		if l.Has(i, old) {
			w.old[i] = l.IndexKey(w.old[i], i, old)
		}
		if l.Has(i, row) {
			w.new[i] = l.IndexKey(w.new[i], i, row)
		}
		if bytes.Equal(w.old[i], w.new[i]) {
			continue
		}
		moved = moved || i == 0
		if l.Exclusive(i, row) && (i > 0 || w.hidden < 0) {
			if err := w.verify(f, i, row); err != nil {
				return err
			}
		}
	}
	w.row = l.EncodeRow(w.row[:0], row)
	if err := w.replace(f, 0, w.row); err != nil {
		return err
	}
	suffix := w.new[0][catalog.PrefixLen:]
	for i := 1; i < len(w.new); i++ {
		if (len(w.new[i]) == 0 || !moved) && bytes.Equal(w.old[i], w.new[i]) {
			continue
		}
		if err := w.replace(f, i, suffix); err != nil {
			return err
		}
	}
	return f.checkWrites(w.table)
}

// replace moves the entry in index i to its new key; there may be none before or
// afterwards.
func (w *tableWriter) replace(f *frame, i int, value []byte) error {
	if bytes.Equal(w.old[i], w.new[i]) {
		return w.store(f).PutUpdate(w.new[i], value)
	}
	if len(w.old[i]) > 0 {
		if err := w.store(f).Delete(w.old[i]); err != nil {
			return err
		}
	}
	if len(w.new[i]) == 0 {
		return nil
	}
	return w.store(f).PutInsert(w.new[i], value)
}

// concerns tells whether a change of columns may change keys of index i.
func (w *tableWriter) concerns(i int, changed []bool) bool {
	if changed == nil {
		return true
	}
	for _, k := range w.table.Indexes[i].Keys {
		if k.Column >= 0 && changed[k.Column] {
			return true
		}
	}
	return w.exprs.concerns(i, changed)
}

// delete removes old, which is live.
func (w *tableWriter) delete(f *frame, old []datum.Datum) error {
	old, err := w.extendOld(f, old)
	if err != nil {
		return err
	}
	for i := range w.old {
		if !w.layout.Has(i, old) {
			continue
		}
		w.old[i] = w.layout.IndexKey(w.old[i][:0], i, old)
		if err := w.store(f).Delete(w.old[i]); err != nil {
			return err
		}
	}
	return f.checkWrites(w.table)
}

// checkNotNull verifies the NOT NULL constraints.
func checkNotNull(f *frame, t *catalog.Table, row []datum.Datum) error {
	for i := range t.Columns {
		c := &t.Columns[i]
		if !c.NotNull || c.Dropped || !row[i].IsNull() {
			continue
		}
		e := pgerr.New(pgerr.NotNullViolation, "null value in column %q of relation %q violates not-null constraint", c.Name, t.Name)
		e.Detail = failingRow(f, t, row)
		e.Schema, e.Table, e.Column = t.Schema, t.Name, c.Name
		return e
	}
	return nil
}

func errCheck(f *frame, t *catalog.Table, name string, row []datum.Datum) error {
	e := pgerr.New(pgerr.CheckViolation, "new row for relation %q violates check constraint %q", t.Name, name)
	e.Detail = failingRow(f, t, row)
	e.Schema, e.Table, e.Constraint = t.Schema, t.Name, name
	return e
}

func errDuplicate(f *frame, t *catalog.Table, l *catalog.Layout, index int, row []datum.Datum) error {
	idx := &t.Indexes[index]
	e := pgerr.New(pgerr.UniqueViolation, "duplicate key value violates unique constraint %q", idx.Name)
	e.Detail = "Key " + l.KeyText(index, row, f.env.Ctx.Format) + " already exists."
	e.Schema, e.Table, e.Constraint = t.Schema, t.Name, idx.Name
	return e
}

// keyText is "(a, b)=(1, x)".
func keyText(f *frame, t *catalog.Table, cols []int, vals []datum.Datum) string {
	var names, values strings.Builder
	for i, c := range cols {
		if i > 0 {
			names.WriteString(", ")
			values.WriteString(", ")
		}
		names.WriteString(t.Columns[c].Name)
		values.WriteString(valueText(f, t.Columns[c].Type, vals[i]))
	}
	return "(" + names.String() + ")=(" + values.String() + ")"
}

func valueText(f *frame, t datum.Type, d datum.Datum) string {
	if d.IsNull() {
		return "null"
	}
	return string(t.Append(nil, d, f.env.Ctx.Format))
}

// failingRowMost is how many bytes of a value PostgreSQL shows in the
// description of a row (execMain.c, ExecBuildSlotValueDescription).
const failingRowMost = 64

func failingRow(f *frame, t *catalog.Table, row []datum.Datum) string {
	var b strings.Builder
	b.WriteString("Failing row contains (")
	first := true
	for i := range t.Columns {
		if t.Columns[i].Dropped {
			continue
		}
		if !first {
			b.WriteString(", ")
		}
		first = false
		s := valueText(f, t.Columns[i].Type, row[i])
		if len(s) > failingRowMost {
			cut := failingRowMost
			for cut > 0 && !utf8.RuneStart(s[cut]) {
				cut--
			}
			s = s[:cut] + "..."
		}
		b.WriteString(s)
	}
	b.WriteString(").")
	return b.String()
}
