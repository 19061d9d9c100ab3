package blockstore

import (
	"errors"
	"fmt"
)

// Errors of a store's life cycle.
var (
	ErrClosed    = errors.New("blockstore: store is closed")
	ErrNoGenesis = errors.New("blockstore: store is empty and no genesis was given")
	ErrNotFound  = errors.New("blockstore: no such block")
)

// CorruptError reports damage that a crash cannot explain, or a block that does
// not belong where it is.
type CorruptError struct {
	File   string // base name
	Offset int64  // of the record or structure in File
	Height uint64 // of the first block affected
	Err    error  // what is wrong with it
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("blockstore: %s, offset %d, block %d: %v", e.File, e.Offset, e.Height, e.Err)
}

func (e *CorruptError) Unwrap() error { return e.Err }
