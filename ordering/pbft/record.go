package pbft

import (
	"fmt"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/identity"
	"github.com/tallystick/tallystick/ordering"
)

// The kinds of records. Those of no sequence replace one another; those of a
// sequence go with it.
const (
	recordView     = 1 // epoch, view, changing
	recordNewView  = 2 // the message that began the view
	recordStable   = 3 // stable checkpoint with its votes
	recordAccepted = 4 // value and batch, for each view: what this member prepared
	recordPrepared = 5 // certificate of the highest view: what this member committed to
)

func (m *Machine) persist(key ordering.RecordKey, value []byte) {
	if m.out.Fault == nil {
		m.out.Persist = append(m.out.Persist, ordering.Record{Key: key, Value: value})
	}
}

// persistView is synced before a resignation is sent: a member that forgot it
// could vote again in a view that others were told it has left.
func (m *Machine) persistView() {
	b := ordering.AppendUint64(nil, m.opts.Members.Epoch)
	b = ordering.AppendUint64(b, m.view)
	m.persist(ordering.RecordKey{Kind: recordView}, ordering.AppendBool(b, m.changing))
}

func (m *Machine) persistNewView() {
	m.persist(ordering.RecordKey{Kind: recordNewView}, m.newView.AppendTo(nil))
}

func (m *Machine) persistStable() {
	b := ordering.AppendUint64(nil, m.opts.Members.Epoch)
	b = ordering.AppendUint64(b, m.stable)
	b = append(b, m.stableHash[:]...)
	m.persist(ordering.RecordKey{Kind: recordStable}, ordering.AppendVotes(b, m.stableVotes))
}

// persistAccepted is synced before the prepare vote is sent: it keeps this member
// from preparing another value of the view, and the batch from being lost
// with those who prepared it.
func (m *Machine) persistAccepted(s *slot) {
	size := 128
	for _, tx := range s.txs {
		size += block.TxSizeInBlock(tx) + 4
	}
	b := ordering.AppendUint64(make([]byte, 0, size), m.view)
	b = ordering.AppendTxs(appendValue(b, s.value), s.txs)
	m.persist(ordering.RecordKey{Sequence: s.sequence, Kind: recordAccepted, View: m.view}, b)
}

// persistPrepared is synced before the commit vote is sent: a view change of this
// member must name what it committed to.
func (m *Machine) persistPrepared(s *slot) {
	p := s.prepared
	b := ordering.AppendUint64(nil, p.View)
	b = ordering.AppendVotes(appendValue(b, p.Value), p.Votes)
	m.persist(ordering.RecordKey{Sequence: s.sequence, Kind: recordPrepared}, b)
}

// restore takes up where the records end.
func (m *Machine) restore(records []ordering.Record) error {
	for i := range records {
		if err := m.restoreWhole(&records[i]); err != nil {
			return err
		}
	}
	for i := range records {
		if err := m.restoreSlot(&records[i]); err != nil {
			return err
		}
	}
	if m.out.Fault != nil {
		return m.out.Fault
	}
	m.resume()
	return nil
}

// restoreWhole restores checkpoint and view, on which the slots depend.
func (m *Machine) restoreWhole(r *ordering.Record) error {
	d := ordering.NewDecoder(r.Value)
	switch r.Key.Kind {
	case recordView:
		epoch, view, changing := d.Uint64(), d.Uint64(), d.Bool()
		if epoch == m.opts.Members.Epoch {
			m.view, m.changing = view, changing
		}
	case recordStable:
		epoch, stable, hash, votes := d.Uint64(), d.Uint64(), d.Hash(), d.Votes()
		if epoch != m.opts.Members.Epoch {
			break
		}
		if stable > m.durable {
			return fmt.Errorf("pbft: checkpoint %d is on record, and the last durable block is %d", stable, m.durable)
		}
		m.stable, m.stableHash, m.stableVotes = stable, hash, votes
		m.hashes = above(m.hashes, stable)
		m.plan.max = stable
	case recordNewView:
		msg, err := Decode(r.Value)
		nv, ok := msg.(*NewView)
		if err != nil || !ok {
			return fmt.Errorf("pbft: the record of the view is damaged: %v", err)
		}
		if nv.Epoch == m.opts.Members.Epoch {
			m.newView = nv
		}
		return nil
	default:
		return nil
	}
	if err := d.End(); err != nil {
		return fmt.Errorf("pbft: record %+v is damaged: %w", r.Key, err)
	}
	return nil
}

// restoreSlot restores what is known about a sequence.
func (m *Machine) restoreSlot(r *ordering.Record) error {
	if r.Key.Kind != recordAccepted && r.Key.Kind != recordPrepared {
		return nil
	}
	d := ordering.NewDecoder(r.Value)
	view, value := d.Uint64(), decodeValue(d)
	var txs []*block.Tx
	var votes []identity.Vote
	if r.Key.Kind == recordAccepted {
		txs = d.Txs()
	} else {
		votes = d.Votes()
	}
	if err := d.End(); err != nil {
		return fmt.Errorf("pbft: record %+v is damaged: %w", r.Key, err)
	}
	if value.Sequence != r.Key.Sequence || value.Sequence > m.stable+m.opts.Window {
		return fmt.Errorf("pbft: record %+v is of sequence %d outside of the window", r.Key, value.Sequence)
	}
	if value.Sequence <= m.stable {
		return nil
	}
	s := m.blank(value.Sequence)
	if r.Key.Kind == recordPrepared {
		s.prepared = &Prepared{View: view, Value: value, Votes: votes}
		return nil
	}
	s.keep(value.Batch, txs)
	if view == m.view && !m.changing {
		s.accepted, s.value, s.txs, s.present, s.since = true, value, txs, true, m.tick
	}
	return nil
}

// blank returns the slot of a sequence without letting the view propose there.
func (m *Machine) blank(sequence uint64) *slot {
	s := &m.slots[sequence%m.opts.Window]
	if s.sequence != sequence {
		both := make([]ballot, 2*m.n)
		*s = slot{sequence: sequence, prepares: both[:m.n:m.n], commits: both[m.n:]}
	}
	return s
}

// resume brings a restored machine into its view: the votes that were given are
// given again, and what was not voted on yet is.
func (m *Machine) resume() {
	if m.newView != nil && (m.changing || m.newView.View != m.view) {
		m.newView = nil
	}
	if m.view > 0 && m.newView == nil {
		// Without the message that began the view nothing was voted in it.
		m.changing = true
	}
	if m.newView != nil {
		m.plan = planOf(m.newView.Changes, m.mut)
	}
	m.next = max(m.plan.max, m.height) + 1
	for i := range m.slots {
		s := &m.slots[i]
		if s.sequence == 0 || !s.accepted {
			continue
		}
		m.next = max(m.next, s.sequence+1)
		m.last = max(m.last, s.value.Proposed)
		s.refs = m.pool.assign(s.txs, s.sequence)
		vote := m.vote(Prepare, s.value)
		s.keepVote(s.prepares, m.opts.Self, m.view, s.value, vote.Signature)
		if p := s.prepared; p != nil && p.View == m.view {
			s.committed = true
			vote := m.vote(Commit, p.Value)
			s.keepVote(s.commits, m.opts.Self, m.view, p.Value, vote.Signature)
		}
		m.conclude(s)
	}
	for seq := m.stable + 1; seq <= min(m.plan.max, m.high()); seq++ {
		if s := m.seen(seq); s != nil {
			m.adopt(s)
		} else {
			m.slot(seq)
		}
	}
	if m.changing {
		m.changes[m.opts.Self] = m.resignation()
	}
	m.reenlist()
}
