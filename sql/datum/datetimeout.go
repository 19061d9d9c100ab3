package datum

import (
	"encoding/binary"
	"strconv"
	"time"

	"github.com/tallystick/tallystick/sql/pgerr"
)

func append2(dst []byte, v int) []byte { return append(dst, byte('0'+v/10), byte('0'+v%10)) }

// appendYear writes at least four digits of a year; year 0 and below are BC.
func appendYear(dst []byte, y int) []byte {
	if y <= 0 {
		y = 1 - y
	}
	for _, limit := range []int{1000, 100, 10} {
		if y < limit {
			dst = append(dst, '0')
		}
	}
	return strconv.AppendInt(dst, int64(y), 10)
}

func appendEra(dst []byte, y int) []byte {
	if y <= 0 {
		return append(dst, " BC"...)
	}
	return dst
}

// appendClock writes hh:mm:ss and as many decimals as needed.
func appendClock(dst []byte, us int64) []byte {
	h, mi, s, micro := clock(us)
	dst = append(append2(dst, h), ':')
	dst = append(append2(dst, mi), ':')
	return appendFraction(append2(dst, s), micro)
}

// appendFraction writes "." and up to six decimals without zeros at the end.
func appendFraction(dst []byte, micro int) []byte {
	if micro == 0 {
		return dst
	}
	dst = append(dst, '.')
	for unit := 100_000; micro > 0; unit /= 10 {
		dst = append(dst, byte('0'+micro/unit))
		micro %= unit
	}
	return dst
}

// appendZone writes an offset as +hh[:mm[:ss]].
func appendZone(dst []byte, east int) []byte {
	sign := byte('+')
	if east < 0 {
		sign, east = '-', -east
	}
	dst = append2(append(dst, sign), east/3600)
	if east%3600 != 0 {
		dst = append2(append(dst, ':'), east/60%60)
	}
	if east%60 != 0 {
		dst = append2(append(dst, ':'), east%60)
	}
	return dst
}

func appendDate(dst []byte, d Datum, f *Format) []byte {
	switch days := int32(d.Int()); days {
	case DateNegInf:
		return append(dst, "-infinity"...)
	case DatePosInf:
		return append(dst, "infinity"...)
	default:
		if f == nil {
			f = &ContractFormat
		}
		y, mo, dd := DateToYMD(days)
		return appendEra(appendDay(dst, y, mo, dd, f, f.DateStyle == Postgres), y)
	}
}

// appendDay writes a date in the format's style; dash is the variant that the
// Postgres style has for a date alone.
func appendDay(dst []byte, y, mo, d int, f *Format, dash bool) []byte {
	sep := byte('/')
	switch {
	case f.DateStyle == ISO:
		dst = append(appendYear(dst, y), '-')
		dst = append(append2(dst, mo), '-')
		return append2(dst, d)
	case f.DateStyle == German:
		dst = append(append2(dst, d), '.')
		dst = append(append2(dst, mo), '.')
		return appendYear(dst, y)
	case dash:
		sep = '-'
	}
	first, second := mo, d
	if f.DateOrder == DMY {
		first, second = d, mo
	}
	dst = append(append2(dst, first), sep)
	dst = append(append2(dst, second), sep)
	return appendYear(dst, y)
}

const (
	dayNames   = "SunMonTueWedThuFriSat"
	monthNames = "JanFebMarAprMayJunJulAugSepOctNovDec"
)

// appendLocal writes a local time; zone, if any, adds its end.
func appendLocal(dst []byte, us int64, f *Format, zone func([]byte) []byte) []byte {
	if f == nil {
		f = &ContractFormat
	}
	days := floorDiv(us, usPerDay)
	y, mo, d := civil(days)
	tod := us - days*usPerDay
	if f.DateStyle == Postgres {
		w := weekday(days)
		dst = append(append(dst, dayNames[3*w:3*w+3]...), ' ')
		month := monthNames[3*mo-3 : 3*mo]
		if f.DateOrder == DMY {
			dst = append(append(append2(dst, d), ' '), month...)
		} else {
			dst = append2(append(append(dst, month...), ' '), d)
		}
		dst = appendClock(append(dst, ' '), tod)
		dst = appendYear(append(dst, ' '), y)
	} else {
		dst = append(appendDay(dst, y, mo, d, f, false), ' ')
		dst = appendClock(dst, tod)
	}
	if zone != nil {
		dst = zone(dst)
	}
	return appendEra(dst, y)
}

func appendTimestamp(dst []byte, d Datum, f *Format) []byte {
	switch us := d.Int(); us {
	case TimestampNegInf:
		return append(dst, "-infinity"...)
	case TimestampPosInf:
		return append(dst, "infinity"...)
	default:
		return appendLocal(dst, us, f, nil)
	}
}

func appendTimestampTZ(dst []byte, d Datum, f *Format) []byte {
	us := d.Int()
	if !finiteTimestamp(us) {
		return appendTimestamp(dst, d, f)
	}
	off, abbrev := TZOffset(us, f.zone())
	return appendLocal(dst, us+int64(off)*usPerSec, f, func(dst []byte) []byte {
		if f == nil || f.DateStyle == ISO {
			return appendZone(dst, off)
		}
		return append(append(dst, ' '), abbrev...)
	})
}

func appendTime(dst []byte, d Datum, _ *Format) []byte { return appendClock(dst, d.Int()) }

// MakeTimeTZ makes a time with time zone from microseconds of the day and
// seconds west of Greenwich, PostgreSQL's way to count zones.
func MakeTimeTZ(us int64, secondsWest int32) Datum {
	b := make([]byte, 12)
	binary.BigEndian.PutUint64(b, uint64(us))
	binary.BigEndian.PutUint32(b[8:], uint32(secondsWest))
	return Bytes(b)
}

// TimeTZParts takes a time with time zone apart.
func TimeTZParts(d Datum) (us int64, secondsWest int32) {
	b := d.Bytes()
	return int64(binary.BigEndian.Uint64(b)), int32(binary.BigEndian.Uint32(b[8:]))
}

func appendTimeTZ(dst []byte, d Datum, _ *Format) []byte {
	us, west := TimeTZParts(d)
	return appendZone(appendClock(dst, us), int(-west))
}

func coerceTimeTZ(d Datum, mod int32, _ bool) (Datum, error) {
	us, west := TimeTZParts(d)
	if r := roundMicros(us, mod); r != us {
		return MakeTimeTZ(r, west), nil
	}
	return d, nil
}

// compareTimeTZ orders by the moment in UTC, then by zone.
func compareTimeTZ(a, b Datum) int {
	at, az := TimeTZParts(a)
	bt, bz := TimeTZParts(b)
	if c := cmp64(at+int64(az)*usPerSec, bt+int64(bz)*usPerSec); c != 0 {
		return c
	}
	return cmp64(int64(az), int64(bz))
}

func keyTimeTZ(dst []byte, d Datum) []byte {
	us, west := TimeTZParts(d)
	return keyInt4(keyInt8(dst, Int(us+int64(west)*usPerSec)), Int(int64(west)))
}

func parseBinaryDate(b []byte, mod int32) (Datum, error) {
	d, err := parseBinaryInt4(b, mod)
	if err != nil {
		return Null, err
	}
	if days := int32(d.Int()); finiteDate(days) && !validDate(int64(days)) {
		return Null, errDateRange()
	}
	return d, nil
}

func parseBinaryTimestamp(b []byte, mod int32) (Datum, error) {
	d, err := parseBinaryInt8(b, mod)
	if err != nil {
		return Null, err
	}
	if us := d.Int(); finiteTimestamp(us) && !validTimestamp(us) {
		return Null, errTimestampRange()
	}
	return coerceTimestamp(d, mod, false)
}

func errTimeRange() error { return pgerr.New(pgerr.DatetimeFieldOverflow, "time out of range") }

func parseBinaryTime(b []byte, mod int32) (Datum, error) {
	d, err := parseBinaryInt8(b, mod)
	if err != nil {
		return Null, err
	}
	if us := d.Int(); us < 0 || us > usPerDay {
		return Null, errTimeRange()
	}
	return coerceTime(d, mod, false)
}

func parseBinaryTimeTZ(b []byte, mod int32) (Datum, error) {
	if err := checkLen(b, 12); err != nil {
		return Null, err
	}
	us, west := TimeTZParts(Bytes(b))
	if us < 0 || us > usPerDay {
		return Null, errTimeRange()
	}
	if west <= -16*3600 || west >= 16*3600 {
		return Null, pgerr.New(pgerr.InvalidTimeZoneDisplacement, "time zone displacement out of range")
	}
	return coerceTimeTZ(Bytes(b), mod, false)
}

// fixedZone reports whether a zone never changes its offset.
func fixedZone(z *time.Location) bool {
	start, end := time.Unix(0, 0).In(z).ZoneBounds()
	return start.IsZero() && end.IsZero()
}
