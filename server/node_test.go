package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/identity"
)

// running is a node that serves.
type running struct {
	*Node
	t    *testing.T
	stop context.CancelFunc
	end  chan error
}

func openNode(dir string, choices Choices, log io.Writer) (*Node, error) {
	return OpenDev(DevOptions{
		Dir: dir, Listen: "127.0.0.1:0", Choices: choices, Workers: 2, Logger: slog.New(slog.NewTextHandler(log, nil)),
	})
}

func startNode(t *testing.T, dir string) *running {
	t.Helper()
	n, err := openNode(dir, Choices{}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	r := &running{Node: n, t: t, stop: stop, end: make(chan error, 1)}
	go func() { r.end <- n.Serve(ctx) }()
	t.Cleanup(func() { stop() })
	return r
}

// close ends the node in order.
func (r *running) close() {
	r.t.Helper()
	r.stop()
	if err := <-r.end; err != nil {
		r.t.Errorf("serving: %v", err)
	}
	if err := r.Close(); err != nil {
		r.t.Errorf("closing: %v", err)
	}
}

func (r *running) connect(user string) (*pgx.Conn, error) {
	return pgx.Connect(context.Background(), fmt.Sprintf("postgres://%s@%s/tallystick?sslmode=disable", user, r.Addr()))
}

// exec runs statements that must succeed, each on its own.
func (r *running) exec(user string, statements ...string) {
	r.t.Helper()
	conn, err := r.connect(user)
	if err != nil {
		r.t.Fatal(err)
	}
	defer conn.Close(context.Background())
	for _, s := range statements {
		if _, err := conn.Exec(context.Background(), s); err != nil {
			r.t.Fatalf("%s: %v", s, err)
		}
	}
}

// work makes a chain of a few blocks: two deployments of three, and two calls.
func (r *running) work() {
	r.t.Helper()
	r.exec(DevAdmin, "CREATE TABLE notes(id int PRIMARY KEY, note text NOT NULL)",
		"CREATE FUNCTION take(k int, what text) RETURNS int LANGUAGE plpgsql AS $$ BEGIN INSERT INTO notes VALUES (k, what); RETURN k; END $$")
	r.exec("alice", "SELECT take(1, 'first')", "SELECT take(2, 'second')")
}

const workBlocks = 8

func sqlState(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return fmt.Sprint(err)
}

func TestDevStartsAndGoesOn(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	r := startNode(t, dir)
	r.work()
	if users := r.Users(); !slices.Equal(users, []string{"admin", "alice", "bob"}) {
		t.Errorf("users %q", users)
	}
	if h := r.Height(); h != workBlocks {
		t.Errorf("height %d, want %d", h, workBlocks)
	}
	_, hash, state := r.state.chain.Tip()
	r.close()
	for name, mode := range map[string]os.FileMode{
		"": 0o700, "keys": 0o700, "keys/admin.pem": 0o600, "keys/orderer.pem": 0o600, "genesis": 0o600, "blocks/pgblockstore-00000000": 0o644,
	} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Error(err)
		} else if perm := info.Mode().Perm(); perm&^mode != 0 {
			t.Errorf("%s has mode %#o, want %#o at most", name, perm, mode)
		}
	}

	// With its state, and without: there is only one outcome.
	for _, what := range []string{"kept", "removed"} {
		if what == "removed" {
			if err := os.RemoveAll(filepath.Join(dir, "state")); err != nil {
				t.Fatal(err)
			}
		}
		r = startNode(t, dir)
		if h, hash2, state2 := r.state.chain.Tip(); h != workBlocks || hash2 != hash || state2 != state {
			t.Errorf("state %s: block %d %s, state hash %s; want %d %s, %s", what, h, hash2, state2, workBlocks, hash, state)
		}
		r.exec("bob", "SELECT note FROM notes")
		r.close()
	}
}

func TestDevLetsOnlyItsUsersIn(t *testing.T) {
	r := startNode(t, t.TempDir())
	defer r.close()
	for user, code := range map[string]string{"mallory": "28000", "orderer": "28000"} {
		if _, err := r.connect(user); sqlState(err) != code {
			t.Errorf("%s: %v, want SQLSTATE %s", user, err, code)
		}
	}
	// A user whom the chain knows, but whose key is elsewhere.
	key, err := identity.GenerateSigner(strings.NewReader(strings.Repeat("k", 32)))
	if err != nil {
		t.Fatal(err)
	}
	r.exec(DevAdmin, fmt.Sprintf(`SELECT create_user('dev', 'carol', 'client', '\x%s')`, key.Public()))
	if _, err := r.connect("carol"); sqlState(err) != "28000" {
		t.Errorf("carol: %v, want SQLSTATE 28000", err)
	}
	// Whoever is revoked stays outside.
	r.exec(DevAdmin, "SELECT delete_user('dev', 'bob')")
	if _, err := r.connect("bob"); sqlState(err) != "28000" {
		t.Errorf("bob: %v, want SQLSTATE 28000", err)
	}
}

func TestDevTakesKeysOfNewUsers(t *testing.T) {
	dir := t.TempDir()
	r := startNode(t, dir)
	key, err := identity.GenerateSigner(strings.NewReader(strings.Repeat("k", 32)))
	if err != nil {
		t.Fatal(err)
	}
	r.exec(DevAdmin, fmt.Sprintf(`SELECT create_user('dev', 'carol', 'client', '\x%s')`, key.Public()))
	r.work()
	r.close()
	if err := key.SaveKey(filepath.Join(dir, "keys", "carol.pem")); err != nil {
		t.Fatal(err)
	}
	r = startNode(t, dir)
	defer r.close()
	r.exec("carol", "SELECT take(3, 'third')")
}

func TestDevRefusesWhatDoesNotFit(t *testing.T) {
	template := t.TempDir()
	r := startNode(t, template)
	r.work()
	r.close()
	for _, tc := range []struct {
		name    string
		choices Choices
		damage  func(dir string) error
		want    string // in the error
	}{
		{"nothing wrong", Choices{Rule: block.RuleAbortDuringCommit}, nil, ""},
		{"another rule", Choices{Rule: block.RuleExact}, nil, "was made with --rule abort-during-commit, not exact"},
		{"key of a user replaced", Choices{}, func(dir string) error {
			return os.Rename(filepath.Join(dir, "keys", "bob.pem"), filepath.Join(dir, "keys", "alice.pem"))
		}, "alice.pem is not the key that the chain has for dev/alice"},
		{"key of the orderer replaced", Choices{}, func(dir string) error {
			return os.Rename(filepath.Join(dir, "keys", "bob.pem"), filepath.Join(dir, "keys", "orderer.pem"))
		}, "orderer.pem is not the key of an orderer"},
		{"key of the orderer lost", Choices{}, func(dir string) error {
			return os.Remove(filepath.Join(dir, "keys", "orderer.pem"))
		}, "orderer.pem"},
		{"key open to others", Choices{}, func(dir string) error {
			return os.Chmod(filepath.Join(dir, "keys", "alice.pem"), 0o644)
		}, "group or world access"},
		{"genesis lost", Choices{}, func(dir string) error {
			return os.Remove(filepath.Join(dir, "genesis"))
		}, "has blocks and no genesis"},
		{"genesis damaged", Choices{}, func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "genesis"), []byte("genesis"), 0o600)
		}, "genesis"},
		{"genesis of another network", Choices{}, func(dir string) error {
			g, err := loadGenesis(layout{dir})
			if err != nil {
				return err
			}
			other := *g
			other.Params.MaxNesting++
			return os.WriteFile(filepath.Join(dir, "genesis"), reencode(&other), 0o600)
		}, "store is of network"},
		{"blocks lost", Choices{}, func(dir string) error {
			return os.RemoveAll(filepath.Join(dir, "blocks"))
		}, "the state in"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS(template)); err != nil {
				t.Fatal(err)
			}
			keys, err := layout{dir}.users()
			if err != nil {
				t.Fatal(err)
			}
			for _, k := range keys { // CopyFS gives files the usual mode
				if err := os.Chmod(layout{dir}.key(k), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if tc.damage != nil {
				if err := tc.damage(dir); err != nil {
					t.Fatal(err)
				}
			}
			n, err := openNode(dir, tc.choices, io.Discard)
			if err == nil {
				if err := n.Close(); err != nil {
					t.Error(err)
				}
			}
			if got := fmt.Sprint(err); (err == nil) != (tc.want == "") || !strings.Contains(got, tc.want) {
				t.Errorf("error %q, want %q in it", got, tc.want)
			}
		})
	}
}

// reencode encodes a genesis that was copied from a decoded one and changed.
func reencode(g *block.Genesis) []byte {
	fresh := &block.Genesis{Network: g.Network, Timestamp: g.Timestamp, Orgs: g.Orgs, Orderers: g.Orderers, Params: g.Params}
	return fresh.Encode()
}

func TestDevKeepsOthersOut(t *testing.T) {
	dir := t.TempDir()
	r := startNode(t, dir)
	defer r.close()
	if _, err := openNode(dir, Choices{}, io.Discard); err == nil || !strings.Contains(err.Error(), "in use by another process") {
		t.Errorf("a second node on the same directory: %v", err)
	}
	other := t.TempDir()
	if err := os.WriteFile(filepath.Join(other, "letter.txt"), []byte("dear"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openNode(other, Choices{}, io.Discard); err == nil || !strings.Contains(err.Error(), "letter.txt") {
		t.Errorf("a directory of something else: %v", err)
	}
}

// TestInterruptedFirstStart: keys are there, the genesis is not.
func TestInterruptedFirstStart(t *testing.T) {
	dir := t.TempDir()
	l := layout{dir}
	if err := os.Mkdir(l.keys(), 0o700); err != nil {
		t.Fatal(err)
	}
	key, err := makeKey(l.key("alice"))
	if err != nil {
		t.Fatal(err)
	}
	r := startNode(t, dir)
	defer r.close()
	u, ok := r.state.chain.User(identity.UserID{Org: DevOrg, Name: "alice"})
	if !ok || u.Key != key.Public() {
		t.Errorf("the key that was there is not used: %+v", u)
	}
}

// TestFaultEndsTheNode: a node that cannot commit a block says so and ends.
func TestFaultEndsTheNode(t *testing.T) {
	var log strings.Builder
	n, err := openNode(t.TempDir(), Choices{}, &log)
	if err != nil {
		t.Fatal(err)
	}
	// Somebody else writes a block into the state: the chain's own next one
	// cannot be committed.
	if err := n.state.store.Commit(n.state.store.NewBlockBatch(1), false); err != nil {
		t.Fatal(err)
	}
	r := &running{Node: n, t: t, end: make(chan error, 1)}
	go func() { r.end <- n.Serve(context.Background()) }()
	conn, err := r.connect(DevAdmin)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(context.Background(), "SELECT create_deploytx('CREATE TABLE t(id int PRIMARY KEY)')"); sqlState(err) != "57P03" {
		t.Errorf("the client hears %v, want SQLSTATE 57P03", err)
	}
	if err := <-r.end; err == nil || !strings.Contains(err.Error(), "block 1") {
		t.Errorf("serving ended with %v", err)
	}
	_ = n.Close() // the store is broken by intent
}

// TestDefinitionsThatFail leave nothing in the chain.
func TestDefinitionsThatFail(t *testing.T) {
	r := startNode(t, t.TempDir())
	defer r.close()
	r.work()
	conn, err := r.connect(DevAdmin)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	for ddl, code := range map[string]string{
		"CREATE TABLE notes(id int PRIMARY KEY)":                   "42P07",
		"CREATE TABLE other(id int PRIMARY KEY REFERENCES nobody)": "42P01",
		"DROP TABLE nobody": "42P01",
		"CREATE FUNCTION f() RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN 1 END'":   "42601",
		"CREATE INDEX ON notes(nothing)":                                             "42703",
		"CREATE FUNCTION f() RETURNS nothing LANGUAGE plpgsql AS 'BEGIN END'":        "42704",
		"CREATE FUNCTION take(k int, what text) RETURNS int LANGUAGE sql AS 'sel 1'": "42723",
	} {
		if _, err := conn.Exec(context.Background(), ddl); sqlState(err) != code {
			t.Errorf("%s: %v, want SQLSTATE %s", ddl, err, code)
		}
	}
	if h := r.Height(); h != workBlocks {
		t.Errorf("the chain has grown to block %d", h)
	}
	// What was tried is forgotten: it can be done afterwards.
	r.exec(DevAdmin, "CREATE TABLE other(id int PRIMARY KEY)", "DROP TABLE other")
	if h := r.Height(); h != workBlocks+6 {
		t.Errorf("the chain ends with block %d, want %d", h, workBlocks+6)
	}
}
