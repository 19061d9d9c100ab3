package plan

import (
	"slices"
	"strings"

	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
)

// ExplainNode is one line of EXPLAIN with what stands below it. Names are those
// of PostgreSQL's explain.c, except "Reads" and "Writes", which say what enters
// the footprint of a transaction that runs the statement.
type ExplainNode struct {
	// Kind is the node type (Index Scan, Hash Join, ...), Title the line of the
	// text form.
	Kind, Title string
	// Role says what the node is to the one above: "", "CTE x", "SubPlan 1".
	Role string
	// Properties come in the order in which they are shown.
	Properties []ExplainProperty
	Children   []*ExplainNode
	// Node is the plan node itself, to find its counters; nil for a node that
	// exists in the explanation only (Hash).
	Node Node
}

// ExplainProperty is a property of a node: one value, or a list.
type ExplainProperty struct {
	Name string
	// Values are written "a, b" in text and as an array in JSON if List is set.
	Values []string
	List   bool
	// Hidden properties are not shown in the text form, whose title has them.
	Hidden bool
}

// Explain describes a plan. Format is how constants are written.
func Explain(pl *Plan, format *datum.Format) *ExplainNode {
	x := &explainer{nm: newNamer(pl, format), ctes: map[int]string{}}
	root := x.node(pl.Root)
	return root
}

type explainer struct {
	nm   *namer
	ctes map[int]string // names of WITH queries by ID
}

func (x *ExplainNode) add(name string, values ...string) {
	x.Properties = append(x.Properties, ExplainProperty{Name: name, Values: values})
}

func (x *ExplainNode) addList(name string, values []string) {
	if len(values) > 0 {
		x.Properties = append(x.Properties, ExplainProperty{Name: name, Values: values, List: true})
	}
}

func (x *ExplainNode) hide(name, value string) {
	x.Properties = append(x.Properties, ExplainProperty{Name: name, Values: []string{value}, Hidden: true})
}

// node explains n. Projections do not show, and filters show at the node whose
// rows they see, as in PostgreSQL.
func (x *explainer) node(n Node) *ExplainNode {
	switch n := n.(type) {
	case *Project:
		out := x.node(n.Child)
		x.subqueries(out, n)
		return out
	case *Filter:
		out := x.node(n.Child)
		out.filterBy(x.nm.condition(n.Cond))
		out.Node = n // its rows are those that pass
		x.subqueries(out, n)
		return out
	case *With:
		return x.with(n)
	}
	out := &ExplainNode{Node: n}
	x.describe(out, n)
	x.subqueries(out, n)
	return out
}

// filterBy adds a filter to those that the node has.
func (x *ExplainNode) filterBy(cond string) {
	for i := range x.Properties {
		if p := &x.Properties[i]; p.Name == "Filter" {
			p.Values = []string{"(" + p.Values[0] + " AND " + cond + ")"}
			return
		}
	}
	x.add("Filter", cond)
}

// with explains the body, below which the WITH queries come first.
func (x *explainer) with(n *With) *ExplainNode {
	var above []*ExplainNode
	for i := range n.CTEs {
		x.ctes[n.CTEs[i].ID] = n.CTEs[i].Name
	}
	for i := range n.CTEs {
		cte := &n.CTEs[i]
		node := x.node(cte.Node)
		if cte.Step != nil {
			node = &ExplainNode{Kind: "Recursive Union", Title: "Recursive Union", Children: []*ExplainNode{node, x.node(cte.Step)}}
		}
		node.Role = "CTE " + cte.Name
		above = append(above, node)
	}
	body := x.node(n.Body)
	body.Children = append(above, body.Children...)
	return body
}

// subqueries puts the plans of subqueries in expressions of n below out.
func (x *explainer) subqueries(out *ExplainNode, n Node) {
	nodeExprs(n, func(e Expr) {
		walk1(e, func(e Expr) {
			if s, ok := e.(*Subquery); ok {
				sub := x.node(s.Plan)
				sub.Role = subqueryName(s)
				out.Children = append(out.Children, sub)
			}
		})
	})
}

func (x *explainer) children(out *ExplainNode, list ...Node) {
	for _, n := range list {
		out.Children = append(out.Children, x.node(n))
	}
}

func (out *ExplainNode) name(kind string) { out.Kind, out.Title = kind, kind }

// describe fills in what n is.
func (x *explainer) describe(out *ExplainNode, n Node) {
	switch n := n.(type) {
	case *Result:
		out.name("Result")
		x.filter(out, "One-Time Filter", n.Cond)
	case *Scan:
		x.scan(out, n)
	case *VirtualScan:
		out.name("Seq Scan")
		out.on("Relation Name", n.Relation.Name, n.Alias)
		x.filter(out, "Filter", n.Filter)
	case *FuncScan:
		out.name("Function Scan")
		out.on("Function Name", functionName(n), n.Alias)
		x.filter(out, "Filter", n.Filter)
	case *CTEScan:
		kind := "CTE Scan"
		if n.Working {
			kind = "WorkTable Scan"
		}
		out.name(kind)
		out.on("CTE Name", aliasOr(x.ctes[n.ID], n.Alias), n.Alias)
		x.filter(out, "Filter", n.Filter)
	case *Values:
		out.name("Values Scan")
		out.Title = `Values Scan on "*VALUES*"`
		out.hide("Alias", "*VALUES*")
	case *ProjectSet:
		out.name("ProjectSet")
		x.children(out, n.Child)
	case *NestLoop:
		out.name("Nested Loop")
		out.join(n.Kind)
		x.filter(out, "Join Filter", n.Cond)
		x.children(out, n.Outer, n.Inner)
	case *HashJoin:
		x.hashJoin(out, n)
	case *Modify:
		x.modify(out, n)
	default:
		x.rows(out, n)
	}
}

// rows explains the nodes that reshape the rows of others.
func (x *explainer) rows(out *ExplainNode, n Node) {
	switch n := n.(type) {
	case *Aggregate:
		x.aggregateNode(out, n)
	case *Sort:
		out.name("Sort")
		out.addList("Sort Key", x.nm.sortKeys(n.Keys))
		x.children(out, n.Child)
	case *Limit:
		out.name("Limit")
		x.children(out, n.Child)
	case *Unique:
		out.name("Unique")
		keys := make([]string, len(n.Keys))
		for i, k := range n.Keys {
			keys[i] = x.nm.key(k)
		}
		out.addList("Unique Key", keys)
		x.children(out, n.Child)
	case *Append:
		out.name("Append")
		x.children(out, n.Children...)
	case *SetOp:
		out.name("SetOp")
		command := "Intersect"
		if n.Kind == Except {
			command = "Except"
		}
		if n.All {
			command += " All"
		}
		out.Title = "HashSetOp " + command
		out.hide("Command", command)
		x.children(out, n.Left, n.Right)
	default:
		out.name("Node")
		x.children(out, inputs(n)...)
	}
}

func (x *explainer) filter(out *ExplainNode, name string, cond Expr) {
	if cond != nil {
		out.add(name, x.nm.condition(cond))
	}
}

// on adds "on relation alias" to the title.
func (out *ExplainNode) on(property, relation, alias string) {
	out.Title += " on " + datum.QuoteIdent(relation)
	out.hide(property, relation)
	if alias = aliasOr(alias, relation); alias != relation {
		out.Title += " " + datum.QuoteIdent(alias)
	}
	out.hide("Alias", alias)
}

var joinWords = map[JoinKind]string{InnerJoin: "Inner", LeftJoin: "Left", RightJoin: "Right", FullJoin: "Full", SemiJoin: "Semi", AntiJoin: "Anti"}

// join puts the kind of a join into the title: Nested Loop Left Join.
func (out *ExplainNode) join(kind JoinKind) {
	out.hide("Join Type", joinWords[kind])
	if kind == InnerJoin {
		return
	}
	out.Title = strings.TrimSuffix(out.Title, " Join") + " " + joinWords[kind] + " Join"
}

func (x *explainer) hashJoin(out *ExplainNode, n *HashJoin) {
	out.name("Hash Join")
	out.join(n.Kind)
	conds := make([]string, len(n.OuterKeys))
	for i := range n.OuterKeys {
		conds[i] = "(" + x.nm.expr(n.OuterKeys[i]) + " = " + x.nm.expr(n.InnerKeys[i]) + ")"
	}
	cond := strings.Join(conds, " AND ")
	if len(conds) > 1 {
		cond = "(" + cond + ")"
	}
	out.add("Hash Cond", cond)
	x.filter(out, "Join Filter", n.Cond)
	x.children(out, n.Outer)
	out.Children = append(out.Children, &ExplainNode{Kind: "Hash", Title: "Hash", Children: []*ExplainNode{x.node(n.Inner)}})
}

func (x *explainer) aggregateNode(out *ExplainNode, n *Aggregate) {
	out.name("Aggregate")
	strategy := "Plain"
	switch {
	case len(n.GroupBy) > 0 && n.Sorted:
		out.Title, strategy = "GroupAggregate", "Sorted"
	case len(n.GroupBy) > 0:
		out.Title, strategy = "HashAggregate", "Hashed"
	}
	out.hide("Strategy", strategy)
	keys := make([]string, len(n.GroupBy))
	for i, k := range n.GroupBy {
		keys[i] = x.nm.key(k)
	}
	out.addList("Group Key", keys)
	x.children(out, n.Child)
}

// scan explains the reading of a stored table. The primary index holds the rows
// themselves, so that reading all of it is PostgreSQL's sequential scan.
func (x *explainer) scan(out *ExplainNode, n *Scan) {
	whole := len(n.Ranges) == 0
	relation := n.Table.Name
	if n.Provenance {
		relation = catalog.Provenance + "." + relation
	}
	if whole && n.Index.Primary && !n.Reverse {
		out.name("Seq Scan")
	} else {
		out.name("Index Scan")
		if n.Reverse {
			out.Title += " Backward"
		}
		out.Title += " using " + datum.QuoteIdent(n.Index.Name)
		direction := "Forward"
		if n.Reverse {
			direction = "Backward"
		}
		out.hide("Scan Direction", direction)
		out.hide("Index Name", n.Index.Name)
	}
	out.Title += " on "
	if n.Provenance {
		out.Title += catalog.Provenance + "."
	}
	out.Title += datum.QuoteIdent(n.Table.Name)
	out.hide("Relation Name", relation)
	alias := aliasOr(n.Alias, n.Table.Name)
	if alias != n.Table.Name {
		out.Title += " " + datum.QuoteIdent(alias)
	}
	out.hide("Alias", alias)
	if !whole {
		conds := make([]string, len(n.Ranges))
		for i := range n.Ranges {
			conds[i] = x.rangeCond(n, &n.Ranges[i])
		}
		cond := strings.Join(conds, " OR ")
		if len(conds) > 1 {
			cond = "(" + cond + ")"
		}
		out.add("Index Cond", cond)
	}
	x.blocks(out, n)
	x.filter(out, "Policy", n.Policy)
	x.filter(out, "Filter", n.Filter)
	out.add("Reads", x.reads(n))
}

func (x *explainer) blocks(out *ExplainNode, n *Scan) {
	if n.FromBlock != nil {
		out.add("From Block", x.nm.expr(n.FromBlock))
	}
	if n.ToBlock != nil {
		out.add("To Block", x.nm.expr(n.ToBlock))
	}
}

// column names key column k of the scanned index as expressions name it.
func (x *explainer) column(n *Scan, k int) string {
	key := &n.Index.Keys[k]
	if key.Column < 0 {
		return n.Table.KeyText(key, false)
	}
	name := datum.QuoteIdent(n.Table.Columns[key.Column].Name)
	if x.nm.qualify {
		return datum.QuoteIdent(aliasOr(n.Alias, n.Table.Name)) + "." + name
	}
	return name
}

// rangeCond writes the condition that a range answers.
func (x *explainer) rangeCond(n *Scan, r *Range) string {
	var parts []string
	k := 0
	for _, eq := range r.Eq {
		if eq.Value == nil {
			parts = append(parts, "("+x.column(n, k)+" IS NULL)")
		} else {
			parts = append(parts, "("+x.column(n, k)+" = "+x.nm.expr(eq.Value)+")")
		}
		k++
	}
	if r.In != nil {
		parts = append(parts, "("+x.column(n, k)+" = ANY ("+x.nm.expr(r.In)+"))")
	}
	if r.Lo != nil {
		parts = append(parts, "("+x.column(n, k)+" "+comparisonOf(">", r.Lo)+" "+x.nm.expr(r.Lo.Value)+")")
	}
	if r.Hi != nil {
		parts = append(parts, "("+x.column(n, k)+" "+comparisonOf("<", r.Hi)+" "+x.nm.expr(r.Hi.Value)+")")
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return "(" + strings.Join(parts, " AND ") + ")"
}

func comparisonOf(op string, b *Bound) string {
	if b.Inclusive {
		return op + "="
	}
	return op
}

// reads says which part of which index a scan puts into the footprint.
func (x *explainer) reads(n *Scan) string {
	index := datum.QuoteIdent(n.Index.Name)
	if n.Index.Hidden {
		index = datum.QuoteIdent(n.Table.Name)
	}
	what := index + ", the whole index"
	if len(n.Ranges) > 0 {
		ranges := make([]string, len(n.Ranges))
		for i := range n.Ranges {
			ranges[i] = index + " [" + x.rangeText(n, &n.Ranges[i]) + "]"
		}
		what = strings.Join(ranges, ", ")
	}
	switch {
	case n.Provenance:
		what += ", all versions"
	case !n.Index.Primary:
		what += ", and the rows found"
	}
	return what
}

// rangeText is rangeCond without types and parentheses.
func (x *explainer) rangeText(n *Scan, r *Range) string {
	var parts []string
	col := func(k int) string {
		return n.Table.KeyText(&n.Index.Keys[k], false)
	}
	k := 0
	for _, eq := range r.Eq {
		if eq.Value == nil {
			parts = append(parts, col(k)+" is null")
		} else {
			parts = append(parts, col(k)+" = "+x.bare(eq.Value))
		}
		k++
	}
	if r.In != nil {
		parts = append(parts, col(k)+" in "+x.bare(r.In))
	}
	if r.Lo != nil {
		parts = append(parts, col(k)+" "+comparisonOf(">", r.Lo)+" "+x.bare(r.Lo.Value))
	}
	if r.Hi != nil {
		parts = append(parts, col(k)+" "+comparisonOf("<", r.Hi)+" "+x.bare(r.Hi.Value))
	}
	return strings.Join(parts, ", ")
}

// bare writes a value; a constant without its type.
func (x *explainer) bare(e Expr) string {
	c, ok := e.(*Const)
	if !ok || c.Value.IsNull() || c.Type().Append == nil {
		return x.nm.expr(e)
	}
	s := string(c.Type().Append(nil, c.Value, x.nm.format))
	switch c.Type().Category {
	case 'N', 'B':
		return s
	}
	return quoteLiteral(s)
}

var modifyWords = map[ModifyKind]string{Insert: "Insert", Update: "Update", Delete: "Delete", Merge: "Merge"}

// modify explains INSERT, UPDATE and DELETE. Which rows a transaction writes
// follows from what it reads; which keys it verifies is said here.
func (x *explainer) modify(out *ExplainNode, n *Modify) {
	out.name("ModifyTable")
	word := modifyWords[n.Kind]
	out.hide("Operation", word)
	out.Title = word + " on " + datum.QuoteIdent(n.Table.Name)
	out.hide("Relation Name", n.Table.Name)
	if c := n.Conflict; c != nil {
		resolution := "NOTHING"
		if c.Set != nil {
			resolution = "UPDATE"
		}
		out.add("Conflict Resolution", resolution)
		if c.Index != nil {
			out.addList("Conflict Arbiter Indexes", []string{c.Index.Name})
		}
		x.filter(out, "Conflict Filter", c.Where)
	}
	out.addList("Reads", x.verified(n))
	x.children(out, n.Child)
}

// verified lists the keys whose existence the constraints make a change read.
func (x *explainer) verified(n *Modify) []string {
	var out []string
	for i := range n.Table.Indexes {
		if idx := &n.Table.Indexes[i]; idx.Unique && !idx.Hidden && touches(n, idx) {
			out = append(out, datum.QuoteIdent(idx.Name)+" [the new key]")
		}
	}
	for _, fk := range n.ForeignKeys {
		if n.Kind != Delete && changesAny(n, fk.FK.Columns) {
			out = append(out, datum.QuoteIdent(fk.RefIndex.Name)+" [the key referred to]")
		}
	}
	for _, fk := range n.Referenced {
		if n.Kind == Insert && n.Conflict == nil || n.Kind == Update && !changesAny(n, fk.FK.RefColumns) {
			continue
		}
		if fk.ByIndex != nil {
			out = append(out, datum.QuoteIdent(fk.ByIndex.Name)+" [the old key]")
		} else {
			out = append(out, datum.QuoteIdent(fk.From.Primary().Name)+", the whole index")
		}
	}
	return out
}

// touches tells that a change can make a new key of a unique index.
func touches(n *Modify, idx *catalog.Index) bool {
	if idx.Computed() {
		return n.Kind != Delete // it may depend on any column
	}
	if n.Kind == Merge {
		changed := n.changedBy()
		return n.does(Insert) || slices.ContainsFunc(idx.Keys, func(k catalog.IndexKey) bool { return changed[k.Column] })
	}
	if n.Kind != Update {
		return n.Kind == Insert
	}
	for _, k := range idx.Keys {
		if n.Changed[k.Column] {
			return true
		}
	}
	return false
}

func changesAny(n *Modify, columns []int) bool {
	if n.Kind != Update {
		return true // of MERGE, as far as is known here
	}
	for _, c := range columns {
		if n.Changed[c] {
			return true
		}
	}
	return false
}

// ExplainCall describes the call of a contract. What it does is known to its
// language alone: nothing stands below.
func ExplainCall(pl *Plan, cc *ContractCall, format *datum.Format) *ExplainNode {
	nm := newNamer(pl, format)
	call := datum.QuoteIdent(cc.Func.Name) + "(" + nm.list(cc.Args) + ")"
	out := &ExplainNode{Kind: "Contract Call", Title: "Contract Call: " + call}
	out.hide("Call", call)
	return out
}
