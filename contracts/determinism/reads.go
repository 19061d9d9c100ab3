package determinism

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tallystick/tallystick/sql/plan"
)

// scan: a read is served by an index, or it is bounded.
func (x *examiner) scan(n *plan.Scan, ctx context) {
	if len(n.Ranges) > 0 || n.Index.Predicate != "" || ctx.bounded && n.Filter == nil {
		return
	}
	t := n.Table.Name
	columns := columnsIn(n, append([]plan.Expr{n.Filter}, ctx.joined...))
	if m := ctx.modify; m != nil && m.Kind != plan.Insert && m.Table == n.Table && n.Filter == nil {
		verb := "UPDATE"
		if m.Kind == plan.Delete {
			verb = "DELETE"
		}
		x.add(n.At, BlindWrite, fmt.Sprintf("%s of the whole table %s", verb, t),
			fmt.Sprintf("Add a condition that an index serves, such as one on the key (%s).", primaryKey(n)))
		return
	}
	if len(columns) == 0 {
		x.add(n.At, WholeTable, fmt.Sprintf("the whole table %s is read", t),
			fmt.Sprintf("Add a condition that an index serves, such as one on the key (%s).", primaryKey(n)))
		return
	}
	x.add(n.At, NoIndex, fmt.Sprintf("no index of table %s serves the condition: every row would be read, and any change to the table would abort the transaction", t),
		fmt.Sprintf("Create an index that begins with the compared column (one of %s), or add a condition on the key (%s).",
			strings.Join(columns, ", "), primaryKey(n)))
}

func primaryKey(n *plan.Scan) string {
	var names []string
	for _, k := range n.Table.Primary().Keys {
		names = append(names, n.Table.Columns[k.Column].Name)
	}
	return strings.Join(names, ", ")
}

// columnsIn names the columns of the scanned table that conditions mention, in
// the order of the table.
func columnsIn(n *plan.Scan, conds []plan.Expr) []string {
	used := map[int]bool{}
	for _, c := range conds {
		if c == nil {
			continue
		}
		plan.Walk(c, func(e plan.Expr) {
			if s, ok := e.(*plan.Slot); ok {
				used[s.Index] = true
			}
		})
	}
	var names []string
	for i, s := range n.Slots {
		if s >= 0 && used[s] {
			names = append(names, n.Table.Columns[i].Name)
		}
	}
	return names
}

// references: a change of a referenced row looks for the rows that refer to it.
func (x *examiner) references(m *plan.Modify) {
	for _, r := range m.Referenced {
		if r.ByIndex != nil || !touches(m, r.FK.RefColumns) {
			continue
		}
		var names []string
		for _, c := range r.FK.Columns {
			names = append(names, r.From.Columns[c].Name)
		}
		x.add(0, NoIndex, fmt.Sprintf("no index of table %s serves its foreign key %s to %s", r.From.Name, r.FK.Name, m.Table.Name),
			fmt.Sprintf("Create an index on %s (%s).", r.From.Name, strings.Join(names, ", ")))
	}
}

// touches tells that a statement takes away values of the columns.
func touches(m *plan.Modify, columns []int) bool {
	switch m.Kind {
	case plan.Insert:
		return false
	case plan.Update:
		return changes(m.Changed, columns)
	case plan.Merge:
		return slices.ContainsFunc(m.Actions, func(a plan.MergeAction) bool {
			return !a.Nothing && (a.Kind == plan.Delete || a.Kind == plan.Update && changes(a.Changed, columns))
		})
	}
	return true
}

func changes(changed []bool, columns []int) bool {
	return slices.ContainsFunc(columns, func(c int) bool { return c < len(changed) && changed[c] })
}

// systemSlots collects the slots that hold system columns, or what was computed
// from them.
func (x *examiner) systemSlots(n plan.Node) {
	if w, ok := n.(*plan.With); ok {
		for i := range w.CTEs {
			x.ctes[w.CTEs[i].ID] = &w.CTEs[i]
		}
	}
	for _, c := range plan.Inputs(n) {
		x.systemSlots(c)
	}
	plan.NodeExprs(n, func(e plan.Expr) { x.exprNode(e, x.systemSlots) })
	switch n := n.(type) {
	case *plan.Scan:
		for name, s := range map[string]int{
			"xmin": n.Sys.Xmin, "xmax": n.Sys.Xmax, "creator_block": n.Sys.CreatorBlock, "deleter_block": n.Sys.DeleterBlock, "ctid": n.Sys.Ctid,
		} { // any order: of a map into a map
			if s >= 0 {
				x.sys[s] = name
			}
		}
	case *plan.CTEScan:
		if c := x.ctes[n.ID]; c != nil {
			for i, s := range n.Slots {
				if name := x.sys[c.Out[i]]; name != "" && s >= 0 {
					x.sys[s] = name
				}
			}
		}
	case *plan.Project:
		for i, e := range n.Exprs {
			if _, name := x.system(e); name != "" {
				x.sys[n.Out[i]] = name
			}
		}
	case *plan.Aggregate:
		for i, e := range n.GroupBy {
			if _, name := x.system(e); name != "" {
				x.sys[n.GroupOut[i]] = name
			}
		}
	case *plan.Window:
		for i := range n.Funcs {
			for _, e := range n.Funcs[i].Args {
				if _, name := x.system(e); name != "" {
					x.sys[n.Funcs[i].Out] = name
				}
			}
		}
	case *plan.ProjectSet:
		for i := range n.Sets {
			for _, e := range n.Sets[i].Args {
				if _, name := x.system(e); name != "" {
					x.sys[n.Sets[i].Out] = name
				}
			}
		}
	case *plan.SetOp:
		for _, in := range [][]int{n.LeftIn, n.RightIn} {
			for i, s := range in {
				if name := x.sys[s]; name != "" {
					x.sys[n.Out[i]] = name
				}
			}
		}
	case *plan.Append:
		for _, in := range n.In {
			for i, s := range in {
				if name := x.sys[s]; name != "" {
					x.sys[n.Out[i]] = name
				}
			}
		}
	}
}

// system finds a system column in an expression.
func (x *examiner) system(e plan.Expr) (found *plan.Slot, name string) {
	if e == nil {
		return nil, ""
	}
	plan.WalkOperands(e, func(e plan.Expr) {
		if s, ok := e.(*plan.Slot); ok && found == nil && x.sys[s.Index] != "" {
			found, name = s, x.sys[s.Index]
		}
	})
	return found, name
}

// conditions: no condition may look at a system column.
func (x *examiner) conditions(n plan.Node) {
	check := func(e plan.Expr) {
		if s, name := x.system(e); s != nil {
			x.add(s.At, SystemColumn, fmt.Sprintf("system column %s in a condition", name),
				"It says which transaction wrote a version, which re-execution changes: keep what the condition needs in a column of the table.")
		}
	}
	switch n := n.(type) {
	case *plan.Scan:
		check(n.Filter)
		for _, r := range n.Ranges {
			for _, k := range r.Eq {
				check(k.Value)
			}
			check(r.In)
			for _, b := range []*plan.Bound{r.Lo, r.Hi} {
				if b != nil {
					check(b.Value)
				}
			}
		}
	case *plan.CTEScan:
		check(n.Filter)
	case *plan.FuncScan:
		check(n.Filter)
	case *plan.Result:
		check(n.Cond)
	case *plan.Filter:
		check(n.Cond)
	case *plan.NestLoop:
		check(n.Cond)
	case *plan.HashJoin:
		for i := range n.OuterKeys {
			check(n.OuterKeys[i])
			check(n.InnerKeys[i])
		}
		check(n.Cond)
	case *plan.Aggregate:
		for i := range n.Aggs {
			check(n.Aggs[i].Filter)
		}
	case *plan.Window:
		for i := range n.Funcs {
			check(n.Funcs[i].Filter)
		}
	case *plan.Modify:
		for i := range n.Actions {
			check(n.Actions[i].Cond)
		}
	}
}
