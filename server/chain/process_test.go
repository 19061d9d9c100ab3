package chain

import (
	"errors"
	"strings"
	"testing"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/contracts"
	"github.com/tallystick/tallystick/identity"
	"github.com/tallystick/tallystick/sql"
	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/exec"
	"github.com/tallystick/tallystick/sql/pgerr"
	"github.com/tallystick/tallystick/sql/plan"
)

// bankNode is a node whose network has the contracts of bank and two accounts.
func bankNode(t testing.TB, g *block.Genesis) (*source, *node) {
	s, n := newSource(t, g), newNode(t, g, 2)
	mustCommit(t, n.process(s.deployBlock(1, bank)))
	mustCommit(t, n.process(s.block(s.tx(alice, "open_account", 1, num("100")), s.tx(alice, "open_account", 2, num("50")))))
	return s, n
}

func TestCallAndLedger(t *testing.T) {
	s, n := bankNode(t, testGenesis(nil))
	tx := s.tx(alice, "transfer", int64(1), 1, 2, num("10.50"))
	receipts := n.process(s.block(tx, s.tx(bob, "greet", "O'Neill")))
	mustCommit(t, receipts)
	if got := n.query("SELECT * FROM accounts"); got != "1|89.50\n2|60.50\n" {
		t.Errorf("accounts are\n%s", got)
	}
	got := n.query("SELECT txid, block, position, org, username, function, call, status, sqlstate, snapshot, signed_at, valid_until FROM pgledger WHERE block = 3")
	want := "3145729|3|1|org1|alice|blockchain.transfer|blockchain.transfer(1, 1, 2, 10.50)|committed||2|2023-11-14 22:13:22+00|102\n" +
		"3145730|3|2|org2|bob|blockchain.greet|blockchain.greet('O''Neill')|committed||2|2023-11-14 22:13:22+00|102\n"
	if got != want {
		t.Errorf("ledger is\n%swant\n%s", got, want)
	}
	if got := n.query("SELECT id FROM pgledger WHERE block = 3 AND position = 1"); got != `\x`+tx.ID().String()+"\n" {
		t.Errorf("id in the ledger is %s", got)
	}
	res := contracts.Result{Columns: plan.ResultColumns(n.function("transfer")), Encoded: receipts[0].Result}
	rows, err := res.Rows()
	if err != nil || len(rows) != 1 || string(datum.Numeric.Append(nil, rows[0][0], &datum.ContractFormat)) != "89.50" {
		t.Errorf("result is %v, %v", rows, err)
	}
	if len(receipts[1].Notices) != 1 || receipts[1].Notices[0].Severity != "NOTICE" || receipts[1].Notices[0].Error.Message != "greeting O'Neill" {
		t.Errorf("notices are %+v", receipts[1].Notices)
	}
	stored, ok, err := n.chain.LookupReceipt(tx.ID())
	if err != nil || !ok || stored.Status != Committed || stored.XID != block.XID(3, 1) || string(stored.Result) != string(receipts[0].Result) || !stored.Final {
		t.Errorf("stored receipt is %+v, %v, %v", stored, ok, err)
	}
	if _, ok, err := n.chain.LookupReceipt(block.TxID{1}); ok || err != nil {
		t.Errorf("receipt of an unknown id: %v, %v", ok, err)
	}
	// The rows of genesis are those of block 1.
	if got := n.query("SELECT number, transactions, committed FROM blocks"); got != "0|0|0\n1|4|4\n2|2|2\n3|2|2\n" {
		t.Errorf("blocks are\n%s", got)
	}
	for h, name := range map[uint64]string{0: "0", 3: "3"} {
		state, err := n.chain.StateHash(h)
		if got := n.query("SELECT state_hash FROM blocks WHERE number = " + name); err != nil || got != `\x`+state.String()+"\n" {
			t.Errorf("state hash of block %d is %s, in the ledger %s, %v", h, state, got, err)
		}
	}
	if _, err := n.chain.StateHash(4); !errors.Is(err, errNoBlock) {
		t.Errorf("state hash of a block to come: %v", err)
	}
}

// function finds a contract as of the newest block.
func (n *node) function(name string) *catalog.Func {
	n.tb.Helper()
	v, err := n.chain.view(n.chain.Height())
	if err != nil {
		n.tb.Fatal(err)
	}
	return v.catalog.Funcs("blockchain", name)[0]
}

// TestRejections goes through all reasons for which a transaction should not
// have been in its block.
func TestRejections(t *testing.T) {
	s, n := bankNode(t, testGenesis(func(p *block.Params) { p.ValidityWindow = 100 }))
	greet := s.call("greet", "x")
	old := s.signed(alice, greet, nil)
	mustCommit(t, n.process(s.block(old)))
	stranger := identity.UserID{Org: "org1", Name: "stranger"}
	signers[stranger] = signerOf(50)
	good := s.signed(alice, greet, nil)
	forgedTx := forge(t, good)
	cases := []struct {
		name, code string
		tx         *block.Tx
		final      bool
	}{
		{"false signature", "28000", forgedTx, false},
		{"same id, genuine", "", good, true},
		{"repeated in the block", "42710", good, false},
		{"repeated in the chain", "42710", old, false},
		{"false signature of a consumed id", "28000", forgedTx, false},
		{"unknown user", "28000", s.signed(stranger, greet, nil), false},
		{"another network", "28000", s.signed(alice, greet, func(tx *block.Tx) { tx.Network[0] ^= 1 }), false},
		{"expired", "25000", s.signed(alice, greet, func(tx *block.Tx) { tx.ValidUntil = 3 }), true},
		{"valid in this block only", "", s.signed(alice, greet, func(tx *block.Tx) { tx.ValidUntil = 4 }), true},
		{"valid as long as can be", "", s.signed(alice, greet, func(tx *block.Tx) { tx.ValidUntil = 104 }), true},
		{"valid too long", "25000", s.signed(alice, greet, func(tx *block.Tx) { tx.ValidUntil = 105 }), true},
		{"early", "", s.signed(alice, greet, func(tx *block.Tx) { tx.Time = s.last.Timestamp + 1_000_000 - 300_000_000 }), true},
		{"too early", "25000", s.signed(alice, greet, func(tx *block.Tx) { tx.Time = s.last.Timestamp + 1_000_000 - 300_000_001 }), true},
		{"late", "", s.signed(alice, greet, func(tx *block.Tx) { tx.Time = s.last.Timestamp + 1_000_000 + 300_000_000 }), true},
		{"too late", "25000", s.signed(alice, greet, func(tx *block.Tx) { tx.Time = s.last.Timestamp + 1_000_000 + 300_000_001 }), true},
		{"snapshot is not looked at in this flow", "", s.signed(alice, greet, func(tx *block.Tx) { tx.Snapshot = 1 << 40 }), true},
	}
	var txs []*block.Tx
	for _, c := range cases {
		txs = append(txs, c.tx)
	}
	receipts := n.process(s.block(txs...))
	for i, c := range cases {
		r := receipts[i]
		status := Committed
		if c.code != "" {
			status = Rejected
		}
		if r.Status != status || string(codeOf(r.Err)) != c.code || r.Final != c.final {
			t.Errorf("%s: %s %v, final %v; want %s %s, final %v", c.name, r.Status, r.Err, r.Final, status, c.code, c.final)
		}
	}
	// The receipt of an id is that of its first signed transaction.
	stored, ok, err := n.chain.LookupReceipt(good.ID())
	if err != nil || !ok || stored.Position != 2 || stored.Status != Committed {
		t.Errorf("stored receipt is %+v, %v, %v", stored, ok, err)
	}
	// Nothing that was rejected left a row.
	if got := n.query("SELECT count(*) FROM pgledger WHERE block = 4 AND status = 'committed'"); got != "6\n" {
		t.Errorf("%s transactions committed", got)
	}
}

// forge copies a transaction with a false signature.
func forge(t testing.TB, tx *block.Tx) *block.Tx {
	t.Helper()
	raw := append([]byte(nil), tx.Encode()...)
	raw[len(raw)-1] ^= 1
	forged, err := block.DecodeTx(raw)
	if err != nil {
		t.Fatal(err)
	}
	return forged
}

// TestTooLongValidityConsumes: a transaction that was rejected because it is
// valid for too long cannot be played again when its time has come, be the
// node restarted or not.
func TestTooLongValidityConsumes(t *testing.T) {
	g := testGenesis(func(p *block.Params) { p.ValidityWindow = 3 })
	s, n := newSource(t, g), newNode(t, g, 1)
	call := s.call("greet", "x")
	tx := s.signed(alice, call, func(tx *block.Tx) { tx.ValidUntil = 9 })
	near := func(tx *block.Tx) { tx.ValidUntil = s.last.Number + 3 }
	if r := n.process(s.block(tx)); r[0].Status != Rejected || !r[0].Final {
		t.Fatal(summary(r))
	}
	for s.last.Number < 7 {
		n.process(s.block(s.signed(bob, call, near)))
	}
	if n.chain.Consumed(tx.ID()) {
		t.Error("the id is kept in memory")
	}
	for _, name := range []string{"running", "reopened"} {
		if r := n.process(s.block(tx)); r[0].Status != Rejected || codeOf(r[0].Err) != pgerr.DuplicateObject || r[0].Final {
			t.Errorf("%s: %s", name, summary(r))
		}
		n.reopen()
	}
}

// TestForgetsExpiredIDs bounds the memory for ids.
func TestForgetsExpiredIDs(t *testing.T) {
	g := testGenesis(func(p *block.Params) { p.ValidityWindow = 4 })
	s, n := newSource(t, g), newNode(t, g, 1)
	for range 20 {
		n.process(s.block(s.signed(alice, s.call("f"), func(tx *block.Tx) { tx.ValidUntil = s.last.Number + 3 })))
	}
	if known := len(n.chain.ids.known); known != 2 || len(n.chain.ids.expiring) != 2 {
		t.Errorf("%d ids and %d heights are remembered", known, len(n.chain.ids.expiring))
	}
	before := n.chain.ids
	n.reopen()
	after := n.chain.ids
	if len(after.known) != len(before.known) || after.farthest != before.farthest {
		t.Errorf("after a restart %d ids, farthest %d; before %d, %d", len(after.known), after.farthest, len(before.known), before.farthest)
	}
	for id := range before.known {
		if _, ok := after.known[id]; !ok {
			t.Errorf("id %s was forgotten by a restart", id)
		}
	}
}

// TestFailures: errors of the call itself are final.
func TestFailures(t *testing.T) {
	s, n := bankNode(t, testGenesis(func(p *block.Params) { p.MaxSteps, p.MaxWriteBytes = 100_000, 20_000 }))
	mustCommit(t, n.process(s.deployBlock(2, `
		CREATE FUNCTION endless() RETURNS void LANGUAGE plpgsql AS $$ BEGIN LOOP NULL; END LOOP; END $$;
		CREATE FUNCTION deep() RETURNS void LANGUAGE plpgsql AS $$ BEGIN PERFORM deep(); END $$;
		CREATE FUNCTION wide(p_n int) RETURNS void LANGUAGE plpgsql AS $$
			BEGIN INSERT INTO accounts SELECT g, 1 FROM generate_series(1000, 1000 + p_n) g; END $$;
		CREATE FUNCTION loud() RETURNS void LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION '%', repeat('ä', 100000); END $$;
		CREATE FUNCTION unassigned() RETURNS int LANGUAGE plpgsql AS $$ DECLARE r record; BEGIN RETURN r.id; END $$;
		CREATE FUNCTION nested() RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RETURN create_deploytx('DROP TABLE accounts'); END $$;
	`)))
	private := s.call("greet", "x")
	private.Schema = "private"
	unknown := s.call("greet", "x")
	unknown.ArgTypes = []string{"nonsense"}
	malformed := s.call("open_account", 3, num("1"))
	malformed.Args[0].Value = []byte{1, 2}
	for _, c := range []struct {
		name, code, message string
		call                block.Call
	}{
		{"raised", "P0001", "insufficient funds: 50 < 60", s.call("transfer", int64(1), 2, 1, num("60"))},
		{"condition", "P0002", "no such account", s.call("transfer", int64(2), 2, 77, num("60"))},
		{"unique", "23505", `duplicate key value violates unique constraint "accounts_pkey"`, s.call("open_account", 1, num("1"))},
		{"check", "23514", `new row for relation "accounts" violates check constraint "accounts_balance_check"`, s.call("open_account", 9, num("-1"))},
		{"other types", "42883", "function blockchain.greet(integer) does not exist", s.call("greet", 1)},
		{"other name", "42883", "function blockchain.grüß(text) does not exist", s.call("grüß", "x")},
		{"other schema", "42883", "function private.greet(text) does not exist", private},
		{"unknown type", "42704", `type "nonsense" does not exist`, unknown},
		{"bad value", "22P03", "incorrect binary data format in argument 1", malformed},
		{"steps", "54000", "transaction exceeds its limit of execution steps", s.call("endless")},
		{"nesting", "54001", "stack depth limit exceeded", s.call("deep")},
		{"writes", "54000", "transaction writes more than 20000 bytes", s.call("wide", 3000)},
		{"unassigned record", "55000", `record "r" is not assigned yet`, s.call("unassigned")},
		{"system contract from a contract", "42704", `language "system" does not exist`, s.call("nested")},
		{"system contract of a client", "42501", "permission denied for function create_deploytx", s.call("create_deploytx", "DROP TABLE accounts")},
	} {
		r := n.process(s.block(s.signed(alice, c.call, nil)))[0]
		if r.Status != Failed || string(r.Err.Code) != c.code || r.Err.Message != c.message {
			t.Errorf("%s: %s %v", c.name, r.Status, r.Err)
		}
		if stored, ok, err := n.chain.LookupReceipt(r.ID); err != nil || !ok || stored.Status != Failed || stored.Err.Message != r.Err.Message {
			t.Errorf("%s: stored receipt %+v, %v", c.name, stored, err)
		}
	}
	r := n.process(s.block(s.tx(alice, "loud")))[0]
	if m := r.Err.Message; r.Status != Failed || len(m) > maxTextBytes+3 || !strings.HasSuffix(m, "ä...") {
		t.Errorf("a long message is kept in %d bytes", len(m))
	}
	if got := n.query("SELECT * FROM accounts"); got != "1|100\n2|50\n" {
		t.Errorf("failed transactions left\n%s", got)
	}
}

// TestBlockBudget: what the block has no room for aborts in block order, and
// smaller ones after it still fit.
func TestBlockBudget(t *testing.T) {
	s, n := bankNode(t, testGenesis(func(p *block.Params) { p.MaxWriteBytes, p.MaxBlockWriteBytes = 20_000, 20_000 }))
	mustCommit(t, n.process(s.deployBlock(2, `
		CREATE TABLE notes (id int PRIMARY KEY, body text);
		CREATE FUNCTION note(p_id int, p_n int) RETURNS void LANGUAGE plpgsql AS $$ BEGIN INSERT INTO notes VALUES (p_id, repeat('x', p_n)); END $$;
	`)))
	r := n.process(s.block(
		s.tx(alice, "note", 1, 12_000), s.tx(alice, "note", 2, 12_000), s.tx(alice, "note", 3, 5_000), s.tx(alice, "note", 4, 5_000),
		s.tx(admin1, "create_deploytx", "DROP TABLE notes; -- "+strings.Repeat("x", 5_000)),
	))
	want := "1 committed\n2 aborted 54000 block writes more than 20000 bytes\n3 committed\n4 aborted 54000 block writes more than 20000 bytes\n5 aborted 54000 block writes more than 20000 bytes\n"
	if got := summary(r); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if got := n.query("SELECT id FROM notes") + n.query("SELECT id FROM deploytx WHERE status = 'proposed'"); got != "1\n3\n" {
		t.Errorf("rows are\n%s", got)
	}
	if m := n.chain.Metrics(); m.Aborts[CauseBudget] != 3 {
		t.Errorf("metrics: %+v", m)
	}
}

// TestUsersHoldFromTheNextBlock also covers rotation and revocation.
func TestUsersHoldFromTheNextBlock(t *testing.T) {
	s, n := bankNode(t, testGenesis(nil))
	carol := identity.UserID{Org: "org1", Name: "carol"}
	first, second := signerOf(60), signerOf(61)
	key := func(x *identity.Signer) []byte { k := x.Public(); return k[:] }
	as := func(x *identity.Signer) *block.Tx { signers[carol] = x; return s.tx(carol, "greet", "x") }
	expect := func(what string, want Status, txs ...*block.Tx) {
		t.Helper()
		r := n.process(s.block(txs...))
		if got := r[len(r)-1]; got.Status != want {
			t.Errorf("%s: %s %v", what, got.Status, got.Err)
		}
	}
	expect("created in the same block", Rejected, s.tx(admin1, "create_user", "org1", "carol", "client", key(first)), as(first))
	expect("in the next block", Committed, as(first))
	expect("rotated in the same block", Committed, s.tx(admin1, "update_user", "org1", "carol", key(second)), as(first))
	expect("old key", Rejected, as(first))
	expect("new key", Committed, as(second))
	n.reopen()
	expect("new key after a restart", Committed, as(second))
	expect("revoked in the same block", Committed, s.tx(admin1, "delete_user", "org1", "carol"), as(second))
	expect("revoked", Rejected, as(second))
	u, ok := n.chain.User(carol)
	if !ok || u.Active() || u.Revoked != 9 || u.Since != 5 || u.Key != second.Public() || u.Role != identity.Client {
		t.Errorf("user is %+v, %v", u, ok)
	}
	for height, want := range map[uint64]int{0: 4, 2: 4, 3: 5, 10: 5} {
		if users, err := n.chain.Users(height); err != nil || len(users) != want {
			t.Errorf("%d users at block %d, want %d; %v", len(users), height, want, err)
		}
	}
	if users, _ := n.chain.Users(3); users[2].ID != carol || users[2].Key != first.Public() || !users[2].Active() {
		t.Errorf("user at block 3 is %+v", users[2])
	}
}

// TestDeployInTheMiddle: transactions of a block run on the old version of a
// function, those of the next block on the new one.
func TestDeployInTheMiddle(t *testing.T) {
	s, n := bankNode(t, testGenesis(nil))
	script := `CREATE OR REPLACE FUNCTION greet(p_name text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RETURN 'good day ' || p_name; END $$`
	r := n.process(s.deployBlock(2, script, s.tx(alice, "greet", "x")))
	mustCommit(t, r)
	b := s.block(s.tx(alice, "greet", "x"))
	next := n.process(b)
	mustCommit(t, next)
	if got := string(r[0].Result) + string(next[0].Result); !strings.Contains(got, "hello x") || !strings.Contains(got, "good day x") {
		t.Errorf("results are %q", got)
	}
	// An error in the system phase leaves nothing of its transaction, and what
	// comes after it goes on.
	r = n.process(s.block(
		s.tx(admin1, "create_deploytx", "CREATE TABLE a (id int PRIMARY KEY); CREATE TABLE accounts (id int PRIMARY KEY)"),
		s.tx(admin1, "approve_deploytx", int64(3)), s.tx(admin2, "approve_deploytx", int64(3)), s.tx(admin1, "submit_deploytx", int64(3)),
		s.tx(admin1, "create_deploytx", "CREATE TABLE a (id int PRIMARY KEY)"),
		s.tx(admin1, "approve_deploytx", int64(4)), s.tx(admin2, "approve_deploytx", int64(4)), s.tx(admin1, "submit_deploytx", int64(4)),
	))
	if got := summary(r); got != "1 committed\n2 committed\n3 committed\n4 failed 42P07 relation \"accounts\" already exists\n5 committed\n6 committed\n7 committed\n8 committed\n" {
		t.Error(got)
	}
}

// TestConflicts shows the errors of in-block conflicts, per rule.
func TestConflicts(t *testing.T) {
	for _, c := range []struct{ rule, want string }{
		{block.RuleAbortDuringCommit, "1 committed\n2 aborted 40001 could not serialize access due to read/write dependencies among transactions\n"},
		{block.RuleBlockAware, "1 committed\n2 aborted 40001 could not serialize access due to read/write dependencies among transactions\n"},
		{block.RuleExact, "1 committed\n2 aborted 40001 could not serialize access due to concurrent update\n"},
	} {
		s, n := bankNode(t, testGenesis(func(p *block.Params) { p.Rule = c.rule }))
		first := s.tx(alice, "transfer", int64(1), 1, 2, num("1"))
		r := n.process(s.block(first, s.tx(bob, "transfer", int64(2), 2, 1, num("1"))))
		if got := summary(r); got != c.want {
			t.Errorf("%s: got\n%s", c.rule, got)
		}
		d := r[1].Err.Detail
		if !strings.Contains(d, c.rule) || !strings.Contains(d, first.ID().String()) || !strings.Contains(d, "position 1") {
			t.Errorf("%s: detail is %q", c.rule, d)
		}
	}
}

// TestStaleSnapshots covers the snapshots of the other flow.
func TestStaleSnapshots(t *testing.T) {
	s, n := bankNode(t, testGenesis(func(p *block.Params) {
		p.Flow, p.Rule, p.SnapshotWindow = block.FlowExecuteOrderInParallel, block.RuleBlockAware, 3
	}))
	at := func(h uint64) func(*block.Tx) { return func(tx *block.Tx) { tx.Snapshot = h } }
	mustCommit(t, n.process(s.block(s.tx(alice, "open_account", 3, num("10")), s.tx(alice, "transfer", int64(1), 1, 2, num("1")))))
	r := n.process(s.block(
		s.signed(bob, s.call("transfer", int64(2), 1, 3, num("1")), at(2)),  // read account 1, which block 3 changed
		s.signed(bob, s.call("transfer", int64(3), 1, 3, num("1")), at(3)),  // read the newest
		s.signed(bob, s.call("open_account", 4, num("1")), at(2)),           // read nothing that changed
		s.signed(bob, s.call("transfer", int64(4), 77, 1, num("1")), at(2)), // would fail, but is stale
		s.signed(bob, s.call("greet", "x"), at(0)),                          // the function did not exist: stale before failing
		s.signed(bob, s.call("greet", "x"), at(4)),                          // reads its own block
	))
	want := "1 aborted 40001 could not serialize access due to read/write dependencies among transactions\n" +
		"2 committed\n3 committed\n" +
		"4 aborted 40001 could not serialize access due to read/write dependencies among transactions\n" +
		"5 aborted 40001 could not serialize access due to read/write dependencies among transactions\n" +
		"6 rejected 25000 transaction has read a block that did not exist\n"
	if got := summary(r); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if d := r[0].Err.Detail; !strings.Contains(d, "position 2 of block 3") || !strings.Contains(d, "at block 2") {
		t.Errorf("detail is %q", d)
	}
	n.process(s.block())
	r = n.process(s.block(s.signed(bob, s.call("greet", "x"), at(1)), s.signed(bob, s.call("greet", "x"), at(2))))
	if got := summary(r); got != "1 rejected 72000 snapshot too old\n2 committed\n" {
		t.Errorf("got\n%s", got)
	}
}

// TestInvalidBlocks: a block that is not the next one of this chain is an error,
// leaves no trace, and ends the processing.
func TestInvalidBlocks(t *testing.T) {
	for _, c := range []struct {
		name, want string
		change     func(s *source, b *block.Block)
	}{
		{"number", "does not follow", func(_ *source, b *block.Block) { b.Number++ }},
		{"link", "does not link", func(_ *source, b *block.Block) { b.PrevHash[0] ^= 1 }},
		{"time", "is not after", func(_ *source, b *block.Block) { b.Timestamp -= 1_000_000 }},
		{"configuration", "names configuration", func(_ *source, b *block.Block) { b.ConfigID[0] ^= 1 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, n := bankNode(t, testGenesis(nil))
			good := s.block(s.tx(alice, "greet", "x"))
			bad := &block.Block{Number: good.Number, PrevHash: good.PrevHash, ConfigID: good.ConfigID, Timestamp: good.Timestamp, Txs: good.Txs}
			c.change(s, bad)
			n.refuses(certify(bad, s.network), good, c.want)
		})
	}
	for _, c := range []struct {
		name, want string
		change     func(b *block.Block)
	}{
		{"digest", "have digest", func(b *block.Block) { b.Txs = b.Txs[:1] }},
		{"no certificate", "certificate", func(b *block.Block) { b.Certificate = nil }},
		{"false certificate", "does not verify", func(b *block.Block) { b.Certificate[len(b.Certificate)-1] ^= 1 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, n := bankNode(t, testGenesis(nil))
			good := s.block(s.tx(alice, "greet", "x"), s.tx(bob, "greet", "x"))
			bad := *good
			bad.Certificate = append([]byte(nil), good.Certificate...)
			c.change(&bad)
			n.refuses(&bad, good, c.want)
		})
	}
}

// refuses expects that a block is an error and that the chain processes not
// even a good one after it.
func (n *node) refuses(bad, good *block.Block, want string) {
	n.tb.Helper()
	height, _, state := n.chain.Tip()
	if _, err := n.chain.Process(bad); err == nil || !strings.Contains(err.Error(), want) {
		n.tb.Errorf("error is %v, want one with %q", err, want)
	}
	if _, err := n.chain.Process(good); err == nil || !strings.Contains(err.Error(), "failed earlier") {
		n.tb.Errorf("a block after the fault: %v", err)
	}
	if h, _, s := n.chain.Tip(); h != height || s != state || n.store.Height() != height {
		n.tb.Errorf("the chain went on to block %d, the store to %d", h, n.store.Height())
	}
}

// TestFaultsAreNoVerdicts: a panic, an error without SQLSTATE and an internal one
// stop the node, and a restart without the fault goes on from before the block.
func TestFaultsAreNoVerdicts(t *testing.T) {
	for _, c := range []struct {
		name, want string
		call       func() error
	}{
		{"panic", "index out of range", func() error { _ = []int{}[len(c0)]; return nil }},
		{"fault", "disk on fire", func() error { return errors.New("disk on fire") }},
		{"internal", "corrupt stored row", func() error { return pgerr.New(pgerr.DataCorrupted, "corrupt stored row") }},
		{"resources", "out of memory", func() error { return pgerr.New(pgerr.OutOfMemory, "out of memory") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, n := bankNode(t, testGenesis(nil))
			c0 = ""
			n.chain.engine = sql.NewEngine(n.store, &exec.Functions{
				Call: func(*exec.Env, *catalog.Func, []datum.Datum) (datum.Datum, error) { return datum.Null, c.call() },
			}, sql.EngineOptions{})
			b := s.block(s.tx(alice, "greet", "x"))
			n.refuses(b, b, c.want)
			if err := n.blocks.Append(b); err != nil {
				t.Fatal(err)
			}
			n.reopen()
			if r, ok, err := n.chain.LookupReceipt(b.Txs[0].ID()); err != nil || !ok || r.Status != Committed {
				t.Errorf("after the restart: %+v, %v", r, err)
			}
		})
	}
}

// c0 keeps the compiler from seeing that an index is out of range.
var c0 string

func (n *node) state(h uint64) block.Hash {
	n.tb.Helper()
	state, err := n.chain.StateHash(h)
	if err != nil {
		n.tb.Fatal(err)
	}
	return state
}

// TestGolden pins state hashes: what is hashed is part of the protocol, and so is
// the stored form of the rows that this chain writes. It deploys nothing, because
// the form of catalog rows is package catalog's.
func TestGolden(t *testing.T) {
	g := testGenesis(nil)
	s, n := newSource(t, g), newNode(t, g, 1)
	key := signerOf(70).Public()
	n.process(s.block(
		s.tx(alice, "greet", "x"),
		s.tx(admin1, "create_deploytx", "CREATE TABLE t (id int PRIMARY KEY)"),
		s.tx(admin1, "create_user", "org1", "carol", "client", key[:]),
	))
	n.process(s.block())
	for h, want := range []string{
		"803457d94e95888ca60d43e961bac5f7c99b4fe1c0c94347ba6fd85fb3d11ec4",
		"73cfbee54b4b682a465eff464fa798fcacb1b8fa13387ef3a03f4840a0111ffe",
		"7e2a5c56e05afda660ac21098e534d7467d3d57e032c418c9593b09ec049c304",
	} {
		if got := n.state(uint64(h)).String(); got != want {
			t.Errorf("state hash of block %d is %s, want %s", h, got, want)
		}
	}
}

// TestOpenRefuses: a state that was not made from these blocks.
func TestOpenRefuses(t *testing.T) {
	_, n := bankNode(t, testGenesis(nil))
	_, other := bankNode(t, testGenesis(func(p *block.Params) { p.BlockTxs = 7 }))
	for _, c := range []struct {
		name, want string
		change     func(o *Options)
	}{
		{"another network", "of network", func(o *Options) { o.Blocks = other.blocks }},
		{"no engine", "are needed", func(o *Options) { o.Engine = nil }},
		{"workers", "number of workers", func(o *Options) { o.Workers = -1 }},
		{"lost blocks", "blocks were lost", func(o *Options) { o.Blocks = newNode(t, testGenesis(nil), 1).blocks }},
		{"another block", "is not the one", func(o *Options) {
			fork, fs := newSource(t, testGenesis(nil)), newNode(t, testGenesis(nil), 1)
			fs.process(fork.block())
			fs.process(fork.block())
			o.Blocks = fs.blocks
		}},
	} {
		o := n.options()
		c.change(&o)
		if _, err := Open(o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error is %v, want one with %q", c.name, err, c.want)
		}
	}
	for _, c := range []struct {
		want   string
		change func(p *block.Params)
	}{
		{"engine version 2", func(p *block.Params) { p.EngineVersion = 2 }},
	} {
		bare := openNode(t, testGenesis(c.change))
		if _, err := Open(bare.options()); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error is %v, want one with %q", err, c.want)
		}
	}
}
