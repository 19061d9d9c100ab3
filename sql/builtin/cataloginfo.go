package builtin

import (
	"strconv"
	"strings"

	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

func catalogOf(c *Ctx, function string) (*CatalogInfo, error) {
	if c.Session == nil {
		return nil, pgerr.New(pgerr.FeatureNotSupported, "function %s() is not available in a contract", function)
	}
	return &c.Catalog, nil
}

// catalogText asks the catalog for a text, null if it has none. Text arguments
// are the business of catalogNamed; those of obj_description name a catalog,
// which an OID makes superfluous here: OIDs are unique in the whole database.
func catalogText(function string) Eval {
	return func(c *Ctx, a []datum.Datum) (datum.Datum, error) {
		s, ok, err := askText(c, function, a)
		if err != nil || !ok {
			return datum.Null, err
		}
		return datum.Str(s), nil
	}
}

func askText(c *Ctx, function string, a []datum.Datum) (string, bool, error) {
	cat, err := catalogOf(c, function)
	if err != nil || cat.Text == nil {
		return "", false, err
	}
	args := make([]int64, 0, 4)
	for _, v := range a {
		if v.Inline() { // integers and booleans, not names
			args = append(args, v.Int())
		}
	}
	s, ok := cat.Text(function, args...)
	return s, ok, nil
}

// catalogSize asks for a number of bytes.
func catalogSize(function string) Eval {
	return func(c *Ctx, a []datum.Datum) (datum.Datum, error) {
		s, ok, err := askText(c, function, a)
		if err != nil || !ok {
			return datum.Null, err
		}
		return datum.Int8.Parse(s, -1, c.Format)
	}
}

// catalogByName resolves the relation that the first argument names.
func catalogByName(function string) Eval {
	byOID := catalogText(function)
	return func(c *Ctx, a []datum.Datum) (datum.Datum, error) {
		oid, err := textRegclass(c, a)
		if err != nil {
			return datum.Null, err
		}
		return byOID(c, append([]datum.Datum{oid}, a[1:]...))
	}
}

// catalogNamed asks with text arguments; others are given in their text form.
func catalogNamed(function string, result *datum.Desc) func([]datum.Type, datum.Type) (Eval, error) {
	return func(types []datum.Type, _ datum.Type) (Eval, error) {
		descs := descsOf(types)
		return func(c *Ctx, a []datum.Datum) (datum.Datum, error) {
			cat, err := catalogOf(c, function)
			if err != nil || cat.Named == nil {
				return datum.Null, err
			}
			s, ok := cat.Named(function, argTexts(descs, a)...)
			if !ok {
				return datum.Null, nil
			}
			return result.Parse(s, -1, c.Format)
		}, nil
	}
}

// argTexts gives names as they are and OIDs as decimal numbers.
func argTexts(descs []*datum.Desc, a []datum.Datum) []string {
	out := make([]string, len(a))
	for i, v := range a {
		if descs[i].Fixed {
			out[i] = strconv.FormatInt(v.Int(), 10)
		} else {
			out[i] = v.Str()
		}
	}
	return out
}

func catalogVisible(function string) Eval {
	return func(c *Ctx, a []datum.Datum) (datum.Datum, error) {
		cat, err := catalogOf(c, function)
		if err != nil || cat.Visible == nil {
			return datum.Null, err
		}
		v, ok := cat.Visible(function, datum.OID(a[0].Int()))
		if !ok {
			return datum.Null, nil
		}
		return datum.Bool(v), nil
	}
}

// bindPrivilege implements has_*_privilege and pg_has_role: [user,] object,
// [column,] privilege.
func bindPrivilege(function string, objects int) func([]datum.Type, datum.Type) (Eval, error) {
	return func(types []datum.Type, _ datum.Type) (Eval, error) {
		descs := descsOf(types)
		return func(c *Ctx, a []datum.Datum) (datum.Datum, error) {
			cat, err := catalogOf(c, function)
			if err != nil {
				return datum.Null, err
			}
			if cat.Privilege == nil {
				return datum.Null, pgerr.NotBuilt("%s() is not supported here", function)
			}
			args := argTexts(descs, a)
			user := c.Session.User
			if len(args) > objects+1 {
				user, args = args[0], args[1:]
			}
			ok, err := cat.Privilege(function, user, strings.Join(args[:objects], "\x00"), args[objects])
			return datum.Bool(ok), err
		}, nil
	}
}

func catalogEvals() evalMap {
	m := evalMap{
		"pg_get_viewdef_name": catalogByName("pg_get_viewdef"), "pg_get_viewdef_name_ext": catalogByName("pg_get_viewdef"),
		// A node tree is kept as the text of its expression.
		"pg_get_expr": same, "pg_get_expr_ext": same,
		"pg_get_userbyid":            userByID,
		"pg_relation_is_publishable": func(*Ctx, []datum.Datum) (datum.Datum, error) { return datum.Bool(false), nil },
		"pg_tablespace_location":     text0(""), // all data lies in the data directory
	}
	for _, f := range strings.Fields(`pg_get_functiondef pg_get_function_arguments pg_get_function_identity_arguments
		pg_get_function_result pg_get_function_arg_default pg_get_function_sqlbody pg_get_partkeydef pg_describe_object
		pg_get_statisticsobjdef pg_get_statisticsobjdef_columns`) {
		m[f] = catalogText(f)
	}
	for _, f := range strings.Fields("pg_get_constraintdef pg_get_indexdef pg_get_viewdef pg_get_triggerdef pg_get_ruledef") {
		m[f], m[f+"_ext"] = catalogText(f), catalogText(f)
	}
	m["pg_get_viewdef_wrap"] = catalogText("pg_get_viewdef")
	for _, f := range []string{"obj_description(oid)", "obj_description(oid,name)", "col_description(oid,int4)", "shobj_description(oid,name)"} {
		name, _, _ := strings.Cut(f, "(")
		m[f] = catalogText(name)
	}
	for impl, f := range map[string]string{
		"pg_table_size": "pg_table_size", "pg_indexes_size": "pg_indexes_size", "pg_total_relation_size": "pg_total_relation_size",
		"pg_relation_size": "pg_relation_size", "pg_relation_size(regclass)": "pg_relation_size",
		"pg_database_size_oid": "pg_database_size", "pg_database_size_name": "pg_database_size",
		"pg_tablespace_size_oid": "pg_tablespace_size", "pg_tablespace_size_name": "pg_tablespace_size",
	} {
		m[impl] = catalogSize(f)
	}
	for _, f := range strings.Fields(`table type function operator opclass opfamily conversion collation
		statistics_obj ts_config ts_dict ts_parser ts_template`) {
		f = "pg_" + f + "_is_visible"
		m[f] = catalogVisible(f)
	}
	return m
}

func userByID(c *Ctx, a []datum.Datum) (datum.Datum, error) {
	s, ok, err := askText(c, "pg_get_userbyid", a)
	if err != nil {
		return datum.Null, err
	}
	if !ok {
		s = "unknown (OID=" + strconv.FormatInt(a[0].Int(), 10) + ")"
	}
	return datum.Str(s), nil
}

func catalogBinds() bindMap {
	m := bindMap{
		"pg_get_serial_sequence":       catalogNamed("pg_get_serial_sequence", datum.Text),
		"pg_index_column_has_property": catalogNamed("pg_index_column_has_property", datum.BoolType),
		"acldefault_sql":               catalogNamed("acldefault", datum.Text.Array),
	}
	// The names of the implementations tell how user, object and column are given.
	users := []string{"", "_name", "_id"}
	for _, kind := range strings.Fields("table sequence database function language schema tablespace type any_column server foreign_data_wrapper") {
		function := "has_" + kind + "_privilege"
		bind := bindPrivilege(function, 1)
		for _, user := range users {
			m[function+user+"_name"], m[function+user+"_id"] = bind, bind
		}
	}
	role, column := bindPrivilege("pg_has_role", 1), bindPrivilege("has_column_privilege", 2)
	for _, user := range users {
		m["pg_has_role"+user+"_name"], m["pg_has_role"+user+"_id"] = role, role
		for _, table := range []string{"_name", "_id"} {
			m["has_column_privilege"+user+table+"_name"] = column
			m["has_column_privilege"+user+table+"_attnum"] = column
		}
	}
	return m
}
