package block

import (
	"fmt"

	"github.com/tallystick/tallystick/identity"
)

// TimestampAfter returns the timestamp of a block whose proposer read the time
// proposed and whose predecessor has the timestamp prev: time moves on, by a
// microsecond at least.
func TimestampAfter(prev, proposed int64) int64 { return max(proposed, prev+1) }

// VerifyCertificate reports why the certificate of b does not show that the
// orderers agreed on it. It takes all kinds of certificates. One of commits
// binds number, transactions and proposed time; that the rest of the header
// follows from the predecessor is for the caller to check ([Block.Follows] and
// the configuration id). prevTimestamp is the predecessor's, or negative if it
// is not at hand: then the timestamp is only known not to be too early.
func (b *Block) VerifyCertificate(set *identity.OrdererSet, network Hash, prevTimestamp int64) error {
	return b.Header().VerifyCertificate(b.Certificate, set, network, prevTimestamp)
}

// VerifyCertificate is [Block.VerifyCertificate] for who has the header alone.
func (h *Header) VerifyCertificate(certificate []byte, set *identity.OrdererSet, network Hash, prevTimestamp int64) error {
	cert, err := identity.DecodeCertificate(certificate)
	if err != nil {
		return err
	}
	if cert.Kind != identity.CommitVotes {
		return identity.VerifyCertificate(set, network, h.Hash(), cert)
	}
	switch {
	case prevTimestamp >= 0 && h.Timestamp != TimestampAfter(prevTimestamp, cert.Proposed):
		return fmt.Errorf("block: timestamp %d of block %d does not follow from proposed time %d", h.Timestamp, h.Number, cert.Proposed)
	case h.Timestamp < cert.Proposed:
		return fmt.Errorf("block: timestamp %d of block %d is before its proposed time %d", h.Timestamp, h.Number, cert.Proposed)
	}
	return identity.VerifyCommits(set, network, h.Number, h.TxDigest, cert)
}
