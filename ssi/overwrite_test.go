package ssi

import (
	"math/rand/v2"
	"testing"

	"github.com/tallystick/tallystick/mvcc/rwset"
)

// TestOverwrites compares with looking at everything.
func TestOverwrites(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	key := func() []byte { return []byte{byte(rng.IntN(5)), byte(rng.IntN(2))} }
	var o Overwrites
	hits := 0
	for range 3000 {
		o.Reset()
		writers := make([]*rwset.Footprint, rng.IntN(6))
		for i := range writers {
			if rng.IntN(3) == 0 {
				continue // did not commit
			}
			writers[i] = &rwset.Footprint{}
			for range rng.IntN(4) {
				writers[i].Writes = append(writers[i].Writes, rwset.Write{Key: key(), Liveness: rng.IntN(2) == 0})
			}
			o.Add(i, writers[i])
		}
		fp := &rwset.Footprint{}
		for range rng.IntN(3) {
			r := rwset.Read{Span: rwset.Point(key()), Existence: rng.IntN(2) == 0}
			if rng.IntN(2) == 0 {
				r.Start, r.End = key(), key() // may be empty
			}
			fp.Reads = append(fp.Reads, r)
		}
		at := rng.IntN(7)
		want := false
		for i := 0; i < min(at, len(writers)); i++ {
			if writers[i] == nil {
				continue
			}
			for _, w := range writers[i].Writes {
				for _, r := range fp.Reads {
					want = want || r.Contains(w.Key) && (w.Liveness || !r.Existence)
				}
			}
		}
		if got := o.Before(at, fp); got != want {
			t.Fatalf("at %d: %v, want %v; reads %+v, writers %+v", at, got, want, fp.Reads, writers)
		}
		if want {
			hits++
		}
	}
	if hits < 300 || hits > 2500 {
		t.Errorf("%d of 3000 overwritten: the test has no edge", hits)
	}
}
