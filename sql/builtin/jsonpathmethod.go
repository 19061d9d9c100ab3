package builtin

import (
	"strings"

	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// method applies one of the item methods.
func (x *pathExec) method(n *datum.PathNode, it pathItem, unwrap bool, out pathSink) error {
	switch n.Str {
	case "type":
		return x.next(n, pathItem{json: jsonbString(it.typeName())}, out)
	case "size":
		size := int64(1)
		if it.isArray() {
			size = int64(datum.JSONBLen(it.json))
		} else if !x.lax && !x.ignore {
			return pgerr.New(pgerr.JSONArrayNotFound, "jsonpath item method .%s() can only be applied to an array", n.Str)
		}
		return x.next(n, pathItem{json: jsonbNumber(datum.NumericFromInt64(size))}, out)
	}
	if unwrap && it.isArray() {
		return x.elements(n, it, false, out)
	}
	switch n.Str {
	case "double":
		return x.double(n, it, out)
	case "datetime":
		return x.datetime(n, it, out)
	case "keyvalue":
		return x.keyValue(n, it, out)
	}
	num, ok := it.number()
	if !ok {
		return pgerr.New(pgerr.NonNumericJSONItem, "jsonpath item method .%s() can only be applied to a numeric value", n.Str)
	}
	var err error
	switch n.Str {
	case "abs":
		num = datum.NumericAbs(num)
	case "floor":
		num, err = datum.NumericFloor(num)
	default:
		num, err = datum.NumericCeil(num)
	}
	if err != nil {
		return err
	}
	return x.next(n, pathItem{json: jsonbNumber(num)}, out)
}

func (it pathItem) typeName() string {
	if it.typ != nil {
		return typeName(datum.T(it.typ))
	}
	return datum.JSONBTypeOf(it.json)
}

func (x *pathExec) double(n *datum.PathNode, it pathItem, out pathSink) error {
	if num, ok := it.number(); ok {
		if _, err := datum.Float8.Parse(datum.NumericText(num), -1, x.c.Format); err != nil {
			return pgerr.New(pgerr.NonNumericJSONItem, "numeric argument of jsonpath item method .%s() is out of range for type double precision", n.Str)
		}
		return x.next(n, it, out)
	}
	s, ok := it.str()
	if !ok {
		return pgerr.New(pgerr.NonNumericJSONItem, "jsonpath item method .%s() can only be applied to a string or numeric value", n.Str)
	}
	f, err := datum.Float8.Parse(s, -1, x.c.Format)
	if v := f.Float(); err != nil || v-v != 0 {
		return pgerr.New(pgerr.NonNumericJSONItem, "string argument of jsonpath item method .%s() is not a valid representation of a double precision number", n.Str)
	}
	return x.next(n, pathItem{json: jsonbNumber(datum.NumericFromFloat(f.Float()))}, out)
}

// pathDateFormats are the formats that .datetime() tries in turn, with the type
// that each gives.
var pathDateFormats = []string{
	"yyyy-mm-dd", "HH24:MI:SSTZH:TZM", "HH24:MI:SSTZH", "HH24:MI:SS",
	"yyyy-mm-dd HH24:MI:SSTZH:TZM", "yyyy-mm-dd HH24:MI:SSTZH", "yyyy-mm-dd HH24:MI:SS",
	`yyyy-mm-dd"T"HH24:MI:SSTZH:TZM`, `yyyy-mm-dd"T"HH24:MI:SSTZH`, `yyyy-mm-dd"T"HH24:MI:SS`,
}

func (x *pathExec) datetime(n *datum.PathNode, it pathItem, out pathSink) error {
	s, ok := it.str()
	if !ok {
		return pgerr.New(pgerr.InvalidJSONDatetime, "jsonpath item method .%s() can only be applied to a string", n.Str)
	}
	if err := x.c.Budget.Spend(int64(len(s))/16 + 1); err != nil {
		return err
	}
	if n.Left != nil {
		v, hard, err := parseStandardTime(s, n.Left.Str)
		if err != nil {
			x.hard = x.hard || hard
			return err
		}
		return x.next(n, v, out)
	}
	for _, format := range pathDateFormats {
		if v, _, err := parseStandardTime(s, format); err == nil {
			return x.next(n, v, out)
		}
	}
	return pgerr.New(pgerr.InvalidJSONDatetime, "datetime format is not recognized: \"%s\"", s).
		WithHint("Use a datetime template argument to specify the input data format.")
}

// parseStandardTime is parse_datetime in the SQL standard's mode: the template
// decides which type the result has. hard: the template itself is wrong.
func parseStandardTime(s, format string) (it pathItem, hard bool, err error) {
	nodes := parseDateFormat(format)
	dated, timed, zoned := false, false, false
	for _, n := range nodes {
		if n.key == "" {
			if !n.quoted && strings.IndexByte("-./,':; ", n.text[0]) < 0 {
				return it, true, datetimeFormat("invalid datetime format separator: \"%s\"", n.text)
			}
			continue
		}
		switch key := strings.ToUpper(n.key); key {
		case "TZH", "TZM", "TZ", "OF":
			zoned = true
		case "HH", "HH12", "HH24", "MI", "SS", "SSSS", "SSSSS", "MS", "US", "AM", "PM", "A.M.", "P.M.":
			timed = true
		case "FX":
		default:
			if strings.HasPrefix(key, "FF") {
				timed = true
			} else {
				dated = true
			}
		}
	}
	f, err := readByPattern(s, nodes, true)
	if err != nil {
		return it, false, err
	}
	it, err = f.standardTime(s, dated, timed, zoned)
	return it, false, err
}

func (f *parsedFields) standardTime(s string, dated, timed, zoned bool) (it pathItem, err error) {
	clock, err := f.timeOfDay(s)
	if err != nil {
		return it, err
	}
	east := int32(f.east)
	if minutes := int32(f.get("zoneminute", 0)) * 60; east < 0 {
		east -= minutes
	} else {
		east += minutes
	}
	switch {
	case !dated && !timed:
		return it, datetimeFormat("datetime format is not dated and not timed")
	case dated && zoned && !timed:
		return it, datetimeFormat("datetime format is zoned but not timed")
	case !dated && zoned:
		if !f.zoned {
			return it, datetimeFormat("missing time zone in input string for type timetz")
		}
		return pathItem{typ: datum.TimeTZ, time: datum.MakeTimeTZ(clock, -east), east: east}, nil
	case !dated:
		return pathItem{typ: datum.Time, time: datum.Int(clock)}, nil
	}
	day, err := f.date(s)
	if err != nil {
		return it, err
	}
	if !timed {
		return pathItem{typ: datum.Date, time: datum.Int(int64(day))}, nil
	}
	us, err := datum.DateToTimestamp(day)
	if err != nil {
		return it, err
	}
	us += clock
	if !zoned {
		return pathItem{typ: datum.Timestamp, time: datum.Int(us)}, nil
	}
	if !f.zoned {
		return it, datetimeFormat("missing time zone in input string for type timestamptz")
	}
	return pathItem{typ: datum.TimestampTZ, time: datum.Int(us - int64(east)*usPerSecond), east: east}, nil
}

// timeText is the moment in the form of XML Schema, as to_json has it.
func (it pathItem) timeText() string {
	iso := &datum.ContractFormat
	switch it.typ {
	case datum.Timestamp, datum.TimestampTZ:
		us := it.time.Int() + int64(it.east)*usPerSecond
		s := strings.Replace(string(datum.Timestamp.Append(nil, datum.Int(us), iso)), " ", "T", 1)
		if it.typ == datum.TimestampTZ {
			s += xsdOffset(it.east)
		}
		return s
	case datum.TimeTZ:
		us, _ := datum.TimeTZParts(it.time)
		return string(datum.Time.Append(nil, datum.Int(us), iso)) + xsdOffset(it.east)
	}
	return string(it.typ.Append(nil, it.time, iso))
}

// xsdOffset is a zone as +hh:mm, with seconds if there are any.
func xsdOffset(east int32) string {
	sign := byte('+')
	if east < 0 {
		sign, east = '-', -east
	}
	two := func(b []byte, v int32) []byte { return append(b, byte('0'+v/10%10), byte('0'+v%10)) }
	b := append(two(append([]byte(nil), sign), east/3600), ':')
	b = two(b, east/60%60)
	if east%60 != 0 {
		b = two(append(b, ':'), east%60)
	}
	return string(b)
}

// compareTimes compares two moments, of different types too (compareDatetime);
// ok is false where no order exists between them.
func (x *pathExec) compareTimes(a, b pathItem) (c int, ok bool, err error) {
	if a.typ == b.typ {
		return a.typ.Compare(a.time, b.time), true, nil
	}
	clock := func(it pathItem) bool { return it.typ == datum.Time || it.typ == datum.TimeTZ }
	if clock(a) != clock(b) {
		return 0, false, nil
	}
	zoned := func(it pathItem) bool { return it.typ == datum.TimeTZ || it.typ == datum.TimestampTZ }
	if zoned(a) != zoned(b) && !x.zoned {
		from, to := a, b
		if zoned(a) {
			from, to = b, a
		}
		return 0, false, pgerr.New(pgerr.FeatureNotSupported, "cannot convert value from %s to %s without time zone usage",
			from.typ.Name, to.typ.Name).WithHint("Use *_tz() function for time zone support.")
	}
	if clock(a) {
		return datum.TimeTZ.Compare(x.timeTZ(a), x.timeTZ(b)), true, nil
	}
	withZone := zoned(a) || zoned(b)
	u, err := x.instant(a, withZone)
	if err != nil {
		return 0, false, err
	}
	v, err := x.instant(b, withZone)
	return compareInts(datum.Int(u), datum.Int(v)), err == nil, err
}

// timeTZ reads a time without zone in the zone of the session.
func (x *pathExec) timeTZ(it pathItem) datum.Datum {
	if it.typ == datum.TimeTZ {
		return it.time
	}
	east, _ := datum.TZOffset(x.c.now(), x.c.Format.Zone)
	return datum.MakeTimeTZ(it.time.Int(), int32(-east))
}

// instant is a date or timestamp in microseconds, in UTC if zoned.
func (x *pathExec) instant(it pathItem, zoned bool) (int64, error) {
	switch {
	case it.typ == datum.TimestampTZ:
		return it.time.Int(), nil
	case it.typ == datum.Date && zoned:
		return datum.DateToTimestampTZ(int32(it.time.Int()), x.c.Format.Zone)
	case it.typ == datum.Date:
		return datum.DateToTimestamp(int32(it.time.Int()))
	case zoned:
		return datum.TimestampToTZ(it.time.Int(), x.c.Format.Zone)
	}
	return it.time.Int(), nil
}

// now is the moment that decides which of the session's offsets a time of day has.
func (c *Ctx) now() int64 {
	if c.Session != nil {
		return c.Session.TxTime
	}
	return c.BlockTime
}
