package ordering

import (
	"encoding/binary"
	"fmt"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/identity"
)

// MaxMessageBytes is the longest message between orderers. A new view of many
// members with full windows is the largest.
const MaxMessageBytes = 64 << 20

// EpochOf returns the epoch that the bytes of a message name: every message of
// every protocol begins with its kind, one byte, and its epoch, 8 bytes. A driver
// needs it to choose the verifier.
func EpochOf(raw []byte) (epoch uint64, ok bool) {
	if len(raw) < 9 {
		return 0, false
	}
	return binary.BigEndian.Uint64(raw[1:]), true
}

// Decoder reads the canonical bytes of messages and records: integers are 8
// bytes big-endian, counts and lengths 4, members 2. It keeps the first
// error and returns zero values after it.
type Decoder struct {
	rest []byte
	err  error
}

// NewDecoder reads raw, which results may share memory with.
func NewDecoder(raw []byte) *Decoder {
	d := &Decoder{rest: raw}
	if len(raw) > MaxMessageBytes {
		d.Fail("%d bytes exceed the limit of %d", len(raw), MaxMessageBytes)
	}
	return d
}

// Fail records an error unless there is one.
func (d *Decoder) Fail(format string, args ...any) {
	if d.err == nil {
		d.err = fmt.Errorf("ordering: malformed message: "+format, args...)
	}
	d.rest = nil
}

// Err returns the first error.
func (d *Decoder) Err() error { return d.err }

// End returns the first error; bytes that are left are one.
func (d *Decoder) End() error {
	if d.err == nil && len(d.rest) > 0 {
		d.Fail("%d bytes too many", len(d.rest))
	}
	return d.err
}

func (d *Decoder) take(n int) []byte {
	if n < 0 || n > len(d.rest) {
		d.Fail("it ends early")
		return nil
	}
	b := d.rest[:n:n]
	d.rest = d.rest[n:]
	return b
}

// Byte reads a byte.
func (d *Decoder) Byte() byte {
	if b := d.take(1); b != nil {
		return b[0]
	}
	return 0
}

// Bool reads a byte that is 0 or 1.
func (d *Decoder) Bool() bool {
	b := d.Byte()
	if b > 1 {
		d.Fail("a truth value of %d", b)
	}
	return b == 1
}

// Uint64 reads an integer.
func (d *Decoder) Uint64() uint64 {
	if b := d.take(8); b != nil {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

// Height reads the number of a block.
func (d *Decoder) Height() uint64 {
	h := d.Uint64()
	if h > block.MaxHeight {
		d.Fail("height %d exceeds %d", h, uint64(block.MaxHeight))
	}
	return h
}

// Time reads a time in Unix microseconds.
func (d *Decoder) Time() int64 {
	t := d.Uint64()
	if t > block.MaxTime {
		d.Fail("a time after the year 9999")
	}
	return int64(t)
}

// Hash reads 32 bytes.
func (d *Decoder) Hash() (h block.Hash) {
	copy(h[:], d.take(len(h)))
	return h
}

// Signature reads 64 bytes.
func (d *Decoder) Signature() (s identity.Signature) {
	copy(s[:], d.take(len(s)))
	return s
}

// Member reads a position in the orderer set.
func (d *Decoder) Member() uint16 {
	b := d.take(2)
	if b == nil {
		return 0
	}
	m := binary.BigEndian.Uint16(b)
	if m >= identity.MaxOrderers {
		d.Fail("member %d", m)
	}
	return m
}

// Count reads the number of elements that follow, of at least minBytes each, so
// that a false number cannot make its reader allocate more than a small
// multiple of the input.
func (d *Decoder) Count(limit, minBytes int) int {
	b := d.take(4)
	if b == nil {
		return 0
	}
	n := binary.BigEndian.Uint32(b)
	if uint64(n) > uint64(limit) || uint64(n)*uint64(minBytes) > uint64(len(d.rest)) {
		d.Fail("a list of %d", n)
		return 0
	}
	return int(n)
}

// Bytes reads a byte string of at most limit bytes.
func (d *Decoder) Bytes(limit int) []byte { return d.take(d.Count(limit, 1)) }

// Votes reads votes by ascending, distinct members.
func (d *Decoder) Votes() []identity.Vote {
	n := d.Count(identity.MaxOrderers, 2+len(identity.Signature{}))
	if n == 0 {
		return nil
	}
	votes := make([]identity.Vote, n)
	for i := range votes {
		votes[i] = identity.Vote{Member: d.Member(), Signature: d.Signature()}
		if i > 0 && votes[i-1].Member >= votes[i].Member {
			d.Fail("votes are not by ascending, distinct members")
			return nil
		}
	}
	return votes
}

// minTxBytes bounds a transaction from below.
const minTxBytes = 4 + 128

// Txs reads transactions.
func (d *Decoder) Txs() []*block.Tx {
	n := d.Count(block.MaxTxsPerBlock, minTxBytes)
	if n == 0 {
		return nil
	}
	txs := make([]*block.Tx, n)
	for i := range txs {
		raw := d.Bytes(block.MaxTxBytes)
		if d.err != nil {
			return nil
		}
		tx, err := block.DecodeTx(raw)
		if err != nil {
			d.Fail("transaction %d: %v", i, err)
			return nil
		}
		txs[i] = tx
	}
	return txs
}

// AppendUint64 appends an integer as [Decoder.Uint64] reads it.
func AppendUint64(dst []byte, v uint64) []byte { return binary.BigEndian.AppendUint64(dst, v) }

// AppendBool appends a truth value.
func AppendBool(dst []byte, v bool) []byte {
	if v {
		return append(dst, 1)
	}
	return append(dst, 0)
}

// AppendCount appends the number of elements of a list.
func AppendCount(dst []byte, n int) []byte { return binary.BigEndian.AppendUint32(dst, uint32(n)) }

// AppendBytes appends a byte string with its length.
func AppendBytes(dst, b []byte) []byte { return append(AppendCount(dst, len(b)), b...) }

// AppendVotes appends votes.
func AppendVotes(dst []byte, votes []identity.Vote) []byte {
	dst = AppendCount(dst, len(votes))
	for i := range votes {
		dst = binary.BigEndian.AppendUint16(dst, votes[i].Member)
		dst = append(dst, votes[i].Signature[:]...)
	}
	return dst
}

// AppendTxs appends transactions.
func AppendTxs(dst []byte, txs []*block.Tx) []byte {
	dst = AppendCount(dst, len(txs))
	for _, tx := range txs {
		dst = AppendBytes(dst, tx.Encode())
	}
	return dst
}
