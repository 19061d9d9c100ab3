package block

import (
	"encoding/binary"
	"fmt"

	"github.com/tallystick/tallystick/identity"
)

// Status is what became of a transaction in a block. Its numbers are hashed.
type Status uint8

// The statuses, in the order in which they are decided.
const (
	Rejected  Status = 1 // it should not have been in the block
	Aborted   Status = 2 // what it read or wrote changed: may be tried again
	Failed    Status = 3 // its own error
	Committed Status = 4
)

var statusNames = [...]string{Rejected: "rejected", Aborted: "aborted", Failed: "failed", Committed: "committed"}

// String returns the name that pgledger.status shows.
func (s Status) String() string {
	if s < Rejected || s > Committed {
		return fmt.Sprintf("block.Status(%d)", uint8(s))
	}
	return statusNames[s]
}

// ParseStatus is the inverse of [Status.String].
func ParseStatus(name string) (Status, error) {
	for s := Rejected; s <= Committed; s++ {
		if statusNames[s] == name {
			return s, nil
		}
	}
	return 0, fmt.Errorf("block: there is no status %q", name)
}

// Outcome is what the state hash covers of what became of a transaction. Texts
// of errors are not in it: nobody should depend on those.
type Outcome struct {
	ID       TxID
	Status   Status
	SQLState string // why it did not commit; "" if it did
	Result   []byte // canonical rows of a committed one
}

// domainResult hashes the result of a transaction.
const domainResult identity.Domain = "tallystick/result/v1"

// Leaf is the outcome in the Merkle tree of its block.
func (o *Outcome) Leaf() Hash {
	result := identity.Digest(domainResult, o.Result)
	return identity.Digest(domainLeaf, o.ID[:], []byte{byte(o.Status)}, []byte(o.SQLState), result[:])
}

// StateStep is what a block adds to the chain of state hashes (see package
// server/chain for what the digests are over).
type StateStep struct {
	Writes   Hash // what its transactions wrote
	Outcomes Hash // Merkle root over the outcomes, in block order
	Tables   Hash // the contents of all tables after it
}

const domainState identity.Domain = "tallystick/state/v2"

// Next is the state hash of the block of a height, given that of the block
// before it.
func (s *StateStep) Next(previous Hash, height Height) Hash {
	var h [8]byte
	binary.BigEndian.PutUint64(h[:], height)
	return identity.Digest(domainState, previous[:], h[:], s.Writes[:], s.Outcomes[:], s.Tables[:])
}
