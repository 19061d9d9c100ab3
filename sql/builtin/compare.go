package builtin

import (
	"cmp"
	"strings"

	"github.com/tallystick/tallystick/sql/datum"
)

// test turns the result of a comparison into that of an operator; nil if name
// is not a comparison operator.
func test(name string) func(c int) bool {
	switch name {
	case "=":
		return func(c int) bool { return c == 0 }
	case "<>":
		return func(c int) bool { return c != 0 }
	case "<":
		return func(c int) bool { return c < 0 }
	case "<=":
		return func(c int) bool { return c <= 0 }
	case ">":
		return func(c int) bool { return c > 0 }
	case ">=":
		return func(c int) bool { return c >= 0 }
	}
	return nil
}

// comparison makes the implementation of a comparison operator.
func comparison(op string, compare func(a, b datum.Datum) int) Eval {
	is := test(op)
	return func(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
		return datum.Bool(is(compare(a[0], a[1]))), nil
	}
}

// intComparisons are the six operators over integers of any width, which all
// have one representation: the common case, without a call through a pointer.
var intComparisons = evalMap{
	"=":  func(_ *Ctx, a []datum.Datum) (datum.Datum, error) { return datum.Bool(a[0].Int() == a[1].Int()), nil },
	"<>": func(_ *Ctx, a []datum.Datum) (datum.Datum, error) { return datum.Bool(a[0].Int() != a[1].Int()), nil },
	"<":  func(_ *Ctx, a []datum.Datum) (datum.Datum, error) { return datum.Bool(a[0].Int() < a[1].Int()), nil },
	"<=": func(_ *Ctx, a []datum.Datum) (datum.Datum, error) { return datum.Bool(a[0].Int() <= a[1].Int()), nil },
	">":  func(_ *Ctx, a []datum.Datum) (datum.Datum, error) { return datum.Bool(a[0].Int() > a[1].Int()), nil },
	">=": func(_ *Ctx, a []datum.Datum) (datum.Datum, error) { return datum.Bool(a[0].Int() >= a[1].Int()), nil },
}

// textComparisons are the six operators over text, varchar and name: the bytes
// decide, as in collation "C".
var textComparisons = evalMap{
	"=":  func(_ *Ctx, a []datum.Datum) (datum.Datum, error) { return datum.Bool(a[0].Str() == a[1].Str()), nil },
	"<>": func(_ *Ctx, a []datum.Datum) (datum.Datum, error) { return datum.Bool(a[0].Str() != a[1].Str()), nil },
	"<":  func(_ *Ctx, a []datum.Datum) (datum.Datum, error) { return datum.Bool(a[0].Str() < a[1].Str()), nil },
	"<=": func(_ *Ctx, a []datum.Datum) (datum.Datum, error) { return datum.Bool(a[0].Str() <= a[1].Str()), nil },
	">":  func(_ *Ctx, a []datum.Datum) (datum.Datum, error) { return datum.Bool(a[0].Str() > a[1].Str()), nil },
	">=": func(_ *Ctx, a []datum.Datum) (datum.Datum, error) { return datum.Bool(a[0].Str() >= a[1].Str()), nil },
}

func isInt(d *datum.Desc) bool {
	return d == datum.Int2 || d == datum.Int4 || d == datum.Int8
}

func isFloat(d *datum.Desc) bool { return d == datum.Float4 || d == datum.Float8 }

func isPlainText(d *datum.Desc) bool {
	return d == datum.Text || d == datum.VarChar || d == datum.Name
}

func compareInts(a, b datum.Datum) int { return cmp.Compare(a.Int(), b.Int()) }

// linkComparison implements a comparison operator from the order of its operand
// types, unless it has an implementation of its own.
func linkComparison(op *Operator) {
	f := op.Func
	if f.built || test(op.Name) == nil || op.Left == nil {
		return
	}
	l, r := op.Left, op.Right
	switch {
	case isInt(l) && isInt(r), l == datum.XID && r == datum.Int4:
		f.Eval = intComparisons[op.Name]
	case isPlainText(l) && isPlainText(r):
		f.Eval = textComparisons[op.Name]
	case isFloat(l) && isFloat(r):
		f.Eval = comparison(op.Name, datum.Float8.Compare)
	case l == r && isPolymorphic(l), l == r && l == datum.Record:
		name := op.Name
		f.Bind = func(args []datum.Type, _ datum.Type) (Eval, error) {
			root := args[0].Root()
			if root.Compare == nil {
				return nil, noOrder(root)
			}
			return comparison(name, root.Compare), nil
		}
		f.built = true
		return
	case l == r && l.Compare != nil:
		f.Eval = comparison(op.Name, l.Compare)
	default:
		return
	}
	f.built, f.Bind = true, nil
}

// linkExtreme implements the functions behind max and min, such as int4larger.
func linkExtreme(f *Func, impl string) bool {
	larger := strings.HasSuffix(impl, "larger")
	if !larger && !strings.HasSuffix(impl, "smaller") || len(f.Args) != 2 || f.Args[0] != f.Args[1] {
		return false
	}
	pick := func(d *datum.Desc) Eval {
		later := takesEqual(d)
		return func(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
			c := d.Compare(a[0], a[1])
			if c == 0 && later || c != 0 && larger != (c > 0) {
				return a[1], nil
			}
			return a[0], nil
		}
	}
	switch d := f.Args[0]; {
	case isPolymorphic(d):
		f.Bind = func(args []datum.Type, _ datum.Type) (Eval, error) {
			if args[0].Root().Compare == nil {
				return nil, noOrder(args[0])
			}
			return pick(args[0].Root().Desc), nil
		}
	case d.Compare != nil:
		f.Eval = pick(d)
	default:
		return false
	}
	return true
}
