package builtin

import "github.com/tallystick/tallystick/sql/datum"

// Spread returns f as a call with VARIADIC before its last argument sees it, if
// the last parameter is "any": that argument is an array, and its elements are
// the function's arguments. Other variadic functions take the array as it is.
func (f *Func) Spread() *Func {
	g := *f
	g.Eval = nil
	g.Bind = func(args []datum.Type, ret datum.Type) (Eval, error) { return bindSpread(f, args, ret) }
	return &g
}

func bindSpread(f *Func, args []datum.Type, ret datum.Type) (Eval, error) {
	fixed := len(args) - 1
	elem := datum.T(elemOf(args[fixed]))
	return func(c *Ctx, a []datum.Datum) (datum.Datum, error) {
		// A null array gives null, but format() then has no arguments.
		if a[fixed].IsNull() && f.Name != "format" {
			return datum.Null, nil
		}
		types := append([]datum.Type(nil), args[:fixed]...)
		vals := append([]datum.Datum(nil), a[:fixed]...)
		if !a[fixed].IsNull() {
			for v := range datum.ArrayElems(a[fixed]) {
				types, vals = append(types, elem), append(vals, v)
			}
		}
		eval, err := f.BindEval(types, ret)
		if err != nil {
			return datum.Null, err
		}
		return eval(c, vals)
	}, nil
}
