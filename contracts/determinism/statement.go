package determinism

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tallystick/tallystick/contracts/plpgsql"
	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/plan"
)

// examiner applies the rules to the plan of one piece of SQL.
type examiner struct {
	*analysis
	piece *plpgsql.Piece
	sys   map[int]string // slots that hold system columns, with their names
	found []Finding
	calls []*catalog.Func // user functions, in the order of the plan
}

// examine returns what is wrong with a piece and the functions that it calls.
// Offsets of findings count from the start of the text that Places refer to.
func examine(piece *plpgsql.Piece) ([]Finding, []*catalog.Func) {
	x := &examiner{analysis: newAnalysis(), piece: piece, sys: map[int]string{}}
	switch {
	case piece.Plan != nil:
		x.root(piece.Plan)
	case piece.Expr != nil:
		x.exprNode(piece.Expr.Expr, func(n plan.Node) { x.systemSlots(n) })
		x.expr(piece.Expr.Expr)
	}
	return x.found, x.calls
}

func (x *examiner) root(p *plan.Plan) {
	x.systemSlots(p.Root)
	first := x.piece.Use == plpgsql.FirstRow && p.Command == "SELECT" && p.Columns != nil
	ctx := context{}
	if first {
		r := x.of(p.Root)
		switch {
		case !r.total(p.Order):
			x.add(0, FirstRow, "SELECT INTO takes the first of possibly several rows of an order that is not total",
				"End ORDER BY with a unique key of the result"+x.keyHint(p.Root)+", select by a unique key, or write INTO STRICT.")
		case len(p.Order) > 0:
			ctx.bounded = true
		}
	}
	x.node(p.Root, ctx)
}

func (x *examiner) add(at plan.Place, rule Rule, message, hint string) {
	f := Finding{Severity: Error, Rule: rule, Message: message, Hint: hint}
	if at > 0 {
		f.Offset = int(at) - 1
	} else {
		f.Offset = unplaced
	}
	x.found = append(x.found, f)
}

// unplaced is the offset of what the text does not show: the beginning of the
// statement.
const unplaced = -1

// context is what the nodes above want to be known.
type context struct {
	modify  *plan.Modify
	bounded bool        // only the beginning of the rows is read
	joined  []plan.Expr // conditions of the join above
}

// node examines a node and what is below it.
func (x *examiner) node(n plan.Node, ctx context) {
	below := context{}
	switch n := n.(type) {
	case *plan.Scan:
		x.scan(n, ctx)
	case *plan.Limit:
		x.limit(n, &below)
	case *plan.Project, *plan.With:
		below.bounded = ctx.bounded
	case *plan.Unique:
		x.distinctOn(n)
	case *plan.Aggregate:
		x.aggregates(n)
	case *plan.Window:
		x.windows(n)
	case *plan.Modify:
		below.modify = n
		x.references(n)
		if n.Triggers != nil {
			for i := range n.Triggers.List {
				x.call(n.Triggers.List[i].Func)
			}
		}
	case *plan.NestLoop:
		if r, ok := n.Outer.(*plan.Result); ok && r != nil {
			below = ctx
		}
		below.joined = append(below.joined, n.Cond)
	case *plan.HashJoin:
		below.joined = append(slices.Clone(n.OuterKeys), n.InnerKeys...)
	case *plan.FuncScan:
		x.call(n.User)
		for _, part := range n.Parts {
			x.call(part.User)
		}
	case *plan.ProjectSet:
		for _, s := range n.Sets {
			x.call(s.User)
		}
	}
	x.conditions(n)
	plan.NodeExprs(n, x.expr)
	for _, c := range plan.Inputs(n) {
		x.node(c, below)
	}
}

// expr examines the calls and subqueries of an expression.
func (x *examiner) expr(e plan.Expr) {
	plan.WalkOperands(e, func(e plan.Expr) {
		switch e := e.(type) {
		case *plan.UserCall:
			x.call(e.Func)
		case *plan.Subquery:
			if e.Kind == plan.ArraySub {
				x.arrayOf(e)
			}
			x.node(e.Plan, context{})
		}
	})
}

// exprNode calls f for the plans of the subqueries of an expression.
func (x *examiner) exprNode(e plan.Expr, f func(plan.Node)) {
	plan.WalkOperands(e, func(e plan.Expr) {
		if s, ok := e.(*plan.Subquery); ok {
			f(s.Plan)
		}
	})
}

func (x *examiner) call(f *catalog.Func) {
	if f == nil {
		return
	}
	if f.Schema != catalog.Blockchain {
		x.add(0, PrivateFunction, fmt.Sprintf("a contract cannot call %s.%s: functions outside of schema blockchain differ between nodes", f.Schema, f.Name),
			"Deploy the function in schema blockchain.")
		return
	}
	x.calls = append(x.calls, f)
}

// limit: LIMIT, OFFSET and FETCH need a total order.
func (x *examiner) limit(n *plan.Limit, below *context) {
	if n.Extreme {
		below.bounded = true
		return
	}
	total := x.of(n.Child).total(n.Order)
	below.bounded = total && n.Count != nil && len(n.Order) > 0
	if total {
		return
	}
	what := "LIMIT"
	if n.Count == nil {
		what = "OFFSET"
	}
	why := what + " without ORDER BY"
	if len(n.Order) > 0 {
		why = what + " with an ORDER BY that is not total: the indexes that exist decide how rows that are equal in it come"
	}
	x.add(n.At, LimitOrder, why, "End ORDER BY with a unique key of the result"+x.keyHint(n.Child)+".")
}

func (x *examiner) distinctOn(n *plan.Unique) {
	if !n.On {
		return
	}
	var order []plan.SortKey
	if s, ok := n.Child.(*plan.Sort); ok {
		order = s.Keys
	}
	if !x.of(n.Child).total(order) {
		x.add(n.At, DistinctOn, "DISTINCT ON keeps the first row of an order that is not total",
			"End ORDER BY with a unique key of the result"+x.keyHint(n.Child)+".")
	}
}

// arrayOf: ARRAY(SELECT ...) keeps the order of its rows.
func (x *examiner) arrayOf(s *plan.Subquery) {
	r := x.of(s.Plan)
	if r.one || x.ordered(s.Plan) {
		return
	}
	x.add(0, ArrayOrder, "the result of ARRAY(SELECT ...) depends on the order of the rows",
		"Write array_agg(... ORDER BY ...) with an order that ends in a unique key"+x.keyHint(s.Plan)+".")
}

// ordered tells that the rows of a node arrive in a total order that the text
// demands.
func (x *examiner) ordered(n plan.Node) bool {
	switch n := n.(type) {
	case *plan.Sort:
		return x.of(n.Child).total(n.Keys)
	case *plan.Limit:
		return x.of(n.Child).total(n.Order)
	case *plan.Project:
		return x.ordered(n.Child)
	case *plan.Filter:
		return x.ordered(n.Child)
	}
	return x.of(n).one
}

// orderDependent names the aggregates whose result depends on the order of
// their input whatever its type.
var orderDependent = map[string]bool{
	"array_agg": true, "string_agg": true, "json_agg": true, "jsonb_agg": true,
	"json_object_agg": true, "jsonb_object_agg": true, "xmlagg": true,
}

// orderFree names those of floating point values whose result does not.
var orderFree = map[string]bool{"count": true, "min": true, "max": true, "regr_count": true}

func (x *examiner) aggregates(n *plan.Aggregate) {
	in := x.of(n.Child)
	for i := range n.Aggs {
		g := &n.Aggs[i]
		float := rounds(g.Func.Name, g.Args)
		if !orderDependent[g.Func.Name] && !float || x.ordered(n.Child) {
			continue
		}
		set := map[int]bool{}
		var keys []plan.SortKey
		keys = append(keys, g.OrderBy...)
		if len(n.Sets) == 0 { // a group of another set may have several values of a key
			for _, e := range n.GroupBy {
				keys = append(keys, plan.SortKey{Expr: e})
			}
		}
		for _, k := range keys {
			if s, ok := bareSlot(k.Expr); ok {
				set[s.Index] = true
			}
		}
		closed := in.closure(set)
		// Rows that are equal in the order are equal in what is aggregated.
		same := !slices.ContainsFunc(g.Args, func(e plan.Expr) bool { return !in.determined(e, closed) })
		if in.unique(set) || same {
			continue
		}
		why := fmt.Sprintf("the result of %s depends on the order of the rows", g.Func.Name)
		hint := fmt.Sprintf("Write %s(... ORDER BY ...) with an order that ends in a unique key%s.", g.Func.Name, x.keyHint(n.Child))
		if float {
			why = fmt.Sprintf("the rounding of %s over floating point values depends on the order of the rows", g.Func.Name)
			hint = fmt.Sprintf("Use numeric, or write %s(... ORDER BY ...) with an order that ends in a unique key%s.", g.Func.Name, x.keyHint(n.Child))
		}
		x.add(g.At, AggregateOrder, why, hint)
	}
}

// peersAlike names the window functions that give rows that are equal in the
// order of their window the same result.
var peersAlike = map[string]bool{"rank": true, "dense_rank": true, "percent_rank": true, "cume_dist": true}

// windows: a window function that tells apart rows which are equal in the order
// of its window needs one in which none are.
func (x *examiner) windows(n *plan.Window) {
	order := slices.Clone(n.Order)
	for _, e := range n.Partition {
		order = append(order, plan.SortKey{Expr: e})
	}
	if x.of(n.Child).total(order) {
		return
	}
	for i := range n.Funcs {
		w := &n.Funcs[i]
		if peersAlike[w.Func.Name] || w.Func.Kind == 'a' && wholePeers(&n.Frame) && !orderDependent[w.Func.Name] && !rounds(w.Func.Name, w.Args) {
			continue
		}
		x.add(w.At, WindowOrder, fmt.Sprintf("the result of %s depends on the order of rows that are equal in its window", w.Func.Name),
			"End ORDER BY of the window with a unique key of the result"+x.keyHint(n.Child)+".")
	}
}

// wholePeers tells that a frame holds rows that are equal in the order all or
// not at all.
func wholePeers(f *plan.Frame) bool {
	if f.Exclude == plan.ExcludeCurrentRow || f.Exclude == plan.ExcludeTies {
		return false
	}
	return f.Mode != plan.RowsFrame || f.Start.Kind == plan.UnboundedPreceding && f.End.Kind == plan.UnboundedFollowing
}

// rounds tells that an aggregate adds up floating point values.
func rounds(name string, args []plan.Expr) bool {
	return !orderFree[name] && slices.ContainsFunc(args, func(e plan.Expr) bool {
		d := e.Type().Desc
		return d == datum.Float8 || d == datum.Float4
	})
}

// keyHint names the columns that would make an order of the rows total.
func (x *examiner) keyHint(n plan.Node) string {
	var names []string
	var visit func(n plan.Node)
	visit = func(n plan.Node) {
		switch n := n.(type) {
		case *plan.Aggregate:
			names = append(names, "the columns of GROUP BY")
			return
		case *plan.CTEScan:
			if c := x.ctes[n.ID]; c != nil && c.Step == nil {
				visit(c.Node)
			}
		case *plan.Scan:
			for _, k := range n.Table.Primary().Keys {
				names = append(names, n.Table.Name+"."+n.Table.Columns[k.Column].Name)
			}
			return
		}
		for _, c := range plan.Inputs(n) {
			visit(c)
		}
	}
	visit(n)
	if len(names) == 0 {
		return ""
	}
	return ": " + strings.Join(names, ", ")
}
