package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/tallystick/tallystick/sql/pgerr"
)

func main() {
	// The first signal asks for an orderly end, the second one gets the usual
	// treatment.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run executes a command line and returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	if err := root.ExecuteContext(ctx); err != nil {
		report(stderr, err)
		return 1
	}
	return 0
}

// report prints an error the way psql shows those of a server.
func report(w io.Writer, err error) {
	fmt.Fprintf(w, "tallystick: %v\n", err)
	e, ok := pgerr.From(err)
	if !ok {
		return
	}
	if e.Detail != "" {
		fmt.Fprintf(w, "DETAIL:  %s\n", e.Detail)
	}
	if e.Hint != "" {
		fmt.Fprintf(w, "HINT:  %s\n", e.Hint)
	}
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "tallystick",
		Short: "A database that organizations share without trusting one another",
		Long: `Tallystick is a database that organizations share without trusting one another:
PostgreSQL on the outside, a blockchain on the inside. Every organization runs
nodes with all the data; rows are changed by contracts (functions that every
organization approved) which users call in signed transactions, and the nodes
execute the same transactions in the same order.

Try it with a network of one organization on this machine:

    tallystick dev --data ./dev-data

and, in another terminal, any PostgreSQL client:

    psql postgres://admin@127.0.0.1:6432/tallystick`,
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		// Without a command there is nothing to do but to explain.
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(newDev(), newLint(), newSimulate(), newTest(), newVerify(), newBench(), newVersion())
	addNetworkCommands(root)
	return root
}
