package pbft

import (
	"fmt"
	"testing"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/identity"
	"github.com/tallystick/tallystick/ordering"
)

// TestNormalCase orders transactions submitted everywhere, for several n.
func TestNormalCase(t *testing.T) {
	for _, n := range []int{1, 4, 5, 6, 7, 10} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			c := newCluster(t, n, nil)
			var all []*block.Tx
			for i := range n {
				txs := c.txs(5)
				c.submit(i, txs...)
				all = append(all, txs...)
			}
			c.tick(15)
			for i := range n {
				c.wantOnce(all, i)
				if s := c.nodes[i].m.Status(); s.View != 0 || s.Waiting != 0 {
					t.Errorf("member %d: %+v", i, s)
				}
			}
		})
	}
}

// TestOutOfOrder: sequence 1 is held back while later ones are decided; nothing
// comes out before it, and then everything does, in order.
func TestOutOfOrder(t *testing.T) {
	c := newCluster(t, 4, func(o *ordering.MachineOptions) { o.BatchTxs = 1 })
	c.drop = func(from, to int, m ordering.Message) bool {
		v, ok := m.(*Vote)
		return ok && v.Value.Sequence == 1
	}
	txs := c.txs(6)
	c.submit(0, txs...)
	for i, n := range c.nodes {
		if n.m.height != 0 {
			t.Fatalf("member %d emitted block %d before block 1", i, n.m.height)
		}
		for seq := uint64(2); seq <= 6; seq++ {
			if s := n.m.seen(seq); s == nil || !s.decided {
				t.Fatalf("member %d has not decided sequence %d", i, seq)
			}
		}
	}
	c.drop = nil
	c.tick(10) // reports bring the votes back
	for i := range c.nodes {
		c.wantOnce(txs, i)
	}
}

// TestWindow: no more than a window is in flight, and checkpoints move it.
func TestWindow(t *testing.T) {
	c := newCluster(t, 4, func(o *ordering.MachineOptions) { o.BatchTxs = 1 })
	c.drop = func(_, _ int, m ordering.Message) bool { return m.Kind() == "commit" }
	txs := c.txs(30)
	c.submit(0, txs...)
	if s := c.nodes[0].m.Status(); s.InFlight != 8 {
		t.Errorf("%d sequences are in flight in a window of 8", s.InFlight)
	}
	c.drop = nil
	c.tick(40)
	for i, n := range c.nodes {
		c.wantOnce(txs, i)
		if s := n.m.Status(); s.Stable != 28 || s.Height != 30 {
			t.Errorf("member %d: %+v", i, s)
		}
		for key := range n.records {
			if key.Sequence != 0 && key.Sequence <= 28 {
				t.Errorf("member %d still has record %+v", i, key)
			}
		}
	}
}

// TestTimestamps: a fresh proposal must be near the local clock; a block's time
// moves on even if its proposer's clock does not.
func TestTimestamps(t *testing.T) {
	c := newCluster(t, 4, func(o *ordering.MachineOptions) { o.BatchTxs, o.MaxSkew = 1, 1_000_000 })
	c.submit(0, c.txs(3)...)
	c.tick(1)
	last := c.genesis
	for _, b := range c.nodes[1].blocks[1:] {
		cert, err := identity.DecodeCertificate(b.Certificate)
		if err != nil {
			t.Fatal(err)
		}
		if want := max(cert.Proposed, last.Timestamp+1); b.Timestamp != want {
			t.Errorf("block %d: timestamp %d, want %d", b.Number, b.Timestamp, want)
		}
		last = b
	}
	for _, off := range []int64{-1_000_001, 1_000_001, -999_999, 999_999} {
		m := c.nodes[1].m
		txs := c.txs(1)
		value := identity.Commit{Sequence: m.height + 1, Batch: block.TxDigest(txs), Proposed: m.now + off}
		pp := &PrePrepare{Value: value, Txs: txs, Signature: testSign(testKey(0))(PrepareDigest(c.opts.Network, 0, value))}
		refs, got := m.acceptable(pp)
		if want := off > -1_000_000 && off < 1_000_000; got != want {
			t.Errorf("a proposal %d us off the clock is acceptable: %v", off, got)
		}
		m.pool.release(refs, value.Sequence)
	}
}

// TestViewChangeFits: a cluster whose view changes could not be sent is refused at
// the start, and one that is accepted has none that is larger than reckoned.
func TestViewChangeFits(t *testing.T) {
	members := func(n int) *ordering.Membership {
		m := &ordering.Membership{First: 1}
		for i := range n {
			m.Set.Keys = append(m.Set.Keys, testKey(i))
		}
		m.Set.Quorum = ordering.Quorum(n)
		return m
	}
	if err := fitsMessages(members(100), 128); err != nil {
		t.Error(err)
	}
	if fitsMessages(members(300), 128) == nil || fitsMessages(members(4), ordering.MaxWindow) != nil {
		t.Error("limits are not where they should be")
	}
	const n, window = 31, 64
	q := ordering.Quorum(n)
	votes := make([]identity.Vote, q)
	vc := &ViewChange{Proof: votes, Prepared: make([]Prepared, window)}
	for i := range vc.Prepared {
		vc.Prepared[i].Votes = votes
	}
	nv := &NewView{}
	for range q {
		nv.Changes = append(nv.Changes, vc)
	}
	size := len(nv.AppendTo(nil))
	change := 256 + q*66 + window*(minPreparedBytes+q*66)
	if size > q*change || size < q*change*9/10 {
		t.Errorf("a new view has %d bytes, reckoned were %d", size, q*change)
	}
}

// TestMachinesAgreeByteForByte: what a machine puts out is a function of what goes
// in.
func TestMachinesAgreeByteForByte(t *testing.T) {
	trace := func() string {
		c := newCluster(t, 4, nil)
		c.submit(0, c.txs(5)...)
		c.crash(0)
		c.submit(2, c.txs(5)...)
		c.tick(100)
		out := ""
		for _, p := range c.sent {
			out += fmt.Sprintf("%d %d %x\n", p.from, p.to, p.message.AppendTo(nil))
		}
		return out
	}
	first := trace()
	if again := trace(); again != first {
		t.Error("two runs differ")
	}
}
