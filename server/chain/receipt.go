package chain

import (
	"fmt"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/identity"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// Status is the outcome of a transaction in a block. Its numbers are hashed.
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
		return fmt.Sprintf("chain.Status(%d)", uint8(s))
	}
	return statusNames[s]
}

func parseStatus(name string) (Status, error) {
	for s := Rejected; s <= Committed; s++ {
		if statusNames[s] == name {
			return s, nil
		}
	}
	return 0, fmt.Errorf("chain: corruption: status %q in the ledger", name)
}

// Receipt says what became of one transaction of a block.
type Receipt struct {
	ID       block.TxID
	Height   block.Height
	Position uint32 // in the block, from 1
	XID      uint64
	Status   Status
	Err      *pgerr.Error // why it did not commit; nil if it did
	Result   []byte       // canonical rows (contracts.DecodeRows) of a committed one
	// Notices are what the execution had to say. They are not stored.
	Notices []Notice

	// Final tells that this is the one receipt of the id, the one that
	// LookupReceipt returns. It is false for what consumes no id (a transaction
	// that its user did not sign) and for repetitions of a consumed one.
	Final bool
}

// Notice is one RAISE NOTICE, WARNING or the like.
type Notice struct {
	Severity string
	Error    *pgerr.Error
}

// domainResult hashes the result of a transaction.
const domainResult identity.Domain = "tallystick/result/v1"

// leaf is the receipt in the Merkle tree of its block: id, status, SQLSTATE and
// hash of the result. Texts of errors are not in it.
func (r *Receipt) leaf() block.Hash {
	var state []byte
	if r.Err != nil {
		state = []byte(r.Err.Code)
	}
	result := identity.Digest(domainResult, r.Result)
	return identity.Digest(domainLeaf, r.ID[:], []byte{byte(r.Status)}, state, result[:])
}

// consumes reports whether a transaction with this outcome used up its id:
// whoever's signature verified does, whatever the status.
func consumes(s Status, code pgerr.Code) bool {
	return s != Rejected || code != unauthenticated
}
