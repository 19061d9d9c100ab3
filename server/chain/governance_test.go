package chain

import (
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/contracts"
	"github.com/tallystick/tallystick/identity"
	"github.com/tallystick/tallystick/mvcc"
	"github.com/tallystick/tallystick/sql/datum"
)

// jsonb is an argument of that type.
func (s *source) changes(user identity.UserID, name, text string) *block.Tx {
	s.tb.Helper()
	d, err := datum.ParseJSONB(text)
	if err != nil {
		s.tb.Fatal(err)
	}
	call, err := contracts.MakeCall("blockchain", name, []datum.Type{datum.T(datum.JSONB)}, []datum.Datum{d})
	if err != nil {
		s.tb.Fatal(err)
	}
	return s.signed(user, call, nil)
}

// under makes the next block under a configuration, certified by an orderer.
func (s *source) under(c *block.Scheduled, o *identity.Signer, txs ...*block.Tx) *block.Block {
	b := &block.Block{
		Number: s.last.Number + 1, PrevHash: s.last.Hash(), ConfigID: c.ID,
		Timestamp: s.last.Timestamp + 1_000_000, Txs: txs,
	}
	digest := identity.VoteDigest(s.network, 0, b.Seal())
	cert := identity.Certificate{Votes: []identity.Vote{{Member: uint16(c.Config.Orderers.Index(o.Public())), Signature: o.Sign(digest[:])}}}
	b.Certificate = cert.Encode()
	s.last = b
	return b
}

// configID reads what approvals of a proposal have to name.
func (n *node) configID(id int64) []byte {
	n.tb.Helper()
	text := strings.TrimSpace(n.query(fmt.Sprintf("SELECT config_id FROM deploytx WHERE id = %d", id)))
	b, err := hex.DecodeString(strings.TrimPrefix(text, `\x`))
	if err != nil || len(b) != 32 {
		n.tb.Fatalf("configuration id of proposal %d is %q", id, text)
	}
	return b
}

// submitted has a change of the configuration approved by both organizations and
// submitted; it returns the configuration transaction.
func submitted(s *source, n *node, id int64, change string) *block.Tx {
	n.tb.Helper()
	mustCommit(n.tb, n.process(s.block(s.changes(admin1, "create_configtx", change))))
	config := n.configID(id)
	mustCommit(n.tb, n.process(s.block(
		s.tx(admin1, "approve_configtx", id, config),
		s.tx(admin2, "approve_configtx", id, config),
		s.tx(admin2, "submit_deploytx", id))))
	tx := n.chain.PendingConfig()
	if tx == nil {
		n.tb.Fatal("no configuration transaction waits")
	}
	return tx
}

// TestOrganizationJoins: a new organization with its admin comes by a
// configuration transaction, and from the next block on nothing is deployed
// without it.
func TestOrganizationJoins(t *testing.T) {
	g := testGenesis(nil)
	s, n := newSource(t, g), newNode(t, g, 2)
	admin3 := identity.UserID{Org: "org3", Name: "root"}
	signers[admin3] = signerOf(30)
	change := fmt.Sprintf(`{"add_organizations": {"org3": {"root": "%s"}}, "block_txs": 7}`, signerOf(30).Public())
	tx := submitted(s, n, 1, change)
	if got := n.query("SELECT kind, status FROM deploytx"); got != "configuration|approved\n" {
		t.Errorf("proposal is %s", got)
	}
	n.reopen() // what waits survives a restart
	if p := n.chain.PendingConfig(); p == nil || p.ID() != tx.ID() {
		t.Error("the pending configuration is lost with a restart")
	}
	if err := n.chain.Authenticate(tx); err != nil {
		t.Errorf("Authenticate: %v", err)
	}
	early := s.tx(admin3, "create_deploytx", "CREATE TABLE t (id int PRIMARY KEY)")
	receipts := n.process(s.block(early, tx, tx))
	want := "1 rejected 28000 role \"org3/root\" does not exist\n2 committed\n3 rejected 28000 configuration is not accepted\n"
	if got := summary(receipts); got != want {
		t.Errorf("receipts\n%swant\n%s", got, want)
	}
	if n.chain.PendingConfig() != nil {
		t.Error("the configuration still waits")
	}
	if err := n.chain.Authenticate(tx); err == nil {
		t.Error("a configuration that was ordered authenticates")
	}
	if r, ok, err := n.chain.LookupReceipt(tx.ID()); err != nil || !ok || r.Status != Committed {
		t.Errorf("receipt of the configuration: %v %v %v", r, ok, err)
	}
	// Now org3 counts.
	receipts = n.process(s.deployBlock(2, "CREATE TABLE t (id int PRIMARY KEY)"))
	if got := receipts[3]; got.Status != Failed || !strings.Contains(got.Err.Detail, "org3") {
		t.Errorf("submit without org3: %s %v", got.Status, got.Err)
	}
	mustCommit(t, n.process(s.block(s.tx(admin3, "approve_deploytx", int64(2)), s.tx(admin3, "submit_deploytx", int64(2)))))
	if got := n.query("SELECT number, block, from_block, organizations, block_txs FROM configs"); got != "1|3|20|3|7\n" {
		t.Errorf("configs is %s", got)
	}
	if got := n.query("SELECT status, closed_block FROM deploytx WHERE id = 1"); got != "deployed|3\n" {
		t.Errorf("proposal is %s", got)
	}
	if got := n.chain.Params().BlockTxs; got != g.Params.BlockTxs {
		t.Errorf("block size is %d before its time", got)
	}
	for s.last.Number < 19 {
		n.process(s.block())
	}
	if got := n.chain.Params().BlockTxs; got != 7 {
		t.Errorf("block size is %d", got)
	}
	now := n.chain.Schedule().At(20)
	if now.Config.Number != 1 {
		t.Fatalf("configuration %d is in force", now.Config.Number)
	}
	n.process(s.under(now, orderer))
	n.reopen()
	if got := n.chain.Params().BlockTxs; got != 7 {
		t.Errorf("block size after a restart is %d", got)
	}
	replayed := replayOf(t, n)
	if _, _, state := n.chain.Tip(); replayed != state {
		t.Errorf("replay gives %s, the chain %s", replayed, state)
	}
}

// replayOf executes the blocks of a node into an empty state.
func replayOf(t *testing.T, n *node) block.Hash {
	t.Helper()
	fresh := openNode(t, n.chain.Genesis())
	last, _ := n.blocks.Tip()
	for h := uint64(1); h <= last; h++ {
		b, err := n.blocks.Get(h)
		if err != nil {
			t.Fatal(err)
		}
		if err := fresh.blocks.Append(b); err != nil {
			t.Fatal(err)
		}
	}
	state, err := Replay(fresh.options(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return state
}

// TestOrdererSetChanges: certificates are those of the configuration in force, and
// the chain refuses blocks of orderers that are not yet or no longer in it.
func TestOrdererSetChanges(t *testing.T) {
	g := testGenesis(func(p *block.Params) { p.OrderingWindow = 2 })
	s, n := newSource(t, g), newNode(t, g, 1)
	fresh := signerOf(40)
	change := fmt.Sprintf(`{"add_orderers": ["%s"], "remove_orderers": ["%s"]}`, fresh.Public(), orderer.Public())
	tx := submitted(s, n, 1, change)
	n.process(s.block(tx)) // block 3; in force from 6
	n.process(s.block())
	old := *s
	bad := n.chain.Schedule().At(6)
	if bad.Config.Number != 1 || n.chain.Schedule().At(5).Config.Number != 0 {
		t.Fatal("the schedule does not switch at block 6")
	}
	refuses(t, n, (&old).under(bad, fresh), "in force is configuration 0")
	n.process(s.block())
	old = *s
	refuses(t, n, (&old).block(), "in force is configuration 1")
	old = *s
	forged := n.chain.Schedule().At(6)
	b := (&old).under(forged, fresh)
	forgery := *b
	digest := identity.VoteDigest(s.network, 0, b.Hash())
	cert := identity.Certificate{Votes: []identity.Vote{{Signature: orderer.Sign(digest[:])}}}
	forgery.Certificate = cert.Encode()
	refuses(t, n, &forgery, "does not verify")
	n.process(s.under(forged, fresh))
}

// refuses checks that a copy of the chain does not take a block.
func refuses(t *testing.T, n *node, b *block.Block, want string) {
	t.Helper()
	n.chain.Close()
	c, err := Open(n.options())
	if err != nil {
		t.Fatal(err)
	}
	defer n.reopen()
	if _, err := c.Process(b); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("block %d: error %v, want %q", b.Number, err, want)
	}
	c.Close()
}

// TestOrganizationLeaves: the others remove it, it has no veto, and none of its
// users signs anything from the next block on.
func TestOrganizationLeaves(t *testing.T) {
	g := testGenesis(nil)
	admin3 := identity.UserID{Org: "org3", Name: "admin"}
	signers[admin3] = signerOf(31)
	g.Orgs = append(g.Orgs, block.Org{Name: "org3", Users: []block.User{{Name: "admin", Role: identity.Admin, Key: signerOf(31).Public()}}})
	s, n := newSource(t, g), newNode(t, g, 2)
	mustCommit(t, n.process(s.block(s.changes(admin1, "create_configtx", `{"remove_organizations": ["org3"]}`))))
	config := n.configID(1)
	receipts := n.process(s.block(
		s.tx(admin3, "reject_deploytx", int64(1), "not me"),
		s.tx(admin1, "approve_configtx", int64(1), config),
		s.tx(admin1, "submit_deploytx", int64(1)),
		s.tx(admin2, "approve_configtx", int64(1), config),
		s.tx(admin2, "approve_deploytx", int64(1)),
		s.tx(admin2, "submit_deploytx", int64(1))))
	want := "1 failed 42501 permission denied to reject deploytx 1\n2 committed\n" +
		"3 failed 42501 deploytx 1 is not approved by every organization that it takes\n4 committed\n" +
		"5 failed 22023 deploytx 1 is a configuration\n6 committed\n"
	if got := summary(receipts); got != want {
		t.Errorf("receipts\n%swant\n%s", got, want)
	}
	last := s.tx(admin3, "create_deploytx", "CREATE TABLE a (id int PRIMARY KEY)")
	mustCommit(t, n.process(s.block(last, n.chain.PendingConfig())))
	receipts = n.process(s.block(s.tx(admin3, "create_deploytx", "CREATE TABLE b (id int PRIMARY KEY)")))
	if receipts[0].Status != Rejected || receipts[0].Err.Code != "28000" {
		t.Errorf("a removed organization acts: %v", summary(receipts))
	}
	mustCommit(t, n.process(s.block(s.tx(admin1, "approve_deploytx", int64(2)), s.tx(admin2, "approve_deploytx", int64(2)), s.tx(admin2, "submit_deploytx", int64(2)))))
}

// TestOwnAdminsAlone: an organization changes its own admins without the others,
// and a competing configuration is superseded.
func TestOwnAdminsAlone(t *testing.T) {
	g := testGenesis(nil)
	s, n := newSource(t, g), newNode(t, g, 2)
	deputy := identity.UserID{Org: "org1", Name: "deputy"}
	signers[deputy] = signerOf(33)
	mustCommit(t, n.process(s.block(
		s.changes(admin2, "create_configtx", `{"block_txs": 3}`),
		s.changes(admin1, "create_configtx", fmt.Sprintf(`{"admins": {"org1": {"deputy": "%s"}}}`, signerOf(33).Public())))))
	mustCommit(t, n.process(s.block(
		s.tx(admin1, "approve_configtx", int64(2), n.configID(2)),
		s.tx(admin1, "submit_deploytx", int64(2)))))
	mustCommit(t, n.process(s.block(n.chain.PendingConfig())))
	if got := n.query("SELECT id, status FROM deploytx ORDER BY id"); got != "1|superseded\n2|deployed\n" {
		t.Errorf("proposals\n%s", got)
	}
	receipts := n.process(s.block(s.tx(admin1, "comment_deploytx", int64(1), "x"), s.tx(deputy, "comment_deploytx", int64(1), "y")))
	if got := summary(receipts); got != "1 rejected 28000 role \"org1/admin\" does not exist\n2 committed\n" {
		t.Errorf("receipts\n%s", got)
	}
}

// TestParameters: limits, rule and engine version, at their block.
func TestParameters(t *testing.T) {
	s, n := bankNode(t, testGenesis(nil))
	mustCommit(t, n.process(s.deployBlock(2, spin)))
	decide := func(id int64, change string) []Receipt {
		return n.process(s.block(
			s.changes(admin1, "create_parametertx", change),
			s.tx(admin1, "approve_deploytx", id), s.tx(admin2, "approve_deploytx", id), s.tx(admin1, "submit_deploytx", id)))
	}
	mustCommit(t, decide(3, `{"max_steps": 100000, "rule": "exact"}`))
	if p := n.chain.Params(); p.MaxSteps != 100000 || p.Rule != block.RuleExact || n.chain.rule.String() != "exact" {
		t.Errorf("parameters %+v", p)
	}
	receipts := n.process(s.block(s.tx(alice, "spin", 100000)))
	if receipts[0].Status != Failed || receipts[0].Err.Code != "54000" {
		t.Errorf("with 100,000 steps: %s", summary(receipts))
	}
	// There is a way back.
	mustCommit(t, decide(4, `{"max_steps": 10000000}`))
	mustCommit(t, n.process(s.block(s.tx(alice, "spin", 100000))))
	if got := n.query("SELECT name, from_block, value, deploy_id FROM network_parameters"); got != "max_steps|5|100000|3\nmax_steps|7|10000000|4\nrule|5|exact|3\n" {
		t.Errorf("network_parameters is\n%s", got)
	}
}

// spin takes steps in proportion to its argument.
const spin = `CREATE FUNCTION spin(n int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
  FOR i IN 1..n LOOP NULL; END LOOP;
  RETURN n;
END $$`

// TestScheduledParameters: a change holds from its block on, before and after a
// restart, and an engine version that this program lacks stops the node there.
func TestScheduledParameters(t *testing.T) {
	s, n := bankNode(t, testGenesis(nil))
	for _, bad := range []string{
		`{"flow": "order-then-execute"}`, `{"block_txs": 4}`, `{"max_steps": 0}`, `{"max_steps": 99999}`, `{"max_write_bytes": 1000}`, `{"max_nonsense": 1}`, `{"max_steps": null}`, `{}`, `[1]`,
		`{"max_write_bytes": 1099511627776}`, `{"from_block": 1, "max_steps": 9}`, `{"from_block": "x", "max_steps": 9}`, `{"max_steps": 1.5}`,
	} {
		receipts := n.process(s.block(s.changes(admin1, "create_parametertx", bad)))
		if receipts[0].Status != Failed || receipts[0].Err.Code != "22023" {
			t.Errorf("%s: %s", bad, summary(receipts))
		}
	}
	from := s.last.Number + 4
	change := fmt.Sprintf(`{"engine_version": 2, "from_block": %d}`, from)
	mustCommit(t, n.process(s.block(s.changes(admin1, "create_parametertx", change),
		s.tx(admin1, "approve_deploytx", int64(2)), s.tx(admin2, "approve_deploytx", int64(2)), s.tx(admin1, "submit_deploytx", int64(2)))))
	n.process(s.block())
	n.reopen()
	n.process(s.block())
	if s.last.Number != from-1 {
		t.Fatalf("block %d", s.last.Number)
	}
	if _, err := n.chain.Process(s.block()); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("from block %d on the network computes with engine version 2", from)) {
		t.Errorf("error %v", err)
	}
}

// TestParametersWithSpeculation: what was executed ahead under other limits does
// not count.
func TestParametersWithSpeculation(t *testing.T) {
	run := func(ahead bool) (block.Hash, string) {
		g := testGenesis(func(p *block.Params) { p.Flow = block.FlowExecuteOrderInParallel })
		s, n := bankNode(t, g)
		mustCommit(t, n.process(s.deployBlock(2, spin)))
		tx := s.tx(alice, "spin", 100000)
		if ahead {
			p := n.chain.speculation(tx)
			if p == nil {
				t.Fatal("not executed ahead")
			}
			<-p.done
		}
		mustCommit(t, n.process(s.block(s.changes(admin1, "create_parametertx", `{"max_steps": 100000}`),
			s.tx(admin1, "approve_deploytx", int64(3)), s.tx(admin2, "approve_deploytx", int64(3)), s.tx(admin1, "submit_deploytx", int64(3)))))
		out := summary(n.process(s.block(tx)))
		_, _, state := n.chain.Tip()
		return state, out
	}
	with, out := run(true)
	without, want := run(false)
	if with != without || out != want || !strings.Contains(out, "54000") {
		t.Errorf("executed ahead %s%s, not %s%s", out, with, want, without)
	}
}

// TestShrinkingValidity: ids that were consumed under a longer window are known
// after a restart.
func TestShrinkingValidity(t *testing.T) {
	s, n := bankNode(t, testGenesis(func(p *block.Params) { p.ValidityWindow = 100 }))
	tx := s.tx(alice, "greet", "x")
	mustCommit(t, n.process(s.block(tx, s.changes(admin1, "create_parametertx", `{"validity_window": 2}`),
		s.tx(admin1, "approve_deploytx", int64(2)), s.tx(admin2, "approve_deploytx", int64(2)), s.tx(admin1, "submit_deploytx", int64(2)))))
	for range 5 {
		n.process(s.block())
	}
	other := newNode(t, n.chain.Genesis(), 1)
	for h := uint64(1); h <= s.last.Number; h++ {
		b, err := n.blocks.Get(h)
		if err != nil {
			t.Fatal(err)
		}
		other.process(b)
	}
	n.reopen()
	b := s.block(tx)
	if a, c := summary(n.process(b)), summary(other.process(b)); a != c || !strings.Contains(a, "ordered before") {
		t.Errorf("after a restart %swithout %s", a, c)
	}
}

// TestVotesKeepSignatures: a vote is the signed transaction that cast it.
func TestVotesKeepSignatures(t *testing.T) {
	s, n := bankNode(t, testGenesis(nil))
	txn := n.store.Begin(mvcc.AsOf(n.store.Height()), 0)
	defer txn.Close()
	for i, want := range []identity.UserID{admin1, admin2} {
		text := strings.TrimSpace(n.query(fmt.Sprintf("SELECT signed FROM deploytx_votes WHERE deploy_id = 1 ORDER BY txid LIMIT 1 OFFSET %d", i)))
		raw, err := hex.DecodeString(strings.TrimPrefix(text, `\x`))
		if err != nil {
			t.Fatal(err)
		}
		tx, err := block.DecodeTx(raw)
		if err != nil {
			t.Fatal(err)
		}
		digest := tx.SigningDigest()
		if tx.User != want || tx.Call.Name != "approve_deploytx" || !identity.Verify(signers[want].Public(), digest[:], tx.Signature) {
			t.Errorf("vote %d is %s of %s", i, tx.Call.Name, tx.User)
		}
	}
	_ = s
}
