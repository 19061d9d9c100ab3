package exec

import (
	"fmt"

	"github.com/tallystick/tallystick/sql/builtin"
	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/plan"
)

// storedIter hands out rows that were computed when it was opened: functions
// and virtual relations push their rows, plans pull them.
type storedIter struct {
	rows   rowStore
	at     int
	slots  []int // for the columns of rows
	filter evalFunc
	fill   func(f *frame, rows *rowStore) error
}

func (it *storedIter) open(f *frame) error {
	it.rows.reset(f)
	it.at = 0
	return it.fill(f, &it.rows)
}

func (it *storedIter) next(f *frame) (bool, error) {
	for it.at < it.rows.n {
		it.rows.restore(f, it.at, 0, it.slots)
		it.at++
		if ok, err := pass(f, it.filter); err != nil || ok {
			return ok, err
		}
	}
	return false, nil
}

func (it *storedIter) close() {
	it.rows.drop()
	it.at = 0
}

type virtualProg struct {
	rel    *plan.Virtual
	slots  []int // of the wanted columns
	cols   []int // which they are
	filter evalFunc
}

func (c *compiler) virtualScan(n *plan.VirtualScan) (nodeProg, error) {
	p := &virtualProg{rel: n.Relation}
	for i, s := range n.Slots {
		if s >= 0 {
			p.slots, p.cols = append(p.slots, s), append(p.cols, i)
		}
	}
	c.fills.add(n.Slots...)
	var err error
	p.filter, err = c.optional(n.Filter)
	return p, err
}

func (p *virtualProg) iter() rowIter {
	return &storedIter{rows: rowStore{width: len(p.cols), paged: true}, slots: p.slots, filter: p.filter, fill: p.fill}
}

func (p *virtualProg) fill(f *frame, rows *rowStore) error {
	return p.rel.Rows(f.env.Virtual, func(row []datum.Datum) error {
		if err := f.row(); err != nil {
			return err
		}
		kept := rows.add()
		for i, c := range p.cols {
			kept[i] = row[c]
		}
		return rows.account(f)
	})
}

// setCall is a call of a set-returning function.
type setCall struct {
	set    builtin.SetEval
	user   *catalog.Func
	args   []evalFunc
	base   int
	strict bool
	steps  int64
}

func (c *compiler) setCall(set builtin.SetEval, fn *builtin.Func, user *catalog.Func, args []plan.Expr) (*setCall, error) {
	evs, err := c.exprs(args)
	if err != nil {
		return nil, err
	}
	s := &setCall{set: set, user: user, args: evs, base: c.scratch(len(evs)), steps: 1}
	switch {
	case user != nil:
		c.userCalls = true
		s.strict = user.Strict
	case fn != nil:
		s.strict, s.steps = fn.Strict, max(fn.Steps, 1)
		if s.set == nil {
			s.set = fn.Set
		}
	default:
		// In a select list the plan names the implementation only. All built-in
		// functions that return sets of single values are strict.
		s.strict = true
	}
	if s.set == nil && user == nil {
		return nil, fmt.Errorf("exec: a set-returning function has no implementation bound")
	}
	return s, nil
}

// run calls the function; a strict one makes no rows of a null argument.
func (s *setCall) run(f *frame, emit func(row []datum.Datum) error) error {
	room := f.args[s.base : s.base+len(s.args) : s.base+len(s.args)]
	null, err := evalArgs(f, s.args, room)
	if err != nil || null && s.strict {
		return err
	}
	if s.user != nil {
		return f.callSet(s.user, room, emit)
	}
	if err := f.spend(s.steps); err != nil {
		return err
	}
	return s.set(&f.env.Ctx, room, emit)
}

type funcScanProg struct {
	call    *setCall // or value
	value   evalFunc
	expand  bool // value is a row, one field per slot
	slots   []int
	columns int
	filter  evalFunc
	ordinal bool
	parts   []*funcScanProg // of ROWS FROM
}

func (c *compiler) funcScan(n *plan.FuncScan) (*funcScanProg, error) {
	p := &funcScanProg{columns: len(n.Slots), slots: append([]int(nil), n.Slots...)}
	var err error
	for _, part := range n.Parts {
		sub, err := c.funcScan(part)
		if err != nil {
			return nil, err
		}
		p.parts = append(p.parts, sub)
	}
	if n.Parts != nil {
		// nothing of its own
	} else if n.Value != nil {
		t := n.Value.Type().Root()
		p.expand = len(n.Slots) > 1 || t.Desc != nil && (t.Kind == datum.Composite || t.Desc == datum.Record)
		p.value, err = c.expr(n.Value)
	} else {
		p.call, err = c.setCall(n.Set, n.Builtin, n.User, n.Args)
	}
	if err != nil {
		return nil, err
	}
	if n.Ordinality >= 0 {
		p.ordinal = true
		p.slots = append(p.slots, n.Ordinality)
	}
	c.fills.add(p.slots...)
	p.filter, err = c.optional(n.Filter)
	return p, err
}

func (p *funcScanProg) iter() rowIter {
	return &storedIter{rows: rowStore{width: len(p.slots), paged: true}, slots: p.slots, filter: p.filter, fill: p.fill}
}

// fillParts runs the functions of ROWS FROM one after the other and puts their
// rows side by side.
func (p *funcScanProg) fillParts(f *frame, rows *rowStore) error {
	stores := make([]rowStore, len(p.parts))
	n := 0
	for i, part := range p.parts {
		stores[i].width = len(part.slots)
		defer stores[i].reset(f)
		if err := part.fill(f, &stores[i]); err != nil {
			return err
		}
		n = max(n, stores[i].n)
	}
	for k := range n {
		row := rows.add()
		at := 0
		for i := range stores {
			if k < stores[i].n {
				copy(row[at:], stores[i].row(k))
			}
			at += stores[i].width
		}
		if p.ordinal {
			row[at] = datum.Int(int64(k) + 1)
		}
		if err := rows.account(f); err != nil {
			return err
		}
	}
	return nil
}

func (p *funcScanProg) fill(f *frame, rows *rowStore) error {
	if p.parts != nil {
		return p.fillParts(f, rows)
	}
	add := func(row []datum.Datum) error {
		if err := f.row(); err != nil {
			return err
		}
		kept := rows.add()
		copy(kept[:p.columns], row)
		if p.ordinal {
			kept[p.columns] = datum.Int(int64(rows.n))
		}
		return rows.account(f)
	}
	if p.value == nil {
		return p.call.run(f, add)
	}
	d, err := p.value(f)
	if err != nil {
		return err
	}
	if !p.expand {
		return add([]datum.Datum{d})
	}
	if d.IsNull() {
		return add(nil)
	}
	_, vals := datum.RecordFields(d)
	return add(vals)
}

// projectSet expands set-returning functions of a select list in step.
type projectSetProg struct {
	child nodeProg
	sets  []*setCall
	types [][]datum.Type // of the columns, where one value is to be made of several
	out   []int
}

func (c *compiler) projectSet(n *plan.ProjectSet) (nodeProg, error) {
	child, err := c.node(n.Child)
	if err != nil {
		return nil, err
	}
	p := &projectSetProg{child: child}
	for i := range n.Sets {
		s := &n.Sets[i]
		call, err := c.setCall(s.Set, nil, s.User, s.Args)
		if err != nil {
			return nil, err
		}
		p.sets = append(p.sets, call)
		p.types = append(p.types, rowTypes(s.User))
		p.out = append(p.out, s.Out)
		c.fills.add(s.Out)
	}
	return p, nil
}

// rowTypes are the columns of the rows of a user-defined function, nil if it
// returns single values.
func rowTypes(fn *catalog.Func) []datum.Type {
	if fn == nil {
		return nil
	}
	if r := fn.Ret.Root(); r.Desc != nil && r.Kind == datum.Composite {
		types := make([]datum.Type, len(r.Fields))
		for i, field := range r.Fields {
			types[i] = field.Type
		}
		return types
	}
	out := fn.OutArgs()
	if len(out) < 2 {
		return nil
	}
	types := make([]datum.Type, len(out))
	for i := range out {
		types[i] = out[i].Type
	}
	return types
}

func (p *projectSetProg) iter() rowIter {
	return &projectSetIter{p: p, child: p.child.iter(), sets: make([]rowStore, len(p.sets))}
}

type projectSetIter struct {
	p     *projectSetProg
	child rowIter
	sets  []rowStore
	at    int
	rows  int // of the present child row
}

func (it *projectSetIter) open(f *frame) error {
	it.at, it.rows = 0, 0
	return it.child.open(f)
}

func (it *projectSetIter) next(f *frame) (bool, error) {
	for it.at == it.rows {
		ok, err := it.child.next(f)
		if err != nil || !ok {
			return false, err
		}
		if err := it.expand(f); err != nil {
			return false, err
		}
	}
	for i := range it.sets {
		d := datum.Null
		if it.at < it.sets[i].n {
			d = it.sets[i].data[it.at]
		}
		f.slots[it.p.out[i]] = d
	}
	it.at++
	return true, nil
}

func (it *projectSetIter) expand(f *frame) error {
	it.at, it.rows = 0, 0
	for i, call := range it.p.sets {
		rows, types := &it.sets[i], it.p.types[i]
		rows.width = 1
		rows.reset(f)
		err := call.run(f, func(row []datum.Datum) error {
			if err := f.row(); err != nil {
				return err
			}
			d := row[0]
			if len(types) > 0 && len(row) == len(types) {
				d = datum.MakeRecord(types, row)
			}
			rows.add()[0] = d
			return rows.account(f)
		})
		if err != nil {
			return err
		}
		it.rows = max(it.rows, rows.n)
	}
	return nil
}

func (it *projectSetIter) close() {
	it.child.close()
	for i := range it.sets {
		it.sets[i].drop()
	}
}
