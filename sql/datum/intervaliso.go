package datum

import (
	"strconv"
	"strings"
)

// isoNumber reads the number at the start of s.
func isoNumber(s string) (v int64, frac float64, rest string, err error) {
	i := 0
	if i < len(s) && (s[i] == '-' || s[i] == '+') {
		i++
	}
	start := i
	for i < len(s) && isDigit(s[i]) {
		i++
	}
	if i > start {
		if v, err = strconv.ParseInt(s[:i], 10, 64); err != nil {
			return 0, 0, "", errDTField
		}
	}
	end := i
	if i < len(s) && s[i] == '.' {
		for i++; i < len(s) && isDigit(s[i]); i++ {
		}
		if frac, err = decimalFraction(s[end:i]); err != nil {
			return 0, 0, "", err
		}
		if s[0] == '-' {
			frac = -frac
		}
	}
	if i == start {
		return 0, 0, "", errDTFormat
	}
	if abs64(v) > 1e15 {
		return 0, 0, "", errDTField
	}
	return v, frac, s[i:], nil
}

// decodeISO reads ISO 8601 durations: designators (P1Y2M3DT4H5M6S) and the two
// alternative forms (P00010203T040506, P0001-02-03T04:05:06).
func (p *span) decodeISO(s string) error {
	if len(s) < 2 || s[0] != 'P' {
		return errDTFormat
	}
	s = s[1:]
	date, have := true, false
	for s != "" {
		if s[0] == 'T' {
			date, have = false, false
			s = s[1:]
			continue
		}
		field := s
		v, frac, rest, err := isoNumber(s)
		if err != nil {
			return err
		}
		mark := byte(0)
		if rest != "" {
			mark = rest[0]
			rest = rest[1:]
		}
		s = rest
		var done bool
		if date {
			s, done, err = p.isoDate(field, s, mark, v, frac, have)
			if mark == 'T' || mark == '-' {
				date, have = false, false
				if err != nil || done {
					return err
				}
				continue
			}
		} else {
			done, err = p.isoTime(field, s, mark, v, frac, have)
		}
		if err != nil || done {
			return err
		}
		have = true
	}
	return nil
}

// isoDate takes one field of the date part; after 'T' or '-' what is left is
// the time part.
func (p *span) isoDate(field, s string, mark byte, v int64, frac float64, have bool) (rest string, done bool, err error) {
	switch mark {
	case 'Y':
		p.add(unitYear, v, frac)
	case 'M':
		p.add(unitMonth, v, frac)
	case 'W':
		p.add(unitWeek, v, frac)
	case 'D':
		p.add(unitDay, v, frac)
	case 'T', 0, '-':
		if mark != '-' && isoWidth(field) == 8 && !have {
			p.addYears(v/10000, 0, 1)
			p.addMonths(v/100%100, 1)
			p.addDays(v%100, 1)
			p.addFraction(frac, usPerDay)
			return s, mark == 0, nil
		}
		if have {
			return "", true, errDTFormat
		}
		p.add(unitYear, v, frac)
		if mark != '-' {
			return s, mark == 0, nil
		}
		for _, u := range []unit{unitMonth, unitDay} {
			if v, frac, s, err = isoNumber(s); err != nil {
				return "", true, err
			}
			p.add(u, v, frac)
			switch {
			case s == "":
				return s, true, nil
			case s[0] == 'T':
				return s[1:], false, nil
			case s[0] != '-' || u == unitDay:
				return "", true, errDTFormat
			}
			s = s[1:]
		}
	default:
		return "", true, errDTFormat
	}
	return s, false, nil
}

func (p *span) isoTime(field, s string, mark byte, v int64, frac float64, have bool) (done bool, err error) {
	switch mark {
	case 'H':
		p.add(unitHour, v, frac)
	case 'M':
		p.add(unitMinute, v, frac)
	case 'S':
		p.add(unitSecond, v, frac)
	case 0:
		if isoWidth(field) == 6 && !have {
			p.add(unitHour, v/10000, 0)
			p.add(unitMinute, v/100%100, 0)
			p.add(unitSecond, v%100, frac)
			return true, nil
		}
		fallthrough
	case ':':
		if have {
			return true, errDTFormat
		}
		p.add(unitHour, v, frac)
		for _, u := range []unit{unitMinute, unitSecond} {
			if s == "" {
				return true, nil
			}
			if v, frac, s, err = isoNumber(s); err != nil {
				return true, err
			}
			p.add(u, v, frac)
			if s != "" && (s[0] != ':' || u == unitSecond) {
				return true, errDTFormat
			}
			s = strings.TrimPrefix(s, ":")
		}
		return true, nil
	default:
		return true, errDTFormat
	}
	return false, nil
}

func isoWidth(s string) int {
	n := 0
	if s != "" && s[0] == '-' {
		s = s[1:]
	}
	for n < len(s) && isDigit(s[n]) {
		n++
	}
	return n
}
