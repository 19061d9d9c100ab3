package blockstore

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/tallystick/tallystick/blockstore/block"
)

// Layout of a segment's header, 112 bytes:
//
//	0   magic "tallyseg"        56  previous hash, 32: of block first-1
//	8   format version, 4       88  salt, 16
//	12  segment number, 4       104 zero, 4
//	16  first height, 8         108 CRC-32C of bytes 0 to 107
//	24  network id, 32
//
// Layout of a record's head, 28 bytes, followed by the block:
//
//	0   magic "tsbk"            16  synced, 4
//	4   height, 8               20  CRC-32C of the block, salted
//	12  length of the block, 4  24  CRC-32C of bytes 0 to 23, salted
//
// synced is the length to which the segment was durable when the record was
// written.
const (
	segmentMagic       = "tallyseg"
	segmentVersion     = 1
	segmentHeaderBytes = 112
	saltBytes          = 16

	recordMagic     = "tsbk"
	recordHeadBytes = 28
)

// writeCategory is how Pebble's file systems account our writes.
const writeCategory vfs.DiskWriteCategory = "blockstore"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// segmentHeader is the decoded header of a segment file.
type segmentHeader struct {
	number  uint32
	first   uint64 // height of the first block in the segment
	network block.Hash
	prev    block.Hash // hash of block first-1
	salt    [saltBytes]byte
}

func (h *segmentHeader) encode() []byte {
	b := append(make([]byte, 0, segmentHeaderBytes), segmentMagic...)
	b = binary.LittleEndian.AppendUint32(b, segmentVersion)
	b = binary.LittleEndian.AppendUint32(b, h.number)
	b = binary.LittleEndian.AppendUint64(b, h.first)
	b = append(b, h.network[:]...)
	b = append(b, h.prev[:]...)
	b = append(b, h.salt[:]...)
	b = binary.LittleEndian.AppendUint32(b, 0)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// newSalt makes the salt of a new segment. It need not be secret from
// operators, only unknown to clients before the segment's blocks exist.
func newSalt() (s [saltBytes]byte) {
	rand.Read(s[:]) // never fails
	return s
}

func decodeSegmentHeader(b []byte) (segmentHeader, error) {
	var h segmentHeader
	if len(b) < segmentHeaderBytes {
		return h, errors.New("segment header is cut off")
	}
	if string(b[:8]) != segmentMagic {
		return h, errors.New("not a segment file")
	}
	if binary.LittleEndian.Uint32(b[108:]) != crc32.Checksum(b[:108], castagnoli) {
		return h, errors.New("checksum of the segment header does not match")
	}
	if v := binary.LittleEndian.Uint32(b[8:]); v != segmentVersion {
		return h, fmt.Errorf("segment format %d is not known", v)
	}
	h.number = binary.LittleEndian.Uint32(b[12:])
	h.first = binary.LittleEndian.Uint64(b[16:])
	copy(h.network[:], b[24:])
	copy(h.prev[:], b[56:])
	copy(h.salt[:], b[88:])
	return h, nil
}

// saltedCRC is the CRC-32C of the salt followed by b.
func (h *segmentHeader) saltedCRC(b []byte) uint32 {
	return crc32.Update(crc32.Checksum(h.salt[:], castagnoli), castagnoli, b)
}

// appendRecord appends the record of b for a segment that is durable up to
// synced.
func (h *segmentHeader) appendRecord(dst []byte, b *block.Block, synced uint32) []byte {
	start := len(dst)
	dst = append(dst, make([]byte, recordHeadBytes)...)
	dst = b.AppendEncoded(dst)
	head, body := dst[start:start+recordHeadBytes], dst[start+recordHeadBytes:]
	copy(head, recordMagic)
	binary.LittleEndian.PutUint64(head[4:], b.Number)
	binary.LittleEndian.PutUint32(head[12:], uint32(len(body)))
	binary.LittleEndian.PutUint32(head[16:], synced)
	binary.LittleEndian.PutUint32(head[20:], h.saltedCRC(body))
	binary.LittleEndian.PutUint32(head[24:], h.saltedCRC(head[:24]))
	return dst
}

// recordHead is the decoded head of a record.
type recordHead struct {
	height  uint64
	length  uint32
	synced  uint32
	bodyCRC uint32
}

func (h *segmentHeader) decodeRecordHead(b []byte) (recordHead, error) {
	var r recordHead
	if string(b[:4]) != recordMagic {
		return r, errors.New("record head has no magic")
	}
	if binary.LittleEndian.Uint32(b[24:]) != h.saltedCRC(b[:24]) {
		return r, errors.New("checksum of the record head does not match")
	}
	r.height = binary.LittleEndian.Uint64(b[4:])
	r.length = binary.LittleEndian.Uint32(b[12:])
	r.synced = binary.LittleEndian.Uint32(b[16:])
	r.bodyCRC = binary.LittleEndian.Uint32(b[20:])
	if r.length > block.MaxBlockBytes {
		return r, fmt.Errorf("record of %d bytes exceeds the limit of a block", r.length)
	}
	return r, nil
}

// errRecord wraps what is wrong with the bytes of a record, as opposed to
// failures to read them.
type errRecord struct{ reason error }

func (e errRecord) Error() string { return e.reason.Error() }

// readRecord reads the record of block height at off in a file whose records
// end at end, and returns the block's bytes and the record's end. Damaged
// bytes are an errRecord.
func (h *segmentHeader) readRecord(f vfs.File, off, end int64, height uint64) ([]byte, int64, error) {
	var head [recordHeadBytes]byte
	if off+recordHeadBytes > end {
		return nil, 0, errRecord{errors.New("record head is cut off")}
	}
	if err := readFull(f, head[:], off); err != nil {
		return nil, 0, err
	}
	r, err := h.decodeRecordHead(head[:])
	if err != nil {
		return nil, 0, errRecord{err}
	}
	next := off + recordHeadBytes + int64(r.length)
	switch {
	case r.height != height:
		return nil, 0, errRecord{fmt.Errorf("record is of block %d", r.height)}
	case int64(r.synced) > off || r.synced < segmentHeaderBytes:
		return nil, 0, errRecord{fmt.Errorf("record claims a synced length of %d", r.synced)}
	case next > end:
		return nil, 0, errRecord{errors.New("record is cut off")}
	}
	body := make([]byte, r.length)
	if err := readFull(f, body, off+recordHeadBytes); err != nil {
		return nil, 0, err
	}
	if h.saltedCRC(body) != r.bodyCRC {
		return nil, 0, errRecord{errors.New("checksum of the block does not match")}
	}
	return body, next, nil
}

// provesDurable reports whether an intact record head behind off in tail, the
// bytes of the segment from off to its end, states that the segment was synced
// beyond off.
func (h *segmentHeader) provesDurable(tail []byte, off int64) bool {
	for i := 0; i+recordHeadBytes <= len(tail); i++ {
		n := bytes.Index(tail[i:], []byte(recordMagic))
		if n < 0 || i+n+recordHeadBytes > len(tail) {
			return false
		}
		i += n
		if r, err := h.decodeRecordHead(tail[i : i+recordHeadBytes]); err == nil && int64(r.synced) > off {
			return true
		}
	}
	return false
}

// readFull fills p from off. The end of the file before that is an
// unexpected one: callers know the size.
func readFull(f vfs.File, p []byte, off int64) error {
	n, err := f.ReadAt(p, off)
	if n == len(p) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return err
}

const segmentPrefix = "pgblockstore-"

func segmentName(number uint32) string { return fmt.Sprintf(segmentPrefix+"%08d", number) }

// parseSegmentName is the inverse of segmentName; other names are no segments.
func parseSegmentName(name string) (uint32, bool) {
	digits, ok := strings.CutPrefix(name, segmentPrefix)
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 10, 32)
	if err != nil || segmentName(uint32(n)) != name {
		return 0, false
	}
	return uint32(n), true
}
