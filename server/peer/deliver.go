package peer

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/ordering"
)

const (
	// avoidLiar is how long a sender of bad blocks is asked last.
	avoidLiar = time.Minute
	// statusTimeout bounds the question for another member's height.
	statusTimeout = 2 * time.Second
)

// errStale ends the stream of a sender that is behind others.
var errStale = errors.New("peer: others have more blocks")

// subscription is one call of Deliver.
type subscription struct {
	s    *Service
	f    func(*block.Block) error
	tip  *block.Block // the last block that was taken
	next atomic.Uint64
	// moved is when the last block came, Unix nanoseconds.
	moved atomic.Int64
	fault error // of f: ends the subscription
}

// Deliver implements [ordering.Service]. Blocks come from one member at a time: an
// orderer if one is reached, else another node. Whoever fails, sends what does not
// follow or is not certified, or has nothing while others have, is left for the
// next one. What f gets was verified.
func (s *Service) Deliver(ctx context.Context, from block.Height, f func(*block.Block) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.end, cancel)()
	sub := &subscription{s: s, f: f}
	sub.next.Store(from)
	if from > 0 {
		// A subscriber that does not have the block before takes the first one by
		// its certificate alone.
		sub.tip, _ = s.opts.Block(from - 1)
	}
	for {
		for _, r := range s.order(sub.next.Load()) {
			err := sub.from(ctx, r)
			switch {
			case s.end.Err() != nil:
				return ordering.ErrClosed
			case ctx.Err() != nil:
				return context.Cause(ctx)
			case sub.fault != nil:
				return sub.fault
			}
			sub.leave(r, err)
		}
		s.pause(retryPause)
	}
}

// order lists the senders: orderers, then nodes; those that claim to have the next
// block before those that do not; those that failed lately last.
func (s *Service) order(next block.Height) []*remote {
	now := time.Now()
	var ahead, rest, bad []*remote
	for _, r := range s.sources {
		switch {
		case r.avoided(now):
			bad = append(bad, r)
		case r.claimed() >= next && next > 0:
			ahead = append(ahead, r)
		default:
			rest = append(rest, r)
		}
	}
	return append(append(ahead, rest...), bad...)
}

// leave notes why a sender was left.
func (sub *subscription) leave(r *remote, err error) {
	log := sub.s.log.With("from", r.User, "address", r.Address, "next", sub.next.Load(), "error", err)
	switch {
	case errors.Is(err, ErrBadBlock):
		r.blame(err, avoidLiar)
		log.Error("a member sends blocks that do not belong to the chain: it lies, or is damaged")
	case errors.Is(err, errStale):
		r.blame(err, avoidFailed)
		log.Warn("a member has no news while others have: going on with another")
	default:
		r.blame(err, avoidFailed)
		log.Warn("no blocks from a member: going on with another")
	}
}

// from takes blocks of one sender until it fails or is stale.
func (sub *subscription) from(ctx context.Context, r *remote) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	sub.moved.Store(time.Now().UnixNano())
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		sub.watch(ctx, cancel, r)
	}()
	err := r.blocks(ctx, sub.next.Load(), sub.take)
	stale := errors.Is(context.Cause(ctx), errStale)
	cancel(nil)
	<-watched
	if stale && sub.fault == nil && !errors.Is(err, ErrBadBlock) {
		return errStale
	}
	return err
}

// take verifies a block and hands it on.
func (sub *subscription) take(b *block.Block) error {
	if err := sub.verify(b); err != nil {
		return badBlock(err)
	}
	sub.s.delivered(b)
	if err := sub.f(b); err != nil {
		sub.fault = err
		return err
	}
	if sub.s.opts.Taken != nil {
		sub.s.opts.Taken(b)
	}
	sub.tip = b
	sub.next.Store(b.Number + 1)
	sub.moved.Store(time.Now().UnixNano())
	return nil
}

// verify checks number, link, time and certificate.
func (sub *subscription) verify(b *block.Block) error {
	if b.Number != sub.next.Load() {
		return fmt.Errorf("block %d instead of %d", b.Number, sub.next.Load())
	}
	if b.Number == 0 {
		if b.ConfigID != sub.s.opts.Network {
			return errors.New("the genesis of another network")
		}
		return nil
	}
	if sub.tip != nil {
		if err := b.Follows(sub.tip.Number, sub.tip.Hash(), sub.tip.Timestamp); err != nil {
			return err
		}
	}
	if err := sub.s.opts.Check(b); err != nil {
		return fmt.Errorf("block %d: its certificate: %w", b.Number, err)
	}
	return nil
}

// watch asks other members for their height while the sender is silent, and ends
// its stream if one of them has more.
func (sub *subscription) watch(ctx context.Context, cancel context.CancelCauseFunc, active *remote) {
	tick := time.NewTicker(max(sub.s.opts.Stale/2, time.Millisecond))
	defer tick.Stop()
	asked := 0
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if time.Since(time.Unix(0, sub.moved.Load())) < sub.s.opts.Stale {
			continue
		}
		// One after the other: an idle network asks one question a tick.
		asked++
		r := sub.s.sources[asked%len(sub.s.sources)]
		if r == active {
			continue
		}
		next := sub.next.Load()
		c, done := context.WithTimeout(ctx, statusTimeout)
		st, err := r.status(c)
		done()
		if err == nil && st.Height >= next && sub.next.Load() == next {
			cancel(errStale)
			return
		}
	}
}
