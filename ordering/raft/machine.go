package raft

import (
	"context"
	"errors"
	"fmt"
	"io"

	hraft "github.com/hashicorp/raft"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/identity"
)

// machine makes blocks of committed entries. Its methods are called by one
// goroutine of the library, but for Persist of a snapshot.
type machine struct {
	o *Orderer
	state
	// missing, if not nil, is a state that the machine has to reach by blocks of
	// other orderers before anything else.
	missing *state
	// stopped tells that an entry was not applied: no later one may be.
	stopped bool
}

// newMachine resumes from a snapshot's state.
func newMachine(o *Orderer, from state) (*machine, error) {
	m := &machine{o: o}
	if from.number > o.tail.Height() {
		m.missing = &from
		return m, nil
	}
	return m, m.resume(from)
}

// resume goes on from a state whose block the store has.
func (m *machine) resume(from state) error {
	b, err := m.o.durable(from.number)
	if err != nil {
		return err
	}
	if stateOf(b) != from {
		return fmt.Errorf("raft: block %d of the store has hash %s, that of the snapshot is %s", b.Number, b.Hash(), from.hash)
	}
	m.o.recent.reset()
	remember := m.o.opts.Remember
	for h := from.number - min(from.number, remember) + 1; h <= from.number; h++ {
		if b, err = m.o.durable(h); err != nil {
			return err
		}
		items := itemsOf(b)
		m.o.recent.admit(h, items)
		m.o.pool.remove(items)
	}
	m.state, m.missing = from, nil
	m.o.applied.Store(from.number)
	return nil
}

func itemsOf(b *block.Block) []item {
	items := make([]item, len(b.Txs))
	for i, tx := range b.Txs {
		items[i] = itemOf(tx)
	}
	return items
}

// Apply implements the library's interface; it calls ApplyBatch only.
func (m *machine) Apply(l *hraft.Log) any { return m.ApplyBatch([]*hraft.Log{l})[0] }

// ApplyBatch applies committed entries. An entry that cannot be applied ends the
// service: the orderers would differ from there on.
func (m *machine) ApplyBatch(logs []*hraft.Log) []any {
	for _, l := range logs {
		if l.Type != hraft.LogCommand || m.stopped {
			continue
		}
		if err := m.apply(l.Data); err != nil {
			m.fail(fmt.Errorf("raft: applying entry %d: %w", l.Index, err))
		}
	}
	return make([]any, len(logs))
}

// fail ends the service, unless it was closed while blocks were missing.
func (m *machine) fail(err error) {
	m.stopped = true
	if m.o.routing.Err() == nil || !errors.Is(err, context.Canceled) {
		m.o.stop(err)
	}
}

func (m *machine) apply(data []byte) error {
	if err := m.catchUp(); err != nil {
		return err
	}
	e, err := decodeEntry(data)
	if err != nil {
		return err
	}
	kept := m.o.recent.admit(m.number+1, e.txs)
	if len(kept) == 0 {
		return nil
	}
	b := &block.Block{
		Number:    m.number + 1,
		PrevHash:  m.hash,
		ConfigID:  m.o.config.ID(m.number + 1),
		Timestamp: max(e.proposed, m.timestamp+1),
		Txs:       make([]*block.Tx, len(kept)),
	}
	for i := range kept {
		b.Txs[i] = kept[i].tx
	}
	m.state = state{b.Number, b.Seal(), b.Timestamp}
	if err := m.emit(b); err != nil {
		return err
	}
	if err := m.o.config.Advance(b); err != nil {
		return err
	}
	m.o.applied.Store(b.Number)
	m.o.pool.remove(kept)
	notify(m.o.wake)
	return nil
}

// emit certifies a block and hands it on, or compares it with what the store has
// from before a restart.
func (m *machine) emit(b *block.Block) error {
	if b.Number > m.o.tail.Height() {
		// Blocks on their way to the store are not in it: what comes here twice
		// follows a restart.
		var err error
		if b.Certificate, err = m.o.certify(b.Number, b.Hash()); err != nil {
			return err
		}
		if !m.o.push(b) {
			return context.Cause(m.o.end)
		}
		return nil
	}
	old, err := m.o.durable(b.Number)
	if err != nil {
		return err
	}
	if old.Hash() != b.Hash() {
		return fmt.Errorf("block %d of the store has hash %s, that of the log is %s", b.Number, old.Hash(), b.Hash())
	}
	return nil
}

// certify signs a block's hash with the position that the orderer has in its
// configuration.
func (o *Orderer) certify(number block.Height, hash block.Hash) ([]byte, error) {
	member, err := o.config.Member(number)
	if err != nil {
		return nil, err
	}
	digest := identity.VoteDigest(o.opts.Network, 0, hash)
	cert := identity.Certificate{Votes: []identity.Vote{{Member: member, Signature: o.opts.Signer.Sign(digest[:])}}}
	return cert.Encode(), nil
}

// Snapshot implements the library's interface.
func (m *machine) Snapshot() (hraft.FSMSnapshot, error) {
	if err := m.catchUp(); err != nil {
		return nil, err
	}
	if m.stopped {
		return nil, errors.New("raft: the machine has stopped")
	}
	return &snapshot{m.o, m.state}, nil
}

// snapshot is a state whose block is perhaps not durable yet.
type snapshot struct {
	o *Orderer
	state
}

// Persist writes the state once the store has its block: whoever resumes from
// the snapshot does not get the block from the log again.
func (s *snapshot) Persist(sink hraft.SnapshotSink) error {
	err := s.o.tail.Wait(s.o.routing, s.o.end, s.number)
	if err == nil {
		_, err = sink.Write(s.encode())
	}
	if err != nil {
		_ = sink.Cancel() // the first error says it
		return err
	}
	return sink.Close()
}

// Release implements the library's interface.
func (s *snapshot) Release() {}

// Restore implements the library's interface: a snapshot of the leader replaces
// the log.
func (m *machine) Restore(from io.ReadCloser) error {
	s, err := readState(from)
	if err != nil {
		return err
	}
	m.missing = &s
	if err = m.catchUp(); err != nil {
		m.fail(fmt.Errorf("raft: restoring a snapshot: %w", err))
	}
	return err
}

// catchUp reaches the missing state.
func (m *machine) catchUp() error {
	if m.missing == nil {
		return nil
	}
	if err := m.o.fetchUpTo(m.missing); err != nil {
		return err
	}
	return m.resume(*m.missing)
}

func readState(r io.Reader) (state, error) {
	b, err := io.ReadAll(io.LimitReader(r, stateBytes+1))
	if err != nil {
		return state{}, fmt.Errorf("raft: reading a snapshot: %w", err)
	}
	return decodeState(b)
}

// lastSnapshot returns the state of the newest snapshot, or that of the genesis.
func (o *Orderer) lastSnapshot(snapshots hraft.SnapshotStore) (state, error) {
	list, err := snapshots.List()
	if err != nil {
		return state{}, fmt.Errorf("raft: listing snapshots: %w", err)
	}
	if len(list) == 0 {
		genesis, err := o.durable(0)
		if err != nil {
			return state{}, err
		}
		return stateOf(genesis), nil
	}
	_, r, err := snapshots.Open(list[0].ID)
	if err != nil {
		return state{}, fmt.Errorf("raft: opening snapshot %s: %w", list[0].ID, err)
	}
	defer r.Close()
	return readState(r)
}
