package raft

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/identity"
	"github.com/tallystick/tallystick/ordering"
	"github.com/tallystick/tallystick/ordering/cutter"
)

const (
	// DefaultQueue is the default number of transactions that were submitted to
	// one orderer and do not yet stand in a block: a full pipeline of blocks of
	// the default size and some more.
	DefaultQueue = 16384
	// DefaultPipeline is the default number of entries that a leader has under
	// way.
	DefaultPipeline = 16
	// DefaultElectionTimeout is the default silence of a leader after which
	// others stand for election.
	DefaultElectionTimeout = time.Second
	// DefaultSnapshotEntries and DefaultTrailingEntries bound the log to some
	// thousand blocks.
	DefaultSnapshotEntries = 1024
	DefaultTrailingEntries = 512
	// DefaultFlushTimeout is how long Close waits for what was accepted.
	DefaultFlushTimeout = 5 * time.Second

	// maxQueue and maxPipeline bound memory.
	maxQueue    = 1 << 20
	maxPipeline = 256
	// minElectionTimeout is what the library accepts, with room for the lease.
	minElectionTimeout = 20 * time.Millisecond
)

// Peer is an orderer as others reach it.
type Peer struct {
	Key     identity.PublicKey // identifies it for ever
	Address string             // what Options.Dial is called with
}

// Options say what an orderer orders, with whom, and where it keeps it.
type Options struct {
	Network  block.Hash          // id of the network
	ConfigID block.Hash          // configuration that new blocks name
	Orderers identity.OrdererSet // whose certificates count; one vote must suffice
	Signer   *identity.Signer    // a member of Orderers
	// Schedule, if set, has the configurations of the chain up to Tip and takes the
	// place of ConfigID and Orderers: the service follows configuration transactions.
	Schedule *block.Schedule

	// Tip is the last block of the store; the genesis at first.
	Tip *block.Block
	// Persist appends blocks, which follow each other and the tip, to the store
	// and returns when they are durable. An error ends the service.
	Persist func([]*block.Block) error
	// Source returns a durable block, the genesis included.
	Source func(block.Height) (*block.Block, error)

	// Dir is the directory of log, vote and snapshots; made if it is missing.
	// An orderer that has lost it has to join anew under another key, for it
	// might vote twice.
	Dir string
	// Bootstrap are the orderers that a new network begins with, this one
	// included, the same list for each of them. It is ignored once Dir has a
	// state. An orderer that is to join later has none: AddOrderer at the leader
	// admits it.
	Bootstrap []Peer
	// Address is what other orderers dial to reach this one; that of Listener if
	// empty.
	Address string
	// Listener accepts the connections of other orderers. It is closed with
	// the orderer, or by a Start that fails.
	Listener net.Listener
	// Dial connects to an address; plain TCP if nil.
	Dial func(ctx context.Context, address string) (net.Conn, error)

	Cutter cutter.Config
	// IgnoreDone counts a block as done when this orderer has stored it: for an
	// orderer that no node tells how far it has come.
	IgnoreDone bool
	Queue      int // transactions submitted here and not in a block; DefaultQueue if 0
	Pipeline   int // entries under way to agreement; DefaultPipeline if 0
	// Remember is for how many heights a transaction is remembered, so that it
	// is not ordered again: the validity window of the network. It must be the
	// same at all orderers.
	Remember uint64

	ElectionTimeout time.Duration // DefaultElectionTimeout if 0
	// CommitInterval is how often an idle leader tells its followers what is
	// committed: the latency at followers. A hundredth of the election timeout if 0.
	CommitInterval time.Duration
	// SnapshotEntries is after how many entries of the log a snapshot is taken;
	// TrailingEntries of them stay for followers that lag behind.
	SnapshotEntries, TrailingEntries uint64
	// SnapshotCheck is how often the log is looked at for that; 10 s if 0.
	SnapshotCheck time.Duration
	FlushTimeout  time.Duration // DefaultFlushTimeout if 0

	// Clock returns the time that blocks propose, Unix microseconds; the system
	// clock if nil. It may stand still or run backwards.
	Clock func() int64
	// OnCut, if set, is told about every entry that this leader cut: for metrics.
	OnCut func(cutter.Batch)
	// Logger receives what people should know; slog.Default if nil.
	Logger *slog.Logger
}

// EnsureDefaults fills in what is not set.
func (o *Options) EnsureDefaults() {
	setDefault(&o.Queue, DefaultQueue)
	setDefault(&o.Pipeline, DefaultPipeline)
	setDefault(&o.ElectionTimeout, DefaultElectionTimeout)
	setDefault(&o.CommitInterval, max(o.ElectionTimeout/100, time.Millisecond))
	setDefault(&o.SnapshotEntries, DefaultSnapshotEntries)
	setDefault(&o.TrailingEntries, DefaultTrailingEntries)
	setDefault(&o.SnapshotCheck, 10*time.Second)
	setDefault(&o.FlushTimeout, DefaultFlushTimeout)
	if o.Dial == nil {
		o.Dial = func(ctx context.Context, address string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", address)
		}
	}
	if o.Address == "" && o.Listener != nil {
		o.Address = o.Listener.Addr().String()
	}
	if o.Clock == nil {
		o.Clock = func() int64 { return time.Now().UnixMicro() }
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Validate reports why an orderer cannot work like this.
func (o *Options) Validate() error {
	switch {
	case o.Signer == nil || o.Tip == nil || o.Persist == nil || o.Source == nil:
		return errors.New("raft: signer, tip, Persist and Source are needed")
	case o.Dir == "" || o.Listener == nil:
		return errors.New("raft: a directory and a listener are needed")
	case o.Queue < 1 || o.Queue > maxQueue:
		return fmt.Errorf("raft: queue of %d transactions, not from 1 to %d", o.Queue, maxQueue)
	case o.Pipeline < 1 || o.Pipeline > maxPipeline:
		return fmt.Errorf("raft: pipeline of %d entries, not from 1 to %d", o.Pipeline, maxPipeline)
	case o.ElectionTimeout < minElectionTimeout:
		return fmt.Errorf("raft: election timeout of %v is less than %v", o.ElectionTimeout, minElectionTimeout)
	case o.CommitInterval < time.Millisecond || o.CommitInterval > o.ElectionTimeout/2:
		return fmt.Errorf("raft: commit interval of %v is not from 1 ms to half the election timeout", o.CommitInterval)
	case o.SnapshotCheck < 5*time.Millisecond || o.FlushTimeout < 0:
		return errors.New("raft: an interval is too short")
	}
	if err := o.Orderers.Validate(); err != nil {
		return err
	}
	if o.Orderers.Quorum != 1 {
		return fmt.Errorf("raft: certificates of %d votes, an orderer certifies alone", o.Orderers.Quorum)
	}
	if o.Orderers.Index(o.Signer.Public()) < 0 {
		return fmt.Errorf("raft: key %s is not among the orderers", o.Signer.Public())
	}
	if err := o.validateBootstrap(); err != nil {
		return err
	}
	return o.Cutter.Validate()
}

func (o *Options) validateBootstrap() error {
	seen := make(map[identity.PublicKey]bool, len(o.Bootstrap))
	for _, p := range o.Bootstrap {
		if p.Address == "" || seen[p.Key] {
			return fmt.Errorf("raft: orderer %s has no address or stands twice in the bootstrap list", p.Key)
		}
		seen[p.Key] = true
	}
	if len(seen) > 0 && !seen[o.Signer.Public()] {
		return errors.New("raft: the bootstrap list lacks this orderer")
	}
	return nil
}

// configuration follows the network's, or is the one of the options.
func (o *Options) configuration() *ordering.Configuration {
	if o.Schedule != nil {
		return ordering.FollowConfiguration(o.Network, o.Schedule, o.Signer.Public())
	}
	return ordering.FixedConfiguration(o.Network, o.ConfigID, o.Orderers, o.Signer.Public())
}
