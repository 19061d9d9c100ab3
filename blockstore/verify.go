package blockstore

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/tallystick/tallystick/blockstore/block"
)

// Checks are what [Verify] asks about beyond form, checksums and links. They
// are called for the blocks in order; nil checks nothing.
type Checks struct {
	// Network is the expected network id, the trust anchor of everything else;
	// the zero hash accepts whatever network the store is of.
	Network block.Hash
	// Certificate checks the certificate of a block after 0.
	Certificate func(*block.Block) error
	// VerifyTx checks the transactions of a block, for example the signatures
	// with the keys that its height knows.
	VerifyTx func(*block.Block) error
}

// Report says what [Verify] has found in order, up to the first bad block.
type Report struct {
	Network  block.Hash
	Segments int
	Blocks   uint64
	Txs      uint64
	Bytes    int64 // of the segments read to their end
	Tip      uint64
	TipHash  block.Hash
}

// Verify reads a whole store that no process has open and writes nothing.
// It checks every checksum, the canonical form of every block and
// transaction, the links from block 0 on, the side index files, and what
// checks asks for. The first thing that does not hold is returned as a
// CorruptError; other errors are failures to read. An incomplete last record,
// which Open would cut, does not hold either.
func Verify(fs vfs.FS, dir string, checks Checks) (Report, error) {
	v := verifier{fs: fs, dir: dir, checks: checks}
	n, err := listSegments(fs, dir)
	if err != nil {
		return v.report, err
	}
	if n == 0 {
		return v.report, &CorruptError{File: segmentName(0), Err: errors.New("segment file is missing")}
	}
	for i := uint32(0); i < n; i++ {
		if err := v.segment(i, i+1 == n); err != nil {
			return v.report, err
		}
	}
	return v.report, nil
}

type verifier struct {
	fs     vfs.FS
	dir    string
	checks Checks
	end    chain
	before *contents // of the segment before the current one
	report Report
}

func (v *verifier) segment(number uint32, last bool) error {
	f, err := openSegmentFile(v.fs, v.dir, number)
	if err != nil {
		return err
	}
	defer f.file.Close() // read only
	h, err := f.header(number, &v.end)
	if err != nil {
		return err
	}
	// Only now is the segment before known to be complete, so that a side index
	// that disagrees with it is the one at fault.
	if v.before != nil {
		if err := v.index(v.before); err != nil {
			return err
		}
	}
	c, damage, err := f.scan(h, &v.end, v.block)
	if err != nil {
		return err
	}
	if damage != nil {
		return damage
	}
	if len(c.offsets) == 0 && (!last || number == 0) {
		return &CorruptError{File: f.name, Height: v.end.next(), Err: errors.New("segment has no blocks")}
	}
	v.report.Segments++
	v.report.Bytes += f.size
	v.before = c // the last segment has no side index, or one that Open removes
	return nil
}

// block is called for every block that is well-formed and links to the one
// before.
func (v *verifier) block(b *block.Block) error {
	if b.Number == 0 {
		if v.checks.Network != (block.Hash{}) && b.ConfigID != v.checks.Network {
			return fmt.Errorf("network is %s, not %s", b.ConfigID, v.checks.Network)
		}
		v.report.Network = b.ConfigID
	} else if v.checks.Certificate != nil {
		if err := v.checks.Certificate(b); err != nil {
			return fmt.Errorf("certificate: %w", err)
		}
	}
	if v.checks.VerifyTx != nil {
		if err := v.checks.VerifyTx(b); err != nil {
			return fmt.Errorf("transactions: %w", err)
		}
	}
	v.report.Blocks++
	v.report.Txs += uint64(len(b.Txs))
	v.report.Tip, v.report.TipHash = b.Number, b.Hash()
	return nil
}

// index compares the side index file, if there is one, with what the segment
// holds.
func (v *verifier) index(c *contents) error {
	name := segmentName(c.header.number) + indexSuffix
	f, err := v.fs.Open(v.fs.PathJoin(v.dir, name))
	if isNotExist(err) {
		return nil // built again when needed
	}
	if err != nil {
		return err
	}
	defer f.Close() // read only
	info, err := f.Stat()
	if err != nil {
		return err
	}
	got := make([]byte, info.Size())
	if err := readFull(f, got, 0); err != nil {
		return err
	}
	want := c.encodeIndex()
	if bytes.Equal(got, want) {
		return nil
	}
	off := 0
	for off < min(len(got), len(want)) && got[off] == want[off] {
		off++
	}
	return &CorruptError{File: name, Offset: int64(off), Height: c.header.first,
		Err: errors.New("side index does not agree with the segment (the file is a cache and may be removed)")}
}
