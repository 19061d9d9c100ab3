package server

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/tallystick/tallystick/blockstore/block"
)

// historySchema has two workloads. A list keeps all that was appended. A register
// keeps its last value and, so that the order of its versions shows, each value
// names the one it replaced in a table of its own.
const historySchema = `
CREATE TABLE lists(id int PRIMARY KEY, v text NOT NULL);
CREATE TABLE registers(id int PRIMARY KEY, v text NOT NULL);
CREATE TABLE replaced(id int, v text, old text NOT NULL, PRIMARY KEY (id, v));
CREATE FUNCTION prepare() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO lists SELECT g, '' FROM generate_series(1, 6) g;
  INSERT INTO registers SELECT g, '' FROM generate_series(1, 6) g;
END $$;
CREATE FUNCTION act(ops text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE op text; k int; t text; val text; res text := '';
BEGIN
  FOREACH op IN ARRAY string_to_array(ops, ' ') LOOP
    k := substr(op, 2, 1)::int;
    val := substr(op, 4);
    IF left(op, 1) = 'l' OR left(op, 1) = 'a' THEN
      SELECT v INTO t FROM lists WHERE id = k;
      res := res || t || ';';
      IF left(op, 1) = 'a' THEN UPDATE lists SET v = t || ',' || val WHERE id = k; END IF;
    ELSE
      SELECT v INTO t FROM registers WHERE id = k;
      res := res || t || ';';
      IF left(op, 1) = 'w' THEN
        UPDATE registers SET v = val WHERE id = k;
        INSERT INTO replaced VALUES (k, val, t);
      END IF;
    END IF;
  END LOOP;
  RETURN res;
END $$;
`

// TestHistories records what concurrent clients of a real node saw, and has the
// checker look for cycles.
func TestHistories(t *testing.T) {
	for _, c := range []Choices{
		{Flow: block.FlowOrderThenExecute, Rule: block.RuleAbortDuringCommit},
		{Flow: block.FlowOrderThenExecute, Rule: block.RuleExact, Conflicts: block.ConflictsReexecute},
		{Flow: block.FlowExecuteOrderInParallel},
		{Flow: block.FlowExecuteOrderInParallel, Rule: block.RuleExact},
		{Flow: block.FlowExecuteOrderInParallel, Conflicts: block.ConflictsReexecute},
	} {
		t.Run(strings.Trim(strings.Join([]string{c.Flow, c.Rule, c.Conflicts}, "/"), "/"), func(t *testing.T) {
			r := startChosen(t, filepath.Join(t.TempDir(), "data"), c)
			defer r.close()
			r.exec(DevAdmin, historySchema)
			r.exec("alice", "SELECT prepare()")
			events := record(t, r, 8, 40)
			follow := registerVersions(t, r)
			aborted := 0
			for i := range events {
				if events[i].aborted {
					aborted++
				}
				for k := range events[i].actions {
					if a := &events[i].actions[k]; a.key[0] == 'r' {
						a.seen = follow(a.key, a.seen)
					}
				}
			}
			if problem := checkHistory(events); problem != "" {
				t.Error(problem)
			}
			if len(events)-aborted < 40 {
				t.Errorf("%d of %d transactions were aborted", aborted, len(events))
			}
			if c.Conflicts == block.ConflictsReexecute && aborted > 0 {
				t.Errorf("%d of %d transactions were aborted in spite of re-execution", aborted, len(events))
			}
			t.Logf("%d transactions, %d aborted, in %d blocks", len(events), aborted, r.Height())
		})
	}
}

// record runs random transactions from several clients. With r.Height as it is
// now, blocks of several transactions come about because clients do not wait for
// each other.
func record(t *testing.T, r *running, clients, each int) []event {
	t.Helper()
	var mu sync.Mutex
	var events []event
	var wg sync.WaitGroup
	for client := range clients {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(client), 5))
			conn, err := r.connect([]string{"alice", "bob"}[client%2])
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close(context.Background())
			for i := range each {
				e := event{name: fmt.Sprintf("T%d.%d", client, i)}
				var ops []string
				used := map[string]bool{}
				for n := range 1 + rng.IntN(4) {
					k := 1 + rng.IntN(6)
					kind := "lawr"[rng.IntN(4)]
					key := map[byte]string{'l': "l", 'a': "l", 'w': "r", 'r': "r"}[kind] + fmt.Sprint(k)
					if used[key] {
						continue // own writes are not part of a history
					}
					used[key] = true
					a := action{key: key, write: kind == 'a' || kind == 'w', value: fmt.Sprintf("%d.%d.%d", client, i, n)}
					ops = append(ops, fmt.Sprintf("%c%d=%s", kind, k, a.value))
					e.actions = append(e.actions, a)
				}
				var seen string
				err := conn.QueryRow(context.Background(), "SELECT act($1)", strings.Join(ops, " ")).Scan(&seen)
				switch {
				case err == nil:
					for n, s := range strings.Split(strings.TrimSuffix(seen, ";"), ";") {
						if s != "" {
							e.actions[n].seen = strings.Split(strings.TrimPrefix(s, ","), ",")
						}
					}
				case sqlState(err) == "40001":
					e.aborted = true
				default:
					t.Errorf("%s: %v", strings.Join(ops, " "), err)
				}
				mu.Lock()
				events = append(events, e)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return events
}

// registerVersions returns a function that makes the list of all versions up to
// the one that was seen in a register.
func registerVersions(t *testing.T, r *running) func(key string, seen []string) []string {
	t.Helper()
	conn, err := r.connect(DevAdmin)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	rows, err := conn.Query(context.Background(), "SELECT id, v, old FROM replaced")
	if err != nil {
		t.Fatal(err)
	}
	old := map[string]string{}
	for rows.Next() {
		var id int
		var v, o string
		if err := rows.Scan(&id, &v, &o); err != nil {
			t.Fatal(err)
		}
		old[fmt.Sprintf("r%d %s", id, v)] = o
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return func(key string, seen []string) []string {
		if len(seen) == 0 {
			return nil
		}
		list := []string{seen[0]}
		for o := old[key+" "+seen[0]]; o != ""; o = old[key+" "+o] {
			list = append([]string{o}, list...)
		}
		return list
	}
}
