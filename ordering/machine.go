package ordering

import (
	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// Machine is one orderer of a byzantine protocol as a pure state machine: it has
// no clock, network, disk, goroutine or chance of its own, and what comes out is
// a function of what went in. Its driver owns all of these.
//
// The driver calls, in any order and from one goroutine at a time, Tick, Submit
// and Step as things happen; then Ready, whose parts it carries out in the order
// in which they are listed there; and Advance when blocks became durable. Inputs
// may go on while the outputs of a Ready are being carried out, as long as
// Readies are carried out one after another.
type Machine interface {
	// Tick tells that a unit of time has passed, and what the local clock reads:
	// Unix microseconds, which may jump. All timeouts are counted in ticks; the
	// clock only gives timestamps to batches and bounds those of others.
	Tick(now int64)

	// Submit takes transactions from clients of this orderer, decoded or signed,
	// wherever the protocol wants them to go. It returns how many of them, from
	// the first on, were taken; the others found no room, and the driver keeps
	// them ([Busy] for whoever cannot wait). One that waits already, was ordered or
	// can no longer be ordered is taken and has no effect.
	Submit(txs []*block.Tx) int

	// Step takes a message of another member, checked against the membership that
	// the machine has now, or an earlier one: members that are left behind in an
	// earlier epoch get what they lack. A message that comes too late or too
	// early has no effect.
	Step(m Verified)

	// Ready returns what is to be done since the last call, and forgets it.
	Ready() Ready

	// Advance tells that all blocks up to height are durable. Only then do they
	// count in checkpoints, and only then does the window move.
	Advance(height block.Height)

	// Reconfigure tells that a block brought a configuration for the sequences
	// from next.First on. The driver calls it after it took that block from
	// Ready and before it calls Advance for it, for the same block at
	// every orderer; next.First is past the window that begins with that block. A
	// machine that is no longer a member stops at the last block before. After a
	// restart the driver calls it again for what is still to come.
	Reconfigure(next Membership) error

	// Status describes the machine, for people, metrics and back pressure.
	Status() MachineStatus
}

// Protocol is how a driver makes and feeds the machines of one protocol.
type Protocol struct {
	Name string // block.OrdererPBFT, ...

	// New makes a machine whose last durable block is start.Tip, with the records
	// that earlier ones persisted and did not forget, in the order of their
	// keys. A machine without a past gets none.
	New func(opts MachineOptions, start Start, records []Record) (Machine, error)

	// Decode reads the canonical bytes of a message and refuses every other form.
	// The message may share memory with raw.
	Decode func(raw []byte) (Message, error)

	// Serve makes the message that brings a durable block, with its certificate,
	// to a member that asked for it ([Ready].Serve). Nil means that the block's
	// certificate is none of this protocol. The message is for a member of the
	// given epoch.
	Serve func(b *block.Block, epoch uint64) Message
}

// Ready is what a machine wants done. Persist comes first and must be synced
// before anything else of the same Ready leaves the process: a vote that a
// crash can make its signer forget is a vote that it may contradict.
type Ready struct {
	// Epoch is the number of the configuration whose members Send names.
	Epoch uint64
	// Persist are records to store, in this order, each in place of an
	// earlier one with its key.
	Persist []Record
	// Forget allows to delete records of the sequences 1 to Forget.
	Forget uint64
	// Decided are the next blocks, in order and without gaps.
	Decided []Decision
	// Send are messages to other members. Any of them may be lost.
	Send []Outgoing
	// Serve are durable blocks that members asked for. The driver reads what it
	// has, as much as it wants to spend, and sends a message of
	// [Protocol].Serve for each.
	Serve []Range
	// Fault is why the machine has stopped: its own history contradicts what a
	// quorum has signed, or a driver broke the rules. Nothing else is set any
	// more. The process must not go on.
	Fault error
}

// Empty reports whether there is nothing to do.
func (r *Ready) Empty() bool {
	return len(r.Persist) == 0 && r.Forget == 0 && len(r.Decided) == 0 && len(r.Send) == 0 &&
		len(r.Serve) == 0 && r.Fault == nil
}

// Decision is a block that was agreed on: sealed, with its certificate.
type Decision struct {
	Block *block.Block
	// Repeats are the indexes in Block.Txs of transactions that an earlier block,
	// or the same one, contains already. They are part of the block and have no
	// effect: every orderer names the same ones, and the chain rejects them.
	Repeats []int
}

// RecordKey names a record. Records are ordered by sequence, then kind, then view.
type RecordKey struct {
	Sequence uint64 // 0 for what belongs to no sequence and is never forgotten
	Kind     uint8
	View     uint64
}

// Record is what a machine wants to find again after a crash.
type Record struct {
	Key   RecordKey
	Value []byte
}

// Before orders record keys.
func (k RecordKey) Before(o RecordKey) bool {
	if k.Sequence != o.Sequence {
		return k.Sequence < o.Sequence
	}
	if k.Kind != o.Kind {
		return k.Kind < o.Kind
	}
	return k.View < o.View
}

// ToAll is the destination of a message for every member but the sender.
const ToAll = -1

// Outgoing is a message with its destination: a member or [ToAll].
type Outgoing struct {
	To      int
	Message Message
}

// Range is the blocks From to Upto, both included, that a member lacks. The
// member is one of the named epoch, which may be behind the machine's own; it can
// verify blocks of that epoch only, and the driver sends it no others.
type Range struct {
	Epoch      uint64
	To         int
	From, Upto uint64
}

// Start is the durable past of a machine.
type Start struct {
	Tip *block.Block // last durable block; the genesis at first
	// Recent are the blocks up to Tip that may hold transactions which could be
	// ordered again: the last MachineOptions.MaxLife ones, or as many as there
	// are, in order. They rebuild what the machine knows about repeats.
	Recent []*block.Block
}

// MachineStatus is what a machine tells about itself.
type MachineStatus struct {
	Epoch    uint64
	View     uint64
	Changing bool   // a view change is under way
	Primary  int    // member that leads the view
	Height   uint64 // last block decided in order
	Durable  uint64 // last block that [Machine].Advance confirmed
	Stable   uint64 // last stable checkpoint
	Waiting  int    // transactions that wait to be ordered
	InFlight int    // sequences proposed and not decided in order
	Room     int    // transactions that Submit takes at this moment
}

// CheckLife refuses a transaction that cannot be in block next or that asks to
// be remembered for too long.
func CheckLife(tx *block.Tx, next, maxLife uint64) error {
	if tx.ValidUntil > next+maxLife {
		return pgerr.New(pgerr.InvalidTransactionState, "transaction is valid for too long").
			WithDetail("It is valid until block %d, the next block is %d, and the limit is %d blocks ahead.", tx.ValidUntil, next, maxLife)
	}
	return nil
}
