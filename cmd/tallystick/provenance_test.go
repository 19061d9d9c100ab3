package main_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/tallystick/tallystick/internal/e2e"
)

// SELECT * of a provenance relation shows the columns of the table and those of
// its versions, and these agree with each other and with the ledger.
func TestProvenanceColumns(t *testing.T) {
	n := e2e.Start(t)
	n.MustPsql(e2e.Admin, accounts)
	n.MustPsql("alice", "SELECT open_accounts(1, 2, 100); SELECT transfer('1', '2', 30)")
	conn := open(t, n, "alice")
	rows, err := conn.Query(context.Background(), "SELECT * FROM provenance.accounts ORDER BY creator_block, id")
	if err != nil {
		t.Fatal(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToMap)
	if err != nil {
		t.Fatal(err)
	}
	if len(list) != 4 {
		t.Fatalf("%d versions, want 4: %v", len(list), list)
	}
	committed := map[int64]bool{}
	for _, txid := range column[int64](t, conn, "SELECT txid FROM pgledger WHERE status = 'committed'") {
		committed[txid] = true
	}
	const positions = 20 // bits of a transaction number below the block
	for i, v := range list {
		xmin, ok1 := v["xmin"].(int64)
		creator, ok2 := v["creator_block"].(int64)
		if _, ok := v["id"].(string); !ok || !ok1 || !ok2 {
			t.Fatalf("version %d: %v", i, v)
		}
		if xmin>>positions != creator || !committed[xmin] {
			t.Errorf("version %d: xmin %d, created in block %d", i, xmin, creator)
		}
		replaced := i < 2
		// As in PostgreSQL, the xmax of a live row is 0.
		xmax, isMax := v["xmax"].(int64)
		deleter, hasDeleter := v["deleter_block"].(int64)
		if !isMax || (xmax != 0) != replaced || hasDeleter != replaced {
			t.Errorf("version %d: xmax %v, deleter_block %v", i, v["xmax"], v["deleter_block"])
		} else if replaced && (xmax>>positions != deleter || deleter <= creator || !committed[xmax]) {
			t.Errorf("version %d: xmax %d, deleted in block %d, created in %d", i, xmax, deleter, creator)
		}
	}
}
