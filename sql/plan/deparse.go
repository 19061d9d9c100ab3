package plan

import (
	"strings"

	"github.com/tallystick/tallystick/sql/builtin"
	"github.com/tallystick/tallystick/sql/datum"
)

// namer writes the expressions of one plan as SQL, the way PostgreSQL's
// ruleutils.c does for EXPLAIN: operators in parentheses, constants with their
// type.
type namer struct {
	// slots says what fills each slot: a column, or an expression over others.
	slots map[int]slotSource
	// qualify tells that more than one relation has columns.
	qualify bool
	format  *datum.Format
	visited map[int]bool // slots being written, against plans that refer to themselves
	// params are the texts of parameters, where these are columns.
	params []string
}

// slotSource is the origin of a slot: a column of a relation, an expression,
// an aggregate or a set-returning function.
type slotSource struct {
	relation, column string
	expr             Expr
	agg              *Agg
	set              *SetItem
}

func newNamer(pl *Plan, format *datum.Format) *namer {
	nm := &namer{slots: map[int]slotSource{}, format: format, visited: map[int]bool{}}
	relations := 0
	nm.learn(pl.Root, &relations)
	nm.qualify = relations > 1
	return nm
}

// learn notes what n, its inputs and its subqueries fill.
func (nm *namer) learn(n Node, relations *int) {
	nodeExprs(n, func(e Expr) {
		walk1(e, func(x Expr) {
			switch x := x.(type) {
			case *Subquery:
				nm.learn(x.Plan, relations)
			case *Case:
				if x.Arg != nil {
					nm.slots[x.ArgSlot] = slotSource{expr: x.Arg}
				}
			}
		})
	})
	for _, c := range inputs(n) {
		nm.learn(c, relations)
	}
	if nm.relation(n) {
		*relations++
		return
	}
	switch n := n.(type) {
	case *Project:
		for i, s := range n.Out {
			nm.computed(s, n.Exprs[i])
		}
	case *ProjectSet:
		for i := range n.Sets {
			nm.slots[n.Sets[i].Out] = slotSource{set: &n.Sets[i]}
		}
	case *Aggregate:
		for i, s := range n.GroupOut {
			nm.computed(s, n.GroupBy[i])
		}
		for i := range n.Aggs {
			nm.slots[n.Aggs[i].Out] = slotSource{agg: &n.Aggs[i]}
		}
	case *Append:
		for i, s := range n.Out {
			nm.slots[s] = nm.slots[n.In[0][i]]
		}
	case *SetOp:
		for i, s := range n.Out {
			nm.slots[s] = nm.slots[n.LeftIn[i]]
		}
	case *Modify:
		nm.tableSlots(n.Table.Name, n.NewSlots, func(i int) string { return n.Table.Columns[i].Name })
		if n.Conflict != nil {
			nm.tableSlots(n.Table.Name, n.Conflict.ExistingSlots, func(i int) string { return n.Table.Columns[i].Name })
			nm.tableSlots("excluded", n.NewSlots, func(i int) string { return n.Table.Columns[i].Name })
		}
	}
}

// caseArgs notes what simple CASE expressions compare.
func (nm *namer) caseArgs(e Expr) {
	walk1(e, func(x Expr) {
		if c, ok := x.(*Case); ok && c.Arg != nil {
			nm.slots[c.ArgSlot] = slotSource{expr: c.Arg}
		}
	})
}

// computed notes that a slot holds an expression; one that reads the slot itself
// keeps what was there before.
func (nm *namer) computed(slot int, e Expr) {
	self := false
	walk1(e, func(x Expr) {
		if s, ok := x.(*Slot); ok && s.Index == slot {
			self = true
		}
	})
	if !self {
		nm.slots[slot] = slotSource{expr: e}
	}
}

// relation notes the columns of a node that reads a relation.
func (nm *namer) relation(n Node) bool {
	switch n := n.(type) {
	case *Scan:
		name := aliasOr(n.Alias, n.Table.Name)
		nm.tableSlots(name, n.Slots, func(i int) string { return n.Table.Columns[i].Name })
		s := n.Sys
		for _, sys := range []struct {
			slot int
			name string
		}{{s.Xmin, "xmin"}, {s.Xmax, "xmax"}, {s.CreatorBlock, "creator_block"}, {s.DeleterBlock, "deleter_block"}, {s.TableOID, "tableoid"}, {s.Ctid, "ctid"}} {
			if sys.slot >= 0 {
				nm.slots[sys.slot] = slotSource{relation: name, column: sys.name}
			}
		}
	case *VirtualScan:
		nm.tableSlots(aliasOr(n.Alias, n.Relation.Name), n.Slots, func(i int) string { return n.Relation.Columns[i].Name })
	case *FuncScan:
		name := aliasOr(n.Alias, functionName(n))
		nm.tableSlots(name, n.Slots, func(i int) string {
			if len(n.Slots) == 1 {
				return name
			}
			return "column" + itoa(i+1)
		})
		if n.Ordinality >= 0 {
			nm.slots[n.Ordinality] = slotSource{relation: name, column: "ordinality"}
		}
	case *CTEScan:
		nm.tableSlots(n.Alias, n.Slots, func(i int) string { return "column" + itoa(i+1) })
	case *Values:
		nm.tableSlots("*VALUES*", n.Slots, func(i int) string { return "column" + itoa(i+1) })
	default:
		return false
	}
	return true
}

func aliasOr(alias, name string) string {
	if alias != "" {
		return alias
	}
	return name
}

func (nm *namer) tableSlots(relation string, slots []int, column func(i int) string) {
	for i, s := range slots {
		if s >= 0 {
			nm.slots[s] = slotSource{relation: relation, column: column(i)}
		}
	}
}

// functionName is what PostgreSQL calls a function scan.
func functionName(n *FuncScan) string {
	switch {
	case n.Builtin != nil:
		return n.Builtin.Name
	case n.User != nil:
		return n.User.Name
	}
	if c, ok := n.Value.(*Call); ok {
		return c.Func.Name
	}
	return "expression"
}

// condition writes a top-level condition, always in parentheses.
func (nm *namer) condition(e Expr) string {
	s := nm.expr(e)
	if strings.HasPrefix(s, "(") {
		return s
	}
	return "(" + s + ")"
}

// key writes a sort or group key: columns bare, everything else in parentheses.
func (nm *namer) key(e Expr) string {
	s := nm.expr(e)
	if nm.isColumn(e) || strings.HasPrefix(s, "(") {
		return s
	}
	return "(" + s + ")"
}

func (nm *namer) isColumn(e Expr) bool {
	s, ok := e.(*Slot)
	if !ok {
		return false
	}
	src := nm.slots[s.Index]
	if src.expr != nil {
		return nm.isColumn(src.expr)
	}
	return src.agg == nil && src.set == nil
}

func (nm *namer) list(es []Expr) string {
	parts := make([]string, 0, len(es))
	for _, e := range es {
		parts = append(parts, nm.expr(e))
	}
	return strings.Join(parts, ", ")
}

// expr writes an expression.
func (nm *namer) expr(e Expr) string {
	switch e := e.(type) {
	case *Const:
		return nm.constant(e)
	case *Slot:
		return nm.slot(e)
	case *Param:
		if e.Index < len(nm.params) {
			return nm.params[e.Index]
		}
		return "$" + itoa(e.Index+1)
	case *Call:
		return nm.call(e)
	case *UserCall:
		return datum.QuoteIdent(e.Func.Name) + "(" + nm.list(e.Args) + ")"
	case *BoolOp:
		return nm.boolean(e)
	case *IsNull:
		return "(" + nm.expr(e.Arg) + " IS " + not(e.Not) + "NULL)"
	case *BoolTest:
		return "(" + nm.expr(e.Arg) + " IS " + not(e.Not) + truth(e.Want) + ")"
	case *Distinct:
		return "(" + nm.expr(e.Left) + " IS " + not(e.Not) + "DISTINCT FROM " + nm.expr(e.Right) + ")"
	case *Case:
		return nm.caseText(e)
	case *Coalesce:
		return "COALESCE(" + nm.list(e.Args) + ")"
	case *MinMax:
		if e.Least {
			return "LEAST(" + nm.list(e.Args) + ")"
		}
		return "GREATEST(" + nm.list(e.Args) + ")"
	case *NullIf:
		return "NULLIF(" + nm.expr(e.Value) + ", " + nm.expr(e.Right) + ")"
	case *CoerceIO:
		return nm.cast(e.Arg, e.Type())
	case *Relabel:
		return nm.cast(e.Arg, e.Type())
	case *CoerceMod:
		return nm.cast(e.Arg, e.Type())
	case *CoerceArray:
		return nm.cast(e.Arg, e.Type())
	case *Row:
		return "ROW(" + nm.list(e.Args) + ")"
	case *Field:
		return "(" + nm.expr(e.Arg) + ")." + fieldName(e)
	case *RowCompare:
		return "(ROW(" + nm.list(e.Left) + ") " + e.Op + " ROW(" + nm.list(e.Right) + "))"
	case *RoleTest:
		return nm.roleTest(e)
	case *Subquery:
		return nm.subquery(e)
	}
	return nm.arrayExpr(e)
}

// roleTest writes the question as a user would ask it.
func (nm *namer) roleTest(e *RoleTest) string {
	if e.Owner != "" {
		return "(current_role = " + datum.QuoteIdent(e.Owner) + ")"
	}
	return "(current_role IN (" + strings.Join(e.Roles, ", ") + "))"
}

func (nm *namer) arrayExpr(e Expr) string {
	switch e := e.(type) {
	case *ArrayExpr:
		return "ARRAY[" + nm.list(e.Args) + "]"
	case *AnyAll:
		word := "ANY"
		if e.All {
			word = "ALL"
		}
		return "(" + nm.expr(e.Left) + " " + e.Op + " " + word + " (" + nm.expr(e.Array) + "))"
	case *Subscript:
		if !e.Slice {
			parts := make([]string, len(e.Index))
			for i, x := range e.Index {
				parts[i] = "[" + nm.expr(x) + "]"
			}
			return "(" + nm.expr(e.Array) + ")" + strings.Join(parts, "")
		}
		var b strings.Builder
		b.WriteString("(" + nm.expr(e.Array) + ")")
		for i := range e.Lo {
			b.WriteString("[" + nm.optional(e.Lo[i]) + ":" + nm.optional(e.Hi[i]) + "]")
		}
		return b.String()
	}
	return "?"
}

func (nm *namer) optional(e Expr) string {
	if e == nil {
		return ""
	}
	return nm.expr(e)
}

func not(n bool) string {
	if n {
		return "NOT "
	}
	return ""
}

func truth(d datum.Datum) string {
	switch {
	case d.IsNull():
		return "UNKNOWN"
	case d.Bool():
		return "TRUE"
	}
	return "FALSE"
}

func fieldName(e *Field) string {
	if f := e.Arg.Type().Root().Fields; e.Index < len(f) {
		return datum.QuoteIdent(f[e.Index].Name)
	}
	return "f" + itoa(e.Index+1)
}

// constant follows get_const_expr: integers, decimals and booleans stand alone,
// everything else is a quoted literal with its type.
func (nm *namer) constant(c *Const) string {
	t := c.Type()
	if c.Value.IsNull() {
		return "NULL::" + datum.FormatType(t)
	}
	if t.Append == nil {
		return "?"
	}
	s := string(t.Append(nil, c.Value, nm.format))
	switch t.Desc {
	case datum.BoolType:
		if c.Value.Bool() {
			return "true"
		}
		return "false"
	case datum.Int4:
		if s[0] != '-' {
			return s
		}
	case datum.Numeric:
		if s[0] >= '0' && s[0] <= '9' && strings.ContainsAny(s, "eE.") {
			if t.Mod >= 0 {
				return s + "::" + datum.FormatType(t)
			}
			return s
		}
	case datum.Unknown:
		return quoteLiteral(s)
	}
	return quoteLiteral(s) + "::" + datum.FormatType(t)
}

// quoteLiteral writes a string constant; one with backslashes as E'...'.
func quoteLiteral(s string) string {
	quoted := strings.ReplaceAll(s, "'", "''")
	if strings.Contains(s, `\`) {
		return "E'" + strings.ReplaceAll(quoted, `\`, `\\`) + "'"
	}
	return "'" + quoted + "'"
}

func (nm *namer) slot(s *Slot) string {
	src, ok := nm.slots[s.Index]
	if !ok || nm.visited[s.Index] {
		return aliasOr(datum.QuoteIdent(s.Name), "?")
	}
	switch {
	case src.expr != nil:
		nm.visited[s.Index] = true
		defer delete(nm.visited, s.Index)
		return nm.expr(src.expr)
	case src.agg != nil:
		return nm.aggregate(src.agg)
	case src.set != nil:
		name := "set"
		if src.set.User != nil {
			name = src.set.User.Name
		}
		return name + "(" + nm.list(src.set.Args) + ")"
	}
	name := src.column
	if strings.HasPrefix(name, "column") && s.Name != "" {
		name = s.Name
	}
	if nm.qualify && src.relation != "" {
		return relationName(src.relation) + "." + datum.QuoteIdent(name)
	}
	return datum.QuoteIdent(name)
}

func relationName(s string) string {
	if s == "*VALUES*" {
		return `"*VALUES*"`
	}
	return datum.QuoteIdent(s)
}

func (nm *namer) boolean(e *BoolOp) string {
	if e.Op == Not {
		return "(NOT " + nm.expr(e.Args[0]) + ")"
	}
	word := " AND "
	if e.Op == Or {
		word = " OR "
	}
	parts := make([]string, len(e.Args))
	for i, a := range e.Args {
		parts[i] = nm.expr(a)
	}
	return "(" + strings.Join(parts, word) + ")"
}

// operatorOf maps functions to the operators that they implement.
var operatorOf = func() map[datum.OID]*builtin.Operator {
	m := map[datum.OID]*builtin.Operator{}
	for _, op := range builtin.Operators() {
		if m[op.Func.OID] == nil {
			m[op.Func.OID] = op
		}
	}
	return m
}()

// castFuncs are the functions that implement casts.
var castFuncs = func() map[datum.OID]bool {
	m := map[datum.OID]bool{}
	for _, c := range builtin.Casts() {
		if c.Method == builtin.ByFunc && c.Source != c.Target {
			m[c.Func.OID] = true
		}
	}
	return m
}()

func (nm *namer) call(e *Call) string {
	if op := operatorOf[e.Func.OID]; op != nil {
		switch {
		case len(e.Args) == 2:
			return "(" + nm.expr(e.Args[0]) + " " + op.Name + " " + nm.expr(e.Args[1]) + ")"
		case len(e.Args) == 1:
			return "(" + op.Name + " " + nm.expr(e.Args[0]) + ")"
		}
	}
	if castFuncs[e.Func.OID] && len(e.Args) > 0 && e.Func.Name == e.Func.Ret.Name {
		return nm.cast(e.Args[0], e.Type())
	}
	return datum.QuoteIdent(e.Func.Name) + "(" + nm.list(e.Args) + ")"
}

func (nm *namer) cast(arg Expr, t datum.Type) string {
	return "(" + nm.expr(arg) + ")::" + datum.FormatType(t)
}

func (nm *namer) caseText(e *Case) string {
	var b strings.Builder
	if nm.params != nil { // as pg_get_indexdef and the like write it
		b.WriteString("\nCASE")
		for _, w := range e.Whens {
			b.WriteString("\n    WHEN " + nm.expr(w.Cond) + " THEN " + nm.expr(w.Result))
		}
		if e.Else != nil {
			b.WriteString("\n    ELSE " + nm.expr(e.Else))
		}
		b.WriteString("\nEND")
		return b.String()
	}
	b.WriteString("CASE")
	for _, w := range e.Whens {
		b.WriteString(" WHEN " + nm.expr(w.Cond) + " THEN " + nm.expr(w.Result))
	}
	if e.Else != nil {
		b.WriteString(" ELSE " + nm.expr(e.Else))
	}
	b.WriteString(" END")
	return b.String()
}

// subquery names a subquery, whose plan stands below the node.
func (nm *namer) subquery(e *Subquery) string {
	name := subqueryName(e)
	switch e.Kind {
	case ExistsSub:
		return "EXISTS(" + name + ")"
	case AnySub:
		if e.Hash != nil {
			return "(" + nm.expr(e.Hash) + " = ANY (hashed " + name + "))"
		}
		return "(ANY " + name + ")"
	case AllSub:
		return "(ALL " + name + ")"
	case ArraySub:
		return "ARRAY(" + name + ")"
	}
	return "(" + name + ")"
}

// subqueryName: what runs once is an InitPlan, what runs for every row a SubPlan.
func subqueryName(e *Subquery) string {
	if e.Correlated {
		return "SubPlan " + itoa(e.ID+1)
	}
	return "InitPlan " + itoa(e.ID+1)
}

func (nm *namer) aggregate(a *Agg) string {
	var b strings.Builder
	b.WriteString(a.Func.Name + "(")
	if a.Distinct {
		b.WriteString("DISTINCT ")
	}
	if len(a.Args) == 0 && a.Func.Name == "count" {
		b.WriteString("*")
	}
	b.WriteString(nm.list(a.Args))
	if len(a.OrderBy) > 0 {
		b.WriteString(" ORDER BY " + strings.Join(nm.sortKeys(a.OrderBy), ", "))
	}
	b.WriteString(")")
	if a.Filter != nil {
		b.WriteString(" FILTER (WHERE " + nm.expr(a.Filter) + ")")
	}
	return b.String()
}

func (nm *namer) sortKeys(keys []SortKey) []string {
	out := make([]string, len(keys))
	for i, k := range keys {
		s := nm.key(k.Expr)
		if k.Desc {
			s += " DESC"
		}
		switch {
		case k.Desc && !k.NullsFirst:
			s += " NULLS LAST"
		case !k.Desc && k.NullsFirst:
			s += " NULLS FIRST"
		}
		out[i] = s
	}
	return out
}
