package peer

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/ordering"
)

const (
	// submitTimeout is how long an orderer may take to accept transactions.
	submitTimeout = 3 * time.Second
	// avoidFailed is how long an orderer that failed is asked last.
	avoidFailed = 2 * time.Second
	// retryPause is the pause, with jitter, when no orderer takes anything.
	retryPause = 200 * time.Millisecond
	// resubmitCheck is how often overdue transactions are looked for, maxResubmit
	// how many are taken at once and maxResubmitPause the longest time between two
	// submissions of one.
	resubmitCheck    = 250 * time.Millisecond
	maxResubmit      = 1024
	maxResubmitPause = 20 * time.Second
)

// Submit implements [ordering.Service]: nil if an orderer has accepted the
// transaction, which this node then watches until it stands in a block.
func (s *Service) Submit(ctx context.Context, tx *block.Tx) error {
	if err := ordering.Check(tx, s.opts.Network, s.height.Load()+1); err != nil {
		return err
	}
	for {
		if s.end.Err() != nil {
			return ordering.ErrClosed
		}
		e, room := s.pending.add(ctx, tx)
		switch {
		case e != nil:
			return s.submit(e)
		case room == nil:
			return nil // on its way already
		}
		select {
		case <-room:
		case <-ctx.Done():
			return ordering.Busy()
		case <-s.end.Done():
		}
	}
}

// submit waits for an orderer to take a transaction.
func (s *Service) submit(e *entry) error {
	s.queue <- e // has room for all of pending
	select {
	case err := <-e.result:
		return err
	case <-e.ctx.Done():
		// It may have been accepted a moment ago; if not it is given up by who
		// finds its context done.
		return ordering.Busy()
	case <-s.end.Done():
		return ordering.ErrClosed
	}
}

// send is one of the workers that carry transactions to orderers.
func (s *Service) send() {
	for {
		select {
		case e := <-s.queue:
			s.hand(s.batch(e))
		case <-s.end.Done():
			return
		}
	}
}

// batch adds to a transaction what else waits, up to the size of a message.
func (s *Service) batch(first *entry) []*entry {
	list, size := []*entry{first}, len(first.tx.Encode())
	for len(list) < maxBatchTxs && size < maxBatchBytes {
		select {
		case e := <-s.queue:
			list = append(list, e)
			size += len(e.tx.Encode())
		default:
			return list
		}
	}
	return list
}

// hand gives a batch to the first orderer that takes it.
func (s *Service) hand(list []*entry) {
	for {
		list = slices.DeleteFunc(list, func(e *entry) bool {
			if e.ctx.Err() != nil {
				s.pending.remove(e)
				return true
			}
			return false
		})
		if len(list) == 0 || s.end.Err() != nil {
			return
		}
		for _, r := range s.inTurn(0) {
			if results, err := s.try(r, txsOf(list)); err == nil {
				s.settle(list, results)
				return
			}
			if s.end.Err() != nil {
				return
			}
		}
		s.pause(retryPause)
	}
}

func txsOf(list []*entry) []*block.Tx {
	txs := make([]*block.Tx, len(list))
	for i, e := range list {
		txs[i] = e.tx
	}
	return txs
}

// inTurn lists the orderers from one on, those last that failed lately.
func (s *Service) inTurn(first int) []*remote {
	now := time.Now()
	var good, bad []*remote
	for i := range s.orderers {
		if r := s.orderers[(first+i)%len(s.orderers)]; r.avoided(now) {
			bad = append(bad, r)
		} else {
			good = append(good, r)
		}
	}
	return append(good, bad...)
}

// try submits to one orderer.
func (s *Service) try(r *remote, txs []*block.Tx) ([]error, error) {
	ctx, cancel := context.WithTimeout(s.end, submitTimeout)
	defer cancel()
	results, err := r.submit(ctx, txs)
	if err != nil && s.end.Err() == nil {
		s.log.Warn("an orderer does not take transactions", "orderer", r.User, "address", r.Address, "error", err)
		r.blame(err, avoidFailed)
	}
	return results, err
}

// settle tells those who submit.
func (s *Service) settle(list []*entry, results []error) {
	due := time.Now().Add(s.opts.Resubmit)
	for i, e := range list {
		if results[i] == nil {
			s.pending.accept(e, due)
		} else {
			s.pending.remove(e)
		}
		e.result <- results[i]
	}
}

// pause waits about d, unless the service ends.
func (s *Service) pause(d time.Duration) {
	select {
	case <-time.After(d/2 + rand.N(d)):
	case <-s.end.Done():
	}
}

// resubmit gives transactions that are in no block after a while to other
// orderers, one after the other: the first one may have failed, or withhold them.
// Those that have them already drop the copies.
func (s *Service) resubmit() {
	tick := time.NewTicker(resubmitCheck)
	defer tick.Stop()
	wait := func(tries int) time.Duration {
		return min(s.opts.Resubmit<<min(tries, 16), maxResubmitPause)
	}
	for {
		select {
		case <-tick.C:
		case <-s.end.Done():
			return
		}
		for tries, txs := range s.pending.overdue(time.Now(), s.height.Load(), wait, maxResubmit) { // any order
			for part := range slices.Chunk(txs, maxBatchTxs) {
				s.again(tries, part)
			}
		}
	}
}

// again submits to the orderer after the one of the last try. What it says does
// not matter: if it takes nothing, the next one is asked in time.
func (s *Service) again(tries int, txs []*block.Tx) {
	r := s.orderers[tries%len(s.orderers)]
	s.log.Info("transactions are in no block yet and go to another orderer", "transactions", len(txs), "orderer", r.User)
	for _, part := range split(txs) {
		_, _ = s.try(r, part) // was logged
	}
}

// split makes messages of at most maxBatchBytes, or one transaction.
func split(txs []*block.Tx) [][]*block.Tx {
	var parts [][]*block.Tx
	start, size := 0, 0
	for i, tx := range txs {
		n := len(tx.Encode())
		if i > start && size+n > maxBatchBytes {
			parts = append(parts, txs[start:i])
			start, size = i, 0
		}
		size += n
	}
	return append(parts, txs[start:])
}

// ErrBadBlock is in the chain of errors about a block that was not taken.
var ErrBadBlock = errors.New("peer: a block that does not belong there")

func badBlock(err error) error { return fmt.Errorf("%w: %w", ErrBadBlock, err) }
