package blockstore

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/identity"
)

const testDir = "store"

func testSigner(n byte) *identity.Signer { return identity.NewSigner([32]byte{0: n, 31: 1}) }

func testGenesis() *block.Genesis {
	return &block.Genesis{
		Network:   "test",
		Timestamp: 1_700_000_000_000_000,
		Orgs: []block.Org{{Name: "org1", Users: []block.User{
			{Name: "admin", Role: identity.Admin, Key: testSigner(1).Public()},
		}}},
		Orderers: identity.OrdererSet{Keys: []identity.PublicKey{testSigner(2).Public()}, Quorum: 1},
		Params:   block.DefaultParams(),
	}
}

// testTx makes the n-th transaction; arg is the value of its only argument.
func testTx(t testing.TB, n uint64, arg []byte) *block.Tx {
	t.Helper()
	tx := &block.Tx{
		User: identity.UserID{Org: "org1", Name: "admin"},
		Call: block.Call{
			Schema: "blockchain", Name: "f",
			ArgTypes: []string{"bytea"}, Args: []block.Arg{{Value: arg}},
		},
		ValidUntil: 100,
	}
	binary.BigEndian.PutUint64(tx.Nonce[:], n)
	if err := tx.Sign(testSigner(1)); err != nil {
		t.Fatal(err)
	}
	return tx
}

// nextBlock makes the successor of b.
func nextBlock(b *block.Block, txs ...*block.Tx) *block.Block {
	next := &block.Block{
		Number: b.Number + 1, PrevHash: b.Hash(), ConfigID: b.ConfigID, Timestamp: b.Timestamp + 1,
		Txs: txs, Certificate: []byte("signed"),
	}
	next.Seal()
	return next
}

// testChain makes blocks 0 to n; block i has i mod 4 transactions.
func testChain(t testing.TB, n int) []*block.Block {
	t.Helper()
	b, err := testGenesis().Block()
	if err != nil {
		t.Fatal(err)
	}
	blocks := []*block.Block{b}
	for i := 1; i <= n; i++ {
		var txs []*block.Tx
		for j := range i % 4 {
			txs = append(txs, testTx(t, uint64(i)<<32|uint64(j), bytes.Repeat([]byte{byte(i)}, i*37%300)))
		}
		blocks = append(blocks, nextBlock(blocks[i-1], txs...))
	}
	return blocks
}

func testOptions(fs vfs.FS, segmentBytes int64) Options {
	return Options{FS: fs, SegmentBytes: segmentBytes, Genesis: testGenesis()}
}

func mustOpen(t testing.TB, opts Options) *Store {
	t.Helper()
	s, err := Open(testDir, opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func mustClose(t testing.TB, s *Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// checkStore compares everything that s returns with the chain that it should
// have.
func checkStore(t testing.TB, s *Store, want []*block.Block) {
	t.Helper()
	tip := want[len(want)-1]
	if height, hash := s.Tip(); height != tip.Number || hash != tip.Hash() {
		t.Fatalf("tip is %d %s, want %d %s", height, hash, tip.Number, tip.Hash())
	}
	n := 0
	err := s.Iterate(0, func(b *block.Block) error {
		if b.Hash() != want[n].Hash() || !bytes.Equal(b.Encode(), want[n].Encode()) {
			t.Fatalf("block %d is another one", n)
		}
		n++
		return nil
	})
	if err != nil || n != len(want) {
		t.Fatalf("iterated over %d of %d blocks: %v", n, len(want), err)
	}
	for _, b := range want {
		for i, tx := range b.Txs {
			height, position, ok, err := s.FindTx(tx.ID())
			if err != nil || !ok || height != b.Number || position != uint32(i+1) {
				t.Fatalf("transaction %d/%d is found at %d/%d: %v, %v", b.Number, i+1, height, position, ok, err)
			}
		}
	}
	for i := range byte(5) {
		if _, _, ok, err := s.FindTx(block.TxID{0: i * 51, 31: 9}); ok || err != nil {
			t.Fatalf("a foreign id is found: %v", err)
		}
	}
}

func readFile(t testing.TB, fs vfs.FS, name string) []byte {
	t.Helper()
	f, err := fs.Open(fs.PathJoin(testDir, name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, info.Size())
	if err := readFull(f, b, 0); err != nil {
		t.Fatal(err)
	}
	return b
}

func writeFile(t testing.TB, fs vfs.FS, name string, content []byte) {
	t.Helper()
	f, err := fs.Create(fs.PathJoin(testDir, name), writeCategory)
	if err != nil {
		t.Fatal(err)
	}
	// A vfs.File may modify what it is given to write.
	if _, err := f.Write(bytes.Clone(content)); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// snapshot is the content of all segment and index files.
type snapshot map[string][]byte

func takeSnapshot(t testing.TB, fs vfs.FS) snapshot {
	t.Helper()
	names, err := fs.List(testDir)
	if err != nil {
		t.Fatal(err)
	}
	s := make(snapshot)
	for _, name := range names {
		if name != lockName {
			s[name] = readFile(t, fs, name)
		}
	}
	return s
}

// restore makes a file system with these files.
func (s snapshot) restore(t testing.TB) vfs.FS {
	t.Helper()
	fs := vfs.NewMem()
	if err := fs.MkdirAll(testDir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, content := range s {
		writeFile(t, fs, name, content)
	}
	return fs
}
