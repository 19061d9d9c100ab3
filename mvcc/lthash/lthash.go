package lthash

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
)

// Size is the length of the bytes of a sum.
const Size = 2048

const words = Size / 8

// Sum is the digest of a multiset: 1024 lanes of 16 bits, four to a word, the
// lowest first. The zero value is that of the empty multiset.
type Sum [words]uint64

// The high bits of the lanes of a word, and all others: sums and differences of
// lanes are computed without them, so that nothing carries into a neighbour, and
// the high bits, where nothing is left to carry, are exclusive ors.
const (
	high = 0x8000_8000_8000_8000
	low  = ^uint64(high)
)

// Add adds the elements of o.
func (s *Sum) Add(o *Sum) {
	for i := range s {
		a, b := s[i], o[i]
		s[i] = (a&low + b&low) ^ (a^b)&high
	}
}

// Sub takes the elements of o away.
func (s *Sum) Sub(o *Sum) {
	for i := range s {
		a, b := s[i], o[i]
		s[i] = ((a | high) - b&low) ^ (a^^b)&high
	}
}

// IsZero reports whether s is the sum of the empty multiset.
func (s *Sum) IsZero() bool { return *s == Sum{} }

// Hash is the SHA-256 of the bytes of the sum.
func (s *Sum) Hash() [32]byte {
	var b [Size]byte
	s.put(b[:])
	return sha256.Sum256(b[:])
}

// Append appends the bytes of the sum, the lanes in order and little-endian.
func (s *Sum) Append(dst []byte) []byte {
	n := len(dst)
	dst = append(dst, make([]byte, Size)...)
	s.put(dst[n:])
	return dst
}

func (s *Sum) put(dst []byte) {
	for i, w := range s {
		binary.LittleEndian.PutUint64(dst[8*i:], w)
	}
}

// Decode reads what Append wrote.
func Decode(b []byte) (*Sum, error) {
	if len(b) != Size {
		return nil, fmt.Errorf("lthash: a sum has %d bytes, not %d", Size, len(b))
	}
	s := new(Sum)
	for i := range s {
		s[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
	return s, nil
}

// Expander expands elements; it is reused from one to the next. The zero value
// is ready. Not safe for concurrent use.
type Expander struct {
	stream [Size]byte
}

// zeroIV is the initial counter: every key encrypts one stream.
var zeroIV [aes.BlockSize]byte

// expand fills the stream of an element.
func (x *Expander) expand(element []byte) {
	key := sha256.Sum256(element)
	b, err := aes.NewCipher(key[:])
	if err != nil {
		panic(err) // the length of the key is right
	}
	clear(x.stream[:])
	cipher.NewCTR(b, zeroIV[:]).XORKeyStream(x.stream[:], x.stream[:])
}

// Add adds an element to a sum.
func (x *Expander) Add(s *Sum, element []byte) {
	x.expand(element)
	for i := range s {
		a, b := s[i], binary.LittleEndian.Uint64(x.stream[8*i:])
		s[i] = (a&low + b&low) ^ (a^b)&high
	}
}

// Sub takes an element away from a sum.
func (x *Expander) Sub(s *Sum, element []byte) {
	x.expand(element)
	for i := range s {
		a, b := s[i], binary.LittleEndian.Uint64(x.stream[8*i:])
		s[i] = ((a | high) - b&low) ^ (a^^b)&high
	}
}
