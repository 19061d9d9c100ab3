package exec

import (
	"fmt"

	"github.com/tallystick/tallystick/sql/builtin"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
	"github.com/tallystick/tallystick/sql/plan"
)

// evalFunc computes an expression in a frame.
type evalFunc func(f *frame) (datum.Datum, error)

// expr compiles an expression.
func (c *compiler) expr(e plan.Expr) (evalFunc, error) {
	switch e := e.(type) {
	case *plan.Const:
		v := e.Value
		return func(*frame) (datum.Datum, error) { return v, nil }, nil
	case *plan.Slot:
		i := e.Index
		c.reads.add(i)
		return func(f *frame) (datum.Datum, error) { return f.slots[i], nil }, nil
	case *plan.Param:
		return param(e.Index), nil
	case *plan.Call:
		return c.call(e)
	case *plan.UserCall:
		return c.userCall(e)
	case *plan.BoolOp:
		return c.boolOp(e)
	case *plan.IsNull:
		return c.isNull(e)
	case *plan.BoolTest:
		return c.boolTest(e)
	case *plan.Distinct:
		return c.distinct(e)
	case *plan.Case:
		return c.caseExpr(e)
	case *plan.Coalesce:
		return c.coalesce(e)
	case *plan.MinMax:
		return c.minMax(e)
	case *plan.NullIf:
		return c.nullIf(e)
	case *plan.CoerceIO:
		return c.coerceIO(e)
	case *plan.Relabel:
		return c.expr(e.Arg)
	case *plan.CoerceMod:
		return c.coerceMod(e)
	case *plan.CoerceArray:
		return c.coerceArray(e)
	case *plan.ArrayExpr:
		return c.arrayExpr(e)
	case *plan.AnyAll:
		return c.anyAll(e)
	case *plan.Subscript:
		return c.subscript(e)
	case *plan.Row:
		return c.rowExpr(e)
	case *plan.Field:
		return c.field(e)
	case *plan.SetElement:
		return c.setElement(e)
	case *plan.SetField:
		return c.setField(e)
	case *plan.CoerceDomain:
		return c.coerceDomain(e)
	case *plan.ConvertRow:
		return c.convertRow(e)
	case *plan.RoleTest:
		return c.roleTest(e), nil
	case *plan.RowCompare:
		return c.rowCompare(e)
	case *plan.Subquery:
		return c.subquery(e)
	}
	return nil, fmt.Errorf("exec: expression %T is unknown", e)
}

func param(i int) evalFunc {
	return func(f *frame) (datum.Datum, error) {
		if i < len(f.params) {
			return f.params[i], nil
		}
		return datum.Null, pgerr.New(pgerr.UndefinedParameter, "there is no parameter $%d", i+1)
	}
}

func (c *compiler) isNull(e *plan.IsNull) (evalFunc, error) {
	if k := e.Arg.Type().Root(); k.Desc != nil && (k.Kind == datum.Composite || k.Desc == datum.Record) {
		return c.isNullRow(e)
	}
	arg, err := c.expr(e.Arg)
	if err != nil {
		return nil, err
	}
	not := e.Not
	if s, ok := e.Arg.(*plan.Slot); ok {
		i := s.Index
		return func(f *frame) (datum.Datum, error) { return datum.Bool(f.slots[i].IsNull() != not), nil }, nil
	}
	return func(f *frame) (datum.Datum, error) {
		d, err := arg(f)
		if err != nil {
			return datum.Null, err
		}
		return datum.Bool(d.IsNull() != not), nil
	}, nil
}

// isNullRow is IS [NOT] NULL of a row: IS NULL if all fields are null, IS NOT
// NULL if none is.
func (c *compiler) isNullRow(e *plan.IsNull) (evalFunc, error) {
	arg, err := c.expr(e.Arg)
	if err != nil {
		return nil, err
	}
	not := e.Not
	return func(f *frame) (datum.Datum, error) {
		d, err := arg(f)
		if err != nil {
			return datum.Null, err
		}
		if d.IsNull() {
			return datum.Bool(!not), nil
		}
		_, vals := datum.RecordFields(d)
		for _, v := range vals {
			if v.IsNull() == not {
				return datum.Bool(false), nil
			}
		}
		return datum.Bool(true), nil
	}, nil
}

func (c *compiler) boolTest(e *plan.BoolTest) (evalFunc, error) {
	arg, err := c.expr(e.Arg)
	if err != nil {
		return nil, err
	}
	want, not := e.Want, e.Not
	return func(f *frame) (datum.Datum, error) {
		d, err := arg(f)
		if err != nil {
			return datum.Null, err
		}
		same := d.IsNull() && want.IsNull() ||
			!d.IsNull() && !want.IsNull() && d.Bool() == want.Bool()
		return datum.Bool(same != not), nil
	}, nil
}

// boolOp is three-valued logic. Arguments are computed from left to right until
// the result is certain.
func (c *compiler) boolOp(e *plan.BoolOp) (evalFunc, error) {
	args, err := c.exprs(e.Args)
	if err != nil {
		return nil, err
	}
	switch e.Op {
	case plan.Not:
		arg := args[0]
		return func(f *frame) (datum.Datum, error) {
			d, err := arg(f)
			if err != nil || d.IsNull() {
				return datum.Null, err
			}
			return datum.Bool(!d.Bool()), nil
		}, nil
	case plan.And:
		return logic(args, false), nil
	case plan.Or:
		return logic(args, true), nil
	}
	return nil, fmt.Errorf("exec: boolean operation %d is unknown", e.Op)
}

// logic is OR if decisive is true, else AND.
func logic(args []evalFunc, decisive bool) evalFunc {
	if len(args) == 2 {
		a, b := args[0], args[1]
		return func(f *frame) (datum.Datum, error) {
			x, err := a(f)
			if err != nil {
				return datum.Null, err
			}
			if !x.IsNull() && x.Bool() == decisive {
				return x, nil
			}
			y, err := b(f)
			if err != nil {
				return datum.Null, err
			}
			if x.IsNull() && !(!y.IsNull() && y.Bool() == decisive) {
				return datum.Null, nil
			}
			return y, nil
		}
	}
	return func(f *frame) (datum.Datum, error) {
		result := datum.Bool(!decisive)
		for _, arg := range args {
			d, err := arg(f)
			if err != nil {
				return datum.Null, err
			}
			if d.IsNull() {
				result = datum.Null
			} else if d.Bool() == decisive {
				return d, nil
			}
		}
		return result, nil
	}
}

// equality calls an equality operator on two values that are not null.
func (c *compiler) equality(eval builtin.Eval) func(f *frame, x, y datum.Datum) (datum.Datum, error) {
	base := c.scratch(2)
	return func(f *frame, x, y datum.Datum) (datum.Datum, error) {
		if err := f.spend(1); err != nil {
			return datum.Null, err
		}
		args := f.args[base : base+2 : base+2]
		args[0], args[1] = x, y
		return eval(&f.env.Ctx, args)
	}
}

func (c *compiler) distinct(e *plan.Distinct) (evalFunc, error) {
	args, err := c.exprs([]plan.Expr{e.Left, e.Right})
	if err != nil {
		return nil, err
	}
	left, right, not := args[0], args[1], e.Not
	equal := c.equality(e.Equal)
	return func(f *frame) (datum.Datum, error) {
		x, err := left(f)
		if err != nil {
			return datum.Null, err
		}
		y, err := right(f)
		if err != nil {
			return datum.Null, err
		}
		if x.IsNull() || y.IsNull() {
			return datum.Bool((x.IsNull() != y.IsNull()) != not), nil
		}
		d, err := equal(f, x, y)
		if err != nil {
			return datum.Null, err
		}
		return datum.Bool(d.IsTrue() == not), nil
	}, nil
}

func (c *compiler) nullIf(e *plan.NullIf) (evalFunc, error) {
	args, err := c.exprs([]plan.Expr{e.Left, e.Right, e.Value})
	if err != nil {
		return nil, err
	}
	left, right, value := args[0], args[1], args[2]
	equal := c.equality(e.Equal)
	return func(f *frame) (datum.Datum, error) {
		x, err := left(f)
		if err != nil {
			return datum.Null, err
		}
		y, err := right(f)
		if err != nil {
			return datum.Null, err
		}
		if !x.IsNull() && !y.IsNull() {
			d, err := equal(f, x, y)
			if err != nil || d.IsTrue() {
				return datum.Null, err
			}
		}
		return value(f)
	}, nil
}

func (c *compiler) caseExpr(e *plan.Case) (evalFunc, error) {
	arg, err := c.optional(e.Arg)
	if err != nil {
		return nil, err
	}
	conds, results := make([]evalFunc, len(e.Whens)), make([]evalFunc, len(e.Whens))
	for i, w := range e.Whens {
		if conds[i], err = c.expr(w.Cond); err != nil {
			return nil, err
		}
		if results[i], err = c.expr(w.Result); err != nil {
			return nil, err
		}
	}
	otherwise, err := c.optional(e.Else)
	if err != nil {
		return nil, err
	}
	slot := e.ArgSlot
	return func(f *frame) (datum.Datum, error) {
		if arg != nil {
			d, err := arg(f)
			if err != nil {
				return datum.Null, err
			}
			f.slots[slot] = d
		}
		for i, cond := range conds {
			d, err := cond(f)
			if err != nil {
				return datum.Null, err
			}
			if d.IsTrue() {
				return results[i](f)
			}
		}
		if otherwise == nil {
			return datum.Null, nil
		}
		return otherwise(f)
	}, nil
}

func (c *compiler) coalesce(e *plan.Coalesce) (evalFunc, error) {
	args, err := c.exprs(e.Args)
	if err != nil {
		return nil, err
	}
	return func(f *frame) (datum.Datum, error) {
		for _, arg := range args {
			d, err := arg(f)
			if err != nil || !d.IsNull() {
				return d, err
			}
		}
		return datum.Null, nil
	}, nil
}

func (c *compiler) minMax(e *plan.MinMax) (evalFunc, error) {
	args, err := c.exprs(e.Args)
	if err != nil {
		return nil, err
	}
	cmp, err := compareOf(e.Type())
	if err != nil {
		return nil, err
	}
	sign := 1
	if e.Least {
		sign = -1
	}
	return func(f *frame) (datum.Datum, error) {
		best := datum.Null
		for _, arg := range args {
			d, err := arg(f)
			if err != nil {
				return datum.Null, err
			}
			if !d.IsNull() && (best.IsNull() || sign*cmp(d, best) > 0) {
				best = d
			}
		}
		return best, nil
	}, nil
}

func (c *compiler) coerceIO(e *plan.CoerceIO) (evalFunc, error) {
	arg, err := c.expr(e.Arg)
	if err != nil {
		return nil, err
	}
	from, to := e.Arg.Type(), e.Type()
	// The bytes of a string are its text form; char(n) ends in blanks there.
	isText := from.Desc != nil && (from.Category == 'S' || from.Desc == datum.Unknown || from.Desc == datum.CString) && !from.Fixed
	return func(f *frame) (datum.Datum, error) {
		d, err := arg(f)
		if err != nil || d.IsNull() {
			return datum.Null, err
		}
		if err := f.spend(1); err != nil {
			return datum.Null, err
		}
		format := f.env.Ctx.Format
		var s string
		if isText {
			s = d.Str()
		} else {
			var room [64]byte
			s = string(from.Append(room[:0], d, format))
		}
		return to.Parse(s, to.Mod, format)
	}, nil
}

func (c *compiler) coerceMod(e *plan.CoerceMod) (evalFunc, error) {
	arg, err := c.expr(e.Arg)
	if err != nil {
		return nil, err
	}
	typ, explicit := e.Type(), e.Explicit
	if typ.Coerce == nil {
		return arg, nil
	}
	coerce, mod := typ.Coerce, typ.Mod
	return func(f *frame) (datum.Datum, error) {
		d, err := arg(f)
		if err != nil || d.IsNull() {
			return datum.Null, err
		}
		return coerce(d, mod, explicit)
	}, nil
}
