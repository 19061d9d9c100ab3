package ssi

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/tallystick/tallystick/mvcc/rwset"
)

// TestAnomalies runs the blocks of testdata in every block order under every
// rule. Input, one transaction a line:
//
//	NAME: OPERATION...
//
//	r(x)    reads the row x          e(x)    asks whether x exists
//	s(x,y)  reads the range x to y   u(x)    updates x
//	i(x)    inserts x                d(x)    deletes x
//	stale   the transaction was excluded before
//
// Output, a line for each block order and a column for each rule: the winners
// in the first serial order that explains them, then who aborts, why and
// because of whom. Rewrite with -rewrite, and read the differences.
func TestAnomalies(t *testing.T) {
	datadriven.RunTest(t, "testdata/anomalies", func(t *testing.T, d *datadriven.TestData) string {
		if d.Cmd != "anomaly" {
			d.Fatalf(t, "unknown command %q", d.Cmd)
		}
		names, block := parseBlock(t, d)
		table := [][]string{{"order"}}
		for _, rule := range rules {
			table[0] = append(table[0], rule.String())
		}
		permutations(len(block), func(perm []int) {
			order, called := make([]Candidate, len(perm)), make([]string, len(perm))
			for i, p := range perm {
				order[i], called[i] = block[p], names[p]
			}
			row := []string{strings.Join(called, " ")}
			for _, rule := range rules {
				verdicts := Decide(rule, order)
				if want := naiveDecide(rule, order); !slices.Equal(verdicts, want) {
					d.Fatalf(t, "order %v, %v: %v, want %v", called, rule, verdicts, want)
				}
				outcome, ok := outcome(order, called, verdicts)
				if !ok {
					d.Fatalf(t, "order %v, %v: not serializable: %v", called, rule, verdicts)
				}
				row = append(row, outcome)
			}
			table = append(table, row)
		})
		return aligned(table)
	})
}

func parseBlock(t *testing.T, d *datadriven.TestData) (names []string, block []Candidate) {
	for _, line := range strings.Split(strings.TrimSpace(d.Input), "\n") {
		name, ops, ok := strings.Cut(line, ":")
		if !ok {
			d.Fatalf(t, "no name: %q", line)
		}
		c := Candidate{Footprint: &rwset.Footprint{}}
		for _, op := range strings.Fields(ops) {
			if !parseOperation(&c, op) {
				d.Fatalf(t, "unknown operation %q", op)
			}
		}
		names, block = append(names, name), append(block, c)
	}
	return names, block
}

func parseOperation(c *Candidate, op string) bool {
	if op == "stale" {
		c.Excluded = true
		return true
	}
	verb, arg, ok := strings.Cut(strings.TrimSuffix(op, ")"), "(")
	if !ok {
		return false
	}
	fp := c.Footprint
	key := func(name string) []byte { return []byte("t/" + name + "/") }
	switch verb {
	case "r", "e":
		fp.Reads = append(fp.Reads, rwset.Read{Span: rwset.Point(key(arg)), Existence: verb == "e"})
	case "s":
		from, to, _ := strings.Cut(arg, ",")
		fp.Reads = append(fp.Reads, rwset.Read{Span: rwset.Span{Start: key(from), End: rwset.Point(key(to)).End}})
	case "u", "i", "d":
		fp.Writes = append(fp.Writes, rwset.Write{Key: key(arg), Liveness: verb != "u"})
	default:
		return false
	}
	return true
}

// outcome tells verdicts in words; false if the winners have no serial order.
func outcome(order []Candidate, names []string, verdicts []Verdict) (string, bool) {
	edge := naiveEdges(order)
	left := committedOf(verdicts)
	var winners, losers []string
	for len(left) > 0 {
		first := slices.IndexFunc(left, func(x int) bool {
			return !slices.ContainsFunc(left, func(y int) bool { return edge[y][x] })
		})
		if first < 0 {
			return "", false
		}
		winners = append(winners, names[left[first]])
		left = slices.Delete(left, first, first+1)
	}
	for i, v := range verdicts {
		if v.Cause != None {
			losers = append(losers, fmt.Sprintf("%s %v %s", names[i], v.Cause, names[v.With]))
		}
	}
	s := strings.Join(winners, " ")
	if len(losers) > 0 {
		s += "; " + strings.Join(losers, ", ")
	}
	return s, true
}

// permutations calls f with every order of n things, in lexicographic order.
func permutations(n int, f func([]int)) {
	var extend func(perm []int)
	extend = func(perm []int) {
		if len(perm) == n {
			f(perm)
			return
		}
		for i := range n {
			if !slices.Contains(perm, i) {
				extend(append(perm[:len(perm):len(perm)], i))
			}
		}
	}
	extend(nil)
}

// aligned lays a table out in columns.
func aligned(table [][]string) string {
	width := make([]int, len(table[0]))
	for _, row := range table {
		for i, s := range row {
			width[i] = max(width[i], len(s))
		}
	}
	var b strings.Builder
	for _, row := range table {
		var line strings.Builder
		for i, s := range row {
			fmt.Fprintf(&line, "%-*s", width[i]+3, s)
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return b.String()
}

// TestRates measures how many transactions each rule aborts on random blocks
// and keeps the figures in testdata, where README.md takes them from.
func TestRates(t *testing.T) {
	datadriven.RunTest(t, "testdata/rates", func(t *testing.T, d *datadriven.TestData) string {
		var txs, keys, reads, writes, blocks int
		d.ScanArgs(t, "txs", &txs)
		d.ScanArgs(t, "keys", &keys)
		d.ScanArgs(t, "reads", &reads)
		d.ScanArgs(t, "writes", &writes)
		d.ScanArgs(t, "blocks", &blocks)
		table := [][]string{{"rule", "aborts", "write-write", "near-conflict", "far-conflict", "cycle"}}
		for _, rule := range rules {
			table = append(table, rates(rule, txs, keys, reads, writes, blocks))
		}
		return aligned(table)
	})
}

// rates decides random blocks: every transaction reads distinct keys, drawn
// evenly, and writes the first few of those.
func rates(rule Rule, txs, keys, reads, writes, blocks int) []string {
	r := rand.New(rand.NewPCG(7, uint64(keys)))
	var d Decider
	var count [Cycle + 1]int
	for range blocks {
		order := make([]Candidate, txs)
		for i := range order {
			order[i].Footprint = &rwset.Footprint{}
			readAndWrite(r, order[i].Footprint, keys, reads, writes)
		}
		for _, v := range d.Decide(rule, order) {
			count[v.Cause]++
		}
	}
	percent := func(n int) string { return fmt.Sprintf("%.1f %%", 100*float64(n)/float64(txs*blocks)) }
	row := []string{rule.String(), percent(txs*blocks - count[None])}
	for c := WriteWrite; c <= Cycle; c++ {
		row = append(row, percent(count[c]))
	}
	return row
}

func readAndWrite(r *rand.Rand, fp *rwset.Footprint, keys, reads, writes int) {
	var drawn []int
	for len(drawn) < reads {
		if k := r.IntN(keys); !slices.Contains(drawn, k) {
			drawn = append(drawn, k)
		}
	}
	for i, k := range drawn {
		fp.Reads = append(fp.Reads, rwset.Read{Span: point(k)})
		if i < writes {
			fp.Writes = append(fp.Writes, rwset.Write{Key: testKey(k)})
		}
	}
}
