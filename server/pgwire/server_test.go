package pgwire

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"errors"
	"fmt"
	"math/big"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/tallystick/tallystick/sql"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// endless is a statement that runs until it is canceled.
const endless = "SELECT count(*) FROM generate_series(1, 20000) AS a(i), generate_series(1, 20000) AS b(i), generate_series(1, 20000) AS c(i) WHERE a.i + b.i + c.i < 0"

func wantLines(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Fatalf("got\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

// wantAlive checks that the server takes and serves a new connection.
func wantAlive(t *testing.T, addr string) {
	t.Helper()
	got := connect(t, addr).query("SELECT 1 AS alive")
	wantLines(t, got[1:], `DataRow "1"`, "CommandComplete SELECT 1", "ReadyForQuery I")
}

// running waits until the server is busy with a statement of c.
func running(t *testing.T, s *Server, c *client) {
	t.Helper()
	other := s.byPID(int32(c.key.ProcessID))
	if other == nil {
		t.Fatal("the server does not know the connection")
	}
	for range 2000 {
		other.mu.Lock()
		now := other.running
		other.mu.Unlock()
		if now {
			time.Sleep(20 * time.Millisecond)
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatal("no statement is running")
}

// untilGone waits until the server has no more than n connections.
func (s *Server) untilGone(t *testing.T, n int) {
	t.Helper()
	for deadline := time.Now().Add(clientTimeout); ; time.Sleep(time.Millisecond) {
		s.mu.Lock()
		now := len(s.conns)
		s.mu.Unlock()
		if now <= n {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d connections, want at most %d", now, n)
		}
	}
}

func cancelRequest(t *testing.T, addr string, pid uint32, key []byte) {
	t.Helper()
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	raw, err := (&pgproto3.CancelRequest{ProcessID: pid, SecretKey: key}).Encode(nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := nc.Write(raw); err != nil {
		t.Fatal(err)
	}
	drainAll(nc) // the server closes without an answer
}

func TestCancel(t *testing.T) {
	s, addr := start(t, nil)
	for _, version := range []uint32{pgproto3.ProtocolVersion30, pgproto3.ProtocolVersion32} {
		c, err := dial(addr, version, defaults())
		if err == nil {
			err = c.login()
		}
		if err != nil {
			t.Fatal(err)
		}
		if want := map[uint32]int{pgproto3.ProtocolVersion30: 4, pgproto3.ProtocolVersion32: keyBytes}[version]; len(c.key.SecretKey) != want {
			t.Fatalf("key of %d bytes, want %d", len(c.key.SecretKey), want)
		}
		// Nothing runs: nothing is canceled, now or later.
		cancelRequest(t, addr, c.key.ProcessID, c.key.SecretKey)
		wantLines(t, c.query("BEGIN"), "CommandComplete BEGIN", "ReadyForQuery T")
		done := make(chan []string)
		go func() { done <- c.query(endless) }()
		running(t, s, c)
		wrong := slices.Clone(c.key.SecretKey)
		wrong[0] ^= 1
		cancelRequest(t, addr, c.key.ProcessID, wrong)
		cancelRequest(t, addr, c.key.ProcessID+1000, c.key.SecretKey)
		select {
		case got := <-done:
			t.Fatalf("a wrong key canceled: %q", got)
		case <-time.After(50 * time.Millisecond):
		}
		cancelRequest(t, addr, c.key.ProcessID, c.key.SecretKey)
		got := <-done
		wantLines(t, got[len(got)-2:], `ErrorResponse ERROR 57014 "canceling statement due to user request"`, "ReadyForQuery E")
		wantLines(t, c.query("ROLLBACK"), "CommandComplete ROLLBACK", "ReadyForQuery I")
		_ = c.nc.Close()
	}
	if n := s.Metrics().Cancels; n != 4 {
		t.Errorf("%d cancel requests counted, want 4", n)
	}
}

func TestMaxConnections(t *testing.T) {
	s, addr := start(t, func(c *Config) { c.MaxConnections = 2 })
	first := connect(t, addr)
	connect(t, addr)
	c, err := dial(addr, pgproto3.ProtocolVersion30, defaults())
	if err != nil {
		t.Fatal(err)
	}
	wantLines(t, c.collect(1), `ErrorResponse FATAL 53300 "sorry, too many clients already"`, "closed")
	first.fe.Send(&pgproto3.Terminate{})
	if err := first.fe.Flush(); err != nil {
		t.Fatal(err)
	}
	drainAll(first.nc)
	s.untilGone(t, 1)
	wantAlive(t, addr)
}

func TestConnectionsThatSayNothing(t *testing.T) {
	s, addr := start(t, func(c *Config) { c.MaxConnections, c.StartupTimeout = 4, 200*time.Millisecond })
	var silent []net.Conn
	for range 20 {
		nc, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		silent = append(silent, nc)
	}
	for _, nc := range silent {
		drainAll(nc) // ends at the latest with the timeout
	}
	s.untilGone(t, 0)
	if m := s.Metrics(); m.Refused < 12 {
		t.Errorf("%d connections refused, want at least 12: %+v", m.Refused, m)
	}
	wantAlive(t, addr)
}

func TestGarbageInsteadOfStartup(t *testing.T) {
	_, addr := start(t, nil)
	old := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, 8), 2<<16)
	future := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, 8), 4<<16)
	noUser := append(binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, 9), 3<<16), 0)
	open := append(binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, 18), 3<<16), "user\x00alice"...)
	cases := []struct {
		name, send string
		want       []string
	}{
		{"http", "GET / HTTP/1.1\r\nHost: x\r\n\r\n", []string{"closed"}},
		{"short", "\x00\x00\x00\x04", []string{"closed"}},
		{"negative", "\xff\xff\xff\xff\x00\x03\x00\x00", []string{"closed"}},
		{"long", "\x00\x00\x27\x20\x00\x03\x00\x00", []string{"closed"}},
		{"version 2", string(old), []string{`ErrorResponse FATAL 0A000 "unsupported frontend protocol 2.0: server supports 3.0 to 3.2"`, "closed"}},
		{"version 4", string(future), []string{`ErrorResponse FATAL 0A000 "unsupported frontend protocol 4.0: server supports 3.0 to 3.2"`, "closed"}},
		{"no user", string(noUser), []string{`ErrorResponse FATAL 28000 "no PostgreSQL user name specified in startup packet"`, "closed"}},
		{"no terminator", string(open), []string{`ErrorResponse FATAL 08P01 "invalid startup packet layout: expected terminator as last byte"`, "closed"}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			nc, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			defer nc.Close()
			_ = nc.SetDeadline(time.Now().Add(clientTimeout))
			if _, err := nc.Write([]byte(tc.send)); err != nil {
				t.Fatal(err)
			}
			c := &client{nc: nc, fe: pgproto3.NewFrontend(nc, nc)}
			wantLines(t, c.collect(1), tc.want...)
		})
	}
	wantAlive(t, addr)
}

// A panic in a statement: that client gets XX000 and is cut off, nobody else
// notices.
func TestPanicIsContained(t *testing.T) {
	e := newEngine(t)
	s, addr := start(t, func(c *Config) {
		c.NewSession = func(p StartupParams) (*sql.Session, error) {
			o := options(p)
			if p.ApplicationName == "bomb" {
				o.Notice = func(string, *pgerr.Error) { panic("bomb") }
			}
			return e.NewSession(o), nil
		}
	})
	witness := connect(t, addr)
	params := defaults()
	params["application_name"] = "bomb"
	c, err := dial(addr, pgproto3.ProtocolVersion30, params)
	if err == nil {
		err = c.login()
	}
	if err != nil {
		t.Fatal(err)
	}
	// A second BEGIN gives a WARNING, and so the panic.
	wantLines(t, c.query("BEGIN"), "CommandComplete BEGIN", "ReadyForQuery T")
	got := c.query("BEGIN")
	if len(got) != 2 || !strings.HasPrefix(got[0], "ErrorResponse FATAL XX000") || got[1] != "closed" {
		t.Fatalf("got %q", got)
	}
	if n := s.Metrics().Panics; n != 1 {
		t.Errorf("%d panics counted", n)
	}
	wantLines(t, witness.query("BEGIN"), "CommandComplete BEGIN", "ReadyForQuery T")
	wantAlive(t, addr)
}

func TestNewSessionMayRefuse(t *testing.T) {
	_, addr := start(t, func(c *Config) {
		c.NewSession = func(p StartupParams) (*sql.Session, error) {
			if p.ApplicationName == "disk" {
				return nil, errors.New("read block 7: input/output error")
			}
			return nil, pgerr.New(pgerr.CannotConnectNow, "the database system is starting up")
		}
	})
	params := defaults()
	for name, want := range map[string]string{
		"":     `ErrorResponse FATAL 57P03 "the database system is starting up"`,
		"disk": `ErrorResponse FATAL XX000 "read block 7: input/output error"`,
	} {
		params["application_name"] = name
		c, err := dial(addr, pgproto3.ProtocolVersion30, params)
		if err != nil {
			t.Fatal(err)
		}
		wantLines(t, c.collect(1), "AuthenticationOk", want, "closed")
	}
}

func TestShutdownTellsIdleClients(t *testing.T) {
	s, addr := start(t, nil)
	idle, inBlock := connect(t, addr), connect(t, addr)
	inBlock.query("BEGIN")
	silent, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		t.Fatal(err)
	}
	const gone = `ErrorResponse FATAL 57P01 "terminating connection due to administrator command"`
	wantLines(t, idle.collect(1), gone, "closed")
	wantLines(t, inBlock.collect(1), gone, "closed")
	drainAll(silent)
	if nc, err := net.Dial("tcp", addr); err == nil {
		_ = nc.SetDeadline(time.Now().Add(clientTimeout))
		drainAll(nc)
		nc.Close()
	}
	if err := s.Shutdown(ctx); !errors.Is(err, ErrServerClosed) {
		t.Errorf("second Shutdown: %v", err)
	}
}

func TestShutdownLetsStatementsFinish(t *testing.T) {
	s, addr := start(t, nil)
	c := connect(t, addr)
	done := make(chan []string)
	const rows = 300_000
	go func() { done <- c.query(fmt.Sprintf("SELECT count(*) FROM generate_series(1, %d) AS g(i)", rows)) }()
	running(t, s, c)
	ctx, cancel := context.WithTimeout(context.Background(), clientTimeout)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		t.Fatal(err)
	}
	got := <-done
	wantLines(t, got[1:], fmt.Sprintf(`DataRow "%d"`, rows), "CommandComplete SELECT 1", "ReadyForQuery I")
}

func TestShutdownGivesUp(t *testing.T) {
	s, addr := start(t, nil)
	busy, pipelined := connect(t, addr), connect(t, addr)
	done := make(chan []string)
	go func() { done <- busy.query(endless) }()
	running(t, s, busy)
	// A client that never sends Sync is in the middle of something, too.
	pipelined.fe.Send(&pgproto3.Parse{Query: "SELECT 1"})
	pipelined.fe.Send(&pgproto3.Flush{})
	if err := pipelined.fe.Flush(); err != nil {
		t.Fatal(err)
	}
	if m, err := pipelined.fe.Receive(); err != nil || show(m, nil) != "ParseComplete" {
		t.Fatal(m, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	begin := time.Now()
	if err := s.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	if d := time.Since(begin); d > 3*time.Second {
		t.Errorf("shutdown took %v", d)
	}
	const gone = `ErrorResponse FATAL 57P01 "terminating connection due to administrator command"`
	got := <-done
	wantLines(t, got[len(got)-2:], gone, "closed")
	wantLines(t, pipelined.collect(1), gone, "closed")
}

func certificate(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "node"},
		NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"node"}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

func request(t *testing.T, addr string, code uint32, more string) (net.Conn, byte) {
	t.Helper()
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nc.Close() })
	_ = nc.SetDeadline(time.Now().Add(clientTimeout))
	raw := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, 8), code)
	if _, err := nc.Write(append(raw, more...)); err != nil {
		t.Fatal(err)
	}
	var answer [1]byte
	if _, err := nc.Read(answer[:]); err != nil {
		t.Fatal(err)
	}
	return nc, answer[0]
}

func TestTLS(t *testing.T) {
	cert, pool := certificate(t)
	var mu sync.Mutex
	var seen []*tls.ConnectionState
	_, addr := start(t, func(c *Config) {
		c.TLS = &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS13}
		c.Authenticate = func(_ context.Context, p StartupParams) error {
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, p.TLS)
			return nil
		}
	})
	nc, answer := request(t, addr, sslRequestCode, "")
	if answer != 'S' {
		t.Fatalf("SSLRequest answered %c", answer)
	}
	secure := tls.Client(nc, &tls.Config{RootCAs: pool, ServerName: "node"})
	c := &client{nc: secure, fe: pgproto3.NewFrontend(secure, secure)}
	c.fe.Send(&pgproto3.StartupMessage{ProtocolVersion: pgproto3.ProtocolVersion30, Parameters: defaults()})
	if err := c.fe.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := c.login(); err != nil {
		t.Fatal(err)
	}
	wantLines(t, c.query("SELECT 1 AS one")[1:], `DataRow "1"`, "CommandComplete SELECT 1", "ReadyForQuery I")
	wantAlive(t, addr) // clients in the clear may still come: Authenticate decides
	mu.Lock()
	defer mu.Unlock()
	if len(seen) != 2 || seen[0] == nil || seen[0].Version != tls.VersionTLS13 || seen[1] != nil {
		t.Errorf("Authenticate saw %v", seen)
	}
}

func TestEncryptionRefused(t *testing.T) {
	_, addr := start(t, nil)
	for _, code := range []uint32{sslRequestCode, gssRequestCode} {
		nc, answer := request(t, addr, code, "")
		if answer != 'N' {
			t.Fatalf("request %d answered %c", code, answer)
		}
		c := &client{nc: nc, fe: pgproto3.NewFrontend(nc, nc)}
		c.fe.Send(&pgproto3.StartupMessage{ProtocolVersion: pgproto3.ProtocolVersion30, Parameters: defaults()})
		if err := c.fe.Flush(); err != nil {
			t.Fatal(err)
		}
		if err := c.login(); err != nil || c.seen[len(c.seen)-1] != "ReadyForQuery I" {
			t.Fatal(c.seen, err)
		}
	}
}

// Bytes behind a request for encryption that came without waiting for the
// answer are refused: they would pass for encrypted ones.
func TestInjectionBeforeTLS(t *testing.T) {
	cert, _ := certificate(t)
	_, addr := start(t, func(c *Config) { c.TLS = &tls.Config{Certificates: []tls.Certificate{cert}} })
	nc, answer := request(t, addr, sslRequestCode, "injected")
	if answer != 'E' {
		t.Fatalf("answered %c", answer)
	}
	drainAll(nc)
	wantAlive(t, addr)
}

// Messages larger than the read buffer arrive whole, and large results leave
// whole.
func TestLargeMessages(t *testing.T) {
	_, addr := start(t, nil)
	c := connect(t, addr)
	for _, n := range []int{readBuffer - 40, readBuffer, readStep, 3*readStep + 1, 1 << 20} {
		text := strings.Repeat("x", n)
		c.fe.Send(&pgproto3.Parse{Query: "SELECT $1::text AS t"})
		c.fe.Send(&pgproto3.Bind{Parameters: [][]byte{[]byte(text)}})
		c.fe.Send(&pgproto3.Execute{})
		c.fe.Send(&pgproto3.Sync{})
		if err := c.fe.Flush(); err != nil {
			t.Fatal(err)
		}
		wantLines(t, c.collect(1), "ParseComplete", "BindComplete", fmt.Sprintf("DataRow %q", text), "CommandComplete SELECT 1", "ReadyForQuery I")
	}
	const rows = 20_000
	got := c.query(fmt.Sprintf("SELECT i FROM generate_series(1, %d) AS g(i)", rows))
	if len(got) != rows+3 || got[rows] != fmt.Sprintf(`DataRow "%d"`, rows) {
		t.Fatalf("%d messages, the last rows %q", len(got), got[len(got)-3:])
	}
}

// A client that goes away in the middle of a result does not keep its place.
func TestClientLeavesDuringResult(t *testing.T) {
	s, addr := start(t, nil)
	c := connect(t, addr)
	c.fe.Send(&pgproto3.Query{String: "SELECT i, repeat('x', 1000) FROM generate_series(1, 100000) AS g(i)"})
	if err := c.fe.Flush(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.fe.Receive(); err != nil {
		t.Fatal(err)
	}
	_ = c.nc.Close()
	s.untilGone(t, 0)
}

// Many clients at once get their own answers.
func TestConcurrentClients(t *testing.T) {
	_, addr := start(t, nil)
	var wg sync.WaitGroup
	for g := range 8 {
		c := connect(t, addr)
		wg.Go(func() {
			for i := range 50 {
				want := fmt.Sprintf(`DataRow "%d"`, g*1000+i)
				if got := c.query(fmt.Sprintf("SELECT %d", g*1000+i)); len(got) != 4 || got[1] != want {
					t.Errorf("got %q, want %s", got, want)
					return
				}
			}
		})
	}
	wg.Wait()
}

func TestConfigValidate(t *testing.T) {
	session := func(StartupParams) (*sql.Session, error) { return nil, nil }
	for _, tc := range []struct {
		name string
		cfg  Config
		want string
	}{
		{"empty", Config{}, "NewSession"},
		{"connections", Config{NewSession: session, MaxConnections: -1}, "MaxConnections"},
		{"timeout", Config{NewSession: session, StartupTimeout: -1}, "StartupTimeout"},
		{"message", Config{NewSession: session, MaxMessage: 10}, "MaxMessage"},
	} {
		if _, err := New(tc.cfg); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
	if _, err := New(Config{NewSession: session}); err != nil {
		t.Error(err)
	}
}

func TestParseOptions(t *testing.T) {
	for _, tc := range []struct {
		in   string
		want [][2]string
		code pgerr.Code
	}{
		{"", nil, ""},
		{"  ", nil, ""},
		{"-c a=b", [][2]string{{"a", "b"}}, ""},
		{"-ca=b --c-d=e=f", [][2]string{{"a", "b"}, {"c_d", "e=f"}}, ""},
		{`-c a=b\ c -c d=\\e`, [][2]string{{"a", "b c"}, {"d", `\e`}}, ""},
		{"--a=", [][2]string{{"a", ""}}, ""},
		{"-c", nil, pgerr.SyntaxError},
		{"-c a", nil, pgerr.SyntaxError},
		{"--=b", nil, pgerr.SyntaxError},
		{"a=b", nil, pgerr.SyntaxError},
	} {
		got, err := parseOptions(tc.in)
		if (err != nil) != (tc.code != "") || err != nil && pgerr.CodeOf(err) != tc.code || !slices.Equal(got, tc.want) {
			t.Errorf("%q: %q %v", tc.in, got, err)
		}
	}
}

func TestResponseNeverBreaksTheProtocol(t *testing.T) {
	e := pgerr.New(pgerr.RaiseException, "a\x00b\xff").WithDetail("d\x00")
	e.Position, e.Constraint = 3, "c"
	r := response("ERROR", e)
	raw, err := r.Encode(nil)
	if err != nil {
		t.Fatal(err)
	}
	var back pgproto3.ErrorResponse
	if err := back.Decode(raw[5:]); err != nil {
		t.Fatal(err)
	}
	if back.Message != "a\uFFFDb\uFFFD" || back.Detail != "d\uFFFD" || back.Position != 3 || back.ConstraintName != "c" ||
		back.Severity != "ERROR" || back.SeverityUnlocalized != "ERROR" || back.Code != "P0001" {
		t.Errorf("%+v", back)
	}
}
