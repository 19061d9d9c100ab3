package server

import (
	"context"
	"os"
	"strconv"
	"testing"
)

// TestSimulate runs a few seeds for a few blocks; TALLYSTICK_SOAK is the number of
// seeds of a long run ("make soak"), which begins with TALLYSTICK_SEED.
func TestSimulate(t *testing.T) {
	first, seeds, blocks := uint64(1), uint64(4), 60
	if n, err := strconv.ParseUint(os.Getenv("TALLYSTICK_SOAK"), 10, 32); err == nil {
		seeds, blocks = n, 1000
	}
	if n, err := strconv.ParseUint(os.Getenv("TALLYSTICK_SEED"), 10, 64); err == nil {
		first = n
	}
	var total SimulateReport
	for seed := first; seed < first+seeds; seed++ {
		r, err := Simulate(context.Background(), SimulateOptions{Nodes: 4, Blocks: blocks, Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range r.States {
			if s != r.States[0] || len(r.States) != 4 {
				t.Fatalf("seed %d: states are %v", seed, r.States)
			}
		}
		t.Logf("seed %d: %s %s %s: %d committed, %d aborted, %d failed, %d rejected, %d crashes, speculated %v, checkpoint %d",
			seed, r.Flow, r.Rule, r.Conflicts, r.Committed, r.Aborted, r.Failed, r.Rejected, r.Crashes, r.Speculated, r.Checkpoints)
		total.Committed += r.Committed
		total.Aborted += r.Aborted
		total.Failed += r.Failed
		total.Rejected += r.Rejected
		total.Crashes += r.Crashes
		total.Checkpoints += r.Checkpoints
	}
	if total.Committed == 0 || total.Aborted == 0 || total.Failed == 0 || total.Rejected == 0 || total.Crashes == 0 || total.Checkpoints == 0 {
		t.Errorf("something never happened: %+v", total)
	}
}

// TestSimulateRepeats: the seed decides everything.
func TestSimulateRepeats(t *testing.T) {
	run := func(nodes int, seed uint64) string {
		r, err := Simulate(context.Background(), SimulateOptions{Nodes: nodes, Blocks: 25, Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		return r.States[0].String()
	}
	if a, b := run(2, 9), run(2, 9); a != b {
		t.Errorf("one seed gives %s and %s", a, b)
	}
	if run(1, 9) == run(1, 10) {
		t.Error("two seeds give one state")
	}
}
