package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/server"
	"github.com/tallystick/tallystick/sql"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// devFlags are the options of tallystick dev.
type devFlags struct {
	data, listen, http string
	choices            server.Choices
	workers            int
}

func newDev() *cobra.Command {
	var f devFlags
	cmd := &cobra.Command{
		Use:   "dev --data DIR",
		Short: "Run a development network: one organization, one node, an embedded orderer",
		Long: `Run a development network: one organization (dev), one node, an embedded orderer.

The first start makes the keys of the admin (admin), of two clients (alice and
bob) and of the orderer, and the genesis; later starts go on where the network
ended, however it ended. The node signs for whoever connects, as the user they
name, and therefore listens on a loopback address only.

Standard output gets one line beginning with "ready" once the node serves; the
log goes to standard error. SIGTERM and SIGINT end it in order.`,
		Example: "  tallystick dev --data ./dev-data\n  psql postgres://admin@127.0.0.1:6432/tallystick",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runDev(cmd.Context(), f, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.data, "data", "", "data directory, made at the first start (required)")
	flags.StringVar(&f.listen, "listen", "127.0.0.1:6432", "loopback `address` for PostgreSQL clients")
	flags.StringVar(&f.http, "http", "", "loopback `address` for a browser (not available yet)")
	for _, c := range devChoices(&f.choices) {
		flags.StringVar(c.value, c.flag, "", c.usage())
	}
	flags.IntVar(&f.workers, "workers", 0, "goroutines that verify and execute transactions (default: one a processor)")
	cobra.CheckErr(cmd.MarkFlagRequired("data"))
	return cmd
}

// devChoice is an option whose values name variants of the network. Not all
// variants exist yet.
type devChoice struct {
	flag, about string
	value       *string
	built       []string // the first one is the default of a new network
	planned     []string
}

func devChoices(c *server.Choices) []devChoice {
	return []devChoice{
		{"flow", "how transactions reach a block", &c.Flow,
			[]string{block.FlowOrderThenExecute, block.FlowExecuteOrderInParallel}, nil},
		{"orderer", "protocol of the ordering service", &c.Orderer,
			[]string{block.OrdererSolo, block.OrdererRaft, block.OrdererPBFT}, []string{block.OrdererZyzzyva}},
		{"rule", "which conflicts in a block abort whom", &c.Rule,
			[]string{block.RuleAbortDuringCommit, block.RuleBlockAware, block.RuleExact}, nil},
		{"conflicts", "what becomes of those who lose", &c.Conflicts,
			[]string{block.ConflictsAbort, block.ConflictsReexecute}, nil},
	}
}

// usage names what works.
func (c *devChoice) usage() string {
	return fmt.Sprintf("%s: `%s`", c.about, strings.Join(c.built, "|"))
}

// check refuses what is no value and, as PostgreSQL does, what is not built.
func (c *devChoice) check() error {
	switch v := *c.value; {
	case v == "" || slices.Contains(c.built, v):
		return nil
	case slices.Contains(c.planned, v):
		return notBuilt("--%s %s", c.flag, v).WithHint("Available: %s.", strings.Join(c.built, ", "))
	default:
		return fmt.Errorf("--%s %s is unknown; the values are %s", c.flag, v, strings.Join(slices.Concat(c.built, c.planned), ", "))
	}
}

func notBuilt(format string, args ...any) *pgerr.Error {
	e := pgerr.New(pgerr.FeatureNotSupported, format+" is not available yet", args...)
	return e
}

func (f *devFlags) check() error {
	if f.http != "" {
		return notBuilt("--http")
	}
	if f.workers < 0 {
		return errors.New("--workers must not be negative")
	}
	for _, c := range devChoices(&f.choices) {
		if err := c.check(); err != nil {
			return err
		}
	}
	return nil
}

func runDev(ctx context.Context, f devFlags, stdout, stderr io.Writer) error {
	if err := f.check(); err != nil {
		return err
	}
	listen, err := loopbackAddr(ctx, f.listen)
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(stderr, nil))
	n, err := server.OpenDev(server.DevOptions{
		Dir: f.data, Listen: listen, Choices: f.choices, Workers: f.workers, Logger: log,
	})
	if err != nil {
		return err
	}
	url := fmt.Sprintf("postgres://%s@%s/%s", server.DevAdmin, n.Addr(), sql.Database)
	fmt.Fprint(stderr, whatToType(url, n.Users()))
	fmt.Fprintf(stdout, "ready %s\n", url)
	err = n.Serve(ctx)
	if err != nil {
		log.Error("the node cannot go on", "height", n.Height(), "error", err)
	}
	if closeErr := n.Close(); closeErr != nil {
		log.Error("closing the node", "error", closeErr)
		err = errors.Join(err, closeErr)
	}
	if err == nil {
		log.Info("stopped", "height", n.Height())
	}
	return err
}

// whatToType is a first session for somebody who has never seen the program.
func whatToType(url string, users []string) string {
	return fmt.Sprintf(`
Connect as one of %s with

    psql %s

and type, for example:

    CREATE TABLE accounts(id text PRIMARY KEY, balance numeric NOT NULL CHECK (balance >= 0));
    CREATE FUNCTION open_account(id text, balance numeric) RETURNS void LANGUAGE plpgsql AS $$
    BEGIN
      INSERT INTO accounts VALUES (id, balance);
    END $$;
    SELECT open_account('a', 100);
    SELECT * FROM accounts;
    SELECT * FROM provenance.accounts;
    SELECT block, username, call, status FROM pgledger;

`, strings.Join(users, ", "), url)
}
