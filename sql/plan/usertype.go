package plan

import (
	"fmt"

	"github.com/tallystick/tallystick/sql/builtin"
	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// CoerceDomain verifies the constraints of a domain, those of the domains below
// it first, and is the value of Arg, which has the base type.
type CoerceDomain struct {
	typed
	Arg     Expr
	NotNull bool
	Schema  string // of the domain
	// Checks read VALUE from slot Value.
	Checks []CheckExpr
	Value  int
}

// ConvertRow makes a row of a composite type from another row, field by field:
// Fields read the given row from slot Source. A null row stays null.
type ConvertRow struct {
	typed
	Arg    Expr
	Source int
	Fields []Expr
}

// coerceDomain converts e to the base type of a domain and then verifies it.
func (p *planner) coerceDomain(e Expr, to datum.Type, ctx builtin.CastContext, loc int32) (Expr, error) {
	if p.opts.Catalog == nil {
		return nil, fmt.Errorf("plan: domain %s needs a catalog", to.Name)
	}
	root := to.Root()
	arg, err := p.coerce(e, root, ctx, loc)
	if err != nil {
		return nil, err
	}
	c := &CoerceDomain{typed: typed{to}, Arg: arg, Value: p.newSlot()}
	value := &scope{rels: []*rel{{visible: true, cols: []column{{name: "value", typ: root, slot: c.Value}}}}, noAggs: "a domain constraint"}
	for d := to; d.Kind == datum.Domain; d = d.Base {
		t, ok := p.opts.Catalog.UserTypeByOID(d.OID)
		if !ok {
			return nil, fmt.Errorf("plan: there is no domain %d", d.OID)
		}
		p.note(t.Reads())
		c.NotNull = c.NotNull || t.NotNull
		if d.OID == to.OID {
			c.Schema = t.Schema
		}
		var checks []CheckExpr
		for _, k := range t.Checks {
			x, err := p.storedExpr(k.Expr, value)
			if err == nil {
				x, err = p.boolean(x, "CHECK", -1)
			}
			if err != nil {
				return nil, err
			}
			checks = append(checks, CheckExpr{k.Name, x})
		}
		c.Checks = append(checks, c.Checks...)
	}
	return c, nil
}

// domainDefault is the default of a domain, or of the nearest one below it that
// has one; "" = none.
func domainDefault(c *catalog.Catalog, t datum.Type) string {
	for ; c != nil && t.Desc != nil && t.Kind == datum.Domain; t = t.Base {
		if d, ok := c.UserTypeByOID(t.OID); ok && d.Default != "" {
			return d.Default
		}
	}
	return ""
}

// namedComposite tells that a type is a composite type of the catalog.
func namedComposite(t datum.Type) bool {
	return t.Desc != nil && t.Kind == datum.Composite && t.OID != datum.RecordOID
}

// coerceRow converts a row to a composite type.
func (p *planner) coerceRow(e Expr, to datum.Type, ctx builtin.CastContext, loc int32) (Expr, error) {
	from := e.Type()
	if from.OID != datum.RecordOID {
		return nil, p.locate(builtin.CoerceError(from, to), loc)
	}
	if row, ok := e.(*Row); ok {
		args := row.Args
		if row.at > 0 {
			loc = row.at - 1
		}
		if row.raw != nil {
			args = row.raw
		}
		fields, err := p.coerceFields(args, from, to, ctx, loc)
		if err != nil {
			return nil, err
		}
		return &Row{typed: typed{to}, Args: fields}, nil
	}
	if len(from.Fields) == 0 {
		return nil, p.locate(builtin.CoerceError(from, to), loc)
	}
	c := &ConvertRow{typed: typed{to}, Arg: e, Source: p.newSlot()}
	args := make([]Expr, len(from.Fields))
	for i, f := range from.Fields {
		args[i] = &Field{typed{f.Type}, NewSlot(from, c.Source, ""), i}
	}
	var err error
	if c.Fields, err = p.coerceFields(args, from, to, ctx, loc); err != nil {
		return nil, err
	}
	return c, nil
}

func (p *planner) coerceFields(args []Expr, from, to datum.Type, ctx builtin.CastContext, loc int32) ([]Expr, error) {
	fail := func(detail string, a ...any) error {
		return p.at(asError(builtin.CoerceError(from, to)).WithDetail(detail, a...), loc)
	}
	switch {
	case len(args) < len(to.Fields):
		return nil, fail("Input has too few columns.")
	case len(args) > len(to.Fields):
		return nil, fail("Input has too many columns.")
	}
	out := make([]Expr, len(args))
	for i, f := range to.Fields {
		have := args[i].Type()
		if have.Desc != datum.Unknown && !have.Same(f.Type) && !builtin.CanCoerce(have.Desc, f.Type.Desc, ctx) {
			return nil, fail("Cannot cast type %s to %s in column %d.", datum.FormatType(datum.T(have.Desc)), datum.FormatType(datum.T(f.Type.Desc)), i+1)
		}
		var err error
		if out[i], err = p.coerce(args[i], f.Type, ctx, loc); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// checkedElements tells that the elements of an array type are domains, whose
// constraints a cast of the array has to verify.
func checkedElements(t datum.Type) bool {
	return t.IsArray() && t.Elem.Kind == datum.Domain
}

// coerceElements converts an array to an array of domains.
func (p *planner) coerceElements(e Expr, to datum.Type, ctx builtin.CastContext, loc int32) (Expr, error) {
	base := datum.T(to.Elem).Root()
	if base.Array == nil {
		return nil, p.at(pgerr.NotBuilt("arrays of domain %s are not supported", to.Elem.Name), loc)
	}
	arg, err := p.coerce(e, datum.Type{Desc: base.Array, Mod: base.Mod}, ctx, loc)
	if err != nil {
		return nil, err
	}
	return p.applyCast(arg, &builtin.Cast{Source: arg.Type().Desc, Target: to.Desc, Method: builtin.ByElement}, to, ctx)
}

// domainValue is what a column of a domain gets if nothing is given.
func (p *planner) domainValue(t datum.Type) (Expr, error) {
	if text := domainDefault(p.opts.Catalog, t); text != "" {
		return p.defaultExpr(text, t)
	}
	return p.coerce(NewConst(datum.T(datum.Unknown), datum.Null), t, builtin.Assignment, -1)
}
