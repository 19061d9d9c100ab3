package exec

import (
	"fmt"

	"github.com/tallystick/tallystick/mvcc"
	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
	"github.com/tallystick/tallystick/sql/plan"
)

// fkProg is one foreign key, seen from either of its tables. Values of the key
// always come in the order of the referenced index.
type fkProg struct {
	fk         *catalog.ForeignKey
	from, ref  *catalog.Table
	fromLayout *catalog.Layout
	refLayout  *catalog.Layout
	refIndex   int
	cols       []int // referring columns
	refCols    []int // referenced columns
	narrow     []narrowing

	byIndex int   // index of from that begins with the key; -1 = none
	byOrder []int // for its leading columns: place in cols
	search  *datum.RowDecoder
}

// fkCheck is a verification that waits for the end of the statement.
type fkCheck struct {
	key *fkProg
	// child is the key of a row that refers; or parent is the key of a referenced
	// row that is gone, and became what it was changed to (nil: deleted).
	child, parent, became []datum.Datum
}

// foreignKeys compiles the foreign keys of a data modification.
func (c *compiler) foreignKeys(p *modifyProg, n *plan.Modify) error {
	for i := range n.ForeignKeys {
		k, err := c.foreignKey(&n.ForeignKeys[i])
		if err != nil {
			return err
		}
		p.fks = append(p.fks, k)
	}
	for i := range n.Referenced {
		k, err := c.foreignKey(&n.Referenced[i])
		if err != nil {
			return err
		}
		p.refs = append(p.refs, k)
	}
	return nil
}

func (c *compiler) foreignKey(n *plan.ForeignKeyCheck) (*fkProg, error) {
	from, err := c.layout(n.From)
	if err != nil {
		return nil, err
	}
	ref, err := c.layout(n.Ref)
	if err != nil {
		return nil, err
	}
	return newForeignKey(n, from, ref)
}

func newForeignKey(n *plan.ForeignKeyCheck, from, ref *catalog.Layout) (*fkProg, error) {
	k := &fkProg{fk: n.FK, from: n.From, ref: n.Ref, fromLayout: from, refLayout: ref,
		refIndex: ref.Position(n.RefIndex), cols: n.Columns, byIndex: -1}
	if k.refIndex < 0 || len(n.Columns) != len(n.RefIndex.Keys) {
		return nil, fmt.Errorf("exec: foreign key %s does not match an index of table %s", n.FK.Name, n.Ref.Name)
	}
	for i, key := range n.RefIndex.Keys {
		k.refCols = append(k.refCols, key.Column)
		k.narrow = append(k.narrow, narrowingOf(ref.Types()[key.Column], from.Types()[n.Columns[i]]))
		if err := comparable(ref.Types()[key.Column], from.Types()[n.Columns[i]]); err != nil {
			return nil, err
		}
	}
	if n.ByIndex != nil {
		k.byIndex = from.Position(n.ByIndex)
		for _, key := range n.ByIndex.Keys[:len(k.cols)] {
			at := -1
			for i, col := range k.cols {
				if col == key.Column {
					at = i
				}
			}
			if at < 0 {
				return nil, fmt.Errorf("exec: index %s does not begin with the columns of foreign key %s", n.ByIndex.Name, n.FK.Name)
			}
			k.byOrder = append(k.byOrder, at)
		}
	}
	slots := make([]int, len(from.Types()))
	for i := range slots {
		slots[i] = i
	}
	k.search = from.Decoder(slots)
	return k, nil
}

// comparable refuses pairs of types whose values are not represented alike.
func comparable(ref, from datum.Type) error {
	r, f := ref.Root(), from.Root()
	if r.Desc == f.Desc {
		return nil
	}
	isInt := func(d *datum.Desc) bool { return d == datum.Int2 || d == datum.Int4 || d == datum.Int8 }
	isText := func(d *datum.Desc) bool { return d == datum.Text || d == datum.VarChar }
	if isInt(r.Desc) && isInt(f.Desc) || isText(r.Desc) && isText(f.Desc) {
		return nil
	}
	return pgerr.NotBuilt("foreign keys from type %s to type %s are not supported", datum.FormatType(from), datum.FormatType(ref))
}

// pick returns the values of cols, nil if one is null: MATCH SIMPLE does not
// look at such keys.
func pick(row []datum.Datum, cols []int) []datum.Datum {
	for _, c := range cols {
		if row[c].IsNull() {
			return nil
		}
	}
	out := make([]datum.Datum, len(cols))
	for i, c := range cols {
		out[i] = row[c]
	}
	return out
}

// noteForeignKeys queues what a change of a row makes necessary to verify. old
// is nil for an insert, now for a delete.
func (f *frame) noteForeignKeys(p *modifyProg, old, now []datum.Datum) error {
	for _, k := range p.fks {
		k.noteChild(f, old, now)
	}
	for _, k := range p.refs {
		k.noteParent(f, old, now)
	}
	return nil
}

func (k *fkProg) noteChild(f *frame, old, now []datum.Datum) {
	if now == nil || old != nil && sameColumns(k.from, k.cols, old, now) {
		return
	}
	if key := pick(now, k.cols); key != nil {
		f.fkChecks = append(f.fkChecks, fkCheck{key: k, child: key})
	}
}

func (k *fkProg) noteParent(f *frame, old, now []datum.Datum) {
	if old == nil || now != nil && sameColumns(k.ref, k.refCols, old, now) {
		return
	}
	key := pick(old, k.refCols)
	if key == nil {
		return
	}
	c := fkCheck{key: k, parent: key}
	if now != nil {
		c.became = make([]datum.Datum, len(k.refCols))
		for i, col := range k.refCols {
			c.became[i] = now[col]
		}
	}
	f.fkChecks = append(f.fkChecks, c)
}

// sameColumns tells whether two rows agree, as equality goes, in some columns.
func sameColumns(t *catalog.Table, cols []int, a, b []datum.Datum) bool {
	for _, c := range cols {
		an, bn := a[c].IsNull(), b[c].IsNull()
		if an != bn || !an && t.Columns[c].Type.Root().Compare(a[c], b[c]) != 0 {
			return false
		}
	}
	return true
}

// verifyForeignKeys verifies what the statement has queued. Actions (CASCADE and
// the like) may queue more.
func (f *frame) verifyForeignKeys() error {
	for i := 0; i < len(f.fkChecks); i++ {
		c := f.fkChecks[i]
		if err := f.row(); err != nil {
			return err
		}
		var err error
		if c.child != nil {
			err = c.key.verifyChild(f, c.child)
		} else {
			err = c.key.verifyParent(f, &c)
		}
		if err != nil {
			return err
		}
	}
	f.fkChecks = f.fkChecks[:0]
	return nil
}

// exists tells whether the referenced table has a live row with a key. Only
// whether it is there is read.
func (k *fkProg) exists(f *frame, key []datum.Datum) (bool, error) {
	b := append(f.key[:0], k.refLayout.IndexPrefix(k.refIndex)...)
	for i, d := range key {
		if k.narrow[i].outside(d) != 0 {
			return false, nil
		}
		b = k.refLayout.AppendKeyColumn(b, k.refIndex, i, d)
	}
	f.key = b
	_, _, live, err := f.env.Store(k.ref).Get(b, mvcc.ReadExistence)
	return live, err
}

func (k *fkProg) verifyChild(f *frame, key []datum.Datum) error {
	ok, err := k.exists(f, key)
	if err != nil || ok {
		return err
	}
	e := pgerr.New(pgerr.ForeignKeyViolation, "insert or update on table %q violates foreign key constraint %q", k.from.Name, k.fk.Name)
	e.Detail = fmt.Sprintf("Key %s is not present in table %q.", keyText(f, k.from, k.cols, key), k.ref.Name)
	e.Schema, e.Table, e.Constraint = k.from.Schema, k.from.Name, k.fk.Name
	return e
}

// rule is what happens to rows that refer to a key that is gone.
func (k *fkProg) rule(c *fkCheck) string {
	if c.became == nil {
		return k.fk.OnDelete
	}
	return k.fk.OnUpdate
}

// verifyParent looks for rows that refer to a key that is gone. With NO ACTION
// another row may have taken the key over meanwhile.
func (k *fkProg) verifyParent(f *frame, c *fkCheck) error {
	rule := k.rule(c)
	if rule == "a" || rule == "" {
		if ok, err := k.exists(f, c.parent); err != nil || ok {
			return err
		}
	}
	if rule == "c" || rule == "n" || rule == "d" {
		return k.cascade(f, c, rule)
	}
	found := false
	err := k.eachReferring(f, c.parent, true, func([]byte) (bool, error) {
		found = true
		return false, nil
	})
	if err != nil || !found {
		return err
	}
	e := pgerr.New(pgerr.ForeignKeyViolation, "update or delete on table %q violates foreign key constraint %q on table %q", k.ref.Name, k.fk.Name, k.from.Name)
	e.Detail = fmt.Sprintf("Key %s is still referenced from table %q.", keyText(f, k.ref, k.refCols, c.parent), k.from.Name)
	e.Schema, e.Table, e.Constraint = k.from.Schema, k.from.Name, k.fk.Name
	return e
}

// eachReferring calls visit with the primary key (without prefix) of every row
// that refers to key, in the order of the index that is read, until it returns
// false. With existence only the presence of such rows is read.
func (k *fkProg) eachReferring(f *frame, key []datum.Datum, existence bool, visit func(suffix []byte) (bool, error)) error {
	if k.byIndex < 0 {
		return k.searchReferring(f, key, visit)
	}
	mode := f.mode
	if existence && mode == mvcc.ReadRecorded {
		mode = mvcc.ReadExistence
	}
	var set spanSet
	set.buf = append(set.buf, k.fromLayout.IndexPrefix(k.byIndex)...)
	for i, at := range k.byOrder {
		column := k.fromLayout.Types()[k.cols[at]]
		if narrowingOf(column, k.refLayout.Types()[k.refCols[at]]).outside(key[at]) != 0 {
			return nil
		}
		set.buf = k.fromLayout.AppendKeyColumn(set.buf, k.byIndex, i, key[at])
	}
	start := set.cut(0)
	s := span{start, set.prefixEnd(start)}
	it := f.env.Store(k.from).Scan(s.rwset(), false, mode)
	for it.Next() {
		suffix := it.Value()
		if k.byIndex == 0 {
			suffix = it.Key()[catalog.PrefixLen:]
		}
		err := f.row()
		if err == nil {
			err = f.checkReads()
		}
		if err != nil {
			_ = it.Close()
			return err
		}
		if more, err := visit(suffix); err != nil || !more {
			_ = it.Close()
			return err
		}
	}
	return it.Close()
}

// searchReferring is eachReferring without an index: it reads the whole table.
func (k *fkProg) searchReferring(f *frame, key []datum.Datum, visit func(suffix []byte) (bool, error)) error {
	prefix := k.fromLayout.IndexPrefix(0)
	var set spanSet
	s := span{prefix, set.prefixEnd(prefix)}
	row := make([]datum.Datum, len(k.from.Columns))
	it := f.env.Store(k.from).Scan(s.rwset(), false, f.mode)
	for it.Next() {
		err := f.row()
		if err == nil {
			err = f.checkReads()
		}
		if err == nil {
			err = k.search.Decode(it.Value(), row)
		}
		if err != nil {
			_ = it.Close()
			return err
		}
		if !k.refers(row, key) {
			continue
		}
		if more, err := visit(it.Key()[catalog.PrefixLen:]); err != nil || !more {
			_ = it.Close()
			return err
		}
	}
	return it.Close()
}

// refers tells whether a row refers to key.
func (k *fkProg) refers(row, key []datum.Datum) bool {
	for i, c := range k.cols {
		if row[c].IsNull() || k.ref.Columns[k.refCols[i]].Type.Root().Compare(row[c], key[i]) != 0 {
			return false
		}
	}
	return true
}
