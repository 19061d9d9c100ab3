package sim

import (
	"slices"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/identity"
	"github.com/tallystick/tallystick/ordering"
	"github.com/tallystick/tallystick/ordering/pbft"
)

// PBFT is package pbft with its enemies.
func PBFT() Spec { return PBFTSpec(pbft.Protocol) }

// PBFTSpec is PBFT for another make of its machine: tests plant bugs.
func PBFTSpec(p ordering.Protocol) Spec {
	return Spec{
		Protocol: p,
		Votes:    pbftVotes,
		Promises: pbftPromises,
		Adversaries: []func(*Traitor) Adversary{
			func(*Traitor) Adversary { return honest{} },
			func(t *Traitor) Adversary { return &equivocator{t: t} },
			func(t *Traitor) Adversary { return &equivocator{t: t, votes: true} },
			func(t *Traitor) Adversary { return &liar{t: t} },
			func(t *Traitor) Adversary { return &forger{t: t} },
			func(t *Traitor) Adversary { return &withholder{t: t} },
		},
	}
}

func pbftVotes(m ordering.Message) []Vote {
	switch m := m.(type) {
	case *pbft.PrePrepare:
		return []Vote{{Phase: "prepare", Epoch: m.Epoch, View: m.View, Sequence: m.Value.Sequence, Value: m.Value}}
	case *pbft.Vote:
		return []Vote{{Phase: m.Kind(), Epoch: m.Epoch, View: m.View, Sequence: m.Value.Sequence, Value: m.Value}}
	case *pbft.Checkpoint:
		return checkpointVote(m)
	case *pbft.Report:
		if m.Vote.Sequence > 0 {
			return checkpointVote(&m.Vote)
		}
	}
	return nil
}

func checkpointVote(m *pbft.Checkpoint) []Vote {
	return []Vote{{Phase: "checkpoint", Epoch: m.Epoch, Sequence: m.Sequence, Value: m.Hash, Timeless: true}}
}

func pbftPromises(m ordering.Message) (epoch, view uint64, ok bool) {
	if vc, isChange := m.(*pbft.ViewChange); isChange {
		return vc.Epoch, vc.View, true
	}
	return 0, 0, false
}

// honest sends what the machine says: the moods of the traitor do the rest.
type honest struct{}

func (honest) Send(out ordering.Outgoing) []ordering.Outgoing { return []ordering.Outgoing{out} }
func (honest) Tick() []ordering.Outgoing                      { return nil }

// equivocator proposes different batches to different members, and votes for
// both.
type equivocator struct {
	t     *Traitor
	votes bool // only its votes differ
}

func (a *equivocator) Tick() []ordering.Outgoing { return nil }

func (a *equivocator) Send(out ordering.Outgoing) []ordering.Outgoing {
	switch m := out.Message.(type) {
	case *pbft.PrePrepare:
		if !a.votes && a.t.Rand.IntN(2) == 0 {
			return a.split(out, a.otherProposal(m))
		}
	case *pbft.Vote:
		if a.t.Rand.IntN(3) == 0 {
			return a.split(out, a.otherVote(m))
		}
	}
	return []ordering.Outgoing{out}
}

// split sends one message to some members and the other one to the rest; some get
// both.
func (a *equivocator) split(out ordering.Outgoing, other ordering.Message) []ordering.Outgoing {
	var list []ordering.Outgoing
	for to := range a.t.Members.N() {
		if to == a.t.Self || out.To != ordering.ToAll && out.To != to {
			continue
		}
		k := a.t.Rand.IntN(5)
		if k < 3 {
			list = append(list, ordering.Outgoing{To: to, Message: out.Message})
		}
		if k >= 2 {
			list = append(list, ordering.Outgoing{To: to, Message: other})
		}
	}
	return list
}

func (a *equivocator) otherProposal(m *pbft.PrePrepare) ordering.Message {
	other := *m
	if a.t.Rand.IntN(2) == 0 {
		other.Value.Proposed++
	} else {
		other.Txs = append(slices.Clone(m.Txs[1:]), a.t.Txs()...)
		other.Value.Batch = block.TxDigest(other.Txs)
	}
	other.Signature = a.t.Sign(pbft.PrepareDigest(a.t.Network, other.View, other.Value))
	return &other
}

func (a *equivocator) otherVote(m *pbft.Vote) ordering.Message {
	other := *m
	// Prefer a value that somebody proposed for the same sequence.
	for _, seen := range a.t.Received {
		if v, ok := seen.(*pbft.Vote); ok && v.Value.Sequence == m.Value.Sequence && v.Value != m.Value {
			other.Value = v.Value
		}
	}
	if other.Value == m.Value {
		other.Value.Proposed++
	}
	signVote(a.t, &other)
	return &other
}

func signVote(t *Traitor, v *pbft.Vote) {
	digest := pbft.PrepareDigest(t.Network, v.View, v.Value)
	if v.Phase == pbft.Commit {
		digest = identity.CommitDigest(t.Network, v.View, v.Value)
	}
	v.Signature = t.Sign(digest)
}

// liar votes for whatever it has seen, in any view, and sends wrong digests,
// checkpoints and reports.
type liar struct{ t *Traitor }

func (a *liar) Send(out ordering.Outgoing) []ordering.Outgoing {
	switch m := out.Message.(type) {
	case *pbft.Report:
		lie := *m
		lie.Height += uint64(a.t.Rand.IntN(50))
		lie.Durable = lie.Height + uint64(a.t.Rand.IntN(1000))
		lie.View += uint64(a.t.Rand.IntN(2))
		return []ordering.Outgoing{{To: out.To, Message: &lie}}
	case *pbft.Checkpoint:
		if a.t.Rand.IntN(2) == 0 {
			lie := *m
			lie.Hash[0] ^= 1
			lie.Signature = a.t.Sign(pbft.CheckpointDigest(a.t.Network, lie.Sequence, lie.Hash))
			return []ordering.Outgoing{{To: out.To, Message: &lie}}
		}
	case *pbft.Batch:
		lie := *m
		lie.Txs = a.t.Txs()
		return []ordering.Outgoing{{To: out.To, Message: &lie}}
	}
	return []ordering.Outgoing{out}
}

func (a *liar) Tick() []ordering.Outgoing {
	if len(a.t.Received) == 0 || a.t.Rand.IntN(3) > 0 {
		return nil
	}
	switch m := a.t.Received[a.t.Rand.IntN(len(a.t.Received))].(type) {
	case *pbft.Vote:
		v := *m
		switch a.t.Rand.IntN(4) {
		case 0:
			v.View++
		case 1:
			v.Phase = pbft.Prepare
		case 2:
			v.Phase = pbft.Commit
		case 3:
			v.Value.Sequence += uint64(a.t.Rand.IntN(1000))
		}
		signVote(a.t, &v)
		return []ordering.Outgoing{{To: ordering.ToAll, Message: &v}}
	case *pbft.PrePrepare:
		v := &pbft.Vote{Epoch: m.Epoch, Phase: pbft.Commit, View: m.View, Value: m.Value}
		signVote(a.t, v)
		return []ordering.Outgoing{{To: ordering.ToAll, Message: v}}
	case *pbft.Checkpoint:
		c := *m
		c.Sequence += uint64(a.t.Rand.IntN(3)) * 1000
		c.Signature = a.t.Sign(pbft.CheckpointDigest(a.t.Network, c.Sequence, c.Hash))
		return []ordering.Outgoing{{To: ordering.ToAll, Message: &c}}
	}
	return nil
}

// forger resigns without need, hides its certificates or shows old ones, and
// begins views with the resignations that suit it.
type forger struct {
	t   *Traitor
	old []*pbft.ViewChange // its own ones
}

func (a *forger) Send(out ordering.Outgoing) []ordering.Outgoing {
	switch m := out.Message.(type) {
	case *pbft.ViewChange:
		a.old = append(a.old, m)
		forged := *m
		switch a.t.Rand.IntN(4) {
		case 0:
			forged.Prepared = nil
		case 1:
			if k := len(m.Prepared); k > 0 {
				i := a.t.Rand.IntN(k)
				forged.Prepared = slices.Delete(slices.Clone(m.Prepared), i, i+1)
			}
		case 2:
			stale := a.old[a.t.Rand.IntN(len(a.old))]
			forged.Stable, forged.StableHash, forged.Proof, forged.Prepared = stale.Stable, stale.StableHash, stale.Proof, stale.Prepared
		default:
			return []ordering.Outgoing{out}
		}
		forged.Signature = a.t.Sign(forged.Digest(a.t.Network))
		return []ordering.Outgoing{{To: out.To, Message: &forged}}
	case *pbft.NewView:
		return a.newViews(out, m)
	}
	return []ordering.Outgoing{out}
}

// newViews begins the view differently for different members: with resignations
// of its own making, or with one changed that is not its own.
func (a *forger) newViews(out ordering.Outgoing, m *pbft.NewView) []ordering.Outgoing {
	forged := *m
	forged.Changes = slices.Clone(m.Changes)
	for i, vc := range forged.Changes {
		if int(vc.Member) != a.t.Self && a.t.Rand.IntN(4) > 0 {
			continue
		}
		change := *vc
		change.Prepared = nil
		if int(vc.Member) == a.t.Self {
			change.Signature = a.t.Sign(change.Digest(a.t.Network))
		}
		forged.Changes[i] = &change
	}
	forged.Signature = a.t.Sign(forged.Digest(a.t.Network))
	e := equivocator{t: a.t}
	return e.split(out, &forged)
}

func (a *forger) Tick() []ordering.Outgoing {
	if a.t.Rand.IntN(60) > 0 || len(a.old) == 0 {
		return nil
	}
	vc := *a.old[len(a.old)-1]
	vc.View += uint64(a.t.Rand.IntN(4))
	vc.Signature = a.t.Sign(vc.Digest(a.t.Network))
	return []ordering.Outgoing{{To: ordering.ToAll, Message: &vc}}
}

// withholder does its part except for some sequences and some members.
type withholder struct{ t *Traitor }

func (a *withholder) Tick() []ordering.Outgoing { return nil }

func (a *withholder) Send(out ordering.Outgoing) []ordering.Outgoing {
	switch m := out.Message.(type) {
	case *pbft.PrePrepare:
		if m.Value.Sequence%3 == 0 {
			return nil
		}
		// Enough members for a decision, and one that never hears of it.
		return a.except(out, a.t.Rand.IntN(a.t.Members.N()))
	case *pbft.Vote:
		if m.Phase == pbft.Commit {
			return a.except(out, a.t.Rand.IntN(a.t.Members.N()))
		}
	case *pbft.Batch, *pbft.Decided:
		return nil
	}
	return []ordering.Outgoing{out}
}

func (a *withholder) except(out ordering.Outgoing, member int) []ordering.Outgoing {
	if out.To != ordering.ToAll {
		return []ordering.Outgoing{out}
	}
	var list []ordering.Outgoing
	for to := range a.t.Members.N() {
		if to != member && to != a.t.Self {
			list = append(list, ordering.Outgoing{To: to, Message: out.Message})
		}
	}
	return list
}
