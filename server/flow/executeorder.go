package flow

import "github.com/tallystick/tallystick/blockstore/block"

// execute is what execute-order-in-parallel does before a transaction is handed
// over: it starts executing, on the snapshot that its client chose, while the
// ordering service looks for its place. Nothing waits for it: if it is not done
// by then, the block waits or executes it.
//
// A snapshot that the next block does not accept any more is refused at once.
// One that this node has not reached yet is not: the client may have asked a
// faster node, and the chain waits for a while.
func (f *Flow) execute(tx *block.Tx) error {
	if err := f.opts.Chain.CheckSnapshot(tx); err != nil {
		return err
	}
	if f.opts.Forward != nil {
		f.opts.Forward(tx)
	}
	f.opts.Chain.Speculate(tx)
	return nil
}
