package server

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/tallystick/tallystick/blockstore"
	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/identity"
	"github.com/tallystick/tallystick/mvcc"
	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
)

// workedDir is the data directory of a node that has worked and stopped.
func workedDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	r := startNode(t, dir)
	r.work()
	r.close()
	return dir
}

func copyDir(t *testing.T, from string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	return dir
}

const segment = "blocks/pgblockstore-00000000"

// flip changes one byte of a file, counted from its end if negative.
func flip(t *testing.T, path string, at int64) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if at < 0 {
		at += int64(len(b))
	}
	b[at] ^= 0x40
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestVerifyIntact(t *testing.T) {
	dir := workedDir(t)
	before := listing(t, dir)
	stages := map[string]bool{}
	r, err := Verify(context.Background(), dir, VerifyOptions{Replay: true, Workers: 2, Progress: func(stage string, done, total uint64) {
		stages[stage] = true
		if total != 0 && done > total {
			t.Errorf("%s: %d of %d done", stage, done, total)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if r.Tip != workBlocks || r.Blocks != workBlocks+1 || r.Txs != workBlocks || r.Signed != workBlocks || r.Unknown != 0 {
		t.Errorf("report %+v", r)
	}
	if !r.Replayed || !r.StateCompared || r.StateHeight != workBlocks || r.Committed != workBlocks || r.StateHash.IsZero() {
		t.Errorf("report %+v", r)
	}
	if after := listing(t, dir); after != before {
		t.Errorf("verifying changed the directory:\n%s\nbefore it:\n%s", after, before)
	}
	if len(stages) != 4 {
		t.Errorf("progress of %v", stages)
	}
	// The block store alone says the same of the blocks, without a state to
	// compare with.
	alone, err := Verify(context.Background(), filepath.Join(dir, "blocks"), VerifyOptions{Replay: true, Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	if alone.StateHash != r.StateHash || alone.TipHash != r.TipHash || alone.StateCompared {
		t.Errorf("block store alone: %+v", alone)
	}
	// A state that lags behind is compared as far as it goes.
	if err := os.RemoveAll(filepath.Join(dir, "state")); err != nil {
		t.Fatal(err)
	}
	if r, err := Verify(context.Background(), dir, VerifyOptions{Replay: true}); err != nil || r.StateCompared {
		t.Errorf("without state: %+v, error %v", r, err)
	}
}

// listing names all files with their sizes and, but for lock files, times of
// change.
func listing(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err == nil && !info.IsDir() {
			changed := info.ModTime()
			if info.Name() == lockName {
				changed = time.Time{}
			}
			fmt.Fprintln(&b, path, info.Size(), changed)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestVerifyNamesTheFirstBadBlock(t *testing.T) {
	template := workedDir(t)
	for _, tc := range []struct {
		name   string
		damage func(t *testing.T, dir string)
		replay bool
		height block.Height
		file   string
		reason string // part of it
	}{
		{"byte of the last block", func(t *testing.T, dir string) { flip(t, filepath.Join(dir, segment), -1) },
			false, workBlocks, segment, ""},
		{"byte of the segment header", func(t *testing.T, dir string) { flip(t, filepath.Join(dir, segment), 3) },
			false, 0, segment, ""},
		{"file cut off", func(t *testing.T, dir string) { cut(t, filepath.Join(dir, segment), 10) },
			false, workBlocks, segment, ""},
		{"segment file removed", func(t *testing.T, dir string) { must(t, os.Remove(filepath.Join(dir, segment))) },
			false, 0, segment, "missing"},
		{"block that no orderer has certified", func(t *testing.T, dir string) { forge(t, dir, nil) },
			false, workBlocks + 1, segment, "certificate: it has no certificate"},
		{"block that a stranger has certified", func(t *testing.T, dir string) { forge(t, dir, stranger(t)) },
			false, workBlocks + 1, segment, "certificate: identity: signature of orderer 0 does not verify"},
		{"blocks of another network", func(t *testing.T, dir string) {
			g, err := loadGenesis(layout{dir})
			must(t, err)
			other := *g
			other.Params.MaxNesting++
			must(t, os.WriteFile(filepath.Join(dir, "genesis"), reencode(&other), 0o600))
		}, false, 0, segment, "network is"},
		{"state beyond the blocks", func(t *testing.T, dir string) { extendState(t, dir) },
			true, workBlocks + 1, "state", "blocks were lost"},
		{"state of another network", func(t *testing.T, dir string) {
			must(t, os.RemoveAll(filepath.Join(dir, "state")))
			must(t, os.Rename(filepath.Join(workedDir(t), "state"), filepath.Join(dir, "state")))
		}, true, workBlocks, "state", "the state is of network"},
		{"state that is none", func(t *testing.T, dir string) {
			must(t, os.RemoveAll(filepath.Join(dir, "state")))
			must(t, os.Mkdir(filepath.Join(dir, "state"), 0o700))
			must(t, os.WriteFile(filepath.Join(dir, "state", "marker.manifest.000001.MANIFEST-000001"), nil, 0o600))
		}, true, 0, "state", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := copyDir(t, template)
			tc.damage(t, dir)
			_, err := Verify(context.Background(), dir, VerifyOptions{Replay: tc.replay, Workers: 1})
			var f *Finding
			if !errors.As(err, &f) {
				t.Fatalf("error %v, want a finding", err)
			}
			if f.Height != tc.height || f.File != tc.file || !strings.Contains(f.Reason, tc.reason) || f.Reason == "" {
				t.Errorf("found %v, want block %d, %s and %q", f, tc.height, tc.file, tc.reason)
			}
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func cut(t *testing.T, path string, n int64) {
	t.Helper()
	info, err := os.Stat(path)
	must(t, err)
	must(t, os.Truncate(path, info.Size()-n))
}

// stranger certifies blocks as if it were the orderer.
func stranger(t *testing.T) func(network, hash block.Hash) []byte {
	key, err := identity.GenerateSigner(strings.NewReader(strings.Repeat("s", 32)))
	must(t, err)
	return func(network, hash block.Hash) []byte {
		digest := identity.VoteDigest(network, 0, hash)
		c := identity.Certificate{Votes: []identity.Vote{{Signature: key.Sign(digest[:])}}}
		return c.Encode()
	}
}

// forge appends a block that links, with a certificate or without.
func forge(t *testing.T, dir string, certify func(network, hash block.Hash) []byte) {
	t.Helper()
	s, err := blockstore.Open(filepath.Join(dir, "blocks"), blockstore.Options{})
	must(t, err)
	height, hash := s.Tip()
	last, err := s.Get(height)
	must(t, err)
	b := &block.Block{Number: height + 1, PrevHash: hash, ConfigID: s.NetworkID(), Timestamp: last.Timestamp + 1}
	b.Seal()
	if certify != nil {
		b.Certificate = certify(s.NetworkID(), b.Hash())
	}
	must(t, s.Append(b))
	must(t, s.Close())
}

// extendState commits a block that the block store does not have.
func extendState(t *testing.T, dir string) {
	t.Helper()
	s, err := mvcc.Open(filepath.Join(dir, "state"), mvcc.Options{})
	must(t, err)
	must(t, s.Commit(s.NewBlockBatch(s.Height()+1), true))
	must(t, s.Close())
}

func TestVerifyNeedsTheDirectoryForItself(t *testing.T) {
	dir := t.TempDir()
	r := startNode(t, dir)
	defer r.close()
	for _, d := range []string{dir, filepath.Join(dir, "blocks")} {
		for _, replay := range []bool{false, true} {
			_, err := Verify(context.Background(), d, VerifyOptions{Replay: replay})
			var f *Finding
			if err == nil || errors.As(err, &f) {
				t.Errorf("%s, replay %v: %v, want that it is in use", d, replay, err)
			}
		}
	}
}

func TestVerifyEnds(t *testing.T) {
	dir := workedDir(t)
	for _, stage := range []string{"checking blocks", "executing blocks", "comparing state hashes", "comparing row versions"} {
		ctx, cancel := context.WithCancel(context.Background())
		_, err := Verify(ctx, dir, VerifyOptions{Replay: true, Progress: func(s string, _, _ uint64) {
			if s == stage {
				cancel()
			}
		}})
		// The last stage may have been over before it looked.
		if !errors.Is(err, context.Canceled) && (stage != "comparing row versions" || err != nil) {
			t.Errorf("canceled while %s: %v", stage, err)
		}
		cancel()
	}
}

// testKey is a key of a table that nothing else knows of.
func testKey(row byte) []byte {
	return append(binary.BigEndian.AppendUint64(nil, 99<<32|1), row)
}

// version is a row version to be written.
type version struct {
	block uint64
	row   byte
	value string // "" deletes
	xid   uint64
}

func memoryStore(t *testing.T, list []version) *mvcc.Store {
	t.Helper()
	s, err := mvcc.Open("s", mvcc.Options{FS: vfs.NewMem()})
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	const blocks = 3
	for h := uint64(1); h <= blocks; h++ {
		b := s.NewBlockBatch(h)
		txn := s.Begin(mvcc.AsOf(h-1), 0)
		for i, v := range list {
			if v.block != h {
				continue
			}
			if v.value == "" {
				del := b.Begin(mvcc.AsOf(h-1), v.xid)
				must(t, del.Delete(testKey(v.row)))
				must(t, b.Apply(del, uint32(i+1)))
				must(t, del.Close())
				continue
			}
			must(t, b.Put(testKey(v.row), []byte(v.value), uint32(i+1), v.xid))
		}
		must(t, txn.Close())
		must(t, s.Commit(b, false))
	}
	return s
}

func TestCompareRows(t *testing.T) {
	base := []version{{1, 1, "a", 11}, {1, 2, "b", 11}, {2, 1, "A", 21}, {3, 2, "", 31}, {3, 3, "c", 32}}
	edit := func(f func(list []version) []version) []version { return f(append([]version(nil), base...)) }
	for _, tc := range []struct {
		name   string
		found  []version
		block  block.Height
		reason string
	}{
		{"equal", base, 0, ""},
		{"value", edit(func(l []version) []version { l[2].value = "B"; return l }), 2, "was changed"},
		{"history", edit(func(l []version) []version { l[2].xid = 22; return l }), 1, "has another history"},
		{"missing version", edit(func(l []version) []version { l[4].row = 200; l[4].value = ""; return l[:4] }), 3, "is missing"},
		{"missing deletion", edit(func(l []version) []version { l[3] = version{3, 4, "d", 31}; return l }), 1, "has another history"},
		{"added version", edit(func(l []version) []version { return append(l, version{3, 0, "z", 33}) }), 3, "is not in the replay"},
		{"added at the end", edit(func(l []version) []version { return append(l, version{3, 9, "z", 33}) }), 3, "is not in the replay"},
		{"other commit sequence", edit(func(l []version) []version { l[4], l[3] = l[3], l[4]; return l }), 1, "has another history"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			v := &verification{ctx: context.Background(), opts: VerifyOptions{Progress: func(string, uint64, uint64) {}}}
			err := v.compareRows(memoryStore(t, tc.found), memoryStore(t, base), 3)
			var f *Finding
			switch {
			case tc.reason == "":
				if err != nil {
					t.Errorf("found %v", err)
				}
			case !errors.As(err, &f) || f.Height != tc.block || !strings.Contains(f.Reason, tc.reason):
				t.Errorf("found %v, want block %d and %q", err, tc.block, tc.reason)
			}
		})
	}
}

// TestEqualRows: texts of errors in the ledger may differ, nothing else.
func TestEqualRows(t *testing.T) {
	layout, err := catalog.NewLayout(catalog.Ledger)
	must(t, err)
	row := func(change string) (key, value []byte) {
		r := make([]datum.Datum, len(catalog.Ledger.Columns))
		for i := range catalog.Ledger.Columns {
			c := &catalog.Ledger.Columns[i]
			r[i] = datum.Int(7)
			switch d := c.Type.Desc; d {
			case datum.Text:
				r[i] = datum.Str("text")
			case datum.Bytea:
				r[i] = datum.Bytes([]byte{1, 2})
			}
			if c.Name == change && c.Type.Desc == datum.Text {
				r[i] = datum.Str("other")
			} else if c.Name == change {
				r[i] = datum.Null
			}
		}
		return layout.PrimaryKey(nil, r), layout.EncodeRow(nil, r)
	}
	key, value := row("")
	for _, c := range catalog.Ledger.Columns {
		if c.Name == "txid" {
			continue // in the key
		}
		_, changed := row(c.Name)
		if got, want := equalRows(key, value, changed), c.Name == "message" || c.Name == "detail"; got != want {
			t.Errorf("column %s changed: equal is %v, want %v", c.Name, got, want)
		}
		if equalRows(testKey(1), value, changed) {
			t.Errorf("column %s changed in another table: equal", c.Name)
		}
	}
}
