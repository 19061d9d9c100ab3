package blockstore

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/tallystick/tallystick/blockstore/block"
)

const lockName = "LOCK"

// Recovery tells what Open had to repair after a crash.
type Recovery struct {
	TornFile       string // segment whose torn tail was cut; "" if none
	TornOffset     int64  // where it was cut
	TornBytes      int64  // how much was cut
	IndexesRebuilt int    // side index files that were missing or damaged
}

// Store is an open block store. See the package comment for the order of calls.
type Store struct {
	fs   vfs.FS
	dir  string
	opts Options
	lock io.Closer

	recovery Recovery

	// appendMu serializes writers; what it guards is used by them alone.
	appendMu sync.Mutex
	failed   error  // first failure of a write or sync
	buf      []byte // records being written

	// mu guards what readers see. Writers hold appendMu too.
	mu     sync.RWMutex
	closed bool
	tip    chain
	sealed []*index  // of the segments before the active one
	active *contents // of the last segment, up to what is synced
	file   *handle   // of the last segment, open for writing
}

// handle is an open file that is closed with its last user.
type handle struct {
	vfs.File
	refs atomic.Int32
}

func newHandle(f vfs.File) *handle {
	h := &handle{File: f}
	h.refs.Store(1)
	return h
}

func (h *handle) release() error {
	if h.refs.Add(-1) == 0 {
		return h.Close()
	}
	return nil
}

// Tip returns height and hash of the last block. An open store has one.
func (s *Store) Tip() (height uint64, hash block.Hash) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.tip.height, s.tip.hash
}

// NetworkID returns the id of the network whose blocks these are.
func (s *Store) NetworkID() block.Hash {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.tip.network
}

// Recovery tells what Open repaired.
func (s *Store) Recovery() Recovery { return s.recovery }

// VerifyWith replaces Options.Verify for blocks that are appended from now on.
func (s *Store) VerifyWith(f func(*block.Block) error) {
	s.appendMu.Lock()
	defer s.appendMu.Unlock()
	s.opts.Verify = f
}

// Append appends the block after the tip and returns when it is durable.
func (s *Store) Append(b *block.Block) error {
	return s.AppendBatch([]*block.Block{b})
}

// maxWriteBytes is how much of a batch is encoded before it is written.
const maxWriteBytes = 32 << 20

// AppendBatch appends consecutive blocks after the tip with one sync for all
// that fit into 32 MiB and the segment. On an error a prefix of them may have
// been appended: Tip tells.
func (s *Store) AppendBatch(blocks []*block.Block) error {
	s.appendMu.Lock()
	defer s.appendMu.Unlock()
	if s.isClosed() {
		return ErrClosed
	}
	if s.failed != nil {
		return fmt.Errorf("blockstore: store failed earlier: %w", s.failed)
	}
	for len(blocks) > 0 {
		n, err := s.appendSome(blocks)
		if err != nil {
			return err
		}
		blocks = blocks[n:]
	}
	return nil
}

// appendSome checks and writes as many of the blocks as go together and
// returns their number, at least 1.
func (s *Store) appendSome(blocks []*block.Block) (int, error) {
	end := s.tip
	n, size := 0, int64(0)
	for _, b := range blocks {
		recordSize := int64(recordHeadBytes + b.EncodedSize())
		if n > 0 && size+recordSize > min(maxWriteBytes, s.opts.SegmentBytes) {
			break
		}
		if err := s.check(&end, b); err != nil {
			if n > 0 {
				break // write what is good; the next round reports it
			}
			return 0, err
		}
		end.advance(b)
		n, size = n+1, size+recordSize
	}
	if err := s.write(blocks[:n], size, end); err != nil {
		s.failed = err
		return 0, fmt.Errorf("blockstore: appending block %d: %w", blocks[0].Number, err)
	}
	return n, nil
}

// check reports why b cannot be appended to a chain with this end.
func (s *Store) check(end *chain, b *block.Block) error {
	if err := b.Validate(); err != nil {
		return err
	}
	if err := end.check(b); err != nil {
		return err
	}
	if s.opts.Verify != nil && b.Number > 0 {
		if err := s.opts.Verify(b); err != nil {
			return fmt.Errorf("blockstore: block %d is refused: %w", b.Number, err)
		}
	}
	return nil
}

// write writes the records of blocks, size bytes in all, syncs and publishes
// them. After it the chain ends with end.
func (s *Store) write(blocks []*block.Block, size int64, end chain) error {
	if len(s.active.offsets) > 0 && s.active.end+size > s.opts.SegmentBytes {
		if err := s.rotate(); err != nil {
			return err
		}
	}
	start := s.active.end
	s.buf = s.buf[:0]
	ends := make([]int64, len(blocks))
	for i, b := range blocks {
		s.buf = s.active.header.appendRecord(s.buf, b, uint32(start))
		ends[i] = start + int64(len(s.buf))
	}
	if _, err := s.file.WriteAt(s.buf, start); err != nil {
		return err
	}
	if err := s.file.SyncData(); err != nil {
		return err
	}
	if cap(s.buf) > 4<<20 {
		s.buf = nil // do not hold on to the memory of a rare large block
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, b := range blocks {
		s.active.add(b, start, ends[i])
		start = ends[i]
	}
	s.tip = end
	return nil
}

// rotate seals the active segment and begins the next one. Everything in the
// active segment is synced.
func (s *Store) rotate() error {
	x, err := s.writeIndex(s.active)
	if err != nil {
		return err
	}
	header := segmentHeader{
		number:  s.active.header.number + 1,
		first:   s.tip.next(),
		network: s.tip.network,
		prev:    s.tip.hash,
		salt:    newSalt(),
	}
	file, err := createSegment(s.fs, s.dir, &header)
	if err != nil {
		return err
	}
	s.mu.Lock()
	old := s.file
	s.sealed = append(s.sealed, x)
	s.active = newContents(header)
	s.file = newHandle(file)
	s.mu.Unlock()
	return old.release()
}

func newContents(h segmentHeader) *contents {
	return &contents{header: h, end: segmentHeaderBytes, txs: make(map[block.TxID]location)}
}

// createSegment makes a segment file whose header and name are durable before
// its first record is written.
func createSegment(fs vfs.FS, dir string, h *segmentHeader) (vfs.File, error) {
	f, err := fs.Create(fs.PathJoin(dir, segmentName(h.number)), writeCategory)
	if err != nil {
		return nil, err
	}
	_, err = f.WriteAt(h.encode(), 0)
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = syncDir(fs, dir)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// writeIndex writes the side index file of a segment and returns what of it
// stays in memory.
func (s *Store) writeIndex(c *contents) (*index, error) {
	name := segmentName(c.header.number) + indexSuffix
	if err := writeFileAtomically(s.fs, s.dir, name, bytes.NewReader(c.encodeIndex())); err != nil {
		return nil, err
	}
	header := c.header
	return &index{
		header:   &header,
		offsets:  c.offsets,
		size:     c.end,
		lastHash: c.lastHash,
		lastTime: c.lastTime,
		entries:  len(c.txs),
		pages:    indexHeadBytes + 4*int64(len(c.offsets)) + 4,
	}, nil
}

func (s *Store) isClosed() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.closed
}

// Close waits for a writer, then releases the files and the lock. Reads that
// are under way complete; later calls return ErrClosed.
func (s *Store) Close() error {
	s.appendMu.Lock()
	defer s.appendMu.Unlock()
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return ErrClosed
	}
	s.closed = true
	s.mu.Unlock()
	return errors.Join(s.file.release(), s.lock.Close())
}
