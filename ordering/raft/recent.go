package raft

import "sync"

// recent knows the transactions of the last blocks. What it answers is a function of
// those blocks alone, so that all orderers, and the same one after a restart,
// leave out the same duplicates.
//
// Beside them it has what this orderer, while leader, has taken for an entry.
type recent struct {
	mu       sync.RWMutex
	ordered  map[content]struct{}
	blocks   [][]content // ring: of block h at h mod len(blocks)
	proposed map[content]struct{}
}

// newRecent remembers the transactions of so many blocks.
func newRecent(blocks uint64) *recent {
	return &recent{
		ordered:  make(map[content]struct{}),
		blocks:   make([][]content, max(blocks, 1)),
		proposed: make(map[content]struct{}),
	}
}

// reset forgets all blocks.
func (r *recent) reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.ordered)
	clear(r.blocks)
}

// has reports whether a recent block contains it.
func (r *recent) has(c content) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	_, ok := r.ordered[c]
	return ok
}

// admit makes items, which it overwrites, the transactions of block number, which
// follows the last one, and returns those that are left: neither a recent block
// has them nor do they stand in items before. If none is left there is no block.
func (r *recent) admit(number uint64, items []item) []item {
	r.mu.Lock()
	defer r.mu.Unlock()
	kept := items[:0]
	for _, it := range items {
		if _, ok := r.ordered[it.content]; !ok {
			r.ordered[it.content] = struct{}{}
			delete(r.proposed, it.content)
			kept = append(kept, it)
		}
	}
	if len(kept) == 0 {
		return kept
	}
	slot := &r.blocks[number%uint64(len(r.blocks))]
	for _, c := range *slot {
		delete(r.ordered, c)
	}
	*slot = (*slot)[:0]
	for i := range kept {
		*slot = append(*slot, kept[i].content)
	}
	return kept
}

// newReign forgets what was taken in former reigns.
func (r *recent) newReign() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.proposed)
}

// claim returns those of items, which it overwrites, that are neither in a recent
// block nor taken already, and takes them.
func (r *recent) claim(items []item) []item {
	r.mu.Lock()
	defer r.mu.Unlock()
	kept := items[:0]
	for _, it := range items {
		if _, ok := r.ordered[it.content]; ok {
			continue
		}
		if _, ok := r.proposed[it.content]; ok {
			continue
		}
		r.proposed[it.content] = struct{}{}
		kept = append(kept, it)
	}
	return kept
}
