package exec

import (
	"sync"

	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/plan"
)

// ExprProgram is a compiled expression that stands alone: one of PL/pgSQL, a
// default. It is immutable and may be evaluated by any number of goroutines.
type ExprProgram struct {
	eval evalFunc
	typ  datum.Type

	slots, args, subs, ctes int
	plain                   bool // needs no memory of its own

	idle   sync.Pool // *frame, of expressions with subqueries
	guards guards
}

// CompileExpr compiles an expression whose frame has the given number of
// slots, subqueries and WITH queries.
func CompileExpr(e plan.Expr, slots, subqueries, ctes int) (*ExprProgram, error) {
	c := compiler{}
	ev, err := c.expr(e)
	if err != nil {
		return nil, err
	}
	x := &ExprProgram{eval: ev, typ: e.Type(), slots: slots, args: c.args, subs: subqueries, ctes: ctes, guards: c.guards}
	x.plain = slots == 0 && c.args == 0 && subqueries == 0 && ctes == 0
	return x, nil
}

// Type is the type of the value.
func (x *ExprProgram) Type() datum.Type { return x.typ }

// Eval computes the expression. Params are read while it runs and may be
// changed afterwards. Evaluations may nest: a function that the expression
// calls may evaluate it again with the same env.
func (x *ExprProgram) Eval(env *Env, params []datum.Datum) (datum.Datum, error) {
	if x.subs != 0 || x.ctes != 0 {
		return x.evalQueries(env, params)
	}
	f := env.push()
	f.start(env, params)
	if x.plain {
		d, err := x.eval(f)
		env.nested--
		return d, err
	}
	f.slots = resize(f.slots, x.slots)
	f.args = resize(f.args, x.args)
	d, err := x.eval(f)
	clear(f.slots)
	clear(f.args)
	env.nested--
	return d, err
}

// evalQueries is Eval of an expression with subqueries. Its frames hold their
// iterators and are therefore its own.
func (x *ExprProgram) evalQueries(env *Env, params []datum.Datum) (datum.Datum, error) {
	if err := x.guards.check(env); err != nil {
		return datum.Null, err
	}
	f, ok := x.idle.Get().(*frame)
	if !ok {
		f = &frame{slots: make([]datum.Datum, x.slots), args: make([]datum.Datum, x.args),
			subs: make([]subState, x.subs), ctes: make([]*cteState, x.ctes)}
	}
	f.start(env, params)
	d, err := x.eval(f)
	for i := range f.subs {
		f.subs[i].close()
	}
	f.reset()
	x.idle.Put(f)
	return d, err
}

// push takes the frame for one more nested evaluation.
func (env *Env) push() *frame {
	if env.nested == len(env.idle) {
		env.idle = append(env.idle, &frame{})
	}
	env.nested++
	return env.idle[env.nested-1]
}

func resize(s []datum.Datum, n int) []datum.Datum {
	if n <= cap(s) {
		return s[:n]
	}
	return make([]datum.Datum, n)
}
