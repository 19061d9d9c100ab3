package exec

import (
	"bytes"
	"fmt"

	"github.com/tallystick/tallystick/mvcc"
	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
	"github.com/tallystick/tallystick/sql/plan"
)

// modifyProg is a compiled INSERT, UPDATE or DELETE.
type modifyProg struct {
	kind     plan.ModifyKind
	table    *catalog.Table
	layout   *catalog.Layout
	child    nodeProg
	keep     []int // slots of the child's rows that are collected
	old      []int
	new      []evalFunc // nil: null
	newSlots []int

	generated []generatedProg
	checks    []checkProg
	policies  []policyProg
	conflict  *conflictProg
	merge     []mergeProg
	fks       []*fkProg // of this table
	refs      []*fkProg // that refer to this table
	triggers  *triggersProg
	changed   []bool            // columns that may differ; nil: any
	assigned  []bool            // columns that UPDATE names
	decoder   *datum.RowDecoder // complete rows, in column order
	exprs     *IndexExprs

	hasReturning bool
	returning    []evalFunc
	out          []int

	top      bool // its rows are those of the command tag
	deferred bool // writes wait for the end of the statement, see deferWrites
	repeats  bool // the child may make a row of the table more than once
	guarded  bool // functions that run meanwhile may write the table as well
}

type generatedProg struct {
	column int
	eval   evalFunc
}

type checkProg struct {
	name string
	eval evalFunc
}

type conflictProg struct {
	index    int // the arbiter; -1: all unique indexes
	set      []evalFunc
	where    evalFunc
	existing []int
	visible  []evalFunc
	policies []policyProg
	changed  []bool
}

func (c *compiler) modify(n *plan.Modify) (nodeProg, error) {
	l, err := c.layout(n.Table)
	if err != nil {
		return nil, err
	}
	calls := c.userCalls
	c.userCalls = false
	p := &modifyProg{kind: n.Kind, table: n.Table, layout: l, old: n.Old, newSlots: n.NewSlots, changed: n.Changed, assigned: n.Changed,
		out: n.Out, hasReturning: n.Returning != nil}
	if p.child, err = c.node(n.Child); err != nil {
		return nil, err
	}
	var keep slotSet
	for _, list := range [][]int{n.Carry, n.Old} {
		for _, s := range list {
			if s >= 0 && !keep.has(s) {
				keep.add(s)
				p.keep = append(p.keep, s)
			}
		}
	}
	p.repeats = n.Kind != plan.Insert && n.Kind != plan.Merge && !onceEach(n.Child)
	if p.new, err = c.exprs(n.New); err != nil {
		return nil, err
	}
	for _, g := range n.Generated {
		ev, err := c.expr(g.Expr)
		if err != nil {
			return nil, err
		}
		p.generated = append(p.generated, generatedProg{g.Column, ev})
	}
	for _, k := range n.Checks {
		ev, err := c.expr(k.Expr)
		if err != nil {
			return nil, err
		}
		p.checks = append(p.checks, checkProg{k.Name, ev})
	}
	if p.policies, err = c.policies(n.Policies); err != nil {
		return nil, err
	}
	if p.returning, err = c.exprs(n.Returning); err != nil {
		return nil, err
	}
	if p.triggers, err = c.triggers(n); err != nil {
		return nil, err
	}
	if p.merge, err = c.mergeActions(n.Actions); err != nil {
		return nil, err
	}
	if n.Conflict != nil {
		if p.conflict, err = c.conflict(n.Conflict, l); err != nil {
			return nil, err
		}
	}
	if err := c.foreignKeys(p, n); err != nil {
		return nil, err
	}
	every := make([]int, len(n.Table.Columns))
	for i := range every {
		every[i] = i
	}
	p.decoder = l.Decoder(every)
	if p.exprs, err = compileIndexExprs(n.Table, l, n.Computed); err != nil {
		return nil, err
	}
	p.guarded = c.userCalls || p.triggers.has(true, true, n.Kind)
	if p.triggers.has(true, true, plan.Update) {
		p.changed = nil
	}
	c.userCalls = c.userCalls || calls
	c.fills.add(n.Out...)
	c.fills.add(n.NewSlots...)
	return p, nil
}

// onceEach tells that a source of rows to change makes no row of the table
// twice: it is a scan with filters, or one thinned out by semijoins.
func onceEach(n plan.Node) bool {
	switch n := n.(type) {
	case *plan.Scan:
		return true
	case *plan.Filter:
		return onceEach(n.Child)
	case *plan.Project:
		return onceEach(n.Child)
	case *plan.Sort:
		return onceEach(n.Child)
	case *plan.NestLoop:
		return (n.Kind == plan.SemiJoin || n.Kind == plan.AntiJoin) && onceEach(n.Outer)
	case *plan.HashJoin:
		return (n.Kind == plan.SemiJoin || n.Kind == plan.AntiJoin) && onceEach(n.Outer)
	}
	return false
}

func (c *compiler) conflict(n *plan.Conflict, l *catalog.Layout) (*conflictProg, error) {
	p := &conflictProg{index: -1, existing: n.ExistingSlots, changed: n.Changed}
	if n.Index != nil {
		if p.index = l.Position(n.Index); p.index < 0 {
			return nil, fmt.Errorf("exec: index %s is not one of the table", n.Index.Name)
		}
	}
	var err error
	if n.Set != nil {
		if p.index < 0 {
			return nil, fmt.Errorf("exec: ON CONFLICT DO UPDATE without an index")
		}
		if p.set, err = c.exprs(n.Set); err != nil {
			return nil, err
		}
	}
	if p.visible, err = c.exprs(n.Visible); err != nil {
		return nil, err
	}
	if p.policies, err = c.policies(n.Policies); err != nil {
		return nil, err
	}
	p.where, err = c.optional(n.Where)
	return p, err
}

// deferWrites makes a member of WITH hold its writes back until the statement
// ends: all parts of a statement see the table as it was before. What ON CONFLICT
// does depends on the rows that are there when it runs; it writes at once.
func (p *modifyProg) deferWrites() { p.deferred = p.conflict == nil }

func (p *modifyProg) iter() rowIter {
	it := &modifyIter{p: p, child: p.child.iter(), w: newTableWriter(p.table, p.layout, p.exprs)}
	it.rows.width = len(p.keep)
	n := len(p.table.Columns)
	it.oldRow, it.newRow = make([]datum.Datum, n), make([]datum.Datum, n)
	it.waiting.width, it.after.width = n, n
	return it
}

// modifyIter first collects all rows of its child, then changes one after the
// other and returns those that RETURNING asks for.
type modifyIter struct {
	p     *modifyProg
	child rowIter
	w     *tableWriter

	rows      rowStore
	collected bool
	at        int

	oldRow, newRow []datum.Datum
	touched        map[string]struct{} // primary keys changed so far, where that matters
	waiting        rowStore            // deferred: old rows, new rows
	after          rowStore            // old and new rows of events
	events         []rowEvent
}

func (it *modifyIter) open(f *frame) error {
	it.rows.reset(f)
	it.waiting.reset(f)
	it.after.reset(f)
	it.events = it.events[:0]
	it.collected, it.at, it.touched = false, 0, nil
	return it.child.open(f)
}

func (it *modifyIter) close() {
	it.child.close()
	it.rows.drop()
	it.waiting.drop()
	it.after.drop()
	it.events = nil
	clear(it.oldRow)
	clear(it.newRow)
	it.touched = nil
	it.collected, it.at = false, 0
}

func (it *modifyIter) next(f *frame) (bool, error) {
	if !it.collected {
		if err := it.collect(f); err != nil {
			return false, err
		}
	}
	for it.at < it.rows.n {
		if err := f.row(); err != nil {
			return false, err
		}
		if err := f.checkReads(); err != nil {
			return false, err
		}
		it.rows.restore(f, it.at, 0, it.p.keep)
		it.at++
		done, err := it.change(f)
		if err != nil {
			return false, err
		}
		if !done {
			continue
		}
		if it.p.top {
			f.affected++
		}
		if !it.p.hasReturning {
			continue
		}
		for i, ev := range it.p.returning {
			if f.slots[it.p.out[i]], err = ev(f); err != nil {
				return false, err
			}
		}
		return true, nil
	}
	return false, nil
}

// collect reads the child. The statement proper then lets the members of its
// WITH finish, which see the tables as they still are, and writes last.
func (it *modifyIter) collect(f *frame) error {
	if err := it.beforeStatement(f); err != nil {
		return err
	}
	for {
		ok, err := it.child.next(f)
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		if err := it.rows.addSlots(f, it.p.keep); err != nil {
			return err
		}
	}
	it.collected = true
	f.modifies = append(f.modifies, it)
	if it.p.top && f.with != nil {
		if err := f.with.runRest(f); err != nil {
			return err
		}
		return f.flush()
	}
	return nil
}

// flush performs the deferred writes so far.
func (f *frame) flush() error {
	for _, it := range f.modifies {
		if err := it.flush(f); err != nil {
			return err
		}
	}
	return nil
}

// finish ends a statement that writes: deferred writes, then the foreign keys.
func (f *frame) finish() error {
	if err := f.flush(); err != nil {
		return err
	}
	if err := f.verifyForeignKeys(); err != nil {
		return err
	}
	for _, it := range f.modifies {
		if err := it.fireAfter(f); err != nil {
			return err
		}
	}
	return nil
}

// change applies the present row. False means that there was nothing to do.
func (it *modifyIter) change(f *frame) (bool, error) {
	p := it.p
	if p.kind != plan.Insert {
		for c, slot := range p.old {
			it.oldRow[c] = datum.Null
			if slot >= 0 {
				it.oldRow[c] = f.slots[slot]
			}
		}
		if p.repeats && !it.first(it.oldRow) {
			return false, nil
		}
	}
	if p.kind == plan.Merge {
		return it.merge(f)
	}
	if p.kind == plan.Delete {
		if ok, err := p.triggers.beforeRow(f, plan.Delete, it.oldRow, nil, nil); err != nil || !ok {
			return false, err
		}
		if p.deferred {
			return true, it.defers(f)
		}
		return true, it.delete(f)
	}
	old := it.oldRow
	if p.kind == plan.Insert {
		old = nil
	}
	if ok, err := it.compute(f, p.new, p.kind, old, p.assigned); err != nil || !ok {
		return false, err
	}
	switch {
	case p.deferred:
		return true, it.defers(f)
	case p.kind == plan.Update:
		return true, it.update(f, p.changed, p.assigned)
	case p.conflict != nil:
		return it.upsert(f)
	}
	return true, it.insert(f)
}

// first tells that a row has not been changed by this statement. Of the matches
// that a join makes for one row only the first counts.
func (it *modifyIter) first(row []datum.Datum) bool {
	key := it.p.layout.PrimaryKey(it.w.scratch[:0], row)
	it.w.scratch = key
	if _, ok := it.touched[string(key)]; ok {
		return false
	}
	it.touch(key)
	return true
}

func (it *modifyIter) touch(key []byte) {
	if it.touched == nil {
		it.touched = map[string]struct{}{}
	}
	it.touched[string(key)] = struct{}{}
}

// compute makes the new row from exprs, has BEFORE ROW triggers change it, adds
// generated columns and verifies what concerns the row alone. False means that a
// trigger has the row skipped.
func (it *modifyIter) compute(f *frame, exprs []evalFunc, kind plan.ModifyKind, old []datum.Datum, assigned []bool) (bool, error) {
	p := it.p
	for c := range it.newRow {
		it.newRow[c] = datum.Null
		if c < len(exprs) && exprs[c] != nil {
			d, err := exprs[c](f)
			if err != nil {
				return false, err
			}
			it.newRow[c] = d
		}
	}
	if ok, err := p.triggers.beforeRow(f, kind, old, it.newRow, assigned); err != nil || !ok {
		return false, err
	}
	for c, slot := range p.newSlots {
		if slot >= 0 {
			f.slots[slot] = it.newRow[c]
		}
	}
	for _, g := range p.generated {
		d, err := g.eval(f)
		if err != nil {
			return false, err
		}
		it.newRow[g.column] = d
		if slot := p.newSlots[g.column]; slot >= 0 {
			f.slots[slot] = d
		}
	}
	policies := p.policies
	if p.kind == plan.Insert && kind == plan.Update { // ON CONFLICT DO UPDATE
		policies = p.conflict.policies
	}
	if err := admitRow(f, p.table, policies); err != nil {
		return false, err
	}
	if err := checkNotNull(f, p.table, it.newRow); err != nil {
		return false, err
	}
	for i := range p.checks {
		d, err := p.checks[i].eval(f)
		if err != nil {
			return false, err
		}
		if !d.IsNull() && !d.Bool() {
			return false, errCheck(f, p.table, p.checks[i].name, it.newRow)
		}
	}
	return true, nil
}

func (it *modifyIter) insert(f *frame) error {
	if err := it.w.insert(f, it.newRow); err != nil {
		return err
	}
	if err := f.noteForeignKeys(it.p, nil, it.newRow); err != nil {
		return err
	}
	return it.noteAfter(f, plan.Insert, nil, it.newRow, nil)
}

func (it *modifyIter) update(f *frame, changed, assigned []bool) error {
	if ok, err := it.intact(f); err != nil || !ok {
		return err
	}
	if err := it.w.update(f, it.oldRow, it.newRow, changed); err != nil {
		return err
	}
	if err := f.noteForeignKeys(it.p, it.oldRow, it.newRow); err != nil {
		return err
	}
	return it.noteAfter(f, plan.Update, it.oldRow, it.newRow, assigned)
}

func (it *modifyIter) delete(f *frame) error {
	if ok, err := it.intact(f); err != nil || !ok {
		return err
	}
	if err := it.w.delete(f, it.oldRow); err != nil {
		return err
	}
	if err := f.noteForeignKeys(it.p, it.oldRow, nil); err != nil {
		return err
	}
	return it.noteAfter(f, plan.Delete, it.oldRow, nil, nil)
}

// intact tells whether the row to be changed is still as it was collected. If
// another part of the same statement changed it, that change stands and this one
// is dropped; a function that the statement calls must not have changed it.
func (it *modifyIter) intact(f *frame) (bool, error) {
	if !it.p.guarded && f.with == nil {
		return true, nil
	}
	key := it.p.layout.PrimaryKey(nil, it.oldRow)
	now, _, ok, err := it.w.store(f).Get(key, mvcc.ReadUnrecorded)
	if err != nil {
		return false, err
	}
	if ok && bytes.Equal(now, it.p.layout.EncodeRow(nil, it.oldRow)) {
		return true, nil
	}
	if f.with != nil {
		return false, nil
	}
	what := "updated"
	if it.p.kind == plan.Delete {
		what = "deleted"
	}
	return false, pgerr.New(errTriggeredChange, "tuple to be %s was already modified by an operation triggered by the current command", what).
		WithHint("Consider using an AFTER trigger instead of a BEFORE trigger to propagate changes to other rows.")
}

// errTriggeredChange is triggered_data_change_violation.
const errTriggeredChange pgerr.Code = "27000"

// defers keeps the present change for flush.
func (it *modifyIter) defers(f *frame) error {
	if err := it.waiting.addRow(f, it.oldRow); err != nil {
		return err
	}
	return it.waiting.addRow(f, it.newRow)
}

// flush performs the deferred changes so far.
func (it *modifyIter) flush(f *frame) error {
	for i := 0; i < it.waiting.n; i += 2 {
		copy(it.oldRow, it.waiting.row(i))
		copy(it.newRow, it.waiting.row(i+1))
		var err error
		switch it.p.kind {
		case plan.Insert:
			err = it.insert(f)
		case plan.Update:
			err = it.update(f, it.p.changed, it.p.assigned)
		default:
			err = it.delete(f)
		}
		if err != nil {
			return err
		}
	}
	it.waiting.reset(f)
	return nil
}

// upsert inserts the row unless a row with the same key is there, and does
// what ON CONFLICT says otherwise.
func (it *modifyIter) upsert(f *frame) (bool, error) {
	p, k := it.p, it.p.conflict
	row, err := it.w.extend(f, it.newRow)
	if err != nil {
		return false, err
	}
	for i := range p.table.Indexes {
		if k.index >= 0 && i != k.index || !p.layout.Exclusive(i, row) {
			continue
		}
		key := p.layout.IndexKey(it.w.scratch[:0], i, row)
		it.w.scratch = key
		value, _, live, err := it.w.store(f).Get(key, mvcc.ReadExistence)
		if err != nil {
			return false, err
		}
		if !live {
			continue
		}
		if k.set == nil {
			return false, nil
		}
		if i == 0 {
			value = append([]byte(nil), key[catalog.PrefixLen:]...)
		}
		return it.updateExisting(f, value)
	}
	if k.set != nil {
		if err := it.insert(f); err != nil {
			return false, err
		}
		key := p.layout.PrimaryKey(it.w.scratch[:0], it.newRow)
		it.w.scratch = key
		it.touch(key)
		return true, nil
	}
	return true, it.insert(f)
}

// updateExisting is DO UPDATE of the row whose primary key ends in suffix.
func (it *modifyIter) updateExisting(f *frame, suffix []byte) (bool, error) {
	p, k := it.p, it.p.conflict
	key := append(append([]byte(nil), p.layout.IndexPrefix(0)...), suffix...)
	if _, ok := it.touched[string(key)]; ok {
		return false, pgerr.New(pgerr.CardinalityViolation, "ON CONFLICT DO UPDATE command cannot affect row a second time").
			WithHint("Ensure that no rows proposed for insertion within the same command have duplicate constrained values.")
	}
	value, _, ok, err := it.w.store(f).Get(key, f.mode)
	if err != nil {
		return false, err
	}
	if !ok {
		return false, fmt.Errorf("exec: table %s has an index entry without a row, primary key %x", p.table.Name, suffix)
	}
	if err := p.decoder.Decode(value, it.oldRow); err != nil {
		return false, err
	}
	for c, slot := range k.existing {
		if slot >= 0 {
			f.slots[slot] = it.oldRow[c]
		}
	}
	if err := admitExisting(f, p.table, k.visible); err != nil {
		return false, err
	}
	if ok, err := pass(f, k.where); err != nil || !ok {
		return false, err
	}
	if ok, err := it.compute(f, k.set, plan.Update, it.oldRow, k.changed); err != nil || !ok {
		return false, err
	}
	it.touch(key)
	changed := k.changed
	if p.changed == nil && p.triggers.has(true, true, plan.Update) {
		changed = nil
	}
	err = it.update(f, changed, k.changed)
	it.first(it.newRow) // the update may have moved it
	return true, err
}
