package chain

import (
	"errors"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/mvcc"
)

// applyGenesis makes the state of block 0: its users, who are sorted as their
// keys are, and its row in blocks.
func (c *Chain) applyGenesis(first *block.Block) error {
	batch := c.store.NewBlockBatch(0)
	if err := c.writeGenesis(first, batch); err != nil {
		return errors.Join(err, batch.Close())
	}
	return c.store.Commit(batch, false)
}

func (c *Chain) writeGenesis(first *block.Block, batch *mvcc.BlockBatch) error {
	w := rowWriter{batch: batch}
	var digest txDigest
	digest.begin()
	users := newTally()
	for _, u := range genesisUsers(c.genesis) {
		row := u.row()
		if err := w.put(certsTable, row); err != nil {
			return err
		}
		key, value := certsTable.layout.PrimaryKey(nil, row), certsTable.layout.EncodeRow(nil, row)
		digest.write(key, value, false)
		users.add(key, mvcc.Version{}, value)
	}
	var writes writeSet
	writes.add(0, 0, digest.sum())
	step := block.StateStep{Writes: writes.sum(), Outcomes: c.network}
	c.tables.reset()
	var err error
	if step.Tables, err = c.tables.merge(users.sums, batch); err != nil {
		return err
	}
	t := tip{hash: first.Hash(), state: step.Next(block.Hash{}, 0), timestamp: first.Timestamp}
	if err := w.block(first, 0, t.state); err != nil {
		return err
	}
	if err := batch.SetMeta(metaStep(0), writes.record(&step)); err != nil {
		return err
	}
	return batch.SetMeta(metaTip, t.encode(c.network, 0))
}
