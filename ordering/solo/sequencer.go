package solo

import (
	"time"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/ordering/cutter"
)

// sequencer is the goroutine that decides the order. What it holds is its own.
type sequencer struct {
	o      *Orderer
	cutter *cutter.Cutter
	seen   *recent
	began  time.Time

	// The last block that was cut; timestamp in Unix microseconds.
	number    block.Height
	hash      block.Hash
	timestamp int64
}

func newSequencer(o *Orderer, seen *recent) *sequencer {
	tip := o.opts.Tip
	return &sequencer{
		o:         o,
		cutter:    cutter.New(o.opts.Cutter, tip.Number+1),
		seen:      seen,
		began:     time.Now(),
		number:    tip.Number,
		hash:      tip.Hash(),
		timestamp: tip.Timestamp,
	}
}

// now is the cutter's time: microseconds that never run backwards.
func (s *sequencer) now() int64 { return time.Since(s.began).Microseconds() }

// run orders until the orderer is closed or fails; then no block comes any more.
func (s *sequencer) run() {
	defer close(s.o.sealed)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		s.cutDue()
		timer.Reset(s.sleep())
		select {
		case sub := <-s.intake():
			s.admit(sub)
			s.drain()
		case <-s.o.wake:
		case <-timer.C:
		case <-s.o.closing:
			s.flush()
			return
		case <-s.o.end.Done():
			return
		}
	}
}

// intake is the queue, unless the next block is full and may not be cut: then
// transactions wait in the queue and, once that is full, in Submit.
func (s *sequencer) intake() <-chan submission {
	if s.cutter.Full() {
		return nil
	}
	return s.o.queue
}

// drain admits what else is in the queue, up to a full block.
func (s *sequencer) drain() {
	for !s.cutter.Full() {
		select {
		case sub := <-s.o.queue:
			s.admit(sub)
		default:
			return
		}
	}
}

// admit lets a transaction wait for a block unless it was here before.
func (s *sequencer) admit(sub submission) {
	if s.seen.add(sub.content, sub.tx.ValidUntil, s.number+1) {
		s.cutter.Add(sub.tx, s.now())
		s.o.waiting.Store(int64(s.cutter.Waiting()))
	}
}

// sleep returns how long nothing is due unless something happens.
func (s *sequencer) sleep() time.Duration {
	at, ok := s.cutter.Deadline()
	if !ok {
		return time.Hour
	}
	return time.Duration(max(at-s.now(), 0)) * time.Microsecond
}

func (s *sequencer) cutDue() {
	for {
		s.cutter.InFlight(s.o.inFlight())
		batch, ok := s.cutter.Cut(s.now())
		if !ok {
			return
		}
		if !s.seal(batch) {
			return
		}
	}
}

// flush makes blocks of everything that was accepted.
func (s *sequencer) flush() {
	for {
		s.drain()
		batch, ok := s.cutter.Flush()
		if !ok {
			return
		}
		if !s.seal(batch) {
			return
		}
	}
}

// seal makes the block that follows the last one and passes it on. It is false if
// the orderer may not make it: then the service ends.
func (s *sequencer) seal(batch cutter.Batch) bool {
	member, err := s.o.config.Member(s.number + 1)
	if err != nil {
		s.o.stop(err)
		return false
	}
	b := &block.Block{
		Number:    s.number + 1,
		PrevHash:  s.hash,
		ConfigID:  s.o.config.ID(s.number + 1),
		Timestamp: max(s.o.opts.Clock(), s.timestamp+1),
		Txs:       batch.Txs,
	}
	if batch.Number != b.Number {
		panic("solo: cutter and chain number blocks differently")
	}
	s.number, s.hash, s.timestamp = b.Number, b.Seal(), b.Timestamp
	b.Certificate = s.o.certify(member, s.hash)
	if err := s.o.config.Advance(b); err != nil {
		s.o.stop(err)
		return false
	}
	if l, ok := s.o.config.Limits(b.Number + 1); ok {
		s.cutter.SetLimits(int(l.BlockTxs), int(l.BlockBytes), int64(l.BlockTimeoutMicros))
	}
	s.seen.passed(b.Number)
	s.o.cut.Store(b.Number)
	s.o.waiting.Store(int64(s.cutter.Waiting()))
	if s.o.opts.OnCut != nil {
		s.o.opts.OnCut(batch)
	}
	select {
	case s.o.sealed <- b:
	case <-s.o.end.Done(): // nobody takes it any more
	}
	return true
}
