package datum

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

// atoi reads an int32; beyond it is a field overflow.
func (m *moment) atoi(s string) (int, error) {
	v, err := strconv.ParseInt(s, 10, 32)
	if err != nil {
		if errors.Is(err, strconv.ErrRange) {
			return 0, errDTField
		}
		return 0, errDTFormat
	}
	return int(v), nil
}

// decodeNumber decides by what is known already whether a number is a year, a
// month, a day or a time (DecodeNumber).
func (m *moment) decodeNumber(s string, seen int) (int, error) {
	whole := s
	if point := strings.IndexByte(s, '.'); point >= 0 {
		if point > 2 {
			return m.decodeNumberFieldSeen(s, seen|seenDate)
		}
		us, err := fraction(s[point:])
		if err != nil {
			return 0, err
		}
		m.us = us
		whole = s[:point]
	}
	v, err := m.atoi(whole)
	if err != nil {
		return 0, err
	}
	n := len(s)
	if n == 3 && seen&seenDate == seenYear && v >= 1 && v <= 366 {
		m.yday = v
		return seenDOY | seenMonth | seenDay, nil
	}
	asYear := func() int {
		m.year = v
		m.twoDigits = n <= 2
		return seenYear
	}
	asMonth := func() int { m.month = v; return seenMonth }
	asDay := func() int { m.day = v; return seenDay }
	switch seen & seenDate {
	case 0:
		switch {
		case n >= 3 || m.f.DateOrder == YMD:
			return asYear(), nil
		case m.f.DateOrder == DMY:
			return asDay(), nil
		}
		return asMonth(), nil
	case seenYear:
		return asMonth(), nil
	case seenMonth:
		if m.textMonth && (n >= 3 || m.f.DateOrder == YMD) {
			return asYear(), nil
		}
		return asDay(), nil
	case seenYear | seenMonth:
		if m.textMonth && n >= 3 && m.twoDigits {
			// The first number was the day after all.
			m.day, m.year, m.twoDigits = m.year, v, false
			return seenDay, nil
		}
		return asDay(), nil
	case seenDay:
		return asMonth(), nil
	case seenMonth | seenDay:
		return asYear(), nil
	case seenDate:
		return m.decodeNumberFieldSeen(s, seen)
	}
	return 0, errDTFormat
}

func (m *moment) decodeNumberField(s string) (int, error) {
	return m.decodeNumberFieldSeen(s, m.seen)
}

// decodeNumberFieldSeen reads a date or time without separators
// (DecodeNumberField).
func (m *moment) decodeNumberFieldSeen(s string, seen int) (int, error) {
	if point := strings.IndexByte(s, '.'); point >= 0 {
		us, err := fraction(s[point:])
		if err != nil {
			return 0, err
		}
		m.us = us
		s = s[:point]
	} else if seen&seenDate != seenDate && len(s) >= 6 {
		return m.runDate(s)
	}
	if seen&seenTime != seenTime && (len(s) == 6 || len(s) == 4) {
		return m.runTime(s)
	}
	return 0, errDTFormat
}

func (m *moment) runDate(s string) (int, error) {
	n := len(s)
	var err1, err2, err3 error
	m.day, err1 = m.atoi(s[n-2:])
	m.month, err2 = m.atoi(s[n-4 : n-2])
	m.year, err3 = m.atoi(s[:n-4])
	if n == 6 {
		m.twoDigits = true
	}
	if err1 != nil || err2 != nil || err3 != nil {
		return 0, errDTField
	}
	return seenDate, nil
}

func (m *moment) runTime(s string) (int, error) {
	var err1, err2, err3 error
	m.hour, err1 = m.atoi(s[:2])
	m.min, err2 = m.atoi(s[2:4])
	m.sec = 0
	if len(s) == 6 {
		m.sec, err3 = m.atoi(s[4:])
	}
	if err1 != nil || err2 != nil || err3 != nil {
		return 0, errDTFormat
	}
	return seenTime, nil // 2599 carries over, as in PostgreSQL
}

// fraction reads "." and digits as microseconds, rounded to even as rint does.
func fraction(s string) (int, error) {
	for i := 1; i < len(s); i++ {
		if !isDigit(s[i]) {
			return 0, errDTFormat
		}
	}
	if len(s) == 1 {
		return 0, nil
	}
	if len(s) <= 7 {
		v := 0
		for i := 1; i <= 6; i++ {
			v *= 10
			if i < len(s) {
				v += int(s[i] - '0')
			}
		}
		return v, nil
	}
	v, err := strconv.ParseFloat("0"+s, 64)
	if err != nil {
		return 0, errDTFormat
	}
	return int(math.RoundToEven(v * usPerSec)), nil
}

// splitTime reads h:m, h:m:s and m:s.fff; minSec makes h:m mean m:s.
func splitTime(s string, minSec bool) (hour int64, min, sec, us int, err error) {
	h, rest, _ := strings.Cut(s, ":")
	if hour, err = strconv.ParseInt(h, 10, 64); err != nil {
		return 0, 0, 0, 0, rangeOrFormat(err)
	}
	end := 0
	for end < len(rest) && isDigit(rest[end]) {
		end++
	}
	m, err := strconv.ParseInt(rest[:end], 10, 32)
	if err != nil {
		if end > 0 {
			return 0, 0, 0, 0, errDTField
		}
		m = 0 // "4:" is 4 hours
	}
	min, rest = int(m), rest[end:]
	shift := func() {
		sec = min
		min = int(hour)
		if hour > math.MaxInt32 {
			min = math.MaxInt32
		}
		hour = 0
	}
	switch {
	case rest == "":
		if minSec {
			shift()
		}
	case rest[0] == '.':
		if us, err = fraction(rest); err != nil {
			return 0, 0, 0, 0, err
		}
		shift()
	case rest[0] == ':':
		rest = rest[1:]
		end = 0
		for end < len(rest) && isDigit(rest[end]) {
			end++
		}
		if end > 0 {
			v, err := strconv.ParseInt(rest[:end], 10, 32)
			if err != nil {
				return 0, 0, 0, 0, errDTField
			}
			sec = int(v)
		}
		if rest = rest[end:]; rest != "" {
			if rest[0] != '.' {
				return 0, 0, 0, 0, errDTFormat
			}
			if us, err = fraction(rest); err != nil {
				return 0, 0, 0, 0, err
			}
		}
	default:
		return 0, 0, 0, 0, errDTFormat
	}
	if hour < 0 || min > 59 || sec > 60 || us > usPerSec {
		return 0, 0, 0, 0, errDTField
	}
	return hour, min, sec, us, nil
}

func rangeOrFormat(err error) error {
	if errors.Is(err, strconv.ErrRange) {
		return errDTField
	}
	return errDTFormat
}

func (m *moment) decodeTime(s string) (int, error) {
	hour, min, sec, us, err := splitTime(s, false)
	if err != nil {
		return 0, err
	}
	if hour > 24 {
		return 0, errDTField
	}
	m.hour, m.min, m.sec, m.us = int(hour), min, sec, us
	if m.timeOverflows() {
		return 0, errDTField
	}
	return seenTime, nil
}

func (m *moment) timeOverflows() bool {
	return m.hour > 24 || m.min > 59 || m.sec > 60 || m.us > usPerSec || m.micros() > usPerDay
}

// micros is the time of day.
func (m *moment) micros() int64 {
	return ((int64(m.hour)*60+int64(m.min))*60+int64(m.sec))*usPerSec + int64(m.us)
}

func (m *moment) decodeOffset(s string) (int, error) {
	off, err := parseOffset(s)
	m.offset = off
	return seenZone, err
}

// parseOffset reads +hh[:mm[:ss]] or +hhmm as seconds east (DecodeTimezone).
func parseOffset(s string) (int, error) {
	num := func(s string) (int, string, error) {
		i := 0
		for i < len(s) && isDigit(s[i]) {
			i++
		}
		if i == 0 {
			return 0, s, nil
		}
		v, err := strconv.ParseInt(s[:i], 10, 32)
		if err != nil {
			return 0, s, errDTZone
		}
		return int(v), s[i:], nil
	}
	hr, rest, err := num(s[1:])
	min, sec := 0, 0
	switch {
	case err != nil:
		return 0, err
	case strings.HasPrefix(rest, ":"):
		if min, rest, err = num(rest[1:]); err == nil && strings.HasPrefix(rest, ":") {
			sec, rest, err = num(rest[1:])
		}
		if err != nil {
			return 0, err
		}
	case rest == "" && len(s) > 3:
		hr, min = hr/100, hr%100
	}
	if hr > 15 || min > 59 || sec > 59 {
		return 0, errDTZone
	}
	if rest != "" {
		return 0, errDTFormat
	}
	off := (hr*60+min)*60 + sec
	if s[0] == '-' {
		off = -off
	}
	return off, nil
}
