package ssi

import (
	"fmt"

	"github.com/tallystick/tallystick/mvcc/rwset"
)

// Rule says who aborts when three transactions stand in a dangerous structure
// F -> N -> T. All transactions of a network follow one rule.
type Rule uint8

const (
	// AbortDuringCommit aborts N when T commits while N and F are pending, or
	// F is T. It is the default of the order-then-execute flow.
	AbortDuringCommit Rule = iota
	// BlockAware aborts N if F stands before N in the block or is T, otherwise
	// F. It is the default of the execute-order-in-parallel flow.
	BlockAware
	// Exact aborts T itself, and only if committing it would close a cycle
	// among the committed.
	Exact
)

var ruleNames = [...]string{"abort-during-commit", "block-aware", "exact"}

// String returns the name that [ParseRule] accepts.
func (r Rule) String() string {
	if int(r) < len(ruleNames) {
		return ruleNames[r]
	}
	return fmt.Sprintf("ssi.Rule(%d)", uint8(r))
}

// ParseRule returns the rule with the given name: "abort-during-commit",
// "block-aware" or "exact".
func ParseRule(name string) (Rule, error) {
	for i, n := range ruleNames {
		if n == name {
			return Rule(i), nil
		}
	}
	return 0, fmt.Errorf("ssi: unknown rule %q (want abort-during-commit, block-aware or exact)", name)
}

// Candidate is one transaction of a block at its place in block order.
type Candidate struct {
	// Footprint is what the transaction read and wrote; it is only read, and
	// not looked at (so it may be nil) when Excluded is set.
	Footprint *rwset.Footprint
	// Excluded marks a transaction that was rejected, is stale or failed: it
	// never commits and plays no role in the verdict of any other.
	Excluded bool
}

// Cause says why a transaction did not commit.
type Cause uint8

const (
	// None: it committed, or it was excluded from the start.
	None Cause = iota
	// WriteWrite: a transaction that committed before it wrote the same key.
	WriteWrite
	// NearConflict: condemned as N, the pivot of a dangerous structure.
	NearConflict
	// FarConflict: condemned as F, the far end of a dangerous structure.
	FarConflict
	// Cycle: committing it would have closed a cycle of rw-dependencies.
	Cycle
)

var causeNames = [...]string{"none", "write-write", "near-conflict", "far-conflict", "cycle"}

// String returns a short name for logs, metrics and the DETAIL of an error.
func (c Cause) String() string {
	if int(c) < len(causeNames) {
		return causeNames[c]
	}
	return fmt.Sprintf("ssi.Cause(%d)", uint8(c))
}

// Verdict is the outcome for one candidate.
type Verdict struct {
	Commit bool
	Cause  Cause
	// With is the index of the committed transaction that decided an abort, and
	// -1 without one. For WriteWrite it is the earliest that wrote a common
	// key; for NearConflict and FarConflict the T at whose commit the candidate
	// was condemned; for Cycle the earliest that read what the candidate writes
	// and that the candidate reaches by rw-dependencies. A candidate condemned
	// at one commit both as N and as F counts as NearConflict.
	With int
}
