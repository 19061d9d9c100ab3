package plan

import (
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/tallystick/tallystick/sql/builtin"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// aExpr is an operator or one of the forms that the grammar treats alike.
func (p *planner) aExpr(n *pg.A_Expr, s *scope, clause string) (Expr, error) {
	parts, _ := nameParts(n.Name)
	op := parts[len(parts)-1]
	switch n.Kind {
	case pg.A_Expr_Kind_AEXPR_OP, pg.A_Expr_Kind_AEXPR_LIKE, pg.A_Expr_Kind_AEXPR_ILIKE:
		return p.plainOperator(n, op, s, clause)
	case pg.A_Expr_Kind_AEXPR_SIMILAR:
		return p.plainOperator(n, op, s, clause)
	case pg.A_Expr_Kind_AEXPR_OP_ANY, pg.A_Expr_Kind_AEXPR_OP_ALL:
		return p.anyAll(n, op, s, clause)
	case pg.A_Expr_Kind_AEXPR_DISTINCT, pg.A_Expr_Kind_AEXPR_NOT_DISTINCT:
		return p.distinct(n, s, clause)
	case pg.A_Expr_Kind_AEXPR_NULLIF:
		return p.nullIf(n, s, clause)
	case pg.A_Expr_Kind_AEXPR_IN:
		return p.inList(n, op, s, clause)
	case pg.A_Expr_Kind_AEXPR_BETWEEN, pg.A_Expr_Kind_AEXPR_NOT_BETWEEN,
		pg.A_Expr_Kind_AEXPR_BETWEEN_SYM, pg.A_Expr_Kind_AEXPR_NOT_BETWEEN_SYM:
		return p.between(n, s, clause)
	}
	return nil, p.at(pgerr.NotBuilt("operator form %s is not supported", n.Kind), n.Location)
}

func (p *planner) plainOperator(n *pg.A_Expr, op string, s *scope, clause string) (Expr, error) {
	if l, r := n.Lexpr.GetRowExpr(), n.Rexpr.GetRowExpr(); l != nil && r != nil {
		return p.rowCompare(op, l, r, n.Location, s, clause)
	}
	if l, sub := n.Lexpr.GetRowExpr(), n.Rexpr.GetSubLink(); l != nil && sub != nil && sub.SubLinkType == pg.SubLinkType_EXPR_SUBLINK {
		return p.rowCompareSub(op, l, sub, n.Location, s, clause)
	}
	var left Expr
	var err error
	if n.Lexpr != nil {
		if left, err = p.expr(n.Lexpr, s, clause); err != nil {
			return nil, err
		}
	}
	right, err := p.expr(n.Rexpr, s, clause)
	if err != nil {
		return nil, err
	}
	if left == nil {
		return p.prefixOperator(op, right, n.Location)
	}
	return p.operator(op, left, right, n.Location)
}

// operator builds left op right, computed at once if both are constants.
func (p *planner) operator(name string, left, right Expr, loc int32) (Expr, error) {
	c, err := p.bindOperator(name, left, right, loc)
	if err != nil {
		return nil, err
	}
	if name == "^" {
		return c, nil
	}
	return p.fold(c), nil
}

// bindOperator chooses the operator for two operands and converts them to its
// types.
func (p *planner) bindOperator(name string, left, right Expr, loc int32) (*Call, error) {
	op, err := builtin.ResolveOperator(name, left.Type(), right.Type())
	if err != nil {
		return nil, p.locate(err, loc)
	}
	args, ret, err := builtin.ResolvePolymorphic([]*datum.Desc{op.Left, op.Right}, op.Func.Ret, []datum.Type{left.Type(), right.Type()})
	if err != nil {
		return nil, p.locate(err, loc)
	}
	if left, err = p.coerce(left, args[0], builtin.Implicit, loc); err != nil {
		return nil, err
	}
	if right, err = p.coerce(right, args[1], builtin.Implicit, loc); err != nil {
		return nil, err
	}
	return p.call(op.Func, []Expr{left, right}, ret, loc)
}

func (p *planner) prefixOperator(name string, right Expr, loc int32) (Expr, error) {
	op, err := builtin.ResolveOperator(name, datum.Type{}, right.Type())
	if err != nil {
		return nil, p.locate(err, loc)
	}
	if right, err = p.coerce(right, datum.T(op.Right), builtin.Implicit, loc); err != nil {
		return nil, err
	}
	c, err := p.call(op.Func, []Expr{right}, datum.T(op.Func.Ret), loc)
	if err != nil {
		return nil, err
	}
	return p.fold(c), nil
}

// call binds a built-in function to coerced arguments.
func (p *planner) call(f *builtin.Func, args []Expr, ret datum.Type, loc int32) (*Call, error) {
	if err := p.admit(f, loc); err != nil {
		return nil, err
	}
	types := make([]datum.Type, len(args))
	for i, a := range args {
		types[i] = a.Type()
	}
	eval, err := f.BindEval(types, ret)
	if err != nil {
		return nil, p.locate(err, loc)
	}
	return &Call{typed: typed{ret}, Func: f, Eval: eval, Args: args}, nil
}

// admit refuses in a contract what would make nodes differ.
func (p *planner) admit(f *builtin.Func, loc int32) error {
	if !p.opts.Contract || f.Contract == nil {
		return nil
	}
	e := p.errAt(loc, pgerr.FeatureNotSupported, "function %s cannot be used in a contract: %s", f.Name, f.Contract.Why)
	if f.Contract.Replacement != "" {
		e = e.WithHint("Use %s.", f.Contract.Replacement)
	}
	return p.refuse(RefusedFunction, e)
}

// pair analyzes both sides of n and binds them to their equality operator.
func (p *planner) pair(n *pg.A_Expr, s *scope, clause string) (*Call, error) {
	sides, err := p.exprs([]*pg.Node{n.Lexpr, n.Rexpr}, s, clause)
	if err != nil {
		return nil, err
	}
	return p.bindOperator("=", sides[0], sides[1], n.Location)
}

// distinct is IS [NOT] DISTINCT FROM; of two rows, column by column.
func (p *planner) distinct(n *pg.A_Expr, s *scope, clause string) (Expr, error) {
	not := n.Kind == pg.A_Expr_Kind_AEXPR_NOT_DISTINCT
	if l, r := n.Lexpr.GetRowExpr(), n.Rexpr.GetRowExpr(); l != nil && r != nil {
		return p.distinctRows(n, l, r, not, s, clause)
	}
	eq, err := p.pair(n, s, clause)
	if err != nil {
		return nil, err
	}
	return &Distinct{typed{datum.T(datum.BoolType)}, eq.Args[0], eq.Args[1], not, eq.Eval}, nil
}

func (p *planner) distinctRows(n *pg.A_Expr, l, r *pg.RowExpr, not bool, s *scope, clause string) (Expr, error) {
	if len(l.Args) != len(r.Args) {
		return nil, p.errAt(n.Location, pgerr.SyntaxError, "unequal number of entries in row expressions")
	}
	out := &BoolOp{typed: typed{datum.T(datum.BoolType)}, Op: Or}
	if not {
		out.Op = And
	}
	for i := range l.Args {
		one := &pg.A_Expr{Kind: n.Kind, Name: n.Name, Lexpr: l.Args[i], Rexpr: r.Args[i], Location: n.Location}
		e, err := p.distinct(one, s, clause)
		if err != nil {
			return nil, err
		}
		out.Args = append(out.Args, e)
	}
	return out, nil
}

func (p *planner) nullIf(n *pg.A_Expr, s *scope, clause string) (Expr, error) {
	eq, err := p.pair(n, s, clause)
	if err != nil {
		return nil, err
	}
	value := eq.Args[0]
	return &NullIf{typed{value.Type()}, value, eq.Args[1], value, eq.Eval}, nil
}

// inList is x IN (list), as = ANY (array) where the types allow it, and as OR
// of comparisons otherwise.
func (p *planner) inList(n *pg.A_Expr, op string, s *scope, clause string) (Expr, error) {
	not := op == "<>"
	items := n.Rexpr.GetList().Items
	if n.Lexpr.GetRowExpr() != nil {
		return p.inRows(n, items, not, s, clause)
	}
	left, err := p.expr(n.Lexpr, s, clause)
	if err != nil {
		return nil, err
	}
	list, err := p.exprs(items, s, clause)
	if err != nil {
		return nil, err
	}
	out := &BoolOp{typed: typed{datum.T(datum.BoolType)}, Op: Or}
	if not {
		out.Op = And
	}
	fixed, rest := splitList(list)
	if len(fixed) > 1 {
		e, err := p.inArray(left, fixed, not, n.Location)
		if err != nil {
			return nil, err
		}
		if e != nil {
			out.Args = append(out.Args, e)
		} else {
			rest = list
		}
	} else {
		rest = list
	}
	for _, item := range rest {
		cmp, err := p.operator(op, left, item, n.Location)
		if err != nil {
			return nil, err
		}
		out.Args = append(out.Args, cmp)
	}
	if len(out.Args) == 1 {
		return out.Args[0], nil
	}
	return out, nil
}

// splitList separates what is the same for every row, which decides the type of
// the comparison together, from what is compared one by one.
func splitList(list []Expr) (fixed, rest []Expr) {
	for _, e := range list {
		if mentionsSlot(e) {
			rest = append(rest, e)
		} else {
			fixed = append(fixed, e)
		}
	}
	return fixed, rest
}

func (p *planner) inArray(left Expr, list []Expr, not bool, loc int32) (Expr, error) {
	types := []datum.Type{left.Type()}
	for _, e := range list {
		types = append(types, e.Type())
	}
	t, err := builtin.CommonType(types, "IN")
	if err != nil || t.Array == nil {
		return nil, nil
	}
	arr := &ArrayExpr{typed: typed{datum.T(t.Array)}}
	for _, e := range list {
		c, err := p.coerce(e, datum.T(t.Desc), builtin.Implicit, loc)
		if err != nil {
			return nil, err
		}
		arr.Args = append(arr.Args, c)
	}
	if left, err = p.coerce(left, datum.T(t.Desc), builtin.Implicit, loc); err != nil {
		return nil, err
	}
	name := "="
	if not {
		name = "<>"
	}
	return p.arrayOperator(name, left, arr, not, loc)
}

func (p *planner) inRows(n *pg.A_Expr, items []*pg.Node, not bool, s *scope, clause string) (Expr, error) {
	out := &BoolOp{typed: typed{datum.T(datum.BoolType)}, Op: Or}
	for _, item := range items {
		r := item.GetRowExpr()
		if r == nil {
			return nil, p.errAt(n.Location, pgerr.SyntaxError, "unequal number of entries in row expressions")
		}
		e, err := p.rowCompare("=", n.Lexpr.GetRowExpr(), r, n.Location, s, clause)
		if err != nil {
			return nil, err
		}
		out.Args = append(out.Args, e)
	}
	if !not {
		return out, nil
	}
	return &BoolOp{typed: out.typed, Op: Not, Args: []Expr{out}}, nil
}

// anyAll is x op ANY|ALL (array).
func (p *planner) anyAll(n *pg.A_Expr, op string, s *scope, clause string) (Expr, error) {
	left, err := p.expr(n.Lexpr, s, clause)
	if err != nil {
		return nil, err
	}
	right, err := p.expr(n.Rexpr, s, clause)
	if err != nil {
		return nil, err
	}
	if right.Type().Desc == datum.Unknown {
		lt := left.Type()
		if lt.Desc == datum.Unknown {
			lt = datum.T(datum.Text)
		}
		if lt.Array == nil {
			return nil, p.errAt(n.Location, pgerr.UndefinedObject, "could not find array type for data type %s", datum.FormatType(lt))
		}
		if right, err = p.coerce(right, datum.T(lt.Array), builtin.Implicit, location(n.Rexpr)); err != nil {
			return nil, err
		}
	}
	if right.Type().Elem == nil {
		return nil, p.errAt(n.Location, pgerr.WrongObjectType, "op ANY/ALL (array) requires array on right side")
	}
	return p.arrayOperator(op, left, right, n.Kind == pg.A_Expr_Kind_AEXPR_OP_ALL, n.Location)
}

func (p *planner) arrayOperator(name string, left, array Expr, all bool, loc int32) (Expr, error) {
	elem := NewSlot(datum.T(array.Type().Elem), 0, "")
	op, err := builtin.ResolveOperator(name, left.Type(), elem.Type())
	if err != nil {
		return nil, p.locate(err, loc)
	}
	args, ret, err := builtin.ResolvePolymorphic([]*datum.Desc{op.Left, op.Right}, op.Func.Ret, []datum.Type{left.Type(), elem.Type()})
	if err != nil {
		return nil, p.locate(err, loc)
	}
	if ret.Desc != datum.BoolType {
		return nil, p.errAt(loc, pgerr.WrongObjectType, "op ANY/ALL (array) requires operator to yield boolean")
	}
	if left, err = p.coerce(left, args[0], builtin.Implicit, loc); err != nil {
		return nil, err
	}
	if !args[1].Same(elem.Type()) && args[1].Array != nil {
		if array, err = p.coerce(array, datum.T(args[1].Array), builtin.Implicit, loc); err != nil {
			return nil, err
		}
	}
	c, err := p.call(op.Func, []Expr{left, NewSlot(args[1], 0, "")}, ret, loc)
	if err != nil {
		return nil, err
	}
	equality := name == "=" && !all && left.Type().Same(datum.T(array.Type().Elem))
	return &AnyAll{typed{ret}, left, array, c.Eval, all, equality, name}, nil
}

// between is x [NOT] BETWEEN [SYMMETRIC] a AND b.
func (p *planner) between(n *pg.A_Expr, s *scope, clause string) (Expr, error) {
	bounds := n.Rexpr.GetList().Items
	list, err := p.exprs([]*pg.Node{n.Lexpr, bounds[0], bounds[1]}, s, clause)
	if err != nil {
		return nil, err
	}
	x, a, b := list[0], list[1], list[2]
	inside := func(lo, hi Expr) (Expr, error) {
		ge, err := p.operator(">=", x, lo, n.Location)
		if err != nil {
			return nil, err
		}
		le, err := p.operator("<=", x, hi, n.Location)
		if err != nil {
			return nil, err
		}
		return &BoolOp{typed{datum.T(datum.BoolType)}, And, []Expr{ge, le}}, nil
	}
	e, err := inside(a, b)
	if err != nil {
		return nil, err
	}
	if n.Kind == pg.A_Expr_Kind_AEXPR_BETWEEN_SYM || n.Kind == pg.A_Expr_Kind_AEXPR_NOT_BETWEEN_SYM {
		swapped, err := inside(b, a)
		if err != nil {
			return nil, err
		}
		e = &BoolOp{typed{datum.T(datum.BoolType)}, Or, []Expr{e, swapped}}
	}
	if n.Kind == pg.A_Expr_Kind_AEXPR_NOT_BETWEEN || n.Kind == pg.A_Expr_Kind_AEXPR_NOT_BETWEEN_SYM {
		e = &BoolOp{typed{datum.T(datum.BoolType)}, Not, []Expr{e}}
	}
	return e, nil
}

func (p *planner) rowCompare(op string, l, r *pg.RowExpr, loc int32, s *scope, clause string) (Expr, error) {
	if len(l.Args) != len(r.Args) {
		return nil, p.errAt(loc, pgerr.SyntaxError, "unequal number of entries in row expressions")
	}
	if op == "=" || op == "<>" {
		return p.rowEquality(op, l, r, loc, s, clause)
	}
	left, err := p.exprs(l.Args, s, clause)
	if err != nil {
		return nil, err
	}
	right, err := p.exprs(r.Args, s, clause)
	if err != nil {
		return nil, err
	}
	return p.comparePairs(op, left, right, loc)
}

// rowEquality is = or <> of rows: AND of equalities or OR of inequalities.
func (p *planner) rowEquality(op string, l, r *pg.RowExpr, loc int32, s *scope, clause string) (Expr, error) {
	out := &BoolOp{typed: typed{datum.T(datum.BoolType)}, Op: And}
	if op == "<>" {
		out.Op = Or
	}
	for i := range l.Args {
		pair, err := p.exprs([]*pg.Node{l.Args[i], r.Args[i]}, s, clause)
		if err != nil {
			return nil, err
		}
		e, err := p.operator(op, pair[0], pair[1], loc)
		if err != nil {
			return nil, err
		}
		out.Args = append(out.Args, e)
	}
	return out, nil
}
