package pbft

import (
	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/identity"
	"github.com/tallystick/tallystick/ordering"
)

// emit makes blocks of what is decided, in order.
func (m *Machine) emit() {
	for m.out.Fault == nil && m.height < m.end() {
		value, txs, cert, ok := m.following(m.height + 1)
		if !ok {
			return
		}
		b := &block.Block{
			Number:      m.height + 1,
			PrevHash:    m.hash,
			ConfigID:    m.opts.Members.ConfigID,
			Timestamp:   block.TimestampAfter(m.time, value.Proposed),
			Txs:         txs,
			Certificate: cert.Encode(),
		}
		m.height, m.hash, m.time = b.Number, b.Seal(), b.Timestamp
		m.moved = m.tick
		m.markHash(b.Number, m.hash)
		repeats := m.pool.ordered(txs, b.Number)
		m.out.Decided = append(m.out.Decided, ordering.Decision{Block: b, Repeats: repeats})
	}
}

// following returns the decision on a sequence: of its own slot, or as another
// member has proved it.
func (m *Machine) following(sequence uint64) (identity.Commit, []*block.Tx, *identity.Certificate, bool) {
	s := m.seen(sequence)
	if s != nil && s.decided {
		txs, _ := s.body(s.outcome.Batch)
		return s.outcome, txs, &s.cert, true
	}
	d := m.fetched[sequence]
	if d == nil {
		return identity.Commit{}, nil, nil, false
	}
	delete(m.fetched, sequence)
	cert := &identity.Certificate{Kind: identity.CommitVotes, View: d.View, Proposed: d.Value.Proposed, Votes: d.Votes}
	if s != nil {
		s.decided, s.outcome, s.cert = true, d.Value, *cert
		s.keep(d.Value.Batch, d.Txs)
	}
	return d.Value, d.Txs, cert, true
}

// markHash remembers the hash of a block at which a checkpoint is due.
func (m *Machine) markHash(sequence uint64, hash block.Hash) {
	if sequence%m.opts.Checkpoint == 0 && sequence > m.stable {
		m.hashes = append(m.hashes, mark{sequence: sequence, hash: hash})
	}
}
