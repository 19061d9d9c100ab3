package server

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// rows runs a query and gives its rows, values separated by bars.
func rows(t *testing.T, conn *pgx.Conn, query string, args ...any) string {
	t.Helper()
	r, err := conn.Query(context.Background(), query, args...)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer r.Close()
	var lines []string
	for r.Next() {
		vals, err := r.Values()
		if err != nil {
			t.Fatal(err)
		}
		parts := make([]string, len(vals))
		for i, v := range vals {
			parts[i] = fmt.Sprint(v)
		}
		lines = append(lines, strings.Join(parts, "|"))
	}
	if r.Err() != nil {
		t.Fatalf("%s: %v", query, r.Err())
	}
	return strings.Join(lines, " ")
}

// script runs statements as one simple query.
func script(conn *pgx.Conn, text string) error {
	_, err := conn.PgConn().Exec(context.Background(), text).ReadAll()
	return err
}

// Schema private of a node beside its blockchain: joins of both, functions of
// its own, and what keeps them apart.
func TestPrivateSchema(t *testing.T) {
	dir := t.TempDir()
	r := startNode(t, dir)
	r.work()
	conn, err := r.connect("alice")
	if err != nil {
		t.Fatal(err)
	}
	must := func(statements ...string) {
		t.Helper()
		for _, s := range statements {
			if err := script(conn, s); err != nil {
				t.Fatalf("%s: %v", s, err)
			}
		}
	}
	must("CREATE TABLE private.mine (id serial PRIMARY KEY, note int, remark text)",
		"CREATE TABLE private.log (what text)",
		"INSERT INTO private.mine (note, remark) VALUES (1, 'ours'), (2, 'theirs')",
		"CREATE VIEW private.both AS SELECT n.note, m.remark FROM notes n JOIN private.mine m ON m.note = n.id ORDER BY n.id",
		`CREATE FUNCTION private.write(x int) RETURNS bigint LANGUAGE plpgsql AS $$
			BEGIN INSERT INTO log VALUES ('call ' || x); RETURN (SELECT count(*) FROM log) + nextval('mine_id_seq') * 0; END $$`,
		"CREATE FUNCTION private.write_sql(x int) RETURNS bigint LANGUAGE sql AS 'INSERT INTO log VALUES ($1::text); SELECT count(*) FROM log'",
		"CREATE PROCEDURE private.proc(x int, INOUT y int) LANGUAGE plpgsql AS $$ BEGIN INSERT INTO log VALUES ('proc'); y := x + y; END $$",
		"CREATE FUNCTION private.forbidden() RETURNS void LANGUAGE plpgsql AS $$ BEGIN INSERT INTO notes VALUES (9, 'x'); END $$")
	for query, want := range map[string]string{
		"SELECT * FROM private.both": "first|ours second|theirs",
		"SELECT p.note, m.remark, p.deleter_block IS NULL FROM provenance.notes p JOIN mine m ON m.note = p.id WHERE m.id = 1": "first|ours|true",
	} {
		if got := rows(t, conn, query); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	if got := rows(t, conn, "SELECT private.write(x) FROM generate_series(1, $1) x", 3); got != "1 2 3" {
		t.Errorf("a volatile function in a larger query gave %s", got)
	}
	if got := rows(t, conn, "SELECT private.write_sql(7)"); got != "4" {
		t.Errorf("a function in SQL gave %s", got)
	}
	if got := rows(t, conn, "CALL private.proc($1, $2)", 3, 4); got != "7" {
		t.Errorf("a procedure gave %s", got)
	}
	must("DO $$ BEGIN FOR i IN 1..2 LOOP INSERT INTO log VALUES ('do'); END LOOP; END $$")
	if got := rows(t, conn, "SELECT count(*) FROM private.log"); got != "7" {
		t.Errorf("the log has %s rows", got)
	}
	for statement, code := range map[string]string{
		"SELECT private.forbidden()":                       "42501",
		"DELETE FROM notes":                                "42501",
		"TRUNCATE notes":                                   "42501",
		"CREATE TABLE private.fk (k int REFERENCES notes)": "42501",
		"CREATE SEQUENCE blockchain.s":                     "0A000",
		"BEGIN; INSERT INTO private.log VALUES ('x'); SELECT take(5, 'no')":                                  "25001",
		"ROLLBACK; BEGIN READ ONLY; SELECT take(5, 'no')":                                                    "25006",
		"ROLLBACK; DROP TABLE private.log, notes":                                                            "0A000",
		"INSERT INTO private.log VALUES ('gone'); INSERT INTO private.mine (id) VALUES (1)":                  "23505",
		"INSERT INTO private.log VALUES ('gone'); SELECT 1/0":                                                "22012",
		"CREATE FUNCTION reads() RETURNS int LANGUAGE sql STABLE AS 'SELECT count(*)::int FROM private.log'": "0A000",
	} {
		c, err := r.connect(DevAdmin)
		if err != nil {
			t.Fatal(err)
		}
		if got := sqlState(script(c, statement)); got != code {
			t.Errorf("%s: %s, want %s", statement, got, code)
		}
		c.Close(context.Background())
	}
	must("INSERT INTO private.log VALUES ('one'); INSERT INTO private.log VALUES ('two')",
		"BEGIN; INSERT INTO private.log VALUES ('three'); COMMIT; INSERT INTO private.log VALUES ('four')",
		"INSERT INTO private.log VALUES ('five'); ROLLBACK; INSERT INTO private.log VALUES ('six')")
	if got := rows(t, conn, "SELECT string_agg(what, ',') FROM private.log WHERE what ~ '^(one|two|three|four|five|six|gone)$'"); got != "one,two,three,four,six" {
		t.Errorf("scripts left %s", got)
	}
	// A block that meets another one ends with 40001.
	other, err := r.connect("bob")
	if err != nil {
		t.Fatal(err)
	}
	must("BEGIN; UPDATE private.mine SET remark = 'a' WHERE id = 1")
	if err := script(other, "UPDATE private.mine SET remark = 'b' WHERE id = 1"); err != nil {
		t.Fatal(err)
	}
	if got := sqlState(script(conn, "COMMIT")); got != "40001" {
		t.Errorf("COMMIT answered %s", got)
	}
	var tag pgconn.CommandTag
	if tag, err = conn.Exec(context.Background(), "UPDATE private.mine SET remark = remark || '!'"); err != nil || tag.String() != "UPDATE 2" {
		t.Errorf("%s, %v", tag, err)
	}
	conn.Close(context.Background())
	other.Close(context.Background())
	r.close()
	r = startNode(t, dir)
	defer r.close()
	if conn, err = r.connect("alice"); err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if got := rows(t, conn, "SELECT remark FROM private.mine ORDER BY id"); got != "b! theirs!" {
		t.Errorf("after a restart: %s", got)
	}
}
