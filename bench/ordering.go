package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/tallystick/tallystick/blockstore"
	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/identity"
	"github.com/tallystick/tallystick/ordering"
	"github.com/tallystick/tallystick/ordering/cutter"
	"github.com/tallystick/tallystick/ordering/pbft"
	"github.com/tallystick/tallystick/ordering/replica"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// OrderingOptions choose an experiment with orderers alone, without databases
// (ResilientDB, section 5). All orderers run in this process and talk over
// loopback.
type OrderingOptions struct {
	Protocol string // block.OrdererPBFT
	Orderers int
	Failed   int // backups that never start
	Batch    int // transactions of a block
	TxBytes  int // of a transaction, about
	Clients  int // each has Burst transactions under way
	Burst    int
	Window   uint64 // sequences in flight at most
	Workers  int    // goroutines of an orderer that verify messages
	Disk     bool   // blocks and records on disk, synced; else in memory
	// Signatures of clients are verified by every orderer before it votes.
	Signatures bool
	// Scheme is how votes between orderers are signed: SchemeEd25519 or
	// SchemeNone.
	Scheme string
	// Transactions ends the experiment when so many are ordered, rounded up to
	// whole bursts of all clients; 0 = when the time is over.
	Transactions int
	Warmup       time.Duration
	Duration     time.Duration
}

// Schemes of signatures between orderers.
const (
	SchemeEd25519 = "ed25519"
	SchemeNone    = "none"
)

// EnsureDefaults fills in what is not set.
func (o *OrderingOptions) EnsureDefaults() {
	setDefault(&o.Protocol, block.OrdererPBFT)
	setDefault(&o.Orderers, 4)
	setDefault(&o.Batch, 500)
	setDefault(&o.TxBytes, 196)
	setDefault(&o.Clients, 64)
	setDefault(&o.Burst, 250)
	setDefault(&o.Window, 64)
	setDefault(&o.Scheme, SchemeEd25519)
	setDefault(&o.Duration, 5*time.Second)
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Validate reports why there is no such experiment.
func (o *OrderingOptions) Validate() error {
	switch {
	case o.Protocol != block.OrdererPBFT:
		return pgerr.New(pgerr.FeatureNotSupported, "an experiment with --protocol %s is not available yet", o.Protocol)
	case o.Orderers < 1 || o.Failed < 0 || o.Failed > ordering.Faults(o.Orderers):
		return fmt.Errorf("bench: %d of %d orderers fail, %d may", o.Failed, o.Orderers, ordering.Faults(max(1, o.Orderers)))
	case o.Transactions < 0:
		return errors.New("bench: a negative number of transactions")
	case o.Batch < 1 || o.Clients < 1 || o.Burst < 1:
		return errors.New("bench: batch, clients and burst must be positive")
	case o.Scheme != SchemeEd25519 && o.Scheme != SchemeNone:
		return fmt.Errorf("bench: no signature scheme %q; there are %s and %s", o.Scheme, SchemeEd25519, SchemeNone)
	}
	return nil
}

// OrderingReport is what an experiment measured.
type OrderingReport struct {
	Options   OrderingOptions `json:"options"`
	Seconds   float64         `json:"seconds"`
	Done      uint64          `json:"done"`
	TPS       float64         `json:"tps"`
	Blocks    float64         `json:"blocks_per_second"`
	LatencyMS Percentiles     `json:"latency_ms"` // of a client's burst
	CPU       float64         `json:"cpu_us_per_tx"`
}

// Ordering measures a cluster of orderers.
func Ordering(ctx context.Context, o OrderingOptions) (*OrderingReport, error) {
	o.EnsureDefaults()
	if err := o.Validate(); err != nil {
		return nil, err
	}
	c := &orderingCluster{opts: o, addrs: map[identity.PublicKey]string{}}
	defer c.close()
	if err := c.start(); err != nil {
		return nil, err
	}
	return c.measure(ctx)
}

// orderingCluster is the orderers of an experiment.
type orderingCluster struct {
	opts    OrderingOptions
	genesis *block.Block
	signers []*identity.Signer
	mu      sync.Mutex
	addrs   map[identity.PublicKey]string
	members []*replica.Replica
	closers []func() error
	client  *identity.Signer
}

func (c *orderingCluster) onClose(f func() error) { c.closers = append(c.closers, f) }

func (c *orderingCluster) close() {
	var wg sync.WaitGroup
	for _, m := range c.members {
		wg.Go(func() { m.Close() })
	}
	wg.Wait()
	for _, f := range slices.Backward(c.closers) {
		f()
	}
}

func (c *orderingCluster) start() error {
	c.client = identity.NewSigner([32]byte{1})
	for i := range c.opts.Orderers {
		c.signers = append(c.signers, identity.NewSigner([32]byte{2, byte(i), byte(i >> 8)}))
	}
	slices.SortFunc(c.signers, func(a, b *identity.Signer) int {
		x, y := a.Public(), b.Public()
		return slices.Compare(x[:], y[:])
	})
	if err := c.makeGenesis(); err != nil {
		return err
	}
	// The primary of view 0 is member 0; the last ones fail.
	for i := range c.opts.Orderers - c.opts.Failed {
		if err := c.startOne(i); err != nil {
			return err
		}
	}
	return nil
}

func (c *orderingCluster) makeGenesis() (err error) {
	g := &block.Genesis{
		Network: "bench", Timestamp: time.Now().UnixMicro(),
		Orgs:   []block.Org{{Name: "org", Users: []block.User{{Name: "client", Role: identity.Admin, Key: c.client.Public()}}}},
		Params: block.DefaultParams(),
	}
	g.Params.Orderer, g.Params.OrderingWindow = c.opts.Protocol, c.opts.Window
	g.Params.BlockTxs = uint64(c.opts.Batch)
	for _, s := range c.signers {
		g.Orderers.Keys = append(g.Orderers.Keys, s.Public())
	}
	g.Orderers.Quorum = ordering.Quorum(c.opts.Orderers)
	g.Sort()
	c.genesis, err = g.Block()
	return err
}

// startOne starts a member on storage of its own.
func (c *orderingCluster) startOne(i int) error {
	dir, fs := "records", vfs.FS(vfs.NewMem())
	var persist func([]*block.Block) error
	var source func(block.Height) (*block.Block, error)
	if c.opts.Disk {
		tmp, err := os.MkdirTemp("", "tallystick-bench-")
		if err != nil {
			return err
		}
		c.onClose(func() error { return os.RemoveAll(tmp) })
		store, err := blockstore.Open(filepath.Join(tmp, "blocks"), blockstore.Options{Genesis: c.genesis.Genesis})
		if err != nil {
			return err
		}
		c.onClose(store.Close)
		dir, fs, persist, source = filepath.Join(tmp, "records"), vfs.Default, store.AppendBatch, store.Get
	} else {
		m := &memoryBlocks{blocks: []*block.Block{c.genesis}}
		persist, source = m.append, m.get
	}
	o := replica.Options{
		Protocol: pbft.Protocol, Signer: c.signers[i], Schedule: block.NewSchedule(c.genesis.Genesis), Tip: c.genesis,
		Persist: persist, Source: source, Dir: dir, FS: fs, IgnoreDone: true,
		Cutter:  cutter.Config{MaxTxs: c.opts.Batch, MaxBytes: 4 << 20, Timeout: 20_000, Pipeline: 1},
		Machine: ordering.MachineOptions{MaxLife: orderingLife},
		Workers: replica.Workers{Batch: c.opts.Workers}, Logger: slog.New(slog.DiscardHandler), FlushTimeout: time.Millisecond,
	}
	if c.opts.Orderers > 1 {
		var err error
		if o.Listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			return err
		}
		c.mu.Lock()
		c.addrs[c.signers[i].Public()] = o.Listener.Addr().String()
		c.mu.Unlock()
		o.Dial = func(ctx context.Context, key identity.PublicKey) (net.Conn, error) { return c.dial(ctx, i, key) }
		o.Identify = func(n net.Conn) (key identity.PublicKey, err error) {
			_, err = io.ReadFull(n, key[:])
			return key, err
		}
	}
	if c.opts.Signatures {
		o.Admit = admitSigned(c.client.Public())
	}
	if c.opts.Scheme == SchemeNone {
		o.Sign = func([32]byte) identity.Signature { return identity.Signature{} }
		o.Signatures = func(items []identity.Item, ok []bool) bool {
			for i := range items {
				ok[i] = true
			}
			return true
		}
	}
	r, err := replica.Start(o)
	if err != nil {
		return err
	}
	c.members = append(c.members, r)
	return nil
}

// admitSigned refuses batches with a transaction that the client did not sign.
func admitSigned(key identity.PublicKey) func([]*block.Tx) error {
	v := identity.NewBatchVerifier(0, 0)
	return func(txs []*block.Tx) error {
		items, ok := make([]identity.Item, len(txs)), make([]bool, len(txs))
		for i, tx := range txs {
			id := tx.ID()
			items[i] = identity.Item{Key: key, Message: id[:], Signature: tx.Signature}
		}
		if !v.VerifyBatch(items, ok) {
			return pgerr.New(pgerr.InvalidAuthorizationSpec, "a transaction was not signed by the client")
		}
		return nil
	}
}

// dial says who connects: inside of one process whoever says it is believed.
func (c *orderingCluster) dial(ctx context.Context, from int, key identity.PublicKey) (net.Conn, error) {
	c.mu.Lock()
	addr := c.addrs[key]
	c.mu.Unlock()
	if addr == "" {
		return nil, errors.New("bench: this orderer has failed")
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	public := c.signers[from].Public()
	if _, err := conn.Write(public[:]); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// memoryBlocks is a block store that forgets everything.
type memoryBlocks struct {
	mu     sync.Mutex
	blocks []*block.Block
}

func (m *memoryBlocks) append(list []*block.Block) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.blocks = append(m.blocks, list...)
	return nil
}

func (m *memoryBlocks) get(h block.Height) (*block.Block, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if h >= uint64(len(m.blocks)) {
		return nil, fmt.Errorf("bench: no block %d", h)
	}
	return m.blocks[h], nil
}
