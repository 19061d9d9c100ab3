package server

import (
	"context"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/server/chain"
)

// Sign makes a transaction of a call with the key that the node has of a user.
func (n *Node) Sign(user string, call block.Call) (*block.Tx, error) {
	return n.wallet.Sign(user, call)
}

// Submit hands a signed transaction over and waits for its receipt; see
// [flow.Flow.Submit].
func (n *Node) Submit(ctx context.Context, tx *block.Tx) (*chain.Receipt, error) {
	return n.flow.Submit(ctx, tx)
}

// Metrics returns the totals of the chain since the node was opened.
func (n *Node) Metrics() chain.Metrics { return n.state.chain.Metrics() }
