package sql

import (
	"context"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// statementKind is how a statement is carried out.
type statementKind uint8

const (
	kindEmpty       statementKind = iota
	kindQuery                     // planned, read on a snapshot
	kindCall                      // a blockchain transaction
	kindLocalCall                 // CALL of a procedure of schema private
	kindScript                    // DDL: proposed, approved and deployed
	kindTransaction               // BEGIN and so on
	kindUtility                   // SET, SHOW, PREPARE, ...
	kindRun                       // Prepared.run: EXPLAIN, cursors, COPY, NOTIFY
)

// analyze finds out what a statement is and what it gives.
func (s *Session) analyze(ctx context.Context, p *Prepared) error {
	n := p.Statement.Node
	if n == nil {
		p.kind = kindEmpty
		return nil
	}
	if s.block.failed && !endsFailed(n.GetTransactionStmt()) {
		return pgerr.New(pgerr.InFailedSQLTransaction, "current transaction is aborted, commands ignored until end of transaction block")
	}
	if isLocalDDL(n) {
		p.kind = kindScript
		return nil
	}
	if envelopeArg(n.GetSelectStmt()) != nil {
		_, err := s.analyzeRun(ctx, p)
		return err
	}
	switch n := n.Node.(type) {
	case *pg.Node_SelectStmt, *pg.Node_InsertStmt, *pg.Node_UpdateStmt, *pg.Node_DeleteStmt, *pg.Node_MergeStmt, *pg.Node_CallStmt:
		return s.analyzeQuery(ctx, p)
	case *pg.Node_TransactionStmt:
		p.kind = kindTransaction
		return nil
	case *pg.Node_VariableShowStmt:
		p.kind = kindUtility
		p.columns = showColumns(n.VariableShowStmt.Name)
		return nil
	case *pg.Node_ExecuteStmt:
		return s.analyzeExecute(p, n.ExecuteStmt)
	case *pg.Node_VariableSetStmt, *pg.Node_PrepareStmt, *pg.Node_DeallocateStmt, *pg.Node_DiscardStmt,
		*pg.Node_CheckPointStmt, *pg.Node_ConstraintsSetStmt, *pg.Node_DoStmt, *pg.Node_VacuumStmt, *pg.Node_LockStmt:
		p.kind = kindUtility
		return nil
	}
	if found, err := s.analyzeRun(ctx, p); found || err != nil {
		return err
	}
	if isDDL(n) {
		p.kind = kindScript
		return nil
	}
	return pgerr.NotBuilt("%s is not supported", commandName(n))
}

// start carries the statement out as far as its first row.
func (pt *Portal) start(ctx context.Context) error {
	s, p := pt.session, pt.prepared
	var err error
	switch p.kind {
	case kindEmpty:
		pt.source = done("")
	case kindQuery:
		pt.source, err = s.runQuery(ctx, p, pt.args)
	case kindCall:
		pt.source, err = s.runCall(ctx, p, pt.args)
	case kindLocalCall:
		pt.source, err = s.runLocalCall(ctx, p, pt.args)
	case kindScript:
		pt.source, err = s.runScript(ctx, p)
	case kindRun:
		pt.source, err = p.run(ctx, pt.args)
	case kindTransaction:
		pt.source, err = s.runTransaction(ctx, p.Statement.Node.GetTransactionStmt())
	default:
		pt.source, err = s.runUtility(ctx, p)
	}
	return err
}

// runUtility carries out the statements that concern the session alone.
func (s *Session) runUtility(ctx context.Context, p *Prepared) (rowSource, error) {
	switch n := p.Statement.Node.Node.(type) {
	case *pg.Node_VariableSetStmt:
		return s.runSet(n.VariableSetStmt)
	case *pg.Node_VariableShowStmt:
		return s.runShow(n.VariableShowStmt.Name)
	case *pg.Node_PrepareStmt:
		return s.runPrepare(ctx, n.PrepareStmt, p)
	case *pg.Node_ExecuteStmt:
		return s.runExecute(ctx, n.ExecuteStmt)
	case *pg.Node_DeallocateStmt:
		return s.runDeallocate(n.DeallocateStmt)
	case *pg.Node_DiscardStmt:
		return s.runDiscard(n.DiscardStmt)
	case *pg.Node_VacuumStmt:
		return s.runVacuum(n.VacuumStmt)
	case *pg.Node_LockStmt:
		return s.runLock(n.LockStmt)
	case *pg.Node_DoStmt:
		return s.runDo(ctx, n.DoStmt)
	case *pg.Node_CheckPointStmt:
		return done("CHECKPOINT"), nil
	case *pg.Node_ConstraintsSetStmt:
		return done("SET CONSTRAINTS"), nil
	}
	return nil, pgerr.NotBuilt("%s is not supported", commandName(p.Statement.Node))
}

// runScript hands DDL to whoever deploys it.
func (s *Session) runScript(ctx context.Context, p *Prepared) (rowSource, error) {
	if local, err := s.definesLocally(p.Statement.Node); err != nil {
		return nil, err
	} else if local {
		return s.runLocalDDL(ctx, p)
	}
	if s.block.open {
		return nil, pgerr.New(pgerr.ActiveSQLTransaction, "%s cannot run inside a transaction block", commandName(p.Statement.Node)).
			WithHint("A definition is a blockchain transaction of its own: type it outside BEGIN, or deploy a script with create_deploytx.")
	}
	if s.opts.Script == nil {
		return nil, pgerr.New(pgerr.InsufficientPrivilege, "definitions in schema blockchain are deployed by approval").
			WithHint("An admin proposes them with SELECT create_deploytx($$...$$); one admin of every organization approves.")
	}
	if _, err := s.opts.Script(ctx, p.Statement.Text); err != nil {
		return nil, err
	}
	return done(commandName(p.Statement.Node)), nil
}

// runPrepare is SQL's PREPARE.
func (s *Session) runPrepare(ctx context.Context, n *pg.PrepareStmt, p *Prepared) (rowSource, error) {
	var oids []datum.OID
	for _, a := range n.Argtypes {
		t, err := s.resolveType(a.GetTypeName())
		if err != nil {
			return nil, err
		}
		oids = append(oids, t.OID)
	}
	st := p.Statement
	st.Node = n.Query
	if _, err := s.Prepare(ctx, n.Name, st, oids); err != nil {
		return nil, err
	}
	return done("PREPARE"), nil
}

func (s *Session) analyzeExecute(p *Prepared, n *pg.ExecuteStmt) error {
	target, err := s.Statement(n.Name)
	if err != nil {
		return err
	}
	p.kind, p.columns = kindUtility, target.columns
	return nil
}

// runExecute is SQL's EXECUTE: arguments are expressions without columns.
func (s *Session) runExecute(ctx context.Context, n *pg.ExecuteStmt) (rowSource, error) {
	target, err := s.Statement(n.Name)
	if err != nil {
		return nil, err
	}
	args, err := s.executeArgs(ctx, n, target)
	if err != nil {
		return nil, err
	}
	inner, err := s.Bind(ctx, target, args)
	if err != nil {
		return nil, err
	}
	return &nested{ctx: ctx, portal: inner}, nil
}

// executeArgs computes the arguments of EXECUTE.
func (s *Session) executeArgs(ctx context.Context, n *pg.ExecuteStmt, target *Prepared) (args []datum.Datum, err error) {
	if len(n.Params) != len(target.params) {
		return nil, pgerr.New(pgerr.SyntaxError, "wrong number of parameters for prepared statement \"%s\"", n.Name).
			WithDetail("Expected %d parameters but got %d.", len(target.params), len(n.Params))
	}
	args = make([]datum.Datum, len(n.Params))
	for i, a := range n.Params {
		if args[i], err = s.evaluate(ctx, a, i, target.params[i]); err != nil {
			return nil, err
		}
	}
	return args, nil
}

// nested shows the rows of another portal.
type nested struct {
	ctx    context.Context
	portal *Portal
}

func (n *nested) next() ([]datum.Datum, error) { return n.portal.Next(n.ctx) }
func (n *nested) close()                       { n.portal.Close() }
func (n *nested) commandTag() string           { return n.portal.Tag() }

func (s *Session) runDeallocate(n *pg.DeallocateStmt) (rowSource, error) {
	if n.Name == "" {
		s.prepared = map[string]*Prepared{}
		return done("DEALLOCATE ALL"), nil
	}
	if _, err := s.Statement(n.Name); err != nil {
		return nil, err
	}
	s.Deallocate(n.Name)
	return done("DEALLOCATE"), nil
}

func (s *Session) runDiscard(n *pg.DiscardStmt) (rowSource, error) {
	switch n.Target {
	case pg.DiscardMode_DISCARD_ALL:
		if s.block.open {
			return nil, pgerr.New(pgerr.ActiveSQLTransaction, "DISCARD ALL cannot run inside a transaction block")
		}
		s.prepared = map[string]*Prepared{}
		s.closeCursors(func(*cursor) bool { return true })
		s.unlistenAll()
		s.settings.resetAll()
		s.sequences = sessionSequences{}
		return done("DISCARD ALL"), s.dropTemporary()
	case pg.DiscardMode_DISCARD_PLANS:
		return done("DISCARD PLANS"), nil
	case pg.DiscardMode_DISCARD_SEQUENCES:
		s.sequences = sessionSequences{}
		return done("DISCARD SEQUENCES"), nil
	}
	if s.block.open {
		return nil, pgerr.NotBuilt("DISCARD TEMP in a transaction block is not supported")
	}
	return done("DISCARD TEMP"), s.dropTemporary()
}
