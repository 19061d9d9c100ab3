package mvcc

import (
	"math"

	"github.com/tallystick/tallystick/mvcc/rwset"
)

// Snapshot names a state of the database: everything that was committed up to
// and including a place in a block.
type Snapshot struct {
	Height uint64 // block number; 0 is the empty database
	Seq    uint32 // commit sequence inside that block
}

// AsOf is the state after the whole of a block.
func AsOf(height uint64) Snapshot {
	return Snapshot{Height: height, Seq: math.MaxUint32}
}

// sees reports whether a version created at (block, seq) existed already.
func (s Snapshot) sees(block uint64, seq uint32) bool {
	return block < s.Height || (block == s.Height && seq <= s.Seq)
}

// Version says who created a row version: the block, the commit sequence in the
// block and the transaction number. The zero Version means nobody: as a deleter,
// that the row version is live.
type Version struct {
	Block uint64
	Seq   uint32
	XID   uint64
}

// OwnBlock and OwnSeq mark the version of a row that the reading transaction
// wrote itself: it has no place in the chain yet and sorts after all that have.
const (
	OwnBlock = math.MaxUint64
	OwnSeq   = math.MaxUint32
)

// IsZero reports whether v names nobody.
func (v Version) IsZero() bool { return v == Version{} }

// Own reports whether the reading transaction wrote the version itself.
func (v Version) Own() bool { return v.Block == OwnBlock }

// ReadMode says what a read leaves in the footprint.
type ReadMode uint8

const (
	// ReadRecorded notes the key or span: any new version invalidates it.
	ReadRecorded ReadMode = iota
	// ReadExistence notes it for existence only: the result may depend on
	// whether a live row is there, never on what is in it.
	ReadExistence
	// ReadUnrecorded notes nothing: local queries, and reads that a note made
	// by other means covers.
	ReadUnrecorded
)

// Conflict is a version that invalidates a footprint.
type Conflict struct {
	Key   []byte // the key that changed
	Block uint64
	Seq   uint32
	XID   uint64 // the writer
	Read  rwset.Span
	Wrote bool // the key conflicts with a write, not with a read
}
