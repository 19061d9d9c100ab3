package blockstore

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/tallystick/tallystick/blockstore/block"
)

const (
	// DefaultSegmentBytes is the default size at which a segment is sealed.
	DefaultSegmentBytes = 64 << 20
	// MaxSegmentBytes keeps offsets within 32 bits with room to spare.
	MaxSegmentBytes = 1 << 30
)

// Options configure a store. The zero value opens an existing store on the
// operating system's file system and checks no certificates.
type Options struct {
	// FS is the file system, vfs.Default if nil.
	FS vfs.FS
	// SegmentBytes is the size at which a segment is sealed; a larger record
	// gets a segment of its own. DefaultSegmentBytes if 0.
	SegmentBytes int64
	// Genesis begins an empty store. For one that is not empty it is optional;
	// if given, the store must be of that network.
	Genesis *block.Genesis
	// Verify is asked about every block after 0 before it is appended, in
	// order; it checks the certificate against the orderers of the block's
	// configuration. A block it refuses is not appended. Nil checks nothing.
	Verify func(*block.Block) error
}

// EnsureDefaults fills in what is not set.
func (o *Options) EnsureDefaults() {
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if o.SegmentBytes == 0 {
		o.SegmentBytes = DefaultSegmentBytes
	}
}

// Validate reports options that make no sense.
func (o *Options) Validate() error {
	if o.SegmentBytes < segmentHeaderBytes || o.SegmentBytes > MaxSegmentBytes {
		return fmt.Errorf("blockstore: segment size %d is not from %d to %d", o.SegmentBytes, segmentHeaderBytes, MaxSegmentBytes)
	}
	return nil
}
