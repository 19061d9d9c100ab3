package chain

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/tallystick/tallystick/blockstore/block"
)

// TestAnomalies runs the classical anomalies through the whole chain, in every
// order and with every way to cut it into blocks, and shows who got what. All
// transactions of execute-order-in-parallel have read the state before the first
// block. The outcomes are also looked at by the oracle: block by block there is a
// serial order.
//
//	anomaly [flow=ote|eop] [rule=...] [conflicts=...]
//	A: r1 w2
//	B: r2 w1
//
// The answer has a line for each outcome, in the order of the letters, with the
// orders that lead to it: AB|C is a block of A and B before a block of C.
func TestAnomalies(t *testing.T) {
	datadriven.Walk(t, "testdata/anomalies", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			params := func(p *block.Params) {
				flow := "eop"
				d.MaybeScanArgs(t, "flow", &flow)
				p.Flow = map[string]string{"eop": block.FlowExecuteOrderInParallel, "ote": block.FlowOrderThenExecute}[flow]
				p.Rule = map[string]string{"eop": block.RuleBlockAware, "ote": block.RuleAbortDuringCommit}[flow]
				p.Conflicts = block.ConflictsAbort
				d.MaybeScanArgs(t, "rule", &p.Rule)
				d.MaybeScanArgs(t, "conflicts", &p.Conflicts)
			}
			return newAnomaly(t, d.Input).run(t, testGenesis(params))
		})
	})
}

// anomaly is the programs of a script.
type anomaly struct {
	names []string
	ops   []string
}

func newAnomaly(t *testing.T, input string) *anomaly {
	a := &anomaly{}
	for line := range strings.Lines(input) {
		name, ops, ok := strings.Cut(strings.TrimSpace(line), ": ")
		if !ok {
			t.Fatalf("line %q", line)
		}
		a.names, a.ops = append(a.names, name), append(a.ops, ops)
	}
	return a
}

// run tries all orders on one node: every attempt starts with registers and
// lists as they were made.
func (a *anomaly) run(t *testing.T, g *block.Genesis) string {
	s, n := programNode(t, g, 2, 6, 2)
	mustCommit(t, n.process(s.deployBlock(2, `
		CREATE FUNCTION again() RETURNS void LANGUAGE plpgsql AS $$
		BEGIN
		  DELETE FROM reg WHERE id > 0;
		  INSERT INTO reg SELECT g, g * 10 FROM generate_series(1, 6) g;
		  UPDATE lst SET v = '' WHERE id > 0;
		END $$`)))
	by := map[string][]string{}
	permute(len(a.ops), func(order []int) {
		for cuts := range 1 << (len(order) - 1) {
			mustCommit(t, n.process(s.block(s.tx(alice, "again"))))
			name, outcome := a.attempt(t, s, n, order, cuts)
			by[outcome] = append(by[outcome], name)
		}
	})
	var b strings.Builder
	for _, outcome := range slices.SortedFunc(maps.Keys(by), func(x, y string) int { return strings.Compare(by[x][0], by[y][0]) }) {
		fmt.Fprintf(&b, "%s\n    %s\n", outcome, strings.Join(by[outcome], " "))
	}
	return b.String()
}

// attempt processes the programs in an order, with a new block where cuts has a
// bit.
func (a *anomaly) attempt(t *testing.T, s *source, n *node, order []int, cuts int) (name, shown string) {
	t.Helper()
	m, snapshot := newModel(6, 2), s.last.Number
	got := make([]string, len(order))
	var part []int
	finish := func() {
		var txs []*block.Tx
		var ids []int64
		var ops []string
		for _, i := range part {
			ids, ops = append(ids, int64(i+1)), append(ops, a.ops[i])
			txs = append(txs, s.program(int64(i+1), a.ops[i], func(tx *block.Tx) { tx.Snapshot = snapshot }))
		}
		receipts := n.process(s.block(txs...))
		list, final := n.outcomes(receipts, ids, ops), modelOf(n)
		if !serial(m, list, final, noRound) {
			t.Fatalf("%s: no serial order for block %d: %+v", name, s.last.Number, list)
		}
		m.follow(list, final)
		for k, r := range receipts {
			got[part[k]] = a.names[part[k]] + " " + verdictName(n, k, r)
		}
		part = nil
	}
	for at, i := range order {
		if at > 0 && cuts>>(at-1)&1 == 1 {
			finish()
			name += "|"
		}
		name += a.names[i]
		part = append(part, i)
	}
	finish()
	return name, strings.Join(got, ", ")
}

// verdictName is short: the cause of an abort, the round of a late commit.
func verdictName(n *node, k int, r Receipt) string {
	x := &n.chain.run.list[k]
	switch {
	case r.Status == Aborted:
		return x.cause.String()
	case x.round > 0:
		return r.Status.String() + " in round " + strconv.Itoa(int(x.round))
	}
	return r.Status.String()
}

// permute calls f with all orders of 0 to n-1.
func permute(n int, f func([]int)) {
	order := make([]int, 0, n)
	var next func()
	next = func() {
		if len(order) == n {
			f(order)
			return
		}
		for i := range n {
			if !slices.Contains(order, i) {
				order = append(order, i)
				next()
				order = order[:len(order)-1]
			}
		}
	}
	next()
}
