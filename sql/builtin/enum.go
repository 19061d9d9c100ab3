package builtin

import (
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

func enumLabel(t *datum.Desc, i int) (datum.Datum, error) {
	if len(t.Labels) == 0 {
		return datum.Null, pgerr.New(pgerr.ObjectNotInPrerequisiteState, "enum %s contains no values", t.Name)
	}
	return datum.EnumValue(t, t.Labels[i].Label)
}

// bindEnumEnd implements enum_first and enum_last; the argument gives the type
// only.
func bindEnumEnd(last bool) func([]datum.Type, datum.Type) (Eval, error) {
	return func(args []datum.Type, _ datum.Type) (Eval, error) {
		t := args[0].Root().Desc
		return func(*Ctx, []datum.Datum) (datum.Datum, error) {
			if last {
				return enumLabel(t, len(t.Labels)-1)
			}
			return enumLabel(t, 0)
		}, nil
	}
}

// bindEnumRange implements enum_range: all values, or those between two bounds,
// of which null leaves its side open.
func bindEnumRange(args []datum.Type, _ datum.Type) (Eval, error) {
	t := args[0].Root().Desc
	return func(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
		var vals []datum.Datum
		for i := range t.Labels {
			v, err := enumLabel(t, i)
			if err != nil {
				return datum.Null, err
			}
			if len(a) == 2 && (!a[0].IsNull() && t.Compare(v, a[0]) < 0 || !a[1].IsNull() && t.Compare(v, a[1]) > 0) {
				continue
			}
			vals = append(vals, v)
		}
		return datum.MakeArray(t, vals), nil
	}, nil
}

var enumBinds = bindMap{
	"enum_first": bindEnumEnd(false), "enum_last": bindEnumEnd(true),
	"enum_range_all": bindEnumRange, "enum_range_bounds": bindEnumRange,
}
