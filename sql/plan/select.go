package plan

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/tallystick/tallystick/sql/builtin"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// selectStmt plans SELECT, VALUES and set operations. s is the fresh scope of
// the query; its parent is the query around it.
func (p *planner) selectStmt(n *pg.SelectStmt, s *scope) (*query, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	if n == nil {
		return nil, pgerr.New(pgerr.FeatureNotSupported, "only SELECT can be used as a subquery")
	}
	if n.IntoClause != nil {
		return nil, p.at(pgerr.NotBuilt("SELECT ... INTO is not supported").WithHint("Create the table, then INSERT ... SELECT."), n.IntoClause.Rel.Location)
	}
	finish, err := p.with(n.WithClause, s)
	if err != nil {
		return nil, err
	}
	var q *query
	switch {
	case n.Op != pg.SetOperation_SETOP_NONE:
		q, err = p.setOperation(n, s)
	case len(n.ValuesLists) > 0:
		q, err = p.valuesQuery(n, s)
	default:
		q, err = p.plainSelect(n, s)
	}
	if err != nil {
		return nil, err
	}
	return finish(q), nil
}

// target is one entry of a select list.
type target struct {
	expr Expr
	col  column
	node *pg.Node
}

func (p *planner) plainSelect(n *pg.SelectStmt, s *scope) (*query, error) {
	items, conds, err := p.from(n.FromClause, s)
	if err != nil {
		return nil, err
	}
	s.group = &grouping{}
	s.windows = &windowing{}
	if err := p.windowClause(n.WindowClause, s); err != nil {
		return nil, err
	}
	var sets []SetItem
	s.sets = &sets
	targets, err := p.targets(n.TargetList, s)
	if err != nil {
		return nil, err
	}
	s.sets = nil
	if n.WhereClause != nil {
		s.noAggs = "WHERE"
		e, err := p.condition(n.WhereClause, s, "WHERE")
		if err != nil {
			return nil, err
		}
		conds = append(conds, conjuncts(e)...)
		s.noAggs = ""
	}
	if err := p.settleDistinct(n, targets); err != nil {
		return nil, err
	}
	keys, err := p.sortKeys(n.SortClause, targets, s, len(n.DistinctClause) > 0 && !onDistinct(n))
	if err != nil {
		return nil, err
	}
	having, err := p.groupClauses(n, targets, s)
	if err != nil {
		return nil, err
	}
	on, err := p.distinctKeys(n, targets, s)
	if err != nil {
		return nil, err
	}
	windowed := s.windows.used()
	grouped := s.group.used || len(n.GroupClause) > 0 || n.HavingClause != nil
	order := p.pushableOrder(n, keys, items, grouped || windowed, sets)
	var extreme *wantedOrder
	if !windowed && len(n.GroupClause) == 0 {
		extreme = p.extremeOrder(s, items)
	}
	if extreme != nil {
		conds, order = append(conds, p.notNull(extreme.keys[0].Expr, items[0].base)...), extreme
	}
	node, err := p.joinWhere(items, conds, order, s)
	if err != nil {
		return nil, err
	}
	if extreme != nil {
		if extreme.met { // the first row has the result
			node = &Limit{Child: node, Count: NewConst(datum.T(datum.Int8), datum.Int(1)), Extreme: true}
		}
		order = nil
	}
	if grouped {
		all := slices.Concat(keys, on)
		if node, err = p.aggregate(node, s, targets, all, having); err != nil {
			return nil, err
		}
		keys, on = all[:len(keys):len(keys)], all[len(keys):]
	}
	if windowed {
		node = p.addWindows(node, s, keys)
	}
	q := &query{}
	node = p.projectSets(node, sets)
	q.node, q.cols = p.project(node, targets, s)
	q.semi = semiSourceOf(n, q, items, conds, s, !grouped && !windowed && len(sets) == 0)
	return p.orderAndLimit(q, n, keys, on, s, order)
}

func (p *planner) projectSets(node Node, sets []SetItem) Node {
	if len(sets) == 0 {
		return node
	}
	return &ProjectSet{Child: node, Sets: sets}
}

// targets analyzes a select list, * expanded.
func (p *planner) targets(list []*pg.Node, s *scope) ([]target, error) {
	var out []target
	for _, n := range list {
		rt := n.GetResTarget()
		if ref := rt.Val.GetColumnRef(); ref != nil {
			if _, star := nameParts(ref.Fields); star {
				exprs, cols, err := p.star(ref, s)
				if err != nil {
					return nil, err
				}
				for i := range exprs {
					out = append(out, target{expr: exprs[i], col: cols[i]})
				}
				continue
			}
		}
		if ind := rt.Val.GetAIndirection(); ind != nil && ind.Indirection[len(ind.Indirection)-1].GetAStar() != nil {
			more, err := p.fieldTargets(ind, s)
			if err != nil {
				return nil, err
			}
			out = append(out, more...)
			continue
		}
		e, err := p.expr(rt.Val, s, "SELECT")
		if err != nil {
			return nil, err
		}
		name := rt.Name
		if name == "" {
			name = figureName(rt.Val)
		}
		t := target{expr: e, col: column{name: name, typ: e.Type()}, node: rt.Val}
		t.col.table, t.col.attr = p.origin(e)
		out = append(out, t)
	}
	return out, nil
}

// fieldTargets expands (composite).* into its fields.
func (p *planner) fieldTargets(ind *pg.A_Indirection, s *scope) ([]target, error) {
	arg := ind.Arg
	if n := len(ind.Indirection) - 1; n > 0 {
		arg = &pg.Node{Node: &pg.Node_AIndirection{AIndirection: &pg.A_Indirection{Arg: ind.Arg, Indirection: ind.Indirection[:n]}}}
	}
	e, err := p.expr(arg, s, "SELECT")
	if err != nil {
		return nil, err
	}
	t := e.Type()
	if len(t.Fields) == 0 {
		return nil, p.errAt(location(arg), pgerr.WrongObjectType, "type %s is not composite", datum.FormatType(t))
	}
	var out []target
	for i, f := range t.Fields {
		var x Expr = &Field{typed{f.Type}, e, i}
		if row, ok := e.(*Row); ok {
			x = row.Args[i]
		}
		out = append(out, target{expr: x, col: column{name: f.Name, typ: f.Type}, node: arg})
	}
	return out, nil
}

// origin names the table column that an expression is, if it is one.
func (p *planner) origin(e Expr) (datum.OID, int16) {
	s, ok := e.(*Slot)
	if !ok {
		return 0, 0
	}
	if r := p.owner[s.Index]; r != nil {
		for _, c := range r.cols {
			if c.slot == s.Index {
				return c.table, c.attr
			}
		}
	}
	return 0, 0
}

// project computes the targets; slots of the query's own need no work. A column
// of an outer query is copied: who looks for what a plan depends on looks at
// its expressions.
func (p *planner) project(node Node, targets []target, s *scope) (Node, []column) {
	cols := make([]column, len(targets))
	var exprs []Expr
	var out []int
	for i, t := range targets {
		cols[i] = t.col
		cols[i].typ, cols[i].loc = t.expr.Type(), location(t.node)
		if cols[i].typ.Desc == datum.Unknown {
			switch t.expr.(type) {
			case *Const, *Param:
				cols[i].lit = t.expr
			}
		}
		if sl, ok := t.expr.(*Slot); ok {
			if r := p.owner[sl.Index]; r == nil || slices.Contains(s.rels, r) {
				cols[i].slot = sl.Index
				continue
			}
		}
		cols[i].slot = p.newSlot()
		exprs, out = append(exprs, t.expr), append(out, cols[i].slot)
	}
	if exprs == nil {
		return node, cols
	}
	return &Project{Child: node, Exprs: exprs, Out: out}, cols
}

// sortKey of a query: either a target or an expression of its own.
type orderKey struct {
	key    SortKey
	target int // -1 = key.Expr stands alone
}

// settleTarget makes text of a literal that is to be sorted or compared.
func (p *planner) settleTarget(t *target) error {
	e, err := p.settle(t.expr)
	t.expr, t.col.typ = e, e.Type()
	return err
}

// settleDistinct does so for all columns of SELECT DISTINCT, or for those that
// DISTINCT ON names.
func (p *planner) settleDistinct(n *pg.SelectStmt, targets []target) error {
	if len(n.DistinctClause) == 0 {
		return nil
	}
	if !onDistinct(n) {
		for i := range targets {
			if err := p.settleTarget(&targets[i]); err != nil {
				return err
			}
		}
		return nil
	}
	for _, d := range n.DistinctClause {
		i, err := p.outputColumn(d, targets, "DISTINCT ON")
		if err == nil && i >= 0 {
			err = p.settleTarget(&targets[i])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// sortKeys analyzes ORDER BY: a name or number of an output column, or an
// expression over the input.
func (p *planner) sortKeys(list []*pg.Node, targets []target, s *scope, distinct bool) ([]orderKey, error) {
	var out []orderKey
	for _, n := range list {
		sb := n.GetSortBy()
		k := orderKey{target: -1}
		var err error
		if k.key.Desc, k.key.NullsFirst, err = p.direction(sb); err != nil {
			return nil, err
		}
		i, err := p.outputColumn(sb.Node, targets, "ORDER BY")
		if err != nil {
			return nil, err
		}
		if i < 0 {
			e, err := p.expr(sb.Node, s, "ORDER BY")
			if err != nil {
				return nil, err
			}
			if e, err = p.settle(e); err != nil {
				return nil, err
			}
			k.key.Expr = e
			for j := range targets {
				if sameExpr(targets[j].expr, e) {
					i = j
					break
				}
			}
			if i < 0 && distinct {
				return nil, p.errAt(location(sb.Node), pgerr.InvalidColumnReference, "for SELECT DISTINCT, ORDER BY expressions must appear in select list")
			}
		}
		if i >= 0 {
			if err := p.settleTarget(&targets[i]); err != nil {
				return nil, err
			}
			k.key.Expr = targets[i].expr
		}
		k.target = i
		t := k.key.Expr.Type()
		if t.Compare == nil && t.Desc != datum.Unknown {
			return nil, p.errAt(location(sb.Node), pgerr.UndefinedFunction, "could not identify an ordering operator for type %s", datum.FormatType(t)).
				WithHint("Use an explicit ordering operator or modify the query.")
		}
		out = append(out, k)
	}
	return out, nil
}

// direction is the order that an item of ORDER BY asks for. NULLs are larger
// than all values if it does not say where they go.
func (p *planner) direction(sb *pg.SortBy) (desc, nullsFirst bool, err error) {
	desc = sb.SortbyDir == pg.SortByDir_SORTBY_DESC
	if len(sb.UseOp) > 0 {
		if desc, err = p.orderingOperator(sb); err != nil {
			return false, false, err
		}
	}
	switch sb.SortbyNulls {
	case pg.SortByNulls_SORTBY_NULLS_FIRST:
		return desc, true, nil
	case pg.SortByNulls_SORTBY_NULLS_LAST:
		return desc, false, nil
	}
	return desc, desc, nil
}

// orderingOperator tells whether the operator of ORDER BY ... USING is the
// greater-than of its type's order, not the less-than.
func (p *planner) orderingOperator(sb *pg.SortBy) (desc bool, err error) {
	name, _ := nameParts(sb.UseOp)
	switch op := name[len(name)-1]; op {
	case "<":
		return false, nil
	case ">":
		return true, nil
	case "=", "<>", "<=", ">=":
		return false, p.errAt(sb.Location, pgerr.WrongObjectType, "operator %s is not a valid ordering operator", op).
			WithHint("Ordering operators must be \"<\" or \">\" members of btree operator families.")
	default:
		return false, p.at(pgerr.NotBuilt("ORDER BY ... USING %s is not supported", op), sb.Location)
	}
}

// outputColumn finds the target that a bare name or number stands for; -1 if
// it is to be analyzed as an expression.
func (p *planner) outputColumn(n *pg.Node, targets []target, clause string) (int, error) {
	if c := n.GetAConst(); c != nil {
		iv, ok := c.Val.(*pg.A_Const_Ival)
		if !ok && c.Val != nil {
			return -1, p.errAt(c.Location, pgerr.SyntaxError, "non-integer constant in %s", clause)
		}
		k := 0
		if ok {
			k = int(iv.Ival.Ival)
		}
		if k < 1 || k > len(targets) {
			return -1, p.errAt(c.Location, pgerr.InvalidColumnReference, "%s position %d is not in select list", clause, k)
		}
		return k - 1, nil
	}
	ref := n.GetColumnRef()
	if ref == nil {
		return -1, nil
	}
	parts, star := nameParts(ref.Fields)
	if len(parts) != 1 || star {
		return -1, nil
	}
	found := -1
	for i, t := range targets {
		if t.col.name != parts[0] {
			continue
		}
		if found >= 0 && !sameExpr(targets[found].expr, t.expr) {
			return -1, p.errAt(ref.Location, pgerr.AmbiguousColumn, "%s \"%s\" is ambiguous", clause, parts[0])
		}
		if found < 0 {
			found = i
		}
	}
	return found, nil
}

// pushableOrder tells the access path what order would save a sort.
func (p *planner) pushableOrder(n *pg.SelectStmt, keys []orderKey, items []item, grouped bool, sets []SetItem) *wantedOrder {
	if len(keys) == 0 || len(items) != 1 || grouped || len(sets) > 0 || len(n.DistinctClause) > 0 {
		return nil
	}
	w := &wantedOrder{limited: n.LimitCount != nil}
	for _, k := range keys {
		w.keys = append(w.keys, k.key)
	}
	return w
}

// extremeOrder is the order in which the first row of a table gives the result
// of min or max: the only aggregate of a query without groups.
func (p *planner) extremeOrder(s *scope, items []item) *wantedOrder {
	g := s.group
	if len(g.keys) > 0 || len(g.aggs) != 1 || len(items) != 1 || items[0].base == nil || items[0].base.table == nil {
		return nil
	}
	a := &g.aggs[0]
	if a.Func.Name != "min" && a.Func.Name != "max" || len(a.Args) != 1 || a.Filter != nil {
		return nil
	}
	if _, ok := p.columnOf(a.Args[0], items[0].base); !ok {
		return nil
	}
	desc := a.Func.Name == "max"
	return &wantedOrder{keys: []SortKey{{Expr: a.Args[0], Desc: desc, NullsFirst: desc}}, limited: true, noNulls: true}
}

// notNull is the condition that a column is not null, none if it never is.
func (p *planner) notNull(e Expr, r *rel) []Expr {
	if col, ok := p.columnOf(e, r); ok && r.table.Columns[col].NotNull {
		return nil
	}
	return []Expr{&IsNull{typed{datum.T(datum.BoolType)}, e, true}}
}

// orderAndLimit adds DISTINCT, ORDER BY, LIMIT and OFFSET.
func (p *planner) orderAndLimit(q *query, n *pg.SelectStmt, keys, on []orderKey, s *scope, order *wantedOrder) (*query, error) {
	sort := make([]SortKey, len(keys))
	for i, k := range keys {
		sort[i] = k.key
		if k.target >= 0 {
			c := q.cols[k.target]
			if c.typ.Desc == datum.Unknown {
				continue
			}
			sort[i].Expr = NewSlot(c.typ, c.slot, c.name)
		}
	}
	sort = slices.DeleteFunc(sort, func(k SortKey) bool { return k.Expr == nil })
	if err := p.distinctClause(q, n, on, &sort); err != nil {
		return nil, err
	}
	limit, err := p.limit(n, s, sort)
	if err != nil {
		return nil, err
	}
	q.order = sort
	if len(sort) > 0 && (order == nil || !order.met) {
		node := &Sort{Child: q.node, Keys: sort}
		if limit != nil && limit.Ties == nil {
			node.Top = topOf(limit)
		}
		q.node = node
	}
	if len(on) > 0 && len(sort) > 0 {
		if err := p.distinctOn(q, n, on, sort); err != nil {
			return nil, err
		}
	}
	if limit != nil {
		limit.Child = q.node
		q.node = limit
	}
	return q, nil
}

// topOf is how many rows a sort under a limit has to give.
func topOf(l *Limit) Expr {
	if l.Count == nil {
		return nil
	}
	if l.Offset == nil {
		return l.Count
	}
	a, ok1 := l.Count.(*Const)
	b, ok2 := l.Offset.(*Const)
	if ok1 && ok2 && !a.Value.IsNull() && !b.Value.IsNull() && a.Value.Int() < 1<<40 && b.Value.Int() < 1<<40 {
		return NewConst(a.typ, datum.Int(a.Value.Int()+b.Value.Int()))
	}
	return nil
}

func onDistinct(n *pg.SelectStmt) bool {
	return len(n.DistinctClause) > 0 && n.DistinctClause[0].Node != nil
}

// distinctClause adds DISTINCT. Rows keep the order of first appearance, so it
// comes before the sort.
func (p *planner) distinctClause(q *query, n *pg.SelectStmt, on []orderKey, sort *[]SortKey) error {
	if len(n.DistinctClause) == 0 || onDistinct(n) && len(*sort) > 0 {
		return nil
	}
	if onDistinct(n) {
		return p.distinctOn(q, n, on, nil)
	}
	u := &Unique{Child: q.node}
	for i := range q.cols {
		c := &q.cols[i]
		if c.typ.Desc == datum.Unknown {
			if err := p.settleUnknown(q); err != nil {
				return err
			}
			u.Child = q.node
		}
		if c.typ.Hash == nil {
			return pgerr.New(pgerr.UndefinedFunction, "could not identify an equality operator for type %s", datum.FormatType(c.typ))
		}
		u.Keys = append(u.Keys, NewSlot(c.typ, c.slot, c.name))
	}
	q.node = u
	return nil
}

// distinctKeys analyzes DISTINCT ON: names or numbers of output columns, or
// expressions over the input.
func (p *planner) distinctKeys(n *pg.SelectStmt, targets []target, s *scope) ([]orderKey, error) {
	if !onDistinct(n) {
		return nil, nil
	}
	var out []orderKey
	for _, d := range n.DistinctClause {
		i, err := p.outputColumn(d, targets, "DISTINCT ON")
		if err != nil {
			return nil, err
		}
		k := orderKey{target: i}
		if i < 0 {
			e, err := p.expr(d, s, "DISTINCT ON")
			if err != nil {
				return nil, err
			}
			if e, err = p.settle(e); err != nil {
				return nil, err
			}
			k.key.Expr = e
			k.target = slices.IndexFunc(targets, func(t target) bool { return sameExpr(t.expr, e) })
		}
		out = append(out, k)
	}
	return out, nil
}

// distinctOn keeps the first row per key, after the sort.
func (p *planner) distinctOn(q *query, n *pg.SelectStmt, on []orderKey, sort []SortKey) error {
	u := &Unique{Child: q.node, On: true, At: p.place(location(n.DistinctClause[0]))}
	for _, k := range on {
		e := k.key.Expr
		if k.target >= 0 {
			c := q.cols[k.target]
			e = NewSlot(c.typ, c.slot, c.name)
		}
		u.Keys = append(u.Keys, e)
	}
	for i := range min(len(sort), len(u.Keys)) {
		if !slices.ContainsFunc(u.Keys, func(k Expr) bool { return sameExpr(k, sort[i].Expr) }) {
			return p.errAt(location(n.DistinctClause[0]), pgerr.InvalidColumnReference, "SELECT DISTINCT ON expressions must match initial ORDER BY expressions")
		}
	}
	q.node = u
	return nil
}

// limit analyzes LIMIT, OFFSET and FETCH FIRST.
func (p *planner) limit(n *pg.SelectStmt, s *scope, sort []SortKey) (*Limit, error) {
	if n.LimitCount == nil && n.LimitOffset == nil {
		return nil, nil
	}
	l := &Limit{Order: sort, At: p.place(limitLocation(n))}
	at := &scope{parent: s.parent, rels: s.rels, shown: s.shown, ctes: s.ctes, noAggs: "LIMIT"}
	expr := func(node *pg.Node, clause string) (Expr, error) {
		if node == nil {
			return nil, nil
		}
		if c := node.GetAConst(); c != nil && c.Isnull {
			return nil, nil
		}
		e, err := p.expr(node, at, clause)
		if err != nil {
			return nil, err
		}
		variables := false
		walk(e, func(x Expr) {
			sl, ok := x.(*Slot)
			variables = variables || ok && slices.Contains(s.rels, p.owner[sl.Index])
		})
		if variables {
			return nil, p.errAt(location(node), pgerr.InvalidColumnReference, "argument of %s must not contain variables", clause)
		}
		return p.coerce(e, datum.T(datum.Int8), builtin.Assignment, location(node))
	}
	var err error
	if l.Count, err = expr(n.LimitCount, "LIMIT"); err != nil {
		return nil, err
	}
	if l.Offset, err = expr(n.LimitOffset, "OFFSET"); err != nil {
		return nil, err
	}
	s.absorb(at)
	if n.LimitOption == pg.LimitOption_LIMIT_OPTION_WITH_TIES {
		if len(sort) == 0 {
			return nil, pgerr.New(pgerr.SyntaxError, "WITH TIES cannot be specified without ORDER BY clause")
		}
		l.Ties = sort
	}
	return l, nil
}

// valuesQuery plans VALUES (...), (...).
func (p *planner) valuesQuery(n *pg.SelectStmt, s *scope) (*query, error) {
	s.noAggs = "VALUES"
	n, err := p.expandValues(n, s)
	if err != nil {
		return nil, err
	}
	var rows [][]Expr
	for _, l := range n.ValuesLists {
		row, err := p.exprs(l.GetList().Items, s, "VALUES")
		if err != nil {
			return nil, err
		}
		if len(rows) > 0 && len(row) != len(rows[0]) {
			return nil, p.errAt(location(l.GetList().Items[0]), pgerr.SyntaxError, "VALUES lists must all be the same length")
		}
		rows = append(rows, row)
	}
	q := &query{}
	v := &Values{Rows: rows}
	for c := range rows[0] {
		col := make([]Expr, len(rows))
		for r := range rows {
			col[r] = rows[r][c]
		}
		locs := make([]int32, len(rows))
		for r := range rows {
			locs[r] = location(n.ValuesLists[r].GetList().Items[c])
		}
		t, err := p.unify(col, "VALUES", locs)
		if err != nil {
			return nil, err
		}
		for r := range rows {
			rows[r][c] = col[r]
		}
		slot := p.newSlot()
		v.Slots = append(v.Slots, slot)
		q.cols = append(q.cols, column{name: "column" + itoa(c+1), typ: t, slot: slot, loc: locs[0]})
	}
	q.node = v
	return p.orderOutput(q, n, s)
}

// orderOutput applies ORDER BY and LIMIT to a query whose only names are its
// output columns (VALUES, set operations).
func (p *planner) orderOutput(q *query, n *pg.SelectStmt, s *scope) (*query, error) {
	targets := make([]target, len(q.cols))
	r := &rel{cols: q.cols, visible: true}
	for i, c := range q.cols {
		targets[i] = target{expr: NewSlot(c.typ, c.slot, c.name), col: c}
	}
	at := &scope{parent: s.parent, rels: []*rel{r}, noAggs: "ORDER BY"}
	keys, err := p.sortKeys(n.SortClause, targets, at, false)
	if err != nil {
		return nil, err
	}
	plain := &pg.SelectStmt{LimitCount: n.LimitCount, LimitOffset: n.LimitOffset, LimitOption: n.LimitOption}
	return p.orderAndLimit(q, plain, keys, nil, s, nil)
}
