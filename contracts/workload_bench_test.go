package contracts_test

import (
	"os"
	"syscall"
	"testing"

	"github.com/tallystick/tallystick/mvcc"
	"github.com/tallystick/tallystick/sql/builtin"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/exec"
)

// benchWorkload measures one call of a contract of bench/workloads in the
// executor: a transaction of its own on committed rows, which is neither signed
// nor committed. The caches are warm: each of the calls ran before.
func benchWorkload(b *testing.B, file, load, name string, calls int, args func(i int) []datum.Datum) {
	text, err := os.ReadFile("../bench/workloads/" + file)
	if err != nil {
		b.Fatal(err)
	}
	d := newDatabase(b)
	for _, s := range []string{string(text), load} {
		if out := d.run(s); s != load && out != "" {
			b.Fatal(out)
		}
	}
	txn := d.store.Begin(mvcc.AsOf(d.height), 1)
	defer txn.Close()
	cat, err := d.engine.Catalog(txn)
	if err != nil {
		b.Fatal(err)
	}
	fn := cat.Funcs("blockchain", name)[0]
	env := d.engine.ContractEnv(txn, 1, cat, &builtin.TxInfo{})
	env.Ctx.Budget = &builtin.Budget{Left: 1 << 62}
	env.Limits = exec.Limits{Nesting: 100, ReadBytes: 1 << 40, WriteBytes: 1 << 40}
	lists := make([][]datum.Datum, calls)
	call := func(i int) {
		if _, err := d.functions.Call(env, fn, lists[i%calls]); err != nil {
			b.Fatal(err)
		}
		if err := txn.Reset(mvcc.AsOf(d.height), 1); err != nil {
			b.Fatal(err)
		}
	}
	for i := range lists {
		lists[i] = args(i)
		call(i)
	}
	b.ReportAllocs()
	start := processor()
	i := 0
	for ; b.Loop(); i++ {
		call(i)
	}
	b.ReportMetric(float64(processor()-start)/float64(i), "cpu-ns/op")
}

// processor is the time that this process got of the processors: on a machine
// that is shared, the clock measures the others too.
func processor() int64 {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return u.Utime.Nano() + u.Stime.Nano()
}

// BenchmarkWorkload has the contracts that the network is measured with: "again"
// repeats one call, whose rows stay in the processor's caches, "many" goes through
// as many that memory's latency shows.
func BenchmarkWorkload(b *testing.B) {
	run := func(name, file, load, fn string, many int, args func(i int) []datum.Datum) {
		b.Run(name+"/again", func(b *testing.B) { benchWorkload(b, file, load, fn, 1, args) })
		b.Run(name+"/many", func(b *testing.B) { benchWorkload(b, file, load, fn, many, args) })
	}
	run("simple", "simple.sql", "", "c_simple", 1000, func(i int) []datum.Datum {
		return []datum.Datum{datum.Int(int64(i) + 1), datum.Int(3), datum.Int(int64(i)), datum.Int(7), numeric("12.50")}
	})
	run("transfer", "transfer.sql", "SELECT load_accounts(1, 10000)", "c_transfer", 1000, func(i int) []datum.Datum {
		return []datum.Datum{datum.Int(int64(1 + i*7919%10000)), datum.Int(int64(1 + (i*104729+1)%10000)), numeric("1.25")}
	})
	group := func(i int) []datum.Datum {
		return []datum.Datum{datum.Int(int64(i) + 1), datum.Int(int64(i * 37 % 995))}
	}
	run("complex-join", "complex-join.sql", "SELECT load_join_a(1, 20000); SELECT load_join_b(1, 100000)", "c_join", 100, group)
	run("complex-group", "complex-group.sql", "SELECT load_group(1, 100000)", "c_group", 100, group)
}

// TestWorkloadsAnswer verifies that what BenchmarkWorkload measures does its
// work: the rows that the contracts leave are those of a plain query.
func TestWorkloadsAnswer(t *testing.T) {
	d := newDatabase(t)
	for _, file := range []string{"complex-join.sql", "complex-group.sql"} {
		text, err := os.ReadFile("../bench/workloads/" + file)
		if err != nil {
			t.Fatal(err)
		}
		if out := d.run(string(text)); out != "" {
			t.Fatal(out)
		}
	}
	d.run("SELECT load_join_a(1, 2000); SELECT load_join_b(1, 10000); SELECT load_group(1, 10000)")
	d.run("SELECT c_join(1, 10); SELECT c_group(1, 10)")
	got := d.run("SELECT cnt, total FROM jo_out WHERE id = 1; SELECT sub, total FROM gr_out WHERE id = 1")
	// Without an index: val + 0 and the like hide the columns.
	want := d.run(`SELECT count(*), sum(a.amt * b.qty) FROM jo_a a, jo_b b WHERE b.a_id + 0 = a.id + 0 AND a.grp + 0 BETWEEN 10 AND 14;
SELECT sub, sum(amt) FROM gr_t WHERE grp + 0 BETWEEN 10 AND 14 GROUP BY sub ORDER BY 2 DESC, 1 LIMIT 1`)
	if got != want || len(got) < 10 {
		t.Fatalf("got\n%s\nwant\n%s", got, want)
	}
}
