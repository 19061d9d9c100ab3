package exec

import "github.com/tallystick/tallystick/sql/plan"

// Measurement collects what EXPLAIN ANALYZE shows: how often each node of a
// plan was started and how many rows it made. It belongs to one execution.
type Measurement struct {
	// Clock, in microseconds, times the nodes; nil measures no time. Only local
	// queries are measured, so that no result of a contract can depend on it.
	Clock func() int64
	nodes map[plan.Node]*measure
}

// measure is one node's share; times in microseconds, of all loops together.
type measure struct {
	clock          func() int64
	loops, rows    int64
	startup, total int64
	current        int64 // of the present loop, until its first row
	firstRowHit    bool
}

// Of returns the figures of a node; the zero value for one that never ran.
func (m *Measurement) Of(n plan.Node) plan.Actual {
	x := m.nodes[n]
	if x == nil {
		return plan.Actual{}
	}
	return plan.Actual{Loops: x.loops, Rows: x.rows, Startup: float64(x.startup) / 1000, Total: float64(x.total) / 1000}
}

// CompileMeasured is [Compile] for one execution whose nodes report to m. The
// plan must not write.
func CompileMeasured(p *plan.Plan, m *Measurement) (*Program, error) {
	m.nodes = map[plan.Node]*measure{}
	c := compiler{measured: m}
	root, err := c.node(p.Root)
	if err != nil {
		return nil, err
	}
	return &Program{plan: p, root: root, args: c.args}, nil
}

// watched wraps the program of a node of a measured plan.
func (m *Measurement) watched(n plan.Node, p nodeProg, err error) (nodeProg, error) {
	if err != nil {
		return nil, err
	}
	x := m.nodes[n]
	if x == nil {
		x = &measure{clock: m.Clock}
		m.nodes[n] = x
	}
	return &measuredProg{p, x}, nil
}

type measuredProg struct {
	nodeProg
	m *measure
}

func (p *measuredProg) iter() rowIter { return &measuredIter{p.nodeProg.iter(), p.m} }

type measuredIter struct {
	it rowIter
	m  *measure
}

func (m *measure) now() int64 {
	if m.clock == nil {
		return 0
	}
	return m.clock()
}

func (it *measuredIter) open(f *frame) error {
	m := it.m
	m.loops++
	m.firstRowHit, m.current = false, 0
	start := m.now()
	err := it.it.open(f)
	m.spent(m.now() - start)
	return err
}

func (it *measuredIter) next(f *frame) (bool, error) {
	m := it.m
	start := m.now()
	ok, err := it.it.next(f)
	m.spent(m.now() - start)
	if !m.firstRowHit {
		m.firstRowHit = true
		m.startup += m.current
	}
	if ok {
		m.rows++
	}
	return ok, err
}

func (m *measure) spent(d int64) {
	m.total += d
	m.current += d
}

func (it *measuredIter) close() { it.it.close() }
