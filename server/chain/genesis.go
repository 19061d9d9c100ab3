package chain

import (
	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/mvcc"
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

// applyGenesis puts the rows of genesis into the batch of block 1.
func (c *Chain) applyGenesis(batch *mvcc.BlockBatch) error {
	first, err := c.genesis.Block()
	if err != nil {
		return err
	}
	w := rowWriter{batch: batch}
	for _, u := range genesisUsers(c.genesis) {
		if err := w.put(certsTable, u.row()); err != nil {
			return err
		}
	}
	return w.block(first, 0, genesisState(c.genesis))
}
