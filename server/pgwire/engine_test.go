package pgwire

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/tallystick/tallystick/sql"
)

// options are what a session is given by default.
func options(p StartupParams) sql.SessionOptions {
	return sql.SessionOptions{User: p.User, Database: p.Database, ApplicationName: p.ApplicationName,
		ClientAddr: p.ClientAddr, PID: p.PID, Notice: p.Notice, Parameter: p.Parameter, Wake: p.Wake}
}

const (
	testUser     = "alice"
	testDatabase = "tallystick"
)

// letIn knows one user and one database.
func letIn(_ context.Context, p StartupParams) error {
	if p.User != testUser {
		return UnknownRole(p.User)
	}
	if p.Database != testDatabase {
		return UnknownDatabase(p.Database)
	}
	return nil
}

// start serves on a free port until the test ends; configure may change the
// configuration.
func start(t testing.TB, configure func(*Config)) (*Server, string) {
	t.Helper()
	e := newEngine(t)
	cfg := Config{
		NewSession:   func(p StartupParams) (*sql.Session, error) { return e.NewSession(options(p)), nil },
		Authenticate: letIn,
		Logger:       slog.New(slog.DiscardHandler),
	}
	if configure != nil {
		configure(&cfg)
	}
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(context.Background(), l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil && !errors.Is(err, ErrServerClosed) {
			t.Errorf("shutdown: %v", err)
		}
		if err := <-served; !errors.Is(err, ErrServerClosed) {
			t.Errorf("serve: %v", err)
		}
	})
	return s, l.Addr().String()
}
