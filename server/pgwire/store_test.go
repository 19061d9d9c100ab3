package pgwire

import (
	"log/slog"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/tallystick/tallystick/mvcc"
	"github.com/tallystick/tallystick/sql"
	"github.com/tallystick/tallystick/sql/exec"
)

// newEngine makes the engine that the sessions of the tests run on: the real
// one, over an empty store in memory.
func newEngine(t testing.TB) *sql.Engine {
	t.Helper()
	return newEngineOn(newStore(t))
}

// newStore makes an empty store.
func newStore(t testing.TB) *mvcc.Store {
	t.Helper()
	store, err := mvcc.Open("", mvcc.Options{FS: vfs.NewMem(), CacheBytes: 1 << 20, MemTableBytes: 1 << 20,
		Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return store
}

func newEngineOn(store *mvcc.Store) *sql.Engine {
	return sql.NewEngine(store, &exec.Functions{}, sql.EngineOptions{
		Clock: func() int64 { return time.Since(epoch).Microseconds() }})
}

// epoch is where timestamps count from.
var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
