package determinism

import (
	"slices"

	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/plan"
)

// rows is what is known of the rows of a plan node, whatever the tables hold.
type rows struct {
	// one tells that there is at most one row.
	one bool
	// keys are sets of slots in which any two rows differ.
	keys [][]int
	// equal gives for a slot expressions whose value it has in every row.
	equal map[int][]plan.Expr
	// filled are the slots that the node fills. Others hold values of an outer
	// query: one for all rows.
	filled map[int]bool
}

// maxKeys bounds how many keys are kept: joins multiply them.
const maxKeys = 16

// analysis derives what is known of the rows of the nodes of one statement.
type analysis struct {
	// ctes are the WITH queries of the statement by number
	ctes map[int]*plan.CTE
	memo map[plan.Node]*rows
}

func newAnalysis() *analysis {
	return &analysis{ctes: map[int]*plan.CTE{}, memo: map[plan.Node]*rows{}}
}

// of returns what is known of the rows of a node.
func (a *analysis) of(n plan.Node) *rows {
	if r := a.memo[n]; r != nil {
		return r
	}
	r := &rows{equal: map[int][]plan.Expr{}, filled: map[int]bool{}}
	a.memo[n] = r
	for _, s := range plan.Fills(n) {
		r.filled[s] = true
	}
	a.derive(n, r)
	if r.one {
		r.keys = [][]int{{}}
	}
	if len(r.keys) > maxKeys {
		r.keys = r.keys[:maxKeys]
	}
	return r
}

func (a *analysis) derive(n plan.Node, r *rows) {
	switch n := n.(type) {
	case *plan.Result:
		r.one = true
	case *plan.Scan:
		r.scan(n)
	case *plan.FuncScan:
		switch {
		case n.Value != nil || n.User != nil && !n.User.RetSet:
			r.one = true
		case n.Ordinality >= 0:
			r.keys = append(r.keys, []int{n.Ordinality})
		case n.Builtin != nil && n.Builtin.Name == "generate_series":
			r.keys = append(r.keys, []int{n.Slots[0]})
		}
		r.conditions(n.Filter)
	case *plan.Values:
		r.one = len(n.Rows) == 1
	case *plan.Filter:
		r.take(a.of(n.Child))
		r.conditions(n.Cond)
	case *plan.NestLoop:
		a.nestLoop(n, r)
	case *plan.HashJoin:
		a.hashJoin(n, r)
	case *plan.Project:
		r.take(a.of(n.Child))
		for i, e := range n.Exprs {
			r.equate(n.Out[i], e)
		}
	case *plan.Aggregate:
		a.aggregate(n, r)
	case *plan.Sort:
		r.take(a.of(n.Child))
	case *plan.Window:
		a.window(n, r)
	case *plan.Limit:
		r.take(a.of(n.Child))
		if c, ok := n.Count.(*plan.Const); ok && !c.Value.IsNull() && c.Value.Int() <= 1 && n.Ties == nil {
			r.one = true
		}
	case *plan.Unique:
		r.take(a.of(n.Child))
		r.addKey(n.Keys)
	case *plan.SetOp:
		if !n.All {
			r.keys = append(r.keys, n.Out)
		}
	case *plan.With:
		r.take(a.of(n.Body))
	case *plan.CTEScan:
		a.cteScan(n, r)
	case *plan.Modify:
		r.one = a.of(n.Child).one
	}
}

// take copies what is known of an input whose rows are passed on, or some of
// them.
func (r *rows) take(in *rows) {
	r.one = r.one || in.one
	r.keys = append(r.keys, in.keys...)
	r.join(in)
}

// join takes over the equalities of an input.
func (r *rows) join(in *rows) {
	for s, list := range in.equal {
		r.equal[s] = append(r.equal[s], list...) // any order: a set by slot
	}
}

func (r *rows) equate(slot int, e plan.Expr) {
	r.equal[slot] = append(r.equal[slot], e)
	if s, ok := bareSlot(e); ok {
		r.equal[s.Index] = append(r.equal[s.Index], plan.NewSlot(s.Type(), slot, s.Name))
	}
}

// bareSlot recognizes a slot, relabelled or not. As a bpchar, texts are equal
// that differ in trailing spaces.
func bareSlot(e plan.Expr) (*plan.Slot, bool) {
	if l, ok := e.(*plan.Relabel); ok && l.Type().Desc != datum.BpChar {
		e = l.Arg
	}
	s, ok := e.(*plan.Slot)
	return s, ok
}

// conditions takes the equalities out of a condition.
func (r *rows) conditions(cond plan.Expr) {
	switch e := cond.(type) {
	case *plan.BoolOp:
		if e.Op == plan.And {
			for _, c := range e.Args {
				r.conditions(c)
			}
		}
	case *plan.Call:
		if !plan.IsEquality(e) {
			return
		}
		if s, ok := bareSlot(e.Args[0]); ok && r.filled[s.Index] {
			r.equate(s.Index, e.Args[1])
		}
		if s, ok := bareSlot(e.Args[1]); ok && r.filled[s.Index] {
			r.equate(s.Index, e.Args[0])
		}
	}
}

// scan derives the keys of a table from its unique indexes.
func (r *rows) scan(n *plan.Scan) {
	r.conditions(n.Filter)
	bound := map[int]bool{} // columns bound by the range
	if len(n.Ranges) == 1 {
		for i, k := range n.Ranges[0].Eq {
			c := n.Index.Keys[i].Column
			if k.Value == nil || c < 0 {
				continue
			}
			bound[c] = true
			if s := n.Slots[c]; s >= 0 {
				r.equate(s, k.Value)
			}
		}
	}
	if n.Provenance {
		return // versions of a row share its key
	}
	for i := range n.Table.Indexes {
		if key, ok := r.indexKey(n, &n.Table.Indexes[i], bound); ok {
			r.keys = append(r.keys, key)
			// What determines the key without any slot is one row.
			r.one = r.one || r.contained(key, nil)
		}
	}
}

// indexKey expresses the key of a unique index in slots; columns bound by the
// range need none.
func (r *rows) indexKey(n *plan.Scan, idx *catalog.Index, bound map[int]bool) ([]int, bool) {
	if !idx.Unique && !idx.Primary || idx.Computed() {
		return nil, false
	}
	key := []int{}
	for _, k := range idx.Keys {
		s := n.Slots[k.Column]
		switch {
		case bound[k.Column]:
		case s < 0:
			return nil, false
		case !idx.Primary && !n.Table.Columns[k.Column].NotNull && !r.boundByEquality(s):
			return nil, false // nulls are distinct to the index, equal to an order
		default:
			key = append(key, s)
		}
	}
	return key, true
}

// boundByEquality tells that rows with null in the slot do not pass.
func (r *rows) boundByEquality(slot int) bool { return len(r.equal[slot]) > 0 }

func (a *analysis) nestLoop(n *plan.NestLoop, r *rows) {
	outer := a.of(n.Outer)
	if n.Kind == plan.SemiJoin || n.Kind == plan.AntiJoin {
		r.take(outer)
		return
	}
	inner := a.of(n.Inner)
	r.join(outer)
	if n.Kind == plan.InnerJoin {
		r.join(inner)
		r.conditions(n.Cond)
	}
	r.one = outer.one && inner.one
	r.combine(outer, inner)
}

func (a *analysis) hashJoin(n *plan.HashJoin, r *rows) {
	outer := a.of(n.Outer)
	if n.Kind == plan.SemiJoin || n.Kind == plan.AntiJoin {
		r.take(outer)
		return
	}
	inner := a.of(n.Inner)
	r.one = outer.one && inner.one && n.Kind != plan.RightJoin && n.Kind != plan.FullJoin
	if n.Kind == plan.InnerJoin {
		r.join(inner)
		r.join(outer)
		for i := range n.OuterKeys {
			if s, ok := bareSlot(n.OuterKeys[i]); ok {
				r.equate(s.Index, n.InnerKeys[i])
			}
			if s, ok := bareSlot(n.InnerKeys[i]); ok {
				r.equate(s.Index, n.OuterKeys[i])
			}
		}
		r.conditions(n.Cond)
	}
	if n.Kind == plan.LeftJoin {
		r.join(outer)
	}
	r.combine(outer, inner)
	if n.Kind == plan.InnerJoin || n.Kind == plan.LeftJoin {
		r.keyOfOneSide(outer, inner, n.InnerKeys)
	}
	if n.Kind == plan.InnerJoin {
		r.keyOfOneSide(inner, outer, n.OuterKeys)
	}
}

// keyOfOneSide: where a row of one side meets at most one of the other, the
// keys of the one are keys of the join.
func (r *rows) keyOfOneSide(one, other *rows, joined []plan.Expr) {
	set := map[int]bool{}
	for _, e := range joined {
		if s, ok := bareSlot(e); ok {
			set[s.Index] = true
		}
	}
	if other.unique(set) {
		r.keys = append(r.keys, one.keys...)
	}
}

// combine makes keys of a join from one of each side. Where the inner side has
// at most one row for an outer one, its key is empty.
func (r *rows) combine(outer, inner *rows) {
	for _, o := range outer.keys {
		for _, i := range inner.keys {
			r.keys = append(r.keys, append(slices.Clone(o), i...))
		}
	}
}

// addKey adds a key of expressions that are slots.
func (r *rows) addKey(exprs []plan.Expr) {
	key := []int{}
	for _, e := range exprs {
		s, ok := bareSlot(e)
		if !ok {
			return
		}
		key = append(key, s.Index)
	}
	r.keys = append(r.keys, key)
}

func (a *analysis) aggregate(n *plan.Aggregate, r *rows) {
	in := a.of(n.Child)
	r.one = len(n.GroupBy) == 0 && len(n.Sets) <= 1
	if len(n.Sets) > 0 {
		return // groups of several sets may agree in all keys
	}
	r.keys = append(r.keys, n.GroupOut)
	for i, e := range n.GroupBy {
		s, ok := bareSlot(e)
		if !ok {
			continue
		}
		for _, x := range in.equal[s.Index] {
			if in.determined(x, nil) {
				// It has one value in all rows below, so in all groups.
				r.equal[n.GroupOut[i]] = append(r.equal[n.GroupOut[i]], x)
			}
		}
	}
}

func (a *analysis) window(n *plan.Window, r *rows) {
	r.take(a.of(n.Child))
	for i := range n.Funcs {
		if n.Funcs[i].Func.Name == "row_number" {
			r.addKey(append(slices.Clone(n.Partition), plan.NewSlot(n.Funcs[i].Type, n.Funcs[i].Out, "")))
		}
	}
}

func (a *analysis) cteScan(n *plan.CTEScan, r *rows) {
	c := a.ctes[n.ID]
	if c == nil || c.Step != nil || n.Working {
		return
	}
	in := a.of(c.Node)
	r.one = in.one
	for _, key := range in.keys {
		mapped := []int{}
		for _, s := range key {
			if i := slices.Index(c.Out, s); i >= 0 && n.Slots[i] >= 0 {
				mapped = append(mapped, n.Slots[i])
			}
		}
		if len(mapped) == len(key) {
			r.keys = append(r.keys, mapped)
		}
	}
	r.conditions(n.Filter)
}

// unique tells that no two rows agree in the slots of the set.
func (r *rows) unique(set map[int]bool) bool {
	if r.one {
		return true
	}
	closed := r.closure(set)
	return slices.ContainsFunc(r.keys, func(key []int) bool { return allIn(key, closed) })
}

// contained tells that the set determines the slots.
func (r *rows) contained(slots []int, set map[int]bool) bool { return allIn(slots, r.closure(set)) }

func allIn(slots []int, set map[int]bool) bool {
	return !slices.ContainsFunc(slots, func(s int) bool { return !set[s] })
}

// closure adds to a set all slots whose value it determines.
func (r *rows) closure(set map[int]bool) map[int]bool {
	closed := map[int]bool{}
	for s := range set { // any order: a set
		closed[s] = true
	}
	for grown := true; grown; {
		grown = false
		for s, list := range r.equal { // any order: a fixed point
			if closed[s] {
				continue
			}
			if slices.ContainsFunc(list, func(e plan.Expr) bool { return r.determined(e, closed) }) {
				closed[s], grown = true, true
			}
		}
	}
	return closed
}

// determined tells that an expression has one value for the rows that agree in
// the slots of the set.
func (r *rows) determined(e plan.Expr, set map[int]bool) bool {
	ok := true
	plan.WalkOperands(e, func(x plan.Expr) {
		switch x := x.(type) {
		case *plan.Slot:
			ok = ok && (set[x.Index] || !r.filled[x.Index])
		case *plan.Subquery:
			ok = ok && !x.Correlated
		case *plan.UserCall:
			ok = ok && x.Func.Volatility != "v"
		case *plan.Call:
			ok = ok && x.Func.Volatility != 'v'
		}
	})
	return ok
}

// total tells that an order leaves no two rows equal.
func (r *rows) total(keys []plan.SortKey) bool {
	set := map[int]bool{}
	for _, k := range keys {
		if s, ok := bareSlot(k.Expr); ok {
			set[s.Index] = true
		}
	}
	return r.unique(set)
}
