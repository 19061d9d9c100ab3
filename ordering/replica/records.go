package replica

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/tallystick/tallystick/ordering"
)

const (
	recordKeyBytes = 8 + 1 + 8 // sequence, kind, view: big-endian, so that keys sort as RecordKey.Before
	recordMemTable = 16 << 20
	recordCache    = 8 << 20
)

// records is what the machine wants to find again, in Pebble. It is used by one
// goroutine after it was opened.
type records struct {
	db        *pebble.DB
	forgotten uint64 // sequences up to here are deleted
	key       [recordKeyBytes]byte
	broken    bool // the engine's commit pipeline stands still for ever
}

// openRecords opens the records in dir and reads them all, in the order of their
// keys. failed hears of faults in the background.
func openRecords(fs vfs.FS, dir string, log *slog.Logger, failed func(error)) (s *records, list []ordering.Record, err error) {
	defer catchFault(&err)
	db, err := pebble.Open(dir, &pebble.Options{
		FS:                 fs,
		FormatMajorVersion: pebble.FormatNewest,
		MemTableSize:       recordMemTable,
		CacheSize:          recordCache + 2*recordMemTable, // memtables count too
		Logger:             engineLog{log},
		EventListener: &pebble.EventListener{
			BackgroundError: failed,
			DataCorruption:  func(i pebble.DataCorruptionInfo) { failed(i.Details) },
		},
	})
	if err != nil {
		return nil, nil, fmt.Errorf("replica: opening the records: %w", err)
	}
	s = &records{db: db}
	list, err = s.all()
	if err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}
	return s, list, nil
}

func (s *records) all() ([]ordering.Record, error) {
	it, err := s.db.NewIter(nil)
	if err != nil {
		return nil, fmt.Errorf("replica: reading the records: %w", err)
	}
	var list []ordering.Record
	for ok := it.First(); ok && err == nil; ok = it.Next() {
		var k ordering.RecordKey
		if k, err = decodeRecordKey(it.Key()); err == nil {
			list = append(list, ordering.Record{Key: k, Value: append([]byte(nil), it.Value()...)})
		}
	}
	if err = errors.Join(err, it.Error(), it.Close()); err != nil {
		return nil, fmt.Errorf("replica: reading the records: %w", err)
	}
	return list, nil
}

func encodeRecordKey(b *[recordKeyBytes]byte, k ordering.RecordKey) []byte {
	binary.BigEndian.PutUint64(b[0:], k.Sequence)
	b[8] = k.Kind
	binary.BigEndian.PutUint64(b[9:], k.View)
	return b[:]
}

func decodeRecordKey(b []byte) (ordering.RecordKey, error) {
	if len(b) != recordKeyBytes {
		return ordering.RecordKey{}, fmt.Errorf("replica: corruption: a record with the key %x", b)
	}
	return ordering.RecordKey{
		Sequence: binary.BigEndian.Uint64(b), Kind: b[8], View: binary.BigEndian.Uint64(b[9:]),
	}, nil
}

// write makes the records of some Readies durable, all or none, and deletes what
// they allow to forget.
func (s *records) write(readies []ordering.Ready) (err error) {
	defer func() {
		var fault *engineFault
		s.broken = s.broken || errors.As(err, &fault)
	}()
	defer catchFault(&err)
	b := s.db.NewBatch()
	for i := range readies {
		for _, rec := range readies[i].Persist {
			if err := b.Set(encodeRecordKey(&s.key, rec.Key), rec.Value, nil); err != nil {
				return fmt.Errorf("replica: writing records: %w", err)
			}
		}
	}
	sync := b.Count() > 0
	forget := s.forgotten
	for i := range readies {
		forget = max(forget, readies[i].Forget)
	}
	if forget > s.forgotten {
		var from, to [recordKeyBytes]byte
		encodeRecordKey(&from, ordering.RecordKey{Sequence: 1})
		encodeRecordKey(&to, ordering.RecordKey{Sequence: forget + 1})
		if err := b.DeleteRange(from[:], to[:], nil); err != nil {
			return fmt.Errorf("replica: deleting records: %w", err)
		}
	}
	if b.Count() == 0 {
		return b.Close()
	}
	// What is only forgotten may come back: the machine forgets it again.
	options := pebble.NoSync
	if sync {
		options = pebble.Sync
	}
	if err := b.Commit(options); err != nil {
		return fmt.Errorf("replica: writing records: %w", err)
	}
	s.forgotten = forget
	return b.Close()
}

// close closes the store; after a fault its files are as after a crash.
func (s *records) close() error {
	if s.broken {
		return nil
	}
	return s.db.Close()
}

// engineLog passes on what Pebble logs.
type engineLog struct{ log *slog.Logger }

func (e engineLog) Infof(format string, args ...any) {
	e.log.Debug("replica: records: " + fmt.Sprintf(format, args...))
}

func (e engineLog) Errorf(format string, args ...any) {
	e.log.Error("replica: records: " + fmt.Sprintf(format, args...))
}

// Fatalf must not return. The panic becomes the error of what is being written;
// in a goroutine of Pebble's own it ends the process.
func (e engineLog) Fatalf(format string, args ...any) {
	panic(&engineFault{fmt.Sprintf(format, args...)})
}

// engineFault is what Pebble cannot return as an error.
type engineFault struct{ what string }

func (f *engineFault) Error() string { return "replica: records: " + f.what }

// catchFault recovers such a fault, and nothing else.
func catchFault(err *error) {
	switch p := recover().(type) {
	case nil:
	case *engineFault:
		*err = p
	default:
		panic(p)
	}
}
