package server

import (
	"context"
	"sync"
)

// watch is what a node does beside blocks and clients: it signs checkpoints and
// scrubs.
type watch struct {
	fault chan error // of what the node cannot go on after
	stop  context.CancelFunc
	ends  sync.WaitGroup
}

// watch begins; end ends it.
func (n *Node) watch(ctx context.Context) *watch {
	ctx, stop := context.WithCancel(ctx)
	w := &watch{fault: make(chan error, 1), stop: stop}
	w.ends.Go(func() {
		if err := n.scrubber.run(ctx); err != nil {
			w.fault <- err
		}
	})
	if n.checkpoints != nil {
		w.ends.Go(func() { n.checkpoints.run(ctx) })
	}
	return w
}

// end returns when nothing of it reads the store any more.
func (w *watch) end() {
	w.stop()
	w.ends.Wait()
}

// processed tells everybody who waits for it about a block. It runs in the loop
// that processes blocks.
func (n *Node) processed() {
	if n.checkpoints != nil {
		n.checkpoints.block()
	}
	if n.state.chain.Diverged() != nil {
		n.scrubber.exposed()
	}
}
