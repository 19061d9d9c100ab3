package pbft

import (
	"testing"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/identity"
	"github.com/tallystick/tallystick/ordering"
)

// TestReconfigure: a fifth member joins; nothing of the old epoch goes beyond its
// last sequence, and the five go on from there.
func TestReconfigure(t *testing.T) {
	c := newCluster(t, 4, func(o *ordering.MachineOptions) { o.BatchTxs = 1 })
	c.submit(0, c.tx())
	next := c.members
	next.Epoch, next.First, next.ConfigID = 1, 1+c.opts.Window+1, block.Hash{1}
	next.Set = identity.OrdererSet{Keys: append(next.Set.Keys[:4:4], testKey(4)), Quorum: ordering.Quorum(5)}
	c.coming = &next
	for _, n := range c.nodes {
		if err := n.m.Reconfigure(next); err != nil {
			t.Fatal(err)
		}
		if n.m.Reconfigure(next) == nil {
			t.Fatal("two configurations at once")
		}
	}
	txs := c.txs(12)
	c.submit(0, txs...)
	for i, n := range c.nodes {
		if s := n.m.Status(); s.Epoch != 1 || s.Height != 13 || n.m.n != 5 {
			t.Fatalf("member %d: %+v", i, s)
		}
		for _, b := range n.blocks[1:] {
			want := c.members.ConfigID
			if b.Number >= next.First {
				want = next.ConfigID
			}
			if b.ConfigID != want {
				t.Errorf("block %d names configuration %s, not %s", b.Number, b.ConfigID, want)
			}
		}
	}
	// The new member starts with the blocks of the others.
	c.nodes = append(c.nodes, &member{records: map[ordering.RecordKey][]byte{}, blocks: append([]*block.Block(nil), c.nodes[0].blocks...)})
	c.opts.Members = next
	c.boot(4)
	for i := range c.nodes {
		c.carryOut(i)
	}
	c.tick(60)
	c.crash(3) // the new one is needed from now on
	more := c.txs(3)
	c.submit(4, more...)
	c.tick(20)
	c.boot(3)
	c.tick(20)
	for i, n := range c.nodes {
		c.wantOnce(append(txs, more...), i)
		if last := n.blocks[len(n.blocks)-1]; last.ConfigID != next.ConfigID {
			t.Errorf("member %d: the last block names configuration %s", i, last.ConfigID)
		}
	}
}

// TestRemoved: a member that the next configuration leaves out orders to the end of
// its epoch and stops.
func TestRemoved(t *testing.T) {
	c := newCluster(t, 5, func(o *ordering.MachineOptions) { o.BatchTxs = 1 })
	next := c.members
	next.Epoch, next.First = 1, c.opts.Window+1
	next.Set = identity.OrdererSet{Keys: next.Set.Keys[:4:4], Quorum: ordering.Quorum(4)}
	c.coming = &next
	for _, n := range c.nodes {
		if err := n.m.Reconfigure(next); err != nil {
			t.Fatal(err)
		}
	}
	c.submit(0, c.txs(10)...)
	c.tick(3)
	gone := c.nodes[4].m
	if gone.height != c.opts.Window || !gone.gone {
		t.Fatalf("%+v", gone.Status())
	}
	gone.Tick(c.now)
	if r := gone.Ready(); !r.Empty() || gone.Submit(c.txs(1)) != 0 {
		t.Errorf("a member that was removed still acts: %+v", r)
	}
}
