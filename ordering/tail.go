package ordering

import (
	"context"
	"sync"

	"github.com/tallystick/tallystick/blockstore/block"
)

// KeptBlocks is how many of the last blocks subscribers find in memory.
const KeptBlocks = 64

// Tail is the durable end of the chain as a service in this process knows it:
// its height, and the last blocks. Safe for concurrent use.
type Tail struct {
	mu      sync.Mutex
	tip     block.Height
	kept    [KeptBlocks]*block.Block // by number mod KeptBlocks
	changed chan struct{}            // closed and replaced when tip grows
}

// NewTail starts at the last durable block.
func NewTail(tip *block.Block) *Tail {
	t := &Tail{tip: tip.Number, changed: make(chan struct{})}
	t.kept[tip.Number%KeptBlocks] = tip
	return t
}

// Height is the number of the last durable block.
func (t *Tail) Height() block.Height {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.tip
}

// Advance appends durable blocks.
func (t *Tail) Advance(blocks []*block.Block) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, b := range blocks {
		t.kept[b.Number%KeptBlocks] = b
		t.tip = b.Number
	}
	close(t.changed)
	t.changed = make(chan struct{})
}

// Get returns a durable block if it is in memory.
func (t *Tail) Get(height block.Height) *block.Block {
	t.mu.Lock()
	defer t.mu.Unlock()
	if b := t.kept[height%KeptBlocks]; b != nil && b.Number == height {
		return b
	}
	return nil
}

// Wait returns nil when the block of height is durable, and the reason when ctx
// or end is done before that.
func (t *Tail) Wait(ctx, end context.Context, height block.Height) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		if end.Err() != nil {
			return context.Cause(end)
		}
		t.mu.Lock()
		reached, changed := t.tip >= height, t.changed
		t.mu.Unlock()
		if reached {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
		case <-end.Done():
		}
	}
}
