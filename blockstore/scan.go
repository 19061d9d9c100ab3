package blockstore

import (
	"errors"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/tallystick/tallystick/blockstore/block"
)

// chain is the end of a chain of blocks to which the next one must link.
type chain struct {
	begun     bool // block 0 is there
	network   block.Hash
	height    uint64
	hash      block.Hash
	timestamp int64
}

// next is the height of the next block.
func (c *chain) next() uint64 {
	if !c.begun {
		return 0
	}
	return c.height + 1
}

// check reports why b cannot be the next block.
func (c *chain) check(b *block.Block) error {
	if c.begun {
		return b.Follows(c.height, c.hash, c.timestamp)
	}
	if b.Number != 0 {
		return fmt.Errorf("block %d is not the first of a chain", b.Number)
	}
	return nil
}

// advance makes b, which was checked, the end of the chain.
func (c *chain) advance(b *block.Block) {
	if !c.begun {
		c.begun = true
		c.network = b.ConfigID
	}
	c.height, c.hash, c.timestamp = b.Number, b.Hash(), b.Timestamp
}

// checkHeader reports why h cannot be the header of segment number when the
// segments before it end with c.
func (c *chain) checkHeader(h *segmentHeader, number uint32) error {
	switch {
	case h.number != number:
		return fmt.Errorf("header is of segment %d", h.number)
	case h.first != c.next():
		return fmt.Errorf("segment begins with block %d, not %d", h.first, c.next())
	case h.prev != c.hash:
		return fmt.Errorf("previous hash of the segment is %s, not %s", h.prev, c.hash)
	case c.begun && h.network != c.network:
		return fmt.Errorf("segment is of network %s, not %s", h.network, c.network)
	}
	return nil
}

// segmentFile is a segment being read as a whole.
type segmentFile struct {
	name string
	file vfs.File
	size int64
}

func openSegmentFile(fs vfs.FS, dir string, number uint32) (*segmentFile, error) {
	name := segmentName(number)
	f, err := fs.Open(fs.PathJoin(dir, name))
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &segmentFile{name: name, file: f, size: info.Size()}, nil
}

// header reads the segment's header and checks it against the segments before.
func (s *segmentFile) header(number uint32, c *chain) (segmentHeader, error) {
	var b [segmentHeaderBytes]byte
	n := min(s.size, segmentHeaderBytes)
	if err := readFull(s.file, b[:n], 0); err != nil {
		return segmentHeader{}, err
	}
	h, err := decodeSegmentHeader(b[:n])
	if err == nil {
		err = c.checkHeader(&h, number)
	}
	if err != nil {
		return segmentHeader{}, &CorruptError{File: s.name, Offset: 0, Height: c.next(), Err: err}
	}
	return h, nil
}

// scan reads the records up to the end or to the first damaged one, which it
// returns as damage: only the caller knows whether it can be a torn tail. Every
// block is decoded, must extend c, and is passed to visit (unless nil). Any
// other failure is err, a CorruptError if intact bytes hold a wrong block.
func (s *segmentFile) scan(h segmentHeader, c *chain, visit func(*block.Block) error) (_ *contents, damage *CorruptError, err error) {
	found := newContents(h)
	for found.end < s.size {
		off := found.end
		corrupt := func(err error) *CorruptError {
			return &CorruptError{File: s.name, Offset: off, Height: c.next(), Err: err}
		}
		raw, next, err := h.readRecord(s.file, off, s.size, c.next())
		var bad errRecord
		if errors.As(err, &bad) {
			return found, corrupt(bad.reason), nil
		} else if err != nil {
			return nil, nil, err
		}
		b, err := block.DecodeBlock(raw)
		if err == nil {
			err = c.check(b)
		}
		if err == nil && b.Number == 0 && b.ConfigID != h.network {
			err = fmt.Errorf("genesis is of network %s, the segment of %s", b.ConfigID, h.network)
		}
		if err == nil && visit != nil {
			err = visit(b)
		}
		if err != nil {
			return nil, nil, corrupt(err)
		}
		c.advance(b)
		found.add(b, off, next)
	}
	return found, nil, nil
}

// tailIsTorn reports whether the bytes from off on can be the remains of writes
// that were never synced.
func (s *segmentFile) tailIsTorn(h *segmentHeader, off int64) (bool, error) {
	tail := make([]byte, s.size-off)
	if err := readFull(s.file, tail, off); err != nil {
		return false, err
	}
	return !h.provesDurable(tail, off), nil
}

// listSegments returns the number of segment files in dir, whose numbers must
// run from 0 without a gap.
func listSegments(fs vfs.FS, dir string) (uint32, error) {
	names, err := fs.List(dir)
	if err != nil {
		return 0, err
	}
	var numbers []uint32
	for _, name := range names {
		if n, ok := parseSegmentName(name); ok {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	for i, n := range numbers {
		if n != uint32(i) {
			return 0, &CorruptError{File: segmentName(uint32(i)), Err: errors.New("segment file is missing")}
		}
	}
	return uint32(len(numbers)), nil
}
