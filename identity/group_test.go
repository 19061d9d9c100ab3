package identity

import (
	"math/rand/v2"
	"sync"
	"testing"
)

// Whoever asks together with others gets the verdict that they get alone.
func TestGroupVerifier(t *testing.T) {
	const callers, each = 32, 40
	g := NewGroupVerifier(NewBatchVerifier(2, 0))
	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(1, uint64(c)))
			signer := NewSigner([32]byte{byte(c)})
			for range each {
				msg := []byte{byte(rng.Uint32()), byte(rng.Uint32())}
				sig := signer.Sign(msg)
				want := rng.IntN(4) > 0
				if !want {
					sig[rng.IntN(len(sig))] ^= 1 << rng.IntN(8)
				}
				if got := g.Verify(signer.Public(), msg, sig); got != want {
					t.Errorf("caller %d: verdict %t, want %t", c, got, want)
				}
			}
		})
	}
	wg.Wait()
	if g.busy || g.next != nil {
		t.Error("it is still busy")
	}
}

func BenchmarkGroupVerifier(b *testing.B) {
	g := NewGroupVerifier(NewBatchVerifier(0, 0))
	signer := NewSigner([32]byte{1})
	msg := []byte("message")
	sig := signer.Sign(msg)
	b.SetParallelism(64)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if !g.Verify(signer.Public(), msg, sig) {
				b.Error("refused")
			}
		}
	})
}
