package datum

import "strconv"

// spanParts is an interval in the fields of its text forms.
type spanParts struct {
	year, mon, day, hour int64
	min, sec, us         int64
}

func intervalFields(d Datum) spanParts {
	months, days, us := IntervalParts(d)
	return spanParts{
		year: int64(months / 12), mon: int64(months % 12), day: int64(days),
		hour: us / usPerHour, min: us / usPerMin % 60, sec: us / usPerSec % 60, us: us % usPerSec,
	}
}

func appendInterval(dst []byte, d Datum, f *Format) []byte {
	if f == nil {
		f = &ContractFormat
	}
	p := intervalFields(d)
	switch f.IntervalStyle {
	case IntervalPostgresVerbose:
		return p.verbose(dst)
	case IntervalSQLStandard:
		return p.sqlStandard(dst)
	case IntervalISO8601:
		return p.iso(dst)
	}
	return p.postgres(dst)
}

func absInt(v int64) int64 { return int64(abs64(v)) }

// seconds writes |sec|.|us|, with two digits if fill.
func (p spanParts) seconds(dst []byte, fill bool) []byte {
	if s := absInt(p.sec); fill {
		dst = append2(dst, int(s))
	} else {
		dst = strconv.AppendInt(dst, s, 10)
	}
	return appendFraction(dst, int(absInt(p.us)))
}

func (p spanParts) noTime() bool { return p.hour == 0 && p.min == 0 && p.sec == 0 && p.us == 0 }
func (p spanParts) timeNegative() bool {
	return p.hour < 0 || p.min < 0 || p.sec < 0 || p.us < 0
}

func (p spanParts) postgres(dst []byte) []byte {
	empty, before := true, false
	for _, part := range []struct {
		v    int64
		unit string
	}{{p.year, "year"}, {p.mon, "mon"}, {p.day, "day"}} {
		if part.v == 0 {
			continue
		}
		if !empty {
			dst = append(dst, ' ')
		}
		if before && part.v > 0 {
			dst = append(dst, '+')
		}
		dst = append(append(strconv.AppendInt(dst, part.v, 10), ' '), part.unit...)
		if part.v != 1 {
			dst = append(dst, 's')
		}
		before, empty = part.v < 0, false
	}
	if !empty && p.noTime() {
		return dst
	}
	if !empty {
		dst = append(dst, ' ')
	}
	switch {
	case p.timeNegative():
		dst = append(dst, '-')
	case before:
		dst = append(dst, '+')
	}
	return p.clock(dst)
}

// clock writes hh:mm:ss.ffffff without sign.
func (p spanParts) clock(dst []byte) []byte {
	h := absInt(p.hour)
	if h < 10 {
		dst = append(dst, '0')
	}
	dst = append(strconv.AppendInt(dst, h, 10), ':')
	dst = append(append2(dst, int(absInt(p.min))), ':')
	return p.seconds(dst, true)
}

func (p spanParts) verbose(dst []byte) []byte {
	dst = append(dst, '@')
	empty, before := true, false
	for _, part := range []struct {
		v    int64
		unit string
	}{{p.year, "year"}, {p.mon, "mon"}, {p.day, "day"}, {p.hour, "hour"}, {p.min, "min"}} {
		v := part.v
		if v == 0 {
			continue
		}
		if empty {
			before = v < 0
			v = absInt(v)
		} else if before {
			v = -v
		}
		dst = append(append(strconv.AppendInt(append(dst, ' '), v, 10), ' '), part.unit...)
		if v != 1 {
			dst = append(dst, 's')
		}
		empty = false
	}
	if p.sec != 0 || p.us != 0 {
		dst = append(dst, ' ')
		if negative := p.sec < 0 || p.us < 0; negative && empty {
			before = true
		} else if negative != before {
			dst = append(dst, '-')
		}
		dst = append(p.seconds(dst, false), " sec"...)
		if absInt(p.sec) != 1 || p.us != 0 {
			dst = append(dst, 's')
		}
		empty = false
	}
	if empty {
		dst = append(dst, " 0"...)
	}
	if before {
		dst = append(dst, " ago"...)
	}
	return dst
}

func (p spanParts) iso(dst []byte) []byte {
	if p == (spanParts{}) {
		return append(dst, "PT0S"...)
	}
	part := func(v int64, unit byte) {
		if v != 0 {
			dst = append(strconv.AppendInt(dst, v, 10), unit)
		}
	}
	dst = append(dst, 'P')
	part(p.year, 'Y')
	part(p.mon, 'M')
	part(p.day, 'D')
	if p.noTime() {
		return dst
	}
	dst = append(dst, 'T')
	part(p.hour, 'H')
	part(p.min, 'M')
	if p.sec != 0 || p.us != 0 {
		if p.sec < 0 || p.us < 0 {
			dst = append(dst, '-')
		}
		dst = append(p.seconds(dst, false), 'S')
	}
	return dst
}

func (p spanParts) sqlStandard(dst []byte) []byte {
	negative := p.year < 0 || p.mon < 0 || p.day < 0 || p.timeNegative()
	positive := p.year > 0 || p.mon > 0 || p.day > 0 || p.hour > 0 || p.min > 0 || p.sec > 0 || p.us > 0
	yearMonth := p.year != 0 || p.mon != 0
	dayTime := p.day != 0 || !p.noTime()
	standard := !(negative && positive) && !(yearMonth && dayTime)
	if !negative && !positive {
		return append(dst, '0')
	}
	if !standard {
		sign := func(neg bool) byte {
			if neg {
				return '-'
			}
			return '+'
		}
		dst = strconv.AppendInt(append(dst, sign(p.year < 0 || p.mon < 0)), absInt(p.year), 10)
		dst = strconv.AppendInt(append(dst, '-'), absInt(p.mon), 10)
		dst = strconv.AppendInt(append(dst, ' ', sign(p.day < 0)), absInt(p.day), 10)
		return p.shortClock(append(dst, ' ', sign(p.timeNegative())))
	}
	if negative {
		dst = append(dst, '-')
	}
	if yearMonth {
		dst = strconv.AppendInt(dst, absInt(p.year), 10)
		return strconv.AppendInt(append(dst, '-'), absInt(p.mon), 10)
	}
	if p.day != 0 {
		dst = append(strconv.AppendInt(dst, absInt(p.day), 10), ' ')
	}
	return p.shortClock(dst)
}

// shortClock writes h:mm:ss.ffffff without sign.
func (p spanParts) shortClock(dst []byte) []byte {
	dst = append(strconv.AppendInt(dst, absInt(p.hour), 10), ':')
	dst = append(append2(dst, int(absInt(p.min))), ':')
	return p.seconds(dst, true)
}
