package chain

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/tallystick/tallystick/blockstore"
	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/contracts/system"
	"github.com/tallystick/tallystick/identity"
	"github.com/tallystick/tallystick/mvcc"
	"github.com/tallystick/tallystick/sql"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/ssi"
)

// Chain processes blocks. Process takes one block at a time; everything else
// may be called from any goroutine meanwhile.
type Chain struct {
	store   *mvcc.Store
	blocks  *blockstore.Store
	engine  *sql.Engine
	system  *system.System
	log     *slog.Logger
	workers int

	genesis  *block.Genesis
	network  block.Hash
	params   atomic.Pointer[block.Params] // that hold in the block after the tip
	rule     ssi.Rule
	verifier *identity.BatchVerifier // of blocks
	handed   *identity.GroupVerifier // of what clients hand in
	checked  checkedSignatures
	ahead    speculator

	// processMu serializes Process; what it guards is used by it alone.
	processMu sync.Mutex
	failed    error // why no block is processed any more
	run       run
	decider   ssi.Decider
	tables    tableDigests

	// mu guards the state as of the last block for readers. Process writes
	// under both locks.
	mu      sync.RWMutex
	tip     tip
	ids     *idIndex
	users   registry
	metrics Metrics

	governance governance
	// busy is the last block with something else than checkpoints, due the height
	// whose state is to be submitted, both as far as this process knows.
	busy, due block.Height
	diverged  *Divergence // why no block is processed any more
}

// tip is the end of the processed chain. It is stored with every block.
type tip struct {
	height    block.Height
	hash      block.Hash // of the block
	state     block.Hash
	timestamp int64 // of the block, Unix microseconds
}

// Open opens a chain, checks that state and blocks belong together and
// processes the blocks that the state does not have.
func Open(opts Options) (*Chain, error) {
	c, err := open(opts)
	if err != nil {
		return nil, err
	}
	return c, c.recover()
}

// open makes a chain as of the height of its state.
func open(opts Options) (*Chain, error) {
	opts.EnsureDefaults()
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	first, err := opts.Blocks.Get(0)
	if err != nil {
		return nil, fmt.Errorf("chain: reading the genesis: %w", err)
	}
	verifier := identity.NewBatchVerifier(opts.Workers, opts.CachedKeys)
	c := &Chain{
		store: opts.Store, blocks: opts.Blocks, engine: opts.Engine, system: opts.System,
		log: opts.Logger, workers: opts.Workers,
		genesis: first.Genesis, network: first.Genesis.NetworkID(),
		verifier: verifier, handed: identity.NewGroupVerifier(verifier),
		ids: newIDIndex(), users: registry{},
		ahead: speculator{workers: opts.Workers, maxTxs: opts.SpeculativeTxs, maxBytes: opts.SpeculativeBytes},
	}
	c.system.Begin(c.genesis)
	if err := c.load(first); err != nil {
		return nil, err
	}
	return c, c.errEngine()
}

// engineVersion is what this program computes.
const engineVersion = 1

// Genesis is the genesis of the network; not to be changed.
func (c *Chain) Genesis() *block.Genesis { return c.genesis }

// NetworkID is the id of the network.
func (c *Chain) NetworkID() block.Hash { return c.network }

// Params are the parameters that hold in the block after the last one.
func (c *Chain) Params() block.Params { return *c.params.Load() }

// Height is the number of the last processed block.
func (c *Chain) Height() block.Height {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.tip.height
}

// Tip is the last processed block: its number, hash and state hash.
func (c *Chain) Tip() (height block.Height, hash, state block.Hash) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.tip.height, c.tip.hash, c.tip.state
}

// errNoBlock is what is returned for a height that was not reached yet.
var errNoBlock = errors.New("chain: the block was not processed yet")

// StateHash is the state hash of a processed block.
func (c *Chain) StateHash(height block.Height) (block.Hash, error) {
	row, err := c.blockRow(height)
	if err != nil {
		return block.Hash{}, err
	}
	return block.Hash(row[blocksColumns.state].Bytes()), nil
}

// BlockTime is the timestamp of a processed block as a timestamptz, which is
// what block_timestamp() returns.
func (c *Chain) BlockTime(height block.Height) (int64, error) {
	c.mu.RLock()
	last := c.tip
	c.mu.RUnlock()
	if height == last.height {
		return timestampTZ(last.timestamp), nil
	}
	row, err := c.blockRow(height)
	if err != nil {
		return 0, err
	}
	return row[blocksColumns.time].Int(), nil
}

// blockRow reads the row of a processed block.
func (c *Chain) blockRow(height block.Height) ([]datum.Datum, error) {
	txn := c.store.Begin(mvcc.AsOf(c.store.Height()), 0)
	defer txn.Close()
	value, _, ok, err := txn.Get(blocksTable.key(height), mvcc.ReadUnrecorded)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, fmt.Errorf("%w: block %d", errNoBlock, height)
	}
	row := blocksTable.newRow()
	if err := blocksTable.decoder.Decode(value, row); err != nil {
		return nil, err
	}
	if n := len(row[blocksColumns.state].Bytes()); n != len(block.Hash{}) {
		return nil, fmt.Errorf("chain: corruption: state hash of block %d has %d bytes", height, n)
	}
	return row, nil
}

// Consumed reports whether a transaction id was consumed by a block that
// [Chain.LookupReceipt] can see. It is exact for transactions that may still be
// ordered and says no for others.
func (c *Chain) Consumed(id block.TxID) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	_, ok := c.ids.known[id]
	return ok
}

// metaTip is the record of the state that says which block it is of.
const metaTip = "chain/tip"

// encode is version 1, network, hash, state, timestamp, height, farthest
// valid_until (see idIndex); integers are big-endian.
func (t *tip) encode(network block.Hash, farthest block.Height) []byte {
	b := append([]byte{1}, network[:]...)
	b = append(append(b, t.hash[:]...), t.state[:]...)
	b = binary.BigEndian.AppendUint64(b, uint64(t.timestamp))
	b = binary.BigEndian.AppendUint64(b, t.height)
	return binary.BigEndian.AppendUint64(b, farthest)
}

func decodeTip(b []byte) (t tip, network block.Hash, farthest block.Height, err error) {
	if len(b) != 1+3*32+3*8 || b[0] != 1 {
		return tip{}, block.Hash{}, 0, fmt.Errorf("chain: corruption: record of the tip is %x", b)
	}
	b = b[1:]
	network, t.hash, t.state = block.Hash(b), block.Hash(b[32:]), block.Hash(b[64:])
	t.timestamp = int64(binary.BigEndian.Uint64(b[96:]))
	t.height = binary.BigEndian.Uint64(b[104:])
	return t, network, binary.BigEndian.Uint64(b[112:]), nil
}
