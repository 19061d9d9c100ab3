package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tallystick/tallystick/bench"
	"github.com/tallystick/tallystick/server"
	"github.com/tallystick/tallystick/sql"
)

// benchFlags are the options of tallystick bench.
type benchFlags struct {
	workload, data, url, admin string
	csv, svg                   string
	clients                    []int
	options                    bench.Options
	choices                    server.Choices
	blockTimeout               time.Duration
	workers                    int
	wire, json, setup          bool
}

func newBench() *cobra.Command {
	var f benchFlags
	cmd := &cobra.Command{
		Use:   "bench --workload NAME",
		Short: "Measure throughput and latency of a workload",
		Long: `Measure throughput and latency of a workload.

A node is started in this process on a new directory, the workload's contracts
are deployed and its tables filled; then clients call the contracts and wait for
the answers (a closed loop), or calls arrive at a rate whoever waits (--rate, an
open loop: latency counts from when a call was due). Transactions are signed by
the clients, which share this machine's processors with the node; --presign has
them signed before the clock starts.

With --wire clients connect over PostgreSQL's protocol to the node's signing
endpoint. With --url they connect to a server that runs already, which may be
PostgreSQL itself; --setup deploys and fills the workload there first.

Workloads:
` + workloadList(),
		Example: `  tallystick bench --workload simple --clients 256 --duration 10s
  tallystick bench --workload transfer --flow execute-order-in-parallel --rate 5000 --json
  tallystick bench --workload complex-join --wire --clients 8
  tallystick bench --workload transfer --url postgres://postgres@localhost/postgres --setup`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runBench(cmd.Context(), &f, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	cmd.AddCommand(newBenchOrdering())
	flags.StringVar(&f.workload, "workload", "", "what to measure (required)")
	flags.IntSliceVar(&f.clients, "clients", []int{64}, "number of clients; several `numbers` are measured one after the other")
	flags.DurationVar(&f.options.Duration, "duration", 10*time.Second, "how long to measure")
	flags.DurationVar(&f.options.Warmup, "warmup", 2*time.Second, "how long to run before that")
	flags.Uint64Var(&f.options.Seed, "seed", 1, "seed of the clients' choices")
	flags.IntVar(&f.options.Scale, "scale", 0, "rows to fill the largest table with (default: the workload's own)")
	flags.Float64Var(&f.options.Rate, "rate", 0, "operations a second of all clients together (default: a closed loop)")
	flags.IntVar(&f.options.Presigned, "presign", 0, "`number` of transactions to sign before the clock starts, and to stop after")
	flags.IntVar(&f.options.Operations, "operations", 0, "`number` of operations of each client after which it ends (default: when the time is over)")
	flags.BoolVar(&f.options.Retry, "retry", false, "try aborted transactions again")
	flags.StringVar(&f.data, "data", "", "data directory of the node (default: a temporary one, removed afterwards)")
	flags.BoolVar(&f.wire, "wire", false, "connect over PostgreSQL's protocol")
	flags.StringVar(&f.url, "url", "", "measure this server instead of starting a node")
	flags.StringVar(&f.admin, "admin-url", "", "with --setup: how the admin connects (default: as --url says)")
	flags.BoolVar(&f.setup, "setup", false, "with --url: deploy and fill the workload first")
	flags.BoolVar(&f.json, "json", false, "print JSON")
	flags.StringVar(&f.csv, "csv", "", "write what was measured to this `file` as CSV too")
	flags.StringVar(&f.svg, "svg", "", "draw throughput and latency over the number of clients into this `file`")
	for _, c := range devChoices(&f.choices) {
		flags.StringVar(c.value, c.flag, "", c.usage())
	}
	flags.Uint64Var(&f.choices.BlockTxs, "block-size", 0, "transactions a block at most (default 500)")
	flags.DurationVar(&f.blockTimeout, "block-timeout", 0, "how long a transaction waits for others at most (default 100ms)")
	flags.IntVar(&f.workers, "workers", 0, "goroutines that verify and execute transactions (default: one a processor)")
	cobra.CheckErr(cmd.MarkFlagRequired("workload"))
	return cmd
}

func workloadList() string {
	var b strings.Builder
	for _, w := range bench.Workloads() {
		fmt.Fprintf(&b, "  %-14s %s\n", w.Name, w.About)
	}
	return strings.TrimRight(b.String(), "\n")
}

func (f *benchFlags) check() (*bench.Workload, error) {
	w, err := bench.Find(f.workload)
	if err != nil {
		return nil, err
	}
	if w.Queries {
		f.wire = true
	}
	switch {
	case f.setup && f.url == "":
		return nil, errors.New("--setup is for --url: a node of its own is always set up")
	case f.url != "" && f.data != "":
		return nil, errors.New("--data is for a node of its own, not for --url")
	case f.options.Presigned > 0 && (f.wire || f.url != ""):
		return nil, errors.New("--presign is for calls without a connection: leave --wire and --url out")
	}
	for _, c := range devChoices(&f.choices) {
		if err := c.check(); err != nil {
			return nil, err
		}
	}
	f.choices.BlockTimeoutMicros = uint64(f.blockTimeout.Microseconds())
	for _, n := range f.clients {
		f.options.Clients = n
		if err := f.options.Validate(); err != nil {
			return nil, err
		}
	}
	return w, nil
}

func runBench(ctx context.Context, f *benchFlags, stdout, stderr io.Writer) error {
	w, err := f.check()
	if err != nil {
		return err
	}
	reports, err := f.measure(ctx, w, stderr)
	if err != nil {
		return err
	}
	for _, r := range reports {
		r.Workload, r.Setting = w.Name, f.setting()
	}
	if err := f.files(w, reports); err != nil {
		return err
	}
	if f.json {
		enc := json.NewEncoder(stdout)
		enc.SetIndent("", "  ")
		if len(reports) == 1 {
			return enc.Encode(reports[0])
		}
		return enc.Encode(reports)
	}
	for i, r := range reports {
		if i > 0 {
			fmt.Fprintln(stdout)
		}
		if err := r.Text(stdout); err != nil {
			return err
		}
	}
	return nil
}

// files writes what was asked for beside the report.
func (f *benchFlags) files(w *bench.Workload, reports []*bench.Report) error {
	var err error
	if f.csv != "" {
		err = writeFile(f.csv, func(out io.Writer) error { return bench.CSV(out, reports) })
	}
	if f.svg != "" {
		err = errors.Join(err, writeFile(f.svg, func(out io.Writer) error {
			return bench.SVG(out, bench.PlotClients(w.Name, reports)...)
		}))
	}
	return err
}

// setting names what was chosen.
func (f *benchFlags) setting() string {
	var parts []string
	add := func(name, value string) {
		if value != "" {
			parts = append(parts, name+" "+value)
		}
	}
	add("flow", f.choices.Flow)
	add("rule", f.choices.Rule)
	add("conflicts", f.choices.Conflicts)
	add("orderer", f.choices.Orderer)
	if f.choices.BlockTxs > 0 {
		add("block size", fmt.Sprint(f.choices.BlockTxs))
	}
	if f.options.Presigned > 0 {
		parts = append(parts, "signed in advance")
	}
	if f.wire {
		parts = append(parts, "over a connection")
	}
	if f.url != "" {
		parts = append(parts, "another server")
	}
	if f.options.Rate > 0 {
		add("rate", fmt.Sprint(f.options.Rate))
	}
	return strings.Join(parts, ", ")
}

func (f *benchFlags) measure(ctx context.Context, w *bench.Workload, stderr io.Writer) ([]*bench.Report, error) {
	if f.url != "" {
		if f.setup {
			admin := f.url
			if f.admin != "" {
				admin = f.admin
			}
			if err := f.fill(ctx, w, admin, f.url, stderr); err != nil {
				return nil, err
			}
		}
		return f.each(func() (*bench.Report, error) { return f.overWire(ctx, w, f.url) })
	}
	dir, remove, err := f.directory()
	if err != nil {
		return nil, err
	}
	defer remove()
	n, err := server.OpenDev(server.DevOptions{
		Dir: dir, Listen: "127.0.0.1:0", Choices: f.choices, Workers: f.workers,
		Logger: slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: slog.LevelError})),
	})
	if err != nil {
		return nil, err
	}
	return f.withNode(ctx, w, n, stderr)
}

// directory is the one asked for or a temporary one.
func (f *benchFlags) directory() (string, func(), error) {
	if f.data != "" {
		return f.data, func() {}, nil
	}
	dir, err := os.MkdirTemp("", "tallystick-bench-")
	return dir, func() { os.RemoveAll(dir) }, err
}

const benchUser = "alice"

func (f *benchFlags) withNode(ctx context.Context, w *bench.Workload, n *server.Node, stderr io.Writer) (reports []*bench.Report, err error) {
	serveCtx, stop := context.WithCancel(ctx)
	served := make(chan error, 1)
	go func() { served <- n.Serve(serveCtx) }()
	defer func() {
		stop()
		err = errors.Join(err, <-served, n.Close())
	}()
	url := func(user string) string { return fmt.Sprintf("postgres://%s@%s/%s", user, n.Addr(), sql.Database) }
	if err := f.fill(ctx, w, url(server.DevAdmin), url(benchUser), stderr); err != nil {
		return nil, err
	}
	reports, err = f.each(func() (*bench.Report, error) {
		meter := bench.NewMeter(n)
		var r *bench.Report
		var err error
		if f.wire {
			r, err = f.overWire(ctx, w, url(benchUser))
		} else {
			r, err = bench.Run(ctx, w, &bench.Local{Node: n, User: benchUser}, f.options)
		}
		if err == nil {
			meter.Fill(r)
		}
		return r, err
	})
	if err != nil {
		return nil, err
	}
	return reports, bench.Check(ctx, w, url(benchUser))
}

// each measures with every number of clients, and with other choices each time:
// ids must not come twice.
func (f *benchFlags) each(run func() (*bench.Report, error)) ([]*bench.Report, error) {
	var reports []*bench.Report
	for _, n := range f.clients {
		f.options.Clients = n
		r, err := run()
		if err != nil {
			return nil, err
		}
		reports = append(reports, r)
		f.options.Seed++
	}
	return reports, nil
}

func (f *benchFlags) fill(ctx context.Context, w *bench.Workload, admin, user string, stderr io.Writer) error {
	p := newProgress(stderr)
	defer p.done()
	return bench.Setup(ctx, w, admin, user, f.options.Scale, func(percent int) { p.show("filling %s: %d %%", w.Name, percent) })
}

func (f *benchFlags) overWire(ctx context.Context, w *bench.Workload, url string) (*bench.Report, error) {
	t, err := bench.Dial(ctx, url, f.options.Clients)
	if err != nil {
		return nil, err
	}
	report, err := bench.Run(ctx, w, t, f.options)
	return report, errors.Join(err, t.Close())
}

// writeFile writes a file anew.
func writeFile(name string, write func(io.Writer) error) error {
	out, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(write(out), out.Close())
}
