package bench

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Latency collects durations from 1 us to 10 minutes with three digits.
type Latency struct{ h *hdrhistogram.Histogram }

// NewLatency makes an empty one, of about 200 KB.
func NewLatency() *Latency {
	return &Latency{hdrhistogram.New(1, (10 * time.Minute).Microseconds(), 3)}
}

// Record adds a duration; what is out of range counts as the bound.
func (l *Latency) Record(d time.Duration) {
	us := min(max(d.Microseconds(), l.h.LowestTrackableValue()), l.h.HighestTrackableValue())
	if err := l.h.RecordValue(us); err != nil {
		panic(err) // it is in range
	}
}

// Merge adds what another one has.
func (l *Latency) Merge(o *Latency) { l.h.Merge(o.h) }

// Percentiles in milliseconds.
type Percentiles struct {
	Mean float64 `json:"mean"`
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P95  float64 `json:"p95"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p99.9"`
	Max  float64 `json:"max"`
}

// Percentiles returns what reports show.
func (l *Latency) Percentiles() Percentiles {
	ms := func(us int64) float64 { return float64(us) / 1e3 }
	return Percentiles{
		Mean: l.h.Mean() / 1e3,
		P50:  ms(l.h.ValueAtQuantile(50)), P90: ms(l.h.ValueAtQuantile(90)), P95: ms(l.h.ValueAtQuantile(95)),
		P99: ms(l.h.ValueAtQuantile(99)), P999: ms(l.h.ValueAtQuantile(99.9)), Max: ms(l.h.Max()),
	}
}
