package pbft

import (
	"slices"

	"github.com/tallystick/tallystick/identity"
	"github.com/tallystick/tallystick/ordering"
)

// maxDoublings bounds the growth of timeouts: about half a day in ticks of 10 ms.
const maxDoublings = 14

// timeout is how long a view gets before it must have ordered something, in
// ticks.
func (m *Machine) timeout() uint64 {
	return m.opts.RequestTicks << min(m.attempts, maxDoublings)
}

// watch changes the view when the primary, or the view change itself, takes too
// long.
func (m *Machine) watch() {
	if m.n == 1 {
		return
	}
	if m.target() > m.height {
		m.grace = m.tick // others go on: it is this member that is behind
		return
	}
	if m.changing {
		if m.started != 0 && m.tick-m.started >= m.timeout() {
			m.resign(m.view + 1)
		}
		return
	}
	if since, ok := m.oldest(); ok && m.tick-max(since, m.grace) >= m.timeout() {
		m.resign(m.view + 1)
	}
}

// oldest returns since when something waits: a transaction, or a proposal that is
// not decided in order.
func (m *Machine) oldest() (since uint64, ok bool) {
	if w := m.pool.oldest(m.height); w != nil {
		since, ok = w.since, true
	}
	for seq := m.height + 1; seq <= m.high(); seq++ {
		if s := m.seen(seq); s != nil && (s.accepted || s.refused) && (!ok || s.since < since) {
			since, ok = s.since, true
		}
	}
	return since, ok
}

// resign ends this member's part in all views before view.
func (m *Machine) resign(view uint64) {
	m.view, m.changing, m.started = view, true, 0
	m.attempts++
	if !m.mut.forgetView {
		m.persistView()
	}
	m.withdraw()
	vc := m.resignation()
	m.changes[m.opts.Self] = vc
	m.send(ordering.ToAll, vc)
	m.countChanges()
}

// withdraw makes what the view before had proposed wait again: this member cannot
// know whether the others go on with it.
func (m *Machine) withdraw() {
	for i := range m.slots {
		if s := &m.slots[i]; s.sequence != 0 && s.accepted && !s.decided {
			m.pool.release(s.refs, s.sequence)
			s.refs = nil
		}
	}
}

// resignation is the signed list of what earlier views may have decided.
func (m *Machine) resignation() *ViewChange {
	vc := &ViewChange{
		Epoch: m.opts.Members.Epoch, Member: uint16(m.opts.Self), View: m.view,
		Stable: m.stable, StableHash: m.stableHash, Proof: m.stableVotes,
	}
	for seq := m.stable + 1; seq <= m.stable+m.opts.Window; seq++ {
		if s := m.seen(seq); s != nil && s.prepared != nil && !m.mut.hidePrepared {
			vc.Prepared = append(vc.Prepared, *s.prepared)
		}
	}
	vc.Signature = m.opts.Sign(vc.Digest(m.opts.Network))
	return vc
}

// onViewChange takes a member's resignation. The latest one of each counts.
func (m *Machine) onViewChange(vc *ViewChange) {
	if vc.View < m.view || vc.View == m.view && !m.changing {
		return // the member hears of the view when it reports
	}
	if old := m.changes[vc.Member]; old != nil && old.View >= vc.View {
		return
	}
	m.changes[vc.Member] = vc
	if view := m.popular(); view > m.view {
		m.resign(view)
		return
	}
	m.countChanges()
}

// popular returns the highest view that f+1 members want, at least: one of them is
// honest and has a reason.
func (m *Machine) popular() uint64 {
	views := make([]uint64, 0, m.n)
	for _, vc := range m.changes {
		if vc != nil {
			views = append(views, vc.View)
		}
	}
	if len(views) <= m.f {
		return 0
	}
	slices.Sort(views)
	return views[len(views)-1-m.f]
}

// countChanges starts the clock of a view that a quorum wants, and begins the view
// at its primary.
func (m *Machine) countChanges() {
	if !m.changing {
		return
	}
	exact, wanted := 0, 0
	for _, vc := range m.changes {
		if vc != nil && vc.View == m.view {
			exact++
		}
		if vc != nil && vc.View >= m.view {
			wanted++
		}
	}
	if wanted >= m.q && m.started == 0 {
		m.started = max(m.tick, 1)
	}
	if exact >= m.q && m.primary() == m.opts.Self {
		m.begin()
	}
}

// begin begins the view at its primary.
func (m *Machine) begin() {
	nv := &NewView{Epoch: m.opts.Members.Epoch, View: m.view}
	for _, vc := range m.changes {
		if vc != nil && vc.View == m.view && len(nv.Changes) < m.q {
			nv.Changes = append(nv.Changes, vc)
		}
	}
	nv.Signature = m.opts.Sign(nv.Digest(m.opts.Network))
	m.send(ordering.ToAll, nv)
	m.install(nv)
}

// onNewView takes the beginning of a view.
func (m *Machine) onNewView(nv *NewView) {
	if nv.View > m.view || nv.View == m.view && m.changing {
		m.install(nv)
	}
}

// plan is what a new view proposes again: the sequences after min up to max.
type plan struct {
	min, max uint64
	values   []identity.Commit // of min+1 and on
}

// planOf computes what a quorum of view changes demands: from the highest stable
// checkpoint on, whatever has a prepared certificate, that of the highest view
// if there are several, and nothing in the gaps.
func planOf(changes []*ViewChange, mut mutation) plan {
	var p plan
	for _, vc := range changes {
		p.min = max(p.min, vc.Stable)
	}
	p.max = p.min
	for _, vc := range changes {
		if k := len(vc.Prepared); k > 0 && !mut.ignoreCertificates {
			p.max = max(p.max, vc.Prepared[k-1].Value.Sequence)
		}
	}
	p.values = make([]identity.Commit, p.max-p.min)
	views := make([]uint64, len(p.values)) // 1 + view of the certificate
	for i := range p.values {
		p.values[i] = null(p.min + 1 + uint64(i))
	}
	for _, vc := range changes {
		for i := range vc.Prepared {
			c := &vc.Prepared[i]
			if c.Value.Sequence <= p.min || c.Value.Sequence > p.max {
				continue
			}
			at := c.Value.Sequence - p.min - 1
			better := c.View+1 > views[at]
			if mut.lowestView {
				better = views[at] == 0 || c.View+1 < views[at]
			}
			if better {
				p.values[at], views[at] = c.Value, c.View+1
			}
		}
	}
	return p
}

// install begins a view here.
func (m *Machine) install(nv *NewView) {
	m.view, m.changing, m.started = nv.View, false, 0
	m.newView = nv
	m.plan = planOf(nv.Changes, m.mut)
	m.persistNewView()
	m.persistView()
	for i := range m.changes {
		if vc := m.changes[i]; vc != nil && vc.View <= m.view {
			m.changes[i] = nil
		}
	}
	m.reopen()
	m.next = max(m.plan.max, m.height) + 1
	m.grace = m.tick
	m.reenlist()
	m.replay()
}

// reopen lets the new view propose at all slots.
func (m *Machine) reopen() {
	for i := range m.slots {
		s := &m.slots[i]
		if s.sequence == 0 {
			continue
		}
		if s.accepted {
			m.pool.release(s.refs, s.sequence)
		}
		// What this view itself or a later one decided may have come first.
		if s.decided && s.cert.View < m.view && s.sequence > m.plan.max && !m.mut.ignoreCertificates {
			m.fail("sequence %d is decided, and view %d begins before it", s.sequence, m.view)
			return
		}
		m.openSlot(s)
	}
	for seq := m.stable + 1; seq <= min(m.plan.max, m.high()); seq++ {
		if s := m.seen(seq); s != nil {
			m.adopt(s)
		} else {
			m.slot(seq)
		}
	}
}

func (m *Machine) openSlot(s *slot) {
	if !m.mut.mixViews {
		s.open()
		return
	}
	commits := slices.Clone(s.commits)
	s.open()
	copy(s.commits, commits)
}

// adopt accepts what the view proposes again at a slot, if it does.
func (m *Machine) adopt(s *slot) {
	if m.changing || s.sequence <= m.plan.min || s.sequence > m.plan.max || s.accepted || m.out.Fault != nil {
		return
	}
	value := m.plan.values[s.sequence-m.plan.min-1]
	if m.mut.noNull && value.Batch == emptyBatch {
		return
	}
	if s.decided && s.outcome != value {
		if s.cert.View < m.view {
			m.fail("sequence %d is decided, and view %d proposes something else", s.sequence, m.view)
		}
		return
	}
	var refs []ref
	if txs, ok := s.body(value.Batch); ok {
		refs = m.pool.assign(txs, s.sequence)
	}
	m.accept(s, value, refs)
}

// replay looks at what came before its view.
func (m *Machine) replay() {
	for i := range m.later {
		kept := m.later[i].messages
		m.later[i] = early{}
		for _, v := range kept {
			m.step(v) // keeps what is still too early
		}
	}
}
