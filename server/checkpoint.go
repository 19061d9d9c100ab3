package server

import (
	"context"
	"log/slog"
	"time"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/identity"
	"github.com/tallystick/tallystick/server/chain"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// checkpointer submits the state hashes of a node, signed with its key, when they
// are due. Nodes of networks have one. That of a development network has none: it
// is the only one of its only organization, whose signature would compare its state
// with nothing, and no user of such a network is a node.
type checkpointer struct {
	chain  *chain.Chain
	submit func(context.Context, *block.Tx) error // to the ordering service
	node   identity.UserID
	signer func() *identity.Signer // as of now: keys are replaced while nodes run
	clock  func() time.Time
	log    *slog.Logger
	wake   chan struct{}
}

func newCheckpointer(c *chain.Chain, submit func(context.Context, *block.Tx) error, node identity.UserID, signer func() *identity.Signer, log *slog.Logger) *checkpointer {
	return &checkpointer{chain: c, submit: submit, node: node, signer: signer, clock: time.Now, log: log, wake: make(chan struct{}, 1)}
}

// block tells that a block was processed. It never waits.
func (p *checkpointer) block() {
	select {
	case p.wake <- struct{}{}:
	default: // it will look at the newest one anyway
	}
}

// run submits until ctx is done. One that the ordering service does not take is
// submitted again with the next block: a checkpoint that comes late does no harm.
func (p *checkpointer) run(ctx context.Context) {
	submitted := block.Height(0)
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.wake:
		}
		height, state, due, err := p.chain.CheckpointDue()
		if err != nil || !due || height <= submitted {
			if err != nil {
				p.log.Error("the state hash of a checkpoint is not readable", "error", err)
			}
			continue
		}
		tx, err := p.chain.CheckpointTx(p.node, p.signer(), height, state, p.clock().UnixMicro())
		if err == nil {
			err = p.submit(ctx, tx)
		}
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			p.log.Warn("a checkpoint was not submitted", "block", height, "error", err)
			continue
		}
		submitted = height
	}
}

// submitCheckpoint submits a checkpoint and waits for its receipt. One that has a
// receipt has come, whatever it says: to submit it again would change nothing, and
// make a block each time.
func (n *Node) submitCheckpoint(ctx context.Context, tx *block.Tx) error {
	r, err := n.flow.Submit(ctx, tx)
	if err != nil {
		return err
	}
	// Before a restart the node may have submitted the same.
	if r.Err != nil && r.Err.Code != pgerr.DuplicateObject {
		n.log.Error("a checkpoint of this node was refused", "block", r.Height, "error", r.Err)
	}
	return nil
}
