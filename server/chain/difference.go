package chain

import (
	"fmt"

	"github.com/tallystick/tallystick/blockstore/block"
)

// Difference is the first thing in which the states of two nodes differ.
type Difference struct {
	Block  block.Height // the first block after which they do
	Table  string       // "" if it is no row
	Key    string       // the columns of the key, as SQL shows them
	Raw    []byte       // the key as it is stored
	Reason string
}

// String says it in one sentence.
func (d *Difference) String() string {
	if d.Table == "" {
		return fmt.Sprintf("First difference: block %d: %s.", d.Block, d.Reason)
	}
	return fmt.Sprintf("First difference: block %d, table %s, key %s: %s.", d.Block, d.Table, d.Key, d.Reason)
}
