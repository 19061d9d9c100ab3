package block

import (
	"testing"

	"github.com/tallystick/tallystick/identity"
)

// benchTx has the paper's size, about 200 bytes.
func benchTx(b *testing.B) *Tx {
	tx := &Tx{
		User: identity.UserID{Org: "org1", Name: "alice"},
		Call: Call{
			Schema: "blockchain", Name: "simple", ArgTypes: []string{"int8", "int8", "text"},
			Args: []Arg{{Value: make([]byte, 8)}, {Value: make([]byte, 8)}, {Value: []byte("0123456789")}},
		},
		Snapshot: 1000, Time: 1_700_000_000_000_000, ValidUntil: 2000,
	}
	if err := tx.Sign(testSigner(1)); err != nil {
		b.Fatal(err)
	}
	return tx
}

func BenchmarkEncodeTx(b *testing.B) {
	tx := benchTx(b)
	buf := make([]byte, 0, tx.size())
	b.ReportMetric(float64(tx.size()), "bytes")
	for b.Loop() {
		buf = tx.appendSigned(buf[:0])
		buf = append(buf, tx.Signature[:]...)
	}
}

func BenchmarkDecodeTx(b *testing.B) {
	raw := benchTx(b).Encode()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := DecodeTx(raw); err != nil {
			b.Fatal(err)
		}
	}
}

func benchBlock(b *testing.B) *Block {
	blk := &Block{Number: 1, Timestamp: 1}
	for i := range 100 {
		tx := benchTx(b)
		tx.Nonce[0] = byte(i)
		if err := tx.Sign(testSigner(1)); err != nil {
			b.Fatal(err)
		}
		blk.Txs = append(blk.Txs, tx)
	}
	return blk
}

func BenchmarkEncodeBlock100(b *testing.B) {
	blk := benchBlock(b)
	for b.Loop() {
		blk.Encode()
	}
}

func BenchmarkDecodeBlock100(b *testing.B) {
	raw := benchBlock(b).Encode()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := DecodeBlock(raw); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkHashBlock100(b *testing.B) {
	blk := benchBlock(b)
	for b.Loop() {
		blk.Hash()
	}
}
