package pbft

import (
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"
	"testing"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/identity"
	"github.com/tallystick/tallystick/ordering"
)

// cluster drives machines by hand: every message passes through a function that
// may drop it, and time stands still unless the test moves it.
type cluster struct {
	t       *testing.T
	members ordering.Membership
	coming  *ordering.Membership // epoch 1, if there is one
	opts    ordering.MachineOptions
	genesis *block.Block
	nodes   []*member
	queue   []packet
	drop    func(from, to int, m ordering.Message) bool
	admit   func([]*block.Tx) error
	sent    []packet // all messages of honest members so far
	now     int64
	nonce   uint64
}

type packet struct {
	from, to int
	message  ordering.Message
}

// member is a machine with its disk; m is nil while it is down or played by the
// test.
type member struct {
	m       *Machine
	records map[ordering.RecordKey][]byte
	blocks  []*block.Block
	repeats int
}

func testSign(key identity.PublicKey) func([32]byte) identity.Signature {
	return func(digest [32]byte) (sig identity.Signature) {
		sum := sha256.Sum256(append(append([]byte("key of "), key[:]...), digest[:]...))
		copy(sig[:], sum[:])
		return sig
	}
}

// testCheck accepts what testSign signs.
func testCheck(items []identity.Item, ok []bool) bool {
	all := true
	for i := range items {
		ok[i] = testSign(items[i].Key)([32]byte(items[i].Message)) == items[i].Signature
		all = all && ok[i]
	}
	return all
}

func testKey(i int) (key identity.PublicKey) {
	binary.BigEndian.PutUint16(key[:], uint16(i))
	return key
}

func newCluster(t *testing.T, n int, edit func(*ordering.MachineOptions)) *cluster {
	c := &cluster{t: t, now: 1_700_000_000_000_000}
	set := identity.OrdererSet{Quorum: ordering.Quorum(n)}
	for i := range n {
		set.Keys = append(set.Keys, testKey(i))
	}
	g := &block.Genesis{
		Network: "test", Timestamp: c.now - 1, Orderers: set, Params: block.DefaultParams(),
		Orgs: []block.Org{{Name: "org", Users: []block.User{{Name: "admin", Role: identity.Admin}}}},
	}
	var err error
	if c.genesis, err = g.Block(); err != nil {
		t.Fatal(err)
	}
	c.members = ordering.Membership{First: 1, ConfigID: g.NetworkID(), Set: set}
	c.opts = ordering.MachineOptions{
		Network: g.NetworkID(), Members: c.members, Window: 8, Checkpoint: 4, BatchTxs: 2,
		Pipeline: 8, RequestTicks: 20, StatusTicks: 4, FetchTicks: 4,
	}
	if edit != nil {
		edit(&c.opts)
	}
	for range n {
		c.nodes = append(c.nodes, &member{records: map[ordering.RecordKey][]byte{}, blocks: []*block.Block{c.genesis}})
	}
	for i := range n {
		c.boot(i)
	}
	c.tick(1)
	return c
}

// boot starts a member from its disk.
func (c *cluster) boot(i int) {
	c.t.Helper()
	n := c.nodes[i]
	opts := c.opts
	opts.Self, opts.Sign = i, testSign(testKey(i))
	var records []ordering.Record
	for key, value := range n.records {
		records = append(records, ordering.Record{Key: key, Value: value})
	}
	slices.SortFunc(records, func(a, b ordering.Record) int {
		if a.Key.Before(b.Key) {
			return -1
		}
		return 1
	})
	m, err := New(opts, ordering.Start{Tip: n.blocks[len(n.blocks)-1], Recent: n.blocks}, records)
	if err != nil {
		c.t.Fatal(err)
	}
	n.m = m
	c.carryOut(i)
}

// crash loses what the machine has not handed out.
func (c *cluster) crash(i int) { c.nodes[i].m = nil }

// carryOut does what a machine wants.
func (c *cluster) carryOut(i int) {
	n := c.nodes[i]
	for n.m != nil {
		r := n.m.Ready()
		if r.Fault != nil {
			c.t.Fatalf("member %d stopped: %v", i, r.Fault)
		}
		if r.Empty() {
			return
		}
		for _, rec := range r.Persist {
			n.records[rec.Key] = rec.Value
		}
		maps.DeleteFunc(n.records, func(k ordering.RecordKey, _ []byte) bool {
			return k.Sequence != 0 && k.Sequence <= r.Forget
		})
		for _, d := range r.Decided {
			c.checkBlock(i, d.Block)
			n.blocks = append(n.blocks, d.Block)
			n.repeats += len(d.Repeats)
		}
		for _, out := range r.Send {
			c.send(i, out)
		}
		for _, s := range r.Serve {
			for h := s.From; h <= s.Upto; h++ {
				c.send(i, ordering.Outgoing{To: s.To, Message: Serve(n.blocks[h], s.Epoch)})
			}
		}
		if len(r.Decided) > 0 {
			n.m.Advance(n.blocks[len(n.blocks)-1].Number)
		}
	}
}

// checkBlock compares with what the others decided.
func (c *cluster) checkBlock(i int, b *block.Block) {
	c.t.Helper()
	prev := c.nodes[i].blocks[len(c.nodes[i].blocks)-1]
	if err := b.Follows(prev.Number, prev.Hash(), prev.Timestamp); err != nil {
		c.t.Fatalf("member %d: %v", i, err)
	}
	for j, other := range c.nodes {
		if int(b.Number) < len(other.blocks) && other.blocks[b.Number].Hash() != b.Hash() {
			c.t.Fatalf("members %d and %d disagree about block %d", i, j, b.Number)
		}
	}
	epoch := uint64(0)
	if c.coming != nil && b.Number >= c.coming.First {
		epoch = 1
	}
	if _, err := c.verify(i, Serve(b, epoch)); err != nil {
		c.t.Fatalf("certificate of block %d: %v", b.Number, err)
	}
}

func (c *cluster) verifier() *ordering.Verifier {
	return &ordering.Verifier{Protocol: Protocol, Network: c.opts.Network, Members: c.members, Signatures: testCheck, Admit: c.admit}
}

// verify sends a message through its bytes, to a verifier of its epoch.
func (c *cluster) verify(from int, m ordering.Message) (ordering.Verified, error) {
	raw := m.AppendTo(nil)
	v := c.verifier()
	if epoch, _ := ordering.EpochOf(raw); epoch == 1 && c.coming != nil {
		v.Members = *c.coming
	}
	return v.Verify(from, raw)
}

func (c *cluster) send(from int, out ordering.Outgoing) {
	for to := range c.nodes {
		if to != from && (out.To == to || out.To == ordering.ToAll) {
			p := packet{from, to, out.Message}
			c.sent = append(c.sent, p)
			if c.drop == nil || !c.drop(from, to, out.Message) {
				c.queue = append(c.queue, p)
			}
		}
	}
}

// run delivers until nothing is under way.
func (c *cluster) run() {
	c.t.Helper()
	for len(c.queue) > 0 {
		p := c.queue[0]
		c.queue = c.queue[1:]
		c.deliver(p)
	}
}

func (c *cluster) deliver(p packet) {
	c.t.Helper()
	n := c.nodes[p.to]
	if n.m == nil {
		return
	}
	if epoch, _ := ordering.EpochOf(p.message.AppendTo(nil)); epoch > n.m.opts.Members.Epoch {
		return // a driver has no verifier for it
	}
	v, err := c.verify(p.from, p.message)
	if err != nil {
		c.t.Fatalf("%s of member %d: %v", p.message.Kind(), p.from, err)
	}
	n.m.Step(v)
	c.carryOut(p.to)
}

// tick moves time.
func (c *cluster) tick(ticks int) {
	c.t.Helper()
	for range ticks {
		c.now += 10_000
		for i, n := range c.nodes {
			if n.m != nil {
				n.m.Tick(c.now)
				c.carryOut(i)
			}
		}
		c.run()
	}
}

// tx makes a transaction.
func (c *cluster) tx() *block.Tx {
	c.nonce++
	tx := &block.Tx{
		Network: c.opts.Network, User: identity.UserID{Org: "org", Name: "client"},
		Call: block.Call{Schema: "blockchain", Name: "f"}, ValidUntil: 500,
	}
	binary.BigEndian.PutUint64(tx.Nonce[:], c.nonce)
	decoded, err := block.DecodeTx(tx.Encode())
	if err != nil {
		c.t.Fatal(err)
	}
	return decoded
}

func (c *cluster) txs(n int) []*block.Tx {
	txs := make([]*block.Tx, n)
	for i := range txs {
		txs[i] = c.tx()
	}
	return txs
}

// submit gives transactions to a member and delivers what follows.
func (c *cluster) submit(i int, txs ...*block.Tx) {
	c.t.Helper()
	if got := c.nodes[i].m.Submit(txs); got != len(txs) {
		c.t.Fatalf("member %d took %d of %d transactions", i, got, len(txs))
	}
	c.carryOut(i)
	c.run()
}

// count returns how many times a member has a transaction in its blocks.
func (n *member) count(tx *block.Tx) int {
	found := 0
	for _, b := range n.blocks {
		for _, x := range b.Txs {
			if x.ContentHash() == tx.ContentHash() {
				found++
			}
		}
	}
	return found
}

// wantOnce demands that members have each transaction once.
func (c *cluster) wantOnce(txs []*block.Tx, members ...int) {
	c.t.Helper()
	for _, i := range members {
		for k, tx := range txs {
			if got := c.nodes[i].count(tx); got != 1 {
				c.t.Fatalf("member %d has transaction %d %d times; %+v", i, k, got, c.nodes[i].m.Status())
			}
		}
	}
}

// only drops whatever does not travel between the named members.
func only(members ...int) func(from, to int, m ordering.Message) bool {
	return func(from, to int, _ ordering.Message) bool {
		return !slices.Contains(members, from) || !slices.Contains(members, to)
	}
}
