package pgwire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/tallystick/tallystick/mvcc"
	"github.com/tallystick/tallystick/sql"
	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
)

// startCopy serves an engine with a table t (a int, b text); what is copied
// into it is collected.
func startCopy(t *testing.T) (addr string, got *[]string) {
	t.Helper()
	store := newStore(t)
	e := newEngineOn(store)
	batch := store.NewBlockBatch(1)
	txn := batch.Begin(mvcc.Snapshot{Height: 1}, 1<<20)
	defer txn.Close()
	c, err := e.Catalog(txn)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Script(e.ContractEnv(txn, 1<<20, c, nil), "alice", "create table t (a int primary key, b text)", nil); err != nil {
		t.Fatal(err)
	}
	if err := batch.Apply(txn, 1); err != nil {
		t.Fatal(err)
	}
	if err := store.Commit(batch, false); err != nil {
		t.Fatal(err)
	}
	got = new([]string)
	insert := func(_ context.Context, _ *catalog.Table, _ []int, next func() ([]datum.Datum, error)) (int64, error) {
		for n := int64(0); ; n++ {
			row, err := next()
			if err != nil || row == nil {
				return n, err
			}
			b := "NULL"
			if !row[1].IsNull() {
				b = row[1].Str()
			}
			*got = append(*got, fmt.Sprintf("%d=%s", row[0].Int(), b))
		}
	}
	_, addr = start(t, func(cfg *Config) {
		cfg.NewSession = func(p StartupParams) (*sql.Session, error) {
			o := options(p)
			o.InsertRows = insert
			return e.NewSession(o), nil
		}
	})
	return addr, got
}

func dialPgx(t *testing.T, addr string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(context.Background(), "postgres://alice@"+addr+"/tallystick?sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func TestCopyFromClient(t *testing.T) {
	addr, got := startCopy(t)
	conn := dialPgx(t, addr)
	ctx := context.Background()
	n, err := conn.CopyFrom(ctx, pgx.Identifier{"t"}, []string{"a", "b"}, pgx.CopyFromRows([][]any{{int32(1), "x"}, {int32(2), nil}}))
	if err != nil || n != 2 {
		t.Fatal(n, err)
	}
	tag, err := conn.PgConn().CopyFrom(ctx, strings.NewReader("3\ty\n4\tz\n\\.\n"), "copy t from stdin")
	if err != nil || tag.String() != "COPY 2" {
		t.Fatal(tag, err)
	}
	if want := "[1=x 2=NULL 3=y 4=z]"; fmt.Sprint(*got) != want {
		t.Errorf("got %v, want %s", *got, want)
	}
	_, err = conn.PgConn().CopyFrom(ctx, strings.NewReader("5\ty\nsix\tz\n"), "copy t from stdin")
	var pe *pgconn.PgError
	if !errors.As(err, &pe) || pe.Code != "22P02" || pe.Where != `COPY t, line 2, column a: "six"` {
		t.Errorf("bad value: %v", err)
	}
	// The connection goes on, and so does one whose client gave up.
	_, err = conn.PgConn().CopyFrom(ctx, failingReader{}, "copy t from stdin")
	if err == nil || !strings.Contains(err.Error(), "no more") {
		t.Errorf("client's failure: %v", err)
	}
	var one int
	if err := conn.QueryRow(ctx, "select 1").Scan(&one); err != nil || one != 1 {
		t.Error(one, err)
	}
	var out bytes.Buffer
	if tag, err := conn.PgConn().CopyTo(ctx, &out, "copy (values (1, null), (2, 'x')) to stdout"); err != nil || out.String() != "1\t\\N\n2\tx\n" {
		t.Error(tag, err, out.String())
	}
}

type failingReader struct{}

func (failingReader) Read([]byte) (int, error) { return 0, errors.New("no more") }

// TestCopyMessages: what stands between CopyInResponse and CopyDone.
func TestCopyMessages(t *testing.T) {
	addr, _ := startCopy(t)
	c := connect(t, addr)
	for _, tc := range []struct {
		script []string
		want   string
	}{
		{[]string{`Query "copy t from stdin"`, "Flush", "Sync", `CopyData "1\tx\n2\t"`, `CopyData "y"`, "CopyDone"},
			"CopyInResponse 0 [0 0]|CommandComplete COPY 2|ReadyForQuery I"},
		{[]string{`Query "copy t from stdin"`, `CopyFail "gave up"`},
			`CopyInResponse 0 [0 0]|ErrorResponse ERROR 57014 "COPY from stdin failed: gave up" where="COPY t, line 1"|ReadyForQuery I`},
		{[]string{`Query "copy t from stdin"`, `Describe S x`},
			`CopyInResponse 0 [0 0]|ErrorResponse ERROR 08P01 "unexpected message type 0x44 during COPY from stdin" where="COPY t, line 1"|ReadyForQuery I`},
		{[]string{`Query "copy t from stdin; select 1"`, `CopyData "x\n"`, `CopyData "y\n"`, "CopyDone"},
			`CopyInResponse 0 [0 0]|ErrorResponse ERROR 22P02 "invalid input syntax for type integer: \"x\"" where="COPY t, line 1, column a: \"x\""|ReadyForQuery I`},
		{[]string{`Parse "" "copy t (a, b) from stdin binary"`, `Bind "" ""`, `Describe P ""`, `Execute "" 0`,
			`CopyData "PGCOPY\n\xff\r\n\x00\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff"`, "CopyDone", "Sync"},
			"ParseComplete|BindComplete|NoData|CopyInResponse 1 [1 1]|CommandComplete COPY 0|ReadyForQuery I"},
	} {
		for _, line := range tc.script {
			raw, _, err := parseMessage(line)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.nc.Write(raw); err != nil {
				t.Fatal(err)
			}
		}
		if got := strings.Join(c.collect(1), "|"); got != tc.want {
			t.Errorf("%v:\n%s\nwant\n%s", tc.script, got, tc.want)
		}
	}
	// A client that goes away in the middle takes nothing with it.
	c.fe.Send(&pgproto3.Query{String: "copy t from stdin"})
	if err := c.fe.Flush(); err != nil {
		t.Fatal(err)
	}
	_ = c.nc.Close()
	if got := connect(t, addr).query("select 1"); len(got) != 4 {
		t.Error(got)
	}
}

// TestPsql runs what psql makes of \copy and FETCH_COUNT.
func TestPsql(t *testing.T) {
	psql, err := exec.LookPath("psql")
	if err != nil {
		t.Log("no psql here; TestCopyFromClient and testdata/pgtest cover the protocol")
		return
	}
	addr, got := startCopy(t)
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	in, out := filepath.Join(t.TempDir(), "in"), filepath.Join(t.TempDir(), "out")
	if err := os.WriteFile(in, []byte("7,\"a b\"\n8,\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(commands ...string) string {
		args := []string{"-X", "-A", "-t", "-q", "-h", host, "-p", port, "-U", "alice", "-d", "tallystick"}
		b, err := exec.Command(psql, append(args, "-c", strings.Join(commands, "\n"))...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v\n%s", commands, err, b)
		}
		return string(b)
	}
	run(`\copy t from '` + in + `' csv`)
	if want := "[7=a b 8=NULL]"; fmt.Sprint(*got) != want {
		t.Errorf("copied in %v, want %s", *got, want)
	}
	run(`\copy (select i, i * 2 from generate_series(1, 3) i) to '` + out + `' csv header`)
	if b, err := os.ReadFile(out); err != nil || string(b) != "i,?column?\n1,2\n2,4\n3,6\n" {
		t.Errorf("copied out %q, %v", b, err)
	}
	cmd := exec.Command(psql, "-X", "-A", "-t", "-q", "-h", host, "-p", port, "-U", "alice", "-d", "tallystick")
	cmd.Stdin = strings.NewReader("\\set FETCH_COUNT 2\nselect i from generate_series(1, 5) i;\nselect 'end';\n")
	if b, err := cmd.CombinedOutput(); err != nil || string(b) != "1\n2\n3\n4\n5\nend\n" {
		t.Errorf("FETCH_COUNT: %q, %v", b, err)
	}
}
