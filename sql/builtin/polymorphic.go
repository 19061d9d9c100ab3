package builtin

import (
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

func isPolymorphic(d *datum.Desc) bool { return isSimplePoly(d) || isCompatiblePoly(d) }

// isSimplePoly: the family around anyelement, which must all agree exactly.
func isSimplePoly(d *datum.Desc) bool {
	return d == datum.AnyElement || d == datum.AnyArray || d == datum.AnyNonArray || d == datum.AnyEnum ||
		d == datum.AnyRange || d == datum.AnyMultirange
}

// isCompatiblePoly: the family around anycompatible, which share a common type.
func isCompatiblePoly(d *datum.Desc) bool {
	return d == datum.AnyCompatible || d == datum.AnyCompatibleArray || d == datum.AnyCompatibleNonArray ||
		d == datum.AnyCompatibleRange || d == datum.AnyCompatibleMultirange
}

// polymorphicConsistent is check_generic_type_consistency: whether actual
// arguments could be bound to polymorphic parameters.
func polymorphicConsistent(declared []*datum.Desc, actual []datum.Type) bool {
	_, err := bindPolymorphic(declared, actual)
	return err == nil
}

// binding is what the polymorphic parameters of one call stand for; a nil entry
// is not determined.
type binding struct {
	elem, array             *datum.Desc
	ranges                  rangeBinding
	compatible, compatArray *datum.Desc
	compatRanges            rangeBinding
	usesCompatible          bool
	allUnknown              bool // polymorphic parameters exist and all got unknown
}

func bindPolymorphic(declared []*datum.Desc, actual []datum.Type) (binding, error) {
	var b binding
	var compatible []datum.Type
	nonArray, enum, compatNonArray, known, poly := false, false, false, false, false
	for i, d := range declared {
		if !isPolymorphic(d) {
			continue
		}
		nonArray = nonArray || d == datum.AnyNonArray
		enum = enum || d == datum.AnyEnum
		compatNonArray = compatNonArray || d == datum.AnyCompatibleNonArray
		b.usesCompatible = b.usesCompatible || isCompatiblePoly(d)
		poly = poly || isSimplePoly(d)
		t := actual[i]
		if t.Desc == datum.Unknown {
			continue
		}
		known = known || isSimplePoly(d)
		switch d {
		case datum.AnyElement, datum.AnyNonArray, datum.AnyEnum:
			if b.elem != nil && !sameDesc(b.elem, t.Desc) {
				return b, pgerr.New(pgerr.DatatypeMismatch, "arguments declared \"%s\" are not all alike", "anyelement").
					WithDetail("%s versus %s", typeName(datum.T(b.elem)), typeName(t))
			}
			b.elem = t.Desc
		case datum.AnyArray:
			base := baseOf(t.Desc)
			if b.array != nil && !sameDesc(b.array, base) {
				return b, pgerr.New(pgerr.DatatypeMismatch, "arguments declared \"%s\" are not all alike", "anyarray").
					WithDetail("%s versus %s", typeName(datum.T(b.array)), typeName(t))
			}
			b.array = base
		case datum.AnyRange, datum.AnyMultirange:
			if err := b.ranges.bind(d, t); err != nil {
				return b, err
			}
		case datum.AnyCompatibleRange, datum.AnyCompatibleMultirange:
			if err := b.compatRanges.bind(d, t); err != nil {
				return b, err
			}
		case datum.AnyCompatible, datum.AnyCompatibleNonArray:
			compatible = append(compatible, t)
		case datum.AnyCompatibleArray:
			elem := elementOf(baseOf(t.Desc))
			if elem == nil {
				return b, notAnArray("anycompatiblearray", t)
			}
			compatible = append(compatible, datum.T(elem))
		}
	}
	b.allUnknown = poly && !known
	if err := b.linkRange(); err != nil {
		return b, err
	}
	if err := b.linkArray(nonArray, enum); err != nil {
		return b, err
	}
	if r := b.compatRanges.rng; r != nil {
		compatible = append(compatible, datum.T(r.Sub))
	}
	return b, b.linkCompatible(compatible, compatNonArray)
}

func notAnArray(param string, t datum.Type) error {
	return pgerr.New(pgerr.DatatypeMismatch, "argument declared %s is not an array but type %s", param, typeName(t))
}

// linkArray derives the element type from the array type, or checks that both
// agree.
func (b *binding) linkArray(nonArray, enum bool) error {
	if b.array != nil && b.array != datum.AnyArray {
		elem := elementOf(b.array)
		if elem == nil {
			return notAnArray("anyarray", datum.T(b.array))
		}
		if b.elem != nil && !sameDesc(b.elem, elem) {
			return pgerr.New(pgerr.DatatypeMismatch, "argument declared %s is not consistent with argument declared %s",
				"anyarray", "anyelement").WithDetail("%s versus %s", typeName(datum.T(b.array)), typeName(datum.T(b.elem)))
		}
		b.elem = elem
	}
	if nonArray && b.elem != nil && elementOf(baseOf(b.elem)) != nil {
		return pgerr.New(pgerr.DatatypeMismatch, "type matched to anynonarray is an array type: %s", typeName(datum.T(b.elem)))
	}
	if enum && (b.elem == nil || b.elem.Kind != datum.Enum) {
		name := "unknown"
		if b.elem != nil {
			name = typeName(datum.T(b.elem))
		}
		return pgerr.New(pgerr.DatatypeMismatch, "type matched to anyenum is not an enum type: %s", name)
	}
	return nil
}

// linkCompatible finds the common type of the anycompatible family; text if
// all its arguments are unknown.
func (b *binding) linkCompatible(types []datum.Type, nonArray bool) error {
	if !b.usesCompatible {
		return nil
	}
	if len(types) == 0 {
		b.compatible = datum.Text
	} else {
		common, err := CommonType(types, "argument")
		if err != nil {
			e, _ := pgerr.From(err)
			if e.Code == pgerr.DatatypeMismatch {
				e.Message = "arguments of anycompatible family cannot be cast to a common type"
			}
			return err
		}
		b.compatible = common.Desc
	}
	if r := b.compatRanges.rng; r != nil && !sameDesc(r.Sub, b.compatible) {
		return pgerr.New(pgerr.DatatypeMismatch, "%s", "anycompatiblerange type "+typeName(datum.T(r))+" does not match anycompatible type "+typeName(datum.T(b.compatible)))
	}
	if nonArray && elementOf(baseOf(b.compatible)) != nil {
		return pgerr.New(pgerr.DatatypeMismatch, "type matched to anycompatiblenonarray is an array type: %s", typeName(datum.T(b.compatible)))
	}
	b.compatArray = b.compatible.Array
	return nil
}

// resolve is the concrete type of one declared type.
func (b *binding) resolve(d *datum.Desc) (*datum.Desc, error) {
	switch d {
	case datum.AnyElement, datum.AnyNonArray, datum.AnyEnum:
		if b.elem == nil {
			return nil, undetermined(b.allUnknown)
		}
		return b.elem, nil
	case datum.AnyArray:
		if b.array != nil {
			return b.array, nil
		}
		if b.elem == nil {
			return nil, undetermined(b.allUnknown)
		}
		return arrayTypeOf(b.elem)
	case datum.AnyRange, datum.AnyMultirange:
		return b.ranges.resolve(d == datum.AnyMultirange, b.allUnknown)
	case datum.AnyCompatibleRange, datum.AnyCompatibleMultirange:
		return b.compatRanges.resolve(d == datum.AnyCompatibleMultirange, b.compatRanges == rangeBinding{})
	case datum.AnyCompatible, datum.AnyCompatibleNonArray:
		return b.compatible, nil
	case datum.AnyCompatibleArray:
		return arrayTypeOf(b.compatible)
	}
	return d, nil
}

func arrayTypeOf(elem *datum.Desc) (*datum.Desc, error) {
	if elem == nil || elem.Array == nil {
		return nil, pgerr.New(pgerr.UndefinedObject, "could not find array type for data type %s", typeName(datum.T(elem)))
	}
	return elem.Array, nil
}

func undetermined(unknown bool) error {
	if unknown {
		return pgerr.New(pgerr.DatatypeMismatch, "could not determine polymorphic type because input has type %s", "unknown")
	}
	return pgerr.New(pgerr.DatatypeMismatch, "could not determine polymorphic type")
}

// ResolvePolymorphic gives the types that the arguments of a call are to be
// coerced to, and the type of its result, once polymorphic ones are bound to
// the actual arguments (enforce_generic_type_consistency). declared and actual
// are in the same order, variadic arguments expanded ([Match.Args]); parameters
// filled by defaults may be missing at the end of actual. Errors: 42804.
func ResolvePolymorphic(declared []*datum.Desc, ret *datum.Desc, actual []datum.Type) ([]datum.Type, datum.Type, error) {
	args := make([]datum.Type, len(declared))
	for i, d := range declared {
		args[i] = datum.T(d)
	}
	n := min(len(declared), len(actual))
	poly := isPolymorphic(ret)
	for _, d := range declared[:n] {
		poly = poly || isPolymorphic(d)
	}
	if !poly {
		return args, datum.T(ret), nil
	}
	b, err := bindPolymorphic(declared[:n], actual[:n])
	if err != nil {
		return nil, datum.Type{}, err
	}
	for i, d := range declared {
		r, err := b.resolve(d)
		if err != nil {
			return nil, datum.Type{}, err
		}
		args[i] = datum.T(r)
	}
	r, err := b.resolve(ret)
	if err != nil {
		return nil, datum.Type{}, err
	}
	return args, datum.T(r), nil
}
