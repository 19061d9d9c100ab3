package sql_test

import (
	"context"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/tallystick/tallystick/sql"
	"github.com/tallystick/tallystick/sql/exec"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// TestHalted: a node that must not be believed answers no query, says why, and
// shows its data to whoever asks for them in so many words.
func TestHalted(t *testing.T) {
	store := openStore(t, vfs.NewMem(), false)
	t.Cleanup(func() { _ = store.Close() })
	var why error
	engine := sql.NewEngine(store, &exec.Functions{}, sql.EngineOptions{Halted: func() error { return why }})
	session := engine.NewSession(sql.SessionOptions{User: "admin", Database: sql.Database})
	t.Cleanup(session.Close)
	run := func(text string) error {
		t.Helper()
		ctx := context.Background()
		list, err := session.Split(text)
		if err != nil {
			t.Fatal(err)
		}
		p, err := session.Prepare(ctx, "", list[0], nil)
		if err != nil {
			t.Fatal(err)
		}
		portal, err := session.Bind(ctx, p, nil)
		if err != nil {
			return err
		}
		defer portal.Close()
		for {
			if row, err := portal.Next(ctx); row == nil || err != nil {
				return err
			}
		}
	}
	check := func(text, want string) {
		t.Helper()
		err := run(text)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	check("SELECT 1", "")
	why = pgerr.New(pgerr.DataCorrupted, "not to be believed")
	check("SELECT 1", "XX001")
	check("SELECT * FROM blocks", "not to be believed")
	check("EXPLAIN SELECT 1", "XX001")
	check("SHOW tallystick.height", "")
	check("SET tallystick.forensics = on", "")
	check("SELECT count(*) FROM blocks", "")
	check("RESET tallystick.forensics", "")
	check("SELECT 1", "XX001")
}
