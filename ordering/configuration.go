package ordering

import (
	"fmt"
	"sync"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/identity"
)

// Configuration follows the configurations of a network for an orderer that makes
// blocks in this process: which one a block names, and with which position in it
// the orderer signs. Safe for concurrent use.
type Configuration struct {
	network block.Hash
	signer  identity.PublicKey

	mu       sync.Mutex
	schedule *block.Schedule // nil if there is one configuration for ever
	id       block.Hash
	set      identity.OrdererSet
}

// FixedConfiguration is one that never changes.
func FixedConfiguration(network, id block.Hash, set identity.OrdererSet, signer identity.PublicKey) *Configuration {
	return &Configuration{network: network, signer: signer, id: id, set: set}
}

// FollowConfiguration begins after the schedule's last block. The schedule is the
// configuration's from then on.
func FollowConfiguration(network block.Hash, s *block.Schedule, signer identity.PublicKey) *Configuration {
	return &Configuration{network: network, signer: signer, schedule: s}
}

func (c *Configuration) at(height block.Height) (block.Hash, *identity.OrdererSet) {
	if c.schedule == nil {
		return c.id, &c.set
	}
	now := c.schedule.At(height)
	return now.ID, &now.Config.Orderers
}

// ID is the configuration that the block of a height names.
func (c *Configuration) ID(height block.Height) block.Hash {
	c.mu.Lock()
	defer c.mu.Unlock()
	id, _ := c.at(height)
	return id
}

// Member is the position with which the orderer signs the block of a height. An
// orderer that is none any more, or not yet, cannot go on.
func (c *Configuration) Member(height block.Height) (uint16, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id, set := c.at(height)
	i := set.Index(c.signer)
	if i < 0 {
		return 0, fmt.Errorf("ordering: key %s is not among the orderers of block %d (configuration %s)", c.signer, height, id)
	}
	return uint16(i), nil
}

// Limits are the parameters under which the block of a height is cut; false if
// they never change.
func (c *Configuration) Limits(height block.Height) (block.Ordering, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.schedule == nil {
		return block.Ordering{}, false
	}
	return c.schedule.At(height).Config.Ordering, true
}

// Verify reports why a block from elsewhere was not made by the orderers in force.
// Blocks before it were given to Advance.
func (c *Configuration) Verify(b *block.Block, prevTimestamp int64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	id, set := c.at(b.Number)
	if b.ConfigID != id {
		return fmt.Errorf("ordering: block %d names configuration %s, not %s", b.Number, b.ConfigID, id)
	}
	return b.VerifyCertificate(set, c.network, prevTimestamp)
}

// Advance takes a block for the configurations that it brings. One that was taken
// before, as after a restart, changes nothing.
func (c *Configuration) Advance(b *block.Block) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.schedule == nil || b.Number < c.schedule.Next() {
		return nil
	}
	_, err := c.schedule.Advance(b)
	return err
}
