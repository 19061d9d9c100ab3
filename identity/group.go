package identity

import "sync"

// GroupVerifier gives the verdicts of [Verify] to many goroutines that ask for
// one signature each. Those who ask while signatures are being verified are
// verified together next, as one batch: under load a verdict costs what it
// costs in a batch, and a lone caller waits for nobody.
type GroupVerifier struct {
	batch *BatchVerifier

	mu   sync.Mutex
	busy bool   // somebody verifies
	next *group // those who came meanwhile; nil if none
}

// group is verified by its first member, once those before are done.
type group struct {
	items []Item
	ok    []bool
	turn  chan struct{} // closed when the group's turn has come
	done  chan struct{} // closed when ok is filled
}

// maxGroup bounds a group, and so how long its members wait for each other.
const maxGroup = 512

// NewGroupVerifier makes one that verifies with v.
func NewGroupVerifier(v *BatchVerifier) *GroupVerifier { return &GroupVerifier{batch: v} }

// Verify reports whether sig is a signature of msg by pub. msg must not change
// until it returns.
func (g *GroupVerifier) Verify(pub PublicKey, msg []byte, sig Signature) bool {
	g.mu.Lock()
	switch {
	case !g.busy:
		g.busy = true
		g.mu.Unlock()
		ok := g.batch.Verify(pub, msg, sig)
		g.handOver()
		return ok
	case g.next != nil && len(g.next.items) >= maxGroup:
		g.mu.Unlock()
		return g.batch.Verify(pub, msg, sig)
	case g.next == nil:
		g.next = &group{turn: make(chan struct{}), done: make(chan struct{})}
	}
	mine := g.next
	i := len(mine.items)
	mine.items = append(mine.items, Item{Key: pub, Message: msg, Signature: sig})
	g.mu.Unlock()
	if i == 0 {
		<-mine.turn
		mine.ok = make([]bool, len(mine.items))
		g.batch.VerifyBatch(mine.items, mine.ok)
		close(mine.done)
		g.handOver()
	} else {
		<-mine.done
	}
	return mine.ok[i]
}

// handOver gives the turn to the group that has gathered. From then on nobody
// joins it.
func (g *GroupVerifier) handOver() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.busy = g.next != nil; g.busy {
		close(g.next.turn)
		g.next = nil
	}
}
