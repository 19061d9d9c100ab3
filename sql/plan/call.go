package plan

import (
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// ContractCall is a statement that consists of one call of a user's function
// or procedure: SELECT f(...), SELECT * FROM f(...), CALL p(...).
type ContractCall struct {
	Func *catalog.Func
	// Args are free of columns; they are computed by whoever signs the call.
	Args []Expr
	// Slots, Subqueries and CTEs are the frame that Args need.
	Slots, Subqueries, CTEs int
	// Record tells that the result columns of the function are to be shown as
	// one record (SELECT f(...) of a function with several OUT arguments).
	Record bool
	// Columns is the result; nil for a procedure without INOUT arguments.
	Columns []Column
	Params  []datum.Type
}

// AsCall returns the call that the plan consists of, or nil if it is something
// else. Whether the function is volatile is the caller's question.
func (pl *Plan) AsCall() *ContractCall {
	f, args, record := soleCall(pl.Root)
	if f == nil {
		return nil
	}
	return &ContractCall{
		Func: f, Args: args, Slots: pl.Slots, Subqueries: pl.Subqueries, CTEs: pl.CTEs,
		Record: record && (len(f.OutArgs()) > 1 || len(f.OutArgs()) == 0 && len(f.Ret.Root().Fields) > 0), Columns: pl.Columns, Params: pl.Params,
	}
}

func soleCall(n Node) (*catalog.Func, []Expr, bool) {
	switch n := n.(type) {
	case *Project:
		if r, ok := n.Child.(*Result); ok && r.Cond == nil && len(n.Exprs) == 1 {
			if c, ok := n.Exprs[0].(*UserCall); ok {
				return c.Func, c.Args, true
			}
		}
	case *ProjectSet:
		if r, ok := n.Child.(*Result); ok && r.Cond == nil && len(n.Sets) == 1 && n.Sets[0].User != nil {
			return n.Sets[0].User, n.Sets[0].Args, true
		}
	case *FuncScan:
		if n.User != nil && n.Filter == nil && n.Ordinality < 0 {
			return n.User, n.Args, false
		}
	}
	return nil, nil, false
}

// VolatileCall returns a volatile function of a user that the plan calls
// somewhere, or nil; one of schema private only if there is no other.
func (pl *Plan) VolatileCall() *catalog.Func {
	var found *catalog.Func
	pl.eachVolatile(func(f *catalog.Func) {
		if found == nil || found.Local() {
			found = f
		}
	})
	return found
}

// CallsVolatile tells that the plan calls a volatile function of a user that
// satisfies a condition.
func (pl *Plan) CallsVolatile(is func(*catalog.Func) bool) bool {
	found := false
	pl.eachVolatile(func(f *catalog.Func) { found = found || is(f) })
	return found
}

func (pl *Plan) eachVolatile(visit func(*catalog.Func)) {
	v := volatileVisitor(visit)
	walkNode(pl.Root, v.expr)
	eachNode(pl.Root, func(n Node) { nodeCalls(n, v.see) })
}

// VolatileArgument returns a volatile function of a user that the arguments
// call, or nil; one of schema private only if there is no other.
func (c *ContractCall) VolatileArgument() *catalog.Func {
	var found *catalog.Func
	v := volatileVisitor(func(f *catalog.Func) {
		if found == nil || found.Local() {
			found = f
		}
	})
	for _, a := range c.Args {
		walk(a, v.expr)
	}
	return found
}

// volatileVisitor is called with every volatile function.
type volatileVisitor func(*catalog.Func)

func (v volatileVisitor) see(f *catalog.Func) {
	if f.Volatility == "v" {
		v(f)
	}
}

func (v volatileVisitor) expr(e Expr) {
	switch e := e.(type) {
	case *UserCall:
		v.see(e.Func)
	case *Subquery:
		eachNode(e.Plan, func(n Node) { nodeCalls(n, v.see) })
	}
}

func eachNode(n Node, f func(Node)) {
	f(n)
	for _, c := range inputs(n) {
		eachNode(c, f)
	}
}

func nodeCalls(n Node, see func(*catalog.Func)) {
	switch n := n.(type) {
	case *FuncScan:
		if n.User != nil {
			see(n.User)
		}
		for _, part := range n.Parts {
			nodeCalls(part, see)
		}
	case *ProjectSet:
		for _, s := range n.Sets {
			if s.User != nil {
				see(s.User)
			}
		}
	}
}

// CallStatement analyzes CALL.
func CallStatement(n *pg.CallStmt, opts *Options) (*ContractCall, error) {
	p := newPlanner(opts)
	s := &scope{noAggs: "CALL arguments"}
	c, err := p.resolveCall(n.Funccall, s, "CALL")
	if err != nil {
		if pgerr.CodeOf(err) == pgerr.UndefinedFunction {
			if e, ok := pgerr.From(err); ok {
				e.Message = "procedure" + e.Message[len("function"):]
				e.Hint = "No procedure matches the given name and argument types. You might need to add explicit type casts."
			}
		}
		return nil, err
	}
	if c.user == nil || c.user.Kind != catalog.Procedure {
		name := funcName(n.Funccall)
		return nil, p.errAt(n.Funccall.Location, pgerr.WrongObjectType, "%s is not a procedure", name).
			WithHint("To call a function, use SELECT.")
	}
	out := &ContractCall{Func: c.user, Args: c.args, Slots: p.slots, Subqueries: p.subqueries, CTEs: p.ctes}
	for _, a := range c.user.OutArgs() {
		out.Columns = append(out.Columns, Column{Name: a.Name, Type: a.Type})
	}
	if out.Params, err = p.paramTypes(); err != nil {
		return nil, err
	}
	return out, nil
}

// ResultColumns are the columns of the rows that calling f gives.
func ResultColumns(f *catalog.Func) []Column {
	if f.Kind == catalog.Procedure && len(f.OutArgs()) == 0 {
		return nil
	}
	var out []Column
	for _, c := range userColumns(f) {
		out = append(out, Column{Name: c.name, Type: c.typ})
	}
	return out
}

// ReadsVirtual tells whether the plan reads a computed relation.
func (pl *Plan) ReadsVirtual() bool {
	found := false
	see := func(n Node) {
		if _, ok := n.(*VirtualScan); ok {
			found = true
		}
	}
	eachNode(pl.Root, see)
	walkNode(pl.Root, func(e Expr) {
		if s, ok := e.(*Subquery); ok {
			eachNode(s.Plan, see)
		}
	})
	return found
}
