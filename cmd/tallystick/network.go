package main

import "github.com/spf13/cobra"

// addNetworkCommands adds what sets up and runs networks of several organizations.
func addNetworkCommands(root *cobra.Command) {
	root.AddCommand(newInit(), newGenesis(), newStart(), newOrderer(), newNet(), newStatus(), newPasswd(), newWallet())
}
