package datum

import (
	"strings"
	"unicode/utf8"

	"github.com/tallystick/tallystick/sql/pgerr"
)

// CheckText refuses what text cannot hold: a zero byte and bytes that are not
// UTF-8 (22021).
func CheckText(s string) error {
	if i := strings.IndexByte(s, 0); i >= 0 && utf8.ValidString(s[:i]) {
		return pgerr.New(pgerr.CharacterNotInRepertoire, `invalid byte sequence for encoding "UTF8": 0x00`)
	}
	if utf8.ValidString(s) {
		return nil
	}
	i := 0
	for i < len(s) {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 {
			break
		}
		i += n
	}
	return pgerr.New(pgerr.CharacterNotInRepertoire, `invalid byte sequence for encoding "UTF8": %s`, badSequence(s[i:]))
}

// badSequence lists the bytes that the first one announces, as PostgreSQL does.
func badSequence(s string) string {
	n := 1
	switch c := s[0]; {
	case c >= 0xf0 && c < 0xf8:
		n = 4
	case c >= 0xe0 && c < 0xf0:
		n = 3
	case c >= 0xc0 && c < 0xe0:
		n = 2
	}
	var b []byte
	for i := range min(n, len(s)) {
		if i > 0 {
			b = append(b, ' ')
		}
		b = append(b, '0', 'x', hexDigits[s[i]>>4], hexDigits[s[i]&15])
	}
	return string(b)
}

func parseText(s string, _ int32, _ *Format) (Datum, error) {
	if err := CheckText(s); err != nil {
		return Null, err
	}
	return Str(s), nil
}

func appendText(dst []byte, d Datum, _ *Format) []byte { return append(dst, d.Str()...) }

func parseBinaryText(b []byte, _ int32) (Datum, error) {
	d := Bytes(b)
	if err := CheckText(d.Str()); err != nil {
		return Null, err
	}
	return d, nil
}

func appendBinaryText(dst []byte, d Datum) []byte { return append(dst, d.Str()...) }

func compareText(a, b Datum) int { return strings.Compare(a.Str(), b.Str()) }

// charBoundary returns the byte length of the first n characters of s, or
// len(s) and false if s has no more than n.
func charBoundary(s string, n int) (int, bool) {
	if len(s) <= n {
		return len(s), false
	}
	i := 0
	for ; n > 0 && i < len(s); n-- {
		_, w := utf8.DecodeRuneInString(s[i:])
		i += w
	}
	return i, i < len(s)
}

func coerceVarChar(d Datum, mod int32, explicit bool) (Datum, error) {
	if mod < 4 {
		return d, nil
	}
	s := d.Str()
	end, longer := charBoundary(s, int(mod-4))
	if !longer {
		return d, nil
	}
	if !explicit && strings.Trim(s[end:], " ") != "" {
		return Null, pgerr.New(pgerr.StringDataRightTruncation, "value too long for type character varying(%d)", mod-4)
	}
	return Str(s[:end]), nil
}

func coerceBpChar(d Datum, mod int32, explicit bool) (Datum, error) {
	if mod < 4 {
		return d, nil
	}
	s := d.Str()
	want := int(mod - 4)
	end, longer := charBoundary(s, want)
	if longer {
		if !explicit && strings.Trim(s[end:], " ") != "" {
			return Null, pgerr.New(pgerr.StringDataRightTruncation, "value too long for type character(%d)", want)
		}
		return Str(s[:end]), nil
	}
	n := utf8.RuneCountInString(s)
	if n == want {
		return d, nil
	}
	b := make([]byte, len(s), len(s)+want-n)
	copy(b, s)
	for range want - n {
		b = append(b, ' ')
	}
	return Bytes(b), nil
}

func parseVarChar(s string, mod int32, _ *Format) (Datum, error) {
	if err := CheckText(s); err != nil {
		return Null, err
	}
	return coerceVarChar(Str(s), mod, false)
}

func parseBpChar(s string, mod int32, _ *Format) (Datum, error) {
	if err := CheckText(s); err != nil {
		return Null, err
	}
	return coerceBpChar(Str(s), mod, false)
}

func parseBinaryVarChar(b []byte, mod int32) (Datum, error) {
	d, err := parseBinaryText(b, mod)
	if err != nil {
		return Null, err
	}
	return coerceVarChar(d, mod, false)
}

func parseBinaryBpChar(b []byte, mod int32) (Datum, error) {
	d, err := parseBinaryText(b, mod)
	if err != nil {
		return Null, err
	}
	return coerceBpChar(d, mod, false)
}

// BpCharTrim returns a char(n) value without the blanks at its end, which do
// not count in comparisons and casts to other strings.
func BpCharTrim(d Datum) string { return strings.TrimRight(d.Str(), " ") }

func compareBpChar(a, b Datum) int { return strings.Compare(BpCharTrim(a), BpCharTrim(b)) }

func keyBpChar(dst []byte, d Datum) []byte { return keyBytes(dst, Str(BpCharTrim(d))) }

func hashBpChar(h uint64, d Datum) uint64 { return hashBytesDatum(h, Str(BpCharTrim(d))) }

// NameLen is the most bytes a name has (NAMEDATALEN - 1).
const NameLen = 63

// TruncateName cuts an identifier to [NameLen] bytes at a character boundary.
func TruncateName(s string) string {
	if len(s) <= NameLen {
		return s
	}
	n := NameLen
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

func parseName(s string, _ int32, _ *Format) (Datum, error) {
	if err := CheckText(s); err != nil {
		return Null, err
	}
	return Str(TruncateName(s)), nil
}

func parseBinaryName(b []byte, mod int32) (Datum, error) {
	d, err := parseBinaryText(b, mod)
	if err != nil {
		return Null, err
	}
	if d.n > NameLen {
		return Null, pgerr.New(pgerr.NameTooLong, "identifier too long").
			WithDetail("Identifier must be less than 64 characters.")
	}
	return d, nil
}

// "char" is one byte, kept as its unsigned value; text writes those above 0x7f
// as a backslash and three octal digits.
func parseChar(s string, _ int32, _ *Format) (Datum, error) {
	if s == "" {
		return Datum{}, nil
	}
	if len(s) == 4 && s[0] == '\\' && s[1] <= '3' && isOctal(s[1]) && isOctal(s[2]) && isOctal(s[3]) {
		return Datum{n: uint64((s[1]-'0')<<6 | (s[2]-'0')<<3 | (s[3] - '0'))}, nil
	}
	return Datum{n: uint64(s[0])}, nil
}

func appendChar(dst []byte, d Datum, _ *Format) []byte {
	c := byte(d.n)
	switch {
	case c == 0:
		return dst
	case c >= 0x80:
		return append(dst, '\\', '0'+c>>6, '0'+c>>3&7, '0'+c&7)
	}
	return append(dst, c)
}

func parseBinaryChar(b []byte, _ int32) (Datum, error) {
	if err := checkLen(b, 1); err != nil {
		return Null, err
	}
	return Datum{n: uint64(b[0])}, nil
}
