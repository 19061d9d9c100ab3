package client_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/client"
	"github.com/tallystick/tallystick/identity"
	"github.com/tallystick/tallystick/internal/e2e"
)

func TestMain(m *testing.M) { e2e.Main(m) }

const schema = `
CREATE TABLE accounts(id text PRIMARY KEY, balance numeric NOT NULL CHECK (balance >= 0));
CREATE TYPE mood AS ENUM ('calm', 'angry');
CREATE FUNCTION open_account(id text, balance numeric) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO accounts VALUES (id, balance);
END $$;
CREATE FUNCTION transfer(a text, b text, amount numeric, OUT left_a numeric, OUT left_b numeric) LANGUAGE plpgsql AS $$
BEGIN
  UPDATE accounts SET balance = balance - amount WHERE id = a RETURNING balance INTO left_a;
  UPDATE accounts SET balance = balance + amount WHERE id = b RETURNING balance INTO left_b;
END $$;
CREATE FUNCTION transfer(a text, b text, amount int) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  RETURN 'whole numbers';
END $$;
CREATE PROCEDURE note(id text) LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO accounts VALUES (id, 0);
END $$;
CREATE FUNCTION rows(n int) RETURNS TABLE(i int, t text) LANGUAGE plpgsql AS $$
BEGIN
  FOR k IN 1..n LOOP
    i := k; t := CASE WHEN k % 2 = 0 THEN repeat('x', k) END;
    RETURN NEXT;
  END LOOP;
END $$;
`

// start runs a network of one node with the schema, and connects alice to it.
func start(t *testing.T, change func(*client.Config)) (*e2e.Node, *client.Client) {
	t.Helper()
	n := e2e.Start(t)
	n.MustPsql(e2e.Admin, schema)
	return n, connect(t, n, change)
}

func connect(t *testing.T, n *e2e.Node, change func(*client.Config)) *client.Client {
	t.Helper()
	key, err := identity.LoadKey(filepath.Join(n.Dir, "keys", "alice.pem"))
	if err != nil {
		t.Fatal(err)
	}
	cfg := client.Config{Nodes: []string{url(n)}, User: identity.UserID{Org: "dev", Name: "alice"}, Key: key}
	if change != nil {
		change(&cfg)
	}
	c, err := client.Connect(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func url(n *e2e.Node) string { return "postgres://alice@" + n.Addr + "/" + e2e.Database }

func TestCall(t *testing.T) {
	_, c := start(t, nil)
	ctx := t.Context()
	for _, id := range []string{"a", "b"} {
		if _, err := c.Call(ctx, "open_account", id, "100.50"); err != nil {
			t.Fatal(err)
		}
	}
	r, err := c.Call(ctx, "transfer(text, text, numeric)", "a", "b", "0.75")
	if err != nil {
		t.Fatal(err)
	}
	var a, b string
	if err := r.Scan(&a, &b); err != nil || a != "99.75" || b != "101.25" {
		t.Errorf("left %s and %s, %v", a, b, err)
	}
	if got := strings.Join(r.Columns(), " "); got != "left_a left_b" {
		t.Errorf("columns %s", got)
	}
	if _, err := c.Call(ctx, "note", "c"); err != nil {
		t.Errorf("a procedure: %v", err)
	}
	r, err = c.Call(ctx, "transfer(text, text, integer)", "a", "b", 1)
	var text string
	if err != nil || r.Scan(&text) != nil || text != "whole numbers" {
		t.Errorf("the other overload: %q, %v", text, err)
	}
	if r, err = c.Call(ctx, "rows", 5); err != nil || r.Len() != 5 {
		t.Fatalf("%v rows, %v", r, err)
	}
	for i, row := range r.Rows() {
		var n int
		var s *string
		if err := row.Scan(&n, &s); err != nil || n != i+1 || (s == nil) != (n%2 == 1) {
			t.Errorf("row %d: %d, %v, %v", i, n, s, err)
		}
	}
	s, err := c.Status(ctx, r.ID)
	if err != nil || s == nil || s.Status != "committed" {
		t.Errorf("status %+v, %v", s, err)
	}
}

// Errors are those of the contract, of the caller, or unknown outcomes.
func TestErrors(t *testing.T) {
	n, c := start(t, nil)
	ctx := t.Context()
	if _, err := c.Call(ctx, "open_account", "a", -1); client.State(err) != "23514" {
		t.Errorf("a contract's own error: %v", err)
	}
	if _, err := c.Call(ctx, "nothing"); client.State(err) != "42883" {
		t.Errorf("an unknown function: %v", err)
	}
	if _, err := c.Call(ctx, "open_account", "a"); client.State(err) != "42883" {
		t.Errorf("too few arguments: %v", err)
	}
	if _, err := c.Call(ctx, "open_account", "a", "much"); err == nil || client.State(err) != "" {
		t.Errorf("no number: %v", err)
	}
	if _, err := c.Call(ctx, "open_account(text)", "a", "1"); err == nil || !strings.Contains(err.Error(), "types of 2 arguments") {
		t.Errorf("wrong types: %v", err)
	}
	for name, change := range map[string]func(*client.Config){
		"no node":         func(c *client.Config) { c.Nodes = nil },
		"no key":          func(c *client.Config) { c.Key = nil },
		"another network": func(c *client.Config) { c.Network[0] = 1 },
		"no such user":    func(c *client.Config) { c.User.Name = "" },
		"nobody there":    func(c *client.Config) { c.Nodes = []string{"postgres://alice@127.0.0.1:1/tallystick"} },
	} {
		cfg := client.Config{Nodes: []string{url(n)}, User: identity.UserID{Org: "dev", Name: "alice"}, Key: identity.NewSigner([32]byte{1})}
		change(&cfg)
		if c, err := client.Connect(ctx, cfg); err == nil {
			c.Close()
			t.Errorf("%s: connected", name)
		}
	}
	// Another's key signs nothing.
	forger := connect(t, n, func(c *client.Config) { c.Key = identity.NewSigner([32]byte{1}) })
	if _, err := forger.Call(ctx, "open_account", "x", "1"); client.State(err) != "28000" {
		t.Errorf("a false signature: %v", err)
	}
	gone, cancel := context.WithCancel(ctx)
	p, err := c.Submit(ctx, "open_account", "late", "1")
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	var unknown *client.OutcomeUnknown
	if _, err := p.Wait(gone); err != nil && !(errors.As(err, &unknown) && unknown.ID == p.ID()) {
		t.Errorf("who does not wait: %v", err)
	}
	if _, err := p.Wait(ctx); err != nil {
		t.Errorf("who waits again: %v", err)
	}
}

// Many clients want the same row: all get it in the end, and no coin is lost.
func TestRetries(t *testing.T) {
	_, c := start(t, func(c *client.Config) { c.Retry.Attempts = 1000 })
	ctx := t.Context()
	for _, id := range []string{"a", "b"} {
		if _, err := c.Call(ctx, "open_account", id, 1000); err != nil {
			t.Fatal(err)
		}
	}
	const callers, each = 6, 10
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for range each {
				if _, err := c.Call(ctx, "transfer(text, text, numeric)", "a", "b", 1); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	rows, err := c.Query(ctx, "SELECT balance::text FROM accounts ORDER BY id")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			t.Fatal(err)
		}
		got = append(got, s)
	}
	if want := fmt.Sprint([]int{1000 - callers*each, 1000 + callers*each}); fmt.Sprint(got) != want {
		t.Errorf("balances %v, want %v", got, want)
	}
	versions, err := c.Provenance(ctx, "accounts", "id = $1", "a")
	if err != nil {
		t.Fatal(err)
	}
	defer versions.Close()
	count := 0
	for versions.Next() {
		count++
	}
	if count != callers*each+1 {
		t.Errorf("%d versions of a row that was changed %d times", count, callers*each)
	}
}

// A subscriber sees every transaction once, whatever happens to its node.
func TestSubscribe(t *testing.T) {
	n, c := start(t, func(c *client.Config) { c.Retry.Attempts = 100 })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	const calls = 40
	enough := errors.New("enough")
	seen := make(chan []client.Entry, 1)
	go func() {
		var list []client.Entry
		err := c.Subscribe(ctx, 1, func(e client.Entry) error {
			if e.Function == "blockchain.note" {
				list = append(list, e)
			}
			if len(list) == calls {
				return enough
			}
			return nil
		})
		if !errors.Is(err, enough) {
			t.Error(err)
		}
		seen <- list
	}()
	for i := range calls {
		if i == calls/2 {
			n.Kill()
			n.StartAt(n.Addr)
		}
		if _, err := c.Call(ctx, "note", fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	last := block.Height(0)
	ids := map[block.TxID]bool{}
	for i, e := range <-seen {
		if e.Call != fmt.Sprintf("blockchain.note('%d')", i) || e.Status != "committed" || e.Block < last || ids[e.ID] {
			t.Errorf("entry %d: %+v", i, e)
		}
		last, ids[e.ID] = e.Block, true
	}
}
