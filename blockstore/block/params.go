package block

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
)

// Values of the textual parameters.
const (
	FlowOrderThenExecute       = "order-then-execute"
	FlowExecuteOrderInParallel = "execute-order-in-parallel"

	RuleAbortDuringCommit = "abort-during-commit"
	RuleBlockAware        = "block-aware"
	RuleExact             = "exact"

	ConflictsAbort     = "abort"
	ConflictsReexecute = "reexecute"

	OrdererSolo     = "solo"
	OrdererRaft     = "raft"
	OrdererPBFT     = "pbft"
	OrdererZyzzyva  = "zyzzyva"
	maxKeywordBytes = 32
)

// Params are the parameters of a network. All of them are consensus-critical:
// every node must have the same ones at the same height.
type Params struct {
	Flow      string // how transactions reach a block: Flow...
	Rule      string // which in-block conflicts abort whom: Rule...
	Conflicts string // what happens to the losers: Conflicts...
	Orderer   string // protocol of the ordering service: Orderer...

	BlockTxs           uint64 // a block is cut at this many transactions
	BlockBytes         uint64 // ... or before its transactions exceed this many bytes
	BlockTimeoutMicros uint64 // ... or this long after its first transaction arrived
	// OrderingWindow is how many blocks orderers may have in the making: a
	// configuration is in force that many blocks after the one that brings it. It
	// never changes.
	OrderingWindow uint64

	EngineVersion   uint64 // what contracts compute: parser, planner, builtins, step costs
	SnapshotWindow  uint64 // S: a snapshot lies in [b-1-S, b-1]
	ValidityWindow  uint64 // L: valid_until is at most this many heights ahead
	TimeBoundMicros uint64 // signed time differs at most this much from the block's timestamp
	ReexecuteRounds uint64 // rounds for losers under ConflictsReexecute, the last one serial
	CheckpointEvery uint64 // nodes sign their state hash every so many blocks

	MaxSteps           uint64 // execution steps of a transaction
	MaxReadBytes       uint64 // logical bytes that a transaction reads
	MaxWriteBytes      uint64 // logical bytes that a transaction writes
	MaxBlockWriteBytes uint64 // logical bytes that a block writes; the rest aborts in block order
	MaxNesting         uint64 // depth of calls between functions
}

// DefaultParams are those of a development network.
func DefaultParams() Params {
	return Params{
		Flow:      FlowExecuteOrderInParallel,
		Rule:      RuleBlockAware, // the rule that fits the default flow
		Conflicts: ConflictsAbort, // as in the paper; reexecute trades latency for retries
		Orderer:   OrdererSolo,

		BlockTxs:           500,     // the largest block of the paper's evaluation
		BlockBytes:         4 << 20, // far beyond 500 transactions of 200 bytes; bounds large ones
		BlockTimeoutMicros: 100_000, // 0.1 s: what an idle network adds to a latency
		OrderingWindow:     16,      // deep enough for a pipeline, soon over for an admin who waits

		EngineVersion:      1,
		SnapshotWindow:     256,          // 25 s of full timeouts: a slow client still commits
		ValidityWindow:     1024,         // bounds the index of consumed ids
		TimeBoundMicros:    5 * 60 * 1e6, // 5 minutes, Kerberos' usual clock skew
		ReexecuteRounds:    3,            // one serial round after two parallel ones
		CheckpointEvery:    16,           // a signature of every node in 16 blocks is little load
		MaxSteps:           10_000_000,   // about a second of interpretation
		MaxReadBytes:       256 << 20,    // a contract is no analytical query
		MaxWriteBytes:      16 << 20,     // sixteen times the largest transaction
		MaxBlockWriteBytes: 256 << 20,    // one storage batch in memory
		MaxNesting:         64,           // well below the stack's limits
	}
}

// Validate reports the first parameter that makes no sense.
func (p *Params) Validate() error {
	for _, k := range p.keywords() {
		if !slices.Contains(k.allowed, *k.value) {
			return fmt.Errorf("block: parameter %s is %q, not one of %q", k.name, *k.value, k.allowed)
		}
	}
	for _, n := range p.numbers() {
		if *n.value < n.min || *n.value > n.max {
			return fmt.Errorf("block: parameter %s is %d, not from %d to %d", n.name, *n.value, n.min, n.max)
		}
	}
	if p.MaxBlockWriteBytes < p.MaxWriteBytes {
		return fmt.Errorf("block: parameter max_block_write_bytes is below max_write_bytes")
	}
	return nil
}

// keyword and number describe the parameters once for validation, encoding and
// decoding. Their order is the order of the encoding.
type keyword struct {
	name    string
	value   *string
	allowed []string
}

type number struct {
	name     string
	value    *uint64
	min, max uint64
}

func (p *Params) keywords() [4]keyword {
	return [4]keyword{
		{"flow", &p.Flow, []string{FlowOrderThenExecute, FlowExecuteOrderInParallel}},
		{"rule", &p.Rule, []string{RuleAbortDuringCommit, RuleBlockAware, RuleExact}},
		{"conflicts", &p.Conflicts, []string{ConflictsAbort, ConflictsReexecute}},
		{"orderer", &p.Orderer, []string{OrdererSolo, OrdererRaft, OrdererPBFT, OrdererZyzzyva}},
	}
}

func (p *Params) numbers() [15]number {
	const (
		hour     = 3600 * 1e6
		maxBytes = 1 << 40
		// A transaction that is larger gets a block of its own.
		minBlockBytes = 1024
		// Leaves room for the head of a block and its certificate.
		maxBlockBytes = MaxBlockBytes - MaxCertificateBytes - 4096
	)
	return [15]number{
		{"block_txs", &p.BlockTxs, 1, MaxTxsPerBlock},
		{"block_bytes", &p.BlockBytes, minBlockBytes, maxBlockBytes},
		{"block_timeout", &p.BlockTimeoutMicros, 1000, hour},
		{"ordering_window", &p.OrderingWindow, 0, 1 << 16},
		{"engine_version", &p.EngineVersion, 1, 1 << 32},
		{"snapshot_window", &p.SnapshotWindow, 0, 1 << 20},
		{"validity_window", &p.ValidityWindow, 1, 1 << 20},
		{"time_bound", &p.TimeBoundMicros, 1e6, 24 * hour},
		{"reexecute_rounds", &p.ReexecuteRounds, 1, 100},
		{"checkpoint_every", &p.CheckpointEvery, 1, 1 << 20},
		{"max_steps", &p.MaxSteps, 1, 1 << 50},
		{"max_read_bytes", &p.MaxReadBytes, 1, maxBytes},
		{"max_write_bytes", &p.MaxWriteBytes, 1, maxBytes},
		{"max_block_write_bytes", &p.MaxBlockWriteBytes, 1, maxBytes},
		{"max_nesting", &p.MaxNesting, 1, 1000},
	}
}

// Set gives the parameter of this name a value, a decimal integer or a keyword. It
// checks its bounds, but nothing that concerns several parameters: see Validate.
func (p *Params) Set(name, value string) error {
	for _, k := range p.keywords() {
		if k.name == name {
			if !slices.Contains(k.allowed, value) {
				return fmt.Errorf("block: parameter %s is %q, not one of %q", name, value, k.allowed)
			}
			*k.value = value
			return nil
		}
	}
	for _, n := range p.numbers() {
		if n.name != name {
			continue
		}
		v, err := strconv.ParseUint(value, 10, 64)
		if err != nil || v < n.min || v > n.max {
			return fmt.Errorf("block: parameter %s is %q, not from %d to %d", name, value, n.min, n.max)
		}
		*n.value = v
		return nil
	}
	return fmt.Errorf("block: there is no parameter %q", name)
}

// Each calls f for every parameter in the order of the encoding.
func (p *Params) Each(f func(name, value string)) {
	for _, k := range p.keywords() {
		f(k.name, *k.value)
	}
	for _, n := range p.numbers() {
		f(n.name, strconv.FormatUint(*n.value, 10))
	}
}

func (p *Params) appendTo(b []byte) []byte {
	for _, k := range p.keywords() {
		b = appendString(b, *k.value)
	}
	for _, n := range p.numbers() {
		b = binary.AppendUvarint(b, *n.value)
	}
	return b
}

func (p *Params) decode(r *reader) {
	for _, k := range p.keywords() {
		*k.value = string(r.bytes(maxKeywordBytes, k.name))
	}
	for _, n := range p.numbers() {
		*n.value = r.uvarint(n.max, n.name)
	}
}
