package sql_test

import (
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestTemporaryTablesOfSessions: a session does not see those of another, and
// nothing is left of them when it has ended, or after a crash.
func TestTemporaryTablesOfSessions(t *testing.T) {
	fs := vfs.NewMem()
	n := openPrivate(t, fs)
	a, b := n.connect(), n.connect()
	for i, c := range []*client{a, b} {
		c.must("CREATE TEMP TABLE t (id int PRIMARY KEY, who text)")
		c.must("INSERT INTO t VALUES (1, '" + []string{"a", "b"}[i] + "')")
	}
	for i, c := range []*client{a, b} {
		if got := c.script("SELECT who FROM t"); !strings.HasSuffix(got, []string{"a\n", "b\n"}[i]) {
			t.Errorf("session %d sees %q", i, got)
		}
	}
	if got := b.script("SELECT * FROM pg_temp_1.t"); !strings.Contains(got, "ERROR:  0A000") {
		t.Errorf("the table of another session: %q", got)
	}
	a.session.Close()
	const left = "SELECT count(*) FROM pg_class WHERE relpersistence = 't' AND relname = 't'"
	if got := b.script(left); !strings.HasSuffix(got, "\n1\n") {
		t.Errorf("after the end of the first session: %q", got)
	}
	n.close() // the second session does not end in order
	n = openPrivate(t, fs)
	defer n.close()
	c := n.connect()
	if got := c.script(left); !strings.HasSuffix(got, "\n0\n") {
		t.Errorf("after a restart: %q", got)
	}
	if got := c.script("CREATE TEMP TABLE t (id int); SELECT count(*) FROM t"); !strings.HasSuffix(got, "\n0\n") {
		t.Errorf("a new table: %q", got)
	}
}
