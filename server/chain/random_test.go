package chain

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/identity"
)

var seedFlag = flag.Uint64("seed", 0, "seed of the random tests, to repeat one; 0 takes another one every time")

func testSeed() uint64 {
	if *seedFlag != 0 {
		return *seedFlag
	}
	return rand.Uint64()
}

// randomSource makes chains of everything: transfers that conflict, failures,
// false signatures, repetitions, deployments, users that come and go.
type randomSource struct {
	*source
	rng      *rand.Rand
	accounts int
	deploys  int64
	names    []identity.UserID
	sent     []*block.Tx
	slow     bool // snapshots lag behind
}

func newRandomSource(tb testing.TB, g *block.Genesis, seed uint64) *randomSource {
	return &randomSource{
		source: newSource(tb, g), rng: rand.New(rand.NewPCG(seed, 1)), names: []identity.UserID{alice, bob, admin1, admin2},
		slow: g.Params.Flow == block.FlowExecuteOrderInParallel,
	}
}

// first is a block that deploys the bank and one that opens accounts.
func (s *randomSource) first() []*block.Block {
	blocks := []*block.Block{s.deployBlock(1, bank)}
	s.deploys = 1
	s.accounts = 12
	var txs []*block.Tx
	for i := range s.accounts {
		txs = append(txs, s.tx(alice, "open_account", i+1, num("100")))
	}
	return append(blocks, s.block(txs...))
}

func (s *randomSource) next() *block.Block {
	var txs []*block.Tx
	for range s.rng.IntN(30) {
		txs = append(txs, s.random()...)
	}
	return s.block(txs...)
}

func (s *randomSource) random() []*block.Tx {
	user := s.names[s.rng.IntN(len(s.names))]
	account := func() int { return 1 + s.rng.IntN(s.accounts+1) }
	switch k := s.rng.IntN(100); {
	case k < 60:
		amount := num(fmt.Sprintf("%d.%02d", s.rng.IntN(60), s.rng.IntN(100)))
		from := account()
		to := (from+s.rng.IntN(s.accounts-1))%s.accounts + 1 // another one
		return s.send(user, "transfer", int64(s.rng.IntN(100_000)), from, to, amount)
	case k < 70:
		return s.send(user, "audit", int64(s.rng.IntN(100_000)), account())
	case k < 75:
		return s.send(user, "greet", fmt.Sprint("n", s.rng.IntN(5)))
	case k < 78:
		s.accounts++
		return s.send(user, "open_account", s.accounts, num("10"))
	case k < 81:
		return s.send(user, "nonsense", 1)
	case k < 85 && len(s.sent) > 0:
		return []*block.Tx{s.sent[s.rng.IntN(len(s.sent))]}
	case k < 88:
		return []*block.Tx{forge(s.tb, s.tx(user, "greet", "forged"))}
	case k < 90:
		return []*block.Tx{s.signed(user, s.call("greet", "late"), func(tx *block.Tx) { tx.ValidUntil = uint64(s.rng.IntN(300)) })}
	case k < 94:
		return s.deployment()
	case k < 97:
		return s.user()
	}
	return s.send(user, "approve_deploytx", int64(s.rng.IntN(20)))
}

func (s *randomSource) send(user identity.UserID, name string, args ...any) []*block.Tx {
	tx := s.signed(user, s.call(name, args...), func(tx *block.Tx) {
		if s.slow {
			tx.Snapshot -= min(tx.Snapshot, uint64(s.rng.IntN(3)))
		}
	})
	s.sent = append(s.sent, tx)
	return []*block.Tx{tx}
}

// deployment changes a function, an index or nothing, if it fails. Now and then
// it is not submitted.
func (s *randomSource) deployment() []*block.Tx {
	script := []string{
		fmt.Sprintf(`CREATE OR REPLACE FUNCTION greet(p_name text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RETURN 'v%d ' || p_name; END $$`, s.rng.IntN(100)),
		fmt.Sprintf(`CREATE TABLE t%d (id int PRIMARY KEY); CREATE TABLE u%d (id int PRIMARY KEY)`, s.rng.IntN(100), s.rng.IntN(5)),
		`CREATE TABLE accounts (id int PRIMARY KEY)`,
		fmt.Sprintf(`CREATE INDEX history_dst%d ON history (dst)`, s.rng.IntN(10)),
	}[s.rng.IntN(4)]
	s.deploys++
	id := s.deploys
	var txs []*block.Tx
	txs = append(txs, s.send(admin1, "create_deploytx", script)...)
	txs = append(txs, s.send(admin1, "approve_deploytx", id)...)
	if s.rng.IntN(4) > 0 {
		txs = append(txs, s.send(admin2, "approve_deploytx", id)...)
	}
	return append(txs, s.send(admin2, "submit_deploytx", id)...)
}

func (s *randomSource) user() []*block.Tx {
	n := 20 + len(s.names)
	if len(s.names) > 5 && s.rng.IntN(2) == 0 {
		gone := s.names[4+s.rng.IntN(len(s.names)-4)]
		return s.send(admin1, "delete_user", gone.Org, gone.Name)
	}
	id := identity.UserID{Org: "org1", Name: fmt.Sprintf("user%d", n)}
	signers[id] = signerOf(byte(n))
	s.names = append(s.names, id)
	key := signers[id].Public()
	return s.send(admin1, "create_user", id.Org, id.Name, "client", key[:])
}

// TestWorkersDoNotMatter is the metamorphic test of the package: the same blocks
// with 1, 2 and 16 workers, with signatures checked before or not, with restarts,
// give one state hash at every height and the same receipts.
func TestWorkersDoNotMatter(t *testing.T) {
	for _, flow := range []string{block.FlowOrderThenExecute, block.FlowExecuteOrderInParallel} {
		for _, rule := range []string{block.RuleAbortDuringCommit, block.RuleBlockAware, block.RuleExact} {
			t.Run(flow+"/"+rule, func(t *testing.T) {
				seed := testSeed()
				t.Log("seed", seed)
				g := testGenesis(func(p *block.Params) {
					p.Flow, p.Rule, p.MaxBlockWriteBytes, p.MaxWriteBytes = flow, rule, 20_000, 20_000
				})
				s := newRandomSource(t, g, seed)
				nodes := []*node{newNode(t, g, 1), newNode(t, g, 2), newNode(t, g, 16)}
				for _, b := range s.first() {
					same(t, nodes, b)
				}
				for i := range 25 {
					b := s.next()
					for _, tx := range b.Txs {
						if s.rng.IntN(2) == 0 {
							_ = nodes[1].chain.Authenticate(tx) // its outcome must not matter
						}
					}
					same(t, nodes, b)
					if i%7 == 3 {
						nodes[2].reopen()
					}
				}
				m := nodes[0].chain.Metrics()
				t.Logf("%d committed, %d aborted %v, %d failed, %d rejected", m.Committed, m.Aborted, m.Aborts, m.Failed, m.Rejected)
				if min(m.Committed, m.Aborted, m.Failed, m.Rejected) == 0 {
					t.Errorf("an outcome never happened: %+v", m)
				}
				if got := nodes[0].query("SELECT sum(balance) FROM accounts"); got != nodes[2].query("SELECT sum(balance) FROM accounts") {
					t.Errorf("balances differ")
				}
				// Transfers move money, they make none.
				want := nodes[0].query("SELECT 90 * 12 + 10 * count(*) FROM accounts")
				if got := nodes[0].query("SELECT trunc(sum(balance))::bigint FROM accounts"); got != want {
					t.Errorf("accounts hold %s, not %s", got, want)
				}
				nodes[0].replays(g)
			})
		}
	}
}

// replays replays the block store of n into an empty state.
func (n *node) replays(g *block.Genesis) {
	n.tb.Helper()
	fresh := openNode(n.tb, g)
	o := fresh.options()
	o.Blocks = n.blocks
	heights := uint64(0)
	last, err := Replay(o, func(h block.Height, state block.Hash) error {
		if h != heights || state != n.state(h) {
			return fmt.Errorf("replay has state %s at block %d, the node %s", state, h, n.state(h))
		}
		heights++
		return nil
	})
	if err != nil || last != n.state(heights-1) || heights != n.chain.Height()+1 {
		n.tb.Errorf("replay of %d blocks ends with %s: %v", heights, last, err)
	}
	if _, err := Replay(o, nil); err == nil {
		n.tb.Error("replay into a state that is not empty")
	}
}

// same processes a block on all nodes and compares what they say.
func same(t *testing.T, nodes []*node, b *block.Block) {
	t.Helper()
	want := full(nodes[0].process(b))
	state := nodes[0].state(b.Number)
	for i, n := range nodes[1:] {
		if got := full(n.process(b)); got != want {
			t.Fatalf("block %d: node %d says\n%snode 0\n%s", b.Number, i+1, got, want)
		}
		if got := n.state(b.Number); got != state {
			t.Fatalf("block %d: node %d has state %s, node 0 %s", b.Number, i+1, got, state)
		}
	}
}

// full shows receipts with everything in them.
func full(receipts []Receipt) string {
	out := ""
	for _, r := range receipts {
		out += fmt.Sprintf("%d %s %s %x %v %s", r.Position, r.ID, r.Status, r.Result, r.Final, detail(r.Err))
		for _, n := range r.Notices {
			out += " " + n.Severity + " " + n.Error.Message
		}
		if r.Err != nil {
			out += fmt.Sprintf(" %+v", *r.Err)
		}
		out += "\n"
	}
	return out
}
