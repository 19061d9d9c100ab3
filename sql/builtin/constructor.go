package builtin

import "github.com/tallystick/tallystick/sql/datum"

// Constructors are the functions that a user's range or multirange type brings
// along, as makeRangeConstructors and makeMultirangeConstructors in typecmds.c
// define them: from two bounds, without or with flags; and from nothing, from one
// range, from any number of ranges.
func Constructors(d *datum.Desc) []*Func {
	if d.IsRange() {
		return []*Func{
			constructor(d, bindRangeConstructor, d.Sub, d.Sub),
			constructor(d, bindRangeConstructor, d.Sub, d.Sub, datum.Text),
		}
	}
	none := constructor(d, bindMultiConstructor)
	one := constructor(d, bindMultiConstructor, d.Range)
	list := []*Func{none, one}
	if d.Range.Array != nil {
		many := constructor(d, bindMultiConstructor, d.Range.Array)
		many.Variadic = true
		list = append(list, many)
	}
	for _, f := range list {
		f.Strict = true
	}
	return list
}

func constructor(d *datum.Desc, bind func([]datum.Type, datum.Type) (Eval, error), args ...*datum.Desc) *Func {
	return &Func{Name: d.Name, Args: args, Ret: d, Kind: Scalar, Volatility: Immutable, Bind: bind, built: true}
}

// multirangeCast is the cast from a user's range type to its multirange type.
func multirangeCast(s, d *datum.Desc) (Cast, bool) {
	if !s.IsRange() || !sameDesc(s.Multi, d) {
		return Cast{}, false
	}
	f := constructor(d, bindMultiConstructor, s)
	f.Strict = true
	return Cast{Source: s, Target: d, Context: Explicit, Method: ByFunc, Func: f}, true
}
