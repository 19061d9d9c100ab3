package raft

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/ordering/cutter"
	"github.com/tallystick/tallystick/ordering/orderingtest"
)

// benchTx is a transaction like those of the first paper's workload.
func benchTx(maker *orderingtest.TxMaker) *block.Tx {
	const bytes = 196
	tx := maker.Next()
	for missing := bytes - len(tx.Encode()); missing > 0; missing = bytes - len(tx.Encode()) {
		tx.Call.Name += string(make([]byte, 0, missing))
		for range missing {
			tx.Call.Name += "f"
		}
		maker.Sign(tx)
	}
	if n := len(tx.Encode()); n != bytes {
		panic(fmt.Sprintf("transaction of %d bytes", n))
	}
	return tx
}

// BenchmarkOrderers measures ordered transactions a second with all orderers in
// this process, each with a log and a block store on disk that are synced.
// Transactions of 196 bytes in blocks of 500, submitted at all orderers.
func BenchmarkOrderers(b *testing.B) {
	for _, n := range []int{1, 3} {
		b.Run(fmt.Sprintf("nodes=%d", n), func(b *testing.B) { benchmarkOrderers(b, n) })
	}
}

func benchmarkOrderers(b *testing.B, n int) {
	c := newCluster(b, n, func(o *Options) {
		o.Cutter = cutter.Config{MaxTxs: 500, MaxBytes: 4 << 20, Timeout: 100_000}
		o.ElectionTimeout, o.Queue, o.Remember = 0, 1<<16, 1024
	})
	c.startAll()
	c.crown(0)
	tx := benchTx(orderingtest.NewTxMaker(c.genesis.Genesis.NetworkID()))
	var wg sync.WaitGroup
	for i := range c.nodes { // a transaction counts when all have stored it
		wg.Go(func() {
			left := b.N
			_ = c.nodes[i].Deliver(context.Background(), 1, func(blk *block.Block) error {
				if left -= len(blk.Txs); left <= 0 {
					return errors.New("enough")
				}
				return nil
			})
		})
	}
	b.ResetTimer()
	var next atomic.Int64
	for i := range 2 * n {
		wg.Go(func() {
			for k := next.Add(1); k <= int64(b.N); k = next.Add(1) {
				if err := c.nodes[i%n].Submit(context.Background(), variant(tx, k)); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "tx/s")
	b.ReportMetric(float64(b.N)/float64(c.nodes[0].Status().Height), "tx/block")
}

// variant differs from tx in its signature: signing would be all that is
// measured.
func variant(tx *block.Tx, k int64) *block.Tx {
	raw := append([]byte(nil), tx.Encode()...)
	for i := range 5 {
		raw[len(raw)-1-i] ^= byte(k >> (8 * i))
	}
	v, err := block.DecodeTx(raw)
	if err != nil {
		panic(err)
	}
	return v
}
