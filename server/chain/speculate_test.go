package chain

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/contracts"
	"github.com/tallystick/tallystick/sql"
	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/exec"
)

// speculated executes a transaction ahead of its block and waits for it.
func (n *node) speculated(tx *block.Tx) *speculation {
	n.tb.Helper()
	p := n.chain.speculation(tx)
	if p == nil {
		n.tb.Fatalf("transaction %s is not executed ahead of its block", tx.ID())
	}
	<-p.done
	return p
}

// ahead looks at the cache.
func (n *node) ahead(f func(*speculator)) {
	n.chain.ahead.mu.Lock()
	defer n.chain.ahead.mu.Unlock()
	f(&n.chain.ahead)
}

func eop(p *block.Params) {
	p.Flow, p.Rule = block.FlowExecuteOrderInParallel, block.RuleBlockAware
}

// TestSpeculationDoesNotMatter is the metamorphic test of speculation: one chain,
// processed with none of it, with all, with a random half withheld, with a cache
// that is too small, started blocks before or while the block is processed, and
// with 1, 2 and 16 workers, has equal receipts and state hashes.
func TestSpeculationDoesNotMatter(t *testing.T) {
	policies(func(name string, set func(*block.Params)) {
		t.Run(name, func(t *testing.T) {
			seed := testSeed()
			t.Log("seed", seed)
			speculate(t, seed, func(p *block.Params) {
				set(p)
				p.MaxBlockWriteBytes, p.MaxWriteBytes, p.SnapshotWindow = 20_000, 20_000, 5
			})
		})
	})
}

func speculate(t *testing.T, seed uint64, params func(*block.Params)) {
	g := testGenesis(params)
	s := newRandomSource(t, g, seed)
	rng := rand.New(rand.NewPCG(seed, 3))
	off, all, half, small := newNode(t, g, 1), newNode(t, g, 2), newNode(t, g, 16), newNode(t, g, 2)
	small.chain.ahead.maxTxs = 5
	nodes := []*node{off, all, half, small}
	for _, b := range s.first() {
		same(t, nodes, b)
	}
	// Blocks are made two ahead, so that some snapshots are not there yet.
	ahead := []*block.Block{s.next(), s.next()}
	arrive := func(b *block.Block) {
		for _, tx := range b.Txs {
			if all.chain.Speculate(tx) && rng.IntN(2) == 0 && tx.Snapshot <= all.chain.Height() {
				all.speculated(tx)
			}
			if rng.IntN(2) == 0 {
				half.chain.Speculate(tx)
			}
			small.chain.Speculate(tx)
		}
	}
	arrive(ahead[0])
	for i := range 16 {
		b := ahead[0]
		ahead = append(ahead[1:], s.next())
		arrive(ahead[0])
		same(t, nodes, b)
		if i == 8 {
			half.reopen()
		}
	}
	m := all.chain.Metrics()
	t.Logf("%d committed, %d aborted %v, %d failed, %d rejected; %d speculated, %d missing",
		m.Committed, m.Aborted, m.Aborts, m.Failed, m.Rejected, m.Speculated, m.Missing)
	if g.Params.Flow != block.FlowExecuteOrderInParallel {
		if m.Speculated+m.Missing != m.Missing {
			t.Error("speculation in the other flow")
		}
	} else if m.Speculated == 0 || half.chain.Metrics().Missing == 0 || off.chain.Metrics().Speculated != 0 {
		t.Error("speculation was not used as meant")
	}
	if min(m.Committed, m.Failed, m.Rejected) == 0 {
		t.Errorf("an outcome never happened: %+v", m)
	}
	all.ahead(func(a *speculator) {
		for id := range a.byID {
			if all.chain.Consumed(id) {
				t.Errorf("transaction %s is kept after its block", id)
			}
		}
	})
	off.replays(g)
}

// TestSpeculationIsUsed looks at one transaction on its way.
func TestSpeculationIsUsed(t *testing.T) {
	s, n := bankNode(t, testGenesis(eop))
	tx := s.tx(alice, "transfer", int64(1), 1, 2, num("10"))
	p := n.speculated(tx)
	if p.x.err != nil || p.x.result == nil || p.x.work.Writes() == 0 || p.fault != nil {
		t.Errorf("it ended with %v %v", p.x.err, p.fault)
	}
	if again := n.speculated(tx); again != p {
		t.Error("it is executed twice")
	}
	late := s.signed(bob, s.call("greet", "x"), func(tx *block.Tx) { tx.Snapshot = 3 })
	waiting := n.chain.speculation(late)
	if waiting == nil {
		t.Fatal("not taken")
	}
	n.ahead(func(*speculator) {
		if waiting.state != speculationWaits {
			t.Error("a snapshot that is not there is not waited for")
		}
	})
	before := n.chain.Metrics()
	receipts := n.process(s.block(tx))
	mustCommit(t, receipts)
	if m := n.chain.Metrics(); m.Speculated != before.Speculated+1 || m.Missing != before.Missing {
		t.Errorf("%d speculated, %d missing", m.Speculated-before.Speculated, m.Missing-before.Missing)
	}
	<-waiting.done
	receipts = n.process(s.block(late))
	mustCommit(t, receipts)
	if len(receipts[0].Notices) != 1 {
		t.Errorf("notices are %v", receipts[0].Notices)
	}
	if m := n.chain.Metrics(); m.Speculated != before.Speculated+2 {
		t.Error("the one that waited was executed again")
	}
	// The writer of a version is the transaction in its block.
	if got := n.query("SELECT DISTINCT xmin FROM accounts"); got != "3145729\n" {
		t.Errorf("accounts were written by %s", got)
	}
}

// TestSpeculationIsRefused lists what is not executed ahead of a block.
func TestSpeculationIsRefused(t *testing.T) {
	s, n := bankNode(t, testGenesis(func(p *block.Params) { eop(p); p.SnapshotWindow = 1 }))
	call := s.call("greet", "x")
	for name, tx := range map[string]*block.Tx{
		"system contract":       s.tx(admin1, "create_deploytx", "DROP TABLE accounts"),
		"far ahead":             s.signed(alice, call, func(tx *block.Tx) { tx.Snapshot = 3 + maxAhead }),
		"snapshot too old":      s.signed(alice, call, func(tx *block.Tx) { tx.Snapshot = 0 }),
		"expired":               s.signed(alice, call, func(tx *block.Tx) { tx.ValidUntil = 2 }),
		"transaction elsewhere": s.signed(alice, call, func(tx *block.Tx) { tx.Network[0] ^= 1 }),
	} {
		if n.chain.Speculate(tx) {
			t.Errorf("%s: taken", name)
		}
	}
	if len(n.chain.ahead.byID) != 0 || n.chain.ahead.bytes != 0 {
		t.Error("something was kept")
	}
	s, n = bankNode(t, testGenesis(nil))
	if n.chain.Speculate(s.tx(alice, "greet", "x")) {
		t.Error("taken in the other flow")
	}
}

// TestSpeculationIsBounded: the oldest go first, and what no block can contain
// any more goes by itself.
func TestSpeculationIsBounded(t *testing.T) {
	s, n := bankNode(t, testGenesis(func(p *block.Params) { eop(p); p.SnapshotWindow = 2 }))
	n.chain.ahead.maxTxs = 10
	var txs []*block.Tx
	for range 15 {
		txs = append(txs, s.tx(alice, "greet", "x"))
		n.speculated(txs[len(txs)-1])
	}
	n.ahead(func(a *speculator) {
		if len(a.byID) != 10 || a.order.Len() != 10 || a.byID[txs[4].ID()] != nil || a.byID[txs[5].ID()] == nil {
			t.Errorf("%d are kept", len(a.byID))
		}
		a.maxBytes = a.bytes / 2
	})
	n.speculated(s.tx(alice, "greet", "y"))
	n.ahead(func(a *speculator) {
		if len(a.byID) > 6 || a.bytes > a.maxBytes {
			t.Errorf("%d are kept with %d bytes", len(a.byID), a.bytes)
		}
	})
	for range 3 {
		n.process(s.block())
	}
	n.ahead(func(a *speculator) {
		if len(a.byID) != 0 || a.bytes != 0 || a.order.Len() != 0 || len(a.expires) != 0 || len(a.waiting) != 0 {
			t.Errorf("after their last block %d are kept with %d bytes", len(a.byID), a.bytes)
		}
	})
	n.chain.Close()
	if n.chain.Speculate(s.tx(alice, "greet", "x")) {
		t.Error("taken by a chain that was closed")
	}
}

// TestReplacedContract: what ran on the old version of a contract does not
// commit once another block has replaced it.
func TestReplacedContract(t *testing.T) {
	s, n := bankNode(t, testGenesis(eop))
	early, same := s.tx(alice, "greet", "x"), s.tx(alice, "greet", "y")
	n.speculated(early)
	n.speculated(same)
	script := `CREATE OR REPLACE FUNCTION greet(p_name text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RETURN 'good day ' || p_name; END $$`
	// In the block of the deployment the old version is still the one.
	mustCommit(t, n.process(s.deployBlock(2, script, same)))
	r := n.process(s.block(early, s.tx(alice, "greet", "x")))
	if r[0].Status != Aborted || r[1].Status != Committed {
		t.Error(summary(r))
	}
}

// TestSpeculativeFaults: an execution that fails for reasons of the node has no
// outcome. The block executes the transaction again, and if that works, what
// happened before has left no trace; if not, the node stops. A transaction that
// fails in a later round of its block stops it just the same.
func TestSpeculativeFaults(t *testing.T) {
	broken := func(n *node, call func() error) *sql.Engine {
		return sql.NewEngine(n.store, &exec.Functions{
			Call: func(*exec.Env, *catalog.Func, []datum.Datum) (datum.Datum, error) { return datum.Null, call() },
		}, sql.EngineOptions{})
	}
	s, n := bankNode(t, testGenesis(eop))
	tx, again := s.tx(alice, "greet", "x"), s.tx(alice, "greet", "y")
	good := n.chain.engine
	n.chain.engine = broken(n, func() error { panic("broken") })
	if p := n.speculated(tx); p.fault == nil {
		t.Error("a panic is an outcome")
	}
	if _, err := n.chain.Preview(t.Context(), again); err == nil {
		t.Error("a panic is a preview")
	}
	n.chain.engine = good
	if r, err := n.chain.Preview(t.Context(), tx); err != nil || r.Err != nil || len(r.Notices) != 1 {
		t.Errorf("preview: %+v, %v", r, err)
	}
	r := n.process(s.block(tx, again))
	mustCommit(t, r)
	if len(r[0].Notices) != 1 {
		t.Errorf("notices are %v", r[0].Notices)
	}
	if m := n.chain.Metrics(); m.Speculated != 0 {
		t.Errorf("%d faults were used", m.Speculated)
	}

	s, n = bankNode(t, testGenesis(reexecuting))
	calls := 0
	n.workers = 1
	n.reopen()
	functions := contracts.NewFunctions().Exec()
	n.chain.engine = sql.NewEngine(n.store, &exec.Functions{
		Call: func(env *exec.Env, f *catalog.Func, args []datum.Datum) (datum.Datum, error) {
			if calls++; calls > 2 {
				return datum.Null, errors.New("disk on fire")
			}
			return functions.Call(env, f, args)
		},
		CallSet: functions.CallSet,
	}, sql.EngineOptions{})
	b := s.block(s.tx(alice, "transfer", int64(1), 1, 2, num("1")), s.tx(alice, "transfer", int64(2), 1, 2, num("1")))
	n.refuses(b, b, "disk on fire")
}
