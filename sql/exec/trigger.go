package exec

import (
	"fmt"

	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
	"github.com/tallystick/tallystick/sql/plan"
)

// TriggerCall is what a trigger function is called with. New and Old are rows of
// the table without dropped columns; nil where there is none.
type TriggerCall struct {
	Name     string
	When     string // BEFORE, AFTER
	Op       string // INSERT, UPDATE, DELETE
	Row      bool   // FOR EACH ROW
	Table    *catalog.Table
	Args     []string
	New, Old []datum.Datum
}

// triggerProg is one trigger that a statement may fire.
type triggerProg struct {
	def  *catalog.Trigger
	fn   *catalog.Func
	when evalFunc // over oldSlots and newSlots; nil: always
}

// triggersProg are the enabled triggers of a table for the events of one
// statement, in the order of their names.
type triggersProg struct {
	table              *catalog.Table
	list               []triggerProg
	oldSlots, newSlots []int
	live               []int // columns that are not dropped
}

func (c *compiler) triggers(n *plan.Modify) (*triggersProg, error) {
	if n.Triggers == nil {
		return nil, nil
	}
	p := &triggersProg{table: n.Table, oldSlots: n.Triggers.OldSlots, newSlots: n.Triggers.NewSlots}
	for i := range n.Table.Columns {
		if !n.Table.Columns[i].Dropped {
			p.live = append(p.live, i)
		}
	}
	for _, t := range n.Triggers.List {
		when, err := c.optional(t.When)
		if err != nil {
			return nil, err
		}
		p.list = append(p.list, triggerProg{t.Trigger, t.Func, when})
	}
	return p, nil
}

// has tells whether there are triggers of a kind.
func (p *triggersProg) has(before, row bool, op plan.ModifyKind) bool {
	if p == nil {
		return false
	}
	for i := range p.list {
		if t := p.list[i].def; t.Before == before && t.Row == row && t.On(opName(op)) {
			return true
		}
	}
	return false
}

func opName(k plan.ModifyKind) string {
	switch k {
	case plan.Insert:
		return "INSERT"
	case plan.Update:
		return "UPDATE"
	}
	return "DELETE"
}

// fires tells whether a trigger is for an event: changed are the columns that an
// UPDATE assigns.
func (t *triggerProg) fires(before, row bool, op plan.ModifyKind, changed []bool) bool {
	if t.def.Before != before || t.def.Row != row || !t.def.On(opName(op)) {
		return false
	}
	if op != plan.Update || len(t.def.Columns) == 0 {
		return true
	}
	for _, c := range t.def.Columns {
		if changed == nil || changed[c] {
			return true
		}
	}
	return false
}

// wants evaluates the WHEN condition.
func (p *triggersProg) wants(f *frame, t *triggerProg, old, now []datum.Datum) (bool, error) {
	if t.when == nil {
		return true, nil
	}
	fill := func(slots []int, row []datum.Datum) {
		for i, s := range slots {
			f.slots[s] = datum.Null
			if row != nil {
				f.slots[s] = row[i]
			}
		}
	}
	fill(p.oldSlots, old)
	fill(p.newSlots, now)
	return pass(f, t.when)
}

// call runs the function of a trigger and returns its row, nil for null.
func (p *triggersProg) call(f *frame, t *triggerProg, op plan.ModifyKind, old, now []datum.Datum) ([]datum.Datum, error) {
	if f.env.Functions == nil || f.env.Functions.Trigger == nil {
		return nil, fmt.Errorf("exec: the environment calls no trigger functions")
	}
	call := &TriggerCall{Name: t.def.Name, When: "AFTER", Op: opName(op), Row: t.def.Row, Table: p.table, Args: t.def.Args,
		Old: p.visible(old), New: p.visible(now)}
	if t.def.Before {
		call.When = "BEFORE"
	}
	if err := f.enter(); err != nil {
		return nil, err
	}
	defer func() { f.env.Depth-- }()
	return f.env.Functions.Trigger(f.env, t.fn, call)
}

// visible leaves the dropped columns of a row out.
func (p *triggersProg) visible(row []datum.Datum) []datum.Datum {
	if row == nil {
		return nil
	}
	out := make([]datum.Datum, len(p.live))
	for i, c := range p.live {
		out[i] = row[c]
	}
	return out
}

// beforeRow fires the BEFORE ROW triggers. They may change now; false means that
// one of them has the row skipped.
func (p *triggersProg) beforeRow(f *frame, op plan.ModifyKind, old, now []datum.Datum, changed []bool) (bool, error) {
	if p == nil {
		return true, nil
	}
	for i := range p.list {
		t := &p.list[i]
		if !t.fires(true, true, op, changed) {
			continue
		}
		ok, err := p.wants(f, t, old, now)
		if err != nil {
			return false, err
		}
		if !ok {
			continue
		}
		row, err := p.call(f, t, op, old, now)
		if err != nil || row == nil {
			return false, err
		}
		if now != nil {
			for i, c := range p.live {
				now[c] = row[i]
			}
		}
	}
	return true, nil
}

// statement fires the statement-level triggers.
func (p *triggersProg) statement(f *frame, before bool, op plan.ModifyKind, changed []bool) error {
	if p == nil {
		return nil
	}
	for i := range p.list {
		t := &p.list[i]
		if !t.fires(before, false, op, changed) {
			continue
		}
		ok, err := p.wants(f, t, nil, nil)
		if err == nil && ok {
			_, err = p.call(f, t, op, nil, nil)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// rowEvent is an AFTER ROW trigger that waits for the end of the statement; row
// counts pairs of rows in modifyIter.after.
type rowEvent struct {
	trigger  int
	op       plan.ModifyKind
	row      int
	old, now bool
}

// noteAfter queues the AFTER ROW triggers of a change.
func (it *modifyIter) noteAfter(f *frame, op plan.ModifyKind, old, now []datum.Datum, changed []bool) error {
	p := it.p.triggers
	if p == nil {
		return nil
	}
	kept := false
	for i := range p.list {
		t := &p.list[i]
		if !t.fires(false, true, op, changed) {
			continue
		}
		ok, err := p.wants(f, t, old, now)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		if !kept {
			kept = true
			for _, row := range [][]datum.Datum{old, now} {
				if row == nil {
					row = it.nulls()
				}
				if err := it.after.addRow(f, row); err != nil {
					return err
				}
			}
		}
		it.events = append(it.events, rowEvent{i, op, it.after.n - 2, old != nil, now != nil})
	}
	return nil
}

func (it *modifyIter) nulls() []datum.Datum {
	row := make([]datum.Datum, len(it.p.table.Columns))
	for i := range row {
		row[i] = datum.Null
	}
	return row
}

// fireAfter runs the AFTER triggers of a statement that has made its changes:
// those of rows in the order of the changes, then those of the statement.
func (it *modifyIter) fireAfter(f *frame) error {
	p := it.p.triggers
	if p == nil {
		return nil
	}
	for _, e := range it.events {
		var old, now []datum.Datum
		if e.old {
			old = it.after.row(e.row)
		}
		if e.now {
			now = it.after.row(e.row + 1)
		}
		if _, err := p.call(f, &p.list[e.trigger], e.op, old, now); err != nil {
			return err
		}
	}
	it.events = it.events[:0]
	it.after.reset(f)
	if it.p.conflict != nil && it.p.conflict.set != nil {
		if err := p.statement(f, false, plan.Update, it.p.conflict.changed); err != nil {
			return err
		}
	}
	return p.statement(f, false, it.p.kind, it.p.assigned)
}

// beforeStatement fires the BEFORE STATEMENT triggers.
func (it *modifyIter) beforeStatement(f *frame) error {
	p := it.p.triggers
	if err := p.statement(f, true, it.p.kind, it.p.assigned); err != nil {
		return err
	}
	if p != nil && it.p.conflict != nil && it.p.conflict.set != nil {
		return p.statement(f, true, plan.Update, it.p.conflict.changed)
	}
	return nil
}

// noTriggers refuses a cascade that would have to fire triggers, which are not
// part of the plan.
func noTriggers(t *catalog.Table, op string) error {
	for i := range t.Triggers {
		if x := &t.Triggers[i]; !x.Disabled && x.On(op) {
			return pgerr.NotBuilt("a foreign key cannot change rows of table %q, which has trigger %q", t.Name, x.Name)
		}
	}
	return nil
}
