package raft

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	hraft "github.com/hashicorp/raft"
)

// Keys are a prefix and, of an entry, its index (big-endian), of a stable value,
// its name.
const (
	entryPrefix  = 'l'
	stablePrefix = 's'

	logMemTable = 16 << 20 // larger batches are written around it
	logCache    = 8 << 20
)

var (
	errLogClosed = errors.New("raft: the log is closed")
	errNoValue   = errors.New("not found") // the library compares the text
)

// logStore is the log, and what else the library has to remember, in Pebble.
// Whatever a method that writes has written is durable when it returns. It is
// safe for concurrent use.
type logStore struct {
	db     *pebble.DB
	logger *slog.Logger
	failed func(error) // told about a write that failed

	use     sync.RWMutex // read-locked while db is used
	closed  bool
	writing sync.Mutex // one change of the entries at a time
	// first and last are the bounds of the entries, 0 if there are none.
	first, last atomic.Uint64
	broken      atomic.Pointer[error] // the first fault; ends all writes
}

var (
	_ hraft.LogStore          = (*logStore)(nil)
	_ hraft.StableStore       = (*logStore)(nil)
	_ hraft.MonotonicLogStore = (*logStore)(nil)
)

// openLog opens the log in dir, or makes one. failed is called when it cannot be
// written: the library itself would go on as a follower that never stores
// anything.
func openLog(fs vfs.FS, dir string, logger *slog.Logger, failed func(error)) (s *logStore, err error) {
	s = &logStore{logger: logger, failed: failed}
	defer catchLogFault(&err)
	s.db, err = pebble.Open(dir, &pebble.Options{
		FS:                 fs,
		FormatMajorVersion: pebble.FormatNewest,
		MemTableSize:       logMemTable,
		CacheSize:          logCache + 2*logMemTable, // memtables count too
		Logger:             logEngine{s},
		EventListener: &pebble.EventListener{
			BackgroundError: s.fail,
			DataCorruption:  func(i pebble.DataCorruptionInfo) { s.fail(i.Details) },
		},
	})
	if err != nil {
		return nil, err
	}
	if err := s.readBounds(); err != nil {
		return nil, errors.Join(err, s.db.Close())
	}
	return s, nil
}

// readBounds finds the first and the last entry.
func (s *logStore) readBounds() error {
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: []byte{entryPrefix}, UpperBound: []byte{entryPrefix + 1}})
	if err != nil {
		return err
	}
	var first, last uint64
	if it.First() {
		first, err = entryIndex(it.Key())
	}
	if err == nil && it.Last() {
		last, err = entryIndex(it.Key())
	}
	if err = errors.Join(err, it.Error(), it.Close()); err != nil {
		return err
	}
	s.first.Store(first)
	s.last.Store(last)
	return nil
}

// Close closes the database; a second call does nothing.
func (s *logStore) Close() error {
	s.use.Lock()
	defer s.use.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	if err := s.brokenBy(); err != nil {
		var fault *logFault
		if errors.As(err, &fault) {
			// The commit pipeline stands still for ever, and closing would wait for
			// it. The files are as after a crash.
			return fmt.Errorf("raft: the log is closed without flushing: %w", err)
		}
	}
	return s.db.Close()
}

// FirstIndex implements the library's interface.
func (s *logStore) FirstIndex() (uint64, error) { return s.first.Load(), nil }

// LastIndex implements the library's interface.
func (s *logStore) LastIndex() (uint64, error) { return s.last.Load(), nil }

// IsMonotonic implements the library's interface. A gap would do no harm here, but
// when a snapshot of the leader arrives, a log that says so is emptied; of
// another one the library keeps the end, with entries that the snapshot may
// contradict.
func (s *logStore) IsMonotonic() bool { return true }

// GetLog implements the library's interface.
func (s *logStore) GetLog(index uint64, l *hraft.Log) error {
	return s.read(entryKey(index), hraft.ErrLogNotFound, func(value []byte) error {
		if err := decodeLog(value, l); err != nil {
			return fmt.Errorf("raft: entry %d of the log: %w", index, err)
		}
		l.Index = index
		return nil
	})
}

// StoreLog implements the library's interface.
func (s *logStore) StoreLog(l *hraft.Log) error { return s.StoreLogs([]*hraft.Log{l}) }

// StoreLogs implements the library's interface: all entries or none. They follow
// those that are there, at once or after a gap.
func (s *logStore) StoreLogs(logs []*hraft.Log) error {
	if len(logs) == 0 {
		return nil
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	last := s.last.Load()
	err := s.write(func(b *pebble.Batch) error {
		var value []byte
		for _, l := range logs {
			if l.Index <= last {
				return fmt.Errorf("entry %d after entry %d", l.Index, last)
			}
			last = l.Index
			value = appendLog(value[:0], l)
			if err := b.Set(entryKey(l.Index), value, nil); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	s.first.CompareAndSwap(0, logs[0].Index)
	s.last.Store(last)
	return nil
}

// DeleteRange implements the library's interface: both bounds are included.
func (s *logStore) DeleteRange(from, to uint64) error {
	if from > to {
		return nil
	}
	end := []byte{entryPrefix + 1}
	if to+1 != 0 {
		end = entryKey(to + 1)
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	err := s.write(func(b *pebble.Batch) error { return b.DeleteRange(entryKey(from), end, nil) })
	if err != nil {
		return err
	}
	s.use.RLock()
	defer s.use.RUnlock()
	if s.closed {
		return errLogClosed
	}
	return s.readBounds()
}

// Set implements the library's interface.
func (s *logStore) Set(key, value []byte) error {
	return s.write(func(b *pebble.Batch) error { return b.Set(stableKey(key), value, nil) })
}

// Get implements the library's interface.
func (s *logStore) Get(key []byte) (value []byte, err error) {
	err = s.read(stableKey(key), errNoValue, func(v []byte) error {
		value = bytes.Clone(v)
		return nil
	})
	return value, err
}

// SetUint64 implements the library's interface.
func (s *logStore) SetUint64(key []byte, n uint64) error {
	return s.Set(key, binary.BigEndian.AppendUint64(nil, n))
}

// GetUint64 implements the library's interface.
func (s *logStore) GetUint64(key []byte) (n uint64, err error) {
	err = s.read(stableKey(key), errNoValue, func(v []byte) error {
		if len(v) != 8 {
			return malformed("%s has %d bytes", key, len(v))
		}
		n = binary.BigEndian.Uint64(v)
		return nil
	})
	return n, err
}

// read hands over a value, which is valid during the call, or returns missing.
func (s *logStore) read(key []byte, missing error, f func([]byte) error) error {
	s.use.RLock()
	defer s.use.RUnlock()
	if s.closed {
		return errLogClosed
	}
	value, closer, err := s.db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return missing
	}
	if err != nil {
		return fmt.Errorf("raft: reading the log: %w", err)
	}
	return errors.Join(f(value), closer.Close())
}

// write makes what fill puts into a batch durable.
func (s *logStore) write(fill func(*pebble.Batch) error) error {
	s.use.RLock()
	defer s.use.RUnlock()
	err := s.brokenBy()
	if s.closed {
		err = errLogClosed
	}
	if err == nil {
		err = s.commit(fill)
	}
	if err != nil {
		err = fmt.Errorf("raft: writing the log: %w", err)
		s.failed(err)
	}
	return err
}

func (s *logStore) commit(fill func(*pebble.Batch) error) (err error) {
	defer catchLogFault(&err)
	b := s.db.NewBatch()
	if err := fill(b); err != nil {
		return errors.Join(err, b.Close())
	}
	if err := b.Commit(pebble.Sync); err != nil {
		return err // the commit pipeline may still hold the batch
	}
	return b.Close()
}

func (s *logStore) brokenBy() error {
	if p := s.broken.Load(); p != nil {
		return *p
	}
	return nil
}

// fail notes the first fault. Pebble would try to flush and compact again for ever.
func (s *logStore) fail(err error) {
	if s.broken.CompareAndSwap(nil, &err) {
		s.failed(fmt.Errorf("raft: writing the log: %w", err))
	}
}

// logEngine passes on what Pebble logs.
type logEngine struct{ s *logStore }

func (e logEngine) Infof(format string, args ...any) {
	e.s.logger.Debug("raft: log: " + fmt.Sprintf(format, args...))
}

func (e logEngine) Errorf(format string, args ...any) {
	e.s.logger.Error("raft: log: " + fmt.Sprintf(format, args...))
}

// Fatalf must not return. The panic becomes the error of what is being written; in a
// goroutine of Pebble's own it ends the process.
func (e logEngine) Fatalf(format string, args ...any) {
	fault := &logFault{fmt.Sprintf(format, args...)}
	e.s.fail(fault)
	panic(fault)
}

// logFault is what Pebble cannot return as an error.
type logFault struct{ what string }

func (f *logFault) Error() string { return f.what }

// catchLogFault recovers such a fault, and nothing else.
func catchLogFault(err *error) {
	switch p := recover().(type) {
	case nil:
	case *logFault:
		*err = p
	default:
		panic(p)
	}
}

func entryKey(index uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte{entryPrefix}, index)
}

func entryIndex(key []byte) (uint64, error) {
	if len(key) != 9 || key[0] != entryPrefix {
		return 0, malformed("key %x in the log", key)
	}
	return binary.BigEndian.Uint64(key[1:]), nil
}

func stableKey(name []byte) []byte { return append([]byte{stablePrefix}, name...) }

// logVersion is the format of an entry of the log: version, term, type, seconds
// and nanoseconds of the time it was appended, length of the extensions, all
// big-endian; extensions; data.
const (
	logVersion = 1
	logHead    = 1 + 8 + 1 + 8 + 4 + 4
)

func appendLog(b []byte, l *hraft.Log) []byte {
	b = append(b, logVersion)
	b = binary.BigEndian.AppendUint64(b, l.Term)
	b = append(b, byte(l.Type))
	b = binary.BigEndian.AppendUint64(b, uint64(l.AppendedAt.Unix()))
	b = binary.BigEndian.AppendUint32(b, uint32(l.AppendedAt.Nanosecond()))
	b = binary.BigEndian.AppendUint32(b, uint32(len(l.Extensions)))
	b = append(b, l.Extensions...)
	return append(b, l.Data...)
}

// decodeLog reads all but the index. It copies.
func decodeLog(b []byte, l *hraft.Log) error {
	if len(b) < logHead {
		return malformed("it has %d bytes", len(b))
	}
	if b[0] != logVersion {
		return malformed("its version %d is not known", b[0])
	}
	nanos, extensions := binary.BigEndian.Uint32(b[18:]), binary.BigEndian.Uint32(b[22:])
	rest := b[logHead:]
	if nanos >= 1e9 || uint64(extensions) > uint64(len(rest)) {
		return malformed("%d ns, extensions of %d bytes in %d", nanos, extensions, len(rest))
	}
	*l = hraft.Log{
		Term:       binary.BigEndian.Uint64(b[1:]),
		Type:       hraft.LogType(b[9]),
		AppendedAt: time.Unix(int64(binary.BigEndian.Uint64(b[10:])), int64(nanos)).UTC(),
	}
	if extensions > 0 {
		l.Extensions = bytes.Clone(rest[:extensions])
	}
	if len(rest) > int(extensions) {
		l.Data = bytes.Clone(rest[extensions:])
	}
	return nil
}
