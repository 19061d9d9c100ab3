package pbft

import (
	"slices"

	"github.com/tallystick/tallystick/ordering"
)

// maxFetch is how many blocks one message asks for.
const maxFetch = 16

// resendSlots is how many sequences of votes one report brings back.
const resendSlots = 16

// fetching is the state of asking for blocks.
type fetching struct {
	peer int    // whom to ask
	upto uint64 // last block asked for
	at   uint64 // tick
}

// report tells everybody where this member stands.
func (m *Machine) report() {
	r := &Report{
		Epoch: m.opts.Members.Epoch, View: m.view, Changing: m.changing,
		Height: m.height, Durable: m.durable, Stable: m.stable,
	}
	if m.own.Sequence != 0 {
		r.Vote = m.own
	} else {
		r.Vote.Epoch = r.Epoch
	}
	m.send(ordering.ToAll, r)
}

// onReport sends a member what it seems to lack.
func (m *Machine) onReport(from int, r *Report) {
	last := &m.reports[from]
	stuck := last.stuck == r.Height
	last.stuck = r.Height
	last.height = max(last.height, r.Durable)
	if r.Vote.Sequence != 0 {
		m.onCheckpoint(from, &r.Vote)
	}
	// However often a member reports, it gets its answer once in a while.
	if last.answered != 0 && m.tick-last.answered < (m.opts.StatusTicks+1)/2 {
		return
	}
	last.answered = m.tick
	if r.Stable < m.stable && len(m.stableVotes) > 0 {
		m.send(from, &Stable{Epoch: r.Epoch, Sequence: m.stable, Hash: m.stableHash, Votes: m.stableVotes})
	}
	switch {
	case m.changing && r.View <= m.view:
		if vc := m.changes[m.opts.Self]; vc != nil {
			m.send(from, vc)
		}
	case r.View < m.view || r.View == m.view && r.Changing:
		if m.newView != nil && !m.changing {
			m.send(from, m.newView)
		}
	case r.View == m.view && stuck:
		m.resend(from, r.Height)
	}
}

// resend repeats this member's part in the sequences after height.
func (m *Machine) resend(to int, height uint64) {
	for seq := max(height, m.stable) + 1; seq <= min(height+resendSlots, m.high()); seq++ {
		s := m.seen(seq)
		if s == nil || !s.accepted || !s.present {
			continue
		}
		epoch := m.opts.Members.Epoch
		own := s.prepares[m.opts.Self]
		switch {
		case !own.given:
		case m.leads() && seq > m.plan.max:
			m.send(to, &PrePrepare{Epoch: epoch, View: m.view, Value: s.value, Txs: s.txs, Signature: own.signature})
		default:
			m.send(to, &Vote{Epoch: epoch, Phase: Prepare, View: m.view, Value: s.value, Signature: own.signature})
		}
		if own := s.commits[m.opts.Self]; own.given && own.view == m.view {
			m.send(to, &Vote{Epoch: epoch, Phase: Commit, View: m.view, Value: own.value, Signature: own.signature})
		}
	}
}

// target returns a block that at least one honest member has durably: f+1 claim
// it, or a quorum signed it.
func (m *Machine) target() uint64 {
	target := m.plan.min
	if m.proof != nil {
		target = max(target, m.proof.Sequence)
	}
	if m.n == 1 {
		return target
	}
	list := m.claims[:0]
	for i := range m.reports {
		if i != m.opts.Self {
			list = append(list, m.reports[i].height)
		}
	}
	slices.Sort(list)
	m.claims = list
	return min(max(target, list[len(list)-1-m.f]), m.end())
}

// catchUp asks for blocks that others have, one member after another. Each block
// comes with its own proof.
func (m *Machine) catchUp() {
	target := m.target()
	if target <= m.height {
		return
	}
	waits := m.tick - m.fetch.at
	if m.fetch.upto > m.height {
		if waits < m.opts.FetchTicks {
			return
		}
		m.fetch.peer++
	} else if target <= m.stable+m.opts.Window && m.tick-max(m.moved, m.fetch.at) < m.opts.FetchTicks && m.fetch.at == 0 {
		return // the votes may be on their way
	}
	for range m.n {
		peer := m.fetch.peer % m.n
		if peer != m.opts.Self && (m.reports[peer].height > m.height || m.plan.min > m.height || m.proof != nil) {
			m.fetch = fetching{peer, min(target, m.height+maxFetch), m.tick}
			m.send(peer, &Fetch{Epoch: m.opts.Members.Epoch, From: m.height + 1, Upto: m.fetch.upto})
			return
		}
		m.fetch.peer++
	}
}

// onDecided takes a block that proves itself.
func (m *Machine) onDecided(d *Decided) {
	seq := d.Value.Sequence
	if seq <= m.height || seq > m.height+4*maxFetch || seq > m.end() {
		return
	}
	m.fetched[seq] = d
}

// serve passes a request for durable blocks to the driver.
func (m *Machine) serve(epoch uint64, to int, from, upto uint64) {
	if epoch < m.opts.Members.Epoch {
		upto = min(upto, m.opts.Members.First-1)
	}
	if upto = min(upto, m.durable); from <= upto && m.out.Fault == nil {
		m.out.Serve = append(m.out.Serve, ordering.Range{Epoch: epoch, To: to, From: from, Upto: upto})
	}
}

// serveBehind helps a member that has not reached this epoch.
func (m *Machine) serveBehind(v ordering.Verified) {
	switch msg := v.Message().(type) {
	case *Fetch:
		m.serve(v.Epoch(), v.From(), msg.From, msg.Upto)
	case *Report:
		m.serve(v.Epoch(), v.From(), msg.Height+1, msg.Height+maxFetch)
	}
}

// askBatches asks for the transactions of what is accepted or decided here by
// digest only.
func (m *Machine) askBatches() {
	if m.changing || m.mut.hideBatches {
		return
	}
	for seq := m.height + 1; seq <= m.high(); seq++ {
		s := m.seen(seq)
		if s == nil || s.decided || s.accepted && s.present || s.askedAt != 0 && m.tick-s.askedAt < m.opts.FetchTicks {
			continue
		}
		value := s.value
		if !s.accepted {
			var ok bool
			if value, ok = m.winner(s); !ok {
				continue
			}
		}
		s.askedAt = m.tick
		s.asked++
		if peer := (m.opts.Self + s.asked) % m.n; peer != m.opts.Self {
			m.send(peer, &FetchBatch{Epoch: m.opts.Members.Epoch, Sequence: seq, Digest: value.Batch})
		}
	}
}

// onFetchBatch answers with the transactions of a digest.
func (m *Machine) onFetchBatch(from int, f *FetchBatch) {
	if s := m.seen(f.Sequence); s != nil {
		if txs, ok := s.body(f.Digest); ok {
			m.send(from, &Batch{Epoch: m.opts.Members.Epoch, Sequence: f.Sequence, Digest: f.Digest, Txs: txs})
			return
		}
	}
	m.serve(m.opts.Members.Epoch, from, f.Sequence, f.Sequence)
}

// onBatch takes transactions that were asked for.
func (m *Machine) onBatch(b *Batch) {
	s := m.seen(b.Sequence)
	if s == nil || s.decided || m.changing { // between views nobody votes
		return
	}
	switch {
	case s.accepted && !s.present && s.value.Batch == b.Digest:
		s.keep(b.Digest, b.Txs)
		s.txs, s.present = b.Txs, true
		s.refs = m.pool.assign(s.txs, s.sequence)
		m.prepare(s)
	case !s.accepted:
		if value, ok := m.winner(s); !ok || value.Batch != b.Digest {
			return
		}
		s.keep(b.Digest, b.Txs)
	}
	m.conclude(s)
}
