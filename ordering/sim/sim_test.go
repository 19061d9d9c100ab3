package sim

import (
	"os"
	"runtime/debug"
	"strconv"
	"testing"
)

// seeds is how many seeds the tests run, from a first one on: 300, or what the
// environment says.
func seeds(t *testing.T) (first, n uint64) {
	number := func(name string, otherwise uint64) uint64 {
		text := os.Getenv(name)
		if text == "" {
			return otherwise
		}
		v, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return v
	}
	return number("TALLYSTICK_SIM_FIRST", 1), number("TALLYSTICK_SIM_SEEDS", 300)
}

func TestMain(m *testing.M) {
	debug.SetGCPercent(800) // many short lives
	os.Exit(m.Run())
}

// TestPBFT runs random scenarios. Each seed runs twice and must leave the same
// trace.
func TestPBFT(t *testing.T) {
	first, n := seeds(t)
	var ordered, repeats, messages, restarts, views, worst int
	failures := 0
	for seed := first; seed < first+n; seed++ {
		r := Run(PBFT(), seed)
		if r.Err != nil {
			t.Error(r.Err)
			if failures++; failures == 10 {
				t.Fatal("too many failures")
			}
			continue
		}
		if again := Run(PBFT(), seed); again.Trace != r.Trace {
			t.Fatalf("seed %d: two runs differ", seed)
		}
		ordered += r.Ordered
		repeats += r.Repeats
		messages += r.Messages
		restarts += r.Restarts
		views += int(r.View)
		worst = max(worst, r.HealTicks)
	}
	t.Logf("%d seeds: %d transactions ordered, %d repeats, %d messages, %d crashes, %d views, at most %d ticks after the faults",
		n, ordered, repeats, messages, restarts, views, worst)
}
