package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/server/home"
)

func newGenesis() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "genesis",
		Short: "Combine what organizations have published into a network, and join it",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newGenesisCombine(), newGenesisJoin(), newGenesisShow())
	return cmd
}

func newGenesisCombine() *cobra.Command {
	var n networkFlags
	var out, at string
	cmd := &cobra.Command{
		Use:   "combine --out DIR PUBLIC.toml...",
		Short: "Make the genesis of a network from the public material of its organizations",
		Long: `Make the genesis of a network, and network.toml, from the public.toml of all its
organizations. Nothing of it is secret. The same files, parameters and --time give
the same network id, so that every organization can do this for itself and compare.`,
		Example: "  tallystick genesis combine --out network bank.toml supplier.toml auditor.toml",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			params, err := n.params()
			if err != nil {
				return err
			}
			when := time.Now()
			if at != "" {
				if when, err = time.Parse(time.RFC3339Nano, at); err != nil {
					return fmt.Errorf("--time: %w", err)
				}
			}
			var orgs []*home.Org
			for _, path := range args {
				o, err := home.ReadOrg(path)
				if err != nil {
					return err
				}
				orgs = append(orgs, o)
			}
			g, network, err := home.Combine(n.name, orgs, params, when)
			if err != nil {
				return err
			}
			if err := home.WriteNetwork(out, g, network); err != nil {
				return err
			}
			describeNetwork(cmd.OutOrStdout(), g)
			fmt.Fprintf(cmd.OutOrStdout(), "time       %s\n\nGive %s and %s to every organization; each joins with\n\n    tallystick genesis join --dir DIR/ORG --network %s\n",
				time.UnixMicro(g.Timestamp).UTC().Format(time.RFC3339Nano), filepath.Join(out, home.GenesisFile), filepath.Join(out, home.NetworkFile), out)
			return nil
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "new `directory` for genesis and network.toml (required)")
	cmd.Flags().StringVar(&at, "time", "", "`time` of the genesis, RFC 3339 (default: now)")
	n.add(cmd)
	cobra.CheckErr(cmd.MarkFlagRequired("out"))
	return cmd
}

func newGenesisJoin() *cobra.Command {
	var dir, network string
	cmd := &cobra.Command{
		Use:   "join --dir DIR/ORG --network DIR",
		Short: "Take the genesis into the homes of an organization",
		Long: `Take genesis and network.toml of a combined network into all homes of an
organization, after checking that they have its own keys and authority unchanged.
Compare the network id that it prints with those of the others before you start.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			g, err := readGenesis(filepath.Join(network, home.GenesisFile))
			if err != nil {
				return err
			}
			n, err := home.ReadNetwork(filepath.Join(network, home.NetworkFile))
			if err != nil {
				return err
			}
			if err := home.Join(dir, g, n); err != nil {
				return err
			}
			describeNetwork(cmd.OutOrStdout(), g)
			return nil
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", "`directory` of the organization (required)")
	cmd.Flags().StringVar(&network, "network", "", "`directory` that combine has made (required)")
	cobra.CheckErr(cmd.MarkFlagRequired("dir"))
	cobra.CheckErr(cmd.MarkFlagRequired("network"))
	return cmd
}

func newGenesisShow() *cobra.Command {
	return &cobra.Command{
		Use:   "show FILE",
		Short: "Show what a genesis defines, and its network id",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			g, err := readGenesis(args[0])
			if err != nil {
				return err
			}
			describeNetwork(cmd.OutOrStdout(), g)
			return nil
		},
	}
}

func readGenesis(path string) (*block.Genesis, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	g, err := block.DecodeGenesis(raw)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return g, nil
}
