package flow

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/ordering"
	"github.com/tallystick/tallystick/server/chain"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// Flow is the flow of one node. Submit may be called from any number of
// goroutines, Run once.
type Flow struct {
	opts    Options
	network block.Hash
	early   bool // transactions are executed before they are ordered
	waiters *waiters

	offered offer          // of Run alone
	offers  sync.WaitGroup // that are under way

	mu  sync.Mutex
	err error // the fault that ended it
}

// New makes the flow that the network of the chain has chosen.
func New(opts Options) (*Flow, error) {
	opts.EnsureDefaults()
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	return &Flow{opts: opts, network: opts.Chain.NetworkID(), waiters: newWaiters(),
		early: opts.Chain.Params().Flow == block.FlowExecuteOrderInParallel}, nil
}

// Run processes blocks until ctx is done, which gives nil, or until something
// fails, which ends the flow for good. A node whose state differs from what a
// majority signed processes no more blocks, and Run waits for ctx.
func (f *Flow) Run(ctx context.Context) error {
	if d := f.opts.Chain.Diverged(); d != nil { // since before the restart
		return f.halt(ctx, d)
	}
	err := f.deliver(ctx)
	var diverged *chain.Divergence
	if errors.As(err, &diverged) {
		return f.halt(ctx, diverged)
	}
	switch {
	case ctx.Err() != nil && (err == nil || errors.Is(err, context.Cause(ctx)) || errors.Is(err, ctx.Err())):
		f.waiters.end(errShutdown())
		return nil
	case errors.Is(err, ordering.ErrClosed):
		f.waiters.end(errShutdown())
		return err
	case err == nil:
		err = errors.New("flow: the ordering service delivers no more blocks")
	}
	f.mu.Lock()
	f.err = err
	f.mu.Unlock()
	f.opts.Logger.Error("flow: the node stops processing blocks", "error", err)
	f.waiters.end(errFault())
	return err
}

// deliver takes blocks until something ends it.
func (f *Flow) deliver(ctx context.Context) error {
	offering, cancel := context.WithCancel(ctx)
	defer f.offers.Wait()
	defer cancel()
	f.offerConfig(offering, f.opts.Chain.Height())
	return f.opts.Service.Deliver(ctx, f.opts.Chain.Height()+1, func(b *block.Block) error {
		err := f.block(b)
		if err == nil {
			f.offerConfig(offering, b.Number)
		}
		return err
	})
}

// halt ends the flow of a node whose state differs from that of the network, but
// not the node: its data are there for whoever looks into it. It returns when ctx
// is done.
func (f *Flow) halt(ctx context.Context, d *chain.Divergence) error {
	f.mu.Lock()
	f.err = d
	f.mu.Unlock()
	f.opts.Logger.Error("flow: the node processes no more blocks and answers no queries", "error", d)
	f.waiters.end(d.Verdict())
	<-ctx.Done()
	return nil
}

// Err is the fault that ended the flow; nil as long as there was none.
func (f *Flow) Err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

// Waiting is the number of clients that wait for a receipt.
func (f *Flow) Waiting() int { return f.waiters.count() }

func errShutdown() error {
	return pgerr.New(pgerr.AdminShutdown, "terminating connection due to administrator command").
		WithDetail("The transaction was submitted and may still commit.").
		WithHint("Submit the same transaction again, here or at another node: it has no second effect.")
}

func errFault() error {
	return pgerr.New(pgerr.CannotConnectNow, "the node has stopped processing blocks").
		WithDetail("The transaction was submitted and may still commit.").
		WithHint("Submit the same transaction at another node: it has no second effect.")
}

// block carries one block into the chain.
func (f *Flow) block(b *block.Block) error {
	if f.opts.Append != nil {
		if err := f.opts.Append.Append(b); err != nil {
			return fmt.Errorf("flow: appending block %d: %w", b.Number, err)
		}
	}
	receipts, err := f.opts.Chain.Process(b)
	if err != nil {
		return err
	}
	f.waiters.block(b, receipts, errExpired)
	if f.opts.OnBlock != nil {
		f.opts.OnBlock(b.Number, receipts)
	}
	f.opts.Service.Done(b.Number)
	return nil
}

// errExpired is what a client hears whose transaction was not ordered in time.
func errExpired(w *waiter) error {
	return pgerr.New(pgerr.InvalidTransactionState, "transaction has expired").
		WithDetail("It was valid until block %d and was not ordered by then.", w.validUntil).
		WithHint("Sign the transaction again.")
}

// Submit hands a transaction over to be ordered and returns its receipt, which
// tells whether it committed. A transaction whose id was consumed before has the
// receipt that it had then. The error is a *pgerr.Error:
//
//	28000  no user of this network has signed this
//	25000  it has expired
//	72000  its snapshot is too old (execute-order-in-parallel)
//	53000  the ordering service has no room
//	57014  ctx was done: the transaction may still commit
//	XX001  the state of this node differs from that of the network
//	57P01  the node shuts down, 57P03 it has failed: the same
func (f *Flow) Submit(ctx context.Context, tx *block.Tx) (*chain.Receipt, error) {
	if err := f.opts.Chain.Halted(); err != nil {
		return nil, err
	}
	if err := f.opts.Chain.Authenticate(tx); err != nil {
		return nil, err
	}
	id := tx.ID()
	if r, err := f.known(tx, id); r != nil || err != nil {
		return r, err
	}
	w, err := f.waiters.add(tx)
	if err != nil {
		return nil, err
	}
	defer f.waiters.remove(w)
	// A block that was processed before the waiter was there has its receipt in
	// the ledger; any later one will find the waiter.
	if r, err := f.known(tx, id); r != nil || err != nil {
		return r, err
	}
	if f.early {
		if err := f.execute(tx); err != nil {
			return nil, err
		}
	}
	if err := f.opts.Service.Submit(ctx, tx); err != nil {
		return nil, f.refusal(err)
	}
	select {
	case a := <-w.answer:
		return a.receipt, a.err
	case <-ctx.Done():
		return nil, errDetached(ctx)
	}
}

// known returns the stored receipt of a transaction, and the error of one that
// has expired without.
func (f *Flow) known(tx *block.Tx, id block.TxID) (*chain.Receipt, error) {
	next := f.opts.Chain.Height() + 1
	expired := tx.ValidUntil < next
	if !expired && !f.opts.Chain.Consumed(id) {
		return nil, nil
	}
	r, ok, err := f.opts.Chain.LookupReceipt(id)
	switch {
	case err != nil:
		f.opts.Logger.Error("flow: looking up a receipt", "transaction", id, "error", err)
		return nil, pgerr.New(pgerr.InternalError, "the ledger cannot be read")
	case ok:
		return r, nil
	case expired:
		return nil, ordering.Check(tx, f.network, next)
	}
	return nil, nil
}

// refusal is what the client hears of an error of the ordering service.
func (f *Flow) refusal(err error) error {
	if e, ok := pgerr.From(err); ok {
		return e
	}
	f.opts.Logger.Error("flow: submitting a transaction", "error", err)
	if errors.Is(err, ordering.ErrClosed) {
		return errShutdown()
	}
	return errFault()
}

// errDetached is the error of a client that waits no longer.
func errDetached(ctx context.Context) error {
	e := pgerr.New(pgerr.QueryCanceled, "canceling statement due to user request")
	if cause, ok := pgerr.From(context.Cause(ctx)); ok {
		c := *cause
		e = &c
	}
	return e.WithDetail("The transaction was submitted and may still commit.").
		WithHint("Submit the same transaction again to learn its outcome: it has no second effect.")
}
