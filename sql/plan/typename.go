package plan

import (
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/tallystick/tallystick/mvcc/rwset"
	"github.com/tallystick/tallystick/sql/builtin"
	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/parse"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// typeName resolves a type in a statement.
func (p *planner) typeName(tn *pg.TypeName) (datum.Type, error) {
	t, reads, err := FindType(tn, p.opts.Catalog, p.opts.SearchPath)
	p.note(reads)
	if err != nil {
		return t, p.locate(err, tn.Location)
	}
	return t, nil
}

// ResolveType finds the built-in type that a type name of the grammar means:
// 42704 if there is none. See [FindType] for those of users.
func ResolveType(tn *pg.TypeName) (datum.Type, error) {
	t, _, err := FindType(tn, nil, nil)
	return t, err
}

// FindType finds the type that a type name of the grammar means, users' types in
// the schemas of path. It returns the catalog rows that it looked at, found or
// not. c may be nil.
func FindType(tn *pg.TypeName, c *catalog.Catalog, path []string) (datum.Type, []rwset.Read, error) {
	parts, _ := nameParts(tn.Names)
	if tn.PctType {
		return columnType(parts, c, path)
	}
	if tn.Setof {
		return datum.Type{}, nil, pgerr.New(pgerr.InvalidFunctionDefinition, "SETOF is only allowed in the result of a function")
	}
	name := parts[len(parts)-1]
	d, ok := builtin.TypeByName(name)
	if len(parts) > 1 && parts[0] != catalog.PgCatalog {
		ok = false
	}
	var reads []rwset.Read
	if !ok {
		if d, reads = userType(parts, c, path); d == nil {
			return datum.Type{}, reads, noType(parts)
		}
	}
	mod, err := typeModifier(d, name, tn)
	if err != nil {
		return datum.Type{}, reads, err
	}
	if len(tn.ArrayBounds) > 0 {
		if d.Array == nil {
			return datum.Type{}, reads, pgerr.New(pgerr.UndefinedObject, "could not find array type for data type %s", datum.FormatType(datum.T(d)))
		}
		d = d.Array
	}
	return datum.Type{Desc: d, Mod: mod}, reads, nil
}

// userType looks a type up in the schema that its name gives, or along the path.
func userType(parts []string, c *catalog.Catalog, path []string) (*datum.Desc, []rwset.Read) {
	if c == nil || len(parts) > 2 {
		return nil, nil
	}
	if len(parts) == 2 && parts[0] != "public" {
		path = parts[:1]
	}
	var reads []rwset.Read
	for _, schema := range path {
		d, more := c.FindType(schema, parts[len(parts)-1])
		reads = append(reads, more...)
		if d != nil {
			return d, reads
		}
	}
	return nil, reads
}

func noType(parts []string) error {
	switch name := parts[len(parts)-1]; name {
	case "serial", "serial4", "bigserial", "serial8", "smallserial", "serial2":
		return pgerr.New(pgerr.FeatureNotSupported, "type %s needs a sequence, and sequences exist in schema private only", name).
			WithHint("Let the caller pass the key, or derive it from tx_uuid().")
	}
	return pgerr.New(pgerr.UndefinedObject, "type \"%s\" does not exist", strings.Join(parts, "."))
}

// columnType is table.column%TYPE.
func columnType(parts []string, c *catalog.Catalog, path []string) (datum.Type, []rwset.Read, error) {
	n := len(parts) - 1
	if n < 1 || n > 2 {
		return datum.Type{}, nil, pgerr.New(pgerr.SyntaxError, "improper %%TYPE reference (too few dotted names): %s", strings.Join(parts, "."))
	}
	if n == 2 {
		path = parts[:1]
	}
	var reads []rwset.Read
	for _, schema := range path {
		if c == nil {
			break
		}
		t, ok := c.Table(schema, parts[n-1])
		if !ok {
			reads = append(reads, catalog.MissingTable(schema, parts[n-1])...)
			continue
		}
		reads = append(reads, t.Reads()...)
		i := t.Column(parts[n])
		if i < 0 {
			return datum.Type{}, reads, pgerr.New(pgerr.UndefinedColumn, "column \"%s\" of relation \"%s\" does not exist", parts[n], t.Name)
		}
		return t.Columns[i].Type, reads, nil
	}
	return datum.Type{}, reads, pgerr.New(pgerr.UndefinedTable, "relation \"%s\" does not exist", strings.Join(parts[:n], "."))
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
