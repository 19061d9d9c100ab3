package chain

import (
	"bytes"
	"testing"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/identity"
)

// nodesOf adds a node to each organization of the test network and as many
// organizations more.
func withNodes(g *block.Genesis, more ...string) *block.Genesis {
	for i, name := range more {
		admin := identity.UserID{Org: name, Name: "admin"}
		signers[admin] = signerOf(byte(20 + i))
		g.Orgs = append(g.Orgs, block.Org{Name: name, Users: []block.User{{Name: "admin", Role: identity.Admin, Key: signers[admin].Public()}}})
	}
	for i := range g.Orgs {
		id := nodeOf(g.Orgs[i].Name)
		signers[id] = signerOf(byte(40 + i))
		g.Orgs[i].Users = append(g.Orgs[i].Users, block.User{Name: id.Name, Role: identity.Node, Key: signers[id].Public()})
	}
	g.Sort()
	return g
}

func nodeOf(org string) identity.UserID { return identity.UserID{Org: org, Name: "node"} }

// vote makes the transaction with which a node submits a state hash.
func (s *source) vote(n *node, org string, height block.Height, state block.Hash) *block.Tx {
	s.tb.Helper()
	tx, err := n.chain.CheckpointTx(nodeOf(org), signers[nodeOf(org)], height, state, s.last.Timestamp)
	if err != nil {
		s.tb.Fatal(err)
	}
	return tx
}

// TestReceipts proves every outcome of a block, first without and then with a
// checkpoint, and nothing else.
func TestReceipts(t *testing.T) {
	g := withNodes(testGenesis(nil), "org3")
	anchor := block.AnchorOf(g)
	s, n := newSource(t, g), newNode(t, g, 2)
	mustCommit(t, n.process(s.block(s.tx(admin1, "create_deploytx", bank),
		s.tx(admin1, "approve_deploytx", int64(1)), s.tx(admin2, "approve_deploytx", int64(1)),
		s.tx(identity.UserID{Org: "org3", Name: "admin"}, "approve_deploytx", int64(1)), s.tx(admin1, "submit_deploytx", int64(1)))))
	tx := s.tx(alice, "greet", "y")
	receipts := n.process(s.block(s.tx(alice, "greet", "x"), s.tx(bob, "transfer", int64(1), 1, 9, num("1")), tx, tx, s.tx(alice, "greet", "z")))
	n.process(s.block(s.tx(alice, "greet", "later")))
	check := func(want block.Finality) {
		t.Helper()
		for i := range receipts {
			r, err := n.chain.Prove(2, receipts[i].Position)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := r.Verify(anchor); err != nil || got != want {
				t.Fatalf("receipt of position %d is %s: %v", i+1, got, err)
			}
			if o := receipts[i].Outcome(); o.Leaf() != r.Outcome.Leaf() {
				t.Errorf("the proof of position %d is of another outcome", i+1)
			}
			raw := r.Encode()
			back, err := block.DecodeReceipt(raw)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := back.Verify(anchor); err != nil || got != want || !bytes.Equal(back.Encode(), raw) {
				t.Errorf("decoded receipt of position %d is %s: %v", i+1, got, err)
			}
		}
	}
	check(block.Ordered)
	// One organization is no majority of three; a node that says something else
	// does not count either.
	n.process(s.block(s.vote(n, "org1", 3, n.state(3)), s.vote(n, "org2", 3, n.state(2))))
	if p, err := n.chain.LastCheckpoint(); err != nil || p != nil {
		t.Fatalf("a checkpoint is %v, %v", p, err)
	}
	check(block.Ordered)
	mustCommit(t, n.process(s.block(s.vote(n, "org3", 3, n.state(3)))))
	check(block.Final)
	if n.chain.Diverged() != nil {
		t.Error("a minority with another state makes a node doubt")
	}
	if got := n.query("SELECT height, organizations, recorded_block FROM checkpoints"); got != "3|2|5\n" {
		t.Errorf("checkpoints has %q", got)
	}
	falseReceipts(t, n, anchor)
}

// falseReceipts changes one thing of a good receipt after the other.
func falseReceipts(t *testing.T, n *node, anchor *block.Anchor) {
	for name, change := range map[string]func(r *block.Receipt){
		"status":           func(r *block.Receipt) { r.Outcome.Status = block.Committed + block.Failed - r.Outcome.Status },
		"SQLSTATE":         func(r *block.Receipt) { r.Outcome.SQLState = "40001" },
		"result":           func(r *block.Receipt) { r.Outcome.Result = append([]byte{1}, r.Outcome.Result...) },
		"id":               func(r *block.Receipt) { r.Outcome.ID[0] ^= 1 },
		"position":         func(r *block.Receipt) { r.Position++ },
		"no position":      func(r *block.Receipt) { r.Position = 0 },
		"path":             func(r *block.Receipt) { r.Path[0][3] ^= 1 },
		"short path":       func(r *block.Receipt) { r.Path = r.Path[1:] },
		"previous":         func(r *block.Receipt) { r.Previous[0] ^= 1 },
		"write set":        func(r *block.Receipt) { r.Step.Writes[0] ^= 1 },
		"tables":           func(r *block.Receipt) { r.Step.Tables[0] ^= 1 },
		"step":             func(r *block.Receipt) { r.Steps[0].Outcomes[0] ^= 1 },
		"no steps":         func(r *block.Receipt) { r.Steps = nil },
		"transaction":      func(r *block.Receipt) { r.TxHashes[0][0] ^= 1 },
		"header":           func(r *block.Receipt) { r.Header.Timestamp++ },
		"configuration":    func(r *block.Receipt) { r.Header.ConfigID[0] ^= 1 },
		"certificate":      func(r *block.Receipt) { r.Certificate = nil },
		"checkpoint":       func(r *block.Receipt) { r.Checkpoint.State[0] ^= 1 },
		"checkpoint block": func(r *block.Receipt) { r.Checkpoint.Height++ },
		"vote":             func(r *block.Receipt) { r.Checkpoint.Votes[0].Signature[0] ^= 1 },
		"voter":            func(r *block.Receipt) { r.Checkpoint.Votes[0].Node.Name = "nobody" },
		"one vote":         func(r *block.Receipt) { r.Checkpoint.Votes = r.Checkpoint.Votes[:1] },
		"same vote twice": func(r *block.Receipt) {
			r.Checkpoint.Votes = []block.CheckpointVote{r.Checkpoint.Votes[0], r.Checkpoint.Votes[0]}
		},
		"votes unsorted": func(r *block.Receipt) {
			r.Checkpoint.Votes = []block.CheckpointVote{r.Checkpoint.Votes[1], r.Checkpoint.Votes[0]}
		},
	} {
		r, err := n.chain.Prove(2, 3)
		if err != nil {
			t.Fatal(err)
		}
		r.Path = append([]block.Hash(nil), r.Path...)
		change(r)
		if f, err := r.Verify(anchor); err == nil {
			t.Errorf("a receipt with another %s verifies as %s", name, f)
		}
	}
	for _, position := range []uint32{0, 6} {
		if _, err := n.chain.Prove(2, position); err == nil {
			t.Errorf("there is a proof of position %d", position)
		}
	}
	if r, err := n.chain.ProveTx(block.TxID{1}); r != nil || err != nil {
		t.Errorf("proof of an unknown transaction: %v, %v", r, err)
	}
}

// TestCheckpointVotes: who may vote, for what, and what the votes lead to.
func TestCheckpointVotes(t *testing.T) {
	g := withNodes(testGenesis(nil), "org3")
	s, n := newSource(t, g), newNode(t, g, 1)
	n.process(s.block(s.tx(alice, "greet", "x")))
	n.process(s.block())
	forged := s.vote(n, "org1", 1, n.state(1))
	forged.Call.Args[2].Value[5] ^= 1
	if err := forged.Sign(signers[nodeOf("org1")]); err != nil {
		t.Fatal(err)
	}
	state := n.state(1)
	signature := make([]byte, 64)
	for i, c := range []struct {
		tx     *block.Tx
		status Status
		code   string
	}{
		{s.tx(admin1, "submit_checkpoint", int64(1), state[:], signature), Failed, "42501"},
		{s.tx(alice, "submit_checkpoint", int64(1), state[:], signature), Failed, "42501"},
		{s.tx(nodeOf("org1"), "create_deploytx", "CREATE TABLE t (id int PRIMARY KEY)"), Failed, "42501"},
		{s.tx(nodeOf("org1"), "submit_checkpoint", int64(1), state[:5], signature), Failed, "22023"},
		{s.tx(nodeOf("org1"), "submit_checkpoint", int64(-1), state[:], signature), Failed, "22023"},
		{forged, Failed, "28000"},
		{s.vote(n, "org1", 9, state), Failed, "22023"}, // the block that it stands in
		{s.vote(n, "org1", 2, n.state(2)), Committed, ""},
		{s.vote(n, "org2", 2, n.state(2)), Committed, ""},
		{s.vote(n, "org2", 2, state), Failed, "42710"},
		{s.vote(n, "org1", 1, state), Failed, "42710"}, // below what it voted on
		{s.vote(n, "org3", 1, state), Committed, ""},
		{s.vote(n, "org3", 2, n.state(2)), Committed, ""},
	} {
		r := n.process(s.block(c.tx))[0]
		code := ""
		if r.Err != nil {
			code = string(r.Err.Code)
		}
		if r.Status != c.status || code != c.code {
			t.Errorf("case %d is %s %s, not %s %s: %v", i, r.Status, code, c.status, c.code, r.Err)
		}
	}
	p, err := n.chain.CheckpointFrom(1)
	if err != nil || p == nil || p.Height != 2 || len(p.Votes) != 3 || p.State != n.state(2) {
		t.Fatalf("the checkpoint is %+v, %v", p, err)
	}
	if err := block.AnchorOf(g).VerifyCheckpoint(p); err != nil {
		t.Error(err)
	}
	if back, err := block.DecodeCheckpoint(p.Encode()); err != nil || back.State != p.State || len(back.Votes) != 3 {
		t.Errorf("decoded checkpoint %+v: %v", back, err)
	}
}

// TestCheckpointDue: every k blocks, as long as something happens.
func TestCheckpointDue(t *testing.T) {
	g := withNodes(testGenesis(func(p *block.Params) { p.CheckpointEvery = 3 }))
	s, n := newSource(t, g), newNode(t, g, 1)
	due := func(want block.Height) {
		t.Helper()
		h, state, ok, err := n.chain.CheckpointDue()
		if err != nil || ok != (want > 0) || ok && (h != want || state != n.state(h)) {
			t.Fatalf("at height %d a checkpoint of %d is due (%v): %v", n.chain.Height(), h, ok, err)
		}
	}
	due(0)
	n.process(s.block())
	n.process(s.block(s.tx(alice, "greet", "x")))
	due(0)
	n.process(s.block())
	due(3)
	n.process(s.block(s.vote(n, "org1", 3, n.state(3)), s.vote(n, "org2", 3, n.state(3))))
	n.process(s.block(s.vote(n, "org1", 4, n.state(4))))
	due(3)
	n.process(s.block(s.vote(n, "org1", 5, n.state(5))))
	due(3) // and not 6: nothing but votes since then
	n.process(s.block(s.tx(alice, "greet", "x")))
	due(3)
	n.process(s.block())
	n.process(s.block())
	due(9)
}
