package plan

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// children calls f for every direct operand of e, and for the plans of
// subqueries.
func children(e Expr, f func(Expr), sub func(Node)) {
	each := func(list []Expr) {
		for _, x := range list {
			if x != nil {
				f(x)
			}
		}
	}
	opt := func(x Expr) {
		if x != nil {
			f(x)
		}
	}
	switch e := e.(type) {
	case *Const, *Slot, *Param:
	case *Call:
		each(e.Args)
	case *UserCall:
		each(e.Args)
	case *BoolOp:
		each(e.Args)
	case *IsNull:
		f(e.Arg)
	case *BoolTest:
		f(e.Arg)
	case *Distinct:
		f(e.Left)
		f(e.Right)
	case *Case:
		opt(e.Arg)
		for _, w := range e.Whens {
			f(w.Cond)
			f(w.Result)
		}
		opt(e.Else)
	case *Coalesce:
		each(e.Args)
	case *MinMax:
		each(e.Args)
	case *NullIf:
		f(e.Left)
		f(e.Right)
		f(e.Value)
	case *CoerceIO:
		f(e.Arg)
	case *Relabel:
		f(e.Arg)
	case *CoerceMod:
		f(e.Arg)
	case *CoerceArray:
		f(e.Arg)
		f(e.Elem)
	case *ArrayExpr:
		each(e.Args)
	case *AnyAll:
		f(e.Left)
		f(e.Array)
	case *Subscript:
		f(e.Array)
		each(e.Index)
		each(e.Lo)
		each(e.Hi)
	case *SetElement:
		f(e.Base)
		each(e.Index)
		each(e.Lo)
		each(e.Hi)
		f(e.Value)
	case *SetField:
		f(e.Base)
		f(e.Value)
	case *Row:
		each(e.Args)
	case *CoerceDomain:
		f(e.Arg)
		for _, k := range e.Checks {
			f(k.Expr)
		}
	case *ConvertRow:
		f(e.Arg)
		each(e.Fields)
	case *Field:
		f(e.Arg)
	case *RowCompare:
		each(e.Left)
		each(e.Right)
	case *Subquery:
		opt(e.Test)
		opt(e.Hash)
		sub(e.Plan)
	case *RoleTest:
	default:
		panic(fmt.Sprintf("plan: expression %T has no children rule", e))
	}
}

// walk calls f for e and everything below it, plans of subqueries included.
func walk(e Expr, f func(Expr)) {
	if e == nil {
		return
	}
	f(e)
	children(e, func(c Expr) { walk(c, f) }, func(n Node) { walkNode(n, f) })
}

// walkNode calls f for every expression of a plan tree.
func walkNode(n Node, f func(Expr)) {
	nodeExprs(n, func(e Expr) { walk(e, f) })
	for _, c := range inputs(n) {
		walkNode(c, f)
	}
}

// inputs returns the child nodes of n.
func inputs(n Node) []Node {
	switch n := n.(type) {
	case *ProjectSet:
		return []Node{n.Child}
	case *Filter:
		return []Node{n.Child}
	case *NestLoop:
		return []Node{n.Outer, n.Inner}
	case *HashJoin:
		return []Node{n.Outer, n.Inner}
	case *Project:
		return []Node{n.Child}
	case *Aggregate:
		return []Node{n.Child}
	case *Window:
		return []Node{n.Child}
	case *Sort:
		return []Node{n.Child}
	case *Limit:
		return []Node{n.Child}
	case *Unique:
		return []Node{n.Child}
	case *Append:
		return n.Children
	case *SetOp:
		return []Node{n.Left, n.Right}
	case *With:
		var list []Node
		for i := range n.CTEs {
			list = append(list, n.CTEs[i].Node)
			if n.CTEs[i].Step != nil {
				list = append(list, n.CTEs[i].Step)
			}
		}
		return append(list, n.Body)
	case *Modify:
		return []Node{n.Child}
	}
	return nil
}

// nodeExprs calls f for the expressions that stand in n itself.
func nodeExprs(n Node, f func(Expr)) {
	each := func(list []Expr) {
		for _, e := range list {
			if e != nil {
				f(e)
			}
		}
	}
	keys := func(list []SortKey) {
		for _, k := range list {
			f(k.Expr)
		}
	}
	opt := func(e Expr) {
		if e != nil {
			f(e)
		}
	}
	switch n := n.(type) {
	case *Result:
		opt(n.Cond)
	case *Scan:
		rangeExprs(n.Ranges, f)
		opt(n.Policy)
		opt(n.Filter)
		opt(n.FromBlock)
		opt(n.ToBlock)
	case *VirtualScan:
		opt(n.Filter)
	case *FuncScan:
		for _, part := range n.Parts {
			each(part.Args)
			opt(part.Value)
		}
		each(n.Args)
		opt(n.Value)
		opt(n.Filter)
	case *ProjectSet:
		for _, s := range n.Sets {
			each(s.Args)
		}
	case *Values:
		for _, row := range n.Rows {
			each(row)
		}
	case *Filter:
		f(n.Cond)
	case *NestLoop:
		opt(n.Cond)
	case *HashJoin:
		each(n.OuterKeys)
		each(n.InnerKeys)
		opt(n.Cond)
	case *Project:
		each(n.Exprs)
	case *Aggregate:
		each(n.GroupBy)
		for _, a := range n.Aggs {
			each(a.Args)
			each(a.Direct)
			keys(a.OrderBy)
			opt(a.Filter)
		}
	case *Window:
		each(n.Partition)
		keys(n.Order)
		opt(n.Frame.Start.Offset)
		opt(n.Frame.End.Offset)
		for _, w := range n.Funcs {
			each(w.Args)
			opt(w.Filter)
		}
	case *Sort:
		keys(n.Keys)
		opt(n.Top)
	case *Limit:
		opt(n.Count)
		opt(n.Offset)
		keys(n.Ties)
	case *Unique:
		each(n.Keys)
	case *CTEScan:
		opt(n.Filter)
	case *Modify:
		modifyExprs(n, f)
	}
}

func rangeExprs(ranges []Range, f func(Expr)) {
	for _, r := range ranges {
		for _, k := range r.Eq {
			if k.Value != nil {
				f(k.Value)
			}
		}
		if r.In != nil {
			f(r.In)
		}
		if r.Lo != nil {
			f(r.Lo.Value)
		}
		if r.Hi != nil {
			f(r.Hi.Value)
		}
	}
}

func modifyExprs(n *Modify, f func(Expr)) {
	for _, e := range n.New {
		if e != nil {
			f(e)
		}
	}
	for _, a := range n.Actions {
		if a.Cond != nil {
			f(a.Cond)
		}
		for _, e := range a.New {
			if e != nil {
				f(e)
			}
		}
	}
	for _, g := range n.Generated {
		f(g.Expr)
	}
	for _, c := range n.Checks {
		f(c.Expr)
	}
	for _, c := range n.Policies {
		f(c.Expr)
	}
	if n.Triggers != nil {
		for _, t := range n.Triggers.List {
			if t.When != nil {
				f(t.When)
			}
		}
	}
	if n.Conflict != nil {
		for _, e := range n.Conflict.Set {
			f(e)
		}
		for _, e := range n.Conflict.Visible {
			f(e)
		}
		for _, c := range n.Conflict.Policies {
			f(c.Expr)
		}
		if n.Conflict.Where != nil {
			f(n.Conflict.Where)
		}
	}
	for _, e := range n.Returning {
		f(e)
	}
}

// fills returns the slots that n and its inputs fill, in ascending order.
func fills(n Node) []int {
	seen := map[int]bool{}
	var out []int
	add := func(list ...int) {
		for _, s := range list {
			if s >= 0 && !seen[s] {
				seen[s] = true
				out = append(out, s)
			}
		}
	}
	var visit func(n Node)
	visit = func(n Node) {
		switch n := n.(type) {
		case *Aggregate: // hides what is below
			add(n.GroupOut...)
			for _, a := range n.Aggs {
				add(a.Out)
			}
			for _, g := range n.Groupings {
				add(g.Out)
			}
			return
		case *Append:
			add(n.Out...)
			return
		case *SetOp:
			add(n.Out...)
			return
		case *With:
			visit(n.Body)
			return
		case *Modify:
			add(n.Out...)
			return
		case *NestLoop:
			visit(n.Outer)
			if n.Kind != SemiJoin && n.Kind != AntiJoin {
				visit(n.Inner)
			}
			return
		case *HashJoin:
			visit(n.Outer)
			if n.Kind != SemiJoin && n.Kind != AntiJoin {
				visit(n.Inner)
			}
			return
		case *Scan:
			add(n.Slots...)
			add(n.Sys.Xmin, n.Sys.Xmax, n.Sys.CreatorBlock, n.Sys.DeleterBlock, n.Sys.TableOID, n.Sys.Ctid)
		case *VirtualScan:
			add(n.Slots...)
		case *FuncScan:
			add(n.Slots...)
			add(n.Ordinality)
		case *Values:
			add(n.Slots...)
		case *CTEScan:
			add(n.Slots...)
		case *Window:
			for _, w := range n.Funcs {
				add(w.Out)
			}
		case *Project:
			add(n.Out...)
		case *ProjectSet:
			for _, s := range n.Sets {
				add(s.Out)
			}
		}
		for _, c := range inputs(n) {
			visit(c)
		}
	}
	visit(n)
	slices.Sort(out)
	return out
}

// finish completes a plan tree after all slots have been handed out: which
// slots joins null out, hashes and sorts keep.
func finish(n Node) {
	nodeExprs(n, finishExpr)
	for _, c := range inputs(n) {
		finish(c)
	}
	switch n := n.(type) {
	case *NestLoop:
		n.InnerSlots = fills(n.Inner)
	case *HashJoin:
		n.InnerSlots, n.OuterSlots = fills(n.Inner), fills(n.Outer)
		if n.Cond == nil && (n.Kind == SemiJoin || n.Kind == AntiJoin) {
			n.InnerSlots = nil // nobody looks at the rows
		}
	case *Sort:
		n.Slots = fills(n.Child)
	case *Window:
		n.Slots = fills(n.Child)
	case *Modify:
		n.Carry = fills(n.Child)
	}
}

// finishExpr completes the plans of subqueries below e.
func finishExpr(e Expr) {
	walk1(e, func(x Expr) {
		if s, ok := x.(*Subquery); ok {
			finish(s.Plan)
		}
	})
}

// walk1 is walk without going into subqueries' plans.
func walk1(e Expr, f func(Expr)) {
	if e == nil {
		return
	}
	f(e)
	children(e, func(c Expr) { walk1(c, f) }, func(Node) {})
}

// eachOperand calls f with the place of every direct operand of e, so that f
// can replace it. Subqueries' plans are not entered. Operands are changed in
// place: a plan under construction is a tree of its own.
func eachOperand(e Expr, f func(*Expr)) {
	list := func(l []Expr) {
		for i := range l {
			f(&l[i])
		}
	}
	switch e := e.(type) {
	case *Call:
		list(e.Args)
	case *UserCall:
		list(e.Args)
	case *BoolOp:
		list(e.Args)
	case *IsNull:
		f(&e.Arg)
	case *BoolTest:
		f(&e.Arg)
	case *Distinct:
		f(&e.Left)
		f(&e.Right)
	case *Case:
		f(&e.Arg)
		for i := range e.Whens {
			f(&e.Whens[i].Cond)
			f(&e.Whens[i].Result)
		}
		f(&e.Else)
	case *Coalesce:
		list(e.Args)
	case *MinMax:
		list(e.Args)
	case *NullIf:
		f(&e.Left)
		f(&e.Right)
		f(&e.Value)
	case *CoerceIO:
		f(&e.Arg)
	case *Relabel:
		f(&e.Arg)
	case *CoerceMod:
		f(&e.Arg)
	case *CoerceArray:
		f(&e.Arg)
	case *ArrayExpr:
		list(e.Args)
	case *AnyAll:
		f(&e.Left)
		f(&e.Array)
	case *Subscript:
		f(&e.Array)
		list(e.Index)
		list(e.Lo)
		list(e.Hi)
	case *SetElement:
		f(&e.Base)
		list(e.Index)
		list(e.Lo)
		list(e.Hi)
		f(&e.Value)
	case *SetField:
		f(&e.Base)
		f(&e.Value)
	case *Row:
		list(e.Args)
	case *CoerceDomain:
		f(&e.Arg)
	case *ConvertRow:
		f(&e.Arg)
	case *Field:
		f(&e.Arg)
	case *RowCompare:
		list(e.Left)
		list(e.Right)
	case *Subquery:
		f(&e.Test)
		f(&e.Hash)
	}
}

// printer writes a form of expressions that is equal for equal ones. Slots that
// belong to one expression alone (the operand of a simple CASE, the element of
// an array that is converted) are numbered by it.
type printer struct {
	own map[int]int
	// columns are slots that stand for columns of a row; row tells that parameters
	// do.
	columns map[int]int
	row     bool
}

func (p *printer) name(slot int) {
	if p.own == nil {
		p.own = map[int]int{}
	}
	p.own[slot] = len(p.own)
}

// column is the position of the column that e stands for.
func (p *printer) column(e Expr) (int, bool) {
	switch e := e.(type) {
	case *Slot:
		i, ok := p.columns[e.Index]
		return i, ok
	case *Param:
		return e.Index, p.row
	}
	return 0, false
}

func (p *printer) print(dst []byte, e Expr) []byte {
	if i, ok := p.column(e); ok {
		dst = fmt.Appendf(dst, "column(%d", i)
	} else {
		dst = fmt.Appendf(dst, "%T(", e)
	}
	dst = binary.BigEndian.AppendUint32(dst, uint32(e.Type().OID))
	dst = binary.BigEndian.AppendUint32(dst, uint32(e.Type().Mod))
	switch e := e.(type) {
	case *Const:
		switch {
		case e.Value.IsNull():
			dst = append(dst, 'n')
		case e.Value.Inline():
			dst = fmt.Appendf(dst, "i%d", e.Value.Int())
		default:
			dst = fmt.Appendf(dst, "b%q", e.Value.Str())
		}
	case *Slot:
		if n, ok := p.own[e.Index]; ok {
			dst = fmt.Appendf(dst, "o%d", n)
		} else if _, ok := p.columns[e.Index]; !ok {
			dst = fmt.Appendf(dst, "s%d", e.Index)
		}
	case *Case:
		if e.Arg != nil {
			p.name(e.ArgSlot)
		}
		dst = fmt.Appendf(dst, "%t%d%t", e.Arg != nil, len(e.Whens), e.Else != nil)
	case *CoerceArray:
		p.name(e.ElemSlot)
	case *Param:
		if !p.row {
			dst = fmt.Appendf(dst, "p%d", e.Index)
		}
	case *Call:
		dst = fmt.Appendf(dst, "f%d", e.Func.OID)
	case *UserCall:
		dst = fmt.Appendf(dst, "u%d", e.Func.OID)
	case *BoolOp:
		dst = fmt.Appendf(dst, "%d", e.Op)
	case *IsNull:
		dst = fmt.Appendf(dst, "%t", e.Not)
	case *BoolTest:
		dst = fmt.Appendf(dst, "%t%t%t", e.Not, e.Want.IsNull(), e.Want.Bool())
	case *Distinct:
		dst = fmt.Appendf(dst, "%t", e.Not)
	case *MinMax:
		dst = fmt.Appendf(dst, "%t", e.Least)
	case *AnyAll:
		dst = fmt.Appendf(dst, "%t%p", e.All, e.Eval)
	case *Field:
		dst = fmt.Appendf(dst, "%d", e.Index)
	case *RoleTest:
		dst = fmt.Appendf(dst, "%q%q%t%q", e.As, e.Owner, e.Force, e.Roles)
	case *RowCompare:
		dst = append(dst, e.Op...)
	case *Subscript:
		dst = fmt.Appendf(dst, "%t%d%d", e.Slice, len(e.Index), len(e.Lo))
	case *SetElement:
		dst = fmt.Appendf(dst, "%t%d%d", e.Slice, len(e.Index), len(e.Lo))
	case *SetField:
		dst = fmt.Appendf(dst, "%d", e.Index)
	case *Subquery:
		dst = fmt.Appendf(dst, "q%d", e.ID)
	}
	children(e, func(c Expr) { dst = append(p.print(dst, c), ',') }, func(Node) {})
	return append(dst, ')')
}

// fingerprint appends a form of e that is equal for equal expressions.
func fingerprint(dst []byte, e Expr) []byte { return (&printer{}).print(dst, e) }

func sameExpr(a, b Expr) bool {
	return string(fingerprint(nil, a)) == string(fingerprint(nil, b))
}
