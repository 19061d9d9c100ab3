package chain

import (
	"time"

	"github.com/tallystick/tallystick/ssi"
)

// Metrics are totals since the chain was opened, replayed blocks included.
// Times are microseconds spent by Process in a stage, not CPU time: a stage that
// works in parallel counts once.
type Metrics struct {
	Blocks, Transactions                 uint64
	Committed, Aborted, Failed, Rejected uint64
	// Speculated were executed before their block came, Missing when it came.
	Speculated, Missing uint64
	// Reexecuted counts executions after the first one of a transaction.
	Reexecuted uint64
	// Aborts counts the aborted by their cause.
	Aborts [causes]uint64

	CheckMicros   uint64 // the block itself
	VerifyMicros  uint64 // signatures, membership
	ExecuteMicros uint64
	DecideMicros  uint64
	ApplyMicros   uint64 // winners into the batch
	SystemMicros  uint64
	// ReexecuteMicros is all of the rounds after the first one.
	ReexecuteMicros uint64
	CommitMicros    uint64 // ledger rows, state hash, store
}

// Cause says why a transaction was aborted.
type Cause uint8

// The causes: a stale snapshot, no room in the block, and those of package ssi.
const (
	CauseStale Cause = iota
	CauseBudget
	CauseWriteWrite
	CauseNearConflict
	CauseFarConflict
	CauseCycle
	causes
)

var causeNames = [causes]string{"stale", "block-budget", "write-write", "near-conflict", "far-conflict", "cycle"}

// String returns a short name for metrics.
func (c Cause) String() string { return causeNames[c] }

// causeOf translates the verdict of an in-block rule.
func causeOf(c ssi.Cause) Cause {
	switch c {
	case ssi.WriteWrite:
		return CauseWriteWrite
	case ssi.NearConflict:
		return CauseNearConflict
	case ssi.FarConflict:
		return CauseFarConflict
	case ssi.Cycle:
		return CauseCycle
	}
	panic("chain: an abort without a cause")
}

// Metrics returns the totals so far.
func (c *Chain) Metrics() Metrics {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.metrics
}

// Minus returns what came in addition to earlier totals.
func (m Metrics) Minus(earlier *Metrics) Metrics {
	for _, f := range [...]struct{ now, then *uint64 }{
		{&m.Blocks, &earlier.Blocks}, {&m.Transactions, &earlier.Transactions},
		{&m.Committed, &earlier.Committed}, {&m.Aborted, &earlier.Aborted},
		{&m.Failed, &earlier.Failed}, {&m.Rejected, &earlier.Rejected},
		{&m.Speculated, &earlier.Speculated}, {&m.Missing, &earlier.Missing},
		{&m.Reexecuted, &earlier.Reexecuted}, {&m.CheckMicros, &earlier.CheckMicros},
		{&m.VerifyMicros, &earlier.VerifyMicros}, {&m.ExecuteMicros, &earlier.ExecuteMicros},
		{&m.DecideMicros, &earlier.DecideMicros}, {&m.ApplyMicros, &earlier.ApplyMicros},
		{&m.SystemMicros, &earlier.SystemMicros}, {&m.ReexecuteMicros, &earlier.ReexecuteMicros},
		{&m.CommitMicros, &earlier.CommitMicros},
	} {
		*f.now -= *f.then
	}
	for i := range m.Aborts {
		m.Aborts[i] -= earlier.Aborts[i]
	}
	return m
}

// stopwatch measures consecutive stages.
type stopwatch struct{ last time.Time }

func startWatch() stopwatch { return stopwatch{time.Now()} }

// lap adds the time since the last lap to a total.
func (w *stopwatch) lap(total *uint64) {
	now := time.Now()
	*total += uint64(now.Sub(w.last).Microseconds())
	w.last = now
}
