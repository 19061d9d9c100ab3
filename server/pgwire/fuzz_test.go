package pgwire

import (
	"context"
	"io"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/tallystick/tallystick/sql"
)

// pipe serves one end of a synchronous pipe and returns the other.
func pipe(t testing.TB, s *Server) (client net.Conn, done <-chan struct{}) {
	t.Helper()
	near, far := net.Pipe()
	ended := make(chan struct{})
	s.accept(signalConn{far, ended})
	return near, ended
}

// signalConn tells when the server has closed it.
type signalConn struct {
	net.Conn
	ended chan struct{}
}

func (c signalConn) Close() error {
	defer func() { _ = recover() }() // closing twice is no mistake of a connection
	close(c.ended)
	return c.Conn.Close()
}

// FuzzConnection sends arbitrary bytes, after a login or instead of one. The
// server must end the connection or wait for more, and never panic.
func FuzzConnection(f *testing.F) {
	add := func(login bool, list ...pgproto3.FrontendMessage) {
		var raw []byte
		for _, m := range list {
			var err error
			if raw, err = m.Encode(raw); err != nil {
				f.Fatal(err)
			}
		}
		f.Add(login, raw)
	}
	add(true, &pgproto3.Query{String: "SELECT 1; SELECT 'x'"}, &pgproto3.Terminate{})
	add(true, &pgproto3.Parse{Name: "s", Query: "SELECT $1::int4, $2::text", ParameterOIDs: []uint32{23, 0}},
		&pgproto3.Describe{ObjectType: 'S', Name: "s"},
		&pgproto3.Bind{PreparedStatement: "s", ParameterFormatCodes: []int16{1, 0}, Parameters: [][]byte{{0, 0, 0, 1}, nil}, ResultFormatCodes: []int16{1}},
		&pgproto3.Describe{ObjectType: 'P'}, &pgproto3.Execute{MaxRows: 1}, &pgproto3.Execute{}, &pgproto3.Close{ObjectType: 'S', Name: "s"},
		&pgproto3.Flush{}, &pgproto3.Sync{})
	add(true, &pgproto3.Query{String: "BEGIN"}, &pgproto3.Query{String: "SELEC"}, &pgproto3.Query{String: "ROLLBACK"})
	add(true, &pgproto3.CopyData{Data: []byte("x")}, &pgproto3.CopyDone{}, &pgproto3.CopyFail{}, &pgproto3.FunctionCall{Function: 3})
	add(false, &pgproto3.SSLRequest{})
	add(false, &pgproto3.GSSEncRequest{})
	add(false, &pgproto3.CancelRequest{ProcessID: 1, SecretKey: []byte{1, 2, 3, 4}})
	add(false, &pgproto3.StartupMessage{ProtocolVersion: pgproto3.ProtocolVersion30, Parameters: map[string]string{
		"user": "alice", "options": `-c a=b\ c`, "_pq_.x": "y"}}, &pgproto3.Query{String: "SELECT 1"})
	f.Add(true, []byte{'Q', 0x7f, 0xff, 0xff, 0xff})
	f.Add(true, []byte{'Q', 0, 0, 0, 3})
	f.Add(false, []byte("GET / HTTP/1.1\r\n\r\n"))

	e := newEngine(f)
	s, err := New(Config{
		NewSession:     func(p StartupParams) (*sql.Session, error) { return e.NewSession(options(p)), nil },
		Authenticate:   letIn,
		StartupTimeout: time.Second,
		MaxMessage:     1 << 16,
		Logger:         slog.New(slog.DiscardHandler),
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = s.Shutdown(ctx)
	})
	startup, err := (&pgproto3.StartupMessage{ProtocolVersion: pgproto3.ProtocolVersion30, Parameters: defaults()}).Encode(nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, login bool, raw []byte) {
		if login {
			raw = append(startup[:len(startup):len(startup)], raw...)
		}
		before := s.Metrics().Panics
		near, ended := pipe(t, s)
		go func() { _, _ = io.Copy(io.Discard, near) }()
		_ = near.SetWriteDeadline(time.Now().Add(5 * time.Second))
		_, _ = near.Write(raw)
		_ = near.Close()
		select {
		case <-ended:
		case <-time.After(10 * time.Second):
			t.Fatal("the connection did not end with its client")
		}
		if s.Metrics().Panics != before {
			t.Fatal("a panic")
		}
	})
}
