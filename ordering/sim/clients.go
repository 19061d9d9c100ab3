package sim

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/identity"
)

// clients submit transactions, some of them to several orderers and several times.
type clients struct {
	w      *world
	txs    []*block.Tx
	known  map[block.Hash]bool
	taken  []bool // an honest orderer took it
	taker  []*node
	config bool // the configuration transaction was submitted
}

func (c *clients) init(w *world) {
	c.w = w
	c.known = make(map[block.Hash]bool)
}

// The names of the transactions that change the membership, and that have to be
// ordered after the faults.
const (
	configName = "configure"
	lastName   = "last"
)

// make makes a transaction that lives as long as one may.
func (c *clients) make(name string) *block.Tx {
	tx := &block.Tx{
		Network:    c.w.network,
		User:       identity.UserID{Org: "org", Name: "client"},
		Call:       block.Call{Schema: "blockchain", Name: name},
		ValidUntil: c.w.check.height() + c.w.sc.MaxLife,
	}
	binary.BigEndian.PutUint64(tx.Nonce[:], uint64(len(c.txs)))
	decoded, err := block.DecodeTx(tx.Encode())
	if err != nil {
		c.w.fail("transaction: %v", err)
		return tx
	}
	c.txs = append(c.txs, decoded)
	c.taken = append(c.taken, false)
	c.taker = append(c.taker, nil)
	c.known[decoded.ContentHash()] = true
	return decoded
}

func (c *clients) knows(id block.Hash) bool { return c.known[id] }

// admit is what orderers let into batches: what a client signed, in short.
func (c *clients) admit(txs []*block.Tx) error {
	for _, tx := range txs {
		if !c.known[tx.ContentHash()] {
			return errors.New("no client signed that")
		}
	}
	return nil
}

func (c *clients) start() {
	for range c.w.sc.Txs {
		c.w.after(c.w.rand.IntN(c.w.sc.Chaos), func() {
			c.make("f")
			c.submit(len(c.txs) - 1)
		})
	}
	for range c.w.sc.Txs / 3 {
		c.w.after(c.w.rand.IntN(c.w.sc.Chaos), func() {
			if len(c.txs) > 0 {
				c.submit(c.w.rand.IntN(len(c.txs)))
			}
		})
	}
	if c.w.sc.Joins {
		c.w.after(c.w.sc.Chaos/3, func() {
			c.make(configName)
			c.config = true
			c.submit(len(c.txs) - 1)
		})
	}
}

// submit gives a transaction to some orderer.
func (c *clients) submit(i int) {
	c.give(c.w.nodes[c.w.rand.IntN(len(c.w.nodes))], i)
}

func (c *clients) give(n *node, i int) {
	if !n.alive || n.traitor != nil && !n.traitor.takes(c.txs[i]) {
		return
	}
	// An orderer that is behind takes what is valid for too long as it sees it,
	// without effect.
	late := c.txs[i].ValidUntil > n.machine.Status().Height+c.w.sc.Window+c.w.sc.MaxLife
	if n.machine.Submit(c.txs[i:i+1]) == 1 && n.traitor == nil && !late {
		c.taken[i], c.taker[i] = true, n
	}
	n.pump()
}

// left gives what an orderer took that is no member any more to others.
func (c *clients) left(gone *node) {
	for i := range c.txs {
		if c.taker[i] == gone && c.waits(i) {
			c.taken[i], c.taker[i] = false, nil
			for _, n := range c.w.members() {
				if n != gone && n.traitor == nil && n.alive {
					c.insist(n, i)
					break
				}
			}
		}
	}
}

// heal submits again whatever did not come through, each to one honest member,
// and something new to every one of them.
func (c *clients) heal() {
	honest := make([]*node, 0, len(c.w.nodes))
	for _, n := range c.w.members() {
		if n.traitor == nil {
			honest = append(honest, n)
		}
	}
	for i := range c.txs {
		if c.waits(i) { // whoever took it before may have crashed since
			c.taken[i] = false
			c.insist(honest[c.w.rand.IntN(len(honest))], i)
		}
	}
	for _, n := range honest {
		c.make(lastName)
		c.insist(n, len(c.txs)-1)
	}
}

// insist submits a transaction to an orderer until it takes it.
func (c *clients) insist(n *node, i int) {
	c.give(n, i)
	if !c.taken[i] {
		c.w.after(100, func() { c.insist(n, i) })
	}
}

// waits reports whether a transaction is not ordered and still can be.
func (c *clients) waits(i int) bool {
	_, ordered := c.w.check.ordered[c.txs[i].ContentHash()]
	return !ordered && c.txs[i].ValidUntil > c.w.check.height()
}

// satisfied reports whether nobody waits, and up to which block the answers are.
func (c *clients) satisfied() (need uint64, ok bool) {
	for i, tx := range c.txs {
		if c.waits(i) && (c.taken[i] || tx.Call.Name == lastName) {
			return 0, false
		}
		need = max(need, c.w.check.ordered[tx.ContentHash()])
	}
	return need, true
}

func (c *clients) describe() string {
	text := " waiting:"
	for i := range c.txs {
		if c.waits(i) && c.taken[i] {
			text += fmt.Sprintf(" %d (until %d)", i, c.txs[i].ValidUntil)
		}
	}
	return text
}

func hasConfig(b *block.Block) bool {
	for _, tx := range b.Txs {
		if tx.Call.Name == configName {
			return true
		}
	}
	return false
}
