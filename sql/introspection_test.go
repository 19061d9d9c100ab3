package sql_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/tallystick/tallystick/sql/parse"
)

// The files in testdata/introspection hold what psql, drivers and tools ask
// the catalogs, word for word; {{r:emp}} stands for the OID of a relation and
// {{f:add_emp}} for that of a function, in questions and in answers. Arguments
// of prepared statements stand in their places. No question may fail; "query"
// shows its rows, "columns" only their shape.

func TestIntrospection(t *testing.T) {
	datadriven.Walk(t, filepath.Join("testdata", "introspection"), func(t *testing.T, path string) {
		db := newDatabase(t)
		var names *strings.Replacer
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "setup":
				db.mustScript(d.Input)
				return ""
			case "query", "columns":
				if names == nil {
					names = db.oidNames()
				}
				a := db.answer(db.withOIDs(strings.TrimSuffix(d.Input, ";")))
				if a.code != "" && !d.HasArg("error") {
					t.Errorf("%s: %s\n%s", d.Pos, a.failure, d.Input)
				}
				if d.Cmd == "columns" { // too many rows to read, or of other packages
					a.rows = nil
				}
				return names.Replace(a.String())
			}
			t.Fatalf("%s: unknown command %s", d.Pos, d.Cmd)
			return ""
		})
	})
}

// mustScript runs statements that may not fail.
func (db *database) mustScript(text string) {
	db.t.Helper()
	list, err := parse.Statements(text)
	if err != nil {
		db.t.Fatal(err)
	}
	for _, st := range list {
		if a := db.answer(st.Text); a.code != "" {
			db.t.Fatalf("%s\n%s", st.Text, a.failure)
		}
	}
}

// objects lists the OIDs of what a test made: "r:name oid" and "f:name oid".
const objects = "select 'r:' || relname, oid from pg_class where relnamespace = 'blockchain'::regnamespace " +
	"union all select 'f:' || proname, oid from pg_proc where pronamespace = 'blockchain'::regnamespace"

// withOIDs puts OIDs in the places that {{}} marks.
func (db *database) withOIDs(text string) string {
	return strings.NewReplacer(pairs(db.answer(objects).rows, false)...).Replace(text)
}

func (db *database) oidNames() *strings.Replacer {
	return strings.NewReplacer(pairs(db.answer(objects).rows, true)...)
}

func pairs(rows []string, reverse bool) []string {
	var out []string
	for _, r := range rows {
		name, oid, _ := strings.Cut(r, "|")
		name = fmt.Sprintf("{{%s}}", name)
		if reverse {
			name, oid = oid, name
		}
		out = append(out, name, oid)
	}
	return out
}
