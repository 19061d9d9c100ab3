package solo

import (
	"fmt"

	"github.com/tallystick/tallystick/blockstore/block"
)

// sealedAhead bounds how many blocks share a sync, and the memory of blocks
// that wait for one.
const sealedAhead = 64

// persist makes blocks durable, all that were sealed during one sync with the
// next one, and only then lets subscribers see them.
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
			o.stop(fmt.Errorf("solo: persisting block %d: %w", group[0].Number, err))
			return
		}
		o.tail.Advance(group)
	}
}
