package identity

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
)

const (
	// MaxOrderers is the largest orderer set.
	MaxOrderers = 1024
	// certificateVersion is the first byte of an encoded certificate.
	certificateVersion = 1
	certificateHead    = 1 + 8 + 2 // version, view, number of votes
	voteBytes          = 2 + 64    // member, signature
	// MaxCertificateBytes is the longest encoding of a certificate.
	MaxCertificateBytes = certificateHead + MaxOrderers*voteBytes
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
	View  uint64
	Votes []Vote // by ascending member, each at most once
}

// VoteDigest is what an orderer signs to vote for a block in a view.
func VoteDigest(network [32]byte, view uint64, blockHash [32]byte) [32]byte {
	var v [8]byte
	binary.BigEndian.PutUint64(v[:], view)
	return Digest(DomainVote, network[:], v[:], blockHash[:])
}

// VerifyCertificate reports why cert does not certify the block: it needs a
// quorum of valid votes of distinct members, all of the certificate's view, and
// not one vote beside them that is invalid.
func VerifyCertificate(set *OrdererSet, network, blockHash [32]byte, cert *Certificate) error {
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

// Encode returns the canonical bytes: version, view (8 bytes), number of votes
// (2), then for each vote the member (2) and the signature (64); integers are
// big-endian. A certificate that breaks the order or the bound of its votes
// encodes to bytes that [DecodeCertificate] refuses.
func (c *Certificate) Encode() []byte {
	b := make([]byte, 0, certificateHead+len(c.Votes)*voteBytes)
	b = append(b, certificateVersion)
	b = binary.BigEndian.AppendUint64(b, c.View)
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
	if b[0] != certificateVersion {
		return nil, fmt.Errorf("identity: certificate version %d is not known", b[0])
	}
	n := int(binary.BigEndian.Uint16(b[9:]))
	if len(b) != certificateHead+n*voteBytes {
		return nil, fmt.Errorf("identity: certificate of %d votes has %d bytes", n, len(b))
	}
	c := &Certificate{View: binary.BigEndian.Uint64(b[1:]), Votes: make([]Vote, n)}
	for i := range c.Votes {
		v := b[certificateHead+i*voteBytes:]
		c.Votes[i].Member = binary.BigEndian.Uint16(v)
		copy(c.Votes[i].Signature[:], v[2:])
	}
	if err := checkVotes(c.Votes); err != nil {
		return nil, err
	}
	return c, nil
}
