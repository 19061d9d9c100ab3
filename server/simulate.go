package server

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/tallystick/tallystick/blockstore"
	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/mvcc"
	"github.com/tallystick/tallystick/server/chain"
)

// SimulateOptions say what to simulate. Everything that happens follows from the
// seed.
type SimulateOptions struct {
	Nodes  int // 4 if 0
	Blocks int
	Seed   uint64
	// Progress, if set, is told from time to time how many blocks are done.
	Progress func(done, total uint64)
}

// SimulateReport is how a simulation ended.
type SimulateReport struct {
	Flow, Rule, Conflicts string // as the seed has chosen them
	Height                block.Height
	States                []block.Hash // of each node, at Height
	Transactions          uint64
	Committed, Aborted    uint64
	Failed, Rejected      uint64
	Speculated            []uint64 // transactions that each node had executed before their block
	Crashes               int
	Checkpoints           block.Height // height of the last one
}

// Simulate drives the chain processors of several nodes in this process, on file
// systems in memory, with the blocks of random transactions of random contracts.
// The nodes differ in all that must not matter: number of workers, which
// transactions they execute ahead of their block and in which order they hear of
// them, how far they lag behind, and when they crash and lose what was not
// synced. Their states, receipts and checkpoints have to be equal at every height:
// an error says where they are not.
func Simulate(ctx context.Context, opts SimulateOptions) (*SimulateReport, error) {
	if opts.Nodes == 0 {
		opts.Nodes = 4
	}
	if opts.Nodes < 1 || opts.Nodes > 64 || opts.Blocks < 1 {
		return nil, errors.New("server: a simulation has 1 to 64 nodes and a block at least")
	}
	if opts.Progress == nil {
		opts.Progress = func(uint64, uint64) {}
	}
	s := &simulation{opts: opts, rng: rand.New(rand.NewPCG(opts.Seed, 0x7461)), log: slog.New(slog.NewTextHandler(io.Discard, nil))}
	defer s.close()
	if err := s.begin(); err != nil {
		return nil, err
	}
	for s.source.last.Number < uint64(opts.Blocks) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := s.step(); err != nil {
			return &s.report, fmt.Errorf("seed %d, block %d: %w", opts.Seed, s.source.last.Number, err)
		}
		opts.Progress(s.source.last.Number, uint64(opts.Blocks))
	}
	if err := s.finish(ctx); err != nil {
		return &s.report, fmt.Errorf("seed %d: %w", opts.Seed, err)
	}
	return &s.report, nil
}

type simulation struct {
	opts    SimulateOptions
	rng     *rand.Rand
	log     *slog.Logger
	source  *simSource
	nodes   []*simNode
	outcome []block.Hash // of the receipts of each block, as the first node had them
	report  SimulateReport
}

// simNode is one node: what is on its disks, and what is open on them.
type simNode struct {
	sim      *simulation
	name     int
	workers  int
	ahead    int // per cent of transactions that it executes before their block
	lag      int // blocks that it is behind at most
	crash    int // per mille of blocks after which it crashes
	blocksFS *vfs.MemFS
	stateFS  *vfs.MemFS
	blocks   *blockstore.Store
	state    *state
	queue    []*block.Block

	speculated uint64 // before the last crash
}

func (s *simulation) begin() error {
	s.source = newSimSource(s.rng)
	p := &s.source.genesis.Params
	s.report.Flow, s.report.Rule, s.report.Conflicts = p.Flow, p.Rule, p.Conflicts
	for i := range s.opts.Nodes {
		n := &simNode{sim: s, name: i, blocksFS: vfs.NewCrashableMem(), stateFS: vfs.NewCrashableMem(),
			workers: []int{1, 2, 4, 16}[i%4], ahead: []int{100, 0, 50, 20}[i%4], lag: i % 5, crash: []int{0, 5, 10, 20}[i%4]}
		s.nodes = append(s.nodes, n)
		if err := n.open(); err != nil {
			return err
		}
	}
	return nil
}

func (n *simNode) open() error {
	g := n.sim.source.genesis
	var err error
	n.blocks, err = blockstore.Open("blocks", blockstore.Options{FS: n.blocksFS, Genesis: g})
	if err != nil {
		return err
	}
	store, err := mvcc.Open("state", mvcc.Options{FS: n.stateFS, MemTableBytes: 1 << 20, CacheBytes: 8 << 20, HeadCacheBytes: 4 << 20, Logger: n.sim.log})
	if err != nil {
		return err
	}
	n.state = newState(store, nil, n.sim.log)
	return n.state.openChain(n.blocks, n.workers)
}

func (n *simNode) close() error {
	if n.state == nil {
		return nil
	}
	if n.state.chain != nil {
		n.state.chain.Close()
	}
	return errors.Join(n.state.close(), n.blocks.Close())
}

// crashNow lets the machine stop: what was not synced is lost, in part or as a
// whole. The state loses more than the blocks, never the other way round: a block
// is processed after it was synced.
func (n *simNode) crashNow(rng *rand.Rand) error {
	state := n.stateFS.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: rng.IntN(101), RNG: rng})
	blocks := n.blocksFS.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: rng.IntN(101), RNG: rng})
	n.speculated += n.state.chain.Metrics().Speculated
	tip, _ := n.blocks.Tip()
	if err := n.close(); err != nil {
		return err
	}
	n.blocksFS, n.stateFS = blocks, state
	if err := n.open(); err != nil {
		return fmt.Errorf("node %d after a crash: %w", n.name, err)
	}
	if back, _ := n.blocks.Tip(); back != tip || n.state.chain.Height() != tip {
		return fmt.Errorf("node %d came back from a crash at block %d, height %d, not %d", n.name, back, n.state.chain.Height(), tip)
	}
	n.sim.report.Crashes++
	return nil
}

// step makes a block and lets the nodes go on, each as far as it likes.
func (s *simulation) step() error {
	txs := s.source.transactions()
	txs = append(txs, s.votes()...)
	for _, n := range s.nodes {
		for _, i := range s.rng.Perm(len(txs)) {
			if s.rng.IntN(100) < n.ahead {
				n.state.chain.Speculate(txs[i])
			}
		}
	}
	s.rng.Shuffle(len(txs), func(i, j int) { txs[i], txs[j] = txs[j], txs[i] })
	b, err := s.source.block(txs)
	if err != nil {
		return err
	}
	s.report.Transactions += uint64(len(txs))
	for _, n := range s.nodes {
		n.queue = append(n.queue, b)
		for keep := s.rng.IntN(n.lag + 1); len(n.queue) > keep; {
			if err := n.process(); err != nil {
				return err
			}
		}
	}
	return nil
}

// process lets a node process the next block that it has heard of.
func (n *simNode) process() error {
	b := n.queue[0]
	n.queue = n.queue[1:]
	if err := n.blocks.Append(b); err != nil {
		return fmt.Errorf("node %d: %w", n.name, err)
	}
	receipts, err := n.state.chain.Process(b)
	if err != nil {
		return fmt.Errorf("node %d: %w", n.name, err)
	}
	if err := n.sim.compare(n, b.Number, receipts); err != nil {
		return err
	}
	if n.sim.rng.IntN(1000) < n.crash {
		return n.crashNow(n.sim.rng)
	}
	return nil
}

// compare checks receipts and state hash of a node against those of the node that
// was there first.
func (s *simulation) compare(n *simNode, height block.Height, receipts []chain.Receipt) error {
	_, _, state := n.state.chain.Tip()
	h := sha256.New()
	h.Write(state[:])
	for i := range receipts {
		r := &receipts[i]
		o := r.Outcome()
		leaf := o.Leaf()
		h.Write(leaf[:])
		if r.Err != nil {
			fmt.Fprintf(h, "%s\x00%s\x00%s\x00", r.Err.Code, r.Err.Message, r.Err.Detail)
		}
	}
	sum := block.Hash(h.Sum(nil))
	if int(height) == len(s.outcome)+1 {
		s.outcome = append(s.outcome, sum)
		s.count(receipts)
		return nil
	}
	if s.outcome[height-1] != sum {
		return fmt.Errorf("node %d has another state or other receipts at block %d: state %s", n.name, height, state)
	}
	return nil
}

func (s *simulation) count(receipts []chain.Receipt) {
	for i := range receipts {
		switch receipts[i].Status {
		case chain.Committed:
			s.report.Committed++
		case chain.Aborted:
			s.report.Aborted++
		case chain.Failed:
			s.report.Failed++
		case chain.Rejected:
			s.report.Rejected++
		}
	}
}

// votes are the checkpoints that nodes submit, some of them late or never.
func (s *simulation) votes() (txs []*block.Tx) {
	for i, n := range s.nodes {
		height, state, due, err := n.state.chain.CheckpointDue()
		if err != nil || !due || s.rng.IntN(3) == 0 {
			continue
		}
		if tx := s.source.vote(n.state.chain, i, height, state); tx != nil {
			txs = append(txs, tx)
		}
	}
	return txs
}

// finish lets everybody catch up, compares the states, and looks at the rows
// behind them.
func (s *simulation) finish(ctx context.Context) error {
	s.report.Height = s.source.last.Number
	for _, n := range s.nodes {
		for len(n.queue) > 0 {
			if err := n.process(); err != nil {
				return err
			}
		}
		height, _, state := n.state.chain.Tip()
		if height != s.report.Height {
			return fmt.Errorf("node %d ends at block %d, not %d", n.name, height, s.report.Height)
		}
		s.report.States = append(s.report.States, state)
		s.report.Speculated = append(s.report.Speculated, n.speculated+n.state.chain.Metrics().Speculated)
		if d := n.state.chain.Diverged(); d != nil {
			return d
		}
		r, err := n.state.chain.Scrub(ctx, chain.ScrubOptions{BytesPerSecond: 1 << 40})
		if err != nil {
			return err
		}
		if len(r.Damage) > 0 {
			return fmt.Errorf("node %d: %w", n.name, r.Damage[0])
		}
	}
	point, err := s.nodes[0].state.chain.LastCheckpoint()
	if err == nil && point != nil {
		s.report.Checkpoints = point.Height
	}
	return err
}

func (s *simulation) close() {
	for _, n := range s.nodes {
		_ = n.close() // everything is in memory
	}
}

// seedKey makes a key from a number.
func seedKey(n uint64) (seed [32]byte) {
	binary.BigEndian.PutUint64(seed[:], n)
	seed[31] = 1
	return seed
}
