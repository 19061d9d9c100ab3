package flow

import (
	"sync"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/identity"
	"github.com/tallystick/tallystick/server/chain"
)

// waiter is one client that waits for a receipt. Exactly one of receipt and err
// is sent, at most once, into a channel that has room for it.
type waiter struct {
	id         block.TxID
	signature  identity.Signature
	validUntil block.Height
	answer     chan answer
	done       bool // answered or detached; guarded by waiters.mu
}

type answer struct {
	receipt *chain.Receipt
	err     error
}

// waiters are the clients that wait, by transaction and by the last block that
// may contain it.
type waiters struct {
	mu      sync.Mutex
	byID    map[block.TxID][]*waiter
	expires map[block.Height]map[*waiter]struct{}
	ended   error // what every further waiter gets at once; nil while the flow runs
}

func newWaiters() *waiters {
	return &waiters{byID: map[block.TxID][]*waiter{}, expires: map[block.Height]map[*waiter]struct{}{}}
}

// add registers a client. An error is the end of the flow.
func (ws *waiters) add(tx *block.Tx) (*waiter, error) {
	id, validUntil := tx.ID(), tx.ValidUntil
	w := &waiter{id: id, signature: tx.Signature, validUntil: validUntil, answer: make(chan answer, 1)}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.ended != nil {
		return nil, ws.ended
	}
	ws.byID[id] = append(ws.byID[id], w)
	group := ws.expires[validUntil]
	if group == nil {
		group = map[*waiter]struct{}{}
		ws.expires[validUntil] = group
	}
	group[w] = struct{}{}
	return w, nil
}

// remove detaches a client that waits no longer.
func (ws *waiters) remove(w *waiter) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if w.done {
		return
	}
	list := ws.byID[w.id]
	for i := range list {
		if list[i] == w {
			list[i] = list[len(list)-1]
			list[len(list)-1] = nil
			list = list[:len(list)-1]
			break
		}
	}
	if len(list) == 0 {
		delete(ws.byID, w.id)
	} else {
		ws.byID[w.id] = list
	}
	ws.settle(w)
}

// settle takes a client out of the expiry index. The caller holds mu and takes
// it out of byID.
func (ws *waiters) settle(w *waiter) {
	w.done = true
	group := ws.expires[w.validUntil]
	delete(group, w)
	if len(group) == 0 {
		delete(ws.expires, w.validUntil)
	}
}

// block answers everybody whose transaction has a receipt in the block, and
// those whose transaction no later block may contain.
func (ws *waiters) block(b *block.Block, receipts []chain.Receipt, expired func(*waiter) error) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if len(ws.byID) == 0 {
		return
	}
	for i := range receipts {
		ws.receipt(&receipts[i], b.Txs[i])
	}
	// Any order: each gets the answer for its own transaction.
	for w := range ws.expires[b.Number] {
		w.answer <- answer{err: expired(w)}
		delete(ws.byID, w.id)
		ws.settle(w)
	}
}

// receipt answers those who wait for a transaction. Somebody may have put a copy
// with a false signature into the block: its receipt is nobody's but that of
// who sent this very copy.
func (ws *waiters) receipt(r *chain.Receipt, tx *block.Tx) {
	list := ws.byID[r.ID]
	if len(list) == 0 {
		return
	}
	rest := list[:0]
	for _, w := range list {
		if r.Final || r.Status == chain.Rejected && w.signature == tx.Signature {
			w.answer <- answer{receipt: r}
			ws.settle(w)
		} else {
			rest = append(rest, w)
		}
	}
	clear(list[len(rest):])
	if ws.byID[r.ID] = rest; len(rest) == 0 {
		delete(ws.byID, r.ID)
	}
}

// end answers everybody who waits, and everybody who comes later, with an error.
func (ws *waiters) end(err error) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.ended != nil {
		return
	}
	ws.ended = err
	for _, list := range ws.byID { // any order
		for _, w := range list {
			w.answer <- answer{err: err}
			w.done = true
		}
	}
	ws.byID, ws.expires = nil, nil
}

// count is the number of clients that wait.
func (ws *waiters) count() int {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	n := 0
	for _, list := range ws.byID {
		n += len(list)
	}
	return n
}
