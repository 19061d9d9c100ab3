package exec

import (
	"fmt"

	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/plan"
)

func (c *compiler) rowExpr(e *plan.Row) (evalFunc, error) {
	args, err := c.exprs(e.Args)
	if err != nil {
		return nil, err
	}
	types := typesOf(e.Args)
	if t := e.Type().Root(); t.Desc != nil && t.Kind == datum.Composite && len(t.Fields) == len(types) {
		types = make([]datum.Type, len(t.Fields))
		for i, field := range t.Fields {
			types[i] = field.Type
		}
	}
	base, n := c.scratch(len(args)), len(args)
	return func(f *frame) (datum.Datum, error) {
		room := f.args[base : base+n : base+n]
		if _, err := evalArgs(f, args, room); err != nil {
			return datum.Null, err
		}
		if err := f.spend(1); err != nil {
			return datum.Null, err
		}
		return datum.MakeRecord(types, room), nil
	}, nil
}

func (c *compiler) field(e *plan.Field) (evalFunc, error) {
	arg, err := c.expr(e.Arg)
	if err != nil {
		return nil, err
	}
	i := e.Index
	return func(f *frame) (datum.Datum, error) {
		d, err := arg(f)
		if err != nil || d.IsNull() {
			return datum.Null, err
		}
		_, vals := datum.RecordFields(d)
		if i >= len(vals) {
			return datum.Null, nil
		}
		return vals[i], nil
	}, nil
}

// rowCompare compares row values. = and <> look for a pair that differs and are
// null if none does but one is null; the others are decided by the first pair
// that differs or is null.
func (c *compiler) rowCompare(e *plan.RowCompare) (evalFunc, error) {
	op, ok := map[string]intOp{"=": opEq, "<>": opNe, "<": opLt, "<=": opLe, ">": opGt, ">=": opGe}[e.Op]
	if !ok || len(e.Left) != len(e.Right) {
		return nil, fmt.Errorf("exec: row comparison %s of %d and %d columns", e.Op, len(e.Left), len(e.Right))
	}
	left, err := c.exprs(e.Left)
	if err != nil {
		return nil, err
	}
	right, err := c.exprs(e.Right)
	if err != nil {
		return nil, err
	}
	cmps := make([]func(a, b datum.Datum) int, len(left))
	for i := range left {
		if cmps[i], err = compareOf(e.Left[i].Type()); err != nil {
			return nil, err
		}
	}
	equality := op == opEq || op == opNe
	return func(f *frame) (datum.Datum, error) {
		if err := f.spend(1); err != nil {
			return datum.Null, err
		}
		null := false
		for i := range left {
			x, err := left[i](f)
			if err != nil {
				return datum.Null, err
			}
			y, err := right[i](f)
			if err != nil {
				return datum.Null, err
			}
			if x.IsNull() || y.IsNull() {
				if !equality {
					return datum.Null, nil
				}
				null = true
				continue
			}
			if r := cmps[i](x, y); r != 0 {
				return datum.Bool(op.holds(r)), nil
			}
		}
		if null {
			return datum.Null, nil
		}
		return datum.Bool(op.holds(0)), nil
	}, nil
}
