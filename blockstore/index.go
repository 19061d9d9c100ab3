package blockstore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/tallystick/tallystick/blockstore/block"
)

// Layout of a side index file, a cache of what a sealed segment contains:
//
//	0   magic "tallyidx"        32  length of the segment, 8
//	8   format version, 4       40  salt of the segment, 16
//	12  segment number, 4       56  hash of its last block, 32
//	16  first height, 8         88  timestamp of its last block, 8
//	24  number of blocks, 4     96  offset of each record, 4 each
//	28  number of entries, 4    ..  CRC-32C of everything before, 4
//	                            ..  pages
//
// A page is up to 102 entries and a CRC-32C over the segment's salt, the
// page's number (4 bytes) and the entries. An entry is a transaction id, the
// block's height less the first one (4) and the position (4); entries are
// sorted by id.
const (
	indexMagic     = "tallyidx"
	indexVersion   = 1
	indexSuffix    = ".index"
	tempSuffix     = ".tmp"
	indexHeadBytes = 96
	entryBytes     = 40
	entriesPerPage = 102
	pageBytes      = entriesPerPage*entryBytes + 4
)

// location says where in a segment a transaction stands.
type location struct {
	block    uint32 // height less the segment's first
	position uint32 // in the block, from 1
}

// contents is what scanning a segment yields.
type contents struct {
	header   segmentHeader
	offsets  []uint32 // of the records
	end      int64    // of the last record
	lastHash block.Hash
	lastTime int64                   // timestamp of the last block
	txs      map[block.TxID]location // first occurrences
}

// add accounts a block whose record lies in [off, end).
func (c *contents) add(b *block.Block, off, end int64) {
	n := uint32(len(c.offsets))
	for i, tx := range b.Txs {
		if id := tx.ID(); !c.has(id) {
			c.txs[id] = location{block: n, position: uint32(i + 1)}
		}
	}
	c.offsets = append(c.offsets, uint32(off))
	c.end = end
	c.lastHash, c.lastTime = b.Hash(), b.Timestamp
}

func (c *contents) has(id block.TxID) bool {
	_, ok := c.txs[id]
	return ok
}

// encodeIndex returns the bytes of the side index file. They are a function of
// the segment's bytes.
func (c *contents) encodeIndex() []byte {
	type entry struct {
		id  block.TxID
		loc location
	}
	entries := make([]entry, 0, len(c.txs))
	for id, loc := range c.txs { // sorted next
		entries = append(entries, entry{id, loc})
	}
	slices.SortFunc(entries, func(a, b entry) int { return bytes.Compare(a.id[:], b.id[:]) })

	le := binary.LittleEndian
	pages := (len(entries) + entriesPerPage - 1) / entriesPerPage
	b := make([]byte, 0, indexHeadBytes+4*len(c.offsets)+4+len(entries)*entryBytes+4*pages)
	b = append(b, indexMagic...)
	b = le.AppendUint32(b, indexVersion)
	b = le.AppendUint32(b, c.header.number)
	b = le.AppendUint64(b, c.header.first)
	b = le.AppendUint32(b, uint32(len(c.offsets)))
	b = le.AppendUint32(b, uint32(len(entries)))
	b = le.AppendUint64(b, uint64(c.end))
	b = append(b, c.header.salt[:]...)
	b = append(b, c.lastHash[:]...)
	b = le.AppendUint64(b, uint64(c.lastTime))
	for _, off := range c.offsets {
		b = le.AppendUint32(b, off)
	}
	b = le.AppendUint32(b, crc32.Checksum(b, castagnoli))
	for page := 0; len(entries) > 0; page++ {
		start := len(b)
		n := min(entriesPerPage, len(entries))
		for i := range entries[:n] {
			b = append(b, entries[i].id[:]...)
			b = le.AppendUint32(b, entries[i].loc.block)
			b = le.AppendUint32(b, entries[i].loc.position)
		}
		b = le.AppendUint32(b, c.header.pageCRC(page, b[start:]))
		entries = entries[n:]
	}
	return b
}

func (h *segmentHeader) pageCRC(page int, entries []byte) uint32 {
	var seed [saltBytes + 4]byte
	copy(seed[:], h.salt[:])
	binary.LittleEndian.PutUint32(seed[saltBytes:], uint32(page))
	return crc32.Update(crc32.Checksum(seed[:], castagnoli), castagnoli, entries)
}

// index is the part of a side index file that stays in memory.
type index struct {
	header   *segmentHeader
	offsets  []uint32
	size     int64 // of the segment
	lastHash block.Hash
	lastTime int64
	entries  int   // number of transactions
	pages    int64 // offset of the first page
}

// errIndex says that a side index file is missing, stale or damaged, so that it
// has to be built again.
var errIndex = errors.New("blockstore: side index is not usable")

// readIndex reads the head of the side index file of the segment with header h
// and length segmentSize. It returns errIndex if the file does not fit.
func readIndex(f vfs.File, h *segmentHeader, segmentSize int64) (*index, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	size := info.Size()
	head := make([]byte, indexHeadBytes)
	if size < indexHeadBytes {
		return nil, errIndex
	}
	if err := readFull(f, head, 0); err != nil {
		return nil, err
	}
	le := binary.LittleEndian
	blocks, entries := int64(le.Uint32(head[24:])), int64(le.Uint32(head[28:]))
	pages := (entries + entriesPerPage - 1) / entriesPerPage
	pagesAt := indexHeadBytes + 4*blocks + 4
	if size != pagesAt+entries*entryBytes+4*pages {
		return nil, errIndex
	}
	b := make([]byte, pagesAt)
	if err := readFull(f, b, 0); err != nil {
		return nil, err
	}
	if le.Uint32(b[pagesAt-4:]) != crc32.Checksum(b[:pagesAt-4], castagnoli) ||
		string(b[:8]) != indexMagic || le.Uint32(b[8:]) != indexVersion ||
		le.Uint32(b[12:]) != h.number || le.Uint64(b[16:]) != h.first ||
		le.Uint64(b[32:]) != uint64(segmentSize) || !bytes.Equal(b[40:56], h.salt[:]) {
		return nil, errIndex
	}
	x := &index{
		header:   h,
		offsets:  make([]uint32, blocks),
		size:     segmentSize,
		lastTime: int64(le.Uint64(b[88:])),
		entries:  int(entries),
		pages:    pagesAt,
	}
	copy(x.lastHash[:], b[56:])
	for i := range x.offsets {
		x.offsets[i] = le.Uint32(b[indexHeadBytes+4*i:])
	}
	return x, nil
}

// find looks a transaction up in the pages. Ids are hashes, so that the place
// of one is nearly known; the guess is confirmed by bisection.
func (x *index) find(f vfs.File, id block.TxID) (location, bool, error) {
	lo, hi := 0, (x.entries+entriesPerPage-1)/entriesPerPage // pages that may hold id
	page := int(uint64(binary.BigEndian.Uint32(id[:])) * uint64(hi) >> 32)
	buf := make([]byte, min(pageBytes, x.entries*entryBytes+4))
	for step := 1; lo < hi; step++ {
		entries, err := x.readPage(f, page, buf)
		if err != nil {
			return location{}, false, err
		}
		n := len(entries) / entryBytes
		switch {
		case bytes.Compare(id[:], entries[:32]) < 0:
			hi = page
			page = max(lo, page-step) // the guess was near
		case bytes.Compare(id[:], entries[(n-1)*entryBytes:][:32]) > 0:
			lo = page + 1
			page = min(hi-1, page+step)
		default:
			i, ok := searchPage(entries, id)
			if !ok {
				return location{}, false, nil
			}
			e := entries[i*entryBytes+32:]
			loc := location{block: binary.LittleEndian.Uint32(e), position: binary.LittleEndian.Uint32(e[4:])}
			if int(loc.block) >= len(x.offsets) {
				return location{}, false, errIndex
			}
			return loc, true, nil
		}
		if step >= 3 {
			page = (lo + hi) / 2
		}
	}
	return location{}, false, nil
}

// readPage returns the entries of a page in buf.
func (x *index) readPage(f vfs.File, page int, buf []byte) ([]byte, error) {
	n := min(entriesPerPage, x.entries-page*entriesPerPage) * entryBytes
	buf = buf[:n+4]
	if err := readFull(f, buf, x.pages+int64(page)*pageBytes); err != nil {
		return nil, fmt.Errorf("%w: %w", errIndex, err)
	}
	if binary.LittleEndian.Uint32(buf[n:]) != x.header.pageCRC(page, buf[:n]) {
		return nil, errIndex
	}
	return buf[:n], nil
}

func searchPage(entries []byte, id block.TxID) (int, bool) {
	lo, hi := 0, len(entries)/entryBytes
	for lo < hi {
		mid := (lo + hi) / 2
		switch c := bytes.Compare(entries[mid*entryBytes:][:32], id[:]); {
		case c == 0:
			return mid, true
		case c < 0:
			lo = mid + 1
		default:
			hi = mid
		}
	}
	return 0, false
}
