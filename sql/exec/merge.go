package exec

import (
	"github.com/tallystick/tallystick/sql/pgerr"
	"github.com/tallystick/tallystick/sql/plan"
)

// mergeProg is a compiled WHEN clause of MERGE.
type mergeProg struct {
	matched, nothing bool
	cond             evalFunc
	kind             plan.ModifyKind
	new              []evalFunc
	changed          []bool
}

func (c *compiler) mergeActions(list []plan.MergeAction) ([]mergeProg, error) {
	var out []mergeProg
	for i := range list {
		a := &list[i]
		p := mergeProg{matched: a.Matched, nothing: a.Nothing, kind: a.Kind, changed: a.Changed}
		var err error
		if p.cond, err = c.optional(a.Cond); err != nil {
			return nil, err
		}
		if p.new, err = c.exprs(a.New); err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

// merge carries out the first action that fits the present row. The old row is
// at hand; it is that of no row of the table if its primary key is null.
func (it *modifyIter) merge(f *frame) (bool, error) {
	p := it.p
	matched := !it.oldRow[p.table.Primary().Keys[0].Column].IsNull()
	for i := range p.merge {
		a := &p.merge[i]
		if a.matched != matched {
			continue
		}
		ok, err := pass(f, a.cond)
		if err != nil {
			return false, err
		}
		if ok {
			return it.mergeAction(f, a)
		}
	}
	return false, nil
}

func (it *modifyIter) mergeAction(f *frame, a *mergeProg) (bool, error) {
	if a.nothing {
		return false, nil
	}
	if a.matched && !it.first(it.oldRow) {
		return false, pgerr.New(pgerr.CardinalityViolation, "MERGE command cannot affect row a second time").
			WithHint("Ensure that not more than one source row matches any one target row.")
	}
	if a.kind == plan.Delete {
		if ok, err := it.p.triggers.beforeRow(f, plan.Delete, it.oldRow, nil, nil); err != nil || !ok {
			return false, err
		}
		return true, it.delete(f)
	}
	old := it.oldRow
	if a.kind == plan.Insert {
		old = nil
	}
	if ok, err := it.compute(f, a.new, a.kind, old, a.changed); err != nil || !ok {
		return false, err
	}
	if a.kind == plan.Update {
		return true, it.update(f, a.changed, a.changed)
	}
	return true, it.insert(f)
}
