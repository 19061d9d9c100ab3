package builtin

import (
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// rangeBinding is what anyrange and anymultirange stand for in one call; nil is
// not determined.
type rangeBinding struct{ rng, multi *datum.Desc }

// bind takes the actual type of a parameter declared as d.
func (b *rangeBinding) bind(d *datum.Desc, t datum.Type) error {
	base := baseOf(t.Desc)
	slot, fits, kind := &b.rng, base.IsRange(), "range"
	if d == datum.AnyMultirange || d == datum.AnyCompatibleMultirange {
		slot, fits, kind = &b.multi, base.IsMultirange(), "multirange"
	}
	switch {
	case *slot != nil && !sameDesc(*slot, base):
		return pgerr.New(pgerr.DatatypeMismatch, "arguments declared \"%s\" are not all alike", d.Name).
			WithDetail("%s versus %s", typeName(datum.T(*slot)), typeName(t))
	case !fits:
		return pgerr.New(pgerr.DatatypeMismatch, "argument declared %s is not a %s type but type %s", d.Name, kind, typeName(t))
	}
	*slot = base
	return b.link()
}

// link derives the range type and the multirange type from each other.
func (b *rangeBinding) link() error {
	switch {
	case b.multi == nil && b.rng != nil && b.rng.Multi != nil:
		return nil // until an argument says otherwise
	case b.multi != nil && b.rng == nil:
		b.rng = b.multi.Range
	case b.multi != nil && !sameDesc(b.multi.Range, b.rng):
		return pgerr.New(pgerr.DatatypeMismatch, "argument declared %s is not consistent with argument declared %s", "anymultirange", "anyrange").
			WithDetail("%s versus %s", typeName(datum.T(b.multi)), typeName(datum.T(b.rng)))
	}
	return nil
}

// resolve is the range type, or the multirange type.
func (b *rangeBinding) resolve(multi, unknown bool) (*datum.Desc, error) {
	switch {
	case b.rng == nil:
		return nil, undetermined(unknown)
	case multi:
		return b.rng.Multi, nil
	}
	return b.rng, nil
}

// linkRange derives the element type from the range type, or checks that both
// agree.
func (b *binding) linkRange() error {
	r := b.ranges.rng
	switch {
	case r == nil:
	case b.elem == nil:
		b.elem = r.Sub
	case !sameDesc(b.elem, r.Sub):
		return pgerr.New(pgerr.DatatypeMismatch, "argument declared %s is not consistent with argument declared %s", "anyrange", "anyelement").
			WithDetail("%s versus %s", typeName(datum.T(r)), typeName(datum.T(b.elem)))
	}
	return nil
}
