package datum

import (
	"math"
	"strconv"
	"strings"
)

// unit is a field of an interval or of extract.
type unit uint8

const (
	unitNone unit = iota
	unitMicrosecond
	unitMillisecond
	unitSecond
	unitMinute
	unitHour
	unitDay
	unitWeek
	unitMonth
	unitQuarter
	unitYear
	unitDecade
	unitCentury
	unitMillennium
	unitAgo
	unitTimezone
	unitTimezoneHour
	unitTimezoneMinute
	unitEpoch
	unitJulian
	unitISOYear
	unitDOW
	unitISODOW
	unitDOY
)

// intervalUnits are the words of interval input (deltatktbl); ten letters count.
var intervalUnits = map[string]unit{
	"ago": unitAgo,
	"c":   unitCentury, "cent": unitCentury, "centuries": unitCentury, "century": unitCentury,
	"d": unitDay, "day": unitDay, "days": unitDay,
	"dec": unitDecade, "decs": unitDecade, "decade": unitDecade, "decades": unitDecade,
	"h": unitHour, "hour": unitHour, "hours": unitHour, "hr": unitHour, "hrs": unitHour,
	"m": unitMinute, "min": unitMinute, "mins": unitMinute, "minute": unitMinute, "minutes": unitMinute,
	"microsecon": unitMicrosecond, "us": unitMicrosecond, "usec": unitMicrosecond, "usecs": unitMicrosecond,
	"usecond": unitMicrosecond, "useconds": unitMicrosecond,
	"millisecon": unitMillisecond, "ms": unitMillisecond, "msec": unitMillisecond, "msecs": unitMillisecond,
	"msecond": unitMillisecond, "mseconds": unitMillisecond,
	"mil": unitMillennium, "mils": unitMillennium, "millennia": unitMillennium, "millennium": unitMillennium,
	"mon": unitMonth, "mons": unitMonth, "month": unitMonth, "months": unitMonth,
	"qtr": unitQuarter, "quarter": unitQuarter,
	"s": unitSecond, "sec": unitSecond, "secs": unitSecond, "second": unitSecond, "seconds": unitSecond,
	"timezone": unitTimezone, "timezone_h": unitTimezoneHour, "timezone_m": unitTimezoneMinute,
	"w": unitWeek, "week": unitWeek, "weeks": unitWeek,
	"y": unitYear, "year": unitYear, "years": unitYear, "yr": unitYear, "yrs": unitYear,
}

// span collects the parts of an interval while reading.
type span struct {
	years, months, days int64
	us                  int64
	overflow            bool
}

func (p *span) addMicros(v int64, frac float64, per int64) {
	hi, ok := mul64(v, per)
	if !ok {
		p.overflow = true
		return
	}
	if p.us, ok = add64(p.us, hi); !ok {
		p.overflow = true
	}
	p.addFraction(frac, per)
}

// addFraction adds a fraction of a unit of per microseconds, rounded.
func (p *span) addFraction(frac float64, per int64) {
	if frac == 0 {
		return
	}
	f := float64(frac * float64(per))
	us := int64(f)
	switch rest := f - float64(us); {
	case rest > 0.5:
		us++
	case rest < -0.5:
		us--
	}
	var ok bool
	if p.us, ok = add64(p.us, us); !ok {
		p.overflow = true
	}
}

func (p *span) addDays(v int64, per int64) {
	p.days = p.addInt32(p.days, v, per)
}

func (p *span) addMonths(v int64, per int64) {
	p.months = p.addInt32(p.months, v, per)
}

func (p *span) addInt32(sum, v, per int64) int64 {
	if v != int64(int32(v)) {
		p.overflow = true
		return sum
	}
	sum += v * per
	if sum != int64(int32(sum)) {
		p.overflow = true
		return 0
	}
	return sum
}

// addFractDays adds a fraction of a unit of per days.
func (p *span) addFractDays(frac float64, per int64) {
	if frac == 0 {
		return
	}
	f := float64(frac * float64(per))
	whole := int64(f)
	p.addDays(whole, 1)
	p.addFraction(f-float64(whole), usPerDay)
}

// addFractYears adds a fraction of a unit of per years, in whole months.
func (p *span) addFractYears(frac float64, per int64) {
	p.addMonths(int64(math.RoundToEven(float64(float64(frac*float64(per))*12))), 1)
}

func mul64(a, b int64) (int64, bool) {
	if a == 0 || b == 0 {
		return 0, true
	}
	c := a * b
	if c/b != a || a == math.MinInt64 && b == -1 {
		return 0, false
	}
	return c, true
}

// add adds v + frac units; mask is what DecodeInterval remembers as seen.
func (p *span) add(u unit, v int64, frac float64) {
	switch u {
	case unitMicrosecond:
		p.addMicros(v, frac, 1)
	case unitMillisecond:
		p.addMicros(v, frac, usPerMs)
	case unitSecond:
		p.addMicros(v, frac, usPerSec)
	case unitMinute:
		p.addMicros(v, frac, usPerMin)
	case unitHour:
		p.addMicros(v, frac, usPerHour)
	case unitDay:
		p.addDays(v, 1)
		p.addFraction(frac, usPerDay)
	case unitWeek:
		p.addDays(v, 7)
		p.addFractDays(frac, 7)
	case unitMonth:
		p.addMonths(v, 1)
		p.addFractDays(frac, 30)
	case unitYear:
		p.addYears(v, frac, 1)
	case unitDecade:
		p.addYears(v, frac, 10)
	case unitCentury:
		p.addYears(v, frac, 100)
	case unitMillennium:
		p.addYears(v, frac, 1000)
	}
}

func (p *span) addYears(v int64, frac float64, per int64) {
	p.years = p.addInt32(p.years, v, per)
	p.addFractYears(frac, per)
}

func (p *span) datum(s string) (Datum, error) {
	if p.overflow {
		return Null, dtError(errDTInterval, s, "interval")
	}
	months := 12*p.years + p.months
	if months != int64(int32(months)) {
		return Null, errIntervalRange()
	}
	return MakeInterval(int32(months), int32(p.days), p.us), nil
}

func parseInterval(s string, mod int32, f *Format) (Datum, error) {
	if f == nil {
		f = &ContractFormat
	}
	fields := int32(intervalFullRange)
	if mod >= 0 {
		fields = mod >> 16 & intervalFullRange
	}
	var p span
	var room [maxDateFields]dtField
	err := errDTFormat
	if parts, ok := lexDateTime(s, room[:0]); ok {
		err = p.decode(parts, fields, f.IntervalStyle == IntervalSQLStandard)
	}
	if err == errDTFormat {
		p = span{}
		err = p.decodeISO(s)
	}
	if err == errDTField {
		err = errDTInterval
	}
	if err != nil {
		return Null, dtError(err, s, "interval")
	}
	d, err := p.datum(s)
	if err != nil {
		return Null, err
	}
	return coerceInterval(d, mod, false)
}

// defaultUnit is the unit of a number without one, by the modifier's fields.
func defaultUnit(fields int32) unit {
	switch {
	case fields == intervalFullRange:
		return unitSecond
	case fields&maskSecond != 0:
		return unitSecond
	case fields&maskMinute != 0:
		return unitMinute
	case fields&maskHour != 0:
		return unitHour
	case fields&maskDay != 0:
		return unitDay
	case fields&maskMonth != 0:
		return unitMonth
	case fields&maskYear != 0:
		return unitYear
	}
	return unitSecond
}

// decode reads fields from right to left, so that units come before their
// values (DecodeInterval).
func (p *span) decode(fields []dtField, rangeMask int32, sqlStandard bool) error {
	negative := sqlStandard && len(fields) > 0 && fields[0].s[0] == '-'
	for _, fd := range fields[min(1, len(fields)):] {
		if fd.s[0] == '-' || fd.s[0] == '+' {
			negative = false
		}
	}
	var seen uint32
	before := false
	next := unitNone
	for i := len(fields) - 1; i >= 0; i-- {
		fd := fields[i]
		var mask uint32
		switch fd.kind {
		case fieldTime:
			us, err := clockMicros(fd.s, rangeMask)
			if err != nil {
				return err
			}
			p.setClock(us, negative)
			mask, next = clockMask, unitDay
		case fieldZone, fieldDate, fieldNumber:
			if fd.kind == fieldZone && strings.Contains(fd.s, ":") {
				if us, err := clockMicros(fd.s[1:], rangeMask); err == nil {
					if fd.s[0] == '-' {
						us = -us
					}
					p.setClock(us, negative)
					mask, next = clockMask, unitDay
					break
				}
			}
			var err error
			switch next {
			case unitNone:
				next = defaultUnit(rangeMask)
			case unitAgo:
				return errDTFormat
			}
			if mask, next, err = p.number(fd.s, next, negative); err != nil {
				return err
			}
		default:
			u, ok := intervalUnits[cutWord(fd.s)]
			switch {
			case !ok || u >= unitTimezone || u == unitQuarter:
				if w := dateWords[cutWord(fd.s)]; w.kind == wordIgnore {
					continue
				}
				return errDTFormat
			case u == unitAgo:
				before = true
				next = unitAgo // so that a number without a unit is an error
			default:
				next = u
			}
		}
		if seen&mask != 0 {
			return errDTFormat
		}
		seen |= mask
	}
	if seen == 0 {
		return errDTFormat
	}
	if before {
		p.negate()
	}
	return nil
}

const clockMask = 1<<unitHour | 1<<unitMinute | 1<<unitSecond | 1<<unitMillisecond | 1<<unitMicrosecond

// setClock sets the time. It replaces what fractions of days to the right have
// added, as in PostgreSQL.
func (p *span) setClock(us int64, negative bool) {
	if negative && us > 0 {
		us = -us
	}
	p.us = us
}

func (p *span) negate() {
	if p.us == math.MinInt64 {
		p.overflow = true
	}
	p.years, p.months, p.days, p.us = -p.years, -p.months, -p.days, -p.us
	if p.years != int64(int32(p.years)) || p.months != int64(int32(p.months)) || p.days != int64(int32(p.days)) {
		p.overflow = true
	}
}

// clockMicros reads h:m, h:m:s or m:s.fff with any number of hours.
func clockMicros(s string, rangeMask int32) (int64, error) {
	hour, min, sec, us, err := splitTime(s, rangeMask == maskMinute|maskSecond)
	if err != nil {
		return 0, err
	}
	h, ok := mul64(hour, usPerHour)
	rest := (int64(min)*60+int64(sec))*usPerSec + int64(us)
	t, ok2 := add64(h, rest)
	if !ok || !ok2 {
		return 0, errDTField
	}
	return t, nil
}

// number adds one value; next is the unit of a value to its left that has none.
func (p *span) number(s string, u unit, negative bool) (mask uint32, next unit, err error) {
	i := 0
	if s[0] == '+' || s[0] == '-' {
		i = 1
	}
	for i < len(s) && isDigit(s[i]) {
		i++
	}
	whole, rest := s[:i], s[i:]
	v := int64(0)
	if whole != "" && whole != "+" && whole != "-" {
		if v, err = strconv.ParseInt(whole, 10, 64); err != nil {
			return 0, u, errDTField
		}
	}
	frac := 0.0
	switch {
	case rest == "":
	case rest[0] == '-':
		end := 1
		for end < len(rest) && isDigit(rest[end]) {
			end++
		}
		months := int64(0)
		if end > 1 {
			if months, err = strconv.ParseInt(rest[1:end], 10, 32); err != nil {
				return 0, u, errDTField
			}
		}
		if months >= 12 {
			return 0, u, errDTField
		}
		if end != len(rest) {
			return 0, u, errDTFormat
		}
		if s[0] == '-' {
			months = -months
		}
		u = unitMonth
		if v != int64(int32(v)) {
			return 0, u, errDTField
		}
		v = v*12 + months
	case rest[0] == '.':
		if frac, err = decimalFraction(rest); err != nil {
			return 0, u, err
		}
		if s[0] == '-' {
			frac = -frac
		}
	default:
		return 0, u, errDTFormat
	}
	if negative {
		v, frac = -int64(abs64(v)), -math.Abs(frac)
	}
	p.add(u, v, frac)
	mask = 1 << u
	switch {
	case u == unitSecond && frac != 0:
		mask = 1<<unitSecond | 1<<unitMillisecond | 1<<unitMicrosecond
	case u == unitHour:
		u = unitDay
	}
	return mask, u, nil
}

// decimalFraction reads "." and digits as a fraction of one.
func decimalFraction(s string) (float64, error) {
	if len(s) == 1 {
		return 0, nil
	}
	for i := 1; i < len(s); i++ {
		if !isDigit(s[i]) {
			return 0, errDTFormat
		}
	}
	v, err := strconv.ParseFloat("0"+s, 64)
	if err != nil {
		return 0, errDTFormat
	}
	return v, nil
}
