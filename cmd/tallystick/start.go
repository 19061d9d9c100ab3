package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/tallystick/tallystick/server"
	"github.com/tallystick/tallystick/server/home"
)

func newStart() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "start --home DIR",
		Short: "Run a database node of a network",
		Long: `Run the database node whose home DIR is, as node.toml there says: it takes blocks
from the orderers (or from other nodes), executes them, and answers PostgreSQL
clients and wallets of its organization.

Standard output gets one line beginning with "ready" once the node serves; the
log goes to standard error. SIGTERM and SIGINT end it in order.`,
		Example: "  tallystick start --home net/bank/node1",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runStart(cmd.Context(), dir, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().StringVar(&dir, "home", "", "`directory` of the node (required)")
	cobra.CheckErr(cmd.MarkFlagRequired("home"))
	return cmd
}

func runStart(ctx context.Context, dir string, stdout, stderr io.Writer) error {
	conf, err := home.ReadNode(dir)
	if err != nil {
		return err
	}
	log := newLog(stderr, conf.LogLevel)
	n, err := server.OpenNode(dir, log)
	if err != nil {
		return err
	}
	log.Info("the node serves", "node", n.Member(), "sql", n.Addr(), "height", n.Height())
	fmt.Fprintf(stdout, "ready %s: PostgreSQL clients at %s\n", n.Member(), n.Addr())
	err = n.Serve(ctx)
	if err != nil {
		log.Error("the node cannot go on", "height", n.Height(), "error", err)
	}
	return finish(log, err, n.Close())
}

// finish logs how a process ended.
func finish(log *slog.Logger, err, closeErr error) error {
	if closeErr != nil {
		log.Error("closing", "error", closeErr)
	}
	if err = errors.Join(err, closeErr); err == nil {
		log.Info("stopped")
	}
	return err
}

func newLog(w io.Writer, level string) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: home.Level(level)}))
}

func newOrderer() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "orderer --home DIR",
		Short: "Run an orderer of a network",
		Long: `Run the orderer whose home DIR is, as orderer.toml there says: it agrees with the
other orderers on the order of transactions, and gives nodes the blocks.

Standard output gets one line beginning with "ready" once the orderer serves; the
log goes to standard error. SIGTERM and SIGINT end it in order.`,
		Example: "  tallystick orderer --home net/bank/orderer1",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runOrderer(cmd.Context(), dir, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().StringVar(&dir, "home", "", "`directory` of the orderer (required)")
	cobra.CheckErr(cmd.MarkFlagRequired("home"))
	return cmd
}

func runOrderer(ctx context.Context, dir string, stdout, stderr io.Writer) error {
	conf, err := home.ReadOrderer(dir)
	if err != nil {
		return err
	}
	log := newLog(stderr, conf.LogLevel)
	o, err := server.OpenOrderer(dir, log)
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "ready %s: nodes at %s\n", o.User(), o.Addr())
	err = o.Serve(ctx)
	if err != nil {
		log.Error("the orderer cannot go on", "error", err)
	}
	return finish(log, err, o.Close())
}
