package datum

import (
	"math"

	"github.com/tallystick/tallystick/sql/pgerr"
)

// Microseconds in the units of time.
const (
	usPerMs   = 1_000
	usPerSec  = 1_000_000
	usPerMin  = 60 * usPerSec
	usPerHour = 60 * usPerMin
	usPerDay  = 24 * usPerHour
)

// The infinities of dates and timestamps.
const (
	TimestampNegInf = math.MinInt64
	TimestampPosInf = math.MaxInt64
	DateNegInf      = math.MinInt32
	DatePosInf      = math.MaxInt32
)

// Limits of PostgreSQL (datatype/timestamp.h): dates from 4714-11-24 BC to
// 5874897-12-31, timestamps up to the end of 294276.
const (
	minDate      = -2451545
	endDate      = 2145031949
	minTimestamp = -211813488000000000
	endTimestamp = 9223371331200000000

	epochJulian   = 2451545 // Julian day of 2000-01-01
	unixEpochDays = -10957  // 1970-01-01 as a date
	unixEpochUS   = unixEpochDays * usPerDay
	unixEpochSecs = 946684800 // 2000-01-01 in Unix seconds
)

func errTimestampRange() error {
	return pgerr.New(pgerr.DatetimeFieldOverflow, "timestamp out of range")
}

func errDateRange() error { return pgerr.New(pgerr.DatetimeFieldOverflow, "date out of range") }

func errIntervalRange() error {
	return pgerr.New(pgerr.DatetimeFieldOverflow, "interval out of range")
}

func validDate(days int64) bool    { return days >= minDate && days < endDate }
func validTimestamp(us int64) bool { return us >= minTimestamp && us < endTimestamp }
func finiteTimestamp(us int64) bool {
	return us != TimestampNegInf && us != TimestampPosInf
}
func finiteDate(days int32) bool { return days != DateNegInf && days != DatePosInf }

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b != 0 && (a < 0) != (b < 0) {
		q--
	}
	return q
}

func isLeap(y int) bool { return y%4 == 0 && (y%100 != 0 || y%400 == 0) }

var monthDays = [...]int{31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}

func daysInMonth(y, m int) int {
	if m == 2 && isLeap(y) {
		return 29
	}
	return monthDays[m-1]
}

// dayNumber counts days from 2000-01-01 to a day of the proleptic Gregorian
// calendar; year 0 is 1 BC. Days beyond the month's length count on.
func dayNumber(y, m, d int) int64 {
	yy := int64(y)
	if m <= 2 {
		yy--
	}
	era := floorDiv(yy, 400)
	yoe := yy - era*400
	doy := int64((153*((m+9)%12)+2)/5 + d - 1)
	return era*146097 + yoe*365 + yoe/4 - yoe/100 + doy - 730425
}

// DateToYMD takes a finite date apart; year 0 is 1 BC.
func DateToYMD(days int32) (y, mo, d int) { return civil(int64(days)) }

func civil(days int64) (y, mo, d int) {
	z := days + 730425
	era := floorDiv(z, 146097)
	doe := z - era*146097
	yoe := (doe - doe/1460 + doe/36524 - doe/146096) / 365
	doy := doe - (365*yoe + yoe/4 - yoe/100)
	mp := (5*doy + 2) / 153
	d = int(doy - (153*mp+2)/5 + 1)
	mo = int(mp + 3)
	y = int(yoe + era*400)
	if mo > 12 {
		mo -= 12
		y++
	}
	return y, mo, d
}

// YMDToDate makes a date (make_date); year 0 is 1 BC. 22008 for a day that does
// not exist or lies out of range.
func YMDToDate(y, mo, d int) (int32, error) {
	if mo < 1 || mo > 12 || d < 1 || d > daysInMonth(y, mo) {
		return 0, pgerr.New(pgerr.DatetimeFieldOverflow, "date field value out of range: %d-%02d-%02d", y, mo, d)
	}
	if y < -5000 || y > 5874898 || !validDate(dayNumber(y, mo, d)) {
		return 0, pgerr.New(pgerr.DatetimeFieldOverflow, "date out of range: %d-%02d-%02d", y, mo, d)
	}
	return int32(dayNumber(y, mo, d)), nil
}

// DayOfWeek is 0 for Sunday to 6 for Saturday.
func DayOfWeek(days int32) int { return weekday(int64(days)) }

func weekday(days int64) int { return int(((days+6)%7 + 7) % 7) }

// DayOfYear counts from 1.
func DayOfYear(y, mo, d int) int { return int(dayNumber(y, mo, d)-dayNumber(y, 1, 1)) + 1 }

// ISOWeek is the ISO 8601 week of a day and the year that week belongs to.
func ISOWeek(y, mo, d int) (isoYear, week int) {
	n := dayNumber(y, mo, d)
	for isoYear = y + 1; ; isoYear-- {
		if start := isoYearStart(isoYear); n >= start {
			return isoYear, int(n-start)/7 + 1
		}
	}
}

// isoYearStart is the Monday of week 1: the week of January 4.
func isoYearStart(y int) int64 {
	jan4 := dayNumber(y, 1, 4)
	return jan4 - int64((weekday(jan4)+6)%7)
}

// ISOWeekStart is the Monday of an ISO week.
func ISOWeekStart(isoYear, week int) (days int32) {
	return int32(isoYearStart(isoYear) + int64(week-1)*7)
}

// TimestampToTime takes a finite timestamp apart; year 0 is 1 BC.
func TimestampToTime(us int64) (y, mo, d, h, mi, s, micro int) {
	days := floorDiv(us, usPerDay)
	y, mo, d = civil(days)
	h, mi, s, micro = clock(us - days*usPerDay)
	return
}

// clock splits microseconds of a day.
func clock(us int64) (h, mi, s, micro int) {
	return int(us / usPerHour), int(us / usPerMin % 60), int(us / usPerSec % 60), int(us % usPerSec)
}

// TimeToTimestamp is the opposite of [TimestampToTime]; 22008 out of range. The
// fields are not checked one by one: 24:00:00 and 60 seconds carry over.
func TimeToTimestamp(y, mo, d, h, mi, s, micro int) (int64, error) {
	if y < -5000 || y > 294277 {
		return 0, errTimestampRange()
	}
	us := (int64(h)*60+int64(mi))*60 + int64(s)
	return joinTimestamp(dayNumber(y, mo, d), us*usPerSec+int64(micro))
}

// joinTimestamp adds a day and a time of day.
func joinTimestamp(days, us int64) (int64, error) {
	if days < minDate-1 || days > minDate+110_000_000 {
		return 0, errTimestampRange()
	}
	t := days*usPerDay + us
	if days > 0 && t < 0 || !validTimestamp(t) {
		return 0, errTimestampRange()
	}
	return t, nil
}

// DateToTimestamp is the cast; infinities stay.
func DateToTimestamp(days int32) (int64, error) {
	switch days {
	case DateNegInf:
		return TimestampNegInf, nil
	case DatePosInf:
		return TimestampPosInf, nil
	}
	t, err := joinTimestamp(int64(days), 0)
	if err != nil {
		return 0, pgerr.New(pgerr.DatetimeFieldOverflow, "date out of range for timestamp")
	}
	return t, nil
}

// TimestampToDate is the cast; infinities stay.
func TimestampToDate(us int64) (int32, error) {
	switch us {
	case TimestampNegInf:
		return DateNegInf, nil
	case TimestampPosInf:
		return DatePosInf, nil
	}
	return int32(floorDiv(us, usPerDay)), nil
}

// TimeOfDay is the cast of a finite timestamp to time.
func TimeOfDay(us int64) int64 { return us - floorDiv(us, usPerDay)*usPerDay }

// addMonths moves a day by months; the day of the month shrinks if needed.
func addMonths(y, mo, d int, months int32) (int, int, int) {
	n := int64(y)*12 + int64(mo-1) + int64(months)
	y, mo = int(floorDiv(n, 12)), int(n-floorDiv(n, 12)*12)+1
	return y, mo, min(d, daysInMonth(y, mo))
}

// roundMicros rounds a time to a number of decimals of a second, half away from
// zero.
func roundMicros(us int64, decimals int32) int64 {
	if decimals < 0 || decimals >= 6 {
		return us
	}
	unit := int64(pow10u[6-decimals])
	if us >= 0 {
		return (us + unit/2) / unit * unit
	}
	return -((-us + unit/2) / unit * unit)
}
