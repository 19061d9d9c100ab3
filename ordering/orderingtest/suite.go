package orderingtest

import (
	"context"
	"testing"
	"time"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/identity"
	"github.com/tallystick/tallystick/ordering"
	"github.com/tallystick/tallystick/ordering/cutter"
)

// patience is how long the suite waits for what has to happen.
const patience = 20 * time.Second

// Setup is what a test asks of the service it starts.
type Setup struct {
	Cutter cutter.Config
	Queue  int // transactions that may wait beside the block being filled
}

// Cluster is a running ordering service: one member for each orderer.
type Cluster struct {
	Network block.Hash
	Genesis *block.Block
	// Orderers and ConfigID are those that every block has to be certified by
	// and to name.
	Orderers identity.OrdererSet
	ConfigID block.Hash
	// Members are the orderers' services, the same ones throughout.
	Members []ordering.Service
	// Restart stops the members in order and returns the cluster that starts
	// again from what they have made durable.
	Restart func() *Cluster
}

// Run runs the suite. Each test starts a cluster of its own, which start
// arranges to be stopped by t.Cleanup.
func Run(t *testing.T, start func(t *testing.T, setup Setup) *Cluster) {
	run(t, start, false)
}

// RunRemote runs the tests for members that stand for a service elsewhere: not
// those in which a service learns from Done how far its node is, and not those of
// how it cuts blocks, for that is the other end's.
func RunRemote(t *testing.T, start func(t *testing.T, setup Setup) *Cluster) {
	run(t, start, true)
}

func run(t *testing.T, start func(t *testing.T, setup Setup) *Cluster, remote bool) {
	for _, c := range []struct {
		name string
		test func(t *testing.T, start func(Setup) *Cluster)
	}{
		{"TotalOrder", testTotalOrder},
		{"DeliverFromAnyHeight", testDeliverFromAnyHeight},
		{"Resubmission", testResubmission},
		{"FalseSignatureDisplacesNothing", testFalseSignature},
		{"Refusals", testRefusals},
		{"Restart", testRestart},
		{"RestartUnderLoad", testRestartUnderLoad},
		{"SlowSubscriber", testSlowSubscriber},
		{"SubscriberEnds", testSubscriberEnds},
		{"BackPressure", testBackPressure},
		{"IdleCutsAtOnce", testIdleCutsAtOnce},
		{"BusyCutsByTimeout", testBusyCutsByTimeout},
		{"LimitsOfBlocks", testLimitsOfBlocks},
	} {
		if remote && cuts[c.name] {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			c.test(t, func(setup Setup) *Cluster {
				if setup.Queue == 0 {
					setup.Queue = 1000
				}
				return start(t, setup)
			})
		})
	}
}

// cuts are the tests of how a service in this process cuts blocks.
var cuts = map[string]bool{"BackPressure": true, "IdleCutsAtOnce": true, "BusyCutsByTimeout": true, "LimitsOfBlocks": true}

// usual cuts blocks of ten, at once if idle.
var usual = Setup{Cutter: cutter.Config{MaxTxs: 10, MaxBytes: 1 << 20, Timeout: 5000, Pipeline: 1}}

// TxMaker makes distinct signed transactions of one user.
type TxMaker struct {
	network block.Hash
	signer  *identity.Signer
	nonce   uint64
}

// NewTxMaker makes transactions for a network.
func NewTxMaker(network block.Hash) *TxMaker {
	return &TxMaker{network: network, signer: identity.NewSigner([32]byte{1})}
}

// Next returns a new transaction that is valid for a long time.
func (m *TxMaker) Next() *block.Tx {
	m.nonce++
	tx := &block.Tx{
		Network:    m.network,
		User:       identity.UserID{Org: "org1", Name: "alice"},
		Call:       block.Call{Schema: "blockchain", Name: "f"},
		ValidUntil: 1000,
	}
	for i := range 8 {
		tx.Nonce[i] = byte(m.nonce >> (8 * i))
	}
	return m.Sign(tx)
}

// Some returns n new transactions.
func (m *TxMaker) Some(n int) []*block.Tx {
	txs := make([]*block.Tx, n)
	for i := range txs {
		txs[i] = m.Next()
	}
	return txs
}

// Sign signs what a test has changed.
func (m *TxMaker) Sign(tx *block.Tx) *block.Tx {
	if err := tx.Sign(m.signer); err != nil {
		panic(err)
	}
	return tx
}

// submit hands transactions in one by one.
func submit(t *testing.T, s ordering.Service, txs ...*block.Tx) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for i, tx := range txs {
		if err := s.Submit(ctx, tx); err != nil {
			t.Fatalf("transaction %d of %d: %v", i, len(txs), err)
		}
	}
}

// reader reads blocks from a member and checks each of them.
type reader struct {
	t      *testing.T
	c      *Cluster
	blocks chan *block.Block
	last   *block.Block // the one before, nil at first
	next   block.Height
}

// read subscribes to a member from a height on until the test ends. Unless
// done is false it tells the member that the blocks are processed.
func (c *Cluster) read(t *testing.T, s ordering.Service, from block.Height, done bool) *reader {
	r := &reader{t: t, c: c, blocks: make(chan *block.Block), next: from}
	ctx, cancel := context.WithCancel(t.Context())
	finished := make(chan struct{})
	t.Cleanup(func() { cancel(); <-finished })
	go func() {
		defer close(finished)
		_ = s.Deliver(ctx, from, func(b *block.Block) error { // ends with the test or the member
			select {
			case r.blocks <- b:
				if done {
					s.Done(b.Number)
				}
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	}()
	return r
}

// block returns the next block; the test fails if it does not come or is not
// the right one.
func (r *reader) block() *block.Block {
	r.t.Helper()
	select {
	case b := <-r.blocks:
		r.check(b)
		r.last, r.next = b, r.next+1
		return b
	case <-time.After(patience):
		r.t.Fatalf("block %d does not come", r.next)
		return nil
	}
}

// check verifies number, link, time, configuration and certificate.
func (r *reader) check(b *block.Block) {
	r.t.Helper()
	if b.Number != r.next {
		r.t.Fatalf("block %d is delivered after block %d", b.Number, r.next-1)
	}
	if b.Number == 0 {
		if b.Hash() != r.c.Genesis.Hash() {
			r.t.Fatal("block 0 is not the genesis")
		}
		return
	}
	if r.last != nil {
		if err := b.Follows(r.last.Number, r.last.Hash(), r.last.Timestamp); err != nil {
			r.t.Fatal(err)
		}
	}
	if b.ConfigID != r.c.ConfigID {
		r.t.Fatalf("block %d names configuration %s, not %s", b.Number, b.ConfigID, r.c.ConfigID)
	}
	if err := b.Validate(); err != nil {
		r.t.Fatal(err)
	}
	prev := int64(-1)
	if r.last != nil {
		prev = r.last.Timestamp
	}
	if err := b.VerifyCertificate(&r.c.Orderers, r.c.Network, prev); err != nil {
		r.t.Fatalf("block %d: %v", b.Number, err)
	}
}

// txs reads blocks until they have brought n transactions.
func (r *reader) txs(n int) []*block.Tx {
	r.t.Helper()
	var txs []*block.Tx
	for len(txs) < n {
		txs = append(txs, r.block().Txs...)
	}
	if len(txs) > n {
		r.t.Fatalf("%d transactions delivered, %d submitted", len(txs), n)
	}
	return txs
}

// nothing checks that no block comes for a while.
func (r *reader) nothing(why string) {
	r.t.Helper()
	select {
	case b := <-r.blocks:
		r.t.Fatalf("block %d with %d transactions, although %s", b.Number, len(b.Txs), why)
	case <-time.After(50 * time.Millisecond):
	}
}
