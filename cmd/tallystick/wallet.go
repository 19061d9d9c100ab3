package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/tallystick/tallystick/server"
	"github.com/tallystick/tallystick/server/home"
	"github.com/tallystick/tallystick/sql"
)

func newWallet() *cobra.Command {
	var opts server.WalletOptions
	cmd := &cobra.Command{
		Use:   "wallet --home DIR",
		Short: "Run a signing endpoint for PostgreSQL clients of a user",
		Long: `Run a signing endpoint for the PostgreSQL clients of a user: psql, pgbench, drivers.
They connect to it as they would to a node. Calls of contracts are signed here with
the user's key, which never leaves this machine; everything else is passed on to the
node over TLS. What is signed is what the client has written: the wallet evaluates
the arguments itself and refuses what the node makes of them otherwise.

It listens on a loopback address only, for whoever can connect signs as the user.`,
		Example: "  tallystick wallet --home net/bank/users/alice --listen 127.0.0.1:6432\n  psql postgres://alice@127.0.0.1:6432/tallystick",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runWallet(cmd.Context(), opts, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&opts.Home, "home", "", "`directory` of the user (required)")
	flags.StringVar(&opts.Listen, "listen", "", "loopback `address` for PostgreSQL clients (default: that of wallet.toml)")
	flags.StringVar(&opts.Node, "node", "", "`address` of the node for PostgreSQL clients (default: that of wallet.toml)")
	flags.BoolVar(&opts.TrustNode, "trust-node", false, "sign arguments as the node has understood them, unchecked")
	cobra.CheckErr(cmd.MarkFlagRequired("home"))
	return cmd
}

func runWallet(ctx context.Context, opts server.WalletOptions, stdout, stderr io.Writer) error {
	conf, err := home.ReadWallet(opts.Home)
	if err != nil {
		return err
	}
	if opts.Listen == "" {
		opts.Listen = conf.Listen
	}
	if opts.Listen, err = loopbackAddr(ctx, opts.Listen); err != nil {
		return err
	}
	opts.Logger = newLog(stderr, conf.LogLevel)
	opts.Passphrase = terminalPassphrase(stderr)
	w, err := server.OpenWallet(opts)
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "ready %s: postgres://%s@%s/%s\n", w.User(), w.User().Name, w.Addr(), sql.Database)
	return finish(opts.Logger, w.Serve(ctx), w.Close())
}

// terminalPassphrase asks on a terminal.
func terminalPassphrase(stderr io.Writer) func() ([]byte, error) {
	return func() ([]byte, error) {
		fd := int(os.Stdin.Fd())
		if !term.IsTerminal(fd) {
			return nil, fmt.Errorf("the key is encrypted, and there is no terminal to ask for the passphrase: set passphrase_file in %s", home.WalletFile)
		}
		fmt.Fprint(stderr, "passphrase: ")
		secret, err := term.ReadPassword(fd)
		fmt.Fprintln(stderr)
		return secret, err
	}
}
