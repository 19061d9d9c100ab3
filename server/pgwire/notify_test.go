package pgwire

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
)

// TestNotifyIdle: a connection that waits for its client is told at once.
func TestNotifyIdle(t *testing.T) {
	_, addr := start(t, nil)
	one, two := connect(t, addr), connect(t, addr)
	one.query("listen ch")
	for i := range 3 {
		payload := fmt.Sprint("message ", i)
		two.query("notify ch, '" + payload + "'")
		if err := one.nc.SetReadDeadline(time.Now().Add(5 * time.Second)); err != nil {
			t.Fatal(err)
		}
		m, err := one.fe.Receive()
		n, ok := m.(*pgproto3.NotificationResponse)
		if err != nil || !ok || n.Payload != payload || n.PID == 0 {
			t.Fatalf("received %#v, %v", m, err)
		}
	}
	if got := one.query("select 1"); len(got) != 4 {
		t.Error(got)
	}
}

// TestNotifyBetweenMessages: notifications that come while large messages are
// on their way break none of them.
func TestNotifyBetweenMessages(t *testing.T) {
	_, addr := start(t, nil)
	const messages, size = 60, 100_000
	listener, sender := dialPgx(t, addr), dialPgx(t, addr)
	ctx := context.Background()
	if _, err := listener.Exec(ctx, "listen ch"); err != nil {
		t.Fatal(err)
	}
	sent := make(chan error, 1)
	go func() {
		for i := range messages * 10 {
			if _, err := sender.Exec(ctx, fmt.Sprintf("notify ch, '%d'", i)); err != nil {
				sent <- err
				return
			}
		}
		sent <- nil
	}()
	long := strings.Repeat("x", size)
	for range messages {
		var n int
		if err := listener.QueryRow(ctx, "select length($1::text)", long).Scan(&n); err != nil || n != size {
			t.Fatal(n, err)
		}
	}
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	for i := range messages * 10 {
		wait, cancel := context.WithTimeout(ctx, 5*time.Second)
		n, err := listener.WaitForNotification(wait)
		cancel()
		if err != nil || n.Payload != fmt.Sprint(i) {
			t.Fatalf("notification %d: %v, %v", i, n, err)
		}
	}
}
