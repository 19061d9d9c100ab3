package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/spf13/cobra"

	"github.com/tallystick/tallystick/server/home"
)

// The files of a running network in its directory.
const (
	netLockFile = "net.lock"
	netPIDFile  = "net.pid"
)

func newNet() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "net",
		Short: "Start and stop all processes of a network on this machine",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newNetUp(), newNetDown())
	return cmd
}

func newNetUp() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "up --dir DIR",
		Short: "Start all orderers and nodes of a network as processes",
		Long: `Start all orderers and nodes whose homes are in DIR as processes of their own. Their
logs go to standard error, each line after the name of its process. Standard output
gets one line beginning with "ready" once all of them serve.

A process that ends is not started again: that is what a service manager is for.
SIGTERM, SIGINT and tallystick net down end all of them in order.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runNetUp(cmd.Context(), dir, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", "`directory` of the network (required)")
	cobra.CheckErr(cmd.MarkFlagRequired("dir"))
	return cmd
}

// process is an orderer or node that runs.
type process struct {
	home home.Home
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
	err  error
}

func runNetUp(ctx context.Context, dir string, stdout, stderr io.Writer) error {
	homes, err := home.NetworkHomes(dir)
	if err != nil {
		return err
	}
	lock, err := vfs.Default.Lock(filepath.Join(dir, netLockFile))
	if err != nil {
		return fmt.Errorf("the network in %s is up already (%w)", dir, err)
	}
	defer lock.Close() // nothing depends on it
	pidFile := filepath.Join(dir, netPIDFile)
	if err := os.WriteFile(pidFile, []byte(strconv.Itoa(os.Getpid())+"\n"), 0o644); err != nil {
		return err
	}
	defer os.Remove(pidFile)
	out := &prefixer{w: stderr}
	var all []*process
	defer func() { stopAll(all) }()
	ready, ended := make(chan *process), make(chan *process)
	stop := make(chan struct{})
	defer close(stop)
	for _, kind := range []home.Kind{home.OrdererHome, home.NodeHome} {
		for _, h := range homes {
			if h.Kind != kind {
				continue
			}
			p, err := startProcess(h, out, ready, ended, stop)
			if err != nil {
				return err
			}
			all = append(all, p)
		}
	}
	waiting := len(all)
	running := len(all)
	for {
		select {
		case <-ready:
			if waiting--; waiting == 0 {
				fmt.Fprintf(stdout, "ready %d processes\n", len(all))
			}
		case p := <-ended:
			running--
			fmt.Fprintf(stderr, "%s/%s has ended: %s; it is not started again\n", p.home.Org, p.home.Name, reason(p.err))
			if waiting > 0 {
				return fmt.Errorf("%s/%s ended before it was ready", p.home.Org, p.home.Name)
			}
			if running == 0 {
				return errors.New("no process is left")
			}
		case <-ctx.Done():
			return nil
		}
	}
}

func reason(err error) string {
	if err == nil {
		return "exit status 0"
	}
	return err.Error()
}

// startProcess starts this program on a home.
func startProcess(h home.Home, out *prefixer, ready, ended chan<- *process, stop <-chan struct{}) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	command := "start"
	if h.Kind == home.OrdererHome {
		command = "orderer"
	}
	p := &process{home: h, cmd: exec.Command(self, command, "--home", h.Dir), done: make(chan struct{})}
	// A group of its own: Ctrl-C reaches this process alone, which ends the others
	// in order.
	p.cmd.SysProcAttr = processGroup()
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p.cmd.Stdout, p.cmd.Stderr = write, write
	err = p.cmd.Start()
	_ = write.Close()
	if err != nil {
		return nil, errors.Join(err, read.Close())
	}
	go func() {
		out.copy(h.Org+"/"+h.Name, read, func() {
			select {
			case ready <- p:
			case <-stop:
			}
		})
		p.err = p.cmd.Wait()
		close(p.done)
		select {
		case ended <- p:
		case <-stop:
		}
	}()
	return p, nil
}

// stopTimeout is how long processes may take to end.
const stopTimeout = 30 * time.Second

// stopAll ends all processes, nodes before orderers, for they hand over what is
// under way.
func stopAll(all []*process) {
	for _, kind := range []home.Kind{home.NodeHome, home.OrdererHome} {
		deadline := time.After(stopTimeout)
		for _, p := range all {
			if p.home.Kind == kind {
				_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may be gone
			}
		}
		for _, p := range all {
			if p.home.Kind != kind {
				continue
			}
			select {
			case <-p.done:
			case <-deadline:
				_ = p.cmd.Process.Kill()
				<-p.done
			}
		}
	}
}

// prefixer writes the lines of several processes to one place.
type prefixer struct {
	mu sync.Mutex
	w  io.Writer
}

// maxLine bounds a line of a process; the rest becomes another one.
const maxLine = 64 << 10

// copy writes lines with a prefix until r ends; ready is called at the first one
// that begins with ready.
func (p *prefixer) copy(prefix string, r io.ReadCloser, ready func()) {
	defer r.Close()
	in := bufio.NewReaderSize(r, maxLine)
	told := false
	for {
		line, err := in.ReadSlice('\n')
		if len(line) > 0 {
			text := strings.TrimSuffix(string(line), "\n")
			p.mu.Lock()
			fmt.Fprintf(p.w, "%-20s | %s\n", prefix, text)
			p.mu.Unlock()
			if !told && strings.HasPrefix(text, "ready") {
				told = true
				ready()
			}
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}

func newNetDown() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "down --dir DIR",
		Short: "Stop what tallystick net up has started",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runNetDown(cmd.Context(), dir)
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", "`directory` of the network (required)")
	cobra.CheckErr(cmd.MarkFlagRequired("dir"))
	return cmd
}

// runNetDown ends the process that holds the lock of the network, and with it all
// others.
func runNetDown(ctx context.Context, dir string) error {
	if !isLocked(dir) {
		return fmt.Errorf("the network in %s is not up", dir)
	}
	text, err := os.ReadFile(filepath.Join(dir, netPIDFile))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the network in %s is being started or stopped; try again", dir)
	}
	if err != nil {
		return err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || pid < 2 {
		return fmt.Errorf("%s does not have the number of a process", filepath.Join(dir, netPIDFile))
	}
	p, err := os.FindProcess(pid)
	if err == nil {
		err = p.Signal(syscall.SIGTERM)
	}
	if err != nil {
		return err
	}
	for isLocked(dir) {
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func isLocked(dir string) bool {
	path := filepath.Join(dir, netLockFile)
	if _, err := os.Stat(path); err != nil {
		return false
	}
	lock, err := vfs.Default.Lock(path)
	if err != nil {
		return true
	}
	_ = lock.Close()
	return false
}
