package builtin

import (
	"math"
	"strconv"
	"strings"

	"github.com/tallystick/tallystick/sql/datum"
)

// numericToChar formats a numeric; integers come here too.
func numericToChar(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
	f, err := parseNumFormat(a[1].Str())
	if err != nil {
		return datum.Null, err
	}
	s, err := f.numeric(a[0])
	return datum.Str(s), err
}

func (f *numFormat) numeric(d datum.Datum) (string, error) {
	special := !isFinite(d)
	if f.roman {
		r, err := datum.NumericRound(d, 0)
		if err != nil || special {
			return f.romanNumber(0), err
		}
		v, err := datum.NumericToInt64(r)
		if err != nil {
			v = 0
		}
		return f.romanNumber(v), nil
	}
	if f.eeee {
		return f.scientific(d, special), nil
	}
	var err error
	if f.isMulti && !special {
		power, err := datum.NumericPower(datum.NumericFromInt64(10), datum.NumericFromInt64(int64(f.multi)))
		if err != nil {
			return "", err
		}
		if d, err = datum.NumericMul(d, power); err != nil {
			return "", err
		}
	}
	if d, err = datum.NumericRound(d, int32(f.post)); err != nil {
		return "", err
	}
	s := datum.NumericText(d)
	negative := strings.HasPrefix(s, "-")
	s = strings.TrimPrefix(s, "-")
	return f.writeNumber(s, negative), nil
}

// scientific writes d.ddde+XX with a blank or minus in front.
func (f *numFormat) scientific(d datum.Datum, special bool) string {
	if special {
		return " " + strings.Repeat("#", f.pre) + "." + strings.Repeat("#", f.post+4)
	}
	s := datum.NumericText(d)
	negative := strings.HasPrefix(s, "-")
	digits, exp := normalize(strings.TrimPrefix(s, "-"))
	digits, exp = roundDigits(digits, f.post+1, exp)
	out := " "
	if negative {
		out = "-"
	}
	out += digits[:1]
	if f.post > 0 {
		out += "." + digits[1:]
	}
	sign := "+"
	if exp < 0 {
		sign, exp = "-", -exp
	}
	if exp < 10 {
		sign += "0"
	}
	return out + "e" + sign + strconv.Itoa(exp)
}

// normalize splits a decimal into its significant digits and the exponent of
// the first one.
func normalize(s string) (digits string, exp int) {
	whole, frac, _ := strings.Cut(s, ".")
	digits = whole + frac
	exp = len(whole) - 1
	for len(digits) > 1 && digits[0] == '0' {
		digits = digits[1:]
		exp--
	}
	if digits == "0" {
		exp = 0
	}
	return digits, exp
}

// roundDigits rounds to n digits, half away from zero.
func roundDigits(digits string, n, exp int) (string, int) {
	if len(digits) <= n {
		return digits + strings.Repeat("0", n-len(digits)), exp
	}
	up := digits[n] >= '5'
	b := []byte(digits[:n])
	for i := n - 1; up && i >= 0; i-- {
		if b[i]++; b[i] > '9' {
			b[i] = '0'
		} else {
			up = false
		}
	}
	if up {
		return "1" + string(b[:n-1]), exp + 1
	}
	return string(b), exp
}

func intToChar(c *Ctx, a []datum.Datum) (datum.Datum, error) {
	b := [2]datum.Datum{datum.NumericFromInt64(a[0].Int()), a[1]}
	return numericToChar(c, b[:])
}

// floatToChar formats as C's printf does, with no more digits than the type has.
func floatToChar(digits int) Eval {
	return func(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
		f, err := parseNumFormat(a[1].Str())
		if err != nil {
			return datum.Null, err
		}
		v := a[0].Float()
		if math.IsNaN(v) || isInf(v) || f.roman || f.eeee {
			s, err := f.numeric(datum.NumericFromFloat(v))
			return datum.Str(s), err
		}
		if f.isMulti {
			v = float64(v * math.Pow10(f.multi)) // a table: exact up to 10^22
		}
		whole := len(strconv.FormatFloat(math.Abs(v), 'f', 0, 64))
		if whole >= digits {
			f.post = 0
		} else {
			f.post = min(f.post, digits-whole)
		}
		s := strconv.FormatFloat(math.Abs(v), 'f', f.post, 64)
		return datum.Str(f.writeNumber(s, math.Signbit(v))), nil
	}
}

var numFormatEvals = evalMap{
	"numeric_to_char": numericToChar, "int4_to_char": intToChar, "int8_to_char": intToChar,
	"float4_to_char": floatToChar(6), "float8_to_char": floatToChar(15), "numeric_to_number": toNumber,
}
