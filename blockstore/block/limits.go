package block

import "encoding/hex"

// Height is the number of a block; the genesis has height 0.
type Height = uint64

// Hash is a SHA-256 value: of a block, a genesis, a set of transactions.
type Hash [32]byte

// String returns the hash in hexadecimal.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// IsZero reports whether all bytes are zero.
func (h Hash) IsZero() bool { return h == Hash{} }

// TxID identifies a transaction on its network for ever.
type TxID [32]byte

// String returns the id in hexadecimal.
func (id TxID) String() string { return hex.EncodeToString(id[:]) }

// The limits of the canonical encodings. Decoders refuse what exceeds them.
const (
	// MaxTxBytes is the longest encoding of a transaction.
	MaxTxBytes = 1 << 20
	// MaxBlockBytes is the longest encoding of a block, certificate included.
	MaxBlockBytes = 32 << 20
	// MaxTxsPerBlock leaves position 0 to the block's own system writes.
	MaxTxsPerBlock = 1<<PositionBits - 2
	// MaxCertificateBytes bounds the opaque certificate of a block.
	MaxCertificateBytes = 1 << 17
	// MaxGenesisBytes is the longest encoding of a genesis.
	MaxGenesisBytes = 4 << 20

	// MaxIdentifierBytes is the longest schema or function name (NAMEDATALEN-1).
	MaxIdentifierBytes = 63
	// MaxTypeNameBytes is the longest name of an argument's type.
	MaxTypeNameBytes = 127
	// MaxArgs is the largest number of arguments of a call (FUNC_MAX_ARGS).
	MaxArgs = 100

	// MaxHeight keeps every transaction number within a positive bigint.
	MaxHeight = 1<<(63-PositionBits) - 1
	// MaxTime is the last microsecond of the year 9999 in Unix time. Times
	// and timestamps are not negative.
	MaxTime = 253402300799999999

	// PositionBits is how many low bits of a transaction number hold the
	// position in the block.
	PositionBits = 20
)

// XID is the transaction number of a position in a block: what xmin and xmax
// of a row version show. The first transaction of a block has position 1.
func XID(height Height, position uint32) uint64 {
	return height<<PositionBits | uint64(position)
}

// SplitXID is the inverse of [XID].
func SplitXID(xid uint64) (height Height, position uint32) {
	return xid >> PositionBits, uint32(xid & (1<<PositionBits - 1))
}
