package exec

import (
	"sync"

	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
	"github.com/tallystick/tallystick/sql/plan"
)

// Program is a compiled plan. It is immutable and may be run by any number of
// goroutines at a time.
type Program struct {
	plan *plan.Plan
	root nodeProg
	args int
	// guards are what the role that runs it is asked for.
	guards guards
	top    bool // the root, or the body of its WITH, is a data modification

	idle sync.Pool // *execution
}

// execution is the working state of one run. It goes back to the program's
// pool when it is closed, iterators and all.
type execution struct {
	frame frame
	root  rowIter
	row   []datum.Datum
	rows  int64

	drained bool     // a plan that writes has run to its end
	kept    rowStore // what it returned
	pos     int
}

// Compile makes a program of a plan. Errors are *pgerr.Error for what cannot be
// run (0A000), anything else for a plan that contradicts itself.
func Compile(p *plan.Plan) (*Program, error) { return compileWith(p, compiler{}) }

// CompileLocal is [Compile] for local queries: the program may run in the batch
// engine. Run as part of a transaction of the chain it does what that of Compile
// does.
func CompileLocal(p *plan.Plan) (*Program, error) {
	return compileWith(p, compiler{local: true, shared: map[plan.Node]nodeProg{}})
}

func compileWith(p *plan.Plan, c compiler) (*Program, error) {
	root, err := c.node(p.Root)
	if err != nil {
		return nil, err
	}
	prog := &Program{plan: p, root: root, args: c.args, guards: c.guards}
	body := p.Root
	if w, ok := body.(*plan.With); ok {
		body = w.Body
	}
	_, prog.top = body.(*plan.Modify)
	prog.markTop(root)
	return prog, nil
}

// markTop tells the data modification that is the statement itself, not a
// member of WITH, to count its rows.
func (p *Program) markTop(root nodeProg) {
	if w, ok := root.(*withProg); ok {
		root = w.body
	}
	if m, ok := root.(*modifyProg); ok {
		m.top = true
	}
}

// Plan returns the plan that the program was made from.
func (p *Program) Plan() *plan.Plan { return p.plan }

func (p *Program) take() *execution {
	if x, ok := p.idle.Get().(*execution); ok {
		return x
	}
	x := &execution{root: p.root.iter(), row: make([]datum.Datum, len(p.plan.Out))}
	x.frame.slots = make([]datum.Datum, p.plan.Slots)
	x.frame.args = make([]datum.Datum, p.args)
	x.frame.subs = make([]subState, p.plan.Subqueries)
	x.frame.ctes = make([]*cteState, p.plan.CTEs)
	x.kept.width = len(p.plan.Out)
	return x
}

func (p *Program) begin(env *Env, params []datum.Datum) (*execution, error) {
	if p.plan.Writes && (env.ReadOnly && !p.plan.Local || env.PrivateReadOnly && p.plan.Local) {
		if env.Private != nil && !env.PrivateReadOnly && !p.plan.Local {
			return nil, pgerr.New(pgerr.InsufficientPrivilege, "cannot execute %s here: rows in schema blockchain are changed by contracts only", p.writer())
		}
		return nil, pgerr.New(pgerr.ReadOnlySQLTransaction, "cannot execute %s in a read-only transaction", p.writer())
	}
	if reads := p.plan.Reads; len(reads) > 0 && env.Txn != nil {
		env.NoteShared(reads)
	}
	if p.guards != nil {
		if err := p.guards.check(env); err != nil {
			return nil, err
		}
	}
	x := p.take()
	x.frame.start(env, params)
	if err := x.root.open(&x.frame); err != nil {
		p.end(x)
		return nil, err
	}
	return x, nil
}

// writer is the command that a read-only transaction refuses.
func (p *Program) writer() string {
	if p.plan.Command == "" {
		return "data modification"
	}
	return p.plan.Command
}

// end closes an execution and puts it away.
func (p *Program) end(x *execution) {
	x.root.close()
	for i := range x.frame.subs {
		x.frame.subs[i].close()
	}
	x.kept.drop()
	clear(x.row)
	x.frame.reset()
	x.rows, x.drained, x.pos = 0, false, 0
	p.idle.Put(x)
}

// next makes the next result row.
func (x *execution) next(p *Program) ([]datum.Datum, error) {
	f := &x.frame
	if p.plan.Writes {
		return x.nextOfWriter(p)
	}
	ok, err := x.root.next(f)
	if err != nil || !ok {
		return nil, err
	}
	x.rows++
	for i, s := range p.plan.Out {
		x.row[i] = f.slots[s]
	}
	return x.row, nil
}

// nextOfWriter runs a plan that writes to its end before it hands out the first
// row: closing a cursor early must not leave a statement half done.
func (x *execution) nextOfWriter(p *Program) ([]datum.Datum, error) {
	f := &x.frame
	if !x.drained {
		for {
			ok, err := x.root.next(f)
			if err != nil {
				return nil, err
			}
			if !ok {
				break
			}
			if err := x.kept.addSlots(f, p.plan.Out); err != nil {
				return nil, err
			}
		}
		if err := f.finish(); err != nil {
			return nil, err
		}
		x.drained, x.rows = true, int64(x.kept.n)
	}
	if len(p.plan.Out) == 0 || x.pos == x.kept.n {
		return nil, nil
	}
	x.pos++
	return x.kept.row(x.pos - 1), nil
}

// affected is what the command tag counts.
func (x *execution) affected(p *Program) int64 {
	if p.top {
		return x.frame.affected
	}
	return x.rows
}

// Cursor is one execution of a program. It is not safe for concurrent use.
type Cursor struct {
	prog *Program
	x    *execution // nil once closed
	done bool
	rows int64 // RowsAffected, once closed
}

// Open begins an execution. Params are read while it runs, not copied: the
// caller must leave the slice alone until the cursor is closed. A plan that
// writes is refused with 25006 when the environment is read-only.
func (p *Program) Open(env *Env, params []datum.Datum) (*Cursor, error) {
	x, err := p.begin(env, params)
	if err != nil {
		return nil, err
	}
	return &Cursor{prog: p, x: x}, nil
}

// Next returns the next row, or nil at the end. The slice is valid until the
// next call; the datums may be kept. A statement that modifies data does all of
// it in the first call; without RETURNING that call returns nil.
//
// After an error the cursor only can be closed. What the statement wrote before
// stays in the transaction: the caller rolls back to a savepoint, or gives up.
func (c *Cursor) Next() (row []datum.Datum, err error) {
	if c.done || c.x == nil {
		return nil, nil
	}
	if c.x.frame.env.Temp != nil {
		defer catchTempFault(&err)
	}
	row, err = c.x.next(c.prog)
	c.done = row == nil
	return row, err
}

// RowsAffected is the number that belongs into the command tag: rows inserted,
// updated or deleted, or rows returned so far by a query.
func (c *Cursor) RowsAffected() int64 {
	if c.x == nil {
		return c.rows
	}
	return c.x.affected(c.prog)
}

// Close ends the execution; closing again does nothing. What a query did not
// read when it is closed early is not in the footprint either.
func (c *Cursor) Close() error {
	if c.x == nil {
		return nil
	}
	c.rows = c.x.affected(c.prog)
	c.prog.end(c.x)
	c.x = nil
	return nil
}

// Run executes the program to its end and drops the rows. Params are read
// while it runs.
func (p *Program) Run(env *Env, params []datum.Datum) (rowsAffected int64, err error) {
	x, err := p.begin(env, params)
	if err != nil {
		return 0, err
	}
	defer p.end(x)
	if env.Temp != nil {
		defer catchTempFault(&err)
	}
	for {
		row, err := x.next(p)
		if err != nil {
			return 0, err
		}
		if row == nil {
			return x.affected(p), nil
		}
	}
}

// First is SELECT INTO: it copies the first row into dst and returns how many
// rows there are, at most 2: the program stops there, unless it modifies data,
// which is done completely.
func (p *Program) First(env *Env, params, dst []datum.Datum) (n int, err error) {
	return p.FirstOf(env, params, dst, 2)
}

// FirstOf is [Program.First] with a bound of one's own for n: with 1 nothing is
// read behind the first row.
func (p *Program) FirstOf(env *Env, params, dst []datum.Datum, limit int) (n int, err error) {
	x, err := p.begin(env, params)
	if err != nil {
		return 0, err
	}
	defer p.end(x)
	if env.Temp != nil {
		defer catchTempFault(&err)
	}
	for n < limit {
		row, err := x.next(p)
		if err != nil {
			return 0, err
		}
		if row == nil {
			return n, nil
		}
		if n == 0 {
			copy(dst, row)
		}
		n++
	}
	return n, nil
}
