package bench_test

import (
	"bytes"
	"context"
	"encoding/xml"
	"fmt"
	"io"
	"log/slog"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tallystick/tallystick/bench"
	"github.com/tallystick/tallystick/server"
	"github.com/tallystick/tallystick/sql"
)

// Every workload runs on a small scale: what is counted agrees with the node's
// own totals, nothing fails, and the invariant holds.
func TestWorkloads(t *testing.T) {
	for _, w := range bench.Workloads() {
		t.Run(w.Name, func(t *testing.T) {
			n, url := startNode(t)
			ctx, scale := t.Context(), 1000
			if err := bench.Setup(ctx, &w, url(server.DevAdmin), url("alice"), scale, func(int) {}); err != nil {
				t.Fatal(err)
			}
			var target bench.Target = &bench.Local{Node: n, User: "alice"}
			if w.Queries {
				wire, err := bench.Dial(ctx, url("alice"), 4)
				if err != nil {
					t.Fatal(err)
				}
				defer wire.Close()
				target = wire
			}
			before := n.Metrics()
			const clients, each = 4, 25
			r, err := bench.Run(ctx, &w, target, bench.Options{
				Clients: clients, Operations: each, Duration: time.Hour, Seed: 7, Scale: scale, Retry: true,
			})
			if err != nil {
				t.Fatal(err)
			}
			if r.Done != clients*each || len(r.Failures) > 0 {
				t.Errorf("%d done, failures %v", r.Done, r.Failures)
			}
			d := n.Metrics().Minus(&before)
			if !w.Queries && d.Committed != r.Done || d.Aborted != r.Aborts["40001"] {
				t.Errorf("counted %d done and %d aborted, the node committed %d and aborted %d", r.Done, r.Aborts["40001"], d.Committed, d.Aborted)
			}
			if err := bench.Check(ctx, &w, url("alice")); err != nil {
				t.Error(err)
			}
		})
	}
}

func startNode(t *testing.T) (*server.Node, func(user string) string) {
	t.Helper()
	n, err := server.OpenDev(server.DevOptions{
		Dir: t.TempDir(), Listen: "127.0.0.1:0",
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- n.Serve(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	return n, func(user string) string {
		return fmt.Sprintf("postgres://%s@%s/%s", user, n.Addr(), sql.Database)
	}
}

// A client does the same in every run with the same seed, and something else
// than its neighbour.
func TestSourcesAreSeeded(t *testing.T) {
	for _, w := range bench.Workloads() {
		first := operations(&w, 1, 0)
		if again := operations(&w, 1, 0); !reflect.DeepEqual(first, again) {
			t.Errorf("%s: client 0 differs from itself", w.Name)
		}
		if other := operations(&w, 1, 1); w.Name != "analytic" && reflect.DeepEqual(first, other) {
			t.Errorf("%s: clients 0 and 1 do the same", w.Name)
		}
	}
}

func operations(w *bench.Workload, seed uint64, client int) []string {
	source := w.Source(seed, client, 1000)
	list := make([]string, 50)
	for i := range list {
		op := source()
		list[i] = fmt.Sprint(op.String(), op.Args)
	}
	return list
}

// The open loop keeps its rate, and its latency counts from when an operation
// was due: a target that answers one operation in 20 ms, offered one every 10
// ms, falls behind, and that shows.
func TestOpenLoopCountsWaiting(t *testing.T) {
	w, err := bench.Find("simple")
	if err != nil {
		t.Fatal(err)
	}
	r, err := bench.Run(t.Context(), w, slow{20 * time.Millisecond}, bench.Options{Clients: 1, Duration: time.Second, Rate: 100})
	if err != nil {
		t.Fatal(err)
	}
	if r.LatencyMS.Max < 100 {
		t.Errorf("latency of at most %.1f ms under twice the load that can be served", r.LatencyMS.Max)
	}
	if r.Done > 60 {
		t.Errorf("%d operations of 20 ms in a second", r.Done)
	}
}

type slow struct{ d time.Duration }

func (slow) Prepare(int, *bench.Op) (any, error) { return nil, nil }

func (s slow) Do(context.Context, int, *bench.Op, any) (bench.Outcome, error) {
	time.Sleep(s.d)
	return bench.Outcome{}, nil
}

func TestPercentiles(t *testing.T) {
	l := bench.NewLatency()
	for i := 1; i <= 1000; i++ {
		l.Record(time.Duration(i) * time.Millisecond)
	}
	p := l.Percentiles()
	for _, c := range []struct {
		name      string
		got, want float64
	}{{"mean", p.Mean, 500.5}, {"p50", p.P50, 500}, {"p99", p.P99, 990}, {"max", p.Max, 1000}} {
		if math.Abs(c.got-c.want) > c.want/500 {
			t.Errorf("%s is %.2f, want %.1f", c.name, c.got, c.want)
		}
	}
}

func TestReports(t *testing.T) {
	r := &bench.Report{
		Workload: "simple", Clients: 2, Seconds: 1, TPS: 3, Done: 3,
		Aborts: map[string]uint64{"stale": 1, "write-write": 5}, Failures: map[string]uint64{},
	}
	var text, table bytes.Buffer
	if err := r.Text(&text); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text.String(), "write-write 5, stale 1") {
		t.Errorf("report:\n%s", &text)
	}
	if err := bench.CSV(&table, []*bench.Report{r}); err != nil {
		t.Fatal(err)
	}
	if lines := strings.Split(strings.TrimSpace(table.String()), "\n"); len(lines) != 2 || strings.Count(lines[0], ",") != strings.Count(lines[1], ",") {
		t.Errorf("table:\n%s", &table)
	}
}

// The drawing is well-formed, and every point is inside of it.
func TestPlot(t *testing.T) {
	var reports []*bench.Report
	for _, n := range []int{1, 8, 64} {
		reports = append(reports, &bench.Report{Clients: n, TPS: 1000 * float64(n), LatencyMS: bench.Percentiles{P50: 1, P99: float64(n)}})
	}
	var out bytes.Buffer
	if err := bench.SVG(&out, bench.PlotClients("a < b", reports)...); err != nil {
		t.Fatal(err)
	}
	d, circles := xml.NewDecoder(&out), 0
	for {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		e, ok := token.(xml.StartElement)
		if !ok || e.Name.Local != "circle" {
			continue
		}
		circles++
		for _, a := range e.Attr {
			var v float64
			if _, err := fmt.Sscan(a.Value, &v); (a.Name.Local == "cx" || a.Name.Local == "cy") && (err != nil || v < 0 || v > 640) {
				t.Errorf("a point at %s %s", a.Name.Local, a.Value)
			}
		}
	}
	if circles != 9 {
		t.Errorf("%d points, want 9", circles)
	}
}

// Options that cannot work are refused by name.
func TestOptions(t *testing.T) {
	good := bench.Options{Clients: 1, Duration: time.Second}
	for _, c := range []struct {
		change func(*bench.Options)
		want   string
	}{
		{func(o *bench.Options) { o.Clients = 0 }, "client"},
		{func(o *bench.Options) { o.Duration = 0 }, "time"},
		{func(o *bench.Options) { o.Rate = -1 }, "negative"},
		{func(o *bench.Options) { o.Rate, o.Presigned = 1, 1 }, "closed loop"},
	} {
		o := good
		c.change(&o)
		if err := o.Validate(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want one about %q", err, c.want)
		}
	}
	if _, err := bench.Find("nothing"); err == nil || !strings.Contains(err.Error(), "complex-join") {
		t.Errorf("an unknown workload: %v", err)
	}
}
