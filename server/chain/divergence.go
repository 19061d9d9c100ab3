package chain

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// Divergence says that nodes of a majority of the organizations have signed
// another state than this node has, or that a scrub found rows which are not what
// the chain wrote. The node processes no block any more; its data stay as they are,
// for whoever has to find out why.
type Divergence struct {
	// Height is that of the checkpoint with the state hash Expected that was signed,
	// Own the hash here, and Recorded the block that recorded the checkpoint; all zero
	// if no checkpoint, but a scrub, has exposed the node.
	Height   block.Height
	Expected block.Hash
	Own      block.Hash
	Recorded block.Height

	// Damage is the first row that a scrub found to be wrong, if one did.
	Damage *Damage

	// Difference is where the states begin to differ, if that was found out with
	// [Chain.Locate].
	Difference *Difference
}

// Error names what is known: checkpoint, block, table and key.
func (d *Divergence) Error() string { return d.Verdict().Message + ": " + d.Verdict().Detail }

// Verdict is the error with which a node answers that must not be believed: XX001
// (data_corrupted).
func (d *Divergence) Verdict() *pgerr.Error {
	message := "the state of this node is damaged"
	var detail []string
	if d.Recorded > 0 {
		message = "the state of this node differs from that of the network"
		detail = append(detail, fmt.Sprintf("The state hash of block %d is %s here and %s at nodes of a majority of the organizations.", d.Height, d.Own, d.Expected))
	}
	if d.Difference != nil {
		detail = append(detail, d.Difference.String())
	}
	if d.Damage != nil {
		detail = append(detail, fmt.Sprintf("Not what the chain wrote: %s.", d.Damage))
	}
	return pgerr.New(pgerr.DataCorrupted, "%s", message).
		WithDetail("%s", strings.Join(detail, " ")).
		WithHint("SET tallystick.forensics = on reads the data all the same. Remove the state directory to build it again from the blocks.")
}

// Distrust halts the chain for a row that a scrub found to be wrong: no block is
// processed any more, over restarts too, until the state is built again. If a
// checkpoint has exposed the node before, the row says where.
func (c *Chain) Distrust(d *Damage) error {
	c.processMu.Lock()
	defer c.processMu.Unlock()
	next := Divergence{Damage: d}
	if known := c.Diverged(); known != nil {
		next = *known
		next.Damage = d
	}
	record, err := json.Marshal(&next)
	if err != nil {
		return err
	}
	// Halted first: whatever becomes of the record, this node is not to be believed.
	c.mu.Lock()
	c.diverged = &next
	c.mu.Unlock()
	return c.store.SetMeta(metaDiverged, record)
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
