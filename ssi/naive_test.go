package ssi

import (
	"bytes"

	"github.com/tallystick/tallystick/mvcc/rwset"
)

// This file is the rules once more, as the text states them: every pair of
// transactions compared read by write, every N tried with every F. It shares
// nothing with the code under test.

// naiveEdges returns edge[i][j]: i read something that j writes.
func naiveEdges(order []Candidate) [][]bool {
	edge := make([][]bool, len(order))
	for i := range order {
		edge[i] = make([]bool, len(order))
		for j := range order {
			if i != j && !order[i].Excluded && !order[j].Excluded {
				edge[i][j] = naiveConflict(order[i].Footprint, order[j].Footprint)
			}
		}
	}
	return edge
}

func naiveConflict(reader, writer *rwset.Footprint) bool {
	found := false
	reader.EachRead(func(r rwset.Read) bool {
		for _, w := range writer.Writes {
			if r.Contains(w.Key) && (w.Liveness || !r.Existence) {
				found = true
			}
		}
		return !found
	})
	return found
}

func naiveWriteWrite(a, b *rwset.Footprint) bool {
	for _, x := range a.Writes {
		for _, y := range b.Writes {
			if bytes.Equal(x.Key, y.Key) {
				return true
			}
		}
	}
	return false
}

// naiveDecide goes through the block in block order.
func naiveDecide(rule Rule, order []Candidate) []Verdict {
	edge := naiveEdges(order)
	verdicts := make([]Verdict, len(order))
	pending := make([]bool, len(order))
	var committed []int
	for i := range order {
		verdicts[i].With = -1
		pending[i] = !order[i].Excluded
	}
turns:
	for t := range order {
		if !pending[t] {
			continue
		}
		pending[t] = false
		for _, c := range committed {
			if naiveWriteWrite(order[c].Footprint, order[t].Footprint) {
				verdicts[t] = Verdict{Cause: WriteWrite, With: c}
				continue turns
			}
		}
		if rule == Exact {
			for _, c := range committed {
				if edge[c][t] && naiveReaches(edge, append(committed, t), t, c) {
					verdicts[t] = Verdict{Cause: Cycle, With: c}
					continue turns
				}
			}
		}
		committed = append(committed, t)
		verdicts[t] = Verdict{Commit: true, With: -1}
		if rule != Exact {
			naiveCondemn(rule, edge, pending, verdicts, t)
		}
	}
	return verdicts
}

// naiveCondemn reads every dangerous structure of t before it marks anything.
func naiveCondemn(rule Rule, edge [][]bool, pending []bool, verdicts []Verdict, t int) {
	near, far := map[int]bool{}, map[int]bool{}
	for n := range pending {
		if !pending[n] || !edge[n][t] {
			continue
		}
		for f := range pending {
			if f == n || !edge[f][n] || !pending[f] && f != t {
				continue
			}
			if rule == AbortDuringCommit || f == t || f < n {
				near[n] = true
			} else {
				far[f] = true
			}
		}
	}
	for x := range pending {
		switch {
		case near[x]:
			pending[x] = false
			verdicts[x] = Verdict{Cause: NearConflict, With: t}
		case far[x]:
			pending[x] = false
			verdicts[x] = Verdict{Cause: FarConflict, With: t}
		}
	}
}

// naiveReaches reports whether edges among members lead from one to another.
func naiveReaches(edge [][]bool, members []int, from, to int) bool {
	seen := map[int]bool{from: true}
	queue := []int{from}
	for len(queue) > 0 {
		x := queue[0]
		queue = queue[1:]
		for _, y := range members {
			if edge[x][y] && !seen[y] {
				seen[y] = true
				queue = append(queue, y)
			}
		}
	}
	return seen[to]
}

// acyclic reports whether the members have a topological order.
func acyclic(edge [][]bool, members []int) bool {
	left := append([]int(nil), members...)
	for len(left) > 0 {
		var next []int
		for _, x := range left {
			for _, y := range left {
				if edge[y][x] {
					next = append(next, x)
					break
				}
			}
		}
		if len(next) == len(left) {
			return false
		}
		left = next
	}
	return true
}
