package plan

import (
	"slices"
	"strconv"
	"strings"

	"github.com/cockroachdb/apd/v3"
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/tallystick/tallystick/sql/builtin"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// expr analyzes one expression: names are resolved, operators and functions
// chosen, types inferred. clause names the place for messages.
func (p *planner) expr(n *pg.Node, s *scope, clause string) (Expr, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	switch n := n.Node.(type) {
	case *pg.Node_AConst:
		return p.constant(n.AConst)
	case *pg.Node_ColumnRef:
		return p.columnRef(n.ColumnRef, s)
	case *pg.Node_ParamRef:
		return p.param(int(n.ParamRef.Number), n.ParamRef.Location)
	case *pg.Node_AExpr:
		return p.aExpr(n.AExpr, s, clause)
	case *pg.Node_BoolExpr:
		return p.boolExpr(n.BoolExpr, s, clause)
	case *pg.Node_NullTest:
		return p.nullTest(n.NullTest, s, clause)
	case *pg.Node_BooleanTest:
		return p.booleanTest(n.BooleanTest, s, clause)
	case *pg.Node_TypeCast:
		return p.typeCast(n.TypeCast, s, clause)
	case *pg.Node_FuncCall:
		return p.funcCall(n.FuncCall, s, clause)
	case *pg.Node_CaseExpr:
		return p.caseExpr(n.CaseExpr, s, clause)
	case *pg.Node_CoalesceExpr:
		return p.coalesce(n.CoalesceExpr, s, clause)
	case *pg.Node_MinMaxExpr:
		return p.minMax(n.MinMaxExpr, s, clause)
	case *pg.Node_SubLink:
		return p.subLink(n.SubLink, s, clause)
	case *pg.Node_AArrayExpr:
		return p.arrayExpr(n.AArrayExpr, s, clause, datum.Type{})
	case *pg.Node_RowExpr:
		return p.rowExpr(n.RowExpr, s, clause)
	case *pg.Node_AIndirection:
		return p.indirection(n.AIndirection, s, clause)
	case *pg.Node_SqlvalueFunction:
		return p.sqlValue(n.SqlvalueFunction)
	case *pg.Node_CollateClause:
		return p.collate(n.CollateClause, s, clause)
	case *pg.Node_SetToDefault:
		return nil, p.errAt(n.SetToDefault.Location, pgerr.SyntaxError, "DEFAULT is not allowed in this context")
	case *pg.Node_GroupingFunc:
		return p.groupingFunc(n.GroupingFunc, s, clause)
	case *pg.Node_CurrentOfExpr:
		return nil, pgerr.NotBuilt("WHERE CURRENT OF is not supported")
	}
	return nil, p.at(pgerr.NotBuilt("this kind of expression (%s) is not supported", nodeName(n)), location(n))
}

func (p *planner) exprs(list []*pg.Node, s *scope, clause string) ([]Expr, error) {
	out := make([]Expr, len(list))
	for i, n := range list {
		e, err := p.expr(n, s, clause)
		if err != nil {
			return nil, err
		}
		out[i] = e
	}
	return out, nil
}

// condition analyzes a boolean expression.
func (p *planner) condition(n *pg.Node, s *scope, clause string) (Expr, error) {
	e, err := p.expr(n, s, clause)
	if err != nil {
		return nil, err
	}
	return p.boolean(e, clause, location(n))
}

func (p *planner) constant(c *pg.A_Const) (Expr, error) {
	if c.Isnull {
		return NewConst(datum.T(datum.Unknown), datum.Null), nil
	}
	switch v := c.Val.(type) {
	case *pg.A_Const_Ival:
		return NewConst(datum.T(datum.Int4), datum.Int(int64(v.Ival.Ival))), nil
	case *pg.A_Const_Fval:
		return p.bigNumber(v.Fval.Fval, c.Location)
	case *pg.A_Const_Boolval:
		return NewConst(datum.T(datum.BoolType), datum.Bool(v.Boolval.Boolval)), nil
	case *pg.A_Const_Sval:
		return &Const{typed: typed{datum.T(datum.Unknown)}, Value: datum.Str(v.Sval.Sval), at: c.Location + 1}, nil
	case *pg.A_Const_Bsval:
		return nil, p.at(pgerr.NotBuilt("bit string constants are not supported"), c.Location)
	}
	// The grammar leaves the value out of an integer zero.
	return NewConst(datum.T(datum.Int4), datum.Int(0)), nil
}

// bigNumber types a number that is no int4: int8 if it fits, else numeric.
func (p *planner) bigNumber(text string, loc int32) (Expr, error) {
	clean := strings.ReplaceAll(text, "_", "")
	if v, err := strconv.ParseInt(clean, 0, 64); err == nil && !strings.HasPrefix(clean, "0") || err == nil && len(clean) > 1 && clean[1] > '9' {
		if v == int64(int32(v)) {
			return NewConst(datum.T(datum.Int4), datum.Int(v)), nil
		}
		return NewConst(datum.T(datum.Int8), datum.Int(v)), nil
	}
	if v, err := strconv.ParseInt(clean, 10, 64); err == nil {
		return NewConst(datum.T(datum.Int8), datum.Int(v)), nil
	}
	if _, _, err := apd.NewFromString(clean); err != nil {
		return nil, p.errAt(loc, pgerr.InvalidTextRepresentation, "invalid input syntax for type numeric: \"%s\"", text)
	}
	d, err := datum.Numeric.Parse(clean, -1, p.format())
	if err != nil {
		return nil, p.locate(err, loc)
	}
	return NewConst(datum.T(datum.Numeric), d), nil
}

func (p *planner) boolExpr(b *pg.BoolExpr, s *scope, clause string) (Expr, error) {
	out := &BoolOp{typed: typed{datum.T(datum.BoolType)}}
	name := "AND"
	switch b.Boolop {
	case pg.BoolExprType_OR_EXPR:
		out.Op, name = Or, "OR"
	case pg.BoolExprType_NOT_EXPR:
		out.Op, name = Not, "NOT"
	}
	for _, a := range b.Args {
		e, err := p.expr(a, s, clause)
		if err != nil {
			return nil, err
		}
		if e, err = p.boolean(e, name, location(a)); err != nil {
			return nil, err
		}
		out.Args = append(out.Args, e)
	}
	return out, nil
}

func (p *planner) nullTest(n *pg.NullTest, s *scope, clause string) (Expr, error) {
	e, err := p.expr(n.Arg, s, clause)
	if err != nil {
		return nil, err
	}
	if e, err = p.settle(e); err != nil {
		return nil, err
	}
	return &IsNull{typed{datum.T(datum.BoolType)}, e, n.Nulltesttype == pg.NullTestType_IS_NOT_NULL}, nil
}

// settle gives an expression of unknown type the type text.
func (p *planner) settle(e Expr) (Expr, error) {
	if e.Type().Desc != datum.Unknown {
		return e, nil
	}
	return p.coerce(e, datum.T(datum.Text), builtin.Implicit, -1)
}

func (p *planner) booleanTest(n *pg.BooleanTest, s *scope, clause string) (Expr, error) {
	name := map[pg.BoolTestType]string{
		pg.BoolTestType_IS_TRUE: "IS TRUE", pg.BoolTestType_IS_NOT_TRUE: "IS NOT TRUE",
		pg.BoolTestType_IS_FALSE: "IS FALSE", pg.BoolTestType_IS_NOT_FALSE: "IS NOT FALSE",
		pg.BoolTestType_IS_UNKNOWN: "IS UNKNOWN", pg.BoolTestType_IS_NOT_UNKNOWN: "IS NOT UNKNOWN",
	}[n.Booltesttype]
	e, err := p.expr(n.Arg, s, clause)
	if err != nil {
		return nil, err
	}
	if e, err = p.boolean(e, name, location(n.Arg)); err != nil {
		return nil, err
	}
	t := &BoolTest{typed: typed{datum.T(datum.BoolType)}, Arg: e, Not: strings.HasPrefix(name, "IS NOT")}
	switch {
	case strings.HasSuffix(name, "UNKNOWN"):
		t.Want = datum.Null
	default:
		t.Want = datum.Bool(strings.HasSuffix(name, "TRUE"))
	}
	return t, nil
}

func (p *planner) typeCast(n *pg.TypeCast, s *scope, clause string) (Expr, error) {
	t, err := p.typeName(n.TypeName)
	if err != nil {
		return nil, err
	}
	if arr, ok := n.Arg.Node.(*pg.Node_AArrayExpr); ok && t.Elem != nil {
		return p.arrayExpr(arr.AArrayExpr, s, clause, t)
	}
	e, err := p.expr(n.Arg, s, clause)
	if err != nil {
		return nil, err
	}
	loc := n.Location
	if loc < 0 || e.Type().Desc == datum.Unknown {
		loc = location(n.Arg)
	}
	return p.coerce(e, t, builtin.Explicit, loc)
}

func (p *planner) caseExpr(n *pg.CaseExpr, s *scope, clause string) (Expr, error) {
	out := &Case{}
	var arg Expr
	if n.Arg != nil {
		e, err := p.expr(n.Arg, s, clause)
		if err != nil {
			return nil, err
		}
		if e, err = p.settle(e); err != nil {
			return nil, err
		}
		out.Arg, out.ArgSlot = e, p.newSlot()
		arg = NewSlot(e.Type(), out.ArgSlot, "case")
	}
	results, locs := []Expr{}, []int32{}
	for _, w := range n.Args {
		when := w.GetCaseWhen()
		cond, err := p.caseCondition(when, arg, s, clause)
		if err != nil {
			return nil, err
		}
		r, err := p.expr(when.Result, s, clause)
		if err != nil {
			return nil, err
		}
		out.Whens = append(out.Whens, When{Cond: cond})
		results, locs = append(results, r), append(locs, location(when.Result))
	}
	if n.Defresult != nil {
		e, err := p.expr(n.Defresult, s, clause)
		if err != nil {
			return nil, err
		}
		results, locs = append([]Expr{e}, results...), append([]int32{location(n.Defresult)}, locs...)
	}
	t, err := p.unify(results, "CASE", locs)
	if err != nil {
		return nil, err
	}
	if n.Defresult != nil {
		out.Else, results = results[0], results[1:]
	}
	for i := range out.Whens {
		out.Whens[i].Result = results[i]
	}
	out.typ = t
	return out, nil
}

func (p *planner) caseCondition(when *pg.CaseWhen, arg Expr, s *scope, clause string) (Expr, error) {
	e, err := p.expr(when.Expr, s, clause)
	if err != nil {
		return nil, err
	}
	if arg == nil {
		return p.boolean(e, "CASE/WHEN", location(when.Expr))
	}
	return p.operator("=", arg, e, when.Location)
}

func (p *planner) coalesce(n *pg.CoalesceExpr, s *scope, clause string) (Expr, error) {
	args, err := p.exprs(n.Args, s, clause)
	if err != nil {
		return nil, err
	}
	t, err := p.unify(args, "COALESCE", locations(n.Args))
	if err != nil {
		return nil, err
	}
	return &Coalesce{typed{t}, args}, nil
}

func (p *planner) minMax(n *pg.MinMaxExpr, s *scope, clause string) (Expr, error) {
	name := "GREATEST"
	if n.Op == pg.MinMaxOp_IS_LEAST {
		name = "LEAST"
	}
	args, err := p.exprs(n.Args, s, clause)
	if err != nil {
		return nil, err
	}
	t, err := p.unify(args, name, locations(n.Args))
	if err != nil {
		return nil, err
	}
	if t.Compare == nil {
		return nil, p.errAt(n.Location, pgerr.UndefinedFunction, "could not identify a comparison function for type %s", datum.FormatType(t))
	}
	return &MinMax{typed{t}, args, name == "LEAST"}, nil
}

func (p *planner) arrayExpr(n *pg.A_ArrayExpr, s *scope, clause string, want datum.Type) (Expr, error) {
	if len(n.Elements) == 0 && want.Desc == nil {
		return nil, p.errAt(n.Location, pgerr.IndeterminateDatatype, "cannot determine type of empty array").
			WithHint("Explicitly cast to the desired type, for example ARRAY[]::integer[].")
	}
	out := &ArrayExpr{}
	for _, el := range n.Elements {
		var e Expr
		var err error
		if sub, ok := el.Node.(*pg.Node_AArrayExpr); ok {
			out.Nested = true
			e, err = p.arrayExpr(sub.AArrayExpr, s, clause, want)
		} else {
			e, err = p.expr(el, s, clause)
		}
		if err != nil {
			return nil, err
		}
		out.Args = append(out.Args, e)
	}
	elem := datum.Type{}
	if want.Desc != nil {
		elem = datum.Type{Desc: want.Elem, Mod: want.Mod}
		if out.Nested {
			elem = want
		}
		for i, e := range out.Args {
			c, err := p.coerce(e, elem, builtin.Explicit, location(n.Elements[i]))
			if err != nil {
				return nil, err
			}
			out.Args[i] = c
		}
		out.typ = want
		return out, nil
	}
	elem, err := p.unify(out.Args, "ARRAY", locations(n.Elements))
	if err != nil {
		return nil, err
	}
	switch {
	case elem.IsArray():
		out.Nested, out.typ = true, datum.T(elem.Desc)
	case elem.Array == nil:
		return nil, p.errAt(n.Location, pgerr.UndefinedObject, "could not find array type for data type %s", datum.FormatType(elem))
	default:
		out.typ = datum.T(elem.Array)
	}
	return out, nil
}

func (p *planner) rowExpr(n *pg.RowExpr, s *scope, clause string) (Expr, error) {
	list, err := p.expandStars(n.Args, s)
	if err != nil {
		return nil, err
	}
	args, err := p.exprs(list, s, clause)
	if err != nil {
		return nil, err
	}
	raw := slices.Clone(args)
	for i := range args {
		if args[i], err = p.settle(args[i]); err != nil {
			return nil, err
		}
	}
	return &Row{typed{datum.T(datum.Record)}, args, raw, n.Location + 1}, nil
}

// indirection is subscripts and field selection behind an expression.
func (p *planner) indirection(n *pg.A_Indirection, s *scope, clause string) (Expr, error) {
	e, err := p.expr(n.Arg, s, clause)
	if err != nil {
		return nil, err
	}
	for i := 0; i < len(n.Indirection); {
		if f := n.Indirection[i].GetString_(); f != nil {
			if e, err = p.field(e, f.Sval, location(n.Arg)); err != nil {
				return nil, err
			}
			i++
			continue
		}
		j := i
		for j < len(n.Indirection) && n.Indirection[j].GetAIndices() != nil {
			j++
		}
		if j == i {
			return nil, p.at(pgerr.NotBuilt("row expansion via \"*\" is not supported here"), location(n.Arg))
		}
		if e, err = p.subscript(e, n.Indirection[i:j], s, clause, location(n.Arg)); err != nil {
			return nil, err
		}
		i = j
	}
	return e, nil
}

func (p *planner) field(e Expr, name string, loc int32) (Expr, error) {
	t := e.Type()
	for i, f := range t.Fields {
		if f.Name == name {
			if row, ok := e.(*Row); ok { // of an item: the column itself
				return row.Args[i], nil
			}
			return &Field{typed{f.Type}, e, i}, nil
		}
	}
	if namedComposite(t) {
		return nil, p.errAt(loc, pgerr.UndefinedColumn, "column \"%s\" not found in data type %s", name, datum.FormatType(t))
	}
	if t.OID == datum.RecordOID {
		return nil, p.errAt(loc, pgerr.UndefinedColumn, "could not identify column \"%s\" in record data type", name)
	}
	return nil, p.errAt(loc, pgerr.WrongObjectType, "column notation .%s applied to type %s, which is not a composite type", name, datum.FormatType(t))
}

func (p *planner) subscript(e Expr, subs []*pg.Node, s *scope, clause string, loc int32) (Expr, error) {
	t := e.Type()
	if t.Desc == datum.JSONB {
		return p.jsonSubscript(e, subs, s, clause, loc)
	}
	if t.Desc == datum.Name && len(subs) == 1 && !subs[0].GetAIndices().IsSlice {
		return p.nameSubscript(e, subs[0].GetAIndices().Uidx, s, clause, loc)
	}
	if t.Elem == nil {
		return nil, p.errAt(loc, pgerr.DatatypeMismatch, "cannot subscript type %s because it does not support subscripting", datum.FormatType(t))
	}
	index := func(n *pg.Node) (Expr, error) {
		if n == nil {
			return nil, nil
		}
		x, err := p.expr(n, s, clause)
		if err != nil {
			return nil, err
		}
		return p.coerce(x, datum.T(datum.Int4), builtin.Assignment, location(n))
	}
	out := &Subscript{Array: e}
	for _, sub := range subs {
		out.Slice = out.Slice || sub.GetAIndices().IsSlice
	}
	for _, sub := range subs {
		ix := sub.GetAIndices()
		hi, err := index(ix.Uidx)
		if err != nil {
			return nil, err
		}
		lo, err := index(ix.Lidx)
		if err != nil {
			return nil, err
		}
		if !out.Slice {
			out.Index = append(out.Index, hi)
			continue
		}
		if !ix.IsSlice {
			lo = NewConst(datum.T(datum.Int4), datum.Int(1))
		}
		out.Lo, out.Hi = append(out.Lo, lo), append(out.Hi, hi)
	}
	out.typ = datum.T(t.Elem)
	if out.Slice {
		out.typ = t
	}
	return out, nil
}

// nameSubscript takes a byte of a name, counted from 0: to PostgreSQL a name is
// an array of "char".
func (p *planner) nameSubscript(e Expr, index *pg.Node, s *scope, clause string, loc int32) (Expr, error) {
	at, err := p.expr(index, s, clause)
	if err != nil {
		return nil, err
	}
	if at, err = p.coerce(at, datum.T(datum.Int4), builtin.Assignment, location(index)); err != nil {
		return nil, err
	}
	if at, err = p.operator("+", at, NewConst(datum.T(datum.Int4), datum.Int(1)), loc); err != nil {
		return nil, err
	}
	if e, err = p.coerce(e, datum.T(datum.Text), builtin.Implicit, loc); err != nil {
		return nil, err
	}
	if e, err = p.builtinCall("substr", []Expr{e, at, NewConst(datum.T(datum.Int4), datum.Int(1))}, loc); err != nil {
		return nil, err
	}
	return p.coerce(e, datum.T(datum.Char), builtin.Explicit, loc)
}

func (p *planner) jsonSubscript(e Expr, subs []*pg.Node, s *scope, clause string, loc int32) (Expr, error) {
	for _, sub := range subs {
		ix := sub.GetAIndices()
		if ix.IsSlice {
			return nil, p.errAt(loc, pgerr.DatatypeMismatch, "jsonb subscript does not support slices")
		}
		k, err := p.expr(ix.Uidx, s, clause)
		if err != nil {
			return nil, err
		}
		if e, err = p.operator("->", e, k, loc); err != nil {
			return nil, err
		}
	}
	return e, nil
}

func (p *planner) collate(n *pg.CollateClause, s *scope, clause string) (Expr, error) {
	parts, _ := nameParts(n.Collname)
	switch name := parts[len(parts)-1]; name {
	case "C", "POSIX", "default", "ucs_basic":
		return p.expr(n.Arg, s, clause)
	default:
		return nil, p.errAt(n.Location, pgerr.UndefinedObject, "collation \"%s\" for encoding \"UTF8\" does not exist", name).
			WithHint("Text is ordered by its UTF-8 bytes: collation \"C\" is the only one.")
	}
}

// sqlValue is CURRENT_DATE and its like: each is a call of a function.
func (p *planner) sqlValue(n *pg.SQLValueFunction) (Expr, error) {
	name := ""
	switch n.Op {
	case pg.SQLValueFunctionOp_SVFOP_CURRENT_DATE:
		name = "current_date"
	case pg.SQLValueFunctionOp_SVFOP_CURRENT_TIME, pg.SQLValueFunctionOp_SVFOP_CURRENT_TIME_N:
		name = "current_time"
	case pg.SQLValueFunctionOp_SVFOP_CURRENT_TIMESTAMP, pg.SQLValueFunctionOp_SVFOP_CURRENT_TIMESTAMP_N:
		name = "now"
	case pg.SQLValueFunctionOp_SVFOP_LOCALTIME, pg.SQLValueFunctionOp_SVFOP_LOCALTIME_N:
		name = "localtime"
	case pg.SQLValueFunctionOp_SVFOP_LOCALTIMESTAMP, pg.SQLValueFunctionOp_SVFOP_LOCALTIMESTAMP_N:
		name = "localtimestamp"
	case pg.SQLValueFunctionOp_SVFOP_CURRENT_ROLE, pg.SQLValueFunctionOp_SVFOP_CURRENT_USER, pg.SQLValueFunctionOp_SVFOP_USER:
		name = "current_user"
	case pg.SQLValueFunctionOp_SVFOP_SESSION_USER:
		name = "session_user"
	case pg.SQLValueFunctionOp_SVFOP_CURRENT_CATALOG:
		name = "current_database"
	case pg.SQLValueFunctionOp_SVFOP_CURRENT_SCHEMA:
		name = "current_schema"
	}
	e, err := p.builtinCall(name, nil, n.Location)
	if err != nil {
		return nil, err
	}
	if n.Typmod >= 0 {
		return modified(e, datum.Type{Desc: e.Type().Desc, Mod: n.Typmod}, true), nil
	}
	return e, nil
}
