package identity

import (
	"crypto/sha256"
	"encoding/binary"
)

// Domain separates the purposes for which bytes are hashed and signed. A
// domain names its format version: a change of the bytes takes a new domain.
type Domain string

// The domains in use. Their texts are consensus-critical.
const (
	DomainTx         Domain = "tallystick/tx/v1"         // transaction id, what a user signs
	DomainTxSequence Domain = "tallystick/txs/v1"        // transaction digest of a block
	DomainBlock      Domain = "tallystick/block/v1"      // block hash
	DomainGenesis    Domain = "tallystick/genesis/v1"    // network id
	DomainConfig     Domain = "tallystick/config/v1"     // configuration transactions
	DomainVote       Domain = "tallystick/vote/v1"       // a vote of a certificate over a block hash
	DomainCommit     Domain = "tallystick/commit/v1"     // a vote of a certificate over an ordered batch
	DomainConsensus  Domain = "tallystick/consensus/v1"  // protocol messages between orderers
	DomainCheckpoint Domain = "tallystick/checkpoint/v1" // state hash signed by a node
)

// digestStackBytes is the size up to which an input is assembled on the stack
// and hashed in one go; longer ones are streamed.
const digestStackBytes = 512

// Digest returns SHA-256 over the domain and the parts, each preceded by its
// length. The parts can be recovered from what is hashed, so two different
// calls never hash the same bytes. A domain longer than 255 bytes panics.
func Digest(domain Domain, parts ...[]byte) [32]byte {
	if len(domain) > 255 {
		panic("identity: domain longer than 255 bytes")
	}
	size := 1 + len(domain)
	for _, p := range parts {
		size += 8 + len(p)
	}
	if size <= digestStackBytes {
		var buf [digestStackBytes]byte
		b := append(buf[:0], byte(len(domain)))
		b = append(b, domain...)
		for _, p := range parts {
			b = binary.BigEndian.AppendUint64(b, uint64(len(p)))
			b = append(b, p...)
		}
		return sha256.Sum256(b)
	}
	h := sha256.New()
	var head [256]byte
	h.Write(append(append(head[:0], byte(len(domain))), domain...))
	for _, p := range parts {
		h.Write(binary.BigEndian.AppendUint64(head[:0], uint64(len(p))))
		h.Write(p)
	}
	var sum [32]byte
	h.Sum(sum[:0])
	return sum
}
