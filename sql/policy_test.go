package sql_test

import (
	"strings"
	"testing"

	"github.com/tallystick/tallystick/sql"
)

// as opens a session of a user of an organization, who is asked for what was
// granted.
func (n *privateNode) as(org, user string) *client {
	c := &client{t: n.t}
	c.session = n.engine.NewSession(sql.SessionOptions{User: user, Org: org, Database: sql.Database})
	n.t.Cleanup(c.session.Close)
	c.must("SET search_path = private")
	c.out.Reset()
	return c
}

// TestRowSecurity: what each user sees and may write of a table with policies,
// as PostgreSQL 15 decides it for the same policies and roles.
func TestRowSecurity(t *testing.T) {
	n := newPrivateNode(t)
	admin := n.connect()
	for _, s := range []string{
		"CREATE TABLE doc (id int PRIMARY KEY, owner text, level int, div int)",
		"INSERT INTO doc VALUES (1, 'ann', 1, 1), (2, 'bob', 1, 0), (3, 'ann', 5, 2), (4, 'bob', 5, 0)",
		"CREATE TABLE clear (who text PRIMARY KEY, most int)",
		"INSERT INTO clear VALUES ('ann', 9), ('bob', 3)",
		"ALTER TABLE doc ENABLE ROW LEVEL SECURITY",
		"CREATE INDEX doc_owner ON doc (owner)",
	} {
		admin.must(s)
	}
	ann, bob, eve := n.as("acme", "ann"), n.as("acme", "bob"), n.as("other", "eve")
	expect := func(c *client, text, want string) {
		t.Helper()
		got := c.script(text)
		if _, rest, ok := strings.Cut(got, "\n"); !ok || strings.TrimSuffix(rest, "\n") != want {
			t.Errorf("%s\ngot:  %q\nwant: %q", text, rest, want)
		}
		c.out.Reset()
	}
	const list = "SELECT string_agg(id::text, ',' ORDER BY id) FROM doc"
	expect(admin, list, "1,2,3,4")
	expect(ann, list, "") // no policy: nothing
	expect(ann, "INSERT INTO doc VALUES (9, 'ann', 1, 1)", "ERROR:  42501")

	admin.must("CREATE POLICY mine ON doc USING (owner = current_user)")
	expect(ann, list, "1,3")
	expect(bob, list, "2,4")
	expect(eve, list, "")
	// A condition of the statement does not see hidden rows: it would divide by zero.
	expect(ann, "SELECT id FROM doc WHERE 10 / div > 5", "1")
	expect(ann, "SELECT id FROM doc WHERE owner = 'bob'", "")
	expect(ann, "INSERT INTO doc VALUES (9, 'bob', 1, 1)", "ERROR:  42501")
	expect(ann, "INSERT INTO doc VALUES (9, 'ann', 1, 1) RETURNING id", "9")
	expect(ann, "UPDATE doc SET level = 2 WHERE id IN (1, 2) RETURNING id", "1")
	expect(ann, "UPDATE doc SET owner = 'bob' WHERE id = 1", "ERROR:  42501")
	expect(ann, "DELETE FROM doc WHERE id IN (2, 9) RETURNING id", "9")
	expect(ann, "INSERT INTO doc VALUES (2, 'ann', 1, 1) ON CONFLICT (id) DO UPDATE SET level = 7", "ERROR:  42501")
	expect(ann, "INSERT INTO doc VALUES (1, 'ann', 1, 1) ON CONFLICT (id) DO UPDATE SET level = 7 RETURNING level", "7")

	admin.must("CREATE POLICY cleared ON doc AS RESTRICTIVE FOR SELECT USING (level <= (SELECT most FROM clear WHERE who = current_user))")
	expect(bob, list, "2")
	expect(ann, list, "1,3")
	admin.must(`CREATE POLICY partner ON doc FOR SELECT TO other USING (true)`)
	admin.must("ALTER POLICY cleared ON doc TO acme")
	expect(eve, list, "1,2,3,4")
	expect(eve, "DELETE FROM doc RETURNING id", "")

	admin.must("CREATE VIEW v AS SELECT id FROM doc")
	expect(ann, "SELECT count(*) FROM v", "4") // with the rights of the view's owner
	expect(admin, "SELECT polname, polcmd, polpermissive FROM pg_policy ORDER BY polname", "cleared|r|f\nmine|*|t\npartner|r|t")
	expect(admin, "SELECT policyname, permissive, roles, cmd FROM pg_policies ORDER BY 1",
		"cleared|RESTRICTIVE|{acme}|SELECT\nmine|PERMISSIVE|{public}|ALL\npartner|PERMISSIVE|{other}|SELECT")
	expect(admin, "SELECT relrowsecurity, relforcerowsecurity FROM pg_class WHERE relname = 'doc'", "t|f")
	expect(admin, "CREATE POLICY mine ON doc USING (true)", "ERROR:  42710")
	expect(admin, "CREATE POLICY p ON doc FOR INSERT USING (true)", "ERROR:  42601")
	expect(admin, "CREATE POLICY p ON doc FOR SELECT WITH CHECK (true)", "ERROR:  42601")
	expect(admin, "CREATE POLICY p ON doc USING (nope = 1)", "ERROR:  42703")
	expect(admin, "CREATE POLICY p ON doc USING (sum(level) > 1)", "ERROR:  42803")
	expect(admin, "DROP POLICY nope ON doc", "ERROR:  42704")
	expect(admin, "ALTER TABLE doc DROP COLUMN owner", "ERROR:  2BP01")
	admin.must("ALTER TABLE doc RENAME COLUMN owner TO holder")
	expect(ann, list, "1,3")
	admin.must("ALTER POLICY mine ON doc RENAME TO own")
	admin.must("DROP POLICY own ON doc")
	expect(ann, list, "")
	admin.must("CREATE POLICY loop ON doc USING (EXISTS (SELECT 1 FROM doc d WHERE d.id = doc.id))")
	expect(ann, list, "ERROR:  42P17")
	admin.must("ALTER TABLE doc DISABLE ROW LEVEL SECURITY")
	expect(ann, list, "1,2,3,4")
}
