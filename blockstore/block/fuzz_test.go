package block

import (
	"bytes"
	"testing"
)

func FuzzDecodeTx(f *testing.F) {
	f.Add(sampleTx(f).Encode())
	f.Add((&Tx{}).Encode())
	next := configGenesis().Config().Next()
	f.Add(signConfig(f, next, "buyer/admin", "carrier/admin").Encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		tx, err := DecodeTx(bytes.Clone(b))
		if err != nil {
			return
		}
		if err := tx.Validate(); err != nil {
			t.Fatalf("decoded but not valid: %v", err)
		}
		id := tx.ID()
		tx.raw = nil
		if !bytes.Equal(tx.Encode(), b) || tx.ID() != id || tx.size() != len(b) {
			t.Fatalf("%x re-encodes as %x", b, tx.Encode())
		}
	})
}

func FuzzDecodeBlock(f *testing.F) {
	genesis, err := sampleGenesis().Block()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(sampleBlock(f).Encode())
	f.Add(genesis.Encode())
	f.Add((&Block{Number: 1}).Encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := DecodeBlock(bytes.Clone(b))
		if err != nil {
			return
		}
		if err := got.Validate(); err != nil {
			t.Fatalf("decoded but not valid: %v", err)
		}
		for _, tx := range got.Txs {
			tx.raw = nil
		}
		if got.Genesis != nil {
			got.Genesis.raw = nil
		}
		if !bytes.Equal(got.Encode(), b) || got.EncodedSize() != len(b) {
			t.Fatalf("%x re-encodes as %x", b, got.Encode())
		}
	})
}

func FuzzDecodeGenesis(f *testing.F) {
	f.Add(sampleGenesis().Encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		g, err := DecodeGenesis(bytes.Clone(b))
		if err != nil {
			return
		}
		g.raw = nil
		if !bytes.Equal(g.Encode(), b) {
			t.Fatalf("%x re-encodes as %x", b, g.Encode())
		}
	})
}
