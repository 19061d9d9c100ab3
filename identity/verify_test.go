package identity

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha512"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/oasisprotocol/curve25519-voi/curve"
	"github.com/oasisprotocol/curve25519-voi/curve/scalar"
)

// oracle is ZIP-215 written down plainly: decompress, compare S with the group
// order, multiply out, multiply by eight.
func oracle(pub PublicKey, msg []byte, sig Signature) bool {
	var a, r curve.EdwardsPoint
	ya, yr := curve.CompressedEdwardsY(pub), curve.CompressedEdwardsY(sig[:32])
	if _, err := a.SetCompressedY(&ya); err != nil {
		return false
	}
	if _, err := r.SetCompressedY(&yr); err != nil {
		return false
	}
	if !belowOrder(sig[32:]) {
		return false
	}
	s, err := scalar.NewFromCanonicalBytes(sig[32:])
	if err != nil {
		return false
	}
	k := challenge(sig[:32], pub[:], msg)
	var sum, ka curve.EdwardsPoint
	sum.MulBasepoint(curve.ED25519_BASEPOINT_TABLE, s)
	sum.Sub(&sum, &r)
	ka.Mul(&a, k)
	sum.Sub(&sum, &ka)
	sum.MulByCofactor(&sum)
	return sum.IsIdentity()
}

// groupOrder is 2^252 + 27742317777372353535851937790883648493, little-endian.
var groupOrder, _ = hex.DecodeString("edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010")

func belowOrder(s []byte) bool {
	for i := 31; i >= 0; i-- {
		if s[i] != groupOrder[i] {
			return s[i] < groupOrder[i]
		}
	}
	return false
}

func challenge(r, a, msg []byte) *scalar.Scalar {
	h := sha512.New()
	h.Write(r)
	h.Write(a)
	h.Write(msg)
	k, err := scalar.NewFromBytesModOrderWide(h.Sum(nil))
	if err != nil {
		panic(err)
	}
	return k
}

// smallOrderEncodings are all 14 encodings of the eight points of small order:
// the canonical ones first.
func smallOrderEncodings(t testing.TB) [][32]byte {
	t.Helper()
	var out [][32]byte
	for i := range curve.EIGHT_TORSION {
		out = append(out, compress(curve.EIGHT_TORSION[i]))
	}
	for _, s := range []string{
		"0100000000000000000000000000000000000000000000000000000000000080", // y = 1, x = -0
		"ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff", // y = -1, x = -0
		"edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f", // y = p
		"edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
		"eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f", // y = p + 1
		"eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
	} {
		b, err := hex.DecodeString(s)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, [32]byte(b))
	}
	return out
}

func compress(p *curve.EdwardsPoint) [32]byte {
	var c curve.CompressedEdwardsY
	c.SetEdwardsPoint(p)
	return c
}

func randomScalar(rng *rand.Rand) *scalar.Scalar {
	var b [64]byte
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	s, err := scalar.NewFromBytesModOrderWide(b[:])
	if err != nil {
		panic(err)
	}
	return s
}

// mixedOrder makes a signature whose key and R have the given torsion
// components. It is valid in ZIP-215 and, mostly, invalid without cofactor.
func mixedOrder(rng *rand.Rand, msg []byte, torsionA, torsionR *curve.EdwardsPoint) Item {
	a, r := randomScalar(rng), randomScalar(rng)
	var pa, pr curve.EdwardsPoint
	pa.MulBasepoint(curve.ED25519_BASEPOINT_TABLE, a)
	pa.Add(&pa, torsionA)
	pr.MulBasepoint(curve.ED25519_BASEPOINT_TABLE, r)
	pr.Add(&pr, torsionR)
	item := Item{Key: compress(&pa), Message: msg}
	cr := compress(&pr)
	copy(item.Signature[:32], cr[:])
	var s scalar.Scalar
	s.Mul(challenge(cr[:], item.Key[:], msg), a)
	s.Add(&s, r)
	if err := s.ToBytes(item.Signature[32:]); err != nil {
		panic(err)
	}
	return item
}

// crafted returns items of every odd kind, with what a ZIP-215 verifier must
// say.
func crafted(t testing.TB) (items []Item, want []bool) {
	rng := rand.New(rand.NewPCG(1, 2))
	msg := []byte("crafted")
	add := func(it Item, ok bool) {
		items, want = append(items, it), append(want, ok)
	}
	// Small-order A and R, S = 0: valid whatever the message.
	small := smallOrderEncodings(t)
	for _, a := range small {
		for _, r := range small {
			it := Item{Key: a, Message: msg}
			copy(it.Signature[:32], r[:])
			add(it, true)
			it.Signature[32] = 1
			add(it, false)
		}
	}
	// Mixed-order A and R.
	for i := range curve.EIGHT_TORSION {
		for j := range curve.EIGHT_TORSION {
			it := mixedOrder(rng, msg, curve.EIGHT_TORSION[i], curve.EIGHT_TORSION[j])
			add(it, true)
			bad := it
			bad.Message = []byte("another")
			add(bad, false)
			bad = it
			addOrder(bad.Signature[32:])
			add(bad, false)
		}
	}
	// Non-canonical encodings y + p for y below 19 that are no small-order
	// points, as A and as R: nobody knows their logarithms.
	good := mixedOrder(rng, msg, curve.EIGHT_TORSION[0], curve.EIGHT_TORSION[0])
	for y := 2; y < 19; y++ {
		for _, sign := range []byte{0x7f, 0xff} {
			var enc [32]byte
			for i := range enc {
				enc[i] = 0xff
			}
			enc[0], enc[31] = byte(0xed+y), sign
			bad := good
			bad.Key = enc
			add(bad, false)
			bad = good
			copy(bad.Signature[:32], enc[:])
			add(bad, false)
		}
	}
	return items, want
}

// addOrder adds the group order to S: the same scalar, not minimal.
func addOrder(s []byte) {
	carry := uint16(0)
	for i := range s {
		carry += uint16(s[i]) + uint16(groupOrder[i])
		s[i] = byte(carry)
		carry >>= 8
	}
}

func TestSmallOrderEncodingsAreComplete(t *testing.T) {
	seen := make(map[[32]byte]bool)
	points := make(map[[32]byte]bool)
	for _, enc := range smallOrderEncodings(t) {
		y := curve.CompressedEdwardsY(enc)
		var p curve.EdwardsPoint
		if _, err := p.SetCompressedY(&y); err != nil {
			t.Fatalf("%x does not decompress: %v", enc, err)
		}
		if !p.IsSmallOrder() {
			t.Fatalf("%x has not small order", enc)
		}
		seen[enc] = true
		points[compress(&p)] = true
	}
	if len(seen) != 14 || len(points) != 8 {
		t.Fatalf("%d encodings of %d points, want 14 of 8", len(seen), len(points))
	}
}

// TestTorsionKey keeps the vector that split implementations: signatures by
// keys of small order with R of small order. Go's crypto/ed25519 accepts some of
// the 64, the default of the batch library none, this package all.
func TestTorsionKey(t *testing.T) {
	msg := []byte("Zcash")
	small := smallOrderEncodings(t)[:8]
	v := NewBatchVerifier(1, 0)
	std := 0
	var items []Item
	for _, a := range small {
		for _, r := range small {
			it := Item{Key: a, Message: msg}
			copy(it.Signature[:32], r[:])
			items = append(items, it)
			if !Verify(it.Key, msg, it.Signature) || !v.Verify(it.Key, msg, it.Signature) {
				t.Errorf("A %x, R %x: refused", a, r)
			}
			if ed25519.Verify(a[:], msg, it.Signature[:]) {
				std++
			}
		}
	}
	ok := make([]bool, len(items))
	if !v.VerifyBatch(items, ok) {
		t.Errorf("batch: %v", ok)
	}
	if std == 0 || std == len(items) {
		t.Errorf("crypto/ed25519 accepts %d of %d: the vectors do not separate the rules", std, len(items))
	}
}

func TestCraftedVectors(t *testing.T) {
	items, want := crafted(t)
	v := NewBatchVerifier(3, 64) // smaller than the number of keys
	for i, it := range items {
		if got := oracle(it.Key, it.Message, it.Signature); got != want[i] {
			t.Fatalf("vector %d: the oracle says %v", i, got)
		}
		if got := Verify(it.Key, it.Message, it.Signature); got != want[i] {
			t.Errorf("vector %d: single says %v", i, got)
		}
		if got := v.Verify(it.Key, it.Message, it.Signature); got != want[i] {
			t.Errorf("vector %d: single with cached key says %v", i, got)
		}
		// Twice, so that it is a batch.
		ok := make([]bool, 2)
		all := v.VerifyBatch([]Item{it, it}, ok)
		if all != want[i] || ok[0] != want[i] || ok[1] != want[i] {
			t.Errorf("vector %d: batch says %v %v", i, all, ok)
		}
	}
	for _, chunk := range []int{1, 2, 7, 89, 90, 94, 95, 128, 1000} {
		ok := make([]bool, len(items))
		v.verifyChunks(items, ok, chunk)
		for i := range ok {
			if ok[i] != want[i] {
				t.Errorf("vector %d in chunks of %d: %v", i, chunk, ok[i])
			}
		}
	}
	// All valid ones together exercise the equation itself.
	var valid []Item
	for i := range items {
		if want[i] {
			valid = append(valid, items[i])
		}
	}
	for _, chunk := range []int{2, 50, 90, 300} {
		if !v.verifyChunks(valid, make([]bool, len(valid)), chunk) {
			t.Errorf("chunks of %d: a valid batch fails", chunk)
		}
	}
}

// TestBatchEqualsSingle compares random mixtures of good, bad and odd
// signatures over chunk sizes and workers.
func TestBatchEqualsSingle(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	pool, _ := crafted(t)
	var signers []*Signer
	for i := range 5 {
		signers = append(signers, testSigner(byte(i)))
	}
	for round := range 40 {
		items := make([]Item, 1+rng.IntN(200))
		badPercent := []int{0, 0, 1, 20, 100}[round%5]
		for i := range items {
			items[i] = randomItem(rng, signers, pool, badPercent)
		}
		want := make([]bool, len(items))
		all := true
		for i, it := range items {
			want[i] = oracle(it.Key, it.Message, it.Signature)
			all = all && want[i]
			if got := Verify(it.Key, it.Message, it.Signature); got != want[i] {
				t.Fatalf("round %d: single says %v, the oracle %v", round, got, want[i])
			}
		}
		for _, workers := range []int{1, 2, 16} {
			v := NewBatchVerifier(workers, 1+rng.IntN(100))
			ok := make([]bool, len(items))
			if got := v.VerifyBatch(items, ok); got != all {
				t.Fatalf("round %d, %d workers: all is %v, want %v", round, workers, got, all)
			}
			chunked := make([]bool, len(items))
			v.verifyChunks(items, chunked, 1+rng.IntN(150))
			for i := range ok {
				if ok[i] != want[i] || chunked[i] != want[i] {
					t.Fatalf("round %d, %d workers, item %d: %v and %v, want %v", round, workers, i, ok[i], chunked[i], want[i])
				}
			}
		}
	}
}

func randomItem(rng *rand.Rand, signers []*Signer, pool []Item, badPercent int) Item {
	s := signers[rng.IntN(len(signers))]
	msg := binary.BigEndian.AppendUint64(nil, rng.Uint64())
	it := Item{Key: s.Public(), Message: msg, Signature: s.Sign(msg)}
	if rng.IntN(100) >= badPercent {
		return it
	}
	switch rng.IntN(6) {
	case 0:
		it.Signature[rng.IntN(64)] ^= 1 << rng.IntN(8)
	case 1:
		it.Message = append(it.Message, 0)
	case 2:
		it.Key[rng.IntN(32)] ^= 1 << rng.IntN(8)
	case 3:
		it.Key = signers[rng.IntN(len(signers))].Public() // may be the right one
	case 4:
		addOrder(it.Signature[32:])
	case 5:
		it = pool[rng.IntN(len(pool))]
	}
	return it
}

func TestVerifyBatchOfNothing(t *testing.T) {
	if !NewBatchVerifier(0, 0).VerifyBatch(nil, nil) {
		t.Error("an empty batch has an invalid signature")
	}
}

func TestSignAgreesWithStandardLibrary(t *testing.T) {
	s := testSigner(9)
	msg := []byte("message")
	sig := s.Sign(msg)
	pub := s.Public()
	if !ed25519.Verify(pub[:], msg, sig[:]) {
		t.Error("crypto/ed25519 refuses our signature")
	}
	if again := s.Sign(msg); !bytes.Equal(again[:], sig[:]) {
		t.Error("signatures are not deterministic")
	}
	rng := rand.New(rand.NewPCG(9, 9))
	for n := range 300 {
		s, msg := testSigner(byte(n)), make([]byte, n)
		for i := range msg {
			msg[i] = byte(rng.Uint32())
		}
		if got, want := s.Sign(msg), ed25519.Sign(s.key, msg); !bytes.Equal(got[:], want) {
			t.Errorf("key %d, %d bytes: signature %x, crypto/ed25519 has %x", n, len(msg), got, want)
		}
	}
}

func testSigner(n byte) *Signer {
	return NewSigner([32]byte{0: n, 31: 1})
}

func benchItems(n int) []Item {
	items := make([]Item, n)
	for i := range items {
		s := testSigner(byte(i % 16))
		d := Digest(DomainTx, binary.BigEndian.AppendUint32(nil, uint32(i)))
		items[i] = Item{Key: s.Public(), Message: d[:], Signature: s.Sign(d[:])}
	}
	return items
}

func BenchmarkSign(b *testing.B) {
	s := testSigner(1)
	d := Digest(DomainTx, []byte("x"))
	for b.Loop() {
		s.Sign(d[:])
	}
}

func BenchmarkVerify(b *testing.B) {
	it := benchItems(1)[0]
	for b.Loop() {
		if !Verify(it.Key, it.Message, it.Signature) {
			b.Fatal("invalid")
		}
	}
}

func BenchmarkVerifyCached(b *testing.B) {
	it := benchItems(1)[0]
	v := NewBatchVerifier(1, 0)
	for b.Loop() {
		if !v.Verify(it.Key, it.Message, it.Signature) {
			b.Fatal("invalid")
		}
	}
}

func BenchmarkVerifyBatch(b *testing.B) {
	for _, n := range []int{100, 500} {
		for _, workers := range []int{1, 2} {
			b.Run(fmt.Sprintf("n=%d/workers=%d", n, workers), func(b *testing.B) {
				items, ok := benchItems(n), make([]bool, n)
				v := NewBatchVerifier(workers, 0)
				b.ReportAllocs()
				for b.Loop() {
					if !v.VerifyBatch(items, ok) {
						b.Fatal("invalid")
					}
				}
				b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*n), "us/sig")
			})
		}
	}
}

func BenchmarkVerifyChunk(b *testing.B) {
	const n = 720
	items, ok := benchItems(n), make([]bool, n)
	for _, chunk := range []int{32, 48, 64, 90, 128, 240} {
		b.Run(fmt.Sprint(chunk), func(b *testing.B) {
			v := NewBatchVerifier(1, 0)
			for b.Loop() {
				v.verifyChunks(items, ok, chunk)
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*n), "us/sig")
		})
	}
}
