package raft

import (
	"fmt"

	"github.com/tallystick/tallystick/blockstore/block"
)

// sealedAhead bounds how many blocks share a sync, and the memory of blocks
// that wait for one.
const sealedAhead = 64

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
		o.tail.Advance(group)
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

// durable returns a block that the store has.
func (o *Orderer) durable(height block.Height) (*block.Block, error) {
	if b := o.tail.Get(height); b != nil {
		return b, nil
	}
	b, err := o.opts.Source(height)
	if err != nil {
		return nil, fmt.Errorf("raft: reading block %d: %w", height, err)
	}
	return b, nil
}
