package server

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/tallystick/tallystick/blockstore"
	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/mvcc"
	"github.com/tallystick/tallystick/mvcc/rwset"
	"github.com/tallystick/tallystick/server/chain"
	"github.com/tallystick/tallystick/sql"
	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
)

// replay executes all blocks into a scratch state and compares it with the
// state directory, if there is one.
func (v *verification) replay() (err error) {
	scratch, err := os.MkdirTemp("", "tallystick-verify-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	blocks, err := blockstore.Open(v.blocks, blockstore.Options{Genesis: v.genesis, Verify: certificateCheck(v.genesis)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, blocks.Close()) }()
	replayed, err := openState(filepath.Join(scratch, "replay"), nil, v.opts.Logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, replayed.close()) }()
	if err := v.execute(replayed, blocks); err != nil {
		return err
	}
	if v.state == "" {
		return nil
	}
	return v.compare(filepath.Join(scratch, "state"), replayed, blocks)
}

// execute replays the chain.
func (v *verification) execute(s *state, blocks *blockstore.Store) error {
	tip, _ := blocks.Tip()
	hash, err := chain.Replay(s.chainOptions(blocks, v.opts.Workers), func(height block.Height, _ block.Hash) error {
		v.opts.Progress("executing blocks", height, tip)
		return v.ctx.Err()
	})
	if err != nil {
		return err
	}
	v.report.Replayed, v.report.StateHash = true, hash
	return v.countOutcomes(s)
}

// countOutcomes asks the ledger of the replayed state.
func (v *verification) countOutcomes(s *state) error {
	for status, count := range map[string]*uint64{
		"committed": &v.report.Committed, "aborted": &v.report.Aborted, "failed": &v.report.Failed, "rejected": &v.report.Rejected,
	} {
		n, err := s.count(v.ctx, "SELECT count(*) FROM blockchain.pgledger WHERE status = '"+status+"'")
		if err != nil {
			return err
		}
		*count = uint64(n)
	}
	return nil
}

// compare looks for the first difference between the state directory and the
// replayed state. It works on a copy: opening a store writes to it.
func (v *verification) compare(copied string, replayed *state, blocks *blockstore.Store) (err error) {
	if err := cloneStore(v.state, copied); err != nil {
		return fmt.Errorf("copying the state directory: %w", err)
	}
	found, err := openState(copied, nil, v.opts.Logger)
	if err != nil {
		return &Finding{File: stateName, Offset: -1, Reason: err.Error()}
	}
	defer func() { err = errors.Join(err, found.close()) }()
	height, tip := found.store.Height(), replayed.store.Height()
	v.report.StateHeight = height
	if height > tip {
		return &Finding{Height: tip + 1, File: stateName, Offset: -1,
			Reason: fmt.Sprintf("the state has height %d, but the block store ends at %d: blocks were lost", height, tip)}
	}
	if height > 0 {
		if err := v.compareHashes(found, replayed, blocks); err != nil {
			return err
		}
		if err := v.compareRows(found.store, replayed.store, height); err != nil {
			return err
		}
	}
	v.report.StateCompared = true
	return nil
}

// compareHashes compares what the state directory recorded after each block.
func (v *verification) compareHashes(found, replayed *state, blocks *blockstore.Store) error {
	height := found.store.Height()
	// Opening the chain compares the record of the tip with the blocks, too, and
	// executes what the state lacks; that is of no interest here.
	if err := found.openChain(blocks, v.opts.Workers); err != nil {
		return &Finding{Height: height, File: stateName, Offset: -1, Reason: err.Error()}
	}
	if err := replayed.openChain(blocks, v.opts.Workers); err != nil {
		return err
	}
	for h := block.Height(1); h <= height; h++ {
		v.opts.Progress("comparing state hashes", h, height)
		want, err := replayed.chain.StateHash(h)
		if err != nil {
			return err
		}
		got, err := found.chain.StateHash(h)
		if err != nil {
			return &Finding{Height: h, File: stateName, Offset: -1, Reason: err.Error()}
		}
		if got != want {
			return &Finding{Height: h, File: stateName, Offset: -1, Reason: fmt.Sprintf("the recorded state hash is %s, the replay arrives at %s", got, want)}
		}
		if err := v.ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// compareRows compares all row versions up to a height: a state hash that was
// recorded says nothing about rows that were changed afterwards.
func (v *verification) compareRows(found, replayed *mvcc.Store, height block.Height) (err error) {
	got, want := allVersions(found, height), allVersions(replayed, height)
	defer func() { err = errors.Join(err, got.close(), want.close()) }()
	for rows := uint64(0); ; rows++ {
		if rows%1024 == 0 {
			if err := v.ctx.Err(); err != nil {
				return err
			}
			v.opts.Progress("comparing row versions", rows, 0)
		}
		a, b := got.Next(), want.Next()
		if err := errors.Join(got.Err(), want.Err()); err != nil {
			return err
		}
		if !a && !b {
			return nil
		}
		if reason, height := got.differs(a, want, b); reason != "" {
			return &Finding{Height: height, File: stateName, Offset: -1, Reason: reason}
		}
	}
}

// versions walks all row versions of a store.
type versions struct {
	*mvcc.VersionIter
	txn *mvcc.Txn
}

// lastKey is above every key: those begin with two object identifiers.
var lastKey = bytes.Repeat([]byte{0xff}, catalog.PrefixLen+1)

func allVersions(s *mvcc.Store, height block.Height) *versions {
	txn := s.Begin(mvcc.AsOf(height), 0)
	return &versions{txn.Versions(rwset.Span{End: lastKey}, 0, height), txn}
}

func (v *versions) close() error { return errors.Join(v.VersionIter.Close(), v.txn.Close()) }

// differs says how a version of the state differs from the one that stands in
// its place after a replay, and which block wrote it; here and there tell
// whether there is one.
func (v *versions) differs(here bool, want *versions, there bool) (reason string, height block.Height) {
	order := 0
	if here && there {
		if order = bytes.Compare(v.Key(), want.Key()); order == 0 {
			order = compareVersion(v.Creator(), want.Creator())
		}
	}
	switch {
	case !there || here && order < 0:
		return fmt.Sprintf("a version of row %x is not in the replay", v.Key()), v.Creator().Block
	case !here || order > 0:
		return fmt.Sprintf("a version of row %x is missing", want.Key()), want.Creator().Block
	case !equalRows(v.Key(), v.Value(), want.Value()):
		return fmt.Sprintf("a version of row %x was changed", v.Key()), v.Creator().Block
	case v.Creator() != want.Creator() || v.Deleter() != want.Deleter():
		return fmt.Sprintf("a version of row %x has another history than in the replay", v.Key()), v.Creator().Block
	}
	return "", 0
}

func compareVersion(a, b mvcc.Version) int {
	return cmp.Or(cmp.Compare(a.Block, b.Block), cmp.Compare(a.Seq, b.Seq))
}

// ledgerTexts compares rows of pgledger without the texts in them: another
// release may word a message differently, which no state hash covers.
var ledgerTexts = func() (l struct {
	prefix  []byte
	types   []datum.Type
	decoder *datum.RowDecoder
}) {
	layout, err := catalog.NewLayout(catalog.Ledger)
	if err != nil {
		panic(err) // a fixed table
	}
	var slots []int
	for _, c := range catalog.Ledger.Columns {
		if c.Name == "message" || c.Name == "detail" {
			slots = append(slots, -1)
			continue
		}
		slots = append(slots, len(l.types))
		l.types = append(l.types, c.Type)
	}
	l.prefix, l.decoder = layout.IndexPrefix(0), layout.Decoder(slots)
	return l
}()

func equalRows(key, a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	if !bytes.HasPrefix(key, ledgerTexts.prefix) {
		return false
	}
	x, y := make([]datum.Datum, len(ledgerTexts.types)), make([]datum.Datum, len(ledgerTexts.types))
	if ledgerTexts.decoder.Decode(a, x) != nil || ledgerTexts.decoder.Decode(b, y) != nil {
		return false
	}
	for i, t := range ledgerTexts.types {
		if x[i].IsNull() != y[i].IsNull() || !x[i].IsNull() && t.Compare(x[i], y[i]) != 0 {
			return false
		}
	}
	return true
}

// cloneStore copies a Pebble store that is not open. Its tables never change
// and are linked where that is possible; everything else may be written to.
func cloneStore(from, to string) error {
	isTable := func(path string) bool { return strings.HasSuffix(path, ".sst") }
	isOther := func(path string) bool { return !isTable(path) }
	if _, err := vfs.Clone(vfs.Default, vfs.Default, from, to, vfs.CloneSkip(isTable)); err != nil {
		return err
	}
	_, err := vfs.Clone(vfs.Default, vfs.Default, from, to, vfs.CloneSkip(isOther), vfs.CloneTryLink)
	return err
}

// count runs a query that gives one number.
func (s *state) count(ctx context.Context, query string) (int64, error) {
	session := s.engine.NewSession(sql.SessionOptions{User: DevAdmin, Database: sql.Database})
	defer session.Close()
	list, err := session.Split(query)
	if err != nil {
		return 0, err
	}
	p, err := session.Prepare(ctx, "", list[0], nil)
	if err != nil {
		return 0, err
	}
	portal, err := session.Bind(ctx, p, nil)
	if err != nil {
		return 0, err
	}
	defer portal.Close()
	row, err := portal.Next(ctx)
	if err != nil || row == nil {
		return 0, errors.Join(err, fmt.Errorf("%s: no row", query))
	}
	return row[0].Int(), nil
}
