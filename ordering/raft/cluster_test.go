package raft

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tallystick/tallystick/blockstore"
	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/identity"
	"github.com/tallystick/tallystick/ordering"
	"github.com/tallystick/tallystick/ordering/cutter"
	"github.com/tallystick/tallystick/ordering/orderingtest"
)

// patience is how long tests wait for what has to happen.
const patience = 20 * time.Second

// fabric is the network between orderers: loopback connections by name, with
// links that can be cut.
type fabric struct {
	mu        sync.Mutex
	listeners map[string]net.Addr
	links     map[link][]net.Conn
	cut       map[link]bool
}

// link is between two orderers, the lesser name first.
type link [2]string

func linkOf(a, b string) link { return link{min(a, b), max(a, b)} }

func newFabric() *fabric {
	return &fabric{listeners: map[string]net.Addr{}, links: map[link][]net.Conn{}, cut: map[link]bool{}}
}

func (f *fabric) listen(t testing.TB, name string) net.Listener {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.listeners[name] = ln.Addr()
	return ln
}

// dialer connects from an orderer.
func (f *fabric) dialer(from string) func(context.Context, string) (net.Conn, error) {
	return func(ctx context.Context, to string) (net.Conn, error) {
		f.mu.Lock()
		addr := f.listeners[to]
		f.mu.Unlock()
		if addr == nil {
			return nil, fmt.Errorf("nobody is called %s", to)
		}
		c, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr.String())
		if err != nil {
			return nil, err
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		l := linkOf(from, to)
		if f.cut[l] {
			return nil, errors.Join(fmt.Errorf("the link from %s to %s is cut", from, to), c.Close())
		}
		f.links[l] = append(f.links[l], c)
		return c, nil
	}
}

// isolate cuts all links of an orderer, or mends them.
func (f *fabric) isolate(name string, cut bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for other := range f.listeners {
		l := linkOf(name, other)
		f.cut[l] = cut
		for _, c := range f.links[l] {
			_ = c.Close() // it may be closed already
		}
		f.links[l] = nil
	}
}

// cluster is a network of orderers on disk.
type cluster struct {
	t       testing.TB
	dir     string
	fabric  *fabric
	genesis *block.Block
	signers []*identity.Signer // sorted by key
	tune    func(*Options)
	nodes   []*node
}

// node is one orderer with its store. It exists while it runs.
type node struct {
	*Orderer
	name  string
	store *blockstore.Store
}

// newCluster makes the network of so many orderers.
func newCluster(t testing.TB, n int, tune func(*Options)) *cluster {
	c := &cluster{t: t, dir: t.TempDir(), fabric: newFabric(), tune: tune, nodes: make([]*node, n)}
	for i := range n {
		c.signers = append(c.signers, identity.NewSigner([32]byte{byte(i + 1)}))
	}
	slices.SortFunc(c.signers, func(a, b *identity.Signer) int {
		ka, kb := a.Public(), b.Public()
		return bytes.Compare(ka[:], kb[:])
	})
	set := identity.OrdererSet{Quorum: 1}
	for _, s := range c.signers {
		set.Keys = append(set.Keys, s.Public())
	}
	g := &block.Genesis{
		Network:   "test",
		Timestamp: 1_700_000_000_000_000,
		Orgs:      []block.Org{{Name: "org1", Users: []block.User{{Name: "admin", Role: identity.Admin, Key: c.signers[0].Public()}}}},
		Orderers:  set,
		Params:    block.DefaultParams(),
	}
	var err error
	if c.genesis, err = g.Block(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.closeAll)
	return c
}

func (c *cluster) peer(i int) Peer { return Peer{c.signers[i].Public(), fmt.Sprintf("orderer%d", i)} }

func (c *cluster) peers(n int) []Peer {
	var peers []Peer
	for i := range n {
		peers = append(peers, c.peer(i))
	}
	return peers
}

// options are those of orderer i over its store.
func (c *cluster) options(i int, bootstrap []Peer, tip *block.Block, store *blockstore.Store) Options {
	c.t.Helper()
	name := c.peer(i).Address
	return Options{
		Network:  c.genesis.Genesis.NetworkID(),
		ConfigID: c.genesis.ConfigID,
		Orderers: c.genesis.Genesis.Orderers,
		Signer:   c.signers[i],
		Tip:      tip, Persist: store.AppendBatch, Source: store.Get,
		Dir:       filepath.Join(c.dir, name, "raft"),
		Bootstrap: bootstrap,
		Address:   name,
		Listener:  c.fabric.listen(c.t, name),
		Dial:      c.fabric.dialer(name),
		Cutter:    cutter.Config{MaxTxs: 10, MaxBytes: 1 << 20, Timeout: 2000, Pipeline: 1},
		Remember:  c.genesis.Genesis.Params.ValidityWindow,
		// Long enough for a machine that is busy with other tests.
		ElectionTimeout: 300 * time.Millisecond,
		Logger:          testLogger(name),
	}
}

func (c *cluster) openStore(i int) *blockstore.Store {
	c.t.Helper()
	s, err := blockstore.Open(filepath.Join(c.dir, c.peer(i).Address, "blocks"), blockstore.Options{Genesis: c.genesis.Genesis})
	if err != nil {
		c.t.Fatal(err)
	}
	return s
}

// start starts orderer i, in a network that began with the given ones.
func (c *cluster) start(i int, bootstrap []Peer) *node {
	c.t.Helper()
	n := &node{name: c.peer(i).Address}
	n.store = c.openStore(i)
	height, _ := n.store.Tip()
	tip, err := n.store.Get(height)
	if err != nil {
		c.t.Fatal(err)
	}
	opts := c.options(i, bootstrap, tip, n.store)
	if c.tune != nil {
		c.tune(&opts)
	}
	if n.Orderer, err = Start(opts); err != nil {
		c.t.Fatal(errors.Join(err, n.store.Close()))
	}
	c.nodes[i] = n
	return n
}

func (c *cluster) startAll() {
	c.t.Helper()
	for i := range c.nodes {
		c.start(i, c.peers(len(c.nodes)))
	}
}

// close stops an orderer in order.
func (c *cluster) close(i int) {
	c.t.Helper()
	if err := c.nodes[i].Close(); err != nil {
		c.t.Errorf("%s: %v", c.nodes[i].name, err)
	}
	c.forget(i)
}

// crash stops an orderer without a word: nothing is flushed, nobody is told.
func (c *cluster) crash(i int) {
	c.t.Helper()
	n := c.nodes[i]
	c.fabric.isolate(n.name, true)
	n.stop(errors.New("crashed"))
	_ = n.Close() // says that it crashed
	c.fabric.isolate(n.name, false)
	c.forget(i)
}

func (c *cluster) forget(i int) {
	if err := c.nodes[i].store.Close(); err != nil {
		c.t.Error(err)
	}
	c.nodes[i] = nil
}

func (c *cluster) closeAll() {
	for i, n := range c.nodes {
		if n != nil {
			c.close(i)
		}
	}
}

func (c *cluster) running() []int {
	var list []int
	for i, n := range c.nodes {
		if n != nil {
			list = append(list, i)
		}
	}
	return list
}

// leader waits until one of the given orderers takes transactions.
func (c *cluster) leader(among ...int) int {
	c.t.Helper()
	found := -1
	c.until("nobody leads", func() bool {
		for _, i := range among {
			if c.nodes[i].Leads() {
				found = i
				return true
			}
		}
		return false
	})
	return found
}

// crown makes orderer i the leader, and returns when all know.
func (c *cluster) crown(i int) {
	c.t.Helper()
	for deadline := time.Now().Add(patience); ; {
		if l := c.leader(c.running()...); l == i {
			break
		} else if err := c.nodes[l].TransferLeadership(c.peer(i)); err == nil {
			c.until("the new leader does not lead", func() bool { return c.nodes[i].Leads() || !c.nodes[i].knowsOther(i, c) })
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("orderer %d does not become leader", i)
		}
		time.Sleep(10 * time.Millisecond)
	}
	for _, j := range c.running() {
		c.until("an orderer does not know the leader", func() bool {
			p, ok := c.nodes[j].Leader()
			return ok && p == c.peer(i)
		})
	}
}

// knowsOther reports whether the node takes somebody else for the leader.
func (n *node) knowsOther(i int, c *cluster) bool {
	p, ok := n.Leader()
	return ok && p != c.peer(i)
}

func (c *cluster) until(else_ string, cond func() bool) {
	c.t.Helper()
	for deadline := time.Now().Add(patience); !cond(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			c.t.Fatal(else_)
		}
	}
}

// blocks returns all blocks of an orderer up to the one with which they contain
// the given transactions; it fails if one does not come or comes twice.
func (c *cluster) blocks(i int, want []*block.Tx) []*block.Block {
	c.t.Helper()
	left := make(map[block.TxID]bool, len(want))
	for _, tx := range want {
		left[tx.ID()] = true
	}
	seen := make(map[block.TxID]bool)
	var blocks []*block.Block
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	enough := errors.New("enough")
	err := c.nodes[i].Deliver(ctx, 1, func(b *block.Block) error {
		blocks = append(blocks, b)
		c.nodes[i].Done(b.Number)
		for _, tx := range b.Txs {
			if seen[tx.ID()] {
				return fmt.Errorf("transaction %s stands in two places", tx.ID())
			}
			seen[tx.ID()] = true
			delete(left, tx.ID())
		}
		if len(left) == 0 {
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) {
		c.t.Fatalf("orderer %d: %d of %d transactions are missing after block %d: %v", i, len(left), len(want), len(blocks), err)
	}
	return blocks
}

// agree checks that orderers have the same blocks with the given transactions,
// certified by themselves unless they were fetched.
func (c *cluster) agree(want []*block.Tx, orderers ...int) {
	c.t.Helper()
	set, network := &c.genesis.Genesis.Orderers, c.genesis.Genesis.NetworkID()
	var first []*block.Block
	for _, i := range orderers {
		blocks := c.blocks(i, want)
		prev := c.genesis
		for _, b := range blocks {
			if err := b.Follows(prev.Number, prev.Hash(), prev.Timestamp); err != nil {
				c.t.Fatal(err)
			}
			prev = b
			cert, err := identity.DecodeCertificate(b.Certificate)
			if err == nil {
				err = identity.VerifyCertificate(set, network, b.Hash(), cert)
			}
			if err != nil {
				c.t.Fatalf("orderer %d, block %d: %v", i, b.Number, err)
			}
		}
		if first == nil {
			first = blocks
		}
		for j := range min(len(first), len(blocks)) {
			if first[j].Hash() != blocks[j].Hash() {
				c.t.Fatalf("block %d differs between orderers", j+1)
			}
		}
	}
}

func (c *cluster) submit(i int, txs ...*block.Tx) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for k, tx := range txs {
		if err := c.nodes[i].Submit(ctx, tx); err != nil {
			c.t.Fatalf("transaction %d of %d: %v", k, len(txs), err)
		}
	}
}

// TestConformance runs the suite of ordering services with one orderer and with
// three, of which the suite's first one leads.
func TestConformance(t *testing.T) {
	for _, n := range []int{1, 3} {
		t.Run(fmt.Sprintf("%d", n), func(t *testing.T) {
			orderingtest.Run(t, func(t *testing.T, setup orderingtest.Setup) *orderingtest.Cluster {
				c := newCluster(t, n, func(o *Options) {
					o.Cutter, o.Queue = setup.Cutter, setup.Queue
					if n == 1 {
						o.ElectionTimeout = 30 * time.Millisecond // nobody else stands
					}
				})
				return c.conform()
			})
		})
	}
}

// conform starts all orderers as the suite wants them.
func (c *cluster) conform() *orderingtest.Cluster {
	c.t.Helper()
	c.startAll()
	c.crown(0)
	tc := &orderingtest.Cluster{
		Network:  c.genesis.Genesis.NetworkID(),
		Genesis:  c.genesis,
		Orderers: c.genesis.Genesis.Orderers,
		ConfigID: c.genesis.ConfigID,
	}
	for _, n := range c.nodes {
		tc.Members = append(tc.Members, ordering.Service(n))
	}
	tc.Restart = func() *orderingtest.Cluster {
		c.closeAll()
		return c.conform()
	}
	return tc
}

// testLogger discards, unless the tests run with -log.
func testLogger(name string) *slog.Logger {
	if !*logging {
		return slog.New(slog.DiscardHandler)
	}
	h := slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug})
	return slog.New(h).With("orderer", name)
}

// textLogger writes what is of level Info at least.
func textLogger(w io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(w, nil)) }

var logging = flag.Bool("log", false, "show what orderers log")
