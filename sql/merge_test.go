package sql_test

import (
	"context"
	"testing"

	"github.com/tallystick/tallystick/mvcc"
	"github.com/tallystick/tallystick/sql"
	"github.com/tallystick/tallystick/sql/parse"
	"github.com/tallystick/tallystick/sql/pgerr"
	"github.com/tallystick/tallystick/sql/plan"
)

// TestMergeIsRefused: in contracts until the engine version admits it, and like
// every change of blockchain tables outside of them.
func TestMergeIsRefused(t *testing.T) {
	db := newDatabase(t)
	db.transcript("create table t (a int primary key)")
	st, err := parse.One("merge into t using (select 1 as k) s on a = k when matched then delete")
	if err != nil {
		t.Fatal(err)
	}
	txn := db.store.Begin(mvcc.AsOf(db.store.Height()), 0)
	defer txn.Close()
	c, err := db.engine.Catalog(txn)
	if err != nil {
		t.Fatal(err)
	}
	_, err = plan.Statement(st.Node, &plan.Options{Catalog: c, SearchPath: sql.SearchPath, Contract: true})
	if pgerr.CodeOf(err) != pgerr.FeatureNotSupported {
		t.Errorf("in a contract: %v", err)
	}
	_, err = db.session.Prepare(context.Background(), "", st, nil)
	if pgerr.CodeOf(err) != pgerr.InsufficientPrivilege {
		t.Errorf("in a session: %v", err)
	}
}
