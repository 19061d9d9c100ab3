package plan

import (
	"fmt"
	"strings"

	"github.com/tallystick/tallystick/sql/builtin"
	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
)

// Polymorphic tells that a type stands for whatever a call passes.
func Polymorphic(d *datum.Desc) bool {
	switch d {
	case datum.AnyElement, datum.AnyArray, datum.AnyNonArray, datum.AnyEnum,
		datum.AnyCompatible, datum.AnyCompatibleArray, datum.AnyCompatibleNonArray,
		datum.AnyRange, datum.AnyMultirange, datum.AnyCompatibleRange, datum.AnyCompatibleMultirange:
		return true
	}
	return false
}

// IsPolymorphic tells that a function has arguments or a result of polymorphic
// types.
func IsPolymorphic(f *catalog.Func) bool {
	if Polymorphic(f.Ret.Desc) {
		return true
	}
	for i := range f.Args {
		if Polymorphic(f.Args[i].Type.Desc) {
			return true
		}
	}
	return false
}

// Specialize is a polymorphic function as it is called with arguments of the
// types actual, which are those of declared: the function compiles for these
// types ([catalog.Func.Shape]). The error is 42804.
func Specialize(f *catalog.Func, declared []*datum.Desc, actual []datum.Type) (*catalog.Func, error) {
	if !IsPolymorphic(f) {
		return f, nil
	}
	next := *f
	next.Args = make([]catalog.Arg, len(f.Args))
	var shape strings.Builder
	concrete := func(t datum.Type) (datum.Type, error) {
		if !Polymorphic(t.Desc) {
			return t, nil
		}
		_, r, err := builtin.ResolvePolymorphic(declared, t.Desc, actual)
		if err == nil {
			fmt.Fprintf(&shape, "%d,", r.OID)
		}
		return r, err
	}
	for i, a := range f.Args {
		t, err := concrete(a.Type)
		if err != nil {
			return nil, err
		}
		a.Type, a.TypeOID = t, t.OID
		next.Args[i] = a
	}
	t, err := concrete(f.Ret)
	if err != nil {
		return nil, err
	}
	next.Ret, next.RetOID, next.Shape = t, t.OID, shape.String()
	return &next, nil
}

// SpecializeFor is [Specialize] for a call with exactly these input arguments,
// variadic ones in an array. It returns nil if the function does not take them.
func SpecializeFor(f *catalog.Func, types []datum.Type) *catalog.Func {
	in := f.InArgs()
	if len(in) != len(types) || !IsPolymorphic(f) {
		return nil
	}
	declared := make([]*datum.Desc, len(in))
	for i := range in {
		declared[i] = in[i].Type.Desc
	}
	next, err := Specialize(f, declared, types)
	if err != nil {
		return nil
	}
	for i, a := range next.InArgs() {
		if !a.Type.Same(types[i]) {
			return nil
		}
	}
	return next
}

// withShape is a function that returns record as it is called with a column
// definition list.
func withShape(f *catalog.Func, fields []datum.Field) *catalog.Func {
	next := *f
	next.Ret = recordOf(fields)
	var shape strings.Builder
	for _, x := range fields {
		fmt.Fprintf(&shape, "%s %d %d,", x.Name, x.Type.OID, x.Type.Mod)
	}
	next.Shape = f.Shape + ":" + shape.String()
	return &next
}

// outFields are the fields of the record that a function with several OUT
// arguments returns.
func outFields(outs []catalog.Arg) []datum.Field {
	fields := make([]datum.Field, len(outs))
	for i, a := range outs {
		fields[i] = datum.Field{Name: a.Name, Type: a.Type}
		if a.Name == "" {
			fields[i].Name = "column" + itoa(i+1)
		}
	}
	return fields
}
