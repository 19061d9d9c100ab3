package peer

import (
	"context"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/ordering"
)

// Feed gives a node's blocks to other members.
type Feed struct {
	tail   *ordering.Tail
	source func(block.Height) (*block.Block, error)
	end    context.Context
}

// NewFeed begins with the last block of a store. It ends with ctx.
func NewFeed(ctx context.Context, tip *block.Block, source func(block.Height) (*block.Block, error)) *Feed {
	return &Feed{tail: ordering.NewTail(tip), source: source, end: ctx}
}

// Add appends the block after the last one, which is durable.
func (f *Feed) Add(b *block.Block) { f.tail.Advance([]*block.Block{b}) }

// Deliver gives blocks as ordering.Service does.
func (f *Feed) Deliver(ctx context.Context, from block.Height, take func(*block.Block) error) error {
	for next := from; ; next++ {
		if err := f.tail.Wait(ctx, f.end, next); err != nil {
			return err
		}
		b := f.tail.Get(next)
		if b == nil {
			var err error
			if b, err = f.source(next); err != nil {
				return err
			}
		}
		if err := take(b); err != nil {
			return err
		}
	}
}
