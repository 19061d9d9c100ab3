package pbft

import (
	"errors"
	"fmt"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/identity"
	"github.com/tallystick/tallystick/ordering"
)

// Every message begins with its kind and the epoch that it belongs to, 8 bytes.
const (
	kindPrePrepare byte = iota + 1
	kindPrepare
	kindCommit
	kindCheckpoint
	kindViewChange
	kindNewView
	kindReport
	kindForward
	kindFetch
	kindDecided
	kindFetchBatch
	kindBatch
	kindStable
)

// Phase tells votes apart.
type Phase byte

// The phases of a vote.
const (
	Prepare = Phase(kindPrepare)
	Commit  = Phase(kindCommit)
)

// PrePrepare is the primary's proposal of a batch at a sequence, and its prepare
// vote for it.
type PrePrepare struct {
	Epoch     uint64
	View      uint64
	Value     identity.Commit
	Txs       []*block.Tx
	Signature identity.Signature // over PrepareDigest
}

// Vote is a member's prepare or commit vote. Both are evidence: prepare votes make
// the prepared certificates of view changes, commit votes those of blocks.
type Vote struct {
	Epoch     uint64
	Phase     Phase
	View      uint64
	Value     identity.Commit
	Signature identity.Signature // over PrepareDigest or identity.CommitDigest
}

// Checkpoint says that a member has all blocks up to Sequence, the last of which
// has the hash.
type Checkpoint struct {
	Epoch     uint64
	Sequence  uint64
	Hash      block.Hash
	Signature identity.Signature // over CheckpointDigest
}

// Prepared is a prepared certificate: a quorum of prepare votes of one view.
type Prepared struct {
	View  uint64
	Value identity.Commit
	Votes []identity.Vote
}

// ViewChange is a member's signed resignation from all views before View, with
// what it knows that they may have decided.
type ViewChange struct {
	Epoch      uint64
	Member     uint16
	View       uint64
	Stable     uint64          // last stable checkpoint
	StableHash block.Hash      // block hash there
	Proof      []identity.Vote // quorum of checkpoint votes; none where the epoch begins
	Prepared   []Prepared      // above Stable, by ascending sequence
	Signature  identity.Signature
}

// NewView begins a view. What it re-proposes is not in it: every member computes
// that from the view changes.
type NewView struct {
	Epoch     uint64
	View      uint64
	Changes   []*ViewChange // a quorum, by ascending member
	Signature identity.Signature
}

// Report is where a member stands. It is a hint, except for the checkpoint vote.
type Report struct {
	Epoch    uint64
	View     uint64
	Changing bool
	Height   uint64 // last block decided in order
	Durable  uint64
	Stable   uint64
	// Vote is the member's latest checkpoint vote; its Sequence is 0 if there is
	// none.
	Vote Checkpoint
}

// Forward hands transactions of a member's clients to the primary, or to
// everybody when the primary does not order them.
type Forward struct {
	Epoch uint64
	Txs   []*block.Tx
}

// Fetch asks for decided blocks, From and Upto included.
type Fetch struct {
	Epoch      uint64
	From, Upto uint64
}

// Decided is a decided batch with the commit votes that prove it.
type Decided struct {
	Epoch uint64
	View  uint64
	Value identity.Commit
	Votes []identity.Vote
	Txs   []*block.Tx
}

// FetchBatch asks for the transactions of a digest at a sequence.
type FetchBatch struct {
	Epoch    uint64
	Sequence uint64
	Digest   block.Hash
}

// Batch answers FetchBatch.
type Batch struct {
	Epoch    uint64
	Sequence uint64
	Digest   block.Hash
	Txs      []*block.Tx
}

// Stable proves a stable checkpoint to a member that lacks the votes.
type Stable struct {
	Epoch    uint64
	Sequence uint64
	Hash     block.Hash
	Votes    []identity.Vote
}

// Kind implements ordering.Message.
func (*Stable) Kind() string { return "stable" }

// Check implements ordering.Message.
func (m *Stable) Check(c *ordering.Checker) error {
	if err := fits(c, m.Epoch); err != nil {
		return err
	}
	return c.Votes(CheckpointDigest(c.Network, m.Sequence, m.Hash), m.Votes)
}

// Kind implements ordering.Message.
func (*PrePrepare) Kind() string { return "pre-prepare" }

// Kind implements ordering.Message.
func (m *Vote) Kind() string {
	if m.Phase == Prepare {
		return "prepare"
	}
	return "commit"
}

// Kind implements ordering.Message.
func (*Checkpoint) Kind() string { return "checkpoint" }

// Kind implements ordering.Message.
func (*ViewChange) Kind() string { return "view-change" }

// Kind implements ordering.Message.
func (*NewView) Kind() string { return "new-view" }

// Kind implements ordering.Message.
func (*Report) Kind() string { return "report" }

// Kind implements ordering.Message.
func (*Forward) Kind() string { return "forward" }

// Kind implements ordering.Message.
func (*Fetch) Kind() string { return "fetch" }

// Kind implements ordering.Message.
func (*Decided) Kind() string { return "decided" }

// Kind implements ordering.Message.
func (*FetchBatch) Kind() string { return "fetch-batch" }

// Kind implements ordering.Message.
func (*Batch) Kind() string { return "batch" }

// fitsMessages reports why the largest message, a new view in which every member of
// a quorum shows certificates for a whole window, could not be sent.
func fitsMessages(members *ordering.Membership, window uint64) error {
	const vote = 2 + len(identity.Signature{})
	q := members.Quorum()
	certificate := minPreparedBytes + q*vote
	change := 256 + q*vote + int(window)*certificate
	if q*change > ordering.MaxMessageBytes {
		return fmt.Errorf("pbft: a window of %d is too large for %d members: a view change could take %d bytes, the limit is %d",
			window, members.N(), q*change, ordering.MaxMessageBytes)
	}
	return nil
}

var errEpoch = errors.New("it belongs to another configuration")

// fits reports why a message cannot be checked against the membership.
func fits(c *ordering.Checker, epoch uint64) error {
	if epoch != c.Members.Epoch {
		return errEpoch
	}
	return nil
}

// Check implements ordering.Message.
func (m *PrePrepare) Check(c *ordering.Checker) error {
	if err := fits(c, m.Epoch); err != nil {
		return err
	}
	if primary := PrimaryOf(m.View, c.Members.N()); c.From != primary {
		return fmt.Errorf("member %d is the primary of view %d", primary, m.View)
	}
	if err := c.Signature(c.From, PrepareDigest(c.Network, m.View, m.Value), m.Signature); err != nil {
		return err
	}
	if err := c.Batch(m.Value.Batch, m.Txs); err != nil {
		return err
	}
	return c.Admit(m.Txs)
}

// digest is what the vote signs.
func (m *Vote) digest(network block.Hash) [32]byte {
	if m.Phase == Prepare {
		return PrepareDigest(network, m.View, m.Value)
	}
	return identity.CommitDigest(network, m.View, m.Value)
}

// Check implements ordering.Message.
func (m *Vote) Check(c *ordering.Checker) error {
	if err := fits(c, m.Epoch); err != nil {
		return err
	}
	return c.Signature(c.From, m.digest(c.Network), m.Signature)
}

// Check implements ordering.Message.
func (m *Checkpoint) Check(c *ordering.Checker) error {
	if err := fits(c, m.Epoch); err != nil {
		return err
	}
	return c.Signature(c.From, CheckpointDigest(c.Network, m.Sequence, m.Hash), m.Signature)
}

// Check implements ordering.Message.
func (m *ViewChange) Check(c *ordering.Checker) error {
	if int(m.Member) != c.From {
		return fmt.Errorf("it is that of member %d", m.Member)
	}
	return m.check(c)
}

// check is Check whoever sent the message: new views carry those of others.
func (m *ViewChange) check(c *ordering.Checker) error {
	if err := fits(c, m.Epoch); err != nil {
		return err
	}
	if m.View == 0 {
		return errors.New("nothing changes to view 0")
	}
	if m.Stable+1 < c.Members.First {
		return fmt.Errorf("stable checkpoint %d is before the epoch", m.Stable)
	}
	// Where the epoch begins everybody stands without votes.
	if m.Stable+1 != c.Members.First {
		if err := c.Votes(CheckpointDigest(c.Network, m.Stable, m.StableHash), m.Proof); err != nil {
			return fmt.Errorf("checkpoint %d: %w", m.Stable, err)
		}
	} else if len(m.Proof) != 0 {
		return errors.New("a proof where the epoch begins")
	}
	last := m.Stable
	for i := range m.Prepared {
		p := &m.Prepared[i]
		switch {
		case p.Value.Sequence <= last || p.Value.Sequence > m.Stable+ordering.MaxWindow:
			return fmt.Errorf("certificate of sequence %d after %d", p.Value.Sequence, last)
		case p.View >= m.View:
			return fmt.Errorf("certificate of view %d in the change to %d", p.View, m.View)
		}
		last = p.Value.Sequence
		if err := c.Votes(PrepareDigest(c.Network, p.View, p.Value), p.Votes); err != nil {
			return fmt.Errorf("certificate of sequence %d: %w", p.Value.Sequence, err)
		}
	}
	return c.Signature(int(m.Member), m.Digest(c.Network), m.Signature)
}

// Check implements ordering.Message. Anybody may pass a new view on.
func (m *NewView) Check(c *ordering.Checker) error {
	if err := fits(c, m.Epoch); err != nil {
		return err
	}
	if m.View == 0 {
		return errors.New("view 0 begins by itself")
	}
	if len(m.Changes) != c.Members.Quorum() {
		return fmt.Errorf("%d view changes, not %d", len(m.Changes), c.Members.Quorum())
	}
	for i, vc := range m.Changes {
		switch {
		case vc.View != m.View:
			return fmt.Errorf("view change to %d in view %d", vc.View, m.View)
		case i > 0 && m.Changes[i-1].Member >= vc.Member:
			return errors.New("view changes are not by ascending, distinct members")
		}
		if err := vc.check(c); err != nil {
			return fmt.Errorf("view change of member %d: %w", vc.Member, err)
		}
	}
	return c.Signature(PrimaryOf(m.View, c.Members.N()), m.Digest(c.Network), m.Signature)
}

// Check implements ordering.Message.
func (m *Report) Check(c *ordering.Checker) error {
	if err := fits(c, m.Epoch); err != nil {
		return err
	}
	if m.Vote.Sequence == 0 {
		return nil
	}
	return m.Vote.Check(c)
}

// Check implements ordering.Message.
func (m *Forward) Check(c *ordering.Checker) error {
	if err := fits(c, m.Epoch); err != nil {
		return err
	}
	return c.Admit(m.Txs)
}

// Check implements ordering.Message.
func (m *Fetch) Check(c *ordering.Checker) error {
	if m.From == 0 || m.Upto < m.From || m.Upto-m.From >= maxFetch {
		return fmt.Errorf("blocks %d to %d", m.From, m.Upto)
	}
	return fits(c, m.Epoch)
}

// Check implements ordering.Message.
func (m *Decided) Check(c *ordering.Checker) error {
	if err := fits(c, m.Epoch); err != nil {
		return err
	}
	if m.Value.Sequence < c.Members.First {
		return fmt.Errorf("sequence %d is before the epoch", m.Value.Sequence)
	}
	if err := c.Votes(identity.CommitDigest(c.Network, m.View, m.Value), m.Votes); err != nil {
		return err
	}
	return c.Batch(m.Value.Batch, m.Txs)
}

// Check implements ordering.Message.
func (m *FetchBatch) Check(c *ordering.Checker) error { return fits(c, m.Epoch) }

// Check implements ordering.Message.
func (m *Batch) Check(c *ordering.Checker) error {
	if err := fits(c, m.Epoch); err != nil {
		return err
	}
	return c.Batch(m.Digest, m.Txs)
}
