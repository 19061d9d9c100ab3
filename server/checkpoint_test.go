package server

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/identity"
)

// TestCheckpointer submits what is due once, and again if it was not taken.
func TestCheckpointer(t *testing.T) {
	s := &simulation{rng: rand.New(rand.NewPCG(3, 3)), log: slog.New(slog.NewTextHandler(io.Discard, nil))}
	s.source = newSimSource(s.rng)
	every := s.source.genesis.Params.CheckpointEvery
	n := &simNode{sim: s, workers: 1, blocksFS: vfs.NewCrashableMem(), stateFS: vfs.NewCrashableMem()}
	if err := n.open(); err != nil {
		t.Fatal(err)
	}
	defer n.close()
	id := identity.UserID{Org: "acme", Name: "node"}
	taken := make(chan *block.Tx, 10)
	refusals := 1
	p := newCheckpointer(n.state.chain, func(_ context.Context, tx *block.Tx) error {
		if refusals > 0 {
			refusals--
			taken <- nil
			return errors.New("no room")
		}
		taken <- tx
		return nil
	}, id, func() *identity.Signer { return s.source.signers[id] }, s.log)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { p.run(ctx); close(ended) }()
	next := func(want bool) *block.Tx {
		t.Helper()
		b, err := s.source.block(s.source.transactions())
		if err != nil {
			t.Fatal(err)
		}
		n.queue = append(n.queue, b)
		if err := n.process(); err != nil {
			t.Fatal(err)
		}
		p.block()
		if !want {
			return nil
		}
		select {
		case tx := <-taken:
			return tx
		case <-time.After(30 * time.Second):
			t.Fatalf("nothing was submitted at block %d", b.Number)
		}
		return nil
	}
	for range every - 1 {
		next(false)
	}
	if tx := next(true); tx != nil {
		t.Error("the first one was to be refused")
	}
	tx := next(true)
	if tx == nil || tx.User != id {
		t.Fatalf("submitted %+v", tx)
	}
	if err := n.state.chain.Authenticate(tx); err != nil {
		t.Error(err)
	}
	stop()
	<-ended
	if len(taken) != 0 {
		t.Error("a checkpoint was submitted twice")
	}
}
