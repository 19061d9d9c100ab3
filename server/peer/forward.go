package peer

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/server/pki"
)

const (
	// forwardQueue is how many transactions wait for one node.
	forwardQueue = 2048
	// forwardTimeout is how long a node may take to have them.
	forwardTimeout = time.Second
)

// Forwarder passes transactions of the execute-order-in-parallel flow on to other
// nodes, which begin to execute them. It only saves time: what a node does not get
// it executes with the block.
type Forwarder struct {
	nodes  []*remote
	queues []chan *block.Tx
	stop   context.CancelFunc
	ends   sync.WaitGroup
}

// NewForwarder prepares connections to other nodes.
func NewForwarder(nodes []Remote, verifier *pki.Verifier, pair *pki.KeyPair, log *slog.Logger) (*Forwarder, error) {
	ctx, stop := context.WithCancel(context.Background())
	f := &Forwarder{stop: stop}
	for _, n := range nodes {
		r, err := dial(n, verifier, pair)
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		q := make(chan *block.Tx, forwardQueue)
		f.nodes, f.queues = append(f.nodes, r), append(f.queues, q)
		f.ends.Go(func() { forward(ctx, r, q, log) })
	}
	return f, nil
}

// Forward passes a transaction on in the background. It never waits: a node that
// is slow does without.
func (f *Forwarder) Forward(tx *block.Tx) {
	for _, q := range f.queues {
		select {
		case q <- tx:
		default:
		}
	}
}

// Close ends all connections.
func (f *Forwarder) Close() error {
	f.stop()
	f.ends.Wait()
	var err error
	for _, r := range f.nodes {
		err = errors.Join(err, r.conn.Close())
	}
	return err
}

// forward carries transactions to one node.
func forward(ctx context.Context, r *remote, q chan *block.Tx, log *slog.Logger) {
	for {
		var txs []*block.Tx
		select {
		case tx := <-q:
			txs = append(txs, tx)
		case <-ctx.Done():
			return
		}
		for size := len(txs[0].Encode()); len(txs) < maxBatchTxs && size < maxBatchBytes; {
			select {
			case tx := <-q:
				txs, size = append(txs, tx), size+len(tx.Encode())
				continue
			default:
			}
			break
		}
		c, cancel := context.WithTimeout(ctx, forwardTimeout)
		err := r.forward(c, txs)
		cancel()
		if err != nil && ctx.Err() == nil {
			log.Debug("transactions were not forwarded", "node", r.User, "transactions", len(txs), "error", err)
		}
	}
}
