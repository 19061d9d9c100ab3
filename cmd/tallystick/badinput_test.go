package main_test

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/tallystick/tallystick/internal/e2e"
)

// Statements that are wrong get PostgreSQL's SQLSTATE, and the connection goes
// on.
func TestBadStatements(t *testing.T) {
	n := e2e.Start(t)
	n.MustPsql(e2e.Admin, accounts)
	conn := open(t, n, "alice")
	for _, tc := range []struct {
		name, query, code string
	}{
		{"nothing like SQL", "SELEC 1", "42601"},
		{"unknown function", "SELECT no_such_function(1)", "42883"},
		{"wrong argument types", "SELECT transfer(1, 2, true)", "42883"},
		{"too few arguments", "SELECT transfer('a', 'b')", "42883"},
		{"too many arguments", "SELECT transfer('a', 'b', 1, 2)", "42883"},
		{"argument that is no number", "SELECT transfer('a', 'b', 'much')", "22P02"},
		{"contract inside a query", "SELECT transfer('a', 'b', 1) + 1", "0A000"},
		{"unknown relation", "SELECT * FROM no_such_relation", "42P01"},
		{"unknown column", "SELECT nothing FROM accounts", "42703"},
		{"direct insert", "INSERT INTO accounts VALUES ('x', 'y', 1)", "42501"},
		{"direct update", "UPDATE accounts SET balance = 0", "42501"},
		{"direct delete", "DELETE FROM accounts", "42501"},
		{"definition by a client user", "CREATE TABLE mine(id int PRIMARY KEY)", "42501"},
		{"contract's own error", "SELECT transfer('none', 'none', 1)", "P0001"},
		{"broken constraint", "SELECT open_accounts(1, 1, -1)", "23514"},
		{"division by zero", "SELECT 1 / (count(*) - count(*)) FROM accounts", "22012"},
		{"parentheses without end", "SELECT " + strings.Repeat("(", 100_000), "54001"},
		{"a million letters that are no statement", strings.Repeat("x", 1<<20), "42601"},
		{"larger than any statement may be", "SELECT '" + strings.Repeat("x", 5<<20) + "'", "54001"},
		{"bytes that are no text", "SELECT 'a\xff'", "22021"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ctx := context.Background()
			_, simple := conn.PgConn().Exec(ctx, tc.query).ReadAll()
			wantCode(t, "simple protocol", simple, tc.code)
			extended := conn.PgConn().ExecParams(ctx, tc.query, nil, nil, nil, nil).Read().Err
			wantCode(t, "extended protocol", extended, tc.code)
			if got := column[int32](t, conn, "SELECT 1"); len(got) != 1 || got[0] != 1 {
				t.Errorf("afterwards the connection answers %v", got)
			}
		})
	}
}

func wantCode(t *testing.T, what string, err error, code string) {
	t.Helper()
	var report *pgconn.PgError
	if !errors.As(err, &report) || report.Code != code {
		t.Errorf("%s: %v, want SQLSTATE %s", what, err, code)
	}
}

// A statement of a megabyte is nothing unusual.
func TestLargeStatement(t *testing.T) {
	n := e2e.Start(t)
	conn := open(t, n, "alice")
	text := strings.Repeat("x", 1<<20)
	if got := column[string](t, conn, "SELECT '"+text+"'"); len(got) != 1 || got[0] != text {
		t.Errorf("literal: %d rows", len(got))
	}
	if got := column[int32](t, conn, "SELECT length($1::text)", text); len(got) != 1 || got[0] != 1<<20 {
		t.Errorf("parameter: %v", got)
	}
}

// Direct changes are refused with a way out.
func TestDirectChangeHasHint(t *testing.T) {
	n := e2e.Start(t)
	n.MustPsql(e2e.Admin, accounts)
	for _, user := range []string{e2e.Admin, "alice"} {
		conn := open(t, n, user)
		_, err := conn.Exec(context.Background(), "INSERT INTO accounts VALUES ('x', 'y', 1)")
		var report *pgconn.PgError
		if !errors.As(err, &report) || report.Hint == "" {
			t.Errorf("%s: %v, want an error with a hint", user, err)
		}
	}
}

// Frames that break the protocol end their connection with a clear error, and
// no other.
func TestBadFrames(t *testing.T) {
	n := e2e.Start(t)
	witness := open(t, n, "bob")
	header := func(typ byte, length uint32) []byte {
		return binary.BigEndian.AppendUint32([]byte{typ}, length)
	}
	for _, tc := range []struct {
		name string
		send []byte
		code string
	}{
		{"length below its own size", header('Q', 3), "08P01"},
		{"negative length", header('Q', 0xffffffff), "08P01"},
		{"a Sync of a megabyte", header('S', 1<<20), "08P01"},
		{"two gigabytes announced", header('Q', 0x7fffffff), "54000"},
		{"unknown message", header('y', 4), "08P01"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			nc, fe := login(t, n, "alice")
			if _, err := nc.Write(tc.send); err != nil {
				t.Fatal(err)
			}
			m, err := fe.Receive()
			if err != nil {
				t.Fatal(err)
			}
			report, ok := m.(*pgproto3.ErrorResponse)
			if !ok || report.Code != tc.code || report.Severity != "FATAL" {
				t.Fatalf("answered %+v, want FATAL %s", m, tc.code)
			}
			if _, err := fe.Receive(); err == nil {
				t.Error("the connection goes on")
			}
		})
	}
	t.Run("a body that never comes", func(t *testing.T) {
		nc, _ := login(t, n, "alice")
		if _, err := nc.Write(append(header('Q', 1<<20), "SELECT"...)); err != nil {
			t.Fatal(err)
		}
		_ = nc.Close()
	})
	t.Run("a message body that breaks off", func(t *testing.T) {
		nc, fe := login(t, n, "alice")
		if _, err := nc.Write(append(append(header('B', 6), 'a', 0), header('S', 4)...)); err != nil {
			t.Fatal(err)
		}
		m, err := fe.Receive()
		if err != nil {
			t.Fatal(err)
		}
		if report, ok := m.(*pgproto3.ErrorResponse); !ok || report.Code != "08P01" || report.Severity != "ERROR" {
			t.Fatalf("answered %+v", m)
		}
		if m, err := fe.Receive(); err != nil {
			t.Fatal(err)
		} else if _, ok := m.(*pgproto3.ReadyForQuery); !ok {
			t.Fatalf("answered %+v, want ReadyForQuery", m)
		}
	})
	if got := column[int32](t, witness, "SELECT 1"); len(got) != 1 {
		t.Errorf("another connection answers %v", got)
	}
}

// Users and databases that do not exist.
func TestUnknownUserAndDatabase(t *testing.T) {
	n := e2e.Start(t)
	for url, code := range map[string]string{
		n.URL("mallory"): "28000",
		strings.Replace(n.URL("alice"), "/"+e2e.Database, "/elsewhere", 1): "3D000",
	} {
		_, err := pgx.Connect(context.Background(), url)
		wantCode(t, url, err, code)
	}
}

// login opens a connection for single messages.
func login(t *testing.T, n *e2e.Node, user string) (net.Conn, *pgproto3.Frontend) {
	t.Helper()
	nc, err := net.Dial("tcp", n.Addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nc.Close() })
	_ = nc.SetDeadline(time.Now().Add(time.Minute))
	fe := pgproto3.NewFrontend(nc, nc)
	fe.Send(&pgproto3.StartupMessage{ProtocolVersion: pgproto3.ProtocolVersion30,
		Parameters: map[string]string{"user": user, "database": e2e.Database}})
	if err := fe.Flush(); err != nil {
		t.Fatal(err)
	}
	for {
		m, err := fe.Receive()
		if err != nil {
			t.Fatal(err)
		}
		switch m := m.(type) {
		case *pgproto3.ErrorResponse:
			t.Fatalf("login: %s", m.Message)
		case *pgproto3.ReadyForQuery:
			return nc, fe
		}
	}
}
