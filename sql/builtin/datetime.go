package builtin

import (
	"math"
	"time"

	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

const (
	usPerSecond = int64(1e6)
	usPerDay    = 86400 * usPerSecond
	// unixToPostgres is 2000-01-01 in Unix seconds.
	unixToPostgres = 946684800
)

func timestampOutOfRange() error {
	return pgerr.New(pgerr.DatetimeFieldOverflow, "timestamp out of range")
}

func dateOutOfRange() error {
	return pgerr.New(pgerr.DatetimeFieldOverflow, "date out of range")
}

func dateIsFinite(days int64) bool { return days != datum.DateNegInf && days != datum.DatePosInf }
func timestampIsFinite(us int64) bool {
	return us != datum.TimestampNegInf && us != datum.TimestampPosInf
}

// int64Eval lifts functions over dates and times, which are integers inside.
func int64Eval(f func(c *Ctx, v int64) (int64, error)) Eval {
	return func(c *Ctx, a []datum.Datum) (datum.Datum, error) {
		v, err := f(c, a[0].Int())
		return datum.Int(v), err
	}
}

func swap(f Eval) Eval {
	return func(c *Ctx, a []datum.Datum) (datum.Datum, error) {
		b := [2]datum.Datum{a[1], a[0]}
		return f(c, b[:])
	}
}

func negated(f Eval) Eval {
	return func(c *Ctx, a []datum.Datum) (datum.Datum, error) {
		iv, err := datum.IntervalNeg(a[1])
		if err != nil {
			return datum.Null, err
		}
		b := [2]datum.Datum{a[0], iv}
		return f(c, b[:])
	}
}

func timestampPlus(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
	return datum.TimestampAddInterval(a[0], a[1])
}

func timestamptzPlus(c *Ctx, a []datum.Datum) (datum.Datum, error) {
	return datum.TimestampTZAddInterval(a[0], a[1], c.Format.Zone)
}

func timestampMinus(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
	return datum.TimestampSub(a[0].Int(), a[1].Int())
}

func datePlusInterval(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
	us, err := datum.DateToTimestamp(int32(a[0].Int()))
	if err != nil {
		return datum.Null, err
	}
	return datum.TimestampAddInterval(datum.Int(us), a[1])
}

func dateMinusDate(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
	if !dateIsFinite(a[0].Int()) || !dateIsFinite(a[1].Int()) {
		return datum.Null, pgerr.New(pgerr.DatetimeFieldOverflow, "cannot subtract infinite dates")
	}
	return datum.Int(a[0].Int() - a[1].Int()), nil
}

// The range of dates, in days: 4713-01-01 BC up to 5874897-12-31.
const (
	minDate = -2451545
	endDate = 2145031949
)

func dateShift(sign int64) Eval {
	return func(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
		d := a[0].Int()
		if !dateIsFinite(d) {
			return a[0], nil
		}
		d += sign * a[1].Int()
		if d < minDate || d >= endDate {
			return datum.Null, dateOutOfRange()
		}
		return datum.Int(d), nil
	}
}

// datePlusTime combines a date and a time to a timestamp.
func datePlusTime(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
	us, err := datum.DateToTimestamp(int32(a[0].Int()))
	if err != nil || !timestampIsFinite(us) {
		return datum.Int(us), err
	}
	return datum.Int(us + a[1].Int()), nil
}

func datePlusTimeLocal(c *Ctx, a []datum.Datum) (datum.Datum, error) {
	ts, err := datePlusTime(c, a)
	if err != nil {
		return datum.Null, err
	}
	us, err := datum.TimestampToTZ(ts.Int(), c.Format.Zone)
	return datum.Int(us), err
}

func datePlusTimeTZ(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
	us, err := datum.DateToTimestamp(int32(a[0].Int()))
	if err != nil || !timestampIsFinite(us) {
		return datum.Int(us), err
	}
	t, west := datum.TimeTZParts(a[1])
	return datum.Int(us + t + int64(west)*usPerSecond), nil
}

func wrapDay(us int64) int64 { return us - floorDivide(us, usPerDay)*usPerDay }

func floorDivide(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

func timePlus(sign int64) Eval {
	return func(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
		_, _, us := datum.IntervalParts(a[1])
		return datum.Int(wrapDay(a[0].Int() + sign*us)), nil
	}
}

func timetzPlus(sign int64) Eval {
	return func(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
		_, _, us := datum.IntervalParts(a[1])
		t, zone := datum.TimeTZParts(a[0])
		return datum.MakeTimeTZ(wrapDay(t+sign*us), zone), nil
	}
}

func intervalOf(us int64) datum.Datum { return datum.MakeInterval(0, 0, us) }

func intervalTimes(scale func(a datum.Datum, f float64) (datum.Datum, error)) Eval {
	return func(_ *Ctx, a []datum.Datum) (datum.Datum, error) { return scale(a[0], a[1].Float()) }
}

// part implements extract (exact numeric) and date_part (double precision).
func part(exact bool, extract func(c *Ctx, field string, d datum.Datum) (datum.Datum, error)) Eval {
	return func(c *Ctx, a []datum.Datum) (datum.Datum, error) {
		v, err := extract(c, a[0].Str(), a[1])
		if err != nil || exact || v.IsNull() {
			return v, err
		}
		f, err := datum.NumericToFloat(v)
		return datum.Float(f), err
	}
}

func extractTimestamp(_ *Ctx, field string, d datum.Datum) (datum.Datum, error) {
	return datum.ExtractTimestamp(field, d.Int())
}

func extractTimestampTZ(c *Ctx, field string, d datum.Datum) (datum.Datum, error) {
	return datum.ExtractTimestampTZ(field, d.Int(), c.Format.Zone)
}

func extractTime(_ *Ctx, field string, d datum.Datum) (datum.Datum, error) {
	return datum.ExtractTime(field, d.Int())
}

func extractTimeTZ(_ *Ctx, field string, d datum.Datum) (datum.Datum, error) {
	return datum.ExtractTimeTZ(field, d)
}

func extractInterval(_ *Ctx, field string, d datum.Datum) (datum.Datum, error) {
	return datum.ExtractInterval(field, d)
}

func truncTimestampTZ(c *Ctx, a []datum.Datum) (datum.Datum, error) {
	z := c.Format.Zone
	if len(a) == 3 {
		var err error
		if z, err = datum.LoadZone(a[2].Str()); err != nil {
			return datum.Null, err
		}
	}
	us, err := datum.TruncTimestampTZ(a[0].Str(), a[1].Int(), z)
	return datum.Int(us), err
}

func binTimestamp(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
	us, err := datum.BinTimestamp(a[0], a[1].Int(), a[2].Int())
	return datum.Int(us), err
}

// zoneArg is the zone that timezone() names: a text or an interval.
func zoneArg(d datum.Datum, isInterval bool) (*time.Location, error) {
	if !isInterval {
		return datum.LoadZone(d.Str())
	}
	months, days, us := datum.IntervalParts(d)
	if months != 0 || days != 0 {
		return nil, pgerr.New(pgerr.InvalidParameterValue, "interval time zone \"%s\" must not include months or days",
			datum.Interval.Append(nil, d, &datum.ContractFormat))
	}
	return datum.FixedZone(int(us / usPerSecond)), nil
}

// atZone implements timezone(zone, x); west of it lies the conversion.
func atZone(isInterval bool, convert func(d datum.Datum, z *time.Location) (datum.Datum, error)) Eval {
	return func(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
		z, err := zoneArg(a[0], isInterval)
		if err != nil {
			return datum.Null, err
		}
		return convert(a[1], z)
	}
}

func zoneToTimestamp(d datum.Datum, z *time.Location) (datum.Datum, error) {
	us, err := datum.TZToTimestamp(d.Int(), z)
	return datum.Int(us), err
}

func zoneToTimestampTZ(d datum.Datum, z *time.Location) (datum.Datum, error) {
	us, err := datum.TimestampToTZ(d.Int(), z)
	return datum.Int(us), err
}

// timetzAtInterval turns a time with zone to another fixed offset.
func timetzAtInterval(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
	z, err := zoneArg(a[0], true)
	if err != nil {
		return datum.Null, err
	}
	east, _ := datum.TZOffset(0, z)
	return timetzTo(a[1], east), nil
}

func timetzTo(d datum.Datum, secondsEast int) datum.Datum {
	us, west := datum.TimeTZParts(d)
	us += (int64(west) + int64(secondsEast)) * usPerSecond
	return datum.MakeTimeTZ(wrapDay(us), int32(-secondsEast))
}

// timetzAtZone uses the offset that the zone has at the transaction's time; a
// contract has none, so there it works for fixed offsets only.
func timetzAtZone(c *Ctx, a []datum.Datum) (datum.Datum, error) {
	z, err := datum.LoadZone(a[0].Str())
	if err != nil {
		return datum.Null, err
	}
	now, err := transactionTime(c)
	if err != nil {
		return datum.Null, err
	}
	east, _ := datum.TZOffset(now.Int(), z)
	return timetzTo(a[1], east), nil
}

// overlaps is SQL's OVERLAPS over two periods, each given by two points that
// may be null or in the wrong order (overlaps_timestamp in timestamp.c).
func overlaps(compare func(a, b datum.Datum) int) Eval {
	return func(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
		s1, e1, ok1 := period(a[0], a[1], compare)
		s2, e2, ok2 := period(a[2], a[3], compare)
		if !ok1 || !ok2 {
			return datum.Null, nil
		}
		switch c := compare(s1, s2); {
		case c > 0:
			return within(s1, e1, s2, e2, compare), nil
		case c < 0:
			return within(s2, e2, s1, e1, compare), nil
		}
		if e1.IsNull() || e2.IsNull() {
			return datum.Null, nil
		}
		return datum.Bool(true), nil
	}
}

// period orders its points; a single one is its start.
func period(a, b datum.Datum, compare func(a, b datum.Datum) int) (start, end datum.Datum, ok bool) {
	switch {
	case a.IsNull() && b.IsNull():
		return a, b, false
	case a.IsNull():
		return b, a, true
	case !b.IsNull() && compare(a, b) > 0:
		return b, a, true
	}
	return a, b, true
}

// within tells whether a period starts inside an earlier one.
func within(s1, e1, s2, e2 datum.Datum, compare func(a, b datum.Datum) int) datum.Datum {
	if e2.IsNull() {
		return datum.Null
	}
	if compare(s1, e2) < 0 {
		return datum.Bool(true)
	}
	if e1.IsNull() {
		return datum.Null
	}
	return datum.Bool(false)
}

// overlapsBy turns lengths into end points first; which of the two periods has a
// length is told by first and second.
func overlapsBy(plus Eval, first, second bool, compare func(a, b datum.Datum) int) Eval {
	test := overlaps(compare)
	return func(c *Ctx, a []datum.Datum) (datum.Datum, error) {
		b := [4]datum.Datum{a[0], a[1], a[2], a[3]}
		for i, lengths := range []bool{first, second} {
			start, length := &b[2*i], &b[2*i+1]
			if !lengths {
				continue
			}
			if start.IsNull() || length.IsNull() {
				*length = datum.Null
				continue
			}
			var err error
			if *length, err = plus(c, []datum.Datum{*start, *length}); err != nil {
				return datum.Null, err
			}
		}
		return test(c, b[:])
	}
}

// toTimestamp converts Unix seconds.
func toTimestamp(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
	s := a[0].Float()
	switch {
	case math.IsNaN(s):
		return datum.Null, pgerr.New(pgerr.DatetimeFieldOverflow, "timestamp cannot be NaN")
	case math.IsInf(s, 1):
		return datum.Int(datum.TimestampPosInf), nil
	case math.IsInf(s, -1):
		return datum.Int(datum.TimestampNegInf), nil
	}
	us := math.RoundToEven(float64((s - unixToPostgres) * 1e6))
	if us < float64(minTimestamp) || us >= float64(endTimestamp) {
		return datum.Null, pgerr.New(pgerr.DatetimeFieldOverflow, "timestamp out of range: \"%s\"",
			datum.Float8.Append(nil, a[0], &datum.ContractFormat))
	}
	return datum.Int(int64(us)), nil
}

// The range of timestamps: 4714-11-24 BC up to 294276-12-31.
const (
	minTimestamp = -211813488000000000
	endTimestamp = 9223371331200000000
)

func compareDateTimestamp(c *Ctx, date, ts int64) int {
	us, err := datum.DateToTimestamp(int32(date))
	return compareOrOverflow(us, err, date, ts)
}

func compareDateTimestampTZ(c *Ctx, date, ts int64) int {
	us, err := datum.DateToTimestampTZ(int32(date), c.Format.Zone)
	return compareOrOverflow(us, err, date, ts)
}

func compareTimestampTZ(c *Ctx, ts, tz int64) int {
	us, err := datum.TimestampToTZ(ts, c.Format.Zone)
	return compareOrOverflow(us, err, ts, tz)
}

// compareOrOverflow compares a converted value; one out of the range of
// timestamps lies beyond all finite ones on its side.
func compareOrOverflow(us int64, err error, original, other int64) int {
	if err != nil {
		if original > 0 {
			us = datum.TimestampPosInf - 1
		} else {
			us = datum.TimestampNegInf + 1
		}
	}
	switch {
	case us < other:
		return -1
	case us > other:
		return 1
	}
	return 0
}

// crossComparisons builds the comparisons between date, timestamp and
// timestamptz, and their three-way forms.
func crossComparisons() evalMap {
	m := evalMap{}
	ops := map[string]string{"eq": "=", "ne": "<>", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
	for _, x := range []struct {
		left, right string
		compare     func(c *Ctx, a, b int64) int
	}{
		{"date", "timestamp", compareDateTimestamp},
		{"date", "timestamptz", compareDateTimestampTZ},
		{"timestamp", "timestamptz", compareTimestampTZ},
	} {
		forward := func(c *Ctx, a []datum.Datum) int { return x.compare(c, a[0].Int(), a[1].Int()) }
		backward := func(c *Ctx, a []datum.Datum) int { return -x.compare(c, a[1].Int(), a[0].Int()) }
		for name, op := range ops {
			is := test(op)
			m[x.left+"_"+name+"_"+x.right] = func(c *Ctx, a []datum.Datum) (datum.Datum, error) {
				return datum.Bool(is(forward(c, a))), nil
			}
			m[x.right+"_"+name+"_"+x.left] = func(c *Ctx, a []datum.Datum) (datum.Datum, error) {
				return datum.Bool(is(backward(c, a))), nil
			}
		}
		m[x.left+"_cmp_"+x.right] = func(c *Ctx, a []datum.Datum) (datum.Datum, error) {
			return datum.Int(int64(forward(c, a))), nil
		}
		m[x.right+"_cmp_"+x.left] = func(c *Ctx, a []datum.Datum) (datum.Datum, error) {
			return datum.Int(int64(backward(c, a))), nil
		}
	}
	return m
}
