package server

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/tallystick/tallystick/server/chain"
)

const (
	// scrubRate bounds the bytes per second that a scrub reads: some percent of
	// what a disk and one core do.
	scrubRate = 4 << 20
	// scrubEvery is the time between the end of a scrub and the next one.
	scrubEvery = time.Hour
	// searchRate is the rate when the node is known to be wrong and answers nobody.
	searchRate = 256 << 20
)

// scrubber compares the rows at rest with what the chain wrote, again and again,
// and halts the chain if they differ.
type scrubber struct {
	chain *chain.Chain
	every time.Duration // 0: only once a checkpoint has exposed the node
	log   *slog.Logger
	wake  chan struct{}
}

func newScrubber(c *chain.Chain, log *slog.Logger) *scrubber {
	return &scrubber{chain: c, every: scrubEvery, log: log, wake: make(chan struct{}, 1)}
}

// exposed tells that a checkpoint has exposed the node: the next scrub begins at
// once, to name the row. It never waits.
func (s *scrubber) exposed() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// run scrubs until ctx is done or there is nothing more to find out, which gives
// nil. An error means that the store cannot be read: the node must end.
func (s *scrubber) run(ctx context.Context) error {
	for {
		known := s.chain.Diverged()
		if known != nil && known.Damage != nil {
			return nil // it is halted, and the row is named
		}
		if known != nil || s.every > 0 {
			done, err := s.scrub(ctx, known != nil)
			if done || err != nil {
				return err
			}
		}
		var next <-chan time.Time
		if s.every > 0 {
			next = time.After(s.every)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-s.wake:
		case <-next:
		}
	}
}

// scrub scrubs once; done means that there is no need for another one. If the node
// is known to be wrong, time is what counts.
func (s *scrubber) scrub(ctx context.Context, wrong bool) (done bool, err error) {
	options := chain.ScrubOptions{BytesPerSecond: scrubRate}
	if wrong {
		options.BytesPerSecond = searchRate
	}
	report, err := s.chain.Scrub(ctx, options)
	switch {
	case ctx.Err() != nil:
		return true, nil
	case err != nil:
		return true, fmt.Errorf("scrub: %w", err)
	case len(report.Damage) > 0:
		return true, s.halt(report)
	case wrong:
		s.log.Warn("the rows at rest are those that this node wrote: it has computed something else than the others")
		return true, nil
	}
	s.log.Debug("scrubbed", "height", report.Height, "tables", report.Tables, "rows", report.Rows, "bytes", report.Bytes)
	return false, nil
}

// halt says what was found and ends the trust in this node.
func (s *scrubber) halt(report *chain.ScrubReport) error {
	for _, d := range report.Damage {
		s.log.Error("the state of this node is damaged: it processes no more blocks and answers no queries",
			"table", d.Table, "key", d.Key, "block", d.Block, "reason", d.Reason)
	}
	return s.chain.Distrust(report.Damage[0])
}
