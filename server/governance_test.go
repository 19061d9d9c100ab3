package server

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/identity"
)

// TestConfigurationBySQL: an admin with nothing but psql changes how blocks are
// cut and lets an organization in. The node hands the configuration transaction to
// the orderer, which goes on under the new configuration; so does the node after a
// restart, and the whole verifies.
func TestConfigurationBySQL(t *testing.T) {
	for _, orderer := range []string{block.OrdererSolo, block.OrdererRaft} {
		t.Run(orderer, func(t *testing.T) { configurationBySQL(t, orderer) })
	}
}

func configurationBySQL(t *testing.T, orderer string) {
	dir := filepath.Join(t.TempDir(), "data")
	r := startChosen(t, dir, Choices{Orderer: orderer})
	conn, err := r.connect("admin")
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	exec := func(q string, args ...any) {
		t.Helper()
		if _, err := conn.Exec(ctx, q, args...); err != nil {
			t.Fatalf("%s: %v", q, err)
		}
	}
	partner := identity.NewSigner([32]byte{1, 2, 3}).Public()
	change := fmt.Sprintf(`{"block_txs": 5, "add_organizations": {"partner": {"root": "%s"}}}`, partner)
	var id int64
	var config []byte
	if err := conn.QueryRow(ctx, "SELECT create_configtx($1)", change).Scan(&id); err != nil {
		t.Fatal(err)
	}
	if err := conn.QueryRow(ctx, "SELECT config_id FROM deploytx WHERE id = $1", id).Scan(&config); err != nil {
		t.Fatal(err)
	}
	exec("SELECT approve_configtx($1, $2)", id, config)
	exec("SELECT submit_deploytx($1)", id)
	var status string
	for deadline := time.Now().Add(30 * time.Second); status != "deployed"; time.Sleep(10 * time.Millisecond) {
		if err := conn.QueryRow(ctx, "SELECT status FROM deploytx WHERE id = $1", id).Scan(&status); err != nil {
			t.Fatal(err)
		}
		if time.Now().After(deadline) {
			t.Fatalf("the proposal is %s", status)
		}
	}
	var from int64
	if err := conn.QueryRow(ctx, "SELECT from_block FROM configs WHERE number = 1").Scan(&from); err != nil {
		t.Fatal(err)
	}
	for r.Height() < uint64(from)+2 {
		exec("SELECT comment_deploytx($1, 'time passes')", id)
	}
	if got := r.state.chain.Params().BlockTxs; got != 5 {
		t.Errorf("blocks are cut at %d", got)
	}
	var users int
	if err := conn.QueryRow(ctx, "SELECT count(*) FROM pgcerts WHERE org = 'partner' AND role = 'admin'").Scan(&users); err != nil || users != 1 {
		t.Errorf("%d admins of the new organization, %v", users, err)
	}
	conn.Close(ctx)
	r.close()
	r = startChosen(t, dir, Choices{Orderer: orderer})
	if conn, err = r.connect("admin"); err != nil {
		t.Fatal(err)
	}
	exec("SELECT comment_deploytx($1, 'after a restart')", id)
	conn.Close(ctx)
	r.close()
	report, err := Verify(ctx, dir, VerifyOptions{Replay: true})
	if err != nil {
		t.Fatalf("verify: %v", err)
	}
	if !report.StateCompared || report.Tip < uint64(from) {
		t.Errorf("report %+v", report)
	}
}
