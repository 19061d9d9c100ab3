package exec

import (
	"github.com/tallystick/tallystick/sql/builtin"
	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/plan"
)

// vecExpr computes an expression for the selected rows of a batch. The column
// belongs to the expression, or to the batch.
type vecExpr struct {
	eval  func(v *vecRun, b *batch) (*datum.Column, error)
	fixed bool // the column has Ints
}

// vecCompiler turns expressions over the slots of one pipeline into vecExprs.
type vecCompiler struct {
	c     *compiler
	fixed []bool       // of the columns handed out
	slots map[int]bool // slots that the pipeline fills; true = its column has Ints
	// serial tells that some expression must not run beside others.
	serial bool
}

func (vc *vecCompiler) column(fixed bool) int {
	vc.fixed = append(vc.fixed, fixed)
	return len(vc.fixed) - 1
}

func (vc *vecCompiler) expr(e plan.Expr) (vecExpr, error) {
	if !vc.reads(e) {
		return vc.invariant(e)
	}
	switch e := e.(type) {
	case *plan.Slot:
		i := e.Index
		return vecExpr{func(_ *vecRun, b *batch) (*datum.Column, error) { return &b.cols[i], nil }, vc.slots[i]}, nil
	case *plan.Relabel:
		return vc.expr(e.Arg)
	case *plan.BoolOp:
		return vc.boolOp(e)
	case *plan.IsNull:
		if k := e.Arg.Type().Root(); k.Desc == nil || k.Kind != datum.Composite && k.Desc != datum.Record {
			return vc.isNull(e)
		}
	case *plan.Call:
		return vc.call(e)
	}
	return vc.byRow(e)
}

// reads tells whether e reads a slot that the pipeline fills.
func (vc *vecCompiler) reads(e plan.Expr) bool {
	found := false
	plan.Walk(e, func(x plan.Expr) {
		if s, ok := x.(*plan.Slot); ok {
			if _, mine := vc.slots[s.Index]; mine {
				found = true
			}
		}
	})
	return found
}

// invariant computes what is the same for all rows, when it is first needed.
func (vc *vecCompiler) invariant(e plan.Expr) (vecExpr, error) {
	vc.note(e)
	ev, err := vc.c.expr(e)
	if err != nil {
		return vecExpr{}, err
	}
	fixed := datum.InColumn(e.Type())
	at := vc.column(fixed)
	return vecExpr{func(v *vecRun, b *batch) (*datum.Column, error) {
		out := &v.cols[at]
		if v.ready[at] || len(b.sel) == 0 {
			return out, nil
		}
		d, err := ev(v.f)
		if err != nil {
			return nil, err
		}
		out.Clear()
		for i := range batchSize {
			out.Set(i, d)
		}
		v.ready[at] = true
		return out, nil
	}, fixed}, nil
}

// byRow computes an expression row by row in the frame.
func (vc *vecCompiler) byRow(e plan.Expr) (vecExpr, error) {
	vc.note(e)
	var loads []int
	seen := map[int]bool{}
	plan.Walk(e, func(x plan.Expr) {
		if s, ok := x.(*plan.Slot); ok && !seen[s.Index] {
			if _, mine := vc.slots[s.Index]; mine {
				seen[s.Index] = true
				loads = append(loads, s.Index)
			}
		}
	})
	ev, err := vc.c.expr(e)
	if err != nil {
		return vecExpr{}, err
	}
	fixed := datum.InColumn(e.Type())
	at := vc.column(fixed)
	return vecExpr{func(v *vecRun, b *batch) (*datum.Column, error) {
		out := &v.cols[at]
		out.Clear()
		for _, i := range b.sel {
			for _, s := range loads {
				v.f.slots[s] = b.cols[s].Get(int(i))
			}
			d, err := ev(v.f)
			if err != nil {
				return nil, err
			}
			out.Set(int(i), d)
		}
		return out, nil
	}, fixed}, nil
}

// note finds out whether an expression may be computed by two workers at a time:
// not one that looks at the store, the session or anything else they would share.
func (vc *vecCompiler) note(e plan.Expr) {
	plan.Walk(e, func(x plan.Expr) {
		switch x := x.(type) {
		case *plan.Const, *plan.Slot, *plan.Param, *plan.BoolOp, *plan.IsNull, *plan.BoolTest, *plan.Case, *plan.Coalesce,
			*plan.NullIf, *plan.MinMax, *plan.Distinct, *plan.Relabel, *plan.CoerceMod, *plan.AnyAll, *plan.ArrayExpr:
		case *plan.Call:
			if x.Func.Volatility != builtin.Immutable {
				vc.serial = true
			}
		default:
			vc.serial = true
		}
	})
}

// ints is expr with a column of integers.
func (vc *vecCompiler) ints(e plan.Expr) (vecExpr, error) {
	x, err := vc.expr(e)
	if err != nil || x.fixed {
		return x, err
	}
	at := vc.column(true)
	return vecExpr{func(v *vecRun, b *batch) (*datum.Column, error) {
		c, err := x.eval(v, b)
		if err != nil {
			return nil, err
		}
		out := &v.cols[at]
		out.Clear()
		for _, i := range b.sel {
			out.Set(int(i), c.Data[i])
		}
		return out, nil
	}, true}, nil
}

func (vc *vecCompiler) isNull(e *plan.IsNull) (vecExpr, error) {
	arg, err := vc.expr(e.Arg)
	if err != nil {
		return vecExpr{}, err
	}
	at, not := vc.column(true), e.Not
	return vecExpr{func(v *vecRun, b *batch) (*datum.Column, error) {
		c, err := arg.eval(v, b)
		if err != nil {
			return nil, err
		}
		out := &v.cols[at]
		for _, i := range b.sel {
			out.Ints[i] = 0
			if c.IsNull(int(i)) != not {
				out.Ints[i] = 1
			}
		}
		return out, nil
	}, true}, nil
}

// boolOp is three-valued logic; an argument is computed for the rows that those
// before it did not decide.
func (vc *vecCompiler) boolOp(e *plan.BoolOp) (vecExpr, error) {
	args := make([]vecExpr, len(e.Args))
	for i, a := range e.Args {
		var err error
		if args[i], err = vc.ints(a); err != nil {
			return vecExpr{}, err
		}
	}
	at := vc.column(true)
	if e.Op == plan.Not {
		return vecExpr{func(v *vecRun, b *batch) (*datum.Column, error) {
			c, err := args[0].eval(v, b)
			if err != nil {
				return nil, err
			}
			out := &v.cols[at]
			out.Clear()
			for _, i := range b.sel {
				if c.IsNull(int(i)) {
					out.Set(int(i), datum.Null)
				} else {
					out.Ints[i] = 1 - c.Ints[i]
					out.Nulls[i] = false
				}
			}
			return out, nil
		}, true}, nil
	}
	decisive := int64(0)
	if e.Op == plan.Or {
		decisive = 1
	}
	return vecExpr{func(v *vecRun, b *batch) (*datum.Column, error) {
		return v.logic(b, args, decisive, &v.cols[at])
	}, true}, nil
}

func (v *vecRun) logic(b *batch, args []vecExpr, decisive int64, out *datum.Column) (*datum.Column, error) {
	whole, open := b.sel, v.takeSel()
	defer func() { b.sel = whole }()
	out.Clear()
	for _, i := range whole {
		out.Ints[i] = 1 - decisive
	}
	open = append(open, whole...)
	for _, a := range args {
		b.sel = open
		if len(open) == 0 {
			break
		}
		c, err := a.eval(v, b)
		if err != nil {
			return nil, err
		}
		left := open[:0]
		for _, i := range open {
			switch {
			case c.IsNull(int(i)):
				out.Set(int(i), datum.Null)
			case c.Ints[i] == decisive:
				out.Ints[i] = decisive
				out.Nulls[i] = false
				continue
			}
			left = append(left, i)
		}
		open = left
	}
	v.giveSel(open)
	return out, nil
}

func (vc *vecCompiler) call(e *plan.Call) (vecExpr, error) {
	if e.Func.Volatility != builtin.Immutable {
		vc.serial = true
	}
	if len(e.Args) == 2 && e.Func.Strict && e.Func.OID < catalog.FirstPrivateOID {
		if op, ok := intOps[e.Func.Name]; ok && op <= opGe {
			return vc.intCompare(e, op)
		}
		if e.Func.Name == "numeric_mul" {
			return vc.numericMul(e)
		}
	}
	return vc.anyCall(e)
}

// anyCall calls a function for one row after the other.
func (vc *vecCompiler) anyCall(e *plan.Call) (vecExpr, error) {
	eval := e.Eval
	if eval == nil {
		eval = e.Func.Eval
	}
	if eval == nil {
		return vc.byRow(e)
	}
	args := make([]vecExpr, len(e.Args))
	for i, a := range e.Args {
		var err error
		if args[i], err = vc.expr(a); err != nil {
			return vecExpr{}, err
		}
	}
	fixed := datum.InColumn(e.Type())
	at, strict := vc.column(fixed), e.Func.Strict
	return vecExpr{func(v *vecRun, b *batch) (*datum.Column, error) {
		var room [8]*datum.Column
		cols := room[:0]
		for i := range args {
			c, err := args[i].eval(v, b)
			if err != nil {
				return nil, err
			}
			cols = append(cols, c)
		}
		out := &v.cols[at]
		out.Clear()
		vals := v.values(len(cols))
	rows:
		for _, i := range b.sel {
			for k, c := range cols {
				vals[k] = c.Get(int(i))
				if strict && vals[k].IsNull() {
					out.Set(int(i), datum.Null)
					continue rows
				}
			}
			d, err := eval(v.ctx, vals)
			if err != nil {
				return nil, err
			}
			out.Set(int(i), d)
		}
		return out, nil
	}, fixed}, nil
}

// values is room for the arguments of one call.
func (v *vecRun) values(n int) []datum.Datum {
	if len(v.args) < n {
		v.args = make([]datum.Datum, n)
	}
	return v.args[:n]
}

func (vc *vecCompiler) intCompare(e *plan.Call, op intOp) (vecExpr, error) {
	x, err := vc.ints(e.Args[0])
	if err != nil {
		return vecExpr{}, err
	}
	y, err := vc.ints(e.Args[1])
	if err != nil {
		return vecExpr{}, err
	}
	at := vc.column(true)
	return vecExpr{func(v *vecRun, b *batch) (*datum.Column, error) {
		a, err := x.eval(v, b)
		if err != nil {
			return nil, err
		}
		c, err := y.eval(v, b)
		if err != nil {
			return nil, err
		}
		out := &v.cols[at]
		out.Clear()
		compareInts(op, out.Ints, a.Ints, c.Ints, b.sel)
		if a.HasNulls || c.HasNulls {
			for _, i := range b.sel {
				if a.IsNull(int(i)) || c.IsNull(int(i)) {
					out.Set(int(i), datum.Null)
				}
			}
		}
		return out, nil
	}, true}, nil
}

func compareInts(op intOp, out, a, b []int64, sel []int32) {
	one := func(yes bool) int64 {
		if yes {
			return 1
		}
		return 0
	}
	switch op {
	case opEq:
		for _, i := range sel {
			out[i] = one(a[i] == b[i])
		}
	case opNe:
		for _, i := range sel {
			out[i] = one(a[i] != b[i])
		}
	case opLt:
		for _, i := range sel {
			out[i] = one(a[i] < b[i])
		}
	case opLe:
		for _, i := range sel {
			out[i] = one(a[i] <= b[i])
		}
	case opGt:
		for _, i := range sel {
			out[i] = one(a[i] > b[i])
		}
	default:
		for _, i := range sel {
			out[i] = one(a[i] >= b[i])
		}
	}
}

// numericMul multiplies numerics; an integer that was made numeric for it is
// taken as it is.
func (vc *vecCompiler) numericMul(e *plan.Call) (vecExpr, error) {
	x, y := e.Args[0], e.Args[1]
	if i, ok := castFromInt(y); ok {
		if _, both := castFromInt(x); !both {
			return vc.mulInt(i, x)
		}
	}
	if i, ok := castFromInt(x); ok {
		return vc.mulInt(i, y)
	}
	return vc.anyCall(e)
}

// castFromInt returns what an implicit cast to numeric is made of, if that is an
// integer.
func castFromInt(e plan.Expr) (plan.Expr, bool) {
	c, ok := e.(*plan.Call)
	if !ok || c.Func.Name != "numeric" || len(c.Args) != 1 || c.Func.OID >= catalog.FirstPrivateOID {
		return nil, false
	}
	switch c.Args[0].Type().Desc {
	case datum.Int2, datum.Int4, datum.Int8:
		return c.Args[0], true
	}
	return nil, false
}

func (vc *vecCompiler) mulInt(i, n plan.Expr) (vecExpr, error) {
	x, err := vc.ints(i)
	if err != nil {
		return vecExpr{}, err
	}
	y, err := vc.expr(n)
	if err != nil {
		return vecExpr{}, err
	}
	at := vc.column(false)
	return vecExpr{func(v *vecRun, b *batch) (*datum.Column, error) {
		a, err := x.eval(v, b)
		if err != nil {
			return nil, err
		}
		c, err := y.eval(v, b)
		if err != nil {
			return nil, err
		}
		out := &v.cols[at]
		for _, i := range b.sel {
			d := c.Data[i]
			if d.IsNull() || a.IsNull(int(i)) {
				out.Data[i] = datum.Null
				continue
			}
			if out.Data[i], err = datum.MulIntNumeric(a.Ints[i], d); err != nil {
				return nil, err
			}
		}
		return out, nil
	}, false}, nil
}

// vecFilter keeps the rows for which all conditions are true.
type vecFilter []vecExpr

func (vc *vecCompiler) filter(cond plan.Expr) (vecFilter, error) {
	if cond == nil {
		return nil, nil
	}
	list := []plan.Expr{cond}
	if and, ok := cond.(*plan.BoolOp); ok && and.Op == plan.And {
		list = and.Args
	}
	var f vecFilter
	for _, e := range list {
		x, err := vc.ints(e)
		if err != nil {
			return nil, err
		}
		f = append(f, x)
	}
	return f, nil
}

func (f vecFilter) apply(v *vecRun, b *batch) error {
	for i := range f {
		if len(b.sel) == 0 {
			return nil
		}
		c, err := f[i].eval(v, b)
		if err != nil {
			return err
		}
		b.sel = keepTrue(c, b.sel)
	}
	return nil
}

// keepTrue shortens a selection to the rows whose value is true.
func keepTrue(c *datum.Column, sel []int32) []int32 {
	n := 0
	for _, i := range sel {
		sel[n] = i
		if c.Ints[i] != 0 && !(c.HasNulls && c.Nulls[i]) {
			n++
		}
	}
	return sel[:n]
}

// look asks now and then whether the query is to end.
func (v *vecRun) look() error {
	if v.f.env.Interrupted == nil {
		return nil
	}
	return v.f.env.Interrupted()
}

// tooMuch tells that a table of the batch engine outgrew work_mem.
func (v *vecRun) tooMuch(bytes int64) bool {
	limit := v.f.env.WorkMem
	return limit > 0 && bytes > limit
}
