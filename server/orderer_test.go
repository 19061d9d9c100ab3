package server

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/tallystick/tallystick/blockstore/block"
)

// TestRaftDev and TestPBFTDev: a network with one orderer of a protocol for several
// goes on after a restart, also when its state is rebuilt, and nothing is ordered
// twice.
func TestRaftDev(t *testing.T) { testDev(t, block.OrdererRaft) }

func TestPBFTDev(t *testing.T) { testDev(t, block.OrdererPBFT) }

func testDev(t *testing.T, protocol string) {
	dir := filepath.Join(t.TempDir(), "data")
	start := func() *running {
		t.Helper()
		n, err := openNode(dir, Choices{Orderer: protocol}, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(context.Background())
		r := &running{Node: n, t: t, stop: stop, end: make(chan error, 1)}
		go func() { r.end <- n.Serve(ctx) }()
		t.Cleanup(stop)
		return r
	}
	r := start()
	r.work()
	if got := r.orderer.Status().Protocol; got != protocol {
		t.Errorf("protocol %s", got)
	}
	_, hash, state := r.state.chain.Tip()
	r.close()
	if err := os.RemoveAll(filepath.Join(dir, "state")); err != nil {
		t.Fatal(err)
	}

	r = start()
	height, againHash, againState := r.state.chain.Tip()
	if height != workBlocks || againHash != hash || againState != state {
		t.Errorf("after a restart block %d has hash %s and state %s, not %s and %s", height, againHash, againState, hash, state)
	}
	r.exec("bob", "SELECT take(3, 'third')")
	if h := r.Height(); h != workBlocks+1 {
		t.Errorf("height %d after one more call, want %d", h, workBlocks+1)
	}
	r.close()

	report, err := Verify(context.Background(), dir, VerifyOptions{Replay: true, Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	if report.Tip != workBlocks+1 {
		t.Errorf("verified up to block %d", report.Tip)
	}
}
