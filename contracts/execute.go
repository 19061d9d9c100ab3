package contracts

import (
	"fmt"
	"strings"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/contracts/system"
	"github.com/tallystick/tallystick/mvcc/rwset"
	"github.com/tallystick/tallystick/sql/builtin"
	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/exec"
	"github.com/tallystick/tallystick/sql/pgerr"
	"github.com/tallystick/tallystick/sql/plan"
)

// Result is what a call returned.
type Result struct {
	// Columns is the shape of the rows; nil for a procedure without INOUT
	// arguments.
	Columns []plan.Column
	// Encoded is the canonical form of the rows: see [EncodeRows].
	Encoded []byte
}

// Rows decodes the rows of the result. They share memory with Encoded.
func (r *Result) Rows() ([][]datum.Datum, error) { return DecodeRows(r.Columns, r.Encoded) }

// Execute runs the call of a signed transaction in env, whose catalog is the
// one that the transaction sees, and returns its result. What is called is the
// function of exactly this name and these argument types, in a schema that is
// replicated; having looked for it is part of the footprint.
//
// Errors are those of the call (*pgerr.Error): 42883 for a function that does
// not exist, 42704 for an unknown type, 22P03 for bytes that are no value of
// their type, and whatever the function raises. Calls for which [IsSystem]
// holds go to [ExecuteSystem].
func Execute(env *exec.Env, call *block.Call) (*Result, error) {
	types, err := argTypesIn(env, call)
	if err != nil {
		return nil, err
	}
	f := findFunc(env.Catalog, call.Schema, call.Name, types)
	if f == nil {
		note(env, catalog.FuncName(call.Schema, call.Name))
		return nil, undefined(call, types)
	}
	note(env, f.Reads())
	args, err := decodeArgs(call, types)
	if err == nil {
		err = verifyDomains(env, types, args)
	}
	if err != nil {
		return nil, err
	}
	if env.Functions == nil {
		return nil, fmt.Errorf("contracts: the environment has no functions")
	}
	return run(env, f, args, env.Functions)
}

// IsSystem reports whether a call is one of a system contract, which the chain
// runs after all other transactions of a block.
func IsSystem(call *block.Call) bool {
	_, _, ok := systemFunc(call)
	return ok
}

// ExecuteSystem runs the call of a system contract.
func ExecuteSystem(env *exec.Env, s *system.System, call *block.Call) (*Result, error) {
	f, types, ok := systemFunc(call)
	if !ok {
		return nil, fmt.Errorf("contracts: %s.%s is no system contract", call.Schema, call.Name)
	}
	args, err := decodeArgs(call, types)
	if err != nil {
		return nil, err
	}
	return run(env, f, args, &exec.Functions{Call: s.Call})
}

// systemFunc finds the system contract that a call names, if it does.
func systemFunc(call *block.Call) (*catalog.Func, []datum.Type, bool) {
	if call.Schema != catalog.Blockchain {
		return nil, nil, false
	}
	f, ok := catalog.SystemFunc(call.Name)
	if !ok {
		return nil, nil, false
	}
	types, err := argTypes(call)
	if err != nil || !accepts(f, types) {
		return nil, nil, false
	}
	return f, types, true
}

// note adds reads of the catalog to the footprint.
func note(env *exec.Env, reads []rwset.Read) {
	env.NoteShared(reads)
}

// typeNames has every name by which a signed call may name a built-in type:
// that of pg_type, the SQL spelling, and a few that SQL knows besides.
var typeNames = func() map[string]*datum.Desc {
	m := map[string]*datum.Desc{"int": datum.Int4, "decimal": datum.Numeric, "character": datum.BpChar}
	for _, d := range datum.Builtins() {
		m[datum.FormatType(datum.T(d))] = d
	}
	for _, d := range datum.Builtins() {
		m[d.Name] = d
	}
	return m
}()

// TypeName is the name of a type in a signed call.
func TypeName(d *datum.Desc) string { return datum.FormatType(datum.T(d)) }

// typeByName finds the type that a signed call names.
func typeByName(name string) (datum.Type, error) {
	d, ok := typeNames[name]
	if !ok {
		d, ok = builtin.TypeByName(name)
	}
	if !ok {
		return datum.Type{}, pgerr.New(pgerr.UndefinedObject, "type %q does not exist", name)
	}
	return datum.T(d), nil
}

func argTypes(call *block.Call) ([]datum.Type, error) {
	types := make([]datum.Type, len(call.ArgTypes))
	for i, name := range call.ArgTypes {
		t, err := typeByName(name)
		if err != nil {
			return nil, err
		}
		types[i] = t
	}
	return types, nil
}

// findFunc finds the function with exactly these argument types. System
// contracts are not looked at: nothing but the chain runs them.
func findFunc(c *catalog.Catalog, schema, name string, types []datum.Type) *catalog.Func {
	for _, f := range c.Funcs(schema, name) {
		if f.Language != catalog.SystemLanguage && accepts(f, types) {
			return f
		}
	}
	for _, f := range c.Funcs(schema, name) {
		if special := plan.SpecializeFor(f, types); special != nil && f.Language != catalog.SystemLanguage {
			return special
		}
	}
	return nil
}

// accepts reports whether the input arguments of f have these types.
func accepts(f *catalog.Func, types []datum.Type) bool {
	n := 0
	for i := range f.Args {
		switch f.Args[i].Mode {
		case catalog.In, catalog.InOut, catalog.Variadic:
			if n == len(types) || !f.Args[i].Type.Same(types[n]) {
				return false
			}
			n++
		}
	}
	return n == len(types)
}

func undefined(call *block.Call, types []datum.Type) error {
	names := make([]string, len(types))
	for i, t := range types {
		names[i] = datum.FormatType(t)
	}
	return pgerr.New(pgerr.UndefinedFunction, "function %s.%s(%s) does not exist", call.Schema, call.Name, strings.Join(names, ", ")).
		WithHint("No function matches the given name and argument types. You might need to add explicit type casts.")
}

// decodeArgs reads the canonical binary values of a call.
func decodeArgs(call *block.Call, types []datum.Type) ([]datum.Datum, error) {
	args := make([]datum.Datum, len(types))
	for i := range types {
		a := &call.Args[i]
		if a.Null {
			args[i] = datum.Null
			continue
		}
		// A type modifier of an argument is not enforced, as in PostgreSQL.
		d, err := types[i].ParseBinary(a.Value, -1)
		if err != nil {
			return nil, badValue(err, i)
		}
		args[i] = d
	}
	return args, nil
}

// badValue is the error of argument i. Decoders answer some bytes with a code of
// the connection's or the server's (08P01, XX000), which would blame the node
// for what a client has signed.
func badValue(err error, i int) error {
	if e, ok := pgerr.From(err); ok && e.Code.IsVerdict() {
		return e
	}
	return pgerr.New(pgerr.InvalidBinaryRepresentation, "incorrect binary data format in argument %d", i+1).
		WithDetail("%v", err)
}

// run calls f and encodes what it returns.
func run(env *exec.Env, f *catalog.Func, args []datum.Datum, functions *exec.Functions) (*Result, error) {
	res := &Result{Columns: plan.ResultColumns(f)}
	enc := rowEncoder{columns: res.Columns}
	var err error
	switch {
	case f.RetSet || len(res.Columns) > 1 || rowResult(f) || f.Kind == catalog.Procedure && len(res.Columns) > 0:
		// A procedure returns a record even for a single INOUT argument.
		err = functions.CallSet(env, f, args, enc.row)
	case f.Strict && anyNull(args):
		err = enc.row([]datum.Datum{datum.Null})
	default:
		var d datum.Datum
		if d, err = functions.Call(env, f, args); err == nil && res.Columns != nil {
			if res.Columns[0].Type.Desc == datum.Void {
				d = datum.Datum{} // void has one value, which is not null
			}
			err = enc.row([]datum.Datum{d})
		}
	}
	if err != nil {
		return nil, err
	}
	res.Encoded = enc.finish()
	return res, nil
}
