package sim

import (
	"errors"
	"fmt"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/ordering"
)

// checks hold after every step.
type checks struct {
	w       *world
	chain   []*block.Block // as the first honest member decided it
	ordered map[block.Hash]uint64
	repeats [][]int
	votes   map[ballot]any

	promises map[int]promise // by node
}

// promise is that a member votes in no view before.
type promise struct{ epoch, view uint64 }

// ballot is where an honest member has one vote.
type ballot struct {
	node           int
	phase          string
	epoch          uint64
	view, sequence uint64
}

func (c *checks) init(w *world) {
	c.w = w
	c.chain = []*block.Block{w.genesis}
	c.repeats = [][]int{nil}
	c.ordered = make(map[block.Hash]uint64)
	c.votes = make(map[ballot]any)
	c.promises = make(map[int]promise)
}

func (c *checks) height() uint64 { return uint64(len(c.chain) - 1) }

// sent: an honest member never contradicts a vote of its own.
func (c *checks) sent(n *node, m ordering.Message) {
	if c.w.spec.Promises != nil {
		if epoch, view, ok := c.w.spec.Promises(m); ok {
			c.promises[n.number] = promise{epoch, view}
		}
	}
	for _, v := range c.w.spec.Votes(m) {
		if p := c.promises[n.number]; !v.Timeless && p.epoch == v.Epoch && v.View < p.view {
			c.w.fail("node %d votes in view %d and had left all before %d", n.number, v.View, p.view)
		}
		at := ballot{n.number, v.Phase, v.Epoch, v.View, v.Sequence}
		if old, ok := c.votes[at]; ok && old != v.Value {
			c.w.fail("node %d votes twice: %+v: %v and %v", n.number, at, old, v.Value)
		}
		c.votes[at] = v.Value
	}
	if s := n.machine.Status(); s.View > c.w.result.View {
		c.w.result.View = s.View
	}
}

// decided: what an honest member decides is the next block, and everybody's.
func (c *checks) decided(n *node, d *ordering.Decision) {
	if err := c.block(n, d); err != nil {
		c.w.fail("node %d, block %d: %v", n.number, d.Block.Number, err)
	}
}

func (c *checks) block(n *node, d *ordering.Decision) error {
	b, tip := d.Block, n.tip()
	if err := b.Follows(tip.Number, tip.Hash(), tip.Timestamp); err != nil {
		return err
	}
	if err := b.Validate(); err != nil {
		return err
	}
	if err := c.certificate(b, tip); err != nil {
		return err
	}
	if b.Number <= c.height() {
		first := c.chain[b.Number]
		if first.Hash() != b.Hash() {
			return fmt.Errorf("disagreement: %s and %s", first.Hash(), b.Hash())
		}
		if fmt.Sprint(c.repeats[b.Number]) != fmt.Sprint(d.Repeats) {
			return fmt.Errorf("repeats %v, elsewhere %v", d.Repeats, c.repeats[b.Number])
		}
		return nil
	}
	c.chain = append(c.chain, b)
	c.repeats = append(c.repeats, d.Repeats)
	c.w.result.Height = b.Number
	return c.content(b, d.Repeats)
}

// certificate: any node can verify the block, from its bytes.
func (c *checks) certificate(b, prev *block.Block) error {
	copied, err := block.DecodeBlock(b.Encode())
	if err != nil {
		return err
	}
	epoch := 0
	for epoch+1 < len(c.w.epochs) && c.w.epochs[epoch+1].First <= b.Number {
		epoch++
	}
	members := c.w.epochs[epoch]
	if b.ConfigID != members.ConfigID {
		return errors.New("it names another configuration")
	}
	msg := c.w.spec.Protocol.Serve(copied, members.Epoch)
	if msg == nil {
		return errors.New("its certificate is of another kind")
	}
	v := ordering.Verifier{Protocol: c.w.spec.Protocol, Network: c.w.network, Members: members, Signatures: c.w.scheme.check}
	_, err = v.VerifyMessage(0, msg)
	return err
}

// content: transactions are those of clients, alive, and repeats are named; time
// is that of the clocks.
func (c *checks) content(b *block.Block, repeats []int) error {
	if now := int64(clockOrigin + c.w.now*microsPerUnit); b.Timestamp > now+2*maxSkew {
		return fmt.Errorf("timestamp %d is far ahead of %d", b.Timestamp, now)
	}
	named := make(map[int]bool)
	for _, i := range repeats {
		named[i] = true
	}
	for i, tx := range b.Txs {
		id := tx.ContentHash()
		if !c.w.clients.knows(id) {
			return fmt.Errorf("transaction %d was never submitted", i)
		}
		if tx.ValidUntil < b.Number || tx.ValidUntil > b.Number+c.w.sc.MaxLife {
			return fmt.Errorf("transaction %d is valid until %d", i, tx.ValidUntil)
		}
		if at, ok := c.ordered[id]; ok != named[i] {
			return fmt.Errorf("transaction %d: ordered before: %v (block %d), named a repeat: %v", i, ok, at, named[i])
		}
		if named[i] {
			c.w.result.Repeats++
			continue
		}
		c.ordered[id] = b.Number
		c.w.result.Ordered++
	}
	return nil
}
