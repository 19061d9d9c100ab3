package sim

import "math/rand/v2"

// Scenario is how a simulation is set up. Times are in units, ten of which are a
// tick of a clock that runs right.
type Scenario struct {
	Nodes     int
	Traitors  int // byzantine members, at most f
	Chaos     int // units during which things go wrong
	Txs       int // transactions that clients submit meanwhile
	Window    uint64
	Interval  uint64 // between checkpoints
	BatchTxs  int
	MaxLife   uint64
	Pipeline  int
	Requests  uint64 // ticks until a primary is replaced
	Loss      int    // messages of a hundred that get lost
	Repeats   int    // messages of a hundred that arrive twice
	MaxDelay  int    // units that a message takes at most, mostly
	SyncDelay int    // units that a sync takes at most
	Crashes   int    // crashes in the run, about
	Parts     int    // partitions in the run, about
	Clogs     int    // clogged links in the run, about
	Censored  bool   // the traitors order nothing of one member's clients
	Joins     bool   // the membership changes on the way
}

// scenario draws a scenario from a seed: most are small and hard.
func scenario(r *rand.Rand) Scenario {
	sizes := []int{4, 4, 4, 4, 4, 5, 6, 7}
	s := Scenario{
		Nodes:     sizes[r.IntN(len(sizes))],
		Chaos:     1000 + r.IntN(2500),
		Txs:       10 + r.IntN(50),
		Window:    uint64(4 << r.IntN(3)),
		BatchTxs:  1 + r.IntN(4),
		MaxLife:   uint64(20 + r.IntN(200)),
		Pipeline:  1 + r.IntN(3),
		Requests:  uint64(10 + r.IntN(30)),
		MaxDelay:  1 + r.IntN(60),
		SyncDelay: r.IntN(12),
	}
	s.Interval = s.Window / uint64(2<<r.IntN(2))
	if r.IntN(4) > 0 {
		s.Loss = r.IntN(25)
	}
	if r.IntN(3) > 0 {
		s.Repeats = r.IntN(20)
	}
	if r.IntN(4) > 0 {
		s.Traitors = 1 + r.IntN((s.Nodes-1)/3)
	}
	if r.IntN(3) > 0 {
		s.Crashes = r.IntN(8)
	}
	if r.IntN(3) > 0 {
		s.Parts = r.IntN(6)
	}
	if r.IntN(2) > 0 {
		s.Clogs = r.IntN(6)
	}
	s.Censored = r.IntN(3) == 0
	s.Joins = r.IntN(6) == 0
	if r.IntN(6) == 0 {
		// Nothing lasts long: crashes one after another, primaries that get
		// hardly any time.
		s.Crashes, s.Requests, s.SyncDelay = 10+r.IntN(40), uint64(4+r.IntN(6)), r.IntN(4)
	}
	return s
}
