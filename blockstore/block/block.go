package block

import (
	"encoding/binary"
	"fmt"

	"github.com/tallystick/tallystick/identity"
)

// Header is what a block hash covers.
type Header struct {
	Number    uint64
	TxDigest  Hash
	Timestamp int64 // Unix microseconds
	PrevHash  Hash
	ConfigID  Hash
}

// Hash returns the block hash.
func (h *Header) Hash() Hash {
	var number, timestamp [8]byte
	binary.BigEndian.PutUint64(number[:], h.Number)
	binary.BigEndian.PutUint64(timestamp[:], uint64(h.Timestamp))
	return identity.Digest(identity.DomainBlock,
		number[:], h.TxDigest[:], timestamp[:], h.PrevHash[:], h.ConfigID[:])
}

// Block is a batch of transactions in the order on which the orderers agreed.
// See the package comment for when it may be changed.
type Block struct {
	Number    uint64
	PrevHash  Hash     // hash of block Number-1; zero in block 0
	ConfigID  Hash     // configuration under which the block was ordered
	Timestamp int64    // Unix microseconds, larger than that of block Number-1
	Genesis   *Genesis // in block 0 only
	Txs       []*Tx    // the first has position 1

	// Certificate is opaque here: see identity.Certificate. It is no part of
	// the hash and may be set at any time.
	Certificate []byte

	sealed   bool
	txDigest Hash
	hash     Hash
}

const blockVersion = 1

// Seal computes the hashes once and for all and returns the block hash. Only
// the certificate may be changed afterwards.
func (b *Block) Seal() Hash {
	if !b.sealed {
		b.txDigest = TxDigest(b.Txs)
		b.hash = b.header(b.txDigest).Hash()
		b.sealed = true
	}
	return b.hash
}

// Hash returns the block hash. It is computed anew for a block that is not
// sealed.
func (b *Block) Hash() Hash {
	if b.sealed {
		return b.hash
	}
	return b.Header().Hash()
}

// Header returns what the hash covers.
func (b *Block) Header() *Header {
	if b.sealed {
		return b.header(b.txDigest)
	}
	return b.header(TxDigest(b.Txs))
}

func (b *Block) header(txDigest Hash) *Header {
	return &Header{Number: b.Number, TxDigest: txDigest, Timestamp: b.Timestamp, PrevHash: b.PrevHash, ConfigID: b.ConfigID}
}

// TxDigest is the hash over the hashes of the transactions' bytes, signatures
// included, in their order.
func TxDigest(txs []*Tx) Hash {
	hashes := make([]byte, 0, len(txs)*32)
	for _, tx := range txs {
		h := tx.ContentHash()
		hashes = append(hashes, h[:]...)
	}
	return identity.Digest(identity.DomainTxSequence, hashes)
}

// Follows reports why b cannot be the successor of the block with header prev
// and hash prevHash: number and previous hash must link, and time must move
// on.
func (b *Block) Follows(prevNumber uint64, prevHash Hash, prevTimestamp int64) error {
	switch {
	case b.Number != prevNumber+1:
		return fmt.Errorf("block: block %d does not follow block %d", b.Number, prevNumber)
	case b.PrevHash != prevHash:
		return fmt.Errorf("block: block %d does not link to block %d: previous hash is %s, should be %s", b.Number, prevNumber, b.PrevHash, prevHash)
	case b.Timestamp <= prevTimestamp:
		return fmt.Errorf("block: timestamp %d of block %d is not after %d of block %d", b.Timestamp, b.Number, prevTimestamp, prevNumber)
	}
	return nil
}

// Validate reports why the block is not of the form that a decoder accepts. It
// does not look into the transactions.
func (b *Block) Validate() error {
	if err := b.validateKind(); err != nil {
		return fmt.Errorf("block: %w", err)
	}
	switch {
	case b.Number > MaxHeight:
		return fmt.Errorf("block: number %d exceeds %d", b.Number, uint64(MaxHeight))
	case b.Timestamp < 0 || b.Timestamp > MaxTime:
		return fmt.Errorf("block: timestamp %d is outside of 1970 to 9999", b.Timestamp)
	case len(b.Txs) > MaxTxsPerBlock:
		return fmt.Errorf("block: %d transactions exceed the limit of %d", len(b.Txs), MaxTxsPerBlock)
	case len(b.Certificate) > MaxCertificateBytes:
		return fmt.Errorf("block: certificate of %d bytes exceeds the limit of %d", len(b.Certificate), MaxCertificateBytes)
	}
	if n := b.EncodedSize(); n > MaxBlockBytes {
		return fmt.Errorf("block: block of %d bytes exceeds the limit of %d", n, MaxBlockBytes)
	}
	return nil
}

// validateKind checks what differs between block 0 and the others.
func (b *Block) validateKind() error {
	if b.Number != 0 {
		if b.Genesis != nil {
			return fmt.Errorf("block %d has a genesis", b.Number)
		}
		return nil
	}
	switch {
	case b.Genesis == nil:
		return fmt.Errorf("block 0 has no genesis")
	case len(b.Txs) != 0 || len(b.Certificate) != 0 || !b.PrevHash.IsZero():
		return fmt.Errorf("block 0 has transactions, a certificate or a previous hash")
	case b.ConfigID != b.Genesis.NetworkID():
		return fmt.Errorf("configuration id of block 0 is not the network id")
	case b.Timestamp != b.Genesis.Timestamp:
		return fmt.Errorf("timestamp of block 0 is not that of the genesis")
	}
	return nil
}

// EncodedSize returns the exact length of the encoding.
func (b *Block) EncodedSize() int {
	n := 1 + uvarintLen(b.Number) + len(b.PrevHash) + len(b.ConfigID) + 8
	g := 0
	if b.Genesis != nil {
		g = len(b.Genesis.Encode())
	}
	n += uvarintLen(uint64(g)) + g + uvarintLen(uint64(len(b.Txs)))
	for _, tx := range b.Txs {
		n += TxSizeInBlock(tx)
	}
	return n + uvarintLen(uint64(len(b.Certificate))) + len(b.Certificate)
}

// TxSizeInBlock is the number of bytes that tx adds to a block.
func TxSizeInBlock(tx *Tx) int {
	n := len(tx.raw)
	if tx.raw == nil {
		n = tx.size()
	}
	return uvarintLen(uint64(n)) + n
}

// Encode returns the canonical bytes.
func (b *Block) Encode() []byte {
	return b.AppendEncoded(make([]byte, 0, b.EncodedSize()))
}

// AppendEncoded appends the canonical bytes to dst.
func (b *Block) AppendEncoded(dst []byte) []byte {
	dst = append(dst, blockVersion)
	dst = binary.AppendUvarint(dst, b.Number)
	dst = append(dst, b.PrevHash[:]...)
	dst = append(dst, b.ConfigID[:]...)
	dst = appendInt64(dst, b.Timestamp)
	var genesis []byte
	if b.Genesis != nil {
		genesis = b.Genesis.Encode()
	}
	dst = appendString(dst, genesis)
	dst = binary.AppendUvarint(dst, uint64(len(b.Txs)))
	for _, tx := range b.Txs {
		dst = appendString(dst, tx.Encode())
	}
	return appendString(dst, b.Certificate)
}

// minTxBytes bounds a transaction from below, so that a false count cannot make
// the decoder allocate more than a small multiple of its input.
const minTxBytes = 1 + 32 + 4*2 + 1 + 1 + 16 + 8 + 1 + 1 + signatureBytes

// DecodeBlock reads the canonical bytes of a block and refuses every other
// form, also in each of its transactions. The block is sealed; it keeps raw
// and aliases it; the caller must not change raw any more.
func DecodeBlock(raw []byte) (*Block, error) {
	if len(raw) > MaxBlockBytes {
		return nil, malformed("block of %d bytes exceeds the limit of %d", len(raw), MaxBlockBytes)
	}
	r := reader{buf: raw}
	b := &Block{}
	r.version(blockVersion, "block")
	b.Number = r.uvarint(MaxHeight, "block number")
	copy(b.PrevHash[:], r.take(len(b.PrevHash), "previous hash"))
	copy(b.ConfigID[:], r.take(len(b.ConfigID), "configuration id"))
	b.Timestamp = r.time("timestamp")
	if err := b.decodeGenesis(&r); err != nil {
		return nil, err
	}
	if err := b.decodeTxs(&r); err != nil {
		return nil, err
	}
	if c := r.bytes(MaxCertificateBytes, "certificate"); len(c) > 0 {
		b.Certificate = c
	}
	if err := r.end(); err != nil {
		return nil, err
	}
	if err := b.validateKind(); err != nil {
		return nil, malformed("%v", err)
	}
	b.Seal()
	return b, nil
}

func (b *Block) decodeGenesis(r *reader) (err error) {
	if raw := r.bytes(MaxGenesisBytes, "genesis"); len(raw) > 0 {
		b.Genesis, err = DecodeGenesis(raw)
	}
	return err
}

func (b *Block) decodeTxs(r *reader) error {
	n := int(r.uvarint(MaxTxsPerBlock, "transaction count"))
	if n == 0 || r.err != nil {
		return r.err
	}
	if n > (len(r.buf)-r.off)/minTxBytes {
		r.fail("%d transactions do not fit", n)
		return r.err
	}
	b.Txs = make([]*Tx, n)
	for i := range b.Txs {
		raw := r.bytes(MaxTxBytes, "transaction")
		if r.err != nil {
			return r.err
		}
		tx, err := DecodeTx(raw)
		if err != nil {
			return fmt.Errorf("block: transaction at position %d: %w", i+1, err)
		}
		b.Txs[i] = tx
	}
	return nil
}
