package scratch

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Node is a running `tallystick dev`.
type Node struct {
	Addr string
	Log  string // path of its log

	dir, binary string
	cmd         *exec.Cmd
	exited      chan struct{}
}

const (
	readyTimeout = 2 * time.Minute
	stopTimeout  = 20 * time.Second
)

// StartNode builds the program from the module around the working directory,
// or takes binary if it is not empty, and starts it on a new data directory.
// Its log goes to the file log.
func StartNode(binary, log string) (*Node, error) {
	dir, err := os.MkdirTemp("", "conformance-node-")
	if err != nil {
		return nil, err
	}
	n := &Node{dir: dir, binary: binary, Log: log}
	if n.binary == "" {
		n.binary = filepath.Join(dir, "tallystick")
		build := exec.Command("go", "build", "-o", n.binary, "github.com/tallystick/tallystick/cmd/tallystick")
		if out, err := build.CombinedOutput(); err != nil {
			os.RemoveAll(dir)
			return nil, fmt.Errorf("go build: %w: %s", err, out)
		}
	}
	if err := n.Restart(); err != nil {
		return nil, errors.Join(err, n.Stop())
	}
	return n, nil
}

// Running tells whether the process lives.
func (n *Node) Running() bool {
	select {
	case <-n.exited:
		return false
	default:
		return true
	}
}

// Restart starts the process on its data, after it ended or for the first time,
// and returns when it serves.
func (n *Node) Restart() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	n.Addr = l.Addr().String()
	l.Close()
	log, err := os.OpenFile(n.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	n.cmd = exec.Command(n.binary, "dev", "--data", filepath.Join(n.dir, "data"), "--listen", n.Addr)
	n.cmd.Stderr = log
	stdout, err := n.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := n.cmd.Start(); err != nil {
		return err
	}
	ready, exited := make(chan struct{}), make(chan struct{})
	n.exited = exited
	go func() {
		watch(stdout, ready)
		_ = n.cmd.Wait()
		close(exited)
	}()
	select {
	case <-ready:
		return nil
	case <-exited:
		return fmt.Errorf("the node ended before it was ready; see %s", n.Log)
	case <-time.After(readyTimeout):
		return fmt.Errorf("the node was not ready after %v; see %s", readyTimeout, n.Log)
	}
}

// watch reads standard output to its end and tells when the node serves.
func watch(stdout io.Reader, ready chan<- struct{}) {
	lines := bufio.NewScanner(stdout)
	for told := false; lines.Scan(); {
		if !told && strings.HasPrefix(lines.Text(), "ready") {
			told = true
			close(ready)
		}
	}
}

// Stop ends the process and removes its data.
func (n *Node) Stop() error {
	if n.exited != nil && n.Running() {
		_ = n.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-n.exited:
		case <-time.After(stopTimeout):
			_ = n.cmd.Process.Kill()
			<-n.exited
		}
	}
	return os.RemoveAll(n.dir)
}
