package chain

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tallystick/tallystick/blockstore/block"
)

func reexecuting(p *block.Params) { p.Conflicts = block.ConflictsReexecute }

// TestHotRow: everybody takes from one account, and everybody gets through.
func TestHotRow(t *testing.T) {
	for rounds := range uint64(4) {
		for _, flow := range []string{block.FlowOrderThenExecute, block.FlowExecuteOrderInParallel} {
			g := testGenesis(func(p *block.Params) { reexecuting(p); p.Flow, p.ReexecuteRounds = flow, rounds+1 })
			s, n := bankNode(t, g)
			var txs []*block.Tx
			for i := range 50 {
				tx := s.tx(alice, "transfer", int64(i), 1, 2, num("1"))
				n.chain.Speculate(tx)
				txs = append(txs, tx)
			}
			b := s.block(txs...)
			mustCommit(t, n.process(b))
			if got := n.query("SELECT balance FROM accounts"); got != "50\n100\n" {
				t.Errorf("balances are %s", got)
			}
			// Commit sequences count on from round to round: the last one is that of
			// the transaction after which the state is as it is, and every version is
			// kept.
			if got := n.query("SELECT count(*), count(DISTINCT xmin), min(balance) FROM provenance.accounts WHERE id = 1"); got != "51|51|50\n" {
				t.Errorf("versions of the hot row: %s", got)
			}
			if got := n.query("SELECT count(*) FROM pgledger WHERE block = 3 AND snapshot = 2"); got != "50\n" {
				t.Errorf("%s transactions have read block 2", got)
			}
			n.replays(g)
		}
	}
}

// TestReexecutionEndsInOwnErrors: whoever finds nothing left fails by the
// contract's error, in the last state, and finally.
func TestReexecutionEndsInOwnErrors(t *testing.T) {
	s, n := bankNode(t, testGenesis(reexecuting)) // account 1 has 100
	var txs []*block.Tx
	for i := range 8 {
		txs = append(txs, s.tx(alice, "transfer", int64(i), 1, 2, num("30")))
	}
	want := "1 committed\n2 committed\n3 committed\n"
	for i := 4; i <= 8; i++ {
		want += fmt.Sprintf("%d failed P0001 insufficient funds: 10 < 30\n", i)
	}
	if got := summary(n.process(s.block(txs...))); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// TestFailureIsTriedAgain: a failure on what an earlier transaction of the block
// changes is no outcome; one on what a later transaction changes is.
func TestFailureIsTriedAgain(t *testing.T) {
	for conflicts, want := range map[string]string{
		block.ConflictsReexecute: "1 failed P0001 insufficient funds: 50 < 60\n2 committed\n3 committed\n",
		block.ConflictsAbort: "1 failed P0001 insufficient funds: 50 < 60\n2 committed\n" +
			"3 failed P0001 insufficient funds: 50 < 60\n",
	} {
		s, n := bankNode(t, testGenesis(func(p *block.Params) { p.Conflicts = conflicts }))
		got := summary(n.process(s.block(
			s.tx(alice, "transfer", int64(1), 2, 1, num("60")),
			s.tx(alice, "transfer", int64(2), 1, 2, num("20")),
			s.tx(alice, "transfer", int64(3), 2, 1, num("60")))))
		if got != want {
			t.Errorf("%s: got\n%swant\n%s", conflicts, got, want)
		}
	}
}

// TestNoReexecute: whoever opts out gets 40001, is stale once and for all, and
// takes no place from anybody.
func TestNoReexecute(t *testing.T) {
	s, n := bankNode(t, testGenesis(func(p *block.Params) { eop(p); reexecuting(p) }))
	out := func(tx *block.Tx) { tx.Flags = block.NoReexecute }
	stale := s.signed(alice, s.call("transfer", int64(1), 1, 2, num("1")), out)
	again := s.tx(alice, "transfer", int64(2), 1, 2, num("1"))
	first := s.tx(alice, "transfer", int64(3), 1, 2, num("1"))
	mustCommit(t, n.process(s.block(first)))
	r := n.process(s.block(
		stale, again, s.tx(alice, "transfer", int64(4), 1, 2, num("1")),
		s.signed(alice, s.call("transfer", int64(5), 1, 2, num("1")), out)))
	want := "1 aborted 40001 could not serialize access due to read/write dependencies among transactions\n2 committed\n3 committed\n" +
		"4 aborted 40001 could not serialize access due to read/write dependencies among transactions\n"
	if got := summary(r); got != want {
		t.Errorf("got\n%s", got)
	}
	if !strings.Contains(r[0].Err.Detail, "at block 2") {
		t.Errorf("detail is %q", r[0].Err.Detail)
	}
	// What was read in the end is in the ledger: the signed snapshot was block 2.
	if got := n.query("SELECT position, snapshot FROM pgledger WHERE block = 4 ORDER BY position"); got != "1|2\n2|3\n3|3\n4|3\n" {
		t.Errorf("snapshots are\n%s", got)
	}
}

// TestReexecutionKeepsTheBudget: what has no room in the block is not tried again.
func TestReexecutionKeepsTheBudget(t *testing.T) {
	s, n := bankNode(t, testGenesis(func(p *block.Params) { reexecuting(p); p.MaxWriteBytes, p.MaxBlockWriteBytes = 20_000, 20_000 }))
	var txs []*block.Tx
	for i := range 400 {
		txs = append(txs, s.tx(alice, "transfer", int64(i), 1, 2, num("0.01")))
	}
	receipts := n.process(s.block(txs...))
	committed := 0
	for _, r := range receipts {
		switch {
		case r.Status == Committed:
			committed++
		case r.Status != Aborted || r.Err.Code != "54000":
			t.Errorf("position %d is %s: %v", r.Position, r.Status, r.Err)
		}
	}
	if committed == 0 || committed == 400 {
		t.Errorf("%d committed", committed)
	}
}

// TestSystemPhaseComesLast: deployments see what the rounds have left.
func TestSystemPhaseComesLast(t *testing.T) {
	s, n := bankNode(t, testGenesis(reexecuting))
	var txs []*block.Tx
	for i := range 5 {
		txs = append(txs, s.tx(alice, "transfer", int64(i), 1, 2, num("1")))
	}
	mustCommit(t, n.process(s.deployBlock(2, "ALTER TABLE accounts ADD COLUMN note text DEFAULT 'x'", txs...)))
	if got := n.query("SELECT id, balance, note FROM accounts"); got != "1|95|x\n2|55|x\n" {
		t.Error(got)
	}
}
