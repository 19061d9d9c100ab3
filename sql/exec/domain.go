package exec

import (
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
	"github.com/tallystick/tallystick/sql/plan"
)

// coerceDomain verifies the constraints of a domain.
func (c *compiler) coerceDomain(e *plan.CoerceDomain) (evalFunc, error) {
	arg, err := c.expr(e.Arg)
	if err != nil {
		return nil, err
	}
	var checks []checkProg
	for _, k := range e.Checks {
		ev, err := c.expr(k.Expr)
		if err != nil {
			return nil, err
		}
		checks = append(checks, checkProg{k.Name, ev})
	}
	name, schema, notNull, slot := e.Type().Name, e.Schema, e.NotNull, e.Value
	shown := datum.FormatType(datum.T(e.Type().Desc))
	return func(f *frame) (datum.Datum, error) {
		d, err := arg(f)
		if err != nil {
			return datum.Null, err
		}
		if notNull && d.IsNull() {
			e := pgerr.New(pgerr.NotNullViolation, "domain %s does not allow null values", shown)
			e.DataType, e.Schema = name, schema
			return datum.Null, e
		}
		f.slots[slot] = d
		for i := range checks {
			ok, err := checks[i].eval(f)
			if err != nil {
				return datum.Null, err
			}
			if !ok.IsNull() && !ok.Bool() {
				e := pgerr.New(pgerr.CheckViolation, "value for domain %s violates check constraint \"%s\"", shown, checks[i].name)
				e.DataType, e.Schema, e.Constraint = name, schema, checks[i].name
				return datum.Null, e
			}
		}
		return d, nil
	}, nil
}

// convertRow makes a row of a composite type from another row.
func (c *compiler) convertRow(e *plan.ConvertRow) (evalFunc, error) {
	arg, err := c.expr(e.Arg)
	if err != nil {
		return nil, err
	}
	fields, err := c.exprs(e.Fields)
	if err != nil {
		return nil, err
	}
	types := make([]datum.Type, len(fields))
	for i := range types {
		types[i] = e.Fields[i].Type()
	}
	base, n, slot := c.scratch(len(fields)), len(fields), e.Source
	return func(f *frame) (datum.Datum, error) {
		d, err := arg(f)
		if err != nil || d.IsNull() {
			return datum.Null, err
		}
		f.slots[slot] = d
		room := f.args[base : base+n : base+n]
		if _, err := evalArgs(f, fields, room); err != nil {
			return datum.Null, err
		}
		return datum.MakeRecord(types, room), nil
	}, nil
}
