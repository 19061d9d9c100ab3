package plpgsql

import (
	"sync/atomic"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/tallystick/tallystick/mvcc/rwset"
	"github.com/tallystick/tallystick/sql/builtin"
	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/exec"
	"github.com/tallystick/tallystick/sql/parse"
	"github.com/tallystick/tallystick/sql/pgerr"
	"github.com/tallystick/tallystick/sql/plan"
)

// callSite is a CALL of a procedure.
type callSite struct {
	s    *site
	call *pg.FuncCall
	outs []*place // per argument: where an OUT or INOUT argument goes; nil = not writable
	cur  atomic.Pointer[plannedCall]
}

type plannedCall struct {
	planned
	proc  *catalog.Func
	args  []*exec.ExprProgram // of the input arguments
	outs  []int               // per OUT argument: which argument of the call
	types []datum.Type        // of the OUT arguments
	plans []*plan.ExprPlan    // of the input arguments
}

func (b *builder) call(s *callStmt) runFunc {
	c := &callSite{s: &site{p: b.p, e: s.query}, call: s.query.whole.Node.GetCallStmt().Funccall}
	for _, a := range c.call.Args {
		c.outs = append(c.outs, b.writable(a, s.query.ns))
	}
	b.check(func(fr *frame, ck *checker) {
		ck.inspecting(c.s)
		pl, err := c.ready(fr)
		if err != nil {
			ck.add(err, s.line(), s.title())
		}
		if err == nil && ck.to != nil {
			for _, ep := range pl.plans {
				ck.to.Piece(&Piece{Offset: s.query.pos, Start: s.query.pos, Expr: ep})
			}
			ck.to.Piece(&Piece{Start: s.query.pos, Call: pl.proc})
		}
	})
	return c.run
}

// writable resolves an argument that is the name of a variable.
func (b *builder) writable(n *pg.Node, ns *name) *place {
	ref := n.GetColumnRef()
	if ref == nil {
		return nil
	}
	var parts []string
	for _, f := range ref.Fields {
		if f.GetString_() == nil {
			return nil
		}
		parts = append(parts, f.GetString_().Sval)
	}
	v, used := lookup(ns, parts, false)
	if v == nil || v.constant {
		return nil
	}
	t := target{v: v}
	for _, f := range parts[used:] {
		t.path = append(t.path, step{field: f})
	}
	return b.place(&t)
}

func (c *callSite) ready(fr *frame) (*plannedCall, error) {
	if pl := c.cur.Load(); pl != nil && pl.fits(fr) {
		return pl, nil
	}
	pl := &plannedCall{}
	b := binder{p: c.s.p, fr: fr, ns: c.s.e.ns, pl: &pl.planned}
	var l looked
	opts := c.s.p.opts
	opts.Variable, opts.Script, opts.Note = b.variable, c.s.e.whole.Script, l.note
	if err := c.resolve(pl, &opts); err != nil {
		l.failed(fr.env)
		return nil, c.s.placed(b.blame(err), 0)
	}
	for _, i := range pl.outs {
		if i >= len(c.outs) || c.outs[i] == nil {
			l.failed(fr.env)
			return nil, pgerr.New(pgerr.SyntaxError,
				"procedure parameter \"%s\" is an output parameter but corresponding argument is not writable", pl.proc.Args[i].Name)
		}
	}
	c.cur.Store(pl)
	return pl, nil
}

// resolve chooses the procedure by the types of the arguments, OUT arguments
// included, and compiles the input arguments.
func (c *callSite) resolve(pl *plannedCall, opts *plan.Options) error {
	actual := make([]datum.Type, len(c.call.Args))
	for i, a := range c.call.Args {
		if a.GetNamedArgExpr() != nil {
			return pgerr.NotBuilt("named arguments of CALL are not supported in a function")
		}
		ep, err := plan.Expression(a, datum.Type{}, opts)
		if err != nil {
			return err
		}
		actual[i] = ep.Expr.Type()
	}
	if err := c.choose(pl, actual, opts); err != nil {
		return err
	}
	for i := range pl.proc.Args {
		a := &pl.proc.Args[i]
		if a.Mode == catalog.Out || a.Mode == catalog.InOut {
			pl.outs, pl.types = append(pl.outs, i), append(pl.types, a.Type)
		}
		if a.Mode == catalog.Out {
			continue
		}
		var ep *plan.ExprPlan
		var err error
		if i < len(c.call.Args) {
			ep, err = plan.Expression(c.call.Args[i], a.Type, opts)
		} else {
			plain := *opts
			plain.Variable = nil
			ep, err = plan.ExpressionText(a.Default, a.Type, &plain)
		}
		if err == nil {
			err = c.s.p.verify(&Piece{Offset: c.s.e.pos, Expr: ep})
		}
		if err != nil {
			return err
		}
		pl.plans = append(pl.plans, ep)
		x, err := exec.CompileExpr(ep.Expr, ep.Slots, ep.Subqueries, ep.CTEs)
		if err != nil {
			return err
		}
		pl.args, pl.reads = append(pl.args, x), append(pl.reads, ep.Reads...)
	}
	return nil
}

func (c *callSite) choose(pl *plannedCall, actual []datum.Type, opts *plan.Options) error {
	var parts []string
	for _, n := range c.call.Funcname {
		parts = append(parts, n.GetString_().GetSval())
	}
	schemas, nameOf := opts.SearchPath, parts[len(parts)-1]
	shown := nameOf
	if len(parts) == 2 {
		schemas, shown = parts[:1], parts[0]+"."+nameOf
	}
	var funcs []*catalog.Func
	var sigs []builtin.Signature
	var reads []rwset.Read
	for _, s := range schemas {
		reads = append(reads, catalog.FuncName(s, nameOf)...)
		if opts.Catalog == nil {
			continue
		}
		for _, f := range opts.Catalog.Funcs(s, nameOf) {
			funcs, sigs = append(funcs, f), append(sigs, procedureSignature(f))
		}
	}
	pl.reads = reads
	opts.Note(reads)
	m, outcome := builtin.SelectCandidate(sigs, actual, nil)
	if outcome != builtin.Found {
		err := builtin.FuncError(shown, actual, nil, outcome)
		if e, ok := pgerr.From(err); ok && outcome == builtin.None {
			e.Message = "procedure" + e.Message[len("function"):]
			e.At(parse.Position(opts.Script, c.call.Location))
			e.Hint = "No procedure matches the given name and argument types. You might need to add explicit type casts."
		}
		return err
	}
	pl.proc = funcs[m.Index]
	if pl.proc.Kind != catalog.Procedure {
		return pgerr.New(pgerr.WrongObjectType, "%s is not a procedure", signature(pl.proc)).
			WithHint("To call a function, use SELECT.").At(parse.Position(opts.Script, c.call.Location))
	}
	return nil
}

// procedureSignature has the OUT arguments too: CALL passes a place for each.
func procedureSignature(f *catalog.Func) builtin.Signature {
	if f.Kind != catalog.Procedure {
		return plan.UserSignature(f)
	}
	var sig builtin.Signature
	for i := range f.Args {
		a := &f.Args[i]
		sig.Args, sig.ArgNames = append(sig.Args, a.Type.Desc), append(sig.ArgNames, a.Name)
		if a.Default != "" {
			sig.Defaults++
		}
	}
	return sig
}

func (c *callSite) run(fr *frame) (flow, error) {
	pl, err := c.ready(fr)
	if err != nil {
		return goOn, err
	}
	pl.bring(fr)
	fr.env.NoteShared(pl.reads)
	args := make([]datum.Datum, len(pl.args))
	for i, x := range pl.args {
		if args[i], err = x.Eval(fr.env, fr.vars); err != nil {
			return goOn, c.s.placed(err, 0)
		}
	}
	d, err := callProcedure(fr.env, pl.proc, args)
	if err != nil {
		return goOn, c.s.placed(err, 0)
	}
	if len(pl.outs) == 0 {
		return goOn, nil
	}
	_, vals := datum.RecordFields(d)
	for i, k := range pl.outs {
		if err := fr.storeAs(c.outs[k], vals[i], pl.types[i]); err != nil {
			return goOn, err
		}
	}
	return goOn, nil
}

// callProcedure counts the call as the executor does with calls of functions.
func callProcedure(env *exec.Env, f *catalog.Func, args []datum.Datum) (datum.Datum, error) {
	if limit := env.Limits.Nesting; limit > 0 && env.Depth >= limit {
		return datum.Null, pgerr.New(pgerr.StatementTooComplex, "stack depth limit exceeded").
			WithHint("Function calls nest more than %d levels.", limit)
	}
	env.Depth++
	defer func() { env.Depth-- }()
	return env.Functions.Call(env, f, args)
}
