package raft

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/tallystick/tallystick/blockstore/block"
)

// The first byte of an entry and of a snapshot.
const (
	entryVersion = 1
	stateVersion = 1

	entryHead = 1 + 8 + 32 // version, time, configuration
	// maxEntryBytes leaves room for a block's own fields around the transactions
	// of an entry.
	maxEntryBytes = block.MaxBlockBytes
)

var errMalformed = errors.New("raft: malformed")

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errMalformed, fmt.Sprintf(format, args...))
}

// entry is what the leader proposes: the content of a block.
type entry struct {
	proposed int64 // Unix microseconds, of the leader's clock
	configID block.Hash
	txs      []item
}

// encode returns the bytes of a log entry: version, time (8 bytes),
// configuration id (32), then each transaction after its length (varint).
func (e *entry) encode() []byte {
	size := entryHead
	for i := range e.txs {
		size += block.TxSizeInBlock(e.txs[i].tx)
	}
	b := make([]byte, 0, size)
	b = append(b, entryVersion)
	b = binary.BigEndian.AppendUint64(b, uint64(e.proposed))
	b = append(b, e.configID[:]...)
	return appendTxs(b, e.txs)
}

// decodeEntry reads a log entry. The transactions alias b.
func decodeEntry(b []byte) (*entry, error) {
	if len(b) < entryHead || len(b) > maxEntryBytes {
		return nil, malformed("an entry has %d bytes", len(b))
	}
	if b[0] != entryVersion {
		return nil, malformed("entry version %d is not known", b[0])
	}
	e := &entry{proposed: int64(binary.BigEndian.Uint64(b[1:]))}
	if e.proposed < 0 || e.proposed > block.MaxTime {
		return nil, malformed("proposed time %d", e.proposed)
	}
	copy(e.configID[:], b[9:])
	var err error
	e.txs, err = decodeTxs(b[entryHead:])
	return e, err
}

// appendTxs appends each transaction after its length.
func appendTxs(b []byte, txs []item) []byte {
	for i := range txs {
		raw := txs[i].tx.Encode()
		b = binary.AppendUvarint(b, uint64(len(raw)))
		b = append(b, raw...)
	}
	return b
}

// decodeTxs reads transactions up to the end of b, which they alias.
func decodeTxs(b []byte) ([]item, error) {
	var txs []item
	for len(b) > 0 {
		n, width := binary.Uvarint(b)
		if width <= 0 || n > block.MaxTxBytes || n > uint64(len(b)-width) {
			return nil, malformed("length of transaction %d", len(txs)+1)
		}
		raw := b[width : width+int(n)]
		tx, err := block.DecodeTx(raw)
		if err != nil {
			return nil, fmt.Errorf("raft: transaction %d: %w", len(txs)+1, err)
		}
		txs = append(txs, itemOf(tx))
		b = b[width+int(n):]
	}
	if len(txs) > block.MaxTxsPerBlock {
		return nil, malformed("%d transactions", len(txs))
	}
	return txs, nil
}

// state is the machine's: the last block. It is all that a snapshot has.
type state struct {
	number    block.Height
	hash      block.Hash
	timestamp int64
}

const stateBytes = 1 + 8 + 32 + 8

func stateOf(b *block.Block) state { return state{b.Number, b.Hash(), b.Timestamp} }

func (s *state) encode() []byte {
	b := make([]byte, 0, stateBytes)
	b = append(b, stateVersion)
	b = binary.BigEndian.AppendUint64(b, s.number)
	b = append(b, s.hash[:]...)
	return binary.BigEndian.AppendUint64(b, uint64(s.timestamp))
}

func decodeState(b []byte) (s state, err error) {
	if len(b) != stateBytes {
		return s, malformed("a snapshot has %d bytes", len(b))
	}
	if b[0] != stateVersion {
		return s, malformed("snapshot version %d is not known", b[0])
	}
	s.number = binary.BigEndian.Uint64(b[1:])
	copy(s.hash[:], b[9:])
	s.timestamp = int64(binary.BigEndian.Uint64(b[41:]))
	if s.number > block.MaxHeight || s.timestamp < 0 || s.timestamp > block.MaxTime {
		return s, malformed("a snapshot of block %d at time %d", s.number, s.timestamp)
	}
	return s, nil
}
