package peer

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/identity"
	"github.com/tallystick/tallystick/ordering"
	"github.com/tallystick/tallystick/ordering/orderingtest"
	"github.com/tallystick/tallystick/ordering/solo"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// TestConformance: an orderer on the other side of the mesh is an ordering service
// as good as one in this process.
func TestConformance(t *testing.T) {
	orderingtest.RunRemote(t, func(t *testing.T, setup orderingtest.Setup) *orderingtest.Cluster {
		w := newWorld(t)
		return w.cluster(t.TempDir(), setup)
	})
}

func (w *world) cluster(dir string, setup orderingtest.Setup) *orderingtest.Cluster {
	o, store, stopOrderer := w.orderer(dir, setup)
	at, stopServer := w.serve("orderer1", ServerOptions{Submit: o.Submit, Deliver: o.Deliver})
	open := func(name string) *Service {
		return w.service(name, func(opts *ServiceOptions) {
			opts.Orderers, opts.Block = []Remote{at}, store.Get
		})
	}
	one, two := open("node1"), open("node2")
	return &orderingtest.Cluster{
		Network: w.genesis.Genesis.NetworkID(), Genesis: w.genesis, Orderers: w.genesis.Genesis.Orderers, ConfigID: w.genesis.ConfigID,
		Members: []ordering.Service{one, two},
		Restart: func() *orderingtest.Cluster {
			one.stop()
			two.stop()
			stopServer()
			stopOrderer()
			return w.cluster(dir, setup)
		},
	}
}

// fake is an orderer that does what a test wants.
type fake struct {
	submit  func(ctx context.Context, tx *block.Tx) error
	deliver func(ctx context.Context, from block.Height, f func(*block.Block) error) error
	height  func() block.Height
}

func (w *world) fake(name string, f fake) Remote {
	w.register(name, identity.Orderer)
	opts := ServerOptions{Submit: f.submit, Deliver: f.deliver}
	if f.submit == nil {
		opts.Submit = func(context.Context, *block.Tx) error { return nil }
	}
	if f.deliver == nil {
		opts.Deliver = func(ctx context.Context, _ block.Height, _ func(*block.Block) error) error {
			<-ctx.Done()
			return ctx.Err()
		}
	}
	if f.height != nil {
		opts.Status = func() Status { return Status{Height: f.height()} }
	}
	r, _ := w.serve(name, opts)
	return r
}

// honest serves orderer1.
func (w *world) honest() (*solo.Orderer, Remote) {
	o, _, _ := w.orderer(filepath.Join(w.dir, "blocks"), usual)
	r, _ := w.serve("orderer1", ServerOptions{Submit: o.Submit, Deliver: o.Deliver, Status: func() Status { return Status{Height: o.Status().Height} }})
	return o, r
}

// TestWithheldTransaction: an orderer accepts transactions and does nothing with
// them. They go to the next one, and stand in the chain once.
func TestWithheldTransaction(t *testing.T) {
	w := newWorld(t)
	o, good := w.honest()
	var swallowed atomic.Int64
	bad := w.fake("orderer2", fake{submit: func(context.Context, *block.Tx) error { swallowed.Add(1); return nil }, height: func() block.Height { return 0 }})
	s := w.service("node1", func(opts *ServiceOptions) { opts.Orderers = []Remote{bad, good} })
	got := blocks(t, s, 1)
	maker := orderingtest.NewTxMaker(w.genesis.Genesis.NetworkID())
	txs := maker.Some(20)
	for _, tx := range txs {
		if err := s.Submit(t.Context(), tx); err != nil {
			t.Fatal(err)
		}
	}
	seen := map[block.TxID]int{}
	for n := 0; n < len(txs); {
		b := next(t, got)
		n += len(b.Txs)
		for _, tx := range b.Txs {
			seen[tx.ID()]++
		}
	}
	for _, tx := range txs {
		if seen[tx.ID()] != 1 {
			t.Errorf("transaction %s is in the chain %d times", tx.ID(), seen[tx.ID()])
		}
	}
	if swallowed.Load() < int64(len(txs)) {
		t.Errorf("the orderer that withholds had %d transactions only", swallowed.Load())
	}
	if n := s.pending.len(); n != 0 {
		t.Errorf("%d transactions are still pending", n)
	}
	if o.Status().Waiting != 0 {
		t.Error("the honest orderer has something left")
	}
}

// TestWithheldBlocks: an orderer that delivers nothing, and one that stops in the
// middle, are left as soon as another one has more.
func TestWithheldBlocks(t *testing.T) {
	w := newWorld(t)
	o, good := w.honest()
	silent := w.fake("orderer2", fake{height: func() block.Height { return 0 }})
	stops := w.fake("orderer3", fake{deliver: func(ctx context.Context, from block.Height, f func(*block.Block) error) error {
		return o.Deliver(ctx, from, func(b *block.Block) error {
			if b.Number > 3 {
				<-ctx.Done()
				return ctx.Err()
			}
			return f(b)
		})
	}})
	s := w.service("node1", func(opts *ServiceOptions) { opts.Orderers = []Remote{silent, stops, good} })
	got := blocks(t, s, 1)
	maker := orderingtest.NewTxMaker(w.genesis.Genesis.NetworkID())
	for i := range 8 {
		if err := o.Submit(t.Context(), maker.Next()); err != nil {
			t.Fatal(err)
		}
		if b := next(t, got); b.Number != uint64(i+1) {
			t.Fatalf("block %d instead of %d", b.Number, i+1)
		}
	}
}

// TestByzantineOrderer: orderers that send blocks which are not certified, do not
// link, skip one, or carry changed transactions. No such block is taken, and the
// chain goes on with what others send.
func TestByzantineOrderer(t *testing.T) {
	w := newWorld(t)
	o, good := w.honest()
	reencode := func(change func(b *block.Block)) func(*block.Block) *block.Block {
		return func(b *block.Block) *block.Block {
			c := &block.Block{Number: b.Number, PrevHash: b.PrevHash, ConfigID: b.ConfigID, Timestamp: b.Timestamp, Txs: b.Txs, Certificate: b.Certificate}
			change(c)
			return c
		}
	}
	maker := orderingtest.NewTxMaker(w.genesis.Genesis.NetworkID())
	extra := maker.Next()
	lies := map[string]func(*block.Block) *block.Block{
		"orderer2": reencode(func(b *block.Block) { b.Certificate = nil }),
		"orderer3": reencode(func(b *block.Block) { b.PrevHash[0] ^= 1 }),
		"orderer4": reencode(func(b *block.Block) { b.Txs = append([]*block.Tx{extra}, b.Txs...) }),
		"orderer5": reencode(func(b *block.Block) { b.Number++ }),
		"orderer6": reencode(func(b *block.Block) { b.Timestamp++ }),
		"orderer7": reencode(func(b *block.Block) { // signed by nobody whom the network knows
			digest := identity.VoteDigest(w.genesis.Genesis.NetworkID(), 0, b.Hash())
			cert := identity.Certificate{Votes: []identity.Vote{{Signature: key("orderer7").Sign(digest[:])}}}
			b.Certificate = cert.Encode()
		}),
	}
	var remotes []Remote
	for name, lie := range lies { // any order: all of them lie
		remotes = append(remotes, w.fake(name, fake{height: func() block.Height { return 1 << 30 },
			deliver: func(ctx context.Context, from block.Height, f func(*block.Block) error) error {
				return o.Deliver(ctx, from, func(b *block.Block) error { return f(lie(b)) })
			}}))
	}
	s := w.service("node1", func(opts *ServiceOptions) { opts.Orderers = append(remotes, good) })
	got := blocks(t, s, 1)
	for i := range 5 {
		if err := o.Submit(t.Context(), maker.Next()); err != nil {
			t.Fatal(err)
		}
		b := next(t, got)
		if b.Number != uint64(i+1) || len(b.Txs) != 1 || w.check(b) != nil {
			t.Fatalf("block %d with %d transactions", b.Number, len(b.Txs))
		}
	}
	blamed := 0
	for _, r := range s.sources {
		r.mu.Lock()
		if errors.Is(r.lastErr, ErrBadBlock) {
			blamed++
		}
		r.mu.Unlock()
	}
	if blamed == 0 {
		t.Error("nobody is blamed")
	}
}

// TestCatchUpFromNode: while no orderer is reached, another node gives the blocks.
func TestCatchUpFromNode(t *testing.T) {
	w := newWorld(t)
	o, store, _ := w.orderer(filepath.Join(w.dir, "blocks"), usual)
	maker := orderingtest.NewTxMaker(w.genesis.Genesis.NetworkID())
	for range 200 {
		if err := o.Submit(t.Context(), maker.Next()); err != nil {
			t.Fatal(err)
		}
	}
	feed := NewFeed(t.Context(), w.genesis, store.Get)
	node, _ := w.serve("node2", ServerOptions{Deliver: feed.Deliver})
	gone := Remote{id("orderer1"), identity.Orderer, "127.0.0.1:1"}
	s := w.service("node1", func(opts *ServiceOptions) { opts.Orderers, opts.Nodes = []Remote{gone}, []Remote{node} })
	got := blocks(t, s, 1)
	go func() {
		_ = o.Deliver(t.Context(), 1, func(b *block.Block) error { feed.Add(b); return nil }) // ends with the test
	}()
	for n := 0; n < 200; {
		n += len(next(t, got).Txs)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if err := s.Submit(ctx, maker.Next()); pgerr.CodeOf(err) != pgerr.InsufficientResources {
		t.Errorf("a transaction that no orderer takes: %v", err)
	}
	if n := s.pending.len(); n != 0 {
		time.Sleep(time.Second)
		if n = s.pending.len(); n != 0 {
			t.Errorf("%d transactions that were given up are pending", n)
		}
	}
}

// TestFailover: orderers that refuse connections or answer errors are passed over;
// refusals of a transaction are not.
func TestFailover(t *testing.T) {
	w := newWorld(t)
	_, good := w.honest()
	gone := Remote{id("orderer9"), identity.Orderer, "127.0.0.1:1"}
	broken := w.fake("orderer2", fake{submit: func(context.Context, *block.Tx) error { return errors.New("broken") }})
	s := w.service("node1", func(opts *ServiceOptions) { opts.Orderers = []Remote{gone, broken, good} })
	got := blocks(t, s, 1)
	maker := orderingtest.NewTxMaker(w.genesis.Genesis.NetworkID())
	tx := maker.Next()
	if err := s.Submit(t.Context(), tx); err != nil {
		t.Fatal(err)
	}
	if b := next(t, got); b.Txs[0].ID() != tx.ID() {
		t.Error("another transaction")
	}
	refuses := w.fake("orderer3", fake{submit: func(context.Context, *block.Tx) error {
		return pgerr.New(pgerr.InvalidTransactionState, "no").WithDetail("d").WithHint("h")
	}})
	s = w.service("node2", func(opts *ServiceOptions) { opts.Orderers = []Remote{refuses, good} })
	err := s.Submit(t.Context(), maker.Next())
	if e, ok := pgerr.From(err); !ok || e.Code != pgerr.InvalidTransactionState || e.Message != "no" || e.Detail != "d" || e.Hint != "h" {
		t.Errorf("a refusal: %v", err)
	}
}

// TestRefusedMembers: who is not registered, was revoked, or has another role gets
// nothing, also on a connection that it has already.
func TestRefusedMembers(t *testing.T) {
	w := newWorld(t)
	o, good := w.honest()
	maker := orderingtest.NewTxMaker(w.genesis.Genesis.NetworkID())
	ask := func(name string) error {
		t.Helper()
		r, err := dial(good, w.verifier, w.pair(name))
		if err != nil {
			t.Fatal(err)
		}
		defer r.conn.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		_, err = r.submit(ctx, maker.Some(1))
		return err
	}
	if err := ask("node1"); err != nil {
		t.Fatal(err)
	}
	before := w.refusals()
	if err := ask("mallory"); err == nil || w.refusals() == before {
		t.Errorf("a member that is not registered: %v", err)
	}
	w.register("carol", identity.Client)
	if err := ask("carol"); err == nil || !strings.Contains(err.Error(), "may not") {
		t.Errorf("a client where nodes are: %v", err)
	}

	w.register("node3", identity.Node)
	r, err := dial(good, w.verifier, w.pair("node3"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.conn.Close()
	ended := make(chan error, 1)
	first := make(chan struct{}, 100)
	go func() {
		ended <- r.blocks(t.Context(), 1, func(*block.Block) error { first <- struct{}{}; return nil })
	}()
	if err := o.Submit(t.Context(), maker.Next()); err != nil {
		t.Fatal(err)
	}
	<-first
	w.mu.Lock()
	u := w.users[id("node3")]
	u.Active = false
	w.users[id("node3")] = u
	w.mu.Unlock()
	if _, err := r.submit(t.Context(), maker.Some(1)); err == nil {
		t.Error("a revoked node may still submit")
	}
	time.Sleep(recheck)
	for {
		if err := o.Submit(t.Context(), maker.Next()); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-ended:
			if err == nil || !strings.Contains(err.Error(), "revoked") {
				t.Errorf("the stream of a revoked node ends with %v", err)
			}
			return
		case <-first:
		case <-time.After(10 * time.Second):
			t.Fatal("a revoked node still gets blocks")
		}
	}
}

// FuzzFrame: no message crashes the codec, and what it reads it writes again.
func FuzzFrame(f *testing.F) {
	b, _ := codec{}.Marshal(&frame{[][]byte{nil, []byte("abc"), make([]byte, 300)}})
	f.Add(b)
	f.Add([]byte{0x10, 0x01, 0x0a, 0x00})
	f.Add([]byte{0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Fuzz(func(t *testing.T, b []byte) {
		var in frame
		if (codec{}).Unmarshal(b, &in) != nil {
			return
		}
		again, err := codec{}.Marshal(&in)
		if err != nil {
			t.Fatal(err)
		}
		var out frame
		if err := (codec{}).Unmarshal(again, &out); err != nil || len(out.data) != len(in.data) {
			t.Fatalf("%v, %d parts instead of %d", err, len(out.data), len(in.data))
		}
		_, _ = in.height()
		for _, d := range in.data {
			_ = decodeRefusal(d)
		}
	})
}
