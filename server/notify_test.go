package server

import (
	"context"
	"encoding/json"
	"testing"
	"time"
)

// TestNotifications: a session hears of every transaction and every block.
func TestNotifications(t *testing.T) {
	n := startNode(t, t.TempDir())
	defer n.close()
	n.work()
	conn, err := n.connect("alice")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, "LISTEN "+BlockChannel+"; LISTEN "+TxChannel); err != nil {
		t.Fatal(err)
	}
	other, err := n.connect("alice")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close(ctx)
	for _, c := range []struct{ call, status, state string }{
		{"SELECT take(3, 'third')", "committed", ""},
		{"SELECT take(3, 'again')", "failed", "23505"},
	} {
		_, err := other.Exec(ctx, c.call)
		if err == nil != (c.state == "") || err != nil && sqlState(err) != c.state {
			t.Fatalf("%s: %v", c.call, err)
		}
		var tx txNote
		var b blockNote
		for _, into := range []any{&tx, &b} {
			m, err := conn.WaitForNotification(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal([]byte(m.Payload), into); err != nil {
				t.Fatalf("%s: %v", m.Payload, err)
			}
		}
		if tx.Status != c.status || tx.SQLState != c.state || len(tx.ID) != 64 || tx.Block != b.Height {
			t.Errorf("%s: transaction %+v", c.call, tx)
		}
		hash, err := n.state.chain.StateHash(b.Height)
		if err != nil || b.StateHash != hash.String() || b.Transactions != 1 {
			t.Errorf("%s: block %+v, hash %s, %v", c.call, b, hash, err)
		}
	}
}
