package chain

import (
	"errors"
	"fmt"

	"github.com/tallystick/tallystick/blockstore/block"
)

// load reads the state as of its height and checks that it was made from the
// blocks of the block store.
func (c *Chain) load(first *block.Block) error {
	if c.store.Empty() {
		if err := c.applyGenesis(first); err != nil {
			return err
		}
	}
	height := c.store.Height()
	record, ok, err := c.store.Meta(metaTip)
	if err != nil {
		return err
	}
	if !ok {
		return errors.New("chain: the store was not made by a chain")
	}
	t, network, farthest, err := decodeTip(record)
	if err != nil {
		return err
	}
	if network != c.network {
		return fmt.Errorf("chain: the state is of network %s, the blocks are of %s", network, c.network)
	}
	if t.height != height {
		return fmt.Errorf("chain: corruption: the state has height %d, its record says %d", height, t.height)
	}
	if last, _ := c.blocks.Tip(); last < height {
		return fmt.Errorf("chain: the state has height %d, the block store ends at %d: blocks were lost and must be fetched again", height, last)
	}
	b, err := c.blocks.Get(height)
	if err != nil {
		return err
	}
	if b.Hash() != t.hash {
		return fmt.Errorf("chain: block %d is not the one that the state was made from: %s in the block store, %s in the state", height, b.Hash(), t.hash)
	}
	c.tip, c.ids.farthest = t, farthest
	if err := c.loadTables(); err != nil {
		return err
	}
	if err := c.loadDivergence(); err != nil {
		return err
	}
	if err := c.loadGovernance(height); err != nil {
		return err
	}
	every := c.params.Load().CheckpointEvery
	c.busy, c.due = height, height/every*every
	if err := c.loadUsers(height); err != nil {
		return err
	}
	return c.loadIDs(height)
}

// loadTables reads the digests of the tables and checks them against the record
// of the last block.
func (c *Chain) loadTables() error {
	if err := c.tables.load(c.store); err != nil {
		return err
	}
	step, _, err := c.step(c.tip.height)
	if err == nil && tablesHash(c.tables.hashes) != step.Tables {
		err = fmt.Errorf("chain: corruption: the digests of the tables are not those of block %d", c.tip.height)
	}
	return err
}

func (c *Chain) loadUsers(height block.Height) error {
	users, err := c.Users(height)
	for i := range users {
		c.users[users[i].ID] = &users[i]
	}
	return err
}

// loadIDs reads the ids that a later block could contain again. Those that were
// consumed earlier than this have expired, but for those that the index keeps
// out of memory anyway.
func (c *Chain) loadIDs(height block.Height) error {
	from := uint64(1)
	window := c.longestValidity()
	if height+1 > window {
		from = max(from, height+1-window)
	}
	return c.eachLedger(from, height, func(l *ledgerRow) error {
		if l.consumed() && l.validUntil > height {
			c.ids.add(l.receipt.ID, l.validUntil, l.receipt.Height, window)
		}
		return nil
	})
}

// recover processes the blocks that the state does not have. A state that was
// found to differ from the network's stays as it is.
func (c *Chain) recover() error {
	last, _ := c.blocks.Tip()
	if from := c.tip.height + 1; from <= last {
		c.log.Info("chain: replaying blocks", "from", from, "to", last)
	}
	for h := c.tip.height + 1; h <= last; h++ {
		b, err := c.blocks.Get(h)
		if err != nil {
			return err
		}
		if _, err := c.Process(b); err != nil {
			if c.Diverged() != nil {
				return nil
			}
			return fmt.Errorf("chain: replaying block %d: %w", h, err)
		}
	}
	return nil
}

// Replay processes all blocks of a block store into an empty state and calls
// each, if it is not nil, with every height and its state hash, from 0 on. It
// returns the last one: two nodes agree if these are equal.
func Replay(opts Options, each func(height block.Height, state block.Hash) error) (block.Hash, error) {
	c, err := open(opts)
	if err != nil {
		return block.Hash{}, err
	}
	if c.tip.height != 0 {
		return block.Hash{}, fmt.Errorf("chain: replay into a state of height %d", c.tip.height)
	}
	last, _ := c.blocks.Tip()
	for h := uint64(0); ; h++ {
		if each != nil {
			if err := each(h, c.tip.state); err != nil {
				return block.Hash{}, err
			}
		}
		if h == last {
			return c.tip.state, nil
		}
		b, err := c.blocks.Get(h + 1)
		if err != nil {
			return block.Hash{}, err
		}
		if _, err := c.Process(b); err != nil {
			return block.Hash{}, fmt.Errorf("chain: replaying block %d: %w", h+1, err)
		}
	}
}
