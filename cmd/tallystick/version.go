package main

import (
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/tallystick/tallystick/blockstore/block"
)

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print what this program was built from",
		Long: `Print what this program was built from, and the newest engine version it knows:
what contracts compute is part of the protocol and numbered apart.`,
		Args: cobra.NoArgs,
		Run: func(cmd *cobra.Command, _ []string) {
			fmt.Fprintf(cmd.OutOrStdout(), "tallystick %s, engine version %d\n", buildVersion(), block.DefaultParams().EngineVersion)
		},
	}
}

// buildVersion is the version of the module with commit and toolchain, as far
// as the build recorded them.
func buildVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "(unknown)"
	}
	v := info.Main.Version
	var commit, modified string
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			commit = s.Value[:min(len(s.Value), 12)]
		case "vcs.modified":
			if s.Value == "true" {
				modified = "+"
			}
		}
	}
	if commit != "" {
		v += " (commit " + commit + modified + ")"
	}
	return v + ", " + info.GoVersion
}
