package pbft

import (
	"fmt"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/identity"
	"github.com/tallystick/tallystick/ordering"
)

// Machine is one orderer. Make one with [New]; see [ordering.Machine] for the
// order of calls.
type Machine struct {
	opts    ordering.MachineOptions
	n, f, q int
	mut     mutation // planted bugs, in tests only

	tick uint64
	now  int64 // local clock at the last tick

	// The chain. Blocks up to height are decided in order; those up to durable
	// are stored.
	height  uint64
	hash    block.Hash
	time    int64
	durable uint64
	hashes  []mark // of checkpoints above stable, ascending
	moved   uint64 // tick at which height last grew

	// The window: slots of the sequences (stable, stable+Window].
	stable      uint64
	stableHash  block.Hash
	stableVotes []identity.Vote
	slots       []slot // by sequence mod Window

	// The view.
	view     uint64
	changing bool // resigned from all views before view, which has not begun
	plan     plan // what the view re-proposed
	newView  *NewView
	next     uint64 // sequence of the next proposal, at the primary
	last     int64  // time of the last proposal
	attempts uint   // view changes since a block was decided
	started  uint64 // tick from which the change to view has a deadline; 0 for none
	relayAt  uint64 // tick at which transactions were last shown to everybody
	grace    uint64 // tick before which nothing counts as waiting
	changes  []*ViewChange
	later    []early // by member: what came before its view

	// The others.
	reports     []position
	claims      []uint64 // scratch of target
	checkpoints [][]mark // by member: checkpoint votes above stable
	own         Checkpoint
	proof       *Stable // of a checkpoint above stable

	fetched map[uint64]*Decided // blocks to come, from other members
	fetch   fetching

	pool   pool
	coming *ordering.Membership // the coming epoch, if known
	gone   bool                 // no longer a member

	out ordering.Ready
}

// mark is a checkpoint, with a vote for it where it is another member's.
type mark struct {
	sequence  uint64
	hash      block.Hash
	signature identity.Signature
}

// early is what came from a member before the view that it belongs to.
type early struct {
	messages []ordering.Verified
	bytes    int // of the transactions in them
}

// position is the last report of a member.
type position struct {
	height   uint64 // what it claims to have durably
	stuck    uint64 // in-order height of the last report
	answered uint64 // tick
}

// New makes the machine of an orderer that has the blocks up to start.Tip and the
// records of its predecessors.
func New(opts ordering.MachineOptions, start ordering.Start, records []ordering.Record) (*Machine, error) {
	return newMachine(opts, start, records, mutation{})
}

func newMachine(opts ordering.MachineOptions, start ordering.Start, records []ordering.Record, mut mutation) (*Machine, error) {
	opts.EnsureDefaults()
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	if err := fitsMessages(&opts.Members, opts.Window); err != nil {
		return nil, err
	}
	tip := start.Tip
	if tip == nil || tip.Number+1 < opts.Members.First {
		return nil, fmt.Errorf("pbft: a member of the epoch from %d on needs the blocks before", opts.Members.First)
	}
	m := &Machine{
		opts: opts, mut: mut,
		height: tip.Number, hash: tip.Hash(), time: tip.Timestamp, durable: tip.Number,
		fetched: make(map[uint64]*Decided),
	}
	m.pool.init(&m.opts)
	m.pool.forget = mut.forgetOrdered
	for _, b := range start.Recent {
		m.pool.restore(b)
	}
	m.enter(opts.Members, opts.Self)
	for _, b := range start.Recent {
		m.markHash(b.Number, b.Hash())
	}
	if err := m.restore(records); err != nil {
		return nil, err
	}
	m.repeatCheckpoint()
	m.voteCheckpoint()
	m.settle()
	return m, nil
}

// enter begins an epoch at its first view.
func (m *Machine) enter(members ordering.Membership, self int) {
	m.opts.Members, m.opts.Self = members, self
	m.n, m.f, m.q = members.N(), members.Faults(), members.Quorum()
	if m.mut.shortQuorum {
		m.q--
	}
	m.stable, m.stableHash, m.stableVotes = members.First-1, block.Hash{}, nil
	m.slots = make([]slot, m.opts.Window)
	m.view, m.changing, m.plan, m.newView = 0, false, plan{}, nil
	m.next, m.attempts, m.started, m.grace = m.height+1, 0, 0, m.tick
	m.changes = make([]*ViewChange, m.n)
	m.later = make([]early, m.n)
	m.reports = make([]position, m.n)
	m.checkpoints = make([][]mark, m.n)
	m.own, m.proof = Checkpoint{}, nil
	m.fetch = fetching{peer: int(m.opts.Seed % uint64(m.n))}
	m.hashes = m.hashes[:0]
	m.coming, m.gone = nil, false
	m.plan.max = m.stable
}

// Tick implements ordering.Machine.
func (m *Machine) Tick(now int64) {
	m.tick++
	m.now = now
	if m.stopped() {
		return
	}
	if m.tick%((m.opts.RequestTicks+3)/4) == 0 {
		m.pool.quarter()
	}
	if m.tick%m.opts.StatusTicks == uint64(m.opts.Self)%m.opts.StatusTicks {
		m.report()
	}
	m.catchUp()
	m.askBatches()
	m.watch()
	m.relay()
	m.propose()
}

// Submit implements ordering.Machine.
func (m *Machine) Submit(txs []*block.Tx) int {
	if m.stopped() {
		return 0
	}
	var forward []*block.Tx
	taken, elsewhere := 0, max(m.height, m.target())
	for _, tx := range txs {
		added, room := m.pool.add(tx, m.opts.Self, m.height, m.tick, elsewhere)
		if !room {
			break
		}
		taken++
		if added {
			forward = append(forward, tx)
		}
	}
	if !m.changing && !m.leads() {
		m.forward(forward, m.primary())
	}
	m.propose()
	return taken
}

// Step implements ordering.Machine.
func (m *Machine) Step(v ordering.Verified) {
	switch {
	case v.Message() == nil || m.out.Fault != nil || v.Epoch() > m.opts.Members.Epoch:
		return
	case v.Epoch() < m.opts.Members.Epoch || m.gone:
		m.serveBehind(v)
		return
	}
	m.step(v)
	m.settle()
}

func (m *Machine) step(v ordering.Verified) {
	from := v.From()
	switch msg := v.Message().(type) {
	case *PrePrepare:
		if m.current(v, msg.View) {
			m.onPrePrepare(from, msg)
		}
	case *Vote:
		if m.current(v, msg.View) || m.mut.voteInOldView || m.mut.mixViews {
			m.onVote(from, msg)
		}
	case *Checkpoint:
		m.onCheckpoint(from, msg)
	case *ViewChange:
		m.onViewChange(msg)
	case *NewView:
		m.onNewView(msg)
	case *Report:
		m.onReport(from, msg)
	case *Forward:
		m.onForward(from, msg)
	case *Fetch:
		m.serve(v.Epoch(), from, msg.From, msg.Upto)
	case *Decided:
		m.onDecided(msg)
	case *FetchBatch:
		m.onFetchBatch(from, msg)
	case *Batch:
		m.onBatch(msg)
	case *Stable:
		m.onStable(msg)
	}
}

// settle draws the conclusions of whatever changed: blocks in order, the next
// epoch, the next proposals.
func (m *Machine) settle() {
	m.emit()
	m.turn()
	m.propose()
}

// current reports whether a message of a view is to be looked at now. One of a
// view to come is kept until then.
func (m *Machine) current(v ordering.Verified, view uint64) bool {
	if view == m.view && !m.changing {
		return true
	}
	if view < m.view {
		return false
	}
	// A member that floods loses its own messages only.
	if kept := &m.later[v.From()]; len(kept.messages) < int(2*m.opts.Window) && kept.bytes < m.opts.MaxWaitingBytes {
		kept.messages = append(kept.messages, v)
		if pp, ok := v.Message().(*PrePrepare); ok {
			for _, tx := range pp.Txs {
				kept.bytes += block.TxSizeInBlock(tx)
			}
		}
	}
	return false
}

// Ready implements ordering.Machine.
func (m *Machine) Ready() ordering.Ready {
	r := m.out
	r.Epoch = m.opts.Members.Epoch
	m.out = ordering.Ready{}
	if r.Fault != nil {
		m.out.Fault = r.Fault
		return ordering.Ready{Fault: r.Fault}
	}
	return r
}

// Advance implements ordering.Machine.
func (m *Machine) Advance(height block.Height) {
	if m.out.Fault != nil || height <= m.durable {
		return
	}
	if height > m.height {
		m.fail("blocks up to %d are durable, and only %d are decided", height, m.height)
		return
	}
	m.durable = height
	m.voteCheckpoint()
	m.stabilize()
	m.settle()
}

// Reconfigure implements ordering.Machine.
func (m *Machine) Reconfigure(next ordering.Membership) error {
	if err := next.Validate(); err != nil {
		return err
	}
	if err := fitsMessages(&next, m.opts.Window); err != nil {
		return err
	}
	switch {
	case next.Epoch != m.opts.Members.Epoch+1:
		return fmt.Errorf("pbft: epoch %d follows epoch %d", next.Epoch, m.opts.Members.Epoch)
	case m.coming != nil:
		return fmt.Errorf("pbft: another configuration is on its way")
	case next.First <= m.durable || next.First <= m.stable:
		return fmt.Errorf("pbft: a configuration from %d on comes too late: block %d is durable", next.First, m.durable)
	}
	for i := range m.slots {
		if m.slots[i].sequence >= next.First {
			return fmt.Errorf("pbft: a configuration from %d on comes too late: sequence %d is under way", next.First, m.slots[i].sequence)
		}
	}
	m.coming = &next
	return nil
}

// turn begins the next epoch once all blocks of this one are durable.
func (m *Machine) turn() {
	if m.coming == nil || m.durable < m.coming.First-1 || m.gone {
		return
	}
	next := *m.coming
	key := m.opts.Members.Set.Keys[m.opts.Self]
	self := next.Set.Index(key)
	if self < 0 {
		m.gone = true
		return
	}
	m.pool.remap(&m.opts.Members.Set, &next.Set, self)
	m.out.Send = nil // addressed to members of the old epoch, who can fetch
	m.enter(next, self)
	m.persistView()
	m.out.Forget = max(m.out.Forget, m.stable)
	m.reenlist()
}

// end returns the last sequence of the epoch.
func (m *Machine) end() uint64 {
	if m.coming != nil {
		return m.coming.First - 1
	}
	return block.MaxHeight
}

// high returns the last sequence of the window.
func (m *Machine) high() uint64 { return min(m.stable+m.opts.Window, m.end()) }

func (m *Machine) primary() int { return PrimaryOf(m.view, m.n) }

// leads reports whether this member is the primary of a view that has begun.
func (m *Machine) leads() bool { return !m.changing && m.primary() == m.opts.Self }

func (m *Machine) stopped() bool { return m.out.Fault != nil || m.gone }

// fail stops the machine.
func (m *Machine) fail(format string, args ...any) {
	if m.out.Fault == nil {
		m.out = ordering.Ready{Fault: fmt.Errorf("pbft: "+format, args...)}
	}
}

func (m *Machine) send(to int, msg ordering.Message) {
	if to == m.opts.Self || m.n == 1 || m.out.Fault != nil {
		return
	}
	m.out.Send = append(m.out.Send, ordering.Outgoing{To: to, Message: msg})
}

// Status implements ordering.Machine.
func (m *Machine) Status() ordering.MachineStatus {
	return ordering.MachineStatus{
		Epoch: m.opts.Members.Epoch, View: m.view, Changing: m.changing, Primary: m.primary(),
		Height: m.height, Durable: m.durable, Stable: m.stable,
		Waiting: m.pool.waiting(), InFlight: int(m.next - 1 - min(m.height, m.next-1)),
		Room: m.pool.room(m.opts.Self),
	}
}
