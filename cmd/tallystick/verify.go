package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/tallystick/tallystick/server"
)

func newVerify() *cobra.Command {
	var replay, asJSON bool
	var workers int
	cmd := &cobra.Command{
		Use:   "verify DIR",
		Short: "Check a data directory or a block store that no node is using",
		Long: `Check a data directory, or a block store alone, that no node is using: every
checksum, every block's and transaction's form, the links from the genesis on and
the orderers' certificates. With --replay also execute all blocks anew, print the
state hash that they lead to, and compare state hashes and rows with those in the
data directory. Whether a user's signature counts is part of what a replay
decides, by the key that the user had at that height.

The first thing that does not hold is named by block, file, offset and reason.
The exit code is 0 only if all holds.`,
		Example: "  tallystick verify ./dev-data --replay",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p := newProgress(cmd.ErrOrStderr())
			report, err := server.Verify(cmd.Context(), args[0], server.VerifyOptions{
				Replay: replay, Workers: workers, Progress: p.stage,
				Logger: slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: slog.LevelWarn})),
			})
			p.done()
			var bad *server.Finding
			if err != nil && !errors.As(err, &bad) {
				return err
			}
			if asJSON {
				if err := printJSON(cmd.OutOrStdout(), &report, bad); err != nil {
					return err
				}
			} else {
				printReport(cmd.OutOrStdout(), &report, bad)
			}
			if bad != nil {
				return fmt.Errorf("%s does not hold: %w", args[0], bad)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&replay, "replay", false, "execute all blocks and compare the state")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the report as JSON")
	cmd.Flags().IntVar(&workers, "workers", 0, "goroutines that verify and execute transactions (default: one a processor)")
	return cmd
}

// stage shows how far a check has come.
func (p *progress) stage(stage string, done, total uint64) {
	if total == 0 {
		p.show("%s: %d", stage, done)
		return
	}
	p.show("%s: %d %%", stage, min(done, total)*100/total)
}

func printReport(w io.Writer, r *server.VerifyReport, bad *server.Finding) {
	line := func(name, format string, args ...any) {
		fmt.Fprintf(w, "%-13s %s\n", name, fmt.Sprintf(format, args...))
	}
	if r.Blocks > 0 {
		line("network", "%s", r.Network)
		line("blocks", "%d, up to %d (%d bytes in %d segments)", r.Blocks, r.Tip, r.Bytes, r.Segments)
		line("last block", "%s", r.TipHash)
		line("transactions", "%d", r.Txs)
		if r.Unknown > 0 {
			line("signatures", "%d by keys of the genesis, %d by others, which a replay judges", r.Signed, r.Unknown)
		} else {
			line("signatures", "%d by keys of the genesis", r.Signed)
		}
	}
	if r.Replayed {
		line("outcomes", "%d committed, %d aborted, %d failed, %d rejected", r.Committed, r.Aborted, r.Failed, r.Rejected)
		line("state hash", "%s", r.StateHash)
	}
	if r.StateCompared {
		line("state", "equal to that of the replay at height %d", r.StateHeight)
	}
	if bad != nil {
		line("first bad", "%s", bad)
		return
	}
	fmt.Fprintln(w, "all holds")
}

// jsonReport is what --json prints; its names are for scripts and stay.
type jsonReport struct {
	OK           bool   `json:"ok"`
	Network      string `json:"network"`
	Segments     int    `json:"segments"`
	Bytes        int64  `json:"bytes"`
	Blocks       uint64 `json:"blocks"`
	Transactions uint64 `json:"transactions"`
	Tip          uint64 `json:"tip"`
	TipHash      string `json:"tip_hash"`
	Signatures   struct {
		Genesis uint64 `json:"genesis"`
		Other   uint64 `json:"other"`
	} `json:"signatures"`
	Replay *jsonReplay `json:"replay,omitempty"`
	Bad    *jsonBad    `json:"bad,omitempty"`
}

type jsonReplay struct {
	StateHash string  `json:"state_hash"`
	Committed uint64  `json:"committed"`
	Aborted   uint64  `json:"aborted"`
	Failed    uint64  `json:"failed"`
	Rejected  uint64  `json:"rejected"`
	Compared  *uint64 `json:"compared_height,omitempty"` // of the state directory
}

type jsonBad struct {
	Height uint64 `json:"height"`
	File   string `json:"file"`
	Offset int64  `json:"offset"` // -1: the file as a whole
	Reason string `json:"reason"`
}

func printJSON(w io.Writer, r *server.VerifyReport, bad *server.Finding) error {
	j := jsonReport{
		OK: bad == nil, Network: r.Network.String(), Segments: r.Segments, Bytes: r.Bytes,
		Blocks: r.Blocks, Transactions: r.Txs, Tip: r.Tip, TipHash: r.TipHash.String(),
	}
	j.Signatures.Genesis, j.Signatures.Other = r.Signed, r.Unknown
	if r.Replayed {
		j.Replay = &jsonReplay{
			StateHash: r.StateHash.String(), Committed: r.Committed, Aborted: r.Aborted, Failed: r.Failed, Rejected: r.Rejected,
		}
		if r.StateCompared {
			j.Replay.Compared = &r.StateHeight
		}
	}
	if bad != nil {
		j.Bad = &jsonBad{Height: bad.Height, File: bad.File, Offset: bad.Offset, Reason: bad.Reason}
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(j)
}
