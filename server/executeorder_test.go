package server

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"sync"
	"testing"

	"github.com/tallystick/tallystick/blockstore/block"
)

// startChosen starts a node of a network with these choices.
func startChosen(t *testing.T, dir string, choices Choices) *running {
	t.Helper()
	n, err := openNode(dir, choices, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	r := &running{Node: n, t: t, stop: stop, end: make(chan error, 1)}
	go func() { r.end <- n.Serve(ctx) }()
	t.Cleanup(func() { stop() })
	return r
}

// TestExecuteOrderInParallel drives a node of this flow by clients: what they
// read after an answer is what it said, transactions are executed before they
// are ordered, and the chain replays to the same state.
func TestExecuteOrderInParallel(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	r := startChosen(t, dir, Choices{Flow: block.FlowExecuteOrderInParallel})
	if rule := r.genesis.Params.Rule; rule != block.RuleBlockAware {
		t.Errorf("the rule is %s", rule)
	}
	r.work()
	var wg sync.WaitGroup
	for client := range 4 {
		wg.Go(func() {
			conn, err := r.connect("alice")
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close(context.Background())
			for i := range 25 {
				id, got, note := 1000*(client+1)+i, 0, ""
				if err := conn.QueryRow(context.Background(), "SELECT take($1, $2)", id, fmt.Sprint("note ", id)).Scan(&got); err != nil || got != id {
					t.Errorf("take(%d) is %d, %v", id, got, err)
				}
				if err := conn.QueryRow(context.Background(), "SELECT note FROM notes WHERE id = $1", id).Scan(&note); err != nil || note != fmt.Sprint("note ", id) {
					t.Errorf("note %d is %q, %v", id, note, err)
				}
			}
		})
	}
	wg.Wait()
	m := r.state.chain.Metrics()
	if m.Speculated == 0 || m.Speculated+m.Missing < 100 || m.Committed != 6+2+100 {
		t.Errorf("%d executed before their block, %d in it, %d committed", m.Speculated, m.Missing, m.Committed)
	}
	_, _, state := r.state.chain.Tip()
	r.close()
	r = startNode(t, dir)
	if _, _, again := r.state.chain.Tip(); again != state {
		t.Errorf("state hash %s after a restart, %s before", again, state)
	}
	r.close()
}

// TestTransactionBlocks: inside BEGIN a call is executed at once, submitted at
// COMMIT and dropped by ROLLBACK.
func TestTransactionBlocks(t *testing.T) {
	r := startChosen(t, filepath.Join(t.TempDir(), "data"), Choices{Flow: block.FlowExecuteOrderInParallel, Conflicts: block.ConflictsReexecute})
	defer r.close()
	r.work()
	r.exec(DevAdmin, "CREATE FUNCTION edit(k int, what text) RETURNS text LANGUAGE plpgsql AS $$ DECLARE old text; BEGIN "+
		"SELECT note INTO old FROM notes WHERE id = k; UPDATE notes SET note = what WHERE id = k; RETURN old; END $$")
	ctx := context.Background()
	conn, err := r.connect("alice")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	query := func(q string) string {
		t.Helper()
		var got string
		if err := conn.QueryRow(ctx, q).Scan(&got); err != nil {
			return "SQLSTATE " + sqlState(err)
		}
		return got
	}
	exec := func(q, want string) {
		t.Helper()
		tag, err := conn.Exec(ctx, q)
		got := tag.String()
		if err != nil {
			got = "SQLSTATE " + sqlState(err)
		}
		if got != want {
			t.Errorf("%s: %s, want %s", q, got, want)
		}
	}
	want := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
	}
	note := "SELECT note FROM notes WHERE id = 1"
	height := r.Height()
	exec("BEGIN", "BEGIN")
	want("call", query("SELECT edit(1, 'second thought')"), "first")
	want("inside the block", query(note), "first") // it reads one snapshot
	if r.Height() != height {
		t.Error("the call was ordered before COMMIT")
	}
	exec("COMMIT", "COMMIT")
	want("after COMMIT", query(note), "second thought")

	exec("BEGIN", "BEGIN")
	want("call", query("SELECT edit(1, 'dropped')"), "second thought")
	exec("ROLLBACK", "ROLLBACK")
	want("after ROLLBACK", query(note), "second thought")

	// Somebody else was faster: what the client was told no longer holds.
	exec("BEGIN", "BEGIN")
	want("call", query("SELECT edit(1, 'lost')"), "second thought")
	r.exec("bob", "SELECT edit(1, 'by bob')")
	exec("COMMIT", "SQLSTATE 40001")
	want("after a COMMIT that failed", query(note), "by bob")

	// A failed call ends the block; savepoints bring it back, without the call.
	exec("BEGIN", "BEGIN")
	exec("SAVEPOINT a", "SAVEPOINT")
	want("failing call", query("SELECT take(1, 'again')::text"), "SQLSTATE 0A000")
	exec("ROLLBACK TO a", "ROLLBACK")
	want("failing call", query("SELECT take(1, 'again')"), "SQLSTATE 23505")
	exec("ROLLBACK TO a", "ROLLBACK")
	want("call", query("SELECT edit(1, 'kept')"), "by bob")
	exec("SAVEPOINT b", "SAVEPOINT")
	want("another call", query("SELECT edit(2, 'too many')"), "SQLSTATE 25001")
	exec("ROLLBACK TO b", "ROLLBACK")
	exec("RELEASE b", "RELEASE")
	exec("COMMIT", "COMMIT")
	want("after savepoints", query(note), "kept")
	exec("BEGIN", "BEGIN")
	exec("SAVEPOINT a", "SAVEPOINT")
	want("call", query("SELECT edit(1, 'undone')"), "kept")
	exec("ROLLBACK TO a", "ROLLBACK")
	exec("COMMIT", "COMMIT")
	want("after ROLLBACK TO", query(note), "kept")
	exec("BEGIN", "BEGIN")
	want("system contract", query("SELECT create_deploytx('DROP TABLE notes')"), "SQLSTATE 25001")
	exec("ROLLBACK", "ROLLBACK")
}
