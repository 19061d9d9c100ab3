package exec

import (
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
	"github.com/tallystick/tallystick/sql/plan"
)

// compareOf returns the order of a type's values that are not null.
func compareOf(t datum.Type) (func(a, b datum.Datum) int, error) {
	if t.Desc != nil && t.Compare != nil {
		return t.Compare, nil
	}
	if r := t.Root(); r.Desc != nil && r.Compare != nil {
		return r.Compare, nil
	}
	return nil, pgerr.New(pgerr.UndefinedFunction, "could not identify an ordering operator for type %s", datum.FormatType(t))
}

// hashOf returns the hash of a type's values that are not null.
func hashOf(t datum.Type) (func(h uint64, d datum.Datum) uint64, error) {
	if t.Desc != nil && t.Hash != nil && t.Compare != nil {
		return t.Hash, nil
	}
	if r := t.Root(); r.Desc != nil && r.Hash != nil && r.Compare != nil {
		return r.Hash, nil
	}
	return nil, pgerr.New(pgerr.UndefinedFunction, "could not identify an equality operator for type %s", datum.FormatType(t))
}

// sortKey is a compiled key of an order.
type sortKey struct {
	eval       evalFunc
	cmp        func(a, b datum.Datum) int
	desc       bool
	nullsFirst bool
}

func (c *compiler) sortKeys(keys []plan.SortKey) ([]sortKey, error) {
	out := make([]sortKey, len(keys))
	for i, k := range keys {
		ev, err := c.expr(k.Expr)
		if err != nil {
			return nil, err
		}
		cmp, err := compareOf(k.Expr.Type())
		if err != nil {
			return nil, err
		}
		out[i] = sortKey{eval: ev, cmp: cmp, desc: k.Desc, nullsFirst: k.NullsFirst}
	}
	return out, nil
}

// compareKeys orders two rows that begin with the values of keys.
func compareKeys(keys []sortKey, a, b []datum.Datum) int {
	for i := range keys {
		if c := keys[i].compare(a[i], b[i]); c != 0 {
			return c
		}
	}
	return 0
}

func (k *sortKey) compare(a, b datum.Datum) int {
	an, bn := a.IsNull(), b.IsNull()
	if an || bn {
		switch {
		case an && bn:
			return 0
		case an == k.nullsFirst:
			return -1
		}
		return 1
	}
	c := k.cmp(a, b)
	if k.desc {
		return -c
	}
	return c
}

// evalKeys computes the keys of the current row.
func evalKeys(f *frame, keys []sortKey, dst []datum.Datum) error {
	for i := range keys {
		v, err := keys[i].eval(f)
		if err != nil {
			return err
		}
		dst[i] = v
	}
	return nil
}
