package ordering

import (
	"errors"
	"fmt"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/identity"
)

// Message is a decoded message of a protocol, a value of the protocol's package.
// It must not be changed once it was sent or decoded.
type Message interface {
	// Kind is a short name for metrics and traces.
	Kind() string
	// AppendTo appends the canonical bytes.
	AppendTo(dst []byte) []byte
	// Check says which signatures, certificates and batches the message rests
	// on, and reports what is wrong with its form. It cannot know whether the
	// message fits a machine's state.
	Check(c *Checker) error
}

// Verified is a message whose sender, form and signatures were checked. Only a
// [Verifier] makes one that is not empty, so that nothing unverified can reach
// a machine.
type Verified struct {
	from    int
	epoch   uint64
	message Message
}

// From is the member that sent the message, as its connection proved.
func (v Verified) From() int { return v.from }

// Epoch is the number of the configuration that it was checked against.
func (v Verified) Epoch() uint64 { return v.epoch }

// Message is the message, nil in an empty value.
func (v Verified) Message() Message { return v.message }

// SignatureCheck sets ok[i] to the verdict on items[i] and reports whether all
// are valid: the method VerifyBatch of an identity.BatchVerifier, or the check
// of another scheme under which the members of a test or an experiment sign.
type SignatureCheck func(items []identity.Item, ok []bool) bool

// Verifier makes verified messages. It may be used by any number of goroutines;
// a new membership needs a new one.
type Verifier struct {
	Protocol   Protocol
	Network    block.Hash
	Members    Membership
	Signatures SignatureCheck
	// Admit, if set, refuses transactions that this orderer does not let into a
	// batch, or returns nil: client signatures, for one. It sees whatever
	// is proposed or forwarded, and not what earlier views agreed on. An
	// honest primary must not propose what honest backups refuse: all
	// members need the same rule, or one that changes slowly.
	Admit func(txs []*block.Tx) error
}

// Verify decodes and checks a message that came over a connection of member from.
func (v *Verifier) Verify(from int, raw []byte) (Verified, error) {
	m, err := v.Protocol.Decode(raw)
	if err != nil {
		return Verified{}, err
	}
	return v.VerifyMessage(from, m)
}

// VerifyMessage is Verify for a decoded message.
func (v *Verifier) VerifyMessage(from int, m Message) (Verified, error) {
	if from < 0 || from >= v.Members.N() {
		return Verified{}, fmt.Errorf("ordering: a message from member %d of %d", from, v.Members.N())
	}
	c := Checker{From: from, Network: v.Network, Members: &v.Members, admit: v.Admit}
	if err := m.Check(&c); err != nil {
		return Verified{}, fmt.Errorf("ordering: %s of member %d: %w", m.Kind(), from, err)
	}
	if len(c.items) > 0 && !v.Signatures(c.items, make([]bool, len(c.items))) {
		return Verified{}, fmt.Errorf("ordering: %s of member %d: a signature does not verify", m.Kind(), from)
	}
	return Verified{from: from, epoch: v.Members.Epoch, message: m}, nil
}

// Checker collects what a message rests on; its verifier checks the signatures
// together.
type Checker struct {
	From    int
	Network block.Hash
	Members *Membership

	admit  func([]*block.Tx) error
	items  []identity.Item
	proven map[[32]byte]bool // digests of which a quorum is among items
}

// Signature demands that member has signed digest.
func (c *Checker) Signature(member int, digest [32]byte, sig identity.Signature) error {
	if member < 0 || member >= c.Members.N() {
		return fmt.Errorf("signature of member %d of %d", member, c.Members.N())
	}
	c.items = append(c.items, identity.Item{Key: c.Members.Set.Keys[member], Message: digest[:], Signature: sig})
	return nil
}

// Votes demands that a quorum has signed digest: distinct members in ascending
// order. The same digest is checked once for a message, whose certificates
// often agree.
func (c *Checker) Votes(digest [32]byte, votes []identity.Vote) error {
	if len(votes) < c.Members.Quorum() {
		return fmt.Errorf("%d votes, the quorum is %d", len(votes), c.Members.Quorum())
	}
	known := c.proven[digest]
	for i := range votes {
		if i > 0 && votes[i-1].Member >= votes[i].Member {
			return errors.New("votes are not by ascending, distinct members")
		}
		if known {
			continue
		}
		if err := c.Signature(int(votes[i].Member), digest, votes[i].Signature); err != nil {
			return err
		}
	}
	if c.proven == nil {
		c.proven = make(map[[32]byte]bool)
	}
	c.proven[digest] = true
	return nil
}

// Batch demands that txs have the digest, belong to the network and fit into a
// block.
func (c *Checker) Batch(digest block.Hash, txs []*block.Tx) error {
	if err := c.requests(txs); err != nil {
		return err
	}
	if got := block.TxDigest(txs); got != digest {
		return fmt.Errorf("transactions have digest %s, not %s", got, digest)
	}
	return nil
}

// Admit demands that txs belong to the network and that this orderer admits
// them.
func (c *Checker) Admit(txs []*block.Tx) error {
	if err := c.requests(txs); err != nil {
		return err
	}
	if c.admit == nil || len(txs) == 0 {
		return nil
	}
	return c.admit(txs)
}

// MaxBatchBytes is how many bytes the transactions of a batch may take in a
// block.
const MaxBatchBytes = block.MaxBlockBytes - block.MaxCertificateBytes - 4096

func (c *Checker) requests(txs []*block.Tx) error {
	if len(txs) > block.MaxTxsPerBlock {
		return fmt.Errorf("%d transactions exceed the limit of %d", len(txs), block.MaxTxsPerBlock)
	}
	size := 0
	for _, tx := range txs {
		if tx.Network != c.Network {
			return fmt.Errorf("transaction %s was signed for network %s", tx.ID(), tx.Network)
		}
		size += block.TxSizeInBlock(tx)
	}
	if size > MaxBatchBytes {
		return fmt.Errorf("transactions of %d bytes exceed the limit of %d", size, MaxBatchBytes)
	}
	return nil
}
