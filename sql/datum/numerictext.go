package datum

import (
	"encoding/binary"
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/tallystick/tallystick/sql/pgerr"
)

// ParseNumeric reads a numeric without a modifier.
func ParseNumeric(s string) (Datum, error) { return parseNumeric(s, -1, nil) }

func parseNumeric(s string, mod int32, _ *Format) (Datum, error) {
	d, ok, err := scanNumeric(trimSpace(s))
	if err != nil {
		return Null, err
	}
	if !ok {
		return Null, errSyntax("numeric", s)
	}
	if mod >= 4 {
		return coerceNumeric(d, mod, false)
	}
	return d, nil
}

// scanNumeric reads [sign] digits [. digits] [e exponent] or a word.
func scanNumeric(t string) (d Datum, ok bool, err error) {
	if t == "" {
		return Null, false, nil
	}
	neg := t[0] == '-'
	u := t
	if neg || t[0] == '+' {
		u = t[1:]
	}
	if u == "" {
		return Null, false, nil
	}
	if !isDigit(u[0]) && u[0] != '.' {
		switch {
		case strings.EqualFold(t, "nan"):
			return NumericNaN, true, nil
		case strings.EqualFold(u, "infinity"), strings.EqualFold(u, "inf"):
			if neg {
				return NumericNegInf, true, nil
			}
			return NumericPosInf, true, nil
		}
		return Null, false, nil
	}
	var v uint64
	digits, scale, significant, point := 0, 0, 0, -1
	i := 0
	for ; i < len(u); i++ {
		c := u[i]
		if c == '.' && point < 0 {
			point = i
			continue
		}
		if !isDigit(c) {
			break
		}
		digits++
		if point >= 0 {
			scale++
		}
		if significant > 0 || c != '0' {
			significant++
		}
		if significant <= 18 {
			v = v*10 + uint64(c-'0')
		}
	}
	if digits == 0 {
		return Null, false, nil
	}
	exp := 0
	if rest := u[i:]; rest != "" {
		if exp, ok = scanExponent(rest); !ok {
			return Null, false, nil
		}
		if exp > math.MaxInt32/2 || exp < -math.MaxInt32/2 {
			return Null, true, errNumericOverflow()
		}
	}
	if significant <= 18 && exp == 0 && scale <= numericMaxScale {
		return from128(neg && v != 0, 0, v, scale), true, nil
	}
	d, err = scanBig(u[:i], point, neg, scale-exp)
	return d, true, err
}

func scanExponent(s string) (int, bool) {
	if s[0] != 'e' && s[0] != 'E' || len(s) < 2 {
		return 0, false
	}
	t := s[1:]
	if t[0] == '+' || t[0] == '-' {
		t = t[1:]
	}
	if t == "" || !isDigit(t[0]) {
		return 0, false
	}
	for k := range len(t) {
		if !isDigit(t[k]) {
			return 0, false
		}
	}
	e, err := strconv.Atoi(s[1:])
	if err != nil {
		e = math.MaxInt32
	}
	return e, true
}

func scanBig(digits string, point int, neg bool, scale int) (Datum, error) {
	if point >= 0 {
		digits = digits[:point] + digits[point+1:]
	}
	digits = strings.TrimLeft(digits, "0")
	if scale > numericMaxScale || len(digits) > 0 && len(digits)-scale > numericMaxIntDigits {
		return Null, errNumericOverflow()
	}
	x := decimal{form: bigPositive, scale: scale}
	if digits != "" {
		x.coef.SetString(digits, 10)
	}
	if neg {
		x.coef.Neg(&x.coef)
	}
	if x.scale < 0 {
		if digits == "" {
			x.scale = 0
		}
		x.rescale(0)
	}
	return x.datum()
}

func appendNumeric(dst []byte, d Datum, _ *Format) []byte {
	var room [64]byte
	digits, neg, scale, special := numericDigits(room[:0], d)
	if special != "" {
		return append(dst, special...)
	}
	if neg {
		dst = append(dst, '-')
	}
	if len(digits) <= scale {
		dst = append(dst, '0', '.')
		for range scale - len(digits) {
			dst = append(dst, '0')
		}
		return append(dst, digits...)
	}
	dst = append(dst, digits[:len(digits)-scale]...)
	if scale > 0 {
		dst = append(append(dst, '.'), digits[len(digits)-scale:]...)
	}
	return dst
}

// numericDigits writes the decimal digits of the coefficient, without leading
// zeros except that 0 of scale 0 has one; special is the word of a NaN or an
// infinity.
func numericDigits(buf []byte, d Datum) (digits []byte, neg bool, scale int, special string) {
	if d.p == nil {
		v, s := d.smallParts()
		if v == 0 && s > 0 {
			return buf, false, s, ""
		}
		return strconv.AppendUint(buf, abs64(v), 10), v < 0, s, ""
	}
	var x decimal
	x.load(d)
	switch x.form {
	case bigNaN:
		return nil, false, 0, "NaN"
	case bigPosInf:
		return nil, false, 0, "Infinity"
	case bigNegInf:
		return nil, false, 0, "-Infinity"
	}
	if x.coef.Sign() == 0 {
		return buf, false, x.scale, ""
	}
	neg = x.coef.Sign() < 0
	x.coef.Abs(&x.coef)
	return x.coef.Append(buf, 10), neg, x.scale, ""
}

// NumericText is the text form of a numeric.
func NumericText(d Datum) string { return string(appendNumeric(nil, d, nil)) }

// NumericFromFloat converts a float8 as PostgreSQL does: through 15 significant
// digits.
func NumericFromFloat(v float64) Datum { return numericFromFloat(v, 64, 15) }

// NumericFromFloat4 converts a float4: through 6 significant digits.
func NumericFromFloat4(v float64) Datum { return numericFromFloat(v, 32, 6) }

func numericFromFloat(v float64, bits, digits int) Datum {
	switch {
	case v != v:
		return NumericNaN
	case math.IsInf(v, 1):
		return NumericPosInf
	case math.IsInf(v, -1):
		return NumericNegInf
	}
	var room [40]byte
	d, _, err := scanNumeric(string(strconv.AppendFloat(room[:0], v, 'g', digits, bits)))
	if err != nil { // a float has at most 309 integer and 345 fraction digits
		return NumericNaN
	}
	return d
}

// NumericToFloat converts to float8, correctly rounded; 22003 beyond its range.
func NumericToFloat(a Datum) (float64, error) {
	if a.p == nil {
		v, scale := a.smallParts()
		if abs64(v) < 1<<53 && scale <= 18 {
			return float64(v) / float64(pow10u[scale]), nil
		}
	}
	switch {
	case NumericIsNaN(a):
		return math.Float64frombits(canonicalNaN), nil
	case NumericIsInf(a) != 0:
		return math.Inf(NumericIsInf(a)), nil
	}
	return parseFloat(NumericText(a), 64, "double precision")
}

// The signs of the binary form.
const (
	wirePositive = 0x0000
	wireNegative = 0x4000
	wireNaN      = 0xc000
	wirePosInf   = 0xd000
	wireNegInf   = 0xf000

	// PostgreSQL sends bits of its header as the display scale of infinities.
	wireInfScale = 0x20
)

// appendBinaryNumeric writes numeric_send's form: counts of base-10000 digits,
// weight of the first, sign, display scale, digits.
func appendBinaryNumeric(dst []byte, d Datum) []byte {
	var room [64]byte
	digits, neg, scale, special := numericDigits(room[:0], d)
	header := func(n, weight int, sign uint16) {
		dst = binary.BigEndian.AppendUint16(dst, uint16(n))
		dst = binary.BigEndian.AppendUint16(dst, uint16(weight))
		dst = binary.BigEndian.AppendUint16(dst, sign)
		dst = binary.BigEndian.AppendUint16(dst, uint16(scale))
	}
	switch special {
	case "NaN":
		header(0, 0, wireNaN)
		return dst
	case "Infinity":
		scale = wireInfScale
		header(0, 0, wirePosInf)
		return dst
	case "-Infinity":
		scale = wireInfScale
		header(0, 0, wireNegInf)
		return dst
	}
	sign := uint16(wirePositive)
	if neg {
		sign = wireNegative
	}
	n := len(digits)
	for n > 0 && digits[n-1] == '0' {
		n--
	}
	if n == 0 {
		header(0, 0, sign)
		return dst
	}
	e := len(digits) - 1 - scale // exponent of the first digit
	weight := e >> 2
	lead := e - weight<<2 + 1
	groups := 1
	if n > lead {
		groups += (n - lead + 3) / 4
	}
	header(groups, weight, sign)
	at := lead - 4
	for range groups {
		g := uint16(0)
		for k := at; k < at+4; k++ {
			g *= 10
			if k >= 0 && k < n {
				g += uint16(digits[k] - '0')
			}
		}
		dst = binary.BigEndian.AppendUint16(dst, g)
		at += 4
	}
	return dst
}

func parseBinaryNumeric(b []byte, mod int32) (Datum, error) {
	if len(b) < 8 {
		return Null, errShort()
	}
	n := int(binary.BigEndian.Uint16(b))
	weight := int(int16(binary.BigEndian.Uint16(b[2:])))
	sign := binary.BigEndian.Uint16(b[4:])
	scale := int(binary.BigEndian.Uint16(b[6:]))
	b = b[8:]
	if len(b) < 2*n {
		return Null, errShort()
	}
	if len(b) > 2*n {
		return Null, errBinary()
	}
	bad := func(what string) error {
		return pgerr.New(pgerr.InvalidBinaryRepresentation, `invalid %s in external "numeric" value`, what)
	}
	switch sign {
	case wirePositive, wireNegative:
	case wireNaN:
		return NumericNaN, nil
	case wirePosInf:
		return coerceNumeric(NumericPosInf, mod, false)
	case wireNegInf:
		return coerceNumeric(NumericNegInf, mod, false)
	default:
		return Null, bad("sign")
	}
	if scale > numericMaxScale {
		return Null, bad("scale")
	}
	digits := make([]byte, 0, 4*n)
	for i := range n {
		g := binary.BigEndian.Uint16(b[2*i:])
		if g > 9999 {
			return Null, bad("digit")
		}
		digits = append(digits, byte('0'+g/1000), byte('0'+g/100%10), byte('0'+g/10%10), byte('0'+g%10))
	}
	x := decimal{form: bigPositive, scale: 4 * (n - 1 - weight)}
	if n > 0 {
		x.coef.SetString(string(digits), 10)
	} else {
		x.scale = scale
	}
	if sign == wireNegative {
		x.coef.Neg(&x.coef)
	}
	x.shift(scale, false)
	d, err := x.datum()
	if err != nil {
		return Null, err
	}
	return coerceNumeric(d, mod, false)
}

// Markers of numeric keys, in order of value.
const (
	keyNumNegInf   = 0x10
	keyNumNegative = 0x20
	keyNumZero     = 0x30
	keyNumPositive = 0x40
	keyNumPosInf   = 0x50
	keyNumNaN      = 0x60
)

// keyNumeric writes a marker and, for a number other than 0, its decimal
// exponent e (value = 0.d1d2... * 10^e) in three bytes and pairs of digits, each
// plus one, ended by 0; complemented after the marker if negative. Zeros at the
// end do not count, so 1.1 and 1.10 have one key.
func keyNumeric(dst []byte, d Datum) []byte {
	var room [64]byte
	digits, neg, scale, special := numericDigits(room[:0], d)
	switch special {
	case "NaN":
		return append(dst, keyNumNaN)
	case "Infinity":
		return append(dst, keyNumPosInf)
	case "-Infinity":
		return append(dst, keyNumNegInf)
	}
	e := len(digits) - scale
	n := len(digits)
	for n > 0 && digits[n-1] == '0' {
		n--
	}
	if n == 0 {
		return append(dst, keyNumZero)
	}
	if neg {
		dst = append(dst, keyNumNegative)
	} else {
		dst = append(dst, keyNumPositive)
	}
	start := len(dst)
	e += 1 << 23
	dst = append(dst, byte(e>>16), byte(e>>8), byte(e))
	for i := 0; i < n; i += 2 {
		pair := (digits[i] - '0') * 10
		if i+1 < n {
			pair += digits[i+1] - '0'
		}
		dst = append(dst, pair+1)
	}
	dst = append(dst, 0)
	if neg {
		complement(dst[start:])
	}
	return dst
}

func skipNumericKey(b []byte) ([]byte, error) {
	if len(b) == 0 {
		return nil, errBadKey()
	}
	end := byte(0)
	switch b[0] {
	case keyNumNegInf, keyNumZero, keyNumPosInf, keyNumNaN:
		return b[1:], nil
	case keyNumPositive:
	case keyNumNegative:
		end = 0xff
	default:
		return nil, errBadKey()
	}
	for i := 4; i < len(b); i++ {
		if b[i] == end {
			return b[i+1:], nil
		}
	}
	return nil, errBadKey()
}

// hashNumeric gives numbers that differ only in display scale one hash.
func hashNumeric(h uint64, d Datum) uint64 {
	if d.p == nil {
		v, scale := d.smallParts()
		return hashDecimal(h, v, scale)
	}
	var x decimal
	x.load(d)
	if !x.finite() {
		return HashInt(h, uint64(x.form)<<32)
	}
	if x.coef.Sign() == 0 {
		return hashDecimal(h, 0, 0)
	}
	ten := big.NewInt(10)
	var q, r big.Int
	for {
		if q.QuoRem(&x.coef, ten, &r); r.Sign() != 0 {
			break
		}
		x.coef.Set(&q)
		x.scale--
	}
	if x.coef.IsInt64() {
		return hashDecimal(h, x.coef.Int64(), x.scale)
	}
	h = HashInt(h, uint64(x.scale)<<1|boolBit(x.coef.Sign() < 0))
	return HashBytes(h, x.coef.Bytes())
}

func hashDecimal(h uint64, v int64, scale int) uint64 {
	if v == 0 {
		scale = 0
	}
	for v != 0 && v%10 == 0 {
		v /= 10
		scale--
	}
	return HashInt(HashInt(h, uint64(v)), uint64(scale))
}
