package datum

import (
	"strings"

	"github.com/tallystick/tallystick/sql/pgerr"
)

func readMoment(s string, f *Format, typ string) (*moment, error) {
	if f == nil {
		f = &ContractFormat
	}
	m := &moment{f: f}
	var room [maxDateFields]dtField
	fields, ok := lexDateTime(s, room[:0])
	if !ok {
		return nil, dtError(errDTFormat, s, typ)
	}
	if err := m.decode(fields); err != nil {
		return nil, dtError(err, s, typ)
	}
	return m, nil
}

func parseDate(s string, _ int32, f *Format) (Datum, error) {
	if days, ok := plainDate(s); ok {
		return Int(days), nil
	}
	m, err := readMoment(s, f, "date")
	if err != nil {
		return Null, err
	}
	switch m.reserved {
	case resEpoch:
		return Int(unixEpochDays), nil
	case resInfinity:
		return Int(DatePosInf), nil
	case resNegInfinity:
		return Int(DateNegInf), nil
	}
	days := dayNumber(m.year, m.month, m.day)
	if !validDate(days) {
		return Null, pgerr.New(pgerr.DatetimeFieldOverflow, `date out of range: "%s"`, s)
	}
	return Int(days), nil
}

// plainDate is the fast path for YYYY-MM-DD.
func plainDate(s string) (int64, bool) {
	if len(s) != 10 || s[4] != '-' || s[7] != '-' {
		return 0, false
	}
	y, ok1 := plainDigits(s[:4])
	mo, ok2 := plainDigits(s[5:7])
	d, ok3 := plainDigits(s[8:])
	if !ok1 || !ok2 || !ok3 || y < 1 || mo < 1 || mo > 12 || d < 1 || d > daysInMonth(y, mo) {
		return 0, false
	}
	return dayNumber(y, mo, d), true
}

func plainDigits(s string) (int, bool) {
	v := 0
	for i := range len(s) {
		if !isDigit(s[i]) {
			return 0, false
		}
		v = v*10 + int(s[i]-'0')
	}
	return v, true
}

func parseTimestampAny(s string, mod int32, f *Format, tz bool, typ string) (Datum, error) {
	m, err := readMoment(s, f, typ)
	if err != nil {
		return Null, err
	}
	switch m.reserved {
	case resEpoch:
		return Int(unixEpochUS), nil
	case resInfinity:
		return Int(TimestampPosInf), nil
	case resNegInfinity:
		return Int(TimestampNegInf), nil
	}
	outOfRange := func() error {
		return pgerr.New(pgerr.DatetimeFieldOverflow, `timestamp out of range: "%s"`, s)
	}
	days := dayNumber(m.year, m.month, m.day)
	if days < minDate-1 || days > endTimestamp/usPerDay {
		return Null, outOfRange()
	}
	us := days*usPerDay + m.micros() // the zone may still bring it into range
	if tz {
		off := m.offset
		switch {
		case m.zone != nil:
			off = localOffset(us, m.zone)
		case m.seen&seenZone == 0:
			off += localOffset(us, m.f.zone())
		}
		us -= int64(off) * usPerSec
	}
	if !validTimestamp(us) {
		return Null, outOfRange()
	}
	return coerceTimestamp(Int(us), mod, false)
}

func parseTimestamp(s string, mod int32, f *Format) (Datum, error) {
	return parseTimestampAny(s, mod, f, false, "timestamp")
}

func parseTimestampTZ(s string, mod int32, f *Format) (Datum, error) {
	return parseTimestampAny(s, mod, f, true, "timestamp with time zone")
}

// coerceTimestamp rounds to the decimals of a modifier.
func coerceTimestamp(d Datum, mod int32, _ bool) (Datum, error) {
	us := d.Int()
	if mod < 0 || !finiteTimestamp(us) {
		return d, nil
	}
	if us = roundMicros(us, mod); !validTimestamp(us) {
		return Null, errTimestampRange() // PostgreSQL lets this microsecond pass
	}
	return Int(us), nil
}

func coerceTime(d Datum, mod int32, _ bool) (Datum, error) {
	return Int(roundMicros(d.Int(), mod)), nil
}

// readTime reads a time of day with an optional zone and, in a few forms, a
// date (DecodeTimeOnly).
func readTime(s string, f *Format, typ string) (*moment, error) {
	if f == nil {
		f = &ContractFormat
	}
	m := &moment{f: f}
	var room [maxDateFields]dtField
	fields, ok := lexDateTime(s, room[:0])
	if !ok {
		return nil, dtError(errDTFormat, s, typ)
	}
	if err := m.decodeTimeOnly(fields); err != nil {
		return nil, dtError(err, s, typ)
	}
	return m, nil
}

func (m *moment) decodeTimeOnly(fields []dtField) error {
	pending := wordNone
	last := len(fields) - 1
	for i, fd := range fields {
		var mask int
		var err error
		switch fd.kind {
		case fieldDate:
			switch {
			case i == 0 && len(fields) >= 2 && (fields[last].kind == fieldDate || fields[1].kind == fieldTime):
				mask, err = m.decodeDate(fd.s)
			case isDigit(fd.s[0]) || pending == wordTimeMark:
				mask, err = m.timeRun(fd.s)
			default:
				mask, err = m.namedZone(fd.s)
			}
			pending = wordNone
		case fieldTime:
			pending = wordNone
			mask, err = m.decodeTime(fd.s)
		case fieldZone:
			mask, err = m.decodeOffset(fd.s)
		case fieldNumber:
			mask, err = m.timeNumber(fd.s, i, fields, pending)
			pending = wordNone
		default:
			var w wordKind
			mask, w, err = m.decodeWord(fd.s, false)
			if w != wordNone {
				if pending != wordNone || w == wordUnit {
					return errDTFormat
				}
				pending = w
			}
		}
		if err == nil {
			err = m.add(mask)
		}
		if err != nil {
			return err
		}
	}
	if pending != wordNone {
		return errDTFormat
	}
	if m.seen&seenDate != 0 {
		if err := m.validateDate(); err != nil {
			return err
		}
	}
	if err := m.applyAMPM(); err != nil {
		return err
	}
	if m.timeOverflows() {
		return errDTField
	}
	if m.seen&seenTime != seenTime {
		return errDTFormat
	}
	if m.seen&seenDST != 0 && (m.zone != nil || m.seen&seenZone == 0) {
		return errDTFormat
	}
	if m.zone != nil && m.seen&seenDate != seenDate && !fixedZone(m.zone) {
		return errDTFormat // its offset depends on the date
	}
	return nil
}

func (m *moment) timeRun(s string) (int, error) {
	cut := strings.IndexByte(s, '-')
	if m.seen&seenTime == seenTime || cut < 0 {
		return 0, errDTFormat
	}
	mask, err := m.decodeOffset(s[cut:])
	if err != nil {
		return 0, err
	}
	more, err := m.decodeNumberFieldSeen(s[:cut], m.seen|seenDate)
	return mask | more, err
}

func (m *moment) timeNumber(s string, i int, fields []dtField, pending wordKind) (int, error) {
	point := strings.IndexByte(s, '.')
	switch {
	case pending == wordJulian:
		return m.decodeJulian(s, point)
	case pending == wordTimeMark:
		return m.decodeNumberFieldSeen(s, m.seen|seenDate)
	case point >= 0 && i == 0 && len(fields) >= 2 && fields[len(fields)-1].kind == fieldDate:
		return m.decodeDate(s)
	case point > 2, point < 0 && len(s) > 4:
		return m.decodeNumberFieldSeen(s, m.seen|seenDate)
	case point >= 0:
		return 0, errDTFormat
	}
	return m.decodeNumber(s, m.seen|seenDate)
}

func parseTime(s string, mod int32, f *Format) (Datum, error) {
	m, err := readTime(s, f, "time")
	if err != nil {
		return Null, err
	}
	return coerceTime(Int(m.micros()), mod, false)
}

func parseTimeTZ(s string, mod int32, f *Format) (Datum, error) {
	const typ = "time with time zone"
	m, err := readTime(s, f, typ)
	if err != nil {
		return Null, err
	}
	zone, off := m.zone, m.offset
	if zone == nil && m.seen&seenZone == 0 {
		zone = m.f.zone()
	}
	if zone != nil {
		local := m.f.Now
		if m.seen&seenDate == seenDate {
			if local, err = joinTimestamp(dayNumber(m.year, m.month, m.day), m.micros()); err != nil {
				return Null, dtError(errDTField, s, typ)
			}
		}
		off = localOffset(local, zone)
	}
	return MakeTimeTZ(roundMicros(m.micros(), mod), int32(-off)), nil
}
