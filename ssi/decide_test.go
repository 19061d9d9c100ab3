package ssi

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/tallystick/tallystick/mvcc/rwset"
)

var rules = []Rule{AbortDuringCommit, BlockAware, Exact}

// TestAgainstNaive compares verdict, cause and culprit with the rules as the
// text states them.
func TestAgainstNaive(t *testing.T) {
	var d Decider // one for all: what is left of a block must not matter
	seen := map[Cause]int{}
	for i, s := range shapes {
		r := rand.New(rand.NewPCG(1, uint64(i)))
		for round := range s.rounds {
			order := s.shape.block(r)
			for _, rule := range rules {
				got, want := d.Decide(rule, order), naiveDecide(rule, order)
				if !reflect.DeepEqual(got, want) {
					t.Fatalf("shape %d round %d %v:\n%s\n got %v\nwant %v",
						i, round, rule, describe(order), got, want)
				}
				for _, v := range got {
					seen[v.Cause]++
				}
			}
		}
	}
	for c := None; c <= Cycle; c++ {
		if seen[c] < 1000 {
			t.Errorf("only %d verdicts %v: the blocks show nothing", seen[c], c)
		}
	}
}

// TestCommittedAreSerializable checks the outcome of the naive and clever code
// alike: write-write exclusion and no cycle of rw-edges among the committed.
func TestCommittedAreSerializable(t *testing.T) {
	for i, s := range shapes {
		r := rand.New(rand.NewPCG(2, uint64(i)))
		for range s.rounds / 5 {
			order := s.shape.block(r)
			edge := naiveEdges(order)
			for _, rule := range rules {
				members := committedOf(Decide(rule, order))
				if !acyclic(edge, members) {
					t.Fatalf("shape %d %v: cycle among %v in\n%s", i, rule, members, describe(order))
				}
				for j, a := range members {
					for _, b := range members[:j] {
						if naiveWriteWrite(order[a].Footprint, order[b].Footprint) {
							t.Fatalf("shape %d %v: %d and %d wrote one key in\n%s", i, rule, a, b, describe(order))
						}
					}
				}
			}
		}
	}
}

// TestRepresentation checks that verdicts do not depend on how a footprint
// lists its entries: order, duplicates, shared or own lists, and keys that all
// begin alike.
func TestRepresentation(t *testing.T) {
	shape := blockShape{txs: 12, keys: 25, reads: 4, writes: 2, spans: 30, existence: 20, excluded: 5, shared: 2}
	r := rand.New(rand.NewPCG(3, 0))
	for range 2000 {
		order := shape.block(r)
		other := make([]Candidate, len(order))
		for i, c := range order {
			other[i] = Candidate{Excluded: c.Excluded}
			if c.Footprint != nil {
				other[i].Footprint = rewritten(r, c.Footprint)
			}
		}
		for _, rule := range rules {
			if a, b := Decide(rule, order), Decide(rule, other); !slices.Equal(a, b) {
				t.Fatalf("%v: %v, and written differently %v\n%s", rule, a, b, describe(order))
			}
		}
	}
}

// rewritten lists the same footprint differently, under a long common prefix.
func rewritten(r *rand.Rand, fp *rwset.Footprint) *rwset.Footprint {
	longer := func(k []byte) []byte {
		if k == nil {
			return nil
		}
		return append([]byte("a prefix common to all of the keys/"), k...)
	}
	out := &rwset.Footprint{}
	fp.EachRead(func(rd rwset.Read) bool {
		if rd.End == nil {
			return true // holds no key, and would hold some under a prefix
		}
		rd.Span = rwset.Span{Start: longer(rd.Start), End: longer(rd.End)}
		if rd.Span.Start == nil {
			rd.Span.Start = longer([]byte{})
		}
		out.Reads = append(out.Reads, rd)
		if r.IntN(4) == 0 {
			out.Reads = append(out.Reads, rd)
		}
		return true
	})
	for _, w := range fp.Writes {
		w.Key = longer(w.Key)
		out.Writes = append(out.Writes, w)
		if r.IntN(4) == 0 {
			out.Writes = append(out.Writes, w)
		}
	}
	r.Shuffle(len(out.Reads), func(i, j int) { out.Reads[i], out.Reads[j] = out.Reads[j], out.Reads[i] })
	r.Shuffle(len(out.Writes), func(i, j int) { out.Writes[i], out.Writes[j] = out.Writes[j], out.Writes[i] })
	if n := len(out.Reads); n > 1 {
		cut := r.IntN(n)
		out.Shared = [][]rwset.Read{out.Reads[cut:], nil}
		out.Reads = out.Reads[:cut]
	}
	return out
}

// TestExcludedLeaveNoTrace removes excluded transactions and expects the others
// to fare as before.
func TestExcludedLeaveNoTrace(t *testing.T) {
	shape := blockShape{txs: 10, keys: 12, reads: 3, writes: 2, spans: 20, excluded: 30}
	r := rand.New(rand.NewPCG(4, 0))
	for range 2000 {
		order := shape.block(r)
		var kept []Candidate
		var at []int
		for i, c := range order {
			if !c.Excluded {
				kept, at = append(kept, c), append(at, i)
			}
		}
		for _, rule := range rules {
			full, short := Decide(rule, order), Decide(rule, kept)
			for i, v := range short {
				if v.With >= 0 {
					v.With = at[v.With]
				}
				if full[at[i]] != v {
					t.Fatalf("%v: transaction %d is %v, without the excluded ones %v", rule, at[i], full[at[i]], v)
				}
			}
			for i, c := range order {
				if c.Excluded && full[i] != (Verdict{With: -1}) {
					t.Fatalf("%v: excluded transaction %d has verdict %v", rule, i, full[i])
				}
			}
		}
	}
}

func TestEmpty(t *testing.T) {
	for _, rule := range rules {
		if v := Decide(rule, nil); len(v) != 0 {
			t.Errorf("%v: %d verdicts over an empty block", rule, len(v))
		}
		readOnly := []Candidate{
			{Footprint: &rwset.Footprint{Reads: []rwset.Read{{Span: rwset.Span{End: []byte{0xff}}}}}},
			{Footprint: &rwset.Footprint{}},
		}
		for i, v := range Decide(rule, readOnly) {
			if !v.Commit {
				t.Errorf("%v: transaction %d that nobody contradicts: %v", rule, i, v)
			}
		}
	}
}

func TestRuleNames(t *testing.T) {
	for _, rule := range rules {
		got, err := ParseRule(rule.String())
		if err != nil || got != rule {
			t.Errorf("ParseRule(%q) = %v, %v", rule.String(), got, err)
		}
	}
	for _, bad := range []string{"", "Exact", "abort", "block-aware "} {
		if _, err := ParseRule(bad); err == nil {
			t.Errorf("ParseRule(%q) succeeds", bad)
		}
	}
}

func committedOf(verdicts []Verdict) []int {
	var members []int
	for i, v := range verdicts {
		if v.Commit {
			members = append(members, i)
		}
	}
	return members
}

// describe prints a block for a failure message.
func describe(order []Candidate) string {
	var s string
	for i, c := range order {
		s += fmt.Sprintf("%d:", i)
		if c.Excluded {
			s += " excluded"
		} else {
			c.Footprint.EachRead(func(r rwset.Read) bool {
				s += fmt.Sprintf(" r[%q %q)", r.Start, r.End)
				if r.Existence {
					s += "e"
				}
				return true
			})
			for _, w := range c.Footprint.Writes {
				s += fmt.Sprintf(" w %q %v", w.Key, w.Liveness)
			}
		}
		s += "\n"
	}
	return s
}
