package block

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/tallystick/tallystick/identity"
)

func testSigner(n byte) *identity.Signer { return identity.NewSigner([32]byte{0: n, 31: 1}) }

// sampleGenesis is a network of two organizations and one orderer.
func sampleGenesis() *Genesis {
	key := func(n byte) identity.PublicKey { return testSigner(n).Public() }
	return &Genesis{
		Network:   "sample",
		Timestamp: 1_700_000_000_000_000,
		Orgs: []Org{
			{Name: "buyer", Users: []User{{"admin", identity.Admin, key(1)}, {"alice", identity.Client, key(2)}}},
			{Name: "seller", Users: []User{{"admin", identity.Admin, key(3)}, {"node1", identity.Node, key(4)}, {"orderer1", identity.Orderer, key(5)}}},
		},
		Orderers: identity.OrdererSet{Keys: []identity.PublicKey{key(5)}, Quorum: 1},
		Params:   DefaultParams(),
	}
}

// sampleTx has an argument of every kind.
func sampleTx(t testing.TB) *Tx {
	t.Helper()
	tx := &Tx{
		Network: sampleGenesis().NetworkID(),
		User:    identity.UserID{Org: "buyer", Name: "alice"},
		Call: Call{
			Schema: "blockchain", Name: "pay",
			ArgTypes: []string{"int8", "text", "bytea", "mytype"},
			Args: []Arg{
				{Value: []byte{0, 0, 0, 0, 0, 0, 0, 42}},
				{Null: true},
				{Value: []byte{}},
				{Value: bytes.Repeat([]byte{0xab}, 130)},
			},
		},
		Snapshot:   300,
		Nonce:      [16]byte{1, 2, 3, 15: 16},
		Time:       1_700_000_001_234_567,
		ValidUntil: 1000,
		Flags:      NoReexecute,
	}
	if err := tx.Sign(testSigner(2)); err != nil {
		t.Fatal(err)
	}
	return tx
}

func sampleBlock(t testing.TB) *Block {
	t.Helper()
	genesis, err := sampleGenesis().Block()
	if err != nil {
		t.Fatal(err)
	}
	second := &Tx{
		Network: genesis.ConfigID, User: identity.UserID{Org: "buyer", Name: "alice"},
		Call: Call{Schema: "blockchain", Name: "tick"}, ValidUntil: 5,
	}
	if err := second.Sign(testSigner(2)); err != nil {
		t.Fatal(err)
	}
	return &Block{
		Number: 1, PrevHash: genesis.Hash(), ConfigID: genesis.ConfigID,
		Timestamp: genesis.Timestamp + 1, Txs: []*Tx{sampleTx(t), second}, Certificate: []byte("certificate"),
	}
}

// randomTx makes a valid transaction of random shape.
func randomTx(t testing.TB, rng *rand.Rand) *Tx {
	t.Helper()
	text := func(limit int) string {
		runes := []rune("abcxyzé日🜛 ._")
		s := "a"
		for range rng.IntN(12) {
			if r := string(runes[rng.IntN(len(runes))]); len(s)+len(r) <= limit {
				s += r
			}
		}
		return s
	}
	tx := &Tx{
		User:       identity.UserID{Org: fmt.Sprintf("org%d", rng.IntN(3)), Name: fmt.Sprintf("u-%d", rng.Uint32())},
		Call:       Call{Schema: text(MaxIdentifierBytes), Name: text(MaxIdentifierBytes)},
		Snapshot:   rng.Uint64() & MaxHeight >> rng.IntN(43),
		Time:       rng.Int64N(MaxTime + 1),
		ValidUntil: rng.Uint64() & MaxHeight >> rng.IntN(43),
		Flags:      Flags(rng.IntN(2)),
	}
	fill := func(b []byte) {
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
	}
	fill(tx.Network[:])
	fill(tx.Nonce[:])
	for range rng.IntN(6) {
		tx.Call.ArgTypes = append(tx.Call.ArgTypes, text(MaxTypeNameBytes))
		a := Arg{Null: rng.IntN(4) == 0}
		if !a.Null {
			a.Value = make([]byte, rng.IntN(1<<rng.IntN(10)))
			fill(a.Value)
		}
		tx.Call.Args = append(tx.Call.Args, a)
	}
	if err := tx.Sign(testSigner(byte(rng.IntN(4)))); err != nil {
		t.Fatal(err)
	}
	return tx
}
