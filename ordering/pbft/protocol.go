package pbft

import (
	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/identity"
	"github.com/tallystick/tallystick/ordering"
)

// Protocol is PBFT for a driver or a simulator.
var Protocol = ordering.Protocol{
	Name: block.OrdererPBFT,
	New: func(opts ordering.MachineOptions, start ordering.Start, records []ordering.Record) (ordering.Machine, error) {
		return New(opts, start, records)
	},
	Decode: Decode,
	Serve:  Serve,
}

// Serve makes the message that proves a durable block to another member, or
// returns nil for a block without a certificate of commits. The receiver takes
// it in the epoch that it belongs to.
func Serve(b *block.Block, epoch uint64) ordering.Message {
	cert, err := identity.DecodeCertificate(b.Certificate)
	if err != nil || cert.Kind != identity.CommitVotes {
		return nil
	}
	return &Decided{
		Epoch: epoch,
		View:  cert.View,
		Value: identity.Commit{Sequence: b.Number, Batch: b.Header().TxDigest, Proposed: cert.Proposed},
		Votes: cert.Votes,
		Txs:   b.Txs,
	}
}

// PrimaryOf returns the member of n that leads a view.
func PrimaryOf(view uint64, n int) int { return int(view % uint64(n)) }
