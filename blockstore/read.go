package blockstore

import (
	"errors"
	"fmt"
	"io"
	"sort"

	"github.com/tallystick/tallystick/blockstore/block"
)

// place is where a block's record lies.
type place struct {
	header   *segmentHeader
	off, end int64
	file     *handle // to be released; nil if the segment has to be opened
}

// locate finds the record of a block.
func (s *Store) locate(height uint64) (place, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return place{}, ErrClosed
	}
	if height > s.tip.height {
		return place{}, ErrNotFound
	}
	if height >= s.active.header.first {
		s.file.refs.Add(1)
		off, end := recordBounds(s.active.offsets, height-s.active.header.first, s.active.end)
		return place{header: &s.active.header, off: off, end: end, file: s.file}, nil
	}
	i := sort.Search(len(s.sealed), func(i int) bool { return s.sealed[i].header.first > height }) - 1
	x := s.sealed[i]
	off, end := recordBounds(x.offsets, height-x.header.first, x.size)
	return place{header: x.header, off: off, end: end}, nil
}

func recordBounds(offsets []uint32, i uint64, end int64) (int64, int64) {
	if i+1 < uint64(len(offsets)) {
		end = int64(offsets[i+1])
	}
	return int64(offsets[i]), end
}

// Get returns the block of a height: ErrNotFound beyond the tip, a
// CorruptError if what the disk returns is not that block.
func (s *Store) Get(height uint64) (*block.Block, error) {
	p, err := s.locate(height)
	if err != nil {
		return nil, err
	}
	if p.file == nil {
		f, err := s.fs.Open(s.fs.PathJoin(s.dir, segmentName(p.header.number)))
		if err != nil {
			return nil, err
		}
		p.file = newHandle(f)
	}
	b, err := p.read(height)
	if closeErr := p.file.release(); err == nil && closeErr != nil {
		return nil, closeErr
	}
	return b, err
}

func (p *place) read(height uint64) (*block.Block, error) {
	raw, next, err := p.header.readRecord(p.file, p.off, p.end, height)
	if err == nil && next != p.end {
		err = errRecord{fmt.Errorf("record ends at %d, not %d", next, p.end)}
	}
	var b *block.Block
	if err == nil {
		if b, err = block.DecodeBlock(raw); err != nil {
			err = errRecord{err}
		} else if b.Number != height {
			err = errRecord{fmt.Errorf("record holds block %d", b.Number)}
		}
	}
	var bad errRecord
	if errors.As(err, &bad) || errors.Is(err, io.ErrUnexpectedEOF) {
		if bad.reason != nil {
			err = bad.reason
		}
		return nil, &CorruptError{File: segmentName(p.header.number), Offset: p.off, Height: height, Err: err}
	}
	if err != nil {
		return nil, err
	}
	return b, nil
}

// Iterate calls fn for every block from a height on, in order, until it has
// passed the tip or fn returns an error, which it returns. Blocks that are
// appended meanwhile are included.
func (s *Store) Iterate(from uint64, fn func(*block.Block) error) error {
	for height := from; ; height++ {
		b, err := s.Get(height)
		if errors.Is(err, ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := fn(b); err != nil {
			return err
		}
	}
}

// FindTx returns where a transaction id first occurs in the chain. An id may
// occur more than once, for a block may contain a transaction that is rejected
// there; which occurrence counted is known to the state alone.
func (s *Store) FindTx(id block.TxID) (height uint64, position uint32, ok bool, err error) {
	s.mu.RLock()
	if s.closed {
		s.mu.RUnlock()
		return 0, 0, false, ErrClosed
	}
	// The slice only ever grows, its elements are immutable.
	sealed, first := s.sealed, s.active.header.first
	recent, inActive := s.active.txs[id]
	s.mu.RUnlock()
	for i := range sealed {
		loc, ok, err := s.findSealed(sealed[i], id)
		if err != nil {
			return 0, 0, false, err
		}
		if ok {
			return sealed[i].header.first + uint64(loc.block), loc.position, true, nil
		}
	}
	if inActive {
		return first + uint64(recent.block), recent.position, true, nil
	}
	return 0, 0, false, nil
}

// findSealed looks into a side index file and builds it again if it is
// damaged: it is only a cache.
func (s *Store) findSealed(x *index, id block.TxID) (location, bool, error) {
	loc, ok, err := s.findInFile(x, id)
	if !errors.Is(err, errIndex) {
		return loc, ok, err
	}
	s.appendMu.Lock()
	defer s.appendMu.Unlock()
	if s.isClosed() {
		return location{}, false, ErrClosed
	}
	if err := s.rebuildIndex(x); err != nil {
		return location{}, false, err
	}
	return s.findInFile(x, id)
}

func (s *Store) findInFile(x *index, id block.TxID) (location, bool, error) {
	f, err := s.fs.Open(s.fs.PathJoin(s.dir, segmentName(x.header.number)+indexSuffix))
	if isNotExist(err) {
		return location{}, false, errIndex
	}
	if err != nil {
		return location{}, false, err
	}
	loc, ok, err := x.find(f, id)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	return loc, ok, err
}

// rebuildIndex writes the side index file of a sealed segment from the segment.
func (s *Store) rebuildIndex(x *index) error {
	prev, err := s.chainBefore(x.header)
	if err != nil {
		return err
	}
	c, err := scanSealed(s.fs, s.dir, x.header.number, &prev)
	if err != nil {
		return err
	}
	_, err = s.writeIndex(c)
	return err
}

// chainBefore returns the end of the chain before a segment.
func (s *Store) chainBefore(h *segmentHeader) (chain, error) {
	if h.first == 0 {
		return chain{}, nil
	}
	b, err := s.Get(h.first - 1)
	if err != nil {
		return chain{}, err
	}
	return chain{begun: true, network: h.network, height: b.Number, hash: b.Hash(), timestamp: b.Timestamp}, nil
}
