package wallet

import (
	"context"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/contracts"
	"github.com/tallystick/tallystick/server/chain"
	"github.com/tallystick/tallystick/sql"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// Session signs for one connection. Its methods are called by one goroutine.
type Session struct {
	wallet *Wallet
	user   string
	notice func(severity string, e *pgerr.Error)
	warned bool
	// remote signs elsewhere; nil signs with the wallet's own keys.
	remote func(ctx context.Context, tx *block.Tx) (*block.Tx, error)
}

// Session makes the signing session of a connection; notice is where the
// connection shows notices.
func (w *Wallet) Session(user string, notice func(severity string, e *pgerr.Error)) *Session {
	return &Session{wallet: w, user: user, notice: notice}
}

// RemoteSession makes the session of a connection whose user signs elsewhere, with
// a key that this process does not have: sign shows it the transaction and returns
// what was signed, in which only nonce and time may differ.
func (w *Wallet) RemoteSession(user string, notice func(severity string, e *pgerr.Error), sign func(ctx context.Context, tx *block.Tx) (*block.Tx, error)) *Session {
	return &Session{wallet: w, user: user, notice: notice, remote: sign}
}

// sign makes and signs a transaction.
func (s *Session) sign(ctx context.Context, call block.Call, change func(*block.Tx)) (*block.Tx, error) {
	if s.remote == nil {
		s.warn()
		return s.wallet.sign(s.user, call, change)
	}
	tx, err := s.wallet.make(s.user, call, change)
	if err != nil {
		return nil, err
	}
	if len(tx.Encode()) > block.MaxTxBytes {
		return nil, unsignable(tx, nil)
	}
	return s.remote(ctx, tx)
}

// Submit carries out a call: it is sql.SessionOptions.Submit. What the call
// says on its way becomes notices; a call that did not commit gives the error
// of its receipt. When ctx ends first the transaction may still commit.
func (s *Session) Submit(ctx context.Context, call *sql.Call) (*sql.Outcome, error) {
	signed, err := contracts.MakeCall(call.Schema, call.Name, call.ArgTypes, call.Args)
	if err != nil {
		return nil, err
	}
	receipt, err := s.submit(ctx, signed)
	if err != nil {
		return nil, err
	}
	rows, err := contracts.DecodeRows(call.Columns, receipt.Result)
	if err != nil {
		return nil, err
	}
	return &sql.Outcome{Rows: rows, Height: receipt.Height}, nil
}

// submit signs a call and waits until it has committed.
func (s *Session) submit(ctx context.Context, call block.Call) (*chain.Receipt, error) {
	tx, err := s.sign(ctx, call, nil)
	if err != nil {
		return nil, err
	}
	receipt, err := s.wait(ctx, tx)
	if err != nil {
		return nil, err
	}
	for _, n := range receipt.Notices {
		s.notice(n.Severity, n.Error)
	}
	if receipt.Err != nil {
		return nil, receipt.Err
	}
	return receipt, nil
}

// wait hands a transaction over and waits for its receipt.
func (s *Session) wait(ctx context.Context, tx *block.Tx) (*chain.Receipt, error) {
	receipt, err := s.wallet.opts.Submit(ctx, tx)
	if err != nil {
		if ctx.Err() != nil {
			s.notice("WARNING", pgerr.New(pgerr.Warning, "the transaction may still commit").
				WithDetail("It was signed and handed over before the statement was canceled. Its id is %s.", tx.ID()).
				WithHint(`Look for it with SELECT status FROM pgledger WHERE id = '\x%s'.`, tx.ID()))
		}
	}
	return receipt, err
}

// warn tells once a connection what a signing endpoint is.
func (s *Session) warn() {
	if s.warned {
		return
	}
	s.warned = true
	s.notice("WARNING", pgerr.New(pgerr.Warning, "this endpoint signs for whoever is connected, here as %s/%s", s.wallet.opts.Org, s.user).
		WithHint("It is meant for development. Keep keys with their users elsewhere."))
}
