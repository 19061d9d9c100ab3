package solo

import (
	"errors"
	"fmt"
	"time"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/identity"
	"github.com/tallystick/tallystick/ordering"
	"github.com/tallystick/tallystick/ordering/cutter"
)

// DefaultQueue is the default number of transactions that may wait beside the
// block being filled: some blocks of the default size.
const DefaultQueue = 4096

// Options say what an orderer orders and where it keeps it.
type Options struct {
	Network  block.Hash          // id of the network
	ConfigID block.Hash          // configuration that the blocks name
	Orderers identity.OrdererSet // of that configuration; one vote must suffice
	Signer   *identity.Signer    // a member of Orderers
	// Schedule, if set, has the configurations of the chain up to Tip and takes the
	// place of ConfigID and Orderers: the service follows configuration transactions.
	Schedule *block.Schedule

	// Tip is the last block of the store; the genesis at first.
	Tip *block.Block
	// Persist appends blocks, which follow each other and the tip, to the store
	// and returns when they are durable. An error ends the service.
	Persist func([]*block.Block) error
	// Source returns a durable block.
	Source func(block.Height) (*block.Block, error)

	Cutter cutter.Config
	Queue  int // transactions that may wait for the sequencer; DefaultQueue if 0
	// Remember is for how many heights at most a transaction is remembered, so
	// that it is not ordered again: the validity window of the network. Beyond
	// that the chain rejects it.
	Remember uint64

	// Clock returns the time that blocks propose, Unix microseconds; the system
	// clock if nil. It may stand still or run backwards.
	Clock func() int64
	// OnCut, if set, is told about every block when it was cut: for metrics.
	OnCut func(cutter.Batch)
}

// EnsureDefaults fills in what is not set.
func (o *Options) EnsureDefaults() {
	if o.Queue == 0 {
		o.Queue = DefaultQueue
	}
	if o.Clock == nil {
		o.Clock = func() int64 { return time.Now().UnixMicro() }
	}
}

// Validate reports why an orderer cannot work like this.
func (o *Options) Validate() error {
	switch {
	case o.Signer == nil || o.Tip == nil || o.Persist == nil || o.Source == nil:
		return errors.New("solo: signer, tip, Persist and Source are needed")
	case o.Queue < 1:
		return fmt.Errorf("solo: queue of %d transactions", o.Queue)
	}
	if err := o.Orderers.Validate(); err != nil {
		return err
	}
	if o.Orderers.Quorum != 1 {
		return fmt.Errorf("solo: certificates of %d votes, a single orderer has one", o.Orderers.Quorum)
	}
	if o.Orderers.Index(o.Signer.Public()) < 0 {
		return fmt.Errorf("solo: key %s is not among the orderers", o.Signer.Public())
	}
	return o.Cutter.Validate()
}

// configuration follows the network's, or is the one of the options.
func (o *Options) configuration() *ordering.Configuration {
	if o.Schedule != nil {
		return ordering.FollowConfiguration(o.Network, o.Schedule, o.Signer.Public())
	}
	return ordering.FixedConfiguration(o.Network, o.ConfigID, o.Orderers, o.Signer.Public())
}
