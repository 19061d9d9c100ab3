package chain

import (
	"errors"

	"github.com/tallystick/tallystick/blockstore/block"
)

// genesisState is the state hash of block 0.
func genesisState(g *block.Genesis) block.Hash {
	var w writeSet
	w.add(0, 0, genesisWrites(g))
	return stateHash(block.Hash{}, 0, w.sum(), g.NetworkID())
}

// genesisWrites is the digest of the rows of genesis that are hashed: the
// users, who are sorted as their keys are.
func genesisWrites(g *block.Genesis) block.Hash {
	var d txDigest
	d.begin()
	for _, u := range genesisUsers(g) {
		row := u.row()
		d.write(certsTable.layout.PrimaryKey(nil, row), certsTable.layout.EncodeRow(nil, row), false)
	}
	return d.sum()
}

// applyGenesis makes the state of block 0: its users, and its row in blocks.
func (c *Chain) applyGenesis(first *block.Block) error {
	batch := c.store.NewBlockBatch(0)
	w := rowWriter{batch: batch}
	for _, u := range genesisUsers(c.genesis) {
		if err := w.put(certsTable, u.row()); err != nil {
			return errors.Join(err, batch.Close())
		}
	}
	state := genesisState(c.genesis)
	if err := w.block(first, 0, state); err != nil {
		return errors.Join(err, batch.Close())
	}
	t := tip{hash: first.Hash(), state: state, timestamp: first.Timestamp}
	if err := batch.SetMeta(metaTip, t.encode(c.network, 0)); err != nil {
		return errors.Join(err, batch.Close())
	}
	return c.store.Commit(batch, false)
}
