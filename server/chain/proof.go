package chain

import (
	"errors"
	"fmt"

	"github.com/tallystick/tallystick/blockstore/block"
)

// metaStep is the record with the step of a block in the chain of state hashes.
func metaStep(height block.Height) string { return fmt.Sprintf("chain/step/%016x", height) }

// Step is what a processed block added to the chain of state hashes.
func (c *Chain) Step(height block.Height) (block.StateStep, error) {
	step, _, err := c.step(height)
	return step, err
}

// step returns the entries of the write set, too: see writeSet.
func (c *Chain) step(height block.Height) (block.StateStep, []byte, error) {
	record, ok, err := c.store.Meta(metaStep(height))
	if err != nil {
		return block.StateStep{}, nil, err
	}
	if !ok {
		return block.StateStep{}, nil, fmt.Errorf("%w: block %d has no step", errNoBlock, height)
	}
	return decodeStep(height, record)
}

// leaves are those of the Merkle tree of a block, from the ledger, and checked
// against its root.
func (c *Chain) leaves(height block.Height, step *block.StateStep) (leaves []block.Hash, err error) {
	err = c.eachLedger(height, height, func(l *ledgerRow) error {
		leaves = append(leaves, l.receipt.leaf())
		return nil
	})
	if err != nil {
		return nil, err
	}
	if root := block.MerkleRoot(leaves); height > 0 && root != step.Outcomes {
		return nil, fmt.Errorf("chain: corruption: receipts of block %d have root %s, not %s", height, root, step.Outcomes)
	}
	return leaves, nil
}

// Prove makes the proof of the transaction at a position of a processed block. It
// ends with the first checkpoint at or above the block, if there is one.
func (c *Chain) Prove(height block.Height, position uint32) (*block.Receipt, error) {
	if height == 0 {
		return nil, errors.New("chain: block 0 has no transactions")
	}
	step, err := c.Step(height)
	if err != nil {
		return nil, err
	}
	leaves, err := c.leaves(height, &step)
	if err != nil {
		return nil, err
	}
	if position == 0 || int(position) > len(leaves) {
		return nil, fmt.Errorf("chain: block %d has no transaction at position %d", height, position)
	}
	b, err := c.blocks.Get(height)
	if err != nil {
		return nil, err
	}
	r := &block.Receipt{
		Tx: b.Txs[position-1].Encode(), Header: *b.Header(), Certificate: b.Certificate, Position: position,
		Path: block.MerklePath(leaves, int(position)-1), Step: step,
	}
	for _, tx := range b.Txs {
		r.TxHashes = append(r.TxHashes, tx.ContentHash())
	}
	if r.Previous, err = c.StateHash(height - 1); err != nil {
		return nil, err
	}
	err = c.eachLedger(height, height, func(l *ledgerRow) error {
		if l.receipt.Position == position {
			r.Outcome = l.receipt.Outcome()
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return r, c.proveFinal(r)
}

// proveFinal adds the way to the next checkpoint.
func (c *Chain) proveFinal(r *block.Receipt) error {
	checkpoint, err := c.CheckpointFrom(r.Header.Number)
	if err != nil || checkpoint == nil {
		return err
	}
	for h := r.Header.Number + 1; h <= checkpoint.Height; h++ {
		step, err := c.Step(h)
		if err != nil {
			return err
		}
		r.Steps = append(r.Steps, step)
	}
	r.Checkpoint = checkpoint
	return nil
}

// ProveTx makes the proof of the transaction with an id, the one whose receipt
// [Chain.LookupReceipt] returns; nil if no block has it.
func (c *Chain) ProveTx(id block.TxID) (*block.Receipt, error) {
	r, ok, err := c.LookupReceipt(id)
	if err != nil || !ok {
		return nil, err
	}
	return c.Prove(r.Height, r.Position)
}
