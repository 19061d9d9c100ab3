package solo

import (
	"crypto/sha256"

	"github.com/tallystick/tallystick/blockstore/block"
)

// content identifies a transaction by all of its bytes. The id would not do: it
// leaves out the signature, so whoever sees a transaction on its way could hand
// in a copy with a false one first and have the genuine one dropped.
type content [sha256.Size]byte

func contentOf(tx *block.Tx) content { return sha256.Sum256(tx.Encode()) }

// recent remembers transactions that were ordered or are about to be, each as
// long as a block may contain it.
type recent struct {
	remember uint64
	known    map[content]struct{}
	expiring map[block.Height][]content // by the last height that may contain them
}

func newRecent(remember uint64) *recent {
	return &recent{
		remember: remember,
		known:    make(map[content]struct{}),
		expiring: make(map[block.Height][]content),
	}
}

// add notes a transaction that block height or a later one is going to contain,
// and reports whether it is new.
func (r *recent) add(c content, validUntil, height block.Height) bool {
	if _, ok := r.known[c]; ok {
		return false
	}
	last := max(height, min(validUntil, height+r.remember))
	r.known[c] = struct{}{}
	r.expiring[last] = append(r.expiring[last], c)
	return true
}

// passed forgets what no block above height may contain. Heights pass one by
// one.
func (r *recent) passed(height block.Height) {
	for _, c := range r.expiring[height] {
		delete(r.known, c)
	}
	delete(r.expiring, height)
}
