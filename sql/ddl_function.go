package sql

import (
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/parse"
	"github.com/tallystick/tallystick/sql/pgerr"
	"github.com/tallystick/tallystick/sql/plan"
)

func (d *definer) createFunction(n *pg.CreateFunctionStmt, st parse.Statement) error {
	f, err := d.function(n, st)
	if err != nil {
		return err
	}
	if _, system := catalog.SystemFunc(f.Name); system && f.Schema == catalog.Blockchain {
		return pgerr.New(pgerr.InsufficientPrivilege, "\"%s\" is the name of a system contract", f.Name)
	}
	old := d.sameSignature(f)
	switch {
	case old == nil:
		if f.OID, err = d.editor.NextOID(); err != nil {
			return err
		}
		f.Version = 1
	case !n.Replace:
		return pgerr.New(pgerr.DuplicateFunction, "function \"%s\" already exists with same argument types", f.Name)
	default:
		if err := replaceable(old, f); err != nil {
			return err
		}
		f.OID, f.Version, f.ACL = old.OID, old.Version+1, old.ACL
	}
	if err := d.editor.PutFunc(f); err != nil {
		return err
	}
	if d.engine.opts.ValidateFunction != nil {
		err = d.engine.opts.ValidateFunction(f, d.catalog())
	}
	if d.created != nil {
		return d.created(f, err)
	}
	return err
}

func (d *definer) sameSignature(f *catalog.Func) *catalog.Func {
	for _, o := range d.catalog().Funcs(f.Schema, f.Name) {
		if o.Signature() == f.Signature() {
			return o
		}
	}
	return nil
}

// replaceable refuses what CREATE OR REPLACE may not change.
func replaceable(old, f *catalog.Func) error {
	if old.Kind != f.Kind {
		return pgerr.New(pgerr.WrongObjectType, "cannot change routine kind").
			WithDetail("\"%s\" is a %s.", old.Name, kindName(old))
	}
	if old.RetOID != f.RetOID || old.RetSet != f.RetSet || outSignature(old) != outSignature(f) {
		return pgerr.New(pgerr.InvalidFunctionDefinition, "cannot change return type of existing function").
			WithHint("Use DROP FUNCTION %s(%s) first.", old.Name, old.Signature())
	}
	for i, a := range old.InArgs() {
		if b := f.InArgs()[i]; a.Name != "" && a.Name != b.Name {
			return pgerr.New(pgerr.InvalidFunctionDefinition, "cannot change name of input parameter \"%s\"", a.Name).
				WithHint("Use DROP FUNCTION %s(%s) first.", old.Name, old.Signature())
		}
	}
	return nil
}

func outSignature(f *catalog.Func) string {
	s := ""
	for _, a := range f.OutArgs() {
		s += a.Name + " " + datum.FormatType(a.Type) + ","
	}
	return s
}

func kindName(f *catalog.Func) string {
	if f.Kind == catalog.Procedure {
		return "procedure"
	}
	return "function"
}

// function reads CREATE FUNCTION or CREATE PROCEDURE into a descriptor.
func (d *definer) function(n *pg.CreateFunctionStmt, st parse.Statement) (*catalog.Func, error) {
	parts, err := stringList(n.Funcname)
	if err != nil {
		return nil, err
	}
	f := &catalog.Func{Name: parts[len(parts)-1], Kind: catalog.Function, Owner: d.owner, Volatility: "v", Source: st.Text, RetMod: -1}
	schema := ""
	if len(parts) > 1 {
		schema = parts[0]
	}
	if f.Schema, err = d.schemaOf(schema); err != nil {
		return nil, err
	}
	if n.IsProcedure {
		f.Kind = catalog.Procedure
	}
	for _, p := range n.Parameters {
		if err := d.parameter(f, p.GetFunctionParameter(), st); err != nil {
			return nil, err
		}
	}
	if err := d.returnType(f, n, st); err != nil {
		return nil, err
	}
	if err := polymorphicResult(f); err != nil {
		return nil, err
	}
	if n.SqlBody != nil {
		return nil, pgerr.NotBuilt("a function body in SQL standard style is not supported").WithHint("Write the body as a string: AS $$ ... $$.")
	}
	for _, o := range n.Options {
		if err := functionOption(f, o.GetDefElem()); err != nil {
			return nil, err
		}
	}
	switch {
	case f.Language == "":
		return nil, pgerr.New(pgerr.InvalidFunctionDefinition, "no language specified")
	case f.Body == "":
		return nil, pgerr.New(pgerr.InvalidFunctionDefinition, "no function body specified")
	case f.Language != "plpgsql" && f.Language != "sql":
		return nil, pgerr.New(pgerr.UndefinedObject, "language \"%s\" does not exist", f.Language).
			WithHint("Contracts are written in plpgsql or sql.")
	}
	return f, nil
}

func (d *definer) parameter(f *catalog.Func, p *pg.FunctionParameter, st parse.Statement) error {
	a := catalog.Arg{Name: p.Name, Mode: catalog.In}
	switch p.Mode {
	case pg.FunctionParameterMode_FUNC_PARAM_OUT:
		a.Mode = catalog.Out
	case pg.FunctionParameterMode_FUNC_PARAM_INOUT:
		a.Mode = catalog.InOut
	case pg.FunctionParameterMode_FUNC_PARAM_VARIADIC:
		a.Mode = catalog.Variadic
	case pg.FunctionParameterMode_FUNC_PARAM_TABLE:
		a.Mode = catalog.TableArg
	}
	if p.ArgType.Setof {
		return pgerr.New(pgerr.InvalidFunctionDefinition, "functions cannot accept set arguments")
	}
	t, err := d.signatureType(p.ArgType, st, "type %s does not exist")
	if err != nil {
		return err
	}
	for _, o := range f.Args {
		if o.Name == a.Name && a.Name != "" {
			return pgerr.New(pgerr.InvalidFunctionDefinition, "parameter name \"%s\" used more than once", a.Name)
		}
	}
	a.Type = datum.T(t.Desc)
	a.TypeOID, a.TypMod = t.OID, -1
	if p.Defexpr != nil {
		if a.Default, err = deparse(p.Defexpr); err != nil {
			return err
		}
		if _, err := plan.ExpressionText(a.Default, a.Type, d.options(st)); err != nil {
			return err
		}
	} else if in := f.InArgs(); len(in) > 0 && in[len(in)-1].Default != "" && (a.Mode == catalog.In || a.Mode == catalog.InOut) {
		return pgerr.New(pgerr.InvalidFunctionDefinition, "input parameters after one with a default value must also have defaults")
	}
	f.Args = append(f.Args, a)
	return nil
}

// signatureType finds a type of a function's signature; PostgreSQL reports a
// missing one in words of its own, and without a position.
func (d *definer) signatureType(tn *pg.TypeName, st parse.Statement, missing string) (datum.Type, error) {
	t, err := d.resolveType(tn, st)
	if err != nil && pgerr.CodeOf(err) == pgerr.UndefinedObject {
		parts, lerr := stringList(tn.Names)
		if lerr != nil {
			return t, lerr
		}
		return t, pgerr.New(pgerr.UndefinedObject, missing, strings.Join(parts, "."))
	}
	return t, err
}

func positioned(err error, st parse.Statement, loc int32) error {
	if e, ok := pgerr.From(err); ok {
		return e.At(parse.Position(st.Script, loc))
	}
	return err
}

// returnType decides what a function returns, from RETURNS and OUT arguments.
func (d *definer) returnType(f *catalog.Func, n *pg.CreateFunctionStmt, st parse.Statement) error {
	outs := f.OutArgs()
	ret := datum.T(datum.Void)
	switch {
	case len(outs) == 1:
		ret = outs[0].Type
	case len(outs) > 1:
		ret = datum.T(datum.Record)
	}
	if n.ReturnType != nil {
		tn := n.ReturnType
		f.RetSet = tn.Setof
		plain := &pg.TypeName{Names: tn.Names, Typmods: tn.Typmods, ArrayBounds: tn.ArrayBounds, Location: tn.Location, PctType: tn.PctType}
		t, err := d.signatureType(plain, st, "type \"%s\" does not exist")
		if err != nil {
			return err
		}
		isTable := len(outs) > 0 && outs[0].Mode == catalog.TableArg
		if isTable {
			f.RetSet = true
		}
		if len(outs) > 0 && !isTable && !t.Same(ret) {
			return pgerr.New(pgerr.InvalidFunctionDefinition, "function result type must be %s because of OUT parameters", datum.FormatType(ret))
		}
		if len(outs) == 0 {
			ret = datum.T(t.Desc)
		}
	} else if f.Kind == catalog.Function && len(outs) == 0 {
		return pgerr.New(pgerr.InvalidFunctionDefinition, "function result type must be specified")
	}
	f.Ret, f.RetOID = ret, ret.OID
	return nil
}

func functionOption(f *catalog.Func, o *pg.DefElem) error {
	switch o.Defname {
	case "language":
		f.Language = strings.ToLower(o.Arg.GetString_().Sval)
	case "as":
		items := o.Arg.GetList().Items
		if len(items) != 1 {
			return pgerr.New(pgerr.InvalidFunctionDefinition, "only one AS item needed for language \"%s\"", f.Language)
		}
		f.Body = items[0].GetString_().Sval
	case "volatility":
		f.Volatility = o.Arg.GetString_().Sval[:1]
	case "strict":
		f.Strict = o.Arg.GetBoolean().Boolval
	case "security":
		f.Definer = o.Arg.GetBoolean().Boolval
	case "leakproof", "parallel", "cost", "rows", "support":
		// Hints to PostgreSQL's planner: accepted, without effect.
	case "set":
		return pgerr.NotBuilt("SET in a function definition is not supported")
	case "window":
		return pgerr.NotBuilt("window functions cannot be defined")
	default:
		return pgerr.NotBuilt("function option %s is not supported", o.Defname)
	}
	return nil
}

// polymorphicResult demands an argument that tells what a polymorphic result
// stands for.
func polymorphicResult(f *catalog.Func) error {
	compatible := func(d *datum.Desc) bool {
		return d == datum.AnyCompatible || d == datum.AnyCompatibleArray || d == datum.AnyCompatibleNonArray
	}
	check := func(d *datum.Desc) error {
		if !plan.Polymorphic(d) {
			return nil
		}
		for _, a := range f.InArgs() {
			if plan.Polymorphic(a.Type.Desc) && compatible(a.Type.Desc) == compatible(d) {
				return nil
			}
		}
		family := "anyelement, anyarray, anynonarray, anyenum, anyrange, or anymultirange"
		if compatible(d) {
			family = "anycompatible, anycompatiblearray, anycompatiblenonarray, anycompatiblerange, or anycompatiblemultirange"
		}
		return pgerr.New(pgerr.InvalidFunctionDefinition, "cannot determine result data type").
			WithDetail("A result of type %s requires at least one input of type %s.", d.Name, family)
	}
	if err := check(f.Ret.Desc); err != nil {
		return err
	}
	for _, a := range f.OutArgs() {
		if err := check(a.Type.Desc); err != nil {
			return err
		}
	}
	return nil
}
