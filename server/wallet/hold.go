package wallet

import (
	"context"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/contracts"
	"github.com/tallystick/tallystick/server/chain"
	"github.com/tallystick/tallystick/sql"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// Hold carries out a call inside a transaction block of the execute-order-in-
// parallel flow: it is sql.SessionOptions.Hold. The call is signed for the
// snapshot that the block reads and executed there; its result is what COMMIT
// will have committed, or COMMIT fails with 40001. So the transaction declines
// re-execution, which could give another result than the client was told.
func (s *Session) Hold(ctx context.Context, call *sql.Call, height uint64) (*sql.Held, error) {
	signed, err := contracts.MakeCall(call.Schema, call.Name, call.ArgTypes, call.Args)
	if err != nil {
		return nil, err
	}
	if contracts.IsSystem(&signed) {
		return nil, pgerr.New(pgerr.ActiveSQLTransaction, "%s cannot run inside a transaction block", call.Name).
			WithHint("It runs after all other transactions of its block and has no result before. Call it outside BEGIN.")
	}
	tx, err := s.sign(ctx, signed, func(tx *block.Tx) {
		tx.Snapshot = height
		tx.Flags |= block.NoReexecute
	})
	if err != nil {
		return nil, err
	}
	receipt, err := s.wallet.opts.Preview(ctx, tx)
	if err != nil {
		return nil, err
	}
	for _, n := range receipt.Notices {
		s.notice(n.Severity, n.Error)
	}
	if receipt.Err != nil {
		return nil, receipt.Err
	}
	rows, err := contracts.DecodeRows(call.Columns, receipt.Result)
	if err != nil {
		return nil, err
	}
	return &sql.Held{Rows: rows, Commit: func(ctx context.Context) error {
		receipt, err := s.wait(ctx, tx)
		if err == nil && receipt.Status != chain.Committed {
			return receipt.Err
		}
		return err
	}}, nil
}
