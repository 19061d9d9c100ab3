package raft

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/tallystick/tallystick/ordering/orderingtest"
)

var errCrash = errors.New("crashed")

// firstEntry returns where the log begins.
func (o *Orderer) firstEntry() (uint64, error) { return o.entries.FirstIndex() }

// loseBlocks removes the block store of an orderer that does not run.
func (c *cluster) loseBlocks(i int) {
	c.t.Helper()
	if err := os.RemoveAll(filepath.Join(c.dir, c.peer(i).Address, "blocks")); err != nil {
		c.t.Fatal(err)
	}
}

// chaos runs clients against orderers of which one at a time fails.
func chaos(t *testing.T, d time.Duration) {
	c := newCluster(t, 3, func(o *Options) { compact(o, 50, 10) })
	c.startAll()
	c.crown(0)
	var dir directory
	dir.set(c)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r := rand.New(rand.NewPCG(1, uint64(d)))
	maker := orderingtest.NewTxMaker(c.genesis.Genesis.NetworkID())
	clients := make([]client, 3)
	var wg sync.WaitGroup
	for i := range clients {
		clients[i].txs = maker.Some(1000 + int(d/time.Millisecond)/5)
		wg.Go(func() { clients[i].run(ctx, dir.pick) })
	}
	for end := time.Now().Add(d); time.Now().Before(end); {
		time.Sleep(time.Duration(100+r.IntN(400)) * time.Millisecond)
		i := r.IntN(3)
		switch r.IntN(3) {
		case 0: // a crash
			dir.mu.Lock()
			dir.list = nil
			dir.mu.Unlock()
			c.crash(i)
			dir.set(c)
			time.Sleep(time.Duration(r.IntN(800)) * time.Millisecond)
			c.start(i, c.peers(3))
			dir.set(c)
		case 1: // a partition
			c.fabric.isolate(c.nodes[i].name, true)
			time.Sleep(time.Duration(r.IntN(1000)) * time.Millisecond)
			c.fabric.isolate(c.nodes[i].name, false)
		case 2: // a transfer, if it can lead
			for _, j := range c.running() {
				_ = c.nodes[j].TransferLeadership(c.peer(i)) // refused by all but one
			}
		}
	}
	wg.Wait()
	all := clients[0].txs
	for i := range clients[1:] {
		all = append(all, clients[i+1].txs...)
	}
	// What an orderer had accepted and lost in its crash comes again.
	for i := 0; i < len(all); i += 500 {
		c.submit(r.IntN(3), all[i:min(i+500, len(all))]...)
	}
	c.agree(all, 0, 1, 2)
}
