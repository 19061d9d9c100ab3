package mvcc

import (
	"bytes"
	"cmp"
	"math"
	"testing"

	"github.com/cockroachdb/pebble/v2"
)

func TestComparer(t *testing.T) {
	var prefixes, suffixes [][]byte
	for _, k := range []string{"", "\x00", "\x00\x00", "a", "a\x00", "a\x00b", "ab", "\x09", "\x0d", "\xff", "\xff\xff"} {
		prefixes = append(prefixes, appendPrefix(nil, []byte(k)))
	}
	for _, v := range []struct {
		block uint64
		seq   uint32
	}{{math.MaxUint64, math.MaxUint32}, {7, 2}, {7, 1}, {7, 0}, {6, 9}, {1, 0}} {
		suffixes = append(suffixes, appendSuffix(nil, v.block, v.seq))
	}
	if err := pebble.CheckComparer(&comparer, prefixes, suffixes); err != nil {
		t.Fatal(err)
	}
}

func TestReservedKeys(t *testing.T) {
	for _, c := range []struct {
		key string
		ok  bool
	}{
		{"", false},
		{"\x00", false},
		{"\x00\x00\x00\x00", false},
		{"\x00\x00\x00\x00m", false},
		{"\x00\x00\x00\x00\xff\xff", false},
		{"\x00\x00\x00\x01", true},
		{"\x00\x00\x01", true},
		{"a", true},
		{"\xff\xff\xff\xff", true},
	} {
		if err := checkKey([]byte(c.key)); (err == nil) != c.ok {
			t.Errorf("%q: %v", c.key, err)
		}
	}
	for _, enc := range [][]byte{appendMeta(nil, metaHeight, ""), appendMeta(nil, metaNamed, "\xff\xff")} {
		if !isMeta(enc) || bytes.Compare(enc, appendPrefix(nil, reservedEnd)) >= 0 {
			t.Errorf("%q is not below the callers' keys", enc)
		}
	}
}

// FuzzKey checks that a stored key decodes to what it was made of, and that
// stored keys order as (key ascending, block and sequence descending).
func FuzzKey(f *testing.F) {
	f.Add([]byte("a"), uint64(1), uint32(0), []byte("a\x00"), uint64(1), uint32(1))
	f.Add([]byte("\x00\x0d"), uint64(9), uint32(13), []byte("\x00"), uint64(13), uint32(9))
	f.Add([]byte{}, uint64(math.MaxUint64), uint32(math.MaxUint32), []byte("\xff"), uint64(256), uint32(0))
	f.Fuzz(func(t *testing.T, k1 []byte, b1 uint64, s1 uint32, k2 []byte, b2 uint64, s2 uint32) {
		b1, b2 = min(b1, math.MaxUint64-1), min(b2, math.MaxUint64-1) // heights end there
		e1, e2 := appendVersioned(nil, k1, b1, s1), appendVersioned(nil, k2, b2, s2)
		if len(e1) != versionedLen(k1, s1) {
			t.Fatalf("length %d, announced %d", len(e1), versionedLen(k1, s1))
		}
		key, block, seq, err := decodeVersioned(e1)
		if err != nil || !bytes.Equal(key, k1) || block != b1 || seq != s1 {
			t.Fatalf("%x decodes to %x %d %d %v", e1, key, block, seq, err)
		}
		want := cmp.Or(bytes.Compare(k1, k2), cmp.Compare(b2, b1), cmp.Compare(s2, s1))
		if got := comparer.Compare(e1, e2); got != want {
			t.Fatalf("compare %x %x: %d, want %d", e1, e2, got, want)
		}
		if got := comparer.Compare(appendPrefix(nil, k1), e2); got != cmp.Or(bytes.Compare(k1, k2), -1) {
			t.Fatalf("compare of prefix %x with %x: %d", k1, e2, got)
		}
		if n := comparer.Split(e1); !bytes.Equal(e1[:n], appendPrefix(nil, k1)) {
			t.Fatalf("split of %x at %d", e1, n)
		}
	})
}

// FuzzDecode checks that arbitrary bytes are refused or decode to something
// that encodes to the same bytes: one encoding only.
func FuzzDecode(f *testing.F) {
	f.Add(appendVersioned(nil, []byte("k"), 3, 4), []byte{0, 0, 0, 0, 0, 0, 0, 0, 1, 'r'})
	f.Add(appendVersioned(nil, []byte("k"), 3, 0), []byte{1, 0, 0, 0, 0, 0, 0, 0, 1})
	f.Add([]byte{13}, []byte{2})
	f.Add([]byte{}, []byte{})
	f.Fuzz(func(t *testing.T, enc, stored []byte) {
		if key, block, seq, err := decodeVersioned(enc); err == nil {
			if again := appendVersioned(nil, key, block, seq); !bytes.Equal(again, enc) {
				t.Fatalf("%x decodes, but encodes to %x", enc, again)
			}
		}
		if xid, dead, row, err := decodeValue(stored); err == nil {
			again := make([]byte, valueHeader+len(row))
			putValue(again, xid, dead, row)
			if !bytes.Equal(again, stored) {
				t.Fatalf("%x decodes, but encodes to %x", stored, again)
			}
		}
	})
}
