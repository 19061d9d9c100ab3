package main_test

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tallystick/tallystick/internal/e2e"
)

const journal = `
CREATE TABLE journal(id text PRIMARY KEY, round int NOT NULL);
CREATE TABLE pair(id text PRIMARY KEY REFERENCES journal);
CREATE FUNCTION note(entry text, round int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO journal VALUES (entry, round);
  INSERT INTO pair VALUES (entry);
END $$;
`

const (
	crashRounds  = 20
	crashClients = 4
	crashSeed    = 20190827
)

// kill -9 in the middle of work, twenty times in a row: whatever was
// acknowledged is there afterwards, no block is there by halves, and a replay
// of the chain from its beginning arrives at the same state hash.
func TestCrashes(t *testing.T) {
	n := e2e.Start(t)
	n.MustPsql(e2e.Admin, journal)
	rng := rand.New(rand.NewPCG(crashSeed, 0))
	acked := map[string]bool{}
	for round := range crashRounds {
		for id := range work(t, n, round, 100*time.Millisecond+time.Duration(rng.IntN(500))*time.Millisecond) {
			acked[id] = true
		}
		n.Start()
		checkJournal(t, n, acked)
		checkBlocks(t, n)
		if t.Failed() {
			t.Fatalf("after crash %d", round+1)
		}
	}
	if len(acked) < crashRounds {
		t.Errorf("only %d entries were acknowledged in %d rounds", len(acked), crashRounds)
	}
	checkReplay(t, n)
}

// work writes entries from several clients, kills the node after d, and returns
// the entries that were acknowledged before.
func work(t *testing.T, n *e2e.Node, round int, d time.Duration) map[string]bool {
	t.Helper()
	var mu sync.Mutex
	acked := map[string]bool{}
	var wg sync.WaitGroup
	killed := make(chan struct{})
	for client := range crashClients {
		wg.Go(func() {
			err := write(n.URL("alice"), round, client, func(id string) {
				mu.Lock()
				defer mu.Unlock()
				acked[id] = true
			})
			select {
			case <-killed:
			default:
				// The end of the connection and that of the process are seen in
				// any order; an error report is one the server sent.
				var report *pgconn.PgError
				if errors.As(err, &report) {
					t.Errorf("client %d: %v", client, err)
				}
			}
		})
	}
	time.Sleep(d)
	n.Kill()
	close(killed)
	wg.Wait()
	return acked
}

// write makes entries until an error comes, which it returns.
func write(url string, round, client int, ack func(id string)) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	for i := 0; ; i++ {
		id := fmt.Sprintf("%d-%d-%d", round, client, i)
		if _, err := conn.Exec(ctx, "SELECT note($1, $2)", id, round); err != nil {
			return err
		}
		ack(id)
	}
}

func open(t *testing.T, n *e2e.Node, user string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(context.Background(), n.URL(user))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// checkJournal looks for everything that was acknowledged, and that what one
// transaction wrote is there together.
func checkJournal(t *testing.T, n *e2e.Node, acked map[string]bool) {
	t.Helper()
	conn := open(t, n, "alice")
	defer conn.Close(context.Background())
	there := map[string]bool{}
	for _, id := range column[string](t, conn, "SELECT id FROM journal") {
		there[id] = true
	}
	for id := range acked {
		if !there[id] {
			t.Errorf("%s was acknowledged and is lost", id)
		}
	}
	const torn = "SELECT id FROM journal WHERE id NOT IN (SELECT id FROM pair)"
	if ids := column[string](t, conn, torn); len(ids) > 0 {
		t.Errorf("half a transaction: %v", ids)
	}
}

// checkBlocks compares the blocks with what the ledger and the tables hold of
// them.
func checkBlocks(t *testing.T, n *e2e.Node) {
	t.Helper()
	conn := open(t, n, "alice")
	defer conn.Close(context.Background())
	for what, query := range map[string]string{
		"a gap in the blocks": `SELECT b.number FROM blocks b LEFT JOIN blocks p ON p.number = b.number - 1 AND p.hash = b.prev_hash
			WHERE b.number > 0 AND p.number IS NULL`,
		"blocks whose transactions are not all in the ledger": `SELECT b.number FROM blocks b
			LEFT JOIN (SELECT block, count(*) AS n FROM pgledger GROUP BY block) l ON l.block = b.number
			WHERE b.transactions <> coalesce(l.n, 0)`,
		"blocks whose committed transactions are not all in the ledger": `SELECT b.number FROM blocks b
			LEFT JOIN (SELECT block, count(*) AS n FROM pgledger WHERE status = 'committed' GROUP BY block) l ON l.block = b.number
			WHERE b.committed <> coalesce(l.n, 0)`,
		"ledger rows without a block": `SELECT l.block FROM pgledger l LEFT JOIN blocks b ON b.number = l.block WHERE b.number IS NULL`,
		"blocks whose rows are not those of their transactions": `SELECT b.number FROM blocks b
			LEFT JOIN (SELECT creator_block AS block, count(*) AS n FROM provenance.journal GROUP BY creator_block) j ON j.block = b.number
			LEFT JOIN (SELECT block, count(*) AS n FROM pgledger WHERE status = 'committed' AND function = 'blockchain.note' GROUP BY block) l ON l.block = b.number
			WHERE coalesce(j.n, 0) <> coalesce(l.n, 0)`,
	} {
		if list := column[int64](t, conn, query); len(list) > 0 {
			t.Errorf("%s: %v", what, list)
		}
	}
}

// checkReplay replays the chain of the stopped node from its beginning.
func checkReplay(t *testing.T, n *e2e.Node) {
	t.Helper()
	conn := open(t, n, "alice")
	hashes := column[[]byte](t, conn, "SELECT state_hash FROM blocks ORDER BY number DESC LIMIT 1")
	_ = conn.Close(context.Background())
	n.Stop()
	if len(hashes) != 1 || len(hashes[0]) == 0 {
		t.Fatalf("state hash of the newest block: %x", hashes)
	}
	out, err := e2e.Command(t, "verify", n.Dir, "--replay")
	if err != nil {
		t.Fatalf("verify: %v\n%s", err, out)
	}
	if want := hex.EncodeToString(hashes[0]); !strings.Contains(strings.ToLower(out), want) {
		t.Errorf("the replay does not arrive at state hash %s:\n%s", want, out)
	}
}

// column reads a result of one column.
func column[T any](t *testing.T, conn *pgx.Conn, query string, args ...any) []T {
	t.Helper()
	rows, err := conn.Query(context.Background(), query, args...)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowTo[T])
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return list
}
