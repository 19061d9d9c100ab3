package exec

import (
	"fmt"

	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/plan"
)

// compiler turns one plan or expression into closures and node programs.
type compiler struct {
	args    int // scratch places handed out
	layouts map[*catalog.Table]*catalog.Layout

	reads, fills slotSet // by what was compiled so far; see watch
	userCalls    bool    // a user-defined function was met
	measured     *Measurement
	local        bool                   // not for a contract: may use the batch engine
	shared       map[plan.Node]nodeProg // inner sides of hash joins, if local
	guards       guards
}

// nodeProg is the immutable form of a plan node; iter makes the state of one
// execution.
type nodeProg interface {
	iter() rowIter
}

// rowIter makes rows by filling slots of the frame.
type rowIter interface {
	// open starts the rows, or starts them again from the beginning.
	open(f *frame) error
	// next makes the next row; false means that there is none.
	next(f *frame) (bool, error)
	// close ends an execution: storage iterators are closed and rows forgotten.
	// The iterator may be opened again. It is safe on one never opened.
	close()
}

// scratch reserves n places for arguments in the frame.
func (c *compiler) scratch(n int) int {
	at := c.args
	c.args += n
	return at
}

func (c *compiler) layout(t *catalog.Table) (*catalog.Layout, error) {
	if l, ok := c.layouts[t]; ok {
		return l, nil
	}
	l, err := catalog.NewLayout(t)
	if err != nil {
		return nil, err
	}
	if c.layouts == nil {
		c.layouts = map[*catalog.Table]*catalog.Layout{}
	}
	c.layouts[t] = l
	return l, nil
}

func (c *compiler) node(n plan.Node) (nodeProg, error) {
	p, err := c.bareNode(n)
	if c.measured != nil {
		return c.measured.watched(n, p, err)
	}
	return p, err
}

func (c *compiler) bareNode(n plan.Node) (nodeProg, error) {
	switch n := n.(type) {
	case *plan.Result:
		return c.result(n)
	case *plan.Scan:
		return c.scan(n)
	case *plan.VirtualScan:
		return c.virtualScan(n)
	case *plan.FuncScan:
		return c.funcScan(n)
	case *plan.ProjectSet:
		return c.projectSet(n)
	case *plan.Values:
		return c.values(n)
	case *plan.Filter:
		return c.filter(n)
	case *plan.NestLoop:
		return c.nestLoop(n)
	case *plan.HashJoin:
		return c.hashJoin(n)
	case *plan.Project:
		return c.project(n)
	case *plan.Aggregate:
		return c.aggregate(n)
	case *plan.Window:
		return c.window(n)
	case *plan.Sort:
		return c.sort(n)
	case *plan.Limit:
		return c.limit(n)
	case *plan.Unique:
		return c.unique(n)
	case *plan.Append:
		return c.appendNode(n)
	case *plan.SetOp:
		return c.setOp(n)
	case *plan.With:
		return c.withNode(n)
	case *plan.CTEScan:
		return c.cteScan(n)
	case *plan.Modify:
		return c.modify(n)
	}
	return nil, fmt.Errorf("exec: plan node %T is unknown", n)
}

// exprs compiles a list; nil entries stay nil.
func (c *compiler) exprs(list []plan.Expr) ([]evalFunc, error) {
	out := make([]evalFunc, len(list))
	for i, e := range list {
		ev, err := c.optional(e)
		if err != nil {
			return nil, err
		}
		out[i] = ev
	}
	return out, nil
}

// optional compiles an expression that may be absent.
func (c *compiler) optional(e plan.Expr) (evalFunc, error) {
	if e == nil {
		return nil, nil
	}
	return c.expr(e)
}

func typesOf(list []plan.Expr) []datum.Type {
	types := make([]datum.Type, len(list))
	for i, e := range list {
		types[i] = e.Type()
	}
	return types
}

// pass evaluates a condition that may be absent: only true passes.
func pass(f *frame, cond evalFunc) (bool, error) {
	if cond == nil {
		return true, nil
	}
	d, err := cond(f)
	return err == nil && d.IsTrue(), err
}
