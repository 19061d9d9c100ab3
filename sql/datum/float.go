package datum

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/tallystick/tallystick/sql/pgerr"
)

// parseFloat follows float8in_internal: C's strtod in the C locale and the
// words for infinity and NaN.
func parseFloat(s string, bits int, typ string) (float64, error) {
	t := trimSpace(s)
	if t == "" {
		return 0, errSyntax(typ, s)
	}
	if v, ok := floatWord(t); ok {
		return v, nil
	}
	if !plainFloat(t) {
		return 0, errSyntax(typ, s)
	}
	v, err := strconv.ParseFloat(t, bits)
	if err != nil || v == 0 && strings.ContainsAny(mantissa(t), "123456789") {
		return 0, pgerr.New(pgerr.NumericValueOutOfRange, `"%s" is out of range for type %s`, t, typ)
	}
	return v, nil
}

func mantissa(t string) string {
	if i := strings.IndexAny(t, "eE"); i >= 0 {
		return t[:i]
	}
	return t
}

func floatWord(t string) (float64, bool) {
	sign, w := 1, t
	if w[0] == '+' || w[0] == '-' {
		if w[0] == '-' {
			sign = -1
		}
		w = w[1:]
	}
	switch {
	case strings.EqualFold(w, "nan"):
		return math.Float64frombits(canonicalNaN), true
	case strings.EqualFold(w, "infinity"), strings.EqualFold(w, "inf"):
		return math.Inf(sign), true
	}
	return 0, false
}

// plainFloat reports whether t is a decimal floating-point constant; Go's own
// grammar knows underscores and other bases too.
func plainFloat(t string) bool {
	i := 0
	if t[0] == '+' || t[0] == '-' {
		i = 1
	}
	digits := 0
	for ; i < len(t) && isDigit(t[i]); i++ {
		digits++
	}
	if i < len(t) && t[i] == '.' {
		for i++; i < len(t) && isDigit(t[i]); i++ {
			digits++
		}
	}
	if digits == 0 {
		return false
	}
	if i < len(t) && (t[i] == 'e' || t[i] == 'E') {
		i++
		if i < len(t) && (t[i] == '+' || t[i] == '-') {
			i++
		}
		if i == len(t) {
			return false
		}
		for ; i < len(t) && isDigit(t[i]); i++ {
		}
	}
	return i == len(t)
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func parseFloat8(s string, _ int32, _ *Format) (Datum, error) {
	v, err := parseFloat(s, 64, "double precision")
	return Float(v), err
}

func parseFloat4(s string, _ int32, _ *Format) (Datum, error) {
	v, err := parseFloat(s, 32, "real")
	return Float(v), err
}

func appendFloat8(dst []byte, d Datum, f *Format) []byte {
	return appendFloat(dst, d.Float(), 64, 15, f)
}

func appendFloat4(dst []byte, d Datum, f *Format) []byte {
	return appendFloat(dst, d.Float(), 32, 6, f)
}

// appendFloat writes the shortest exact form when extra_float_digits is
// positive, else %g with the digits that are always significant plus that many.
func appendFloat(dst []byte, v float64, bits, digits int, f *Format) []byte {
	switch {
	case v != v:
		return append(dst, "NaN"...)
	case math.IsInf(v, 1):
		return append(dst, "Infinity"...)
	case math.IsInf(v, -1):
		return append(dst, "-Infinity"...)
	}
	if f == nil {
		f = &ContractFormat
	}
	if f.FloatDigits <= 0 {
		return strconv.AppendFloat(dst, v, 'g', max(digits+f.FloatDigits, 1), bits)
	}
	var room [32]byte
	e := strconv.AppendFloat(room[:0], v, 'e', -1, bits)
	exp := 0
	for i := len(e) - 1; i > 0; i-- {
		if e[i] == 'e' {
			exp, _ = strconv.Atoi(string(e[i+1:]))
			break
		}
	}
	if exp < -4 || exp >= digits {
		return append(dst, insideHalfway(e, v, bits)...)
	}
	return strconv.AppendFloat(dst, v, 'f', -1, bits)
}

// insideHalfway is PostgreSQL's way with 1e23 and its like, where the shortest
// form lies exactly halfway to the next float and reads back only because ties
// go to even: it takes the shortest form that needs no tie. Only integers of
// eight digits (float4) or sixteen (float8) and more have such forms.
func insideHalfway(e []byte, v float64, bits int) []byte {
	v = math.Abs(v)
	above := math.Nextafter(v, math.Inf(1))
	if bits == 32 {
		above = float64(math.Nextafter32(float32(v), float32(math.Inf(1))))
	}
	if v < 1<<24 || math.IsInf(above, 0) {
		return e
	}
	exact, _ := big.NewFloat(v).Int(nil)
	gap, _ := big.NewFloat(above).Int(nil)
	if gap.Sub(gap, exact).Sign() == 0 {
		return e // less than one apart
	}
	for prec := 0; prec <= 17; prec++ {
		shown, ok := new(big.Int).SetString(bigDigits(e), 10)
		if !ok {
			return e
		}
		shown.Sub(shown, exact)
		if shown.Lsh(shown, 1).CmpAbs(gap) < 0 {
			return e
		}
		sign := e[:bytes.IndexFunc(e, func(r rune) bool { return r != '-' })]
		e = strconv.AppendFloat(sign, v, 'e', prec, bits)
	}
	return e
}

// bigDigits turns d.ddde+xx into the digits of an integer; "" if it is none.
func bigDigits(e []byte) string {
	mant, exp, _ := strings.Cut(strings.TrimPrefix(string(e), "-"), "e")
	n, _ := strconv.Atoi(exp)
	whole, frac, _ := strings.Cut(mant, ".")
	if n < len(frac) {
		return ""
	}
	return whole + frac + strings.Repeat("0", n-len(frac))
}

func parseBinaryFloat8(b []byte, _ int32) (Datum, error) {
	if err := checkLen(b, 8); err != nil {
		return Null, err
	}
	v := math.Float64frombits(binary.BigEndian.Uint64(b))
	return Datum{n: floatBits(v)}, nil
}

func parseBinaryFloat4(b []byte, _ int32) (Datum, error) {
	if err := checkLen(b, 4); err != nil {
		return Null, err
	}
	v := float64(math.Float32frombits(binary.BigEndian.Uint32(b)))
	return Datum{n: floatBits(v)}, nil
}

func appendBinaryFloat8(dst []byte, d Datum) []byte {
	return binary.BigEndian.AppendUint64(dst, floatBits(d.Float()))
}

func appendBinaryFloat4(dst []byte, d Datum) []byte {
	f := d.Float()
	if f != f {
		return binary.BigEndian.AppendUint32(dst, 0x7fc00000)
	}
	return binary.BigEndian.AppendUint32(dst, math.Float32bits(float32(f)))
}

// compareFloat is float8_cmp_internal: NaN equals NaN and is above all.
func compareFloat(a, b Datum) int {
	x, y := a.Float(), b.Float()
	switch {
	case x < y:
		return -1
	case x > y:
		return 1
	case x == y:
		return 0
	case x != x && y != y:
		return 0
	case x != x:
		return 1
	}
	return -1
}
