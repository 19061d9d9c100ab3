package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/tallystick/tallystick/blockstore"
	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/identity"
)

// VerifyOptions say what to check beside the block store.
type VerifyOptions struct {
	// Replay executes all blocks into a scratch state and compares that with
	// the state directory.
	Replay  bool
	Workers int // as in chain.Options
	// Progress, if set, is told from time to time how far a stage has come.
	Progress func(stage string, done, total uint64)
	Logger   *slog.Logger
}

// VerifyReport is what [Verify] has found in order.
type VerifyReport struct {
	Network  block.Hash
	Segments int
	Blocks   uint64
	Txs      uint64
	Bytes    int64
	Tip      block.Height
	TipHash  block.Hash
	// Signed counts the transactions whose signature verifies with the key that
	// the genesis has for their user, Unknown those of other users or keys:
	// who they are only a replay can tell.
	Signed, Unknown uint64

	Replayed  bool
	StateHash block.Hash // after the last block; zero unless replayed
	// By outcome; zero unless replayed.
	Committed, Aborted, Failed, Rejected uint64
	// StateHeight is the height of the state directory that was compared; only
	// meaningful if StateCompared.
	StateCompared bool
	StateHeight   block.Height
}

// Finding is the first thing that does not hold.
type Finding struct {
	Height block.Height // of the first bad block
	File   string       // relative to the directory
	Offset int64        // in File; -1 if the file as a whole is meant
	Reason string
}

// Error names block, file, offset and reason.
func (f *Finding) Error() string {
	if f.Offset < 0 {
		return fmt.Sprintf("block %d, %s: %s", f.Height, f.File, f.Reason)
	}
	return fmt.Sprintf("block %d, %s, offset %d: %s", f.Height, f.File, f.Offset, f.Reason)
}

// Verify checks a data directory, or a block store alone, that no process has
// open: every checksum, canonical form and link, the certificates against the
// orderers of the genesis and, if asked, the state by a replay. The first thing
// that does not hold is returned as a *Finding; other errors are failures to
// read. The block store is not changed but for side index files, which are
// caches; the state directory is not changed at all.
func Verify(ctx context.Context, dir string, opts VerifyOptions) (VerifyReport, error) {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.Progress == nil {
		opts.Progress = func(string, uint64, uint64) {}
	}
	v := &verification{ctx: ctx, opts: opts}
	if err := v.locate(dir); err != nil {
		return v.report, err
	}
	lock, err := v.lock()
	if err != nil {
		return v.report, err
	}
	defer lock.Close() // nothing was written under it
	if err := v.checkBlocks(); err != nil {
		return v.report, v.named(err)
	}
	if !opts.Replay {
		return v.report, nil
	}
	return v.report, v.named(v.replay())
}

// verification is one run of Verify.
type verification struct {
	ctx    context.Context
	opts   VerifyOptions
	blocks string // directory of the block store
	prefix string // of its files in findings
	state  string // state directory; "" if there is none
	data   layout // data directory; empty for a block store alone

	genesis *block.Genesis
	keys    map[identity.UserID]identity.PublicKey // of the genesis
	report  VerifyReport
}

// locate finds out what dir is.
func (v *verification) locate(dir string) error {
	l := layout{dir}
	if isData, err := exists(l.genesis()); err != nil {
		return err
	} else if !isData {
		v.blocks = dir
		if there, err := exists(filepath.Join(dir, firstSegment)); err != nil {
			return err
		} else if !there {
			return fmt.Errorf("%s is neither a data directory (it has no %s) nor a block store (it has no %s)", dir, genesisName, firstSegment)
		}
		return nil
	}
	v.data, v.blocks, v.prefix = l, l.blocks(), blocksName+"/"
	there, err := exists(l.state())
	if there {
		v.state = l.state()
	}
	return err
}

// firstSegment is the file that every block store has.
const firstSegment = "pgblockstore-00000000"

// lock keeps nodes away while the directory is read. A lock file that is
// missing means that no node was ever here; none is made, for a check should
// leave no trace.
func (v *verification) lock() (io.Closer, error) {
	path := filepath.Join(v.blocks, lockName)
	if v.data.dir != "" {
		path = v.data.lock()
	} else if v.opts.Replay {
		return io.NopCloser(nil), nil // opening the block store locks it
	}
	if there, err := exists(path); err != nil || !there {
		return io.NopCloser(nil), err
	}
	l, err := vfs.Default.Lock(path)
	if err != nil {
		return nil, fmt.Errorf("%s is locked: is a node running on it? (%w)", filepath.Dir(path), err)
	}
	return l, nil
}

// named turns what the block store reports into a finding.
func (v *verification) named(err error) error {
	var corrupt *blockstore.CorruptError
	if errors.As(err, &corrupt) {
		return &Finding{Height: corrupt.Height, File: v.prefix + corrupt.File, Offset: corrupt.Offset, Reason: corrupt.Err.Error()}
	}
	return err
}

// checkBlocks reads the whole block store.
func (v *verification) checkBlocks() error {
	var checks blockstore.Checks
	if v.data.dir != "" {
		g, err := loadGenesis(v.data)
		if err != nil {
			return err
		}
		checks.Network = g.NetworkID()
	}
	total, err := segmentBytes(v.blocks)
	if err != nil {
		return err
	}
	var done uint64
	var certificate func(*block.Block) error
	checks.Certificate = func(b *block.Block) error { return certificate(b) }
	checks.VerifyTx = func(b *block.Block) error {
		if b.Number == 0 {
			v.setGenesis(b.Genesis)
			certificate = certificateCheck(b.Genesis)
		}
		v.countSignatures(b)
		done += uint64(b.EncodedSize())
		v.opts.Progress("checking blocks", done, total)
		return v.ctx.Err()
	}
	r, err := blockstore.Verify(vfs.Default, v.blocks, checks)
	v.report.Network, v.report.Segments, v.report.Blocks, v.report.Txs = r.Network, r.Segments, r.Blocks, r.Txs
	v.report.Bytes, v.report.Tip, v.report.TipHash = r.Bytes, r.Tip, r.TipHash
	if v.ctx.Err() != nil {
		return v.ctx.Err()
	}
	return err
}

func (v *verification) setGenesis(g *block.Genesis) {
	v.genesis = g
	v.keys = map[identity.UserID]identity.PublicKey{}
	for _, o := range g.Orgs {
		for _, u := range o.Users {
			v.keys[identity.UserID{Org: o.Name, Name: u.Name}] = u.Key
		}
	}
}

// countSignatures checks the signatures of a block by the keys of the genesis.
// One that does not verify is no finding: whether a transaction counts is the
// chain's verdict, by the keys of its height.
func (v *verification) countSignatures(b *block.Block) {
	for _, tx := range b.Txs {
		if tx.Config != nil {
			v.report.Signed++ // the schedule of configurations has checked it
			continue
		}
		digest := tx.SigningDigest()
		if key, ok := v.keys[tx.User]; ok && identity.Verify(key, digest[:], tx.Signature) {
			v.report.Signed++
		} else {
			v.report.Unknown++
		}
	}
}

func segmentBytes(dir string) (uint64, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0, err
	}
	var sum uint64
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "pgblockstore-") && !strings.Contains(e.Name(), ".") {
			if info, err := e.Info(); err == nil {
				sum += uint64(info.Size())
			}
		}
	}
	return sum, nil
}
