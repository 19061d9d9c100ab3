package sql_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/tallystick/tallystick/mvcc"
	"github.com/tallystick/tallystick/sql"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/exec"
	"github.com/tallystick/tallystick/sql/parse"
	"github.com/tallystick/tallystick/sql/pgerr"
	"github.com/tallystick/tallystick/sql/plan"
)

// bothEngines runs a query as the row engine and as the batch engine does; env
// changes what they run in.
func (db *database) bothEngines(t *testing.T, text string, env func(*exec.Env)) (byRow, byBatch string) {
	t.Helper()
	st, err := parse.One(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	run := func(compile func(*plan.Plan) (*exec.Program, error), change func(*exec.Env)) string {
		return db.local(t, st, compile, change)
	}
	return run(exec.Compile, func(*exec.Env) {}), run(exec.CompileLocal, env)
}

// local runs a statement in an environment like that of a local query. What
// comes back is its rows, or its error.
func (db *database) local(t *testing.T, st parse.Statement, compile func(*plan.Plan) (*exec.Program, error), change func(*exec.Env)) string {
	txn := db.store.Begin(snapshotOf(db.store), 0)
	defer txn.Close()
	txn.Forget()
	c, err := db.engine.Catalog(txn)
	if err != nil {
		t.Fatal(err)
	}
	pl, err := plan.Statement(st.Node, &plan.Options{Catalog: c, SearchPath: sql.SearchPath, Script: st.Script, Format: &datum.ContractFormat})
	if err != nil {
		t.Fatalf("%s: %v", st.Text, err)
	}
	prog, err := compile(pl)
	if err != nil {
		t.Fatalf("%s: %v", st.Text, err)
	}
	env := &exec.Env{Txn: txn, Catalog: c, ReadOnly: true}
	env.Ctx.Format = &datum.ContractFormat
	change(env)
	var b strings.Builder
	for range 2 { // the second time with iterators that were used before
		b.Reset()
		cur, err := prog.Open(env, nil)
		if err != nil {
			return err.Error()
		}
		for {
			row, err := cur.Next()
			if err != nil {
				_ = cur.Close()
				return err.Error()
			}
			if row == nil {
				break
			}
			b.WriteString(line(pl.Columns, row, env.Ctx.Format))
		}
		_ = cur.Close()
	}
	return b.String()
}

// batchData makes tables whose columns hold all that the batch engine treats in
// a way of its own: nulls, big and small numerics of several scales, keys that
// match once, often and never.
func batchData(t *testing.T, seed uint64, rows int) *database {
	db := newDatabase(t)
	r := rand.New(rand.NewPCG(seed, 1))
	db.mustScript(`create table f (id int primary key, k int, k8 bigint, q smallint, n numeric, p numeric(10,2), s text, d date, b boolean, x float8, ts timestamp);
		create table u (id int primary key, name text, tier int, w numeric);
		create table m (id int primary key, k int, k8 bigint, label text, amt int)`)
	null := func(s string) string {
		if r.IntN(8) == 0 {
			return "null"
		}
		return s
	}
	list := []string{}
	flush := func(table string) {
		if len(list) > 0 {
			db.mustScript("insert into " + table + " values " + strings.Join(list, ","))
			list = list[:0]
		}
	}
	numerics := []string{"0", "0.0", "1.5", "1.50", "-3.25", "123456789012345678901234567890.5", "99999999999999.99", "-0.001", "'NaN'", "7"}
	for i := range rows {
		list = append(list, fmt.Sprintf("(%d,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s)", i, null(fmt.Sprint(r.IntN(60)-5)), null(fmt.Sprint(r.Int64N(9)*1e12)),
			null(fmt.Sprint(r.IntN(10))), null(numerics[r.IntN(len(numerics))]), null(fmt.Sprintf("%d.%02d", r.IntN(1000)-500, r.IntN(100))),
			null(fmt.Sprintf("'s%d'", r.IntN(7))), null(fmt.Sprintf("date '2024-01-01' + %d", r.IntN(400))), null([]string{"true", "false"}[r.IntN(2)]),
			null(fmt.Sprintf("%d / 8.0::float8", r.IntN(100)-50)), null(fmt.Sprintf("timestamp '2024-01-01' + interval '%d hour'", r.IntN(1000)))))
		if len(list) == 2000 {
			flush("f")
		}
	}
	flush("f")
	for i := range 40 {
		list = append(list, fmt.Sprintf("(%d,%s,%s,%s)", i, null(fmt.Sprintf("'u%d'", i%6)), null(fmt.Sprint(i%4)), null(fmt.Sprintf("%d.5", i))))
	}
	flush("u")
	for i := range 90 {
		list = append(list, fmt.Sprintf("(%d,%s,%s,%s,%d)", i, null(fmt.Sprint(r.IntN(30))), null(fmt.Sprint(r.Int64N(9)*1e12)), null(fmt.Sprintf("'m%d'", i%5)), i))
	}
	flush("m")
	return db
}

// batchQueries makes queries of the shape that the batch engine takes.
type batchQueries struct {
	*rand.Rand
	plain bool // aggregates that two workers can compute
}

func (g batchQueries) pick(list ...string) string { return list[g.IntN(len(list))] }

func (g batchQueries) number() string {
	return g.pick("f.k", "f.q", "f.k8", "f.n", "f.p", "f.x", "f.q*f.p", "f.k+f.q", "f.p*f.n", "f.p*2", "abs(f.k)", "case when f.b then f.k else f.q end",
		"coalesce(f.k, 0)", "f.k % 7", "length(f.s)", "-f.n", "f.k::numeric * f.q", "nullif(f.k, 3)", "f.k8*f.p")
}

func (g batchQueries) condition() string {
	c := g.pick("f.k > 10", "f.k between 3 and 20", "f.d >= date '2024-06-01'", "f.s = 's3'", "f.s <> 's1' or f.k < 4", "f.b", "not f.b", "f.b is not true",
		"f.n > 1", "f.p is not null", "f.k is null or f.q > 5", "f.x < 0", "f.k8 = 3000000000000", "(f.k = 1 or f.q = 2) and not (f.s = 's2')",
		"f.ts < timestamp '2024-01-20'", "f.k in (1,2,3)", "f.s like 's%'", "f.k is distinct from f.q", "f.id >= 100", "f.id between 50 and 20000",
		"f.q > (select min(tier) from u)", "exists (select 1 from m where m.k = f.k)", "f.k not in (select id from u where id > 20)")
	if g.plain && strings.Contains(c, "select") {
		return "f.id > 3"
	}
	if g.IntN(3) == 0 {
		return c + g.pick(" and ", " or ") + g.condition()
	}
	return c
}

func (g batchQueries) aggregate() string {
	a := g.pick("count(*)", "count("+g.number()+")", "sum("+g.number()+")", "avg("+g.number()+")", "max("+g.number()+")", "min("+g.number()+")",
		"max(f.s)", "min(f.d)", "bool_and(f.b)", "string_agg(f.s, ',')", "array_agg(f.q)", "count(distinct f.k)", "stddev(f.p)", "sum(f.x)", "max(f.b::int)")
	if g.plain {
		a = g.pick("count(*)", "count(f.k)", "sum(f.k)", "avg(f.q)", "sum(f.n)", "avg(f.p)", "sum(f.q*f.p)", "sum(f.k8)", "min(f.d)", "max(f.k8)", "min(f.ts)", "sum(f.k8*f.p)")
	}
	if g.IntN(5) == 0 {
		a += " filter (where " + g.condition() + ")"
	}
	return a
}

func (g batchQueries) query() string {
	from, keys := "f", []string{"f.k", "f.s", "f.q", "f.b", "f.n", "f.k8", "f.d", "f.x", "f.k % 3", "f.k / 10", "f.s || 'x'", "f.p > 0"}
	switch g.IntN(7) {
	case 5:
		from = "(select id, k+1 as k, k8, q, n, p*2 as p, s, d, b, x, ts from f where q is not null) f"
	case 0:
		from, keys = "f join u on u.id = f.k", append(keys, "u.name", "u.tier", "u.w")
	case 1:
		from, keys = "f left join u on u.id = f.k", append(keys, "u.name", "u.tier")
	case 2:
		from, keys = "f join m on m.k = f.k", append(keys, "m.label", "m.amt")
	case 3:
		from, keys = "f left join m on m.k8 = f.k8 and m.k = f.k", append(keys, "m.label")
	case 4:
		from, keys = "f join m on m.k = f.k join u on u.id = f.q and u.tier < m.amt", append(keys, "u.name", "m.label")
	}
	var group []string
	for range g.IntN(4) {
		group = append(group, keys[g.IntN(len(keys))])
	}
	if g.IntN(3) == 0 && len(keys) > 12 { // keys of the inner side alone
		group = keys[12:]
	}
	list := append([]string{}, group...)
	for range 1 + g.IntN(4) {
		list = append(list, g.aggregate())
	}
	q := "select " + strings.Join(list, ", ") + " from " + from
	if g.IntN(3) > 0 {
		q += " where " + g.condition()
	}
	if len(group) > 0 {
		q += " group by " + strings.Join(group, ", ")
	}
	return q
}

// TestBatchEngine: the batch engine answers what the row engine answers, in the
// same order, with one worker and with two, and when it has to give up.
func TestBatchEngine(t *testing.T) {
	const seed = 4711
	for _, rows := range []int{0, 500, 20_000} {
		db := batchData(t, seed, rows)
		g := batchQueries{Rand: rand.New(rand.NewPCG(seed, uint64(rows)))}
		n := 120
		if rows > 1000 {
			n = 15
		}
		for i := range n {
			g.plain = rows > 1000 && i%3 > 0
			q := g.query()
			mem := []int64{0, 0, 5_000}[i%3]
			byRow, byBatch := db.bothEngines(t, q, func(e *exec.Env) { e.WorkMem = mem })
			if byRow != byBatch {
				t.Fatalf("seed %d, %d rows, work_mem %d: %s\nrow engine:\n%.2000s\nbatch engine:\n%.2000s", seed, rows, mem, q, byRow, byBatch)
			}
		}
	}
}

func snapshotOf(s *mvcc.Store) mvcc.Snapshot { return mvcc.AsOf(s.Height()) }

// spillQueries are what the row engine takes to disk, with all kinds of joins,
// nulls among the keys, and orders that only stability decides.
var spillQueries = []string{
	"select * from f order by s, k desc nulls last",
	"select * from f order by n, p limit 4500 offset 13",
	"select id from f order by x, b offset 300",
	"select k, s, count(*), sum(n), min(d), array_agg(id) from f group by k, s",
	"select n, count(*), string_agg(s, '-' order by id desc) from f group by n",
	"select id % 211, count(distinct k), max(s) from f group by id % 211",
	"select k, q, s, count(*), grouping(k, q) from f group by grouping sets ((k, s), (q, s), ())",
	"select distinct k, s from f",
	"select distinct on (k, q) k, q, id, s from f",
	"select distinct n from f",
	"select count(*) from (select distinct id / 2 from f) x",
	"select f.id, g.id, g.s from f join f g on g.k = f.k and g.q = f.q",
	"select f.id, g.id from f left join f g on g.k = f.k and g.q = f.q and g.s = f.s",
	"select f.id, g.id from f right join (select * from f where q < 5) g on g.k = f.k and g.s = f.s",
	"select f.id, g.id, f.s, g.s from f full join (select * from f where b) g on g.n = f.n and g.k = f.k",
	"select f.id from f where exists (select 1 from f g where g.k8 = f.k8 and g.s = f.s and g.id <> f.id)",
	"select f.id from f where not exists (select 1 from f g where g.k = f.q and g.s = f.s)",
	"select id, row_number() over (partition by s order by k), sum(q) over (partition by s order by id rows between 3 preceding and 2 following) from f",
	"select id, lag(s, 1200) over (order by id), first_value(id) over (order by d), count(*) over () from f",
	"with c as materialized (select * from f) select a.id, b.s from c a join c b on b.id = a.id + 1",
	"with c as materialized (select id, s from f) select (select count(*) from c where c.s = u.name), u.* from u",
	"select g, h from generate_series(1, 2500) g left join generate_series(1, 3500, 2) h on g = h where g % 7 = 0",
	"select f.id, u from f cross join generate_series(1, 1500) u where f.id % 500 = 0",
	"with recursive r as (select 1 as i, 'x' as t union all select i + 1, left(t || i % 10, 20) from r where i < 1500) select i, length(t) from r",
	"select s, count(*) from (select * from f order by k) f group by s order by 2, 1",
	"select k from f union select q from f union select id from f where id % 3 = 0",
}

// TestSpill: how much memory there is changes neither rows nor their order, and
// nothing stays behind in the directory.
func TestSpill(t *testing.T) {
	db := batchData(t, 99, 1500)
	dir := t.TempDir()
	temp, err := exec.OpenTempFiles(dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range spillQueries {
		st, err := parse.One(q)
		if err != nil {
			t.Fatal(err)
		}
		want := db.local(t, st, exec.Compile, func(*exec.Env) {})
		wrote := false
		for _, mem := range []int64{1, 5_000, 1 << 30} {
			got := db.local(t, st, exec.CompileLocal, func(e *exec.Env) {
				e.WorkMem, e.Temp = mem, temp
				e.Interrupted = func() error { wrote = wrote || temp.Used() > 0; return nil }
			})
			if got != want {
				t.Errorf("work_mem %d: %s\ngot:\n%.600s\nwant:\n%.600s", mem, q, got, want)
			}
		}
		if temp.Used() != 0 {
			t.Errorf("%s: %d bytes of temporary files were not given back", q, temp.Used())
		}
		if !wrote {
			t.Errorf("%s: nothing went to disk", q)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left in the directory: %v %v", left, err)
	}
}

// TestSpillLimit: a limit on temporary files, and a statement that is ended while
// it spills, are errors that leave nothing behind.
func TestSpillLimit(t *testing.T) {
	db := batchData(t, 98, 1500)
	small, err := exec.OpenTempFiles(t.TempDir(), 10_000)
	if err != nil {
		t.Fatal(err)
	}
	large, err := exec.OpenTempFiles(t.TempDir(), 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range spillQueries {
		st, err := parse.One(q)
		if err != nil {
			t.Fatal(err)
		}
		got := db.local(t, st, exec.CompileLocal, func(e *exec.Env) { e.WorkMem, e.Temp = 1, small })
		if strings.Contains(got, "exceeds") && got != "temporary file size exceeds temp_file_limit (9kB) (SQLSTATE 53400)" {
			t.Errorf("%s: %s", q, got)
		}
		stop := pgerr.New(pgerr.QueryCanceled, "canceling statement due to user request")
		db.local(t, st, exec.CompileLocal, func(e *exec.Env) {
			e.WorkMem, e.Temp = 1, large
			e.Interrupted = func() error {
				if large.Used() > 5000 {
					return stop
				}
				return nil
			}
		})
		if small.Used() != 0 || large.Used() != 0 {
			t.Errorf("%s: %d and %d bytes were not given back", q, small.Used(), large.Used())
		}
	}
}
