package main_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tallystick/tallystick/internal/e2e"
)

// TestDevPBFT: a development network whose one orderer speaks PBFT takes calls of
// psql, goes on after kill -9 and after an orderly end, and verifies.
func TestDevPBFT(t *testing.T) {
	n := e2e.Start(t, "--orderer", "pbft")
	n.MustPsql(e2e.Admin, `
CREATE TABLE notes(id int PRIMARY KEY, body text);
CREATE FUNCTION note(id int, body text) RETURNS int LANGUAGE plpgsql AS $f$
BEGIN
  INSERT INTO notes VALUES (id, body);
  RETURN id;
END $f$;`)
	call := func(sql, want string) {
		t.Helper()
		// Warnings come first.
		if got := n.MustPsql("alice", sql); !strings.HasSuffix("\n"+got, "\n"+want) {
			t.Errorf("%s: %q, want %q", sql, got, want)
		}
	}
	call("SELECT note(1, 'one')", "1")
	n.Kill()
	n.Start()
	call("SELECT note(2, 'two')", "2")
	n.Stop()
	n.Start()
	call("SELECT note(3, 'three')", "3")
	call("SELECT id, body FROM notes ORDER BY id", "1|one\n2|two\n3|three")
	n.Stop()
	out, err := e2e.Command(t, "verify", n.Dir, "--replay", "--json")
	var report struct {
		OK bool
	}
	if e := json.Unmarshal([]byte(out), &report); err != nil || e != nil || !report.OK {
		t.Errorf("verify: %v, %v\n%s", err, e, out)
	}
}
