package datum

import (
	"encoding/binary"
	"math"
)

// HashInt feeds a 64-bit integer into a hash. Hashes are the same on every
// platform and in every run: hash tables may be walked in their order.
func HashInt(h, v uint64) uint64 {
	x := h ^ v*0x9e3779b97f4a7c15
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// HashBytes feeds bytes and their length into a hash.
func HashBytes(h uint64, b []byte) uint64 {
	h ^= uint64(len(b)) * 0xd6e8feb86659fd93
	for len(b) >= 8 {
		h = HashInt(h, binary.LittleEndian.Uint64(b))
		b = b[8:]
	}
	if len(b) > 0 {
		var t [8]byte
		copy(t[:], b)
		h = HashInt(h, binary.LittleEndian.Uint64(t[:]))
	}
	return h
}

func hashIntDatum(h uint64, d Datum) uint64   { return HashInt(h, d.n) }
func hashBytesDatum(h uint64, d Datum) uint64 { return HashBytes(h, d.Bytes()) }

// canonicalNaN is the one NaN that is ever stored: which bits an operation
// leaves in a NaN differs between processors.
const canonicalNaN = 0x7ff8000000000000

// floatBits returns the bits of f with one form for every NaN.
func floatBits(f float64) uint64 {
	if f != f {
		return canonicalNaN
	}
	return math.Float64bits(f)
}

// hashFloat gives -0 and 0, and all NaNs, one hash; a float4 hashes like the
// float8 of the same value.
func hashFloat(h uint64, d Datum) uint64 {
	f := d.Float()
	if f == 0 {
		f = 0
	}
	return HashInt(h, floatBits(f)&^(1<<63)|boolBit(math.Signbit(f) && f != 0 && f == f)<<63)
}

func boolBit(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}
