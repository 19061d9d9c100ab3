package ordering

import (
	"fmt"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/identity"
)

// Membership is the orderers of a byzantine protocol for the sequences from
// First on, until the next one begins. Members are named by their position in
// the set.
type Membership struct {
	Epoch    uint64     // number of the configuration: 0 at first, then one more each
	First    uint64     // first sequence that it orders; 1 in epoch 0
	ConfigID block.Hash // configuration id of its blocks
	Set      identity.OrdererSet
}

// Faults returns how many of n members may be byzantine: the largest f with
// n >= 3f+1.
func Faults(n int) int { return (n - 1) / 3 }

// Quorum returns how many of n members decide: the smallest number for which two
// quorums share more members than may be byzantine. It is 2f+1 if n = 3f+1, and
// more than that in between, where 2f+1 would fork.
func Quorum(n int) int { return (n+Faults(n))/2 + 1 }

// N returns the number of members.
func (m *Membership) N() int { return len(m.Set.Keys) }

// Faults returns how many members may be byzantine.
func (m *Membership) Faults() int { return Faults(m.N()) }

// Quorum returns how many members decide.
func (m *Membership) Quorum() int { return Quorum(m.N()) }

// Validate reports why nobody can agree under m.
func (m *Membership) Validate() error {
	if err := m.Set.Validate(); err != nil {
		return err
	}
	switch n := m.N(); {
	case n == 2 || n == 3:
		return fmt.Errorf("ordering: %d members tolerate no fault: a byzantine protocol has 4 or more (or 1)", n)
	case m.Set.Quorum != m.Quorum():
		return fmt.Errorf("ordering: quorum %d of %d members, must be %d", m.Set.Quorum, n, m.Quorum())
	case m.First == 0:
		return fmt.Errorf("ordering: sequence 0 is the genesis")
	}
	return nil
}
