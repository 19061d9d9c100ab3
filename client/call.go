package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/big"
	"time"

	"crypto/rand"

	"github.com/tallystick/tallystick/blockstore/block"
)

// Call calls a contract and returns what it returned, once it has committed. A
// call that lost a conflict is signed anew and tried again, as Config.Retry says;
// its own errors, such as those that it raises, are final. The function may be
// followed by the types of its arguments: "f(int, text)".
func (c *Client) Call(ctx context.Context, function string, args ...any) (*Result, error) {
	pause := c.cfg.Retry.Min
	for attempt := 1; ; attempt++ {
		p, err := c.Submit(ctx, function, args...)
		if err != nil {
			return nil, err
		}
		r, err := p.Wait(ctx)
		if err == nil || !again(err) && !busy(err) || attempt == c.cfg.Retry.Attempts {
			return r, err
		}
		if err := c.pause(ctx, pause); err != nil {
			return nil, err
		}
		pause = min(2*pause, c.cfg.Retry.Max)
	}
}

// pause waits for half of d at least and all of it at most.
func (c *Client) pause(ctx context.Context, d time.Duration) error {
	jitter, err := rand.Int(c.cfg.Random, big.NewInt(int64(d/2)+1))
	if err != nil {
		return fmt.Errorf("client: %w", err)
	}
	t := time.NewTimer(d/2 + time.Duration(jitter.Int64()))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Sign makes the transaction of a call without handing it over.
func (c *Client) Sign(ctx context.Context, function string, args ...any) (*block.Tx, error) {
	_, tx, err := c.sign(ctx, function, args)
	return tx, err
}

func (c *Client) sign(ctx context.Context, called string, args []any) (*function, *block.Tx, error) {
	f, err := c.describe(ctx, called, len(args))
	if err != nil {
		return nil, nil, err
	}
	call, err := f.call(args)
	if err != nil {
		return nil, nil, err
	}
	height := c.height.Load()
	tx := &block.Tx{
		Network: c.network, User: c.cfg.User, Call: call, Snapshot: height,
		Time: c.cfg.Clock().UnixMicro(), ValidUntil: height + c.cfg.ValidFor,
	}
	if _, err := io.ReadFull(c.cfg.Random, tx.Nonce[:]); err != nil {
		return nil, nil, fmt.Errorf("client: making a nonce: %w", err)
	}
	if err := tx.Sign(c.cfg.Key); err != nil {
		return nil, nil, fmt.Errorf("client: signing: %w", err)
	}
	return f, tx, nil
}

// Submit signs a call and hands it over without waiting for its outcome.
func (c *Client) Submit(ctx context.Context, function string, args ...any) (*Pending, error) {
	f, tx, err := c.sign(ctx, function, args)
	if err != nil {
		return nil, err
	}
	p := &Pending{c: c, f: f, tx: tx, done: make(chan struct{})}
	// The outcome outlives the context of the one who submits: they may wait with
	// another one.
	ctx, p.cancel = context.WithCancel(context.WithoutCancel(ctx))
	go p.run(ctx)
	return p, nil
}

// Pending is a transaction under way.
type Pending struct {
	c      *Client
	f      *function
	tx     *block.Tx
	cancel context.CancelFunc

	done   chan struct{} // closed when result and err are set
	result *Result
	err    error
}

// ID is the id of the transaction.
func (p *Pending) ID() block.TxID { return p.tx.ID() }

// Tx is the signed transaction.
func (p *Pending) Tx() *block.Tx { return p.tx }

// Wait returns the outcome. When ctx ends first the error is an
// [*OutcomeUnknown]; the transaction may still commit, and Wait may be called
// again.
func (p *Pending) Wait(ctx context.Context) (*Result, error) {
	select {
	case <-p.done:
		return p.result, p.err
	case <-ctx.Done():
		return nil, &OutcomeUnknown{ID: p.ID(), Cause: ctx.Err()}
	}
}

// Abandon stops waiting and resubmitting. The transaction may still commit.
func (p *Pending) Abandon() { p.cancel() }

// run hands the same bytes to one node after the other until one of them knows the
// outcome.
func (p *Pending) run(ctx context.Context) {
	defer close(p.done)
	defer p.cancel()
	raw := p.tx.Encode()
	var result []byte
	pause := p.c.cfg.Retry.Min
	for attempt := 1; ; attempt++ {
		p.err = p.c.any(ctx, func(n *node) error {
			return n.pool.QueryRow(ctx, "SELECT tallystick_submit($1)", raw).Scan(&result)
		})
		if p.err == nil || !elsewhere(p.err) {
			break
		}
		// No node could say: all may be restarting. The same bytes are safe to
		// send until they expire.
		if attempt == p.c.cfg.Retry.Attempts || p.c.pause(ctx, pause) != nil {
			p.err = &OutcomeUnknown{ID: p.ID(), Cause: p.err}
			return
		}
		pause = min(2*pause, p.c.cfg.Retry.Max)
	}
	if State(p.err) == undefinedFunction {
		p.c.forget()
	}
	if p.err == nil {
		p.result, p.err = newResult(p.ID(), p.f.columns, result)
	}
	if p.err == nil && p.c.cfg.Wait == WaitMajority {
		p.err = p.c.confirm(ctx, p.ID())
	}
	if errors.Is(p.err, context.Canceled) {
		p.err = &OutcomeUnknown{ID: p.ID(), Cause: p.err}
	}
}

const undefinedFunction = "42883"
