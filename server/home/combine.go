package home

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/identity"
)

// Combine makes the genesis of a network of organizations with these parameters,
// and its network.toml. Both are functions of the arguments alone: whoever
// combines the same gets the same network id.
func Combine(name string, orgs []*Org, params block.Params, at time.Time) (*block.Genesis, *Network, error) {
	g := &block.Genesis{Network: name, Timestamp: at.UnixMicro(), Params: params}
	for _, o := range orgs {
		org, err := o.genesis()
		if err != nil {
			return nil, nil, err
		}
		for _, u := range org.Users {
			if u.Role == identity.Orderer {
				g.Orderers.Keys = append(g.Orderers.Keys, u.Key)
			}
		}
		g.Orgs = append(g.Orgs, org)
	}
	quorum, err := quorumOf(params.Orderer, len(g.Orderers.Keys))
	if err != nil {
		return nil, nil, err
	}
	g.Orderers.Quorum = quorum
	g.Sort()
	if err := g.Validate(); err != nil {
		return nil, nil, err
	}
	n := &Network{Name: name, ID: g.NetworkID().String()}
	for _, o := range orgs {
		public := *o
		public.Users = nil
		n.Orgs = append(n.Orgs, public)
	}
	slices.SortFunc(n.Orgs, func(a, b Org) int { return strings.Compare(a.Name, b.Name) })
	if _, err := n.Authorities(); err != nil {
		return nil, nil, err
	}
	return g, n, nil
}

// genesis is the organization as the genesis has it.
func (o *Org) genesis() (block.Org, error) {
	org := block.Org{Name: o.Name}
	roles := map[string]identity.Role{}
	for _, u := range o.Users {
		role, err := identity.ParseRole(u.Role)
		if err != nil {
			return org, fmt.Errorf("%s/%s: %w", o.Name, u.Name, err)
		}
		key, err := identity.ParsePublicKey(u.Key)
		if err != nil {
			return org, fmt.Errorf("%s/%s: %w", o.Name, u.Name, err)
		}
		roles[u.Name] = role
		org.Users = append(org.Users, block.User{Name: u.Name, Role: role, Key: key})
	}
	for _, n := range o.Nodes {
		if roles[n.Name] != identity.Node {
			return org, fmt.Errorf("%s/%s has an address, but no key of a node", o.Name, n.Name)
		}
	}
	for _, n := range o.Orderers {
		if roles[n.Name] != identity.Orderer {
			return org, fmt.Errorf("%s/%s has an address, but no key of an orderer", o.Name, n.Name)
		}
	}
	return org, nil
}

// quorumOf is how many orderers certify a block, if there are n of them.
func quorumOf(protocol string, n int) (int, error) {
	switch {
	case n == 0:
		return 0, errors.New("the organizations have no orderer: at least one has to run one")
	case protocol == block.OrdererSolo && n > 1:
		return 0, fmt.Errorf("consensus solo has one orderer, and there are %d", n)
	case protocol == block.OrdererSolo || protocol == block.OrdererRaft:
		return 1, nil
	case n < 4:
		return 0, fmt.Errorf("consensus %s needs 4 orderers to survive one that lies, and there are %d", protocol, n)
	default:
		f := (n - 1) / 3
		// More than (n+f)/2: two quorums share an honest orderer for every n.
		return (n+f)/2 + 1, nil
	}
}

// DefaultOrderers is how many orderers a protocol gets if nobody says.
func DefaultOrderers(protocol string) int {
	switch protocol {
	case block.OrdererSolo:
		return 1
	case block.OrdererRaft:
		return 3
	default:
		return 4
	}
}

// WriteNetwork makes a directory with genesis and network.toml.
func WriteNetwork(dir string, g *block.Genesis, n *Network) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := writeNew(filepath.Join(dir, GenesisFile), g.Encode(), 0o644); err != nil {
		return err
	}
	return writeNew(filepath.Join(dir, NetworkFile), n.Encode(), 0o644)
}

// Join gives genesis and network.toml to all homes of an organization's directory.
// Before, it checks that the genesis has the keys that are there, and nobody else
// for this organization, and that it is the network that network.toml names.
func Join(dir string, g *block.Genesis, n *Network) error {
	own, err := ReadOrg(filepath.Join(dir, PublicFile))
	if err != nil {
		return err
	}
	if err := agree(own, g, n); err != nil {
		return err
	}
	homes, err := Homes(dir)
	if err != nil {
		return err
	}
	network := n.Encode()
	for _, h := range homes {
		if err := writeSame(filepath.Join(h.Dir, GenesisFile), g.Encode()); err != nil {
			return err
		}
		if err := writeReplacing(filepath.Join(h.Dir, NetworkFile), network); err != nil {
			return err
		}
	}
	return nil
}

// agree checks genesis and network against what the organization published.
func agree(own *Org, g *block.Genesis, n *Network) error {
	if id := g.NetworkID().String(); id != n.ID {
		return fmt.Errorf("the genesis is that of network %s, and %s names %s", id, NetworkFile, n.ID)
	}
	published, err := own.genesis()
	if err != nil {
		return err
	}
	slices.SortFunc(published.Users, func(a, b block.User) int { return strings.Compare(a.Name, b.Name) })
	i := slices.IndexFunc(g.Orgs, func(o block.Org) bool { return o.Name == own.Name })
	if i < 0 {
		return fmt.Errorf("organization %s is not in the genesis", own.Name)
	}
	if !slices.Equal(g.Orgs[i].Users, published.Users) {
		return fmt.Errorf("the genesis has other members or keys for organization %s than it has published: do not join", own.Name)
	}
	there := n.Org(own.Name)
	if there == nil || strings.TrimSpace(there.Authority) != strings.TrimSpace(own.Authority) {
		return fmt.Errorf("%s has another authority for organization %s than its own: do not join", NetworkFile, own.Name)
	}
	return nil
}

// writeSame writes a file, or makes sure that the one that is there is the same.
func writeSame(path string, content []byte) error {
	old, err := os.ReadFile(path)
	if isMissing(err) {
		return writeNew(path, content, 0o644)
	}
	if err != nil {
		return err
	}
	if !bytes.Equal(old, content) {
		return fmt.Errorf("%s is that of another network", path)
	}
	return nil
}

// writeReplacing writes a file in place of the one that is there, complete or not
// at all.
func writeReplacing(path string, content []byte) error {
	tmp := path + ".tmp"
	if err := os.WriteFile(tmp, content, 0o644); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}

// Kind is what a home is for.
type Kind uint8

// The kinds of homes.
const (
	NodeHome Kind = iota + 1
	OrdererHome
	UserHome
)

// Home is a directory of a process or user.
type Home struct {
	Kind      Kind
	Org, Name string
	Dir       string
}

// Homes lists the homes of an organization's directory: nodes, orderers, users,
// each by name.
func Homes(dir string) ([]Home, error) {
	org := filepath.Base(filepath.Clean(dir))
	var list []Home
	for _, k := range []struct {
		kind      Kind
		sub, file string
	}{{NodeHome, ".", NodeFile}, {OrdererHome, ".", OrdererFile}, {UserHome, usersDir, WalletFile}} {
		entries, err := os.ReadDir(filepath.Join(dir, k.sub))
		if isMissing(err) && k.sub != "." {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, e := range entries { // sorted by name
			h := Home{k.kind, org, e.Name(), filepath.Join(dir, k.sub, e.Name())}
			if _, err := os.Stat(filepath.Join(h.Dir, k.file)); err == nil {
				list = append(list, h)
			}
		}
	}
	return list, nil
}

// NetworkHomes lists the homes of all organizations in the directory of a network.
func NetworkHomes(dir string) ([]Home, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var list []Home
	for _, e := range entries {
		org := filepath.Join(dir, e.Name())
		if _, err := os.Stat(filepath.Join(org, PublicFile)); err != nil {
			continue
		}
		homes, err := Homes(org)
		if err != nil {
			return nil, err
		}
		list = append(list, homes...)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s is no directory of a network: tallystick init makes one", dir)
	}
	return list, nil
}

// Open finds out what a home is for.
func Open(dir string) (Home, error) {
	if c, err := ReadNode(dir); err == nil {
		return Home{NodeHome, c.Org, c.Name, dir}, nil
	} else if _, there := os.Stat(filepath.Join(dir, NodeFile)); there == nil {
		return Home{}, err
	}
	if c, err := ReadOrderer(dir); err == nil {
		return Home{OrdererHome, c.Org, c.Name, dir}, nil
	} else if _, there := os.Stat(filepath.Join(dir, OrdererFile)); there == nil {
		return Home{}, err
	}
	if c, err := ReadWallet(dir); err == nil {
		return Home{UserHome, c.Org, c.User, dir}, nil
	} else if _, there := os.Stat(filepath.Join(dir, WalletFile)); there == nil {
		return Home{}, err
	}
	return Home{}, fmt.Errorf("%s is no home: it has none of %s, %s, %s", dir, NodeFile, OrdererFile, WalletFile)
}
