package sql_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/parse"
)

// BenchmarkPreparedSelect is a point look-up through a session, as the extended
// protocol does it, without the wire.
func BenchmarkPreparedSelect(b *testing.B) {
	t := &testing.T{}
	db := newDatabase(t)
	var out strings.Builder
	stmts, err := parse.Statements("create table kv (k int primary key, v text not null)")
	if err != nil {
		b.Fatal(err)
	}
	if err := db.statement(&out, stmts[0]); err != nil {
		b.Fatal(err)
	}
	for i := 0; i < 10; i++ {
		st, err := parse.One(fmt.Sprintf("insert into kv select g, repeat('v', 64) from generate_series(%d, %d) g", i*1000, i*1000+999))
		if err != nil {
			b.Fatal(err)
		}
		if err := db.statement(&out, st); err != nil {
			b.Fatal(err)
		}
	}
	ctx := context.Background()
	st, err := parse.One("select v from kv where k = $1")
	if err != nil {
		b.Fatal(err)
	}
	p, err := db.session.Prepare(ctx, "q", st, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := 0; b.Loop(); i++ {
		portal, err := db.session.Bind(ctx, p, []datum.Datum{datum.Int(int64(i * 7919 % 10000))})
		if err != nil {
			b.Fatal(err)
		}
		row, err := portal.Next(ctx)
		if err != nil || row == nil {
			b.Fatal(row, err)
		}
		portal.Close()
	}
}
