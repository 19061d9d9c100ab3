package raft

import (
	"sync/atomic"
	"time"

	hraft "github.com/hashicorp/raft"

	"github.com/tallystick/tallystick/ordering/cutter"
)

// sequencer is the goroutine that decides the order while this orderer leads.
type sequencer struct {
	o      *Orderer
	r      *reign
	cutter *cutter.Cutter
	began  time.Time

	// futures are the entries under way, in order. There is always room: the
	// pipeline is not exceeded.
	futures  chan hraft.ApplyFuture
	underWay *atomic.Int64
	flushing bool // the orderer closes
}

func newSequencer(o *Orderer, r *reign) *sequencer {
	o.underWay.Store(0)
	return &sequencer{
		o:        o,
		r:        r,
		cutter:   cutter.New(o.opts.Cutter, o.applied.Load()+1),
		began:    time.Now(),
		futures:  make(chan hraft.ApplyFuture, o.opts.Pipeline),
		underWay: &o.underWay,
	}
}

// now is the cutter's time: microseconds that never run backwards.
func (s *sequencer) now() int64 { return time.Since(s.began).Microseconds() }

// run orders until the reign ends.
func (s *sequencer) run() {
	settled := make(chan struct{})
	go s.settle(settled)
	defer func() {
		close(s.futures)
		select {
		case <-settled:
		case <-s.o.end.Done(): // a library that was shut down leaves some unanswered
		}
	}()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	closing := s.o.closing
	for {
		s.cutDue()
		timer.Reset(s.sleep())
		select {
		case items := <-s.intake():
			s.admit(items)
			s.drain()
		case <-s.o.wake:
		case <-timer.C:
		case <-closing:
			closing, s.flushing = nil, true
		case <-s.r.ctx.Done():
			return
		}
	}
}

// settle waits for what becomes of the entries. The first one that is not
// committed by this leader ends the reign: what follows it is not either.
func (s *sequencer) settle(settled chan<- struct{}) {
	defer close(settled)
	for f := range s.futures {
		if err := f.Error(); err != nil {
			s.r.cancel()
		}
		s.underWay.Add(-1)
		notify(s.o.wake)
	}
}

// intake takes transactions unless the next block is full and may not be cut:
// then they wait with those who offer them.
func (s *sequencer) intake() <-chan []item {
	if s.cutter.Full() {
		return nil
	}
	return s.r.intake
}

// drain admits what else is offered, up to a full block.
func (s *sequencer) drain() {
	for !s.cutter.Full() {
		select {
		case items := <-s.r.intake:
			s.admit(items)
		default:
			return
		}
	}
}

// admit lets transactions wait for a block unless they were here before.
func (s *sequencer) admit(items []item) {
	now := s.now()
	for _, it := range s.o.recent.claim(items) {
		s.cutter.Add(it.tx, now)
	}
}

// sleep returns how long nothing is due unless something happens.
func (s *sequencer) sleep() time.Duration {
	at, ok := s.cutter.Deadline()
	if !ok || s.pipelineFull() {
		return time.Hour
	}
	return time.Duration(max(at-s.now(), 0)) * time.Microsecond
}

func (s *sequencer) pipelineFull() bool { return int(s.underWay.Load()) >= s.o.opts.Pipeline }

func (s *sequencer) cutDue() {
	for !s.pipelineFull() && s.r.ctx.Err() == nil {
		s.cutter.InFlight(s.o.inFlight())
		if l, ok := s.o.config.Limits(s.o.applied.Load() + 1); ok {
			s.cutter.SetLimits(int(l.BlockTxs), int(l.BlockBytes), int64(l.BlockTimeoutMicros))
		}
		batch, ok := s.cutter.Cut(s.now())
		if !ok && s.flushing {
			batch, ok = s.cutter.Flush()
		}
		if !ok {
			return
		}
		s.propose(batch)
	}
}

// propose hands an entry to the library, which orders entries as they come.
func (s *sequencer) propose(batch cutter.Batch) {
	e := entry{proposed: s.o.opts.Clock(), configID: s.o.opts.ConfigID, txs: make([]item, len(batch.Txs))}
	for i, tx := range batch.Txs {
		e.txs[i].tx = tx
	}
	s.underWay.Add(1)
	s.futures <- s.o.raft.Apply(e.encode(), 0)
	if s.o.opts.OnCut != nil {
		s.o.opts.OnCut(batch)
	}
}
