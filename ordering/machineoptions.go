package ordering

import (
	"errors"
	"fmt"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/identity"
)

// MachineOptions is what a machine is made with. What is marked as common must
// be the same at all members; the rest may differ.
type MachineOptions struct {
	Network block.Hash // common
	Members Membership // common: those of the sequence after Start.Tip
	Self    int        // position of this orderer in Members.Set
	// Sign signs a digest with the key of Members.Set.Keys[Self]. It must be
	// deterministic, as Ed25519 is: the machine calls it where it votes.
	Sign func(digest [32]byte) identity.Signature
	// Seed spreads choices, such as whom to ask first, over the members.
	Seed uint64

	Window     uint64 // common: sequences in flight at most; a multiple of Checkpoint, two or more
	Checkpoint uint64 // common: sequences between checkpoints
	MaxLife    uint64 // common: ValidUntil is at most this many sequences ahead (L)
	MaxSkew    int64  // microseconds that a proposed time may differ from the local clock

	BatchTxs   int    // transactions of a batch
	BatchBytes int    // bytes of its transactions; a larger one is alone in its batch
	BatchTicks uint64 // ticks that a transaction waits for others at most
	Pipeline   int    // batches in flight before batches are filled
	// MaxInFlight is how many batches a primary proposes at most before the first of
	// them is decided; 0 for as many as the window holds, 1 for one after the
	// other.
	MaxInFlight int

	// Transactions that wait to be ordered, at most: on behalf of this
	// orderer's clients, and of each other member's. Fewer of this orderer's
	// clients may wait while more would take too long to be ordered.
	MaxWaiting      int
	MaxWaitingBytes int

	RequestTicks uint64 // until a transaction that is not ordered costs the primary its place
	StatusTicks  uint64 // between reports of one's position, which make others send what is missing
	FetchTicks   uint64 // between requests to members for what one lacks
}

// EnsureDefaults sets what is zero. The defaults suit ticks of 10 ms.
func (o *MachineOptions) EnsureDefaults() {
	set := func(field *uint64, value uint64) {
		if *field == 0 {
			*field = value
		}
	}
	setInt := func(field *int, value int) {
		if *field == 0 {
			*field = value
		}
	}
	set(&o.Checkpoint, 32)
	set(&o.Window, 4*o.Checkpoint)
	set(&o.MaxLife, 1024)
	if o.MaxSkew == 0 {
		o.MaxSkew = 60 * 1e6
	}
	setInt(&o.BatchTxs, 500)
	setInt(&o.BatchBytes, 4<<20)
	set(&o.BatchTicks, 10)
	setInt(&o.Pipeline, 1)
	setInt(&o.MaxWaiting, 100_000)
	setInt(&o.MaxWaitingBytes, 128<<20)
	set(&o.RequestTicks, 200)
	set(&o.StatusTicks, 20)
	set(&o.FetchTicks, 20)
}

// MaxWindow is the largest window.
const MaxWindow = 1 << 12

// Validate reports why a machine cannot work like this.
func (o *MachineOptions) Validate() error {
	if err := o.Members.Validate(); err != nil {
		return err
	}
	switch {
	case o.Self < 0 || o.Self >= o.Members.N():
		return fmt.Errorf("ordering: orderer %d of %d", o.Self, o.Members.N())
	case o.Sign == nil:
		return errors.New("ordering: a machine without a signer")
	case o.Checkpoint < 1 || o.Window > MaxWindow || o.Window < 2*o.Checkpoint || o.Window%o.Checkpoint != 0:
		return fmt.Errorf("ordering: a window of %d is no multiple of twice the checkpoint interval %d within %d", o.Window, o.Checkpoint, MaxWindow)
	case o.MaxLife < 1 || o.MaxLife > 1<<20:
		return fmt.Errorf("ordering: transactions live %d blocks, not 1 to %d", o.MaxLife, 1<<20)
	case o.MaxSkew < 1:
		return errors.New("ordering: clocks that never differ do not exist")
	case o.BatchTxs < 1 || o.BatchTxs > block.MaxTxsPerBlock:
		return fmt.Errorf("ordering: batches of %d transactions, not 1 to %d", o.BatchTxs, block.MaxTxsPerBlock)
	case o.BatchBytes < 1 || o.BatchBytes > MaxBatchBytes:
		return fmt.Errorf("ordering: batches of %d bytes, not 1 to %d", o.BatchBytes, MaxBatchBytes)
	case o.MaxInFlight < 0:
		return fmt.Errorf("ordering: %d batches in flight", o.MaxInFlight)
	case o.Pipeline < 0 || uint64(o.Pipeline) > o.Window:
		return fmt.Errorf("ordering: a pipeline of %d batches in a window of %d", o.Pipeline, o.Window)
	case o.MaxWaitingBytes < o.BatchBytes:
		return fmt.Errorf("ordering: %d waiting bytes fill no batch of %d", o.MaxWaitingBytes, o.BatchBytes)
	case o.MaxWaiting < o.BatchTxs:
		return fmt.Errorf("ordering: %d waiting transactions fill no batch of %d", o.MaxWaiting, o.BatchTxs)
	case o.RequestTicks < 2 || o.StatusTicks < 1 || o.FetchTicks < 1:
		return errors.New("ordering: a timeout is too short")
	}
	return nil
}
