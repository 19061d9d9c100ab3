package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/identity"
	"github.com/tallystick/tallystick/server"
	"github.com/tallystick/tallystick/server/home"
)

// networkFlags choose the parameters of a network.
type networkFlags struct {
	name                string
	choices             server.Choices
	blockTxs            uint64
	blockTimeout        time.Duration
	checkpointEvery     uint64
	validity, snapshots uint64
}

func (f *networkFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	d := block.DefaultParams()
	flags.StringVar(&f.name, "network", "tallystick", "`name` of the network, for people")
	for _, c := range f.list() {
		flags.StringVar(c.value, c.flag, "", c.usage())
	}
	flags.Uint64Var(&f.blockTxs, "block-txs", d.BlockTxs, "transactions after which a block is cut")
	flags.DurationVar(&f.blockTimeout, "block-timeout", time.Duration(d.BlockTimeoutMicros)*time.Microsecond, "time after which a block is cut")
	flags.Uint64Var(&f.checkpointEvery, "checkpoint-every", d.CheckpointEvery, "`blocks` between two signed state hashes of a node")
	flags.Uint64Var(&f.validity, "validity-window", d.ValidityWindow, "`blocks` for which a signed transaction may be ordered")
	flags.Uint64Var(&f.snapshots, "snapshot-window", d.SnapshotWindow, "`blocks` that a transaction's snapshot may be old")
}

// list has the textual choices; the orderer's is called consensus here, for
// orderers are processes of their own.
func (f *networkFlags) list() []devChoice {
	list := devChoices(&f.choices)
	for i := range list {
		if list[i].flag == "orderer" {
			list[i].flag = "consensus"
			list[i].built = []string{block.OrdererRaft, block.OrdererSolo, block.OrdererPBFT}
		}
	}
	return list
}

// params are the parameters that were chosen.
func (f *networkFlags) params() (block.Params, error) {
	p := block.DefaultParams()
	for _, c := range f.list() {
		if err := c.check(); err != nil {
			return p, err
		}
	}
	if f.blockTimeout < 0 {
		return p, errors.New("--block-timeout must not be negative")
	}
	c := f.choices
	if c.Orderer == "" {
		c.Orderer = block.OrdererRaft
	}
	p = c.Params()
	p.BlockTxs, p.BlockTimeoutMicros = f.blockTxs, uint64(f.blockTimeout.Microseconds())
	p.CheckpointEvery, p.ValidityWindow, p.SnapshotWindow = f.checkpointEvery, f.validity, f.snapshots
	return p, p.Validate()
}

// orgFlags say what an organization begins with.
type orgFlags struct {
	dir            string
	orgs           []string
	org            string
	nodes          int
	users          []string
	orderers       int
	host           string
	hosts          []string
	port           int
	passphraseFile string
}

func newInit() *cobra.Command {
	var f orgFlags
	var n networkFlags
	cmd := &cobra.Command{
		Use:   "init --dir DIR --orgs NAME,NAME,...",
		Short: "Make the keys, certificates and configuration of a network",
		Long: `Make the keys, certificates and configuration of a network of organizations.

With --orgs all of them are made on this machine, in directories of their own, and
the network is ready to start: for a trial, or to hand each directory over to its
organization. Where keys must not leave their organization, each runs

    tallystick init --dir DIR --org NAME

with its own name, gives its NAME/public.toml to one that combines them (tallystick
genesis combine), and takes the genesis in (tallystick genesis join).

Private keys are readable by their owner only (0600). With --passphrase-file those
of authorities, admins and users are encrypted.`,
		Example: "  tallystick init --dir net --orgs bank,supplier,auditor --users alice,bob\n  tallystick net up --dir net",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runInit(&f, &n, cmd.Flags().Changed("orderers"), cmd.OutOrStdout())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.dir, "dir", "", "directory of the network (required)")
	flags.StringSliceVar(&f.orgs, "orgs", nil, "`names` of the organizations")
	flags.StringVar(&f.org, "org", "", "`name` of the one organization to make; the network is combined later")
	flags.IntVar(&f.nodes, "nodes-per-org", 1, "database nodes of each organization")
	flags.StringSliceVar(&f.users, "users", nil, "`names` of client users that each organization gets beside its admin")
	flags.IntVar(&f.orderers, "orderers", 0, "orderers, dealt out to the organizations in turn; with --org those of this one (default: solo 1, raft 3, pbft 4)")
	flags.StringVar(&f.host, "host", "127.0.0.1", "`address` or name under which others reach the processes")
	flags.StringSliceVar(&f.hosts, "hosts", nil, "further `names` for the certificates of nodes")
	flags.IntVar(&f.port, "port", 26400, "first port; the processes take one after the other")
	flags.StringVar(&f.passphraseFile, "passphrase-file", "", "`file` with the passphrase that encrypts keys of authorities and users")
	n.add(cmd)
	cobra.CheckErr(cmd.MarkFlagRequired("dir"))
	cmd.MarkFlagsMutuallyExclusive("orgs", "org")
	cmd.MarkFlagsOneRequired("orgs", "org")
	return cmd
}

func runInit(f *orgFlags, n *networkFlags, orderersGiven bool, stdout io.Writer) error {
	params, err := n.params()
	if err != nil {
		return err
	}
	passphrase, err := readPassphrase(f.passphraseFile)
	if err != nil {
		return err
	}
	names := f.orgs
	if f.org != "" {
		names = []string{f.org}
	}
	orderers := f.orderers
	if !orderersGiven {
		orderers = home.DefaultOrderers(params.Orderer)
		if f.org != "" {
			orderers = 1
		}
	}
	if orderers < 0 {
		return errors.New("--orderers must not be negative")
	}
	at := time.Now()
	var made []*home.Org
	port := f.port
	for i, name := range names {
		plan := home.OrgPlan{Org: name, Nodes: f.nodes, Orderers: (orderers + len(names) - 1 - i) / len(names), Users: f.users,
			Host: f.host, Hosts: f.hosts, Port: port, Passphrase: passphrase, Now: at}
		org, err := home.MakeOrg(f.dir, plan)
		if err != nil {
			return err
		}
		port += plan.Ports()
		made = append(made, org)
	}
	if f.org != "" {
		public := filepath.Join(f.dir, f.org, home.PublicFile)
		fmt.Fprintf(stdout, "made organization %s in %s\n\nGive %s to whoever combines the network. It has no secrets.\n", f.org, filepath.Join(f.dir, f.org), public)
		return nil
	}
	g, network, err := home.Combine(n.name, made, params, at)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := home.Join(filepath.Join(f.dir, name), g, network); err != nil {
			return err
		}
	}
	describeNetwork(stdout, g)
	fmt.Fprintf(stdout, "\nStart all of it with\n\n    tallystick net up --dir %s\n", f.dir)
	return nil
}

// readPassphrase reads the first line of a file; nothing without a file.
func readPassphrase(file string) ([]byte, error) {
	if file == "" {
		return nil, nil
	}
	return home.ReadPassphrase(file)
}

// describeNetwork shows people what a genesis defines.
func describeNetwork(w io.Writer, g *block.Genesis) {
	p := &g.Params
	fmt.Fprintf(w, "network    %s\nid         %s\nflow       %s, rule %s, conflicts %s\nconsensus  %s: %d orderers, %d of them certify a block\n",
		g.Network, g.NetworkID(), p.Flow, p.Rule, p.Conflicts, p.Orderer, len(g.Orderers.Keys), g.Orderers.Quorum)
	for _, o := range g.Orgs {
		byRole := map[identity.Role][]string{}
		for _, u := range o.Users {
			byRole[u.Role] = append(byRole[u.Role], u.Name)
		}
		var parts []string
		for _, r := range []identity.Role{identity.Node, identity.Orderer, identity.Admin, identity.Client} {
			if len(byRole[r]) > 0 {
				parts = append(parts, strings.Join(byRole[r], ", "))
			}
		}
		fmt.Fprintf(w, "%-10s %s\n", o.Name, strings.Join(parts, "; "))
	}
}
