package solo

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/identity"
	"github.com/tallystick/tallystick/ordering"
)

// Orderer is the ordering service of one orderer. It implements
// [ordering.Service].
type Orderer struct {
	opts   Options
	config *ordering.Configuration

	queue  chan submission
	sealed chan *block.Block
	wake   chan struct{} // capacity 1: done has changed

	// closing is closed when Close was called, end when everything has stopped
	// or something failed; its cause is what callers get from then on.
	closing   chan struct{}
	closeOnce sync.Once
	end       context.Context
	stop      context.CancelCauseFunc
	workers   sync.WaitGroup

	tail    *ordering.Tail
	cut     atomic.Uint64 // number of the last block that was cut
	done    atomic.Uint64 // number of the last block that the node has processed
	waiting atomic.Int64  // transactions with the sequencer
}

var _ ordering.Service = (*Orderer)(nil)

// submission is a transaction on its way to the sequencer.
type submission struct {
	tx      *block.Tx
	content content
}

// Start begins to order after the tip. It reads the last blocks, as far back as
// it has to remember them.
func Start(opts Options) (*Orderer, error) {
	opts.EnsureDefaults()
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	seen, err := rememberBlocks(&opts)
	if err != nil {
		return nil, err
	}
	o := &Orderer{
		opts:    opts,
		config:  opts.configuration(),
		queue:   make(chan submission, opts.Queue),
		sealed:  make(chan *block.Block, sealedAhead),
		wake:    make(chan struct{}, 1),
		closing: make(chan struct{}),
		tail:    ordering.NewTail(opts.Tip),
	}
	o.end, o.stop = context.WithCancelCause(context.Background())
	o.cut.Store(opts.Tip.Number)
	o.done.Store(opts.Tip.Number)
	o.workers.Add(2)
	go func() {
		defer o.workers.Done()
		newSequencer(o, seen).run()
	}()
	go func() {
		defer o.workers.Done()
		o.persist()
	}()
	return o, nil
}

// rememberBlocks reads the transactions that may still be handed in again.
func rememberBlocks(opts *Options) (*recent, error) {
	seen := newRecent(opts.Remember)
	from := opts.Tip.Number - min(opts.Tip.Number, opts.Remember) + 1
	for h := from; h <= opts.Tip.Number; h++ {
		b, err := opts.Source(h)
		if err != nil {
			return nil, fmt.Errorf("solo: reading block %d: %w", h, err)
		}
		for _, tx := range b.Txs {
			seen.add(contentOf(tx), tx.ValidUntil, h)
		}
		seen.passed(h)
	}
	return seen, nil
}

// Submit implements [ordering.Service].
func (o *Orderer) Submit(ctx context.Context, tx *block.Tx) error {
	if err := ordering.Check(tx, o.opts.Network, o.cut.Load()+1); err != nil {
		return err
	}
	s := submission{tx, contentOf(tx)}
	select {
	case <-o.closing:
		return o.ended()
	case <-o.end.Done():
		return o.ended()
	default:
	}
	select {
	case o.queue <- s:
		return nil
	default:
	}
	select {
	case o.queue <- s:
		return nil
	case <-ctx.Done():
		return ordering.Busy()
	case <-o.closing:
		return o.ended()
	case <-o.end.Done():
		return o.ended()
	}
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
		b := o.tail.Get(next)
		if b == nil {
			var err error
			if b, err = o.opts.Source(next); err != nil {
				return fmt.Errorf("solo: reading block %d: %w", next, err)
			}
		}
		if err := f(b); err != nil {
			return err
		}
	}
}

// Done implements [ordering.Service].
func (o *Orderer) Done(height block.Height) {
	height = min(height, o.cut.Load())
	for {
		old := o.done.Load()
		if height <= old {
			return
		}
		if o.done.CompareAndSwap(old, height) {
			break
		}
	}
	select {
	case o.wake <- struct{}{}:
	default: // a wake-up is on its way and will see the new value
	}
}

// Status implements [ordering.Service].
func (o *Orderer) Status() ordering.Status {
	s := ordering.Status{
		Protocol: block.OrdererSolo,
		Height:   o.tail.Height(),
		Waiting:  int(o.waiting.Load()) + len(o.queue),
		InFlight: o.inFlight(),
	}
	if o.end.Err() != nil {
		s.Err = context.Cause(o.end)
	}
	return s
}

// inFlight returns how many blocks were cut and not processed.
func (o *Orderer) inFlight() int {
	done := o.done.Load() // first: it never exceeds a later cut
	return int(o.cut.Load() - done)
}

// Close takes no more transactions, makes blocks of those that wait, and
// returns when these are durable: nil, or what ended the service before.
func (o *Orderer) Close() error {
	o.closeOnce.Do(func() { close(o.closing) })
	o.workers.Wait()
	o.stop(ordering.ErrClosed)
	if err := context.Cause(o.end); !errors.Is(err, ordering.ErrClosed) {
		return err
	}
	return nil
}

// certify signs a block's hash with the position that the orderer has in its
// configuration.
func (o *Orderer) certify(member uint16, hash block.Hash) []byte {
	digest := identity.VoteDigest(o.opts.Network, 0, hash)
	cert := identity.Certificate{Votes: []identity.Vote{{Member: member, Signature: o.opts.Signer.Sign(digest[:])}}}
	return cert.Encode()
}
