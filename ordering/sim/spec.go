package sim

import (
	"math/rand/v2"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/identity"
	"github.com/tallystick/tallystick/ordering"
)

// Spec is a protocol as the simulation sees it.
type Spec struct {
	Protocol ordering.Protocol
	// Votes returns the votes that a message casts for its sender: an honest
	// member must never cast two with the same ballot and different values.
	Votes func(m ordering.Message) []Vote
	// Promises, if set, returns the first view in which the sender of a message may still
	// vote: it has told others that it votes in none before.
	Promises func(m ordering.Message) (epoch, view uint64, ok bool)
	// Adversaries make byzantine behaviour that knows the protocol. What needs
	// no knowledge (silence, replay, selective loss) the simulation adds.
	Adversaries []func(*Traitor) Adversary
	// Edit, if set, changes a scenario before it runs: what the protocol cannot
	// do.
	Edit func(*Scenario)
}

// Vote is a vote that must not be contradicted.
type Vote struct {
	Phase    string
	Epoch    uint64
	View     uint64
	Sequence uint64
	Value    any  // comparable
	Timeless bool // cast in no particular view
}

// Adversary turns what an honest machine would send into what its traitor sends.
type Adversary interface {
	// Send replaces a message. It must not change it: others may get it too.
	Send(out ordering.Outgoing) []ordering.Outgoing
	// Tick may send something of its own accord.
	Tick() []ordering.Outgoing
}

// Traitor is what an adversary has to work with: chance, its own signatures, and
// what it has received.
type Traitor struct {
	Rand     *rand.Rand
	Network  block.Hash
	Members  ordering.Membership
	Self     int
	Sign     func(digest [32]byte) identity.Signature
	Received []ordering.Message // the last ones, verified
	Txs      func() []*block.Tx // a few transactions that clients submitted
}
