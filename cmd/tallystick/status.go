package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/tallystick/tallystick/identity"
	"github.com/tallystick/tallystick/server"
	"github.com/tallystick/tallystick/server/home"
	"github.com/tallystick/tallystick/server/peer"
)

// statusTimeout is how long a member may take to answer.
const statusTimeout = 5 * time.Second

func newStatus() *cobra.Command {
	var dir, at string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "status {--home DIR | --dir DIR}",
		Short: "Show height and state hash of all nodes of a network",
		Long: `Ask all nodes and orderers of a network for their height, and nodes for their state
hash: two nodes at one height must have the same. --home is the home of the member
who asks (any node, orderer or user); --dir is the directory of a network, in which
an admin asks.

The exit code is 0 if all answered and no two nodes at one height differ.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			h, err := askingHome(at, dir)
			if err != nil {
				return err
			}
			return runStatus(cmd.Context(), h, asJSON, cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&at, "home", "", "`directory` of the member who asks")
	cmd.Flags().StringVar(&dir, "dir", "", "`directory` of the network")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.MarkFlagsMutuallyExclusive("home", "dir")
	cmd.MarkFlagsOneRequired("home", "dir")
	return cmd
}

// askingHome finds the home of who asks.
func askingHome(at, dir string) (home.Home, error) {
	if at != "" {
		return home.Open(at)
	}
	homes, err := home.NetworkHomes(dir)
	if err != nil {
		return home.Home{}, err
	}
	for _, h := range homes {
		if h.Kind == home.UserHome && h.Name == home.AdminUser {
			return h, nil
		}
	}
	return homes[0], nil
}

// memberStatus is what --json prints of a member; its names are for scripts and
// stay.
type memberStatus struct {
	peer.Status
	Error string `json:"error,omitempty"`
}

type networkStatus struct {
	Network  string         `json:"network"`
	Name     string         `json:"name"`
	Agree    bool           `json:"agree"` // no two nodes at one height differ
	Nodes    []memberStatus `json:"nodes"`
	Orderers []memberStatus `json:"orderers"`
}

func runStatus(ctx context.Context, h home.Home, asJSON bool, stdout io.Writer) error {
	log := slog.New(slog.DiscardHandler)
	m, err := server.OpenMember(h.Dir, identity.UserID{Org: h.Org, Name: h.Name}, askPassphrase(filepath.Join(h.Dir, home.KeyFile)), nil, log)
	if err != nil {
		return err
	}
	st := networkStatus{Network: m.Network.ID, Name: m.Network.Name}
	st.Nodes = askAll(ctx, m, m.AllNodes())
	st.Orderers = askAll(ctx, m, m.Orderers())
	bad := st.check()
	if asJSON {
		e := json.NewEncoder(stdout)
		e.SetIndent("", "  ")
		if err := e.Encode(&st); err != nil {
			return err
		}
	} else {
		st.print(stdout)
	}
	return bad
}

// askAll asks members at the same time.
func askAll(ctx context.Context, m *server.Member, list []peer.Remote) []memberStatus {
	out := make([]memberStatus, len(list))
	var wg sync.WaitGroup
	for i, r := range list {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, statusTimeout)
			defer cancel()
			s, err := peer.AskStatus(ctx, r, m.Verifier, m.Pair)
			s.Org, s.Name, s.Role = r.User.Org, r.User.Name, r.Role.String()
			out[i].Status = s
			if err != nil {
				out[i].Error = err.Error()
			}
		})
	}
	wg.Wait()
	return out
}

// check looks for nodes that did not answer or that differ.
func (st *networkStatus) check() error {
	st.Agree = true
	silent := 0
	byHeight := map[uint64]memberStatus{}
	var err error
	for _, n := range st.Nodes {
		if n.Error != "" {
			silent++
			continue
		}
		if other, ok := byHeight[n.Height]; ok && other.State != n.State {
			st.Agree = false
			err = fmt.Errorf("%s/%s and %s/%s have different state hashes at height %d: one of them is damaged or lies (tallystick verify DIR --replay tells)",
				other.Org, other.Name, n.Org, n.Name, n.Height)
		}
		byHeight[n.Height] = n
	}
	for _, o := range st.Orderers {
		if o.Error != "" {
			silent++
		}
	}
	if err == nil && silent > 0 {
		err = fmt.Errorf("%d of %d members did not answer", silent, len(st.Nodes)+len(st.Orderers))
	}
	return err
}

func (st *networkStatus) print(w io.Writer) {
	fmt.Fprintf(w, "network %s, id %s\n\n%-22s %-8s %10s  %s\n", st.Name, st.Network, "member", "role", "height", "state hash")
	for _, list := range [][]memberStatus{st.Nodes, st.Orderers} {
		for _, s := range list {
			height, rest := strconv.FormatUint(s.Height, 10), s.State
			switch {
			case s.Error != "":
				height, rest = "-", s.Error
			case s.Leader != "":
				rest = "leader is " + s.Leader
			}
			fmt.Fprintf(w, "%-22s %-8s %10s  %s\n", s.Org+"/"+s.Name, s.Role, height, rest)
		}
	}
}

// askPassphrase is how a command gets the passphrase of an encrypted key.
func askPassphrase(path string) func() ([]byte, error) {
	return func() ([]byte, error) {
		return nil, errors.New("the key in " + path + " is encrypted: set passphrase_file in the configuration beside it")
	}
}
