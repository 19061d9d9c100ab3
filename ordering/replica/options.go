package replica

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/identity"
	"github.com/tallystick/tallystick/ordering"
	"github.com/tallystick/tallystick/ordering/cutter"
)

// Defaults of Options.
const (
	DefaultQueue        = 16384                 // transactions that wait here
	DefaultTick         = 10 * time.Millisecond // what MachineOptions are made for
	DefaultPeerQueue    = 1024                  // messages that wait for a peer
	DefaultFlushTimeout = 5 * time.Second
)

// Options say what an orderer orders, with whom, and where it keeps it.
type Options struct {
	Protocol ordering.Protocol
	Signer   *identity.Signer // a member of the configuration after Tip

	// Schedule has the configurations of the blocks up to Tip, not included
	// what comes after. It is not used by the caller any more.
	Schedule *block.Schedule
	// Tip is the last block of the store; the genesis at first.
	Tip *block.Block
	// Persist appends blocks, which follow each other and the tip, to the store
	// and returns when they are durable. An error ends the service.
	Persist func([]*block.Block) error
	// Source returns a durable block, the genesis included.
	Source func(block.Height) (*block.Block, error)

	// Dir is the directory of the records in FS, the disk if FS is nil.
	Dir string
	FS  vfs.FS

	// Listener accepts the connections of other orderers; it is closed with the
	// replica, or by a Start that fails. Nil for an orderer that is alone.
	Listener net.Listener
	// Dial connects to the orderer with this key.
	Dial func(ctx context.Context, peer identity.PublicKey) (net.Conn, error)
	// Identify tells whose connection was accepted, by its proof; an error
	// refuses it. It may take its time until the connection's deadline.
	Identify func(net.Conn) (identity.PublicKey, error)

	// Machine has the options of the machine. Those that follow from the others
	// (network, members, self, window, batches) are set here; those of a batch
	// come from Cutter.
	Machine ordering.MachineOptions
	// Cutter says how large blocks become. Where Done counts, it cuts what this
	// orderer's clients submit; MaxInFlight is then a limit of blocks that were
	// ordered and not done.
	Cutter cutter.Config
	// IgnoreDone is for an orderer that no node tells how far it has come: blocks
	// count as done when they are durable.
	IgnoreDone bool
	// Admit, if set, refuses transactions that must not be proposed; see
	// ordering.Verifier. It is asked for transactions of clients too.
	Admit func([]*block.Tx) error
	// Signatures and Sign, if set, replace the signature scheme between
	// orderers: for experiments.
	Signatures ordering.SignatureCheck
	Sign       func(digest [32]byte) identity.Signature

	Workers Workers
	Queue   int // transactions submitted here that the machine has not taken
	// PeerQueue is the number of messages that wait for a peer before the
	// oldest ones are dropped.
	PeerQueue int
	Tick      time.Duration // unit of the machine's time

	// Clock returns Unix microseconds; the system clock if nil.
	Clock        func() int64
	FlushTimeout time.Duration // how long Close waits for what was accepted
	Logger       *slog.Logger
}

// Workers are the numbers of goroutines of the stages that can have several.
type Workers struct {
	// Batch verify messages: signatures and digests (the batch threads of the
	// paper). 0 is one a processor.
	Batch int
}

// EnsureDefaults fills in what is not set.
func (o *Options) EnsureDefaults() {
	setDefault(&o.Queue, DefaultQueue)
	setDefault(&o.PeerQueue, DefaultPeerQueue)
	setDefault(&o.Tick, DefaultTick)
	setDefault(&o.FlushTimeout, DefaultFlushTimeout)
	setDefault(&o.Workers.Batch, runtime.GOMAXPROCS(0))
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if o.Clock == nil {
		o.Clock = func() int64 { return time.Now().UnixMicro() }
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Signatures == nil {
		o.Signatures = identity.NewBatchVerifier(o.Workers.Batch, 0).VerifyBatch
	}
	if o.Sign == nil && o.Signer != nil {
		o.Sign = func(digest [32]byte) identity.Signature { return o.Signer.Sign(digest[:]) }
	}
	o.machineDefaults()
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// machineDefaults derives the machine's options from the network's.
func (o *Options) machineDefaults() {
	if o.Schedule == nil || o.Tip == nil || o.Signer == nil {
		return // Validate says so
	}
	m := &o.Machine
	at := o.Schedule.At(o.Tip.Number + 1)
	m.Network = at.Config.Network
	m.Members = membership(at)
	m.Self = m.Members.Set.Index(o.Signer.Public())
	m.Sign = o.Sign
	m.Window = at.Config.Ordering.Window
	setDefault(&m.Checkpoint, m.Window/4)
	setDefault(&m.Seed, uint64(m.Self))
	m.BatchTxs, m.BatchBytes = o.Cutter.MaxTxs, o.Cutter.MaxBytes
	ticks := uint64(time.Duration(o.Cutter.Timeout) * time.Microsecond / o.Tick)
	setDefault(&m.BatchTicks, max(1, ticks))
	if !o.IgnoreDone {
		m.BatchTicks = 1 // it was cut when it is handed over
		setDefault(&m.Pipeline, int(m.Window))
	}
	setDefault(&m.Pipeline, max(1, o.Cutter.Pipeline))
	m.EnsureDefaults()
}

// membership is a configuration as machines know it.
func membership(s *block.Scheduled) ordering.Membership {
	return ordering.Membership{
		Epoch: s.Config.Number, First: max(1, s.From), ConfigID: s.ID, Set: s.Config.Orderers,
	}
}

// Validate reports why an orderer cannot work like this.
func (o *Options) Validate() error {
	switch {
	case o.Protocol.New == nil || o.Protocol.Decode == nil || o.Protocol.Serve == nil:
		return errors.New("replica: a protocol is needed")
	case o.Signer == nil || o.Schedule == nil || o.Tip == nil || o.Persist == nil || o.Source == nil:
		return errors.New("replica: signer, schedule, tip, Persist and Source are needed")
	case o.Schedule.Next() != o.Tip.Number+1:
		return fmt.Errorf("replica: the schedule goes on with block %d after a tip of %d", o.Schedule.Next(), o.Tip.Number)
	case o.Dir == "":
		return errors.New("replica: a directory is needed")
	case o.Queue < 1 || o.PeerQueue < 1 || o.Workers.Batch < 1 || o.Tick < time.Millisecond:
		return errors.New("replica: a queue, number of workers or tick is too small")
	case o.Machine.Self < 0:
		return fmt.Errorf("replica: key %s is not among the orderers of block %d", o.Signer.Public(), o.Tip.Number+1)
	case o.Machine.Members.N() > 1 && (o.Listener == nil || o.Dial == nil || o.Identify == nil):
		return errors.New("replica: several orderers need Listener, Dial and Identify")
	}
	if err := o.Machine.Validate(); err != nil {
		return err
	}
	return o.Cutter.Validate()
}
