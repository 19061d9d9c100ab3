package flow

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/tallystick/tallystick/blockstore"
	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/contracts"
	"github.com/tallystick/tallystick/contracts/system"
	"github.com/tallystick/tallystick/identity"
	"github.com/tallystick/tallystick/mvcc"
	"github.com/tallystick/tallystick/ordering"
	"github.com/tallystick/tallystick/ordering/cutter"
	"github.com/tallystick/tallystick/ordering/solo"
	"github.com/tallystick/tallystick/server/chain"
	"github.com/tallystick/tallystick/sql"
	"github.com/tallystick/tallystick/sql/pgerr"
)

const patience = 20 * time.Second

var (
	quiet   = slog.New(slog.NewTextHandler(io.Discard, nil))
	orderer = identity.NewSigner([32]byte{1})
	admin   = identity.NewSigner([32]byte{2})
	adminID = identity.UserID{Org: "org1", Name: "admin"}
)

func testGenesis() *block.Genesis {
	p := block.DefaultParams()
	p.Flow, p.Rule = block.FlowOrderThenExecute, block.RuleAbortDuringCommit
	return &block.Genesis{
		Network: "test", Timestamp: time.Now().UnixMicro() - 1_000_000,
		Orgs:     []block.Org{{Name: "org1", Users: []block.User{{Name: "admin", Role: identity.Admin, Key: admin.Public()}}}},
		Orderers: identity.OrdererSet{Keys: []identity.PublicKey{orderer.Public()}, Quorum: 1},
		Params:   p,
	}
}

// node is a flow over a solo orderer.
type node struct {
	t       testing.TB
	genesis *block.Genesis
	blocks  *blockstore.Store
	store   *mvcc.Store
	chain   *chain.Chain
	orderer *solo.Orderer
	flow    *Flow
	nonce   atomic.Uint64
	ended   chan error // what Run returned
	stop    context.CancelFunc
}

// newNode starts a node; change may put something between flow and orderer.
func newNode(t testing.TB, change func(*Options)) *node {
	n := &node{t: t, genesis: testGenesis(), ended: make(chan error, 1)}
	n.openStores(vfs.NewMem())
	n.startOrderer()
	opts := Options{Chain: n.chain, Service: n.orderer, Logger: quiet}
	if change != nil {
		change(&opts)
	}
	n.start(opts)
	return n
}

func (n *node) openStores(fs vfs.FS) {
	n.t.Helper()
	var err error
	if n.blocks, err = blockstore.Open("blocks", blockstore.Options{FS: fs, Genesis: n.genesis}); err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { n.blocks.Close() })
	if n.store, err = mvcc.Open("state", mvcc.Options{FS: vfs.NewMem(), Logger: quiet}); err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { n.store.Close() })
	engine := sql.NewEngine(n.store, contracts.NewFunctions().Exec(), sql.EngineOptions{ValidateFunction: contracts.ValidateFunction})
	n.chain, err = chain.Open(chain.Options{Store: n.store, Blocks: n.blocks, Engine: engine, System: system.New(engine, contracts.Inspect), Logger: quiet})
	if err != nil {
		n.t.Fatal(err)
	}
}

func (n *node) startOrderer() {
	n.t.Helper()
	height, _ := n.blocks.Tip()
	tip, err := n.blocks.Get(height)
	if err != nil {
		n.t.Fatal(err)
	}
	n.orderer, err = solo.Start(solo.Options{
		Network: n.genesis.NetworkID(), ConfigID: n.genesis.NetworkID(), Orderers: n.genesis.Orderers, Signer: orderer,
		Tip: tip, Persist: n.blocks.AppendBatch, Source: n.blocks.Get,
		Cutter:   cutter.Config{MaxTxs: 100, MaxBytes: 1 << 20, Timeout: 20_000, Pipeline: 1, MaxInFlight: 4},
		Remember: n.genesis.Params.ValidityWindow,
	})
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { _ = n.orderer.Close() })
}

func (n *node) start(opts Options) {
	n.t.Helper()
	var err error
	if n.flow, err = New(opts); err != nil {
		n.t.Fatal(err)
	}
	var ctx context.Context
	ctx, n.stop = context.WithCancel(context.Background())
	go func() { n.ended <- n.flow.Run(ctx) }()
	n.t.Cleanup(func() {
		n.stop()
		if err, ok := <-n.ended; ok && err != nil && n.flow.Err() == nil && !errors.Is(err, ordering.ErrClosed) {
			n.t.Errorf("the flow ended: %v", err)
		}
	})
}

// tx signs a call of create_deploytx, which is there from the beginning.
func (n *node) tx(script string, change func(*block.Tx)) *block.Tx {
	tx := &block.Tx{
		Network: n.genesis.NetworkID(), User: adminID, Time: time.Now().UnixMicro(), ValidUntil: n.chain.Height() + 100,
		Call: block.Call{Schema: "blockchain", Name: "create_deploytx", ArgTypes: []string{"text"}, Args: []block.Arg{{Value: []byte(script)}}},
	}
	binary.BigEndian.PutUint64(tx.Nonce[:], n.nonce.Add(1))
	if change != nil {
		change(tx)
	}
	if err := tx.Sign(admin); err != nil {
		n.t.Fatal(err)
	}
	return tx
}

const script = "CREATE TABLE t (id int PRIMARY KEY)"

func wait(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// expectCode fails unless err is a *pgerr.Error with a code.
func expectCode(t *testing.T, what string, err error, code pgerr.Code) {
	t.Helper()
	if e, ok := pgerr.From(err); !ok || e.Code != code {
		t.Errorf("%s: error is %v, want SQLSTATE %s", what, err, code)
	}
}

func TestSubmit(t *testing.T) {
	n := newNode(t, nil)
	tx := n.tx(script, nil)
	r, err := n.flow.Submit(wait(t), tx)
	if err != nil || r.Status != chain.Committed || r.ID != tx.ID() || r.Position != 1 {
		t.Fatalf("receipt is %+v, %v", r, err)
	}
	// The error of the call itself comes with the receipt.
	bad, err := n.flow.Submit(wait(t), n.tx("SELECT 1", nil))
	if err != nil || bad.Status != chain.Failed || bad.Err.Code != pgerr.FeatureNotSupported {
		t.Errorf("receipt of a failing call is %+v, %v", bad, err)
	}
	// Again: the stored receipt, and nothing new in the chain.
	height := n.chain.Height()
	again, err := n.flow.Submit(wait(t), tx)
	if err != nil || again.XID != r.XID || string(again.Result) != string(r.Result) || n.chain.Height() != height {
		t.Errorf("receipt of a resubmission is %+v, %v, at block %d", again, err, n.chain.Height())
	}
	if n.flow.Waiting() != 0 {
		t.Errorf("%d clients wait", n.flow.Waiting())
	}
}

func TestManyClients(t *testing.T) {
	var seen atomic.Int64
	n := newNode(t, func(o *Options) {
		o.OnBlock = func(_ uint64, receipts []chain.Receipt) { seen.Add(int64(len(receipts))) }
	})
	const clients, each = 16, 20
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			for range each {
				tx := n.tx(script, nil)
				r, err := n.flow.Submit(wait(t), tx)
				if err != nil || r.ID != tx.ID() || r.Status != chain.Committed {
					t.Errorf("receipt is %+v, %v", r, err)
				}
			}
		})
	}
	wg.Wait()
	if got := seen.Load(); got != clients*each {
		t.Errorf("%d receipts for %d transactions", got, clients*each)
	}
	if n.flow.Waiting() != 0 {
		t.Errorf("%d clients wait", n.flow.Waiting())
	}
}

// TestSameTransactionFromMany: every one of several clients with one
// transaction gets its one receipt.
func TestSameTransactionFromMany(t *testing.T) {
	n := newNode(t, nil)
	tx := n.tx(script, nil)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			r, err := n.flow.Submit(wait(t), tx)
			if err != nil || r.Status != chain.Committed || r.Height != 1 {
				t.Errorf("receipt is %+v, %v", r, err)
			}
		})
	}
	wg.Wait()
}

func TestRefusals(t *testing.T) {
	n := newNode(t, nil)
	forged := n.tx(script, nil)
	raw := append([]byte(nil), forged.Encode()...)
	raw[len(raw)-1] ^= 1
	forged, err := block.DecodeTx(raw)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		tx   *block.Tx
		code pgerr.Code
	}{
		{"signature", forged, "28000"},
		{"user", n.tx(script, func(tx *block.Tx) { tx.User.Name = "nobody" }), "28000"},
		{"network", n.tx(script, func(tx *block.Tx) { tx.Network[0]++ }), "28000"},
		{"expired", n.tx(script, func(tx *block.Tx) { tx.ValidUntil = 0 }), "25000"},
	} {
		_, err := n.flow.Submit(wait(t), c.tx)
		expectCode(t, c.name, err, c.code)
	}
	if n.chain.Height() != 0 {
		t.Error("a refused transaction made a block")
	}
}

// TestCancel: the client stops waiting, the transaction goes on.
func TestCancel(t *testing.T) {
	gate := &gate{open: make(chan struct{})}
	n := newNode(t, func(o *Options) { gate.Service, o.Service = o.Service, gate })
	tx := n.tx(script, nil)
	ctx, cancel := context.WithCancelCause(wait(t))
	result := make(chan error)
	go func() {
		_, err := n.flow.Submit(ctx, tx)
		result <- err
	}()
	for n.flow.Waiting() == 0 {
		time.Sleep(time.Millisecond)
	}
	cancel(pgerr.New(pgerr.QueryCanceled, "canceling statement due to statement timeout"))
	err := <-result
	expectCode(t, "cancel", err, pgerr.QueryCanceled)
	if e, _ := pgerr.From(err); e.Message != "canceling statement due to statement timeout" || e.Detail == "" {
		t.Errorf("error is %+v", e)
	}
	if n.flow.Waiting() != 0 {
		t.Error("the client still waits")
	}
	close(gate.open)
	if r, err := n.flow.Submit(wait(t), tx); err != nil || r.Status != chain.Committed || r.Height != 1 {
		t.Errorf("receipt is %+v, %v", r, err)
	}
}

// gate holds blocks back until it is opened.
type gate struct {
	ordering.Service
	open chan struct{}
	lose func(*block.Tx) bool // transactions to forget
}

func (g *gate) Submit(ctx context.Context, tx *block.Tx) error {
	if g.lose != nil && g.lose(tx) {
		return nil
	}
	return g.Service.Submit(ctx, tx)
}

func (g *gate) Deliver(ctx context.Context, from block.Height, f func(*block.Block) error) error {
	return g.Service.Deliver(ctx, from, func(b *block.Block) error {
		select {
		case <-g.open:
			return f(b)
		case <-ctx.Done():
			return ctx.Err()
		}
	})
}

func opened() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

// TestLostTransaction: a client whose transaction the orderer lost hears it when
// no later block may contain it.
func TestLostTransaction(t *testing.T) {
	g := &gate{open: opened(), lose: func(tx *block.Tx) bool { return tx.ValidUntil == 3 }}
	n := newNode(t, func(o *Options) { g.Service, o.Service = o.Service, g })
	result := make(chan error)
	go func() {
		_, err := n.flow.Submit(wait(t), n.tx(script, func(tx *block.Tx) { tx.ValidUntil = 3 }))
		result <- err
	}()
	for n.flow.Waiting() == 0 {
		time.Sleep(time.Millisecond)
	}
	for i := range 3 {
		select {
		case err := <-result:
			t.Fatalf("answer %v before block %d", err, i+1)
		default:
		}
		if _, err := n.flow.Submit(wait(t), n.tx(script, nil)); err != nil {
			t.Fatal(err)
		}
	}
	expectCode(t, "lost", <-result, pgerr.InvalidTransactionState)
}

// TestForgedCopy: a copy with a false signature that got into a block first is
// not the answer to the client with the genuine one.
func TestForgedCopy(t *testing.T) {
	n := newNode(t, nil)
	tx := n.tx(script, nil)
	raw := append([]byte(nil), tx.Encode()...)
	raw[len(raw)-1] ^= 1
	forged, err := block.DecodeTx(raw)
	if err != nil {
		t.Fatal(err)
	}
	if err := n.orderer.Submit(wait(t), forged); err != nil { // as from another node
		t.Fatal(err)
	}
	r, err := n.flow.Submit(wait(t), tx)
	if err != nil || r.Status != chain.Committed {
		t.Errorf("receipt is %+v, %v", r, err)
	}
}

// TestRejectedCopyOfOwn: who is not a user any more when the block comes hears
// that, although such a transaction consumes no id.
func TestRejectedCopyOfOwn(t *testing.T) {
	tx := &block.Tx{ValidUntil: 9}
	ws := newWaiters()
	w, err := ws.add(tx)
	if err != nil {
		t.Fatal(err)
	}
	receipt := chain.Receipt{ID: tx.ID(), Status: chain.Rejected, Err: pgerr.New("28000", "role does not exist")}
	other := &block.Tx{ValidUntil: 9, Signature: identity.Signature{1}}
	ws.block(&block.Block{Number: 1, Txs: []*block.Tx{other}}, []chain.Receipt{receipt}, errExpired)
	if len(w.answer) != 0 {
		t.Fatal("the receipt of another copy is an answer")
	}
	ws.block(&block.Block{Number: 2, Txs: []*block.Tx{tx}}, []chain.Receipt{receipt}, errExpired)
	if len(w.answer) != 1 || ws.count() != 0 || len(ws.expires) != 0 {
		t.Errorf("%d answers, %d waiters, %d heights", len(w.answer), ws.count(), len(ws.expires))
	}
}

// TestFault: a fault of the chain ends the flow, and everybody hears of it.
func TestFault(t *testing.T) {
	g := &gate{open: make(chan struct{})}
	n := newNode(t, func(o *Options) { g.Service, o.Service = &spoiler{o.Service}, g })
	result := make(chan error)
	go func() {
		_, err := n.flow.Submit(wait(t), n.tx(script, nil))
		result <- err
	}()
	for n.flow.Waiting() == 0 {
		time.Sleep(time.Millisecond)
	}
	close(g.open)
	expectCode(t, "waiting", <-result, pgerr.CannotConnectNow)
	if err := <-n.ended; err == nil || n.flow.Err() == nil {
		t.Errorf("Run returned %v, Err is %v", err, n.flow.Err())
	}
	close(n.ended)
	_, err := n.flow.Submit(wait(t), n.tx(script, nil))
	expectCode(t, "afterwards", err, pgerr.CannotConnectNow)
}

// spoiler delivers blocks with another link.
type spoiler struct{ ordering.Service }

func (s *spoiler) Deliver(ctx context.Context, from block.Height, f func(*block.Block) error) error {
	return s.Service.Deliver(ctx, from, func(b *block.Block) error {
		bad := &block.Block{Number: b.Number, ConfigID: b.ConfigID, Timestamp: b.Timestamp, Txs: b.Txs, Certificate: b.Certificate}
		bad.Seal()
		return f(bad)
	})
}

func TestShutdown(t *testing.T) {
	g := &gate{open: make(chan struct{})}
	n := newNode(t, func(o *Options) { g.Service, o.Service = o.Service, g })
	result := make(chan error)
	go func() {
		_, err := n.flow.Submit(wait(t), n.tx(script, nil))
		result <- err
	}()
	for n.flow.Waiting() == 0 {
		time.Sleep(time.Millisecond)
	}
	n.stop()
	expectCode(t, "waiting", <-result, pgerr.AdminShutdown)
	_, err := n.flow.Submit(wait(t), n.tx(script, nil))
	expectCode(t, "afterwards", err, pgerr.AdminShutdown)
	if err := n.flow.Err(); err != nil {
		t.Errorf("a shutdown is a fault: %v", err)
	}
}

// TestAppend: with an ordering service that has a log of its own the flow
// fills the node's block store.
func TestAppend(t *testing.T) {
	n := newNode(t, nil)
	for range 3 {
		if _, err := n.flow.Submit(wait(t), n.tx(script, nil)); err != nil {
			t.Fatal(err)
		}
	}
	follower := &node{t: t, genesis: n.genesis, ended: make(chan error, 1)}
	follower.openStores(vfs.NewMem())
	height := n.chain.Height()
	reached := make(chan struct{})
	follower.start(Options{Chain: follower.chain, Service: n.orderer, Append: follower.blocks, Logger: quiet, OnBlock: func(h uint64, _ []chain.Receipt) {
		if h == height {
			close(reached)
		}
	}})
	select {
	case <-reached:
	case <-wait(t).Done():
		t.Fatal("the follower does not come up")
	}
	_, hash, state := n.chain.Tip()
	if h, hash2, state2 := follower.chain.Tip(); h != height || hash2 != hash || state2 != state {
		t.Errorf("the follower is at block %d with state %s, the node at %d with %s", h, state2, height, state)
	}
	if last, _ := follower.blocks.Tip(); last != height {
		t.Errorf("the follower's block store ends at %d", last)
	}
}

func TestNewRefuses(t *testing.T) {
	if _, err := New(Options{}); err == nil {
		t.Error("a flow without a chain")
	}
}
