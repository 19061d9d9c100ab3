package server

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"sync"
	"testing"

	"github.com/tallystick/tallystick/blockstore/block"
)

// startChosen starts a node of a network with these choices.
func startChosen(t *testing.T, dir string, choices Choices) *running {
	t.Helper()
	n, err := openNode(dir, choices, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	r := &running{Node: n, t: t, stop: stop, end: make(chan error, 1)}
	go func() { r.end <- n.Serve(ctx) }()
	t.Cleanup(func() { stop() })
	return r
}

// TestExecuteOrderInParallel drives a node of this flow by clients: what they
// read after an answer is what it said, transactions are executed before they
// are ordered, and the chain replays to the same state.
func TestExecuteOrderInParallel(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	r := startChosen(t, dir, Choices{Flow: block.FlowExecuteOrderInParallel})
	if rule := r.genesis.Params.Rule; rule != block.RuleBlockAware {
		t.Errorf("the rule is %s", rule)
	}
	r.work()
	var wg sync.WaitGroup
	for client := range 4 {
		wg.Go(func() {
			conn, err := r.connect("alice")
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close(context.Background())
			for i := range 25 {
				id, got, note := 1000*(client+1)+i, 0, ""
				if err := conn.QueryRow(context.Background(), "SELECT take($1, $2)", id, fmt.Sprint("note ", id)).Scan(&got); err != nil || got != id {
					t.Errorf("take(%d) is %d, %v", id, got, err)
				}
				if err := conn.QueryRow(context.Background(), "SELECT note FROM notes WHERE id = $1", id).Scan(&note); err != nil || note != fmt.Sprint("note ", id) {
					t.Errorf("note %d is %q, %v", id, note, err)
				}
			}
		})
	}
	wg.Wait()
	m := r.state.chain.Metrics()
	if m.Speculated < 50 || m.Committed != 6+2+100 {
		t.Errorf("%d executed before their block, %d in it, %d committed", m.Speculated, m.Missing, m.Committed)
	}
	_, _, state := r.state.chain.Tip()
	r.close()
	r = startNode(t, dir)
	if _, _, again := r.state.chain.Tip(); again != state {
		t.Errorf("state hash %s after a restart, %s before", again, state)
	}
	r.close()
}
