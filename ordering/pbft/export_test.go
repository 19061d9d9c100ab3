package pbft

import (
	"github.com/tallystick/tallystick/ordering"
)

// Mutant is PBFT with a planted bug.
type Mutant struct {
	Name     string
	Protocol ordering.Protocol
}

// Mutants are all bugs that can be planted, one at a time or where one alone
// changes nothing, together.
func Mutants() []Mutant {
	list := []struct {
		name string
		mut  mutation
	}{
		{"a quorum is one too small", mutation{shortQuorum: true}},
		{"the accepted value is not persisted", mutation{forgetAccepted: true}},
		{"the prepared certificate is not persisted", mutation{forgetPrepared: true}},
		{"the resignation is not persisted", mutation{forgetView: true}},
		{"a new view re-proposes nothing", mutation{ignoreCertificates: true}},
		{"a new view prefers the lowest view", mutation{lowestView: true}},
		{"a resignation names no certificate", mutation{hidePrepared: true}},
		{"votes of several views make a certificate", mutation{mixViews: true}},
		{"votes of other views count", mutation{voteInOldView: true}},
		{"a second proposal replaces the first", mutation{acceptTwice: true}},
		{"what was ordered is not remembered", mutation{forgetOrdered: true, noDedup: true}},
		{"a single vote makes a checkpoint stable", mutation{loneCheckpoint: true}},
		{"a new view leaves gaps", mutation{noNull: true}},
		{"nobody but the primary hears of a transaction", mutation{noRelay: true}},
		{"missing batches are not asked for", mutation{hideBatches: true}},
	}
	mutants := make([]Mutant, len(list))
	for i := range list {
		mut := list[i].mut
		p := Protocol
		p.New = func(opts ordering.MachineOptions, start ordering.Start, records []ordering.Record) (ordering.Machine, error) {
			return newMachine(opts, start, records, mut)
		}
		mutants[i] = Mutant{list[i].name, p}
	}
	return mutants
}
