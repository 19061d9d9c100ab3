package replica

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/identity"
	"github.com/tallystick/tallystick/ordering"
)

// Replica is one orderer of a byzantine protocol. It implements
// [ordering.Service].
type Replica struct {
	opts Options
	log  *slog.Logger

	machine *driver
	output  *output
	records *records
	links   *links
	tail    *ordering.Tail

	queue   chan *block.Tx
	done    atomic.Uint64 // number of the last block that the node has processed
	status  atomic.Pointer[ordering.MachineStatus]
	waiting atomic.Int64 // transactions that the driver holds

	// closing is closed when Close was called, end when everything has stopped
	// or something failed; its cause is what callers get from then on.
	closing   chan struct{}
	closeOnce sync.Once
	closeErr  error
	end       context.Context
	stop      context.CancelCauseFunc
	running   sync.WaitGroup // driver and the stages of output
}

var _ ordering.Service = (*Replica)(nil)

// Start begins to order after the tip, with what earlier runs have recorded. It
// returns before others are connected.
func Start(opts Options) (*Replica, error) {
	opts.EnsureDefaults()
	if err := opts.Validate(); err != nil {
		if opts.Listener != nil {
			err = errors.Join(err, opts.Listener.Close())
		}
		return nil, err
	}
	r := &Replica{
		opts: opts, log: opts.Logger, tail: ordering.NewTail(opts.Tip),
		queue:   make(chan *block.Tx, opts.Queue),
		closing: make(chan struct{}),
	}
	r.end, r.stop = context.WithCancelCause(context.Background())
	r.done.Store(opts.Tip.Number)
	if err := r.open(); err != nil {
		if opts.Listener != nil {
			err = errors.Join(err, opts.Listener.Close())
		}
		return nil, err
	}
	return r, nil
}

// open makes the machine of its past and starts the stages.
func (r *Replica) open() error {
	store, past, err := openRecords(r.opts.FS, r.opts.Dir, r.log, r.stop)
	if err != nil {
		return err
	}
	r.records = store
	recent, err := r.recent()
	if err != nil {
		return errors.Join(err, store.close())
	}
	m, err := r.opts.Protocol.New(r.opts.Machine, ordering.Start{Tip: r.opts.Tip, Recent: recent}, past)
	if err != nil {
		return errors.Join(fmt.Errorf("replica: starting the machine: %w", err), store.close())
	}
	r.links = newLinks(r)
	r.output = newOutput(r)
	if r.machine, err = newDriver(r, m); err != nil {
		return errors.Join(err, store.close())
	}
	r.links.start()
	r.running.Go(r.output.run)
	r.running.Go(r.output.execute)
	r.running.Go(r.output.serve)
	r.running.Go(r.machine.run)
	return nil
}

// recent reads the blocks whose transactions could come again.
func (r *Replica) recent() ([]*block.Block, error) {
	tip := r.opts.Tip.Number
	from := tip - min(tip, r.opts.Machine.MaxLife-1)
	var list []*block.Block
	for h := max(1, from); h <= tip; h++ {
		b, err := r.opts.Source(h)
		if err != nil {
			return nil, fmt.Errorf("replica: reading block %d: %w", h, err)
		}
		list = append(list, b)
	}
	return list, nil
}

// Submit implements [ordering.Service].
func (r *Replica) Submit(ctx context.Context, tx *block.Tx) error {
	next := r.status.Load().Height + 1
	if err := ordering.Check(tx, r.opts.Machine.Network, next); err != nil {
		return err
	}
	if err := ordering.CheckLife(tx, next, r.opts.Machine.MaxLife); err != nil {
		return err
	}
	if r.opts.Admit != nil {
		if err := r.opts.Admit([]*block.Tx{tx}); err != nil {
			return err
		}
	}
	select {
	case <-r.closing:
		return r.ended()
	case <-r.end.Done():
		return r.ended()
	default:
	}
	select {
	case r.queue <- tx:
		return nil
	default:
	}
	select {
	case r.queue <- tx:
		return nil
	case <-ctx.Done():
		return ordering.Busy()
	case <-r.closing:
	case <-r.end.Done():
	}
	return r.ended()
}

// ended returns why the service takes nothing more.
func (r *Replica) ended() error {
	if r.end.Err() != nil {
		return context.Cause(r.end)
	}
	return ordering.ErrClosed
}

// Deliver implements [ordering.Service].
func (r *Replica) Deliver(ctx context.Context, from block.Height, f func(*block.Block) error) error {
	for next := from; ; next++ {
		if err := r.tail.Wait(ctx, r.end, next); err != nil {
			return err
		}
		b, err := r.durable(next)
		if err != nil {
			return err
		}
		if err := f(b); err != nil {
			return err
		}
	}
}

// durable returns a block that the tail has passed.
func (r *Replica) durable(height block.Height) (*block.Block, error) {
	if b := r.tail.Get(height); b != nil {
		return b, nil
	}
	b, err := r.opts.Source(height)
	if err != nil {
		return nil, fmt.Errorf("replica: reading block %d: %w", height, err)
	}
	return b, nil
}

// Done implements [ordering.Service].
func (r *Replica) Done(height block.Height) {
	height = min(height, r.tail.Height())
	for {
		old := r.done.Load()
		if height <= old {
			return
		}
		if r.done.CompareAndSwap(old, height) {
			r.machine.nudge()
			return
		}
	}
}

// Status implements [ordering.Service].
func (r *Replica) Status() ordering.Status {
	m := r.status.Load()
	s := ordering.Status{
		Protocol: r.opts.Protocol.Name,
		Height:   r.tail.Height(),
		Waiting:  len(r.queue) + int(r.waiting.Load()) + m.Waiting,
		InFlight: r.inFlight(m),
	}
	if r.end.Err() != nil {
		s.Err = context.Cause(r.end)
	}
	return s
}

// Machine describes the machine, as of its last step.
func (r *Replica) Machine() ordering.MachineStatus { return *r.status.Load() }

// Primary returns the key of the member that leads the view, as of the machine's
// last step; false while the view changes.
func (r *Replica) Primary() (identity.PublicKey, bool) {
	s := r.Machine()
	p := r.links.epoch(s.Epoch)
	if s.Changing || p == nil || s.Primary < 0 || s.Primary >= p.members.N() {
		return identity.PublicKey{}, false
	}
	return p.members.Set.Keys[s.Primary], true
}

// inFlight counts the blocks that are under way to agreement, or decided and
// not done.
func (r *Replica) inFlight(m *ordering.MachineStatus) int {
	done := r.done.Load()
	if r.opts.IgnoreDone {
		done = r.tail.Height()
	}
	return m.InFlight + int(m.Height-min(done, m.Height))
}

// Close takes no more transactions, waits until those that were accepted are
// ordered, at most FlushTimeout, and stops: nil, or what ended the service
// before.
func (r *Replica) Close() error {
	r.closeOnce.Do(func() {
		close(r.closing)
		r.flush()
		r.stop(ordering.ErrClosed)
		r.links.close()
		r.running.Wait()
		err := r.records.close()
		if cause := context.Cause(r.end); !errors.Is(cause, ordering.ErrClosed) {
			err = cause // the store may well have failed with it
		}
		r.closeErr = err
	})
	return r.closeErr
}
