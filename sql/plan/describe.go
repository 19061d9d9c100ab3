package plan

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tallystick/tallystick/sql/builtin"
	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
)

// Describe writes a plan tree as text, one operator a line, inputs and
// subqueries indented below. Slots appear as name#number, or #number where
// they have no name. The text is a function of the plan alone.
func Describe(n Node) string {
	d := &describer{}
	d.node(n, 0)
	return d.out.String()
}

type describer struct{ out strings.Builder }

func (d *describer) line(depth int, format string, args ...any) {
	d.out.WriteString(strings.Repeat("  ", depth))
	fmt.Fprintf(&d.out, format, args...)
	d.out.WriteByte('\n')
}

// node writes n, what qualifies it, its subqueries and its inputs.
func (d *describer) node(n Node, depth int) {
	title, details := describeNode(n)
	d.line(depth, "%s", title)
	for _, text := range details {
		d.line(depth+1, "%s", text)
	}
	nodeExprs(n, func(e Expr) {
		walk1(e, func(x Expr) {
			if s, ok := x.(*Subquery); ok {
				d.line(depth+1, "%s:", subqueryLabel(s))
				d.node(s.Plan, depth+2)
			}
		})
	})
	if w, ok := n.(*With); ok {
		d.with(w, depth)
		return
	}
	for _, c := range inputs(n) {
		d.node(c, depth+1)
	}
}

func (d *describer) with(w *With, depth int) {
	for i := range w.CTEs {
		c := &w.CTEs[i]
		d.line(depth+1, "%s:", c.Name)
		d.node(c.Node, depth+2)
		if c.Step != nil {
			d.line(depth+1, "%s, repeated:", c.Name)
			d.node(c.Step, depth+2)
		}
	}
	d.node(w.Body, depth+1)
}

func subqueryLabel(s *Subquery) string {
	name := "subquery " + strconv.Itoa(s.ID)
	switch {
	case s.Correlated:
		return name + " (per row)"
	case s.Hash != nil:
		return name + " (hashed)"
	}
	return name
}

// details are the lines below the title of an operator.
type details []string

func (l *details) add(label string, e Expr) {
	if e != nil {
		*l = append(*l, label+" "+describeExpr(e))
	}
}

func (l *details) list(label string, list []Expr) {
	if len(list) > 0 {
		*l = append(*l, label+" "+exprList(list))
	}
}

func describeNode(n Node) (string, details) {
	var l details
	switch n := n.(type) {
	case *Result:
		l.add("if", n.Cond)
		return "one row", l
	case *Scan:
		return describeScan(n)
	case *VirtualScan:
		l.add("filter", n.Filter)
		return "compute " + n.Relation.Schema + "." + n.Relation.Name, l
	case *FuncScan:
		return describeFuncScan(n)
	case *ProjectSet:
		for i := range n.Sets {
			l = append(l, fmt.Sprintf("%s -> #%d", setName(&n.Sets[i]), n.Sets[i].Out))
		}
		return "expand sets", l
	case *Values:
		return fmt.Sprintf("values, %d rows", len(n.Rows)), nil
	case *Filter:
		l.add("if", n.Cond)
		return "filter", l
	case *NestLoop:
		l.add("on", n.Cond)
		return joinNames[n.Kind] + " join, loop", l
	case *HashJoin:
		for i := range n.OuterKeys {
			l = append(l, "hash "+describeExpr(n.OuterKeys[i])+" = "+describeExpr(n.InnerKeys[i]))
		}
		l.add("on", n.Cond)
		return joinNames[n.Kind] + " join, hash", l
	case *Project:
		for i, e := range n.Exprs {
			l = append(l, fmt.Sprintf("#%d = %s", n.Out[i], describeExpr(e)))
		}
		return "compute", l
	case *Aggregate:
		l.list("by", n.GroupBy)
		for i := range n.Aggs {
			l = append(l, describeAgg(&n.Aggs[i]))
		}
		return "group", l
	}
	return describeUpper(n)
}

// describeUpper describes the operators that order, combine and write rows.
func describeUpper(n Node) (string, details) {
	var l details
	switch n := n.(type) {
	case *Sort:
		l = append(l, "by "+keyList(n.Keys))
		l.add("first", n.Top)
		return "sort", l
	case *Limit:
		l.add("count", n.Count)
		l.add("skip", n.Offset)
		if n.Ties != nil {
			l = append(l, "with ties")
		}
		return "limit", l
	case *Unique:
		l.list("by", n.Keys)
		return "distinct", l
	case *Append:
		return "append", nil
	case *SetOp:
		name := "intersect"
		if n.Kind == Except {
			name = "except"
		}
		if n.All {
			name += " all"
		}
		return name, nil
	case *With:
		return "with", nil
	case *CTEScan:
		l.add("filter", n.Filter)
		if n.Working {
			return "read the last rows of query " + strconv.Itoa(n.ID), l
		}
		return "read query " + strconv.Itoa(n.ID), l
	case *Modify:
		verb := []string{"insert into", "update", "delete from"}[n.Kind]
		return verb + " " + n.Table.Schema + "." + n.Table.Name, nil
	}
	return fmt.Sprintf("%T", n), nil
}

var joinNames = map[JoinKind]string{
	InnerJoin: "inner", LeftJoin: "left", RightJoin: "right", FullJoin: "full", SemiJoin: "semi", AntiJoin: "anti",
}

func describeScan(n *Scan) (string, details) {
	var l details
	schema := n.Table.Schema
	if n.Provenance {
		schema = catalog.Provenance
	}
	title := "scan " + schema + "." + n.Table.Name + " by " + n.Index.Name
	if n.Reverse {
		title += ", backwards"
	}
	for _, r := range n.Ranges {
		l = append(l, "range "+describeRange(n, &r))
	}
	l.add("policy", n.Policy)
	l.add("filter", n.Filter)
	l.add("from block", n.FromBlock)
	l.add("to block", n.ToBlock)
	return title, l
}

func describeRange(n *Scan, r *Range) string {
	key := func(i int) string { return n.Table.KeyText(&n.Index.Keys[i], false) }
	var parts []string
	for i, k := range r.Eq {
		if k.Value == nil {
			parts = append(parts, key(i)+" is null")
		} else {
			parts = append(parts, key(i)+" = "+describeExpr(k.Value))
		}
	}
	next := len(r.Eq)
	if r.In != nil {
		parts = append(parts, key(next)+" in "+describeExpr(r.In))
	}
	bound := func(b *Bound, op string) {
		if b == nil {
			return
		}
		if b.Inclusive {
			op += "="
		}
		parts = append(parts, key(next)+" "+op+" "+describeExpr(b.Value))
	}
	bound(r.Lo, ">")
	bound(r.Hi, "<")
	return strings.Join(parts, ", ")
}

func describeFuncScan(n *FuncScan) (string, details) {
	var l details
	l.add("filter", n.Filter)
	switch {
	case n.User != nil:
		return "call " + n.User.Name + exprList(n.Args), l
	case n.Builtin != nil:
		return "call " + n.Builtin.Name + exprList(n.Args), l
	}
	return "call " + describeExpr(n.Value), l
}

func setName(s *SetItem) string {
	if s.User != nil {
		return s.User.Name + exprList(s.Args)
	}
	return "set" + exprList(s.Args)
}

func describeAgg(a *Agg) string {
	s := a.Func.Name + "("
	if a.Distinct {
		s += "distinct "
	}
	s += strings.Trim(exprList(a.Args), "()")
	if len(a.OrderBy) > 0 {
		s += " order by " + keyList(a.OrderBy)
	}
	s += ")"
	if a.Filter != nil {
		s += " filter " + describeExpr(a.Filter)
	}
	return fmt.Sprintf("%s -> #%d", s, a.Out)
}

func keyList(keys []SortKey) string {
	parts := make([]string, len(keys))
	for i, k := range keys {
		parts[i] = describeExpr(k.Expr)
		if k.Desc {
			parts[i] += " desc"
		}
		if k.NullsFirst != k.Desc {
			parts[i] += map[bool]string{true: " nulls first", false: " nulls last"}[k.NullsFirst]
		}
	}
	return strings.Join(parts, ", ")
}

func exprList(list []Expr) string {
	parts := make([]string, len(list))
	for i, e := range list {
		parts[i] = describeExpr(e)
	}
	return "(" + strings.Join(parts, ", ") + ")"
}

// operatorNames maps the functions of operators to the operators' names.
var operatorNames = func() map[datum.OID]string {
	m := map[datum.OID]string{}
	for _, op := range builtin.Operators() {
		if op.Func != nil && m[op.Func.OID] == "" {
			m[op.Func.OID] = op.Name
		}
	}
	return m
}()

func describeExpr(e Expr) string {
	switch e := e.(type) {
	case *Const:
		return describeConst(e)
	case *Slot:
		return e.Name + "#" + strconv.Itoa(e.Index)
	case *Param:
		return "$" + strconv.Itoa(e.Index+1)
	case *Call:
		if op := operatorNames[e.Func.OID]; op != "" && len(e.Args) == 2 {
			return "(" + describeExpr(e.Args[0]) + " " + op + " " + describeExpr(e.Args[1]) + ")"
		}
		return e.Func.Name + exprList(e.Args)
	case *UserCall:
		return e.Func.Name + exprList(e.Args)
	case *BoolOp:
		if e.Op == Not {
			return "not " + describeExpr(e.Args[0])
		}
		return joined(e.Args, map[BoolOpKind]string{And: " and ", Or: " or "}[e.Op])
	case *IsNull:
		if e.Not {
			return "(" + describeExpr(e.Arg) + " is not null)"
		}
		return "(" + describeExpr(e.Arg) + " is null)"
	case *Subquery:
		return "subquery " + strconv.Itoa(e.ID)
	case *AnyAll:
		if e.Equality {
			return "(" + describeExpr(e.Left) + " in " + describeExpr(e.Array) + ")"
		}
	case *ArrayExpr:
		return "array" + exprList(e.Args)
	case *Relabel:
		return describeExpr(e.Arg)
	case *Field:
		return describeExpr(e.Arg) + "." + strconv.Itoa(e.Index+1)
	}
	return describeOther(e)
}

// describeOther writes an expression as the name of its kind over its operands.
func describeOther(e Expr) string {
	name := strings.ToLower(strings.TrimPrefix(fmt.Sprintf("%T", e), "*plan."))
	var operands []Expr
	children(e, func(c Expr) { operands = append(operands, c) }, func(Node) {})
	return name + exprList(operands)
}

func describeConst(c *Const) string {
	if c.Value.IsNull() {
		return "null"
	}
	text := string(c.typ.Append(nil, c.Value, &datum.ContractFormat))
	if c.typ.Category == 'N' || c.typ.Desc == datum.BoolType {
		return text
	}
	return "'" + text + "'"
}

func joined(list []Expr, sep string) string {
	parts := make([]string, len(list))
	for i, e := range list {
		parts[i] = describeExpr(e)
	}
	return "(" + strings.Join(parts, sep) + ")"
}
