package sql

import (
	"math"
	"strconv"
	"strings"

	"github.com/tallystick/tallystick/sql/pgerr"
)

// unit is a unit that values of a setting may be written with; per counts in the
// setting's base unit.
type unit struct {
	name string
	per  float64
}

// The units of PostgreSQL's guc.c, largest first: of memory in kilobytes, of time
// in milliseconds.
var (
	memoryUnits = []unit{{"TB", 1 << 30}, {"GB", 1 << 20}, {"MB", 1 << 10}, {"kB", 1}, {"B", 1.0 / 1024}}
	timeUnits   = []unit{{"d", 86400000}, {"h", 3600000}, {"min", 60000}, {"s", 1000}, {"ms", 1}, {"us", 0.001}}
)

// parseUnits reads a number with an optional unit into the base unit, between lo
// and hi.
func parseUnits(name, v string, units []unit, lo, hi int64) (int64, error) {
	text := strings.TrimSpace(v)
	end := strings.LastIndexAny(text, "0123456789.") + 1
	word, per := strings.TrimSpace(text[end:]), 1.0
	found := word == ""
	for _, u := range units {
		if u.name == word {
			per, found = u.per, true
		}
	}
	n, err := strconv.ParseFloat(text[:end], 64)
	if err != nil || !found || math.IsNaN(n) {
		e := pgerr.New(pgerr.InvalidParameterValue, "invalid value for parameter \"%s\": \"%s\"", name, v)
		if err == nil && !found {
			e = e.WithHint("Valid units for this parameter are %s.", unitNames(units))
		}
		return 0, e
	}
	n = math.RoundToEven(n * per)
	if n < float64(lo) || n > float64(hi) {
		base := units[unitBase(units)].name
		return 0, pgerr.New(pgerr.InvalidParameterValue, "%s %s is outside the valid range for parameter \"%s\" (%d .. %d)",
			strconv.FormatFloat(n, 'f', -1, 64), base, name, lo, hi)
	}
	return int64(n), nil
}

func unitBase(units []unit) int {
	for i, u := range units {
		if u.per == 1 {
			return i
		}
	}
	return 0
}

func unitNames(units []unit) string {
	var quoted []string
	for i := len(units) - 1; i >= 0; i-- {
		quoted = append(quoted, "\""+units[i].name+"\"")
	}
	last := len(quoted) - 1
	return strings.Join(quoted[:last], ", ") + ", and " + quoted[last]
}

// formatUnits writes a value with the largest unit that it is a multiple of.
func formatUnits(n int64, units []unit) string {
	if n == 0 {
		return "0"
	}
	for _, u := range units {
		if per := int64(u.per); per >= 1 && n%per == 0 {
			return strconv.FormatInt(n/per, 10) + u.name
		}
	}
	return strconv.FormatInt(n, 10)
}

// checkWorkMem is work_mem: what one node of a query keeps in memory.
func checkWorkMem(s *Session, v string) (string, error) {
	kb, err := parseUnits("work_mem", v, memoryUnits, 64, math.MaxInt32)
	if err != nil {
		return "", err
	}
	s.settings.workMem = kb << 10
	return formatUnits(kb, memoryUnits), nil
}

// checkStatementTimeout is statement_timeout; 0 is none.
func checkStatementTimeout(s *Session, v string) (string, error) {
	ms, err := parseUnits("statement_timeout", v, timeUnits, 0, math.MaxInt32)
	if err != nil {
		return "", err
	}
	s.settings.timeout = ms * 1000
	return formatUnits(ms, timeUnits), nil
}

// defaultWorkMem is that of work_mem, in bytes.
const defaultWorkMem = 64 << 20
