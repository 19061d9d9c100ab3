package bench

import (
	"context"
	"encoding/binary"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/identity"
)

const (
	// orderingLife is for how many blocks transactions are valid: for all of an
	// experiment, since they are made before it.
	orderingLife = 1 << 20
	// Transactions that are made before the clock starts, for each second of an
	// experiment; it ends early when there are no more.
	supplySigned, supplyUnsigned = 60_000, 400_000
	maxSupply                    = 2_000_000
)

// load is the clients of an experiment.
type load struct {
	c       *orderingCluster
	clients []orderingClient
	start   time.Time // of what counts
	done    atomic.Uint64
	blocks  atomic.Uint64
}

// orderingClient hands in a burst of transactions, waits until all of them are
// ordered, and begins again.
type orderingClient struct {
	supply  []*block.Tx
	waiting atomic.Int64
	all     chan struct{} // capacity 1: nothing is waited for any more
	latency *Latency
}

// measure makes the transactions, runs the clients and reports.
func (c *orderingCluster) measure(ctx context.Context) (*OrderingReport, error) {
	l := &load{c: c, clients: make([]orderingClient, c.opts.Clients)}
	if err := l.makeSupply(); err != nil {
		return nil, err
	}
	took := c.opts.Warmup + c.opts.Duration
	ctx, stop := context.WithTimeout(ctx, took)
	defer stop()
	l.start = time.Now().Add(c.opts.Warmup)
	var running sync.WaitGroup
	running.Go(func() { l.deliver(ctx) })
	var cpu time.Duration
	running.Go(func() {
		sleep(ctx, c.opts.Warmup)
		cpu = processorTime()
	})
	var clients sync.WaitGroup
	failed := make(chan error, len(l.clients))
	for i := range l.clients {
		clients.Go(func() { failed <- l.run(ctx, &l.clients[i]) })
	}
	clients.Wait()
	end, spent := time.Now(), processorTime()
	stop()
	running.Wait()
	for range l.clients {
		if err := <-failed; err != nil {
			return nil, err
		}
	}
	return l.report(end.Sub(l.start).Seconds(), spent-cpu), nil
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

func (l *load) report(seconds float64, cpu time.Duration) *OrderingReport {
	all := NewLatency()
	for i := range l.clients {
		all.Merge(l.clients[i].latency)
	}
	n := float64(l.done.Load())
	return &OrderingReport{
		Options: l.c.opts, Seconds: seconds, Done: l.done.Load(), TPS: n / seconds, Blocks: float64(l.blocks.Load()) / seconds,
		LatencyMS: all.Percentiles(), CPU: float64(cpu.Microseconds()) / max(1, n),
	}
}

// makeSupply makes each client's transactions, on all processors.
func (l *load) makeSupply() error {
	rate := supplyUnsigned
	if l.c.opts.Signatures {
		rate = supplySigned
	}
	total := min(maxSupply, int(float64(rate)*(l.c.opts.Warmup+l.c.opts.Duration).Seconds()))
	if n := l.c.opts.Transactions; n > 0 {
		total = n
	}
	perBurst := l.c.opts.Burst * len(l.clients)
	each := l.c.opts.Burst * ((total + perBurst - 1) / perBurst)
	var next atomic.Int64
	var wg sync.WaitGroup
	failed := make(chan error, runtime.GOMAXPROCS(0))
	for range cap(failed) {
		wg.Go(func() {
			for i := int(next.Add(1) - 1); i < len(l.clients); i = int(next.Add(1) - 1) {
				if err := l.supply(i, each); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	wg.Wait()
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}

func (l *load) supply(i, n int) error {
	cl := &l.clients[i]
	cl.all, cl.latency = make(chan struct{}, 1), NewLatency()
	cl.supply = make([]*block.Tx, n)
	for j := range cl.supply {
		tx, err := l.c.tx(i, j)
		if err != nil {
			return err
		}
		cl.supply[j] = tx
	}
	return nil
}

// tx makes transaction j of client i, which its nonce names; unless signatures
// are checked it has none.
func (c *orderingCluster) tx(i, j int) (*block.Tx, error) {
	tx := &block.Tx{
		Network: c.genesis.Genesis.NetworkID(), User: identity.UserID{Org: "org", Name: "client"},
		Call: block.Call{Schema: "blockchain", Name: "f"}, ValidUntil: orderingLife,
	}
	binary.BigEndian.PutUint32(tx.Nonce[0:], uint32(i))
	binary.BigEndian.PutUint32(tx.Nonce[4:], uint32(j))
	const bare = 165 // bytes of a transaction with an argument of none
	if pad := c.opts.TxBytes - bare; pad > 0 {
		tx.Call.ArgTypes, tx.Call.Args = []string{"bytea"}, []block.Arg{{Value: make([]byte, pad)}}
	}
	if c.opts.Signatures {
		return tx, tx.Sign(c.client)
	}
	return block.DecodeTx(tx.Encode())
}

// run is the life of a client. It ends with the experiment or its transactions.
func (l *load) run(ctx context.Context, cl *orderingClient) error {
	primary := l.c.members[0]
	for burst := l.c.opts.Burst; len(cl.supply) >= burst; cl.supply = cl.supply[burst:] {
		begin := time.Now()
		cl.waiting.Store(int64(burst))
		for _, tx := range cl.supply[:burst] {
			if err := primary.Submit(ctx, tx); err != nil {
				if ctx.Err() != nil {
					return nil
				}
				return err
			}
		}
		select {
		case <-cl.all:
		case <-ctx.Done():
			return nil
		}
		if now := time.Now(); now.After(l.start) {
			cl.latency.Record(now.Sub(begin))
		}
	}
	return nil
}

// deliver counts what the first orderer has made durable.
func (l *load) deliver(ctx context.Context) error {
	return l.c.members[0].Deliver(ctx, 1, func(b *block.Block) error {
		counted := !time.Now().Before(l.start)
		if counted {
			l.done.Add(uint64(len(b.Txs)))
			l.blocks.Add(1)
		}
		for _, tx := range b.Txs {
			i := int(binary.BigEndian.Uint32(tx.Nonce[0:]))
			if i >= len(l.clients) {
				return errors.New("bench: a transaction of nobody")
			}
			if cl := &l.clients[i]; cl.waiting.Add(-1) == 0 {
				cl.all <- struct{}{}
			}
		}
		return nil
	})
}
