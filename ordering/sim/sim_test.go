package sim

import (
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
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

// kept reads the seeds that found something once.
func kept(t *testing.T) []uint64 {
	text, err := os.ReadFile("testdata/seeds")
	if err != nil {
		t.Fatal(err)
	}
	var list []uint64
	for _, line := range strings.Split(string(text), "\n") {
		if word := strings.Fields(line); len(word) > 0 && word[0] != "#" {
			seed, err := strconv.ParseUint(word[0], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, seed)
		}
	}
	return list
}

// totals is what a test's runs came to.
type totals struct {
	sync.Mutex
	ordered, repeats, messages, restarts, views, worst int
}

func (s *totals) add(r *Result) {
	s.Lock()
	defer s.Unlock()
	s.ordered += r.Ordered
	s.repeats += r.Repeats
	s.messages += r.Messages
	s.restarts += r.Restarts
	s.views += int(r.View)
	s.worst = max(s.worst, r.HealTicks)
}

// TestPBFT runs random scenarios. Each seed runs twice and must leave the same
// trace.
func TestPBFT(t *testing.T) {
	first, n := seeds(t)
	list := kept(t)
	for seed := first; seed < first+n; seed++ {
		list = append(list, seed)
	}
	var sum totals
	next := make(chan uint64)
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for seed := range next {
				r := Run(PBFT(), seed)
				if r.Err != nil {
					t.Error(r.Err)
					continue
				}
				if again := Run(PBFT(), seed); again.Trace != r.Trace {
					t.Errorf("seed %d: two runs differ", seed)
				}
				sum.add(&r)
			}
		})
	}
	for _, seed := range list {
		next <- seed
	}
	close(next)
	wg.Wait()
	t.Logf("%d seeds: %d transactions ordered, %d repeats, %d messages, %d crashes, %d views, at most %d ticks after the faults",
		len(list), sum.ordered, sum.repeats, sum.messages, sum.restarts, sum.views, sum.worst)
}
