package bench

import (
	"encoding/csv"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// Report is what a run measured. Times are milliseconds unless said otherwise.
type Report struct {
	Workload string  `json:"workload"`
	Setting  string  `json:"setting,omitempty"` // what else was chosen, for people
	Clients  int     `json:"clients"`
	Seconds  float64 `json:"seconds"`
	// TPS counts operations a second that were carried out: committed calls and
	// answered queries.
	TPS        float64            `json:"tps"`
	Done       uint64             `json:"done"`
	LatencyMS  Percentiles        `json:"latency_ms"`
	Aborts     map[string]uint64  `json:"aborts"`   // by rule
	Failures   map[string]uint64  `json:"failures"` // by SQLSTATE
	Operations map[string]uint64  `json:"operations"`
	Stages     map[string]float64 `json:"stages,omitempty"` // microseconds a transaction
	Micro      *Micro             `json:"micro,omitempty"`
	CPU        float64            `json:"cpu_us_per_op,omitempty"` // of this process, clients included
}

// Micro are the paper's micro metrics ("Blockchain Meets Database", section 5).
type Micro struct {
	BRR float64 `json:"brr"` // blocks received a second
	BPR float64 `json:"bpr"` // blocks processed a second
	BPT float64 `json:"bpt"` // time to process a block
	BET float64 `json:"bet"` // time to execute a block's transactions
	BCT float64 `json:"bct"` // time to commit a block
	TET float64 `json:"tet"` // time to execute a transaction
	MT  float64 `json:"mt"`  // missing transactions a second (execute-order-in-parallel)
	SU  float64 `json:"su"`  // share of the time spent on blocks, per cent
	TPB float64 `json:"tpb"` // transactions a block
}

// tally counts outcomes.
type tally struct {
	done                   uint64
	aborts, failures, each map[string]uint64
}

func newTally() tally {
	return tally{aborts: map[string]uint64{}, failures: map[string]uint64{}, each: map[string]uint64{}}
}

func (t *tally) add(name string, o *Outcome) {
	switch {
	case o.Abort != "":
		t.aborts[o.Abort]++
	case o.Failed != "":
		t.failures[o.Failed]++
	default:
		t.done++
		t.each[name]++
	}
}

func (t *tally) merge(o *tally) {
	t.done += o.done
	for _, m := range [...][2]map[string]uint64{{t.aborts, o.aborts}, {t.failures, o.failures}, {t.each, o.each}} {
		for k, n := range m[1] {
			m[0][k] += n
		}
	}
}

func (r *runner) report(took time.Duration) *Report {
	all, sum := NewLatency(), newTally()
	for i := range r.clients {
		all.Merge(r.clients[i].latency)
		sum.merge(&r.clients[i].tally)
	}
	seconds := took.Seconds()
	return &Report{
		Clients: len(r.clients), Seconds: seconds, TPS: float64(sum.done) / seconds, Done: sum.done,
		LatencyMS: all.Percentiles(), Aborts: sum.aborts, Failures: sum.failures, Operations: sum.each,
	}
}

// Text writes the report for eyes.
func (r *Report) Text(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) { fmt.Fprintf(t, "%s\t%s\n", name, fmt.Sprintf(format, args...)) }
	row("workload", "%s", r.Workload)
	if r.Setting != "" {
		row("setting", "%s", r.Setting)
	}
	row("clients", "%d for %.1f s", r.Clients, r.Seconds)
	row("throughput", "%.0f a second", r.TPS)
	l := &r.LatencyMS
	row("latency", "mean %.2f ms, p50 %.2f, p95 %.2f, p99 %.2f, p99.9 %.2f, max %.2f", l.Mean, l.P50, l.P95, l.P99, l.P999, l.Max)
	row("aborts", "%s", counts(r.Aborts))
	row("failures", "%s", counts(r.Failures))
	if len(r.Operations) > 1 {
		row("operations", "%s", counts(r.Operations))
	}
	if m := r.Micro; m != nil {
		row("blocks", "%.1f a second of %.1f transactions", m.BPR, m.TPB)
		row("micro metrics", "brr %.1f/s, bpr %.1f/s, bpt %.2f ms, bet %.2f ms, bct %.2f ms, tet %.3f ms, mt %.1f/s, su %.1f %%",
			m.BRR, m.BPR, m.BPT, m.BET, m.BCT, m.TET, m.MT, m.SU)
	}
	if len(r.Stages) > 0 {
		var parts []string
		for _, k := range slices.Sorted(maps.Keys(r.Stages)) {
			parts = append(parts, fmt.Sprintf("%s %.1f", k, r.Stages[k]))
		}
		row("stages", "%s (us a transaction)", strings.Join(parts, ", "))
	}
	if r.CPU > 0 {
		row("processor", "%.0f us an operation, clients included", r.CPU)
	}
	return t.Flush()
}

// counts lists what was counted, the most frequent first.
func counts(m map[string]uint64) string {
	if len(m) == 0 {
		return "none"
	}
	keys := slices.SortedFunc(maps.Keys(m), func(a, b string) int {
		if m[a] != m[b] {
			if m[a] > m[b] {
				return -1
			}
			return 1
		}
		return strings.Compare(a, b)
	})
	for i, k := range keys {
		keys[i] = fmt.Sprintf("%s %d", k, m[k])
	}
	return strings.Join(keys, ", ")
}

// CSV writes reports as a table with a heading.
func CSV(w io.Writer, reports []*Report) error {
	c := csv.NewWriter(w)
	if err := c.Write([]string{"workload", "setting", "clients", "seconds", "tps", "mean_ms", "p50_ms", "p95_ms", "p99_ms", "max_ms", "aborts", "failures", "cpu_us_per_op"}); err != nil {
		return err
	}
	f := func(v float64) string { return strconv.FormatFloat(v, 'f', 3, 64) }
	for _, r := range reports {
		l := &r.LatencyMS
		err := c.Write([]string{
			r.Workload, r.Setting, strconv.Itoa(r.Clients), f(r.Seconds), f(r.TPS), f(l.Mean), f(l.P50), f(l.P95), f(l.P99), f(l.Max),
			strconv.FormatUint(total(r.Aborts), 10), strconv.FormatUint(total(r.Failures), 10), f(r.CPU),
		})
		if err != nil {
			return err
		}
	}
	c.Flush()
	return c.Error()
}

func total(m map[string]uint64) uint64 {
	var n uint64
	for _, v := range m {
		n += v
	}
	return n
}
