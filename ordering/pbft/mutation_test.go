package pbft_test

import (
	"flag"
	"testing"

	"github.com/tallystick/tallystick/ordering/pbft"
	"github.com/tallystick/tallystick/ordering/sim"
)

var mutantSeeds = flag.Uint64("mutant-seeds", 400, "seeds that have to find every planted bug")

// TestMutants: the simulator finds every planted bug. That it finds nothing where
// none is planted is what the tests of package sim show.
func TestMutants(t *testing.T) {
	for _, m := range pbft.Mutants() {
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			spec := sim.PBFTSpec(m.Protocol)
			for seed := uint64(1); seed <= *mutantSeeds; seed++ {
				if r := sim.Run(spec, seed); r.Err != nil {
					t.Logf("found by seed %d: %.300v", seed, r.Err)
					return
				}
			}
			t.Errorf("%d seeds do not find it", *mutantSeeds)
		})
	}
}
