package builtin

import (
	"crypto/md5"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"math/bits"
	"strings"
	"unicode/utf8"

	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

func hash(f func(b []byte) []byte) Eval {
	return func(c *Ctx, a []datum.Datum) (datum.Datum, error) {
		if err := c.Budget.Spend(int64(len(a[0].Str())) / 64); err != nil {
			return datum.Null, err
		}
		return datum.Bytes(f(a[0].Bytes())), nil
	}
}

func md5Hex(b []byte) []byte {
	sum := md5.Sum(b)
	return hex.AppendEncode(nil, sum[:])
}

// encode is encode(bytea, format).
func encode(c *Ctx, a []datum.Datum) (datum.Datum, error) {
	b := a[0].Bytes()
	switch strings.ToLower(a[1].Str()) {
	case "hex":
		return datum.Bytes(hex.AppendEncode(nil, b)), nil
	case "base64":
		return datum.Str(wrapBase64(base64.StdEncoding.EncodeToString(b))), nil
	case "escape":
		return datum.Bytes(encodeEscape(b)), nil
	}
	return datum.Null, unknownEncoding(a[1].Str())
}

func unknownEncoding(name string) error {
	return pgerr.New(pgerr.InvalidParameterValue, "unrecognized encoding: \"%s\"", name)
}

// wrapBase64 breaks lines after 76 characters.
func wrapBase64(s string) string {
	var b strings.Builder
	for len(s) > 76 {
		b.WriteString(s[:76])
		b.WriteByte('\n')
		s = s[76:]
	}
	b.WriteString(s)
	return b.String()
}

func encodeEscape(b []byte) []byte {
	var out []byte
	for _, c := range b {
		switch {
		case c == 0 || c >= 0x80:
			out = append(out, '\\', '0'+c>>6, '0'+c>>3&7, '0'+c&7)
		case c == '\\':
			out = append(out, '\\', '\\')
		default:
			out = append(out, c)
		}
	}
	return out
}

// decode is decode(text, format).
func decode(c *Ctx, a []datum.Datum) (datum.Datum, error) {
	s := a[0].Str()
	switch strings.ToLower(a[1].Str()) {
	case "hex":
		return decodeHex(s)
	case "base64":
		return decodeBase64(s)
	case "escape":
		return decodeEscape(s)
	}
	return datum.Null, unknownEncoding(a[1].Str())
}

func isBlank(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

func decodeHex(s string) (datum.Datum, error) {
	var out []byte
	for i := 0; i < len(s); {
		if isBlank(s[i]) {
			i++
			continue
		}
		hi, err := hexNibble(s[i:])
		if err != nil {
			return datum.Null, err
		}
		i++
		if i == len(s) {
			return datum.Null, pgerr.New(pgerr.InvalidParameterValue, "invalid hexadecimal data: odd number of digits")
		}
		lo, err := hexNibble(s[i:])
		if err != nil {
			return datum.Null, err
		}
		i++
		out = append(out, hi<<4|lo)
	}
	return datum.Bytes(out), nil
}

func hexNibble(s string) (byte, error) {
	switch c := s[0]; {
	case c >= '0' && c <= '9':
		return c - '0', nil
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10, nil
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10, nil
	}
	_, n := utf8.DecodeRuneInString(s)
	return 0, pgerr.New(pgerr.InvalidParameterValue, "invalid hexadecimal digit: \"%s\"", s[:n])
}

func decodeBase64(s string) (datum.Datum, error) {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	var out []byte
	var buf uint32
	pos, pads := 0, 0
	bad := func(format string, args ...any) (datum.Datum, error) {
		return datum.Null, pgerr.New(pgerr.InvalidParameterValue, format, args...)
	}
	for i := 0; i < len(s); i++ {
		if isBlank(s[i]) {
			continue
		}
		v := 0
		if s[i] == '=' {
			if pads == 0 {
				switch pos {
				case 2:
					pads = 1
				case 3:
					pads = 2
				default:
					return bad("unexpected \"=\" while decoding base64 sequence")
				}
			}
		} else if v = strings.IndexByte(alphabet, s[i]); v < 0 || pads > 0 {
			_, n := utf8.DecodeRuneInString(s[i:])
			return bad("invalid symbol \"%s\" found while decoding base64 sequence", s[i:i+n])
		}
		buf = buf<<6 | uint32(v)
		if pos++; pos < 4 {
			continue
		}
		out = append(out, byte(buf>>16))
		if pads == 0 || pads > 1 {
			out = append(out, byte(buf>>8))
		}
		if pads == 0 || pads > 2 {
			out = append(out, byte(buf))
		}
		buf, pos = 0, 0
	}
	if pos != 0 {
		return datum.Null, pgerr.New(pgerr.InvalidParameterValue, "invalid base64 end sequence").
			WithHint("Input data is missing padding, is truncated, or is otherwise corrupted.")
	}
	return datum.Bytes(out), nil
}

func decodeEscape(s string) (datum.Datum, error) {
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); {
		switch {
		case s[i] != '\\':
			out = append(out, s[i])
			i++
		case i+3 < len(s) && s[i+1] >= '0' && s[i+1] <= '3' && isOctal(s[i+2]) && isOctal(s[i+3]):
			out = append(out, (s[i+1]-'0')<<6|(s[i+2]-'0')<<3|s[i+3]-'0')
			i += 4
		case i+1 < len(s) && s[i+1] == '\\':
			out = append(out, '\\')
			i += 2
		default:
			return datum.Null, pgerr.New(pgerr.InvalidTextRepresentation, "invalid input syntax for type %s", "bytea")
		}
	}
	return datum.Bytes(out), nil
}

func isOctal(c byte) bool { return c >= '0' && c <= '7' }

// isUTF8Name recognizes the spellings of the one encoding there is.
func isUTF8Name(s string) bool {
	s = strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || r == ' ' {
			return -1
		}
		return r
	}, strings.ToLower(s))
	return s == "utf8" || s == "unicode"
}

// convertFrom is convert_from(bytea, 'UTF8').
func convertFrom(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
	if !isUTF8Name(a[1].Str()) {
		return datum.Null, pgerr.NotBuilt("conversion from encoding \"%s\" is not supported", a[1].Str())
	}
	if err := checkUTF8(a[0].Str()); err != nil {
		return datum.Null, err
	}
	return a[0], nil
}

func checkUTF8(s string) error {
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 || s[i] == 0 {
			return invalidBytes(s[i:])
		}
		i += n
	}
	return nil
}

// invalidBytes names as many bytes as the first one announces.
func invalidBytes(s string) error {
	n := 1
	switch c := s[0]; {
	case c >= 0xF0:
		n = 4
	case c >= 0xE0:
		n = 3
	case c >= 0xC0:
		n = 2
	}
	var b strings.Builder
	for i := range min(n, len(s)) {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString("0x" + hex.EncodeToString([]byte{s[i]}))
	}
	return pgerr.New(pgerr.CharacterNotInRepertoire, "invalid byte sequence for encoding \"UTF8\": %s", b.String())
}

func convertTo(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
	if !isUTF8Name(a[1].Str()) {
		return datum.Null, pgerr.NotBuilt("conversion to encoding \"%s\" is not supported", a[1].Str())
	}
	return a[0], nil
}

func byteIndex(a []datum.Datum) (int, error) {
	n, size := a[1].Int(), len(a[0].Str())
	if n < 0 || n >= int64(size) {
		return 0, pgerr.New(pgerr.ArraySubscriptError, "index %d out of valid range, 0..%d", n, size-1)
	}
	return int(n), nil
}

func getByte(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
	i, err := byteIndex(a)
	if err != nil {
		return datum.Null, err
	}
	return datum.Int(int64(a[0].Str()[i])), nil
}

func setByte(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
	i, err := byteIndex(a)
	if err != nil {
		return datum.Null, err
	}
	b := []byte(a[0].Str())
	b[i] = byte(a[2].Int())
	return datum.Bytes(b), nil
}

func bitIndex(a []datum.Datum) (int, uint, error) {
	n, size := a[1].Int(), int64(len(a[0].Str()))*8
	if n < 0 || n >= size {
		return 0, 0, pgerr.New(pgerr.ArraySubscriptError, "index %d out of valid range, 0..%d", n, size-1)
	}
	return int(n / 8), uint(n % 8), nil
}

func getBit(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
	i, bit, err := bitIndex(a)
	if err != nil {
		return datum.Null, err
	}
	return datum.Int(int64(a[0].Str()[i] >> bit & 1)), nil
}

func setBit(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
	i, bit, err := bitIndex(a)
	if err != nil {
		return datum.Null, err
	}
	v := a[2].Int()
	if v != 0 && v != 1 {
		return datum.Null, pgerr.New(pgerr.InvalidParameterValue, "new bit must be 0 or 1")
	}
	b := []byte(a[0].Str())
	b[i] = b[i]&^(1<<bit) | byte(v)<<bit
	return datum.Bytes(b), nil
}

func bitCount(s string) int {
	n := 0
	for i := range len(s) {
		n += bits.OnesCount8(s[i])
	}
	return n
}

var byteaEvals = evalMap{
	"md5_text": hash(md5Hex), "md5_bytea": hash(md5Hex),
	"sha224_bytea":  hash(func(b []byte) []byte { s := sha256.Sum224(b); return s[:] }),
	"sha256_bytea":  hash(func(b []byte) []byte { s := sha256.Sum256(b); return s[:] }),
	"sha384_bytea":  hash(func(b []byte) []byte { s := sha512.Sum384(b); return s[:] }),
	"sha512_bytea":  hash(func(b []byte) []byte { s := sha512.Sum512(b); return s[:] }),
	"binary_encode": encode, "binary_decode": decode,
	"pg_convert_from": convertFrom, "pg_convert_to": convertTo,
	"byteaGetByte": getByte, "byteaSetByte": setByte, "byteaGetBit": getBit, "byteaSetBit": setBit,
	"bytea_bit_count": textInt(bitCount),
}
