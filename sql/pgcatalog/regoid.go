package pgcatalog

import (
	"strings"

	"github.com/tallystick/tallystick/sql/builtin"
	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/parse"
	"github.com/tallystick/tallystick/sql/pgerr"
	"github.com/tallystick/tallystick/sql/plan"
)

// RegOID finds the object that the text of a reg* value names.
func (env *Env) RegOID(t *datum.Desc, text string, path []string) (datum.OID, error) {
	parts, err := splitName(text)
	if err != nil {
		return 0, err
	}
	name := parts[len(parts)-1]
	schemas := append([]string{catalog.PgCatalog}, path...)
	if len(parts) > 1 {
		schemas = []string{parts[len(parts)-2]}
	}
	switch t {
	case datum.RegClass:
		return env.classOID(text, schemas, name)
	case datum.RegType:
		if d, ok := builtin.TypeByName(strings.ToLower(strings.TrimSpace(text))); ok {
			return d.OID, nil
		}
		return env.typeOID(text, path)
	case datum.RegNamespace:
		if s, ok := env.Catalog.Schema(name); ok {
			return s.OID, nil
		}
		return 0, pgerr.New(pgerr.InvalidSchemaName, "schema \"%s\" does not exist", name)
	case datum.RegRole:
		for _, u := range env.Users {
			if u == name {
				return env.ownerOID(u), nil
			}
		}
		return 0, pgerr.New(pgerr.UndefinedObject, "role \"%s\" does not exist", name)
	case datum.RegProc, datum.RegProcedure:
		return env.procNamed(text, schemas, name)
	}
	return 0, pgerr.NotBuilt("input of type %s is not supported", datum.FormatType(datum.T(t)))
}

// typeOID reads a type as SQL writes it: int, varchar(3), integer[].
func (env *Env) typeOID(text string, path []string) (datum.OID, error) {
	none := pgerr.New(pgerr.UndefinedObject, "type \"%s\" does not exist", text)
	node, err := parse.Expression("NULL::" + text)
	if err != nil || node.GetTypeCast() == nil {
		return 0, none
	}
	t, _, err := plan.FindType(node.GetTypeCast().TypeName, env.Catalog, path)
	if err != nil {
		return 0, none
	}
	return t.OID, nil
}

func (env *Env) classOID(text string, schemas []string, name string) (datum.OID, error) {
	for _, schema := range schemas {
		if schema == catalog.Temp {
			schema = env.Catalog.TempSchema()
		}
		if oid, ok := env.lookup().names[relationName{schema, name}]; ok {
			return oid, nil
		}
	}
	return 0, pgerr.New(pgerr.UndefinedTable, "relation \"%s\" does not exist", text)
}

func (env *Env) procNamed(text string, schemas []string, name string) (datum.OID, error) {
	if i := strings.IndexByte(name, '('); i >= 0 {
		name = name[:i]
	}
	var found []datum.OID
	for _, schema := range schemas {
		if schema == catalog.PgCatalog {
			if oid, ok := codecOIDs[name]; ok {
				found = append(found, oid)
			}
			for _, f := range builtin.LookupFuncs(name) {
				found = append(found, f.OID)
			}
		}
		for _, f := range env.Catalog.Funcs(schema, name) {
			found = append(found, f.OID)
		}
	}
	switch len(found) {
	case 0:
		return 0, pgerr.New(pgerr.UndefinedFunction, "function \"%s\" does not exist", text)
	case 1:
		return found[0], nil
	}
	return 0, pgerr.New(pgerr.AmbiguousFunction, "more than one function named \"%s\"", text)
}

// splitName splits a possibly quoted, qualified name and folds its case.
func splitName(s string) ([]string, error) {
	var parts []string
	for {
		s = strings.TrimLeft(s, " ")
		part := ""
		if strings.HasPrefix(s, "\"") {
			end := strings.IndexByte(s[1:], '"')
			if end < 0 {
				return nil, pgerr.New(pgerr.InvalidName, "invalid name syntax")
			}
			part, s = s[1:1+end], s[end+2:]
		} else {
			end := strings.IndexByte(s, '.')
			if end < 0 {
				end = len(s)
			}
			part, s = strings.ToLower(strings.TrimSpace(s[:end])), s[end:]
		}
		if part == "" {
			return nil, pgerr.New(pgerr.InvalidName, "invalid name syntax")
		}
		parts = append(parts, part)
		if !strings.HasPrefix(s, ".") {
			return parts, nil
		}
		s = s[1:]
	}
}
