package server

import (
	"context"
	"encoding/hex"
	"reflect"
	"sync"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/server/pgwire"
	"github.com/tallystick/tallystick/server/wallet"
	"github.com/tallystick/tallystick/sql"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// signing connects the sessions of wallets with their control connections; see
// package wallet for the protocol.
type signing struct {
	mu      sync.Mutex
	waiting map[signingKey]chan wallet.Answer
}

// signingKey names a session: its user, and the token that the wallet chose.
type signingKey struct{ user, token string }

func newSigning() *signing { return &signing{waiting: map[signingKey]chan wallet.Answer{}} }

// networkSession makes the session of a client of a network's node.
func (n *Node) networkSession(p pgwire.StartupParams) (*sql.Session, error) {
	org := n.mesh.member.User.Org
	options := sql.SessionOptions{
		User: p.User, Org: org, Database: p.Database, Network: n.mesh.member.Network.ID, ApplicationName: p.ApplicationName, ClientAddr: p.ClientAddr, PID: p.PID,
		Notice: p.Notice, Parameter: p.Parameter, Wake: p.Wake,
	}
	if n.mesh.access.byPassword(p) {
		return n.state.engine.NewSession(options), nil
	}
	options.Envelope = n.submitEnvelope
	for _, s := range p.Settings {
		key := signingKey{p.User, s[1]}
		switch s[0] {
		case wallet.SignerSetting:
			if len(s[1]) < wallet.TokenChars {
				return nil, pgerr.New(pgerr.InvalidParameterValue, "the token of a wallet has at least %d characters", wallet.TokenChars)
			}
			session := n.wallet.RemoteSession(p.User, p.Notice, n.mesh.signing.signer(key, p))
			options.Submit, options.Script = session.Submit, session.Script
			if n.holds() {
				options.Hold = session.Hold
			}
		case wallet.ControlSetting:
			options.Envelope = func(_ context.Context, raw []byte) (*sql.Outcome, error) { return n.mesh.signing.answer(key, raw) }
		}
	}
	return n.state.engine.NewSession(options), nil
}

// signer asks the wallet behind a connection to sign.
func (s *signing) signer(key signingKey, p pgwire.StartupParams) func(context.Context, *block.Tx) (*block.Tx, error) {
	return func(ctx context.Context, tx *block.Tx) (*block.Tx, error) {
		answer := make(chan wallet.Answer, 1)
		s.mu.Lock()
		s.waiting[key] = answer
		s.mu.Unlock()
		defer func() {
			s.mu.Lock()
			delete(s.waiting, key)
			s.mu.Unlock()
		}()
		p.Notice("LOG", pgerr.New(wallet.SignatureWanted, "signature wanted").WithDetail("%s", hex.EncodeToString(tx.Encode())))
		if err := p.Flush(); err != nil {
			return nil, err
		}
		select {
		case a := <-answer:
			if a.Refusal != nil {
				return nil, a.Refusal
			}
			return a.Tx, sameCall(tx, a.Tx)
		case <-ctx.Done():
			if e, ok := pgerr.From(context.Cause(ctx)); ok {
				return nil, e
			}
			return nil, pgerr.New(pgerr.QueryCanceled, "canceling statement due to user request")
		}
	}
}

// sameCall makes sure that a wallet has signed what it was asked for: the session
// tells the client what this call gives.
func sameCall(asked, signed *block.Tx) error {
	if signed.Network != asked.Network || signed.User != asked.User || signed.Snapshot != asked.Snapshot || signed.Flags != asked.Flags ||
		!reflect.DeepEqual(signed.Call, asked.Call) {
		return pgerr.New(pgerr.ProtocolViolation, "the wallet has signed another transaction than it was asked for")
	}
	return nil
}

// answer takes what a wallet sends on its control connection.
func (s *signing) answer(key signingKey, raw []byte) (*sql.Outcome, error) {
	a, err := wallet.DecodeAnswer(raw)
	if err != nil {
		return nil, pgerr.New(pgerr.InvalidBinaryRepresentation, "malformed answer of a wallet").WithDetail("%v", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	waiting := s.waiting[key]
	if waiting == nil {
		return nil, pgerr.New(pgerr.ObjectNotInPrerequisiteState, "no session waits for a signature")
	}
	select {
	case waiting <- a:
	default:
		return nil, pgerr.New(pgerr.ObjectNotInPrerequisiteState, "the session has its signature already")
	}
	return &sql.Outcome{Rows: [][]datum.Datum{{datum.Null}}}, nil
}
