package plpgsql

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/exec"
	"github.com/tallystick/tallystick/sql/pgerr"
	"github.com/tallystick/tallystick/sql/plan"
)

// Function is a compiled function. It is safe for concurrent use.
type Function struct {
	def   *catalog.Func
	name  string // as CONTEXT shows it: transfer(text,text,numeric)
	body  *block
	vars  []*variable
	found *variable
	// trigger are the variables that a trigger function is given: triggerVars.
	trigger []*variable
	opts    plan.Options // what all statements are planned with, but the catalog
	// verify is Options.Verify
	verify func(*Piece) error
	// format is Options.Format.
	format func(cat *catalog.Catalog) *datum.Format

	mu       sync.Mutex
	programs atomic.Pointer[[]*program] // newest catalog last
}

// keptPrograms bounds how many catalogs a function is kept ready for:
// transactions of one block read few different snapshots.
const keptPrograms = 4

// Options is what a function is compiled with.
type Options struct {
	// SearchPath is where the function's statements look for unqualified names;
	// a SET search_path clause of the function goes first.
	SearchPath []string
	// Contract refuses what is not deterministic.
	Contract bool
	// Verify, if not nil, is asked before a piece of SQL is executed for the
	// first time with a plan; its error is that of the execution.
	Verify func(*Piece) error
	// Virtual finds computed relations; nil in a contract.
	Virtual func(schema, name string) *plan.Virtual
	// Format is how literals are read against a catalog; nil in a contract, which
	// has datum.ContractFormat.
	Format func(cat *catalog.Catalog) *datum.Format
}

// Compile parses a function. Errors are *pgerr.Error; those that have a place
// in the body give it as InternalPosition, with the body as InternalQuery.
func Compile(f *catalog.Func, opts Options) (*Function, error) {
	if err := checkSignature(f); err != nil {
		return nil, err
	}
	ps := &parser{src: f.Body, def: f}
	body, err := ps.parse()
	if err != nil {
		return nil, err
	}
	fn := &Function{def: f, name: signature(f), body: body, vars: ps.vars, found: ps.found, trigger: ps.trigger, verify: opts.Verify, format: opts.Format}
	fn.opts = plan.Options{
		SearchPath: opts.SearchPath,
		Contract:   opts.Contract,
		Virtual:    opts.Virtual,
		Format:     &datum.ContractFormat,
	}
	for i := range f.Args {
		fn.opts.Params = append(fn.opts.Params, f.Args[i].Type)
	}
	return fn, nil
}

// checkSignature refuses argument and result types that PL/pgSQL cannot have.
func checkSignature(f *catalog.Func) error {
	if d := f.Ret.Desc; d != nil {
		switch {
		case d == datum.EventTrigger:
			return pgerr.NotBuilt("event triggers are not supported")
		case d == datum.Trigger:
			return checkTriggerSignature(f)
		case polymorphic(d):
			return pgerr.NotBuilt("polymorphic functions are not supported")
		case d.Kind == datum.Pseudo && d != datum.Void && d != datum.Record:
			return pgerr.New(pgerr.FeatureNotSupported, "PL/pgSQL functions cannot return type %s", datum.FormatType(f.Ret))
		}
	}
	for i := range f.Args {
		a := &f.Args[i]
		switch d := a.Type.Desc; {
		case polymorphic(d):
			return pgerr.NotBuilt("polymorphic functions are not supported")
		case d == datum.Record && a.Mode != catalog.Out && a.Mode != catalog.TableArg:
		case d.Kind == datum.Pseudo:
			return pgerr.New(pgerr.FeatureNotSupported, "PL/pgSQL functions cannot accept type %s", datum.FormatType(a.Type))
		}
	}
	return nil
}

func polymorphic(d *datum.Desc) bool {
	switch d {
	case datum.AnyElement, datum.AnyArray, datum.AnyNonArray, datum.AnyEnum, datum.AnyCompatible,
		datum.AnyCompatibleArray, datum.AnyCompatibleNonArray, datum.Any:
		return true
	}
	return false
}

// signature is the function as CONTEXT lines name it.
func signature(f *catalog.Func) string {
	var b strings.Builder
	b.WriteString(quoteIdent(f.Name))
	b.WriteByte('(')
	for i, a := range f.InArgs() {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(datum.FormatType(datum.Type{Desc: a.Type.Desc, Mod: -1}))
	}
	b.WriteByte(')')
	return b.String()
}

// Def is the function's catalog entry.
func (f *Function) Def() *catalog.Func { return f.def }

// program returns the function made ready for a catalog, or an error and what
// there is of it.
func (f *Function) program(cat *catalog.Catalog) (*program, error) {
	if list := f.programs.Load(); list != nil {
		for i := len(*list) - 1; i >= 0; i-- {
			if (*list)[i].opts.Catalog == cat {
				return (*list)[i], nil
			}
		}
	}
	return f.makeProgram(cat)
}

func (f *Function) makeProgram(cat *catalog.Catalog) (*program, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var list []*program
	if old := f.programs.Load(); old != nil {
		list = *old
	}
	if i := slices.IndexFunc(list, func(p *program) bool { return p.opts.Catalog == cat }); i >= 0 {
		return list[i], nil
	}
	p, err := f.build(cat)
	if err != nil {
		return p, err
	}
	next := append(slices.Clone(list[max(len(list)-keptPrograms+1, 0):]), p)
	f.programs.Store(&next)
	return p, nil
}

// Call runs a function that returns one value: the result, a record for
// several OUT arguments or a row, null for void. Args are the input arguments.
func (f *Function) Call(env *exec.Env, args []datum.Datum) (datum.Datum, error) {
	if isTrigger(f.def) {
		return datum.Null, f.onlyTrigger()
	}
	p, err := f.program(env.Catalog)
	if err != nil {
		(&looked{p.reads}).failed(env)
		return datum.Null, err
	}
	fr := p.frame(env)
	err = fr.run(args)
	var d datum.Datum
	if err == nil {
		d = fr.result()
	}
	p.release(fr)
	return d, err
}

// CallSet runs any function and hands out its rows, one datum per result
// column. emit's slice is only valid during the call.
func (f *Function) CallSet(env *exec.Env, args []datum.Datum, emit func(row []datum.Datum) error) error {
	if isTrigger(f.def) {
		return f.onlyTrigger()
	}
	p, err := f.program(env.Catalog)
	if err != nil {
		(&looked{p.reads}).failed(env)
		return err
	}
	fr := p.frame(env)
	fr.emit = emit
	err = fr.run(args)
	if err == nil && !f.def.RetSet {
		err = emit(fr.resultRow())
	}
	p.release(fr)
	return err
}

// Check plans all statements of the function against a catalog without running
// any, and returns what is wrong with them, in the order of the text. Fields of
// RECORD variables are checked as far as the text shows what the variables
// hold; EXECUTE is not checked.
func (f *Function) Check(cat *catalog.Catalog) []error {
	p, err := f.program(cat)
	if err != nil {
		return []error{err}
	}
	return p.check()
}

// Plans calls visit for every plan and expression of the function that [Check]
// could make, in the order of the text: for tools that ask what a function
// reads and writes.
func (f *Function) Plans(cat *catalog.Catalog, visit func(line int, st *plan.Plan, e *plan.ExprPlan)) []error {
	p, err := f.program(cat)
	if err != nil {
		return []error{err}
	}
	return p.visit(&checker{p: p, visit: visit})
}

// Resolve checks what CREATE FUNCTION checks beyond the syntax: that the types
// and targets of the function exist.
func (f *Function) Resolve(cat *catalog.Catalog) error {
	_, err := f.program(cat)
	return err
}
