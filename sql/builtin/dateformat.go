package builtin

import (
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// Date patterns of to_char, to_date and to_timestamp, after formatting.c.

// dateNode is one element of a date pattern.
type dateNode struct {
	key    string // a key word as written, "" for literal text
	text   string // literal text, one character
	fm     bool   // no padding
	th     string // ordinal suffix: "TH", "th" or none
	quoted bool   // text from double quotes
}

// dateKeys are the key words in upper case; all also exist in lower case, and
// names with a capital too. Longer ones come before their prefixes.
var dateKeys = strings.Fields(`A.D. A.M. AD AM B.C. BC CC DAY DDD DD DY D FF1 FF2 FF3 FF4 FF5 FF6 FX HH24 HH12 HH
	IDDD ID IW IYYY IYY IY I J MI MM MONTH MON MS OF P.M. PM Q RM SSSSS SSSS SS TZH TZM TZ US WW W Y,YYY YYYY YYY YY Y`)

var capitalKeys = []string{"Day", "Dy", "Month", "Mon"}

func dateKey(s string) string {
	for _, k := range capitalKeys {
		if strings.HasPrefix(s, k) {
			return k
		}
	}
	for _, k := range dateKeys {
		if strings.HasPrefix(s, k) || len(s) >= len(k) && s[:len(k)] == strings.ToLower(k) {
			return s[:len(k)]
		}
	}
	return ""
}

func parseDateFormat(s string) []dateNode {
	var nodes []dateNode
	for s != "" {
		fm := false
		for len(s) >= 2 && (strings.EqualFold(s[:2], "FM") || s[:2] == "TM" || s[:2] == "tm") {
			fm = fm || strings.EqualFold(s[:2], "FM")
			s = s[2:]
		}
		if s == "" {
			break
		}
		if key := dateKey(s); key != "" {
			n := dateNode{key: key, fm: fm}
			s = s[len(key):]
			if strings.HasPrefix(s, "TH") || strings.HasPrefix(s, "th") {
				n.th, s = s[:2], s[2:]
			}
			if strings.HasPrefix(s, "SP") || strings.HasPrefix(s, "sp") {
				s = s[2:] // spelled numbers exist nowhere
			}
			nodes = append(nodes, n)
			continue
		}
		if s[0] == '"' {
			var text string
			text, s = quotedText(s[1:])
			for _, r := range text {
				nodes = append(nodes, dateNode{text: string(r), quoted: true})
			}
			continue
		}
		if strings.HasPrefix(s, `\"`) {
			s = s[1:]
		}
		_, n := utf8.DecodeRuneInString(s)
		nodes = append(nodes, dateNode{text: s[:n]})
		s = s[n:]
	}
	return nodes
}

// civilTime is what a pattern can show of a point in time or of an interval.
type civilTime struct {
	year, month, day          int // a year of 0 or less is BC
	hour, minute, sec, micros int
	yearDay, weekDay          int // yearDay from 1, weekDay 0 = Sunday
	days                      int // since 2000-01-01
	interval                  bool
	zone                      string // "" without time zone
	east                      int    // seconds east of Greenwich
	hasZone                   bool
}

func timestampToCivil(us int64) civilTime {
	var t civilTime
	t.year, t.month, t.day, t.hour, t.minute, t.sec, t.micros = datum.TimestampToTime(us)
	days := int32(floorDivide(us, usPerDay))
	t.days = int(days)
	t.weekDay = datum.DayOfWeek(days)
	t.yearDay = datum.DayOfYear(t.year, t.month, t.day)
	return t
}

func intervalToCivil(d datum.Datum) civilTime {
	months, days, us := datum.IntervalParts(d)
	t := civilTime{interval: true, year: int(months / 12), month: int(months % 12), day: int(days)}
	t.hour, us = int(us/(3600*usPerSecond)), us%(3600*usPerSecond)
	t.minute, us = int(us/(60*usPerSecond)), us%(60*usPerSecond)
	t.sec, t.micros = int(us/usPerSecond), int(us%usPerSecond)
	t.yearDay = int(months)*30 + int(days) // what ISO patterns of intervals count
	return t
}

var monthNames = strings.Fields("January February March April May June July August September October November December")
var dayNames = strings.Fields("Sunday Monday Tuesday Wednesday Thursday Friday Saturday")

func timestampToChar(c *Ctx, a []datum.Datum) (datum.Datum, error) {
	if a[1].Str() == "" || !timestampIsFinite(a[0].Int()) {
		return datum.Null, nil
	}
	return formatCivil(timestampToCivil(a[0].Int()), a[1].Str())
}

func timestamptzToChar(c *Ctx, a []datum.Datum) (datum.Datum, error) {
	if a[1].Str() == "" || !timestampIsFinite(a[0].Int()) {
		return datum.Null, nil
	}
	return zonedToChar(a[0].Int(), c.Format.Zone, a[1].Str())
}

func zonedToChar(us int64, z *time.Location, format string) (datum.Datum, error) {
	local, err := datum.TZToTimestamp(us, z)
	if err != nil {
		return datum.Null, err
	}
	t := timestampToCivil(local)
	t.east, t.zone = datum.TZOffset(us, z)
	t.hasZone = true
	return formatCivil(t, format)
}

func intervalToChar(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
	if a[1].Str() == "" {
		return datum.Null, nil
	}
	return formatCivil(intervalToCivil(a[0]), a[1].Str())
}

func formatCivil(t civilTime, format string) (datum.Datum, error) {
	var b []byte
	for _, n := range parseDateFormat(format) {
		if n.key == "" {
			b = append(b, n.text...)
			continue
		}
		s, err := t.field(n)
		if err != nil {
			return datum.Null, err
		}
		b = append(b, s...)
		if n.th != "" && s != "" && s[len(s)-1] >= '0' && s[len(s)-1] <= '9' {
			b = append(b, ordinal(s, n.th == "TH")...)
		}
	}
	return datum.Bytes(b), nil
}

// zeros writes a number with leading zeros to a width, unless FM; a sign makes
// it one wider.
func (n dateNode) zeros(v, width int) string {
	s := strconv.Itoa(max(v, -v))
	if !n.fm {
		for len(s) < width {
			s = "0" + s
		}
	}
	if v < 0 {
		return "-" + s
	}
	return s
}

// padded writes a name as wide as the longest one, unless FM.
func (n dateNode) padded(s string, width int) string {
	if n.fm || len(s) >= width {
		return s
	}
	return s + strings.Repeat(" ", width-len(s))
}

// cased gives a name the letter case of the key word.
func (n dateNode) cased(s string) string {
	switch n.key {
	case strings.ToUpper(n.key):
		return strings.ToUpper(s)
	case strings.ToLower(n.key):
		return strings.ToLower(s)
	}
	return s
}

func (t *civilTime) adYear(year int) int {
	if !t.interval && year <= 0 {
		return 1 - year
	}
	return year
}

func (t *civilTime) field(n dateNode) (string, error) {
	key := strings.ToUpper(n.key)
	switch key {
	case "HH", "HH12":
		h := t.hour % 12
		if h == 0 {
			h = 12
		}
		return n.zeros(h, 2), nil
	case "HH24":
		return n.zeros(t.hour, 2), nil
	case "MI":
		return n.zeros(t.minute, 2), nil
	case "SS":
		return n.zeros(t.sec, 2), nil
	case "MS", "FF3":
		return dateNode{}.zeros(t.micros/1000, 3), nil
	case "US", "FF6":
		return dateNode{}.zeros(t.micros, 6), nil
	case "FF1", "FF2", "FF4", "FF5":
		width := int(key[2] - '0')
		return dateNode{}.zeros(t.micros, 6)[:width], nil
	case "SSSS", "SSSSS":
		return strconv.Itoa((t.hour*60+t.minute)*60 + t.sec), nil
	case "AM", "PM", "A.M.", "P.M.":
		s := "am"
		if t.hour%24 >= 12 {
			s = "pm"
		}
		return dotted(n, key, s), nil
	case "BC", "AD", "B.C.", "A.D.":
		if t.interval {
			return "", notForIntervals()
		}
		s := "ad"
		if t.year <= 0 {
			s = "bc"
		}
		return dotted(n, key, s), nil
	case "TZ", "TZH", "TZM", "OF":
		return t.zoneField(n, key)
	}
	return t.dateField(n, key)
}

func dotted(n dateNode, key, s string) string {
	if len(key) == 4 {
		s = s[:1] + "." + s[1:] + "."
	}
	return n.cased(s)
}

func notForIntervals() error {
	return pgerr.New(pgerr.InvalidDatetimeFormat, "invalid format specification for an interval value").
		WithHint("Intervals are not tied to specific calendar dates.")
}

func (t *civilTime) zoneField(n dateNode, key string) (string, error) {
	if t.interval {
		return "", notForIntervals()
	}
	sign, east := "+", t.east
	if east < 0 {
		sign, east = "-", -east
	}
	hours := sign + dateNode{}.zeros(east/3600, 2)
	minutes := dateNode{}.zeros(east/60%60, 2)
	switch key {
	case "TZ":
		return n.cased(t.zone), nil
	case "TZH":
		return hours, nil
	case "TZM":
		return minutes, nil
	}
	if east%3600 != 0 {
		hours += ":" + minutes
	}
	return hours, nil
}

func (t *civilTime) dateField(n dateNode, key string) (string, error) {
	switch key {
	case "MONTH", "MON", "DAY", "DY", "RM":
		return t.nameField(n, key)
	case "MM":
		return n.zeros(t.month, 2), nil
	case "DD":
		return n.zeros(t.day, 2), nil
	case "DDD":
		return n.zeros(t.yearDay, 3), nil
	case "D", "ID":
		if t.interval {
			return "", notForIntervals()
		}
		if key == "D" {
			return strconv.Itoa(t.weekDay + 1), nil
		}
		return strconv.Itoa((t.weekDay+6)%7 + 1), nil
	case "WW":
		return n.zeros((t.yearDay-1)/7+1, 2), nil
	case "W":
		return strconv.Itoa((t.day-1)/7 + 1), nil
	case "Q":
		if t.month == 0 {
			return "", nil
		}
		return strconv.Itoa((t.month-1)/3 + 1), nil
	case "CC":
		cc := t.year / 100
		if !t.interval {
			if t.year > 0 {
				cc = (t.year-1)/100 + 1
			} else {
				cc = t.year/100 - 1
			}
		}
		if cc <= 99 && cc >= -99 {
			return n.zeros(cc, 2), nil
		}
		return n.zeros(cc, 4), nil
	case "J":
		if t.interval {
			return strconv.Itoa(t.yearDay), nil
		}
		return strconv.Itoa(t.days + 2451545), nil
	case "FX":
		return "", nil
	}
	return t.yearField(n, key)
}

func (t *civilTime) nameField(n dateNode, key string) (string, error) {
	if key == "DAY" || key == "DY" {
		if t.interval {
			return "", notForIntervals()
		}
		if key == "DY" {
			return n.cased(dayNames[t.weekDay][:3]), nil
		}
		return n.padded(n.cased(dayNames[t.weekDay]), 9), nil
	}
	if key != "RM" && t.interval {
		return "", notForIntervals()
	}
	if t.month == 0 {
		return "", nil
	}
	switch key {
	case "MON":
		return n.cased(monthNames[t.month-1][:3]), nil
	case "RM":
		return n.padded(n.cased(toRoman(int64(max(t.month, -t.month)))), 4), nil
	}
	return n.padded(n.cased(monthNames[t.month-1]), 9), nil
}

func (t *civilTime) yearField(n dateNode, key string) (string, error) {
	year := t.year
	if key[0] == 'I' {
		if t.interval {
			if key == "IDDD" || key == "IW" {
				return "", notForIntervals()
			}
		} else {
			var week int
			year, week = datum.ISOWeek(t.year, t.month, t.day)
			switch key {
			case "IW":
				return n.zeros(week, 2), nil
			case "IDDD":
				start := datum.ISOWeekStart(year, 1)
				return n.zeros(t.days-int(start)+1, 3), nil
			}
		}
	}
	y := t.adYear(year)
	switch key {
	case "Y,YYY":
		return strconv.Itoa(y/1000) + "," + dateNode{}.zeros(y%1000, 3), nil
	case "YYYY", "IYYY":
		return n.zeros(y, 4), nil
	case "YYY", "IYY":
		return n.zeros(y%1000, 3), nil
	case "YY", "IY":
		return n.zeros(y%100, 2), nil
	}
	return strconv.Itoa(y % 10), nil
}

var dateFormatEvals = evalMap{
	"timestamp_to_char": timestampToChar, "timestamptz_to_char": timestamptzToChar, "interval_to_char": intervalToChar,
	"to_date": toDate, "to_timestamp": toTimestampText,
}
