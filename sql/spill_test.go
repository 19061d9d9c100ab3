package sql_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/tallystick/tallystick/mvcc"
	"github.com/tallystick/tallystick/sql"
	"github.com/tallystick/tallystick/sql/exec"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// spillRows is how many rows TestSpillMemory handles.
var spillRows = flag.Int("spill-rows", 200_000, "rows of the queries whose memory is measured; 10000000 for the full size")

// TestSpillMemory runs queries over many rows and measures the largest resident
// set, which work_mem has to bound: of queries over ten million rows
//
//	GOMEMLIMIT=400MiB go test ./sql -run TestSpillMemory -v -timeout 1h -spill-rows 10000000
func TestSpillMemory(t *testing.T) {
	db := newDatabase(t)
	temp, err := exec.OpenTempFiles(t.TempDir(), 0)
	if err != nil {
		t.Fatal(err)
	}
	db.engine.UseTempFiles(temp)
	if *spillRows < 1_000_000 {
		db.once(t, "set work_mem = '1MB'")
	}
	n := *spillRows
	for _, q := range []struct{ text, want string }{
		{"select count(*) from (select g, g::bigint * 7919 %% %[1]d as k from generate_series(1, %[1]d) g order by k, g offset 1) s", fmt.Sprint(n - 1)},
		{"select count(*) from (select g %% (%[1]d / 2) as k, count(*), sum(g) from generate_series(1, %[1]d) g group by 1) s", fmt.Sprint(n / 2)},
		{"select count(*) from generate_series(1, %[1]d) a join generate_series(1, %[1]d, 2) b on a = b", fmt.Sprint(n / 2)},
		{"select count(*) from (select distinct g / 2 from generate_series(1, %[1]d) g) s", fmt.Sprint(n/2 + 1)},
		{"select max(r) from (select row_number() over (order by g desc) as r from generate_series(1, %[1]d) g) s", fmt.Sprint(n)},
		{"with c as materialized (select g from generate_series(1, %[1]d) g) select count(*) from c where g > 0", fmt.Sprint(n)},
	} {
		text := fmt.Sprintf(q.text, n)
		start := time.Now()
		if got := db.once(t, text); len(got) != 1 || got[0] != q.want {
			t.Errorf("%s: %v, want %s", text, got, q.want)
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		t.Logf("%6.1fs, resident %s, heap from the system %d MB: %s", time.Since(start).Seconds(), peakResident(), m.HeapSys>>20, text)
		debug.FreeOSMemory()
	}
	if temp.Used() != 0 {
		t.Errorf("%d bytes of temporary files were not given back", temp.Used())
	}
}

// peakResident is the largest resident set of the process so far, as Linux tells.
func peakResident() string {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return "unknown"
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	line, _, _ := strings.Cut(rest, "\n")
	return strings.TrimSpace(line)
}

// TestWorkMemSetting: units, bounds and what SHOW says are PostgreSQL's.
func TestWorkMemSetting(t *testing.T) {
	db := newDatabase(t)
	show := func(name string) string { return fmt.Sprint(db.once(t, "show "+name)) }
	for _, c := range []struct{ name, set, want string }{
		{"work_mem", "", "[64MB]"}, {"work_mem", "'1GB'", "[1GB]"}, {"work_mem", "65536", "[64MB]"}, {"work_mem", "100", "[100kB]"},
		{"work_mem", "'1.5MB'", "[1536kB]"}, {"work_mem", "default", "[64MB]"},
		{"statement_timeout", "'10s'", "[10s]"}, {"statement_timeout", "90000", "[90s]"}, {"statement_timeout", "'2min'", "[2min]"}, {"statement_timeout", "0", "[0]"},
	} {
		if c.set != "" {
			db.once(t, "set "+c.name+" = "+c.set)
		}
		if got := show(c.name); got != c.want {
			t.Errorf("%s = %s: %s, want %s", c.name, c.set, got, c.want)
		}
	}
	for set, message := range map[string]string{
		"work_mem = 1":            `1 kB is outside the valid range for parameter "work_mem" (64 .. 2147483647)`,
		"work_mem = 'x'":          `invalid value for parameter "work_mem": "x"`,
		"work_mem = '5 apples'":   `invalid value for parameter "work_mem": "5 apples"`,
		"statement_timeout = -1":  `-1 ms is outside the valid range for parameter "statement_timeout" (0 .. 2147483647)`,
		"statement_timeout = '-'": `invalid value for parameter "statement_timeout": "-"`,
	} {
		if a := db.answer("set " + set); a.code != "22023" || a.message != message {
			t.Errorf("%s: %s %s", set, a.code, a.message)
		}
	}
}

// TestStatementTimeout: a statement that runs for too long ends with 57014,
// wherever it is.
func TestStatementTimeout(t *testing.T) {
	store, err := mvcc.Open(t.TempDir(), mvcc.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	now := int64(0)
	engine := sql.NewEngine(store, &exec.Functions{}, sql.EngineOptions{Clock: func() int64 { now++; return now }})
	db := &database{t: t, store: store, engine: engine}
	temp, err := exec.OpenTempFiles(t.TempDir(), 0)
	if err != nil {
		t.Fatal(err)
	}
	engine.UseTempFiles(temp)
	db.session = engine.NewSession(sql.SessionOptions{User: "admin", Database: sql.Database})
	db.once(t, "set work_mem = '64kB'")
	db.once(t, "set statement_timeout = '1ms'") // a thousand looks at the clock
	for _, q := range []string{
		"select count(*) from generate_series(1, 10000000)",
		"select g from generate_series(1, 200000) g order by -g offset 300000",
		"select g, count(*) from generate_series(1, 200000) g group by g offset 300000",
		"select 1 from generate_series(1, 200000) a join generate_series(1, 200000) b on a = b offset 300000",
		"select distinct g from generate_series(1, 200000) g offset 300000",
		"select sum(g) over (order by g) from generate_series(1, 200000) g offset 300000",
	} {
		if a := db.answerIn(context.Background(), q); a.code != string(pgerr.QueryCanceled) || a.message != "canceling statement due to statement timeout" {
			t.Errorf("%s: %v", q, a.failure)
		}
	}
	if temp.Used() != 0 {
		t.Errorf("%d bytes of temporary files were not given back", temp.Used())
	}
}
