package mvcc

import (
	"fmt"
	"log/slog"
	"math"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Options configures a [Store]. The zero value is usable.
type Options struct {
	// FS is the file system; nil is the operating system's.
	FS vfs.FS

	// CacheBytes is the size of the cache of uncompressed sstable blocks.
	// Default 64 MiB.
	CacheBytes int64

	// MemTableBytes is the size of one memtable. What the write-ahead log holds
	// beyond the last flush is replayed at the next start, so this also bounds
	// recovery. Default 32 MiB.
	MemTableBytes int64

	// HeadCacheBytes bounds the cache of newest versions that serves point
	// reads. Default 64 MiB; negative turns the cache off.
	HeadCacheBytes int64

	// Sync makes every Commit durable before it returns, whatever its argument:
	// for a store that is its own log.
	Sync bool

	// Logger receives the storage engine's messages; nil is slog.Default.
	Logger *slog.Logger
}

// EnsureDefaults fills what is unset.
func (o *Options) EnsureDefaults() {
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if o.CacheBytes == 0 {
		o.CacheBytes = 64 << 20
	}
	if o.MemTableBytes == 0 {
		o.MemTableBytes = 32 << 20
	}
	if o.HeadCacheBytes == 0 {
		o.HeadCacheBytes = 64 << 20
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
}

// Validate refuses values that cannot work.
func (o *Options) Validate() error {
	if o.CacheBytes < 0 {
		return fmt.Errorf("mvcc: CacheBytes is %d, must not be negative", o.CacheBytes)
	}
	if o.MemTableBytes < 64<<10 || o.MemTableBytes > 2<<30 {
		return fmt.Errorf("mvcc: MemTableBytes is %d, must lie between 64 KiB and 2 GiB", o.MemTableBytes)
	}
	return nil
}

// blockProperty is the name of the property that holds the range of block
// numbers in a piece of an sstable. A change of meaning needs a new name: old
// sstables keep what they were written with.
const blockProperty = "tallystick.blocks.v1"

// blockRange computes the property. Records of the engine have no block and
// belong to no range. What is no key of ours belongs to all, so that a reader
// meets it and reports the corruption; an error here would only make Pebble
// repeat its flush for ever.
type blockRange struct{}

func (blockRange) MapPointKey(key pebble.InternalKey, _ []byte) (sstable.BlockInterval, error) {
	if isMeta(key.UserKey) {
		return sstable.BlockInterval{}, nil
	}
	_, block, _, err := decodeVersioned(key.UserKey)
	if err != nil {
		return sstable.BlockInterval{Lower: 0, Upper: math.MaxUint64}, nil
	}
	return sstable.BlockInterval{Lower: block, Upper: block + 1}, nil
}

func (blockRange) MapRangeKeys(sstable.Span) (sstable.BlockInterval, error) {
	return sstable.BlockInterval{}, fmt.Errorf("mvcc: the store holds no range keys")
}

// blockFilter lets an iterator pass over what holds no version of the blocks
// from..to, both inclusive. It may let others through.
func blockFilter(from, to uint64) []pebble.BlockPropertyFilter {
	end := to + 1
	if end == 0 {
		end = to
	}
	// One spare slot: Pebble appends a filter of its own.
	return append(make([]pebble.BlockPropertyFilter, 0, 2),
		sstable.NewBlockIntervalFilter(blockProperty, from, end, nil))
}

// pebbleOptions translates the options.
func (s *Store) pebbleOptions() *pebble.Options {
	p := &pebble.Options{
		FS: s.opts.FS,
		// Pebble takes its memtables out of the cache's allowance: the one in
		// use and, while it is flushed, the one before.
		CacheSize:                   s.opts.CacheBytes + 2*s.opts.MemTableBytes,
		Comparer:                    &comparer,
		KeySchema:                   schema.Name,
		KeySchemas:                  sstable.MakeKeySchemas(&schema),
		FormatMajorVersion:          pebble.FormatTableFormatV6,
		MemTableSize:                uint64(s.opts.MemTableBytes),
		MemTableStopWritesThreshold: 4,
		L0CompactionThreshold:       2,
		L0StopWritesThreshold:       1000,
		LBaseMaxBytes:               64 << 20,
		MaxOpenFiles:                1000,
		Logger:                      engineLogger{s},
		CompactionConcurrencyRange:  func() (int, int) { return 1, 2 },
		BlockPropertyCollectors: []func() pebble.BlockPropertyCollector{
			func() pebble.BlockPropertyCollector {
				return sstable.NewBlockIntervalCollector(blockProperty, blockRange{}, nil)
			},
		},
		EventListener: &pebble.EventListener{
			BackgroundError: s.backgroundError,
			DataCorruption:  func(i pebble.DataCorruptionInfo) { s.backgroundError(i.Details) },
		},
	}
	p.Experimental.EnableColumnarBlocks = func() bool { return true }
	p.Levels[0].FilterPolicy = bloom.FilterPolicy(10)
	p.Levels[0].BlockSize = 32 << 10
	p.Levels[0].IndexBlockSize = 256 << 10
	p.Levels[0].EnsureL0Defaults()
	for i := 1; i < len(p.Levels); i++ {
		p.Levels[i].EnsureL1PlusDefaults(&p.Levels[i-1])
	}
	return p
}

// engineLogger passes Pebble's messages on.
type engineLogger struct{ s *Store }

func (l engineLogger) Infof(format string, args ...any) {
	l.s.opts.Logger.Debug("pebble", "message", fmt.Sprintf(format, args...))
}

func (l engineLogger) Errorf(format string, args ...any) {
	l.s.opts.Logger.Error("pebble", "message", fmt.Sprintf(format, args...))
}

// Fatalf must not return. Under Open and Commit the panic is caught there and
// becomes their error; in a goroutine of Pebble's own it ends the process, which
// is what a node owes the others when its disk fails.
func (l engineLogger) Fatalf(format string, args ...any) {
	err := &engineFault{fmt.Sprintf(format, args...)}
	l.s.opts.Logger.Error("pebble", "fatal", err.what)
	l.s.setBroken(err)
	panic(err)
}

// engineFault is what Pebble could not return as an error.
type engineFault struct{ what string }

func (e *engineFault) Error() string { return "mvcc: storage engine: " + e.what }
