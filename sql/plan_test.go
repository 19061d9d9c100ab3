package sql_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/tallystick/tallystick/mvcc"
	"github.com/tallystick/tallystick/sql"
	"github.com/tallystick/tallystick/sql/parse"
	"github.com/tallystick/tallystick/sql/pgcatalog"
	"github.com/tallystick/tallystick/sql/pgerr"
	"github.com/tallystick/tallystick/sql/plan"
)

// The files in testdata/plan hold statements and the plans that they get. A
// plan is part of the protocol: it decides which keys a contract reads.
func TestPlans(t *testing.T) {
	datadriven.Walk(t, filepath.Join("testdata", "plan"), func(t *testing.T, path string) {
		db := newDatabase(t)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "setup":
				db.mustScript(d.Input)
				return ""
			case "plan":
				text := db.plan(d.Input, d.HasArg("contract"))
				for range 50 {
					if again := db.plan(d.Input, d.HasArg("contract")); again != text {
						t.Fatalf("%s: another plan at another time:\n%s\n%s", d.Pos, text, again)
					}
				}
				return text
			}
			t.Fatalf("%s: unknown command %s", d.Pos, d.Cmd)
			return ""
		})
	})
}

// plan describes the plan of a statement in the newest catalog.
func (db *database) plan(text string, contract bool) string {
	txn := db.store.Begin(mvcc.AsOf(db.store.Height()), 0)
	defer txn.Close()
	c, err := db.engine.Catalog(txn)
	if err != nil {
		db.t.Fatal(err)
	}
	st, err := parse.One(strings.TrimSuffix(text, ";"))
	if err != nil {
		return err.Error() + "\n"
	}
	opts := &plan.Options{Catalog: c, SearchPath: sql.SearchPath, Script: st.Script, Contract: contract}
	if !contract {
		opts.Virtual = pgcatalog.Find
	}
	pl, err := plan.Statement(st.Node, opts)
	if err != nil {
		e, ok := pgerr.From(err)
		if !ok {
			db.t.Fatal(err)
		}
		return failure{string(e.Code), e.Message, e.Detail, e.Hint, e.Position}.String() + "\n"
	}
	return plan.Describe(pl.Root)
}
