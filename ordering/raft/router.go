package raft

import (
	"context"
	"sync"
	"time"

	hraft "github.com/hashicorp/raft"
)

// retryPause is how long the router waits before it tries the same leader again.
const retryPause = 10 * time.Millisecond

// leader is who leads, as far as this orderer knows.
type leader struct {
	mu      sync.Mutex
	id      hraft.ServerID
	address string        // empty if nobody is known
	changed chan struct{} // closed and replaced at every change
}

func newLeader() *leader { return &leader{changed: make(chan struct{})} }

// set notes who leads. Every call ends what was begun under the leader before,
// for the same one again may be another term.
func (l *leader) set(id hraft.ServerID, address string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.id, l.address = id, address
	close(l.changed)
	l.changed = make(chan struct{})
}

// get returns who leads, and a channel that is closed when that changes.
func (l *leader) get() (id hraft.ServerID, address string, changed <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.id, l.address, l.changed
}

// watch follows what the library observes.
func (o *Orderer) watch(observations <-chan hraft.Observation) {
	for {
		address, id := o.raft.LeaderWithID()
		o.leader.set(id, string(address))
		select {
		case <-observations:
		case <-o.routing.Done():
			return
		}
	}
}

// route brings what is submitted to whoever leads, until the orderer closes.
func (o *Orderer) route() {
	for o.routing.Err() == nil {
		id, address, changed := o.leader.get()
		ctx, cancel := context.WithCancel(o.routing)
		stop := make(chan struct{})
		go func() {
			defer cancel()
			select {
			case <-changed:
			case <-stop:
			}
		}()
		switch {
		case address == "":
			<-ctx.Done()
		case id == o.id:
			o.lead(ctx)
		default:
			if err := o.follow(ctx, address); err != nil && ctx.Err() == nil {
				o.log.Debug("forwarding to the leader", "address", address, "error", err)
			}
		}
		close(stop)
		select {
		case <-changed:
		case <-time.After(retryPause):
		case <-o.routing.Done():
		}
	}
}

// reign is a time during which this orderer leads. What it holds is lost with it:
// pools have everything.
type reign struct {
	ctx    context.Context
	cancel context.CancelFunc
	intake chan []item
}

// offer hands transactions to the sequencer and waits until it takes them.
func (r *reign) offer(items []item) error {
	select {
	case r.intake <- items:
		return nil
	case <-r.ctx.Done():
		return r.ctx.Err()
	}
}

// lead orders until ctx is done or the library says that it is over.
func (o *Orderer) lead(ctx context.Context) {
	// After the barrier the machine has all entries of former leaders, and so
	// duplicates of theirs are known.
	if err := o.raft.Barrier(0).Error(); err != nil {
		return
	}
	o.recent.newReign()
	r := &reign{intake: make(chan []item)}
	r.ctx, r.cancel = context.WithCancel(ctx)
	var feeder sync.WaitGroup
	feeder.Go(func() { o.feed(r) })
	o.reign.Store(r)
	newSequencer(o, r).run()
	o.reign.Store(nil)
	r.cancel()
	feeder.Wait()
}

// feed offers the whole pool and then what is added.
func (o *Orderer) feed(r *reign) {
	var cursor uint64
	for {
		var items []item // the sequencer keeps it
		items, cursor = o.pool.take(nil, cursor, maxFrameTxs, frameBytes)
		if len(items) > 0 {
			if r.offer(items) != nil {
				return
			}
			continue
		}
		select {
		case <-o.pool.added:
		case <-r.ctx.Done():
			return
		}
	}
}
