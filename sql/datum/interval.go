package datum

import (
	"encoding/binary"
	"math"
	"math/bits"
	"time"

	"github.com/tallystick/tallystick/sql/pgerr"
)

// MakeInterval makes an interval: sixteen bytes, big endian: microseconds, days,
// months - PostgreSQL's binary form.
func MakeInterval(months, days int32, micros int64) Datum {
	b := make([]byte, 16)
	binary.BigEndian.PutUint64(b, uint64(micros))
	binary.BigEndian.PutUint32(b[8:], uint32(days))
	binary.BigEndian.PutUint32(b[12:], uint32(months))
	return Bytes(b)
}

// IntervalParts takes an interval apart.
func IntervalParts(d Datum) (months, days int32, micros int64) {
	b := d.Bytes()
	return int32(binary.BigEndian.Uint32(b[12:])), int32(binary.BigEndian.Uint32(b[8:])), int64(binary.BigEndian.Uint64(b))
}

// intervalValue is the 128-bit length that comparisons use: months of 30 days,
// days of 24 hours.
func intervalValue(d Datum) (hi int64, lo uint64) {
	months, days, micros := IntervalParts(d)
	n := int64(months)*30 + int64(days)
	h, l := bits.Mul64(abs64(n), usPerDay)
	if n < 0 {
		var borrow uint64
		l, borrow = bits.Sub64(0, l, 0)
		h, _ = bits.Sub64(0, h, borrow)
	}
	lo, carry := bits.Add64(l, uint64(micros), 0)
	sign := uint64(micros >> 63)
	h, _ = bits.Add64(h, sign, carry)
	return int64(h), lo
}

// IntervalSpan is the length of an interval in microseconds, months counted as 30
// days, modulo 2^64: what PostgreSQL hashes.
func IntervalSpan(d Datum) int64 {
	_, lo := intervalValue(d)
	return int64(lo)
}

func compareInterval(a, b Datum) int {
	ah, al := intervalValue(a)
	bh, bl := intervalValue(b)
	if c := cmp64(ah, bh); c != 0 {
		return c
	}
	return cmpU64(al, bl)
}

func keyInterval(dst []byte, d Datum) []byte {
	hi, lo := intervalValue(d)
	return binary.BigEndian.AppendUint64(keyInt8(dst, Int(hi)), lo)
}

func hashInterval(h uint64, d Datum) uint64 {
	hi, lo := intervalValue(d)
	return HashInt(HashInt(h, uint64(hi)), lo)
}

func add32(a, b int32) (int32, bool) {
	s := int64(a) + int64(b)
	return int32(s), s == int64(int32(s))
}

func add64(a, b int64) (int64, bool) {
	s := a + b
	return s, (a < 0) != (b < 0) || (s < 0) == (a < 0)
}

// IntervalAdd is a + b, part by part.
func IntervalAdd(a, b Datum) (Datum, error) {
	am, ad, au := IntervalParts(a)
	bm, bd, bu := IntervalParts(b)
	m, ok1 := add32(am, bm)
	d, ok2 := add32(ad, bd)
	u, ok3 := add64(au, bu)
	if !ok1 || !ok2 || !ok3 {
		return Null, errIntervalRange()
	}
	return MakeInterval(m, d, u), nil
}

// IntervalNeg is -a.
func IntervalNeg(a Datum) (Datum, error) {
	m, d, u := IntervalParts(a)
	if m == math.MinInt32 || d == math.MinInt32 || u == math.MinInt64 {
		return Null, errIntervalRange()
	}
	return MakeInterval(-m, -d, -u), nil
}

// IntervalSub is a - b.
func IntervalSub(a, b Datum) (Datum, error) {
	am, ad, au := IntervalParts(a)
	bm, bd, bu := IntervalParts(b)
	m, d := int64(am)-int64(bm), int64(ad)-int64(bd)
	u := au - bu
	if m != int64(int32(m)) || d != int64(int32(d)) || (au < 0) != (bu < 0) && (u < 0) != (au < 0) {
		return Null, errIntervalRange()
	}
	return MakeInterval(int32(m), int32(d), u), nil
}

// IntervalMul is a * f. Fractions of months become days of 30 to the month,
// fractions of days become time (interval_mul).
func IntervalMul(a Datum, f float64) (Datum, error) {
	return scaleInterval(a, func(x float64) float64 { return float64(x * f) })
}

// IntervalDiv is a / f; 22012 for 0.
func IntervalDiv(a Datum, f float64) (Datum, error) {
	if f == 0 {
		return Null, errDivisionByZero()
	}
	return scaleInterval(a, func(x float64) float64 { return x / f })
}

// roundSeconds rounds to a microsecond (TSROUND).
func roundSeconds(f float64) float64 { return math.RoundToEven(float64(f*usPerSec)) / usPerSec }

func fits32(f float64) bool { return f >= -0x1p31 && f < 0x1p31 }
func fits64(f float64) bool { return f >= -0x1p63 && f < 0x1p63 }

func scaleInterval(a Datum, scale func(float64) float64) (Datum, error) {
	const secsPerDay = 86400
	months, days, micros := IntervalParts(a)
	fm, fd := scale(float64(months)), scale(float64(days))
	if !fits32(fm) || !fits32(fd) {
		return Null, errIntervalRange()
	}
	m, d := int64(fm), int64(fd)
	restDays := roundSeconds(float64((fm - float64(m)) * 30))
	sec := float64((fd - float64(d) + restDays - float64(int64(restDays))) * secsPerDay)
	sec = roundSeconds(sec)
	if math.Abs(sec) >= secsPerDay {
		whole := int64(sec / secsPerDay)
		d += whole
		sec -= float64(whole * secsPerDay)
	}
	d += int64(restDays)
	us := math.RoundToEven(scale(float64(micros)) + float64(sec*usPerSec))
	if d != int64(int32(d)) || !fits64(us) {
		return Null, errIntervalRange()
	}
	return MakeInterval(int32(m), int32(d), int64(us)), nil
}

// JustifyHours turns each 24 hours into a day.
func JustifyHours(a Datum) (Datum, error) {
	m, d, u := IntervalParts(a)
	whole := u / usPerDay
	u -= whole * usPerDay
	n := int64(d) + whole
	switch {
	case n > 0 && u < 0:
		u += usPerDay
		n--
	case n < 0 && u > 0:
		u -= usPerDay
		n++
	}
	if n != int64(int32(n)) {
		return Null, errIntervalRange()
	}
	return MakeInterval(m, int32(n), u), nil
}

// JustifyDays turns each 30 days into a month.
func JustifyDays(a Datum) (Datum, error) {
	m, d, u := IntervalParts(a)
	n, d := int64(m)+int64(d/30), d%30
	switch {
	case n > 0 && d < 0:
		d += 30
		n--
	case n < 0 && d > 0:
		d -= 30
		n++
	}
	if n != int64(int32(n)) {
		return Null, errIntervalRange()
	}
	return MakeInterval(int32(n), d, u), nil
}

// JustifyInterval does both and makes the signs agree.
func JustifyInterval(a Datum) (Datum, error) {
	m, d, u := IntervalParts(a)
	n := int64(m)
	days := int64(d)
	if days > 0 && u > 0 || days < 0 && u < 0 {
		n += days / 30
		days %= 30
	}
	days += u / usPerDay
	u %= usPerDay
	n += days / 30
	days %= 30
	switch {
	case n > 0 && (days < 0 || days == 0 && u < 0):
		days += 30
		n--
	case n < 0 && (days > 0 || days == 0 && u > 0):
		days -= 30
		n++
	}
	switch {
	case days > 0 && u < 0:
		u += usPerDay
		days--
	case days < 0 && u > 0:
		u -= usPerDay
		days++
	}
	if n != int64(int32(n)) {
		return Null, errIntervalRange()
	}
	return MakeInterval(int32(n), int32(days), u), nil
}

// TimestampAddInterval is timestamp + interval: months, then days, then time.
func TimestampAddInterval(ts, iv Datum) (Datum, error) {
	us := ts.Int()
	if !finiteTimestamp(us) {
		return ts, nil
	}
	us, err := addCalendar(us, iv)
	if err != nil {
		return Null, err
	}
	_, _, micros := IntervalParts(iv)
	return addMicros(us, micros)
}

func addMicros(us, micros int64) (Datum, error) {
	us, ok := add64(us, micros)
	if !ok || !validTimestamp(us) {
		return Null, errTimestampRange()
	}
	return Int(us), nil
}

// addCalendar adds the months and days of an interval.
func addCalendar(us int64, iv Datum) (int64, error) {
	months, days, _ := IntervalParts(iv)
	if months == 0 && days == 0 {
		return us, nil
	}
	n := floorDiv(us, usPerDay)
	tod := us - n*usPerDay
	if months != 0 {
		y, mo, d := civil(n)
		n = dayNumber(addMonths(y, mo, d, months))
	}
	return joinTimestamp(n+int64(days), tod)
}

// TimestampTZAddInterval is timestamptz + interval: months and days are added
// to the local time in the zone, the rest to the moment.
func TimestampTZAddInterval(ts, iv Datum, z *time.Location) (Datum, error) {
	us := ts.Int()
	if !finiteTimestamp(us) {
		return ts, nil
	}
	months, days, micros := IntervalParts(iv)
	if months != 0 || days != 0 {
		local, err := TZToTimestamp(us, z)
		if err == nil {
			local, err = addCalendar(local, iv)
		}
		if err == nil {
			us, err = TimestampToTZ(local, z)
		}
		if err != nil {
			return Null, err
		}
	}
	return addMicros(us, micros)
}

// TimestampSub is a - b in days and time; 22008 for infinities.
func TimestampSub(a, b int64) (Datum, error) {
	if !finiteTimestamp(a) || !finiteTimestamp(b) {
		return Null, pgerr.New(pgerr.DatetimeFieldOverflow, "cannot subtract infinite timestamps")
	}
	return JustifyHours(MakeInterval(0, 0, a-b))
}

// TimestampAge is age(a, b): years, months and days counted by the calendar.
func TimestampAge(a, b int64) (Datum, error) {
	if !finiteTimestamp(a) || !finiteTimestamp(b) {
		return Null, errTimestampRange()
	}
	if a < b {
		d, err := TimestampAge(b, a)
		if err != nil {
			return Null, err
		}
		return IntervalNeg(d)
	}
	ay, am, ad, _, _, _, _ := TimestampToTime(a)
	by, bm, bd, _, _, _, _ := TimestampToTime(b)
	us := TimeOfDay(a) - TimeOfDay(b)
	days := ad - bd
	months := (ay-by)*12 + am - bm
	if us < 0 {
		us += usPerDay
		days--
	}
	for days < 0 {
		days += daysInMonth(by, bm)
		months--
	}
	return MakeInterval(int32(months), int32(days), us), nil
}

// TimestampTZAge is age for timestamptz, counted in a zone.
func TimestampTZAge(a, b int64, z *time.Location) (Datum, error) {
	la, err := TZToTimestamp(a, z)
	if err != nil {
		return Null, err
	}
	lb, err := TZToTimestamp(b, z)
	if err != nil {
		return Null, err
	}
	return TimestampAge(la, lb)
}

func parseBinaryInterval(b []byte, mod int32) (Datum, error) {
	if err := checkLen(b, 16); err != nil {
		return Null, err
	}
	return coerceInterval(Bytes(b), mod, false)
}

// coerceInterval drops the fields that a modifier leaves out and rounds the
// seconds (AdjustIntervalForTypmod).
func coerceInterval(d Datum, mod int32, _ bool) (Datum, error) {
	if mod < 0 {
		return d, nil
	}
	fields, decimals := mod>>16&intervalFullRange, mod&0xffff
	months, days, us := IntervalParts(d)
	switch fields {
	case maskYear:
		months, days, us = months/12*12, 0, 0
	case maskMonth, maskYear | maskMonth:
		days, us = 0, 0
	case maskDay:
		us = 0
	case maskHour, maskDay | maskHour:
		us = us / usPerHour * usPerHour
	case maskMinute, maskHour | maskMinute, maskDay | maskHour | maskMinute:
		us = us / usPerMin * usPerMin
	}
	if decimals <= 6 {
		us = roundMicros(us, decimals)
	}
	return MakeInterval(months, days, us), nil
}
