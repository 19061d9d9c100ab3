package flow

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/server/chain"
)

// newSpeculativeNode is newNode for the execute-order-in-parallel flow.
func newSpeculativeNode(t testing.TB) *node {
	g := testGenesis()
	g.Params.Flow, g.Params.Rule, g.Params.SnapshotWindow = block.FlowExecuteOrderInParallel, block.RuleBlockAware, 2
	n := &node{t: t, genesis: g, ended: make(chan error, 1)}
	n.openStores(vfs.NewMem())
	t.Cleanup(n.chain.Close)
	n.startOrderer()
	n.start(Options{Chain: n.chain, Service: n.orderer, Logger: quiet})
	return n
}

// call signs a call of a contract that nobody has deployed.
func (n *node) call(snapshot uint64) *block.Tx {
	return n.tx("x", func(tx *block.Tx) { tx.Call.Name, tx.Snapshot = "nothing", snapshot })
}

// TestExecuteOrderInParallel: what is submitted has been executed by the time it
// is ordered, snapshots of other nodes are waited for, and old ones are refused
// without ordering them.
func TestExecuteOrderInParallel(t *testing.T) {
	n := newSpeculativeNode(t)
	for height := range uint64(4) {
		r, err := n.flow.Submit(wait(t), n.call(height))
		if err != nil || r.Status != chain.Failed || r.Err.Code != "42883" || r.Height != height+1 {
			t.Fatalf("receipt at height %d is %+v, %v", height, r, err)
		}
	}
	if m := n.chain.Metrics(); m.Speculated+m.Missing != 4 {
		t.Errorf("%d executed before their block, %d in it", m.Speculated, m.Missing)
	}
	if r, err := n.flow.Submit(wait(t), n.call(2)); err != nil || r.Status != chain.Failed {
		t.Errorf("the oldest snapshot: %+v, %v", r, err)
	}
	height := n.chain.Height()
	_, err := n.flow.Submit(wait(t), n.call(2))
	expectCode(t, "a snapshot that is too old", err, "72000")
	if n.chain.Height() != height || n.flow.Waiting() != 0 {
		t.Errorf("it was ordered in block %d; %d wait", n.chain.Height(), n.flow.Waiting())
	}
	// A client that asked a faster node: its transaction is ordered, and judged by
	// the block it comes into.
	r, err := n.flow.Submit(wait(t), n.call(height+5))
	if err != nil || r.Status != chain.Rejected {
		t.Errorf("a snapshot that was never there: %+v, %v", r, err)
	}
	// A repetition finds its receipt whatever became of its snapshot.
	tx := n.call(n.chain.Height())
	first, err := n.flow.Submit(wait(t), tx)
	if err != nil {
		t.Fatal(err)
	}
	for range 4 {
		if _, err := n.flow.Submit(wait(t), n.call(n.chain.Height())); err != nil {
			t.Fatal(err)
		}
	}
	again, err := n.flow.Submit(wait(t), tx)
	if err != nil || again.XID != first.XID {
		t.Errorf("receipt of a resubmission is %+v, %v", again, err)
	}
	// Which is first, the execution or the block, is open; that the execution is
	// never first would mean that nobody starts it.
	for tries := 0; n.chain.Metrics().Speculated == 0; tries++ {
		if tries == 1000 {
			t.Fatal("nothing was executed before its block")
		}
		if _, err := n.flow.Submit(wait(t), n.call(n.chain.Height())); err != nil {
			t.Fatal(err)
		}
	}
}
