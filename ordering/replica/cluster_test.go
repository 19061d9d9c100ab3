package replica

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tallystick/tallystick/blockstore"
	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/identity"
	"github.com/tallystick/tallystick/ordering"
	"github.com/tallystick/tallystick/ordering/cutter"
	"github.com/tallystick/tallystick/ordering/orderingtest"
	"github.com/tallystick/tallystick/ordering/pbft"
)

const patience = 20 * time.Second

// cluster is several orderers in this process, connected over loopback.
type cluster struct {
	t       testing.TB
	genesis *block.Block
	signers []*identity.Signer // by member
	dir     string
	tune    func(member int, o *Options)

	mu    sync.Mutex
	nodes []*node // nil while stopped
	addrs map[identity.PublicKey]string
	cut   map[[2]int]bool // pairs that do not reach each other
}

// node is an orderer with its block store.
type node struct {
	*Replica
	blocks *blockstore.Store
}

func newCluster(t testing.TB, n int, tune func(int, *Options)) *cluster {
	t.Helper()
	c := &cluster{t: t, dir: t.TempDir(), tune: tune, nodes: make([]*node, n), addrs: map[identity.PublicKey]string{}, cut: map[[2]int]bool{}}
	for i := range n {
		c.signers = append(c.signers, identity.NewSigner([32]byte{7, byte(i), byte(i >> 8)}))
	}
	slices.SortFunc(c.signers, func(a, b *identity.Signer) int {
		x, y := a.Public(), b.Public()
		return slices.Compare(x[:], y[:])
	})
	admin := identity.NewSigner([32]byte{1})
	g := &block.Genesis{
		Network: "test", Timestamp: time.Now().UnixMicro(),
		Orgs:   []block.Org{{Name: "org1", Users: []block.User{{Name: "alice", Role: identity.Admin, Key: admin.Public()}}}},
		Params: block.DefaultParams(),
	}
	g.Params.Orderer = block.OrdererPBFT
	for _, s := range c.signers {
		g.Orderers.Keys = append(g.Orderers.Keys, s.Public())
	}
	g.Orderers.Quorum = ordering.Quorum(n)
	g.Sort()
	var err error
	if c.genesis, err = g.Block(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for i := range c.nodes {
			c.stop(i)
		}
	})
	return c
}

func (c *cluster) startAll() {
	c.t.Helper()
	for i := range c.nodes {
		c.start(i)
	}
}

// start starts a member from what it has made durable.
func (c *cluster) start(i int) *node {
	c.t.Helper()
	store, err := blockstore.Open(filepath.Join(c.dir, fmt.Sprint("blocks", i)), blockstore.Options{Genesis: c.genesis.Genesis})
	if err != nil {
		c.t.Fatal(err)
	}
	height, _ := store.Tip()
	schedule := block.NewSchedule(c.genesis.Genesis)
	var tip *block.Block
	for h := block.Height(0); h <= height; h++ {
		if tip, err = store.Get(h); err != nil {
			c.t.Fatal(err)
		}
		if h > 0 {
			if _, err := schedule.Advance(tip); err != nil {
				c.t.Fatal(err)
			}
		}
	}
	o := Options{
		Protocol: pbft.Protocol, Signer: c.signers[i], Schedule: schedule, Tip: tip,
		Persist: store.AppendBatch, Source: store.Get, Dir: filepath.Join(c.dir, fmt.Sprint("records", i)),
		Cutter: cutter.Config{MaxTxs: 10, MaxBytes: 1 << 20, Timeout: 5000, Pipeline: 1},
		Tick:   2 * time.Millisecond, Logger: slog.New(slog.DiscardHandler), FlushTimeout: time.Second,
	}
	if len(c.signers) > 1 {
		if o.Listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			c.t.Fatal(err)
		}
		c.mu.Lock()
		c.addrs[c.signers[i].Public()] = o.Listener.Addr().String()
		c.mu.Unlock()
		o.Dial = func(ctx context.Context, key identity.PublicKey) (net.Conn, error) { return c.dial(ctx, i, key) }
		o.Identify = identify
	}
	if c.tune != nil {
		c.tune(i, &o)
	}
	r, err := Start(o)
	if err != nil {
		c.t.Fatal(err)
	}
	n := &node{r, store}
	c.nodes[i] = n
	return n
}

// stop stops a member if it runs.
func (c *cluster) stop(i int) {
	c.t.Helper()
	n := c.nodes[i]
	if n == nil {
		return
	}
	c.nodes[i] = nil
	if err := errors.Join(n.Replica.Close(), n.blocks.Close()); err != nil {
		c.t.Errorf("stopping orderer %d: %v", i, err)
	}
}

// dial connects as a member says who it is: in a test whoever says it is believed.
func (c *cluster) dial(ctx context.Context, from int, key identity.PublicKey) (net.Conn, error) {
	to := slices.IndexFunc(c.signers, func(s *identity.Signer) bool { return s.Public() == key })
	c.mu.Lock()
	addr, cut := c.addrs[key], c.cut[[2]int{from, to}]
	c.mu.Unlock()
	if cut || addr == "" {
		return nil, errors.New("no way")
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

func identify(c net.Conn) (key identity.PublicKey, err error) {
	_, err = io.ReadFull(c, key[:])
	return key, err
}

func (c *cluster) submit(i int, txs ...*block.Tx) {
	c.t.Helper()
	for _, tx := range txs {
		if err := c.nodes[i].Submit(context.Background(), tx); err != nil {
			c.t.Fatal(err)
		}
	}
}

// until waits for something to become true.
func (c *cluster) until(what string, f func() bool) {
	c.t.Helper()
	for deadline := time.Now().Add(patience); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			var state strings.Builder
			for i, n := range c.nodes {
				if n != nil {
					fmt.Fprintf(&state, "\norderer %d: %+v, %+v", i, n.Status(), n.Machine())
				}
			}
			c.t.Fatalf("in vain: %s%s", what, &state)
		}
	}
}

// agree waits until members have exactly these transactions in their blocks, each
// once, and checks that their chains are the same.
func (c *cluster) agree(txs []*block.Tx, members ...int) {
	c.t.Helper()
	var first []block.Hash
	for _, i := range members {
		hashes, got := c.chain(i, len(txs))
		want := map[block.TxID]bool{}
		for _, tx := range txs {
			want[tx.ID()] = true
		}
		for _, tx := range got {
			if !want[tx.ID()] {
				c.t.Fatalf("orderer %d has a transaction twice, or one that nobody submitted", i)
			}
			delete(want, tx.ID())
		}
		if first == nil {
			first = hashes
		}
		n := min(len(first), len(hashes))
		if !slices.Equal(first[:n], hashes[:n]) {
			c.t.Fatalf("orderers %d and %d have different chains", members[0], i)
		}
	}
}

// chain reads a member's blocks until they have brought n transactions.
func (c *cluster) chain(i, n int) (hashes []block.Hash, txs []*block.Tx) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	enough := errors.New("enough")
	err := c.nodes[i].Deliver(ctx, 1, func(b *block.Block) error {
		hashes, txs = append(hashes, b.Hash()), append(txs, b.Txs...)
		if len(txs) >= n {
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) {
		c.t.Fatalf("orderer %d delivers %d of %d transactions: %v; %+v", i, len(txs), n, err, c.nodes[i].Machine())
	}
	return hashes, txs
}

// maker makes transactions for the cluster's network.
func (c *cluster) maker() *orderingtest.TxMaker {
	return orderingtest.NewTxMaker(c.genesis.Genesis.NetworkID())
}

func discardLogger() *slog.Logger { return slog.New(slog.DiscardHandler) }
