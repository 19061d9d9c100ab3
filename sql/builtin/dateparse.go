package builtin

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// parsedFields is what to_date and to_timestamp find in their input; -1 marks
// what a pattern did not ask for.
type parsedFields struct {
	values map[string]int
	// yearSize is the number of digits that the pattern of the year has.
	yearSize int
	bc, pm   bool
	clock    bool // HH12: the hour is one of twelve
	east     int
	zoned    bool
}

func datetimeFormat(format string, args ...any) *pgerr.Error {
	return pgerr.New(pgerr.InvalidDatetimeFormat, format, args...)
}

// dateReader walks an input along a pattern (DCH_from_char).
type dateReader struct {
	s     string
	skip  int // extra blanks passed over
	fixed bool
	// exact is the SQL standard's mode, for .datetime() of path expressions:
	// separators match exactly and all of the input is read.
	exact bool
	f     parsedFields
}

func isSpace(c byte) bool { return isBlank(c) || c == '\v' || c == '\f' }

// isSeparator: printable ASCII that is neither letter nor digit.
func isSeparator(c byte) bool {
	return c > 0x20 && c < 0x7f && !(c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9')
}

func (r *dateReader) blanks() {
	for r.s != "" && isSpace(r.s[0]) {
		r.s = r.s[1:]
		r.skip++
	}
}

func parseByPattern(s, format string) (*parsedFields, error) {
	return readByPattern(s, parseDateFormat(format), false)
}

func readByPattern(s string, nodes []dateNode, exact bool) (*parsedFields, error) {
	r := dateReader{s: s, exact: exact, f: parsedFields{values: make(map[string]int)}}
	for i, n := range nodes {
		if r.s == "" {
			if exact {
				return nil, datetimeFormat("input string is too short for datetime format")
			}
			break
		}
		if n.key == "" && exact && !n.quoted {
			if r.s[0] != n.text[0] {
				return nil, datetimeFormat("unmatched format separator \"%c\"", n.text[0])
			}
			r.s = r.s[1:]
			continue
		}
		if n.key == "" {
			r.literal(n.text, i == 0)
			continue
		}
		if strings.EqualFold(n.key, "FX") {
			r.fixed = true
			continue
		}
		if !r.fixed {
			r.blanks()
		}
		if err := r.field(n, nextIsNoDigit(nodes, i)); err != nil {
			return nil, err
		}
		if !r.fixed && !exact {
			r.skip = 0
			r.blanks()
		}
	}
	if r.blanks(); exact && r.s != "" {
		return nil, datetimeFormat("trailing characters remain in input string after datetime format")
	}
	return &r.f, nil
}

func (r *dateReader) literal(text string, first bool) {
	if first && !r.fixed {
		r.blanks()
		if r.s == "" {
			return
		}
	}
	_, n := utf8.DecodeRuneInString(r.s)
	c := text[0]
	switch {
	case r.fixed:
		r.s = r.s[n:]
	case isSpace(c) || isSeparator(c):
		r.skip--
		if isSpace(r.s[0]) || isSeparator(r.s[0]) {
			r.s = r.s[1:]
			r.skip++
		}
	case r.skip > 0:
		r.skip--
	default:
		r.s = r.s[n:]
	}
}

// digitKeys are the key words that stand for digits in an input.
func isDigitKey(key string) bool {
	switch strings.ToUpper(key) {
	case "A.D.", "A.M.", "AD", "AM", "B.C.", "BC", "P.M.", "PM", "DAY", "DY", "MONTH", "MON", "RM", "FX", "TZ", "OF", "TZH":
		return false
	}
	return true
}

// nextIsNoDigit tells that a number ends by itself, so that it may have any
// number of digits (is_next_separator).
func nextIsNoDigit(nodes []dateNode, i int) bool {
	if nodes[i].fm || nodes[i].th != "" || i+1 == len(nodes) {
		return true
	}
	next := nodes[i+1]
	if next.key != "" {
		return !isDigitKey(next.key)
	}
	return next.text[0] < '0' || next.text[0] > '9'
}

// integer reads a number of exactly width digits, or any number of them.
func (r *dateReader) integer(n dateNode, width int, open bool) (v, digits int, err error) {
	s := r.s
	if !open {
		if len(s) < width {
			return 0, 0, datetimeFormat("source string too short for \"%s\" formatting field", n.key).
				WithDetail("Field requires %d characters, but only %d remain.", width, len(s)).
				WithHint("If your source string is not fixed-width, try using the \"FM\" modifier.")
		}
		s = s[:width]
	}
	end := 0
	if end < len(s) && (s[end] == '-' || s[end] == '+') {
		end++
	}
	start := end
	for end < len(s) && s[end] >= '0' && s[end] <= '9' {
		end++
	}
	if end == start {
		shown := r.s[:min(width, len(r.s))]
		return 0, 0, datetimeFormat("invalid value \"%s\" for \"%s\"", shown, n.key).WithDetail("Value must be an integer.")
	}
	if !open && end < width {
		return 0, 0, datetimeFormat("invalid value \"%s\" for \"%s\"", s, n.key).
			WithDetail("Field requires %d characters, but only %d could be parsed.", width, end).
			WithHint("If your source string is not fixed-width, try using the \"FM\" modifier.")
	}
	v64, convErr := strconv.ParseInt(s[:end], 10, 32)
	if convErr != nil {
		return 0, 0, pgerr.New(pgerr.DatetimeFieldOverflow, "value for \"%s\" in source string is out of range", n.key).
			WithDetail("Value must be in the range %d to %d.", -1<<31, 1<<31-1)
	}
	r.s = r.s[end:]
	return int(v64), end, nil
}

// set stores a field; a second different value contradicts.
func (r *dateReader) set(n dateNode, name string, v int) error {
	if old, ok := r.f.values[name]; ok && old != v {
		return datetimeFormat("conflicting values for \"%s\" field in formatting string", n.key).
			WithDetail("This value contradicts a previous setting for the same field type.")
	}
	r.f.values[name] = v
	return nil
}

// dateWidths gives the name and the width of the numeric fields.
var dateWidths = map[string]struct {
	name  string
	width int
}{
	"HH": {"hour", 2}, "HH12": {"hour", 2}, "HH24": {"hour", 2}, "MI": {"minute", 2}, "SS": {"second", 2},
	"SSSS": {"daysecond", 5}, "SSSSS": {"daysecond", 5}, "MM": {"month", 2}, "DD": {"day", 2}, "DDD": {"yearday", 3},
	"IDDD": {"isoyearday", 3}, "D": {"weekday", 1}, "ID": {"isoweekday", 1}, "WW": {"week", 2}, "IW": {"isoweek", 2},
	"W": {"monthweek", 1}, "Q": {"quarter", 1}, "CC": {"century", 2}, "J": {"julian", 10}, "TZM": {"zoneminute", 2},
	"YYYY": {"year", 4}, "YYY": {"year", 3}, "YY": {"year", 2}, "Y": {"year", 1},
	"IYYY": {"isoyear", 4}, "IYY": {"isoyear", 3}, "IY": {"isoyear", 2}, "I": {"isoyear", 1},
}

func (r *dateReader) field(n dateNode, open bool) error {
	key := strings.ToUpper(n.key)
	switch key {
	case "AM", "PM", "A.M.", "P.M.":
		v, err := r.word(n, []string{"am", "pm", "a.m.", "p.m."})
		r.f.pm, r.f.clock = v%2 == 1, true
		return err
	case "BC", "AD", "B.C.", "A.D.":
		v, err := r.word(n, []string{"ad", "bc", "a.d.", "b.c."})
		r.f.bc = v%2 == 1
		return err
	case "MONTH", "MON":
		v, err := r.name(n, monthNames, key == "MON")
		if err != nil {
			return err
		}
		return r.set(n, "month", v+1)
	case "DAY", "DY":
		v, err := r.name(n, dayNames, key == "DY")
		if err != nil {
			return err
		}
		return r.set(n, "weekday", v+1)
	case "RM":
		return r.romanMonth(n)
	case "MS", "US", "FF1", "FF2", "FF3", "FF4", "FF5", "FF6":
		return r.fraction(n, key, open)
	case "TZH":
		return r.zoneHour(n)
	case "TZ", "OF":
		return pgerr.New(pgerr.FeatureNotSupported, "formatting field \"%s\" is only supported in to_char", n.key)
	case "Y,YYY":
		return r.commaYear(n)
	}
	w := dateWidths[key]
	v, digits, err := r.integer(n, w.width, open)
	if err != nil {
		return err
	}
	switch key {
	case "HH", "HH12":
		r.f.clock = true
	case "YYY", "YY", "Y", "IYY", "IY", "I":
		v = nearestYear(v, digits)
	}
	if w.name == "year" {
		r.f.yearSize = len(key)
	}
	if err := r.set(n, w.name, v); err != nil {
		return err
	}
	if n.th != "" {
		r.s = r.s[min(2, len(r.s)):]
	}
	return nil
}

func nearestYear(y, digits int) int {
	switch {
	case digits > 3 || y > 999 || y < 0:
		return y
	case y < 70:
		return y + 2000
	case y < 100:
		return y + 1900
	case y < 520:
		return y + 2000
	}
	return y + 1000
}

// word takes one of several words in any letter case and returns its position.
func (r *dateReader) word(n dateNode, words []string) (int, error) {
	for i := len(words) - 1; i >= 0; i-- {
		if w := words[i]; len(r.s) >= len(w) && strings.EqualFold(r.s[:len(w)], w) {
			r.s = r.s[len(w):]
			return i, nil
		}
	}
	return 0, r.badName(n)
}

func (r *dateReader) badName(n dateNode) error {
	word := r.s
	for i := range len(word) {
		if isSpace(word[i]) {
			word = word[:i]
			break
		}
	}
	return datetimeFormat("invalid value \"%s\" for \"%s\"", word, n.key).
		WithDetail("The given value did not match any of the allowed values for this field.")
}

func (r *dateReader) name(n dateNode, names []string, short bool) (int, error) {
	for i, name := range names {
		if short {
			name = name[:3]
		}
		if len(r.s) >= len(name) && strings.EqualFold(r.s[:len(name)], name) {
			r.s = r.s[len(name):]
			return i, nil
		}
	}
	return 0, r.badName(n)
}

func (r *dateReader) romanMonth(n dateNode) error {
	best, length := 0, 0
	for m := int64(1); m <= 12; m++ {
		s := toRoman(m)
		if len(s) > length && len(r.s) >= len(s) && strings.EqualFold(r.s[:len(s)], s) {
			best, length = int(m), len(s)
		}
	}
	if best == 0 {
		return r.badName(n)
	}
	r.s = r.s[length:]
	return r.set(n, "month", best)
}

// fraction reads digits behind the decimal point: 5 is five tenths.
func (r *dateReader) fraction(n dateNode, key string, open bool) error {
	width := 6
	switch key {
	case "MS":
		width = 3
	case "US":
	default:
		width = int(key[2] - '0')
	}
	v, digits, err := r.integer(n, width, open)
	if err != nil {
		return err
	}
	for ; digits < 6; digits++ {
		v *= 10
	}
	for ; digits > 6; digits-- {
		v /= 10
	}
	return r.set(n, "micros", v)
}

func (r *dateReader) zoneHour(n dateNode) error {
	negative := false
	if r.s[0] == '+' || r.s[0] == '-' || r.s[0] == ' ' {
		negative = r.s[0] == '-'
		r.s = r.s[1:]
	}
	v, _, err := r.integer(n, 2, true)
	if negative {
		v = -v
	}
	r.f.zoned = true
	r.f.east = v * 3600
	return err
}

func (r *dateReader) commaYear(n dateNode) error {
	thousands, rest, ok := strings.Cut(r.s, ",")
	k, err := strconv.Atoi(thousands)
	if !ok || err != nil || len(rest) < 3 {
		return datetimeFormat("invalid input string for \"Y,YYY\"")
	}
	y, err := strconv.Atoi(rest[:3])
	if err != nil {
		return datetimeFormat("invalid input string for \"Y,YYY\"")
	}
	r.s = rest[3:]
	return r.set(n, "year", k*1000+y)
}

// get is a field, or a default.
func (f *parsedFields) get(name string, def int) int {
	if v, ok := f.values[name]; ok {
		return v
	}
	return def
}

func (f *parsedFields) has(name string) bool { _, ok := f.values[name]; return ok }

// timeOfDay is the time part, in microseconds.
func (f *parsedFields) timeOfDay(text string) (int64, error) {
	hour, minute, sec := f.get("hour", 0), f.get("minute", 0), f.get("second", 0)
	if f.has("daysecond") {
		s := f.get("daysecond", 0)
		hour, minute, sec = s/3600, s/60%60, s%60
	}
	if f.clock {
		if hour < 1 || hour > 12 {
			return 0, datetimeFormat("hour \"%d\" is invalid for the 12-hour clock", hour).
				WithHint("Use the 24-hour clock, or give an hour between 1 and 12.")
		}
		if f.pm && hour < 12 {
			hour += 12
		} else if !f.pm && hour == 12 {
			hour = 0
		}
	}
	if hour < 0 || hour >= 24 || minute < 0 || minute >= 60 || sec < 0 || sec >= 60 {
		return 0, fieldRange(text)
	}
	return int64((hour*60+minute)*60+sec)*usPerSecond + int64(f.get("micros", 0)), nil
}

func fieldRange(text string) error {
	return pgerr.New(pgerr.DatetimeFieldOverflow, "date/time field value out of range: \"%s\"", text)
}

// date is the date part, in days since 2000-01-01 (do_to_timestamp).
func (f *parsedFields) date(text string) (int32, error) {
	if f.has("julian") {
		return int32(f.get("julian", 0) - 2451545), nil
	}
	year := f.calendarYear()
	if f.has("isoweek") || f.has("isoyearday") {
		start := datum.ISOWeekStart(f.get("isoyear", year), f.get("isoweek", 1))
		if f.has("isoyearday") {
			return start + int32(f.get("isoyearday", 1)) - 1, nil
		}
		day := f.get("isoweekday", 1)
		if f.has("weekday") && !f.has("isoweekday") {
			day = (f.get("weekday", 2)+5)%7 + 1
		}
		return start + int32(day) - 1, nil
	}
	yearDay := f.get("yearday", 0)
	if f.has("week") {
		yearDay = (f.get("week", 1)-1)*7 + 1
	}
	month, day := f.get("month", 1), f.get("day", 1)
	if f.has("monthweek") {
		day = (f.get("monthweek", 1)-1)*7 + 1
	}
	if yearDay > 0 && !f.has("month") && !f.has("day") {
		first, err := datum.YMDToDate(year, 1, 1)
		if err != nil || yearDay > 366 {
			return 0, fieldRange(text)
		}
		return first + int32(yearDay) - 1, nil
	}
	d, err := datum.YMDToDate(year, month, day)
	if err != nil {
		return 0, fieldRange(text)
	}
	return d, nil
}

// calendarYear combines year, century and era; 0 and less are BC.
func (f *parsedFields) calendarYear() int {
	year, given := f.get("year", 0), f.has("year")
	if f.has("century") {
		cc := f.get("century", 0)
		switch {
		case given && f.yearSize > 2: // the century adds nothing
		case given:
			year = year%100 + (cc-1)*100
			if year%100 == 0 {
				year += 100
			}
		default:
			year = (cc-1)*100 + 1
		}
	} else if given && year < 0 {
		// A negative year is BC by itself; BC makes it AD again.
		if f.bc {
			return -year
		}
		return year + 1
	}
	if f.bc && year > 0 {
		return 1 - year
	}
	return year
}

func toDate(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
	f, err := parseByPattern(a[0].Str(), a[1].Str())
	if err != nil {
		return datum.Null, err
	}
	if _, err := f.timeOfDay(a[0].Str()); err != nil {
		return datum.Null, err
	}
	d, err := f.date(a[0].Str())
	if err != nil {
		return datum.Null, err
	}
	return datum.Int(int64(d)), nil
}

func toTimestampText(c *Ctx, a []datum.Datum) (datum.Datum, error) {
	f, err := parseByPattern(a[0].Str(), a[1].Str())
	if err != nil {
		return datum.Null, err
	}
	clock, err := f.timeOfDay(a[0].Str())
	if err != nil {
		return datum.Null, err
	}
	d, err := f.date(a[0].Str())
	if err != nil {
		return datum.Null, err
	}
	us, err := datum.DateToTimestamp(d)
	if err != nil {
		return datum.Null, err
	}
	us += clock
	if f.zoned {
		minutes := f.get("zoneminute", 0) * 60
		if f.east < 0 {
			minutes = -minutes
		}
		return datum.Int(us - int64(f.east+minutes)*usPerSecond), nil
	}
	us, err = datum.TimestampToTZ(us, c.Format.Zone)
	return datum.Int(us), err
}
