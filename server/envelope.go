package server

import (
	"context"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/sql"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// submitEnvelope hands over a transaction that a client has signed itself and
// waits for its receipt. Bytes that are no transaction are 22P03.
func (n *Node) submitEnvelope(ctx context.Context, raw []byte) (*sql.Outcome, error) {
	tx, err := block.DecodeTx(raw)
	if err != nil {
		return nil, pgerr.New(pgerr.InvalidBinaryRepresentation, "malformed transaction").
			WithDetail("%v", err).WithHint("Send the canonical bytes of a signed transaction.")
	}
	r, err := n.flow.Submit(ctx, tx)
	if err != nil {
		return nil, err
	}
	if r.Err != nil {
		return nil, r.Err
	}
	result := datum.Null
	if r.Result != nil {
		result = datum.Bytes(r.Result)
	}
	return &sql.Outcome{Rows: [][]datum.Datum{{result}}, Height: r.Height}, nil
}
