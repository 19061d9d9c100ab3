package sim

import (
	"slices"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/ordering"
)

// traitor is the byzantine side of a node: an honest machine whose messages go
// through adversaries.
type traitor struct {
	Traitor
	w         *world
	behaviour Adversary
	sent      []ordering.Outgoing // for replays
	mute      bool                // sends nothing for a while
	partial   uint64              // members that it serves, as bits; 0 for all
	replays   bool
	corrupts  bool
	censors   bool
}

func newTraitor(w *world, n *node) *traitor {
	t := &traitor{w: w, Traitor: Traitor{
		Rand: w.rand, Network: w.network, Members: w.epochs[0], Self: n.number, Sign: w.scheme.signer(n.key),
	}}
	t.Txs = func() []*block.Tx {
		txs := w.clients.txs
		return txs[max(0, len(txs)-1-w.rand.IntN(4)):]
	}
	if k := len(w.spec.Adversaries); k > 0 {
		t.behaviour = w.spec.Adversaries[w.rand.IntN(k)](&t.Traitor)
	}
	t.replays, t.corrupts = w.rand.IntN(3) == 0, w.rand.IntN(4) == 0
	t.censors = w.sc.Censored
	return t
}

// takes reports whether the traitor takes part in ordering a client's transaction.
func (t *traitor) takes(tx *block.Tx) bool {
	return !t.censors || tx.Nonce[7]%2 == 0
}

// receive looks at a message before the machine does, and may withhold it.
func (t *traitor) receive(m ordering.Message) bool {
	if len(t.Received) > 64 {
		t.Received = append(t.Received[:0], t.Received[32:]...)
	}
	t.Received = append(t.Received, m)
	return !t.censors || m.Kind() != "forward" || t.Rand.IntN(2) == 0
}

func (t *traitor) send(out ordering.Outgoing) []ordering.Outgoing {
	if len(t.sent) > 64 {
		t.sent = append(t.sent[:0], t.sent[32:]...)
	}
	t.sent = append(t.sent, out)
	list := []ordering.Outgoing{out}
	if t.behaviour != nil {
		list = t.behaviour.Send(out)
	}
	return t.choose(list)
}

// choose drops what this traitor does not want to have sent.
func (t *traitor) choose(list []ordering.Outgoing) []ordering.Outgoing {
	if t.mute {
		return nil
	}
	if t.partial == 0 {
		return list
	}
	var kept []ordering.Outgoing
	for _, o := range list {
		for to := range t.Members.N() {
			if (o.To == to || o.To == ordering.ToAll && to != t.Self) && t.partial>>to&1 == 1 {
				kept = append(kept, ordering.Outgoing{To: to, Message: o.Message})
			}
		}
	}
	return kept
}

// tick changes moods, repeats old messages and lets the behaviour act.
func (t *traitor) tick() []ordering.Outgoing {
	switch t.Rand.IntN(100) {
	case 0:
		t.mute = !t.mute
	case 1:
		t.mute, t.partial = false, t.Rand.Uint64()
	case 2, 3:
		t.mute, t.partial = false, 0
	}
	var list []ordering.Outgoing
	if t.replays && len(t.sent) > 0 && t.Rand.IntN(3) == 0 {
		old := t.sent[t.Rand.IntN(len(t.sent))]
		list = append(list, ordering.Outgoing{To: ordering.ToAll, Message: old.Message})
	}
	if t.behaviour != nil {
		list = append(list, t.behaviour.Tick()...)
	}
	return list
}

// corrupt flips a bit now and then.
func (t *traitor) corrupt(raw []byte) []byte {
	if t.corrupts && len(raw) > 0 && t.Rand.IntN(20) == 0 {
		raw = slices.Clone(raw)
		raw[t.Rand.IntN(len(raw))] ^= 1 << t.Rand.IntN(8)
	}
	return raw
}
