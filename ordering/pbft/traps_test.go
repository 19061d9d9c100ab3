package pbft

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/identity"
	"github.com/tallystick/tallystick/ordering"
)

// The tests of this file are named after what implementations of the protocol
// usually skip: see the table in README.md.

// TestViewChangeKeepsDecision: one member alone decides and is cut off; the view
// that the others begin without it decides the same.
func TestViewChangeKeepsDecision(t *testing.T) {
	c := newCluster(t, 4, nil)
	c.drop = func(_, to int, m ordering.Message) bool { return m.Kind() == "commit" && to != 3 }
	txs := c.txs(2)
	c.submit(0, txs...)
	if c.nodes[3].m.height != 1 || c.nodes[1].m.height != 0 {
		t.Fatal("not just member 3 has decided")
	}
	want := c.nodes[3].blocks[1].Hash()
	cut := only(0, 1, 2)
	c.drop = func(from, to int, m ordering.Message) bool {
		v, ok := m.(*Vote)
		return cut(from, to, m) || ok && v.Phase == Commit && v.View == 0
	}
	c.tick(60)
	for i := range 3 {
		if n := c.nodes[i]; len(n.blocks) < 2 || n.blocks[1].Hash() != want || n.m.view == 0 {
			t.Fatalf("member %d: %+v", i, n.m.Status())
		}
	}
	c.drop = nil
	more := c.txs(3)
	c.submit(3, more...)
	c.tick(100)
	for i := range c.nodes {
		c.wantOnce(append(txs, more...), i)
	}
}

// TestEquivocatingPrimary: two batches for one sequence, each to some members:
// at most one is decided, and the next primary goes on.
func TestEquivocatingPrimary(t *testing.T) {
	c := newCluster(t, 4, nil)
	c.crash(0) // the test plays it
	a, b := c.txs(1), c.txs(1)
	for to, txs := range map[int][]*block.Tx{1: a, 2: a, 3: b} {
		c.inject(0, to, c.proposal(0, 0, 1, txs))
	}
	c.run()
	// Its commit and prepare votes for both.
	for _, txs := range [][]*block.Tx{a, b} {
		for to := 1; to < 4; to++ {
			c.inject(0, to, c.ballot(0, Commit, 0, c.value(1, txs)))
		}
	}
	c.run()
	more := c.txs(2)
	c.submit(2, more...)
	c.tick(200)
	for i := 1; i < 4; i++ {
		n := c.nodes[i]
		c.wantOnce(more, i)
		if n.m.height == 0 || n.m.view == 0 || n.count(a[0])+n.count(b[0]) > 1 {
			t.Errorf("member %d: %d and %d times, %+v", i, n.count(a[0]), n.count(b[0]), n.m.Status())
		}
	}
}

// TestFaultyPrimariesInARow: two dead primaries, one after the other; each costs
// at most two timeouts, of which the second is twice as long.
func TestFaultyPrimariesInARow(t *testing.T) {
	c := newCluster(t, 7, nil)
	c.crash(0)
	c.crash(1)
	txs := c.txs(3)
	c.submit(4, txs...)
	timeout := int(c.opts.RequestTicks)
	c.tick(2 * timeout)
	if c.nodes[4].m.view < 1 {
		t.Error("the first dead primary is still in place after two timeouts")
	}
	c.tick(2 * 2 * timeout)
	for i := 2; i < 7; i++ {
		c.wantOnce(txs, i)
		if s := c.nodes[i].m.Status(); s.View != 2 {
			t.Errorf("member %d: %+v", i, s)
		}
	}
}

// TestTimeoutsGrow: as long as nothing is ordered every change of view gets twice
// the time.
func TestTimeoutsGrow(t *testing.T) {
	c := newCluster(t, 4, nil)
	m := c.nodes[1].m
	for k := range uint(20) {
		m.attempts = k
		if want := uint64(20) << min(k, maxDoublings); m.timeout() != want {
			t.Errorf("after %d changes the timeout is %d, want %d", k, m.timeout(), want)
		}
	}
}

// TestForgedViewChange: a verifier lets no resignation and no new view pass that
// names a certificate which does not hold, or none where one is due.
func TestForgedViewChange(t *testing.T) {
	c := newCluster(t, 4, func(o *ordering.MachineOptions) { o.BatchTxs = 1 })
	c.submit(0, c.txs(6)...)
	c.crash(0)
	var changes []*ViewChange
	for i := 1; i < 4; i++ {
		c.nodes[i].m.resign(1)
		changes = append(changes, c.nodes[i].m.changes[i])
	}
	sign := func(vc *ViewChange) *ViewChange {
		vc.Signature = testSign(testKey(int(vc.Member)))(vc.Digest(c.opts.Network))
		return vc
	}
	good := changes[0]
	if good.Stable != 4 || len(good.Prepared) != 2 {
		t.Fatalf("member 1 resigns with checkpoint %d and %d certificates", good.Stable, len(good.Prepared))
	}
	if _, err := c.verify(1, good); err != nil {
		t.Fatal(err)
	}
	forge := map[string]func(vc *ViewChange){
		"checkpoint without votes":      func(vc *ViewChange) { vc.Proof = nil },
		"checkpoint of another hash":    func(vc *ViewChange) { vc.StableHash[0] ^= 1 },
		"later checkpoint":              func(vc *ViewChange) { vc.Stable = 8 },
		"certificate with too few":      func(vc *ViewChange) { vc.Prepared[0].Votes = vc.Prepared[0].Votes[:2] },
		"certificate of another value":  func(vc *ViewChange) { vc.Prepared[0].Value.Batch[0] ^= 1 },
		"certificate of another view":   func(vc *ViewChange) { vc.View, vc.Prepared[0].View = 2, 1 },
		"certificate of the future":     func(vc *ViewChange) { vc.Prepared[0].View = 1 },
		"certificates out of order":     func(vc *ViewChange) { slices.Reverse(vc.Prepared) },
		"certificate at the checkpoint": func(vc *ViewChange) { vc.Prepared[0].Value.Sequence = 4 },
		"view 0":                        func(vc *ViewChange) { vc.View = 0 },
		"somebody else's":               func(vc *ViewChange) { vc.Member = 2 },
	}
	for name, f := range forge {
		vc := *good
		vc.Prepared = slices.Clone(good.Prepared)
		f(&vc)
		if _, err := c.verify(1, sign(&vc)); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	tampered := *good
	tampered.Prepared = nil
	if _, err := c.verify(1, &tampered); err == nil {
		t.Error("a resignation that its member did not sign is accepted")
	}

	newView := func(changes ...*ViewChange) *NewView {
		nv := &NewView{View: 1, Changes: changes}
		nv.Signature = testSign(testKey(1))(nv.Digest(c.opts.Network))
		return nv
	}
	if _, err := c.verify(2, newView(changes...)); err != nil {
		t.Fatalf("another member cannot pass a new view on: %v", err)
	}
	for name, nv := range map[string]*NewView{
		"too few":          newView(changes[:2]...),
		"one twice":        newView(changes[0], changes[1], changes[1]),
		"one not its own":  newView(changes[0], changes[1], &ViewChange{Member: 3, View: 1}),
		"one was tampered": newView(&tampered, changes[1], changes[2]),
	} {
		if _, err := c.verify(1, nv); err == nil {
			t.Errorf("new view, %s: accepted", name)
		}
	}
	wrong := newView(changes...)
	wrong.Signature = testSign(testKey(2))(wrong.Digest(c.opts.Network))
	if _, err := c.verify(2, wrong); err == nil {
		t.Error("a new view that another member than its primary signed is accepted")
	}
}

// TestNewViewIsRecomputed compares the plan of a new view with the definition,
// looked up value by value, on random resignations.
func TestNewViewIsRecomputed(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		changes := make([]*ViewChange, 1+r.IntN(5))
		for i := range changes {
			vc := &ViewChange{Stable: uint64(r.IntN(3)) * 4}
			for seq := vc.Stable + 1; seq <= vc.Stable+8; seq++ {
				if r.IntN(3) == 0 {
					view := uint64(r.IntN(4))
					// Two certificates of one view are for the same value.
					value := identity.Commit{Sequence: seq, Batch: block.Hash{byte(seq), byte(view)}, Proposed: 1}
					vc.Prepared = append(vc.Prepared, Prepared{View: view, Value: value})
				}
			}
			changes[i] = vc
		}
		p := planOf(changes, mutation{})
		lowest, highest := uint64(0), uint64(0)
		for _, vc := range changes {
			lowest = max(lowest, vc.Stable)
		}
		highest = lowest
		for seq := lowest + 1; seq < 100; seq++ {
			want, view := null(seq), -1
			for _, vc := range changes {
				for _, q := range vc.Prepared {
					if q.Value.Sequence == seq {
						highest = max(highest, seq)
						if int(q.View) > view {
							want, view = q.Value, int(q.View)
						}
					}
				}
			}
			if seq <= p.max && p.values[seq-p.min-1] != want {
				t.Fatalf("sequence %d: %+v, want %+v", seq, p.values[seq-p.min-1], want)
			}
		}
		if p.min != lowest || p.max != highest {
			t.Fatalf("the plan is for %d to %d, want %d to %d", p.min, p.max, lowest, highest)
		}
	}
}

// TestNullRequestsFillGaps: a primary withholds a sequence; the next view fills it
// with nothing.
func TestNullRequestsFillGaps(t *testing.T) {
	c := newCluster(t, 4, func(o *ordering.MachineOptions) { o.BatchTxs = 1 })
	c.drop = func(from, _ int, m ordering.Message) bool {
		pp, ok := m.(*PrePrepare)
		return ok && from == 0 && pp.Value.Sequence == 2
	}
	txs := c.txs(4)
	c.submit(0, txs...)
	for i := 1; i < 4; i++ {
		if got := c.nodes[i].m.height; got != 1 {
			t.Fatalf("member %d emitted block %d around the gap", i, got)
		}
	}
	c.crash(0)
	c.tick(60)
	for i := 1; i < 4; i++ {
		n := c.nodes[i]
		if len(n.blocks) < 5 || len(n.blocks[2].Txs) != 0 {
			t.Fatalf("member %d: %+v", i, n.m.Status())
		}
		if b := n.blocks[2]; b.Timestamp != n.blocks[1].Timestamp+1 {
			t.Errorf("the empty block has timestamp %d after %d", b.Timestamp, n.blocks[1].Timestamp)
		}
		c.wantOnce([]*block.Tx{txs[0], txs[2], txs[3]}, i)
	}
}

// TestAmnesia: a member crashes after each of its actions in turn and never votes
// against what it voted before.
func TestAmnesia(t *testing.T) {
	for victim := range 4 {
		for at := 1; at < 60; at += 2 {
			amnesia(t, victim, at)
		}
	}
}

func amnesia(t *testing.T, victim, at int) {
	c := newCluster(t, 4, func(o *ordering.MachineOptions) { o.BatchTxs = 1 })
	r := rand.New(rand.NewPCG(uint64(victim), uint64(at)))
	txs := c.txs(4)
	for _, tx := range txs {
		c.nodes[r.IntN(4)].m.Submit([]*block.Tx{tx})
	}
	for i := range c.nodes {
		c.carryOut(i)
	}
	steps := 0
	crash := func() {
		if steps++; steps == at || steps == at+20 {
			c.crash(victim)
			c.boot(victim)
		}
	}
	for ticks := 0; ticks < 120; ticks++ {
		for len(c.queue) > 0 {
			k := r.IntN(min(len(c.queue), 5)) // out of order
			p := c.queue[k]
			c.queue = slices.Delete(c.queue, k, k+1)
			if r.IntN(8) > 0 {
				c.deliver(p)
			}
			crash()
		}
		c.now += 10_000
		for i, n := range c.nodes {
			n.m.Tick(c.now)
			c.carryOut(i)
			crash()
		}
	}
	c.checkVotes()
}

// checkVotes demands one vote per phase, view and sequence of each member.
func (c *cluster) checkVotes() {
	c.t.Helper()
	type ballot struct {
		from      int
		phase     Phase
		view, seq uint64
	}
	votes := map[ballot]identity.Commit{}
	for _, p := range c.sent {
		var at ballot
		var value identity.Commit
		switch m := p.message.(type) {
		case *PrePrepare:
			at, value = ballot{p.from, Prepare, m.View, m.Value.Sequence}, m.Value
		case *Vote:
			at, value = ballot{p.from, m.Phase, m.View, m.Value.Sequence}, m.Value
		default:
			continue
		}
		if old, ok := votes[at]; ok && old != value {
			c.t.Fatalf("two votes of %+v", at)
		}
		votes[at] = value
	}
}

// TestStableNeedsQuorum: a checkpoint becomes stable with a quorum of equal votes,
// not with a vote less, and not with votes for different hashes.
func TestStableNeedsQuorum(t *testing.T) {
	c := newCluster(t, 4, func(o *ordering.MachineOptions) { o.BatchTxs = 1 })
	c.drop = func(_, to int, m ordering.Message) bool { return m.Kind() == "checkpoint" || m.Kind() == "report" }
	c.submit(0, c.txs(4)...)
	m := c.nodes[0].m
	if m.height != 4 || m.stable != 0 {
		t.Fatalf("%+v", m.Status())
	}
	vote := func(from int, hash block.Hash) {
		c.inject(from, 0, &Checkpoint{Sequence: 4, Hash: hash, Signature: testSign(testKey(from))(CheckpointDigest(c.opts.Network, 4, hash))})
		c.run()
	}
	good := m.hash
	vote(1, block.Hash{1})
	vote(2, good)
	vote(1, good) // its second vote does not count
	if m.stable != 0 {
		t.Fatal("two equal votes made a checkpoint stable")
	}
	vote(3, good)
	if m.stable != 4 {
		t.Fatal("three equal votes did not make a checkpoint stable")
	}
}

// TestForkIsNoticed: f+1 members that signed another hash than this member
// computed are evidence that it must stop.
func TestForkIsNoticed(t *testing.T) {
	c := newCluster(t, 4, func(o *ordering.MachineOptions) { o.BatchTxs = 1 })
	c.drop = func(_, _ int, m ordering.Message) bool { return m.Kind() == "checkpoint" || m.Kind() == "report" }
	c.submit(0, c.txs(4)...)
	m := c.nodes[0].m
	for from := 1; from < 3; from++ {
		hash := block.Hash{1}
		v, err := c.verify(from, &Checkpoint{Sequence: 4, Hash: hash, Signature: testSign(testKey(from))(CheckpointDigest(c.opts.Network, 4, hash))})
		if err != nil {
			t.Fatal(err)
		}
		m.Step(v)
	}
	if r := m.Ready(); r.Fault == nil {
		t.Error("the machine goes on")
	}
	m.Tick(c.now)
	if r := m.Ready(); r.Fault == nil || m.Submit(c.txs(1)) != 0 {
		t.Error("the machine went on after its fault")
	}
}

// TestFloodOfSequences: votes for any number of sequences and views, and
// checkpoints of any height, leave a bounded mark.
func TestFloodOfSequences(t *testing.T) {
	c := newCluster(t, 4, nil)
	m := c.nodes[1].m
	for k := range uint64(5000) {
		value := identity.Commit{Sequence: 1 + k, Batch: block.Hash{byte(k)}, Proposed: 1}
		for _, msg := range []ordering.Message{
			c.ballot(3, Prepare, 0, value), c.ballot(3, Commit, 0, value),
			c.ballot(3, Commit, k, value),
			&Checkpoint{Sequence: 4 * (1 + k), Hash: value.Batch, Signature: testSign(testKey(3))(CheckpointDigest(c.opts.Network, 4*(1+k), value.Batch))},
			&FetchBatch{Sequence: k, Digest: value.Batch},
			&Report{View: k, Height: k, Durable: k},
		} {
			v, err := c.verify(3, msg)
			if err != nil {
				t.Fatal(err)
			}
			m.Step(v)
		}
		m.Ready()
	}
	if n := len(m.slots); n != 8 {
		t.Errorf("%d slots", n)
	}
	if n := len(m.later[3].messages); n > 2*8 {
		t.Errorf("%d messages wait for their view", n)
	}
	if n := len(m.checkpoints[3]); n > 3 {
		t.Errorf("%d checkpoint votes of one member", n)
	}
	if m.height != 0 || m.view != 0 || m.target() != 0 {
		t.Errorf("one member moved another: %+v, target %d", m.Status(), m.target())
	}
}

// TestSlowReplica: a member that hears nothing for several windows does not hold
// up the others, and has everything soon after it hears again.
func TestSlowReplica(t *testing.T) {
	c := newCluster(t, 4, func(o *ordering.MachineOptions) { o.BatchTxs = 1 })
	c.drop = only(0, 1, 2)
	txs := c.txs(40)
	for _, tx := range txs {
		c.submit(0, tx)
	}
	if h := c.nodes[2].m.height; h != 40 {
		t.Fatalf("without the slow member block %d is reached", h)
	}
	c.drop = nil
	c.tick(60)
	c.wantOnce(txs, 3)
	if s := c.nodes[3].m.Status(); s.View != 0 || s.Stable != 40 {
		t.Errorf("%+v", s)
	}
	// It votes again: the others cannot do without it.
	c.crash(1)
	more := c.txs(2)
	c.submit(0, more...)
	c.wantOnce(more, 0, 2, 3)
}

// TestByzantineServer: blocks that a server of state invents, alters or proves
// with too little are refused; and one that serves nothing is not asked for ever.
func TestByzantineServer(t *testing.T) {
	c := newCluster(t, 4, func(o *ordering.MachineOptions) { o.BatchTxs = 1 })
	c.drop = only(0, 1, 2)
	txs := c.txs(20)
	for _, tx := range txs {
		c.submit(0, tx)
	}
	good := Serve(c.nodes[0].blocks[1], 0).(*Decided)
	if _, err := c.verify(0, good); err != nil {
		t.Fatal(err)
	}
	for name, f := range map[string]func(d *Decided){
		"another transaction": func(d *Decided) { d.Txs = c.txs(1) },
		"no transaction":      func(d *Decided) { d.Txs = nil },
		"another batch":       func(d *Decided) { d.Txs = c.txs(1); d.Value.Batch = block.TxDigest(d.Txs) },
		"another sequence":    func(d *Decided) { d.Value.Sequence++ },
		"another time":        func(d *Decided) { d.Value.Proposed++ },
		"another view":        func(d *Decided) { d.View++ },
		"too few votes":       func(d *Decided) { d.Votes = d.Votes[:2] },
		"one vote twice":      func(d *Decided) { d.Votes = []identity.Vote{d.Votes[0], d.Votes[1], d.Votes[1]} },
	} {
		d := *good
		f(&d)
		if _, err := c.verify(0, &d); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	// Member 0 says that it has a lot and serves nothing.
	c.drop = func(from, _ int, m ordering.Message) bool { return from == 0 && m.Kind() == "decided" }
	c.tick(60)
	c.wantOnce(txs, 3)
}

// TestCrashWhileCatchingUp: a member crashes again and again while it fetches.
func TestCrashWhileCatchingUp(t *testing.T) {
	c := newCluster(t, 4, func(o *ordering.MachineOptions) { o.BatchTxs = 1 })
	c.drop = only(0, 1, 2)
	txs := c.txs(50)
	for _, tx := range txs {
		c.submit(0, tx)
	}
	c.drop = nil
	for range 30 {
		c.tick(5)
		c.crash(3)
		c.boot(3)
	}
	c.wantOnce(txs, 3)
}

// TestResendEverything: everybody submits everything to everybody, in two views,
// before and after restarts; each transaction is ordered once.
func TestResendEverything(t *testing.T) {
	c := newCluster(t, 4, nil)
	txs := c.txs(12)
	everybody := func() {
		for i, n := range c.nodes {
			if n.m != nil {
				c.submit(i, txs...)
			}
		}
		c.tick(3)
	}
	everybody()
	for i := range c.nodes {
		c.crash(i)
		c.boot(i)
	}
	c.tick(2)
	everybody()
	c.crash(0)
	c.submit(1, c.tx())
	c.tick(80)
	everybody()
	c.boot(0)
	c.tick(40)
	everybody()
	c.tick(40)
	for i, n := range c.nodes {
		c.wantOnce(txs, i)
		if n.m.view == 0 || n.repeats != 0 {
			t.Errorf("member %d: %+v, %d repeats", i, n.m.Status(), n.repeats)
		}
	}
}

// TestRepeatsAreRefused: backups refuse a batch that repeats what is ordered, what
// is proposed elsewhere, or itself.
func TestRepeatsAreRefused(t *testing.T) {
	c := newCluster(t, 4, nil)
	old := c.txs(1)
	c.submit(0, old...)
	c.crash(0)
	m := c.nodes[1].m
	elsewhere, twice := c.txs(1), c.txs(1)
	c.inject(0, 1, c.proposal(0, 0, 3, elsewhere))
	c.inject(0, 1, c.proposal(0, 0, 2, old))
	c.inject(0, 1, c.proposal(0, 0, 4, append(elsewhere, c.tx())))
	c.inject(0, 1, c.proposal(0, 0, 5, append(twice, twice...)))
	c.inject(0, 1, c.proposal(0, 0, 6, nil))
	c.inject(0, 1, c.proposal(0, 0, 7, twice))
	c.run()
	for seq, want := range map[uint64]bool{2: false, 3: true, 4: false, 5: false, 6: false, 7: true} {
		if got := m.seen(seq).accepted; got != want {
			t.Errorf("sequence %d is accepted: %v", seq, got)
		}
	}
}

// TestCensoringPrimary: a primary that orders everything but one client's
// transaction is replaced within two timeouts.
func TestCensoringPrimary(t *testing.T) {
	c := newCluster(t, 4, nil)
	victim := c.tx()
	c.drop = func(_, to int, m ordering.Message) bool { // the primary does not want to know
		f, ok := m.(*Forward)
		return ok && to == 0 && slices.ContainsFunc(f.Txs, func(tx *block.Tx) bool { return tx.ContentHash() == victim.ContentHash() })
	}
	c.submit(2, victim)
	for range 2 * c.opts.RequestTicks {
		c.submit(0, c.tx()) // others are served all the time
		c.tick(1)
	}
	c.tick(2)
	for i := range c.nodes {
		c.wantOnce([]*block.Tx{victim}, i)
		if c.nodes[i].m.view != 1 {
			t.Errorf("member %d is in view %d", i, c.nodes[i].m.view)
		}
	}
}

// TestMixedViewsFork is the schedule in which votes of several views would make a
// second certificate: n = 4, D byzantine, x prepared in view 0 by {A,B,D} and in
// view 3 by {A,C,D}, y in view 1 by {B,C,D} and decided in view 4 by {A,B,D}.
func TestMixedViewsFork(t *testing.T) {
	c := newCluster(t, 4, nil)
	A, B, C, D := 0, 1, 2, 3
	m := func(i int) *Machine { return c.nodes[i].m }
	c.crash(D) // the test plays it
	c.drop = func(_, _ int, _ ordering.Message) bool { return true }
	deliver := func(to int, from int, msg ordering.Message) {
		c.inject(from, to, msg)
		c.run()
	}
	txs := c.txs(1)
	c.submit(A, txs...) // A proposes x at sequence 1 in view 0
	x := m(A).slots[1].value
	commits := map[identity.Commit][]packet{}
	// prepare lets member i see the prepare votes of view for a value.
	prepare := func(i int, view uint64, value identity.Commit, voters ...int) {
		for _, from := range voters {
			if from != i {
				deliver(i, from, c.ballot(from, Prepare, view, value))
			}
		}
	}
	collect := func() {
		for _, p := range c.sent {
			if v, ok := p.message.(*Vote); ok && v.Phase == Commit {
				commits[v.Value] = append(commits[v.Value], p)
			}
		}
	}
	// change takes the members of a quorum into a view; D resigns without a
	// certificate.
	change := func(view uint64, members ...int) {
		nv := &NewView{View: view}
		for i := range 4 {
			if !slices.Contains(members, i) {
				continue
			}
			vc := &ViewChange{Member: uint16(i), View: view, StableHash: block.Hash{}}
			if i == D {
				vc.Signature = testSign(testKey(D))(vc.Digest(c.opts.Network))
			} else {
				m(i).resign(view)
				c.carryOut(i)
				vc = m(i).resignation()
			}
			nv.Changes = append(nv.Changes, vc)
		}
		primary := PrimaryOf(view, 4)
		nv.Signature = testSign(testKey(primary))(nv.Digest(c.opts.Network))
		for _, i := range members {
			if i != D {
				deliver(i, primary, nv)
			}
		}
	}
	accepted := func(i int) identity.Commit { return m(i).seen(1).value }

	// View 0: B and C have x's proposal; only A sees it prepared, and commits.
	pp := c.proposalOf(0, 0, x, txs)
	deliver(B, A, pp)
	deliver(C, A, pp)
	prepare(A, 0, x, A, B, D)
	if !m(A).seen(1).committed {
		t.Fatal("A has not committed to x")
	}
	// View 1: B, C and D know of no certificate; nothing (y) is proposed again, if
	// anything is. The primary B proposes y afresh.
	change(1, B, C, D)
	yTxs := c.txs(1)
	y := identity.Commit{Sequence: 1, Batch: block.TxDigest(yTxs), Proposed: c.now}
	deliver(C, B, c.proposalOf(B, 1, y, yTxs))
	m(B).onPrePrepare(B, c.proposalOf(B, 1, y, yTxs))
	c.carryOut(B)
	prepare(B, 1, y, B, C, D)
	if !m(B).seen(1).committed || m(C).seen(1).committed {
		t.Fatal("not just B has committed to y")
	}
	// View 3: A, C and D. A's certificate for x is the only one. C sees x prepared
	// and commits.
	change(3, A, C, D)
	if accepted(A) != x || accepted(C) != x {
		t.Fatal("view 3 does not propose x again")
	}
	prepare(C, 3, x, A, C, D)
	if !m(C).seen(1).committed {
		t.Fatal("C has not committed to x")
	}
	// View 4: A, B and D. The certificate for y is of the higher view.
	change(4, A, B, D)
	deliver(A, C, &Batch{Sequence: 1, Digest: y.Batch, Txs: yTxs})
	if accepted(A) != y || accepted(B) != y {
		t.Fatal("view 4 does not propose y again")
	}
	prepare(A, 4, y, A, B, D)
	prepare(B, 4, y, A, B, D)
	collect()
	for _, p := range commits[y] {
		if v := p.message.(*Vote); v.View == 4 && p.to != p.from && (p.to == A || p.to == B) {
			deliver(p.to, p.from, v)
		}
	}
	for _, i := range []int{A, B} {
		deliver(i, D, c.ballot(D, Commit, 4, y))
		if s := m(i).height; s != 1 || c.nodes[i].blocks[1].Header().TxDigest != y.Batch {
			t.Fatalf("member %d has not decided y", i)
		}
	}

	// The votes for x: A's of view 0, C's of view 3, D's of whatever view it likes.
	signers := map[int]uint64{}
	for _, p := range commits[x] {
		signers[p.from] = p.message.(*Vote).View
	}
	if len(signers) != 2 || signers[A] != 0 || signers[C] != 3 {
		t.Fatalf("honest commit votes for x by view: %v", signers)
	}
	for view := range uint64(5) {
		cert := &identity.Certificate{Kind: identity.CommitVotes, View: view, Proposed: x.Proposed}
		for _, i := range []int{A, C, D} {
			v := signers[i]
			if i == D {
				v = view
			}
			cert.Votes = append(cert.Votes, identity.Vote{Member: uint16(i), Signature: c.ballot(i, Commit, v, x).Signature})
		}
		d := &Decided{View: view, Value: x, Votes: cert.Votes, Txs: txs}
		if _, err := c.verify(D, d); err == nil {
			t.Errorf("votes of views 0, 3 and %d pass as a certificate of view %d: a fork", view, view)
		}
	}
	// Nor does C count them together: it has its own vote of view 3, and gets A's
	// and D's of view 0.
	deliver(C, A, c.ballot(A, Commit, 0, x))
	deliver(C, D, c.ballot(D, Commit, 0, x))
	if m(C).height != 0 {
		t.Error("C decided x with votes of two views")
	}
}

// TestForeignNetwork: transactions and votes of another network are worth nothing
// here.
func TestForeignNetwork(t *testing.T) {
	c := newCluster(t, 4, nil)
	tx := &block.Tx{
		Network: block.Hash{9}, User: identity.UserID{Org: "org", Name: "client"},
		Call: block.Call{Schema: "blockchain", Name: "f"}, ValidUntil: 100,
	}
	if _, err := c.verify(2, &Forward{Txs: []*block.Tx{tx}}); err == nil {
		t.Error("a transaction of another network is taken")
	}
	if _, err := c.verify(0, c.proposal(0, 0, 1, []*block.Tx{tx})); err == nil {
		t.Error("a batch of another network is taken")
	}
	value := c.value(1, c.txs(1))
	for phase, digest := range map[Phase][32]byte{
		Prepare: PrepareDigest(block.Hash{9}, 0, value),
		Commit:  identity.CommitDigest(block.Hash{9}, 0, value),
	} {
		if _, err := c.verify(2, &Vote{Phase: phase, Value: value, Signature: testSign(testKey(2))(digest)}); err == nil {
			t.Errorf("a vote of another network is taken in phase %d", phase)
		}
	}
	// And a vote of one phase is none of the other.
	v := c.ballot(2, Prepare, 0, value)
	v.Phase = Commit
	if _, err := c.verify(2, v); err == nil {
		t.Error("a prepare vote passes for a commit vote")
	}
}

// TestInventedTransaction: what no client signed gets no vote, whoever proposes
// it; a client's signature is checked as the chain checks it.
func TestInventedTransaction(t *testing.T) {
	c := newCluster(t, 4, nil)
	signer := identity.NewSigner([32]byte{7})
	signatures := identity.NewBatchVerifier(1, 0)
	c.admit = func(txs []*block.Tx) error {
		for _, tx := range txs {
			digest := tx.SigningDigest()
			if !signatures.Verify(signer.Public(), digest[:], tx.Signature) {
				return fmt.Errorf("transaction %s is not signed", tx.ID())
			}
		}
		return nil
	}
	tx := c.tx()
	signed := *tx
	if err := signed.Sign(signer); err != nil {
		t.Fatal(err)
	}
	altered := signed
	altered.ValidUntil++
	raw := append([]byte(nil), signed.Encode()...)
	raw[len(raw)-1] ^= 1
	badly, err := block.DecodeTx(raw)
	if err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string]*block.Tx{"unsigned": tx, "badly signed": badly} {
		if _, err := c.verify(0, c.proposal(0, 0, 1, []*block.Tx{&signed, bad})); err == nil {
			t.Errorf("a batch with a transaction that is %s gets votes", name)
		}
		if _, err := c.verify(2, &Forward{Txs: []*block.Tx{bad}}); err == nil {
			t.Errorf("a transaction that is %s is taken over", name)
		}
	}
	if _, err := c.verify(0, c.proposal(0, 0, 1, []*block.Tx{&signed})); err != nil {
		t.Errorf("a signed transaction is refused: %v", err)
	}
}

// inject puts a message under way, past whatever the test drops.
func (c *cluster) inject(from, to int, m ordering.Message) {
	c.queue = append(c.queue, packet{from, to, m})
}

func (c *cluster) value(sequence uint64, txs []*block.Tx) identity.Commit {
	return identity.Commit{Sequence: sequence, Batch: block.TxDigest(txs), Proposed: c.now}
}

func (c *cluster) proposal(from int, view, sequence uint64, txs []*block.Tx) *PrePrepare {
	return c.proposalOf(from, view, c.value(sequence, txs), txs)
}

func (c *cluster) proposalOf(from int, view uint64, value identity.Commit, txs []*block.Tx) *PrePrepare {
	return &PrePrepare{View: view, Value: value, Txs: txs, Signature: testSign(testKey(from))(PrepareDigest(c.opts.Network, view, value))}
}

func (c *cluster) ballot(from int, phase Phase, view uint64, value identity.Commit) *Vote {
	v := &Vote{Phase: phase, View: view, Value: value}
	v.Signature = testSign(testKey(from))(v.digest(c.opts.Network))
	return v
}

// TestRepeatsAreNamed: should a decided batch repeat something after all, every
// member names the same positions, also one that restarted in between; and an
// expired entry is forgotten.
func TestRepeatsAreNamed(t *testing.T) {
	c := newCluster(t, 4, nil)
	a, b := c.tx(), c.tx()
	for k, txs := range [][]*block.Tx{{a, b}, {c.tx(), a}, {b, b, c.tx()}} {
		value := c.value(uint64(k+1), txs)
		d := &Decided{Value: value, Txs: txs}
		for i := range 3 {
			d.Votes = append(d.Votes, identity.Vote{Member: uint16(i), Signature: c.ballot(i, Commit, 0, value).Signature})
		}
		v, err := c.verify(0, d)
		if err != nil {
			t.Fatal(err)
		}
		m := c.nodes[1].m
		m.Step(v)
		r := m.Ready()
		if len(r.Decided) != 1 {
			t.Fatalf("block %d: %d decisions", k+1, len(r.Decided))
		}
		want := [][]int{nil, {1}, {0, 1}}[k]
		if got := r.Decided[0].Repeats; !slices.Equal(got, want) {
			t.Errorf("block %d repeats %v, want %v", k+1, got, want)
		}
		c.nodes[1].blocks = append(c.nodes[1].blocks, r.Decided[0].Block)
		m.Advance(uint64(k + 1))
		c.crash(1)
		c.boot(1)
	}
	p := &c.nodes[1].m.pool
	if len(p.index) != 4 {
		t.Errorf("%d transactions are remembered, not 4", len(p.index))
	}
	for height := uint64(4); height <= 500; height++ { // they are valid until 500
		p.ordered(nil, height)
	}
	if len(p.index) != 0 || len(p.expiry) != 0 || len(p.free) != p.made {
		t.Errorf("%d transactions are remembered for ever", len(p.index))
	}
}
