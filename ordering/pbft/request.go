package pbft

import (
	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/identity"
	"github.com/tallystick/tallystick/ordering"
)

// forwardBytes is about how many bytes of transactions one message carries.
const forwardBytes = 1 << 20

// forward sends transactions to a member or everybody, in several messages if
// they are many.
func (m *Machine) forward(txs []*block.Tx, to int) {
	for len(txs) > 0 {
		n, size := 0, 0
		for n < len(txs) && (n == 0 || size+block.TxSizeInBlock(txs[n]) <= forwardBytes) && n < block.MaxTxsPerBlock {
			size += block.TxSizeInBlock(txs[n])
			n++
		}
		m.send(to, &Forward{Epoch: m.opts.Members.Epoch, Txs: txs[:n:n]})
		txs = txs[n:]
	}
}

// onForward takes transactions of another member's clients. They use that
// member's share of the room; what finds none is sent again by whoever cares.
func (m *Machine) onForward(from int, f *Forward) {
	elsewhere := max(m.height, m.target())
	for _, tx := range f.Txs {
		if _, room := m.pool.add(tx, from, m.height, m.tick, elsewhere); !room {
			return
		}
	}
}

// relay shows everybody what the primary has left lying for half the time it has:
// then everybody watches it. It does so again and again, also while this
// member is between views and others are not. What other members handed over is
// shown a little later: they may have vanished, or have told this member alone to
// make it resign alone.
func (m *Machine) relay() {
	half := m.opts.RequestTicks / 2
	if m.n == 1 || m.tick < m.grace+half || m.mut.noRelay {
		return
	}
	if m.tick-m.relayAt >= m.opts.RequestTicks {
		m.pool.relayed, m.relayAt = [2]uint64{}, m.tick
	}
	m.show(0, true, half)
	if late := half + half/2; m.tick >= m.grace+late {
		m.show(1, false, late)
	}
}

// show sends to everybody what waits for the given number of ticks: what came from
// this member's clients, or from others.
func (m *Machine) show(cursor int, own bool, age uint64) {
	for {
		txs, upto := m.pool.pick(m.opts.Self, own, m.pool.relayed[cursor], m.tick-age, forwardBytes)
		m.pool.relayed[cursor] = upto
		if len(txs) == 0 {
			return
		}
		m.forward(txs, ordering.ToAll)
	}
}

// reenlist hands what waits here to the primary of the view that begins.
func (m *Machine) reenlist() {
	m.pool.restart(m.leads(), m.tick)
	if m.changing || m.leads() {
		return
	}
	for from := m.pool.base; ; {
		txs, upto := m.pool.pick(m.opts.Self, true, from, m.tick, forwardBytes)
		if len(txs) == 0 {
			return
		}
		m.forward(txs, m.primary())
		from = upto
	}
}

// propose cuts batches while the window has room.
func (m *Machine) propose() {
	for m.mayPropose() {
		m.pool.cut.InFlight(int(m.next - 1 - m.height))
		batch, ok := m.pool.cut.Cut(int64(m.tick))
		if !ok {
			return
		}
		txs, refs := batch.Txs[:0], make([]ref, 0, len(batch.Txs))
		for _, tx := range batch.Txs {
			if r, ok := m.pool.claimOne(tx, m.next); ok {
				txs, refs = append(txs, tx), append(refs, r)
			}
		}
		if len(txs) > 0 {
			m.proposeBatch(txs, refs)
		}
	}
}

// mayPropose reports whether this primary may propose something new: only when
// it knows all transactions of what is decided or proposed already, for else it
// could repeat one.
func (m *Machine) mayPropose() bool {
	if m.stopped() || !m.leads() || m.pool.cut == nil || m.tick == 0 || m.height < m.plan.min {
		return false
	}
	m.next = max(m.next, m.height+1)
	if m.next > m.high() || m.next <= m.stable {
		return false
	}
	if limit := m.opts.MaxInFlight; limit > 0 && m.next-1-m.height >= uint64(limit) {
		return false
	}
	for seq := m.height + 1; seq <= m.plan.max; seq++ {
		if s := m.seen(seq); s == nil || !s.present && !s.decided {
			return false
		}
	}
	return true
}

func (m *Machine) proposeBatch(txs []*block.Tx, refs []ref) {
	s := m.slot(m.next)
	m.last = max(m.now, m.last+1)
	value := identity.Commit{Sequence: m.next, Batch: block.TxDigest(txs), Proposed: m.last}
	m.next++
	s.keep(value.Batch, txs)
	m.accept(s, value, refs)
	pp := &PrePrepare{Epoch: m.opts.Members.Epoch, View: m.view, Value: value, Txs: txs}
	pp.Signature = s.prepares[m.opts.Self].signature
	m.send(ordering.ToAll, pp)
	m.emit()
}
