package server

import (
	"crypto/rand"
	"fmt"
	"os"
	"time"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/identity"
)

// The development network.
const (
	DevNetwork = "dev" // its name
	DevOrg     = "dev" // its one organization
	DevAdmin   = "admin"

	ordererUser = "orderer"
)

// devUsers are the users that a development network begins with, sorted.
var devUsers = []struct {
	name string
	role identity.Role
}{
	{DevAdmin, identity.Admin},
	{"alice", identity.Client},
	{"bob", identity.Client},
	{ordererUser, identity.Orderer},
}

// Choices are the parameters of a network that the command line sets. An empty
// one means what the data directory has, or the default for a new one.
type Choices struct {
	Flow, Orderer, Rule, Conflicts string

	// Limits of a block of a new network; 0 = the default. They are not compared
	// with those of a network that exists.
	BlockTxs, BlockTimeoutMicros uint64
}

// defaultChoices are those of a new development network.
var defaultChoices = Choices{
	Flow:      block.FlowOrderThenExecute,
	Orderer:   block.OrdererSolo,
	Rule:      block.RuleAbortDuringCommit,
	Conflicts: block.ConflictsAbort,
}

// choice is one of the choices with the parameter that it sets.
type choice struct {
	flag   string
	chosen string
	param  *string
}

func (c *Choices) list(p *block.Params) []choice {
	return []choice{
		{"flow", c.Flow, &p.Flow},
		{"orderer", c.Orderer, &p.Orderer},
		{"rule", c.Rule, &p.Rule},
		{"conflicts", c.Conflicts, &p.Conflicts},
	}
}

// apply sets what was chosen.
func (c *Choices) apply(p *block.Params) {
	for _, x := range c.list(p) {
		if x.chosen != "" {
			*x.param = x.chosen
		}
	}
	if c.BlockTxs > 0 {
		p.BlockTxs = c.BlockTxs
	}
	if c.BlockTimeoutMicros > 0 {
		p.BlockTimeoutMicros = c.BlockTimeoutMicros
	}
}

// Params are the parameters of a new network with these choices.
func (c *Choices) Params() block.Params {
	p := block.DefaultParams()
	defaultChoices.apply(&p)
	c.apply(&p)
	if c.Rule == "" && p.Flow == block.FlowExecuteOrderInParallel {
		p.Rule = block.RuleBlockAware // the rule that was made for this flow
	}
	return p
}

// check refuses a choice that differs from what the network was made with.
func (c *Choices) check(p *block.Params, dir string) error {
	for _, x := range c.list(p) {
		if x.chosen != "" && x.chosen != *x.param {
			return fmt.Errorf("server: the network in %s was made with --%s %s, not %s: leave the option out or take another directory",
				dir, x.flag, *x.param, x.chosen)
		}
	}
	return nil
}

// loadGenesis reads the genesis of a data directory; nil if there is none.
func loadGenesis(l layout) (*block.Genesis, error) {
	raw, err := os.ReadFile(l.genesis())
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	g, err := block.DecodeGenesis(raw)
	if err != nil {
		return nil, fmt.Errorf("server: %s: %w", l.genesis(), err)
	}
	return g, nil
}

// devGenesis reads the genesis of a development network or, at the first
// start, makes the network: keys first, the genesis last, so that an
// interrupted first start goes on with the keys it has.
func devGenesis(l layout, choices *Choices) (*block.Genesis, error) {
	g, err := loadGenesis(l)
	if err != nil {
		return nil, err
	}
	if g != nil {
		if len(g.Orgs) != 1 || g.Orgs[0].Name != DevOrg {
			return nil, fmt.Errorf("server: network %q in %s is no development network", g.Network, l.dir)
		}
		return g, choices.check(&g.Params, l.dir)
	}
	if g, err = makeGenesis(l, choices); err != nil {
		return nil, err
	}
	return g, l.writeGenesis(g.Encode())
}

func makeGenesis(l layout, choices *Choices) (*block.Genesis, error) {
	if err := os.MkdirAll(l.keys(), 0o700); err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	return newGenesis(choices, func(user string) (*identity.Signer, error) { return makeKey(l.key(user)) })
}

// newGenesis makes the genesis of a development network with these keys.
func newGenesis(choices *Choices, key func(user string) (*identity.Signer, error)) (*block.Genesis, error) {
	org := block.Org{Name: DevOrg}
	var orderer identity.PublicKey
	for _, u := range devUsers {
		signer, err := key(u.name)
		if err != nil {
			return nil, err
		}
		org.Users = append(org.Users, block.User{Name: u.name, Role: u.role, Key: signer.Public()})
		if u.role == identity.Orderer {
			orderer = signer.Public()
		}
	}
	g := &block.Genesis{
		Network:   DevNetwork,
		Timestamp: time.Now().UnixMicro(),
		Orgs:      []block.Org{org},
		Orderers:  identity.OrdererSet{Keys: []identity.PublicKey{orderer}, Quorum: 1},
	}
	g.Params = choices.Params()
	g.Sort()
	return g, g.Validate()
}

// makeKey makes the key of a user, or loads the one that is there.
func makeKey(path string) (*identity.Signer, error) {
	if there, err := exists(path); err != nil {
		return nil, fmt.Errorf("server: %w", err)
	} else if there {
		return identity.LoadKey(path)
	}
	signer, err := identity.GenerateSigner(rand.Reader)
	if err != nil {
		return nil, err
	}
	return signer, signer.SaveKey(path)
}

// loadOrderer loads the key of the embedded orderer, which has to be one of
// the network's.
func loadOrderer(l layout, g *block.Genesis) (*identity.Signer, error) {
	signer, err := identity.LoadKey(l.key(ordererUser))
	if err != nil {
		return nil, err
	}
	if g.Orderers.Index(signer.Public()) < 0 {
		return nil, fmt.Errorf("server: %s is not the key of an orderer of this network", l.key(ordererUser))
	}
	return signer, nil
}
