package sim

import (
	"slices"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/identity"
	"github.com/tallystick/tallystick/ordering"
)

// node is an orderer with its disk. What is in records and blocks is synced.
type node struct {
	w       *world
	number  int
	key     identity.PublicKey
	traitor *traitor

	alive   bool
	life    int // counts boots: what was scheduled in an earlier life is void
	machine ordering.Machine
	epoch   int // of the machine
	busy    *ordering.Ready

	records map[ordering.RecordKey][]byte
	blocks  []*block.Block // from the genesis on

	period int   // units of its tick
	offset int64 // of its clock
}

func (w *world) addNode(key identity.PublicKey, traitor bool) *node {
	n := &node{
		w: w, number: len(w.nodes), key: key,
		records: make(map[ordering.RecordKey][]byte),
		blocks:  []*block.Block{w.genesis},
		period:  unitsPerTick - 2 + w.rand.IntN(5),
		offset:  w.rand.Int64N(maxSkew/4) - maxSkew/8,
	}
	w.nodes = append(w.nodes, n)
	if traitor {
		n.traitor = newTraitor(w, n)
	}
	return n
}

func (n *node) tip() *block.Block { return n.blocks[len(n.blocks)-1] }

// epochAt returns the number of the epoch that orders the block after the tip.
func (n *node) epochAt() int {
	e := 0
	for e+1 < len(n.w.epochs) && n.w.epochs[e+1].First <= n.tip().Number+1 {
		e++
	}
	return e
}

func (n *node) options(epoch int) ordering.MachineOptions {
	sc := &n.w.sc
	members := n.w.epochs[epoch]
	return ordering.MachineOptions{
		Network: n.w.network, Members: members, Self: members.Set.Index(n.key),
		Sign: n.w.scheme.signer(n.key), Seed: n.w.seed + uint64(n.number),
		Window: sc.Window, Checkpoint: sc.Interval, MaxLife: sc.MaxLife, MaxSkew: maxSkew,
		BatchTxs: sc.BatchTxs, BatchBytes: 1 << 16, BatchTicks: 2, Pipeline: sc.Pipeline,
		MaxWaiting: 1000, MaxWaitingBytes: 1 << 20,
		RequestTicks: sc.Requests, StatusTicks: 4, FetchTicks: 4,
	}
}

// boot starts the node from its disk. One that is no member at its height does
// not run.
func (n *node) boot() {
	epoch := n.epochAt()
	if n.alive || n.w.epochs[epoch].Set.Index(n.key) < 0 {
		return
	}
	var records []ordering.Record
	for key, value := range n.records {
		records = append(records, ordering.Record{Key: key, Value: slices.Clone(value)})
	}
	slices.SortFunc(records, func(a, b ordering.Record) int {
		if a.Key.Before(b.Key) {
			return -1
		}
		return 1
	})
	recent := n.blocks[max(0, len(n.blocks)-int(n.w.sc.MaxLife)):]
	m, err := n.w.spec.Protocol.New(n.options(epoch), ordering.Start{Tip: n.tip(), Recent: recent}, records)
	if err != nil {
		n.w.fail("node %d does not start: %v", n.number, err)
		return
	}
	n.alive, n.machine, n.epoch, n.busy = true, m, epoch, nil
	n.life++
	n.w.note('b', n.number, nil)
	n.announce()
	n.pump()
}

// announce tells the machine of a configuration that its blocks brought and that
// is still to come.
func (n *node) announce() {
	if n.epoch+1 < len(n.w.epochs) {
		next := n.w.epochs[n.epoch+1]
		if next.First-n.w.sc.Window-1 <= n.tip().Number {
			if err := n.machine.Reconfigure(next); err != nil {
				n.w.fail("node %d: %v", n.number, err)
			}
		}
	}
}

// crash loses what is not synced: of the records being written, some may have
// reached the disk.
func (n *node) crash() {
	if !n.alive || n.w.healed {
		return
	}
	if n.busy != nil {
		for _, r := range n.busy.Persist[:n.w.rand.IntN(len(n.busy.Persist)+1)] {
			n.records[r.Key] = r.Value
		}
	}
	n.alive, n.machine, n.busy = false, nil, nil
	n.life++
	n.w.result.Restarts++
	n.w.note('c', n.number, nil)
	n.w.after(1+n.w.rand.IntN(400), n.boot)
}

func (n *node) tickSoon() { n.w.after(1+n.w.rand.IntN(n.period), n.tick) }

func (n *node) tick() {
	n.w.after(n.period, n.tick)
	if !n.alive {
		return
	}
	n.machine.Tick(n.clock())
	if n.traitor != nil {
		n.sendAll(n.traitor.tick(), uint64(n.epoch))
	}
	n.pump()
}

func (n *node) clock() int64 {
	passed := int64(n.w.now) * microsPerUnit
	return clockOrigin + passed + passed/1000*int64(n.period-unitsPerTick) + n.offset
}

// pump carries out what the machine wants, one Ready after another, each of them
// after its records are synced.
func (n *node) pump() {
	for n.alive && n.busy == nil && n.w.err == nil {
		r := n.machine.Ready()
		if r.Fault != nil {
			n.fault(r.Fault)
			return
		}
		if r.Empty() {
			return
		}
		delay := 0
		if len(r.Persist)+len(r.Decided) > 0 && n.w.sc.SyncDelay > 0 {
			delay = n.w.rand.IntN(n.w.sc.SyncDelay)
		}
		if delay == 0 {
			n.carryOut(&r)
			continue
		}
		n.busy = &r
		life := n.life
		n.w.after(delay, func() {
			if n.life == life {
				n.busy = nil
				n.carryOut(&r)
				n.pump()
			}
		})
	}
}

func (n *node) fault(err error) {
	if n.traitor != nil {
		n.alive = false // what a traitor does to itself is its own affair
		return
	}
	n.w.fail("node %d stopped: %v", n.number, err)
}

func (n *node) carryOut(r *ordering.Ready) {
	for _, rec := range r.Persist {
		n.records[rec.Key] = rec.Value
	}
	for key := range n.records { // any order: deleting
		if key.Sequence != 0 && key.Sequence <= r.Forget {
			delete(n.records, key)
		}
	}
	for i := range r.Decided {
		n.decided(&r.Decided[i])
	}
	n.sendAll(r.Send, r.Epoch)
	for _, s := range r.Serve {
		for h := s.From; h <= min(s.Upto, n.tip().Number); h++ {
			if n.blocks[h].ConfigID != n.w.epochs[s.Epoch].ConfigID {
				continue
			}
			if msg := n.w.spec.Protocol.Serve(n.blocks[h], s.Epoch); msg != nil {
				n.sendTo(n.w.epochs[s.Epoch].Set.Keys[s.To], msg.AppendTo(nil))
			}
		}
	}
	if len(r.Decided) > 0 && n.w.err == nil {
		n.machine.Advance(n.tip().Number)
		if n.epoch = n.epochAt(); n.epoch > 0 {
			n.w.join(n)
			if n.w.epochs[n.epoch].Set.Index(n.key) < 0 {
				n.w.clients.left(n)
			}
			if n.traitor != nil {
				n.traitor.Members, n.traitor.Self = n.w.epochs[n.epoch], n.w.epochs[n.epoch].Set.Index(n.key)
			}
		}
	}
}

func (n *node) decided(d *ordering.Decision) {
	b := d.Block
	if n.traitor == nil {
		n.w.check.decided(n, d)
	}
	n.blocks = append(n.blocks, b)
	n.w.note('d', n.number, b.PrevHash[:])
	if n.w.err == nil && len(n.w.epochs) == 1 && n.w.sc.Joins && n.traitor == nil && hasConfig(b) {
		next := n.w.epochs[0]
		next.Epoch, next.First, next.Set = 1, b.Number+n.w.sc.Window+1, n.w.target
		next.ConfigID = block.Hash{1}
		n.w.epochs = append(n.w.epochs, next)
	}
	if len(n.w.epochs) > 1 && b.Number+n.w.sc.Window+1 == n.w.epochs[1].First {
		if err := n.machine.Reconfigure(n.w.epochs[1]); err != nil {
			n.w.fail("node %d: %v", n.number, err)
		}
	}
}

// join lets nodes that become members fetch the chain from one that has it, and
// start.
func (w *world) join(from *node) {
	for _, n := range w.nodes {
		if !n.alive && n.life == 0 && n.tip().Number < w.epochs[1].First-1 && w.epochs[0].Set.Index(n.key) < 0 {
			n.blocks = slices.Clone(from.blocks[:w.epochs[1].First])
			n.boot()
		}
	}
}

func (n *node) sendAll(list []ordering.Outgoing, epoch uint64) {
	for _, out := range list {
		if n.traitor == nil {
			n.w.check.sent(n, out.Message)
			n.send(out, epoch)
			continue
		}
		for _, o := range n.traitor.send(out) {
			n.send(o, epoch)
		}
	}
}

func (n *node) send(out ordering.Outgoing, epoch uint64) {
	keys := n.w.epochs[epoch].Set.Keys
	if out.To >= len(keys) && n.traitor != nil {
		return // it confuses epochs
	}
	raw := out.Message.AppendTo(nil)
	if out.To != ordering.ToAll {
		n.sendTo(keys[out.To], raw)
		return
	}
	for _, key := range keys {
		if key != n.key {
			n.sendTo(key, raw)
		}
	}
}

func (n *node) sendTo(key identity.PublicKey, raw []byte) {
	for _, to := range n.w.nodes {
		if to.key == key {
			if n.traitor != nil {
				raw = n.traitor.corrupt(raw)
			}
			n.w.net.send(n, to, raw)
		}
	}
}

// receive verifies a message and steps the machine.
func (n *node) receive(from *node, raw []byte) {
	if !n.alive {
		return
	}
	n.w.note('m', n.number, raw)
	n.w.result.Messages++
	epoch, ok := ordering.EpochOf(raw)
	if !ok || epoch > uint64(n.epoch) {
		return
	}
	members := n.w.epochs[epoch]
	v := ordering.Verifier{Protocol: n.w.spec.Protocol, Network: n.w.network, Members: members, Signatures: n.w.scheme.check, Admit: n.w.clients.admit}
	verified, err := v.Verify(members.Set.Index(from.key), raw)
	if err != nil {
		if from.traitor == nil && n.traitor == nil {
			n.w.fail("node %d cannot verify what honest node %d sent: %v", n.number, from.number, err)
		}
		return
	}
	if n.traitor != nil && !n.traitor.receive(verified.Message()) {
		return
	}
	n.machine.Step(verified)
	n.pump()
}
