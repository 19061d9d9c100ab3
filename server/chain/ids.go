package chain

import (
	"github.com/tallystick/tallystick/blockstore/block"
)

// idIndex holds the ids of transactions that were consumed and that a later
// block could contain again. It forgets an id with the block of its
// valid_until.
//
// A transaction whose valid_until lay too far ahead is rejected but consumes
// its id too, for as long as that takes. Such ids are not kept in memory, where
// their number would have no bound: they are looked up in the ledger, and
// farthest tells when that is needed at all.
type idIndex struct {
	known    map[block.TxID]struct{}
	expiring map[block.Height][]block.TxID // by valid_until
	farthest block.Height                  // largest valid_until of an id kept in the ledger only
}

func newIDIndex() *idIndex {
	return &idIndex{known: map[block.TxID]struct{}{}, expiring: map[block.Height][]block.TxID{}}
}

// has reports whether an id is known to be consumed. If it is not, inLedger
// tells that the ledger has to be asked too.
func (x *idIndex) has(id block.TxID, validUntil block.Height) (known, inLedger bool) {
	if _, ok := x.known[id]; ok {
		return true, false
	}
	return false, validUntil <= x.farthest
}

// add notes an id that was consumed in a block.
func (x *idIndex) add(id block.TxID, validUntil, height block.Height, window uint64) {
	switch {
	case validUntil <= height: // no later block may contain it
	case validUntil > height+window:
		x.farthest = max(x.farthest, validUntil)
	default:
		if _, ok := x.known[id]; !ok {
			x.known[id] = struct{}{}
			x.expiring[validUntil] = append(x.expiring[validUntil], id)
		}
	}
}

// passed forgets what no block above height may contain. Heights pass one by
// one.
func (x *idIndex) passed(height block.Height) {
	for _, id := range x.expiring[height] {
		delete(x.known, id)
	}
	delete(x.expiring, height)
}
