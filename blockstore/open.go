package blockstore

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/tallystick/tallystick/blockstore/block"
)

// Open opens the store in dir, creates it if there is none, and repairs what a
// crash left. Damage that a crash cannot explain is a CorruptError.
func Open(dir string, opts Options) (*Store, error) {
	opts.EnsureDefaults()
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	fs := opts.FS
	if err := fs.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("blockstore: %w", err)
	}
	lock, err := fs.Lock(fs.PathJoin(dir, lockName))
	if err != nil {
		return nil, fmt.Errorf("blockstore: store is in use: %w", err)
	}
	s := &Store{fs: fs, dir: dir, opts: opts, lock: lock}
	if err := s.load(); err != nil {
		if s.file != nil {
			err = errors.Join(err, s.file.release())
		}
		return nil, errors.Join(err, lock.Close())
	}
	return s, nil
}

// load brings the store in memory up to the tip.
func (s *Store) load() error {
	if err := s.removeTemporaries(); err != nil {
		return err
	}
	n, err := listSegments(s.fs, s.dir)
	if err != nil {
		return err
	}
	durable := false // the last segment, because a later one was begun
	if n > 0 {
		if durable, err = s.dropUnborn(n - 1); err != nil {
			return err
		}
		if durable {
			n--
		}
	}
	var end chain
	for i := uint32(0); i+1 < n; i++ {
		if err := s.loadSealed(i, &end); err != nil {
			return err
		}
	}
	if n > 0 {
		if err := s.loadLast(n-1, durable, &end); err != nil {
			return err
		}
	}
	s.tip = end
	if !end.begun {
		return s.begin()
	}
	return s.checkNetwork()
}

// checkNetwork compares a store with the genesis that was given for it.
func (s *Store) checkNetwork() error {
	if s.opts.Genesis == nil {
		return nil
	}
	if id := s.opts.Genesis.NetworkID(); id != s.tip.network {
		return fmt.Errorf("blockstore: store is of network %s, the genesis of network %s", s.tip.network, id)
	}
	return nil
}

// removeTemporaries removes what an interrupted replacement of a file left.
func (s *Store) removeTemporaries() error {
	names, err := s.fs.List(s.dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if strings.HasPrefix(name, segmentPrefix) && strings.HasSuffix(name, tempSuffix) {
			if err := s.fs.Remove(s.fs.PathJoin(s.dir, name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// loadSealed loads the index of a segment that is not the last one, or builds
// it.
func (s *Store) loadSealed(number uint32, end *chain) error {
	f, err := openSegmentFile(s.fs, s.dir, number)
	if err != nil {
		return err
	}
	h, err := f.header(number, end)
	if err = errors.Join(err, f.file.Close()); err != nil {
		return err
	}
	x, err := s.openIndex(&h, f.size)
	if errors.Is(err, errIndex) {
		s.recovery.IndexesRebuilt++
		before := *end
		var c *contents
		if c, err = scanSealed(s.fs, s.dir, number, &before); err == nil {
			x, err = s.writeIndex(c)
		}
	}
	if err != nil {
		return err
	}
	if len(x.offsets) == 0 {
		return &CorruptError{File: f.name, Height: end.next(), Err: errors.New("sealed segment has no blocks")}
	}
	s.sealed = append(s.sealed, x)
	*end = chain{begun: true, network: h.network, height: h.first + uint64(len(x.offsets)) - 1, hash: x.lastHash, timestamp: x.lastTime}
	return nil
}

func (s *Store) openIndex(h *segmentHeader, segmentSize int64) (*index, error) {
	f, err := s.fs.Open(s.fs.PathJoin(s.dir, segmentName(h.number)+indexSuffix))
	if isNotExist(err) {
		return nil, errIndex
	}
	if err != nil {
		return nil, err
	}
	x, err := readIndex(f, h, segmentSize)
	if closeErr := f.Close(); err == nil && closeErr != nil {
		return nil, closeErr
	}
	return x, err
}

// scanSealed reads a whole segment that must be intact.
func scanSealed(fs vfs.FS, dir string, number uint32, end *chain) (*contents, error) {
	f, err := openSegmentFile(fs, dir, number)
	if err != nil {
		return nil, err
	}
	defer f.file.Close() // read only
	h, err := f.header(number, end)
	if err != nil {
		return nil, err
	}
	c, damage, err := f.scan(h, end, nil)
	if err != nil {
		return nil, err
	}
	if damage != nil {
		return nil, damage
	}
	return c, nil
}

// dropUnborn removes the last segment if its creation was interrupted before
// its header was durable. No record was written to it then. The directory is
// synced before anything is written to the segment before.
func (s *Store) dropUnborn(number uint32) (dropped bool, err error) {
	f, err := openSegmentFile(s.fs, s.dir, number)
	if err != nil {
		return false, err
	}
	defer f.file.Close() // read only
	if f.size > segmentHeaderBytes {
		return false, nil
	}
	b := make([]byte, f.size)
	if err := readFull(f.file, b, 0); err != nil {
		return false, err
	}
	if _, err := decodeSegmentHeader(b); err == nil {
		return false, nil
	}
	if err := s.fs.Remove(s.fs.PathJoin(s.dir, f.name)); err != nil {
		return false, err
	}
	return true, nil
}

// loadLast scans the last segment, cuts its torn tail unless the segment is
// known to be durable as a whole, and opens it for writing.
func (s *Store) loadLast(number uint32, durable bool, end *chain) error {
	c, err := s.scanLast(number, durable, end)
	if err != nil {
		return err
	}
	name := segmentName(number)
	f, err := s.fs.OpenReadWrite(s.fs.PathJoin(s.dir, name), writeCategory)
	if err != nil {
		return err
	}
	s.file, s.active = newHandle(f), c
	// An interrupted rotation may have left a side index of this segment,
	// which is about to grow.
	index := s.fs.PathJoin(s.dir, name+indexSuffix)
	if err := s.fs.Remove(index); err != nil && !isNotExist(err) {
		return err
	}
	// What a process that died had written but not synced may be in the page
	// cache only; it is about to count. The directory may have changed, here or
	// then.
	return errors.Join(f.Sync(), syncDir(s.fs, s.dir))
}

func (s *Store) scanLast(number uint32, durable bool, end *chain) (*contents, error) {
	f, err := openSegmentFile(s.fs, s.dir, number)
	if err != nil {
		return nil, err
	}
	defer f.file.Close() // read only
	h, err := f.header(number, end)
	if err != nil {
		return nil, err
	}
	c, damage, err := f.scan(h, end, nil)
	if err != nil {
		return nil, err
	}
	if damage == nil {
		return c, nil
	}
	if durable {
		return nil, damage
	}
	torn, err := f.tailIsTorn(&h, c.end)
	if err != nil {
		return nil, err
	}
	if !torn {
		return nil, damage
	}
	s.recovery.TornFile, s.recovery.TornOffset, s.recovery.TornBytes = f.name, c.end, f.size-c.end
	// The file systems offer no truncation: the intact part is copied.
	return c, writeFileAtomically(s.fs, s.dir, f.name, io.NewSectionReader(f.file, 0, c.end))
}

// begin starts a store without block 0 with that block.
func (s *Store) begin() error {
	if s.file != nil { // the making of the store was interrupted: once more
		old := s.file
		s.file, s.active = nil, nil
		if err := old.release(); err != nil {
			return err
		}
	}
	if s.opts.Genesis == nil {
		return ErrNoGenesis
	}
	b, err := s.opts.Genesis.Block()
	if err != nil {
		return err
	}
	h := segmentHeader{network: b.ConfigID, salt: newSalt()}
	f, err := createSegment(s.fs, s.dir, &h)
	if err != nil {
		return err
	}
	s.active, s.file = newContents(h), newHandle(f)
	if parent := s.fs.PathDir(s.dir); parent != s.dir {
		if err := syncDir(s.fs, parent); err != nil {
			return err
		}
	}
	return s.AppendBatch([]*block.Block{b})
}
