package pbft

import (
	"github.com/tallystick/tallystick/identity"
	"github.com/tallystick/tallystick/ordering"
)

// repeatCheckpoint gives the vote for the stable checkpoint again after a restart:
// others may still need it.
func (m *Machine) repeatCheckpoint() {
	if len(m.stableVotes) > 0 {
		m.own = Checkpoint{Epoch: m.opts.Members.Epoch, Sequence: m.stable, Hash: m.stableHash}
		m.own.Signature = m.opts.Sign(CheckpointDigest(m.opts.Network, m.stable, m.stableHash))
	}
}

// voteCheckpoint votes for the latest checkpoint whose blocks are durable. It is a
// function of the chain: no crash makes a member vote for another hash.
func (m *Machine) voteCheckpoint() {
	for _, at := range m.hashes {
		if at.sequence > m.durable || at.sequence <= m.own.Sequence {
			continue
		}
		m.own = Checkpoint{Epoch: m.opts.Members.Epoch, Sequence: at.sequence, Hash: at.hash}
		m.own.Signature = m.opts.Sign(CheckpointDigest(m.opts.Network, at.sequence, at.hash))
		own := m.own
		m.send(ordering.ToAll, &own)
		m.onCheckpoint(m.opts.Self, &own)
	}
}

// onCheckpoint takes a checkpoint vote. Only what no honest member can be without
// is kept: as many votes of a member as fit into the window, the oldest going
// first.
func (m *Machine) onCheckpoint(from int, c *Checkpoint) {
	if c.Sequence <= m.stable || c.Sequence%m.opts.Checkpoint != 0 || c.Sequence > m.end() {
		return
	}
	kept := m.checkpoints[from]
	for i := range kept {
		if kept[i].sequence == c.Sequence {
			return
		}
	}
	if uint64(len(kept)) > m.opts.Window/m.opts.Checkpoint {
		kept = append(kept[:0], kept[1:]...)
	}
	m.checkpoints[from] = append(kept, mark{c.Sequence, c.Hash, c.Signature})
	m.stabilize()
}

// onStable takes the proof of a checkpoint: it moves the window once the blocks are
// here.
func (m *Machine) onStable(s *Stable) {
	if s.Sequence <= m.stable || s.Sequence%m.opts.Checkpoint != 0 || s.Sequence > m.end() {
		return
	}
	if m.proof == nil || m.proof.Sequence < s.Sequence {
		m.proof = s
		m.stabilize()
	}
}

// stabilize moves the window to the highest checkpoint that a quorum voted for
// and whose blocks are durable here.
func (m *Machine) stabilize() {
	for i := len(m.hashes) - 1; i >= 0; i-- {
		at := m.hashes[i]
		if at.sequence > m.durable || at.sequence <= m.stable {
			continue
		}
		if p := m.proof; p != nil && p.Sequence == at.sequence {
			if p.Hash != at.hash {
				m.fail("block %d has hash %s, and a quorum signed %s", at.sequence, at.hash, p.Hash)
				return
			}
			m.settleAt(at, p.Votes)
			return
		}
		votes, others := m.checkpointVotes(at)
		if others >= m.f+1 && m.n > 1 {
			m.fail("block %d has hash %s, and %d members signed another one", at.sequence, at.hash, others)
			return
		}
		if len(votes) >= m.q || m.mut.loneCheckpoint && len(votes) > 0 {
			m.settleAt(at, votes[:min(m.q, len(votes))])
			return
		}
	}
}

// checkpointVotes returns the votes for a checkpoint, in the order of members, and
// how many members signed another hash at its sequence.
func (m *Machine) checkpointVotes(at mark) (votes []identity.Vote, others int) {
	for i := range m.checkpoints {
		for _, c := range m.checkpoints[i] {
			switch {
			case c.sequence != at.sequence:
			case c.hash == at.hash:
				votes = append(votes, identity.Vote{Member: uint16(i), Signature: c.signature})
			default:
				others++
			}
		}
	}
	return votes, others
}

// settleAt makes a checkpoint stable: everything up to it is forgotten.
func (m *Machine) settleAt(at mark, votes []identity.Vote) {
	m.stable, m.stableHash, m.stableVotes = at.sequence, at.hash, votes
	if m.proof != nil && m.proof.Sequence <= m.stable {
		m.proof = nil
	}
	m.persistStable()
	m.out.Forget = max(m.out.Forget, m.stable)
	for i := range m.slots {
		if s := &m.slots[i]; s.sequence != 0 && s.sequence <= m.stable {
			*s = slot{prepares: s.prepares, commits: s.commits}
		}
	}
	for i := range m.checkpoints {
		m.checkpoints[i] = above(m.checkpoints[i], m.stable)
	}
	m.hashes = above(m.hashes, m.stable)
	// Sequences that come into the window may be ones that the view re-proposed.
	for seq := m.stable + 1; seq <= min(m.plan.max, m.high()); seq++ {
		m.slot(seq)
	}
}

// above keeps the marks after a sequence.
func above(marks []mark, sequence uint64) []mark {
	kept := marks[:0]
	for _, at := range marks {
		if at.sequence > sequence {
			kept = append(kept, at)
		}
	}
	return kept
}
