package pgcatalog

import (
	"slices"
	"strings"

	"github.com/tallystick/tallystick/sql/builtin"
	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
)

// Info answers the system information functions (pg_get_*, *_is_visible,
// has_*_privilege) for one query.
func (env *Env) Info(searchPath []string) builtin.CatalogInfo {
	return builtin.CatalogInfo{
		Text: func(function string, args ...int64) (string, bool) {
			return env.text(function, searchPath, args...)
		},
		Visible:   func(_ string, oid datum.OID) (bool, bool) { return env.visible(oid, searchPath) },
		Privilege: func(string, string, string, string) (bool, error) { return true, nil },
		Named:     func(function string, args ...string) (string, bool) { return env.named(function, searchPath, args...) },
	}
}

// text answers the functions that give the source or the name of an object.
func (env *Env) text(function string, path []string, args ...int64) (string, bool) {
	oid := datum.OID(0)
	if len(args) > 0 {
		oid = datum.OID(args[0])
	}
	switch function {
	case "pg_get_userbyid":
		return env.userByOID(oid), true
	case "pg_get_indexdef":
		return env.indexDef(oid, args, path)
	case "pg_get_constraintdef":
		return env.constraintDef(oid, len(args) > 1 && args[1] != 0)
	case "obj_description":
		return env.description(oid, 0)
	case "col_description":
		if len(args) > 1 {
			return env.description(oid, int(args[1]))
		}
	case "pg_get_triggerdef":
		return env.triggerDef(oid, len(args) > 1 && args[1] != 0, path)
	case "pg_get_viewdef":
		if t, ok := env.Catalog.TableByOID(oid); ok && t.HasQuery() {
			return " " + t.Query + ";", true
		}
	case "pg_get_functiondef":
		if f, ok := env.Catalog.FuncByOID(oid); ok {
			return f.Source + "\n", true
		}
	case "pg_get_function_arguments", "pg_get_function_identity_arguments":
		return env.arguments(oid, function == "pg_get_function_arguments")
	case "pg_get_function_result":
		return env.result(oid)
	}
	return "", false
}

func (env *Env) userByOID(oid datum.OID) string {
	if i := int(oid) - 20000; i >= 0 && i < len(env.Users) {
		return env.Users[i]
	}
	if oid == superuserOID {
		return catalog.SystemOwner
	}
	return "unknown (OID=" + itoa(int(oid)) + ")"
}

// indexDef is pg_get_indexdef(index [, column, pretty]): pretty leaves out the
// schema of a table that is found without it.
func (env *Env) indexDef(oid datum.OID, args []int64, path []string) (out string, found bool) {
	at, ok := env.lookup().indexes[oid]
	if !ok {
		return "", false
	}
	if len(args) > 1 && args[1] > 0 {
		if int(args[1]) <= len(at.index.Keys) {
			out = at.table.KeyText(&at.index.Keys[args[1]-1], len(args) > 2 && args[2] != 0)
		}
		return out, true
	}
	qualified := len(args) < 3 || args[2] == 0 || !slices.Contains(path, at.table.Schema)
	return indexDefinition(at.table, at.index, qualified, len(args) > 2 && args[2] != 0), true
}

// IndexDefinition is the CREATE INDEX statement of an index.
func IndexDefinition(t *catalog.Table, idx *catalog.Index) string {
	return indexDefinition(t, idx, true, false)
}

func indexDefinition(t *catalog.Table, idx *catalog.Index, qualified, pretty bool) string {
	var b strings.Builder
	b.WriteString("CREATE ")
	if idx.Unique {
		b.WriteString("UNIQUE ")
	}
	b.WriteString("INDEX " + datum.QuoteIdent(idx.Name) + " ON ")
	if qualified {
		b.WriteString(datum.QuoteIdent(t.Schema) + ".")
	}
	b.WriteString(datum.QuoteIdent(t.Name) + " USING btree (")
	for i, k := range idx.Keys {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(t.KeyText(&k, pretty))
		if k.Desc {
			b.WriteString(" DESC")
		}
		if k.NullsFirst != k.Desc {
			if k.NullsFirst {
				b.WriteString(" NULLS FIRST")
			} else {
				b.WriteString(" NULLS LAST")
			}
		}
	}
	b.WriteString(")")
	if len(idx.Include) > 0 {
		b.WriteString(" INCLUDE (" + columnList(t, idx.Include) + ")")
	}
	if idx.Predicate != "" {
		b.WriteString(" WHERE " + idx.PredicateText(pretty))
	}
	return b.String()
}

func (env *Env) constraintDef(oid datum.OID, pretty bool) (string, bool) {
	c := env.lookup().constraints[oid]
	if c == nil {
		if k, ok := env.domainCheck(oid); ok {
			c = &constraint{kind: 'c', check: k}
		} else {
			return "", false
		}
	}
	if pretty && c.kind == 'c' {
		return "CHECK (" + c.check.Expr + ")", true
	}
	return env.definition(c), true
}

// definition is a constraint as it stands in CREATE TABLE.
func (env *Env) definition(c *constraint) string {
	switch c.kind {
	case 'p':
		return "PRIMARY KEY (" + columnList(c.table, c.columns) + ")"
	case 'u':
		return "UNIQUE (" + columnList(c.table, c.columns) + ")"
	case 'c':
		return "CHECK ((" + c.check.Expr + "))"
	}
	ref, _ := env.Catalog.Table(c.fk.RefSchema, c.fk.RefTable)
	return foreignKeyText(c.table, ref, c.fk)
}

func foreignKeyText(t, ref *catalog.Table, fk *catalog.ForeignKey) string {
	actions := map[string]string{"c": "CASCADE", "n": "SET NULL", "d": "SET DEFAULT", "r": "RESTRICT"}
	s := "FOREIGN KEY (" + columnList(t, fk.Columns) + ") REFERENCES " + datum.QuoteIdent(fk.RefTable)
	if ref != nil {
		s += "(" + columnList(ref, fk.RefColumns) + ")"
	}
	if a := actions[fk.OnUpdate]; a != "" {
		s += " ON UPDATE " + a
	}
	if a := actions[fk.OnDelete]; a != "" {
		s += " ON DELETE " + a
	}
	return s
}

func columnList(t *catalog.Table, cols []int) string {
	names := make([]string, len(cols))
	for i, c := range cols {
		names[i] = datum.QuoteIdent(t.Columns[c].Name)
	}
	return strings.Join(names, ", ")
}

// arguments lists the arguments of a function as psql shows them.
func (env *Env) arguments(oid datum.OID, defaults bool) (string, bool) {
	if f, ok := env.Catalog.FuncByOID(oid); ok {
		var parts []string
		for _, a := range f.Args {
			if a.Mode != catalog.TableArg && (defaults || a.Mode != catalog.Out) {
				parts = append(parts, argumentText(f, a, defaults))
			}
		}
		return strings.Join(parts, ", "), true
	}
	if f := builtin.FuncByOID(oid); f != nil {
		var parts []string
		for _, a := range f.Args {
			parts = append(parts, datum.FormatType(datum.T(a)))
		}
		return strings.Join(parts, ", "), true
	}
	return "", false
}

func argumentText(f *catalog.Func, a catalog.Arg, defaults bool) string {
	s := map[catalog.ArgMode]string{catalog.Out: "OUT ", catalog.InOut: "INOUT ", catalog.Variadic: "VARIADIC "}[a.Mode]
	if s == "" && f.Kind == catalog.Procedure {
		s = "IN "
	}
	if a.Name != "" {
		s += datum.QuoteIdent(a.Name) + " "
	}
	s += datum.FormatType(a.Type)
	if defaults && a.Default != "" {
		s += " DEFAULT " + a.Default
	}
	return s
}

func (env *Env) result(oid datum.OID) (string, bool) {
	if f, ok := env.Catalog.FuncByOID(oid); ok {
		if f.Kind == catalog.Procedure {
			return "", false
		}
		outs := f.OutArgs()
		if len(outs) > 0 && outs[0].Mode == catalog.TableArg {
			var parts []string
			for _, a := range outs {
				parts = append(parts, datum.QuoteIdent(a.Name)+" "+datum.FormatType(a.Type))
			}
			return "TABLE(" + strings.Join(parts, ", ") + ")", true
		}
		return setOf(f.RetSet) + datum.FormatType(f.Ret), true
	}
	if f := builtin.FuncByOID(oid); f != nil {
		return setOf(f.RetSet) + datum.FormatType(datum.T(f.Ret)), true
	}
	return "", false
}

func setOf(set bool) string {
	if set {
		return "SETOF "
	}
	return ""
}

// visible tells whether an object is found by its bare name.
func (env *Env) visible(oid datum.OID, path []string) (visible, ok bool) {
	in := func(schema string) bool {
		if schema == catalog.PgCatalog {
			return true
		}
		for _, s := range path {
			if s == schema || s == catalog.Temp && schema == env.Catalog.TempSchema() {
				return true
			}
		}
		return false
	}
	if d := env.Catalog.TypeByOID(oid); d != nil && oid >= catalog.FirstPrivateOID {
		return in(env.typeSchema(d)), true
	}
	if datum.ByOID(oid) != nil || builtin.FuncByOID(oid) != nil || builtin.OperatorByOID(oid) != nil {
		return true, true
	}
	if f, found := env.Catalog.FuncByOID(oid); found {
		return in(f.Schema), true
	}
	rel, ok := env.lookup().relations[oid]
	return ok && in(rel.schema), ok
}

// RegName gives the name of an object of a reg* type; RegOID finds one.
func (env *Env) RegName(t *datum.Desc, oid datum.OID, path []string) string {
	if oid == 0 {
		return "-"
	}
	switch t {
	case datum.RegClass:
		if name := env.className(oid, path); name != "" {
			return name
		}
	case datum.RegType:
		if d := env.Catalog.TypeByOID(oid); d != nil {
			return datum.FormatType(datum.T(d))
		}
	case datum.RegNamespace:
		for _, s := range env.Catalog.Schemas() {
			if s.OID == oid {
				return datum.QuoteIdent(s.Name)
			}
		}
	case datum.RegRole:
		if i := int(oid) - 20000; oid == superuserOID || i >= 0 && i < len(env.Users) {
			return datum.QuoteIdent(env.userByOID(oid))
		}
	case datum.RegProc, datum.RegProcedure:
		if name := env.procName(oid, t == datum.RegProcedure); name != "" {
			return name
		}
	}
	return itoa(int(oid))
}

func (env *Env) procName(oid datum.OID, signature bool) string {
	name, args := "", ""
	for codec, id := range codecOIDs {
		if id == oid {
			return codec
		}
	}
	if f, ok := env.Catalog.FuncByOID(oid); ok {
		name, args = datum.QuoteIdent(f.Name), f.Signature()
	} else if f := builtin.FuncByOID(oid); f != nil {
		name = f.Name
		var parts []string
		for _, a := range f.Args {
			parts = append(parts, datum.FormatType(datum.T(a)))
		}
		args = strings.Join(parts, ",")
	}
	if name != "" && signature {
		name += "(" + args + ")"
	}
	return name
}

func (env *Env) className(oid datum.OID, path []string) string {
	rel, ok := env.lookup().relations[oid]
	if !ok {
		return ""
	}
	if v, _ := env.visible(oid, path); v {
		return datum.QuoteIdent(rel.name)
	}
	return datum.QuoteIdent(rel.schema) + "." + datum.QuoteIdent(rel.name)
}
