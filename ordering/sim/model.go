package sim

import (
	"encoding/binary"
	"fmt"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/identity"
	"github.com/tallystick/tallystick/ordering"
)

// Model is a cluster without faults in which everything but time is free: messages
// take Delay units, syncs take Sync units, computing takes none. It shows what the
// protocol makes of a network, for more members than a machine can host.
type Model struct {
	Nodes       int
	Silent      int // members that never answer, the last ones; at most f
	Window      uint64
	MaxInFlight int // see ordering.MachineOptions
	BatchTxs    int
	Delay, Sync int // units
	Units       int // that the model runs
}

// ModelResult is what a model came to.
type ModelResult struct {
	Blocks   int // decided at the first member
	Txs      int
	Messages int
}

// model is a running one.
type model struct {
	Model
	spec     Spec
	verifier ordering.Verifier
	nodes    []ordering.Machine
	busy     []int           // unit at which a member's sync is done
	queue    [][]modelPacket // by unit
	now      int
	nonce    uint64
	result   ModelResult
}

type modelPacket struct {
	from, to int
	message  ordering.Message
}

// Run runs the model with as many transactions as the first primary can take.
func (c Model) Run(spec Spec) (ModelResult, error) {
	m, err := newModel(c, spec)
	if err != nil {
		return ModelResult{}, err
	}
	for m.now = 0; m.now < c.Units; m.now++ {
		if err := m.unit(); err != nil {
			return m.result, fmt.Errorf("unit %d: %w", m.now, err)
		}
	}
	return m.result, nil
}

func newModel(c Model, spec Spec) (*model, error) {
	s := scheme{secrets: make(map[identity.PublicKey][32]byte)}
	set := identity.OrdererSet{Quorum: ordering.Quorum(c.Nodes)}
	for i := range c.Nodes {
		set.Keys = append(set.Keys, s.member(i))
	}
	m := &model{Model: c, spec: spec, busy: make([]int, c.Nodes), queue: make([][]modelPacket, max(c.Delay, c.Sync)+c.Sync+2)}
	members := ordering.Membership{First: 1, Set: set}
	m.verifier = ordering.Verifier{Protocol: spec.Protocol, Members: members, Signatures: s.check}
	genesis := &block.Block{Timestamp: clockOrigin}
	genesis.Seal()
	for i := range c.Nodes - c.Silent {
		machine, err := spec.Protocol.New(ordering.MachineOptions{
			Members: members, Self: i, Sign: s.signer(set.Keys[i]),
			Window: c.Window, Checkpoint: max(c.Window/4, 1), MaxInFlight: c.MaxInFlight, MaxSkew: 1 << 50,
			BatchTxs: c.BatchTxs, Pipeline: int(c.Window), MaxWaiting: 1 << 20, MaxLife: 1 << 20,
			// No timeout must be shorter than the network is slow.
			RequestTicks: uint64(100 * (c.Delay + c.Sync + 1)), StatusTicks: uint64(20 * (c.Delay + c.Sync + 1)),
		}, ordering.Start{Tip: genesis}, nil)
		if err != nil {
			return nil, err
		}
		m.nodes = append(m.nodes, machine)
	}
	return m, nil
}

// unit delivers what is due, lets everybody tick, and carries out what they want.
func (m *model) unit() error {
	due := m.queue[m.now%len(m.queue)]
	m.queue[m.now%len(m.queue)] = nil
	for _, p := range due {
		v, err := m.verifier.VerifyMessage(p.from, p.message)
		if err != nil {
			return err
		}
		m.nodes[p.to].Step(v)
		m.result.Messages++
	}
	for i, n := range m.nodes {
		n.Tick(clockOrigin + int64(m.now)*microsPerUnit)
		if i == n.Status().Primary {
			n.Submit(m.txs(min(n.Status().Room, 4*m.BatchTxs)))
		}
		if m.busy[i] > m.now {
			continue // its disk is busy
		}
		if err := m.carryOut(i, n.Ready()); err != nil {
			return err
		}
	}
	return nil
}

func (m *model) carryOut(i int, r ordering.Ready) error {
	if r.Fault != nil {
		return r.Fault
	}
	delay := m.Delay
	if len(r.Persist) > 0 {
		delay += m.Sync
		m.busy[i] = m.now + m.Sync
	}
	for _, out := range r.Send {
		for to := range m.nodes {
			if to != i && (out.To == to || out.To == ordering.ToAll) {
				at := (m.now + max(delay, 1)) % len(m.queue)
				m.queue[at] = append(m.queue[at], modelPacket{i, to, out.Message})
			}
		}
	}
	if k := len(r.Decided); k > 0 {
		if i == 0 {
			m.result.Blocks += k
			for _, d := range r.Decided {
				m.result.Txs += len(d.Block.Txs)
			}
		}
		m.nodes[i].Advance(r.Decided[k-1].Block.Number)
	}
	return nil
}

func (m *model) txs(n int) []*block.Tx {
	txs := make([]*block.Tx, 0, max(n, 0))
	for range n {
		m.nonce++
		tx := &block.Tx{User: identity.UserID{Org: "org", Name: "client"}, Call: block.Call{Schema: "blockchain", Name: "f"}, ValidUntil: 1 << 20}
		binary.BigEndian.PutUint64(tx.Nonce[:], m.nonce)
		if decoded, err := block.DecodeTx(tx.Encode()); err == nil {
			txs = append(txs, decoded)
		}
	}
	return txs
}
