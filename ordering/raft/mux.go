package raft

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	hraft "github.com/hashicorp/raft"
)

// The first byte of a connection.
const (
	channelRaft    = 'R' // the library's protocol
	channelForward = 'T' // transactions to the leader: forward.go
	channelBlocks  = 'B' // reading blocks: fetch.go
)

const (
	// greetTimeout is how long a new connection may take to say what it is for.
	greetTimeout = 10 * time.Second
	// maxConns bounds the connections of others: some for each orderer.
	maxConns = 1024
)

// mux shares one listener between the kinds of connections. Towards the library
// it is the layer below its transport.
type mux struct {
	o       *Orderer
	raft    chan net.Conn
	closing chan struct{}
	workers sync.WaitGroup

	mu     sync.Mutex
	closed bool
	conns  map[*conn]struct{}
}

var _ hraft.StreamLayer = (*mux)(nil)

// conn is a connection that its mux can close.
type conn struct {
	net.Conn
	m *mux
}

// Close closes the connection and forgets it.
func (c *conn) Close() error {
	c.m.mu.Lock()
	delete(c.m.conns, c)
	c.m.mu.Unlock()
	return c.Conn.Close()
}

func newMux(o *Orderer) *mux {
	return &mux{o: o, raft: make(chan net.Conn), closing: make(chan struct{}), conns: make(map[*conn]struct{})}
}

// track registers a connection; if that is not possible it is closed.
func (m *mux) track(nc net.Conn) (*conn, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed || len(m.conns) >= maxConns {
		return nil, errors.Join(errors.New("raft: no room for a connection"), nc.Close())
	}
	c := &conn{nc, m}
	m.conns[c] = struct{}{}
	return c, nil
}

// serve accepts connections until the listener is closed.
func (m *mux) serve() {
	for {
		nc, err := m.o.opts.Listener.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) || m.isClosed() {
				return
			}
			m.o.log.Warn("accepting a connection", "error", err)
			select {
			case <-time.After(100 * time.Millisecond): // too many open files, for example
				continue
			case <-m.closing:
				return
			}
		}
		c, err := m.track(nc)
		if err != nil {
			continue
		}
		m.workers.Go(func() { m.greet(c) })
	}
}

// greet finds out what a connection is for and serves it.
func (m *mux) greet(c *conn) {
	var kind [1]byte
	_ = c.SetReadDeadline(time.Now().Add(greetTimeout)) // a failure shows in the next call
	if _, err := io.ReadFull(c, kind[:]); err != nil {
		_ = c.Close()
		return
	}
	_ = c.SetReadDeadline(time.Time{})
	if kind[0] == channelRaft {
		select {
		case m.raft <- c:
		case <-m.closing:
			_ = c.Close()
		}
		return
	}
	defer c.Close()
	var err error
	switch kind[0] {
	case channelForward:
		err = m.o.serveForward(c)
	case channelBlocks:
		err = m.o.serveBlocks(c)
	default:
		err = malformed("a connection for %q", kind[0])
	}
	if errors.Is(err, errMalformed) {
		m.o.log.Warn("closed a connection", "from", c.RemoteAddr(), "error", err)
	}
}

// dial connects to another orderer for a purpose.
func (m *mux) dial(ctx context.Context, kind byte, address string) (*conn, error) {
	nc, err := m.o.opts.Dial(ctx, address)
	if err != nil {
		return nil, fmt.Errorf("raft: connecting to %s: %w", address, err)
	}
	c, err := m.track(nc)
	if err != nil {
		return nil, err
	}
	if deadline, ok := ctx.Deadline(); ok {
		_ = c.SetWriteDeadline(deadline)
	}
	if _, err := c.Write([]byte{kind}); err != nil {
		return nil, errors.Join(fmt.Errorf("raft: greeting %s: %w", address, err), c.Close())
	}
	_ = c.SetWriteDeadline(time.Time{})
	return c, nil
}

// Dial implements the library's interface.
func (m *mux) Dial(address hraft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(m.o.closed, timeout)
	defer cancel()
	c, err := m.dial(ctx, channelRaft, string(address))
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Accept implements the library's interface.
func (m *mux) Accept() (net.Conn, error) {
	select {
	case c := <-m.raft:
		return c, nil
	case <-m.closing:
		return nil, net.ErrClosed
	}
}

// Close implements the library's interface; the orderer closes by shutdown.
func (m *mux) Close() error { return nil }

// Addr returns the address that other orderers dial.
func (m *mux) Addr() net.Addr { return advertised(m.o.opts.Address) }

// advertised is an address as Dial understands it.
type advertised string

// Network returns a name for the kind of address.
func (a advertised) Network() string { return "orderer" }

// String returns the address.
func (a advertised) String() string { return string(a) }

func (m *mux) isClosed() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.closed
}

// shutdown closes listener and connections, and waits for who serves them.
func (m *mux) shutdown() error {
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return nil
	}
	m.closed = true
	close(m.closing)
	open := make([]*conn, 0, len(m.conns))
	for c := range m.conns {
		open = append(open, c)
	}
	m.mu.Unlock()
	err := m.o.opts.Listener.Close()
	if errors.Is(err, net.ErrClosed) {
		err = nil
	}
	for _, c := range open {
		_ = c.Close() // who uses it gets the error
	}
	m.workers.Wait()
	return err
}
