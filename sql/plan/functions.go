package plan

import (
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/tallystick/tallystick/sql/builtin"
	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// callee is what a function name and its arguments resolved to: one of the two.
type callee struct {
	builtin *builtin.Func
	user    *catalog.Func
	args    []Expr // coerced, in parameter order, defaults filled in
	ret     datum.Type
}

// funcCall analyzes a call in an expression.
func (p *planner) funcCall(n *pg.FuncCall, s *scope, clause string) (Expr, error) {
	if n.Over != nil {
		return p.windowCall(n, s, clause)
	}
	c, err := p.resolveCall(n, s, clause)
	if err != nil {
		return nil, err
	}
	if c.builtin != nil && c.builtin.Kind == builtin.Aggregate {
		return p.aggregateCall(n, c, s, clause)
	}
	if c.builtin != nil && c.builtin.Kind == builtin.Window {
		return nil, p.errAt(n.Location, pgerr.WrongObjectType, "window function %s requires an OVER clause", c.builtin.Name)
	}
	if n.AggDistinct || len(n.AggOrder) > 0 || n.AggFilter != nil || n.AggStar || n.AggWithinGroup {
		return nil, p.errAt(n.Location, pgerr.WrongObjectType, "%s specified, but %s is not an aggregate function",
			aggClause(n), funcName(n))
	}
	if c.returnsSet() {
		return p.setInList(n, c, s)
	}
	return p.finishCall(c, s, n.Location)
}

func aggClause(n *pg.FuncCall) string {
	switch {
	case n.AggDistinct:
		return "DISTINCT"
	case n.AggStar:
		return funcName(n) + "(*)"
	case n.AggFilter != nil:
		return "FILTER"
	case n.AggWithinGroup:
		return "WITHIN GROUP"
	}
	return "ORDER BY"
}

func (c *callee) returnsSet() bool {
	return c.builtin != nil && c.builtin.RetSet || c.user != nil && c.user.RetSet
}

// finishCall makes the expression of a call that returns one value.
func (p *planner) finishCall(c *callee, s *scope, loc int32) (Expr, error) {
	if c.user != nil {
		if c.user.Kind == catalog.Procedure {
			return nil, p.errAt(loc, pgerr.WrongObjectType, "%s(%s) is a procedure", c.user.Name, c.user.Signature()).
				WithHint("To call a procedure, use CALL.")
		}
		if c.user.Volatility == "v" {
			s.markVolatile()
		}
		return &UserCall{typed{c.ret}, c.user, c.args}, nil
	}
	if c.builtin.Volatility == builtin.Volatile {
		s.markVolatile()
	}
	return p.call(c.builtin, c.args, c.ret, loc)
}

func (s *scope) markVolatile() {
	for ; s != nil; s = s.parent {
		s.volatile = true
	}
}

func funcName(n *pg.FuncCall) string {
	parts, _ := nameParts(n.Funcname)
	return parts[len(parts)-1]
}

// resolveCall analyzes the arguments of a call and chooses the function.
func (p *planner) resolveCall(n *pg.FuncCall, s *scope, clause string) (*callee, error) {
	parts, _ := nameParts(n.Funcname)
	inner := s
	if n.Over == nil && isAggregateName(parts) {
		inner = s.insideAggregate(parts[len(parts)-1])
	}
	var args []Expr
	var names []string
	for _, a := range n.Args {
		val := a
		if na := a.GetNamedArgExpr(); na != nil {
			val = na.Arg
			names = append(names, na.Name)
		} else if names != nil {
			return nil, p.errAt(location(a), pgerr.SyntaxError, "positional argument cannot follow named argument")
		}
		e, err := p.expr(val, inner, clause)
		if err != nil {
			return nil, err
		}
		args = append(args, e)
	}
	if n.AggWithinGroup {
		for _, o := range n.AggOrder {
			e, err := p.expr(o.GetSortBy().Node, inner, clause)
			if err != nil {
				return nil, err
			}
			args = append(args, e)
		}
	}
	if inner != s {
		s.absorb(inner)
	}
	return p.choose(parts, args, names, n.FuncVariadic, n.AggStar, n.Location)
}

func isAggregateName(parts []string) bool {
	if len(parts) > 1 && parts[0] != catalog.PgCatalog {
		return false
	}
	for _, f := range builtin.LookupFuncs(parts[len(parts)-1]) {
		if f.Kind == builtin.Aggregate {
			return true
		}
	}
	return false
}

// choose applies overload resolution to the built-in and the user's functions
// of one name.
func (p *planner) choose(parts []string, args []Expr, names []string, variadic, star bool, loc int32) (*callee, error) {
	name := parts[len(parts)-1]
	actual := make([]datum.Type, len(args))
	for i, a := range args {
		actual[i] = a.Type()
	}
	funcs, err := p.candidates(parts, loc)
	if err != nil {
		return nil, err
	}
	sigs := make([]builtin.Signature, len(funcs))
	for i, f := range funcs {
		sigs[i] = f.signature()
		if variadic {
			sigs[i].Variadic = false
		}
	}
	m, outcome := builtin.SelectCandidate(sigs, actual, names)
	if outcome != builtin.Found || !m.Exact {
		// As in PostgreSQL, name(x) as a cast goes before an inexact match.
		if e, err := p.castCall(parts, args, loc); e != nil || err != nil {
			return e, err
		}
	}
	if outcome != builtin.Found {
		shown := strings.Join(parts, ".")
		if star {
			return nil, p.errAt(loc, pgerr.UndefinedFunction, "function %s() does not exist", shown)
		}
		return nil, p.at(asError(builtin.FuncError(shown, actual, names, outcome)), loc)
	}
	f := funcs[m.Index]
	if f.builtin != nil {
		if err := p.admit(f.builtin, loc); err != nil {
			return nil, err
		}
	}
	if variadic && f.builtin != nil && collectsAny(&f) {
		if last := actual[len(actual)-1]; last.Desc != datum.Unknown && last.Root().Elem == nil {
			return nil, p.errAt(loc, pgerr.DatatypeMismatch, "VARIADIC argument must be an array")
		}
		f.builtin = f.builtin.Spread()
	}
	if star && f.builtin != nil && len(f.builtin.Args) > 0 {
		return nil, p.errAt(loc, pgerr.UndefinedFunction, "function %s() does not exist", name)
	}
	return p.bindCall(&f, m, args, loc)
}

func asError(err error) *pgerr.Error {
	if e, ok := pgerr.From(err); ok {
		return e
	}
	return pgerr.New(pgerr.InternalError, "%v", err)
}

// candidates lists the functions that a name can mean, in the order of the
// search path, and notes the names as read.
func (p *planner) candidates(parts []string, loc int32) ([]callee, error) {
	name := parts[len(parts)-1]
	var list []callee
	addBuiltins := func() {
		for _, f := range builtin.LookupFuncs(name) {
			list = append(list, callee{builtin: f})
		}
	}
	addUser := func(schema string) {
		p.note(catalog.FuncName(schema, name))
		for _, f := range p.opts.Catalog.Funcs(schema, name) {
			list = append(list, callee{user: f})
		}
		if t := p.opts.Catalog.Constructed(schema, name); t != nil {
			p.note(t.Reads())
			for _, f := range builtin.Constructors(t.Desc) {
				list = append(list, callee{builtin: f})
			}
		}
	}
	switch len(parts) {
	case 1:
		addBuiltins()
		if p.opts.Catalog == nil {
			return list, nil
		}
		for _, schema := range p.opts.SearchPath {
			addUser(schema)
		}
	case 2:
		switch parts[0] {
		case catalog.PgCatalog:
			addBuiltins()
			return list, nil
		case catalog.Information:
			if f := informationFuncs[name]; f != nil {
				list = append(list, callee{builtin: f})
			}
			return list, nil
		}
		if p.opts.Catalog == nil {
			return list, nil
		}
		if _, ok := p.opts.Catalog.Schema(parts[0]); !ok {
			return nil, p.errAt(loc, pgerr.InvalidSchemaName, "schema \"%s\" does not exist", parts[0])
		}
		addUser(parts[0])
	default:
		return nil, p.errAt(loc, pgerr.SyntaxError, "improper qualified name (too many dotted names): %s", strings.Join(parts, "."))
	}
	return list, nil
}

func (c *callee) signature() builtin.Signature {
	if c.builtin != nil {
		return c.builtin.Signature()
	}
	return UserSignature(c.user)
}

// UserSignature is what overload resolution looks at in a user's function.
func UserSignature(f *catalog.Func) builtin.Signature {
	sig := builtin.Signature{}
	for _, a := range f.InArgs() {
		sig.Args = append(sig.Args, a.Type.Desc)
		sig.ArgNames = append(sig.ArgNames, a.Name)
		sig.Variadic = sig.Variadic || a.Mode == catalog.Variadic
		if a.Default != "" {
			sig.Defaults++
		}
	}
	return sig
}

// bindCall puts arguments into parameter order, adds defaults, collects
// variadic ones and coerces all.
func (p *planner) bindCall(f *callee, m builtin.Match, args []Expr, loc int32) (*callee, error) {
	ordered := make([]Expr, len(m.Args))
	for i, a := range args {
		to := i
		if m.Order != nil {
			to = m.Order[i]
		}
		ordered[to] = a
	}
	if err := p.fillDefaults(f, m.Missing, ordered, loc); err != nil {
		return nil, err
	}
	actual := make([]datum.Type, len(ordered))
	for i, a := range ordered {
		actual[i] = a.Type()
	}
	var retDesc *datum.Desc
	if f.builtin != nil {
		retDesc = f.builtin.Ret
	} else {
		retDesc = f.user.Ret.Desc
	}
	types, ret, err := builtin.ResolvePolymorphic(m.Args, retDesc, actual)
	if err != nil {
		return nil, err
	}
	if f.user != nil {
		p.note(f.user.Reads())
		special, err := Specialize(f.user, m.Args, actual)
		if err != nil {
			return nil, p.locate(err, loc)
		}
		f = &callee{user: special}
	}
	for i := range ordered {
		if ordered[i], err = p.coerce(ordered[i], types[i], builtin.Implicit, loc); err != nil {
			return nil, err
		}
	}
	if f.user != nil {
		outs := f.user.OutArgs()
		switch {
		case len(outs) == 0:
			ret = datum.Type{Desc: ret.Desc, Mod: f.user.Ret.Mod}
		case len(outs) > 1:
			ret = recordOf(outFields(outs))
		}
	}
	if m.Collect > 0 && !collectsAny(f) {
		ordered, err = p.collectVariadic(ordered, m.Collect, loc)
		if err != nil {
			return nil, err
		}
	}
	return &callee{builtin: f.builtin, user: f.user, args: ordered, ret: ret}, nil
}

// collectsAny tells that variadic arguments of any type are passed one by one.
func collectsAny(f *callee) bool {
	if f.builtin == nil {
		return false
	}
	a := f.builtin.Args
	return f.builtin.Variadic && a[len(a)-1] == datum.Any
}

func (p *planner) collectVariadic(args []Expr, n int, loc int32) ([]Expr, error) {
	head, tail := args[:len(args)-n], args[len(args)-n:]
	elem := tail[0].Type()
	if elem.Array == nil {
		return nil, p.errAt(loc, pgerr.UndefinedObject, "could not find array type for data type %s", datum.FormatType(elem))
	}
	arr := &ArrayExpr{typed: typed{datum.T(elem.Array)}, Args: tail}
	return append(head[:len(head):len(head)], arr), nil
}

func (p *planner) fillDefaults(f *callee, missing []int, args []Expr, loc int32) error {
	for _, i := range missing {
		if f.builtin != nil {
			b := f.builtin
			k := i - (len(b.Args) - len(b.DefaultArgs))
			args[i] = NewConst(datum.T(b.Args[i]), b.DefaultArgs[k])
			continue
		}
		in := f.user.InArgs()[i]
		e, err := p.defaultExpr(in.Default, in.Type)
		if err != nil {
			return p.locate(err, loc)
		}
		args[i] = e
	}
	return nil
}

// defaultExpr analyzes the stored text of a default, as an assignment to typ.
func (p *planner) defaultExpr(text string, typ datum.Type) (Expr, error) {
	e, err := p.storedExpr(text, &scope{})
	if err != nil {
		return nil, err
	}
	return p.assign(e, typ, -1)
}

// castCall treats name(x) as a cast where a type of that name exists.
func (p *planner) castCall(parts []string, args []Expr, loc int32) (*callee, error) {
	if len(args) != 1 || len(parts) > 1 && parts[0] != catalog.PgCatalog {
		return nil, nil
	}
	d, ok := builtin.CastFunc(parts[len(parts)-1], args[0].Type())
	if !ok {
		return nil, nil
	}
	e, err := p.coerce(args[0], datum.T(d), builtin.Explicit, loc)
	if err != nil {
		return nil, err
	}
	return &callee{builtin: castMarker, args: []Expr{e}, ret: datum.T(d)}, nil
}

// castMarker stands for the identity over an argument that is cast already.
var castMarker = &builtin.Func{
	Name: "cast", Volatility: builtin.Immutable, Kind: builtin.Scalar,
	Eval: func(_ *builtin.Ctx, a []datum.Datum) (datum.Datum, error) { return a[0], nil },
}

// builtinCall calls a function of pg_catalog by name.
func (p *planner) builtinCall(name string, args []Expr, loc int32) (Expr, error) {
	c, err := p.choose([]string{catalog.PgCatalog, name}, args, nil, false, false, loc)
	if err != nil {
		return nil, err
	}
	return p.finishCall(c, &scope{}, loc)
}

// setInList takes a set-returning function out of a select list.
func (p *planner) setInList(n *pg.FuncCall, c *callee, s *scope) (Expr, error) {
	if s.sets == nil {
		return nil, p.errAt(n.Location, pgerr.FeatureNotSupported, "set-returning functions are not allowed here")
	}
	item := SetItem{Args: c.args, Out: p.newSlot()}
	typ := c.ret
	if c.user != nil {
		item.User = c.user
	} else {
		if err := p.admit(c.builtin, n.Location); err != nil {
			return nil, err
		}
		set, cols, err := c.builtin.BindRows(exprTypes(c.args), c.ret)
		if err != nil {
			return nil, p.locate(err, n.Location)
		}
		item.Set, typ = set, cols[0].Type
		if len(cols) > 1 {
			item.Set, typ = asRecords(set, cols)
		}
	}
	*s.sets = append(*s.sets, item)
	return NewSlot(typ, item.Out, funcName(n)), nil
}

// asRecords makes one record of every row of a function with several columns.
func asRecords(set builtin.SetEval, cols []builtin.Column) (builtin.SetEval, datum.Type) {
	fields := make([]datum.Field, len(cols))
	types := make([]datum.Type, len(cols))
	for i, c := range cols {
		fields[i], types[i] = datum.Field{Name: c.Name, Type: c.Type}, c.Type
	}
	records := func(c *builtin.Ctx, args []datum.Datum, emit func([]datum.Datum) error) error {
		one := make([]datum.Datum, 1)
		return set(c, args, func(row []datum.Datum) error {
			one[0] = datum.MakeRecord(types, row)
			return emit(one)
		})
	}
	return records, recordOf(fields)
}

// recordOf is the type of a row whose fields are known in this statement.
func recordOf(fields []datum.Field) datum.Type {
	return datum.T(datum.NewComposite(datum.Record.OID, datum.Record.Name, fields))
}

func exprTypes(list []Expr) []datum.Type {
	types := make([]datum.Type, len(list))
	for i, e := range list {
		types[i] = e.Type()
	}
	return types
}
