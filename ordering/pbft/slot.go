package pbft

import (
	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/identity"
	"github.com/tallystick/tallystick/ordering"
)

// slot is one sequence of the window.
type slot struct {
	sequence uint64 // 0 while the slot is unused

	// What the present view proposed.
	accepted  bool
	value     identity.Commit
	present   bool   // txs are the value's
	since     uint64 // tick of the acceptance, or of the refusal of a proposal
	refused   bool
	committed bool // this member's commit vote is given in this view
	txs       []*block.Tx
	refs      []ref    // of txs, where they are assigned to this slot
	prepares  []ballot // by member
	commits   []ballot

	// What stays whatever the view.
	prepared *Prepared // certificate of the highest view
	bodies   []body    // every batch that was accepted here
	asked    int       // members asked for a missing batch
	askedAt  uint64    // tick

	decided bool
	outcome identity.Commit
	cert    identity.Certificate
}

// ballot is a member's vote of the present view.
type ballot struct {
	given     bool
	view      uint64
	value     identity.Commit
	signature identity.Signature
}

type body struct {
	digest block.Hash
	txs    []*block.Tx
}

var emptyBatch = block.TxDigest(nil)

// null is the value of a sequence that a new view fills.
func null(sequence uint64) identity.Commit {
	return identity.Commit{Sequence: sequence, Batch: emptyBatch}
}

// slot returns the slot of a sequence of the window, or nil.
func (m *Machine) slot(sequence uint64) *slot {
	if sequence <= m.stable || sequence > m.high() {
		return nil
	}
	s := &m.slots[sequence%m.opts.Window]
	if s.sequence != sequence {
		*s = slot{sequence: sequence, prepares: s.prepares, commits: s.commits}
		if s.prepares == nil {
			both := make([]ballot, 2*m.n)
			s.prepares, s.commits = both[:m.n:m.n], both[m.n:]
		}
		clear(s.prepares)
		clear(s.commits)
		m.adopt(s)
	}
	return s
}

// seen returns the slot of a sequence only if something is known about it.
func (m *Machine) seen(sequence uint64) *slot {
	if sequence <= m.stable || sequence > m.high() {
		return nil
	}
	if s := &m.slots[sequence%m.opts.Window]; s.sequence == sequence {
		return s
	}
	return nil
}

// open forgets what earlier views proposed.
func (s *slot) open() {
	s.accepted, s.present, s.refused, s.committed = false, false, false, false
	s.value, s.txs, s.refs, s.since = identity.Commit{}, nil, nil, 0
	clear(s.prepares)
	clear(s.commits)
}

func (s *slot) body(digest block.Hash) ([]*block.Tx, bool) {
	if digest == emptyBatch {
		return nil, true
	}
	for i := range s.bodies {
		if s.bodies[i].digest == digest {
			return s.bodies[i].txs, true
		}
	}
	return nil, false
}

func (s *slot) keep(digest block.Hash, txs []*block.Tx) {
	if _, ok := s.body(digest); !ok {
		s.bodies = append(s.bodies, body{digest, txs})
	}
}

// onPrePrepare takes a fresh proposal of the primary of this view.
func (m *Machine) onPrePrepare(from int, pp *PrePrepare) {
	s := m.slot(pp.Value.Sequence)
	if s == nil || s.accepted && !m.mut.acceptTwice || pp.Value.Sequence <= m.plan.max {
		return // an equivocating primary finds the first proposal only
	}
	if s.decided && s.outcome != pp.Value {
		return
	}
	s.keepVote(s.prepares, from, pp.View, pp.Value, pp.Signature)
	refs, ok := m.acceptable(pp)
	if !ok {
		if !s.refused {
			s.refused, s.since = true, m.tick
		}
		return
	}
	s.keep(pp.Value.Batch, pp.Txs)
	m.accept(s, pp.Value, refs)
	m.conclude(s)
}

// acceptable are the rules for fresh proposals. What a new view re-proposes has
// passed them at honest members, and time has gone on since. The transactions of
// an acceptable proposal are assigned to its sequence.
func (m *Machine) acceptable(pp *PrePrepare) ([]ref, bool) {
	v := &pp.Value
	if len(pp.Txs) == 0 || len(pp.Txs) > block.MaxTxsPerBlock {
		return nil, false
	}
	if off := v.Proposed - m.now; off > m.opts.MaxSkew || off < -m.opts.MaxSkew {
		return nil, false
	}
	if m.mut.noDedup {
		return m.pool.assign(pp.Txs, v.Sequence), true
	}
	return m.pool.claim(pp.Txs, v.Sequence)
}

// accept makes value what this view decides on at the slot, and votes for it as
// soon as its batch is there.
func (m *Machine) accept(s *slot, value identity.Commit, refs []ref) {
	s.accepted, s.value, s.since, s.refused = true, value, m.tick, false
	s.txs, s.present = s.body(value.Batch)
	s.refs = refs
	if s.present {
		m.prepare(s)
	}
}

// prepare votes for the accepted value.
func (m *Machine) prepare(s *slot) {
	if !m.mut.forgetAccepted {
		m.persistAccepted(s)
	}
	vote := m.vote(Prepare, s.value)
	s.keepVote(s.prepares, m.opts.Self, m.view, s.value, vote.Signature)
	// A fresh proposal is the primary's vote.
	if !m.leads() || s.sequence <= m.plan.max {
		m.send(ordering.ToAll, vote)
	}
	m.progress(s)
}

func (m *Machine) vote(phase Phase, value identity.Commit) *Vote {
	v := &Vote{Epoch: m.opts.Members.Epoch, Phase: phase, View: m.view, Value: value}
	v.Signature = m.opts.Sign(v.digest(m.opts.Network))
	return v
}

// onVote takes a vote of this view. Of several votes of one member the first
// counts: honest members have one.
func (m *Machine) onVote(from int, v *Vote) {
	s := m.slot(v.Value.Sequence)
	if s == nil {
		return
	}
	if v.Phase == Prepare {
		if m.keepVote(s, s.prepares, from, v) {
			m.progress(s)
		}
	} else if m.keepVote(s, s.commits, from, v) {
		m.conclude(s)
	}
}

func (m *Machine) keepVote(s *slot, ballots []ballot, from int, v *Vote) bool {
	return s.keepVote(ballots, from, v.View, v.Value, v.Signature)
}

func (s *slot) keepVote(ballots []ballot, member int, view uint64, value identity.Commit, sig identity.Signature) bool {
	b := &ballots[member]
	if b.given {
		return false
	}
	*b = ballot{true, view, value, sig}
	return true
}

// count returns how many members voted for a value.
func count(ballots []ballot, value *identity.Commit) int {
	n := 0
	for i := range ballots {
		if ballots[i].given && ballots[i].value == *value {
			n++
		}
	}
	return n
}

// quorum collects the votes of q members for a value, in the order of members.
func (m *Machine) quorum(ballots []ballot, value *identity.Commit) []identity.Vote {
	votes := make([]identity.Vote, 0, m.q)
	for i := range ballots {
		if b := &ballots[i]; b.given && b.value == *value && len(votes) < m.q {
			votes = append(votes, identity.Vote{Member: uint16(i), Signature: b.signature})
		}
	}
	return votes
}

// progress commits to the accepted value once a quorum has prepared it.
func (m *Machine) progress(s *slot) {
	if !s.accepted || !s.present || s.committed {
		return
	}
	if count(s.prepares, &s.value) < m.q {
		return
	}
	s.committed = true
	s.prepared = &Prepared{View: m.view, Value: s.value, Votes: m.quorum(s.prepares, &s.value)}
	if !m.mut.forgetPrepared {
		m.persistPrepared(s)
	}
	vote := m.vote(Commit, s.value)
	s.keepVote(s.commits, m.opts.Self, m.view, s.value, vote.Signature)
	m.send(ordering.ToAll, vote)
	m.conclude(s)
}

// conclude decides the slot once a quorum of this view has committed. That needs
// neither this member's vote nor its acceptance: a quorum of others is proof.
func (m *Machine) conclude(s *slot) {
	if s.decided {
		return
	}
	value, ok := m.winner(s)
	if !ok {
		return
	}
	if txs, ok := s.body(value.Batch); ok {
		m.decide(s, value, txs, identity.Certificate{
			Kind: identity.CommitVotes, View: m.view, Proposed: value.Proposed, Votes: m.quorum(s.commits, &value),
		})
	}
}

// winner returns the value that a quorum has committed to.
func (m *Machine) winner(s *slot) (identity.Commit, bool) {
	if s.accepted {
		return s.value, count(s.commits, &s.value) >= m.q
	}
	for i := range s.commits {
		if b := &s.commits[i]; b.given && count(s.commits, &b.value) >= m.q {
			return b.value, true
		}
	}
	return identity.Commit{}, false
}

// decide closes the slot. Whatever the view decides, it is no idle view.
func (m *Machine) decide(s *slot, value identity.Commit, txs []*block.Tx, cert identity.Certificate) {
	s.decided, s.outcome, s.cert = true, value, cert
	s.keep(value.Batch, txs)
	m.attempts = 0
}
