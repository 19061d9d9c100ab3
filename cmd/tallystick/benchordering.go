package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/tallystick/tallystick/bench"
	"github.com/tallystick/tallystick/blockstore/block"
)

func newBenchOrdering() *cobra.Command {
	var o bench.OrderingOptions
	var batches []int
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "ordering",
		Short: "Measure orderers alone, without databases",
		Long: `Measure orderers alone, without databases: all of them run in this process and
talk over loopback. Clients hand in bursts of transactions at the primary and
wait until all of a burst are ordered.`,
		Example: `  tallystick bench ordering --batch 1,10,100,500 --signatures
  tallystick bench ordering --orderers 7 --failed 2 --disk`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runBenchOrdering(cmd.Context(), o, batches, asJSON, cmd.OutOrStdout())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.Protocol, "protocol", block.OrdererPBFT, "what the orderers speak")
	flags.IntVar(&o.Orderers, "orderers", 4, "number of orderers")
	flags.IntVar(&o.Failed, "failed", 0, "how many of them never start")
	flags.IntSliceVar(&batches, "batch", []int{500}, "transactions of a block; several `numbers` are measured one after the other")
	flags.IntVar(&o.TxBytes, "tx-bytes", 196, "size of a transaction")
	flags.IntVar(&o.Clients, "clients", 64, "number of clients")
	flags.IntVar(&o.Burst, "burst", 250, "transactions that each client has under way")
	flags.Uint64Var(&o.Window, "window", 64, "blocks in flight at most")
	flags.IntVar(&o.Workers, "batch-workers", 0, "goroutines of an orderer that verify messages (default: one a processor)")
	flags.BoolVar(&o.Disk, "disk", false, "keep blocks and votes on disk, synced, instead of in memory")
	flags.BoolVar(&o.Signatures, "signatures", false, "every orderer verifies the signatures of clients")
	flags.StringVar(&o.Scheme, "scheme", bench.SchemeEd25519, "signatures between orderers: `ed25519|none`")
	flags.IntVar(&o.Transactions, "transactions", 0, "`number` of transactions after which it ends (default: when the time is over)")
	flags.DurationVar(&o.Warmup, "warmup", time.Second, "how long to run before measuring")
	flags.DurationVar(&o.Duration, "duration", 5*time.Second, "how long to measure")
	flags.BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func runBenchOrdering(ctx context.Context, o bench.OrderingOptions, batches []int, asJSON bool, stdout io.Writer) error {
	var reports []*bench.OrderingReport
	for _, n := range batches {
		o.Batch = n
		r, err := bench.Ordering(ctx, o)
		if err != nil {
			return err
		}
		reports = append(reports, r)
	}
	if asJSON {
		enc := json.NewEncoder(stdout)
		enc.SetIndent("", "  ")
		return enc.Encode(reports)
	}
	t := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "batch\ttransactions/s\tblocks/s\tp50 ms\tp99 ms\tcpu us/tx\t\n")
	for _, r := range reports {
		fmt.Fprintf(t, "%d\t%.0f\t%.0f\t%.2f\t%.2f\t%.1f\t\n", r.Options.Batch, r.TPS, r.Blocks, r.LatencyMS.P50, r.LatencyMS.P99, r.CPU)
	}
	return t.Flush()
}
