package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// command runs a command line to its end.
func command(args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = run(context.Background(), args, &out, &errs)
	return code, out.String(), errs.String()
}

func TestHelpTeaches(t *testing.T) {
	code, out, errs := command()
	if code != 0 || errs != "" {
		t.Errorf("exit code %d, standard error %q", code, errs)
	}
	for _, want := range []string{"tallystick dev --data", "psql postgres://admin@", "\n  init ", "\n  bench ", "verify", "version", "lint", "test"} {
		if !strings.Contains(out, want) {
			t.Errorf("help does not name %q:\n%s", want, out)
		}
	}
	// What does not exist must not be offered.
	for _, name := range []string{"\n  snapshot ", "\n  completion "} {
		if strings.Contains(out, name) {
			t.Errorf("help offers %q", strings.TrimSpace(name))
		}
	}
}

func TestVersion(t *testing.T) {
	code, out, _ := command("version")
	if code != 0 || !strings.HasPrefix(out, "tallystick ") || !strings.Contains(out, "engine version 1") {
		t.Errorf("exit code %d, %q", code, out)
	}
}

func TestRefusedCommandLines(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	for _, tc := range []struct {
		args string
		want string // in standard error
	}{
		{"nonsense", `unknown command "nonsense"`},
		{"dev", `"data" not set`},
		{"dev --data " + data + " extra", "unknown command"},
		{"dev --data " + data + " --orderer zyzzyva", "SQLSTATE 0A000"},
		{"dev --data " + data + " --http 127.0.0.1:8080", "SQLSTATE 0A000"},
		{"dev --data " + data + " --flow sideways", "order-then-execute, execute-order-in-parallel"},
		{"dev --data " + data + " --orderer kafka", "solo, raft, pbft, zyzzyva"},
		{"dev --data " + data + " --rule none", "abort-during-commit, block-aware, exact"},
		{"dev --data " + data + " --workers -1", "--workers"},
		{"dev --data " + data + " --listen 0.0.0.0:6432", "loopback"},
		{"dev --data " + data + " --listen :6432", "loopback"},
		{"dev --data " + data + " --listen [::]:6432", "loopback"},
		{"dev --data " + data + " --listen 192.0.2.1:6432", "loopback"},
		{"dev --data " + data + " --listen 127.0.0.1", "missing port"},
		{"dev --data " + data + " --listen 127.0.0.1:http6", "http6"},
		{"verify", "accepts 1 arg"},
		{"lint", "requires at least 1 arg"},
		{"test", "requires at least 1 arg"},
		{"verify " + data, "neither a data directory"},
	} {
		t.Run(tc.args, func(t *testing.T) {
			code, out, errs := command(strings.Fields(tc.args)...)
			if code != 1 || out != "" || !strings.Contains(errs, tc.want) {
				t.Errorf("exit code %d, standard output %q, standard error %q; want %q in it", code, out, errs, tc.want)
			}
		})
	}
}

func TestLoopbackAddr(t *testing.T) {
	for addr, want := range map[string]string{
		"127.0.0.1:6432":          "127.0.0.1:6432",
		"127.8.9.10:1":            "127.8.9.10:1",
		"[::1]:6432":              "[::1]:6432",
		"[::ffff:127.0.0.1]:6432": "127.0.0.1:6432",
		"localhost:6432":          "127.0.0.1:6432",
		"10.0.0.1:6432":           "",
		"[fe80::1]:6432":          "",
		"[::ffff:10.0.0.1]:6432":  "",
	} {
		got, err := loopbackAddr(context.Background(), addr)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%s becomes %q, error %v; want %q", addr, got, err, want)
		}
	}
}

// devRun is `tallystick dev` in this process.
type devRun struct {
	url    string
	stop   context.CancelFunc
	code   chan int
	stdout *bufio.Reader
	stderr *lockedBuffer
}

// lockedBuffer is written by one goroutine and read by another.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func dev(t *testing.T, dir string, flags ...string) *devRun {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	r, w := io.Pipe()
	d := &devRun{stop: stop, code: make(chan int, 1), stdout: bufio.NewReader(r), stderr: &lockedBuffer{}}
	args := append([]string{"dev", "--data", dir, "--listen", "127.0.0.1:0"}, flags...)
	go func() {
		d.code <- run(ctx, args, w, d.stderr)
		_ = w.Close()
	}()
	t.Cleanup(stop)
	line, err := d.stdout.ReadString('\n')
	if err != nil {
		t.Fatalf("no line on standard output: %v\n%s", err, d.stderr)
	}
	var ok bool
	if d.url, ok = strings.CutPrefix(strings.TrimSpace(line), "ready "); !ok {
		t.Fatalf("standard output begins %q", line)
	}
	return d
}

// end stops the node and wants nothing more on standard output.
func (d *devRun) end(t *testing.T) {
	t.Helper()
	d.stop()
	rest, err := io.ReadAll(d.stdout)
	if err != nil || len(rest) > 0 {
		t.Errorf("standard output goes on with %q, error %v", rest, err)
	}
	select {
	case code := <-d.code:
		if code != 0 {
			t.Errorf("exit code %d\n%s", code, d.stderr)
		}
	case <-time.After(time.Minute):
		t.Fatal("the node does not end")
	}
}

func TestDevAndVerify(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	d := dev(t, dir, "--rule", "block-aware", "--workers", "2")
	cfg, err := pgx.ParseConfig(d.url)
	if err != nil {
		t.Fatalf("the line names no address: %v", err)
	}
	if ip := net.ParseIP(cfg.Host); cfg.User != "admin" || cfg.Database != "tallystick" || ip == nil || !ip.IsLoopback() {
		t.Errorf("the line names %s", d.url)
	}
	conn, err := pgx.ConnectConfig(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(context.Background(), "CREATE TABLE t(id int PRIMARY KEY)"); err != nil {
		t.Error(err)
	}
	if code, _, errs := command("verify", dir); code != 1 || !strings.Contains(errs, "is a node running") {
		t.Errorf("verify beside the node: exit code %d, %q", code, errs)
	}
	_ = conn.Close(context.Background())
	d.end(t)
	for _, want := range []string{d.url, "CREATE TABLE", "signs for whoever connects"} {
		if !strings.Contains(d.stderr.String(), want) {
			t.Errorf("standard error does not have %q", want)
		}
	}

	code, out, errs := command("verify", dir)
	if code != 0 || errs != "" || !strings.HasSuffix(out, "all holds\n") || strings.Contains(out, "state hash") {
		t.Errorf("verify: exit code %d, %q, %q", code, out, errs)
	}
	code, out, errs = command("verify", dir, "--replay", "--json")
	var report jsonReport
	if err := json.Unmarshal([]byte(out), &report); err != nil || code != 0 || errs != "" {
		t.Fatalf("verify --replay --json: exit code %d, %q, %q: %v", code, out, errs, err)
	}
	if !report.OK || report.Tip != 3 || report.Transactions != 3 || report.Replay == nil || report.Replay.Committed != 3 ||
		report.Replay.Compared == nil || *report.Replay.Compared != 3 || len(report.Replay.StateHash) != 64 {
		t.Errorf("report %+v, replay %+v", report, report.Replay)
	}
	code, out, _ = command("verify", dir, "--replay")
	if code != 0 || !strings.Contains(out, report.Replay.StateHash) {
		t.Errorf("verify --replay: exit code %d, %q", code, out)
	}

	// A byte of the last block is not what it was.
	path := filepath.Join(dir, "blocks", "pgblockstore-00000000")
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	raw[len(raw)-1] ^= 1
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, errs = command("verify", dir)
	for _, want := range []string{"block 3, blocks/pgblockstore-00000000, offset "} {
		if code != 1 || !strings.Contains(errs, want) || !strings.Contains(out, "first bad") || strings.Contains(out, "all holds") {
			t.Errorf("verify of a damaged store: exit code %d, %q, %q", code, out, errs)
		}
	}
	code, out, _ = command("verify", dir, "--json")
	report = jsonReport{}
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatal(err)
	}
	if code != 1 || report.OK || report.Bad == nil || report.Bad.Height != 3 || report.Bad.Reason == "" || report.Bad.Offset <= 0 {
		t.Errorf("verify --json of a damaged store: exit code %d, %s", code, out)
	}
}

// TestProgressIsForTerminals: what is no terminal gets nothing.
func TestProgressIsForTerminals(t *testing.T) {
	var b bytes.Buffer
	f, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, w := range []io.Writer{&b, f} {
		p := newProgress(w)
		p.next = time.Time{}
		p.stage("checking", 1, 2)
		p.done()
	}
	info, err := f.Stat()
	if err != nil || info.Size() != 0 || b.Len() != 0 {
		t.Errorf("wrote %d bytes to a file and %q, error %v", info.Size(), b.String(), err)
	}
	p := &progress{w: &b}
	p.stage("checking", 1, 2)
	p.stage("checking", 2, 2) // too soon
	p.done()
	if got, want := b.String(), "\rchecking: 50 %\r              \r"; got != want {
		t.Errorf("wrote %q, want %q", got, want)
	}
}
