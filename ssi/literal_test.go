package ssi

import (
	"testing"

	"github.com/tallystick/tallystick/mvcc/rwset"
)

// literalTable applies Table 2 of "Blockchain Meets Database" as it is printed
// at the commit of T: to every N and F that the node has received, be they in
// T's block or in flight. It returns who aborts. Transactions are named;
// inBlock lists T's block in order, flight the others that the node knows.
func literalTable(footprints map[string]*rwset.Footprint, t string, inBlock, flight []string) map[string]bool {
	place := map[string]int{} // within the block, 0 outside
	for i, name := range inBlock {
		place[name] = i + 1
	}
	known := append(append([]string(nil), inBlock...), flight...)
	abort := map[string]bool{}
	for _, n := range known {
		if n == t || !naiveConflict(footprints[n], footprints[t]) {
			continue
		}
		if place[n] == 0 {
			abort[n] = true // rows 4 to 6
			continue
		}
		for _, f := range known {
			switch {
			case f == n || !naiveConflict(footprints[f], footprints[n]):
			case f == t || place[f] != 0 && place[f] < place[n]:
				abort[n] = true // row 2
			default:
				abort[f] = true // rows 1 and 3
			}
		}
	}
	return abort
}

// TestLiteralTableForks is the reason why verdicts never look at what is in
// flight. Block 1 holds T, C and N, in this order; F comes in block 2. Two
// honest nodes differ only in whether F has reached them when block 1 comes.
func TestLiteralTableForks(t *testing.T) {
	key := func(name string) []byte { return []byte(name) }
	read := func(name string) rwset.Read { return rwset.Read{Span: rwset.Point(key(name))} }
	write := func(name string) rwset.Write { return rwset.Write{Key: key(name)} }
	footprints := map[string]*rwset.Footprint{
		"T": {Writes: []rwset.Write{write("x")}},
		"C": {Writes: []rwset.Write{write("z")}},
		"N": {Reads: []rwset.Read{read("x")}, Writes: []rwset.Write{write("y"), write("z")}},
		"F": {Reads: []rwset.Read{read("y")}, Writes: []rwset.Write{write("w")}},
	}
	block := []string{"T", "C", "N"}

	ahead := literalTable(footprints, "T", block, []string{"F"})
	behind := literalTable(footprints, "T", block, nil)
	if !ahead["F"] || behind["F"] {
		t.Fatalf("the node that has F aborts %v, the other one %v: no fork", ahead, behind)
	}

	// Here N falls to C, which wrote z first. So nothing of what F read has
	// changed when block 2 comes, and F commits on every node.
	for _, rule := range rules {
		var order []Candidate
		for _, name := range block {
			order = append(order, Candidate{Footprint: footprints[name]})
		}
		v := Decide(rule, order)
		if !v[0].Commit || !v[1].Commit || v[2] != (Verdict{Cause: WriteWrite, With: 1}) {
			t.Errorf("%v: block 1 is decided %v", rule, v)
		}
		if v := Decide(rule, []Candidate{{Footprint: footprints["F"]}}); !v[0].Commit {
			t.Errorf("%v: block 2 is decided %v", rule, v)
		}
	}
}
