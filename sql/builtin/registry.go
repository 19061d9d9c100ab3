package builtin

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// procRow is one row of the table in proc.go.
type procRow struct {
	oid datum.OID
	// sig is "name(arguments) result". Type names are those of pg_type, arrays
	// end in []. An argument may be preceded by its name (for named notation)
	// and "variadic", and followed by "= value", its default.
	sig string
	// attrs is the volatility (i, s, v), then "!" if strict, then "a" for an
	// aggregate, "w" for a window function.
	attrs string
	// impl names the implementation, as pg_proc.prosrc does for functions
	// written in C. Empty: the signature without names, "name(int4,text)".
	impl string
}

// operRow is one row of the table in operator.go.
type operRow struct {
	oid        datum.OID
	sig        string // "left op right", or "op right"
	proc       datum.OID
	commutator string
	negator    string
}

// castRow is one row of the table in cast.go.
type castRow struct {
	source, target string
	proc           datum.OID
	context        CastContext
	method         CastMethod
}

// registry is the linked form of the tables.
type registry struct {
	funcs      []*Func
	funcByOID  map[datum.OID]*Func
	funcByName map[string][]*Func
	ops        []*Operator
	opByOID    map[datum.OID]*Operator
	opByName   map[string][]*Operator
	casts      []Cast
	castOf     map[castKey]int // index in casts
}

type castKey struct{ source, target datum.OID }

var reg = sync.OnceValue(buildRegistry)

// Funcs lists the functions of pg_catalog in OID order. The caller must not
// change the list.
func Funcs() []*Func { return reg().funcs }

// Operators lists the operators of pg_catalog in OID order. The caller must not
// change the list.
func Operators() []*Operator { return reg().ops }

// Casts lists pg_cast in PostgreSQL's order, the length coercions (source =
// target) included. The caller must not change the list.
func Casts() []Cast { return reg().casts }

// LookupFuncs returns the functions of pg_catalog with a name, in OID order.
func LookupFuncs(name string) []*Func { return reg().funcByName[name] }

// LookupOperators returns the operators with a name, in OID order. The parser's
// != is <>.
func LookupOperators(name string) []*Operator {
	if name == "!=" {
		name = "<>"
	}
	return reg().opByName[name]
}

// FuncByOID returns the function of pg_catalog with an OID, nil if there is none.
func FuncByOID(oid datum.OID) *Func { return reg().funcByOID[oid] }

// OperatorByOID returns the operator with an OID, nil if there is none.
func OperatorByOID(oid datum.OID) *Operator { return reg().opByOID[oid] }

// TypeByName returns a built-in type by its pg_catalog name. The parser has
// already turned SQL's spellings into these (integer is int4); arrays are
// "_int4" or "int4[]".
func TypeByName(name string) (*datum.Desc, bool) {
	if elem, ok := strings.CutSuffix(name, "[]"); ok {
		d := datum.ByName(elem)
		if d == nil || d.Array == nil {
			return nil, false
		}
		return d.Array, true
	}
	d := datum.ByName(name)
	return d, d != nil
}

// Signature is f's signature, for [SelectCandidate].
func (f *Func) Signature() Signature {
	return Signature{Args: f.Args, Variadic: f.Variadic, Defaults: f.Defaults, ArgNames: f.ArgNames}
}

// String is the function as PostgreSQL's messages name it: "lower(text)".
func (f *Func) String() string { return funcSignature(f.Name, f.Args) }

func buildRegistry() *registry {
	r := &registry{
		funcByOID:  make(map[datum.OID]*Func, len(procs)),
		funcByName: make(map[string][]*Func, len(procs)),
		opByOID:    make(map[datum.OID]*Operator, len(operators)),
		opByName:   make(map[string][]*Operator),
		castOf:     make(map[castKey]int, len(casts)),
	}
	for _, table := range [][]procRow{procs, chainProcs, valueProcs} {
		for i := range table {
			r.addFunc(parseProc(&table[i]), table[i].impl)
		}
	}
	slices.SortFunc(r.funcs, func(a, b *Func) int { return cmp.Compare(a.OID, b.OID) })
	for _, f := range r.funcs {
		r.funcByName[f.Name] = append(r.funcByName[f.Name], f)
	}
	for i := range operators {
		r.addOperator(&operators[i])
	}
	for i := range casts {
		r.addCast(&casts[i])
	}
	return r
}

func (r *registry) addFunc(f *Func, impl string) {
	if r.funcByOID[f.OID] != nil {
		panic(fmt.Sprintf("builtin: OID %d is used twice", f.OID))
	}
	if impl == "" {
		impl = implKey(f)
	}
	link(f, impl)
	f.Contract = refusalOf(f)
	if _, ok := transcendentalEvals[impl]; ok {
		f.Steps = transcendentalSteps
	}
	r.funcs = append(r.funcs, f)
	r.funcByOID[f.OID] = f
}

func (r *registry) addOperator(row *operRow) {
	fields := strings.Fields(row.sig)
	op := &Operator{OID: row.oid, Commutator: row.commutator, Negator: row.negator, Func: r.funcByOID[row.proc]}
	if op.Func == nil {
		panic(fmt.Sprintf("builtin: operator %s: no function %d", row.sig, row.proc))
	}
	if len(fields) == 3 {
		op.Left = mustType(fields[0])
		fields = fields[1:]
	}
	op.Name, op.Right = fields[0], mustType(fields[1])
	r.ops = append(r.ops, op)
	r.opByOID[op.OID] = op
	r.opByName[op.Name] = append(r.opByName[op.Name], op)
	linkComparison(op)
}

func (r *registry) addCast(row *castRow) {
	c := Cast{Source: mustType(row.source), Target: mustType(row.target), Context: row.context, Method: row.method}
	if row.proc != 0 {
		if c.Func = r.funcByOID[row.proc]; c.Func == nil {
			panic(fmt.Sprintf("builtin: cast %s to %s: no function %d", row.source, row.target, row.proc))
		}
	}
	r.castOf[castKey{c.Source.OID, c.Target.OID}] = len(r.casts)
	r.casts = append(r.casts, c)
}

func mustType(name string) *datum.Desc {
	d, ok := TypeByName(name)
	if !ok {
		panic("builtin: no type " + name)
	}
	return d
}

// parseProc reads one row of the function table. The table is part of the
// program: a mistake in it is a panic.
func parseProc(row *procRow) *Func {
	name, rest, _ := strings.Cut(row.sig, "(")
	args, result, ok := strings.Cut(rest, ") ")
	if !ok {
		panic("builtin: bad signature " + row.sig)
	}
	f := &Func{OID: row.oid, Name: name, Kind: Scalar, Volatility: Volatility(row.attrs[0])}
	for _, c := range row.attrs[1:] {
		switch c {
		case '!':
			f.Strict = true
		case 'a':
			f.Kind = Aggregate
		case 'w':
			f.Kind = Window
		default:
			panic("builtin: bad attributes of " + row.sig)
		}
	}
	if args != "" {
		list := strings.Split(args, ", ")
		for i, a := range list {
			f.parseArg(a, i, len(list))
		}
	}
	result, f.RetSet = strings.CutPrefix(result, "setof ")
	result, cols, _ := strings.Cut(strings.TrimSuffix(result, ")"), "(")
	f.Ret = mustType(result)
	if cols != "" {
		for _, c := range strings.Split(cols, ", ") {
			n, t, _ := strings.Cut(c, " ")
			f.Columns = append(f.Columns, Column{Name: n, Type: datum.T(mustType(t))})
		}
	}
	return f
}

func (f *Func) parseArg(s string, i, n int) {
	s, def, hasDefault := strings.Cut(s, " = ")
	s, variadic := strings.CutPrefix(s, "variadic ")
	f.Variadic = f.Variadic || variadic
	if name, typ, named := strings.Cut(s, " "); named {
		if f.ArgNames == nil {
			f.ArgNames = make([]string, n)
		}
		f.ArgNames[i], s = name, typ
	}
	d := mustType(s)
	f.Args = append(f.Args, d)
	if hasDefault {
		v, err := d.Parse(def, -1, &datum.ContractFormat)
		if err != nil {
			panic(fmt.Sprintf("builtin: default %q of %s: %v", def, f.Name, err))
		}
		f.Defaults++
		f.DefaultArgs = append(f.DefaultArgs, v)
	}
}

// implKey is the key of implementations that PostgreSQL writes in SQL, and of
// aggregates: the name with the argument types.
func implKey(f *Func) string {
	var b strings.Builder
	b.WriteString(f.Name)
	b.WriteByte('(')
	for i, d := range f.Args {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(d.Name)
	}
	b.WriteByte(')')
	return b.String()
}

// The maps from implementation names to Go functions; each file contributes
// one. A name stands in one of them only.
type (
	evalMap    = map[string]Eval
	bindMap    = map[string]func(args []datum.Type, ret datum.Type) (Eval, error)
	setMap     = map[string]SetEval
	bindSetMap = map[string]func(args []datum.Type) (SetEval, []Column, error)
)

// link finds f's implementation by name. A function without one is bound to the
// error that says so.
func link(f *Func, impl string) {
	f.built = true
	switch f.Kind {
	case Aggregate:
		if f.AggKind() != NormalAgg {
			return // the executor computes them, by name
		}
		if f.NewState, f.OrderSensitive = newState(f, impl); f.NewState != nil {
			return
		}
	case Window:
		return // the executor computes window functions, by name
	default:
		if f.Eval = find(evals, impl); f.Eval != nil {
			return
		}
		if f.Bind = find(binds, impl); f.Bind != nil {
			return
		}
		if f.Set = find(sets, impl); f.Set != nil {
			return
		}
		if f.BindSet = find(bindSets, impl); f.BindSet != nil {
			return
		}
		if linkExtreme(f, impl) || linkByShape(f, impl) {
			return
		}
	}
	f.unbuilt()
}

func find[V any](maps []map[string]V, key string) (v V) {
	for _, m := range maps {
		if v, ok := m[key]; ok {
			return v
		}
	}
	return v
}

// unbuilt gives f implementations that answer 0A000.
func (f *Func) unbuilt() {
	f.built = false
	switch {
	case f.Kind == Aggregate:
		f.NewState = func([]datum.Type) AggState { return unbuiltState{f} }
	case f.RetSet:
		f.BindSet = func([]datum.Type) (SetEval, []Column, error) { return nil, nil, f.notBuilt() }
	default:
		f.Bind = func([]datum.Type, datum.Type) (Eval, error) { return nil, f.notBuilt() }
	}
}

type unbuiltState struct{ f *Func }

func (s unbuiltState) Add(*Ctx, []datum.Datum) error    { return s.f.notBuilt() }
func (s unbuiltState) Result(*Ctx) (datum.Datum, error) { return datum.Null, s.f.notBuilt() }

// Built reports whether the function has an implementation. The table also
// holds functions without one, so that overloads resolve as in PostgreSQL;
// calling one answers 0A000.
func (f *Func) Built() bool { return f.built }

func (f *Func) notBuilt() error {
	return pgerr.NotBuilt("function %s is not supported", f)
}

// BindEval returns the implementation of a scalar function for given argument
// types: Eval, or what Bind makes.
func (f *Func) BindEval(args []datum.Type, ret datum.Type) (Eval, error) {
	switch {
	case f.Eval != nil:
		return f.Eval, nil
	case f.Bind != nil:
		return f.Bind(args, ret)
	}
	return nil, f.notBuilt()
}

// BindRows returns the implementation of a set-returning function for given
// argument types, with the columns it produces.
func (f *Func) BindRows(args []datum.Type, ret datum.Type) (SetEval, []Column, error) {
	switch {
	case f.BindSet != nil:
		return f.BindSet(args)
	case f.Set == nil:
		return nil, nil, f.notBuilt()
	case f.Columns != nil:
		return f.Set, f.Columns, nil
	}
	return f.Set, []Column{{Name: f.Name, Type: ret}}, nil
}
