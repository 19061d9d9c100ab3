package main_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/cockroachkvs"
	"github.com/cockroachdb/pebble/v2/sstable"

	"github.com/tallystick/tallystick/internal/e2e"
)

// The note of an item stands nowhere in the store but in its row: neither in the
// arguments of a call nor in its result.
const itemsSchema = `
CREATE TABLE items(id int PRIMARY KEY, note text NOT NULL, size int NOT NULL);
CREATE FUNCTION put(id int) RETURNS void LANGUAGE plpgsql AS $f$
BEGIN
  INSERT INTO items VALUES (id, 'note-' || 'of-' || id::text || '-end', 0);
END $f$;
CREATE FUNCTION measure(id int) RETURNS void LANGUAGE plpgsql AS $f$
BEGIN
  UPDATE items SET size = position('x' IN note) WHERE items.id = measure.id;
END $f$;
`

// tamperable is a network in which checkpoints were recorded, with items 1 to 9.
func tamperable(t *testing.T) *e2e.Network {
	t.Helper()
	n := e2e.StartNetwork(t, threeOrgs, "raft", 3, "--checkpoint-every", "2", "--block-timeout", "50ms")
	n.Deploy(itemsSchema)
	for id := 1; id < 10; id++ {
		n.MustPsql("bank/alice", fmt.Sprintf("SELECT put(%d);", id))
	}
	checkpointed(t, n, "bank", 1)
	n.Settled()
	return n
}

// checkpointed waits until a node has as many checkpoints, and checks that
// they carry its own state hashes.
func checkpointed(t *testing.T, n *e2e.Network, org string, count int) {
	t.Helper()
	n.Eventually("checkpoints", func() error {
		out, err := n.Psql(org+"/alice", "SELECT count(*) >= "+fmt.Sprint(count)+", count(*) FROM checkpoints;")
		if err == nil && strings.HasPrefix(out, "t|") {
			return nil
		}
		return fmt.Errorf("%s: %v", out, err)
	})
	if out := n.MustPsql(org+"/alice", `SELECT count(*) FROM checkpoints c LEFT JOIN blocks b ON b.number = c.height
		WHERE b.state_hash IS DISTINCT FROM c.state_hash OR c.organizations < 2 OR c.recorded_block <= c.height;`); out != "0" {
		t.Errorf("%s checkpoints do not fit the blocks", out)
	}
}

// tamper changes a byte of the stored row of item 7 of a node that is down.
func tamper(t *testing.T, n *e2e.Network, org string) {
	t.Helper()
	schema := cockroachkvs.KeySchema
	db, err := pebble.Open(filepath.Join(n.Dir, org, "node1", "data", "state"), &pebble.Options{
		Comparer: &cockroachkvs.Comparer, KeySchema: schema.Name, KeySchemas: sstable.MakeKeySchemas(&schema),
		FormatMajorVersion: pebble.FormatTableFormatV6, ErrorIfNotExists: true, Logger: quietPebble{t},
	})
	if err != nil {
		t.Fatal(err)
	}
	it, err := db.NewIter(nil)
	if err != nil {
		t.Fatal(err)
	}
	changed := 0
	for ok := it.First(); ok; ok = it.Next() {
		if !bytes.Contains(it.Value(), []byte("note-of-7-end")) {
			continue
		}
		value := bytes.Replace(bytes.Clone(it.Value()), []byte("note-of-7-end"), []byte("note-xx-7-end"), 1)
		if err := db.Set(bytes.Clone(it.Key()), value, pebble.Sync); err != nil {
			t.Fatal(err)
		}
		changed++
	}
	if err := it.Close(); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil || changed != 1 {
		t.Fatalf("the note stands in %d rows, %v", changed, err)
	}
}

// quietPebble tells faults only.
type quietPebble struct{ t *testing.T }

func (quietPebble) Infof(string, ...any)                {}
func (q quietPebble) Errorf(format string, args ...any) { q.t.Errorf(format, args...) }
func (q quietPebble) Fatalf(format string, args ...any) { q.t.Fatalf(format, args...) }

// distrusted checks that a node answers nothing but SQLSTATE XX001 with a text that
// names all of these, to readers and callers, and shows its data for forensics.
func distrusted(t *testing.T, n *e2e.Network, org string, names ...string) {
	t.Helper()
	user := org + "/alice"
	n.Eventually("the node at "+org+" to be halted", func() error {
		out, err := n.Psql(user, "SELECT count(*) FROM items;")
		if err == nil {
			return fmt.Errorf("it answers %s", out)
		}
		for _, name := range append([]string{"XX001", "table items", "key (7)", "block "}, names...) {
			if !strings.Contains(out, name) {
				return fmt.Errorf("it answers %s, which does not name %q", out, name)
			}
		}
		return nil
	})
	if out, err := n.Psql(user, "SELECT put(100);"); err == nil || !strings.Contains(out, "XX001") {
		t.Errorf("a call is answered by %s, %v", out, err)
	}
	out := n.MustPsql(user, "SET tallystick.forensics = on; SELECT note FROM items WHERE id = 7;")
	if !strings.Contains(out, "note-xx-7-end") {
		t.Errorf("forensics read %q", out)
	}
}

// TestTampered is about rows that were changed while their node was down. A node
// that scrubs finds it by itself, without anybody reading the row. One that does not
// computes another state from it, and the checkpoint of the others exposes it.
func TestTampered(t *testing.T) {
	n := tamperable(t)
	n.Nodes["supplier"].Stop()
	tamper(t, n, "supplier")
	n.Nodes["supplier"].Start()
	distrusted(t, n, "supplier", "is damaged", "changed")
	n.MustPsql("bank/alice", "SELECT put(10);")
	n.Nodes["supplier"].Stop()
	n.Nodes["supplier"].Start() // it remembers
	distrusted(t, n, "supplier", "is damaged")
	rebuilt(t, n, "supplier")

	n.Nodes["auditor"].Stop()
	edit(t, filepath.Join(n.Dir, "auditor", "node1", "node.toml"), "scrub_minutes = 60", "scrub_minutes = 0")
	tamper(t, n, "auditor")
	n.Nodes["auditor"].Start()
	if out := n.MustPsql("auditor/alice", "SELECT note FROM items WHERE id = 7;"); out != "note-xx-7-end" {
		t.Fatalf("before anything is known it reads %q", out)
	}
	n.MustPsql("bank/alice", "SELECT measure(7);")
	for id := 20; id < 26; id++ {
		n.MustPsql("bank/alice", fmt.Sprintf("SELECT put(%d);", id))
	}
	distrusted(t, n, "auditor", "differs from that of the network", "majority", "changed")
	checkpointed(t, n, "supplier", 2)
	rebuilt(t, n, "auditor")
}

// rebuilt follows the hint: without its state directory a node is as good as new.
func rebuilt(t *testing.T, n *e2e.Network, org string) {
	t.Helper()
	n.Nodes[org].Stop()
	if err := os.RemoveAll(filepath.Join(n.Dir, org, "node1", "data", "state")); err != nil {
		t.Fatal(err)
	}
	n.Nodes[org].Start()
	n.Settled()
	if out := n.MustPsql(org+"/alice", "SELECT note FROM items WHERE id = 7;"); out != "note-of-7-end" {
		t.Errorf("the node that was built again has %q", out)
	}
}

// edit replaces a text in a file.
func edit(t *testing.T, path, old, new string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil || !bytes.Contains(text, []byte(old)) {
		t.Fatalf("%s has no %q: %v", path, old, err)
	}
	if err := os.WriteFile(path, bytes.Replace(text, []byte(old), []byte(new), 1), 0o600); err != nil {
		t.Fatal(err)
	}
}
