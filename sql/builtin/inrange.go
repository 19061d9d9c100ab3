package builtin

import (
	"math"

	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// InRange tells whether val <= base ± offset (less) or val >= base ± offset;
// sub selects minus. Arguments are not null. It decides the frames of windows
// in RANGE mode, as PostgreSQL's in_range support functions do: sums that leave
// the type count as infinite, and NaN as larger than all else.
type InRange func(c *Ctx, val, base, offset datum.Datum, sub, less bool) (bool, error)

// rangeRule is an in_range support function.
type rangeRule struct {
	col, offset *datum.Desc
	eval        InRange
}

// rangeRules are the support functions of PostgreSQL 15's btree operator
// families.
var rangeRules = []rangeRule{
	{datum.Int8, datum.Int8, intInRange},
	{datum.Int4, datum.Int8, intInRange}, {datum.Int4, datum.Int4, intInRange}, {datum.Int4, datum.Int2, intInRange},
	{datum.Int2, datum.Int8, intInRange}, {datum.Int2, datum.Int4, intInRange}, {datum.Int2, datum.Int2, intInRange},
	{datum.Float8, datum.Float8, floatInRange}, {datum.Float4, datum.Float8, floatInRange},
	{datum.Numeric, datum.Numeric, numericInRange},
	{datum.Date, datum.Interval, dateInRange},
	{datum.Timestamp, datum.Interval, shifted(datum.Timestamp, 2032, 2033)},
	{datum.TimestampTZ, datum.Interval, shifted(datum.TimestampTZ, 1189, 1190)},
	{datum.Interval, datum.Interval, shifted(datum.Interval, 1169, 1170)},
	{datum.Time, datum.Interval, timeInRange},
}

// FindInRange finds the support function for a column and an offset of given
// types, and the type that the offset has to be converted to.
func FindInRange(col, offset datum.Type) (InRange, datum.Type, error) {
	preferred := offset.Desc
	if offset.Desc == datum.Unknown {
		preferred = col.Desc
	}
	var chosen *rangeRule
	funcs, matches := 0, 0
	for i := range rangeRules {
		r := &rangeRules[i]
		if r.col != col.Desc {
			continue
		}
		funcs++
		if offset.Desc == datum.Unknown || r.offset == offset.Desc || CanCoerce(offset.Desc, r.offset, Implicit) {
			matches++
			if chosen == nil || chosen.offset != preferred {
				chosen = r
			}
		}
	}
	switch {
	case funcs == 0:
		return nil, datum.Type{}, pgerr.New(pgerr.FeatureNotSupported, "RANGE with offset PRECEDING/FOLLOWING is not supported for column type %s", typeName(col))
	case matches == 0:
		return nil, datum.Type{}, pgerr.New(pgerr.FeatureNotSupported, "RANGE with offset PRECEDING/FOLLOWING is not supported for column type %s and offset type %s",
			typeName(col), typeName(offset)).WithHint("Cast the offset value to an appropriate type.")
	case matches > 1 && chosen.offset != preferred:
		return nil, datum.Type{}, pgerr.New(pgerr.FeatureNotSupported, "RANGE with offset PRECEDING/FOLLOWING has multiple interpretations for column type %s and offset type %s",
			typeName(col), typeName(offset)).WithHint("Cast the offset value to the exact intended type.")
	}
	return chosen.eval, datum.T(chosen.offset), nil
}

func badFrameOffset() error {
	return pgerr.New(pgerr.InvalidPrecedingOrFollowingSize, "invalid preceding or following size in window function")
}

// rangeHolds compares once the sum is known.
func rangeHolds(c int, less bool) bool {
	if less {
		return c <= 0
	}
	return c >= 0
}

func intInRange(_ *Ctx, val, base, offset datum.Datum, sub, less bool) (bool, error) {
	v, b, o := val.Int(), base.Int(), offset.Int()
	if o < 0 {
		return false, badFrameOffset()
	}
	if sub {
		if b < math.MinInt64+o {
			return !less, nil
		}
		b -= o
	} else {
		if b > math.MaxInt64-o {
			return less, nil
		}
		b += o
	}
	if less {
		return v <= b, nil
	}
	return v >= b, nil
}

func floatInRange(_ *Ctx, val, base, offset datum.Datum, sub, less bool) (bool, error) {
	v, b, o := val.Float(), base.Float(), offset.Float()
	switch {
	case math.IsNaN(o) || o < 0:
		return false, badFrameOffset()
	case math.IsNaN(v):
		return math.IsNaN(b) || !less, nil
	case math.IsNaN(b):
		return less, nil
	case math.IsInf(o, 1) && (sub && math.IsInf(b, 1) || !sub && math.IsInf(b, -1)):
		return true, nil
	}
	sum := b + o
	if sub {
		sum = b - o
	}
	if less {
		return v <= sum, nil
	}
	return v >= sum, nil
}

func numericInRange(_ *Ctx, val, base, offset datum.Datum, sub, less bool) (bool, error) {
	switch {
	case datum.NumericIsNaN(offset) || datum.NumericCmp(offset, datum.NumericFromInt64(0)) < 0:
		return false, badFrameOffset()
	case datum.NumericIsNaN(val):
		return datum.NumericIsNaN(base) || !less, nil
	case datum.NumericIsNaN(base):
		return less, nil
	case datum.NumericIsInf(offset) > 0 && (sub && datum.NumericIsInf(base) > 0 || !sub && datum.NumericIsInf(base) < 0):
		return true, nil
	}
	add := datum.NumericAdd
	if sub {
		add = datum.NumericSub
	}
	sum, err := add(base, offset)
	if err != nil {
		return false, err
	}
	return rangeHolds(datum.NumericCmp(val, sum), less), nil
}

// shifted compares with the sum that the functions plus and minus compute.
func shifted(t *datum.Desc, plus, minus datum.OID) InRange {
	return func(c *Ctx, val, base, offset datum.Datum, sub, less bool) (bool, error) {
		if err := checkInterval(offset); err != nil {
			return false, err
		}
		oid := plus
		if sub {
			oid = minus
		}
		sum, err := FuncByOID(oid).Eval(c, []datum.Datum{base, offset})
		if err != nil {
			return false, err
		}
		return rangeHolds(t.Compare(val, sum), less), nil
	}
}

func checkInterval(d datum.Datum) error {
	if datum.Interval.Compare(d, datum.MakeInterval(0, 0, 0)) < 0 {
		return badFrameOffset()
	}
	return nil
}

// dateInRange compares as timestamps.
func dateInRange(c *Ctx, val, base, offset datum.Datum, sub, less bool) (bool, error) {
	toTimestamp := FuncByOID(2024).Eval
	v, err := toTimestamp(c, []datum.Datum{val})
	if err != nil {
		return false, err
	}
	b, err := toTimestamp(c, []datum.Datum{base})
	if err != nil {
		return false, err
	}
	return timestampInRange(c, v, b, offset, sub, less)
}

var timestampInRange = shifted(datum.Timestamp, 2032, 2033)

// timeInRange looks at nothing of the interval but its time, and does not wrap.
func timeInRange(_ *Ctx, val, base, offset datum.Datum, sub, less bool) (bool, error) {
	_, _, micros := datum.IntervalParts(offset)
	return intInRange(nil, val, base, datum.Int(micros), sub, less)
}
