package block

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"unicode/utf8"
)

// ErrMalformed is wrapped by every error of a decoder.
var ErrMalformed = errors.New("malformed")

func malformed(format string, args ...any) error {
	return fmt.Errorf("block: %w: %s", ErrMalformed, fmt.Sprintf(format, args...))
}

func appendString[T string | []byte](b []byte, s T) []byte {
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}

func appendInt64(b []byte, v int64) []byte {
	return binary.BigEndian.AppendUint64(b, uint64(v))
}

// uvarintLen is the length of the shortest varint of v.
func uvarintLen(v uint64) int { return (bits.Len64(v|1) + 6) / 7 }

// reader consumes canonical bytes. The first failure sticks; later reads return
// zero values, so that callers check err where it matters and at the end.
type reader struct {
	buf []byte
	off int
	err error
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = malformed("offset %d: %s", r.off, fmt.Sprintf(format, args...))
	}
}

// take returns the next n bytes, which alias the input.
func (r *reader) take(n int, what string) []byte {
	if r.err != nil {
		return nil
	}
	if n > len(r.buf)-r.off {
		r.fail("%s is cut off", what)
		return nil
	}
	b := r.buf[r.off : r.off+n : r.off+n]
	r.off += n
	return b
}

// byte reads one byte.
func (r *reader) byte(what string) byte {
	if b := r.take(1, what); b != nil {
		return b[0]
	}
	return 0
}

// version refuses every format version but want.
func (r *reader) version(want byte, what string) {
	if v := r.byte(what + " version"); r.err == nil && v != want {
		r.off--
		r.fail("%s version %d is not known", what, v)
	}
}

// uvarint reads a varint of the shortest form, at most limit.
func (r *reader) uvarint(limit uint64, what string) uint64 {
	if r.err != nil {
		return 0
	}
	v, n := binary.Uvarint(r.buf[r.off:])
	switch {
	case n <= 0:
		r.fail("%s is no varint", what)
	case n != uvarintLen(v):
		r.fail("%s is not in its shortest form", what)
	case v > limit:
		r.fail("%s is %d, more than %d", what, v, limit)
	default:
		r.off += n
		return v
	}
	return 0
}

// bytes reads a length up to limit and that many bytes, which alias the input.
func (r *reader) bytes(limit int, what string) []byte {
	n := r.uvarint(uint64(limit), what)
	return r.take(int(n), what)
}

// time reads a timestamp in microseconds.
func (r *reader) time(what string) int64 {
	b := r.take(8, what)
	if b == nil {
		return 0
	}
	v := binary.BigEndian.Uint64(b)
	if v > MaxTime {
		r.off -= 8
		r.fail("%s is outside of 1970 to 9999", what)
		return 0
	}
	return int64(v)
}

// end refuses trailing bytes.
func (r *reader) end() error {
	if r.err == nil && r.off != len(r.buf) {
		r.fail("%d trailing bytes", len(r.buf)-r.off)
	}
	return r.err
}

// checkText reports why s is no text of 1 to limit bytes.
func checkText[T string | []byte](s T, limit int) error {
	if len(s) == 0 || len(s) > limit {
		return fmt.Errorf("has %d bytes, not 1 to %d", len(s), limit)
	}
	ascii := true
	for i := 0; i < len(s); i++ {
		if s[i] == 0 {
			return errors.New("contains a zero byte")
		}
		ascii = ascii && s[i] < utf8.RuneSelf
	}
	if !ascii && !utf8.ValidString(string(s)) {
		return errors.New("is not valid UTF-8")
	}
	return nil
}
