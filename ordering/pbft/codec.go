package pbft

import (
	"encoding/binary"
	"slices"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/identity"
	"github.com/tallystick/tallystick/ordering"
)

func head(dst []byte, kind byte, epoch uint64) []byte {
	return ordering.AppendUint64(append(dst, kind), epoch)
}

func appendValue(dst []byte, v identity.Commit) []byte {
	dst = ordering.AppendUint64(dst, v.Sequence)
	dst = append(dst, v.Batch[:]...)
	return ordering.AppendUint64(dst, uint64(v.Proposed))
}

func decodeValue(d *ordering.Decoder) identity.Commit {
	v := identity.Commit{Sequence: d.Height(), Batch: d.Hash(), Proposed: d.Time()}
	if v.Sequence == 0 {
		d.Fail("sequence 0")
	}
	return v
}

// minPreparedBytes is a certificate without votes.
const minPreparedBytes = 8 + 8 + 32 + 8 + 4

// AppendTo implements ordering.Message.
func (m *PrePrepare) AppendTo(dst []byte) []byte {
	dst = head(dst, kindPrePrepare, m.Epoch)
	dst = ordering.AppendUint64(dst, m.View)
	dst = appendValue(dst, m.Value)
	dst = append(dst, m.Signature[:]...)
	return ordering.AppendTxs(dst, m.Txs)
}

// AppendTo implements ordering.Message.
func (m *Vote) AppendTo(dst []byte) []byte {
	dst = head(dst, byte(m.Phase), m.Epoch)
	dst = ordering.AppendUint64(dst, m.View)
	dst = appendValue(dst, m.Value)
	return append(dst, m.Signature[:]...)
}

// AppendTo implements ordering.Message.
func (m *Checkpoint) AppendTo(dst []byte) []byte {
	dst = head(dst, kindCheckpoint, m.Epoch)
	dst = ordering.AppendUint64(dst, m.Sequence)
	dst = append(dst, m.Hash[:]...)
	return append(dst, m.Signature[:]...)
}

// size is the length of the encoding.
func (m *ViewChange) size() int {
	const vote = 2 + len(identity.Signature{})
	n := 9 + 2 + 8 + 8 + 32 + 4 + len(m.Proof)*vote + 4 + len(m.Signature)
	for i := range m.Prepared {
		n += minPreparedBytes + len(m.Prepared[i].Votes)*vote
	}
	return n
}

// appendSigned appends all but the signature.
func (m *ViewChange) appendSigned(dst []byte) []byte {
	dst = slices.Grow(dst, m.size())
	dst = head(dst, kindViewChange, m.Epoch)
	dst = binary.BigEndian.AppendUint16(dst, m.Member)
	dst = ordering.AppendUint64(dst, m.View)
	dst = ordering.AppendUint64(dst, m.Stable)
	dst = append(dst, m.StableHash[:]...)
	dst = ordering.AppendVotes(dst, m.Proof)
	dst = ordering.AppendCount(dst, len(m.Prepared))
	for i := range m.Prepared {
		p := &m.Prepared[i]
		dst = ordering.AppendUint64(dst, p.View)
		dst = appendValue(dst, p.Value)
		dst = ordering.AppendVotes(dst, p.Votes)
	}
	return dst
}

// AppendTo implements ordering.Message.
func (m *ViewChange) AppendTo(dst []byte) []byte {
	return append(m.appendSigned(dst), m.Signature[:]...)
}

// appendSigned appends all but the signature.
func (m *NewView) appendSigned(dst []byte) []byte {
	dst = head(dst, kindNewView, m.Epoch)
	dst = ordering.AppendUint64(dst, m.View)
	dst = ordering.AppendCount(dst, len(m.Changes))
	for _, vc := range m.Changes {
		dst = vc.AppendTo(ordering.AppendCount(dst, vc.size()))
	}
	return dst
}

// AppendTo implements ordering.Message.
func (m *NewView) AppendTo(dst []byte) []byte {
	return append(m.appendSigned(dst), m.Signature[:]...)
}

// AppendTo implements ordering.Message.
func (m *Report) AppendTo(dst []byte) []byte {
	dst = head(dst, kindReport, m.Epoch)
	dst = ordering.AppendUint64(dst, m.View)
	dst = ordering.AppendBool(dst, m.Changing)
	dst = ordering.AppendUint64(dst, m.Height)
	dst = ordering.AppendUint64(dst, m.Durable)
	dst = ordering.AppendUint64(dst, m.Stable)
	dst = ordering.AppendUint64(dst, m.Vote.Sequence)
	dst = append(dst, m.Vote.Hash[:]...)
	return append(dst, m.Vote.Signature[:]...)
}

// AppendTo implements ordering.Message.
func (m *Forward) AppendTo(dst []byte) []byte {
	return ordering.AppendTxs(head(dst, kindForward, m.Epoch), m.Txs)
}

// AppendTo implements ordering.Message.
func (m *Fetch) AppendTo(dst []byte) []byte {
	dst = head(dst, kindFetch, m.Epoch)
	dst = ordering.AppendUint64(dst, m.From)
	return ordering.AppendUint64(dst, m.Upto)
}

// AppendTo implements ordering.Message.
func (m *Decided) AppendTo(dst []byte) []byte {
	dst = head(dst, kindDecided, m.Epoch)
	dst = ordering.AppendUint64(dst, m.View)
	dst = appendValue(dst, m.Value)
	dst = ordering.AppendVotes(dst, m.Votes)
	return ordering.AppendTxs(dst, m.Txs)
}

// AppendTo implements ordering.Message.
func (m *FetchBatch) AppendTo(dst []byte) []byte {
	dst = head(dst, kindFetchBatch, m.Epoch)
	dst = ordering.AppendUint64(dst, m.Sequence)
	return append(dst, m.Digest[:]...)
}

// AppendTo implements ordering.Message.
func (m *Batch) AppendTo(dst []byte) []byte {
	dst = head(dst, kindBatch, m.Epoch)
	dst = ordering.AppendUint64(dst, m.Sequence)
	dst = append(dst, m.Digest[:]...)
	return ordering.AppendTxs(dst, m.Txs)
}

// AppendTo implements ordering.Message.
func (m *Stable) AppendTo(dst []byte) []byte {
	dst = head(dst, kindStable, m.Epoch)
	dst = ordering.AppendUint64(dst, m.Sequence)
	dst = append(dst, m.Hash[:]...)
	return ordering.AppendVotes(dst, m.Votes)
}

// Decode reads the canonical bytes of a message and refuses every other form.
// The message shares memory with raw.
func Decode(raw []byte) (ordering.Message, error) {
	d := ordering.NewDecoder(raw)
	kind := d.Byte()
	epoch := d.Uint64()
	var m ordering.Message
	switch kind {
	case kindPrePrepare:
		m = &PrePrepare{Epoch: epoch, View: d.Uint64(), Value: decodeValue(d), Signature: d.Signature(), Txs: d.Txs()}
	case kindPrepare, kindCommit:
		m = &Vote{Epoch: epoch, Phase: Phase(kind), View: d.Uint64(), Value: decodeValue(d), Signature: d.Signature()}
	case kindCheckpoint:
		m = &Checkpoint{Epoch: epoch, Sequence: d.Height(), Hash: d.Hash(), Signature: d.Signature()}
	case kindViewChange:
		m = decodeViewChange(d, epoch)
	case kindNewView:
		m = decodeNewView(d, epoch)
	case kindReport:
		m = decodeReport(d, epoch)
	case kindForward:
		m = &Forward{Epoch: epoch, Txs: d.Txs()}
	case kindFetch:
		m = &Fetch{Epoch: epoch, From: d.Height(), Upto: d.Height()}
	case kindDecided:
		m = &Decided{Epoch: epoch, View: d.Uint64(), Value: decodeValue(d), Votes: d.Votes(), Txs: d.Txs()}
	case kindFetchBatch:
		m = &FetchBatch{Epoch: epoch, Sequence: d.Height(), Digest: d.Hash()}
	case kindBatch:
		m = &Batch{Epoch: epoch, Sequence: d.Height(), Digest: d.Hash(), Txs: d.Txs()}
	case kindStable:
		m = &Stable{Epoch: epoch, Sequence: d.Height(), Hash: d.Hash(), Votes: d.Votes()}
	default:
		d.Fail("kind %d", kind)
	}
	if err := d.End(); err != nil {
		return nil, err
	}
	return m, nil
}

func decodeReport(d *ordering.Decoder, epoch uint64) *Report {
	m := &Report{Epoch: epoch, View: d.Uint64(), Changing: d.Bool(), Height: d.Height(), Durable: d.Height(), Stable: d.Height()}
	m.Vote = Checkpoint{Epoch: epoch, Sequence: d.Height(), Hash: d.Hash(), Signature: d.Signature()}
	if m.Vote.Sequence == 0 && (m.Vote.Hash != block.Hash{} || m.Vote.Signature != identity.Signature{}) {
		d.Fail("a vote for checkpoint 0")
	}
	return m
}

func decodeViewChange(d *ordering.Decoder, epoch uint64) *ViewChange {
	m := &ViewChange{Epoch: epoch, Member: d.Member(), View: d.Uint64(), Stable: d.Height(), StableHash: d.Hash(), Proof: d.Votes()}
	if n := d.Count(ordering.MaxWindow, minPreparedBytes); n > 0 {
		m.Prepared = make([]Prepared, n)
	}
	for i := range m.Prepared {
		m.Prepared[i] = Prepared{View: d.Uint64(), Value: decodeValue(d), Votes: d.Votes()}
	}
	m.Signature = d.Signature()
	return m
}

func decodeNewView(d *ordering.Decoder, epoch uint64) *NewView {
	m := &NewView{Epoch: epoch, View: d.Uint64()}
	if n := d.Count(identity.MaxOrderers, 4+9); n > 0 {
		m.Changes = make([]*ViewChange, n)
	}
	for i := range m.Changes {
		inner, err := Decode(d.Bytes(ordering.MaxMessageBytes))
		vc, ok := inner.(*ViewChange)
		if err != nil || !ok {
			d.Fail("no view change inside")
			return m
		}
		m.Changes[i] = vc
	}
	m.Signature = d.Signature()
	return m
}

// PrepareDigest is what a prepare vote signs.
func PrepareDigest(network block.Hash, view uint64, v identity.Commit) [32]byte {
	var b [8 + 8 + 32 + 8]byte
	raw := appendValue(ordering.AppendUint64(b[:0], view), v)
	return identity.Digest(identity.DomainConsensus, tagPrepare, network[:], raw)
}

// CheckpointDigest is what a checkpoint vote signs.
func CheckpointDigest(network block.Hash, sequence uint64, hash block.Hash) [32]byte {
	var b [8]byte
	return identity.Digest(identity.DomainConsensus, tagCheckpoint, network[:], ordering.AppendUint64(b[:0], sequence), hash[:])
}

// Digest is what the member signs.
func (m *ViewChange) Digest(network block.Hash) [32]byte {
	return identity.Digest(identity.DomainConsensus, tagViewChange, network[:], m.appendSigned(nil))
}

// Digest is what the primary signs.
func (m *NewView) Digest(network block.Hash) [32]byte {
	return identity.Digest(identity.DomainConsensus, tagNewView, network[:], m.appendSigned(nil))
}

// The tags keep a signature of one purpose from passing for another.
var (
	tagPrepare    = []byte("pbft/prepare")
	tagCheckpoint = []byte("pbft/checkpoint")
	tagViewChange = []byte("pbft/view-change")
	tagNewView    = []byte("pbft/new-view")
)
