package chain

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tallystick/tallystick/blockstore/block"
)

// policies are all combinations of what decides about conflicts.
func policies(f func(name string, set func(*block.Params))) {
	for _, flow := range []string{block.FlowOrderThenExecute, block.FlowExecuteOrderInParallel} {
		for _, rule := range []string{block.RuleAbortDuringCommit, block.RuleBlockAware, block.RuleExact} {
			for _, conflicts := range []string{block.ConflictsAbort, block.ConflictsReexecute} {
				f(flow+"/"+rule+"/"+conflicts, func(p *block.Params) {
					p.Flow, p.Rule, p.Conflicts = flow, rule, conflicts
				})
			}
		}
	}
}

// randomProgram is a few operations on few places.
func randomProgram(rng *rand.Rand, registers, lists int) string {
	var ops []string
	for range 1 + rng.IntN(4) {
		k := 1 + rng.IntN(registers)
		switch rng.IntN(12) {
		case 0, 1, 2:
			ops = append(ops, fmt.Sprint("r", k))
		case 3, 4, 5:
			ops = append(ops, fmt.Sprint("w", k))
		case 6:
			ops = append(ops, fmt.Sprint("d", k))
		case 7:
			ops = append(ops, fmt.Sprint("s", k))
		case 8:
			ops = append(ops, fmt.Sprint("f", k))
		case 9:
			ops = append(ops, fmt.Sprint("l", 1+rng.IntN(lists)))
		default:
			ops = append(ops, fmt.Sprint("a", 1+rng.IntN(lists)))
		}
	}
	return strings.Join(ops, " ")
}

// TestBlocksAreSerial is the brute-force oracle: in random small blocks the
// results of the committed, and the errors of the failed, are those of some
// serial execution of the block after the blocks before it. Under reexecute it
// also has the rounds one after the other, the last one in block order.
func TestBlocksAreSerial(t *testing.T) {
	const registers, lists, size = 5, 2, 6
	policies(func(name string, set func(*block.Params)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seed := testSeed()
			t.Log("seed", seed)
			rng := rand.New(rand.NewPCG(seed, 4))
			rounds := uint64(1 + rng.IntN(3))
			g := testGenesis(func(p *block.Params) { set(p); p.ReexecuteRounds = rounds })
			s, n := programNode(t, g, 2, registers, lists)
			m := newModel(registers, lists)
			next := int64(0)
			for range 50 {
				var txs []*block.Tx
				var ids []int64
				var ops []string
				for range 1 + rng.IntN(size) {
					next++
					ids, ops = append(ids, next), append(ops, randomProgram(rng, registers, lists))
					tx := s.program(next, ops[len(ops)-1], func(tx *block.Tx) {
						tx.Snapshot -= uint64(rng.IntN(2))
						if rng.IntN(8) == 0 {
							tx.Flags = block.NoReexecute
						}
					})
					if rng.IntN(2) == 0 {
						n.chain.Speculate(tx)
					}
					txs = append(txs, tx)
				}
				receipts := n.process(s.block(txs...))
				list, final := n.outcomes(receipts, ids, ops), modelOf(n)
				inOrder := uint8(noRound)
				if g.Params.Conflicts == block.ConflictsReexecute {
					inOrder = uint8(rounds)
				}
				if !serial(m, list, final, inOrder) {
					t.Fatalf("block %d has no serial order\nbefore:\n%safter:\n%sprograms: %q\noutcomes: %+v\n%s",
						s.last.Number, m, final, ops, list, summary(receipts))
				}
				m.follow(list, final)
				for i, r := range receipts {
					if r.Status == Aborted && g.Params.Conflicts == block.ConflictsReexecute && txs[i].Flags&block.NoReexecute == 0 {
						t.Errorf("aborted in spite of re-execution: %s", summary(receipts))
					}
				}
			}
			m2 := n.chain.Metrics()
			t.Logf("%d committed, %d aborted %v, %d failed, %d executed again", m2.Committed, m2.Aborted, m2.Aborts, m2.Failed, m2.Reexecuted)
			if m2.Failed == 0 || (g.Params.Conflicts == block.ConflictsReexecute) != (m2.Reexecuted > 0) ||
				m2.Aborted == 0 && g.Params.Conflicts == block.ConflictsAbort {
				t.Error("an outcome never happened")
			}
		})
	})
}

// follow brings the model to the state after a block, by any of its orders.
func (m *model) follow(list []outcome, final string) {
	order := slices.Clone(list)
	var search func(m *model, rest []outcome) *model
	search = func(m *model, rest []outcome) *model {
		if len(rest) == 0 {
			if m.String() == final {
				return m
			}
			return nil
		}
		for i, o := range rest {
			next := m.clone()
			if text, failed := next.run(o.id, o.ops); text == o.text && failed == o.failed {
				if end := search(next, slices.Delete(slices.Clone(rest), i, i+1)); end != nil {
					return end
				}
			}
		}
		return nil
	}
	*m = *search(m, order)
}

// TestOracleSeesFaults: what is not serial is not passed.
func TestOracleSeesFaults(t *testing.T) {
	m := newModel(3, 1)
	after := func(writes ...int64) string {
		c := m.clone()
		for i := 0; i < len(writes); i += 2 {
			c.reg[int(writes[i])] = writes[i+1]
		}
		return c.String()
	}
	for name, c := range map[string]struct {
		list  []outcome
		final string
	}{
		"write skew": {[]outcome{
			{id: 1, ops: "r1 w2", text: "r1=10 w2=u "}, {id: 2, ops: "r2 w1", text: "r2=20 w1=u "},
		}, after(2, 17, 1, 34)},
		"lost update": {[]outcome{
			{id: 1, ops: "r1 w1", text: "r1=10 w1=u "}, {id: 2, ops: "r1 w1", text: "r1=10 w1=u "},
		}, after(1, 24)},
		"a failure that nobody saw": {[]outcome{{id: 1, ops: "f1", text: "odd: f1=10 ", failed: true}}, after()},
		"another state":             {[]outcome{{id: 1, ops: "r1", text: "r1=10 "}}, after(1, 11)},
		"rounds the other way": {[]outcome{
			{id: 1, ops: "r1", text: "r1=44 ", round: 0}, {id: 2, ops: "r3 w1", text: "r3=30 w1=u ", round: 1},
		}, after(1, 44)},
	} {
		if serial(m, c.list, c.final, noRound) {
			t.Errorf("%s is found serial", name)
		}
	}
	ok := []outcome{{id: 1, ops: "r1 w2", text: "r1=10 w2=u "}, {id: 2, ops: "r1", text: "r1=10 "}}
	if !serial(m, ok, after(2, 17), noRound) {
		t.Error("an innocent block is not found serial")
	}
}
