package flow

import (
	"errors"
	"log/slog"

	"github.com/tallystick/tallystick/blockstore"
	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/ordering"
	"github.com/tallystick/tallystick/server/chain"
)

// Options say what a flow connects.
type Options struct {
	Chain   *chain.Chain
	Service ordering.Service

	// Append, if not nil, gets every block before it is processed. It is nil
	// for an ordering service that persists blocks in the node's own block
	// store, as the embedded solo orderer does.
	Append *blockstore.Store

	// OnBlock, if set, is told about every processed block: for LISTEN channels
	// and metrics. It runs in the loop and must be quick.
	OnBlock func(height uint64, receipts []chain.Receipt)

	// Forward, if not nil, gets every transaction that a client of this node has
	// submitted in the execute-order-in-parallel flow, to pass it on to other
	// nodes. It must not wait.
	Forward func(tx *block.Tx)

	// Logger receives what people should know; slog.Default if nil.
	Logger *slog.Logger
}

// EnsureDefaults fills in what is not set.
func (o *Options) EnsureDefaults() {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
}

// Validate reports why a flow cannot work like this.
func (o *Options) Validate() error {
	if o.Chain == nil || o.Service == nil {
		return errors.New("flow: chain and ordering service are needed")
	}
	return nil
}
