package plan

import (
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/tallystick/tallystick/sql/builtin"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/parse"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// typeName resolves a type in a statement.
func (p *planner) typeName(tn *pg.TypeName) (datum.Type, error) {
	t, err := ResolveType(tn)
	if err != nil {
		return t, p.locate(err, tn.Location)
	}
	return t, nil
}

// ResolveType finds the type that a type name of the grammar means: 42704 if
// there is none.
func ResolveType(tn *pg.TypeName) (datum.Type, error) {
	parts, _ := nameParts(tn.Names)
	if tn.PctType {
		return datum.Type{}, pgerr.NotBuilt("%%TYPE is not supported here")
	}
	if tn.Setof {
		return datum.Type{}, pgerr.New(pgerr.InvalidFunctionDefinition, "SETOF is only allowed in the result of a function")
	}
	name := parts[len(parts)-1]
	d, ok := builtin.TypeByName(name)
	if len(parts) > 1 && parts[0] != "pg_catalog" {
		ok = false
	}
	if !ok {
		switch name {
		case "serial", "serial4", "bigserial", "serial8", "smallserial", "serial2":
			return datum.Type{}, pgerr.New(pgerr.FeatureNotSupported, "type %s needs a sequence, and sequences exist in schema private only", name).
				WithHint("Let the caller pass the key, or derive it from tx_uuid().")
		}
		return datum.Type{}, pgerr.New(pgerr.UndefinedObject, "type \"%s\" does not exist", strings.Join(parts, "."))
	}
	mod, err := typeModifier(d, name, tn)
	if err != nil {
		return datum.Type{}, err
	}
	if len(tn.ArrayBounds) > 0 {
		if d.Array == nil {
			return datum.Type{}, pgerr.New(pgerr.UndefinedObject, "could not find array type for data type %s", datum.FormatType(datum.T(d)))
		}
		d = d.Array
	}
	return datum.Type{Desc: d, Mod: mod}, nil
}

// typeModifier computes what PostgreSQL stores for (n) or (p, s).
func typeModifier(d *datum.Desc, name string, tn *pg.TypeName) (int32, error) {
	var nums []int32
	for _, m := range tn.Typmods {
		c := m.GetAConst()
		if c == nil {
			return -1, pgerr.New(pgerr.InvalidParameterValue, "type modifiers must be simple constants or identifiers")
		}
		switch v := c.Val.(type) {
		case *pg.A_Const_Ival:
			nums = append(nums, v.Ival.Ival)
		case nil:
			nums = append(nums, 0)
		default:
			return -1, pgerr.New(pgerr.InvalidTextRepresentation, "invalid type modifier")
		}
	}
	if len(nums) == 0 {
		return -1, nil
	}
	switch d {
	case datum.VarChar, datum.BpChar:
		if nums[0] < 1 {
			return -1, pgerr.New(pgerr.InvalidParameterValue, "length for type %s must be at least 1", displayName(d))
		}
		if nums[0] > 10485760 {
			return -1, pgerr.New(pgerr.InvalidParameterValue, "length for type %s cannot exceed 10485760", displayName(d))
		}
		return nums[0] + 4, nil
	case datum.Numeric:
		return numericModifier(nums)
	case datum.Timestamp, datum.TimestampTZ, datum.Time, datum.TimeTZ:
		return min(nums[0], 6), nil
	case datum.Interval:
		if len(nums) > 1 {
			return nums[0]<<16 | min(nums[1], 6), nil
		}
		return nums[0]<<16 | 0xffff, nil
	}
	return -1, pgerr.New(pgerr.SyntaxError, "type modifier is not allowed for type \"%s\"", name)
}

func displayName(d *datum.Desc) string {
	if d == datum.BpChar {
		return "char"
	}
	return "varchar"
}

func numericModifier(nums []int32) (int32, error) {
	if nums[0] < 1 || nums[0] > 1000 {
		return -1, pgerr.New(pgerr.InvalidParameterValue, "NUMERIC precision %d must be between 1 and 1000", nums[0])
	}
	scale := int32(0)
	if len(nums) > 1 {
		scale = nums[1]
	}
	if scale < -1000 || scale > 1000 {
		return -1, pgerr.New(pgerr.InvalidParameterValue, "NUMERIC scale %d must be between -1000 and 1000", scale)
	}
	return (nums[0]<<16 | scale&0x7ff) + 4, nil
}

// storedExpr analyzes the text of an expression that is kept in the catalog.
func (p *planner) storedExpr(text string, s *scope) (Expr, error) {
	node, err := parse.Expression(text)
	if err != nil {
		return nil, err
	}
	var e Expr
	err = p.inStored(func() error {
		e, err = p.expr(node, s, "an expression")
		return err
	})
	return e, err
}
