package sql

import (
	"strconv"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/tallystick/tallystick/sql/parse"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// defString is the value of an option as text (defGetString).
func defString(d *pg.DefElem) string {
	if d.Arg == nil {
		return ""
	}
	switch v := d.Arg.Node.(type) {
	case *pg.Node_String_:
		return v.String_.Sval
	case *pg.Node_Integer:
		return strconv.Itoa(int(v.Integer.Ival))
	case *pg.Node_Float:
		return v.Float.Fval
	case *pg.Node_Boolean:
		return strconv.FormatBool(v.Boolean.Boolval)
	case *pg.Node_TypeName:
		var parts []string
		for _, n := range v.TypeName.Names {
			parts = append(parts, n.GetString_().GetSval())
		}
		return strings.Join(parts, ".")
	}
	return ""
}

// defBool is the value of a Boolean option; an option without value is on
// (defGetBoolean).
func defBool(d *pg.DefElem) (bool, error) {
	if d.Arg == nil {
		return true, nil
	}
	switch strings.ToLower(defString(d)) {
	case "1", "true", "on":
		return true, nil
	case "0", "false", "off":
		return false, nil
	}
	return false, pgerr.New(pgerr.SyntaxError, "%s requires a Boolean value", d.Defname)
}

// locateAt gives an error the position of a byte location of a script.
func locateAt(e *pgerr.Error, script string, loc int32) error {
	if loc > 0 {
		e.At(parse.Position(script, loc))
	}
	return e
}
