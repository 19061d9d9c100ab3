package chain

import (
	"encoding/json"
	"fmt"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// Divergence says that nodes of a majority of the organizations have signed
// another state than this node has. The node processes no block any more; its data
// stay as they are, for whoever has to find out why.
type Divergence struct {
	Height   block.Height // of the checkpoint
	Expected block.Hash   // the state hash that was signed
	Own      block.Hash   // the one here
	Recorded block.Height // block that recorded the checkpoint

	// Difference is where the states begin to differ, if that was found out with
	// [Chain.Locate].
	Difference *Difference
}

// Error names checkpoint and, if it is known, block, table and key.
func (d *Divergence) Error() string { return d.Verdict().Message + ": " + d.Verdict().Detail }

// Verdict is the error with which a node answers that must not be believed: XX001
// (data_corrupted).
func (d *Divergence) Verdict() *pgerr.Error {
	detail := fmt.Sprintf("The state hash of block %d is %s here and %s at nodes of a majority of the organizations.", d.Height, d.Own, d.Expected)
	if d.Difference != nil {
		detail += " " + d.Difference.String()
	}
	return pgerr.New(pgerr.DataCorrupted, "the state of this node differs from that of the network").
		WithDetail("%s", detail).
		WithHint("SET tallystick.forensics = on reads the data all the same. Remove the state directory to build it again from the blocks.")
}

// Diverged is why this node must not be believed; nil if nothing is known against
// it.
func (c *Chain) Diverged() *Divergence {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.diverged
}

// Halted is Diverged as an error for clients; nil if there is no reason to refuse
// them.
func (c *Chain) Halted() error {
	if d := c.Diverged(); d != nil {
		return d.Verdict()
	}
	return nil
}

// judge compares the checkpoints that the block records with the own state. Blame
// is stored with the block.
func (c *Chain) judge(r *run) error {
	for _, point := range r.points {
		own, err := c.StateHash(point.height)
		if err != nil {
			return err
		}
		if own != point.state && r.diverged == nil {
			r.diverged = &Divergence{Height: point.height, Expected: point.state, Own: own, Recorded: r.height()}
		}
	}
	if r.diverged == nil {
		return nil
	}
	record, err := json.Marshal(r.diverged)
	if err != nil {
		return err
	}
	return r.batch.SetMeta(metaDiverged, record)
}

// metaDiverged is the record of a divergence.
const metaDiverged = "chain/diverged"

func (c *Chain) loadDivergence() error {
	record, ok, err := c.store.Meta(metaDiverged)
	if err != nil || !ok {
		return err
	}
	d := new(Divergence)
	if err := json.Unmarshal(record, d); err != nil {
		return fmt.Errorf("chain: corruption: record of a divergence: %w", err)
	}
	c.diverged = d
	return nil
}
