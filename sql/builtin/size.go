package builtin

import (
	"strconv"
	"strings"

	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// sizeUnits follow "bytes"; each is 1024 times the one before.
var sizeUnits = []string{"kB", "MB", "GB", "TB", "PB"}

// sizePretty is pg_size_pretty of a bigint.
func sizePretty(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
	const limit = 10 * 1024
	v := a[0].Int()
	abs := func(v int64) uint64 {
		if v < 0 {
			return -uint64(v)
		}
		return uint64(v)
	}
	if abs(v) < limit {
		return datum.Str(strconv.FormatInt(v, 10) + " bytes"), nil
	}
	v /= 1 << 9 // keep one bit more for rounding
	for i, unit := range sizeUnits {
		if abs(v) < 2*limit-1 || i == len(sizeUnits)-1 {
			return datum.Str(strconv.FormatInt(halfRounded(v), 10) + " " + unit), nil
		}
		v /= 1024
	}
	return datum.Null, nil
}

func halfRounded(v int64) int64 {
	if v < 0 {
		return (v - 1) / 2
	}
	return (v + 1) / 2
}

// sizePrettyNumeric is pg_size_pretty of a numeric.
func sizePrettyNumeric(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
	v := a[0]
	below := func(limit int64) bool {
		return datum.NumericCmp(datum.NumericAbs(v), datum.NumericFromInt64(limit)) < 0
	}
	if below(10 * 1024) {
		return datum.Str(datum.NumericText(v) + " bytes"), nil
	}
	divide := func(by int64) (err error) {
		v, err = datum.NumericDivTrunc(v, datum.NumericFromInt64(by))
		return err
	}
	if err := divide(1 << 9); err != nil {
		return datum.Null, err
	}
	for i, unit := range sizeUnits {
		if below(20*1024-1) || i == len(sizeUnits)-1 {
			one := datum.NumericFromInt64(1)
			if datum.NumericCmp(v, datum.NumericFromInt64(0)) < 0 {
				one = datum.NumericNeg(one)
			}
			sum, err := datum.NumericAdd(v, one)
			if err != nil {
				return datum.Null, err
			}
			half, err := datum.NumericDivTrunc(sum, datum.NumericFromInt64(2))
			if err != nil {
				return datum.Null, err
			}
			return datum.Str(datum.NumericText(half) + " " + unit), nil
		}
		if err := divide(1024); err != nil {
			return datum.Null, err
		}
	}
	return datum.Null, nil
}

// sizeBytes is pg_size_bytes.
func sizeBytes(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
	s := strings.TrimSpace(a[0].Str())
	end := 0
	for end < len(s) && (s[end] >= '0' && s[end] <= '9' || s[end] == '.' || end == 0 && (s[0] == '-' || s[0] == '+')) {
		end++
	}
	if end < len(s) && (s[end] == 'e' || s[end] == 'E') {
		exp := end + 1
		if exp < len(s) && (s[exp] == '-' || s[exp] == '+') {
			exp++
		}
		for digits := exp; exp < len(s) && s[exp] >= '0' && s[exp] <= '9'; exp++ {
			end = max(exp+1, digits)
		}
	}
	num, err := datum.ParseNumeric(s[:end])
	if err != nil || end == 0 {
		return datum.Null, pgerr.New(pgerr.InvalidParameterValue, "invalid size: \"%s\"", a[0].Str())
	}
	unit := strings.TrimSpace(s[end:])
	factor := int64(1)
	if unit != "" && !strings.EqualFold(unit, "bytes") && !strings.EqualFold(unit, "B") {
		found := false
		for i, u := range sizeUnits {
			if strings.EqualFold(unit, u) {
				factor, found = 1<<(10*(i+1)), true
			}
		}
		if !found {
			return datum.Null, pgerr.New(pgerr.InvalidParameterValue, "invalid size: \"%s\"", a[0].Str()).
				WithDetail("Invalid size unit: \"%s\".", unit).
				WithHint("Valid units are \"bytes\", \"B\", \"kB\", \"MB\", \"GB\", \"TB\", and \"PB\".")
		}
	}
	p, err := datum.NumericMul(num, datum.NumericFromInt64(factor))
	if err != nil {
		return datum.Null, err
	}
	v, err := datum.NumericToInt64(p)
	return datum.Int(v), err
}

var sizeEvals = evalMap{
	"pg_size_pretty": sizePretty, "pg_size_pretty_numeric": sizePrettyNumeric, "pg_size_bytes": sizeBytes,
}
