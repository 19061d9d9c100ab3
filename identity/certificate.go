package identity

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
)

const (
	// MaxOrderers is the largest orderer set.
	MaxOrderers     = 1024
	certificateHead = 1 + 8 + 2 // kind, view, number of votes
	proposedBytes   = 8         // of a certificate of commits, after the view
	voteBytes       = 2 + 64    // member, signature
	// MaxCertificateBytes is the longest encoding of a certificate.
	MaxCertificateBytes = certificateHead + proposedBytes + MaxOrderers*voteBytes
)

// CertificateKind says what the votes of a certificate sign. It is the first
// byte of the encoding.
type CertificateKind uint8

const (
	// BlockVotes sign a block hash, see [VoteDigest]: solo and raft. The zero
	// kind means the same in memory.
	BlockVotes CertificateKind = 1
	// CommitVotes sign a batch in its place in the order, see [CommitDigest]:
	// pbft, which decides blocks before the hashes of their predecessors
	// are known.
	CommitVotes CertificateKind = 2
)

// OrdererSet is the orderers of a configuration. Votes name their signer by
// its position in Keys, which are sorted bytewise without duplicates.
type OrdererSet struct {
	Keys   []PublicKey
	Quorum int // votes that make a certificate: 1 (solo, raft) or 2f+1
}

// Validate reports why set cannot be used.
func (set *OrdererSet) Validate() error {
	if n := len(set.Keys); n == 0 || n > MaxOrderers {
		return fmt.Errorf("identity: an orderer set has 1 to %d keys, got %d", MaxOrderers, n)
	}
	for i := 1; i < len(set.Keys); i++ {
		if bytes.Compare(set.Keys[i-1][:], set.Keys[i][:]) >= 0 {
			return errors.New("identity: orderer keys are not sorted or not distinct")
		}
	}
	if set.Quorum < 1 || set.Quorum > len(set.Keys) {
		return fmt.Errorf("identity: quorum %d of %d orderers", set.Quorum, len(set.Keys))
	}
	return nil
}

// Index returns the position of key in the set, or -1.
func (set *OrdererSet) Index(key PublicKey) int {
	for i := range set.Keys {
		if set.Keys[i] == key {
			return i
		}
	}
	return -1
}

// Vote is one orderer's signature.
type Vote struct {
	Member    uint16 // position in the orderer set
	Signature Signature
}

// Certificate is a quorum of votes of one view. It is no part of a block's
// hash: orderers may hold different certificates for one block. With a single
// orderer it is that orderer's vote in view 0.
type Certificate struct {
	Kind     CertificateKind
	View     uint64
	Proposed int64  // CommitVotes: the proposed time that the votes sign, Unix microseconds
	Votes    []Vote // by ascending member, each at most once
}

// Commit is what an orderer of a byzantine protocol votes for: a batch of
// transactions, by digest, at a place in the order, with the time that its
// proposer read. The block's own timestamp is that time, or one microsecond
// after its predecessor's if that is later.
type Commit struct {
	Sequence uint64   // number of the block
	Batch    [32]byte // digest of the block's transactions
	Proposed int64    // Unix microseconds, never negative
}

// CommitDigest is what an orderer signs to commit in a view. A certificate of
// such votes must not mix views: two quorums of mixed views can exist for two
// different batches.
func CommitDigest(network [32]byte, view uint64, c Commit) [32]byte {
	var b [8 * 3]byte
	binary.BigEndian.PutUint64(b[0:], view)
	binary.BigEndian.PutUint64(b[8:], c.Sequence)
	binary.BigEndian.PutUint64(b[16:], uint64(c.Proposed))
	return Digest(DomainCommit, network[:], b[0:8], b[8:16], c.Batch[:], b[16:24])
}

// VerifyCommits reports why cert, of the kind [CommitVotes], does not certify
// that the batch was ordered at that place at the certificate's time.
func VerifyCommits(set *OrdererSet, network [32]byte, sequence uint64, batch [32]byte, cert *Certificate) error {
	if cert.Kind != CommitVotes {
		return fmt.Errorf("identity: certificate of kind %d has no commits", cert.Kind)
	}
	c := Commit{Sequence: sequence, Batch: batch, Proposed: cert.Proposed}
	return VerifyVotes(set, CommitDigest(network, cert.View, c), cert.Votes)
}

// VoteDigest is what an orderer signs to vote for a block in a view.
func VoteDigest(network [32]byte, view uint64, blockHash [32]byte) [32]byte {
	var v [8]byte
	binary.BigEndian.PutUint64(v[:], view)
	return Digest(DomainVote, network[:], v[:], blockHash[:])
}

// VerifyCertificate reports why cert does not certify the block: it needs a
// quorum of valid votes of distinct members, all of the certificate's view, and
// not one vote beside them that is invalid. It is for certificates of the kind
// [BlockVotes]; the method VerifyCertificate of a block takes all kinds.
func VerifyCertificate(set *OrdererSet, network, blockHash [32]byte, cert *Certificate) error {
	if cert.Kind > BlockVotes {
		return fmt.Errorf("identity: certificate of kind %d does not vote for a block hash", cert.Kind)
	}
	digest := VoteDigest(network, cert.View, blockHash)
	return VerifyVotes(set, digest, cert.Votes)
}

// VerifyVotes checks that votes are a quorum of valid signatures of digest by
// distinct members. Protocols whose votes sign something else than a block
// hash use it with a digest of their own.
func VerifyVotes(set *OrdererSet, digest [32]byte, votes []Vote) error {
	if err := set.Validate(); err != nil {
		return err
	}
	if err := checkVotes(votes); err != nil {
		return err
	}
	if len(votes) < set.Quorum {
		return fmt.Errorf("identity: certificate has %d votes, the quorum is %d", len(votes), set.Quorum)
	}
	// The last member is the largest one.
	if last := int(votes[len(votes)-1].Member); last >= len(set.Keys) {
		return fmt.Errorf("identity: certificate names orderer %d of %d", last, len(set.Keys))
	}
	for i := range votes {
		if !Verify(set.Keys[votes[i].Member], digest[:], votes[i].Signature) {
			return fmt.Errorf("identity: signature of orderer %d does not verify", votes[i].Member)
		}
	}
	return nil
}

func checkVotes(votes []Vote) error {
	if len(votes) == 0 || len(votes) > MaxOrderers {
		return fmt.Errorf("identity: a certificate has 1 to %d votes, got %d", MaxOrderers, len(votes))
	}
	for i := 1; i < len(votes); i++ {
		if votes[i-1].Member >= votes[i].Member {
			return errors.New("identity: votes of a certificate are not by ascending, distinct members")
		}
	}
	return nil
}

// Encode returns the canonical bytes: kind, view (8 bytes), for [CommitVotes]
// the proposed time (8), number of votes (2), then for each vote the member (2)
// and the signature (64); integers are big-endian. A certificate that breaks
// the order or the bound of its votes encodes to bytes that
// [DecodeCertificate] refuses.
func (c *Certificate) Encode() []byte {
	b := make([]byte, 0, certificateHead+proposedBytes+len(c.Votes)*voteBytes)
	b = append(b, byte(max(c.Kind, BlockVotes)))
	b = binary.BigEndian.AppendUint64(b, c.View)
	if c.Kind == CommitVotes {
		b = binary.BigEndian.AppendUint64(b, uint64(c.Proposed))
	}
	b = binary.BigEndian.AppendUint16(b, uint16(min(len(c.Votes), 1<<16-1)))
	for i := range c.Votes {
		b = binary.BigEndian.AppendUint16(b, c.Votes[i].Member)
		b = append(b, c.Votes[i].Signature[:]...)
	}
	return b
}

// DecodeCertificate reads the canonical bytes and refuses every other form. The
// result does not share memory with b.
func DecodeCertificate(b []byte) (*Certificate, error) {
	if len(b) < certificateHead || len(b) > MaxCertificateBytes {
		return nil, fmt.Errorf("identity: a certificate has %d to %d bytes, got %d", certificateHead, MaxCertificateBytes, len(b))
	}
	c := &Certificate{Kind: CertificateKind(b[0]), View: binary.BigEndian.Uint64(b[1:])}
	head := certificateHead
	switch c.Kind {
	case BlockVotes:
	case CommitVotes:
		head += proposedBytes
		if len(b) < head {
			return nil, fmt.Errorf("identity: certificate of commits has %d bytes", len(b))
		}
		if c.Proposed = int64(binary.BigEndian.Uint64(b[9:])); c.Proposed < 0 {
			return nil, errors.New("identity: the time of a certificate is negative")
		}
	default:
		return nil, fmt.Errorf("identity: certificate of kind %d is not known", b[0])
	}
	n := int(binary.BigEndian.Uint16(b[head-2:]))
	if len(b) != head+n*voteBytes {
		return nil, fmt.Errorf("identity: certificate of %d votes has %d bytes", n, len(b))
	}
	c.Votes = make([]Vote, n)
	for i := range c.Votes {
		v := b[head+i*voteBytes:]
		c.Votes[i].Member = binary.BigEndian.Uint16(v)
		copy(c.Votes[i].Signature[:], v[2:])
	}
	if err := checkVotes(c.Votes); err != nil {
		return nil, err
	}
	return c, nil
}
