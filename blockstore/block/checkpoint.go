package block

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/tallystick/tallystick/identity"
)

// CheckpointDigest is what a node signs: that the state hash of a height is this
// one. It needs no network id: the chain of state hashes begins with it.
func CheckpointDigest(height Height, state Hash) [32]byte {
	var h [8]byte
	binary.BigEndian.PutUint64(h[:], height)
	return identity.Digest(identity.DomainCheckpoint, h[:], state[:])
}

// CheckpointVote is the signature of one node.
type CheckpointVote struct {
	Node      identity.UserID
	Signature identity.Signature // over CheckpointDigest
}

// Checkpoint is a state hash that nodes have signed.
type Checkpoint struct {
	Height Height
	State  Hash
	Votes  []CheckpointVote // sorted by organization and name
}

// Node is a database node whose signature counts.
type Node struct {
	ID  identity.UserID
	Key identity.PublicKey
}

// Anchor is what somebody who verifies proofs has to trust: where it comes from,
// mostly a genesis, is not proved by anything else.
type Anchor struct {
	Network  Hash
	Orderers identity.OrdererSet
	Nodes    []Node
	Orgs     int // organizations, of which a majority has to sign
}

// AnchorOf is the anchor that a genesis gives.
func AnchorOf(g *Genesis) *Anchor {
	a := &Anchor{Network: g.NetworkID(), Orderers: g.Orderers, Orgs: len(g.Orgs)}
	for i := range g.Orgs {
		for j := range g.Orgs[i].Users {
			if u := &g.Orgs[i].Users[j]; u.Role == identity.Node {
				a.Nodes = append(a.Nodes, Node{identity.UserID{Org: g.Orgs[i].Name, Name: u.Name}, u.Key})
			}
		}
	}
	return a
}

// ErrTooFew is wrapped by what VerifyCheckpoint returns if all is right but the
// number of organizations.
var ErrTooFew = errors.New("no majority of the organizations has signed")

// VerifyCheckpoint reports why the votes do not show that nodes of a majority of
// the organizations signed the state hash. Every vote has to be good: a proof
// with others in it was not made in good faith.
func (a *Anchor) VerifyCheckpoint(c *Checkpoint) error {
	digest := CheckpointDigest(c.Height, c.State)
	orgs := 0
	for i := range c.Votes {
		v := &c.Votes[i]
		if i > 0 && compareUsers(&c.Votes[i-1].Node, &v.Node) >= 0 {
			return errors.New("block: votes of the checkpoint are not sorted or not distinct")
		}
		key, ok := a.node(v.Node)
		if !ok {
			return fmt.Errorf("block: %s, who signed the checkpoint, is no known node", v.Node)
		}
		if !identity.Verify(key, digest[:], v.Signature) {
			return fmt.Errorf("block: signature of %s does not fit the checkpoint of block %d", v.Node, c.Height)
		}
		if i == 0 || c.Votes[i-1].Node.Org != v.Node.Org {
			orgs++
		}
	}
	if 2*orgs <= a.Orgs {
		return fmt.Errorf("block: checkpoint of block %d: %w: %d of %d", c.Height, ErrTooFew, orgs, a.Orgs)
	}
	return nil
}

func (a *Anchor) node(id identity.UserID) (identity.PublicKey, bool) {
	for i := range a.Nodes {
		if a.Nodes[i].ID == id {
			return a.Nodes[i].Key, true
		}
	}
	return identity.PublicKey{}, false
}

func compareUsers(a, b *identity.UserID) int {
	if c := strings.Compare(a.Org, b.Org); c != 0 {
		return c
	}
	return strings.Compare(a.Name, b.Name)
}

// MaxCheckpointVotes bounds the votes in an encoding.
const MaxCheckpointVotes = 1 << 14

// append appends the canonical bytes: height, state, votes.
func (c *Checkpoint) append(b []byte) []byte {
	b = binary.AppendUvarint(b, c.Height)
	b = append(b, c.State[:]...)
	b = binary.AppendUvarint(b, uint64(len(c.Votes)))
	for i := range c.Votes {
		v := &c.Votes[i]
		b = appendString(appendString(b, v.Node.Org), v.Node.Name)
		b = append(b, v.Signature[:]...)
	}
	return b
}

func (c *Checkpoint) decode(r *reader) {
	c.Height = r.uvarint(MaxHeight, "checkpoint height")
	copy(c.State[:], r.take(len(c.State), "state hash"))
	for range r.uvarint(MaxCheckpointVotes, "number of votes") {
		if r.err != nil {
			return
		}
		var v CheckpointVote
		v.Node.Org = string(r.bytes(identity.MaxNameBytes, "organization"))
		v.Node.Name = string(r.bytes(identity.MaxNameBytes, "node"))
		copy(v.Signature[:], r.take(len(v.Signature), "signature"))
		c.Votes = append(c.Votes, v)
	}
}

// Encode returns the canonical bytes of a checkpoint.
func (c *Checkpoint) Encode() []byte { return c.append([]byte{checkpointVersion}) }

const checkpointVersion = 1

// DecodeCheckpoint reads canonical bytes and refuses every other form.
func DecodeCheckpoint(b []byte) (*Checkpoint, error) {
	r := reader{buf: b}
	c := &Checkpoint{}
	r.version(checkpointVersion, "checkpoint")
	c.decode(&r)
	return c, r.end()
}
