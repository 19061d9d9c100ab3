package raft

import (
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	hraft "github.com/hashicorp/raft"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/identity"
	"github.com/tallystick/tallystick/ordering"
	"github.com/tallystick/tallystick/ordering/orderingtest"
)

// quick is for orderers that are alone.
func quick(o *Options) { o.ElectionTimeout = 30 * time.Millisecond }

// TestTimestamps: time moves on by a microsecond at least, whatever the leaders'
// clocks say.
func TestTimestamps(t *testing.T) {
	c := newCluster(t, 3, nil)
	first := c.genesis.Timestamp
	clocks := []int64{first + 1000, first - 5_000_000, first + 500} // of each orderer, standing
	c.tune = func(o *Options) {
		i := o.Orderers.Index(o.Signer.Public())
		o.Clock = func() int64 { return clocks[i] }
	}
	c.startAll()
	maker := orderingtest.NewTxMaker(c.genesis.Genesis.NetworkID())
	var txs []*block.Tx
	for round := range 6 {
		c.crown(round % 3)
		txs = append(txs, maker.Next())
		c.submit(round%3, txs[round])
		c.agree(txs, 0, 1, 2)
	}
	for i, b := range c.blocks(0, txs) {
		if want := first + 1000 + int64(i); b.Timestamp != want {
			t.Errorf("block %d has time %+d after the genesis, want %+d", b.Number, b.Timestamp-first, want-first)
		}
	}
}

// TestCloseKeepsWhatWasAccepted, and takes nothing afterwards.
func TestCloseKeepsWhatWasAccepted(t *testing.T) {
	c := newCluster(t, 3, func(o *Options) { o.Cutter.MaxTxs, o.Cutter.Timeout, o.Cutter.MaxInFlight = 4, 1e9, 1 })
	c.startAll()
	c.crown(0)
	txs := orderingtest.NewTxMaker(c.genesis.Genesis.NetworkID()).Some(60)
	c.submit(0, txs[:30]...)
	leader := c.nodes[0].Orderer
	c.close(0)
	if err := leader.Submit(t.Context(), txs[0]); !errors.Is(err, ordering.ErrClosed) {
		t.Errorf("Submit after Close: %v", err)
	}
	if err := leader.Deliver(t.Context(), 0, func(*block.Block) error { return nil }); !errors.Is(err, ordering.ErrClosed) {
		t.Errorf("Deliver after Close: %v", err)
	}
	c.leader(1, 2)
	c.agree(txs[:30], 1, 2)
	c.submit(1, txs[30:]...)
	c.agree(txs, 1, 2)
}

// TestPersistFails: a store that fails ends its orderer, and the others go on.
func TestPersistFails(t *testing.T) {
	broken := errors.New("disk on fire")
	c := newCluster(t, 3, nil)
	c.tune = func(o *Options) {
		if o.Orderers.Index(o.Signer.Public()) != 0 {
			return
		}
		persist := o.Persist
		o.Persist = func(blocks []*block.Block) error {
			if blocks[len(blocks)-1].Number >= 3 {
				return broken
			}
			return persist(blocks)
		}
	}
	c.startAll()
	c.crown(0)
	maker := orderingtest.NewTxMaker(c.genesis.Genesis.NetworkID())
	txs := maker.Some(40)
	c.submit(1, txs...)
	c.agree(txs, 1, 2)
	o := c.nodes[0].Orderer
	delivered := block.Height(0)
	err := o.Deliver(t.Context(), 1, func(b *block.Block) error {
		delivered = b.Number
		return nil
	})
	if !errors.Is(err, broken) || delivered >= 3 {
		t.Errorf("Deliver ends with %v after block %d", err, delivered)
	}
	if err := o.Submit(t.Context(), maker.Next()); !errors.Is(err, broken) {
		t.Errorf("Submit says %v", err)
	}
	if err := o.Status().Err; !errors.Is(err, broken) {
		t.Errorf("Status says %v", err)
	}
	if err := o.Close(); !errors.Is(err, broken) {
		t.Errorf("Close says %v", err)
	}
	c.forget(0)
	c.leader(1, 2)
	more := maker.Some(20)
	c.submit(2, more...)
	c.agree(append(txs, more...), 1, 2)
}

// TestLogFails: so does a log that cannot be written.
func TestLogFails(t *testing.T) {
	c := newCluster(t, 1, quick)
	c.startAll()
	c.crown(0)
	o := c.nodes[0].Orderer
	for _, closer := range o.closers {
		if log, ok := closer.(*logStore); ok {
			if err := log.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	tx := orderingtest.NewTxMaker(c.genesis.Genesis.NetworkID()).Next()
	c.submit(0, tx)
	err := o.Deliver(t.Context(), 1, func(*block.Block) error { return nil })
	if !errors.Is(err, errLogClosed) {
		t.Errorf("the orderer ends with %v", err)
	}
	if err := o.Close(); !errors.Is(err, errLogClosed) {
		t.Errorf("Close says %v", err)
	}
	c.forget(0)
}

// TestCloseAfterFault waits for the library, which uses the directory until it has
// ended.
func TestCloseAfterFault(t *testing.T) {
	c := newCluster(t, 1, quick)
	c.startAll()
	c.crown(0)
	o := c.nodes[0].Orderer
	var logs *logStore
	for _, closer := range o.closers {
		if l, ok := closer.(*logStore); ok {
			logs = l
		}
	}
	logs.writing.Lock()
	c.submit(0, orderingtest.NewTxMaker(c.genesis.Genesis.NetworkID()).Next())
	c.until("nothing is written", func() bool {
		stacks := make([]byte, 1<<20)
		return strings.Contains(string(stacks[:runtime.Stack(stacks, true)]), "(*logStore).StoreLogs(")
	})
	fault := errors.New("crashed")
	o.stop(fault)
	c.until("the library is not told", func() bool { return o.raft.State() == hraft.Shutdown })
	closed := make(chan error, 1)
	go func() { closed <- o.Close() }()
	select {
	case <-closed:
		t.Error("closed while the library writes")
		logs.writing.Unlock()
	case <-time.After(100 * time.Millisecond):
		logs.writing.Unlock()
		if err := <-closed; !errors.Is(err, fault) {
			t.Errorf("Close says %v", err)
		}
	}
	c.forget(0)
}

// TestStoreOfAnotherChain: an orderer whose store and log disagree ends instead of
// certifying a second chain.
func TestStoreOfAnotherChain(t *testing.T) {
	c := newCluster(t, 1, quick)
	c.startAll()
	maker := orderingtest.NewTxMaker(c.genesis.Genesis.NetworkID())
	txs := maker.Some(20)
	c.submit(0, txs...)
	c.agree(txs, 0)
	c.close(0)

	c.loseBlocks(0)
	n := c.openStore(0)
	b := &block.Block{Number: 1, PrevHash: c.genesis.Hash(), ConfigID: c.genesis.ConfigID, Timestamp: c.genesis.Timestamp + 1, Txs: txs[:1]}
	digest := identity.VoteDigest(c.genesis.Genesis.NetworkID(), 0, b.Seal())
	b.Certificate = (&identity.Certificate{Votes: []identity.Vote{{Signature: c.signers[0].Sign(digest[:])}}}).Encode()
	if err := n.Append(b); err != nil {
		t.Fatal(err)
	}
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	c.start(0, c.peers(1))
	o := c.nodes[0].Orderer
	err := o.Deliver(t.Context(), 2, func(*block.Block) error { return nil })
	if err == nil || !strings.Contains(err.Error(), "block 1 of the store has hash") {
		t.Errorf("the orderer ends with %v", err)
	}
	if err := o.Close(); err == nil {
		t.Error("closing says nothing about it")
	}
	c.forget(0)
}

// TestIgnoreDone: an orderer that nobody tells how far nodes are cuts at once when
// it has stored the last block.
func TestIgnoreDone(t *testing.T) {
	c := newCluster(t, 1, func(o *Options) {
		quick(o)
		o.IgnoreDone = true
		o.Cutter.Timeout, o.Cutter.MaxInFlight = int64(time.Hour/time.Microsecond), 2
	})
	c.startAll()
	maker := orderingtest.NewTxMaker(c.genesis.Genesis.NetworkID())
	for i := range 10 {
		c.submit(0, maker.Next())
		c.until("no block comes", func() bool { return c.nodes[0].Status().Height == uint64(i+1) })
	}
	if got := c.nodes[0].Status().InFlight; got != 0 {
		t.Errorf("%d blocks in flight", got)
	}
}

// TestDoneAnywhere: what the node of a follower has done counts for the leader.
func TestDoneAnywhere(t *testing.T) {
	c := newCluster(t, 3, func(o *Options) {
		o.Cutter.Timeout, o.Cutter.MaxInFlight = int64(time.Hour/time.Microsecond), 1
	})
	c.startAll()
	c.crown(0)
	maker := orderingtest.NewTxMaker(c.genesis.Genesis.NetworkID())
	for i := range 10 {
		c.submit(2, maker.Next())
		c.until("no block comes", func() bool { return c.nodes[1].Status().Height == uint64(i+1) })
		c.nodes[1].Done(uint64(i + 1))
	}
}

// TestLogLevels: what the library logs comes through with its level.
func TestLogLevels(t *testing.T) {
	var out strings.Builder
	logger := newLogger(textLogger(&out))
	logger.Info("not this")
	logger.Named("snapshot").Warn("something", "entry", 7)
	logger.Error("worse")
	if got := out.String(); !strings.Contains(got, `level=WARN msg="snapshot something" component=raft entry=7`) ||
		!strings.Contains(got, "level=ERROR msg=worse") || strings.Contains(got, "not this") {
		t.Errorf("logged: %s", got)
	}
}
