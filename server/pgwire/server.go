package pgwire

import (
	"context"
	"crypto/rand"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Server serves PostgreSQL clients.
type Server struct {
	cfg Config
	// base ends when Shutdown gives up waiting; every statement runs under it.
	base   context.Context
	cancel context.CancelCauseFunc
	pids   atomic.Int32

	mu        sync.Mutex
	listeners map[net.Listener]struct{}
	conns     map[*conn]struct{} // every accepted connection
	sessions  map[int32]*conn    // those that cancel requests can reach
	admitted  int                // connections beyond negotiation
	closing   bool
	idle      chan struct{} // closed when closing and conns is empty

	metrics counters
}

// New makes a server; cfg is completed with defaults and validated.
func New(cfg Config) (*Server, error) {
	cfg.EnsureDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	s := &Server{
		cfg:       cfg,
		listeners: make(map[net.Listener]struct{}),
		conns:     make(map[*conn]struct{}),
		sessions:  make(map[int32]*conn),
		idle:      make(chan struct{}),
	}
	s.base, s.cancel = context.WithCancelCause(context.Background())
	return s, nil
}

// ErrServerClosed is what Serve returns after Shutdown.
var ErrServerClosed = errors.New("pgwire: server closed")

const (
	acceptBackoffFirst = 5 * time.Millisecond
	acceptBackoffMax   = time.Second
	// forceGrace is how long a connection gets, after its statement was
	// canceled, to tell its client.
	forceGrace = 250 * time.Millisecond
)

// Serve accepts connections until l fails, ctx ends or Shutdown is called. It
// closes l. The end of ctx stops accepting only; connections live on until
// Shutdown.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	if !s.track(l) {
		_ = l.Close()
		return ErrServerClosed
	}
	defer s.untrack(l)
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	backoff := acceptBackoffFirst
	for {
		nc, err := l.Accept()
		if err == nil {
			backoff = acceptBackoffFirst
			s.accept(nc)
			continue
		}
		switch {
		case s.isClosing():
			return ErrServerClosed
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, net.ErrClosed):
			return err
		}
		// Out of file descriptors, or a client that left at once: others will
		// want to come in later.
		s.cfg.Logger.Warn("accept failed", "error", err, "retry", backoff)
		select {
		case <-time.After(backoff):
		case <-ctx.Done():
		}
		backoff = min(2*backoff, acceptBackoffMax)
	}
}

func (s *Server) track(l net.Listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return false
	}
	s.listeners[l] = struct{}{}
	return true
}

func (s *Server) untrack(l net.Listener) {
	s.mu.Lock()
	delete(s.listeners, l)
	s.mu.Unlock()
	_ = l.Close()
}

func (s *Server) isClosing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closing
}

// accept starts the goroutine of a connection.
func (s *Server) accept(nc net.Conn) {
	s.metrics.accepted.Add(1)
	tune(nc)
	key := make([]byte, keyBytes)
	_, _ = rand.Read(key) // never fails
	c := newConn(s, nc, s.pids.Add(1), key)
	s.mu.Lock()
	// As in PostgreSQL, connections that have not said anything yet may take as
	// many places again as there are sessions; beyond that, no answer.
	refuse := s.closing || len(s.conns) >= 2*s.cfg.MaxConnections
	if !refuse {
		s.conns[c] = struct{}{}
	}
	s.mu.Unlock()
	if refuse {
		s.metrics.refused.Add(1)
		_ = nc.Close()
		return
	}
	go c.serve()
}

// tune sets what an interactive protocol wants of TCP.
func tune(nc net.Conn) {
	t, ok := nc.(*net.TCPConn)
	if !ok {
		return
	}
	_ = t.SetNoDelay(true)
	_ = t.SetKeepAliveConfig(net.KeepAliveConfig{
		Enable: true, Idle: time.Minute, Interval: 15 * time.Second, Count: 4})
}

// admit gives c one of the places for sessions.
func (s *Server) admit(c *conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.admitted >= s.cfg.MaxConnections {
		s.metrics.refused.Add(1)
		return false
	}
	s.admitted++
	c.admitted = true
	return true
}

// publish lets cancel requests find c.
func (s *Server) publish(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sessions[c.pid] = c
}

func (s *Server) byPID(pid int32) *conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sessions[pid]
}

// forget is the end of a connection.
func (s *Server) forget(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.admitted {
		s.admitted--
	}
	delete(s.sessions, c.pid)
	delete(s.conns, c)
	if s.closing && len(s.conns) == 0 {
		close(s.idle)
	}
}

// Shutdown stops accepting, tells idle clients 57P01 and lets running
// statements finish. When ctx ends first, it cancels them, closes what is left
// and returns the error of ctx. It may be called once.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	if s.closing {
		s.mu.Unlock()
		return ErrServerClosed
	}
	s.closing = true
	if len(s.conns) == 0 {
		close(s.idle)
	}
	for l := range s.listeners {
		_ = l.Close()
	}
	s.mu.Unlock()
	s.each((*conn).drain)
	select {
	case <-s.idle:
		s.cancel(errShutdown())
		return nil
	case <-ctx.Done():
	}
	s.each(func(c *conn) { c.interrupt(errShutdown()); c.wake() })
	s.cancel(errShutdown())
	select {
	case <-s.idle:
	case <-time.After(forceGrace):
		s.each(func(c *conn) { _ = c.nc.Close() })
	}
	return ctx.Err()
}

func (s *Server) each(f func(*conn)) {
	s.mu.Lock()
	list := make([]*conn, 0, len(s.conns))
	for c := range s.conns {
		list = append(list, c)
	}
	s.mu.Unlock()
	for _, c := range list {
		f(c)
	}
}
