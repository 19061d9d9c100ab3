package bench

import (
	"math/rand/v2"
	"sync"
	"time"
)

// arrivals tells when operations of the open loop are due: a Poisson process
// that all clients share.
type arrivals struct {
	mu   sync.Mutex
	rng  *rand.Rand
	mean float64 // nanoseconds between two
	at   time.Time
}

func newArrivals(seed uint64, rate float64, start time.Time) *arrivals {
	return &arrivals{rng: rand.New(rand.NewPCG(seed, 1<<63)), mean: 1e9 / rate, at: start}
}

func (a *arrivals) next() time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.at = a.at.Add(time.Duration(a.rng.ExpFloat64() * a.mean))
	return a.at
}
