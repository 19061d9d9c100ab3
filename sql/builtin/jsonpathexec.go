package builtin

import (
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// pathItem is a value that a path works on: a jsonb node, or a moment that
// .datetime() has made, whose type is typ.
type pathItem struct {
	json datum.Datum
	typ  *datum.Desc
	time datum.Datum
	east int32 // seconds, of types with time zone
}

// value is the item as jsonb.
func (it pathItem) value() datum.Datum {
	if it.typ == nil {
		return it.json
	}
	return jsonbString(it.timeText())
}

func jsonbString(s string) datum.Datum {
	var b datum.JSONBBuilder
	b.String(s)
	return b.Done()
}

func jsonbNumber(n datum.Datum) datum.Datum {
	var b datum.JSONBBuilder
	b.Number(n)
	return b.Done()
}

func jsonbBool(v bool) datum.Datum {
	var b datum.JSONBBuilder
	b.Bool(v)
	return b.Done()
}

func jsonbNull() datum.Datum {
	var b datum.JSONBBuilder
	b.Null()
	return b.Done()
}

func (it pathItem) kind() string {
	if it.typ != nil {
		return "datetime"
	}
	return datum.JSONBTypeOf(it.json)
}

func (it pathItem) isArray() bool { return it.typ == nil && isArray(it.json) }

// pathSink takes one result. A nil one asks only whether there is a result: then
// the first ends the execution with errEnough, and what cannot change that is
// not computed.
type pathSink func(it pathItem) error

// errEnough is no error of the document; it never leaves the executor.
var errEnough = pgerr.New(pgerr.InternalError, "enough results")

// pathExec executes a path over one document, as PostgreSQL's jsonpath_exec.c
// does. In lax mode arrays are unwrapped and single values wrapped where a step
// needs it, and structural errors are ignored.
type pathExec struct {
	c       *Ctx
	vars    datum.Datum
	hasVars bool // without variables each is null
	hard    bool // the error is the path's own: never suppressed
	root    pathItem
	current pathItem // @
	last    int64    // of the innermost array, -1 outside of subscripts
	lax     bool
	ignore  bool // structural errors
	zoned   bool
	depth   int
}

// maxPathNesting bounds recursion over a path and a document.
const maxPathNesting = 100000

// item applies n to it; unwrap says whether a step over an array applies to its
// elements.
func (x *pathExec) item(n *datum.PathNode, it pathItem, unwrap bool, out pathSink) error {
	if err := x.c.Budget.Spend(1); err != nil {
		return err
	}
	if x.depth++; x.depth > maxPathNesting {
		return pgerr.New(pgerr.StatementTooComplex, "stack depth limit exceeded")
	}
	defer func() { x.depth-- }()
	switch n.Op {
	case datum.PathNull:
		return x.next(n, pathItem{json: jsonbNull()}, out)
	case datum.PathString:
		return x.next(n, pathItem{json: jsonbString(n.Str)}, out)
	case datum.PathNumber:
		return x.next(n, pathItem{json: jsonbNumber(n.Num)}, out)
	case datum.PathBool:
		return x.next(n, pathItem{json: jsonbBool(n.Num.Bool())}, out)
	case datum.PathVariable:
		v, err := x.variable(n.Str)
		if err != nil {
			return err
		}
		return x.next(n, v, out)
	case datum.PathRoot:
		return x.next(n, x.root, out)
	case datum.PathCurrent:
		return x.next(n, x.current, out)
	case datum.PathLast:
		return x.next(n, pathItem{json: jsonbNumber(datum.NumericFromInt64(x.last))}, out)
	case datum.PathKey:
		return x.key(n, it, unwrap, out)
	case datum.PathAnyKey:
		return x.anyKey(n, it, unwrap, out)
	case datum.PathAny:
		return x.anyLevel(n, it, out)
	case datum.PathAnyElem:
		return x.anyElem(n, it, out)
	case datum.PathIndex:
		return x.index(n, it, out)
	case datum.PathFilter:
		return x.filter(n, it, unwrap, out)
	case datum.PathAdd, datum.PathSub, datum.PathMul, datum.PathDiv, datum.PathMod:
		return x.arithmetic(n, it, out)
	case datum.PathPlus, datum.PathMinus:
		return x.unary(n, it, out)
	case datum.PathMethod:
		return x.method(n, it, unwrap, out)
	}
	v, err := x.predicate(n, it)
	if err != nil {
		return err
	}
	res := jsonbNull()
	if v != pathUnknown {
		res = jsonbBool(v == pathTrue)
	}
	return x.next(n, pathItem{json: res}, out)
}

// next passes a result of n on to the step behind it.
func (x *pathExec) next(n *datum.PathNode, it pathItem, out pathSink) error {
	if n.Next != nil {
		return x.item(n.Next, it, x.lax, out)
	}
	if out == nil {
		return errEnough
	}
	return out(it)
}

func (x *pathExec) variable(name string) (pathItem, error) {
	if !x.hasVars {
		return pathItem{json: jsonbNull()}, nil
	}
	if v, ok := datum.JSONBGet(x.vars, name); ok {
		return pathItem{json: v}, nil
	}
	return pathItem{}, pgerr.New(pgerr.UndefinedObject, "could not find jsonpath variable \"%s\"", name)
}

// elements applies n to every element of an array.
func (x *pathExec) elements(n *datum.PathNode, it pathItem, unwrap bool, out pathSink) error {
	for e := range datum.JSONBElems(it.json) {
		if err := x.item(n, pathItem{json: e}, unwrap, out); err != nil {
			return err
		}
	}
	return nil
}

func (x *pathExec) structural(code pgerr.Code, format string, args ...any) error {
	if x.ignore {
		return nil
	}
	return pgerr.New(code, format, args...)
}

func (x *pathExec) key(n *datum.PathNode, it pathItem, unwrap bool, out pathSink) error {
	switch {
	case it.kind() == "object":
		if v, ok := datum.JSONBGet(it.json, n.Str); ok {
			return x.next(n, pathItem{json: v}, out)
		}
		return x.structural(pgerr.JSONMemberNotFound, "JSON object does not contain key \"%s\"", n.Str)
	case unwrap && it.isArray():
		return x.elements(n, it, false, out)
	}
	return x.structural(pgerr.JSONMemberNotFound, "jsonpath member accessor can only be applied to an object")
}

func (x *pathExec) anyKey(n *datum.PathNode, it pathItem, unwrap bool, out pathSink) error {
	switch {
	case it.kind() == "object":
		return x.descend(n, it, 1, 1, 1, false, out)
	case unwrap && it.isArray():
		return x.elements(n, it, false, out)
	}
	return x.structural(pgerr.JSONObjectNotFound, "jsonpath wildcard member accessor can only be applied to an object")
}

func (x *pathExec) anyElem(n *datum.PathNode, it pathItem, out pathSink) error {
	switch {
	case it.isArray():
		return x.descend(n, it, 1, 1, 1, false, out)
	case x.lax:
		return x.next(n, it, out)
	}
	return x.structural(pgerr.JSONArrayNotFound, "jsonpath wildcard array accessor can only be applied to an array")
}

func (x *pathExec) anyLevel(n *datum.PathNode, it pathItem, out pathSink) error {
	if n.First == 0 {
		saved := x.ignore
		x.ignore = true
		err := x.next(n, it, out)
		x.ignore = saved
		if err != nil {
			return err
		}
	}
	return x.descend(n, it, 1, n.First, n.Last, true, out)
}

// descend passes on what lies between two levels below it (executeAnyItem).
func (x *pathExec) descend(n *datum.PathNode, it pathItem, level, first, last uint32, ignore bool, out pathSink) error {
	if level > last || it.typ != nil {
		return nil
	}
	visit := func(v datum.Datum) error {
		if level >= first || first == datum.PathEnd && last == datum.PathEnd && isScalar(v) {
			saved := x.ignore
			x.ignore = x.ignore || ignore
			err := x.next(n, pathItem{json: v}, out)
			x.ignore = saved
			if err != nil {
				return err
			}
		}
		if level < last && !isScalar(v) {
			if x.depth++; x.depth > maxPathNesting {
				return pgerr.New(pgerr.StatementTooComplex, "stack depth limit exceeded")
			}
			defer func() { x.depth-- }()
			return x.descend(n, pathItem{json: v}, level+1, first, last, ignore, out)
		}
		return x.c.Budget.Spend(1)
	}
	if isObject(it.json) {
		for _, v := range datum.JSONBPairs(it.json) {
			if err := visit(v); err != nil {
				return err
			}
		}
		return nil
	}
	if isArray(it.json) {
		for v := range datum.JSONBElems(it.json) {
			if err := visit(v); err != nil {
				return err
			}
		}
	}
	return nil
}

func (x *pathExec) index(n *datum.PathNode, it pathItem, out pathSink) error {
	if !it.isArray() && !x.lax {
		return x.structural(pgerr.JSONArrayNotFound, "jsonpath array accessor can only be applied to an array")
	}
	size := int64(1)
	if it.isArray() {
		size = int64(datum.JSONBLen(it.json))
	}
	saved := x.last
	defer func() { x.last = saved }()
	for _, s := range n.Subscripts {
		x.last = size - 1
		from, err := x.subscript(s.From, it)
		if err != nil {
			return err
		}
		to := from
		if s.To != nil {
			if to, err = x.subscript(s.To, it); err != nil {
				return err
			}
		}
		if from < 0 || from > to || to >= size {
			if err := x.structural(pgerr.InvalidJSONSubscript, "jsonpath array subscript is out of bounds"); err != nil {
				return err
			}
		}
		for i := max(from, 0); i <= min(to, size-1); i++ {
			v := it
			if it.isArray() {
				d, ok := datum.JSONBIndex(it.json, int(i))
				if !ok {
					continue
				}
				v = pathItem{json: d}
			}
			if err := x.next(n, v, out); err != nil {
				return err
			}
		}
	}
	return nil
}

// subscript evaluates one bound of a subscript; fractions are cut off.
func (x *pathExec) subscript(n *datum.PathNode, it pathItem) (int64, error) {
	vals, err := x.collect(n, it, false)
	if err != nil {
		return 0, err
	}
	num, ok := datum.Null, false
	if len(vals) == 1 {
		num, ok = vals[0].number()
	}
	if !ok {
		return 0, pgerr.New(pgerr.InvalidJSONSubscript, "jsonpath array subscript is not a single numeric value")
	}
	whole, err := datum.NumericTrunc(num, 0)
	if err != nil {
		return 0, err
	}
	v, err := datum.NumericToInt64(whole)
	if err != nil || v != int64(int32(v)) {
		return 0, pgerr.New(pgerr.InvalidJSONSubscript, "jsonpath array subscript is out of integer range")
	}
	return v, nil
}

func (it pathItem) number() (datum.Datum, bool) {
	if it.typ != nil {
		return datum.Null, false
	}
	return datum.JSONBNumber(it.json)
}

// collect is the sequence of results of n. unwrap: in lax mode arrays among them
// count as their elements.
func (x *pathExec) collect(n *datum.PathNode, it pathItem, unwrap bool) ([]pathItem, error) {
	var list []pathItem
	err := x.item(n, it, x.lax, func(v pathItem) error {
		if unwrap && x.lax && v.isArray() {
			for e := range datum.JSONBElems(v.json) {
				list = append(list, pathItem{json: e})
			}
			return nil
		}
		list = append(list, v)
		return nil
	})
	return list, err
}

func (x *pathExec) filter(n *datum.PathNode, it pathItem, unwrap bool, out pathSink) error {
	if unwrap && it.isArray() {
		return x.elements(n, it, false, out)
	}
	saved := x.current
	x.current = it
	v, err := x.predicate(n.Left, it)
	x.current = saved
	if err != nil || v != pathTrue {
		return err
	}
	return x.next(n, it, out)
}

func (x *pathExec) arithmetic(n *datum.PathNode, it pathItem, out pathSink) error {
	left, err := x.collect(n.Left, it, true)
	if err != nil {
		return err
	}
	right, err := x.collect(n.Right, it, true)
	if err != nil {
		return err
	}
	one := func(list []pathItem, side string) (datum.Datum, error) {
		if len(list) == 1 {
			if v, ok := list[0].number(); ok {
				return v, nil
			}
		}
		return datum.Null, pgerr.New(pgerr.SingletonJSONItemRequired, "%s operand of jsonpath operator %s is not a single numeric value", side, pathOpName(n.Op))
	}
	a, err := one(left, "left")
	if err != nil {
		return err
	}
	b, err := one(right, "right")
	if err != nil {
		return err
	}
	v, err := pathArithmetic(n.Op)(a, b)
	if err != nil {
		return err
	}
	return x.next(n, pathItem{json: jsonbNumber(v)}, out)
}

func pathOpName(op datum.PathOp) string {
	switch op {
	case datum.PathAdd, datum.PathPlus:
		return "+"
	case datum.PathSub, datum.PathMinus:
		return "-"
	case datum.PathMul:
		return "*"
	case datum.PathDiv:
		return "/"
	}
	return "%"
}

func pathArithmetic(op datum.PathOp) func(a, b datum.Datum) (datum.Datum, error) {
	switch op {
	case datum.PathAdd:
		return datum.NumericAdd
	case datum.PathSub:
		return datum.NumericSub
	case datum.PathMul:
		return datum.NumericMul
	case datum.PathDiv:
		return datum.NumericDiv
	}
	return datum.NumericMod
}

func (x *pathExec) unary(n *datum.PathNode, it pathItem, out pathSink) error {
	list, err := x.collect(n.Left, it, true)
	if err != nil {
		return err
	}
	for _, v := range list {
		num, ok := v.number()
		if !ok && out == nil && n.Next == nil {
			continue
		}
		if !ok {
			return pgerr.New(pgerr.JSONNumberNotFound, "operand of unary jsonpath operator %s is not a numeric value", pathOpName(n.Op))
		}
		if n.Op == datum.PathMinus {
			num = datum.NumericNeg(num)
		}
		if err := x.next(n, pathItem{json: jsonbNumber(num)}, out); err != nil {
			return err
		}
	}
	return nil
}
