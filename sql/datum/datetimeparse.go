package datum

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/tallystick/tallystick/sql/pgerr"
)

// The ways in which date/time input fails, before they get their wording
// (DTERR_* of PostgreSQL).
var (
	errDTFormat   = errors.New("bad format")
	errDTField    = errors.New("field overflow")
	errDTMonthDay = errors.New("month or day overflow")
	errDTInterval = errors.New("interval overflow")
	errDTZone     = errors.New("zone displacement overflow")
)

// dtError words an error for a type and its input (DateTimeParseError).
func dtError(err error, s, typ string) error {
	switch err {
	case errDTField:
		return pgerr.New(pgerr.DatetimeFieldOverflow, `date/time field value out of range: "%s"`, s)
	case errDTMonthDay:
		return pgerr.New(pgerr.DatetimeFieldOverflow, `date/time field value out of range: "%s"`, s).
			WithHint(`Perhaps you need a different "datestyle" setting.`)
	case errDTInterval:
		return pgerr.New(pgerr.IntervalFieldOverflow, `interval field value out of range: "%s"`, s)
	case errDTZone:
		return pgerr.New(pgerr.InvalidTimeZoneDisplacement, `time zone displacement out of range: "%s"`, s)
	case errDTFormat:
		return pgerr.New(pgerr.InvalidDatetimeFormat, `invalid input syntax for type %s: "%s"`, typ, s)
	}
	return err
}

// Which parts of a date and time have been seen.
const (
	seenYear = 1 << iota
	seenMonth
	seenDay
	seenHour
	seenMinute
	seenSecond
	seenZone
	seenDST
	seenDOY
	seenWeekday
	seenAMPM
	seenEra

	seenDate = seenYear | seenMonth | seenDay
	seenTime = seenHour | seenMinute | seenSecond
)

// moment collects the parts of a date and time while reading.
type moment struct {
	f *Format

	year, month, day, yday int
	hour, min, sec, us     int
	offset                 int // seconds east
	zone                   *time.Location

	seen      int
	twoDigits bool
	julian    bool
	textMonth bool
	ampm      int
	bc        bool
	reserved  int // resEpoch, resInfinity, resNegInfinity or 0
}

// add records parts; the same part twice is an error.
func (m *moment) add(mask int) error {
	if m.seen&mask != 0 {
		return errDTFormat
	}
	m.seen |= mask
	return nil
}

// decode reads a date with an optional time and zone (DecodeDateTime). Only the
// time without a date is an error.
func (m *moment) decode(fields []dtField) error {
	pending := wordNone // a word that says what the next field is
	for i, fd := range fields {
		var mask int
		var err error
		switch fd.kind {
		case fieldDate:
			switch {
			case pending == wordJulian:
				return errDTFormat
			case pending != wordNone || m.seen&(seenMonth|seenDay) == seenMonth|seenDay:
				mask, err = m.zoneOrRun(fd.s, pending != wordNone)
				pending = wordNone
			default:
				mask, err = m.decodeDate(fd.s)
			}
		case fieldTime:
			if pending != wordNone && pending != wordTimeMark {
				return errDTFormat
			}
			pending = wordNone
			mask, err = m.decodeTime(fd.s)
		case fieldZone:
			mask, err = m.decodeOffset(fd.s)
		case fieldNumber:
			mask, err = m.decodeNumberAfter(fd.s, pending)
			pending = wordNone
		default:
			var w wordKind
			mask, w, err = m.decodeWord(fd.s, true)
			if err == nil && w == wordTimeMark {
				if m.seen&seenDate != seenDate || i+1 >= len(fields) {
					return errDTFormat
				}
				if k := fields[i+1].kind; k != fieldNumber && k != fieldTime && k != fieldDate {
					return errDTFormat
				}
			}
			if w != wordNone {
				if pending != wordNone {
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
	if m.reserved != 0 {
		return nil
	}
	return m.finishDate()
}

func (m *moment) finishDate() error {
	if err := m.validateDate(); err != nil {
		return err
	}
	if err := m.applyAMPM(); err != nil {
		return err
	}
	if m.seen&seenDate != seenDate {
		return errDTFormat
	}
	if m.seen&seenDST != 0 && (m.zone != nil || m.seen&seenZone == 0) {
		return errDTFormat
	}
	return nil
}

func (m *moment) applyAMPM() error {
	if m.ampm == ampmNone {
		return nil
	}
	if m.hour > 12 {
		return errDTField
	}
	if m.ampm == ampmAM && m.hour == 12 {
		m.hour = 0
	} else if m.ampm == ampmPM && m.hour != 12 {
		m.hour += 12
	}
	return nil
}

// zoneOrRun reads the name of a zone or a time run together with an offset
// ("040506-08").
func (m *moment) zoneOrRun(s string, mustRun bool) (int, error) {
	if !isDigit(s[0]) && !mustRun {
		return m.namedZone(s)
	}
	cut := strings.IndexByte(s, '-')
	if m.seen&seenTime == seenTime || cut < 0 {
		return 0, errDTFormat
	}
	mask, err := m.decodeOffset(s[cut:])
	if err != nil {
		return 0, err
	}
	more, err := m.decodeNumberField(s[:cut])
	return mask | more, err
}

func (m *moment) namedZone(name string) (int, error) {
	z, err := LoadZone(name)
	if err != nil {
		return 0, err
	}
	m.zone = z
	return seenZone, nil
}

// decodeNumberAfter reads a bare number, which a word before it may explain.
func (m *moment) decodeNumberAfter(s string, pending wordKind) (int, error) {
	point := strings.IndexByte(s, '.')
	switch pending {
	case wordJulian:
		return m.decodeJulian(s, point)
	case wordTimeMark:
		mask, err := m.decodeNumberFieldSeen(s, m.seen|seenDate)
		if err == nil && mask != seenTime {
			err = errDTFormat
		}
		return mask, err
	case wordNone:
	default:
		return 0, errDTFormat
	}
	switch {
	case point >= 0 && m.seen&seenDate == 0:
		return m.decodeDate(s)
	case point > 2:
		return m.decodeNumberField(s)
	case len(s) >= 6 && (m.seen&seenDate == 0 || m.seen&seenTime == 0):
		return m.decodeNumberField(s)
	}
	return m.decodeNumber(s, m.seen)
}

func (m *moment) decodeJulian(s string, point int) (int, error) {
	whole := s
	if point >= 0 {
		whole = s[:point]
	}
	v, err := strconv.ParseInt(whole, 10, 32)
	if err != nil {
		return 0, errDTField
	}
	m.year, m.month, m.day = civil(v - epochJulian)
	m.julian = true
	if point < 0 {
		return seenDate, nil
	}
	frac, err := strconv.ParseFloat("0"+s[point:], 64)
	if err != nil {
		return 0, errDTFormat
	}
	m.hour, m.min, m.sec, m.us = clock(int64(frac * usPerDay))
	return seenDate | seenTime, nil
}

// decodeWord reads a word. Words that explain the next field come back as next.
func (m *moment) decodeWord(s string, date bool) (mask int, next wordKind, err error) {
	if off, ok := zoneAbbrevs[s]; ok {
		m.offset = int(off)
		return seenZone, wordNone, nil
	}
	if full, ok := zoneDynamic[s]; ok {
		mask, err = m.namedZone(full)
		return mask, wordNone, err
	}
	w := dateWords[cutWord(s)]
	switch w.kind {
	case wordReserved:
		mask, err = m.decodeReserved(w.value, date)
		return mask, wordNone, err
	case wordMonth:
		if !date {
			return 0, wordNone, errDTFormat
		}
		if m.seen&seenMonth != 0 && !m.textMonth && m.seen&seenDay == 0 && m.month >= 1 && m.month <= 31 {
			// What looked like the month was the day.
			m.day = m.month
			mask = seenDay
		} else {
			mask = seenMonth
		}
		m.textMonth = true
		m.month = w.value
		return mask, wordNone, nil
	case wordWeekday:
		if !date {
			return 0, wordNone, errDTFormat
		}
		return seenWeekday, wordNone, nil
	case wordAMPM:
		m.ampm = w.value
		return seenAMPM, wordNone, nil
	case wordEra:
		m.bc = w.value == eraBC
		return seenEra, wordNone, nil
	case wordDST:
		m.offset += w.value
		return seenDST, wordNone, nil
	case wordIgnore:
		return 0, wordNone, nil
	case wordTimeMark, wordJulian, wordUnit:
		return 0, w.kind, nil
	}
	mask, err = m.namedZone(s)
	if err != nil {
		err = errDTFormat
	}
	return mask, wordNone, err
}

// decodeReserved reads now, today and the like.
func (m *moment) decodeReserved(word int, date bool) (int, error) {
	switch word {
	case resNow, resToday, resTomorrow, resYesterday:
		if m.f.NoNow {
			return 0, pgerr.New(pgerr.FeatureNotSupported, "date/time values relative to the current time are not available in a contract").
				WithHint("Use tx_time() instead.")
		}
	case resZulu:
		m.hour, m.min, m.sec, m.us, m.offset = 0, 0, 0, 0, 0
		return seenTime | seenZone, nil
	default:
		if !date {
			return 0, errDTFormat
		}
		m.reserved = word
		return seenDate | seenTime | seenZone, nil
	}
	off, _ := TZOffset(m.f.Now, m.f.zone())
	local := m.f.Now + int64(off)*usPerSec
	if word == resNow {
		m.year, m.month, m.day, m.hour, m.min, m.sec, m.us = TimestampToTime(local)
		m.offset = off
		if !date {
			return seenTime | seenZone, nil
		}
		return seenDate | seenTime | seenZone, nil
	}
	if !date {
		return 0, errDTFormat
	}
	day := floorDiv(local, usPerDay)
	switch word {
	case resTomorrow:
		day++
	case resYesterday:
		day--
	}
	m.year, m.month, m.day = civil(day)
	return seenDate, nil
}

// decodeDate reads a date in one field (DecodeDate): a text month first, the
// numbers then in order.
func (m *moment) decodeDate(s string) (int, error) {
	var parts [maxDateFields]string
	n := 0
	for s != "" && n < len(parts) {
		for s != "" && !isAlnum(s[0]) {
			s = s[1:]
		}
		if s == "" {
			return 0, errDTFormat
		}
		i := 0
		if isDigit(s[0]) {
			for i < len(s) && isDigit(s[i]) {
				i++
			}
		} else {
			for i < len(s) && isAlpha(s[i]) {
				i++
			}
		}
		parts[n] = s[:i]
		n++
		s = s[min(i+1, len(s)):]
	}
	seen, mask := m.seen, 0
	take := func(bits int, err error) error {
		if err == nil && seen&bits != 0 {
			err = errDTFormat
		}
		seen |= bits
		mask |= bits
		return err
	}
	for i, p := range parts[:n] {
		if !isAlpha(p[0]) {
			continue
		}
		w := dateWords[cutWord(p)]
		if w.kind == wordIgnore {
			continue
		}
		if w.kind != wordMonth {
			return 0, errDTFormat
		}
		m.month = w.value
		m.textMonth = true
		if err := take(seenMonth, nil); err != nil {
			return 0, err
		}
		parts[i] = ""
	}
	for _, p := range parts[:n] {
		if p == "" {
			continue
		}
		if err := take(m.decodeNumber(p, seen)); err != nil {
			return 0, err
		}
	}
	if seen&^(seenDOY|seenZone) != seenDate {
		return 0, errDTFormat
	}
	return mask, nil
}

func (m *moment) validateDate() error {
	if m.seen&seenYear != 0 && !m.julian {
		switch {
		case m.bc:
			if m.year <= 0 {
				return errDTField
			}
			m.year = -(m.year - 1)
		case m.twoDigits:
			if m.year < 70 {
				m.year += 2000
			} else if m.year < 100 {
				m.year += 1900
			}
		case m.year <= 0:
			return errDTField
		}
	}
	if m.seen&seenDOY != 0 {
		m.year, m.month, m.day = civil(dayNumber(m.year, 1, 1) + int64(m.yday) - 1)
	}
	if m.seen&seenMonth != 0 && (m.month < 1 || m.month > 12) {
		return errDTMonthDay
	}
	if m.seen&seenDay != 0 && (m.day < 1 || m.day > 31) {
		return errDTMonthDay
	}
	if m.seen&seenDate == seenDate && m.day > daysInMonth(m.year, m.month) {
		return errDTField
	}
	return nil
}
