package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Process is a process of the program that says ready, running or not.
type Process struct {
	t      testing.TB
	name   string
	args   []string
	cmd    *exec.Cmd
	exited chan struct{}
	exit   error
	log    *tail
}

// NewProcess prepares a process. It is killed when the test ends.
func NewProcess(t testing.TB, name string, args ...string) *Process {
	p := &Process{t: t, name: name, args: args, log: &tail{}}
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			t.Logf("log of %s:\n%s", p.name, p.log)
		}
	})
	return p
}

// Begin starts the process without waiting.
func (p *Process) Begin() (ready <-chan struct{}) {
	p.t.Helper()
	p.cmd = exec.Command(binary, p.args...)
	p.cmd.Stderr = p.log
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	told, exited := make(chan struct{}), make(chan struct{})
	p.exited = exited
	go func() {
		lines := bufio.NewScanner(stdout)
		for open := true; lines.Scan(); {
			fmt.Fprintln(p.log, lines.Text())
			if open && strings.HasPrefix(lines.Text(), "ready") {
				open = false
				close(told)
			}
		}
		_, _ = io.Copy(io.Discard, stdout)
		p.exit = p.cmd.Wait()
		close(exited)
	}()
	return told
}

// Await returns when the process serves.
func (p *Process) Await(ready <-chan struct{}) {
	p.t.Helper()
	select {
	case <-ready:
	case <-p.exited:
		p.t.Fatalf("%s ended before it was ready: %v\n%s", p.name, p.exit, p.log)
	case <-time.After(readyTimeout):
		p.t.Fatalf("%s was not ready after %v\n%s", p.name, readyTimeout, p.log)
	}
}

// Start starts the process and returns when it serves.
func (p *Process) Start() {
	p.t.Helper()
	p.Await(p.Begin())
}

// Kill ends the process as a power failure would.
func (p *Process) Kill() {
	if p.cmd == nil {
		return
	}
	_ = p.cmd.Process.Kill()
	<-p.exited
	p.cmd = nil
}

// Stop asks the process to end and wants exit code 0.
func (p *Process) Stop() {
	p.t.Helper()
	p.signal(syscall.SIGTERM)
	select {
	case <-p.exited:
	case <-time.After(stopTimeout):
		p.t.Fatalf("%s did not stop within %v", p.name, stopTimeout)
	}
	p.cmd = nil
	if p.exit != nil {
		p.t.Fatalf("stopping %s: %v", p.name, p.exit)
	}
}

// Wait returns when the process has ended by itself.
func (p *Process) Wait() error {
	p.t.Helper()
	select {
	case <-p.exited:
	case <-time.After(stopTimeout):
		p.t.Fatalf("%s did not end within %v", p.name, stopTimeout)
	}
	p.cmd = nil
	return p.exit
}

// Pause stops the process in its tracks, and Resume lets it go on.
func (p *Process) Pause() { p.signal(syscall.SIGSTOP) }

// Resume is the opposite of Pause.
func (p *Process) Resume() { p.signal(syscall.SIGCONT) }

func (p *Process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatalf("%s: %v", p.name, err)
	}
}

// Log is what the process has logged last.
func (p *Process) Log() string { return p.log.String() }

// Network is a network of several organizations, each with a node, one or more
// orderers, and wallets of its admin and of alice.
type Network struct {
	Dir  string
	Orgs []string
	// Nodes are by organization, Orderers and Wallets by organization/name.
	Nodes, Orderers, Wallets map[string]*Process

	t         testing.TB
	addresses map[string]string // of wallets
}

// StartNetwork makes a network with so many orderers of a protocol, dealt out to the
// organizations in turn, and starts all of it; flags are added to tallystick init.
func StartNetwork(t testing.TB, orgs []string, consensus string, orderers int, flags ...string) *Network {
	t.Helper()
	n := &Network{Dir: filepath.Join(t.TempDir(), "net"), Orgs: orgs, t: t, addresses: map[string]string{},
		Nodes: map[string]*Process{}, Orderers: map[string]*Process{}, Wallets: map[string]*Process{}}
	users := []string{Admin, "alice"}
	// Two ports a node or orderer and one a wallet, one organization after the other.
	port := FreePorts(t, 2*(len(orgs)+orderers)+len(users)*len(orgs))
	args := append([]string{"init", "--dir", n.Dir, "--orgs", strings.Join(orgs, ","), "--users", "alice", "--port", strconv.Itoa(port),
		"--consensus", consensus, "--orderers", strconv.Itoa(orderers)}, flags...)
	if out, err := Command(t, args...); err != nil {
		t.Fatalf("init: %v\n%s", err, out)
	}
	var ready []func()
	begin := func(p *Process) *Process {
		r := p.Begin()
		ready = append(ready, func() { p.Await(r) })
		return p
	}
	for i, org := range orgs {
		own := (orderers + len(orgs) - 1 - i) / len(orgs)
		for k := range own {
			name := fmt.Sprintf("orderer%d", k+1)
			n.Orderers[org+"/"+name] = begin(NewProcess(t, org+"/"+name, "orderer", "--home", filepath.Join(n.Dir, org, name)))
		}
		n.Nodes[org] = begin(NewProcess(t, org+"/node1", "start", "--home", filepath.Join(n.Dir, org, "node1")))
		port += 2 * (1 + own)
		for _, user := range users {
			at := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
			port++
			name := org + "/" + user
			n.Wallets[name] = begin(NewProcess(t, name, "wallet", "--home", filepath.Join(n.Dir, org, "users", user), "--listen", at))
			n.addresses[name] = at
		}
	}
	for _, wait := range ready {
		wait()
	}
	return n
}

// FreePorts finds consecutive ports that nobody listens on.
func FreePorts(t testing.TB, count int) int {
	t.Helper()
	for range 100 {
		first := 21000 + rand.IntN(40000)
		free := true
		for i := range count {
			l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(first+i)))
			if err != nil {
				free = false
				break
			}
			l.Close()
		}
		if free {
			return first
		}
	}
	t.Fatal("no free ports")
	return 0
}

// URL is the connection string of a user (organization/name) at its wallet.
func (n *Network) URL(user string) string {
	_, name, _ := strings.Cut(user, "/")
	return fmt.Sprintf("postgres://%s@%s/%s?sslmode=disable", name, n.addresses[user], Database)
}

// Psql runs a script as a user (organization/name) at its wallet.
func (n *Network) Psql(user, script string) (string, error) {
	n.t.Helper()
	_, name, _ := strings.Cut(user, "/")
	d := &Node{Addr: n.addresses[user], t: n.t}
	out, err := d.run(name, script, "psql", "-X", "-q", "-A", "-t", "-v", "VERBOSITY=verbose", "-v", "ON_ERROR_STOP=1")
	return strings.TrimSpace(out), err
}

// MustPsql runs a script that must have no error.
func (n *Network) MustPsql(user, script string) string {
	n.t.Helper()
	out, err := n.Psql(user, script)
	if err != nil {
		n.t.Fatalf("psql as %s: %v\n%s", user, err, out)
	}
	return out
}

// Deploy has the first organization propose a script, and all approve it.
func (n *Network) Deploy(script string) {
	n.t.Helper()
	first := n.Orgs[0] + "/" + Admin
	number := n.MustPsql(first, "SELECT create_deploytx($deploy$"+script+"$deploy$);")
	for _, org := range n.Orgs {
		// Others see the proposal when their node has its block.
		n.Eventually("the proposal at "+org, func() error {
			out, err := n.Psql(org+"/"+Admin, "SELECT approve_deploytx("+number+");")
			if err != nil {
				return fmt.Errorf("%w: %s", err, out)
			}
			return nil
		})
	}
	n.MustPsql(first, "SELECT submit_deploytx("+number+");")
}

// MemberStatus is a part of tallystick status --json.
type MemberStatus struct {
	Org    string `json:"org"`
	Name   string `json:"name"`
	Height uint64 `json:"height"`
	State  string `json:"state_hash"`
	Leader string `json:"leader"`
	Error  string `json:"error"`
}

// NetworkStatus is what tallystick status --json prints.
type NetworkStatus struct {
	Agree    bool           `json:"agree"`
	Nodes    []MemberStatus `json:"nodes"`
	Orderers []MemberStatus `json:"orderers"`
}

// Status asks all members; its error is the exit code of the command.
func (n *Network) Status() (NetworkStatus, error) {
	n.t.Helper()
	out, err := Command(n.t, "status", "--dir", n.Dir, "--json")
	var s NetworkStatus
	if e := json.Unmarshal([]byte(out), &s); e != nil {
		n.t.Fatalf("status: %v\n%s", e, out)
	}
	return s, err
}

// Settled waits until all nodes are at one height with one state hash, and returns
// them.
func (n *Network) Settled() (height uint64, state string) {
	n.t.Helper()
	n.Eventually("all nodes at one height", func() error {
		s, err := n.Status()
		if err != nil {
			return err
		}
		top := uint64(0)
		for _, o := range append(s.Nodes, s.Orderers...) {
			top = max(top, o.Height)
		}
		for _, m := range s.Nodes {
			if m.Height != top {
				return fmt.Errorf("%s/%s has height %d of %d", m.Org, m.Name, m.Height, top)
			}
			if m.State != s.Nodes[0].State {
				n.t.Fatalf("state hashes differ at height %d: %+v", top, s.Nodes)
			}
		}
		height, state = top, s.Nodes[0].State
		return nil
	})
	return height, state
}

// Eventually tries something until it succeeds.
func (n *Network) Eventually(what string, try func() error) {
	n.t.Helper()
	deadline := time.Now().Add(readyTimeout)
	for {
		err := try()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			n.t.Fatalf("%s: %v", what, err)
		}
		time.Sleep(200 * time.Millisecond)
	}
}
