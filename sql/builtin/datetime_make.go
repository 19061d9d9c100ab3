package builtin

import (
	"math"

	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

func fieldOverflow(what, format string, args ...any) error {
	e := pgerr.New(pgerr.DatetimeFieldOverflow, format, args...)
	e.Message = what + " field value out of range: " + e.Message
	return e
}

// civilDate checks a date given by its fields; negative years are BC.
func civilDate(year, month, day int64) (int32, error) {
	bad := func() (int32, error) {
		return 0, fieldOverflow("date", "%d-%02d-%02d", year, month, day)
	}
	y := year
	if y < 0 {
		y++ // there is no year 0
	} else if y == 0 {
		return bad()
	}
	if y < -4712 || y > 5874897 || month < 1 || month > 12 || day < 1 || day > 31 {
		if month >= 1 && month <= 12 && day >= 1 && day <= 31 {
			return 0, pgerr.New(pgerr.DatetimeFieldOverflow, "date out of range: %d-%02d-%02d", year, month, day)
		}
		return bad()
	}
	d, err := datum.YMDToDate(int(y), int(month), int(day))
	if err != nil {
		return bad()
	}
	return d, nil
}

func makeDate(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
	d, err := civilDate(a[0].Int(), a[1].Int(), a[2].Int())
	return datum.Int(int64(d)), err
}

// clock checks a time given by its fields (float_time_overflows).
func clock(hour, minute int64, sec float64) (int64, error) {
	us := math.RoundToEven(float64(sec * 1e6))
	if hour < 0 || hour > 24 || minute < 0 || minute > 59 || math.IsNaN(sec) || us < 0 || us > 60e6 ||
		hour == 24 && (minute > 0 || us > 0) {
		return 0, fieldOverflow("time", "%d:%02d:%02s", hour, minute, floatG(sec))
	}
	return (hour*60+minute)*60*usPerSecond + int64(us), nil
}

// floatG writes a float as C's %02g does for small numbers.
func floatG(f float64) string {
	s := string(datum.Float8.Append(nil, datum.Float(f), &datum.ContractFormat))
	if len(s) == 1 {
		return "0" + s
	}
	return s
}

func makeTime(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
	us, err := clock(a[0].Int(), a[1].Int(), a[2].Float())
	return datum.Int(us), err
}

func makeTimestamp(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
	days, err := civilDate(a[0].Int(), a[1].Int(), a[2].Int())
	if err != nil {
		return datum.Null, err
	}
	us, err := clock(a[3].Int(), a[4].Int(), a[5].Float())
	if err != nil {
		return datum.Null, err
	}
	start, err := datum.DateToTimestamp(days)
	if err != nil {
		return datum.Null, err
	}
	if start+us < start || start+us >= endTimestamp {
		return datum.Null, timestampOutOfRange()
	}
	return datum.Int(start + us), nil
}

func makeTimestampTZ(c *Ctx, a []datum.Datum) (datum.Datum, error) {
	ts, err := makeTimestamp(c, a)
	if err != nil {
		return datum.Null, err
	}
	z := c.Format.Zone
	if len(a) == 7 {
		if z, err = datum.LoadZone(a[6].Str()); err != nil {
			return datum.Null, err
		}
	}
	us, err := datum.TimestampToTZ(ts.Int(), z)
	return datum.Int(us), err
}

func makeInterval(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
	tooFar := func() (datum.Datum, error) {
		return datum.Null, pgerr.New(pgerr.DatetimeFieldOverflow, "interval out of range")
	}
	sec := a[6].Float()
	if math.IsNaN(sec) || isInf(sec) {
		return tooFar()
	}
	months := a[0].Int()*12 + a[1].Int()
	days := a[2].Int()*7 + a[3].Int()
	us := (a[4].Int()*60+a[5].Int())*60*usPerSecond + int64(math.RoundToEven(float64(sec*1e6)))
	if math.Abs(sec) > 9e12 || int64(int32(months)) != months || int64(int32(days)) != days {
		return tooFar()
	}
	return datum.MakeInterval(int32(months), int32(days), us), nil
}

func timestampTime(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
	if !timestampIsFinite(a[0].Int()) {
		return datum.Null, nil
	}
	return datum.Int(wrapDay(a[0].Int())), nil
}

func timestamptzTime(c *Ctx, a []datum.Datum) (datum.Datum, error) {
	if !timestampIsFinite(a[0].Int()) {
		return datum.Null, nil
	}
	us, err := datum.TZToTimestamp(a[0].Int(), c.Format.Zone)
	return datum.Int(wrapDay(us)), err
}

func timestamptzTimeTZ(c *Ctx, a []datum.Datum) (datum.Datum, error) {
	if !timestampIsFinite(a[0].Int()) {
		return datum.Null, nil
	}
	us, err := datum.TZToTimestamp(a[0].Int(), c.Format.Zone)
	if err != nil {
		return datum.Null, err
	}
	east, _ := datum.TZOffset(a[0].Int(), c.Format.Zone)
	return datum.MakeTimeTZ(wrapDay(us), int32(-east)), nil
}

// timeToTimeTZ takes the offset that the session's zone has today; a contract
// runs in UTC, where every day has the same.
func timeToTimeTZ(c *Ctx, a []datum.Datum) (datum.Datum, error) {
	now := int64(0)
	if c.Session != nil {
		now = c.Session.TxTime
	}
	east, _ := datum.TZOffset(now, c.Format.Zone)
	return datum.MakeTimeTZ(a[0].Int(), int32(-east)), nil
}

// ageToday is age(x): from midnight of the current day.
func ageToday(c *Ctx, a []datum.Datum) (datum.Datum, error) {
	day, err := today(c)
	if err != nil {
		return datum.Null, err
	}
	us, err := datum.DateToTimestamp(day)
	if err != nil {
		return datum.Null, err
	}
	return datum.TimestampAge(us, a[0].Int())
}

func ageTodayTZ(c *Ctx, a []datum.Datum) (datum.Datum, error) {
	day, err := today(c)
	if err != nil {
		return datum.Null, err
	}
	us, err := datum.DateToTimestampTZ(day, c.Format.Zone)
	if err != nil {
		return datum.Null, err
	}
	return datum.TimestampTZAge(us, a[0].Int(), c.Format.Zone)
}
