package datum

import (
	"bytes"
	"unicode/utf8"

	"github.com/tallystick/tallystick/sql/pgerr"
)

const hexDigits = "0123456789abcdef"

func hexValue(c byte) (byte, bool) {
	switch {
	case c >= '0' && c <= '9':
		return c - '0', true
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10, true
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}

// DecodeHex reads hexadecimal digits with white space between bytes, as
// decode(..., 'hex') and the hex form of bytea do (22023).
func DecodeHex(s string) ([]byte, error) {
	out := make([]byte, 0, len(s)/2)
	for i := 0; i < len(s); {
		c := s[i]
		if c == ' ' || c == '\n' || c == '\t' || c == '\r' {
			i++
			continue
		}
		hi, ok := hexValue(c)
		if !ok {
			return nil, errHexDigit(s[i:])
		}
		if i+1 >= len(s) {
			return nil, pgerr.New(pgerr.InvalidParameterValue, "invalid hexadecimal data: odd number of digits")
		}
		lo, ok := hexValue(s[i+1])
		if !ok {
			return nil, errHexDigit(s[i+1:])
		}
		out = append(out, hi<<4|lo)
		i += 2
	}
	return out, nil
}

func errHexDigit(s string) error {
	_, n := utf8.DecodeRuneInString(s)
	return pgerr.New(pgerr.InvalidParameterValue, `invalid hexadecimal digit: "%s"`, s[:n])
}

func parseBytea(s string, _ int32, _ *Format) (Datum, error) {
	if len(s) >= 2 && s[0] == '\\' && s[1] == 'x' {
		b, err := DecodeHex(s[2:])
		if err != nil {
			return Null, err
		}
		return Bytes(b), nil
	}
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); {
		switch {
		case s[i] != '\\':
			out = append(out, s[i])
			i++
		case i+3 < len(s) && s[i+1] >= '0' && s[i+1] <= '3' && isOctal(s[i+2]) && isOctal(s[i+3]):
			out = append(out, (s[i+1]-'0')<<6|(s[i+2]-'0')<<3|(s[i+3]-'0'))
			i += 4
		case i+1 < len(s) && s[i+1] == '\\':
			out = append(out, '\\')
			i += 2
		default:
			return Null, pgerr.New(pgerr.InvalidTextRepresentation, "invalid input syntax for type bytea")
		}
	}
	return Bytes(out), nil
}

func isOctal(c byte) bool { return c >= '0' && c <= '7' }

func appendBytea(dst []byte, d Datum, f *Format) []byte {
	b := d.Bytes()
	if f != nil && f.ByteaEscape {
		for _, c := range b {
			switch {
			case c == '\\':
				dst = append(dst, '\\', '\\')
			case c < 0x20 || c > 0x7e:
				dst = append(dst, '\\', '0'+c>>6, '0'+c>>3&7, '0'+c&7)
			default:
				dst = append(dst, c)
			}
		}
		return dst
	}
	dst = append(dst, '\\', 'x')
	for _, c := range b {
		dst = append(dst, hexDigits[c>>4], hexDigits[c&15])
	}
	return dst
}

func parseBinaryBytes(b []byte, _ int32) (Datum, error) { return Bytes(b), nil }
func appendBinaryBytes(dst []byte, d Datum) []byte      { return append(dst, d.Bytes()...) }
func compareBytes(a, b Datum) int                       { return bytes.Compare(a.Bytes(), b.Bytes()) }

// parseUUID accepts what uuid_in does: 32 digits, hyphens after any group of
// four, braces around.
func parseUUID(s string, _ int32, _ *Format) (Datum, error) {
	t := s
	braces := t != "" && t[0] == '{'
	if braces {
		t = t[1:]
	}
	out := make([]byte, 16)
	for i := range out {
		if len(t) < 2 {
			return Null, errSyntax("uuid", s)
		}
		hi, ok1 := hexValue(t[0])
		lo, ok2 := hexValue(t[1])
		if !ok1 || !ok2 {
			return Null, errSyntax("uuid", s)
		}
		out[i] = hi<<4 | lo
		t = t[2:]
		if i%2 == 1 && i < 15 && t != "" && t[0] == '-' {
			t = t[1:]
		}
	}
	if braces {
		if t == "" || t[0] != '}' {
			return Null, errSyntax("uuid", s)
		}
		t = t[1:]
	}
	if t != "" {
		return Null, errSyntax("uuid", s)
	}
	return Bytes(out), nil
}

func appendUUID(dst []byte, d Datum, _ *Format) []byte {
	for i, c := range d.Bytes() {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			dst = append(dst, '-')
		}
		dst = append(dst, hexDigits[c>>4], hexDigits[c&15])
	}
	return dst
}

func parseBinaryUUID(b []byte, _ int32) (Datum, error) {
	if err := checkLen(b, 16); err != nil {
		return Null, err
	}
	return Bytes(b), nil
}
