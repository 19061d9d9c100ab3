package main_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/tallystick/tallystick/internal/e2e"
)

// accounts is the schema of the transfer tests.
const accounts = `
CREATE TABLE accounts(id text PRIMARY KEY, owner text NOT NULL, balance numeric NOT NULL CHECK (balance >= 0));
CREATE FUNCTION open_accounts(first int, last int, amount numeric) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  FOR i IN first..last LOOP
    INSERT INTO accounts VALUES (i::text, 'alice', amount);
  END LOOP;
END $$;
CREATE FUNCTION transfer(a text, b text, amount numeric) RETURNS numeric LANGUAGE plpgsql AS $$
DECLARE
  have numeric;
BEGIN
  SELECT balance INTO have FROM accounts WHERE id = a;
  IF NOT FOUND OR have < amount THEN
    RAISE EXCEPTION 'insufficient funds in account %', a;
  END IF;
  UPDATE accounts SET balance = balance - amount WHERE id = a;
  UPDATE accounts SET balance = balance + amount WHERE id = b;
  RETURN have - amount;
END $$;
`

const (
	benchAccounts = 200
	benchBalance  = 1_000_000
)

// pgbench with eight clients: every transaction goes through in the end, those
// that lost a conflict (40001, the only error that pgbench tries again) included,
// and not a coin is made or lost.
func TestPgbenchTransfer(t *testing.T) {
	n := e2e.Start(t)
	n.MustPsql(e2e.Admin, accounts)
	n.MustPsql("alice", "SELECT open_accounts(1, 200, 1000000)")
	script := filepath.Join(t.TempDir(), "transfer.sql")
	text := "\\set a random(1, 200)\n\\set b random(1, 200)\n\\set amount random(1, 100)\nSELECT transfer(:a, :b, :amount);\n"
	if err := os.WriteFile(script, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := n.Pgbench("alice", "-n", "-M", "prepared", "-c", "8", "-j", "2", "-T", "5",
		"--max-tries=1000", "--failures-detailed", "-f", script)
	if err != nil {
		t.Fatalf("pgbench: %v\n%s", err, out)
	}
	t.Log(out)
	processed := report(t, out, `number of transactions actually processed: (\d+)`)
	if processed == 0 {
		t.Error("no transaction was processed")
	}
	failed := report(t, out, `number of failed transactions: (\d+)`)
	if serialization := report(t, out, `number of serialization failures: (\d+)`); failed != serialization {
		t.Errorf("%d transactions failed, only %d of them with 40001", failed, serialization)
	}
	if got := n.MustPsql(e2e.Admin, "SELECT sum(balance), count(*) FROM accounts"); got != strconv.Itoa(benchAccounts*benchBalance)+"|"+strconv.Itoa(benchAccounts) {
		t.Errorf("sum and count of accounts: %s", got)
	}
	// What pgbench saw succeed is what the ledger says committed.
	if got := n.MustPsql(e2e.Admin, "SELECT count(*) FROM pgledger WHERE function = 'blockchain.transfer' AND status = 'committed'"); got != strconv.Itoa(processed) {
		t.Errorf("pgbench counts %d transactions, the ledger %s", processed, got)
	}
}

// pgbench in the other flow, on two accounts that everybody wants: with
// --conflicts reexecute nobody has to try again.
func TestPgbenchHotRow(t *testing.T) {
	n := e2e.Start(t, "--flow", "execute-order-in-parallel", "--conflicts", "reexecute")
	n.MustPsql(e2e.Admin, accounts)
	n.MustPsql("alice", "SELECT open_accounts(1, 2, 1000000)")
	script := filepath.Join(t.TempDir(), "hot.sql")
	if err := os.WriteFile(script, []byte("SELECT transfer('1', '2', 1);\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := n.Pgbench("alice", "-n", "-M", "prepared", "-c", "8", "-j", "2", "-t", "50", "--failures-detailed", "-f", script)
	if err != nil {
		t.Fatalf("pgbench: %v\n%s", err, out)
	}
	t.Log(out)
	if got := report(t, out, `number of failed transactions: (\d+)`); got != 0 {
		t.Errorf("%d transactions failed", got)
	}
	if got := n.MustPsql(e2e.Admin, "SELECT balance FROM accounts WHERE id = '1'"); got != strconv.Itoa(1000000-400) {
		t.Errorf("balance is %s after 400 transfers of 1", got)
	}
	if got := n.MustPsql(e2e.Admin, "SELECT count(*) FROM pgledger WHERE status = 'aborted'"); got != "0" {
		t.Errorf("%s transactions were aborted", got)
	}
	checkReplay(t, n)
}

// report finds a number in what pgbench printed.
func report(t *testing.T, out, pattern string) int {
	t.Helper()
	m := regexp.MustCompile(pattern).FindStringSubmatch(out)
	if m == nil {
		t.Fatalf("%s is not in the report:\n%s", pattern, out)
	}
	n, err := strconv.Atoi(m[1])
	if err != nil {
		t.Fatal(err)
	}
	return n
}
