package sql

import (
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/tallystick/tallystick/sql/builtin"
	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/parse"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// rangeOptions are the attributes of CREATE TYPE ... AS RANGE; nil where one was
// not given.
type rangeOptions struct {
	subtype, opclass, collation, canonical, diff, multirange *pg.TypeName
}

// readRangeOptions reads the attributes, as DefineRange in typecmds.c does.
func readRangeOptions(params []*pg.Node, st parse.Statement) (rangeOptions, error) {
	var o rangeOptions
	at := map[string]**pg.TypeName{
		"subtype": &o.subtype, "subtype_opclass": &o.opclass, "collation": &o.collation,
		"canonical": &o.canonical, "subtype_diff": &o.diff, "multirange_type_name": &o.multirange,
	}
	for _, p := range params {
		def := p.GetDefElem()
		slot := at[def.Defname]
		switch {
		case slot == nil:
			return o, pgerr.New(pgerr.SyntaxError, "type attribute \"%s\" not recognized", def.Defname)
		case *slot != nil:
			return o, positioned(pgerr.New(pgerr.SyntaxError, "conflicting or redundant options"), st, def.Location)
		case def.Arg == nil:
			return o, pgerr.New(pgerr.SyntaxError, "%s requires a parameter", def.Defname)
		}
		if *slot = def.Arg.GetTypeName(); *slot == nil {
			return o, pgerr.New(pgerr.SyntaxError, "argument of %s must be a name", def.Defname)
		}
	}
	if o.subtype == nil {
		return o, pgerr.New(pgerr.SyntaxError, "type attribute \"subtype\" is required")
	}
	return o, nil
}

// createRange makes a range type and its multirange type.
func (d *definer) createRange(n *pg.CreateRangeStmt, st parse.Statement) error {
	t, err := d.newType(n.TypeName, catalog.RangeType)
	if err != nil {
		return err
	}
	o, err := readRangeOptions(n.Params, st)
	if err != nil {
		return err
	}
	sub, err := d.rangeSubtype(&o, st)
	if err != nil {
		return err
	}
	t.BaseOID = sub.OID
	if o.diff != nil {
		if t.SubtypeDiff, err = d.subtypeDiff(o.diff.Names, sub); err != nil {
			return err
		}
	}
	names := []*pg.Node{pg.MakeStrNode(t.Schema), pg.MakeStrNode(multirangeName(t.Name))}
	if o.multirange != nil {
		names = o.multirange.Names
		if len(names) == 1 {
			names = []*pg.Node{pg.MakeStrNode(t.Schema), names[0]}
		}
	}
	multi, err := d.newType(names, catalog.MultirangeType)
	if err != nil {
		return err
	}
	if multi.Schema != t.Schema {
		return pgerr.NotBuilt("a multirange type in another schema than its range type is not supported")
	}
	if multi.Name == t.Name {
		return pgerr.New(pgerr.DuplicateObject, "type \"%s\" already exists", t.Name)
	}
	t.Multirange, multi.BaseOID = multi.OID, t.OID
	return d.editor.PutRange(t, multi)
}

// multirangeName derives the name of a multirange type from that of its range
// type (makeMultirangeTypeName in multirangetypes.c).
func multirangeName(name string) string {
	if before, after, ok := strings.Cut(name, "range"); ok {
		return datum.TruncateName(before + "multirange" + after)
	}
	const suffix = "_multirange"
	for len(name)+len(suffix) > maxLabel {
		name = strings.ToValidUTF8(name[:len(name)-1], "")
	}
	return name + suffix
}

// rangeSubtype resolves the subtype and checks what else says how it is ordered:
// only the default operator class of a type and the order of bytes exist.
func (d *definer) rangeSubtype(o *rangeOptions, st parse.Statement) (*datum.Desc, error) {
	sub, err := d.resolveType(o.subtype, st)
	switch {
	case err != nil:
		return nil, err
	case sub.Kind == datum.Pseudo:
		return nil, pgerr.New(pgerr.DatatypeMismatch, "range subtype cannot be %s", datum.FormatType(sub))
	case sub.Compare == nil || sub.AppendKey == nil:
		return nil, pgerr.New(pgerr.UndefinedObject, "data type %s has no default operator class for access method \"btree\"", datum.FormatType(sub)).
			WithHint("You must specify an operator class for the range type or define a default operator class for the subtype.")
	case o.canonical != nil:
		return nil, pgerr.NotBuilt("canonical functions of range types are not supported")
	}
	if o.collation != nil {
		if sub.Root().Category != 'S' {
			return nil, pgerr.New(pgerr.WrongObjectType, "range collation specified but subtype does not support collation")
		}
		if name := lastName(o.collation); name != "C" && name != "POSIX" && name != "default" {
			return nil, pgerr.NotBuilt("collation \"%s\" is not supported", name)
		}
	}
	if o.opclass != nil && lastName(o.opclass) != defaultOpclass(sub) {
		return nil, pgerr.NotBuilt("operator class \"%s\" is not supported: only the default ones are", lastName(o.opclass))
	}
	return sub.Desc, nil
}

func lastName(tn *pg.TypeName) string { return tn.Names[len(tn.Names)-1].GetString_().GetSval() }

// defaultOpclass is the name of the default operator class of a type for btree
// (pg_opclass.dat).
func defaultOpclass(t datum.Type) string {
	d := t.Root().Desc
	switch {
	case d.IsArray():
		return "array_ops"
	case d.Kind == datum.Enum:
		return "enum_ops"
	case d.Kind == datum.Composite:
		return "record_ops"
	case d.IsRange():
		return "range_ops"
	case d.IsMultirange():
		return "multirange_ops"
	case d == datum.VarChar:
		return "text_ops"
	}
	return d.Name + "_ops"
}

// subtypeDiff finds the function that subtracts two bounds
// (findRangeSubtypeDiffFunction in typecmds.c). Nothing here calls it: it serves
// GiST indexes.
func (d *definer) subtypeDiff(names []*pg.Node, sub *datum.Desc) (catalog.OID, error) {
	parts, err := stringList(names)
	if err != nil {
		return 0, err
	}
	name, schema := parts[len(parts)-1], ""
	if len(parts) > 1 {
		schema = parts[len(parts)-2]
	}
	shown := strings.Join(parts, ".") + "(" + datum.FormatType(datum.T(sub)) + ", " + datum.FormatType(datum.T(sub)) + ")"
	check := func(oid catalog.OID, ret *datum.Desc, immutable bool) (catalog.OID, error) {
		switch {
		case ret != datum.Float8:
			return 0, pgerr.New(pgerr.InvalidObjectDefinition, "range subtype diff function %s must return type %s", shown, "double precision")
		case !immutable:
			return 0, pgerr.New(pgerr.InvalidObjectDefinition, "range subtype diff function %s must be immutable", shown)
		}
		return oid, nil
	}
	want := []catalog.OID{sub.OID, sub.OID}
	if schema == "" || schema == catalog.PgCatalog {
		for _, f := range builtin.LookupFuncs(name) {
			if slices.EqualFunc(f.Args, want, func(a *datum.Desc, b catalog.OID) bool { return a.OID == b }) {
				return check(f.OID, f.Ret, f.Volatility == builtin.Immutable)
			}
		}
	}
	for _, s := range d.searchIn(schema) {
		for _, f := range d.catalog().Funcs(s, name) {
			if slices.EqualFunc(f.InArgs(), want, func(a catalog.Arg, b catalog.OID) bool { return a.TypeOID == b }) {
				return check(f.OID, f.Ret.Desc, f.Volatility == "i")
			}
		}
	}
	return 0, pgerr.New(pgerr.UndefinedFunction, "function %s does not exist", shown)
}
