package blockstore

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/tallystick/tallystick/blockstore/block"
)

// damagedStore makes a small store of several segments.
func damagedStore(t *testing.T) (snapshot, []*block.Block) {
	t.Helper()
	chain := testChain(t, 8)
	fs := vfs.NewMem()
	s := mustOpen(t, testOptions(fs, 2200))
	for _, b := range chain[1:] {
		if err := s.Append(b); err != nil {
			t.Fatal(err)
		}
	}
	if len(s.sealed) < 2 || len(s.active.offsets) < 2 {
		t.Fatalf("%d sealed segments, %d blocks in the last: the store is of no use", len(s.sealed), len(s.active.offsets))
	}
	mustClose(t, s)
	return takeSnapshot(t, fs), chain
}

// checkDamaged opens a damaged store and reads everything: errors must be
// CorruptErrors, and whatever is returned must be right. It returns the tip, or
// -1 if the store does not open.
func checkDamaged(t *testing.T, fs vfs.FS, chain []*block.Block) int {
	t.Helper()
	corrupt := func(err error) {
		t.Helper()
		var c *CorruptError
		if err != nil && !errors.As(err, &c) {
			t.Fatalf("error of another kind: %v", err)
		}
	}
	s, err := Open(testDir, testOptions(fs, 2200))
	if err != nil {
		corrupt(err)
		return -1
	}
	defer mustClose(t, s)
	tip, hash := s.Tip()
	if tip >= uint64(len(chain)) || hash != chain[tip].Hash() {
		t.Fatalf("tip is %d %s", tip, hash)
	}
	for h := range tip + 1 {
		b, err := s.Get(h)
		corrupt(err)
		if err == nil && !bytes.Equal(b.Encode(), chain[h].Encode()) {
			t.Fatalf("block %d is another one", h)
		}
	}
	for _, b := range chain {
		for i, tx := range b.Txs {
			height, position, ok, err := s.FindTx(tx.ID())
			corrupt(err)
			if err == nil && (ok != (b.Number <= tip) || ok && (height != b.Number || position != uint32(i+1))) {
				t.Fatalf("transaction %d/%d is found at %d/%d: %v", b.Number, i+1, height, position, ok)
			}
		}
	}
	return int(tip)
}

// TestEveryByteFlipped flips every byte of every file.
func TestEveryByteFlipped(t *testing.T) {
	files, chain := damagedStore(t)
	if _, err := Verify(files.restore(t), testDir, Checks{}); err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 1))
	lost := 0
	for name, content := range files {
		for i := range content {
			damaged := bytes.Clone(content)
			damaged[i] ^= byte(1 + rng.IntN(255))
			fs := files.restore(t)
			writeFile(t, fs, name, damaged)
			_, err := Verify(fs, testDir, Checks{})
			var c *CorruptError
			if !errors.As(err, &c) || c.File != name {
				t.Fatalf("%s, byte %d: Verify says %v", name, i, err)
			}
			if int64(i) < c.Offset {
				t.Fatalf("%s, byte %d: Verify says offset %d", name, i, c.Offset)
			}
			// Only damage to the very last record may look like a torn write.
			if tip := checkDamaged(t, fs, chain); tip >= 0 && tip < len(chain)-1 {
				lost++
				if tip != len(chain)-2 || name != segmentName(uint32(segments(files)-1)) {
					t.Fatalf("%s, byte %d: Open cut the store to block %d", name, i, tip)
				}
			}
		}
	}
	if last := recordHeadBytes + chain[len(chain)-1].EncodedSize(); lost != last {
		t.Errorf("%d flips cost the last block, which has %d bytes", lost, last)
	}
}

func segments(files snapshot) int {
	n := 0
	for name := range files {
		if _, ok := parseSegmentName(name); ok {
			n++
		}
	}
	return n
}

// TestEveryTruncation cuts every file at every length.
func TestEveryTruncation(t *testing.T) {
	files, chain := damagedStore(t)
	last := segmentName(uint32(segments(files) - 1))
	for name, content := range files {
		for n := range content {
			fs := files.restore(t)
			writeFile(t, fs, name, content[:n])
			report, err := Verify(fs, testDir, Checks{})
			var c *CorruptError
			if err != nil && (!errors.As(err, &c) || c.File != name && !(name == segmentName(c2(c)-1))) {
				t.Fatalf("%s of %d bytes: Verify says %v", name, n, err)
			}
			if err == nil && (name != last || report.Tip >= uint64(len(chain)-1)) {
				t.Fatalf("%s of %d bytes: Verify sees nothing", name, n)
			}
			tip := checkDamaged(t, fs, chain)
			if name == last && tip < 0 {
				t.Fatalf("%s of %d bytes: does not open", name, n)
			}
			if name != last && tip >= 0 && !strings.HasSuffix(name, indexSuffix) {
				t.Fatalf("%s of %d bytes: opens with block %d", name, n, tip)
			}
		}
	}
}

// c2 is the number of the segment that a CorruptError names. A segment that is
// cut between two records shows in the header of the next one.
func c2(c *CorruptError) uint32 {
	n, _ := parseSegmentName(c.File)
	return n
}

// TestVerifyNamesTheFault checks what Verify reports about stores whose every
// checksum is right.
func TestVerifyNamesTheFault(t *testing.T) {
	files, chain := damagedStore(t)
	refuse := func(height uint64) func(*block.Block) error {
		return func(b *block.Block) error {
			if b.Number == height {
				return errors.New("refused")
			}
			return nil
		}
	}
	// rewrite makes one segment of these blocks, correct in form.
	rewrite := func(blocks []*block.Block) snapshot {
		h := segmentHeader{network: chain[0].ConfigID, salt: newSalt()}
		b := h.encode()
		for _, blk := range blocks {
			b = h.appendRecord(b, blk, uint32(len(b)))
		}
		return snapshot{segmentName(0): b}
	}
	forged := *chain[3]
	forged.Txs = slices.Clone(forged.Txs)
	forged.Txs[0] = testTx(t, 999, nil)
	forged = block.Block{Number: 3, PrevHash: forged.PrevHash, ConfigID: forged.ConfigID, Timestamp: forged.Timestamp, Txs: forged.Txs}
	without := func(name string) snapshot {
		s := make(snapshot)
		for n, c := range files {
			if n != name {
				s[n] = c
			}
		}
		return s
	}
	swapped := without("")
	swapped[segmentName(1)], swapped[segmentName(2)] = files[segmentName(2)], files[segmentName(1)]
	tests := []struct {
		name   string
		files  snapshot
		checks Checks
		file   string
		height uint64
		want   string
	}{
		{"certificate", files, Checks{Certificate: refuse(5)}, "", 5, "certificate: refused"},
		{"transactions", files, Checks{VerifyTx: refuse(7)}, "", 7, "transactions: refused"},
		{"network", files, Checks{Network: block.Hash{1}}, segmentName(0), 0, "network is"},
		{"missing segment", without(segmentName(1)), Checks{}, segmentName(1), 0, "missing"},
		{"missing first segment", without(segmentName(0)), Checks{}, segmentName(0), 0, "missing"},
		{"empty directory", snapshot{}, Checks{}, segmentName(0), 0, "missing"},
		{"swapped segments", swapped, Checks{}, segmentName(1), 0, "header is of segment 2"},
		{"forged transaction", rewrite([]*block.Block{chain[0], chain[1], chain[2], &forged, chain[4]}), Checks{}, segmentName(0), 4, "previous hash"},
		{"skipped block", rewrite([]*block.Block{chain[0], chain[1], chain[3]}), Checks{}, segmentName(0), 2, "record is of block 3"},
		{"no genesis", rewrite(nil), Checks{}, segmentName(0), 0, "no blocks"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Verify(tt.files.restore(t), testDir, tt.checks)
			var c *CorruptError
			if !errors.As(err, &c) {
				t.Fatalf("got %v", err)
			}
			if !strings.Contains(c.Error(), tt.want) || tt.file != "" && c.File != tt.file || tt.height != 0 && c.Height != tt.height {
				t.Errorf("got %v, want %q in block %d", err, tt.want, tt.height)
			}
		})
	}
	if _, err := Verify(vfs.NewMem(), "nowhere", Checks{}); err == nil {
		t.Error("a directory that does not exist verifies")
	}
}

// TestForgedRecordInTransaction puts bytes that look like a later record into a
// transaction and tears the write: a client must not be able to make a store
// that crashed refuse to open.
func TestForgedRecordInTransaction(t *testing.T) {
	chain := testChain(t, 2)
	fs := vfs.NewMem()
	s := mustOpen(t, testOptions(fs, 1<<20))
	if err := s.AppendBatch(chain[1:]); err != nil {
		t.Fatal(err)
	}
	guess := s.active.header
	guess.salt = newSalt() // all that a client cannot know
	forged := guess.appendRecord(nil, chain[2], 5000)
	bait := nextBlock(chain[2], testTx(t, 1, forged))
	if err := s.Append(bait); err != nil {
		t.Fatal(err)
	}
	end := s.active.offsets[3]
	mustClose(t, s)
	content := readFile(t, fs, segmentName(0))
	writeFile(t, fs, segmentName(0), content[:len(content)-1])
	s = mustOpen(t, testOptions(fs, 1<<20))
	want := Recovery{TornFile: segmentName(0), TornOffset: int64(end), TornBytes: int64(len(content)-1) - int64(end)}
	if s.Recovery() != want {
		t.Errorf("repaired %+v, want %+v", s.Recovery(), want)
	}
	checkStore(t, s, chain)
	mustClose(t, s)
}

// TestDurableDamageIsNotCut damages a record that a later one proves durable.
func TestDurableDamageIsNotCut(t *testing.T) {
	chain := testChain(t, 6)
	fs := vfs.NewMem()
	s := mustOpen(t, testOptions(fs, 1<<20))
	for _, b := range chain[1:] {
		if err := s.Append(b); err != nil {
			t.Fatal(err)
		}
	}
	offsets := slices.Clone(s.active.offsets)
	mustClose(t, s)
	files := takeSnapshot(t, fs)
	for i, off := range offsets[:len(offsets)-1] {
		damaged := bytes.Clone(files[segmentName(0)])
		damaged[off+12] ^= 0xff // the length: the next record is not where it seems
		fs := files.restore(t)
		writeFile(t, fs, segmentName(0), damaged)
		_, err := Open(testDir, testOptions(fs, 1<<20))
		var c *CorruptError
		if !errors.As(err, &c) || c.Height != uint64(i) || c.Offset != int64(off) || c.File != segmentName(0) {
			t.Errorf("record %d: %v", i, err)
		}
		if got := readFile(t, fs, segmentName(0)); !bytes.Equal(got, damaged) {
			t.Errorf("record %d: the file was changed", i)
		}
	}
}

// TestRandomGarbage opens stores whose files are noise.
func TestRandomGarbage(t *testing.T) {
	files, chain := damagedStore(t)
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	for seed := range uint64(500) {
		rng := rand.New(rand.NewPCG(seed, 2))
		fs := files.restore(t)
		for range 1 + rng.IntN(3) {
			name := names[rng.IntN(len(names))]
			content := bytes.Clone(files[name])
			at := rng.IntN(len(content))
			for i := at; i < min(len(content), at+rng.IntN(600)); i++ {
				content[i] = byte(rng.Uint32())
			}
			if rng.IntN(4) == 0 {
				content = append(content, fmt.Sprint(rng.Uint64())...)
			}
			writeFile(t, fs, name, content)
		}
		checkDamaged(t, fs, chain)
	}
}
