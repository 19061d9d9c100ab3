package contracts

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"github.com/tallystick/tallystick/contracts/determinism"
	"github.com/tallystick/tallystick/contracts/plpgsql"
	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/exec"
	"github.com/tallystick/tallystick/sql/pgcatalog"
	"github.com/tallystick/tallystick/sql/pgerr"
	"github.com/tallystick/tallystick/sql/plan"
)

// Functions compiles and runs user-defined functions. It is shared by all
// goroutines of a node.
type Functions struct {
	// Virtual finds the computed relations that functions outside of schema
	// blockchain may read; nil means none. Set before first use.
	Virtual func(schema, name string) *plan.Virtual
	// Verify says whether a contract may execute a statement: determinism.Verify,
	// unless the language is to be tested without the rules for contracts. Set
	// before first use.
	Verify func(*plpgsql.Piece) error

	exec exec.Functions

	mu    sync.Mutex
	cache atomic.Pointer[map[cacheKey]*entry]
}

// maxCached bounds the cache of compiled functions; when it is full it starts
// over.
const maxCached = 4096

type cacheKey struct {
	oid     catalog.OID
	version int
	shape   string
}

type entry struct {
	def  atomic.Pointer[catalog.Func] // the definition last asked for, equal to the compiled one
	code body
}

// body is a compiled function of some language.
type body interface {
	Call(env *exec.Env, args []datum.Datum) (datum.Datum, error)
	CallSet(env *exec.Env, args []datum.Datum, emit func(row []datum.Datum) error) error
	// Check plans all statements against a catalog.
	Check(cat *catalog.Catalog) []error
}

// NewFunctions makes an empty cache.
func NewFunctions() *Functions {
	f := &Functions{Verify: determinism.Verify}
	f.exec = exec.Functions{Call: f.Call, CallSet: f.CallSet, Trigger: f.Trigger}
	f.cache.Store(&map[cacheKey]*entry{})
	return f
}

// Exec is the value for exec.Env.Functions.
func (f *Functions) Exec() *exec.Functions { return &f.exec }

// Call runs a function and returns its value: the result, a record for several
// OUT arguments. Args are the input arguments, defaults filled in. A strict
// function with a null argument is not run: the result is null.
func (f *Functions) Call(env *exec.Env, fn *catalog.Func, args []datum.Datum) (datum.Datum, error) {
	back, err := enter(env, fn)
	if err != nil {
		return datum.Null, err
	}
	defer func() { env.Role = back }()
	if fn.Strict && anyNull(args) {
		return datum.Null, nil
	}
	code, err := f.compiled(fn)
	if err != nil {
		return datum.Null, err
	}
	return code.Call(env, args)
}

// CallSet runs a function in FROM and hands out its rows, one datum per result
// column; emit's slice is only valid during the call. A strict function with a
// null argument gives no rows, or a row of nulls if it does not return a set.
func (f *Functions) CallSet(env *exec.Env, fn *catalog.Func, args []datum.Datum, emit func(row []datum.Datum) error) error {
	back, err := enter(env, fn)
	if err != nil {
		return err
	}
	defer func() { env.Role = back }()
	if fn.Strict && anyNull(args) {
		if fn.RetSet {
			return nil
		}
		return emit(nullRow(fn))
	}
	code, err := f.compiled(fn)
	if err != nil {
		return err
	}
	return code.CallSet(env, args, emit)
}

// Trigger runs a trigger function and returns its row, nil for null. Who may
// change the table need not be allowed to execute the function.
func (f *Functions) Trigger(env *exec.Env, fn *catalog.Func, call *exec.TriggerCall) ([]datum.Datum, error) {
	back := env.Role
	defer func() { env.Role = back }()
	become(env, fn)
	code, err := f.compiled(fn)
	if err != nil {
		return nil, err
	}
	pl, ok := code.(*plpgsql.Function)
	if !ok {
		return nil, pgerr.New(pgerr.InvalidFunctionDefinition, "SQL functions cannot return type trigger")
	}
	return pl.CallTrigger(env, call)
}

func anyNull(args []datum.Datum) bool {
	for _, a := range args {
		if a.IsNull() {
			return true
		}
	}
	return false
}

func nullRow(fn *catalog.Func) []datum.Datum {
	n := len(fn.OutArgs())
	if n == 0 && fn.Ret.Desc != nil {
		n = len(fn.Ret.Fields)
	}
	row := make([]datum.Datum, max(n, 1))
	for i := range row {
		row[i] = datum.Null
	}
	return row
}

// compiled returns the compiled form of a function.
func (f *Functions) compiled(fn *catalog.Func) (body, error) {
	k := cacheKey{fn.OID, fn.Version, fn.Shape}
	if e := (*f.cache.Load())[k]; e != nil {
		def := e.def.Load()
		if def == fn {
			return e.code, nil
		}
		if sameDefinition(def, fn) {
			e.def.Store(fn)
			return e.code, nil
		}
	}
	code, err := f.compile(fn)
	if err != nil {
		return nil, err
	}
	e := &entry{code: code}
	e.def.Store(fn)
	f.mu.Lock()
	defer f.mu.Unlock()
	next := map[cacheKey]*entry{}
	if old := *f.cache.Load(); len(old) < maxCached {
		next = maps.Clone(old)
	}
	next[k] = e
	f.cache.Store(&next)
	return code, nil
}

// sameDefinition reports whether two descriptors compile to the same.
func sameDefinition(a, b *catalog.Func) bool {
	return a.Body == b.Body && a.Language == b.Language && a.Schema == b.Schema && a.Name == b.Name &&
		a.Ret.Desc.OID == b.Ret.Desc.OID && (a.Ret.Desc == b.Ret.Desc || a.Shape != "") && a.Kind == b.Kind && a.RetOID == b.RetOID && a.RetMod == b.RetMod && a.RetSet == b.RetSet &&
		a.Volatility == b.Volatility && slices.Equal(a.Args, b.Args) && slices.Equal(a.Settings, b.Settings)
}

func (f *Functions) compile(fn *catalog.Func) (body, error) {
	contract := fn.Schema == catalog.Blockchain
	path := searchPath(fn)
	virtual, verify, format := f.Virtual, f.Verify, literalFormat(path)
	if contract {
		virtual, format = nil, nil
	} else {
		verify = nil
	}
	switch fn.Language {
	case "plpgsql":
		return plpgsql.Compile(fn, plpgsql.Options{SearchPath: path, Contract: contract, Virtual: virtual, Verify: verify, Format: format})
	case "sql":
		s, err := compileSQL(fn, &plan.Options{
			SearchPath: path, Contract: contract, Virtual: virtual, Format: &datum.ContractFormat,
		}, format)
		if err != nil {
			return nil, err
		}
		s.verify = verify
		return s, nil
	}
	return nil, pgerr.New(pgerr.UndefinedObject, "language \"%s\" does not exist", fn.Language)
}

// literalFormat is how functions outside of schema blockchain read literals:
// names of relations and the like become their OIDs.
func literalFormat(path []string) func(*catalog.Catalog) *datum.Format {
	return func(cat *catalog.Catalog) *datum.Format {
		f, env := datum.ContractFormat, &pgcatalog.Env{Catalog: cat}
		f.RegOID = func(t *datum.Desc, name string) (datum.OID, error) { return env.RegOID(t, name, path) }
		return &f
	}
}

// searchPath is where a function looks for names: its own setting, or the
// default. It never depends on the caller's session. Contracts do not see
// schemas that differ between nodes.
func searchPath(fn *catalog.Func) []string {
	path := []string{catalog.Temp, catalog.Blockchain, catalog.Private}
	for _, s := range fn.Settings {
		if v, ok := strings.CutPrefix(s, "search_path="); ok {
			path = splitPath(v)
		}
	}
	if fn.Schema != catalog.Blockchain {
		return path
	}
	return slices.DeleteFunc(path, func(s string) bool { return catalog.IsLocal(s) || s == catalog.Provenance })
}

// splitPath reads a list of schemas, quoted or not; the schemas of the session
// that PostgreSQL knows ($user, pg_temp) do not exist here.
func splitPath(v string) []string {
	var path []string
	for _, s := range strings.Split(v, ",") {
		s = strings.TrimSpace(s)
		if n := len(s); n >= 2 && (s[0] == '"' || s[0] == '\'') && s[n-1] == s[0] {
			s = s[1 : n-1]
		}
		if s != "" && s != "$user" && s != "pg_temp" {
			path = append(path, s)
		}
	}
	return path
}

// ValidateFunction checks a definition as CREATE FUNCTION does: the syntax of
// its body and the types in it and, for SQL functions, the statements. An error
// with a position has it in the text of the CREATE statement (Func.Source) if
// the body stands there as it is.
func ValidateFunction(fn *catalog.Func, cat *catalog.Catalog) error {
	poly := plan.IsPolymorphic(fn)
	code, err := new(Functions).compile(validated(fn)) // determinism is a matter of its own
	if err == nil {
		switch c := code.(type) {
		case *plpgsql.Function:
			err = c.Resolve(cat)
		case *sqlFunction:
			if poly {
				break // only a call tells the types
			}
			if errs := c.Check(cat); len(errs) > 0 {
				err = errs[0]
			}
		}
	}
	return inSource(err, fn)
}

// validated is a function as it is checked before anyone calls it: PostgreSQL
// takes int4 for what polymorphic types stand for.
func validated(fn *catalog.Func) *catalog.Func {
	if !plan.IsPolymorphic(fn) {
		return fn
	}
	concrete := func(t datum.Type) datum.Type {
		switch {
		case t.Desc == datum.AnyArray || t.Desc == datum.AnyCompatibleArray:
			return datum.T(datum.Int4.Array)
		case plan.Polymorphic(t.Desc):
			return datum.T(datum.Int4)
		}
		return t
	}
	next := *fn
	next.Args = slices.Clone(fn.Args)
	for i := range next.Args {
		next.Args[i].Type = concrete(fn.Args[i].Type)
	}
	next.Ret = concrete(fn.Ret)
	return &next
}

// CheckFunction plans every statement of a function against a catalog and
// returns all that is wrong.
func CheckFunction(fn *catalog.Func, cat *catalog.Catalog) []error {
	fn = validated(fn)
	code, err := new(Functions).compile(fn)
	if err != nil {
		return []error{inSource(err, fn)}
	}
	return code.Check(cat)
}

// inSource moves a position in the body to the CREATE statement.
func inSource(err error, fn *catalog.Func) error {
	e, ok := pgerr.From(err)
	if !ok || e.InternalPosition == 0 || e.InternalQuery != fn.Body || strings.Count(fn.Source, fn.Body) != 1 {
		return err
	}
	c := *e
	before := utf8.RuneCountInString(fn.Source[:strings.Index(fn.Source, fn.Body)])
	c.Position, c.InternalPosition, c.InternalQuery = before+e.InternalPosition, 0, ""
	return &c
}
