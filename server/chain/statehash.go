package chain

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/identity"
	"github.com/tallystick/tallystick/mvcc"
)

// What the state hash of a block covers:
//
//	state(b) = H(state(b-1), height, writes(b), root(b))
//	writes(b) = H over (sequence 4, transaction number 8, digest 32) of every
//	            transaction that committed, in commit order
//	digest    = H over its net writes in key order, each as
//	            1, key length, key, value length, value    a row version
//	            2, key length, key                         a deletion
//	root(b)   = Merkle root over the receipts of all transactions of the block
//	            (id, status, SQLSTATE, hash of the result), in block order
//
// with H tagged and length-prefixed (identity.Digest), integers big-endian and
// lengths as varints. The rows of genesis count as a transaction with sequence
// and number 0; state(0) has a zero predecessor and the network id for root.
//
// Not covered are the rows of pgledger and blocks, which follow from the block
// and from what is covered, except for messages, details and notices: nobody
// should depend on those.
const (
	domainState    identity.Domain = "tallystick/state/v1"
	domainWrites   identity.Domain = "tallystick/writes/v1"
	domainTxWrites identity.Domain = "tallystick/tx-writes/v1"
)

func stateHash(prev block.Hash, height block.Height, writes, root block.Hash) block.Hash {
	var h [8]byte
	binary.BigEndian.PutUint64(h[:], height)
	return identity.Digest(domainState, prev[:], h[:], writes[:], root[:])
}

// writeSet is the digest of the writes of a block in the making.
type writeSet struct{ entries []byte }

// add appends a transaction that commits.
func (w *writeSet) add(seq uint32, xid uint64, digest block.Hash) {
	w.entries = binary.BigEndian.AppendUint32(w.entries, seq)
	w.entries = binary.BigEndian.AppendUint64(w.entries, xid)
	w.entries = append(w.entries, digest[:]...)
}

func (w *writeSet) sum() block.Hash { return identity.Digest(domainWrites, w.entries) }

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
