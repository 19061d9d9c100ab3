package datum

import (
	"math"
	"time"

	"github.com/tallystick/tallystick/sql/pgerr"
)

// extractUnits are the words that extract and date_trunc know besides those of
// intervals.
var extractUnits = map[string]unit{
	"epoch": unitEpoch, "julian": unitJulian, "jd": unitJulian, "j": unitJulian, "isoyear": unitISOYear,
	"dow": unitDOW, "isodow": unitISODOW, "doy": unitDOY,
}

// field finds the unit of a word, in any letter case; unitNone if unknown.
func extractUnit(word string) unit {
	w := cutWord(lower(TruncateName(word)))
	if u, ok := intervalUnits[w]; ok && u != unitAgo {
		return u
	}
	return extractUnits[w]
}

// errUnit says why a unit cannot be taken from a type.
func errUnit(word string, typ *Desc) error { return errTruncUnit(extractUnit(word), word, typ) }

func errTruncUnit(u unit, word string, typ *Desc) *pgerr.Error {
	if u == unitNone {
		return pgerr.New(pgerr.InvalidParameterValue, `unit "%s" not recognized for type %s`, lower(word), FormatType(T(typ)))
	}
	return pgerr.New(pgerr.FeatureNotSupported, `unit "%s" not supported for type %s`, lower(word), FormatType(T(typ)))
}

// decimalInt is v / 10^scale as a numeric of that display scale.
func decimalInt(v int64, scale int) Datum { return from128(v < 0, 0, abs64(v), scale) }

// infinitePart is what extract returns for an infinite date or timestamp: null
// for parts that repeat, infinity for those that grow.
func infinitePart(u unit, negative bool, word string, typ *Desc) (Datum, error) {
	switch u {
	case unitYear, unitDecade, unitCentury, unitMillennium, unitJulian, unitISOYear, unitEpoch:
		if negative {
			return NumericNegInf, nil
		}
		return NumericPosInf, nil
	case unitNone:
		return Null, errUnit(word, typ)
	}
	return Null, nil
}

// datePart takes a part that depends on the day alone.
func datePart(u unit, days int64) (int64, bool) {
	y, mo, d := civil(days)
	shown := int64(y) // BC years count from -1
	if y <= 0 {
		shown--
	}
	switch u {
	case unitDay:
		return int64(d), true
	case unitMonth:
		return int64(mo), true
	case unitQuarter:
		return int64(mo-1)/3 + 1, true
	case unitYear:
		return shown, true
	case unitWeek:
		_, w := ISOWeek(y, mo, d)
		return int64(w), true
	case unitISOYear:
		iy, _ := ISOWeek(y, mo, d)
		if iy <= 0 {
			iy--
		}
		return int64(iy), true
	case unitDecade:
		return floorDiv(int64(y), 10), true
	case unitCentury:
		return periodOf(int64(y), 100), true
	case unitMillennium:
		return periodOf(int64(y), 1000), true
	case unitDOW:
		return int64(weekday(days)), true
	case unitISODOW:
		return int64(weekday(days)+6)%7 + 1, true
	case unitDOY:
		return int64(DayOfYear(y, mo, d)), true
	}
	return 0, false
}

// periodOf numbers centuries and millennia: 1 to 100 AD is the first century,
// 100 to 1 BC the one numbered -1. There is none numbered 0.
func periodOf(y, n int64) int64 {
	if y > 0 {
		return (y + n - 1) / n
	}
	return -((n - 1 - (y - 1)) / n)
}

// ExtractDate is extract(field from date).
func ExtractDate(field string, days int32) (Datum, error) {
	u := extractUnit(field)
	if u == unitNone || u <= unitHour || u >= unitTimezone && u <= unitTimezoneMinute {
		return Null, errUnit(field, Date)
	}
	if !finiteDate(days) {
		return infinitePart(u, days == DateNegInf, field, Date)
	}
	switch u {
	case unitJulian:
		return decimalInt(int64(days)+epochJulian, 0), nil
	case unitEpoch:
		return decimalInt((int64(days)-unixEpochDays)*86400, 0), nil
	}
	v, ok := datePart(u, int64(days))
	if !ok {
		return Null, errUnit(field, Date)
	}
	return decimalInt(v, 0), nil
}

// clockPart takes a part of a time of day.
func clockPart(u unit, us int64) (Datum, bool) {
	switch u {
	case unitMicrosecond:
		return decimalInt(us%usPerMin, 0), true
	case unitMillisecond:
		return decimalInt(us%usPerMin, 3), true
	case unitSecond:
		return decimalInt(us%usPerMin, 6), true
	case unitMinute:
		return decimalInt(us/usPerMin%60, 0), true
	case unitHour:
		return decimalInt(us/usPerHour, 0), true
	}
	return Null, false
}

// zonePart takes a part of an offset in seconds east.
func zonePart(u unit, east int) (Datum, bool) {
	switch u {
	case unitTimezone:
		return decimalInt(int64(east), 0), true
	case unitTimezoneHour:
		return decimalInt(int64(east/3600), 0), true
	case unitTimezoneMinute:
		return decimalInt(int64(east/60%60), 0), true
	}
	return Null, false
}

// ExtractTimestamp is extract(field from timestamp).
func ExtractTimestamp(field string, us int64) (Datum, error) {
	u := extractUnit(field)
	if !finiteTimestamp(us) {
		return infinitePart(u, us < 0, field, Timestamp)
	}
	return extractLocal(field, u, us, us, Timestamp)
}

// ExtractTimestampTZ is extract(field from timestamptz), in a zone.
func ExtractTimestampTZ(field string, us int64, z *time.Location) (Datum, error) {
	u := extractUnit(field)
	if !finiteTimestamp(us) {
		return infinitePart(u, us < 0, field, TimestampTZ)
	}
	off, _ := TZOffset(us, z)
	if d, ok := zonePart(u, off); ok {
		return d, nil
	}
	return extractLocal(field, u, us+int64(off)*usPerSec, us, TimestampTZ)
}

// extractLocal takes a part of a local time; us is the moment that epoch counts.
func extractLocal(field string, u unit, local, us int64, typ *Desc) (Datum, error) {
	days := floorDiv(local, usPerDay)
	tod := local - days*usPerDay
	switch u {
	case unitEpoch:
		return epochOf(us)
	case unitJulian:
		frac, err := NumericDiv(decimalInt(tod, 0), decimalInt(usPerDay, 0))
		if err != nil {
			return Null, err
		}
		return NumericAdd(decimalInt(days+epochJulian, 0), frac)
	}
	if d, ok := clockPart(u, tod); ok {
		return d, nil
	}
	if v, ok := datePart(u, days); ok {
		return decimalInt(v, 0), nil
	}
	return Null, errUnit(field, typ)
}

// epochOf is the seconds since 1970 with six decimals.
func epochOf(us int64) (Datum, error) {
	if us <= math.MaxInt64+unixEpochUS {
		return decimalInt(us-unixEpochUS, 6), nil
	}
	return NumericSub(decimalInt(us, 6), decimalInt(unixEpochUS, 6))
}

// ExtractTime is extract(field from time).
func ExtractTime(field string, us int64) (Datum, error) {
	u := extractUnit(field)
	if u == unitEpoch {
		return decimalInt(us, 6), nil
	}
	if d, ok := clockPart(u, us); ok {
		return d, nil
	}
	return Null, errUnit(field, Time)
}

// ExtractTimeTZ is extract(field from timetz).
func ExtractTimeTZ(field string, d Datum) (Datum, error) {
	us, west := TimeTZParts(d)
	u := extractUnit(field)
	if u == unitEpoch {
		return decimalInt(us+int64(west)*usPerSec, 6), nil
	}
	if v, ok := clockPart(u, us); ok {
		return v, nil
	}
	if v, ok := zonePart(u, int(-west)); ok {
		return v, nil
	}
	return Null, errUnit(field, TimeTZ)
}

// ExtractInterval is extract(field from interval).
func ExtractInterval(field string, iv Datum) (Datum, error) {
	months, days, us := IntervalParts(iv)
	years := int64(months / 12)
	u := extractUnit(field)
	if d, ok := clockPart(u, us); ok {
		return d, nil
	}
	v := int64(0)
	switch u {
	case unitDay:
		v = int64(days)
	case unitMonth:
		v = int64(months % 12)
	case unitQuarter:
		v = int64(months%12)/3 + 1
	case unitYear:
		v = years
	case unitDecade:
		v = years / 10
	case unitCentury:
		v = years / 100
	case unitMillennium:
		v = years / 1000
	case unitEpoch:
		// A year has 365.25 days here, a month 30.
		quarters := 1461*years + 120*int64(months%12) + 4*int64(days)
		return NumericAdd(decimalInt(us, 6), decimalInt(quarters*(86400/4), 0))
	default:
		return Null, errUnit(field, Interval)
	}
	return decimalInt(v, 0), nil
}

// truncDay cuts a day to the start of a unit of a day or more.
func truncDay(u unit, days int64) (int64, bool) {
	y, mo, d := civil(days)
	switch u {
	case unitDay:
		return days, true
	case unitWeek:
		iy, w := ISOWeek(y, mo, d)
		return int64(ISOWeekStart(iy, w)), true
	case unitMonth:
		return dayNumber(y, mo, 1), true
	case unitQuarter:
		return dayNumber(y, (mo-1)/3*3+1, 1), true
	case unitYear:
		return dayNumber(y, 1, 1), true
	case unitDecade:
		return dayNumber(int(floorDiv(int64(y), 10))*10, 1, 1), true
	case unitCentury:
		return dayNumber(truncYear(y, 100), 1, 1), true
	case unitMillennium:
		return dayNumber(truncYear(y, 1000), 1, 1), true
	}
	return 0, false
}

// truncYear is the first year of a century or millennium: 2001, not 2000.
func truncYear(y, n int) int {
	if y > 0 {
		return (y+n-1)/n*n - (n - 1)
	}
	return -((n-1-(y-1))/n)*n + 1
}

// clockUnit is the length of a unit below a day.
func clockUnit(u unit) (int64, bool) {
	switch u {
	case unitMicrosecond:
		return 1, true
	case unitMillisecond:
		return usPerMs, true
	case unitSecond:
		return usPerSec, true
	case unitMinute:
		return usPerMin, true
	case unitHour:
		return usPerHour, true
	}
	return 0, false
}

// TruncTimestamp is date_trunc(field, timestamp).
func TruncTimestamp(field string, us int64) (int64, error) {
	return truncLocal(field, us, Timestamp)
}

// truncUnit is extractUnit for date_trunc, which knows fewer words.
func truncUnit(word string) unit {
	u := intervalUnits[cutWord(lower(TruncateName(word)))]
	if u == unitAgo {
		u = unitNone
	}
	return u
}

func truncLocal(field string, us int64, typ *Desc) (int64, error) {
	if !finiteTimestamp(us) {
		return us, nil // of whatever unit
	}
	u := truncUnit(field)
	if n, ok := clockUnit(u); ok {
		return floorDiv(us, n) * n, nil
	}
	days, ok := truncDay(u, floorDiv(us, usPerDay))
	if !ok {
		return 0, errTruncUnit(u, field, typ)
	}
	return joinTimestamp(days, 0)
}

// TruncTimestampTZ is date_trunc(field, timestamptz, zone).
func TruncTimestampTZ(field string, us int64, z *time.Location) (int64, error) {
	if !finiteTimestamp(us) {
		return truncLocal(field, us, TimestampTZ)
	}
	off, _ := TZOffset(us, z)
	local, err := truncLocal(field, us+int64(off)*usPerSec, TimestampTZ)
	if err != nil {
		return 0, err
	}
	if _, ok := clockUnit(truncUnit(field)); ok {
		return local - int64(off)*usPerSec, nil
	}
	return TimestampToTZ(local, z)
}

// TruncInterval is date_trunc(field, interval).
func TruncInterval(field string, iv Datum) (Datum, error) {
	months, days, us := IntervalParts(iv)
	u := truncUnit(field)
	if n, ok := clockUnit(u); ok {
		return MakeInterval(months, days, us/n*n), nil
	}
	per := int32(0)
	switch u {
	case unitDay:
		return MakeInterval(months, days, 0), nil
	case unitMonth:
		per = 1
	case unitQuarter:
		per = 3
	case unitYear:
		per = 12
	case unitDecade:
		per = 120
	case unitCentury:
		per = 1200
	case unitMillennium:
		per = 12000
	default:
		err := errTruncUnit(u, field, Interval)
		if u == unitWeek {
			err.Detail = "Months usually have fractional weeks."
		}
		return Null, err
	}
	return MakeInterval(months/per*per, 0, 0), nil
}

// BinTimestamp is date_bin(stride, us, origin).
func BinTimestamp(stride Datum, us, origin int64) (int64, error) {
	if !finiteTimestamp(us) {
		return us, nil
	}
	if !finiteTimestamp(origin) {
		return 0, pgerr.New(pgerr.DatetimeFieldOverflow, "origin out of range")
	}
	months, days, micros := IntervalParts(stride)
	if months != 0 {
		return 0, pgerr.New(pgerr.FeatureNotSupported, "timestamps cannot be binned into intervals containing months or years")
	}
	n, ok := mul64(int64(days), usPerDay)
	if ok {
		n, ok = add64(n, micros)
	}
	if !ok {
		return 0, errIntervalRange()
	}
	if n <= 0 {
		return 0, pgerr.New(pgerr.DatetimeFieldOverflow, "stride must be greater than zero")
	}
	diff := us - origin
	if (us < 0) != (origin < 0) && (diff < 0) != (us < 0) {
		return 0, errIntervalRange()
	}
	t := origin + floorDiv(diff, n)*n
	if !validTimestamp(t) {
		return 0, errTimestampRange()
	}
	return t, nil
}
