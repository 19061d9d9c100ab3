package sql_test

import (
	"flag"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tallystick/tallystick/mvcc"
	"github.com/tallystick/tallystick/sql"
	sqlexec "github.com/tallystick/tallystick/sql/exec"
)

// analyticPsql compares with a PostgreSQL that is reached by this command:
//
//	go test ./sql -run TestAnalyticVersusPostgres -v -analytic-psql 'psql -h /tmp -U postgres'
var analyticPsql = flag.String("analytic-psql", "", "psql command of the PostgreSQL to compare the analytic query with")

// The star of the analytic benchmark: facts, and dimensions that they refer to.
const (
	analyticTables = `create table dim (id int primary key, region text not null, tier int not null);
		create table fact (id int primary key, dim_id int not null, qty int not null, price numeric(10,2) not null, d date not null)`
	analyticDim   = "insert into dim select g, 'region'||(g%25), g%5 from generate_series(1,10000) g"
	analyticFact  = "insert into fact select g, 1+(g::bigint*7919%%10000), g%%50, (g%%10000)/100.0, date '2024-01-01'+(g%%730) from generate_series(%d,%d) g"
	analyticQuery = `select d.region, d.tier, count(*) as n, sum(f.qty*f.price) as revenue, avg(f.price) as avg_price
		from fact f join dim d on d.id = f.dim_id where f.d >= date '2024-06-01'
		group by d.region, d.tier order by revenue desc, d.region, d.tier limit 10`
)

// newDiskDatabase is newDatabase on a directory of the test.
func newDiskDatabase(t testing.TB) *database {
	store, err := mvcc.Open(t.TempDir(), mvcc.Options{CacheBytes: 512 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	engine := sql.NewEngine(store, &sqlexec.Functions{}, sql.EngineOptions{})
	db := &database{t: t, store: store, engine: engine}
	db.session = engine.NewSession(sql.SessionOptions{User: "admin", Database: sql.Database})
	return db
}

// newAnalytic loads the star with that many facts.
func newAnalytic(t testing.TB, facts int) *database {
	db := newDiskDatabase(t)
	load := func(text string) {
		t.Helper()
		if out := db.script(text); strings.Contains(out, "ERROR") {
			t.Fatal(out)
		}
	}
	load(analyticTables)
	load(analyticDim)
	const step = 50000
	for from := 1; from <= facts; from += step {
		load(fmt.Sprintf(analyticFact, from, min(from+step-1, facts)))
	}
	return db
}

// BenchmarkAnalytic is the analytic query over a million facts, warm.
func BenchmarkAnalytic(b *testing.B) {
	db := newAnalytic(b, 1_000_000)
	b.ReportAllocs()
	b.ResetTimer()
	for b.Loop() {
		if rows := db.once(b, analyticQuery); len(rows) != 10 {
			b.Fatalf("%d rows", len(rows))
		}
	}
}

// TestAnalyticVersusPostgres runs the query here and there in turns and prints
// the ratio of the medians.
func TestAnalyticVersusPostgres(t *testing.T) {
	if *analyticPsql == "" {
		t.Skip("needs -analytic-psql, a PostgreSQL to compare with")
	}
	psql := func(text string) string {
		t.Helper()
		args := append(strings.Fields(*analyticPsql), "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c", text)
		out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", text, err, out)
		}
		return string(out)
	}
	psql("drop table if exists dim, fact; " + analyticTables + ";" + analyticDim + ";" + fmt.Sprintf(analyticFact, 1, 1_000_000) + "; analyze dim; analyze fact")
	defer psql("drop table dim, fact")
	db := newAnalytic(t, 1_000_000)
	if ours, theirs := db.answer(analyticQuery), psql(analyticQuery); strings.Join(ours.rows, "\n") != strings.TrimSpace(theirs) {
		t.Fatalf("ours:\n%s\nPostgreSQL:\n%s", strings.Join(ours.rows, "\n"), theirs)
	}
	var here, there []time.Duration
	for range 9 {
		start := time.Now()
		db.once(t, analyticQuery)
		here = append(here, time.Since(start))
		there = append(there, serverTime(t, psql("explain (analyze, timing off) "+analyticQuery)))
	}
	slices.Sort(here)
	slices.Sort(there)
	h, p := here[len(here)/2], there[len(there)/2]
	t.Logf("medians of %d: here %v (%v to %v), PostgreSQL %v (%v to %v), ratio %.2f", len(here),
		h, here[0], here[len(here)-1], p, there[0], there[len(there)-1], float64(h)/float64(p))
}

// serverTime adds up what EXPLAIN ANALYZE says the server took.
func serverTime(t *testing.T, out string) (sum time.Duration) {
	for _, l := range strings.Split(out, "\n") {
		_, figure, ok := strings.Cut(l, " Time: ")
		if !ok {
			continue
		}
		d, err := time.ParseDuration(strings.ReplaceAll(figure, " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		sum += d
	}
	return sum
}
