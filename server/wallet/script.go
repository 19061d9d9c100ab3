package wallet

import (
	"context"
	"fmt"
	"slices"

	"github.com/tallystick/tallystick/identity"
	"github.com/tallystick/tallystick/server/chain"
	"github.com/tallystick/tallystick/sql"
	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
	"github.com/tallystick/tallystick/sql/plan"
)

// Script deploys definitions that an admin typed: it is
// sql.SessionOptions.Script. Where one organization is all there is, it is
// three transactions of this admin: create_deploytx, approve_deploytx and
// submit_deploytx. What would fail is not proposed at all, for it would stay in
// deploytx for ever: approved, never deployed. Only if others change the state
// in between does that still happen.
func (s *Session) Script(ctx context.Context, ddl string) (*sql.Outcome, error) {
	if err := s.mayDeploy(); err != nil {
		return nil, err
	}
	if try := s.wallet.opts.Try; try != nil {
		if err := try(identity.UserID{Org: s.wallet.opts.Org, Name: s.user}, ddl); err != nil {
			return nil, err
		}
	}
	id, err := s.propose(ctx, ddl)
	if err != nil {
		return nil, err
	}
	if _, err := s.system(ctx, "approve_deploytx", id); err != nil {
		return nil, s.inDeployment(err, id)
	}
	out, err := s.system(ctx, "submit_deploytx", id)
	if err != nil {
		return nil, s.inDeployment(err, id)
	}
	s.notice("NOTICE", pgerr.New(pgerr.SuccessfulCompletion, "DDL was proposed, approved and deployed as deploytx %d in block %d: organization %s is the only one",
		id.Int(), out.Height, s.wallet.opts.Org))
	return out, nil
}

// mayDeploy refuses users who are not admins, and admins who need others.
func (s *Session) mayDeploy() error {
	users, err := s.wallet.opts.Users()
	if err != nil {
		return err
	}
	self := identity.UserID{Org: s.wallet.opts.Org, Name: s.user}
	isAdmin := func(u chain.User) bool { return u.Active() && u.Role == identity.Admin }
	if !slices.ContainsFunc(users, func(u chain.User) bool { return u.ID == self && isAdmin(u) }) {
		return pgerr.New(pgerr.InsufficientPrivilege, "permission denied for schema %s", catalog.Blockchain).
			WithDetail("Definitions are deployed by admins, and %s is none.", self)
	}
	foreign := func(u chain.User) bool { return u.ID.Org != self.Org && isAdmin(u) }
	if i := slices.IndexFunc(users, foreign); i >= 0 {
		return pgerr.New(pgerr.InsufficientPrivilege, "definitions need the approval of every organization").
			WithDetail("Organization %s is not the only one: there is %s.", self.Org, users[i].ID.Org).
			WithHint("Propose them with SELECT create_deploytx($$...$$); one admin of every organization approves.")
	}
	return nil
}

// propose returns the number of the proposal.
func (s *Session) propose(ctx context.Context, ddl string) (datum.Datum, error) {
	out, err := s.system(ctx, "create_deploytx", datum.Str(ddl))
	if err != nil {
		return datum.Null, err
	}
	if len(out.Rows) != 1 || len(out.Rows[0]) != 1 || out.Rows[0][0].IsNull() {
		return datum.Null, fmt.Errorf("wallet: create_deploytx returned %d rows, not a number", len(out.Rows))
	}
	return out.Rows[0][0], nil
}

// system calls a system contract.
func (s *Session) system(ctx context.Context, name string, args ...datum.Datum) (*sql.Outcome, error) {
	f, ok := catalog.SystemFunc(name)
	if !ok {
		return nil, fmt.Errorf("wallet: there is no system contract %s", name)
	}
	call := &sql.Call{Schema: f.Schema, Name: f.Name, Args: args, Columns: plan.ResultColumns(f)}
	for _, a := range f.InArgs() {
		call.ArgTypes = append(call.ArgTypes, a.Type)
	}
	return s.Submit(ctx, call)
}

// inDeployment tells which proposal an error is about.
func (s *Session) inDeployment(err error, id datum.Datum) error {
	e, ok := pgerr.From(err)
	if !ok {
		return err
	}
	c := *e
	return c.AddContext(fmt.Sprintf("deploytx %d, which stays proposed", id.Int()))
}
