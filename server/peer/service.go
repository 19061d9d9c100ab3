package peer

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/ordering"
	"github.com/tallystick/tallystick/server/pki"
)

const (
	// DefaultQueue is the default number of transactions that a node has handed
	// over and not yet seen in a block.
	DefaultQueue = 8192
	// DefaultResubmit is the default time after which a transaction that is in no
	// block goes to another orderer.
	DefaultResubmit = 2 * time.Second
	// DefaultStale is the default time for which a sender of blocks may have
	// nothing while others have more.
	DefaultStale = time.Second
)

// ServiceOptions say whom a node gets its blocks from.
type ServiceOptions struct {
	Network  block.Hash
	Protocol string // of the orderers, for Status
	// Orderers take transactions and give blocks. Nodes give blocks too, when no
	// orderer does.
	Orderers, Nodes []Remote
	Verifier        *pki.Verifier
	Pair            *pki.KeyPair

	// Block returns a block that the node has: what Deliver begins after.
	Block func(block.Height) (*block.Block, error)
	// Check verifies the certificate of the next block; number, link and time are
	// verified here, before. What it accepts is taken.
	Check func(*block.Block) error
	// Taken, if not nil, is told about every block that the node has processed.
	Taken func(*block.Block)

	Queue    int           // DefaultQueue if 0
	Resubmit time.Duration // DefaultResubmit if 0
	Stale    time.Duration // DefaultStale if 0
	// First is the index of the orderer to prefer, so that nodes spread.
	First  int
	Logger *slog.Logger // slog.Default if nil
}

// EnsureDefaults fills in what is not set.
func (o *ServiceOptions) EnsureDefaults() {
	if o.Queue == 0 {
		o.Queue = DefaultQueue
	}
	if o.Resubmit == 0 {
		o.Resubmit = DefaultResubmit
	}
	if o.Stale == 0 {
		o.Stale = DefaultStale
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
}

// Validate reports why a service cannot work like this.
func (o *ServiceOptions) Validate() error {
	switch {
	case len(o.Orderers) == 0:
		return errors.New("peer: there is no orderer")
	case o.Verifier == nil || o.Pair == nil || o.Block == nil || o.Check == nil:
		return errors.New("peer: verifier, key pair, Block and Check are needed")
	case o.Queue < 1 || o.Resubmit < 0 || o.Stale < 0 || o.First < 0:
		return errors.New("peer: queue and times must be positive")
	}
	return nil
}

// Service is an ordering service elsewhere. It implements [ordering.Service].
type Service struct {
	opts     ServiceOptions
	log      *slog.Logger
	orderers []*remote
	sources  []*remote // of blocks: orderers, then nodes
	pending  *pending
	queue    chan *entry
	height   atomic.Uint64 // of the last block that was delivered here

	end     context.Context
	stop    context.CancelFunc
	workers sync.WaitGroup
}

var _ ordering.Service = (*Service)(nil)

// senders is how many messages with transactions are under way at a time.
const senders = 4

// NewService prepares connections and returns at once; whom it does not reach it
// tries again.
func NewService(opts ServiceOptions) (*Service, error) {
	opts.EnsureDefaults()
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	s := &Service{opts: opts, log: opts.Logger, pending: newPending(opts.Queue), queue: make(chan *entry, opts.Queue)}
	s.end, s.stop = context.WithCancel(context.Background())
	for i := range opts.Orderers {
		r, err := dial(opts.Orderers[(opts.First+i)%len(opts.Orderers)], opts.Verifier, opts.Pair)
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
		s.orderers = append(s.orderers, r)
		s.sources = append(s.sources, r)
	}
	for _, n := range opts.Nodes {
		r, err := dial(n, opts.Verifier, opts.Pair)
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
		s.sources = append(s.sources, r)
	}
	for range senders {
		s.workers.Go(s.send)
	}
	s.workers.Go(s.resubmit)
	return s, nil
}

// Done implements [ordering.Service]: orderers elsewhere do not wait for nodes.
func (s *Service) Done(block.Height) {}

// Status implements [ordering.Service]. Waiting are the transactions that this
// node has handed over.
func (s *Service) Status() ordering.Status {
	st := ordering.Status{Protocol: s.opts.Protocol, Height: s.height.Load(), Waiting: s.pending.len()}
	if s.end.Err() != nil {
		st.Err = ordering.ErrClosed
	}
	return st
}

// Close ends all calls and connections.
func (s *Service) Close() error {
	s.stop()
	s.workers.Wait()
	var err error
	for _, r := range s.sources {
		err = errors.Join(err, r.conn.Close())
	}
	return err
}

// delivered notes a block.
func (s *Service) delivered(b *block.Block) {
	s.pending.ordered(b)
	for {
		old := s.height.Load()
		if b.Number <= old || s.height.CompareAndSwap(old, b.Number) {
			return
		}
	}
}
