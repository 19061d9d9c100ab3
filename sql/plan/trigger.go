package plan

import (
	"cmp"
	"slices"

	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// Triggers are the enabled triggers that a statement may fire, in the order of
// their names. Conditions read the old and the new row from OldSlots and
// NewSlots, one per column of the table.
type Triggers struct {
	List               []TriggerPlan
	OldSlots, NewSlots []int
}

// TriggerPlan is a trigger with its function and condition.
type TriggerPlan struct {
	Trigger *catalog.Trigger
	Func    *catalog.Func
	When    Expr // nil = always
}

// triggers adds the triggers of the table for some events.
func (p *planner) triggers(m *Modify, events ...string) error {
	t := m.Table
	list := make([]*catalog.Trigger, 0, len(t.Triggers))
	for i := range t.Triggers {
		if x := &t.Triggers[i]; !x.Disabled && slices.ContainsFunc(events, x.On) {
			list = append(list, x)
		}
	}
	if len(list) == 0 {
		return nil
	}
	slices.SortFunc(list, func(a, b *catalog.Trigger) int { return cmp.Compare(a.Name, b.Name) })
	out := &Triggers{OldSlots: p.newSlots(len(t.Columns)), NewSlots: p.newSlots(len(t.Columns))}
	for _, x := range list {
		fn, ok := p.opts.Catalog.FuncByOID(x.FuncOID)
		if !ok {
			return pgerr.New(pgerr.InternalError, "trigger \"%s\" has no function", x.Name)
		}
		p.note(fn.Reads())
		tp := TriggerPlan{Trigger: x, Func: fn}
		if x.When != "" {
			s := &scope{rels: []*rel{p.slotsRel(t, "old", out.OldSlots), p.slotsRel(t, "new", out.NewSlots)}, noAggs: "trigger WHEN conditions"}
			e, err := p.storedExpr(x.When, s)
			if err == nil {
				e, err = p.boolean(e, "WHEN", -1)
			}
			if err != nil {
				return err
			}
			tp.When = e
		}
		out.List = append(out.List, tp)
	}
	m.Triggers = out
	return nil
}

// TriggerCondition analyzes the WHEN condition of a trigger that is being
// created.
func TriggerCondition(t *catalog.Table, text string, old, fresh bool, opts *Options) error {
	p := newPlanner(opts)
	s := &scope{noAggs: "trigger WHEN conditions"}
	if old {
		s.rels = append(s.rels, p.slotsRel(t, "old", p.newSlots(len(t.Columns))))
	}
	if fresh {
		s.rels = append(s.rels, p.slotsRel(t, "new", p.newSlots(len(t.Columns))))
	}
	e, err := p.storedExpr(text, s)
	if err != nil {
		return err
	}
	if e.Type().Desc != datum.Unknown {
		_, err = p.boolean(e, "WHEN", -1)
	}
	return err
}
