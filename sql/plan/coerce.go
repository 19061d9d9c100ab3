package plan

import (
	"github.com/tallystick/tallystick/sql/builtin"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// format is how literals are read.
func (p *planner) format() *datum.Format {
	if p.opts.Format != nil {
		return p.opts.Format
	}
	return &datum.ContractFormat
}

// coerce converts e to a type in a context; the error is 42846, or 42804 with
// the wording of the caller. loc is for the position only.
func (p *planner) coerce(e Expr, to datum.Type, ctx builtin.CastContext, loc int32) (Expr, error) {
	from := e.Type()
	explicit := ctx == builtin.Explicit
	switch {
	case from.Same(to) && (to.Mod < 0 || from.Mod == to.Mod):
		return e, nil
	case to.Kind == datum.Domain && !from.Same(to):
		return p.coerceDomain(e, to, ctx, loc)
	case checkedElements(to) && !from.Same(to):
		return p.coerceElements(e, to, ctx, loc)
	case namedComposite(to) && !from.Same(to) && from.Desc != datum.Unknown && from.Root().Desc != to.Desc && from.Category != 'S':
		return p.coerceRow(e, to, ctx, loc)
	case to.Desc == datum.Any || to.Desc == datum.Unknown || to.Kind == datum.Pseudo && !from.Same(to) && from.Desc != datum.Unknown:
		return e, nil
	case from.Desc == datum.Unknown:
		return p.coerceUnknown(e, to, explicit, loc)
	case from.Same(to):
		return modified(e, to, explicit), nil
	}
	cast, ok := builtin.FindCast(from.Desc, to.Desc, ctx)
	if !ok {
		return nil, p.locate(builtin.CoerceError(from, to), loc)
	}
	out, err := p.applyCast(e, &cast, to, ctx)
	if err != nil {
		return nil, p.locate(err, loc)
	}
	return out, nil
}

// applyCast builds the conversion of one cast, and its type modifier.
func (p *planner) applyCast(e Expr, cast *builtin.Cast, to datum.Type, ctx builtin.CastContext) (Expr, error) {
	plain := datum.T(to.Desc)
	var out Expr
	switch cast.Method {
	case builtin.ByFunc:
		eval, err := cast.Func.BindEval([]datum.Type{e.Type()}, plain)
		if err != nil {
			return nil, err
		}
		out = p.fold(&Call{typed: typed{plain}, Func: cast.Func, Eval: eval, Args: []Expr{e}})
	case builtin.ByIO:
		out = &CoerceIO{typed: typed{plain}, Arg: e}
	case builtin.ByElement:
		slot := p.newSlot()
		elem, err := p.coerce(NewSlot(datum.T(e.Type().Elem), slot, ""), datum.Type{Desc: to.Elem, Mod: to.Mod}, ctx, -1)
		if err != nil {
			return nil, err
		}
		return &CoerceArray{typed: typed{to}, Arg: e, Elem: elem, ElemSlot: slot}, nil
	default:
		out = &Relabel{typed: typed{plain}, Arg: e}
	}
	return modified(out, to, ctx == builtin.Explicit), nil
}

// modified applies a type modifier.
func modified(e Expr, to datum.Type, explicit bool) Expr {
	if to.Mod < 0 || to.Desc.Coerce == nil {
		if to.Mod < 0 || e.Type().Mod == to.Mod {
			return e
		}
		return &Relabel{typed: typed{to}, Arg: e}
	}
	return &CoerceMod{typed: typed{to}, Arg: e, Explicit: explicit}
}

// coerceUnknown gives a literal or an untyped parameter its type.
func (p *planner) coerceUnknown(e Expr, to datum.Type, explicit bool, loc int32) (Expr, error) {
	switch e := e.(type) {
	case *Param:
		if p.opts.Variable == nil || e.typ.Desc == datum.Unknown {
			e.typ = datum.T(to.Desc)
			return modified(e, to, explicit), nil
		}
	case *Const:
		if e.Value.IsNull() {
			return NewConst(to, datum.Null), nil
		}
		if e.at > 0 {
			loc = e.at - 1
		}
		mod := int32(-1)
		if to.Desc.Coerce == nil || to.Desc == datum.Interval {
			mod = to.Mod
		}
		v, err := to.Parse(e.Value.Str(), mod, p.format())
		if err != nil {
			return nil, p.locate(err, loc)
		}
		if to.Mod >= 0 && to.Desc.Coerce != nil {
			if v, err = to.Coerce(v, to.Mod, explicit); err != nil {
				return nil, p.locate(err, loc)
			}
		}
		return NewConst(to, v), nil
	}
	out := Expr(&CoerceIO{typed: typed{datum.T(to.Desc)}, Arg: e})
	return modified(out, to, explicit), nil
}

// assign converts e for storing into a column or variable: 42804 if no
// assignment cast exists.
func (p *planner) assign(e Expr, to datum.Type, loc int32) (Expr, error) {
	from := e.Type()
	if from.Desc != datum.Unknown && !from.Same(to) && !builtin.CanCoerce(from.Desc, to.Desc, builtin.Assignment) {
		return nil, p.locate(builtin.CoerceError(from, to), loc)
	}
	return p.coerce(e, to, builtin.Assignment, loc)
}

// assignColumn is assign with PostgreSQL's message about the column.
func (p *planner) assignColumn(e Expr, to datum.Type, column string, loc int32) (Expr, error) {
	from := e.Type()
	if from.Desc != datum.Unknown && !from.Same(to) && !builtin.CanCoerce(from.Desc, to.Desc, builtin.Assignment) {
		return nil, p.errAt(loc, pgerr.DatatypeMismatch, "column \"%s\" is of type %s but expression is of type %s",
			column, datum.FormatType(to), datum.FormatType(from)).
			WithHint("You will need to rewrite or cast the expression.")
	}
	return p.coerce(e, to, builtin.Assignment, loc)
}

// boolean coerces a condition; clause names it in the error ("WHERE").
func (p *planner) boolean(e Expr, clause string, loc int32) (Expr, error) {
	t := e.Type()
	if t.Desc != datum.Unknown && t.Root().Desc != datum.BoolType {
		return nil, p.errAt(loc, pgerr.DatatypeMismatch, "argument of %s must be type boolean, not type %s", clause, datum.FormatType(t))
	}
	return p.coerce(e, datum.T(datum.BoolType), builtin.Implicit, loc)
}

// unify converts all expressions, which stand at locs, to their common type.
func (p *planner) unify(list []Expr, construct string, locs []int32) (datum.Type, error) {
	types := exprTypes(list)
	t, err := builtin.CommonType(types, construct)
	if err != nil {
		return t, p.locate(err, locs[culprit(types)])
	}
	for i := range list {
		if list[i], err = p.coerce(list[i], t, builtin.Implicit, locs[i]); err != nil {
			return t, err
		}
	}
	return t, nil
}

// culprit is the first of types that has no common type with those before it.
func culprit(types []datum.Type) int {
	for i := range types {
		if _, err := builtin.CommonType(types[:i+1], ""); err != nil {
			return i
		}
	}
	return len(types) - 1
}

// fold computes a call at plan time: a strict one with a null constant is null,
// an immutable one of constants has its value. A call that fails is left to fail
// when it is executed. One that mentions columns stays while the statement is
// analyzed, which asks which they are: see nullCondition.
func (p *planner) fold(c *Call) Expr {
	if c.Func.RetSet || c.Type().Kind == datum.Pseudo {
		return c
	}
	args := make([]datum.Datum, len(c.Args))
	constant, null, columns := c.Func.Volatility == builtin.Immutable, false, false
	for i, a := range c.Args {
		k, ok := a.(*Const)
		if !ok {
			constant, columns = false, columns || mentionsSlot(a)
			continue
		}
		null = null || k.Value.IsNull()
		args[i] = k.Value
	}
	if null && !columns && c.Func.Strict {
		return NewConst(c.typ, datum.Null)
	}
	if !constant {
		return c
	}
	v, err := c.Eval(&builtin.Ctx{Format: p.format()}, args)
	if err != nil {
		return c
	}
	return NewConst(c.typ, v)
}

func mentionsSlot(e Expr) bool {
	found := false
	walk(e, func(x Expr) {
		_, ok := x.(*Slot)
		found = found || ok
	})
	return found
}

// nullCondition tells that a condition is null whatever the row: a strict
// function of a null constant. Nothing needs to be read to know that.
func nullCondition(e Expr) bool {
	c, ok := e.(*Call)
	if !ok || !c.Func.Strict {
		return false
	}
	for _, a := range c.Args {
		if k, ok := a.(*Const); ok && k.Value.IsNull() {
			return true
		}
	}
	return false
}
