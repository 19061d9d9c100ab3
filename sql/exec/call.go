package exec

import (
	"fmt"

	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
	"github.com/tallystick/tallystick/sql/plan"
)

// call compiles a call of a built-in function. All arguments are computed, then
// a strict function is skipped if one is null, as PostgreSQL does; a call that
// is skipped costs no steps.
func (c *compiler) call(e *plan.Call) (evalFunc, error) {
	eval := e.Eval
	if eval == nil {
		eval = e.Func.Eval
	}
	if eval == nil {
		return nil, fmt.Errorf("exec: function %s has no implementation bound", e.Func.Name)
	}
	args, err := c.exprs(e.Args)
	if err != nil {
		return nil, err
	}
	steps := max(e.Func.Steps, 1)
	if ev := fastCall(e, args, steps); ev != nil {
		return ev, nil
	}
	base := c.scratch(len(args))
	switch {
	case len(args) == 0:
		return func(f *frame) (datum.Datum, error) {
			if err := f.spend(steps); err != nil {
				return datum.Null, err
			}
			return eval(&f.env.Ctx, nil)
		}, nil
	case len(args) == 1 && e.Func.Strict:
		a := args[0]
		return func(f *frame) (datum.Datum, error) {
			x, err := a(f)
			if err != nil || x.IsNull() {
				return datum.Null, err
			}
			if err := f.spend(steps); err != nil {
				return datum.Null, err
			}
			room := f.args[base : base+1 : base+1]
			room[0] = x
			return eval(&f.env.Ctx, room)
		}, nil
	case len(args) == 2 && e.Func.Strict:
		a, b := args[0], args[1]
		return func(f *frame) (datum.Datum, error) {
			x, err := a(f)
			if err != nil {
				return datum.Null, err
			}
			y, err := b(f)
			if err != nil || x.IsNull() || y.IsNull() {
				return datum.Null, err
			}
			if err := f.spend(steps); err != nil {
				return datum.Null, err
			}
			room := f.args[base : base+2 : base+2]
			room[0], room[1] = x, y
			return eval(&f.env.Ctx, room)
		}, nil
	}
	strict, n := e.Func.Strict, len(args)
	return func(f *frame) (datum.Datum, error) {
		room := f.args[base : base+n : base+n]
		null, err := evalArgs(f, args, room)
		if err != nil || null && strict {
			return datum.Null, err
		}
		if err := f.spend(steps); err != nil {
			return datum.Null, err
		}
		return eval(&f.env.Ctx, room)
	}, nil
}

// evalArgs computes arguments into room and reports whether one is null.
func evalArgs(f *frame, args []evalFunc, room []datum.Datum) (null bool, err error) {
	for i, a := range args {
		if room[i], err = a(f); err != nil {
			return false, err
		}
		null = null || room[i].IsNull()
	}
	return null, nil
}

func (c *compiler) userCall(e *plan.UserCall) (evalFunc, error) {
	args, err := c.exprs(e.Args)
	if err != nil {
		return nil, err
	}
	c.userCalls = true
	base, n, fn := c.scratch(len(args)), len(args), e.Func
	return func(f *frame) (datum.Datum, error) {
		room := f.args[base : base+n : base+n]
		null, err := evalArgs(f, args, room)
		if err != nil || null && fn.Strict {
			return datum.Null, err
		}
		if err := f.enter(); err != nil {
			return datum.Null, err
		}
		d, err := f.env.Functions.Call(f.env, fn, room)
		f.env.Depth--
		return d, err
	}, nil
}

// enter counts one more nested call of a user-defined function; Env.Depth must
// be taken down again after it.
func (f *frame) enter() error {
	env := f.env
	if env.Functions == nil {
		return fmt.Errorf("exec: the environment calls no user-defined functions")
	}
	if err := f.spend(1); err != nil {
		return err
	}
	if limit := env.Limits.Nesting; limit > 0 && env.Depth >= limit {
		return pgerr.New(pgerr.StatementTooComplex, "stack depth limit exceeded").
			WithHint("Functions may call each other %d levels deep.", limit)
	}
	env.Depth++
	return nil
}

// callSet runs a user-defined function in FROM or a select list.
func (f *frame) callSet(fn *catalog.Func, args []datum.Datum, emit func(row []datum.Datum) error) error {
	if err := f.enter(); err != nil {
		return err
	}
	defer func() { f.env.Depth-- }()
	return f.env.Functions.CallSet(f.env, fn, args, emit)
}

// intOp is an operation on integers that the executor does itself.
type intOp uint8

const (
	opNone intOp = iota
	opEq
	opNe
	opLt
	opLe
	opGt
	opGe
	opAdd4
	opSub4
	opAdd8
	opSub8
)

var comparisons = map[string]intOp{"eq": opEq, "ne": opNe, "lt": opLt, "le": opLe, "gt": opGt, "ge": opGe}

// intOps are the built-in functions over values that compare as integers, by
// their names in pg_proc; textOps and numericOps those over text and numeric.
var intOps, textOps, numericOps = func() (ints, texts, nums map[string]intOp) {
	ints, texts, nums = map[string]intOp{}, map[string]intOp{}, map[string]intOp{}
	for suffix, op := range comparisons {
		for _, p := range []string{"int2", "int4", "int8", "int24", "int42", "int28", "int82", "int48", "int84"} {
			ints[p+suffix] = op
		}
		for _, p := range []string{"date_", "timestamp_", "timestamptz_"} {
			ints[p+suffix] = op
		}
		nums["numeric_"+suffix] = op
	}
	texts["texteq"], texts["textne"] = opEq, opNe
	texts["text_lt"], texts["text_le"], texts["text_gt"], texts["text_ge"] = opLt, opLe, opGt, opGe
	ints["int4pl"], ints["int4mi"] = opAdd4, opSub4
	ints["int8pl"], ints["int8mi"] = opAdd8, opSub8
	return ints, texts, nums
}()

// holds applies a comparison to a three-way result.
func (op intOp) holds(c int) bool {
	switch op {
	case opEq:
		return c == 0
	case opNe:
		return c != 0
	case opLt:
		return c < 0
	case opLe:
		return c <= 0
	case opGt:
		return c > 0
	}
	return c >= 0
}

// apply computes op; the errors are those of the built-in functions.
func (op intOp) apply(x, y int64) (datum.Datum, error) {
	switch op {
	case opEq:
		return datum.Bool(x == y), nil
	case opNe:
		return datum.Bool(x != y), nil
	case opLt:
		return datum.Bool(x < y), nil
	case opLe:
		return datum.Bool(x <= y), nil
	case opGt:
		return datum.Bool(x > y), nil
	case opGe:
		return datum.Bool(x >= y), nil
	case opAdd4, opSub4:
		if op == opSub4 {
			y = -y
		}
		if v := x + y; v == int64(int32(v)) {
			return datum.Int(v), nil
		}
		return datum.Null, pgerr.New(pgerr.NumericValueOutOfRange, "integer out of range")
	case opAdd8:
		if v := x + y; (x^v)&(y^v) >= 0 {
			return datum.Int(v), nil
		}
	case opSub8:
		if v := x - y; (x^y)&(x^v) >= 0 {
			return datum.Int(v), nil
		}
	}
	return datum.Null, pgerr.New(pgerr.NumericValueOutOfRange, "bigint out of range")
}

// fastCall recognizes the operators that statements spend their time in. It
// computes what the function would, at the same cost in steps, without a call.
func fastCall(e *plan.Call, args []evalFunc, steps int64) evalFunc {
	fn := e.Func
	if len(args) != 2 || !fn.Strict || fn.OID >= catalog.FirstPrivateOID {
		return nil
	}
	if op, ok := intOps[fn.Name]; ok {
		return fastInt(op, e.Args, args, steps)
	}
	if op, ok := textOps[fn.Name]; ok {
		return fastCompare(args, steps, func(x, y datum.Datum) bool {
			switch op {
			case opEq:
				return x.Str() == y.Str()
			case opNe:
				return x.Str() != y.Str()
			case opLt:
				return x.Str() < y.Str()
			case opLe:
				return x.Str() <= y.Str()
			case opGt:
				return x.Str() > y.Str()
			}
			return x.Str() >= y.Str()
		})
	}
	if op, ok := numericOps[fn.Name]; ok {
		return fastCompare(args, steps, func(x, y datum.Datum) bool { return op.holds(datum.NumericCmp(x, y)) })
	}
	return nil
}

func fastCompare(args []evalFunc, steps int64, test func(x, y datum.Datum) bool) evalFunc {
	a, b := args[0], args[1]
	return func(f *frame) (datum.Datum, error) {
		x, err := a(f)
		if err != nil {
			return datum.Null, err
		}
		y, err := b(f)
		if err != nil || x.IsNull() || y.IsNull() {
			return datum.Null, err
		}
		if err := f.spend(steps); err != nil {
			return datum.Null, err
		}
		return datum.Bool(test(x, y)), nil
	}
}

// fastInt is specialized on where the operands come from.
func fastInt(op intOp, exprs []plan.Expr, args []evalFunc, steps int64) evalFunc {
	_, isConst := exprs[1].(*plan.Const)
	if isConst && exprs[1].(*plan.Const).Value.IsNull() {
		isConst = false
	}
	slot, isSlot := exprs[0].(*plan.Slot)
	prm, isParam := exprs[0].(*plan.Param)
	switch {
	case isSlot && isConst:
		i, y := slot.Index, exprs[1].(*plan.Const).Value.Int()
		return func(f *frame) (datum.Datum, error) {
			x := f.slots[i]
			if x.IsNull() {
				return datum.Null, nil
			}
			if err := f.spend(steps); err != nil {
				return datum.Null, err
			}
			return op.apply(x.Int(), y)
		}
	case isParam && isConst:
		i, y, get := prm.Index, exprs[1].(*plan.Const).Value.Int(), args[0]
		return func(f *frame) (datum.Datum, error) {
			if i >= len(f.params) {
				return get(f) // raises the error
			}
			x := f.params[i]
			if x.IsNull() {
				return datum.Null, nil
			}
			if err := f.spend(steps); err != nil {
				return datum.Null, err
			}
			return op.apply(x.Int(), y)
		}
	}
	a, b := args[0], args[1]
	return func(f *frame) (datum.Datum, error) {
		x, err := a(f)
		if err != nil {
			return datum.Null, err
		}
		y, err := b(f)
		if err != nil || x.IsNull() || y.IsNull() {
			return datum.Null, err
		}
		if err := f.spend(steps); err != nil {
			return datum.Null, err
		}
		return op.apply(x.Int(), y.Int())
	}
}
