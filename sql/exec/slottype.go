package exec

import (
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/plan"
)

// slotType finds the type of a slot that a node fills, as far as the node or
// those below it say; the zero Type if they do not.
func slotType(n plan.Node, slot int) datum.Type {
	switch n := n.(type) {
	case *plan.Append:
		return pickType(n.Out, slot, func(i int) datum.Type { return slotType(n.Children[0], n.In[0][i]) })
	case *plan.With:
		return slotType(n.Body, slot)
	case *plan.ProjectSet:
		return slotType(n.Child, slot)
	case *plan.Filter:
		return slotType(n.Child, slot)
	case *plan.Sort:
		return slotType(n.Child, slot)
	case *plan.Limit:
		return slotType(n.Child, slot)
	case *plan.Unique:
		return slotType(n.Child, slot)
	case *plan.NestLoop:
		return either(slotType(n.Outer, slot), n.Inner, slot)
	case *plan.HashJoin:
		return either(slotType(n.Outer, slot), n.Inner, slot)
	case *plan.Window:
		for i := range n.Funcs {
			if n.Funcs[i].Out == slot {
				return n.Funcs[i].Type
			}
		}
		return slotType(n.Child, slot)
	case *plan.Project:
		return either(pickType(n.Out, slot, exprType(n.Exprs)), n.Child, slot)
	}
	return ownSlotType(n, slot)
}

// ownSlotType is slotType of nodes that fill slots from what is not a slot.
func ownSlotType(n plan.Node, slot int) datum.Type {
	switch n := n.(type) {
	case *plan.Scan:
		return pickType(n.Slots, slot, func(i int) datum.Type { return n.Table.Columns[i].Type })
	case *plan.VirtualScan:
		return pickType(n.Slots, slot, func(i int) datum.Type { return n.Relation.Columns[i].Type })
	case *plan.Values:
		if len(n.Rows) > 0 {
			return pickType(n.Slots, slot, exprType(n.Rows[0]))
		}
	case *plan.FuncScan:
		if n.Value != nil && len(n.Slots) == 1 {
			return pickType(n.Slots, slot, func(int) datum.Type { return n.Value.Type() })
		}
	case *plan.SetOp:
		return pickType(n.Out, slot, func(i int) datum.Type { return n.Types[i] })
	case *plan.Aggregate:
		for i := range n.Aggs {
			if n.Aggs[i].Out == slot {
				return n.Aggs[i].Type
			}
		}
		for i := range n.Groupings {
			if n.Groupings[i].Out == slot {
				return datum.T(datum.Int4)
			}
		}
		return pickType(n.GroupOut, slot, exprType(n.GroupBy))
	}
	return datum.Type{}
}

func pickType(slots []int, slot int, types func(i int) datum.Type) datum.Type {
	for i, s := range slots {
		if s == slot {
			return types(i)
		}
	}
	return datum.Type{}
}

func exprType(list []plan.Expr) func(i int) datum.Type {
	return func(i int) datum.Type { return list[i].Type() }
}

func either(t datum.Type, n plan.Node, slot int) datum.Type {
	if t.Desc != nil {
		return t
	}
	return slotType(n, slot)
}
