package e2e

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	// Database and Admin are what `tallystick dev` sets up.
	Database = "tallystick"
	Admin    = "admin"

	readyTimeout = time.Minute
	stopTimeout  = time.Minute
	// logTail is how much of a node's log a failed test shows.
	logTail = 64 << 10
)

// Node is a development network of one node, running or not.
type Node struct {
	Dir, Addr string
	t         testing.TB
	flags     []string
	cmd       *exec.Cmd
	exited    chan struct{} // closed once the process is gone
	exit      error
	log       *tail
}

// Start runs `tallystick dev` on a new data directory; flags are added to its
// command line. The node is stopped when the test ends.
func Start(t testing.TB, flags ...string) *Node {
	t.Helper()
	n := &Node{Dir: t.TempDir(), t: t, flags: flags, log: &tail{}}
	n.Start()
	t.Cleanup(func() {
		n.Kill()
		if t.Failed() {
			t.Logf("log of the node:\n%s", n.log)
		}
	})
	return n
}

// Start runs the node, on a free port, and returns when it serves.
func (n *Node) Start() {
	n.t.Helper()
	n.StartAt(freeAddr(n.t))
}

// StartAt runs the node at an address, for example where it was before.
func (n *Node) StartAt(addr string) {
	n.t.Helper()
	n.Addr = addr
	args := append([]string{"dev", "--data", n.Dir, "--listen", n.Addr}, n.flags...)
	n.cmd = exec.Command(binary, args...)
	n.cmd.Stderr = n.log
	stdout, err := n.cmd.StdoutPipe()
	if err != nil {
		n.t.Fatal(err)
	}
	if err := n.cmd.Start(); err != nil {
		n.t.Fatal(err)
	}
	ready := make(chan struct{})
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		n.watch(stdout, ready)
	}()
	exited := make(chan struct{})
	n.exited = exited
	go func() {
		<-drained // Wait closes the pipe: it must have been read before
		n.exit = n.cmd.Wait()
		close(exited)
	}()
	select {
	case <-ready:
	case <-exited:
		n.t.Fatalf("the node ended before it was ready: %v\n%s", n.exit, n.log)
	case <-time.After(readyTimeout):
		n.Kill()
		n.t.Fatalf("the node was not ready after %v\n%s", readyTimeout, n.log)
	}
}

// watch reads standard output, which says when the node serves.
func (n *Node) watch(stdout io.Reader, ready chan struct{}) {
	lines := bufio.NewScanner(stdout)
	told := false
	for lines.Scan() {
		fmt.Fprintln(n.log, lines.Text())
		if !told && strings.HasPrefix(lines.Text(), "ready") {
			told = true
			close(ready)
		}
	}
	_, _ = io.Copy(io.Discard, stdout)
}

// Kill ends the process as a power failure would, as far as the program is
// concerned; a node that is not running stays so.
func (n *Node) Kill() {
	n.t.Helper()
	if n.cmd == nil {
		return
	}
	_ = n.cmd.Process.Kill()
	<-n.exited
	n.cmd = nil
}

// Stop asks the process to end and wants exit code 0.
func (n *Node) Stop() {
	n.t.Helper()
	if err := n.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		n.t.Fatal(err)
	}
	select {
	case <-n.exited:
	case <-time.After(stopTimeout):
		n.Kill()
		n.t.Fatalf("the node did not stop within %v", stopTimeout)
	}
	n.cmd = nil
	if n.exit != nil {
		n.t.Fatalf("stopping the node: %v", n.exit)
	}
}

// URL is the connection string of a user.
func (n *Node) URL(user string) string {
	return fmt.Sprintf("postgres://%s@%s/%s?sslmode=disable", user, n.Addr, Database)
}

// env is how libpq finds the node, with nothing of this machine's settings.
func (n *Node) env(user string) []string {
	host, port, err := net.SplitHostPort(n.Addr)
	if err != nil {
		n.t.Fatal(err)
	}
	return []string{"PGHOST=" + host, "PGPORT=" + port, "PGUSER=" + user, "PGDATABASE=" + Database, "PGSSLMODE=disable",
		"PGCONNECT_TIMEOUT=20", "PGCLIENTENCODING=UTF8", "LC_ALL=C", "TZ=UTC", "PATH=/usr/lib/postgresql/15/bin:/usr/local/bin:/usr/bin:/bin"}
}

func freeAddr(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// tail keeps the end of what is written to it.
type tail struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (w *tail) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.buf.Write(p)
	if w.buf.Len() > 2*logTail {
		w.buf.Next(w.buf.Len() - logTail)
	}
	return len(p), nil
}

func (w *tail) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.buf.String()
}

// run runs a client program to its end; a failure to run it at all is fatal.
func (n *Node) run(user, stdin, name string, args ...string) (string, error) {
	n.t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = n.env(user)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		n.t.Fatalf("%s: %v", name, err)
	}
	return string(out), err
}
