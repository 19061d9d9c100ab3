package chain

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/tallystick/tallystick/blockstore/block"
)

// benchNode is a node with the contracts and accounts of the benchmarks.
func benchNode(b *testing.B, g *block.Genesis) (*source, *node) {
	b.Helper()
	s, n := newSource(b, g), newNode(b, g, runtime.GOMAXPROCS(0))
	mustCommit(b, n.process(s.deployBlock(1, benchSchema)))
	for from := 1; from < benchAccounts; from += 10_000 {
		mustCommit(b, n.process(s.block(s.tx(alice, "fill", from, from+9_999))))
	}
	return s, n
}

// BenchmarkSpeculation is BenchmarkProcess of transfers in execute-order-in-
// parallel: what a block costs when all of its transactions were executed before
// it came, half of them, and none. Signatures were checked before in each case.
// "ahead-us/tx" is what the executions before the block cost, on all cores.
func BenchmarkSpeculation(b *testing.B) {
	for _, share := range []int{100, 50, 0} {
		b.Run(fmt.Sprintf("%d%%", share), func(b *testing.B) {
			s, n := benchNode(b, testGenesis(eop))
			rng := rand.New(rand.NewPCG(1, 2))
			var ahead uint64
			before := n.chain.Metrics()
			for b.Loop() {
				b.StopTimer()
				txs := make([]*block.Tx, benchBlockTxs)
				for i := range txs {
					from := 1 + rng.IntN(benchAccounts)
					txs[i] = s.tx(alice, "c_transfer", from, 1+(from+rng.IntN(benchAccounts-2))%benchAccounts, num("0.01"))
				}
				next, err := block.DecodeBlock(s.block(txs...).Encode())
				if err != nil {
					b.Fatal(err)
				}
				watch := startWatch()
				var running []*speculation
				for i, tx := range next.Txs {
					if err := n.chain.Authenticate(tx); err != nil {
						b.Fatal(err)
					}
					if i*100 < share*len(next.Txs) {
						running = append(running, n.chain.speculation(tx))
					}
				}
				for _, p := range running {
					<-p.done
				}
				watch.lap(&ahead)
				b.StartTimer()
				if _, err := n.chain.Process(next); err != nil {
					b.Fatal(err)
				}
			}
			m := n.chain.Metrics()
			txs := float64(m.Transactions - before.Transactions)
			b.ReportMetric(float64(ahead)/txs, "ahead-us/tx")
			b.ReportMetric(float64(m.ExecuteMicros-before.ExecuteMicros)/txs, "execute-us/tx")
			b.ReportMetric(float64(m.Committed-before.Committed)/b.Elapsed().Seconds(), "committed/s")
		})
	}
}

// BenchmarkHotRow has all transactions of a block take from one account.
func BenchmarkHotRow(b *testing.B) {
	for _, c := range []struct {
		conflicts string
		rounds    uint64
	}{{block.ConflictsAbort, 1}, {block.ConflictsReexecute, 1}, {block.ConflictsReexecute, 3}} {
		for _, flow := range []string{block.FlowOrderThenExecute, block.FlowExecuteOrderInParallel} {
			b.Run(fmt.Sprintf("%s/%s/rounds=%d", flow, c.conflicts, c.rounds), func(b *testing.B) {
				s, n := benchNode(b, testGenesis(func(p *block.Params) {
					p.Flow, p.Conflicts, p.ReexecuteRounds = flow, c.conflicts, c.rounds
				}))
				rng := rand.New(rand.NewPCG(1, 2))
				before := n.chain.Metrics()
				for b.Loop() {
					b.StopTimer()
					txs := make([]*block.Tx, benchBlockTxs)
					for i := range txs {
						txs[i] = s.tx(alice, "c_transfer", 1, 2+rng.IntN(benchAccounts-2), num("0.01"))
					}
					next, err := block.DecodeBlock(s.block(txs...).Encode())
					if err != nil {
						b.Fatal(err)
					}
					b.StartTimer()
					if _, err := n.chain.Process(next); err != nil {
						b.Fatal(err)
					}
				}
				m := n.chain.Metrics()
				committed := float64(m.Committed - before.Committed)
				b.ReportMetric(committed/b.Elapsed().Seconds(), "committed/s")
				b.ReportMetric(committed/float64(m.Blocks-before.Blocks), "committed/block")
				b.ReportMetric(float64(m.Reexecuted-before.Reexecuted)/float64(m.Blocks-before.Blocks), "again/block")
			})
		}
	}
}
