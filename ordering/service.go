package ordering

import (
	"context"
	"errors"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// ErrClosed is what a service that was closed returns.
var ErrClosed = errors.New("ordering: the service is closed")

// Service is an ordering service as a node sees it. All methods may be called
// from any number of goroutines.
type Service interface {
	// Submit hands over a transaction that was decoded or signed. Nil means that
	// it waits to be ordered, or was ordered or is waiting already; it is no
	// promise, for an orderer may fail before. A client that sees no receipt
	// submits again, here or elsewhere: that has no second effect.
	//
	// While the service has no room Submit waits until ctx is done, and then
	// returns [Busy]. What [Check] refuses is refused. Any error that is no
	// *pgerr.Error is the end of the service.
	Submit(ctx context.Context, tx *block.Tx) error

	// Deliver calls f with the block of every height from the given one on, in
	// order and without gaps, as they become durable, until f returns an
	// error, which it returns, ctx is done or the service ends. However slow f
	// is, it delays nobody else. Blocks are shared between subscribers: they
	// must not be changed.
	Deliver(ctx context.Context, from block.Height, f func(*block.Block) error) error

	// Done tells that the node has processed all blocks up to height. Blocks
	// delivered and not done are in flight: a service in the same process
	// fills blocks while some are, cuts at once while none is, and stops
	// cutting while too many are. A service elsewhere ignores it.
	Done(height block.Height)

	// Status describes the service at this moment, for people and metrics.
	Status() Status
}

// Status is what an ordering service tells about itself.
type Status struct {
	Protocol string       // block.OrdererSolo, ...
	Height   block.Height // last durable block
	Waiting  int          // transactions accepted and not yet in a block
	InFlight int          // blocks cut and not yet done
	Err      error        // why the service ended; nil while it runs
}

// Busy is the error for a transaction that found no room in time: retryable.
func Busy() *pgerr.Error {
	return pgerr.New(pgerr.InsufficientResources, "too many transactions are waiting to be ordered").
		WithHint("Retry the transaction later.")
}

// Check refuses a transaction that block next of the network, or a later one,
// cannot contain. It is advice: the chain decides for itself.
func Check(tx *block.Tx, network block.Hash, next block.Height) error {
	if tx.Network != network {
		return pgerr.New(pgerr.InvalidTransactionState, "transaction was signed for another network").
			WithDetail("It names network %s, and this is %s.", tx.Network, network)
	}
	if tx.ValidUntil < next {
		return pgerr.New(pgerr.InvalidTransactionState, "transaction has expired").
			WithDetail("It was valid until block %d, and the next block is %d.", tx.ValidUntil, next).
			WithHint("Sign the transaction again.")
	}
	return nil
}
