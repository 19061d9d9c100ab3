package chain

import (
	"fmt"

	"github.com/tallystick/tallystick/blockstore/block"
)

// Proof shows that a receipt belongs to a state hash, which nodes sign in
// checkpoints.
type Proof struct {
	Height   block.Height
	Position uint32 // of the transaction in the block, from 1
	Count    uint32 // transactions of the block
	Path     []block.Hash
	Writes   block.Hash // digest of the write set of the block
	Previous block.Hash // state hash of the block before
}

// Verify reports whether the proof leads from the receipt to the state hash of
// its block. What it shows is id, status, SQLSTATE and result; texts are not
// covered.
func (p *Proof) Verify(r *Receipt, state block.Hash) bool {
	if r.Height != p.Height || r.Position != p.Position || p.Position == 0 || len(p.Path) > MaxPath {
		return false
	}
	root, ok := climb(r.leaf(), int(p.Position)-1, int(p.Count), p.Path)
	return ok && stateHash(p.Previous, p.Height, p.Writes, root) == state
}

// metaProof is the record with write set digest and Merkle root of a block.
func metaProof(height block.Height) string { return fmt.Sprintf("chain/proof/%016x", height) }

// Prove makes the proof of the transaction at a position of a processed block.
func (c *Chain) Prove(height block.Height, position uint32) (*Proof, error) {
	var leaves []block.Hash
	err := c.eachLedger(height, height, func(l *ledgerRow) error {
		leaves = append(leaves, l.receipt.leaf())
		return nil
	})
	if err != nil {
		return nil, err
	}
	if position == 0 || int(position) > len(leaves) {
		return nil, fmt.Errorf("chain: block %d has no transaction at position %d", height, position)
	}
	record, ok, err := c.store.Meta(metaProof(height))
	if err != nil {
		return nil, err
	}
	if !ok || len(record) != 64 {
		return nil, fmt.Errorf("chain: corruption: proof record of block %d is %x", height, record)
	}
	if root := MerkleRoot(leaves); root != block.Hash(record[32:]) {
		return nil, fmt.Errorf("chain: corruption: receipts of block %d have root %s, not %x", height, root, record[32:])
	}
	p := &Proof{Height: height, Position: position, Count: uint32(len(leaves)), Writes: block.Hash(record)}
	p.Path = Prove(leaves, int(position)-1)
	p.Previous, err = c.StateHash(height - 1)
	return p, err
}
