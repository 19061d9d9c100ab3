package client

import (
	"crypto/rand"
	"errors"
	"io"
	"time"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/identity"
)

// Wait says how many nodes must have committed a transaction before a call
// returns.
type Wait int

const (
	// WaitOne is the node that took the transaction.
	WaitOne Wait = iota
	// WaitMajority is more than half of Config.Nodes, all with the same outcome in
	// the same block.
	WaitMajority
)

// Config says who calls, and where.
type Config struct {
	// Nodes are connection strings of pgx; the first that can be reached is
	// used.
	Nodes []string
	User  identity.UserID
	Key   *identity.Signer
	// Network is the id of the network. Zero believes the first node.
	Network block.Hash
	// ValidFor is for how many blocks after the newest one a transaction may
	// still be ordered: DefaultValidFor if 0.
	ValidFor uint64
	Wait     Wait
	Retry    Retry
	// MaxConns bounds the connections to a node; DefaultMaxConns if 0.
	MaxConns int32

	Clock  func() time.Time // time.Now if nil
	Random io.Reader        // of nonces and jitter; crypto/rand if nil
}

// Retry says how often and how soon a transaction is tried again that lost a
// conflict (40001) or found no room (53000).
type Retry struct {
	Attempts int           // in all; DefaultAttempts if 0, 1 tries nothing again
	Min, Max time.Duration // of the pause, which doubles; 5 ms and 1 s if 0
}

// Defaults of Config.
const (
	DefaultValidFor = 100
	DefaultAttempts = 10
	DefaultMaxConns = 16
)

// EnsureDefaults fills in what is not set.
func (c *Config) EnsureDefaults() {
	setDefault(&c.ValidFor, DefaultValidFor)
	setDefault(&c.Retry.Attempts, DefaultAttempts)
	setDefault(&c.Retry.Min, 5*time.Millisecond)
	setDefault(&c.Retry.Max, time.Second)
	setDefault(&c.MaxConns, DefaultMaxConns)
	if c.Clock == nil {
		c.Clock = time.Now
	}
	if c.Random == nil {
		c.Random = rand.Reader
	}
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Validate reports why nobody can call like this.
func (c *Config) Validate() error {
	switch {
	case len(c.Nodes) == 0:
		return errors.New("client: no node to connect to")
	case c.Key == nil:
		return errors.New("client: a key is needed to sign")
	case c.Retry.Attempts < 1 || c.Retry.Min <= 0 || c.Retry.Max < c.Retry.Min:
		return errors.New("client: a transaction is tried once at least, with pauses that grow")
	case c.Wait != WaitOne && c.Wait != WaitMajority:
		return errors.New("client: an unknown way to wait")
	}
	if err := identity.ValidateName(c.User.Org); err != nil {
		return err
	}
	return identity.ValidateName(c.User.Name)
}
