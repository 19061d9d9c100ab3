package datum

import (
	"cmp"
	"encoding/binary"
	"strconv"
	"strings"

	"github.com/tallystick/tallystick/sql/pgerr"
)

func errSyntax(typ, s string) error {
	return pgerr.New(pgerr.InvalidTextRepresentation, `invalid input syntax for type %s: "%s"`, typ, s)
}

func errOutOfRange(s, typ string) error {
	return pgerr.New(pgerr.NumericValueOutOfRange, `value "%s" is out of range for type %s`, s, typ)
}

func errBinary() error {
	return pgerr.New(pgerr.InvalidBinaryRepresentation, "incorrect binary data format")
}

// errShort is what PostgreSQL's pq_copymsgbytes says of a value cut short.
func errShort() error {
	return pgerr.New(pgerr.ProtocolViolation, "insufficient data left in message")
}

// isSpace is C's isspace in the C locale.
func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

func trimSpace(s string) string {
	for s != "" && isSpace(s[0]) {
		s = s[1:]
	}
	for s != "" && isSpace(s[len(s)-1]) {
		s = s[:len(s)-1]
	}
	return s
}

func parseBool(s string, _ int32, _ *Format) (Datum, error) {
	t := trimSpace(s)
	if v, ok := boolWord(t); ok {
		return Bool(v), nil
	}
	return Null, errSyntax("boolean", s)
}

// boolWord accepts unique prefixes of the words for true and false.
func boolWord(t string) (v, ok bool) {
	if t == "" || len(t) > 5 {
		return false, false
	}
	if t == "1" || t == "0" {
		return t == "1", true
	}
	is := func(word string, least int) bool {
		return len(t) >= least && len(t) <= len(word) && strings.EqualFold(word[:len(t)], t)
	}
	switch {
	case is("true", 1), is("yes", 1), is("on", 2):
		return true, true
	case is("false", 1), is("no", 1), is("off", 2):
		return false, true
	}
	return false, false
}

func appendBool(dst []byte, d Datum, _ *Format) []byte {
	if d.n != 0 {
		return append(dst, 't')
	}
	return append(dst, 'f')
}

func parseBinaryBool(b []byte, _ int32) (Datum, error) {
	if len(b) < 1 {
		return Null, errShort()
	}
	if len(b) != 1 {
		return Null, errBinary()
	}
	return Bool(b[0] != 0), nil
}

func appendBinaryByte(dst []byte, d Datum) []byte { return append(dst, byte(d.n)) }

// parseSigned reads an integer the way pg_strtoint32 and its kin do.
func parseSigned(s string, bits uint, typ string) (int64, error) {
	t := s
	for t != "" && isSpace(t[0]) {
		t = t[1:]
	}
	neg := false
	if t != "" && (t[0] == '-' || t[0] == '+') {
		neg = t[0] == '-'
		t = t[1:]
	}
	if t == "" || t[0] < '0' || t[0] > '9' {
		return 0, errSyntax(typ, s)
	}
	var u uint64
	limit := uint64(1)<<(bits-1) - 1
	if neg {
		limit++
	}
	over := false
	i := 0
	for ; i < len(t) && t[i] >= '0' && t[i] <= '9'; i++ {
		digit := uint64(t[i] - '0')
		if u > (limit-digit)/10 {
			over = true
			break
		}
		u = u*10 + digit
	}
	if over {
		return 0, errOutOfRange(s, typ)
	}
	for i < len(t) && isSpace(t[i]) {
		i++
	}
	if i != len(t) {
		return 0, errSyntax(typ, s)
	}
	if neg {
		return -int64(u), nil
	}
	return int64(u), nil
}

func parseInt2(s string, _ int32, _ *Format) (Datum, error) {
	v, err := parseSigned(s, 16, "smallint")
	return Int(v), err
}

func parseInt4(s string, _ int32, _ *Format) (Datum, error) {
	v, err := parseSigned(s, 32, "integer")
	return Int(v), err
}

func parseInt8(s string, _ int32, _ *Format) (Datum, error) {
	v, err := parseSigned(s, 64, "bigint")
	return Int(v), err
}

func appendInt(dst []byte, d Datum, _ *Format) []byte {
	return strconv.AppendInt(dst, int64(d.n), 10)
}

func appendUint8(dst []byte, d Datum, _ *Format) []byte {
	return strconv.AppendUint(dst, d.n, 10)
}

func checkLen(b []byte, n int) error {
	if len(b) < n {
		return errShort()
	}
	if len(b) > n {
		return errBinary()
	}
	return nil
}

func parseBinaryInt2(b []byte, _ int32) (Datum, error) {
	if err := checkLen(b, 2); err != nil {
		return Null, err
	}
	return Int(int64(int16(binary.BigEndian.Uint16(b)))), nil
}

func parseBinaryInt4(b []byte, _ int32) (Datum, error) {
	if err := checkLen(b, 4); err != nil {
		return Null, err
	}
	return Int(int64(int32(binary.BigEndian.Uint32(b)))), nil
}

func parseBinaryInt8(b []byte, _ int32) (Datum, error) {
	if err := checkLen(b, 8); err != nil {
		return Null, err
	}
	return Int(int64(binary.BigEndian.Uint64(b))), nil
}

func parseBinaryUint4(b []byte, _ int32) (Datum, error) {
	if err := checkLen(b, 4); err != nil {
		return Null, err
	}
	return Int(int64(binary.BigEndian.Uint32(b))), nil
}

func appendBinary2(dst []byte, d Datum) []byte {
	return binary.BigEndian.AppendUint16(dst, uint16(d.n))
}

func appendBinary4(dst []byte, d Datum) []byte {
	return binary.BigEndian.AppendUint32(dst, uint32(d.n))
}

func appendBinary8(dst []byte, d Datum) []byte { return binary.BigEndian.AppendUint64(dst, d.n) }

func compareInt(a, b Datum) int  { return cmp.Compare(int64(a.n), int64(b.n)) }
func compareUint(a, b Datum) int { return cmp.Compare(a.n, b.n) }

// parseUint reads an oid, xid or cid as strtoul does: a sign is allowed and
// wraps around in 32 bits.
func parseUint(s string, typ string) (uint64, error) {
	t := trimSpace(s)
	neg := false
	u := t
	if u != "" && (u[0] == '-' || u[0] == '+') {
		neg = u[0] == '-'
		u = u[1:]
	}
	if u == "" {
		return 0, errSyntax(typ, s)
	}
	for i := range len(u) {
		if u[i] < '0' || u[i] > '9' {
			return 0, errSyntax(typ, s)
		}
	}
	v, err := strconv.ParseUint(u, 10, 32)
	if err != nil || neg && v > 1<<31 {
		return 0, errOutOfRange(s, typ)
	}
	if neg {
		v = uint64(uint32(-v))
	}
	return v, nil
}

func parseOIDText(s string, _ int32, _ *Format) (Datum, error) {
	v, err := parseUint(s, "oid")
	return Datum{n: v}, err
}

// parseXID reads xid and cid, which take any digits and do not complain.
func parseXID(s string, _ int32, _ *Format) (Datum, error) {
	v, err := parseUint(s, "xid")
	return Datum{n: v}, err
}

func parseXID8(s string, _ int32, _ *Format) (Datum, error) {
	v, err := strconv.ParseUint(trimSpace(s), 10, 64)
	if err != nil {
		return Null, errSyntax("xid8", s)
	}
	return Datum{n: v}, nil
}

// MakeTID makes a tid from a block and an offset.
func MakeTID(block uint32, offset uint16) Datum {
	return Datum{n: uint64(block)<<16 | uint64(offset)}
}

func parseTID(s string, _ int32, _ *Format) (Datum, error) {
	t := trimSpace(s)
	if len(t) >= 5 && t[0] == '(' && t[len(t)-1] == ')' {
		if blk, off, ok := strings.Cut(t[1:len(t)-1], ","); ok {
			b, err1 := strconv.ParseUint(blk, 10, 32)
			o, err2 := strconv.ParseUint(off, 10, 16)
			if err1 == nil && err2 == nil {
				return MakeTID(uint32(b), uint16(o)), nil
			}
		}
	}
	return Null, errSyntax("tid", s)
}

func appendTID(dst []byte, d Datum, _ *Format) []byte {
	dst = strconv.AppendUint(append(dst, '('), d.n>>16, 10)
	dst = strconv.AppendUint(append(dst, ','), d.n&0xffff, 10)
	return append(dst, ')')
}

func parseBinaryTID(b []byte, _ int32) (Datum, error) {
	if err := checkLen(b, 6); err != nil {
		return Null, err
	}
	return MakeTID(binary.BigEndian.Uint32(b), binary.BigEndian.Uint16(b[4:])), nil
}

func appendBinaryTID(dst []byte, d Datum) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(d.n>>16))
	return binary.BigEndian.AppendUint16(dst, uint16(d.n))
}

// regType gives the parser and printer of a reg* type. Names need a session's
// hooks; numbers and "-" always work.
func regType(t *Desc) (parse func(string, int32, *Format) (Datum, error), print func([]byte, Datum, *Format) []byte) {
	parse = func(s string, _ int32, f *Format) (Datum, error) {
		if s == "-" {
			return Datum{}, nil
		}
		if s != "" && s[0] >= '0' && s[0] <= '9' && strings.Trim(s, "0123456789") == "" {
			v, err := parseUint(s, "oid")
			return Datum{n: v}, err
		}
		if f == nil || f.RegOID == nil {
			return Null, pgerr.NotBuilt("names of type %s are not available here", t.Name)
		}
		oid, err := f.RegOID(t, s)
		return Datum{n: uint64(oid)}, err
	}
	print = func(dst []byte, d Datum, f *Format) []byte {
		if d.n == 0 {
			return append(dst, '-')
		}
		if f != nil && f.RegName != nil {
			if name := f.RegName(t, OID(d.n)); name != "" {
				return append(dst, name...)
			}
		}
		return strconv.AppendUint(dst, d.n, 10)
	}
	return parse, print
}

func parseVoid(string, int32, *Format) (Datum, error)     { return Datum{}, nil }
func appendNothing(dst []byte, _ Datum, _ *Format) []byte { return dst }
func appendNothingBinary(dst []byte, _ Datum) []byte      { return dst }
func parseBinaryVoid([]byte, int32) (Datum, error)        { return Datum{}, nil }

// pseudoParse refuses input of a pseudo-type that has no values.
func pseudoParse(t *Desc) func(string, int32, *Format) (Datum, error) {
	return func(string, int32, *Format) (Datum, error) {
		return Null, pgerr.New(pgerr.FeatureNotSupported, "cannot accept a value of type %s", t.Name)
	}
}

func pseudoParseBinary(t *Desc) func([]byte, int32) (Datum, error) {
	return func([]byte, int32) (Datum, error) {
		return Null, pgerr.New(pgerr.FeatureNotSupported, "cannot accept a value of type %s", t.Name)
	}
}
