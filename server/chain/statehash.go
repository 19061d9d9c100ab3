package chain

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/identity"
	"github.com/tallystick/tallystick/mvcc"
)

// What the state hash of a block covers:
//
//	state(b)  = H(state(b-1), height, writes(b), outcomes(b), tables(b))
//	writes(b) = H over (sequence 4, transaction number 8, digest 32) of every
//	            transaction that committed, in commit order
//	digest    = H over its net writes in key order, each as
//	            1, key length, key, value length, value    a row version
//	            2, key length, key                         a deletion
//	outcomes(b) = Merkle root over the receipts of all transactions of the block
//	            (id, status, SQLSTATE, hash of the result), in block order
//	tables(b) = H over (table 4, SHA-256 of its digest 32) of every table that
//	            is not empty, by table; see tableDigests for the digests
//
// with H tagged and length-prefixed (identity.Digest), integers big-endian and
// lengths as varints. The rows of genesis count as a transaction with sequence
// and number 0; state(0) has a zero predecessor and the network id for outcomes.
// block.StateStep computes the first line, for clients too.
//
// Not covered are the rows of pgledger and blocks, which follow from the block
// and from what is covered, except for messages, details and notices: nobody
// should depend on those.
const (
	domainWrites   identity.Domain = "tallystick/writes/v1"
	domainTxWrites identity.Domain = "tallystick/tx-writes/v1"
	domainTables   identity.Domain = "tallystick/tables/v1"
)

// writeSet is the digest of the writes of a block in the making.
type writeSet struct{ entries []byte }

// add appends a transaction that commits.
func (w *writeSet) add(seq uint32, xid uint64, digest block.Hash) {
	w.entries = binary.BigEndian.AppendUint32(w.entries, seq)
	w.entries = binary.BigEndian.AppendUint64(w.entries, xid)
	w.entries = append(w.entries, digest[:]...)
}

func (w *writeSet) sum() block.Hash { return identity.Digest(domainWrites, w.entries) }

// writeSetEntry is the length of what add appends.
const writeSetEntry = 4 + 8 + 32

// record is what the state keeps of a block's step: the three digests and the
// entries of the write set, which tell in a damaged store whose writes they are.
func (w *writeSet) record(step *block.StateStep) []byte {
	b := make([]byte, 0, 3*32+len(w.entries))
	b = append(append(append(b, step.Writes[:]...), step.Outcomes[:]...), step.Tables[:]...)
	return append(b, w.entries...)
}

// decodeStep reads what record made and checks that the entries are those of the
// write set.
func decodeStep(height block.Height, record []byte) (step block.StateStep, entries []byte, err error) {
	if len(record) < 3*32 || (len(record)-3*32)%writeSetEntry != 0 {
		return step, nil, fmt.Errorf("chain: corruption: record of the step of block %d has %d bytes", height, len(record))
	}
	step = block.StateStep{Writes: block.Hash(record), Outcomes: block.Hash(record[32:]), Tables: block.Hash(record[64:])}
	w := writeSet{entries: record[96:]}
	if w.sum() != step.Writes {
		return step, nil, fmt.Errorf("chain: corruption: record of the step of block %d contradicts itself", height)
	}
	return step, w.entries, nil
}

// txDigest hashes writes of one transaction; it is reused from one to the next.
type txDigest struct {
	buf  []byte
	hash hash.Hash // of what left buf; nil while all fits
}

// flushAt bounds the buffer: rows are small, and hashing them at once is
// cheaper than feeding them piece by piece.
const flushAt = 16 << 10

func (d *txDigest) begin() {
	d.buf = append(d.buf[:0], byte(len(domainTxWrites)))
	d.buf = append(d.buf, domainTxWrites...)
	d.hash = nil
}

func (d *txDigest) write(key, value []byte, tombstone bool) {
	if tombstone {
		d.buf = append(d.buf, 2)
	} else {
		d.buf = append(d.buf, 1)
	}
	d.buf = binary.AppendUvarint(d.buf, uint64(len(key)))
	d.buf = append(d.buf, key...)
	if !tombstone {
		d.buf = binary.AppendUvarint(d.buf, uint64(len(value)))
		d.buf = append(d.buf, value...)
	}
	if len(d.buf) >= flushAt {
		if d.hash == nil {
			d.hash = sha256.New()
		}
		d.hash.Write(d.buf)
		d.buf = d.buf[:0]
	}
}

func (d *txDigest) sum() block.Hash {
	if d.hash == nil {
		return sha256.Sum256(d.buf)
	}
	d.hash.Write(d.buf)
	var h block.Hash
	d.hash.Sum(h[:0])
	return h
}

// of is the digest of a transaction's net writes.
func (d *txDigest) of(txn *mvcc.Txn) (block.Hash, error) {
	d.begin()
	err := txn.EachWrite(func(key, value []byte, tombstone bool) error {
		d.write(key, value, tombstone)
		return nil
	})
	return d.sum(), err
}
