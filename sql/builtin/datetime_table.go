package builtin

import (
	"github.com/tallystick/tallystick/sql/datum"
)

func finite(is func(v int64) bool) Eval {
	return func(_ *Ctx, a []datum.Datum) (datum.Datum, error) { return datum.Bool(is(a[0].Int())), nil }
}

func scaled(d *datum.Desc) Eval {
	return func(_ *Ctx, a []datum.Datum) (datum.Datum, error) { return d.Coerce(a[0], int32(a[1].Int()), true) }
}

var datetimeEvals = evalMap{
	// Arithmetic.
	"timestamp_mi":          timestampMinus,
	"timestamp_pl_interval": timestampPlus, "timestamp_mi_interval": negated(timestampPlus),
	"timestamptz_pl_interval": timestamptzPlus, "timestamptz_mi_interval": negated(timestamptzPlus),
	"interval_pl_timestamp(interval,timestamp)":     swap(timestampPlus),
	"interval_pl_timestamptz(interval,timestamptz)": swap(timestamptzPlus),
	"date_mi": dateMinusDate, "date_pli": dateShift(1), "date_mii": dateShift(-1),
	"integer_pl_date(int4,date)": swap(dateShift(1)),
	"date_pl_interval":           datePlusInterval, "date_mi_interval": negated(datePlusInterval),
	"interval_pl_date(interval,date)": swap(datePlusInterval),
	"datetime_timestamp":              datePlusTime, "timedate_pl(time,date)": swap(datePlusTime),
	"timestamptz(date,time)": datePlusTimeLocal, "datetimetz_timestamptz": datePlusTimeTZ,
	"timetzdate_pl(timetz,date)": swap(datePlusTimeTZ),
	"time_pl_interval":           timePlus(1), "time_mi_interval": timePlus(-1),
	"interval_pl_time(interval,time)": swap(timePlus(1)),
	"time_mi_time": func(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
		return intervalOf(a[0].Int() - a[1].Int()), nil
	},
	"timetz_pl_interval": timetzPlus(1), "timetz_mi_interval": timetzPlus(-1),
	"interval_pl_timetz(interval,timetz)": swap(timetzPlus(1)),
	"interval_um":                         numericTry(datum.IntervalNeg), "interval_pl": numeric2(datum.IntervalAdd), "interval_mi": numeric2(datum.IntervalSub),
	"interval_mul": intervalTimes(datum.IntervalMul), "mul_d_interval": swap(intervalTimes(datum.IntervalMul)),
	"interval_div":           intervalTimes(datum.IntervalDiv),
	"interval_justify_hours": numericTry(datum.JustifyHours), "interval_justify_days": numericTry(datum.JustifyDays),
	"interval_justify_interval": numericTry(datum.JustifyInterval),
	"timestamp_age": func(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
		return datum.TimestampAge(a[0].Int(), a[1].Int())
	},
	"timestamptz_age": func(c *Ctx, a []datum.Datum) (datum.Datum, error) {
		return datum.TimestampTZAge(a[0].Int(), a[1].Int(), c.Format.Zone)
	},
	"age(timestamp)": ageToday, "age(timestamptz)": ageTodayTZ,

	// Casts.
	"date_timestamp":   int64Eval(func(_ *Ctx, v int64) (int64, error) { return datum.DateToTimestamp(int32(v)) }),
	"date_timestamptz": int64Eval(func(c *Ctx, v int64) (int64, error) { return datum.DateToTimestampTZ(int32(v), c.Format.Zone) }),
	"timestamp_date": int64Eval(func(_ *Ctx, v int64) (int64, error) {
		d, err := datum.TimestampToDate(v)
		return int64(d), err
	}),
	"timestamptz_date": int64Eval(func(c *Ctx, v int64) (int64, error) {
		d, err := datum.TimestampTZToDate(v, c.Format.Zone)
		return int64(d), err
	}),
	"timestamp_timestamptz": int64Eval(func(c *Ctx, v int64) (int64, error) { return datum.TimestampToTZ(v, c.Format.Zone) }),
	"timestamptz_timestamp": int64Eval(func(c *Ctx, v int64) (int64, error) { return datum.TZToTimestamp(v, c.Format.Zone) }),
	"timestamp_time":        timestampTime, "timestamptz_time": timestamptzTime, "timestamptz_timetz": timestamptzTimeTZ,
	"time_interval": func(_ *Ctx, a []datum.Datum) (datum.Datum, error) { return intervalOf(a[0].Int()), nil },
	"interval_time": func(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
		_, _, us := datum.IntervalParts(a[0])
		return datum.Int(wrapDay(us)), nil
	},
	"timetz_time": func(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
		us, _ := datum.TimeTZParts(a[0])
		return datum.Int(us), nil
	},
	"time_timetz":     timeToTimeTZ,
	"timestamp_scale": scaled(datum.Timestamp), "timestamptz_scale": scaled(datum.TimestampTZ), "time_scale": scaled(datum.Time),
	"timetz_scale": scaled(datum.TimeTZ), "interval_scale": scaled(datum.Interval),

	// Fields.
	"timestamp_part": part(false, extractTimestamp), "extract_timestamp": part(true, extractTimestamp),
	"timestamptz_part": part(false, extractTimestampTZ), "extract_timestamptz": part(true, extractTimestampTZ),
	"time_part": part(false, extractTime), "extract_time": part(true, extractTime),
	"timetz_part": part(false, extractTimeTZ), "extract_timetz": part(true, extractTimeTZ),
	"interval_part": part(false, extractInterval), "extract_interval": part(true, extractInterval),
	"date_part(text,date)": part(false, func(_ *Ctx, field string, d datum.Datum) (datum.Datum, error) {
		us, err := datum.DateToTimestamp(int32(d.Int()))
		if err != nil {
			return datum.Null, err
		}
		return datum.ExtractTimestamp(field, us)
	}),
	"extract_date": part(true, func(_ *Ctx, field string, d datum.Datum) (datum.Datum, error) {
		return datum.ExtractDate(field, int32(d.Int()))
	}),
	"timestamp_trunc": func(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
		us, err := datum.TruncTimestamp(a[0].Str(), a[1].Int())
		return datum.Int(us), err
	},
	"timestamptz_trunc": truncTimestampTZ, "timestamptz_trunc_zone": truncTimestampTZ,
	"interval_trunc": func(_ *Ctx, a []datum.Datum) (datum.Datum, error) { return datum.TruncInterval(a[0].Str(), a[1]) },
	"timestamp_bin":  binTimestamp, "timestamptz_bin": binTimestamp,

	// Zones.
	"timestamptz_zone": atZone(false, zoneToTimestamp), "timestamptz_izone": atZone(true, zoneToTimestamp),
	"timestamp_zone": atZone(false, zoneToTimestampTZ), "timestamp_izone": atZone(true, zoneToTimestampTZ),
	"timetz_zone": timetzAtZone, "timetz_izone": timetzAtInterval,

	// Construction.
	"float8_timestamptz": toTimestamp, "make_date": makeDate, "make_time": makeTime, "make_timestamp": makeTimestamp,
	"make_timestamptz": makeTimestampTZ, "make_timestamptz_at_timezone": makeTimestampTZ, "make_interval": makeInterval,

	// Tests.
	"date_finite": finite(dateIsFinite), "timestamp_finite": finite(timestampIsFinite),
	"interval_finite":    func(*Ctx, []datum.Datum) (datum.Datum, error) { return datum.Bool(true), nil },
	"overlaps_timestamp": overlaps(compareInts), "overlaps_time": overlaps(compareInts), "overlaps_timetz": overlaps(func(a, b datum.Datum) int {
		return datum.TimeTZ.Compare(a, b)
	}),
	"overlaps(timestamp,interval,timestamp,interval)":        overlapsBy(timestampPlus, true, true, compareInts),
	"overlaps(timestamp,timestamp,timestamp,interval)":       overlapsBy(timestampPlus, false, true, compareInts),
	"overlaps(timestamp,interval,timestamp,timestamp)":       overlapsBy(timestampPlus, true, false, compareInts),
	"overlaps(timestamptz,interval,timestamptz,interval)":    overlapsBy(timestamptzPlus, true, true, compareInts),
	"overlaps(timestamptz,timestamptz,timestamptz,interval)": overlapsBy(timestamptzPlus, false, true, compareInts),
	"overlaps(timestamptz,interval,timestamptz,timestamptz)": overlapsBy(timestamptzPlus, true, false, compareInts),
	"overlaps(time,interval,time,interval)":                  overlapsBy(timePlus(1), true, true, compareInts),
	"overlaps(time,time,time,interval)":                      overlapsBy(timePlus(1), false, true, compareInts),
	"overlaps(time,interval,time,time)":                      overlapsBy(timePlus(1), true, false, compareInts),
}
