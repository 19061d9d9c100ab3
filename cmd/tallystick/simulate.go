package main

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/tallystick/tallystick/server"
)

func newSimulate() *cobra.Command {
	var opts server.SimulateOptions
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "simulate",
		Short: "Run several nodes on random blocks in this process and compare them",
		Long: `Run the chain processors of several nodes in this process, on disks in memory, with
blocks of random transactions of random contracts. The nodes differ in the number of
workers, in which transactions they execute before their block and in which order they
hear of them, in how far they lag behind, and in when they crash. Flow, rule and what
becomes of conflicts are chosen by the seed, and so is everything else.

Prints the state hash of each node. The exit code is 0 only if all of them had the same
state and the same receipts after every block.`,
		Example: "  tallystick simulate --nodes 4 --blocks 10000 --seed 7",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p := newProgress(cmd.ErrOrStderr())
			opts.Progress = func(done, total uint64) { p.stage("blocks", done, total) }
			r, err := server.Simulate(cmd.Context(), opts)
			p.done()
			if err != nil {
				return err
			}
			return printSimulation(cmd.OutOrStdout(), &opts, r, asJSON)
		},
	}
	cmd.Flags().IntVar(&opts.Nodes, "nodes", 4, "number of nodes")
	cmd.Flags().IntVar(&opts.Blocks, "blocks", 1000, "number of blocks")
	cmd.Flags().Uint64Var(&opts.Seed, "seed", 1, "what everything follows from")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the report as JSON")
	return cmd
}

func printSimulation(w io.Writer, opts *server.SimulateOptions, r *server.SimulateReport, asJSON bool) error {
	if asJSON {
		states := make([]string, len(r.States))
		for i := range states {
			states[i] = r.States[i].String()
		}
		return json.NewEncoder(w).Encode(map[string]any{
			"seed": opts.Seed, "height": r.Height, "state_hashes": states, "flow": r.Flow, "rule": r.Rule, "conflicts": r.Conflicts,
			"transactions": r.Transactions, "committed": r.Committed, "aborted": r.Aborted, "failed": r.Failed, "rejected": r.Rejected,
			"crashes": r.Crashes, "checkpoint": r.Checkpoints,
		})
	}
	fmt.Fprintf(w, "seed %d: %s, %s, %s\n", opts.Seed, r.Flow, r.Rule, r.Conflicts)
	fmt.Fprintf(w, "%d transactions: %d committed, %d aborted, %d failed, %d rejected; %d crashes; last checkpoint at block %d\n",
		r.Transactions, r.Committed, r.Aborted, r.Failed, r.Rejected, r.Crashes, r.Checkpoints)
	for i, state := range r.States {
		fmt.Fprintf(w, "node %d  block %d  state %s\n", i+1, r.Height, state)
	}
	return nil
}
