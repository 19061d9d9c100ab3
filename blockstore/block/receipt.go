package block

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/tallystick/tallystick/identity"
)

// Receipt proves, to somebody who trusts no node, that a transaction was ordered
// and what became of it:
//
//	transaction -> TxHashes -> Header -> Certificate                  order
//	Outcome -> Path -> Step -> state hash of its block
//	        -> Steps -> state hash of the checkpoint -> its votes     outcome
//
// As long as there is no checkpoint at or above its block, Checkpoint is nil: the
// order is proved, and the outcome is what one node says.
type Receipt struct {
	Tx          []byte // canonical bytes of the transaction
	Header      Header // of its block
	Certificate []byte // of the orderers over the block's hash
	Position    uint32 // in the block, from 1
	TxHashes    []Hash // SHA-256 of the bytes of all its transactions

	Outcome  Outcome
	Path     []Hash    // from the outcome up to Step.Outcomes
	Previous Hash      // state hash of the block before
	Step     StateStep // of the block; Outcomes follows from Path and is not encoded

	Steps      []StateStep // of the blocks after it, up to the checkpoint
	Checkpoint *Checkpoint // nil = there is none yet
}

// Finality says what a receipt proves.
type Finality uint8

const (
	// Ordered: the place in the chain is certain. The outcome follows from it, but
	// that it is this one is so far what a node says.
	Ordered Finality = 1
	// Final: nodes of a majority of the organizations signed a state that contains
	// the outcome.
	Final Finality = 2
)

// String returns what tools show.
func (f Finality) String() string {
	switch f {
	case Ordered:
		return "ordered"
	case Final:
		return "final"
	}
	return fmt.Sprintf("block.Finality(%d)", uint8(f))
}

// Verify tells what the receipt proves to whoever trusts the anchor. An error
// says what does not hold; then it proves nothing.
func (r *Receipt) Verify(a *Anchor) (Finality, error) {
	if err := r.verifyOrder(a); err != nil {
		return 0, err
	}
	state, err := r.State()
	if err != nil || r.Checkpoint == nil {
		return Ordered, err
	}
	c := r.Checkpoint
	if c.Height != r.Header.Number+uint64(len(r.Steps)) || c.State != state {
		return 0, fmt.Errorf("block: receipt leads to state %s of block %d, the checkpoint is of state %s of block %d",
			state, r.Header.Number+uint64(len(r.Steps)), c.State, c.Height)
	}
	if err := a.VerifyCheckpoint(c); err != nil {
		return 0, err
	}
	return Final, nil
}

// verifyOrder checks that the transaction stands at its position of a block that
// the orderers certified.
func (r *Receipt) verifyOrder(a *Anchor) error {
	tx, err := DecodeTx(r.Tx)
	if err != nil {
		return err
	}
	if tx.ID() != r.Outcome.ID || tx.Network != a.Network {
		return errors.New("block: the outcome is of another transaction, or of another network")
	}
	if r.Position == 0 || uint64(r.Position) > uint64(len(r.TxHashes)) || r.TxHashes[r.Position-1] != sha256.Sum256(r.Tx) {
		return fmt.Errorf("block: the transaction does not stand at position %d of block %d", r.Position, r.Header.Number)
	}
	if digest := digestOfHashes(r.TxHashes); digest != r.Header.TxDigest {
		return fmt.Errorf("block: transactions of block %d do not fit its header", r.Header.Number)
	}
	return r.Header.VerifyCertificate(r.Certificate, &a.Orderers, a.Network, -1)
}

// State is the state hash that the receipt leads to: that of its block, or of its
// last step.
func (r *Receipt) State() (Hash, error) {
	step := r.Step
	var ok bool
	if len(r.Path) <= MaxPath && r.Position > 0 {
		step.Outcomes, ok = climb(r.Outcome.Leaf(), int(r.Position)-1, len(r.TxHashes), r.Path)
	}
	if !ok {
		return Hash{}, errors.New("block: the path of the receipt does not fit its position")
	}
	height := r.Header.Number
	state := step.Next(r.Previous, height)
	for i := range r.Steps {
		height++
		state = r.Steps[i].Next(state, height)
	}
	return state, nil
}

func digestOfHashes(hashes []Hash) Hash {
	b := make([]byte, 0, len(hashes)*len(Hash{}))
	for i := range hashes {
		b = append(b, hashes[i][:]...)
	}
	return identity.Digest(identity.DomainTxSequence, b)
}

const (
	receiptVersion = 1
	maxSteps       = 1 << 20 // the largest distance between checkpoints
)

// Encode returns the canonical bytes:
//
//	version | transaction | number | timestamp 8 | previous hash 32 |
//	configuration id 32 | certificate | position | count | hash 32 * |
//	status 1 | SQLSTATE | (0 for no result, else length + 1 and the bytes) |
//	path length | hash 32 * | previous state 32 | writes 32 | tables 32 |
//	number of steps | (writes 32 | outcomes 32 | tables 32) * |
//	(0 | 1 and the checkpoint)
func (r *Receipt) Encode() []byte {
	b := appendString([]byte{receiptVersion}, r.Tx)
	b = binary.AppendUvarint(b, r.Header.Number)
	b = appendInt64(b, r.Header.Timestamp)
	b = append(append(b, r.Header.PrevHash[:]...), r.Header.ConfigID[:]...)
	b = appendString(b, r.Certificate)
	b = binary.AppendUvarint(b, uint64(r.Position))
	b = appendHashes(b, r.TxHashes)
	b = appendString(append(b, byte(r.Outcome.Status)), r.Outcome.SQLState)
	if r.Outcome.Result == nil {
		b = append(b, 0)
	} else {
		b = binary.AppendUvarint(b, uint64(len(r.Outcome.Result))+1)
		b = append(b, r.Outcome.Result...)
	}
	b = appendHashes(b, r.Path)
	b = append(append(append(b, r.Previous[:]...), r.Step.Writes[:]...), r.Step.Tables[:]...)
	b = binary.AppendUvarint(b, uint64(len(r.Steps)))
	for i := range r.Steps {
		b = r.Steps[i].append(b)
	}
	if r.Checkpoint == nil {
		return append(b, 0)
	}
	return r.Checkpoint.append(append(b, 1))
}

func appendHashes(b []byte, list []Hash) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for i := range list {
		b = append(b, list[i][:]...)
	}
	return b
}

func (s *StateStep) append(b []byte) []byte {
	return append(append(append(b, s.Writes[:]...), s.Outcomes[:]...), s.Tables[:]...)
}

// DecodeReceipt reads canonical bytes and refuses every other form. The receipt
// keeps b. It is not verified.
func DecodeReceipt(b []byte) (*Receipt, error) {
	r := reader{buf: b}
	x := &Receipt{}
	r.version(receiptVersion, "receipt")
	x.Tx = r.bytes(MaxTxBytes, "transaction")
	x.Header.Number = r.uvarint(MaxHeight, "block number")
	x.Header.Timestamp = r.time("timestamp")
	copy(x.Header.PrevHash[:], r.take(32, "previous hash"))
	copy(x.Header.ConfigID[:], r.take(32, "configuration id"))
	x.Certificate = r.bytes(MaxCertificateBytes, "certificate")
	x.Position = uint32(r.uvarint(MaxTxsPerBlock, "position"))
	x.TxHashes = r.hashes(MaxTxsPerBlock, "hashes of transactions")
	x.Outcome.Status = Status(r.byte("status"))
	x.Outcome.SQLState = string(r.bytes(5, "SQLSTATE"))
	if n := r.uvarint(maxResultBytes, "length of the result"); n > 0 {
		x.Outcome.Result = r.take(int(n-1), "result")
	}
	x.Path = r.hashes(MaxPath, "path")
	copy(x.Previous[:], r.take(32, "previous state"))
	copy(x.Step.Writes[:], r.take(32, "write set"))
	copy(x.Step.Tables[:], r.take(32, "tables"))
	for range r.uvarint(maxSteps, "number of steps") {
		if r.err != nil {
			break
		}
		x.Steps = append(x.Steps, r.step())
	}
	switch r.byte("checkpoint") {
	case 0:
	case 1:
		x.Checkpoint = &Checkpoint{}
		x.Checkpoint.decode(&r)
	default:
		r.fail("checkpoint is neither there nor not")
	}
	if err := r.end(); err != nil {
		return nil, err
	}
	tx, err := DecodeTx(x.Tx)
	if err != nil {
		return nil, err
	}
	x.Outcome.ID, x.Header.TxDigest = tx.ID(), digestOfHashes(x.TxHashes)
	return x, nil
}

// maxResultBytes bounds a result in a receipt: contracts are bounded by what a
// block may write.
const maxResultBytes = 1 << 30

func (r *reader) hashes(limit uint64, what string) []Hash {
	n := r.uvarint(limit, what)
	if r.err != nil || n == 0 {
		return nil
	}
	b := r.take(int(n)*len(Hash{}), what)
	if b == nil {
		return nil
	}
	list := make([]Hash, n)
	for i := range list {
		list[i] = Hash(b[i*len(Hash{}):])
	}
	return list
}

func (r *reader) step() (s StateStep) {
	copy(s.Writes[:], r.take(32, "write set"))
	copy(s.Outcomes[:], r.take(32, "outcomes"))
	copy(s.Tables[:], r.take(32, "tables"))
	return s
}
