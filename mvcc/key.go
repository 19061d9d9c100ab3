package mvcc

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/cockroachdb/pebble/v2/cockroachkvs"
)

// The stored form of a key is
//
//	key 0x00                                    bare prefix, and records of the engine
//	key 0x00 block+1(8, big endian) 0x09          a version with sequence 0
//	key 0x00 block+1(8) seq(4, big endian) 0x0d   any other version
//
// The last byte is the length of the suffix with itself, so that the split
// point is found from the end whatever the key contains. The zero byte keeps
// the order of keys (k1 < k2 exactly if k1 0x00 < k2 0x00) and makes a bare
// prefix its own split point. Order of suffixes, newest first, and the columnar
// layout of (block, seq) in sstables are those of [cockroachkvs], whose walls
// and logical clocks have the very shape of a block and a sequence. A wall of
// zero means no version there, hence the one that is added to the block.
const (
	terminator  = 0x00
	suffixBlock = 8 + 1     // block, length byte
	suffixFull  = 8 + 4 + 1 // block, seq, length byte
)

// reservedEnd is the lowest key a caller may use: table id zero belongs to the
// engine, whose own records (height, format, Meta) live below this.
var reservedEnd = []byte{0, 0, 0, 1}

// checkKey refuses keys that belong to the engine.
func checkKey(key []byte) error {
	if bytes.Compare(key, reservedEnd) < 0 {
		return fmt.Errorf("mvcc: key %x lies in the reserved range (table id 0)", key)
	}
	return nil
}

// appendPrefix appends the stored form of key without a suffix.
func appendPrefix(dst, key []byte) []byte {
	return append(append(dst, key...), terminator)
}

// appendSuffix appends a version suffix.
func appendSuffix(dst []byte, block uint64, seq uint32) []byte {
	dst = binary.BigEndian.AppendUint64(dst, block+1)
	if seq == 0 {
		return append(dst, suffixBlock)
	}
	return append(binary.BigEndian.AppendUint32(dst, seq), suffixFull)
}

// appendVersioned appends the stored form of one version of key.
func appendVersioned(dst, key []byte, block uint64, seq uint32) []byte {
	return appendSuffix(appendPrefix(dst, key), block, seq)
}

// versionedLen is the length of what appendVersioned appends.
func versionedLen(key []byte, seq uint32) int {
	if seq == 0 {
		return len(key) + 1 + suffixBlock
	}
	return len(key) + 1 + suffixFull
}

// decodeVersioned splits a stored version into its key and its place. The key
// shares enc's memory.
func decodeVersioned(enc []byte) (key []byte, block uint64, seq uint32, err error) {
	if n := len(enc); n > 0 {
		switch p := n - int(enc[n-1]) - 1; {
		case p < 0 || enc[p] != terminator:
		case enc[n-1] == suffixFull:
			seq = binary.BigEndian.Uint32(enc[n-5:])
			if wall := binary.BigEndian.Uint64(enc[p+1:]); wall != 0 && seq != 0 {
				return enc[:p:p], wall - 1, seq, nil
			}
		case enc[n-1] == suffixBlock:
			if wall := binary.BigEndian.Uint64(enc[p+1:]); wall != 0 {
				return enc[:p:p], wall - 1, 0, nil
			}
		}
	}
	return nil, 0, 0, fmt.Errorf("mvcc: corruption: %x is not the key of a version", enc)
}

// A stored value is flags(1) xid(8, big endian) row.
const (
	flagTombstone = 1 << 0
	valueHeader   = 1 + 8
)

// putValue fills dst, which is valueHeader+len(row) long.
func putValue(dst []byte, xid uint64, tombstone bool, row []byte) {
	dst[0] = 0
	if tombstone {
		dst[0] = flagTombstone
	}
	binary.BigEndian.PutUint64(dst[1:], xid)
	copy(dst[valueHeader:], row)
}

// decodeValue splits a stored value; the row shares v's memory.
func decodeValue(v []byte) (xid uint64, tombstone bool, row []byte, err error) {
	if len(v) < valueHeader || v[0]&^flagTombstone != 0 || (v[0] != 0 && len(v) != valueHeader) {
		return 0, false, nil, fmt.Errorf("mvcc: corruption: %x is not the value of a version", v)
	}
	return binary.BigEndian.Uint64(v[1:]), v[0] != 0, v[valueHeader:len(v):len(v)], nil
}

// appendMeta appends the stored form of a record of the engine: kind and name
// below the reserved end, without a suffix.
func appendMeta(dst []byte, kind byte, name string) []byte {
	dst = append(dst, 0, 0, 0, 0, kind)
	dst = append(dst, name...)
	return append(dst, terminator)
}

// Kinds of records of the engine.
const (
	metaFormat = 'f' // format number of this layout, once
	metaHeight = 'h' // last committed block
	metaNamed  = 'm' // BlockBatch.SetMeta
)

// isMeta reports whether a stored key is a record of the engine.
func isMeta(enc []byte) bool { return string(enc) < string(reservedEnd) }

// comparer orders stored keys; schema lays them out in columns.
var (
	comparer = cockroachkvs.Comparer
	schema   = cockroachkvs.KeySchema
)
