package datum

import (
	"bytes"
	"encoding/binary"
	"math"

	"github.com/tallystick/tallystick/sql/pgerr"
)

// Markers before a key column. For descending columns they are complemented
// like everything else; nullsLow and nullsHigh are chosen so that nulls end up
// first or last all the same.
const (
	keyNullLow  = 0x00
	keyNotNull  = 0x01
	keyNullHigh = 0x02
)

// AppendKeyColumn appends one column of an index key: a marker that places
// nulls, then the value's ordered form; complemented as a whole if the column
// is descending. No key is a prefix of another key with the same column types.
func AppendKeyColumn(dst []byte, t Type, d Datum, desc, nullsFirst bool) []byte {
	start := len(dst)
	switch {
	case !d.IsNull():
		dst = t.AppendKey(append(dst, keyNotNull), d)
	case nullsFirst != desc:
		dst = append(dst, keyNullLow)
	default:
		dst = append(dst, keyNullHigh)
	}
	if desc {
		complement(dst[start:])
	}
	return dst
}

// SkipKeyColumn returns what follows one column written by [AppendKeyColumn].
func SkipKeyColumn(b []byte, t Type, desc bool) (rest []byte, err error) {
	if len(b) == 0 {
		return nil, errBadKey()
	}
	if desc {
		var room [128]byte
		c := append(room[:0], b...)
		complement(c)
		rest, err := skipAscending(c, t)
		if err != nil {
			return nil, err
		}
		return b[len(b)-len(rest):], nil
	}
	return skipAscending(b, t)
}

func skipAscending(b []byte, t Type) ([]byte, error) {
	switch b[0] {
	case keyNullLow, keyNullHigh:
		return b[1:], nil
	case keyNotNull:
		return t.SkipKey(b[1:])
	}
	return nil, errBadKey()
}

func complement(b []byte) {
	for i := range b {
		b[i] = ^b[i]
	}
}

func errBadKey() error { return pgerr.New(pgerr.DataCorrupted, "corrupt index key") }

// skipFixed makes a SkipKey for keys of n bytes.
func skipFixed(n int) func([]byte) ([]byte, error) {
	return func(b []byte) ([]byte, error) {
		if len(b) < n {
			return nil, errBadKey()
		}
		return b[n:], nil
	}
}

func keyByte(dst []byte, d Datum) []byte { return append(dst, byte(d.n)) }

func keyInt4(dst []byte, d Datum) []byte {
	return binary.BigEndian.AppendUint32(dst, uint32(d.n)^1<<31)
}

// keyInt8 is the key of all three integer types: a value of one can be looked up
// in an index over another.
func keyInt8(dst []byte, d Datum) []byte {
	return binary.BigEndian.AppendUint64(dst, d.n^1<<63)
}

func keyUint4(dst []byte, d Datum) []byte { return binary.BigEndian.AppendUint32(dst, uint32(d.n)) }
func keyUint8(dst []byte, d Datum) []byte { return binary.BigEndian.AppendUint64(dst, d.n) }

// keyFloat8 orders -Infinity < ... < 0 = -0 < ... < Infinity < NaN.
func keyFloat8(dst []byte, d Datum) []byte {
	f := d.Float()
	if f == 0 {
		return binary.BigEndian.AppendUint64(dst, 1<<63)
	}
	b := floatBits(f)
	if b>>63 != 0 {
		b = ^b
	} else {
		b |= 1 << 63
	}
	return binary.BigEndian.AppendUint64(dst, b)
}

func keyFloat4(dst []byte, d Datum) []byte {
	f := float32(d.Float())
	if f == 0 {
		return binary.BigEndian.AppendUint32(dst, 1<<31)
	}
	b := uint32(0x7fc00000)
	if f == f {
		b = math.Float32bits(f)
	}
	if b>>31 != 0 {
		b = ^b
	} else {
		b |= 1 << 31
	}
	return binary.BigEndian.AppendUint32(dst, b)
}

// keyRaw is for types of one length whose bytes are in order.
func keyRaw(dst []byte, d Datum) []byte { return append(dst, d.Bytes()...) }

func keyBytes(dst []byte, d Datum) []byte { return appendEscaped(dst, d.Bytes()) }

// appendEscaped writes b with 00 as 00 FF and ends it with 00 00, which sorts
// before every continuation.
func appendEscaped(dst, b []byte) []byte {
	for {
		i := bytes.IndexByte(b, 0)
		if i < 0 {
			break
		}
		dst = append(append(dst, b[:i]...), 0, 0xff)
		b = b[i+1:]
	}
	return append(append(dst, b...), 0, 0)
}

func skipEscaped(b []byte) ([]byte, error) {
	for {
		i := bytes.IndexByte(b, 0)
		if i < 0 || i+1 >= len(b) {
			return nil, errBadKey()
		}
		end := b[i+1]
		b = b[i+2:]
		switch end {
		case 0:
			return b, nil
		case 0xff:
		default:
			return nil, errBadKey()
		}
	}
}
