package datum

import (
	"archive/zip"
	"bytes"
	_ "embed"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tallystick/tallystick/sql/pgerr"
)

// zoneArchive is Go's own zoneinfo.zip (lib/time), a fixed part of an engine
// version. time.LoadLocation would read the machine's data instead.
//
//go:embed zoneinfo.zip
var zoneArchive []byte

// zones is the directory of the archive by lower-case name, read once, and the
// zones loaded so far. What is loaded never changes, so that the order of
// loading cannot matter.
var zones struct {
	once   sync.Once
	files  map[string]*zip.File
	mu     sync.Mutex
	loaded map[string]*time.Location
}

func zoneFiles() map[string]*zip.File {
	zones.once.Do(func() {
		zones.files = make(map[string]*zip.File)
		zones.loaded = make(map[string]*time.Location)
		r, err := zip.NewReader(bytes.NewReader(zoneArchive), int64(len(zoneArchive)))
		if err != nil {
			panic("datum: embedded time zones: " + err.Error())
		}
		for _, f := range r.File {
			if !strings.HasSuffix(f.Name, "/") {
				zones.files[strings.ToLower(f.Name)] = f
			}
		}
	})
	return zones.files
}

// ZoneNames lists the names of the time zone database in order.
func ZoneNames() []string {
	var names []string
	for _, f := range zoneFiles() {
		names = append(names, f.Name)
	}
	slices.Sort(names)
	return names
}

// LoadZone finds a time zone: a name of the database in any letter case, an
// abbreviation ("EST"), or a POSIX specification ("UTC+3", "<+03>-3",
// "EST5EDT,M3.2.0,M11.1.0"), in which positive offsets lie west of Greenwich.
// The error is 22023.
func LoadZone(name string) (*time.Location, error) {
	key := strings.ToLower(name)
	if key == "utc" {
		return time.UTC, nil
	}
	if z := loadNamed(key); z != nil {
		return z, nil
	}
	if off, ok := zoneAbbrevs[key]; ok {
		return time.FixedZone(strings.ToUpper(name), int(off)), nil
	}
	if full, ok := zoneDynamic[key]; ok {
		if z := loadNamed(strings.ToLower(full)); z != nil {
			return z, nil
		}
	}
	if z := posixZone(name); z != nil {
		return z, nil
	}
	return nil, pgerr.New(pgerr.InvalidParameterValue, `time zone "%s" not recognized`, name)
}

func loadNamed(key string) *time.Location {
	f := zoneFiles()[key]
	if f == nil {
		return nil
	}
	zones.mu.Lock()
	defer zones.mu.Unlock()
	if z := zones.loaded[key]; z != nil {
		return z
	}
	r, err := f.Open()
	if err != nil {
		panic("datum: embedded time zone " + f.Name + ": " + err.Error())
	}
	data, err := io.ReadAll(r)
	if err != nil {
		panic("datum: embedded time zone " + f.Name + ": " + err.Error())
	}
	z, err := time.LoadLocationFromTZData(f.Name, data)
	if err != nil {
		panic("datum: embedded time zone " + f.Name + ": " + err.Error())
	}
	zones.loaded[key] = z
	return z
}

// FixedZone is a zone at a constant offset, named as PostgreSQL names what SET
// TIME ZONE with a number makes: "<+03>-03".
func FixedZone(secondsEast int) *time.Location {
	abbrev := string(appendZone(nil, secondsEast))
	return time.FixedZone("<"+abbrev+">"+string(appendZone(nil, -secondsEast)), secondsEast)
}

// posixZone builds the zone of a POSIX TZ string, nil if it is none. Like
// PostgreSQL it takes nearly anything for a name, and without rules daylight
// saving time follows those of the United States.
func posixZone(spec string) *time.Location {
	std, rest, ok := posixName(spec)
	if !ok {
		return nil
	}
	offset, rest, ok := posixOffset(rest)
	if !ok {
		return nil
	}
	if rest == "" {
		return time.FixedZone(std, -offset)
	}
	dst, rest, ok := posixName(rest)
	if !ok || dst == "" || strings.ContainsAny(std+dst, "<>") {
		return nil
	}
	saving := offset - 3600
	if rest != "" && rest[0] != ',' {
		if saving, rest, ok = posixOffset(rest); !ok {
			return nil
		}
	}
	if rest == "" {
		rest = ",M3.2.0,M11.1.0"
	}
	if !posixRules(rest) {
		return nil
	}
	rule := "<" + std + ">" + posixTime(offset) + "<" + dst + ">" + posixTime(saving) + rest
	z, err := time.LoadLocationFromTZData(spec, ruleOnly(std, -offset, rule))
	if err != nil {
		return nil
	}
	return z
}

// posixName reads up to a digit, a sign or a comma, or what stands in <>.
func posixName(s string) (name, rest string, ok bool) {
	if strings.HasPrefix(s, "<") {
		end := strings.IndexByte(s, '>')
		if end < 0 {
			return "", "", false
		}
		return s[1:end], s[end+1:], true
	}
	i := 0
	for i < len(s) && !isDigit(s[i]) && s[i] != '+' && s[i] != '-' && s[i] != ',' {
		i++
	}
	return s[:i], s[i:], true
}

func posixTime(secs int) string {
	sign := ""
	if secs < 0 {
		sign, secs = "-", -secs
	}
	return fmt.Sprintf("%s%d:%02d:%02d", sign, secs/3600, secs/60%60, secs%60)
}

// posixRules checks ",start[/time],end[/time]" with dates as Mm.w.d, Jn or n.
func posixRules(s string) bool {
	parts := strings.Split(s, ",")
	if len(parts) != 3 || parts[0] != "" {
		return false
	}
	for _, p := range parts[1:] {
		date, at, timed := strings.Cut(p, "/")
		if timed {
			if _, rest, ok := posixOffset(at); !ok || rest != "" {
				return false
			}
		}
		if m, ok := strings.CutPrefix(date, "M"); ok {
			f := strings.Split(m, ".")
			if len(f) != 3 || !within(f[0], 1, 12) || !within(f[1], 1, 5) || !within(f[2], 0, 6) {
				return false
			}
			continue
		}
		julian, least := strings.CutPrefix(date, "J")
		if !within(julian, int(boolBit(least)), 365) {
			return false
		}
	}
	return true
}

func within(s string, lo, hi int) bool {
	v, ok := plainDigits(s)
	return ok && s != "" && len(s) <= 3 && v >= lo && v <= hi
}

// posixOffset reads [+-]h[h][:mm[:ss]] as seconds west.
func posixOffset(s string) (secs int, rest string, ok bool) {
	sign := 1
	if s != "" && (s[0] == '+' || s[0] == '-') {
		if s[0] == '-' {
			sign = -1
		}
		s = s[1:]
	}
	unit := 3600
	for part := 0; part < 3; part++ {
		n, digits := 0, 0
		for digits < len(s) && digits < 3 && isDigit(s[digits]) {
			n = n*10 + int(s[digits]-'0')
			digits++
		}
		if digits == 0 || part == 0 && n > 167 || part > 0 && n > 59 {
			return 0, "", false
		}
		secs += n * unit
		unit /= 60
		s = s[digits:]
		if s == "" || s[0] != ':' {
			break
		}
		s = s[1:]
	}
	return sign * secs, s, true
}

// ruleOnly makes a TZif file (RFC 8536) that has one period and a rule.
func ruleOnly(abbrev string, offset int, rule string) []byte {
	var b []byte
	part := func() {
		b = append(b, "TZif2"...)
		b = append(b, make([]byte, 15)...)
		for _, n := range []int{0, 0, 0, 0, 1, len(abbrev) + 1} {
			b = binary.BigEndian.AppendUint32(b, uint32(n))
		}
		b = binary.BigEndian.AppendUint32(b, uint32(int32(offset)))
		b = append(b, 0, 0)
		b = append(append(b, abbrev...), 0)
	}
	part()
	part()
	return append(append(append(b, '\n'), rule...), '\n')
}

func (f *Format) zone() *time.Location {
	if f == nil || f.Zone == nil {
		return time.UTC
	}
	return f.Zone
}

// instant is the Go time of a timestamptz.
func instant(us int64) time.Time {
	secs := floorDiv(us, usPerSec)
	return time.Unix(secs+unixEpochSecs, (us-secs*usPerSec)*1000)
}

// TZOffset is a zone's offset and abbreviation at a moment (a timestamptz).
func TZOffset(us int64, z *time.Location) (secondsEast int, abbrev string) {
	if z == time.UTC {
		return 0, "UTC"
	}
	abbrev, secondsEast = instant(us).In(z).Zone()
	return secondsEast, abbrev
}

// localOffset is the offset in force at a local time (microseconds as in a
// timestamp). Where the local time does not exist or exists twice, standard
// time is meant: the offset before a step forward, after a step back
// (DetermineTimeZoneOffset).
func localOffset(us int64, z *time.Location) int {
	if z == time.UTC {
		return 0
	}
	secs := floorDiv(us, usPerSec) + unixEpochSecs
	t := time.Unix(secs-86400, 0).In(z)
	_, before := t.Zone()
	_, end := t.ZoneBounds()
	if end.IsZero() {
		return before
	}
	boundary := end.Unix()
	_, after := end.Zone()
	bt, at := secs-int64(before), secs-int64(after)
	switch {
	case bt < boundary && at < boundary:
		return before
	case bt > boundary && at >= boundary:
		return after
	case bt > at:
		return before
	}
	return after
}

// TimestampToTZ reads a local time in a zone; infinities stay, 22008 out of
// range.
func TimestampToTZ(us int64, z *time.Location) (int64, error) {
	if !finiteTimestamp(us) {
		return us, nil
	}
	t := us - int64(localOffset(us, z))*usPerSec
	if !validTimestamp(t) {
		return 0, errTimestampRange()
	}
	return t, nil
}

// TZToTimestamp is the local time of a moment in a zone.
func TZToTimestamp(us int64, z *time.Location) (int64, error) {
	if !finiteTimestamp(us) {
		return us, nil
	}
	off, _ := TZOffset(us, z)
	t := us + int64(off)*usPerSec
	if !validTimestamp(t) {
		return 0, errTimestampRange()
	}
	return t, nil
}

// DateToTimestampTZ is the cast: midnight in the zone.
func DateToTimestampTZ(days int32, z *time.Location) (int64, error) {
	t, err := DateToTimestamp(days)
	if err != nil {
		return 0, err
	}
	return TimestampToTZ(t, z)
}

// TimestampTZToDate is the cast: the day it is in the zone.
func TimestampTZToDate(us int64, z *time.Location) (int32, error) {
	t, err := TZToTimestamp(us, z)
	if err != nil {
		return 0, err
	}
	return TimestampToDate(t)
}
