package raft

import (
	"context"
	"fmt"
	"sync"

	"github.com/tallystick/tallystick/blockstore/block"
)

const (
	// sealedAhead bounds how many blocks share a sync, and the memory of blocks
	// that wait for one.
	sealedAhead = 64
	// keptBlocks is how many of the last blocks subscribers find in memory.
	keptBlocks = 64
)

// persist makes blocks durable, all that came during one sync with the next one,
// and only then lets subscribers see them.
func (o *Orderer) persist() {
	for b := range o.sealed {
		group := []*block.Block{b}
		for more := true; more && len(group) < sealedAhead; {
			select {
			case next, ok := <-o.sealed:
				if ok {
					group = append(group, next)
				}
				more = ok
			default:
				more = false
			}
		}
		if err := o.opts.Persist(group); err != nil {
			o.stop(fmt.Errorf("raft: persisting block %d: %w", group[0].Number, err))
			return
		}
		o.tail.advance(group)
		notify(o.wake)
	}
}

// push hands a block to the persister; false if the service ends.
func (o *Orderer) push(b *block.Block) bool {
	select {
	case o.sealed <- b:
		return true
	case <-o.end.Done():
		return false
	}
}

// tail is the durable end of the chain: its height, and the last blocks.
type tail struct {
	mu      sync.Mutex
	tip     block.Height
	kept    [keptBlocks]*block.Block // by number mod keptBlocks
	changed chan struct{}            // closed and replaced when tip grows
}

func newTail(tip *block.Block) *tail {
	t := &tail{tip: tip.Number, changed: make(chan struct{})}
	t.kept[tip.Number%keptBlocks] = tip
	return t
}

func (t *tail) height() block.Height {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.tip
}

// advance appends durable blocks.
func (t *tail) advance(blocks []*block.Block) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, b := range blocks {
		t.kept[b.Number%keptBlocks] = b
		t.tip = b.Number
	}
	close(t.changed)
	t.changed = make(chan struct{})
}

// get returns a durable block if it is in memory.
func (t *tail) get(height block.Height) *block.Block {
	t.mu.Lock()
	defer t.mu.Unlock()
	if b := t.kept[height%keptBlocks]; b != nil && b.Number == height {
		return b
	}
	return nil
}

// wait returns nil when the block of height is durable, and the reason when ctx
// or end is done before that.
func (t *tail) wait(ctx, end context.Context, height block.Height) error {
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

// durable returns a block that the store has.
func (o *Orderer) durable(height block.Height) (*block.Block, error) {
	if b := o.tail.get(height); b != nil {
		return b, nil
	}
	b, err := o.opts.Source(height)
	if err != nil {
		return nil, fmt.Errorf("raft: reading block %d: %w", height, err)
	}
	return b, nil
}
