package raft

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	hraft "github.com/hashicorp/raft"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/ordering"
)

// Orderer is one of the orderers of a network. It implements
// [ordering.Service].
type Orderer struct {
	opts   Options
	log    *slog.Logger
	id     hraft.ServerID
	config *ordering.Configuration

	raft *hraft.Raft
	// endRaft tells the library to stop. Of its futures only the first one waits
	// for that, so all callers get that one.
	endRaft func() hraft.Future
	entries hraft.LogStore
	started chan struct{} // closed when raft is set
	mux     *mux
	closers []io.Closer // what the library does not close, the last one first

	pool   *pool
	recent *recent
	sealed chan *block.Block
	tail   *ordering.Tail
	leader *leader
	reign  atomic.Pointer[reign] // nil unless this orderer leads
	wake   chan struct{}         // capacity 1: blocks were made, stored or done

	applied  atomic.Uint64 // number of the last block that was made
	done     atomic.Uint64 // number of the last block that a node has processed
	underWay atomic.Int64  // entries that this leader has proposed

	// closing is closed when Close was called. routing is done when nothing more
	// is submitted to leaders, closed when all connections have to end, and end when
	// everything has stopped or something failed; its cause is what callers get
	// from then on.
	closing                     chan struct{}
	closeOnce                   sync.Once
	closeErr                    error
	routing, closed, end        context.Context
	stopRouting, cancelClosed   context.CancelFunc
	stop                        context.CancelCauseFunc
	routers, persister, serving sync.WaitGroup
}

var _ ordering.Service = (*Orderer)(nil)

// Start joins the other orderers, or begins a network with those of Bootstrap.
// It returns before a leader is known.
func Start(opts Options) (*Orderer, error) {
	opts.EnsureDefaults()
	if err := opts.Validate(); err != nil {
		if opts.Listener != nil {
			err = errors.Join(err, opts.Listener.Close())
		}
		return nil, err
	}
	o := &Orderer{
		opts:    opts,
		log:     opts.Logger,
		id:      serverID(opts.Signer.Public()),
		config:  opts.configuration(),
		started: make(chan struct{}),
		pool:    newPool(opts.Queue),
		recent:  newRecent(opts.Remember),
		sealed:  make(chan *block.Block, sealedAhead),
		tail:    ordering.NewTail(opts.Tip),
		leader:  newLeader(),
		wake:    make(chan struct{}, 1),
		closing: make(chan struct{}),
	}
	o.closed, o.cancelClosed = context.WithCancel(context.Background())
	o.end, o.stop = context.WithCancelCause(context.Background())
	o.routing, o.stopRouting = context.WithCancel(o.end)
	o.done.Store(opts.Tip.Number)
	o.mux = newMux(o)
	o.persister.Go(o.persist)
	if err := o.open(); err != nil {
		return nil, errors.Join(err, o.Close())
	}
	return o, nil
}

// open starts what talks to others.
func (o *Orderer) open() error {
	o.serving.Go(o.mux.serve)
	if err := o.startRaft(); err != nil {
		return err
	}
	o.endRaft = sync.OnceValue(o.raft.Shutdown)
	close(o.started)
	observations := make(chan hraft.Observation, 16)
	o.raft.RegisterObserver(hraft.NewObserver(observations, false, func(ob *hraft.Observation) bool {
		_, ok := ob.Data.(hraft.LeaderObservation)
		return ok
	}))
	o.routers.Go(func() { o.watch(observations) })
	o.routers.Go(o.route)
	o.serving.Go(func() {
		<-o.end.Done()
		o.endRaft() // after a fault the others go on without this orderer
	})
	return nil
}

// Submit implements [ordering.Service].
func (o *Orderer) Submit(ctx context.Context, tx *block.Tx) error {
	if err := ordering.Check(tx, o.opts.Network, o.applied.Load()+1); err != nil {
		return err
	}
	it := itemOf(tx)
	for {
		select {
		case <-o.closing:
			return o.ended()
		case <-o.end.Done():
			return o.ended()
		default:
		}
		if o.recent.has(it.content) {
			return nil
		}
		full := o.pool.add(it)
		if full == nil {
			return o.afterAdd(it)
		}
		select {
		case <-full:
		case <-ctx.Done():
			return ordering.Busy()
		case <-o.closing:
		case <-o.end.Done():
		}
	}
}

// afterAdd takes back what was put into a block between the look at the blocks and
// the pool.
func (o *Orderer) afterAdd(it item) error {
	if o.recent.has(it.content) {
		o.pool.remove([]item{it})
	}
	return nil
}

// ended returns why the service takes nothing more.
func (o *Orderer) ended() error {
	if o.end.Err() != nil {
		return context.Cause(o.end)
	}
	return ordering.ErrClosed
}

// Deliver implements [ordering.Service].
func (o *Orderer) Deliver(ctx context.Context, from block.Height, f func(*block.Block) error) error {
	for next := from; ; next++ {
		if err := o.tail.Wait(ctx, o.end, next); err != nil {
			return err
		}
		b, err := o.durable(next)
		if err != nil {
			return err
		}
		if err := f(b); err != nil {
			return err
		}
	}
}

// Done implements [ordering.Service].
func (o *Orderer) Done(height block.Height) { o.raiseDone(min(height, o.tail.Height())) }

// raiseDone notes that some node has processed blocks up to height.
func (o *Orderer) raiseDone(height block.Height) {
	for {
		old := o.done.Load()
		if height <= old {
			return
		}
		if o.done.CompareAndSwap(old, height) {
			break
		}
	}
	notify(o.wake)
}

// Status implements [ordering.Service]. Waiting counts what was submitted here,
// InFlight includes entries under way if this orderer leads.
func (o *Orderer) Status() ordering.Status {
	s := ordering.Status{
		Protocol: block.OrdererRaft,
		Height:   o.tail.Height(),
		Waiting:  o.pool.len(),
		InFlight: o.inFlight(),
	}
	if o.end.Err() != nil {
		s.Err = context.Cause(o.end)
	}
	return s
}

// inFlight returns how many blocks are proposed or made and not done. An entry
// may count twice for a moment, as proposed and as made, but never not at all.
func (o *Orderer) inFlight() int {
	done := o.done.Load()
	if o.opts.IgnoreDone {
		done = o.tail.Height()
	}
	underWay := 0
	if o.reign.Load() != nil {
		underWay = int(o.underWay.Load())
	}
	applied := o.applied.Load() // last: made since, it is not under way any more
	return underWay + int(applied-min(done, applied))
}

// Close takes no more transactions, waits for those that were accepted to stand in
// blocks, at most FlushTimeout and only while there is a leader, hands over the
// leadership, and stops: nil, or what ended the service before.
func (o *Orderer) Close() error {
	o.closeOnce.Do(func() {
		close(o.closing)
		o.flush()
		o.stopRouting()
		o.routers.Wait()
		if o.raft != nil && o.end.Err() == nil && o.raft.State() == hraft.Leader {
			_ = o.raft.LeadershipTransfer().Error() // nobody to hand over to, or too late: they elect
		}
		o.closeErr = o.shutdown()
	})
	return o.closeErr
}

func (o *Orderer) onClose(c io.Closer) { o.closers = append(o.closers, c) }

// flush waits for the pool.
func (o *Orderer) flush() {
	deadline := time.NewTimer(o.opts.FlushTimeout)
	defer deadline.Stop()
	for {
		_, address, changed := o.leader.get()
		n, removed := o.pool.shrunk()
		if n == 0 || address == "" {
			return
		}
		select {
		case <-removed:
		case <-changed:
		case <-deadline.C:
			return
		case <-o.end.Done():
			return
		}
	}
}

// shutdown stops everything, in the order in which things depend on each other.
func (o *Orderer) shutdown() error {
	o.cancelClosed()
	var ending hraft.Future
	if o.raft != nil {
		ending = o.endRaft()
	}
	err := o.mux.shutdown() // ends the calls that the library waits for
	if ending != nil {
		err = errors.Join(err, ending.Error())
	}
	close(o.sealed)
	o.persister.Wait()
	o.stop(ordering.ErrClosed)
	o.serving.Wait()
	for _, c := range slices.Backward(o.closers) {
		err = errors.Join(err, c.Close())
	}
	if cause := context.Cause(o.end); !errors.Is(cause, ordering.ErrClosed) {
		return cause
	}
	if err != nil {
		return fmt.Errorf("raft: closing: %w", err)
	}
	return nil
}
